/* Tests a comparison of two configurations on one text. The first side writes the text, and
 * both sides draft after the same contexts. The totals of each side must equal the totals of a
 * separate run.
 */
#include "engine/compare.h"

#include <string.h>

#include "tests/check.h"
#include "tests/toy.h"

enum { VOCABULARY = 20, CONTEXT = 240, TOKENS = 150, MOST = 4 * CONTEXT };

static struct toy toy;
static char err[512];

/* Describes one iteration of one side. Steps are stored in the order in which they ran. */
struct step {
    bool second;
    int position, committed;
};

struct race {
    struct esp_session *first;
    struct esp_compare compare;
    struct step steps[MOST];
    int count;
};

static void note(struct race *race, bool second, const struct esp_iteration *it)
{
    CHECK(race->count < MOST);
    race->steps[race->count++] = (struct step){second, it->position, it->committed_count};
}

static void on_first(void *user, const struct esp_event *event)
{
    if (event->type == ESP_EVENT_ITERATION)
        note(user, false, event->iteration);
}

/* Checks each iteration of the second side: it must start after the same tokens that the first
 * side has written. */
static void on_second(void *user, const struct esp_event *event)
{
    struct race *race = user;
    int length, own;
    if (event->type != ESP_EVENT_ITERATION)
        return;
    note(race, true, event->iteration);
    const int32_t *text = esp_session_tokens(race->first, &length);
    const int32_t *context = esp_session_tokens(race->compare.second, &own);
    int position = event->iteration->position;
    CHECK(position < length, "the second side starts at token %d, but the text has %d",
          position, length);
    CHECK(memcmp(text, context, (size_t)position * sizeof *text) == 0,
          "the sides have different contexts at token %d", position);
}

static void open_race(struct race *race, const char *drafter, const char *second, double temp)
{
    struct esp_session_options options = {.drafter = drafter,
                                          .values = {.temperature = temp, .seed = 5},
                                          .observer = on_first,
                                          .user = race};
    *race = (struct race){.count = 0};
    CHECK(esp_session_open(&race->first, &toy.engine, &options, err, sizeof err) == 0, "%s",
          err);
    options.drafter = second;
    options.observer = on_second;
    CHECK(esp_compare_open(&race->compare, race->first, &options, err, sizeof err) == 0, "%s",
          err);
}

static void close_race(struct race *race)
{
    esp_compare_close(&race->compare);
    esp_session_close(race->first);
}

static void prompt(struct esp_session *session, int32_t first)
{
    int32_t tokens[4] = {first, 5, 7, 1};
    CHECK(esp_session_prompt(session, tokens, 4, err, sizeof err) == 0, "%s", err);
}

/* Runs both sides until both are done, or until `stop` steps have run. If `stop` is negative,
 * there is no limit. */
static void run(struct race *race, int tokens, int stop)
{
    int status = 1;
    esp_session_allow(race->first, tokens);
    CHECK(esp_compare_begin(&race->compare, err, sizeof err) == 0, "%s", err);
    while (status > 0 && stop-- != 0)
        if (esp_compare_turn(&race->compare))
            status = esp_compare_step(&race->compare, err, sizeof err);
        else
            status = esp_session_step(race->first, err, sizeof err);
    CHECK(status >= 0, "%s", err);
}

/* Writes the text with one session alone. Returns the session's totals. */
static struct esp_stats alone(const char *drafter, double temp, int32_t *text)
{
    struct esp_session *session;
    struct esp_session_options options = {.drafter = drafter,
                                          .values = {.temperature = temp, .seed = 5}};
    struct esp_stats stats;
    int length;
    CHECK(esp_session_open(&session, &toy.engine, &options, err, sizeof err) == 0, "%s", err);
    prompt(session, 1);
    esp_session_allow(session, TOKENS);
    while (esp_session_step(session, err, sizeof err) > 0)
        continue;
    memcpy(text, esp_session_tokens(session, &length), (TOKENS + 4) * sizeof *text);
    esp_session_stats(session, &stats);
    esp_session_close(session);
    return stats;
}

static void same_totals(const char *who, const struct esp_session *session,
                        const struct esp_stats *want)
{
    struct esp_stats got;
    esp_session_stats(session, &got);
    CHECK(got.generated_tokens == want->generated_tokens, "%s: %d tokens, alone %d", who,
          got.generated_tokens, want->generated_tokens);
    CHECK(got.iterations == want->iterations, "%s: %d iterations, alone %d", who,
          got.iterations, want->iterations);
    CHECK(got.drafted_nodes == want->drafted_nodes &&
              got.accepted_nodes == want->accepted_nodes,
          "%s", who);
    CHECK(got.draft_passes == want->draft_passes && got.target_passes == want->target_passes,
          "%s", who);
}

/* Checks that each iteration starts inside the last iteration of the other side, or at the end
 * of that iteration. */
static void lies_side_by_side(const struct race *race)
{
    struct step last[2] = {{.position = 4}, {.position = 4}};
    for (int i = 0; i < race->count; i++) {
        const struct step *step = &race->steps[i], *other = &last[!step->second];
        CHECK(step->position == last[step->second].position + last[step->second].committed);
        CHECK(step->position >= other->position &&
                  step->position <= other->position + other->committed,
              "step %d starts at %d, the last step of the other side at %d", i, step->position,
              other->position);
        last[step->second] = *step;
    }
}

TEST(totals_match_those_of_two_separate_runs)
{
    static const char *const drafters[] = {
        "linear:K=6", "dynatree",    "ar",       "ngram",
        "dyspec",     "eagle2:N=20", "assisted", "fixed:cache=rebuild"};
    enum { DRAFTERS = sizeof drafters / sizeof *drafters };
    struct race race;
    int32_t want[CONTEXT], other[CONTEXT];
    int length;
    for (int i = 0; i < DRAFTERS * DRAFTERS; i += check_quick() ? 5 : 1) {
        const char *first = drafters[i / DRAFTERS], *second = drafters[i % DRAFTERS];
        toy_open(&toy, VOCABULARY, CONTEXT, 64, 3 + (unsigned)i);
        struct esp_stats one = alone(first, 0, want), two = alone(second, 0, other);
        CHECK(memcmp(want, other, (TOKENS + 4) * sizeof *want) == 0);
        open_race(&race, first, second, 0);
        prompt(race.first, 1);
        run(&race, TOKENS, -1);
        const int32_t *text = esp_session_tokens(race.first, &length);
        CHECK(length == TOKENS + 4 && memcmp(text, want, sizeof *text * (size_t)length) == 0);
        esp_session_tokens(race.compare.second, &length);
        CHECK(length == TOKENS + 4 && race.compare.difference == -1);
        same_totals(first, race.first, &one);
        same_totals(second, race.compare.second, &two);
        lies_side_by_side(&race);
        close_race(&race);
        toy_close(&toy);
    }
}

TEST(a_sampled_text_is_that_of_the_first)
{
    static const char *const drafters[] = {"iid", "linear", "dyspec", "ar", "dynatree"};
    struct race race;
    int32_t want[CONTEXT];
    int length, own, different = 0;
    for (int i = 0; i < 25; i++) {
        const char *first = drafters[i / 5], *second = drafters[i % 5];
        toy_open(&toy, VOCABULARY, CONTEXT, 64, 70 + (unsigned)i);
        struct esp_stats one = alone(first, 1, want);
        open_race(&race, first, second, 1);
        prompt(race.first, 1);
        run(&race, TOKENS, -1);
        const int32_t *text = esp_session_tokens(race.first, &length);
        CHECK(length == TOKENS + 4 && memcmp(text, want, sizeof *text * (size_t)length) == 0);
        esp_session_tokens(race.compare.second, &own);
        CHECK(own == length, "the second side ended at token %d of %d", own, length);
        different += race.compare.difference >= 4;
        same_totals(first, race.first, &one);
        lies_side_by_side(&race);
        close_race(&race);
        toy_close(&toy);
    }
    CHECK(different >= 15, "the second side had to be corrected in only %d of 25 texts",
          different);
}

/* Both sides must start every generation from the same text: after a prompt, after a stop in
 * the middle, after the text was shortened, and after settings were changed. */
TEST(a_comparison_can_begin_anywhere)
{
    struct race race;
    int length, own;
    unsigned long long random = 4;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 8);
    open_race(&race, "dynatree", "linear", 0);
    for (int turn = 0; turn < 40; turn++) {
        esp_session_tokens(race.first, &length);
        if (length > 150)
            esp_session_rewind(race.first, (int)(check_uniform(&random) * 100));
        prompt(race.first, turn % VOCABULARY);
        if (turn % 3 == 0)
            esp_session_set(race.first, "temp", turn % 2 ? "1" : "0", err, sizeof err);
        if (turn % 5 == 4)
            esp_compare_close(&race.compare);
        struct esp_session_options options = {
            .drafter = "fixed:D=3,B=2", .observer = on_second, .user = &race};
        if (turn % 5 == 4)
            CHECK(esp_compare_open(&race.compare, race.first, &options, err, sizeof err) == 0,
                  "%s", err);
        race.count = 0;
        run(&race, 20, turn % 2 ? -1 : turn);
        esp_session_tokens(race.first, &length);
        const int32_t *text = esp_session_tokens(race.compare.second, &own);
        CHECK(turn % 2 == 0 || own >= length, "%d of %d tokens", own, length);
        CHECK(text != NULL);
    }
    close_race(&race);
    toy_close(&toy);
}

TEST(both_sides_fill_the_context)
{
    struct race race;
    int length, own;
    toy_open(&toy, VOCABULARY, 60, 64, 21);
    for (int i = 0; i < 2; i++) {
        open_race(&race, i ? "ar" : "dynatree", i ? "dynatree" : "ar", 0);
        prompt(race.first, 3);
        run(&race, 1000, -1);
        esp_session_tokens(race.first, &length);
        esp_session_tokens(race.compare.second, &own);
        CHECK(length == 60 && own == 60, "%d and %d tokens", length, own);
        run(&race, 10, -1); /* has no effect, because the text is already complete */
        close_race(&race);
    }
    toy_close(&toy);
}

TEST(a_configuration_that_is_not_allowed_is_refused)
{
    struct esp_session *first;
    struct esp_compare compare;
    struct esp_session_options options = {.drafter = "linear", .values.temperature = 1};
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 2);
    CHECK(esp_session_open(&first, &toy.engine, &options, err, sizeof err) == 0, "%s", err);
    prompt(first, 1);
    options.drafter = "linaer";
    CHECK(esp_compare_open(&compare, first, &options, err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(strstr(err, "there is no drafter 'linaer'"), "%s", err);
    CHECK(compare.second == NULL);
    options.drafter = "dyspec";
    options.verifier = "naive";
    CHECK(esp_compare_open(&compare, first, &options, err, sizeof err) < 0);
    esp_compare_close(&compare);
    esp_session_close(first);
    toy_close(&toy);
}

/* The sum of the stage times of both sides must not exceed the elapsed time. */
TEST(no_time_is_counted_twice)
{
    struct race race;
    struct esp_stats one, two;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 31);
    open_race(&race, "linear", "fixed:D=4,B=3,tau=0", 1);
    double start = esp_clock();
    prompt(race.first, 3);
    run(&race, TOKENS, -1);
    double passed = esp_clock() - start;
    esp_session_stats(race.first, &one);
    esp_session_stats(race.compare.second, &two);
    double counted =
        one.decode_seconds + one.prefill_seconds + two.decode_seconds + two.prefill_seconds;
    CHECK(counted <= passed, "%g s of %g s", counted, passed);
    CHECK(one.decode_seconds > 0 && two.decode_seconds > 0);
    close_race(&race);
    toy_close(&toy);
}
