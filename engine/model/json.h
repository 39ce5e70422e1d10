/* json.h - reads the untrusted JSON files of a model folder.
 *
 * cJSON does the parsing. These functions add a size limit, the path and line for error
 * messages, and the lookup of a value by alternative dotted names. cJSON limits nesting, so no
 * file can exhaust the stack.
 */
#ifndef ESP_JSON_H
#define ESP_JSON_H

#include <cJSON.h>
#include <limits.h>

#include "engine/espalier.h"

struct esp_json {
    char path[PATH_MAX];
    cJSON *root; /* a JSON object */
    char *err;   /* (errlen) where functions that read `root` write their errors */
    size_t errlen;
};

enum { ESP_JSON_LIMIT = 100 << 20 }; /* bytes */

/* Writes the path `folder`/`name`. Fails if the path is too long. */
int esp_file_path(char path[PATH_MAX], const char *folder, const char *name, char *err,
                  size_t errlen);
/* Opens a regular file for reading; anything else is refused. */
int esp_path_open(int *fd, size_t *size, const char *path, char *err, size_t errlen);
/* Reads the whole file, at most `limit` bytes, and adds a NUL. The caller frees *text, which is
 * NULL on failure. */
int esp_file_read(char **text, size_t *size, char path[PATH_MAX], const char *folder,
                  const char *name, size_t limit, char *err, size_t errlen);
bool esp_file_exists(const char *folder, const char *name);

/* Fails with "not enough memory for `what`". */
int esp_no_memory(const char *what, char *err, size_t errlen);
/* Returns the little-endian number in `count` bytes, at most 8. */
uint64_t esp_little_endian(const void *bytes, size_t count);

/* Parses a NUL-terminated text of `length` bytes, which must be one object. `path` is the name
 * of the text in error messages. The caller deletes *root. */
int esp_json_parse(cJSON **root, const char *text, size_t length, const char *path, char *err,
                   size_t errlen);
/* Reads and parses the file `folder`/`name`. Close `json`, even after a failure. */
int esp_json_read(struct esp_json *json, const char *folder, const char *name, char *err,
                  size_t errlen);
/* Writes "PATH: " and the formatted message to json->err; returns `status`. */
int esp_json_fail(const struct esp_json *json, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void esp_json_close(struct esp_json *json);

/* `names` is a list of names such as "a|b.c". Returns the value of the first name that exists
 * and is not null, or NULL if there is none. Sets *name to this name (*length bytes), or to the
 * first name of the list if none exists. `name` may be NULL. */
const cJSON *esp_json_find(const cJSON *root, const char *names, const char **name,
                           int *length);

/* esp_json_item() returns a member of an object (it may be a JSON null), or NULL if there is
 * none. esp_json_text() returns the member's text, or NULL if the member is not a text.
 * esp_json_true() returns whether the member is true. */
cJSON *esp_json_item(const cJSON *object, const char *key);
const char *esp_json_text(const cJSON *object, const char *key);
bool esp_json_true(const cJSON *object, const char *key);

#endif
