/* tune.c - `espalier tune`: finds the drafter that is fastest for a pair on the user's
 * prompts.
 *
 * Runs two contests (contest.h), one at temperature 0 and one above it, each with half of the
 * time. The candidates are plain decoding, the pair's preset and a short list of other
 * settings. Which drafter is fastest depends on the machine, the pair and the text. Therefore
 * only measured settings are ranked. Only a complete contest can change the preset. The result
 * of an interrupted contest is only printed.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/preset.h"
#include "kernels/status.h"
#include "tui/cli/cli.h"
#include "tui/cli/bench/contest.h"
#include "tui/cli/session_json.h"
#include "viz/safe.h"

#define SAMPLING 0.6 /* temperature of the second contest, unless --temp gives one */

/* A drafter must be this many times as fast as plain decoding to win. */
static const double WORTH = 1.02;

/* The default prompts. They are texts of several kinds. */
static const char PROMPTS[] =
    "The old lighthouse keeper climbed the stairs every evening, and on that night he saw\n"
    "def read_lines(path):\n"
    "To change a bicycle tyre, first loosen the nuts of the wheel. Then\n"
    "\"Where have you been?\" she asked. \"I waited for you at the station until\n"
    "Water boils at a lower temperature on a high mountain, because\n"
    "Shopping list: two loaves of bread, a dozen eggs, three lemons,\n"
    "Dear Sir, thank you for your letter of the third of March, in which you\n"
    "Es war einmal ein armer Müller, der hatte eine schöne Tochter. Eines Tages\n";

/* The candidates at temperature 0. They are plain decoding, drafters that draft chains,
 * drafters that draft trees of the most probable nodes, and drafters without weights. */
static const char *const greedy_specs[] = {
    "ar",        "linear:K=2",   "linear:K=4",  "linear:K=8",  "goodput",
    "dynatree",  "dynatree:N=8", "optimal:N=4", "optimal:N=8", "optimal:N=16",
    "salf:N=16", "hybrid",       "suffix",      NULL,
};

/* The candidates above temperature 0. They include drafters that sample their tokens, because
 * some verifiers accept more tokens if the drafts were sampled. */
static const char *const sampling_specs[] = {
    "ar",          "linear:K=2",  "linear:K=4", "linear:K=8", "iid:K=2,L=2",
    "iid:K=2,L=4", "iid:K=4,L=4", "goodput",    "dynatree",   "dyspec:N=8",
    "optimal:N=8", "hybrid",      "suffix",     NULL,
};

static const char *const draftless_specs[] = {"ar",         "recycle", "suffix",
                                              "suffix:N=8", "ngram",   NULL};

struct tuning {
    const struct cli_options *o;
    struct esp_engine *engine;
    struct esp_model_info target;
    struct cli_prompts prompts;
    struct cli_contest contest[2]; /* [0] is at temperature 0, [1] above it */
    int count;
};

/* ------------------------------------------------------------------ measuring */

static bool has_draft(const struct tuning *t)
{
    struct esp_model_info draft;
    return esp_engine_draft(t->engine, &draft);
}

/* Returns whether the models are a pair of target and draft. Only a pair can have a preset. If
 * the draft is a copy of the target, they are not a pair. */
static bool is_pair(const struct tuning *t)
{
    struct esp_model_info draft;
    return esp_engine_draft(t->engine, &draft) && !draft.copy;
}

/* Lists the candidates of the table. If the preset is not among them, adds it. */
static void list_specs(const struct tuning *t, bool sampling,
                       const char *specs[CLI_CANDIDATES + 1])
{
    const char *preset = esp_engine_preset(t->engine, sampling);
    const char *const *table = !has_draft(t) ? draftless_specs
                               : sampling    ? sampling_specs
                                             : greedy_specs;
    int n = 0;
    for (; table[n]; n++) {
        specs[n] = table[n];
        if (preset && strcmp(preset, table[n]) == 0)
            preset = NULL;
    }
    specs[n] = preset;
    specs[n + (preset != NULL)] = NULL;
}

static void show_progress(void *user, const struct cli_contest *contest, double share)
{
    const struct tuning *t = user;
    const int done = (int)(contest - t->contest);
    int left = 0, parts = t->o->session.values.temperature > 0 ? 2 : 1;
    for (int i = 0; i < contest->count; i++)
        left += !contest->candidate[i].left;
    cli_draw_bar(stderr, (done + share) / parts);
    fprintf(stderr, "temperature %g, %d drafters left\033[K", contest->temperature, left);
    fflush(stderr);
}

static int run_contest(struct tuning *t, double temperature, double seconds, char *err,
                       size_t errlen)
{
    const char *specs[CLI_CANDIDATES + 1];
    struct cli_contest *contest = &t->contest[t->count++];
    struct esp_session_options session = t->o->session;
    session.values.temperature = temperature;
    *contest = (struct cli_contest){
        .tokens = t->o->given[CLI_FLAG_tokens] ? t->o->tokens : 0,
        .prompt_tokens = t->o->prompt_tokens,
        .prompts = &t->prompts,
        .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
        .user = t,
    };
    list_specs(t, temperature > 0, specs);
    int status = cli_contest_open(contest, t->engine, &session, specs, err, errlen);
    if (status == ESP_OK)
        status = cli_contest_run(contest, seconds, err, errlen);
    if (contest->progress)
        fprintf(stderr, "\r\033[K");
    return status;
}

static int run_contests(struct tuning *t, char *err, size_t errlen)
{
    const double temperature = t->o->session.values.temperature;
    const double seconds = temperature > 0 ? t->o->seconds / 2 : t->o->seconds;
    int status = run_contest(t, 0, seconds, err, errlen);
    if (status == ESP_OK && temperature > 0 && !cli_interrupted)
        status = run_contest(t, temperature, seconds, err, errlen);
    return status;
}

/* ------------------------------------------------------------------ output */

static const struct cli_candidate *plain(const struct cli_contest *contest)
{
    int i = 0;
    while (strcmp(contest->candidate[i].choice.spec, "ar") != 0)
        i++; /* plain decoding is always in the list */
    return &contest->candidate[i];
}

/* Returns whether a candidate is faster than plain decoding by at least WORTH and by more than
 * two standard errors over the rounds. */
static bool is_faster(const struct cli_candidate *candidate)
{
    const struct cli_series *s = &candidate->advantage;
    const double error = s->count > 0 ? cli_deviation(s) / sqrt(s->count) : 0;
    return candidate->speedup >= WORTH && cli_mean(s) > 2 * error;
}

/* Returns the fastest candidate that stayed until the end. If is_faster() is false for it,
 * returns plain decoding instead. */
static const struct cli_candidate *best(const struct cli_contest *contest)
{
    for (int i = 0; i < contest->count && !contest->candidate[i].left; i++)
        if (is_faster(&contest->candidate[i]))
            return &contest->candidate[i];
    return plain(contest);
}

static const char *best_spec(const struct cli_contest *contest)
{
    return best(contest)->choice.spec;
}

/* Returns the contest at temperature 0 (i = 0) or above it (i = 1). Returns NULL if it has no
 * results. */
static const struct cli_contest *measured(const struct tuning *t, int i)
{
    bool any = i < t->count && plain(&t->contest[i])->choice.speed.count > 0;
    return any ? &t->contest[i] : NULL;
}

static void print_contest(const struct cli_contest *contest)
{
    int wide = 7;
    for (int i = 0; i < contest->count; i++) {
        int length = (int)strlen(contest->candidate[i].choice.spec);
        wide = length > wide ? length : wide;
    }
    printf("temperature %g, at most %d tokens each\n", contest->temperature, contest->tokens);
    printf("%-*s  rounds  tok/iter          tokens/s  speedup\n", wide, "drafter");
    for (int i = 0; i < contest->count; i++) {
        const struct cli_choice *c = &contest->candidate[i].choice;
        if (c->speed.count == 0)
            continue;
        esp_safe_print(stdout, "%-*s  %6d  %8.2f  %7.1f +- %5.1f  %6.2fx\n", wide, c->spec,
                       contest->candidate[i].rounds, c->tokens.sum / c->iterations.sum,
                       cli_mean(&c->speed), cli_deviation(&c->speed),
                       contest->candidate[i].speedup);
    }
    if (best(contest) == plain(contest))
        printf("ar wins: no drafter is faster by %.0f %% and by more than the noise\n\n",
               100 * (WORTH - 1));
    else
        esp_safe_print(stdout, "%s wins: %.2fx plain decoding\n\n", best_spec(contest),
                       best(contest)->speedup);
}

static cJSON *contest_json(const struct cli_contest *contest)
{
    cJSON *choices = cJSON_CreateArray();
    for (int i = 0; i < contest->count; i++) {
        const struct cli_candidate *candidate = &contest->candidate[i];
        const struct cli_choice *c = &candidate->choice;
        if (c->speed.count > 0)
            cJSON_AddItemToArray(
                choices,
                cli_object(
                    CLI_TEXT("drafter", c->spec), CLI_TEXT("verifier", c->verifier),
                    CLI_NUMBER("rounds", candidate->rounds),
                    CLI_NUMBER("tokens_per_iteration", c->tokens.sum / c->iterations.sum),
                    CLI_ITEM("tokens_per_second", cli_series_json(&c->speed)),
                    CLI_NUMBER("speedup", candidate->speedup)));
    }
    return cli_object(CLI_NUMBER("temperature", contest->temperature),
                      CLI_NUMBER("tokens", contest->tokens),
                      CLI_TEXT("best", best_spec(contest)), CLI_ITEM("choices", choices));
}

static int print_json(const struct tuning *t, const char *written)
{
    cJSON *o = cJSON_CreateObject(), *contests = cJSON_CreateArray();
    cJSON *preset = cJSON_CreateObject();
    cli_json_models(o, t->engine);
    for (int i = 0; i < 2; i++) {
        const struct cli_contest *contest = measured(t, i);
        if (!contest)
            continue;
        cJSON_AddItemToArray(contests, contest_json(contest));
        cJSON_AddStringToObject(preset, i ? "sampling_drafter" : "drafter", best_spec(contest));
    }
    cli_add(o, CLI_ITEM("contests", contests), CLI_ITEM("preset", preset),
            CLI_TEXT("written", written));
    return cli_print_json(o);
}

static void print_text(const struct tuning *t, const char *written)
{
    if (has_draft(t) && !is_pair(t))
        printf("the draft model is a quantised copy of the target\n\n");
    for (int i = 0; i < 2; i++)
        if (measured(t, i))
            print_contest(measured(t, i));
    if (written)
        esp_safe_print(stdout, "the preset is in %s\n", written);
    else if (is_pair(t) && !t->o->write && !cli_interrupted)
        printf("add --write to make this the pair's preset\n");
}

/* ------------------------------------------------------------------ the command */

/* Checks that the preset can be written. This is called before anything is measured, so the
 * user need not wait for this error. */
static int can_write(const struct tuning *t, char *err, size_t errlen)
{
    if (t->o->write && !is_pair(t))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "a preset is for a pair: give --draft a model, or leave --write out");
    if (!t->o->write || access(t->target.path, W_OK | X_OK) == 0)
        return ESP_OK;
    return esp_fail(err, errlen, ESP_E_FILE, "%.300s/espalier.json cannot be written: %s",
                    t->target.path, strerror(errno));
}

/* Prints the results. With --write, also writes the preset. */
static int finish(const struct tuning *t)
{
    char path[2 * PATH_MAX + 2], folder[PATH_MAX], name[PATH_MAX], err[512];
    int status = ESP_OK;
    const struct cli_contest *greedy = measured(t, 0), *sampling = measured(t, 1);
    if (!greedy && cli_interrupted) {
        esp_complain("interrupted before anything was measured");
        return EXIT_INTERRUPTED;
    }
    if (!greedy)
        return cli_fail("the model ends the text right after every prompt; give other prompts");
    const bool write = t->o->write && !cli_interrupted;
    if (write)
        status = esp_preset_write(t->target.path, best_spec(greedy),
                                  sampling ? best_spec(sampling) : NULL, err, sizeof err);
    esp_place_beside(t->target.path, ESP_PRESET_FILE, folder, name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const char *written = write && status == ESP_OK ? path : NULL;
    int code = EXIT_DONE;
    if (t->o->json)
        code = print_json(t, written);
    else
        print_text(t, written);
    if (t->o->write && !write)
        esp_complain("interrupted; %s is unchanged", path);
    return status < 0 ? cli_fail(err) : code;
}

static int tune(struct tuning *t)
{
    char err[512] = "";
    struct cli_options with = *t->o;
    cli_choose_draft(&with);
    int status = cli_open_engine(&t->engine, &with, err, sizeof err);
    if (status == ESP_OK) {
        esp_engine_target(t->engine, &t->target);
        status = can_write(t, err, sizeof err);
    }
    if (status == ESP_OK) {
        cli_catch_interrupt();
        status = run_contests(t, err, sizeof err);
    }
    int code = status < 0 ? cli_code(status, err) : finish(t);
    for (int i = 0; i < t->count; i++)
        cli_contest_close(&t->contest[i]);
    esp_engine_close(t->engine);
    return code;
}

static int run(struct cli_options *o)
{
    struct tuning t = {.o = o};
    char err[512];
    int code = EXIT_DONE;
    if (o->prompt || o->prompt_file || o->argument_count > 0)
        code = cli_read_prompts(&t.prompts, o);
    else if (cli_prompts_take(&t.prompts, PROMPTS, strlen(PROMPTS), "the prompts", err,
                              sizeof err) < 0)
        code = cli_fail(err);
    if (code != EXIT_DONE)
        return code;
    code = tune(&t);
    cli_prompts_free(&t.prompts);
    return code == EXIT_DONE && cli_interrupted ? EXIT_INTERRUPTED : code;
}

const struct cli_command cli_tune = {
    .name = "tune",
    .arguments = "[-p TEXT | -f FILE | -] [--write]",
    .summary = "find the fastest drafter for a pair, and make it the preset",
    .flags = CLI(PROMPT) | CLI(FILE) | CLI(TOKENS) | CLI(PROMPT_TOKENS) | CLI(TUNE) |
             CLI_SESSION | CLI(JSON),
    .chooses = CLI_SETTING(baseline) | CLI_SETTING(chat) | CLI_SETTING(system),
    .most = 1,
    .temperature = SAMPLING,
    .details =
        "Every line is a prompt; without -p, -f or -, a few built-in prompts are used, and "
        "without\n-n as many tokens as the time allows. Candidates are measured at temperature "
        "0 and at --temp\n(default 0.6; with --temp 0, only at 0). Several times, the slower "
        "half of them is dropped.\nCtrl-C ends the measurement and prints its results so far.",
    .run = run,
};
