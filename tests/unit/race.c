/* race.c - tests races between two runs in memory: their clocks, the time at which each token
 * is shown, and the verdict, which is computed from the texts.
 */
#include <string.h>

#include "kernels/clock.h"
#include "tests/check.h"
#include "tui/model/race.h"
#include "tui/view/race_view.h"

static const char *const words[] = {"Once", " upon", " a", " time", " there", " was"};

static const char *text_of(void *user, int32_t token, size_t *length)
{
    (void)user;
    *length = strlen(words[token]);
    return words[token];
}

static const struct esp_tokens tokens = {text_of, NULL};

static void prompt(struct esp_run *run, int32_t first)
{
    const int32_t ids[] = {first, 1};
    CHECK(esp_run_take(
              run,
              &(struct esp_event){.type = ESP_EVENT_PROMPT, .tokens = ids, .token_count = 2},
              &tokens) == 0);
}

/* Adds an iteration that commits `count` tokens. All tokens except the last were drafted. */
static void step(struct esp_run *run, const int32_t *committed, int count, double seconds)
{
    struct esp_node root = {.token = 1, .parent = -1};
    int32_t order = 0, path[4] = {0};
    struct esp_iteration it = {
        .index = esp_run_steps(run),
        .tree = {.nodes = &root, .count = 1, .order = &order, .verified = 1},
        .path = path,
        .path_length = count - 1,
        .committed = committed,
        .committed_count = count,
        .bonus = committed[count - 1],
        .drafter = "x",
        .verifier = "greedy"};
    it.seconds[ESP_STAGE_DRAFT] = seconds / 4;
    it.seconds[ESP_STAGE_VERIFY] = seconds * 3 / 4;
    CHECK(esp_run_take(run, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it},
                       &tokens) == 0);
}

/* Makes a race. The left side writes a token every second. The right side writes the tokens
 * `right` in two iterations, and each of these takes `seconds`. */
static struct esp_race *race_of(const int32_t right[4], double seconds)
{
    static const int32_t left[] = {2, 3, 4, 5};
    struct esp_race *race = esp_race_new(NULL);
    CHECK(race != NULL);
    for (int i = 0; i < 2; i++)
        prompt(&race->side[i], 0);
    for (int i = 0; i < 4; i++)
        step(&race->side[0], left + i, 1, 1);
    for (int i = 0; i < 4; i += 2)
        step(&race->side[1], right + i, 2, seconds);
    race->side[0].complete = race->side[1].complete = true;
    return race;
}

TEST(a_run_has_the_times_of_its_own_iterations)
{
    struct esp_race *race = race_of((const int32_t[]){2, 3, 4, 5}, 1);
    struct esp_run *right = &race->side[1];
    CHECK(esp_run_written(right) == 4 && right->token_count == 6);
    CHECK(esp_run_seconds(right) == 2 && esp_run_seconds(&race->side[0]) == 4);
    CHECK(esp_run_steps_at(right, 0.99) == 0 && esp_run_steps_at(right, 1) == 1);
    CHECK(esp_run_steps_at(right, 99) == 2 && esp_run_tokens_after(right, 1) == 4);
    CHECK(right->tokens[2].kind == ESP_TEXT_DRAFTED &&
          right->tokens[3].kind == ESP_TEXT_BONUS && right->tokens[1].kind == ESP_TEXT_PROMPT);
    esp_race_release(race);
}

/* A run of a race has an end, so it stores all its iterations. A session has no end, so it
 * drops old iterations. */
TEST(a_run_keeps_all_iterations)
{
    enum { STEPS = 2 * ESP_POINTS };
    struct esp_run run;
    esp_run_init(&run);
    prompt(&run, 0);
    for (int i = 0; i < STEPS; i++) {
        if (i == STEPS / 2)
            prompt(&run, 3); /* the next turn of a conversation */
        step(&run, (const int32_t[]){2, 3}, 2, 0.5);
    }
    CHECK(esp_run_steps(&run) == STEPS && run.trace.course.count == STEPS);
    CHECK(run.trace.since.iterations == STEPS && run.trace.since.committed == 2 * STEPS);
    for (int i = 0; i < STEPS; i++)
        CHECK(esp_trace_at(&run.trace, i)->index == i);
    CHECK(esp_run_steps_at(&run, 0.5 * STEPS / 2) == STEPS / 2);
    CHECK(esp_run_tokens_after(&run, STEPS / 2) == 2 + STEPS);
    CHECK(esp_run_tokens_after(&run, STEPS / 2 + 1) == 2 + STEPS + 2 + 2, "after the prompt");
    CHECK(esp_run_tokens_after(&run, STEPS) == run.token_count);
    esp_run_free(&run);
}

TEST(the_verdict_is_checked)
{
    char text[300];
    struct esp_race *race = race_of((const int32_t[]){2, 3, 4, 5}, 1);
    CHECK(esp_race_verdict(race, text, sizeof text));
    CHECK(strcmp(text, "identical, 2.00 times as fast") == 0, "%s", text);
    esp_race_release(race);

    race = race_of((const int32_t[]){2, 3, 4, 5}, 4);
    CHECK(esp_race_verdict(race, text, sizeof text));
    CHECK(strstr(text, "identical, 0.50 times as fast: slower"), "%s", text);
    esp_race_release(race);

    race = race_of((const int32_t[]){2, 3, 2, 5}, 1);
    CHECK(!esp_race_verdict(race, text, sizeof text), "a difference is a fault");
    CHECK(strstr(text, "NOT identical: token 3 differs"), "%s", text);
    race->side[0].temperature = 0.6;
    CHECK(esp_race_verdict(race, text, sizeof text), "sampled texts need not be equal");
    CHECK(!strstr(text, "identical") && strstr(text, "the texts differ"), "%s", text);
    esp_race_release(race);
}

TEST(texts_of_different_lengths_and_prompts_are_distinguished)
{
    char text[300];
    struct esp_race *race = race_of((const int32_t[]){2, 3, 4, 5}, 1);
    step(&race->side[0], (const int32_t[]){2}, 1, 1);
    CHECK(esp_race_verdict(race, text, sizeof text));
    CHECK(strstr(text, "the 4 tokens that both wrote are identical, 2.00 times"), "%s", text);
    esp_run_clear(&race->side[1]);
    prompt(&race->side[1], 3);
    step(&race->side[1], (const int32_t[]){2}, 1, 1);
    CHECK(esp_race_verdict(race, text, sizeof text));
    CHECK(strstr(text, "not comparable"), "%s", text);
    esp_race_release(race);
}

TEST(the_clock_stops_when_both_sides_have_ended)
{
    struct esp_race *race = race_of((const int32_t[]){2, 3, 4, 5}, 1);
    CHECK(esp_race_now(race) == ESP_RACE_PREPARES && esp_race_clock(race) == 0);
    esp_race_begin(race);
    race->begun -= 2.5;
    CHECK(esp_race_now(race) == ESP_RACE_RUNS && esp_race_clock(race) >= 2.5);
    race->begun -= 2;
    race->side[0].complete = false;
    CHECK(esp_race_now(race) == ESP_RACE_RUNS, "the left side is still decoding");
    race->side[0].complete = true;
    CHECK(esp_race_now(race) == ESP_RACE_OVER && esp_race_clock(race) == 4);
    esp_race_begin(race);
    CHECK(esp_race_now(race) == ESP_RACE_RUNS, "the race can be repeated");
    esp_race_release(race);
}

/* A race can be drawn at every size of the screen and at every moment. */
TEST(a_race_can_be_drawn_at_any_size)
{
    struct esp_race *race = race_of((const int32_t[]){2, 3, 4, 5}, 1);
    struct esp_canvas canvas;
    CHECK(esp_canvas_open(&canvas, 1, 1) == 0);
    for (int width = 1; width < 130; width += 7)
        for (int height = 1; height < 40; height += 3) {
            CHECK(esp_canvas_resize(&canvas, width, height) == 0);
            race->phase = ESP_RACE_PREPARES;
            esp_race_draw(&canvas, race);
            esp_race_begin(race);
            race->begun -= 1.5;
            esp_race_draw(&canvas, race);
            race->begun -= 10;
            esp_race_draw(&canvas, race);
        }
    esp_canvas_close(&canvas);
    esp_race_release(race);
}
