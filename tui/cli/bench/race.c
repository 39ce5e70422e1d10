/* race.c - `espalier race`: decodes the same text in two ways, and shows both side by side at
 * the measured speed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tui/app/interface.h"
#include "tui/cli/cli.h"
#include "tui/cli/session_json.h"
#include "tui/worker/race_run.h"
#include "engine/support/utf8_stream.h"
#include "viz/safe.h"

static void print_side(struct esp_run *run, const char *name)
{
    const double seconds = esp_run_seconds(run);
    const int written = esp_run_written(run), steps = esp_run_steps(run);
    char drafter[40];
    snprintf(drafter, sizeof drafter, "%.*s", (int)strcspn(run->drafter, ":"), run->drafter);
    esp_safe_print(stdout, "%-6s %-14s %7d %7d %12.2f %9.3f %9.1f\n", name, drafter, written,
                   steps, steps > 0 ? (double)written / steps : 0, seconds,
                   seconds > 0 ? written / seconds : 0);
}

/* Prints the result of the race as text. Returns the exit code, which is not 0 if the two texts
 * differ at temperature 0. */
static int print(struct esp_race *race)
{
    char verdict[400];
    const bool good = esp_race_verdict(race, verdict, sizeof verdict);
    esp_safe_print(stdout, "%s; %s", race->pair,
                   race->recorded ? "by their recorded times"
                                  : "each side decoded alone, timed by its own clock");
    if (!race->recorded)
        printf("; seed %" PRIu64, race->options.session.values.seed);
    printf("\n\n");
    printf("%-6s %-14s %7s %7s %12s %9s %9s\n", "", "", "tokens", "passes", "tokens/pass",
           "seconds", "tokens/s");
    print_side(&race->side[0], "left");
    print_side(&race->side[1], "right");
    esp_safe_print(stdout, "\n%s\n", verdict);
    return good ? EXIT_DONE : EXIT_BAD;
}

/* ------------------------------------------------------------------ JSON */

/* Returns the text of tokens [from, to) of a side as valid UTF-8. The caller frees it. */
static char *text_of(struct esp_run *run, int from, int to)
{
    const struct esp_tokens tokens = esp_run_tokens(run);
    struct esp_utf8_stream stream = {.mode = ESP_UTF8_TEXT};
    size_t room = ESP_UTF8_ROOM(0) + 1, used = 0, length = 0;
    for (int i = from; i < to; i++)
        if (tokens.text(tokens.user, run->tokens[i].token, &length))
            room += 3 * length;
    char *text = malloc(room);
    for (int i = from; text && i < to; i++) {
        const char *bytes = tokens.text(tokens.user, run->tokens[i].token, &length);
        if (bytes)
            used += esp_utf8_stream_push(&stream, bytes, length, text + used);
    }
    if (text)
        text[used + esp_utf8_stream_flush(&stream, text + used)] = '\0';
    return text;
}

/* Returns a JSON object that describes one side. Its members have the same names as in
 * `generate --json`. */
static cJSON *side_json(struct esp_run *run)
{
    cJSON *o = cJSON_CreateObject(), *tokens = cJSON_CreateArray();
    const int written = esp_run_written(run), prompt = run->token_count - written;
    const int steps = esp_run_steps(run);
    const double seconds = esp_run_seconds(run);
    char *text = text_of(run, prompt, run->token_count), *before = text_of(run, 0, prompt);
    for (int i = prompt; i < run->token_count; i++)
        cJSON_AddItemToArray(tokens, cJSON_CreateNumber(run->tokens[i].token));
    cJSON_AddStringToObject(o, "prompt", before ? before : "");
    cJSON_AddStringToObject(o, "text", text ? text : "");
    cJSON_AddItemToObject(o, "tokens", tokens);
    cJSON_AddNumberToObject(o, "prompt_tokens", prompt);
    cJSON_AddNumberToObject(o, "generated_tokens", written);
    cJSON_AddStringToObject(o, "target", run->target);
    if (run->draft[0])
        cJSON_AddStringToObject(o, "draft", run->draft);
    else
        cJSON_AddNullToObject(o, "draft");
    cJSON_AddStringToObject(o, "drafter", run->drafter);
    cJSON_AddStringToObject(o, "verifier", run->verifier);
    cJSON_AddNumberToObject(o, "temperature", run->temperature);
    cJSON_AddNumberToObject(o, "iterations", steps);
    cJSON_AddNumberToObject(o, "tokens_per_iteration", steps > 0 ? (double)written / steps : 0);
    cJSON_AddNumberToObject(o, "seconds", seconds);
    cJSON_AddNumberToObject(o, "tokens_per_second", seconds > 0 ? written / seconds : 0);
    free(text);
    free(before);
    return o;
}

static int print_json(struct esp_race *race)
{
    cJSON *o = cJSON_CreateObject();
    char verdict[400];
    int compared, differs;
    const bool comparable = esp_race_check(race, &compared, &differs),
               good = esp_race_verdict(race, verdict, sizeof verdict);
    const double times = esp_race_times_as_fast(race);
    if (comparable)
        cJSON_AddBoolToObject(o, "identical", differs == 0);
    else
        cJSON_AddNullToObject(o, "identical");
    cJSON_AddNumberToObject(o, "compared_tokens", compared);
    if (times > 0)
        cJSON_AddNumberToObject(o, "times_as_fast", times);
    else
        cJSON_AddNullToObject(o, "times_as_fast");
    cJSON_AddStringToObject(o, "verdict", verdict);
    cJSON_AddBoolToObject(o, "recorded", race->recorded);
    if (!race->recorded) {
        char seed[24];
        snprintf(seed, sizeof seed, "%" PRIu64, race->options.session.values.seed);
        cJSON_AddRawToObject(o, "seed", seed); /* as text: JSON numbers lose bits above 2^53 */
    }
    cJSON_AddItemToObject(o, "left", side_json(&race->side[0]));
    cJSON_AddItemToObject(o, "right", side_json(&race->side[1]));
    const int code = cli_print_json(o);
    return code == EXIT_DONE && !good ? EXIT_BAD : code;
}

/* ----------------------------------------------------------------- races without a terminal */

static int run_plain(const struct esp_interface_options *options, bool json)
{
    struct esp_race *race = esp_race_new(options->race);
    char err[512] = "";
    int code = EXIT_DONE;
    if (!race)
        return cli_fail("not enough memory for the race");
    if (options->race_recordings[0]) {
        if (esp_race_read(race, options->race_recordings, err, sizeof err) < 0)
            code = cli_fail(err);
    } else if (!esp_race_run(race, NULL)) {
        code = cli_fail(race->doing);
    }
    if (code == EXIT_DONE)
        code = json ? print_json(race) : print(race);
    esp_race_release(race);
    return code;
}

static int run(struct cli_options *o)
{
    struct esp_race_options race = {.engine = o->engine,
                                    .pass = o->pass / 1e3,
                                    .session = o->session,
                                    .drafter = {o->session.drafter, o->with},
                                    .verifier = {o->session.verifier, o->with_verifier},
                                    .prompt = o->prompt,
                                    .tokens = o->tokens};
    struct esp_interface_options options = {.race = &race};
    const char *script = getenv("ESPALIER_SCRIPT");
    const bool own = o->engine.target || o->engine.width > 0 || o->engine.layers > 0;
    if (o->argument_count == 1) {
        fprintf(stderr, "espalier: a race has two sides: name two recordings, or none\n");
        return EXIT_USAGE;
    }
    for (int i = 0; i < o->argument_count; i++)
        options.race_recordings[i] = o->arguments[i];
    if (o->argument_count == 2)
        options.recording = o->arguments[0];
    if (race.pass == 0 && !own && !o->given[CLI_FLAG_pass])
        race.pass = 0.1;
    if (!race.engine.backend && race.pass > 0)
        race.engine.backend = "cpu"; /* on a GPU, a target this slow would be too large */
    if (!o->given[CLI_FLAG_tokens])
        race.tokens = 0;
    if (o->json || o->plain || (!isatty(STDOUT_FILENO) && !(script && *script)))
        return run_plain(&options, o->json);
    return cli_open_interface(&options, o);
}

const struct cli_command cli_race = {
    .name = "race",
    .arguments = "[FILE FILE]",
    .summary = "decode one text in two ways, side by side at their true speed",
    .flags = CLI(PROMPT) | CLI(TOKENS) | CLI(DRAFTER) | CLI(VERIFIER) | CLI(WITH) | CLI_ENGINE |
             CLI(SETTINGS) | CLI(SIZE) | CLI(PASS) | CLI(JSON) | CLI(PLAIN) | CLI(LOOKS) |
             CLI(CONFIG),
    .chooses = CLI_SETTING(baseline) | CLI_SETTING(system),
    .draws_seed = true,
    .details =
        "Plain decoding is on the left and trees are on the right, unless --drafter and --with "
        "name\nothers. The built-in target is made so large that a pass takes 100 ms (--pass), "
        "like that of\na real model. Each side decodes alone, the right one first, and is "
        "shown "
        "by its own clock.\nWithout --prompt, the seed picks one of three prompts; --seed "
        "repeats a race. Two\nrecordings race by their recorded times. Without a terminal, the "
        "figures are printed.",
    .most = 2,
    .run = run,
};
