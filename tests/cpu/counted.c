/* counted.c - compares the speeds of drafters, calculated from given costs of passes. No clock
 * is read, so the results are the same on every machine, idle or busy.
 *
 *     make bench-counted [BENCH='TEMPERATURE ROW LAYER [CHOICE ...]']
 *
 * A target pass costs 1 for one row, and ROW for each further row. A draft pass costs LAYER for
 * one row, and LAYER * ROW for each further row. ROW can be written as A:N:B. Then each further
 * row costs A up to row number N, and B after that. A CHOICE is a drafter with its settings.
 * Without CHOICEs, forty choices are run. The program compares the first choice (by default
 * `goodput`) with each other choice, prompt by prompt. The prompts are the 24 in
 * tests/prompts-unseen.txt. No parameter was tuned on these prompts. The built-in pair writes
 * 192 tokens after each prompt. A drafter keeps what it has learned from one prompt to the
 * next.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session_parts.h"

enum { TOKENS = 192, MOST_PROMPTS = 64, MOST_CHOICES = 64, LINE = 1024, SHOWN = 6 };

static double row, layer, beyond;
static int step = 1 << 30; /* each row after this many rows costs `beyond` */

static double verify_cost(int rows)
{
    const int cheap = rows < step ? rows : step;
    return 1 + row * (cheap - 1) + beyond * (rows - cheap);
}

static double draft_cost(int rows)
{
    return layer * verify_cost(rows);
}

static char prompts[MOST_PROMPTS][LINE];
static int prompt_count;

/* Speeds of the choices, divided by the speed of plain decoding. `speed` is for each prompt,
 * `total` for all prompts together. */
static double speed[MOST_CHOICES][MOST_PROMPTS], total[MOST_CHOICES];

static const char *const grid[] = {
    "goodput",
    "linear:K=1",
    "linear:K=2",
    "linear:K=3",
    "linear:K=4",
    "linear:K=5",
    "linear:K=6",
    "linear:K=8",
    "linear:K=10",
    "assisted",
    "optimal:N=2,B=1",
    "optimal:N=3,B=1",
    "optimal:N=4,B=2",
    "optimal:N=6,B=2",
    "optimal:N=8,B=2",
    "optimal:N=8,B=4",
    "optimal:N=12,B=4",
    "optimal:N=16,B=4",
    "salf:N=4,th=0.2",
    "salf:N=4,th=0.4",
    "salf:N=8,th=0.2",
    "salf:N=8,th=0.4",
    "salf:N=16,th=0.2",
    "salf:N=16,th=0.4",
    "fixed:D=2,B=2,tau=0.1",
    "fixed:D=3,B=2,tau=0.1",
    "fixed:D=3,B=2,tau=0.2",
    "fixed:D=4,B=2,tau=0.1",
    "fixed:D=6,B=2,tau=0.1",
    "fixed:D=8,B=3,tau=0.03",
    "dynatree",
    "dynatree:history=off",
    "eagle2:N=16",
    "sequoia:N=8",
    "dyspec:N=4",
    "iid:K=2,L=2",
    "iid:K=2,L=4",
    "ngram",
    "suffix",
    "hybrid",
    "hybrid:N=16",
};

static void fail(const char *sentence)
{
    fprintf(stderr, "counted: %s\n", sentence);
    exit(1);
}

static void read_prompts(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail("tests/prompts-unseen.txt cannot be read; run this in the project's folder");
    while (prompt_count < MOST_PROMPTS && fgets(prompts[prompt_count], LINE, file)) {
        char *line = prompts[prompt_count];
        line[strcspn(line, "\n")] = '\0';
        prompt_count += *line != '\0';
    }
    fclose(file);
}

/* Continues a prompt and returns the total cost of the passes. */
static double run(struct esp_session *s, const char *prompt, char *err, size_t errlen)
{
    double cost = 0;
    esp_session_clear(s);
    if (esp_session_prompt_text(s, prompt, strlen(prompt), 0, err, errlen) < 0)
        fail(err);
    esp_session_allow(s, TOKENS);
    for (;;) {
        int status = esp_session_step(s, err, errlen);
        if (status < 0)
            fail(err);
        if (status == 0)
            return cost;
        cost += verify_cost(s->iteration.tree.verified);
        for (int i = 0; i < s->draft.passes && i < ESP_TIMED_PASSES; i++)
            cost += draft_cost(s->draft.work->pass_rows[i]);
    }
}

static void measure(struct esp_engine *engine, const char *choice, double temperature,
                    int which)
{
    const struct esp_session_options options = {.drafter = choice,
                                                .values.temperature = temperature,
                                                .values.ignore_eos = true,
                                                .values.seed = 1,
                                                .repeatable = true};
    struct esp_session *s;
    char err[512];
    double all = 0;
    if (esp_session_open(&s, engine, &options, err, sizeof err) < 0)
        fail(err);
    s->costs.planted[ESP_COST_VERIFY] = verify_cost;
    s->costs.planted[ESP_COST_DRAFT] = draft_cost;
    for (int i = 0; i < prompt_count; i++) {
        const double cost = run(s, prompts[i], err, sizeof err);
        speed[which][i] = TOKENS / cost;
        all += cost;
    }
    total[which] = TOKENS * prompt_count / all;
    esp_session_close(s);
    fprintf(stderr, "%s: %.3f\n", choice, total[which]);
}

/* Compares the first choice with choice `which`. If `which` is -1, compares the first choice
 * with the best choice for each prompt, which a user cannot know in advance. */
static void compare(const char *name, int which, int count)
{
    double sum = 0, least = INFINITY;
    for (int i = 0; i < prompt_count; i++) {
        double other = which < 0 ? 0 : speed[which][i];
        for (int j = 1; j < count && which < 0; j++)
            other = fmax(other, speed[j][i]);
        sum += speed[0][i] / other;
        least = fmin(least, speed[0][i] / other);
    }
    printf("| %s | ", name);
    if (which < 0)
        printf("- | ");
    else
        printf("%.3f | ", total[which]);
    printf("%.3f | %.3f |\n", sum / prompt_count, least);
}

int main(int argc, char **argv)
{
    const char *const *choices = argc > 4 ? (const char *const *)argv + 4 : grid;
    int count = argc > 4 ? argc - 4 : (int)(sizeof grid / sizeof *grid);
    const double temperature = argc > 1 ? atof(argv[1]) : 0;
    bool shown[MOST_CHOICES] = {false};
    struct esp_engine *engine;
    char err[512];
    const char *rows = argc > 2 ? argv[2] : "0.14";
    if (sscanf(rows, "%lf:%d:%lf", &row, &step, &beyond) == 2)
        fail("ROW must be a number, or three numbers A:N:B");
    layer = argc > 3 ? atof(argv[3]) : 0.15;
    if (count > MOST_CHOICES)
        fail("there can be at most 64 choices");
    read_prompts("tests/prompts-unseen.txt");
    if (esp_engine_open(&engine, &(struct esp_engine_options){0}, err, sizeof err) < 0)
        fail(err);
    for (int i = 0; i < count; i++)
        measure(engine, choices[i], temperature, i);
    esp_engine_close(engine);
    double least = INFINITY;
    for (int i = 0; i < prompt_count; i++)
        least = fmin(least, speed[0][i]);
    printf("%s at temperature %g, cost of a row %s, cost of a draft pass %g: %.3f times as "
           "fast as plain decoding, at least %.3f\n\n",
           choices[0], temperature, rows, layer, total[0], least);
    printf("| compared with | its speed | mean over prompts | least |\n|---|---:|---:|---:|\n");
    for (int k = 0; k < SHOWN && k < count - 1; k++) {
        int best = -1;
        for (int j = 1; j < count; j++)
            if (!shown[j] && (best < 0 || total[j] > total[best]))
                best = j;
        shown[best] = true;
        compare(choices[best], best, count);
    }
    if (count > 1)
        compare("the best choice for each prompt", -1, count);
    return 0;
}
