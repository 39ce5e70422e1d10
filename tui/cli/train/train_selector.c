/* train_selector.c - `espalier train selector`: shows a progress bar, handles Ctrl-C, and
 * prints a table at the end. */
#include <cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/train/train_selector.h"
#include "kernels/clock.h"
#include "tui/cli/prompt.h"
#include "tui/cli/session_json.h"
#include "tui/cli/train/train.h"
#include "viz/safe.h"

#define RULES "nss,naivetree,spectr,specinfer,khisti,traversal"

enum { LARGEST = 256 << 20, EPOCHS = 12 };

struct state {
    const struct cli_options *o;
    bool bar;
    double began, drawn;
    int first;     /* pieces (later: epochs) that were done at time `began` */
    char rule[32]; /* the verifier whose network is being trained */
    cJSON *results;
};

/* ------------------------------------------------------------------ the text */

static int add_file(const char *path, char **text, size_t *length)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    char *more = NULL, *all = NULL;
    size_t size = 0;
    const int error = file < 0 ? errno : cli_read_all(file, LARGEST, &more, &size);
    if (file >= 0)
        close(file);
    if (!error && size > 0)
        all = realloc(*text, *length + size + 2);
    if (all) {
        *text = all;
        memcpy(all + *length, more, size);
        *length += size;
        strcpy(all + (*length)++, "\n");
    } else {
        esp_complain(error == EFBIG ? "%s is larger than 256 MB"
                     : file < 0     ? "%s cannot be opened"
                     : error        ? "%s cannot be read"
                                    : "%s is empty",
                     path);
    }
    free(more);
    return all ? EXIT_DONE : EXIT_BAD;
}

static int read_text(const struct cli_options *o, char **text, size_t *length)
{
    int code = o->text ? add_file(o->text, text, length) : EXIT_DONE;
    for (int i = 1; i < o->argument_count && code == EXIT_DONE; i++)
        code = add_file(o->arguments[i], text, length);
    if (code == EXIT_DONE && *length == 0)
        code = cli_fail("there is no text to learn from: give --text FILE");
    return code;
}

/* ------------------------------------------------------------------ progress */

static void print_left(double seconds)
{
    if (seconds >= 90)
        fprintf(stderr, ", %.0f min left", seconds / 60);
    else
        fprintf(stderr, ", %.0f s left", seconds);
}

static bool show(void *user, const struct esp_selector_progress *p)
{
    struct state *s = user;
    const double now = esp_clock();
    const bool last = p->done == p->total;
    if (p->step == ESP_TRAIN_SAMPLES && !(s->began > 0)) {
        s->began = now;
        s->first = p->done;
    }
    if (p->step == ESP_TRAIN_NETWORK && strcmp(s->rule, p->rule) != 0) {
        snprintf(s->rule, sizeof s->rule, "%s", p->rule);
        s->began = now;
        s->first = 1;
    }
    if (s->bar && (last || now - s->drawn > 0.2)) {
        s->drawn = now;
        cli_draw_bar(stderr, (double)p->done / p->total);
        if (p->step == ESP_TRAIN_TIMES)
            fputs("timing passes", stderr);
        else if (p->step == ESP_TRAIN_SAMPLES)
            fprintf(stderr, "samples: text %d of %d", p->done, p->total);
        else
            fprintf(stderr, "%s: epoch %d of %d, loss %.4f, %.3fx the best static tree",
                    p->rule, p->done, p->total, p->loss, p->held_out);
        if (p->done > s->first && !last && p->step != ESP_TRAIN_TIMES)
            print_left((now - s->began) / (p->done - s->first) * (p->total - p->done));
        fputs("\033[K", stderr);
        if (last && p->step == ESP_TRAIN_NETWORK)
            fputc('\n', stderr);
    }
    return !cli_interrupted;
}

static void take_result(void *user, const struct esp_selector_result *r)
{
    struct state *s = user;
    char setting[48] = "all";
    if (r->temperature > 0)
        snprintf(setting, sizeof setting, "T %g, top-p %g", r->temperature, r->top_p);
    if (s->o->json) {
        cJSON *o = cli_object(
            CLI_TEXT("verifier", r->rule), CLI_NUMBER("temperature", r->temperature),
            CLI_NUMBER("top_p", r->top_p), CLI_NUMBER("samples", r->samples),
            CLI_TEXT("fastest", r->fastest), CLI_TEXT("most", r->most),
            CLI_NUMBER("tokens", r->tokens), CLI_NUMBER("fastest_tokens", r->fastest_tokens),
            CLI_NUMBER("most_tokens", r->most_tokens), CLI_NUMBER("speed", r->speed));
        cJSON_AddItemToArray(s->results, o);
        return;
    }
    printf("%-10s %-16s %6d  %5.2f  %5.2fx %5.2f %-17s  %5.2f %-17s\n", r->rule, setting,
           r->samples, r->tokens, r->speed, r->fastest_tokens, r->fastest, r->most_tokens,
           r->most);
    fflush(stdout);
}

/* ------------------------------------------------------------------ the command */

static int train(struct state *s, struct esp_engine *engine, const char *text, size_t length)
{
    const struct cli_options *o = s->o;
    char path[4096] = "", err[512] = "";
    const struct esp_selector_training training = {
        .engine = engine,
        .rules = o->session.verifier ? o->session.verifier : RULES,
        .text = text,
        .length = length,
        .pieces = o->pieces,
        .epochs = o->epochs ? o->epochs : EPOCHS,
        .goal = o->goal,
        .seed = o->session.values.seed,
        .output = o->output,
        .progress = show,
        .result = take_result,
        .user = s,
    };
    if (!o->json)
        printf("%-10s %-16s samples tok/it  speed  tokens/iteration: of the fastest static "
               "tree, of the static tree with most tokens\n",
               "verifier", "sampling");
    int status = esp_train_selectors(&training, err, sizeof err);
    cli_clear_bar(s->bar);
    if (status == ESP_E_CANCELLED) {
        esp_selector_samples_path(&training, path, sizeof path);
        esp_complain("interrupted; the same command continues with the samples in %s", path);
        return 128 + cli_interrupted;
    }
    if (status < 0)
        return cli_fail(err);
    return o->json ? cli_print_json(s->results) : EXIT_DONE;
}

int cli_train_selector(struct cli_options *o)
{
    struct state s = {.o = o, .bar = isatty(STDERR_FILENO)};
    struct esp_engine *engine = NULL;
    char *text = NULL, err[512] = "";
    size_t length = 0;
    int code = read_text(o, &text, &length);
    if (code == EXIT_DONE && cli_open_engine(&engine, o, err, sizeof err) < 0)
        code = cli_fail(err);
    if (code == EXIT_DONE) {
        cli_catch_end();
        s.results = cJSON_CreateArray();
        code = train(&s, engine, text, length);
        if (!o->json || code != EXIT_DONE)
            cJSON_Delete(s.results);
        esp_engine_close(engine);
    }
    free(text);
    return code;
}
