/* bench.c - `espalier bench`: measures drafters and verifiers on the same prompts.
 *
 * Prints the quantities that the papers tabulate: throughput and its spread over prompts,
 * speedup over the first choice, tokens per iteration, accepted path, TTFT, TPOT (dynatree,
 * sec. 4.2). All choices continue one prompt before the next prompt begins. Therefore, if the
 * machine slows down, it slows down all choices. The first rounds only warm up the machine and
 * are not counted. At temperature 0 all choices must generate the same text; otherwise the exit
 * code is 1.
 */
#include <stdlib.h>
#include <string.h>

#include "tui/cli/bench/choice.h"
#include "tui/cli/cli.h"
#include "kernels/status.h"
#include "tui/cli/bench/prompt_list.h"
#include "tui/cli/session_json.h"
#include "tui/cli/bench/suite.h"
#include "viz/safe.h"

enum { MOST_CHOICES = 64 };

struct bench {
    const struct cli_options *o;
    struct esp_engine *engine;
    struct cli_choice *choice;  /* (count) */
    double least[MOST_CHOICES]; /* smallest speedup over the first choice on any prompt */
    int count;
    struct cli_prompts list;
    int prompts;    /* number of prompts that were counted */
    int32_t *first; /* the prompt and the tokens that the first choice generated after it */
    int first_length;
    int differs; /* index of the first choice that generated a different text; -1 if none did */
};

/* ------------------------------------------------------------------ choices */

static int open_choice(struct bench *b, const char *spec, char *err, size_t errlen)
{
    int status =
        cli_choice_open(&b->choice[b->count], spec, b->engine, &b->o->session, err, errlen);
    b->count += status == ESP_OK;
    return status;
}

/* Opens the choices that the user named. If none is named, opens every drafter. */
static int open_choices(struct bench *b, char *err, size_t errlen)
{
    struct esp_item item;
    int status = ESP_OK;
    for (int i = 0; i < b->o->argument_count && status == ESP_OK; i++)
        status = open_choice(b, b->o->arguments[i], err, errlen);
    for (int i = 0; b->o->argument_count == 0 && status == ESP_OK &&
                    esp_item(ESP_DRAFTERS, i, &item) && i < MOST_CHOICES;
         i++) {
        status = open_choice(b, item.name, err, errlen);
        if (status == ESP_E_FILE) /* the drafter needs a file that this pair does not have */
            status = ESP_OK;
    }
    return status;
}

/* ------------------------------------------------------------------ runs */

/* Compares the text of a choice with the text of the first choice. */
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
    } else if (b->o->session.values.temperature == 0 && b->differs < 0 &&
               (length != b->first_length ||
                memcmp(tokens, b->first, (size_t)length * sizeof *tokens) != 0)) {
        b->differs = which;
    }
    return ESP_OK;
}

static int run_prompt(struct bench *b, const struct cli_prompt *prompt, bool counted, char *err,
                      size_t errlen)
{
    for (int i = 0; i < b->count; i++) {
        struct cli_choice *choice = &b->choice[i];
        choice->counting = counted;
        int status = cli_choice_run(choice, prompt->text, prompt->length, b->o->prompt_tokens,
                                    b->o->tokens, err, errlen);
        if (status == ESP_OK)
            status = compare(b, i);
        if (status < 0 || cli_interrupted)
            return status;
        if (counted)
            cli_choice_count(choice);
    }
    for (int i = 0; i < b->count && counted && b->choice[0].latest > 0; i++) {
        const double speedup = b->choice[i].latest / b->choice[0].latest;
        if (speedup > 0 && !(b->least[i] > 0 && b->least[i] < speedup))
            b->least[i] = speedup;
    }
    b->prompts += counted;
    return ESP_OK;
}

/* Runs all prompts. Before that, runs the first prompt `warmup` times. */
static int run_prompts(struct bench *b, char *err, size_t errlen)
{
    int status = ESP_OK;
    for (int i = 0; i < b->o->warmup && status == ESP_OK && !cli_interrupted; i++)
        status = run_prompt(b, &b->list.prompt[0], false, err, errlen);
    for (int i = 0; i < b->list.count && status == ESP_OK && !cli_interrupted; i++)
        status = run_prompt(b, &b->list.prompt[i], true, err, errlen);
    return status;
}

/* ------------------------------------------------------------------ output */

static double speedup(const struct bench *b, const struct cli_choice *choice)
{
    double first = cli_mean(&b->choice[0].speed);
    return first > 0 ? cli_mean(&choice->speed) / first : 0;
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
    esp_safe_print(
        stdout,
        "%d prompt%s, at most %d tokens each, temperature %g; speedup over %s; least: the "
        "smallest speedup on any prompt\n\n",
        b->prompts, b->prompts == 1 ? "" : "s", b->o->tokens, b->o->session.values.temperature,
        b->choice[0].spec);
    printf("%-*s          tokens/s  speedup   least  tok/iter   path  path/depth  accepted  "
           "nodes  "
           "iterations  TTFT ms        TPOT ms\n",
           wide, "choice");
    for (int i = 0; i < b->count; i++) {
        const struct cli_choice *c = &b->choice[i];
        const struct esp_acceptance *a = &c->acceptance;
        const double iterations = a->iterations > 0 ? a->iterations : 1;
        esp_safe_print(stdout, "%-*s  %7.1f +- %5.1f  %6.2fx  %5.2fx  %8.2f  %5.2f  ", wide,
                       c->spec, cli_mean(&c->speed), cli_deviation(&c->speed), speedup(b, c),
                       b->least[i], 1 + (double)a->accepted / iterations,
                       (double)a->accepted / iterations);
        print_share((double)a->accepted, (double)a->deepest);
        print_share((double)a->accepted, (double)a->drafted);
        printf("  %5.1f  %10.1f  %7.2f  %5.2f +- %4.2f\n", (double)a->drafted / iterations,
               cli_mean(&c->iterations), cli_mean(&c->first_token), cli_mean(&c->token),
               cli_deviation(&c->token));
    }
}

static cJSON *choice_json(const struct bench *b, int i)
{
    const struct cli_choice *c = &b->choice[i];
    cJSON *o = cJSON_CreateObject();
    cli_json_choice(o, c->session);
    cli_add(o, CLI_ITEM("tokens_per_second", cli_series_json(&c->speed)),
            CLI_NUMBER("speedup", speedup(b, c)), CLI_NUMBER("least_speedup", b->least[i]),
            CLI_ITEM("first_token_ms", cli_series_json(&c->first_token)),
            CLI_ITEM("token_ms", cli_series_json(&c->token)),
            CLI_ITEM("iterations", cli_series_json(&c->iterations)));
    cli_json_acceptance(o, &c->acceptance);
    return o;
}

static int print_json(const struct bench *b)
{
    cJSON *o = cJSON_CreateObject(), *choices = cJSON_CreateArray();
    cli_json_models(o, b->engine);
    for (int i = 0; i < b->count; i++)
        cJSON_AddItemToArray(choices, choice_json(b, i));
    cli_add(o, CLI_NUMBER("prompts", b->prompts), CLI_NUMBER("tokens", b->o->tokens),
            CLI_NUMBER("temperature", b->o->session.values.temperature),
            CLI_ITEM("choices", choices));
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
    esp_complain("%s writes a different text from %s", b->choice[b->differs].spec,
                 b->choice[0].spec);
    return EXIT_BAD;
}

/* ------------------------------------------------------------------ the command */

static int run_bench(struct bench *b)
{
    char err[512] = "";
    b->choice = calloc(MOST_CHOICES, sizeof *b->choice);
    if (!b->choice)
        return cli_fail("not enough memory for the results");
    int status = cli_open_engine(&b->engine, b->o, err, sizeof err);
    if (status == ESP_OK)
        status = open_choices(b, err, sizeof err);
    if (status == ESP_OK) {
        cli_catch_interrupt();
        status = run_prompts(b, err, sizeof err);
    }
    int code = status < 0        ? cli_code(status, err)
               : b->prompts == 0 ? EXIT_INTERRUPTED
                                 : print(b);
    for (int i = 0; i < b->count; i++)
        cli_choice_close(&b->choice[i]);
    esp_engine_close(b->engine);
    free(b->choice);
    free(b->first);
    return code;
}

static int run(struct cli_options *o)
{
    if (o->suite)
        return cli_suite_run(o);
    struct cli_options prompt = *o;
    struct bench b = {.o = o, .differs = -1};
    prompt.argument_count = 0; /* the arguments are choices, not prompts */
    int code = cli_read_prompts(&b.list, &prompt);
    if (code != EXIT_DONE)
        return code;
    code = run_bench(&b);
    cli_prompts_free(&b.list);
    return code == EXIT_DONE && cli_interrupted ? EXIT_INTERRUPTED : code;
}

const struct cli_command cli_bench = {
    .name = "bench",
    .arguments = "-f FILE [D[+V] ...] | --suite NAME [ROW ...]",
    .summary = "measure choices on the same prompts, for tables like those of the papers",
    .flags = CLI(PROMPT) | CLI(FILE) | CLI(TOKENS) | CLI(PROMPT_TOKENS) | CLI(SUITE) |
             CLI(FORMAT) | CLI(OUTPUT) | CLI(RESUME) | CLI(FORCE) | CLI_SESSION | CLI(SIZE) |
             CLI(JSON),
    .chooses = CLI_SETTING(baseline) | CLI_SETTING(chat) | CLI_SETTING(system),
    .most = MOST_CHOICES,
    .details =
        "Every line of the file is a prompt, or a JSON object {\"prompt\": .., \"category\": "
        "..}.\nEvery choice, a drafter or drafter+verifier, continues each prompt in turn. "
        "Without\nchoices, all drafters are measured. Speedups are over the first choice. At "
        "temperature 0\nall texts must equal those of the first choice; if one differs, the "
        "exit code is 1.\n\n--suite runs an experiment from a file. With -o, tables and plots "
        "also go to that folder,\nand --resume continues an interrupted run. A suite uses "
        "nothing that other sessions\nlearned and stores nothing, so it gives the same counts "
        "every time. ROW limits the table to\nthe named choices. --check compares with "
        "results/NAME.json next to the suite.",
    .run = run,
};
