/* prompt.c - reads the prompt; see prompt.h. */
#include "tui/cli/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "viz/safe.h"

enum { LARGEST = 64 << 20 };

int cli_read_all(int file, size_t most, char **text, size_t *length)
{
    struct pollfd ready = {.fd = file, .events = POLLIN};
    size_t size = 0, used = 0;
    char *buffer = NULL;
    int error = 0;
    for (ssize_t n = -1; error == 0 && n != 0;) {
        if (used == size) {
            size = size ? 2 * size : 1 << 16;
            char *larger = realloc(buffer, size);
            buffer = larger ? larger : buffer;
            error = larger ? 0 : ENOMEM;
        }
        n = error ? 0 : read(file, buffer + used, size - used);
        used += n > 0 ? (size_t)n : 0;
        if (n < 0 && errno == EAGAIN)
            poll(&ready, 1, -1); /* another program still has the pipe open for writing */
        else if (n < 0 && errno != EINTR)
            error = errno;
        else if (n > 0 && used >= most)
            error = EFBIG;
    }
    if (error)
        free(buffer);
    *text = error ? NULL : buffer;
    *length = used;
    return error;
}

static int refuse(const char *name, const char *why)
{
    esp_complain("cannot read %s: %s", name, why);
    return EXIT_BAD;
}

/* If the file is a pipe that another program has open for writing, such as the shell's <(...),
 * reads it to its end. If no program has the pipe open, reports an error instead of waiting,
 * because perhaps none ever will. */
int cli_read_text(const char *path, char **text, size_t *length)
{
    struct stat about;
    int file = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : STDIN_FILENO;
    if (file < 0)
        return refuse(path, strerror(errno));
    int error = cli_read_all(file, LARGEST, text, length);
    bool unused =
        !error && *length == 0 && path && fstat(file, &about) == 0 && S_ISFIFO(about.st_mode);
    if (path)
        close(file);
    if (!error && !unused)
        return 0;
    if (unused)
        free(*text);
    return refuse(path ? path : "standard input", unused ? "it is a pipe that nobody writes to"
                                                  : error == EFBIG ? "it is larger than 64 MB"
                                                                   : strerror(error));
}

int cli_read_prompt(const struct cli_options *o, char **text, size_t *length)
{
    const char *file = o->prompt_file;
    if (o->argument_count == 1) {
        if (strcmp(o->arguments[0], "-") != 0) {
            esp_complain("unexpected argument '%s'; give the prompt with -p", o->arguments[0]);
            return EXIT_USAGE;
        }
        file = "-";
    }
    if ((o->prompt != NULL) + (file != NULL) > 1) {
        fprintf(stderr, "espalier: give one prompt: -p TEXT, -f FILE or -\n");
        return EXIT_USAGE;
    }
    if (o->prompt) {
        *length = strlen(o->prompt);
        *text = strdup(o->prompt);
        return *text ? 0 : cli_fail("not enough memory for the prompt");
    }
    if (!file && isatty(STDIN_FILENO)) {
        fprintf(stderr, "espalier: there is no prompt; give -p TEXT, -f FILE or -\n");
        return EXIT_USAGE;
    }
    return cli_read_text(file && strcmp(file, "-") != 0 ? file : NULL, text, length);
}
