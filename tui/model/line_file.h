/* line_file.h - reads text files of the user line by line: settings, themes, lessons, suites
 * and papers. */
#ifndef ESP_LINE_FILE_H
#define ESP_LINE_FILE_H

#include <stddef.h>

struct esp_file_line {
    const char *path; /* path of the file */
    int number;       /* number of the line, counted from 1 */
    char *text;       /* the line without surrounding blanks; can be changed */
    char *err;        /* (errlen) buffer for the message of esp_wrong_line() */
    size_t errlen;
};

/* Handles a line. Returns 0 or a negative status with a message. */
typedef int esp_take_line(void *user, struct esp_file_line *line);

/* Passes each line to `take` until `take` fails. Skips empty lines and comments ("# ...").
 * Returns the status of `take`. If the file cannot be read, or a line is too long or contains a
 * NUL, returns ESP_E_FILE or ESP_E_FORMAT with a message that names the file and the line. */
int esp_line_file_read(const char *path, esp_take_line *take, void *user, char *err,
                       size_t errlen);

/* Returns ESP_E_FORMAT with the message "FILE, line N: ...". */
__attribute__((format(printf, 2, 3))) int esp_wrong_line(const struct esp_file_line *line,
                                                         const char *format, ...);

/* Describes a kind of line: its first word, and the function that handles the rest of it. */
struct esp_line_kind {
    const char *name;
    esp_take_line *take;
    /* If `take` is NULL, the text is stored in the member of `user` at `offset`. This member is
     * an array of `size` bytes. If the size is 0, the member is a pointer, which is set to a
     * new string. */
    size_t offset, size;
};

/* Removes the first word from the line's text. Then lets the kind with this name handle the
 * rest. If none of the `count` kinds has this name, sets the text to the word and returns 1. */
int esp_take_kind(const struct esp_line_kind *kinds, size_t count, void *user,
                  struct esp_file_line *line);
/* Splits *text at the first character that is in `ends`. Returns the part before it, without
 * blanks around that part. Sets *text to the part after it, without blanks at its start. If
 * there is no such character, returns the whole text. */
char *esp_take_part(char **text, const char *ends);
/* Copies a text. Returns an error if it is empty or longer than size - 1. */
int esp_take_text(const struct esp_file_line *line, char *to, size_t size, const char *text);
/* Replaces the string *to by a copy of `text`. */
int esp_put_text(const struct esp_file_line *line, char **to, const char *text);
/* Writes the path of the file `name` in the folder of `path`. If `name` is an absolute path,
 * writes `name` itself. Returns 0, or ESP_E_ARGUMENT if the path is too long. */
int esp_path_beside(char *to, size_t size, const char *path, const char *name);

#endif
