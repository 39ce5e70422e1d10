/* Tests that the state of the interface follows the events: its text, statistics, past
 * iterations and phases. */
#include "tui/model/state.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"
#include "tests/scene.h"

TEST(tokens_keep_their_origin)
{
    struct scene scene;
    scene_open(&scene, 10, 10);
    scene_prompt(&scene);
    scene_iteration(&scene, 0);
    struct esp_state *state = &scene.state;
    CHECK(state->span_count == 6);
    CHECK(state->spans[0].kind == ESP_TEXT_PROMPT && state->spans[1].kind == ESP_TEXT_PROMPT);
    CHECK(state->spans[2].kind == ESP_TEXT_DRAFTED && state->spans[4].kind == ESP_TEXT_DRAFTED);
    CHECK(state->spans[5].kind == ESP_TEXT_BONUS);
    const char want[] =
        "Once upon a time there was a king who had three sons, and the old king fell";
    CHECK(state->byte_count == strlen(want) && memcmp(state->bytes, want, strlen(want)) == 0);
    CHECK(state->spans[2].start ==
          strlen("Once upon a time there was a king who had three sons,"
                 " and"));
    scene_close(&scene);
}

TEST(figures_are_those_of_the_events)
{
    struct scene scene;
    scene_open(&scene, 10, 10);
    struct esp_figures figures = esp_state_figures(&scene.state);
    CHECK(figures.iterations == 0 && isnan(figures.acceptance));
    for (int i = 0; i < 50; i++)
        scene_iteration(&scene, i);
    figures = esp_state_figures(&scene.state);
    const double seconds = 0.0009 + 0.00001 + 0.0024 + 0.00002 + 0.00005 + 0.00001;
    CHECK(figures.iterations == 32);
    CHECK(fabs(figures.tokens_per_iteration - 4) < 1e-9);
    CHECK(fabs(figures.acceptance - 3.0 / 8) < 1e-9);
    CHECK(fabs(figures.path_share - 3.0 / 4) < 1e-9);
    CHECK(fabs(figures.tokens_per_second - 4 / seconds) < 1e-6);
    CHECK(fabs(figures.speedup - 0.0013 * 4 / seconds) < 1e-9);
    CHECK(scene.state.trace.since.iterations == 50 && scene.state.trace.since.committed == 200);
    struct esp_event setting = {
        .type = ESP_EVENT_SETTING, .key = "drafter", .text = "linear:K=3"};
    scene_event(&scene, &setting);
    CHECK(esp_state_figures(&scene.state).iterations == 0);
    CHECK(strcmp(scene.state.loaded.drafter, "linear:K=3") == 0);
    scene_iteration(&scene, 50);
    CHECK(esp_state_figures(&scene.state).iterations == 1);
    scene_close(&scene);
}

TEST(interruptions_do_not_make_speculation_look_slower)
{
    struct scene scene;
    scene_open(&scene, 10, 10);
    scene_iteration(&scene, 0);
    const double want = esp_state_figures(&scene.state).speedup;
    for (int i = 1; i < 40; i++) {
        struct esp_iteration it = *scene_king(i);
        if (i % 3 == 0)
            it.seconds[ESP_STAGE_VERIFY] *= 30;
        scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    }
    const struct esp_figures figures = esp_state_figures(&scene.state);
    CHECK(fabs(figures.speedup - want) < 1e-9, "%g, not %g", figures.speedup, want);
    CHECK(fabs(figures.tokens_per_second * 0.0013 - want) < 1e-9);
    scene_close(&scene);
}

TEST(histories_have_a_limited_size)
{
    struct scene scene;
    scene_open(&scene, 10, 10);
    for (int i = 0; i < 3 * ESP_POINTS; i++)
        scene_iteration(&scene, i);
    const struct esp_trace *trace = &scene.state.trace;
    const struct esp_course *course = &trace->course;
    CHECK(course->count <= ESP_POINTS && course->count >= ESP_POINTS / 2);
    CHECK(course->points[course->count - 1].index == 3 * ESP_POINTS - 1);
    CHECK(course->points[0].index == 3 * ESP_POINTS - course->count);
    CHECK(trace->kept_count == ESP_KEPT && trace->kept_capacity == ESP_KEPT);
    for (int i = 0; i < ESP_KEPT; i++)
        CHECK(esp_trace_at(trace, i)->index == 3 * ESP_POINTS - ESP_KEPT + i);
    CHECK(!esp_trace_at(trace, ESP_KEPT) && !esp_trace_at(trace, -1));
    float values[ESP_POINTS];
    esp_trace_values(trace, scene_king(0), "tauh", values);
    for (int i = 0; i < course->count; i++) { /* each point must have its iteration's values */
        const struct esp_course_point *point = &course->points[i];
        CHECK(values[i] == (float)scene_king(point->index)->gauges[0].after);
        CHECK(point->written == 4 * (point->index + 1), "the sums continue");
    }
    scene_close(&scene);
}

/* Two drafters have a value "price" with different meanings, so each drafter has its own
 * history of "price". The draft's temperature has one history for both drafters. */
TEST(values_of_two_drafters_have_two_histories)
{
    struct scene scene;
    float values[ESP_POINTS];
    struct esp_iteration of[2] = {*scene_king(0), *scene_king(0)};
    scene_open(&scene, 10, 10);
    of[0].gauges[0] = (struct esp_gauge){"D0", 5, 5, 1, 7};
    of[0].gauges[1] = (struct esp_gauge){"price", 0.4, 0.4, 0, 1};
    of[0].gauges[2] = (struct esp_gauge){"draft_temp", 1, 0.9, 0, 2};
    of[1].drafter = "goodput";
    of[1].gauges[0] = (struct esp_gauge){"price", 700, 800, 0, 1};
    of[1].gauges[1] = (struct esp_gauge){"draft_temp", 0.9, 0.8, 0, 2};
    of[0].gauge_count = 3;
    of[1].gauge_count = 2;
    for (int i = 0; i < 6; i++) {
        of[i / 3].index = i;
        scene_event(&scene,
                    &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &of[i / 3]});
    }
    for (int i = 0; i < 6; i++) {
        esp_trace_values(&scene.state.trace, &of[0], "price", values);
        CHECK(i < 3 ? values[i] == 0.4f : isnan(values[i]), "%d: %g", i, (double)values[i]);
        esp_trace_values(&scene.state.trace, &of[1], "price", values);
        CHECK(i < 3 ? isnan(values[i]) : values[i] == 800, "%d: %g", i, (double)values[i]);
        esp_trace_values(&scene.state.trace, &of[1], "draft_temp", values);
        CHECK(values[i] == (i < 3 ? 0.9f : 0.8f), "%d: %g", i, (double)values[i]);
        esp_trace_values(&scene.state.trace, &of[1], "D0", values);
        CHECK(isnan(values[i]), "it has none");
    }
    scene_close(&scene);
}

TEST(past_iterations_can_be_shown)
{
    struct scene scene;
    int stages, count = ESP_KEPT + 40;
    scene_open(&scene, 10, 10);
    CHECK(!esp_state_iteration(&scene.state, -1, &stages));
    CHECK(esp_state_neighbour(&scene.state, 3, -1) == -1);
    for (int i = 0; i < count; i++)
        scene_iteration(&scene, i);
    for (int index = count - ESP_KEPT; index < count; index++) {
        const struct esp_iteration *it = esp_state_iteration(&scene.state, index, &stages);
        CHECK(it && it->index == index && stages == ESP_STAGES);
        CHECK(it->path[2] == 6 && it->tree.nodes[6].token == TOKEN_KING);
        CHECK(strcmp(it->drafter, "dynatree") == 0);
        CHECK(esp_state_neighbour(&scene.state, index, 1) ==
              (index + 1 < count ? index + 1 : -1));
    }
    CHECK(esp_state_iteration(&scene.state, 0, &stages)->index == count - 1,
          "gone: the newest");
    CHECK(esp_state_neighbour(&scene.state, count - ESP_KEPT, -1) == -1);
    CHECK(esp_state_neighbour(&scene.state, count - 1, -1) == count - 2);
    scene_close(&scene);
}

TEST(a_partial_iteration_is_the_newest)
{
    struct scene scene;
    int stages;
    scene_open(&scene, 10, 10);
    scene_iteration(&scene, 0);
    struct esp_event event = {
        .type = ESP_EVENT_STAGE, .stage = ESP_STAGE_VERIFY, .iteration = scene_king(1)};
    scene_event(&scene, &event);
    CHECK(esp_state_iteration(&scene.state, -1, &stages)->index == 1 && stages == 3);
    CHECK(esp_state_iteration(&scene.state, 0, &stages)->index == 0 && stages == ESP_STAGES);
    CHECK(esp_state_neighbour(&scene.state, 0, 1) == 1);
    scene_iteration(&scene, 1);
    CHECK(esp_state_iteration(&scene.state, -1, &stages)->index == 1 && stages == ESP_STAGES);
    scene_close(&scene);
}

TEST(after_the_end_of_a_text_the_last_tree_is_shown)
{
    struct scene scene;
    int stages;
    scene_open(&scene, 10, 10);
    scene_iteration(&scene, 0);
    struct esp_iteration last = *scene_king(1);
    /* the last iteration has drafted nothing, so its tree has only a root */
    last.tree.count = last.tree.verified = 1;
    last.path_length = last.deepest = 0;
    /* In the second round, the iteration before the last has drafted nothing, either. So the
     * last iteration is shown. */
    for (int i = 0; i < 2; i++) {
        scene_event(&scene,
                    &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &last});
        scene.state.phase = ESP_PHASE_GENERATING;
        CHECK(esp_state_iteration(&scene.state, -1, &stages)->index == last.index);
        scene.state.phase = ESP_PHASE_IDLE;
        CHECK(esp_state_iteration(&scene.state, -1, &stages)->index == (i ? 2 : 0));
        CHECK(esp_state_iteration(&scene.state, last.index, &stages)->index == last.index);
        last.index++;
    }
    scene_close(&scene);
}

TEST(clearing_forgets_the_text)
{
    struct scene scene;
    int stages;
    scene_open(&scene, 10, 10);
    scene_ready(&scene);
    scene_prompt(&scene);
    scene_iteration(&scene, 0);
    scene_event(&scene, &(struct esp_event){.type = ESP_SNAPSHOT_CLEAR});
    CHECK(scene.state.span_count == 0 && scene.state.byte_count == 0);
    CHECK(!esp_state_iteration(&scene.state, -1, &stages));
    CHECK(scene.state.trace.since.iterations == 0 && scene.state.ready);
    scene_close(&scene);
}

TEST(unknown_tokens_and_events_do_no_harm)
{
    struct scene scene;
    const int32_t tokens[] = {-1, 1 << 30, TOKEN_KING};
    scene_open(&scene, 10, 10);
    struct esp_event prompt = {.type = ESP_EVENT_PROMPT, .tokens = tokens, .token_count = 3};
    scene_event(&scene, &prompt);
    scene_event(&scene, &(struct esp_event){.type = 4711});
    CHECK(scene.state.span_count == 3 && scene.state.byte_count == 5);
    scene_close(&scene);
}

TEST(a_message_says_that_speculation_is_slower)
{
    char texts[3][96];
    struct esp_figures figures = {.speedup = 0.94, .acceptance = 0.22};
    esp_state_worth(&figures, 0.001, texts);
    CHECK(strcmp(texts[0], "slower than plain decoding by 6 %: the draft is right 22 % of the "
                           "time") == 0,
          "%s", texts[0]);
    CHECK(strcmp(texts[1], "slower than plain decoding by 6 %") == 0);
    CHECK(strcmp(texts[2], "6 % slower") == 0);
    figures.speedup = 1.5;
    esp_state_worth(&figures, 0.001, texts);
    CHECK(strcmp(texts[0], "1.50 times as fast as plain decoding (1000 tok/s)") == 0);
    figures.speedup = 0.997;
    esp_state_worth(&figures, 0.001, texts);
    CHECK(strcmp(texts[2], "1.00x plain") == 0, "a slowdown of 0 %% must not be reported: %s",
          texts[2]);
}
