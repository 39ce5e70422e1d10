/* compare.c - `espalier compare`: two choices of drafter and verifier decode the same text.
 *
 * Both choices run in lock step (engine/compare.h), each with its own caches and clock. At
 * temperature 0 the two texts must be the same, and the exit code says whether they are. Above
 * temperature 0 the first choice generates the text. The second choice drafts and verifies the
 * same text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/cli/cli.h"
#include "tui/cli/prompt.h"
#include "tui/cli/session_json.h"
#include "tui/worker/decode_run.h"
#include "viz/safe.h"
#include "viz/versus.h"

struct side {
    struct esp_session *session;
    struct esp_stats stats;
    char drafter[1024], verifier[1024];
    struct esp_contender contender; /* the same data, in the form that viz/versus.h needs */
};

static void look(struct side *side, struct esp_session *session)
{
    side->session = session;
    esp_session_stats(session, &side->stats);
    esp_session_get(session, "drafter", side->drafter, sizeof side->drafter);
    esp_session_get(session, "verifier", side->verifier, sizeof side->verifier);
    side->contender = (struct esp_contender){.drafter = side->drafter,
                                             .verifier = side->verifier,
                                             .iterations = side->stats.iterations,
                                             .tokens = side->stats.generated_tokens,
                                             .pace = side->stats.token_seconds};
}

/* ------------------------------------------------------------------ output */

/* Returns the seconds per token of plain decoding. If one side is plain decoding, this is the
 * time of that side. Otherwise it was measured between the iterations. */
static double baseline_of(const struct side sides[2])
{
    for (int i = 0; i < 2; i++)
        if (esp_spec_is_plain(sides[i].drafter) && sides[i].stats.token_seconds > 0)
            return sides[i].stats.token_seconds;
    return sides[0].stats.baseline;
}

static void print_table(const struct side sides[2])
{
    const double baseline = baseline_of(sides);
    char names[2][96];
    int wide = 0;
    for (int i = 0; i < 2; i++) {
        esp_contender_name(names[i], sizeof names[i], &sides[i].contender,
                           &sides[!i].contender);
        wide = (int)strlen(names[i]) > wide ? (int)strlen(names[i]) : wide;
        esp_safe_print(stdout, "%s %s, %s%s\n", i ? "second:" : "first: ", sides[i].drafter,
                       sides[i].verifier,
                       esp_session_is_lossy(sides[i].session) ? " (LOSSY)" : "");
    }
    printf("\n%*s  tokens/iter  iterations  accepted  draft ms  verify ms  rest ms  tokens/s"
           "   plain\n",
           wide, "");
    for (int i = 0; i < 2; i++) {
        const struct esp_stats *s = &sides[i].stats;
        const double ms = s->iterations > 0 ? 1e3 / s->iterations : 0;
        const double draft = s->stage_seconds[ESP_STAGE_DRAFT],
                     verify = s->stage_seconds[ESP_STAGE_VERIFY];
        double speed = s->token_seconds > 0 ? 1 / s->token_seconds : 0;
        char accepted[16] = "-";
        if (s->drafted_nodes > 0)
            snprintf(accepted, sizeof accepted, "%.1f %%", 100 * s->acceptance_rate);
        esp_safe_print(stdout, "%-*s  %11.2f  %10d  %8s  %8.2f  %9.2f  %7.2f  %8.0f  %5.2fx\n",
                       wide, names[i], s->tokens_per_iteration, s->iterations, accepted,
                       ms * draft, ms * verify, ms * (s->decode_seconds - draft - verify),
                       speed, s->token_seconds > 0 ? baseline / s->token_seconds : 0);
    }
    if (baseline > 0 && baseline == sides[0].stats.baseline)
        printf("\nPlain decoding, measured between iterations: %.0f tokens/s.\n", 1 / baseline);
}

static void print_words(const struct cli_options *o, const struct side sides[2], int difference)
{
    char text[512];
    esp_versus(text, sizeof text, &sides[0].contender, &sides[1].contender);
    if (*text)
        esp_safe_print(stdout, "%s\n", text);
    if (o->session.values.temperature > 0)
        printf("At temperature %g the first side writes the text; the second drafts and "
               "verifies the same text.\n",
               o->session.values.temperature);
    else if (difference < 0)
        printf("The texts are identical: %d tokens.\n", sides[0].stats.generated_tokens);
}

static int print_json(const struct cli_options *o, const struct esp_engine *engine,
                      const struct side sides[2], int difference)
{
    cJSON *json = cJSON_CreateObject(), *choices = cJSON_CreateArray();
    cli_json_text(json, engine, sides[0].session);
    cli_json_models(json, engine);
    cJSON_AddNumberToObject(json, "temperature", o->session.values.temperature);
    if (o->session.values.temperature > 0)
        cJSON_AddNullToObject(json, "identical");
    else
        cJSON_AddBoolToObject(json, "identical", difference < 0);
    for (int i = 0; i < 2; i++) {
        cJSON *choice = cJSON_CreateObject();
        cli_json_choice(choice, sides[i].session);
        cli_json_figures(choice, engine, sides[i].session, baseline_of(sides));
        cJSON_AddItemToArray(choices, choice);
    }
    cJSON_AddItemToObject(json, "choices", choices);
    return cli_print_json(json);
}

static int print(const struct cli_options *o, const struct esp_engine *engine,
                 const struct esp_compare *compare)
{
    static struct side sides[2];
    int code = EXIT_DONE, difference = compare->difference;
    look(&sides[0], compare->first);
    look(&sides[1], compare->second);
    if (o->json) {
        code = print_json(o, engine, sides, difference);
    } else {
        print_table(sides);
        print_words(o, sides, difference);
    }
    if (o->session.values.temperature > 0 || difference < 0)
        return code;
    fprintf(stderr, "espalier: the texts differ, beginning with token %d of the continuation\n",
            difference - sides[0].stats.prompt_tokens + 1);
    return EXIT_BAD;
}

/* ------------------------------------------------------------------ the command */

static bool goes_on(void *user, bool practice, double share)
{
    (void)user, (void)practice, (void)share;
    return !cli_interrupted;
}

static int run(struct cli_options *o)
{
    struct esp_engine *engine = NULL;
    struct esp_session *session = NULL;
    struct esp_compare compare = {.second = NULL};
    struct esp_session_options second = {.drafter = o->with ? o->with : o->session.drafter,
                                         .verifier = o->with_verifier};
    char *text, err[512] = "";
    size_t length;
    if (!o->with && !o->with_verifier) {
        fprintf(stderr, "espalier: name what to compare with: --with or --with-verifier\n");
        return EXIT_USAGE;
    }
    int code = cli_read_prompt(o, &text, &length);
    if (code != 0)
        return code;
    o->session.values.baseline = true;
    int status = cli_open_engine(&engine, o, err, sizeof err);
    if (status == ESP_OK)
        status = esp_session_open(&session, engine, &o->session, err, sizeof err);
    if (status == ESP_OK)
        cli_note(session);
    if (status == ESP_OK)
        status = esp_session_prompt_text(session, text, length, 0, err, sizeof err);
    if (status == ESP_OK)
        status = esp_compare_open(&compare, session, &second, err, sizeof err);
    if (status == ESP_OK) {
        cli_note(compare.second);
        cli_catch_interrupt();
        status =
            esp_decode_on(session, &compare,
                          &(struct esp_decode_options){.tokens = o->tokens, .goes_on = goes_on},
                          false, err, sizeof err);
    }
    if (status < 0)
        code = cli_fail(*err ? err : esp_status_message(status));
    else
        code = print(o, engine, &compare);
    esp_compare_close(&compare);
    esp_session_close(session);
    esp_engine_close(engine);
    free(text);
    return code == EXIT_DONE && cli_interrupted ? EXIT_INTERRUPTED : code;
}

const struct cli_command cli_compare = {
    .name = "compare",
    .arguments = "--with NAME -p TEXT | -f FILE | -",
    .summary = "run two drafters or verifiers over one text, side by side",
    .flags = CLI(PROMPT) | CLI(FILE) | CLI(TOKENS) | CLI(DRAFTER) | CLI(VERIFIER) | CLI(WITH) |
             CLI_SESSION | CLI(SIZE) | CLI(JSON),
    .chooses = CLI_SETTING(baseline) | CLI_SETTING(chat) | CLI_SETTING(system),
    .details =
        "Both sides run in lock step on one text, each with its own caches and its own clock. "
        "At\ntemperature 0 their texts must be identical; if they differ, the exit code is "
        "1. Above\ntemperature 0 the first side writes the text, and the second drafts and "
        "verifies the\nsame text.",
    .most = 1,
    .run = run,
};
