/* json.c - reads the JSON files of a model folder; see json.h.
 *
 * The length given to cJSON always includes the terminating NUL, because releases of cJSON
 * before 1.7.18 read one byte past the end of a text that stops inside an object.
 */
#include "engine/model/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/status.h"

int esp_file_path(char path[PATH_MAX], const char *folder, const char *name, char *err,
                  size_t errlen)
{
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX)
        return 0;
    return esp_fail(err, errlen, ESP_E_FILE, "the path of %s in the model folder is too long",
                    name);
}

int esp_path_open(int *fd, size_t *size, const char *path, char *err, size_t errlen)
{
    struct stat status;
    /* With O_NONBLOCK, opening a pipe by mistake does not hang. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "cannot open %s: %s", path, strerror(errno));
    if (fstat(*fd, &status) == 0 && S_ISREG(status.st_mode)) {
        *size = (size_t)status.st_size;
        return 0;
    }
    close(*fd);
    return esp_fail(err, errlen, ESP_E_FILE, "%s is not a regular file", path);
}

/* Opens `folder`/`name`; writes its path and size. */
static int open_file(int *fd, size_t *size, char path[PATH_MAX], const char *folder,
                     const char *name, char *err, size_t errlen)
{
    int status = esp_file_path(path, folder, name, err, errlen);
    if (status < 0)
        return status;
    if (access(path, F_OK) < 0 && errno == ENOENT && strcmp(name, "tokenizer.json") == 0)
        return esp_fail(err, errlen, ESP_E_FILE,
                        "%s has no tokenizer.json; the transformers library writes one: "
                        "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)",
                        folder);
    if (access(path, F_OK) < 0 && errno == ENOENT && strcmp(name, "config.json") == 0)
        return esp_fail(err, errlen, ESP_E_FILE,
                        "%s is not a model folder: it has no config.json", folder);
    return esp_path_open(fd, size, path, err, errlen);
}

int esp_no_memory(const char *what, char *err, size_t errlen)
{
    return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", what);
}

uint64_t esp_little_endian(const void *bytes, size_t count)
{
    uint64_t value = 0;
    while (count-- > 0)
        value = value << 8 | ((const unsigned char *)bytes)[count];
    return value;
}

bool esp_file_exists(const char *folder, const char *name)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < PATH_MAX &&
           access(path, F_OK) == 0;
}

int esp_json_parse(cJSON **root, const char *text, size_t length, const char *path, char *err,
                   size_t errlen)
{
    const char *end = text;
    *root = cJSON_ParseWithLengthOpts(text, length + 1, &end, true);
    if (!*root) {
        int line = 1;
        for (const char *c = text; c < end; c++)
            line += *c == '\n';
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s is not valid JSON (line %d)", path,
                        line);
    }
    if (cJSON_IsObject(*root))
        return 0;
    cJSON_Delete(*root);
    *root = NULL;
    return esp_fail(err, errlen, ESP_E_FORMAT, "%s is not a JSON object", path);
}

int esp_file_read(char **text, size_t *size, char path[PATH_MAX], const char *folder,
                  const char *name, size_t limit, char *err, size_t errlen)
{
    int fd;
    size_t done = 0;
    *text = NULL;
    int status = open_file(&fd, size, path, folder, name, err, errlen);
    if (status < 0)
        return status;
    if (*size <= limit)
        *text = malloc(*size + 1);
    for (ssize_t n; *text && done < *size && (n = read(fd, *text + done, *size - done)) > 0;)
        done += (size_t)n;
    close(fd);
    if (*size > limit)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s is larger than %zu MiB, which is not supported", path, limit >> 20);
    if (!*text)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to read %s", path);
    (*text)[done] = '\0';
    if (done == *size)
        return 0;
    free(*text);
    *text = NULL;
    return esp_fail(err, errlen, ESP_E_FILE, "cannot read %s: it ends after %zu bytes", path,
                    done);
}

/* Python writes an infinite number as Infinity, which is not valid JSON. 1e999 is valid, and
 * cJSON reads it as infinite. */
static void replace_infinity(char *text)
{
    static const char infinity[] = "Infinity", number[] = "1e999   ";
    for (bool quoted = false; *text; text++) {
        if (*text == '"')
            quoted = !quoted;
        else if (*text == '\\' && text[1])
            text++;
        else if (!quoted && strncmp(text, infinity, strlen(infinity)) == 0)
            memcpy(text, number, strlen(number));
    }
}

int esp_json_read(struct esp_json *json, const char *folder, const char *name, char *err,
                  size_t errlen)
{
    char *text;
    size_t size;
    json->root = NULL;
    json->err = err;
    json->errlen = errlen;
    int status =
        esp_file_read(&text, &size, json->path, folder, name, ESP_JSON_LIMIT, err, errlen);
    if (status == 0) {
        replace_infinity(text);
        status = esp_json_parse(&json->root, text, size, json->path, err, errlen);
    }
    free(text);
    return status;
}

int esp_json_fail(const struct esp_json *json, int status, const char *format, ...)
{
    char sentence[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(sentence, sizeof sentence, format, values);
    va_end(values);
    return esp_fail(json->err, json->errlen, status, "%s: %s", json->path, sentence);
}

void esp_json_close(struct esp_json *json)
{
    cJSON_Delete(json->root);
    json->root = NULL;
}

/* Returns the value of one dotted name, or NULL if it is missing or null. */
static const cJSON *find_one(const cJSON *item, const char *name, size_t length)
{
    char key[64];
    for (size_t at = 0, n; item && at < length; at += n + 1) {
        n = strcspn(name + at, ".|");
        snprintf(key, sizeof key, "%.*s", (int)n, name + at);
        item = cJSON_GetObjectItemCaseSensitive(item, key);
    }
    return length > 0 && item && !cJSON_IsNull(item) ? item : NULL;
}

const cJSON *esp_json_find(const cJSON *root, const char *names, const char **name, int *length)
{
    for (const char *at = names;; at++) {
        size_t n = strcspn(at, "|");
        const cJSON *item = find_one(root, at, n);
        if (name && (item || at == names)) {
            *name = at;
            *length = (int)n;
        }
        at += n;
        if (item || !*at)
            return item;
    }
}

cJSON *esp_json_item(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

const char *esp_json_text(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(esp_json_item(object, key));
}

bool esp_json_true(const cJSON *object, const char *key)
{
    return cJSON_IsTrue(esp_json_item(object, key));
}
