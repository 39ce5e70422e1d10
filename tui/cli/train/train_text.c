/* train_text.c - `espalier train text`: lets the target generate text on which its draft is
 * trained.
 *
 * A draft must predict the target. In use, it reads text that the target generated
 * (self-distillation: Zhou et al., "DistillSpec", 2024). Each piece begins with some tokens of
 * a given text. The target continues it at temperature 1. The pair's drafter is used, which
 * changes only the speed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/support/write_file.h"
#include "kernels/clock.h"
#include "tui/cli/prompt.h"
#include "tui/cli/train/train.h"
#include "viz/safe.h"

enum { PROMPT = 32, LENGTH = 512, MOST_BYTES = 256 << 20 };

struct writing {
    const struct cli_options *o;
    struct esp_engine *engine;
    struct esp_session *session;
    int32_t *tokens; /* tokens of the given text */
    int count;
    struct esp_writing to;
    int made, wanted; /* tokens */
    double began;
};

static int read_file(struct writing *w, const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t size = 0;
    int error = file < 0 ? errno : cli_read_all(file, MOST_BYTES, &text, &size);
    if (file >= 0)
        close(file);
    if (error) {
        esp_complain("cannot read %s: %s", path,
                     error == EFBIG ? "it is too large" : strerror(error));
        return EXIT_BAD;
    }
    int count = esp_tokenize(w->engine, text, size, NULL, 0);
    int32_t *more =
        count > 0 ? realloc(w->tokens, (size_t)(w->count + count) * sizeof *more) : NULL;
    if (more) {
        w->tokens = more;
        esp_tokenize(w->engine, text, size, more + w->count, count);
        w->count += count;
    }
    free(text);
    return more ? EXIT_DONE : cli_fail("there is no text for the pieces to begin with");
}

static void show(const struct writing *w)
{
    const double passed = esp_clock() - w->began;
    if (!isatty(STDERR_FILENO))
        return;
    cli_draw_bar(stderr, (double)w->made / w->wanted);
    fprintf(stderr, "%d of %d tokens, %.0f tokens/s, %.0f s left\033[K", w->made, w->wanted,
            w->made / passed, passed / (w->made + 1) * (w->wanted - w->made));
    fflush(stderr);
}

/* Writes the session's text and an empty line to the output file. */
static int write_piece(const struct writing *w, char *err, size_t errlen)
{
    int count;
    size_t size = 0, length;
    char *text = NULL;
    const int32_t *tokens = esp_session_tokens(w->session, &count);
    FILE *piece = open_memstream(&text, &size);
    for (int i = 0; piece && i < count; i++) {
        const char *bytes = esp_token_bytes(w->engine, tokens[i], &length);
        if (bytes && !esp_token_is_special(w->engine, tokens[i]))
            fwrite(bytes, 1, length, piece);
    }
    if (piece)
        fputs("\n\n", piece);
    int status = ESP_OK;
    if (!piece || fclose(piece) != 0)
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the text");
    else if (!esp_write_all(w->to.file, text, size))
        status = esp_fail(err, errlen, ESP_E_FILE, "%s cannot be written: %s", w->o->output,
                          strerror(errno));
    free(text);
    return status;
}

static int write_all(struct writing *w, char *err, size_t errlen)
{
    const int step = w->count > PROMPT ? w->count - PROMPT : 1;
    const int pieces = w->wanted / (w->o->length > 0 ? w->o->length : LENGTH) + 1;
    int status = ESP_OK;
    w->began = esp_clock();
    for (int i = 0; w->made < w->wanted && status >= 0 && !cli_interrupted; i++) {
        const int at = (int)((int64_t)i * step / pieces % step);
        const int length = w->count - at < PROMPT ? w->count - at : PROMPT;
        const int whole = w->o->length > 0 ? w->o->length : LENGTH, before = w->made;
        esp_session_clear(w->session);
        status = esp_session_prompt(w->session, w->tokens + at, length, err, errlen);
        if (status < 0)
            break;
        esp_session_allow(w->session, whole > length ? whole - length : 1);
        while (!cli_interrupted && (status = esp_session_step(w->session, err, errlen)) > 0)
            w->made += status;
        if (status >= 0)
            status = write_piece(w, err, errlen);
        w->made += w->made == before; /* an empty piece counts as a token, so the loop ends */
        show(w);
    }
    return status < 0 ? status : ESP_OK;
}

static int make(struct writing *w, char *err, size_t errlen)
{
    struct esp_session_options session = w->o->session;
    session.values.temperature = 1.0;
    session.repeatable = true;
    int status = esp_session_open(&w->session, w->engine, &session, err, errlen);
    if (status == ESP_OK)
        status = write_all(w, err, errlen);
    cli_clear_bar(isatty(STDERR_FILENO));
    esp_session_close(w->session);
    return status;
}

/* Generates the pieces and writes them to the output file, which appears when it is complete.
 * After Ctrl-C, the file contains the text that was generated before. */
static int write_file(struct writing *w)
{
    char err[512] = "";
    if (!w->o->force && access(w->o->output, F_OK) == 0) {
        esp_complain("%s already exists; name a new file, or add --force", w->o->output);
        return EXIT_BAD;
    }
    if (esp_write_begin(&w->to, w->o->output, w->o->force, err, sizeof err) < 0)
        return cli_fail(err);
    int status = make(w, err, sizeof err);
    const int ended = esp_write_end(&w->to, status == ESP_OK, err, sizeof err);
    if (status < 0 || ended < 0)
        return cli_fail(err);
    esp_safe_print(stdout, "%s: %d tokens that the target wrote%s\n", w->o->output, w->made,
                   cli_interrupted ? " before it was interrupted" : "");
    return cli_interrupted ? 128 + cli_interrupted : EXIT_DONE;
}

int cli_train_text(struct cli_options *o)
{
    struct writing w = {.o = o};
    char err[512] = "";
    if (!o->output)
        return cli_fail("name the file to make: -o FILE");
    if (!o->text)
        return cli_fail("each piece begins with tokens of a given text: give --text FILE");
    w.wanted = o->given[CLI_FLAG_tokens] ? o->tokens : 100000;
    if (cli_open_engine(&w.engine, o, err, sizeof err) < 0)
        return cli_fail(err);
    int code = read_file(&w, o->text);
    for (int i = 1; i < o->argument_count && code == EXIT_DONE; i++)
        code = read_file(&w, o->arguments[i]);
    cli_catch_end();
    if (code == EXIT_DONE)
        code = write_file(&w);
    esp_engine_close(w.engine);
    free(w.tokens);
    return code;
}
