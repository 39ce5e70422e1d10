/* Tests that a replay shows the same screens as the live session, at every iteration, draft
 * pass and stage, and after any jump. Whole screens (frames) are compared byte for byte. */
#include "tui/model/player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/check.h"
#include "tests/recorded.h"
#include "tests/scene.h"
#include "tests/toy.h"

enum { WIDTH = 120, HEIGHT = 50, MOST_FRAMES = 6000 };

static char err[512];

/* Holds a session that is shown and recorded while it runs, and its frames. */
struct live {
    struct scene scene;
    struct esp_session *session;
    struct esp_recorder *recorder;
    bool stepping;             /* true if frames of draft passes and stages are also stored */
    char *frames[MOST_FRAMES]; /* `count` frames, in order */
    /* steps[i] is the number of steps of an unfinished iteration that frame i shows */
    int steps[MOST_FRAMES];
    int count, step;
};

static const char *toy_text(void *user, int32_t token, size_t *length)
{
    static char texts[64][16];
    (void)user;
    if (token < 0 || token >= 64)
        return NULL;
    snprintf(texts[token], sizeof *texts, token % 7 ? " w%d" : "\xc3%d\n", token);
    *length = strlen(texts[token]);
    return texts[token];
}

static void keep_frame(struct live *live, int step)
{
    CHECK(live->count < MOST_FRAMES);
    live->steps[live->count] = step;
    live->frames[live->count++] = scene_dump(&live->scene, false);
}

/* Applies an event to the live state, as the worker does. */
static void show(struct live *live, const struct esp_event *event)
{
    bool partial = event->type == ESP_EVENT_LAYER || event->type == ESP_EVENT_STAGE;
    if (partial && !live->stepping)
        return;
    if (event->type == ESP_EVENT_PROMPT)
        scene_phase(&live->scene, ESP_PHASE_PREFILL, "", 0);
    if (event->type == ESP_EVENT_ITERATION && !esp_state_is_busy(&live->scene.state))
        scene_phase(&live->scene, ESP_PHASE_GENERATING, "", 0);
    if (partial)
        scene_phase(&live->scene, ESP_PHASE_WAITING, "", 0);
    else if (event->type == ESP_EVENT_ITERATION)
        scene_phase(&live->scene, ESP_PHASE_GENERATING, "", 0);
    scene_event(&live->scene, event);
    live->step = partial ? live->step + 1 : 0;
    if (event->type == ESP_EVENT_PROMPT)
        scene_phase(&live->scene, ESP_PHASE_GENERATING, "", 0);
    if (event->type == ESP_EVENT_END)
        scene_phase(&live->scene, ESP_PHASE_IDLE, "", 0);
    if (event->type == ESP_EVENT_ITERATION || partial)
        keep_frame(live, live->step);
}

static void watch(void *user, const struct esp_event *event)
{
    struct live *live = user;
    esp_recorder_event(live->recorder, event);
    show(live, event);
}

static const struct esp_recording_header header = {.target = {.name = "fairytale-target"},
                                                   .draft = {.name = "fairytale-draft"},
                                                   .drafter = "dynatree:tau=0.05",
                                                   .verifier = "greedy",
                                                   .backend = "cpu",
                                                   .device = "portable C, 1 thread"};

static void live_open(struct live *live, struct toy *toy, const char *path, bool stepping)
{
    struct esp_session_options options = {.drafter = "dynatree",
                                          .observer = watch,
                                          .user = live,
                                          .values = {.baseline = true, .seed = 3}};
    struct esp_recorder_options recording = {
        .path = path, .force = true, .tokens = {toy_text, NULL}};
    *live = (struct live){.stepping = stepping};
    CHECK(esp_recorder_open(&live->recorder, &recording, &header, err, sizeof err) == 0, "%s",
          err);
    scene_open(&live->scene, WIDTH, HEIGHT);
    live->scene.state.tokens = (struct esp_tokens){toy_text, NULL};
    scene_ready(&live->scene);
    CHECK(esp_session_open(&live->session, &toy->engine, &options, err, sizeof err) == 0, "%s",
          err);
}

static void live_write(struct live *live, int tokens)
{
    const int32_t prompt[] = {3, 1, 4};
    int status;
    CHECK(esp_session_prompt(live->session, prompt, 3, err, sizeof err) == 0, "%s", err);
    esp_session_allow(live->session, tokens);
    while ((status = esp_session_step(live->session, err, sizeof err)) > 0)
        continue;
    CHECK(status == 0, "%s", err);
}

/* Ends the session, but keeps the frames. */
static void live_finish(struct live *live)
{
    esp_session_close(live->session);
    CHECK(esp_recorder_close(live->recorder, err, sizeof err) == 0, "%s", err);
    scene_close(&live->scene);
}

static void live_close(struct live *live)
{
    for (int i = 0; i < live->count; i++)
        free(live->frames[i]);
}

/* ------------------------------------------------------------------ comparing */

struct replay {
    struct scene scene;
    struct esp_player player;
};

static void replay_open(struct replay *replay, const char *path)
{
    scene_open(&replay->scene, WIDTH, HEIGHT);
    CHECK(esp_player_open(&replay->player, path, &replay->scene.state, err, sizeof err) == 0,
          "%s", err);
}

static void replay_close(struct replay *replay)
{
    esp_player_close(&replay->player);
    scene_close(&replay->scene);
}

static bool looks_like(struct replay *replay, const char *frame)
{
    char *now = scene_dump(&replay->scene, false);
    bool same = strcmp(now, frame) == 0;
    if (!same)
        printf("--- live:\n%s--- replayed:\n%s", frame, now);
    free(now);
    return same;
}

static void make_toy(struct toy *toy, int context)
{
    toy_open(toy, 40, context, 40, 11);
    toy->closeness = 0.6;
}

/* At the end of a recording, the generation has ended. So the screen of the last iteration
 * differs from the live screen, and is not compared. */
TEST(every_iteration_looks_as_in_the_live_session)
{
    struct toy toy;
    struct live live;
    struct replay replay;
    const char *path = recorded_path();
    make_toy(&toy, 2000);
    live_open(&live, &toy, path, false);
    live_write(&live, check_quick() ? 60 : 300);
    CHECK(esp_session_set(live.session, "drafter", "linear:K=4", err, sizeof err) == 0);
    live_write(&live, check_quick() ? 100 : 700);
    live_finish(&live);
    replay_open(&replay, path);
    int count = esp_player_iterations(&replay.player);
    CHECK(count == live.count && count > 40, "%d of %d", count, live.count);
    for (int i = 1; i < count; i++) {
        CHECK(esp_player_move(&replay.player, 1, err, sizeof err) == 0, "%s", err);
        CHECK(esp_player_iteration(&replay.player) == i);
        CHECK(looks_like(&replay, live.frames[i - 1]), "iteration %d", i);
    }
    unsigned long long random = 1;
    for (int jump = 0; jump < (check_quick() ? 20 : 100); jump++) {
        int to = 1 + (int)(check_uniform(&random) * (count - 1));
        CHECK(esp_player_go(&replay.player, to, err, sizeof err) == 0, "%s", err);
        CHECK(looks_like(&replay, live.frames[to - 1]), "after a jump to %d", to);
    }
    replay_close(&replay);
    live_close(&live);
    toy_close(&toy);
}

TEST(every_draft_pass_and_stage_looks_as_in_the_live_session)
{
    static const char *const drafters[] = {"dynatree", "eagle2", "dyspec", "ngram"};
    struct toy toy;
    struct live live;
    struct replay replay;
    const char *path = recorded_path();
    make_toy(&toy, 1000);
    live_open(&live, &toy, path, true);
    for (int i = 0; i < 4; i++) {
        CHECK(esp_session_set(live.session, "drafter", drafters[i], err, sizeof err) == 0, "%s",
              err);
        live_write(&live, check_quick() ? 10 : 40);
    }
    live_finish(&live);
    replay_open(&replay, path);
    for (int i = 0; i < live.count - 1; i++) {
        CHECK(esp_player_step(&replay.player, 1, err, sizeof err) == 0, "%s", err);
        CHECK(replay.player.step == live.steps[i], "frame %d", i);
        CHECK(looks_like(&replay, live.frames[i]), "frame %d", i);
    }
    for (int i = live.count - 3; i >= 0; i--) {
        CHECK(esp_player_step(&replay.player, -1, err, sizeof err) == 0, "%s", err);
        CHECK(looks_like(&replay, live.frames[i]), "frame %d differs when stepping back", i);
    }
    replay_close(&replay);
    live_close(&live);
    toy_close(&toy);
}

TEST(the_state_depends_only_on_the_position)
{
    struct toy toy;
    struct live live;
    struct replay replay;
    unsigned long long random = 7;
    const char *path = recorded_path();
    make_toy(&toy, 3000);
    live_open(&live, &toy, path, false);
    live_write(&live, check_quick() ? 50 : 400);
    CHECK(esp_session_rewind(live.session, 20) == 0);
    live_write(&live, 200);
    recorded_mark(live.recorder, "half");
    esp_recorder_event(live.recorder, &(struct esp_event){.type = ESP_EVENT_CLEAR});
    esp_session_clear(live.session);
    CHECK(esp_session_set(live.session, "drafter", "ar", err, sizeof err) == 0);
    live_write(&live, 900);
    live_finish(&live);
    replay_open(&replay, path);
    int events = esp_recording_events(replay.player.recording),
        jumps = check_quick() ? 20 : 150;
    char **frames = calloc((size_t)events + 1, sizeof *frames);
    CHECK(frames && events > 800, "%d events", events);
    CHECK(esp_player_seek(&replay.player, 0, 0, err, sizeof err) == 0);
    for (int at = 0; at <= events; at++) {
        CHECK(esp_player_seek(&replay.player, at, 0, err, sizeof err) == 0);
        frames[at] = scene_dump(&replay.scene, false);
    }
    for (int jump = 0; jump < jumps; jump++) {
        int to = (int)(check_uniform(&random) * (events + 1));
        CHECK(esp_player_seek(&replay.player, to, jump % 4, err, sizeof err) == 0, "%s", err);
        CHECK(esp_player_seek(&replay.player, to, 0, err, sizeof err) == 0, "%s", err);
        CHECK(replay.player.at == to && looks_like(&replay, frames[to]), "position %d", to);
    }
    for (int at = 0; at <= events; at++)
        free(frames[at]);
    free(frames);
    replay_close(&replay);
    live_close(&live);
    toy_close(&toy);
}

/* ------------------------------------------------------------------ jumps, time, search */

/* Replaces the times in the file. Each event is `gap` seconds after the one before it. */
static void set_times(double gap)
{
    size_t length, written;
    char *text = recorded_read(&length), *rest = NULL, *changed = NULL;
    FILE *file = open_memstream(&changed, &written);
    int number = 0;
    CHECK(file);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *rest_of_line = line;
        if (number > 0) {
            CHECK(strncmp(line, "{\"t\":", 5) == 0, "%.40s", line);
            fprintf(file, "{\"t\":%g", number * gap);
            rest_of_line += strcspn(line, ",");
        }
        fprintf(file, "%s\n", rest_of_line);
        number++;
    }
    fclose(file);
    recorded_write(changed, written);
    free(changed);
    free(text);
}

/* Writes a recording with iterations of the scene and two markers. */
static void write_scene(int iterations)
{
    struct esp_recorder *recorder;
    struct esp_recorder_options options = {
        .path = recorded_path(), .force = true, .tokens = {scene_text, NULL}};
    const int32_t prompt[] = {TOKEN_ONCE, TOKEN_AND};
    struct esp_event begin = {.type = ESP_EVENT_PROMPT, .tokens = prompt, .token_count = 2};
    struct esp_event end = {.type = ESP_EVENT_END, .text = "length"};
    CHECK(esp_recorder_open(&recorder, &options, &header, err, sizeof err) == 0, "%s", err);
    esp_recorder_event(recorder, &begin);
    for (int i = 0; i < iterations; i++) {
        if (i == 3 || i == 6)
            recorded_mark(recorder, i == 3 ? "three" : "");
        esp_recorder_event(recorder, &(struct esp_event){.type = ESP_EVENT_ITERATION,
                                                         .iteration = scene_king(i)});
    }
    esp_recorder_event(recorder, &end);
    CHECK(esp_recorder_close(recorder, err, sizeof err) == 0, "%s", err);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

TEST(a_jump_in_ten_thousand_iterations_takes_less_than_a_fifth_of_a_second)
{
    struct replay replay;
    const int count = check_quick() ? 1000 : 10000;
    unsigned long long random = 5;
    double longest = 0;
    write_scene(count);
    replay_open(&replay, recorded_path());
    for (int jump = 0; jump < 30; jump++) {
        int to = jump == 0 ? count : (int)(check_uniform(&random) * count);
        double start = seconds_now();
        CHECK(esp_player_go(&replay.player, to, err, sizeof err) == 0, "%s", err);
        free(scene_dump(&replay.scene, false));
        double took = seconds_now() - start;
        longest = took > longest ? took : longest;
        CHECK(esp_player_iteration(&replay.player) == to);
    }
    replay_close(&replay);
    printf("  longest jump in %d iterations: %.1f ms\n", count, 1e3 * longest);
    CHECK(longest < 0.2 || check_quick(), "%.3f s", longest);
}

TEST(markers_and_searches_move_the_player)
{
    struct replay replay;
    struct esp_player *player = &replay.player;
    write_scene(10);
    replay_open(&replay, recorded_path());
    CHECK(player->marker_count == 2);
    int first = esp_player_marker(player, 1);
    CHECK(esp_player_seek(player, first, 0, err, sizeof err) == 0);
    CHECK(esp_player_iteration(player) == 3 && esp_player_marker(player, -1) == -1);
    int second = esp_player_marker(player, 1);
    CHECK(esp_player_seek(player, second, 0, err, sizeof err) == 0);
    CHECK(esp_player_iteration(player) == 6 && esp_player_marker(player, 1) == -1);
    CHECK(esp_player_marker(player, -1) == first);
    /* Each iteration writes " the old king fell", so a match of "fell the" begins in one
     * iteration and ends in the next. */
    CHECK(esp_player_go(player, 0, err, sizeof err) == 0);
    int at = esp_player_find(player, "fell the", 1);
    CHECK(esp_player_seek(player, at, 0, err, sizeof err) == 0);
    CHECK(esp_player_iteration(player) == 2);
    int back = esp_player_find(player, "fell the", -1);
    CHECK(esp_player_seek(player, back, 0, err, sizeof err) == 0);
    CHECK(esp_player_iteration(player) == 10,
          "a backward search at the first match must find the last one, not iteration %d",
          esp_player_iteration(player));
    CHECK(esp_player_find(player, "Once upon", 1) == 1, "the prompt is part of the text");
    CHECK(esp_player_find(player, "no such words", 1) == -1);
    CHECK(esp_player_find(player, "", 1) == -1);
    replay_close(&replay);
}

/* One event is recorded per second. `now` is the test's clock. */
TEST(a_recording_plays_at_the_requested_speed)
{
    struct replay replay;
    struct esp_player *player = &replay.player;
    write_scene(8);
    set_times(1);
    replay_open(&replay, recorded_path());
    CHECK(esp_player_wait(player, 100) < 0 && esp_player_advance(player, 100, err, 512) == 0);
    CHECK(esp_player_play(player, true, 100, err, sizeof err) == 0);
    CHECK(esp_player_wait(player, 100.25) == 0.75);
    CHECK(esp_player_advance(player, 100.5, err, sizeof err) == 0);
    CHECK(esp_player_advance(player, 101, err, sizeof err) == 1);
    CHECK(esp_player_iteration(player) == 1);
    player->speed = 4;
    CHECK(esp_player_play(player, true, 200, err, sizeof err) == 0);
    CHECK(esp_player_advance(player, 200.5, err, sizeof err) == 1);
    CHECK(esp_player_iteration(player) == 3);
    player->speed = 1;
    player->idle = 0.5;
    CHECK(esp_player_play(player, true, 300, err, sizeof err) == 0);
    CHECK(esp_player_wait(player, 300) == 0.5);
    CHECK(esp_player_play(player, false, 300, err, sizeof err) == 0);
    CHECK(esp_player_advance(player, 400, err, sizeof err) == 0 && !player->playing);
    CHECK(esp_player_play(player, true, 400, err, sizeof err) == 0);
    for (int i = 0; i < 100; i++)
        CHECK(esp_player_advance(player, 400 + i, err, sizeof err) >= 0);
    CHECK(esp_player_is_at_end(player) && !player->playing);
    CHECK(replay.scene.state.phase == ESP_PHASE_IDLE);
    CHECK(esp_player_play(player, true, 900, err, sizeof err) == 0 && player->playing);
    CHECK(esp_player_iteration(player) == 0,
          "playing at the end of a recording starts it again");
    replay_close(&replay);
}

/* Unless the user chooses the original speed, fast iterations are slowed down so that users can
 * follow them. */
TEST(fast_iterations_are_slowed_down)
{
    struct replay replay;
    struct esp_player *player = &replay.player;
    write_scene(8);
    set_times(0.001);
    replay_open(&replay, recorded_path());
    CHECK(esp_player_play(player, true, 0, err, sizeof err) == 0);
    CHECK(esp_player_wait(player, 0) > 0.08);
    player->speed = 0;
    CHECK(esp_player_play(player, true, 0, err, sizeof err) == 0);
    CHECK(esp_player_wait(player, 0) < 0.0011);
    replay_close(&replay);
}

TEST(speeds_are_read)
{
    static const char *const bad[] = {"",   "x",   "0",   "0.2", "17",
                                      "-1", "nan", "1e9", "2y",  "2x3"};
    double speed;
    CHECK(esp_speed_parse("recorded", &speed, err, sizeof err) == 0 && speed == 0);
    CHECK(esp_speed_parse("0.25", &speed, err, sizeof err) == 0 && speed == 0.25);
    CHECK(esp_speed_parse("16x", &speed, err, sizeof err) == 0 && speed == 16);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(esp_speed_parse(bad[i], &speed, err, sizeof err) == ESP_E_ARGUMENT, "'%s'",
              bad[i]);
}

TEST(a_recording_without_iterations_is_shown)
{
    struct replay replay;
    struct esp_player *player = &replay.player;
    write_scene(0);
    replay_open(&replay, recorded_path());
    for (int direction = -1; direction <= 1; direction += 2) {
        CHECK(esp_player_move(player, direction, err, sizeof err) == 0);
        CHECK(esp_player_step(player, direction, err, sizeof err) == 0);
    }
    CHECK(esp_player_seek(player, 1000, 5, err, sizeof err) == 0);
    CHECK(esp_player_is_at_end(player) && esp_player_iterations(player) == 0);
    free(scene_dump(&replay.scene, false));
    replay_close(&replay);
}

static void as_drawn(struct replay *replay, int width, int height, const char *name)
{
    CHECK(esp_canvas_resize(&replay->scene.canvas, width, height) == 0);
    scene_golden(&replay->scene, name);
}

TEST(the_screen_of_a_replay_matches_its_golden_screen)
{
    struct replay replay;
    struct esp_player *player = &replay.player;
    write_scene(9);
    set_times(20);
    replay_open(&replay, recorded_path());
    replay.scene.ui.player = player;
    replay.scene.ui.typed = "";
    CHECK(esp_player_go(player, 4, err, sizeof err) == 0);
    as_drawn(&replay, 120, 36, "replay_120x36");
    CHECK(esp_player_step(player, 1, err, sizeof err) == 0);
    player->speed = 0;
    as_drawn(&replay, 80, 24, "replay_step_80x24");
    CHECK(esp_player_go(player, 0, err, sizeof err) == 0);
    CHECK(esp_player_play(player, true, 0, err, sizeof err) == 0);
    player->speed = 0.25;
    replay.scene.ui.typed = "7";
    as_drawn(&replay, 80, 24, "replay_start_80x24");
    CHECK(esp_player_go(player, 9, err, sizeof err) == 0);
    CHECK(esp_player_advance(player, 0, err, sizeof err) == 0);
    player->playing = false;
    replay.scene.ui.typed = "";
    replay.scene.canvas.glyphs = &esp_glyphs_ascii;
    as_drawn(&replay, 80, 24, "replay_end_ascii_80x24");
    replay.scene.canvas.glyphs = &esp_glyphs_full;
    as_drawn(&replay, 30, 8, "replay_30x8");
    for (int width = 1; width < 60; width += 3)
        for (int height = 1; height < 30; height += 4) {
            CHECK(esp_canvas_resize(&replay.scene.canvas, width, height) == 0);
            free(scene_dump(&replay.scene, false));
        }
    replay_close(&replay);
}

/* ------------------------------------------------------------------ damaged files */

/* Damages some bytes. Digits become other digits, so most lines are still JSON. Some bytes
 * become arbitrary bytes. */
static void damage(char *bytes, size_t length, unsigned long long *random)
{
    int changes = 1 + (int)(check_uniform(random) * 6);
    for (int tries = 0; changes > 0 && tries < 1000; tries++) {
        size_t at = (size_t)(check_uniform(random) * (double)length);
        bool digit = bytes[at] >= '0' && bytes[at] <= '9';
        if (digit)
            bytes[at] = (char)('0' + (int)(check_uniform(random) * 10));
        else if (check_uniform(random) < 0.02)
            bytes[at] = (char)(unsigned char)(check_uniform(random) * 256);
        else
            continue;
        changes--;
    }
}

TEST(a_damaged_recording_is_shown_or_refused)
{
    struct toy toy;
    struct live live;
    size_t length;
    unsigned long long random = 21;
    int shown = 0, rounds = check_quick() ? 60 : 300;
    make_toy(&toy, 200);
    live_open(&live, &toy, recorded_path(), false);
    live_write(&live, 30);
    recorded_mark(live.recorder, "here");
    CHECK(esp_session_set(live.session, "drafter", "dyspec", err, sizeof err) == 0);
    live_write(&live, 20);
    live_finish(&live);
    char *good = recorded_read(&length), *bytes = malloc(length);
    for (int round = 0; round < rounds; round++) {
        struct replay replay;
        memcpy(bytes, good, length);
        damage(bytes, length, &random);
        recorded_write(bytes, length);
        scene_open(&replay.scene, 80, 24);
        if (esp_player_open(&replay.player, recorded_path(), &replay.scene.state, err,
                            sizeof err) < 0) {
            CHECK(*err && !strchr(err, '\n'), "an error message must be one line: %s", err);
            scene_close(&replay.scene);
            continue;
        }
        shown++;
        replay.scene.ui.player = &replay.player;
        replay.scene.ui.typed = "";
        for (int i = 0; i < 12; i++) {
            double what = check_uniform(&random);
            int status = what < 0.3 ? esp_player_go(&replay.player, (int)(what * 150), err, 512)
                         : what < 0.5
                             ? esp_player_move(&replay.player, i % 2 * 2 - 1, err, 512)
                             : esp_player_step(&replay.player, i % 4 ? 1 : -1, err, 512);
            CHECK(status == 0, "%s", err);
            free(scene_dump(&replay.scene, false));
        }
        esp_player_find(&replay.player, "w1", 1);
        esp_player_close(&replay.player);
        scene_close(&replay.scene);
    }
    CHECK(shown > rounds / 20 && shown < rounds, "%d of %d were shown", shown, rounds);
    free(bytes);
    free(good);
    live_close(&live);
    toy_close(&toy);
}
