/* line_file.c - reads a text file line by line; see line_file.h.
 *
 * The path may be anything. A pipe is refused: reading it could block. A folder is an error,
 * not an empty file. A NUL byte is an error: a C string would end there.
 */
#include "tui/model/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/status.h"
#include "engine/espalier.h"
#include "engine/support/open_file.h"

enum { LONGEST_LINE = 4096, LARGEST = 1 << 20 };

static char *trimmed(char *line, size_t length)
{
    while (length > 0 && strchr(" \t\r\n", line[length - 1]))
        line[--length] = '\0';
    return line + strspn(line, " \t");
}

static int read_lines(FILE *file, const char *path, esp_take_line *take, void *user, char *err,
                      size_t errlen)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    int status = ESP_OK;
    for (int number = 1; status == ESP_OK && (length = getline(&line, &capacity, file)) >= 0;
         number++) {
        if (strlen(line) < (size_t)length)
            status = esp_fail(err, errlen, ESP_E_FORMAT,
                              "%s, line %d: it contains a NUL byte; the file must be text",
                              path, number);
        else if (length > LONGEST_LINE)
            status = esp_fail(err, errlen, ESP_E_FORMAT, "%s, line %d: the line is too long",
                              path, number);
        else {
            char *text = trimmed(line, (size_t)length);
            if (*text && *text != '#')
                status = take(user, text, number, err, errlen);
        }
    }
    if (status == ESP_OK && ferror(file))
        status =
            esp_fail(err, errlen, ESP_E_FILE, "%s cannot be read: %s", path, strerror(errno));
    free(line);
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
    int status = read_lines(stream, path, take, user, err, errlen);
    fclose(stream);
    return status;
}
