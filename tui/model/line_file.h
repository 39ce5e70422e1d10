/* line_file.h - reads user files line by line: settings, themes, lessons, suites, papers. */
#ifndef ESP_LINE_FILE_H
#define ESP_LINE_FILE_H

#include <stddef.h>

struct esp_file_line {
    const char *path; /* of the file */
    int number;       /* from 1 */
    char *text;       /* without surrounding blanks; it may be changed */
    char *err;        /* for esp_wrong_line() */
    size_t errlen;
};

/* Handles a line. Returns 0 or a negative status with a message. */
typedef int esp_take_line(void *user, struct esp_file_line *line);

/* Passes each line to `take` until one fails. Skips empty lines and comments ("# ..."). Returns
 * the status of `take`; or ESP_E_FILE or ESP_E_FORMAT with a message that names the file, and
 * the line if it is too long or contains a NUL. */
int esp_line_file_read(const char *path, esp_take_line *take, void *user, char *err,
                       size_t errlen);

/* Returns ESP_E_FORMAT with the message "FILE, line N: ...". */
__attribute__((format(printf, 2, 3))) int esp_wrong_line(const struct esp_file_line *line,
                                                         const char *format, ...);

/* A kind of line: its first word, and what to do with the rest of the line. */
struct esp_line_kind {
    const char *name;
    esp_take_line *take;
    /* Without a function, the text goes to `offset` of `user`: it is copied to the `size` bytes
     * there, or, if the size is 0, becomes a new string of the pointer there. */
    size_t offset, size;
};

/* Takes the first word off the text and handles the rest as the kind of this name. Returns 1 if
 * there is none of `count` kinds; the text is the word then. */
int esp_take_kind(const struct esp_line_kind *kinds, size_t count, void *user,
                  struct esp_file_line *line);
/* Takes the text up to one of the characters `ends` (or all of it) off *text, and the blanks
 * around it. */
char *esp_take_part(char **text, const char *ends);
/* Copies a text. One that is empty or longer than size - 1 is an error. */
int esp_take_text(const struct esp_file_line *line, char *to, size_t size, const char *text);
/* Puts a new string in the place of *to. */
int esp_put_text(const struct esp_file_line *line, char **to, const char *text);
/* Names a file beside the one that is read, or an absolute path. Returns 0, or ESP_E_ARGUMENT
 * if the path is too long. */
int esp_path_beside(char *to, size_t size, const char *path, const char *name);

#endif
