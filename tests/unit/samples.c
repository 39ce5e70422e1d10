/* Tests the sample recordings. They must open without any model, and every event and step must
 * be readable. They must contain what sessions/samples/README.md describes. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "sessions/recording.h"

static char err[512];

static const char *sample_path(const char *name)
{
    static char relative[256];
    snprintf(relative, sizeof relative, "../sessions/samples/%.200s.esp.jsonl", name);
    return check_path(relative);
}

static struct esp_recording *open_sample(const char *name)
{
    struct esp_recording *recording;
    CHECK(esp_recording_open(&recording, sample_path(name), err, sizeof err) == 0, "%s", err);
    return recording;
}

static const struct esp_iteration *iteration(struct esp_recording *recording, int index)
{
    const struct esp_event *event;
    int at = esp_recording_iteration_event(recording, index);
    CHECK(esp_recording_read(recording, at, &event, err, sizeof err) == 0, "%s", err);
    CHECK(event->iteration->index == index);
    return event->iteration;
}

static double gauge(const struct esp_iteration *it, const char *name)
{
    for (int i = 0; i < it->gauge_count; i++)
        if (strcmp(it->gauges[i].name, name) == 0)
            return it->gauges[i].after;
    check_fail(__FILE__, __LINE__, " there is no gauge %s", name);
}

/* Reads all events of the recording. Returns the number of tokens in its text. */
static int read_all(struct esp_recording *recording, const char *name)
{
    const struct esp_text_token *text;
    const struct esp_event *event;
    int events = esp_recording_events(recording);
    CHECK(!esp_recording_is_cut(recording) && events > 10, "%s", name);
    for (int e = 0; e < events; e++) {
        CHECK(esp_recording_read(recording, e, &event, err, sizeof err) == 0, "%s", err);
        for (int step = 0; step < esp_recording_steps(recording); step++)
            CHECK(esp_recording_step(recording, step), "%s event %d step %d", name, e, step);
    }
    int count = esp_recording_text(recording, events - 1, &text);
    for (int i = 0; i < count; i++) {
        size_t length;
        CHECK(esp_recording_token_text(recording, text[i].token, &length) && length > 0,
              "%s: token %d has no text", name, text[i].token);
    }
    return count;
}

TEST(all_recordings_can_be_read_without_models)
{
    DIR *folder = opendir(check_path("../sessions/samples"));
    struct dirent *entry;
    int count = 0;
    CHECK(folder);
    while ((entry = readdir(folder))) {
        char name[256];
        char *end = strstr(entry->d_name, ".esp.jsonl");
        if (!end)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(end - entry->d_name), entry->d_name);
        struct esp_recording *recording = open_sample(name);
        CHECK(read_all(recording, name) > 40, "%s", name);
        esp_recording_close(recording);
        count++;
    }
    closedir(folder);
    CHECK(count >= 5, "%d recordings", count);
}

TEST(dynatree_adapts)
{
    struct esp_recording *recording = open_sample("dynatree-adapting");
    CHECK(esp_recording_iterations(recording) == 74);
    for (int i = 0; i < 74; i++) {
        const struct esp_iteration *it = iteration(recording, i);
        CHECK(i >= 11 || (gauge(it, "D0") > 5 && gauge(it, "D0") < 5.5), "iteration %d", i);
        CHECK(i < 11 || i > 40 || it->path_length == 0, "iteration %d", i);
        CHECK(i < 44 || it->path_length == it->deepest, "iteration %d", i);
        CHECK(i < 30 || i > 48 || gauge(it, "D0") == 1, "iteration %d", i);
    }
    CHECK(gauge(iteration(recording, 48), "tauh") == 1);
    CHECK(gauge(iteration(recording, 48), "rhodeep") == 1);
    CHECK(gauge(iteration(recording, 73), "D0") > 4.4);
    CHECK(iteration(recording, 73)->deepest == 3);
    esp_recording_close(recording);
}

TEST(traversal_accepts_an_unlikely_path_at_once)
{
    struct esp_recording *recording = open_sample("traversal-sampling");
    CHECK(esp_recording_header(recording)->values.temperature == 1);
    CHECK(esp_recording_iterations(recording) == 20);
    for (int i = 0; i < 20; i++)
        CHECK(iteration(recording, i)->tree.verified <= 17);
    CHECK(iteration(recording, 2)->path_length == 0);
    const struct esp_iteration *it = iteration(recording, 5);
    CHECK(it->path_length == 4 && it->tree.nodes[it->path[0]].q < 0.01);
    esp_recording_close(recording);
}

/* Compares the texts of two recordings. Returns the number of iterations in the second one. */
static int same_text(const char *name, const char *other)
{
    struct esp_recording *a = open_sample(name), *b = open_sample(other);
    const struct esp_text_token *first, *second;
    int count = esp_recording_text(a, esp_recording_events(a) - 1, &first);
    CHECK(count == esp_recording_text(b, esp_recording_events(b) - 1, &second));
    for (int i = 0; i < count; i++)
        CHECK(first[i].token == second[i].token, "token %d", i);
    int iterations = esp_recording_iterations(b);
    esp_recording_close(a);
    esp_recording_close(b);
    return iterations;
}

TEST(a_tree_writes_the_same_text_in_fewer_iterations)
{
    CHECK(same_text("same-text-tree", "same-text-linear") == 25);
    CHECK(same_text("same-text-linear", "same-text-tree") == 20);
    CHECK(same_text("same-text-linear", "salf") == 23);
}

TEST(dyspec_follows_the_drafts_certainty)
{
    struct esp_recording *recording = open_sample("dyspec");
    CHECK(esp_recording_iterations(recording) == 21);
    for (int i = 0; i < 21; i++)
        CHECK(iteration(recording, i)->tree.verified == 21);
    CHECK(iteration(recording, 7)->deepest == 1);
    CHECK(iteration(recording, 9)->deepest == 4);
    esp_recording_close(recording);
}

TEST(salf_stops_early)
{
    struct esp_recording *recording = open_sample("salf");
    int low = 0;
    CHECK(esp_recording_iterations(recording) == 23);
    CHECK(iteration(recording, 0)->draft_passes == 3);
    CHECK(iteration(recording, 3)->draft_passes == 1);
    for (int i = 0; i < 23; i++) {
        const struct esp_tree *tree = &iteration(recording, i)->tree;
        for (int j = 0; j < tree->count; j++)
            low += tree->nodes[j].reason == ESP_REASON_GAIN;
    }
    CHECK(low > 400);
    esp_recording_close(recording);
}
