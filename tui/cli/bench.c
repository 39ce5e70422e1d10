/* bench.c - `espalier bench`: choices of drafter and verifier measured on the same prompts.
 *
 * The tables of the papers: throughput and its spread over prompts, speedup over the first
 * choice, tokens per iteration, accepted path, TTFT, TPOT (dynatree, sec. 4.2). Every prompt is
 * continued by every choice in turn, so that a machine that slows down slows all of them; what
 * comes before the first counted round only warms up. At temperature 0 all texts must be those
 * of the first choice, and the exit code says whether they are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "error.h"
#include "prompt.h"
#include "report.h"
#include "safe.h"

enum { MOST_CHOICES = 64, SPEC = 512 };

/* A figure over prompts. */
struct series {
    int count;
    double sum, squares;
};

struct choice {
    char spec[SPEC]; /* "drafter" or "drafter+verifier" */
    char drafter[1024], verifier[1024];
    struct esp_session *session;
    bool counting;
    struct esp_acceptance acceptance;
    struct series speed, first_token, token, iterations; /* the seconds in ms */
};

struct bench {
    const struct cli_options *o;
    struct esp_engine *engine;
    struct choice *choice; /* (count) */
    int count;
    char *text; /* prompts, one a line */
    size_t length;
    int prompts;    /* counted */
    int32_t *first; /* what the first choice wrote for this prompt, prompt included */
    int first_length;
    int differs; /* choice that wrote something else, -1: none */
};

/* ------------------------------------------------------------------ choices */

static void on_event(void *user, const struct esp_event *event)
{
    struct choice *choice = user;
    if (choice->counting && event->type == ESP_EVENT_ITERATION)
        esp_acceptance_add(&choice->acceptance, event->iteration);
}

static int open_choice(struct bench *b, const char *spec, char *err, size_t errlen)
{
    struct choice *choice = &b->choice[b->count];
    struct esp_session_options options = b->o->session;
    char drafter[SPEC], *plus;
    if (strlen(spec) >= SPEC)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "a choice is longer than %d characters",
                        SPEC - 1);
    strcpy(choice->spec, spec);
    strcpy(drafter, spec);
    options.drafter = drafter;
    if ((plus = strchr(drafter, '+'))) {
        *plus = '\0';
        options.verifier = plus + 1;
    }
    options.observer = on_event;
    options.user = choice;
    int status = esp_session_open(&choice->session, b->engine, &options, err, errlen);
    if (status < 0)
        return status;
    esp_session_get(choice->session, "drafter", choice->drafter, sizeof choice->drafter);
    esp_session_get(choice->session, "verifier", choice->verifier, sizeof choice->verifier);
    b->count++;
    return ESP_OK;
}

/* Those named, or every drafter. */
static int open_choices(struct bench *b, char *err, size_t errlen)
{
    struct esp_item item;
    int status = ESP_OK;
    for (int i = 0; i < b->o->argument_count && status == ESP_OK; i++)
        status = open_choice(b, b->o->arguments[i], err, errlen);
    for (int i = 0; b->o->argument_count == 0 && status == ESP_OK &&
                    esp_item(ESP_DRAFTERS, i, &item) && i < MOST_CHOICES;
         i++)
        status = open_choice(b, item.name, err, errlen);
    return status;
}

/* ------------------------------------------------------------------ runs */

static void count(struct series *s, double value)
{
    s->count++;
    s->sum += value;
    s->squares += value * value;
}

static double mean(const struct series *s)
{
    return s->count > 0 ? s->sum / s->count : 0;
}

static double deviation(const struct series *s)
{
    double m = mean(s), spread = s->count > 1 ? s->squares - s->count * m * m : 0;
    return spread > 0 ? sqrt(spread / (s->count - 1)) : 0;
}

static void count_run(struct choice *choice)
{
    struct esp_stats s;
    esp_session_stats(choice->session, &s);
    if (s.generated_tokens == 0)
        return;
    count(&choice->speed, cli_speed(&s));
    count(&choice->first_token, 1e3 * s.first_token_seconds);
    count(&choice->token, 1e3 * s.decode_seconds / s.generated_tokens);
    count(&choice->iterations, s.iterations);
}

/* Holds what was written against what the first choice wrote. */
static int compare(struct bench *b, int which)
{
    int length;
    const int32_t *tokens = esp_session_tokens(b->choice[which].session, &length);
    if (which == 0) {
        int32_t *copy = realloc(b->first, ((size_t)length + 1) * sizeof *copy);
        if (!copy)
            return ESP_E_MEMORY;
        memcpy(copy, tokens, (size_t)length * sizeof *copy);
        b->first = copy;
        b->first_length = length;
    } else if (b->o->session.temperature == 0 && b->differs < 0 &&
               (length != b->first_length ||
                memcmp(tokens, b->first, (size_t)length * sizeof *tokens) != 0)) {
        b->differs = which;
    }
    return ESP_OK;
}

static int run_prompt(struct bench *b, const char *prompt, size_t length, bool counted,
                      char *err, size_t errlen)
{
    for (int i = 0; i < b->count; i++) {
        struct choice *choice = &b->choice[i];
        choice->counting = counted;
        esp_session_clear(choice->session);
        int status = cli_prompt_part(b->engine, choice->session, prompt, length,
                                     b->o->prompt_tokens, err, errlen);
        if (status < 0)
            return status;
        esp_session_allow(choice->session, b->o->tokens);
        while ((status = esp_session_step(choice->session, err, errlen)) > 0 &&
               !cli_interrupted)
            continue;
        if (status == ESP_OK)
            status = compare(b, i);
        if (status < 0 || cli_interrupted)
            return status;
        if (counted)
            count_run(choice);
    }
    b->prompts += counted;
    return ESP_OK;
}

/* All lines that are not empty; the first one `warmup` times before. */
static int run_prompts(struct bench *b, char *err, size_t errlen)
{
    int status = ESP_OK, warmup = b->o->warmup;
    for (size_t at = 0; at < b->length && status == ESP_OK && !cli_interrupted;) {
        const char *line = b->text + at;
        const char *end = memchr(line, '\n', b->length - at);
        size_t length = end ? (size_t)(end - line) : b->length - at;
        at += length + 1;
        if (length == 0)
            continue;
        for (; warmup > 0 && status == ESP_OK && !cli_interrupted; warmup--)
            status = run_prompt(b, line, length, false, err, errlen);
        if (status == ESP_OK && !cli_interrupted)
            status = run_prompt(b, line, length, true, err, errlen);
    }
    if (status == ESP_OK && b->prompts == 0 && !cli_interrupted)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "there is no prompt: every line is empty");
    return status;
}

/* ------------------------------------------------------------------ output */

static double speedup(const struct bench *b, const struct choice *choice)
{
    double first = mean(&b->choice[0].speed);
    return first > 0 ? mean(&choice->speed) / first : 0;
}

static void print_share(double part, double whole)
{
    if (whole > 0)
        printf("  %6.1f %%", 100 * part / whole);
    else
        printf("  %8s", "-");
}

static void print_table(const struct bench *b)
{
    int wide = 6;
    for (int i = 0; i < b->count; i++)
        wide = (int)strlen(b->choice[i].spec) > wide ? (int)strlen(b->choice[i].spec) : wide;
    printf("%d prompt%s, at most %d tokens each, temperature %g; speedup over %s\n\n",
           b->prompts, b->prompts == 1 ? "" : "s", b->o->tokens, b->o->session.temperature,
           b->choice[0].spec);
    printf("%-*s          tokens/s  speedup  tok/iter   path  path/depth  accepted  nodes  "
           "iterations  TTFT ms        TPOT ms\n",
           wide, "choice");
    for (int i = 0; i < b->count; i++) {
        const struct choice *c = &b->choice[i];
        const struct esp_acceptance *a = &c->acceptance;
        const double iterations = a->iterations > 0 ? a->iterations : 1;
        printf("%-*s  %7.1f +- %5.1f  %6.2fx  %8.2f  %5.2f  ", wide, c->spec, mean(&c->speed),
               deviation(&c->speed), speedup(b, c), 1 + (double)a->accepted / iterations,
               (double)a->accepted / iterations);
        print_share((double)a->accepted, (double)a->deepest);
        print_share((double)a->accepted, (double)a->drafted);
        printf("  %5.1f  %10.1f  %7.2f  %5.2f +- %4.2f\n", (double)a->drafted / iterations,
               mean(&c->iterations), mean(&c->first_token), mean(&c->token),
               deviation(&c->token));
    }
}

static void add_series(cJSON *o, const char *name, const struct series *s)
{
    cJSON *object = cJSON_AddObjectToObject(o, name);
    cJSON_AddNumberToObject(object, "mean", mean(s));
    cJSON_AddNumberToObject(object, "deviation", deviation(s));
}

static int print_json(const struct bench *b)
{
    cJSON *o = cJSON_CreateObject(), *choices = cJSON_CreateArray();
    cli_report_models(o, b->engine);
    cJSON_AddNumberToObject(o, "prompts", b->prompts);
    cJSON_AddNumberToObject(o, "tokens", b->o->tokens);
    cJSON_AddNumberToObject(o, "temperature", b->o->session.temperature);
    for (int i = 0; i < b->count; i++) {
        const struct choice *c = &b->choice[i];
        cJSON *choice = cJSON_CreateObject();
        cli_report_choice(choice, c->session);
        add_series(choice, "tokens_per_second", &c->speed);
        cJSON_AddNumberToObject(choice, "speedup", speedup(b, c));
        add_series(choice, "first_token_ms", &c->first_token);
        add_series(choice, "token_ms", &c->token);
        add_series(choice, "iterations", &c->iterations);
        cli_report_acceptance(choice, &c->acceptance);
        cJSON_AddItemToArray(choices, choice);
    }
    cJSON_AddItemToObject(o, "choices", choices);
    return cli_print_json(o);
}

static int print(const struct bench *b)
{
    int code = EXIT_DONE;
    if (b->o->json)
        code = print_json(b);
    else
        print_table(b);
    if (code != EXIT_DONE || b->differs < 0)
        return code;
    esp_complain("%s writes another text than %s", b->choice[b->differs].spec,
                 b->choice[0].spec);
    return EXIT_BAD;
}

/* ------------------------------------------------------------------ the command */

static int run_bench(struct bench *b)
{
    char err[512] = "";
    b->choice = calloc(MOST_CHOICES, sizeof *b->choice);
    if (!b->choice)
        return cli_fail("no memory for the figures");
    int status = cli_open_engine(&b->engine, b->o, err, sizeof err);
    if (status == ESP_OK)
        status = open_choices(b, err, sizeof err);
    if (status == ESP_OK) {
        cli_catch_interrupt();
        status = run_prompts(b, err, sizeof err);
    }
    int code = status < 0        ? cli_fail(*err ? err : esp_status_message(status))
               : b->prompts == 0 ? EXIT_INTERRUPTED
                                 : print(b);
    for (int i = 0; i < b->count; i++)
        esp_session_close(b->choice[i].session);
    esp_engine_close(b->engine);
    free(b->choice);
    free(b->first);
    return code;
}

static int run(struct cli_options *o)
{
    struct cli_options prompt = *o;
    struct bench b = {.o = o, .differs = -1};
    prompt.argument_count = 0; /* they are choices */
    int code = cli_read_prompt(&prompt, &b.text, &b.length);
    if (code != 0)
        return code;
    code = run_bench(&b);
    free(b.text);
    return code == EXIT_DONE && cli_interrupted ? EXIT_INTERRUPTED : code;
}

const struct cli_command cli_bench = {
    .name = "bench",
    .arguments = "-f FILE [D[+V] ...]",
    .summary = "choices measured on the same prompts, as the papers' tables",
    .flags = "prompt file tokens prompt-tokens warmup target draft temp top-p top-k seed "
             "backend threads exact "
             "order max-nodes context json",
    .most = MOST_CHOICES,
    .details =
        "Every line of the file is a prompt; every choice of drafter, or drafter+verifier, "
        "continues\neach of them in turn. Without choices all drafters are measured. Speedups "
        "are over the\nfirst choice. At temperature 0 all texts must be those of the first; "
        "exit code 1: one is not.",
    .run = run,
};
