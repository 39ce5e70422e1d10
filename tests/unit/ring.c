/* Tests the ring of snapshots between two threads. It must keep their order, and even a slow
 * reader must get every token and correct totals. */
#include "tui/model/ring.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/scene.h"
#include "tui/model/state.h"

static void write_iteration(struct esp_ring *ring, int index)
{
    struct esp_event event = {.type = ESP_EVENT_ITERATION, .iteration = scene_king(index)};
    CHECK(esp_ring_write_event(ring, &event, false) == 0);
}

/* Applies all snapshots in the ring to the state. Returns how many there were. */
static int drain(struct esp_ring *ring, struct esp_state *state)
{
    int count = 0;
    for (const struct esp_snapshot *snapshot; (snapshot = esp_ring_front(ring)); count++) {
        CHECK(esp_state_apply(state, snapshot) == 0);
        esp_ring_pop(ring);
    }
    return count;
}

TEST(a_reader_that_keeps_up_sees_every_iteration)
{
    struct esp_ring *ring;
    struct esp_state state = {.tokens = {scene_text, NULL}};
    CHECK(esp_ring_open(&ring, 16, 32) == 0);
    for (int i = 0; i < 40; i++) {
        write_iteration(ring, i);
        CHECK(drain(ring, &state) == 1);
    }
    CHECK(state.trace.course.count == 40 && state.trace.since.iterations == 40 &&
          state.span_count == 160);
    CHECK(state.trace.course.points[39].index == 39);
    esp_state_free(&state);
    esp_ring_close(ring);
}

TEST(a_reader_that_does_not_read_loses_no_token)
{
    struct esp_ring *ring;
    struct esp_state state = {.tokens = {scene_text, NULL}};
    int stages;
    CHECK(esp_ring_open(&ring, 16, 32) == 0);
    for (int i = 0; i < 1000; i++)
        write_iteration(ring, i);
    struct esp_event end = {.type = ESP_EVENT_END, .text = "length"};
    CHECK(esp_ring_write_event(ring, &end, false) == 0);
    CHECK(drain(ring, &state) <= 16);
    CHECK(state.span_count == 4000, "%d tokens", state.span_count);
    CHECK(state.trace.since.iterations == 1000 && state.trace.since.accepted == 3000);
    CHECK(strcmp(state.ended, "length") == 0);
    CHECK(esp_state_iteration(&state, -1, &stages)->index == 999);
    esp_state_free(&state);
    esp_ring_close(ring);
}

/* The iterations of two sessions alternate. Only iterations of the same session may be
 * merged. */
TEST(two_sessions_are_not_mixed_up)
{
    struct esp_ring *ring;
    struct scene scene;
    CHECK(esp_ring_open(&ring, 16, 32) == 0);
    scene_open(&scene, 10, 10);
    scene_compare(&scene, "linear");
    for (int i = 0; i < 500; i++) {
        struct esp_iteration other = *scene_king(i);
        other.path_length = 1;
        other.committed_count = 2;
        write_iteration(ring, i);
        struct esp_event event = {.type = ESP_EVENT_ITERATION, .iteration = &other};
        CHECK(esp_ring_write_event(ring, &event, true) == 0);
        if (i % 100 == 50)
            drain(ring, &scene.state);
    }
    struct esp_snapshot *message = esp_ring_write(ring, ESP_SNAPSHOT_MESSAGE);
    CHECK(message);
    esp_ring_publish(ring);
    drain(ring, &scene.state);
    const struct esp_state *second = scene.state.compared;
    CHECK(scene.state.trace.since.iterations == 500 &&
          scene.state.trace.since.committed == 2000);
    CHECK(second->trace.since.iterations == 500 && second->trace.since.committed == 1000);
    CHECK(scene.state.span_count == 2000, "%d tokens", scene.state.span_count);
    CHECK(scene.state.trace.since.accepted == 1500 && second->trace.since.accepted == 500);
    CHECK(esp_state_kept(second, 0)->index == 499);
    scene_compare(&scene, "");
    CHECK(!scene.state.compared);
    scene_close(&scene);
    esp_ring_close(ring);
}

TEST(partial_trees_are_dropped_first)
{
    struct esp_ring *ring;
    struct esp_state state = {.tokens = {scene_text, NULL}};
    CHECK(esp_ring_open(&ring, 16, 32) == 0);
    struct esp_event layer = {.type = ESP_EVENT_LAYER, .iteration = scene_king(0)};
    for (int i = 0; i < 100; i++)
        CHECK(esp_ring_write_event(ring, &layer, false) == 0);
    write_iteration(ring, 1);
    struct esp_snapshot *message = esp_ring_write(ring, ESP_SNAPSHOT_MESSAGE);
    CHECK(message);
    strcpy(message->text, "said");
    esp_ring_publish(ring);
    drain(ring, &state);
    CHECK(state.trace.since.iterations == 1 && !state.has_partial);
    CHECK(strcmp(state.message, "said") == 0);
    esp_state_free(&state);
    esp_ring_close(ring);
}

static bool lies_in(const void *pointer, const struct esp_snapshot *snapshot)
{
    const char *at = pointer, *start = (const char *)snapshot;
    return at >= start && at < start + sizeof *snapshot;
}

/* Each snapshot must store the name of the drafter in its own memory, because the drafter may
 * be replaced later. */
TEST(every_snapshot_points_into_itself)
{
    struct esp_ring *ring;
    const struct esp_snapshot *snapshot;
    int seen = 0, merged = 0;
    CHECK(esp_ring_open(&ring, 16, 32) == 0);
    for (int i = 0; i < 600; i++) {
        struct esp_iteration it = *scene_king(i);
        char drafter[32], verifier[32];
        snprintf(drafter, sizeof drafter, "drafter %d", i);
        snprintf(verifier, sizeof verifier, "verifier %d", i);
        it.drafter = drafter;
        it.verifier = verifier;
        struct esp_event event = {.type = ESP_EVENT_ITERATION, .iteration = &it};
        CHECK(esp_ring_write_event(ring, &event, i % 3 == 2) == 0);
        for (int read = i % 40 < 30 ? 0 : 3; read > 0 && (snapshot = esp_ring_front(ring));
             read--) {
            const struct esp_iteration_copy *copy = &snapshot->iteration;
            snprintf(drafter, sizeof drafter, "drafter %d", copy->it.index);
            snprintf(verifier, sizeof verifier, "verifier %d", copy->it.index);
            CHECK(copy->it.drafter == copy->drafter && copy->it.verifier == copy->verifier &&
                  lies_in(copy->it.drafter, snapshot) && lies_in(copy->it.verifier, snapshot));
            CHECK(strcmp(copy->it.drafter, drafter) == 0, "%s, not %s", copy->it.drafter,
                  drafter);
            CHECK(strcmp(copy->it.verifier, verifier) == 0);
            CHECK(copy->it.tree.nodes == copy->nodes && copy->it.tree.order == copy->ids);
            merged += snapshot->totals.iterations > 1;
            seen++;
            esp_ring_pop(ring);
        }
    }
    CHECK(seen > 50 && merged > 5, "%d snapshots were seen, %d of them merged", seen, merged);
    esp_ring_close(ring);
}

struct shared {
    struct esp_ring *ring;
    struct esp_iteration it;
};

static void *write_many(void *user)
{
    struct shared *shared = user;
    struct esp_event event = {.type = ESP_EVENT_ITERATION, .iteration = &shared->it};
    for (int i = 0; i < 20000; i++)
        esp_ring_write_event(shared->ring, &event, false);
    return NULL;
}

TEST(the_reader_gets_what_the_writer_wrote)
{
    struct shared shared = {.it = *scene_king(0)};
    struct esp_state state = {.tokens = {scene_text, NULL}};
    pthread_t writer;
    CHECK(esp_ring_open(&shared.ring, 16, 32) == 0);
    CHECK(pthread_create(&writer, NULL, write_many, &shared) == 0);
    while (pthread_tryjoin_np(writer, NULL) != 0)
        drain(shared.ring, &state);
    struct esp_event end = {.type = ESP_EVENT_END, .text = "length"};
    drain(shared.ring, &state);
    CHECK(esp_ring_write_event(shared.ring, &end, false) == 0);
    drain(shared.ring, &state);
    CHECK(state.trace.since.iterations == 20000 && state.span_count == 80000);
    esp_state_free(&state);
    esp_ring_close(shared.ring);
}

TEST(a_writer_gives_up_when_the_reader_has_left)
{
    struct esp_ring *ring;
    CHECK(esp_ring_open(&ring, 8, 4) == 0);
    esp_ring_leave(ring);
    for (int i = 0; i < 8; i++) {
        CHECK(esp_ring_write(ring, ESP_SNAPSHOT_MESSAGE));
        esp_ring_publish(ring);
    }
    CHECK(!esp_ring_write(ring, ESP_SNAPSHOT_MESSAGE));
    esp_ring_close(ring);
}
