/* train_network.c - `espalier train head` and `espalier train draft`: shows the progress and
 * the curve of the loss, handles Ctrl-C, and prints a table at the end.
 *
 * On a terminal a curve and a bar are redrawn in place. Without a terminal, lines of text are
 * printed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cJSON.h>

#include "engine/support/paths.h"
#include "engine/train/train_draft.h"
#include "kernels/clock.h"
#include "tui/cli/session_json.h"
#include "tui/cli/train/train.h"
#include "viz/safe.h"

enum { CURVE_ROWS = 6, CURVE_COLUMNS = 64, LINES = 20, MOST_TEXTS = 64 };
static const double REDRAW = 0.2; /* seconds */

struct showing {
    const struct cli_options *o;
    bool terminal;
    enum esp_train_stage stage;
    double began, drawn;         /* times of the start of the stage and of the last drawing */
    int64_t first, first_tokens; /* numbers of steps and tokens done before the stage */
    int64_t printed; /* without a terminal: index of the last printed line; -1: none */
    int rows;        /* number of rows that the picture has on the terminal */
    int checked;     /* epoch of the last check that was printed */
    struct esp_train_report last;
};

static const char *const stages[] = {"reading the text", "the target runs over the text",
                                     "training", "measuring"};

/* ------------------------------------------------------------------ the curve */

/* Averages the losses of the whole training into at most CURVE_COLUMNS columns. */
static int columns_of(const struct esp_train_report *r, double *column)
{
    const int count = r->total < CURVE_COLUMNS ? (int)r->total : CURVE_COLUMNS;
    int last = 0, number[CURVE_COLUMNS] = {0};
    for (int i = 0; i < count; i++)
        column[i] = 0;
    for (int64_t i = 0; i < r->done; i++) {
        const int at = (int)(i * count / r->total);
        column[at] += r->loss[i];
        number[at]++;
        last = at + 1;
    }
    for (int i = 0; i < last; i++)
        column[i] /= number[i] > 0 ? number[i] : 1;
    return last;
}

static void draw_curve(const struct esp_train_report *r)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const bool fine = MB_CUR_MAX > 1;
    double column[CURVE_COLUMNS], low = INFINITY, high = -INFINITY;
    const int count = columns_of(r, column);
    for (int i = 0; i < count; i++) {
        low = fmin(low, column[i]);
        high = fmax(high, column[i]);
    }
    const double range = high > low ? high - low : 1;
    for (int row = CURVE_ROWS - 1; row >= 0; row--) {
        if (row == CURVE_ROWS - 1)
            fprintf(stderr, "%9.4g ", high);
        else if (row == 0)
            fprintf(stderr, "%9.4g ", low);
        else
            fprintf(stderr, "%9s ", "");
        for (int i = 0; i < count; i++) {
            double height = 1 + (column[i] - low) / range * (8 * CURVE_ROWS - 1) - 8 * row;
            int eighths = height <= 0 ? 0 : height >= 8 ? 8 : (int)height;
            fputs(fine ? blocks[eighths] : eighths >= 4 ? "#" : " ", stderr);
        }
        fputs("\033[K\n", stderr);
    }
}

/* ------------------------------------------------------------------ progress */

static void print_time(double seconds)
{
    if (seconds >= 5400)
        fprintf(stderr, "%.1f h", seconds / 3600);
    else if (seconds >= 90)
        fprintf(stderr, "%.0f min", seconds / 60);
    else
        fprintf(stderr, "%.0f s", seconds);
}

static void print_status(const struct showing *s, const struct esp_train_report *r)
{
    const double passed = esp_clock() - s->began;
    const int64_t made = r->done - s->first;
    fputs(stages[r->stage], stderr);
    if (r->stage == ESP_TRAIN_STEPS)
        fprintf(stderr, ", epoch %d of %d, step %lld of %lld, loss %.4g", r->epoch, r->epochs,
                (long long)r->done, (long long)r->total,
                r->done > 0 ? (double)r->loss[r->done - 1] : 0);
    else if (r->stage != ESP_TRAIN_READ)
        fprintf(stderr, ", piece %lld of %lld", (long long)r->done, (long long)r->total);
    if (r->stage == ESP_TRAIN_STEPS && made > 0)
        fprintf(stderr, ", %.0f tokens/s", (double)(r->tokens - s->first_tokens) / passed);
    if (made > 0 && r->done < r->total && r->stage != ESP_TRAIN_VALIDATE) {
        fputs(", ", stderr);
        print_time(passed / (double)made * (double)(r->total - r->done));
        fputs(" left", stderr);
    }
}

/* Removes the picture from the terminal. */
static void wipe(struct showing *s)
{
    if (s->rows > 0)
        fprintf(stderr, "\r\033[%dA\033[J", s->rows);
    else if (s->terminal)
        fputs("\r\033[K", stderr);
    s->rows = 0;
}

/* Draws the curve and the bar. Clips a line that is longer than the terminal. If the line were
 * wrapped, the picture would have more rows. */
static void draw(struct showing *s, const struct esp_train_report *r)
{
    fputs("\033[?7l\r", stderr);
    if (s->rows > 0)
        fprintf(stderr, "\033[%dA", s->rows);
    s->rows = 0;
    if (r->stage == ESP_TRAIN_STEPS) {
        draw_curve(r);
        s->rows = CURVE_ROWS;
    }
    cli_draw_bar(stderr, r->total > 0 ? (double)r->done / (double)r->total : 0);
    print_status(s, r);
    fputs("\033[K\033[?7h", stderr);
    fflush(stderr);
}

static void print_check(const struct esp_train_check *c)
{
    fprintf(stderr, "epoch %d, on the held-out pieces, by depth:", c->epoch);
    for (int i = 0; i < c->depths; i++)
        fprintf(stderr, "%s overlap %.4f, same likeliest token %.4f, KL %.4f", i ? ";" : "",
                c->overlap[i], c->agrees[i], c->gap[i]);
    fputc('\n', stderr);
}

static bool show(void *user, const struct esp_train_report *r)
{
    struct showing *s = user;
    const double now = esp_clock();
    if (s->stage != r->stage || s->began == 0) {
        const bool back = s->stage == ESP_TRAIN_VALIDATE && r->stage == ESP_TRAIN_STEPS;
        if (!back && r->stage != ESP_TRAIN_VALIDATE) {
            s->began = now;
            s->first = r->done;
            s->first_tokens = r->tokens;
            s->printed = -1;
        }
        if (s->terminal && !back)
            wipe(s);
        s->stage = r->stage;
        s->drawn = 0;
    }
    s->last = *r;
    if (r->check.epoch > s->checked) {
        s->checked = r->check.epoch;
        wipe(s);
        print_check(&r->check);
    }
    if (s->terminal) {
        if (now - s->drawn >= REDRAW || r->done == r->total)
            draw(s, r);
        s->drawn = now - s->drawn >= REDRAW ? now : s->drawn;
    } else if (r->stage != ESP_TRAIN_VALIDATE && r->stage != ESP_TRAIN_READ &&
               r->done * LINES / r->total > s->printed) {
        s->printed = r->done * LINES / r->total;
        print_status(s, r);
        fputc('\n', stderr);
    }
    return !cli_interrupted;
}

/* ------------------------------------------------------------------ the result */

static int print_result(const struct showing *s)
{
    const struct esp_train_check *c = &s->last.check;
    if (s->o->json) {
        cJSON *o = cJSON_CreateObject(), *depths = cJSON_AddArrayToObject(o, "depths");
        cli_add(o, CLI_TEXT("folder", s->o->output),
                CLI_NUMBER("parameters", s->last.parameters),
                CLI_NUMBER("steps", s->last.total));
        for (int i = 0; i < c->depths; i++) {
            cJSON *depth =
                cli_object(CLI_NUMBER("overlap", c->overlap[i]),
                           CLI_NUMBER("agrees", c->agrees[i]), CLI_NUMBER("kl", c->gap[i]));
            cJSON_AddItemToArray(depths, depth);
        }
        return cli_print_json(o);
    }
    esp_safe_print(stdout, "%s: %.2f million weights were trained\n", s->o->output,
                   (double)s->last.parameters / 1e6);
    if (c->depths > 0)
        printf("on the held-out pieces\ndepth  overlap  same token      KL\n");
    for (int i = 0; i < c->depths; i++)
        printf("%5d  %7.4f  %10.4f  %6.4f\n", i, c->overlap[i], c->agrees[i], c->gap[i]);
    return EXIT_DONE;
}

static int built_in(const char *given, const char *name, char *path, size_t size)
{
    if (given)
        return snprintf(path, size, "%s", given) < (int)size ? ESP_OK : ESP_E_FILE;
    return esp_find_data(path, size, "models", name);
}

static int train(struct cli_options *o, bool head)
{
    struct showing s = {.o = o, .terminal = isatty(STDERR_FILENO)};
    char target[4096], draft[4096], err[600] = "";
    const char *texts[MOST_TEXTS + 1];
    const bool own = !o->engine.target;
    int count = 0;
    if (o->text)
        texts[count++] = o->text;
    for (int i = 1; i < o->argument_count && count < MOST_TEXTS; i++)
        texts[count++] = o->arguments[i];
    if (count == 0)
        return cli_fail("there is no text to learn from: give --text FILE");
    if (!o->output)
        return cli_fail("name the folder to make: -o DIR");
    if (built_in(o->engine.target, "fairytale-target", target, sizeof target) < 0 ||
        (!head && own && built_in(o->engine.draft, "fairytale-draft", draft, sizeof draft) < 0))
        return cli_fail("the built-in models were not found; name a target with --target DIR");
    const struct esp_train_options options = {
        .head = head,
        .target = target,
        .draft = !head && own && !o->engine.draft ? draft : o->engine.draft,
        .output = o->output,
        .loss = o->loss,
        .texts = texts,
        .text_count = count,
        .tokens = o->given[CLI_FLAG_tokens] ? o->tokens : 0,
        .length = o->length,
        .batch = o->batch,
        .epochs = o->given[CLI_FLAG_epochs] ? o->epochs : 1,
        .rate = o->rate,
        .seed = o->session.values.seed,
        .threads = o->engine.threads,
        .resume = o->resume,
        .force = o->force,
        .checkpoint_seconds = 30,
        .progress = show,
        .user = &s,
    };
    cli_catch_end();
    int status = esp_train(&options, err, sizeof err);
    wipe(&s);
    if (status == ESP_E_CANCELLED) {
        const bool begun =
            s.last.stage == ESP_TRAIN_STEPS || s.last.stage == ESP_TRAIN_VALIDATE;
        if (begun)
            esp_complain(
                "interrupted; what was learned is in %s/checkpoint, and the same command "
                "with --resume continues",
                o->output);
        else
            esp_complain(
                "interrupted before the first step: next time, the target must run over the "
                "text again");
        return 128 + cli_interrupted;
    }
    return status < 0 ? cli_fail(err) : print_result(&s);
}

int cli_train_head(struct cli_options *o)
{
    return train(o, true);
}

int cli_train_draft(struct cli_options *o)
{
    return train(o, false);
}
