/* prompt.c - reads the prompt; see prompt.h. */
#include "prompt.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "safe.h"

enum { LARGEST = 64 << 20 };

static int read_all(FILE *file, const char *name, char **text, size_t *length)
{
    size_t size = 1 << 16, used = 0;
    char *buffer = malloc(size), message[512];
    while (buffer) {
        used += fread(buffer + used, 1, size - used, file);
        if (used < size || used >= LARGEST)
            break;
        char *larger = realloc(buffer, size *= 2);
        if (!larger)
            free(buffer);
        buffer = larger;
    }
    if (!buffer)
        return cli_fail("no memory for the prompt");
    if (ferror(file) || used >= LARGEST) {
        snprintf(message, sizeof message, "cannot read the prompt from %.300s: %s", name,
                 ferror(file) ? strerror(errno) : "it is larger than 64 MB");
        free(buffer);
        return cli_fail(message);
    }
    *text = buffer;
    *length = used;
    return 0;
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
        return *text ? 0 : cli_fail("no memory for the prompt");
    }
    if (!file && isatty(STDIN_FILENO)) {
        fprintf(stderr, "espalier: there is no prompt; give -p TEXT, -f FILE or -\n");
        return EXIT_USAGE;
    }
    if (!file || strcmp(file, "-") == 0)
        return read_all(stdin, "standard input", text, length);
    FILE *in = fopen(file, "rb");
    if (!in) {
        char message[512];
        snprintf(message, sizeof message, "cannot read the prompt from %.300s: %s", file,
                 strerror(errno));
        return cli_fail(message);
    }
    int code = read_all(in, file, text, length);
    fclose(in);
    return code;
}

int cli_prompt_session(struct esp_engine *engine, struct esp_session *session, const char *text,
                       size_t length, char *err, size_t errlen)
{
    return cli_prompt_part(engine, session, text, length, INT_MAX, err, errlen);
}

int cli_prompt_part(struct esp_engine *engine, struct esp_session *session, const char *text,
                    size_t length, int most, char *err, size_t errlen)
{
    int count = esp_tokenize(engine, text, length, NULL, 0);
    if (count < 0)
        return esp_fail(err, errlen, count, "the prompt cannot be tokenized: %s",
                        esp_status_message(count));
    int32_t *tokens = calloc((size_t)count + 1, sizeof *tokens);
    if (!tokens)
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for the prompt");
    count = esp_tokenize(engine, text, length, tokens, count);
    int status = esp_session_prompt(session, tokens, count < most ? count : most, err, errlen);
    free(tokens);
    return status;
}
