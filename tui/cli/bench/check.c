/* check.c - `espalier check`: proves on the loaded models that speculation changes nothing.
 *
 * Every pair of drafter and verifier generates short continuations. Each token is tested
 * against the target's exact distribution (engine/lossless.h). Plain decoding is tested in the
 * same way first, and each pair is also compared with plain decoding directly. A correct
 * program fails one run in a thousand by chance. This probability is divided evenly among all
 * tests of a run (Bonferroni). At temperature 0 every token must be the same as in plain
 * decoding.
 */
#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tui/cli/cli.h"
#include "engine/lossless.h"
#include "tui/cli/session_json.h"
#include "viz/safe.h"

enum { TOKENS = 8, MOST_PAIRS = 1024 };
static const double FALSE_ALARMS = 1e-3; /* probability that a correct program fails a run */

struct pair {
    const char *drafter, *verifier; /* as given to a session; verifier NULL: the default */
    char drafter_name[ESP_SPEC_TEXT], verifier_name[ESP_SPEC_TEXT];
    bool lossy;
    struct esp_lossless result;
    struct esp_chi_square plain; /* test that compares the pair with plain decoding */
    double tokens_per_iteration;
};

struct run {
    struct cli_options *o;
    struct esp_engine *engine;
    int32_t *prompt;
    int prompt_length;
    struct pair *pair; /* (count) pair 0 is plain decoding */
    int count, done;
    bool bar;
};

/* ------------------------------------------------------------------ choosing the pairs */

static int open_session(struct run *r, const struct pair *pair, struct esp_session **session,
                        char *err, size_t errlen)
{
    struct esp_session_options options = r->o->session;
    options.drafter = pair->drafter;
    options.verifier = pair->verifier;
    return esp_session_open(session, r->engine, &options, err, errlen);
}

/* Adds a pair of drafter and verifier if a session can use it. Otherwise writes the reason to
 * `err`. */
static void add_pair(struct run *r, const char *drafter, const char *verifier, char *err,
                     size_t errlen)
{
    struct pair *pair = &r->pair[r->count];
    struct esp_session *session;
    *pair = (struct pair){.drafter = drafter, .verifier = verifier};
    if (r->count == MOST_PAIRS || open_session(r, pair, &session, err, errlen) < 0)
        return;
    esp_session_get(session, "drafter", pair->drafter_name, sizeof pair->drafter_name);
    esp_session_get(session, "verifier", pair->verifier_name, sizeof pair->verifier_name);
    pair->lossy = esp_session_rule_is_lossy(session);
    esp_session_close(session);
    r->count++;
}

static void add_rules(struct run *r, const char *drafter, char *err, size_t errlen)
{
    struct esp_item rule;
    if (r->o->session.verifier)
        add_pair(r, drafter, r->o->session.verifier, err, errlen);
    for (int i = 0; !r->o->session.verifier && esp_item(ESP_VERIFIERS, i, &rule); i++)
        add_pair(r, drafter, rule.name, err, errlen);
}

/* Lists the pairs to check. Plain decoding is the first. The pairs that the user named follow,
 * or all pairs if none is named. */
static int list_pairs(struct run *r, char *err, size_t errlen)
{
    struct esp_item drafter;
    add_pair(r, "ar", NULL, err, errlen);
    if (r->count == 0)
        return ESP_E_ARGUMENT;
    if (r->o->session.drafter)
        add_rules(r, r->o->session.drafter, err, errlen);
    for (int i = 0; !r->o->session.drafter && esp_item(ESP_DRAFTERS, i, &drafter); i++)
        if (strcmp(drafter.name, "ar") != 0)
            add_rules(r, drafter.name, err, errlen);
    return r->count > 1 ? (int)ESP_OK : (int)ESP_E_ARGUMENT;
}

/* ------------------------------------------------------------------ measuring */

static bool progress(void *user, int done, int total)
{
    struct run *r = user;
    if (r->bar) {
        const struct pair *pair = &r->pair[r->done];
        cli_draw_bar(stderr, (r->done + (double)done / total) / r->count);
        esp_safe_print(stderr, "%d/%d  %.30s, %.20s", r->done + 1, r->count, pair->drafter_name,
                       pair->verifier_name);
        fputs("\033[K", stderr);
    }
    return !cli_interrupted;
}

static int measure(struct run *r, struct pair *pair, char *err, size_t errlen)
{
    struct esp_lossless_plan plan = {
        .trials = r->o->trials, .tokens = TOKENS, .progress = progress, .user = r};
    struct esp_session *session;
    int status = open_session(r, pair, &session, err, errlen);
    if (status < 0)
        return status;
    status = esp_session_prompt(session, r->prompt, r->prompt_length, err, errlen);
    if (status == ESP_OK)
        status = esp_lossless_measure(session, &plan, &pair->result, err, errlen);
    struct esp_stats stats;
    esp_session_stats(session, &stats);
    pair->tokens_per_iteration = stats.tokens_per_iteration;
    pair->plain =
        esp_chi_square_two(r->pair[0].result.ratio, pair->result.ratio, ESP_LOSSLESS_BINS);
    esp_session_close(session);
    return status;
}

static double smallest_p(const struct pair *pair)
{
    double p = pair->result.impossible ? 0 : pair->plain.p;
    for (int i = 0; i < ESP_LOSSLESS_TEST_COUNT; i++)
        if (pair->result.test[i].freedom > 0)
            p = fmin(p, pair->result.test[i].p);
    return p;
}

/* Returns the smallest p-value that passes a test. */
static double least_p(const struct run *r)
{
    return FALSE_ALARMS / (r->count * (ESP_LOSSLESS_TEST_COUNT + 1));
}

static bool passes(const struct run *r, const struct pair *pair)
{
    return smallest_p(pair) >= least_p(r);
}

/* ------------------------------------------------------------------ output */

static int longer(int width, const char *name)
{
    return (int)strlen(name) > width ? (int)strlen(name) : width;
}

static void print_table(const struct run *r)
{
    bool greedy = r->o->session.values.temperature == 0;
    int window, sinks;
    esp_window_of(&r->o->session.values, esp_engine_context(r->engine), &window, &sinks);
    int wide = (int)strlen("drafter"), wide_rule = (int)strlen("verifier");
    for (int i = 0; i < r->count; i++) {
        wide = longer(wide, r->pair[i].drafter_name);
        wide_rule = longer(wide_rule, r->pair[i].verifier_name);
    }
    printf("%-*s %-*s %7s %5s", wide, "drafter", wide_rule, "verifier", "tokens", "/iter");
    if (greedy)
        printf(" %9s\n", "differ");
    else
        printf(" p: ratio   rank serial  first  plain    tv below\n");
    for (int i = 0; i < r->count; i++) {
        const struct pair *pair = &r->pair[i];
        esp_safe_print(stdout, "%-*s %-*s %7d %5.2f", wide, pair->drafter_name, wide_rule,
                       pair->verifier_name, pair->result.tokens, pair->tokens_per_iteration);
        if (greedy) {
            printf(" %9d", pair->result.impossible);
        } else {
            printf("   ");
            for (int t = 0; t < ESP_LOSSLESS_TEST_COUNT; t++)
                printf(" %6.4f", pair->result.test[t].p);
            printf(" %6.4f %5.3f %5.3f", pair->plain.p, pair->result.distance,
                   pair->result.limit);
        }
        printf("  %s%s\n", passes(r, pair) ? "ok" : "DIFFERS", pair->lossy ? " LOSSY" : "");
    }
    if (window > 0)
        printf("compared with plain decoding with the same window of %d tokens and %d sinks; "
               "its\ntext differs from the text without a window\n",
               window, sinks);
    if (!greedy)
        printf("a test fails below p = %.2g: by chance one check in %.0f fails; tv: total\n"
               "variation distance from the target, over tokens sorted by p/q; below: its "
               "99 %% bound\n",
               least_p(r), 1 / FALSE_ALARMS);
}

static cJSON *test_json(const struct esp_chi_square *test)
{
    return cli_object(CLI_NUMBER("chi_square", test->value),
                      CLI_NUMBER("freedom", test->freedom), CLI_NUMBER("p", test->p));
}

static cJSON *pair_json(const struct run *r, const struct pair *pair)
{
    cJSON *o = cJSON_CreateObject(), *tests = cJSON_CreateObject();
    cli_add(o, CLI_TEXT("drafter", pair->drafter_name),
            CLI_TEXT("verifier", pair->verifier_name),
            CLI_NUMBER("tokens", pair->result.tokens),
            CLI_NUMBER("tokens_per_iteration", pair->tokens_per_iteration),
            CLI_NUMBER("impossible", pair->result.impossible));
    if (r->o->session.values.temperature > 0) {
        for (int t = 0; t < ESP_LOSSLESS_TEST_COUNT; t++)
            cJSON_AddItemToObject(tests, esp_lossless_test_name(t),
                                  test_json(&pair->result.test[t]));
        cJSON_AddItemToObject(tests, "plain", test_json(&pair->plain));
        cli_add(o, CLI_NUMBER("total_variation", pair->result.distance),
                CLI_NUMBER("total_variation_below", pair->result.limit));
    }
    cli_add(o, CLI_ITEM("tests", tests), CLI_BOOL("lossy", pair->lossy),
            CLI_BOOL("passed", passes(r, pair)));
    return o;
}

static int print_json(const struct run *r, bool passed)
{
    cJSON *o = cJSON_CreateObject(), *pairs = cJSON_CreateArray();
    int window, sinks;
    esp_window_of(&r->o->session.values, esp_engine_context(r->engine), &window, &sinks);
    cli_add(
        o, CLI_NUMBER("temperature", r->o->session.values.temperature),
        CLI_NUMBER("top_p", r->o->session.values.top_p > 0 ? r->o->session.values.top_p : 1),
        CLI_NUMBER("top_k", r->o->session.values.top_k), CLI_NUMBER("trials", r->o->trials),
        CLI_NUMBER("window", window), CLI_NUMBER("sinks", sinks),
        CLI_NUMBER("false_alarms", FALSE_ALARMS), CLI_NUMBER("least_p", least_p(r)));
    for (int i = 0; i < r->count; i++)
        cJSON_AddItemToArray(pairs, pair_json(r, &r->pair[i]));
    cli_add(o, CLI_ITEM("pairs", pairs), CLI_BOOL("passed", passed));
    return cli_print_json(o);
}

/* ------------------------------------------------------------------ the command `check` */

static int read_prompt(struct run *r, char *err, size_t errlen)
{
    static const char start[] = "Once upon a time there was";
    const char *text = r->o->prompt ? r->o->prompt : start;
    int count = esp_tokenize(r->engine, text, strlen(text), NULL, 0);
    if (count < 0)
        return count;
    r->prompt = calloc((size_t)count + 1, sizeof *r->prompt);
    if (!r->prompt) {
        snprintf(err, errlen, "not enough memory for the prompt");
        return ESP_E_MEMORY;
    }
    r->prompt_length = esp_tokenize(r->engine, text, strlen(text), r->prompt, count);
    return ESP_OK;
}

static int check_all(struct run *r, char *err, size_t errlen)
{
    int status = cli_open_engine(&r->engine, r->o, err, errlen);
    if (status == ESP_OK)
        status = read_prompt(r, err, errlen);
    if (status == ESP_OK)
        status = list_pairs(r, err, errlen);
    for (; status == ESP_OK && r->done < r->count; r->done++)
        status = measure(r, &r->pair[r->done], err, errlen);
    cli_clear_bar(r->bar);
    return status;
}

static int run(struct cli_options *o)
{
    struct run r = {.o = o, .bar = isatty(STDERR_FILENO)};
    char err[512] = "";
    bool passed = true;
    r.pair = calloc(MOST_PAIRS + 1, sizeof *r.pair);
    if (!r.pair)
        return cli_fail("not enough memory for the check");
    cli_catch_interrupt();
    int status = check_all(&r, err, sizeof err), code = EXIT_DONE;
    if (cli_interrupted)
        code = EXIT_INTERRUPTED;
    else
        code = cli_code(status, err);
    if (code == EXIT_DONE) {
        for (int i = 0; i < r.count; i++)
            passed = passed && passes(&r, &r.pair[i]);
        if (o->json)
            code = print_json(&r, passed);
        else
            print_table(&r);
        code = passed ? code : EXIT_BAD;
    }
    esp_engine_close(r.engine);
    free(r.prompt);
    free(r.pair);
    return code;
}

const struct cli_command cli_check = {
    .name = "check",
    .arguments = "[--drafter D] [--verifier V]",
    .summary = "prove on the loaded models that speculation changes nothing",
    .flags = CLI(PROMPT) | CLI(DRAFTER) | CLI(VERIFIER) | CLI(CHECK) | CLI_SESSION | CLI(JSON),
    .chooses = CLI_SETTING(baseline) | CLI_SETTING(chat) | CLI_SETTING(system),
    .details =
        "Without a drafter or verifier, all lossless pairs are checked, at temperature 1 "
        "unless\n--temp says otherwise. The exit code is 1 if a pair changes the output.",
    .temperature = 1,
    .run = run,
};
