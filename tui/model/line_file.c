/* line_file.c - reads a text file line by line; see line_file.h.
 *
 * The path can name any kind of file. A pipe is refused, because reading it could block. A
 * folder is an error; it is not treated as an empty file. A NUL byte is an error, because a C
 * string would end there.
 */
#include "tui/model/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/status.h"
#include "engine/support/open_file.h"

enum { LONGEST_LINE = 4096, LARGEST = 1 << 20 };

static char *trimmed(char *line, size_t length)
{
    while (length > 0 && strchr(" \t\r\n", line[length - 1]))
        line[--length] = '\0';
    return line + strspn(line, " \t");
}

int esp_wrong_line(const struct esp_file_line *line, const char *format, ...)
{
    char what[400];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return esp_fail(line->err, line->errlen, ESP_E_FORMAT, "%s, line %d: %s", line->path,
                    line->number, what);
}

static int read_lines(FILE *file, esp_take_line *take, void *user, struct esp_file_line *line)
{
    char *bytes = NULL;
    size_t capacity = 0;
    ssize_t length;
    int status = ESP_OK;
    while (status == ESP_OK && (length = getline(&bytes, &capacity, file)) >= 0) {
        line->number++;
        if (strlen(bytes) < (size_t)length)
            status = esp_wrong_line(line, "it contains a NUL byte; the file must be text");
        else if (length > LONGEST_LINE)
            status = esp_wrong_line(line, "the line is too long");
        else if (*(line->text = trimmed(bytes, (size_t)length)) && *line->text != '#')
            status = take(user, line);
    }
    if (status == ESP_OK && ferror(file))
        status = esp_fail(line->err, line->errlen, ESP_E_FILE, "%s cannot be read: %s",
                          line->path, strerror(errno));
    free(bytes);
    return status;
}

int esp_line_file_read(const char *path, esp_take_line *take, void *user, char *err,
                       size_t errlen)
{
    struct stat about;
    const char *wrong;
    int file = esp_open_regular(path, O_RDONLY, 0, &wrong);
    if (file >= 0 && fstat(file, &about) < 0)
        wrong = strerror(errno);
    else if (file >= 0 && about.st_size > LARGEST)
        wrong = "it is larger than 1 MB";
    FILE *stream = wrong ? NULL : fdopen(file, "r");
    if (!stream) {
        int status = esp_fail(err, errlen, ESP_E_FILE, "%s cannot be read: %s", path,
                              wrong ? wrong : strerror(errno));
        if (file >= 0)
            close(file);
        return status;
    }
    struct esp_file_line line = {.path = path, .err = err, .errlen = errlen};
    int status = read_lines(stream, take, user, &line);
    fclose(stream);
    return status;
}

/* ------------------------------------------------------------------ reading a line */

char *esp_take_part(char **text, const char *ends)
{
    char *part = *text + strspn(*text, " \t"), *end = part + strcspn(part, ends);
    *text = *end ? end + 1 : end;
    *text += strspn(*text, " \t");
    *end = '\0';
    return trimmed(part, (size_t)(end - part));
}

int esp_take_text(const struct esp_file_line *line, char *to, size_t size, const char *text)
{
    if (!*text || strlen(text) >= size)
        return esp_wrong_line(line, "the text is missing or too long");
    strcpy(to, text);
    return ESP_OK;
}

int esp_put_text(const struct esp_file_line *line, char **to, const char *text)
{
    free(*to);
    *to = strdup(text);
    return *to ? (int)ESP_OK
               : esp_fail(line->err, line->errlen, ESP_E_MEMORY, "not enough memory for %s",
                          line->path);
}

int esp_take_kind(const struct esp_line_kind *kinds, size_t count, void *user,
                  struct esp_file_line *line)
{
    char *rest = line->text, *word = esp_take_part(&rest, " \t");
    line->text = word;
    for (; count > 0; count--, kinds++) {
        if (strcmp(kinds->name, word) != 0)
            continue;
        line->text = rest;
        char *to = (char *)user + kinds->offset;
        return kinds->take   ? kinds->take(user, line)
               : kinds->size ? esp_take_text(line, to, kinds->size, rest)
                             : esp_put_text(line, (char **)(void *)to, rest);
    }
    return 1;
}

int esp_path_beside(char *to, size_t size, const char *path, const char *name)
{
    const char *slash = *name == '/' ? NULL : strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    return snprintf(to, size, "%.*s%s", folder, path, name) < (int)size ? ESP_OK
                                                                        : ESP_E_ARGUMENT;
}
