/* Tests recordings with errors. Each kind of error is refused with a message that names the
 * line, and unknown fields are ignored. The program must also survive reading and drawing
 * thousands of mutations of real recordings. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/folder.h"
#include "tui/view/keys.h"
#include "tests/recorded.h"
#include "tests/scene.h"

#define HEADER                                                                                 \
    "{\"format\":\"espalier-session\",\"version\":\"1.0\",\"vocabulary\":{\"size\":12}}\n"
#define PROMPT                                                                                 \
    "{\"t\":0,\"type\":\"prompt\",\"tokens\":[{\"id\":1,\"text\":\"a\"},{\"id\":2}]}\n"
#define ITERATION(members)                                                                     \
    "{\"t\":1,\"type\":\"iteration\",\"index\":0,\"position\":2" members "}\n"
#define SCORED ",\"nodes\":[{\"id\":2}],\"committed\":[{\"id\":5}]"
#define BONUS ",\"bonus\":{\"id\":5}"

static char err[512];

static int open_text(const char *text)
{
    struct esp_recording *recording;
    recorded_write(text, strlen(text));
    int status = esp_recording_open(&recording, recorded_path(), err, sizeof err);
    int events = status < 0 ? status : esp_recording_events(recording);
    esp_recording_close(status < 0 ? NULL : recording);
    return events;
}

/* ------------------------------------------------------------------ mistakes */

TEST(invalid_headers_are_refused)
{
    static const struct {
        const char *line, *sentence;
    } cases[] = {
        {"", "is empty"},
        {"\n", "not one JSON object"},
        {"hello\n", "not one JSON object"},
        {"[]\n", "not one JSON object"},
        {"{}\n", "not an espalier recording"},
        {"{\"format\":\"asciicast\",\"version\":2}\n", "not an espalier recording"},
        {"{\"format\":\"espalier-session\"}\n", "version"},
        {"{\"format\":\"espalier-session\",\"version\":\"one\"}\n", "version"},
        {"{\"format\":\"espalier-session\",\"version\":\"2.0\"}\n", "use a newer one"},
        {"{\"format\":\"espalier-session\",\"version\":\"0.9\"}\n", "use an older one"},
        {"{\"format\":\"espalier-session\",\"version\":\"1.0\",\"seed\":\"-1\"}\n", "seed"},
        {"{\"format\":\"espalier-session\",\"version\":\"1.0\",\"seed\":\"1e5\"}\n", "seed"},
        {"{\"format\":\"espalier-session\",\"version\":\"1.0\",\"vocabulary\":{\"size\":-3}}\n",
         "size must be a whole number"},
        {"{\"format\":\"espalier-session\",\"version\":\"1.0\"", "not one JSON object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(open_text(cases[i].line) < 0, "accepted: %s", cases[i].line);
        CHECK(strstr(err, cases[i].sentence) && strstr(err, "session.esp.jsonl"), "%s: %s",
              cases[i].line, err);
    }
    CHECK(open_text("{\"format\":\"espalier-session\",\"version\":\"1.7\",\"new\":[]}\n") == 0,
          "%s", err);
    struct esp_recording *recording;
    CHECK(esp_recording_open(&recording, "/nowhere.esp.jsonl", err, sizeof err) < 0 &&
          strstr(err, "/nowhere.esp.jsonl"));
    CHECK(esp_recording_open(&recording, "/", err, sizeof err) < 0 &&
          strstr(err, "not a regular file"));
}

TEST(invalid_events_are_refused_with_their_line)
{
    static const struct {
        const char *line, *sentence;
    } cases[] = {
        {"\n", "not one JSON object"},
        {"{} {}\n", "not one JSON object"},
        {"{\"type\":\"marker\"}\n", "no time"},
        {"{\"t\":-1,\"type\":\"marker\"}\n", "t must be a number"},
        {"{\"t\":1e999,\"type\":\"marker\"}\n", "t must be a number"},
        {"{\"t\":\"1\",\"type\":\"marker\"}\n", "t must be a number"},
        {"{\"t\":1,\"type\":\"prompt\",\"tokens\":[{\"id\":12}]}\n", "id must be"},
        {"{\"t\":1,\"type\":\"prompt\",\"tokens\":[{\"id\":1.5}]}\n", "id must be"},
        {"{\"t\":1,\"type\":\"prompt\",\"tokens\":[{\"id\":-1}]}\n", "id must be"},
        {"{\"t\":1,\"type\":\"prompt\",\"tokens\":[7]}\n", "id must be"},
        {"{\"t\":1,\"type\":\"prompt\",\"tokens\":{}}\n", "must be an array"},
        {"{\"t\":1,\"type\":\"prompt\",\"tokens\":[{\"id\":4,\"bytes\":\"f\"}]}\n",
         "hexadecimal"},
        {"{\"t\":1,\"type\":\"prompt\",\"tokens\":[{\"id\":4,\"bytes\":\"0x\"}]}\n",
         "hexadecimal"},
        {"{\"t\":1,\"type\":\"rewind\",\"count\":3}\n", "does not fit the length of the text"},
        {"{\"t\":1,\"type\":\"rewind\"}\n", "count must be"},
        {"{\"t\":1,\"type\":\"drop\",\"start\":0,\"count\":99}\n",
         "does not fit the length of the text"},
        {"{\"t\":1,\"type\":\"drop\",\"start\":99,\"count\":1}\n",
         "does not fit the length of the text"},
        {"{\"t\":1,\"type\":\"drop\",\"start\":0,\"count\":0}\n", "count must be"},
        {"{\"t\":1,\"type\":\"prompt\",\"tokens\":[{\"id\":1,\"text\":\"a\"}],\"marks\":2}\n",
         "marks must be"},
        {ITERATION(BONUS SCORED ",\"scores\":{}"), "scores must be an array"},
        {ITERATION(BONUS SCORED ",\"scores\":[{},{}]"), "an entry for each committed token"},
        {ITERATION(BONUS SCORED ",\"scores\":[{\"p\":2}]"), "p must be a number"},
        {ITERATION(BONUS SCORED ",\"scores\":[{\"rank\":9}]"), "rank must be"},
        {ITERATION(BONUS SCORED ",\"scores\":[{\"rank\":2,\"likely\":[{\"id\":5,\"p\":1}]}]"),
         "one of the likely tokens"},
        {ITERATION(BONUS SCORED ",\"scores\":[{\"entropy\":-1}]"), "entropy must be"},
        {ITERATION(BONUS SCORED ",\"scores\":[{\"likely\":[{\"id\":12,\"p\":1}]}]"),
         "id must be"},
        {ITERATION(BONUS SCORED ",\"scores\":[{\"likely\":[7]}]"), "id must be"},
        {ITERATION(BONUS SCORED ",\"scores\":[{\"likely\":[{},{},{},{},{},{},{},{},{}]}]"),
         "at most 8"},
        {ITERATION(BONUS), "at least one node"},
        {ITERATION(",\"nodes\":[{\"id\":2}]"), "id must be"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2},{\"id\":3,\"parent\":1}]"), "parent must be"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2},{\"id\":3}]"), "parent must be"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2},{\"id\":3,\"parent\":0,\"depth\":2}]"),
         "depth must be"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2,\"q\":2}]"), "q must be"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2,\"value\":1e300}]"), "value must be"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2,\"verdict\":\"maybe\"}]"), "verdict must be"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2}],\"order\":[0,0]"), "order has 2 entries"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2},{\"id\":3,\"parent\":0}],\"order\":[1,0]"),
         "parents first"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2},{\"id\":3,\"parent\":0}],\"order\":[0,0]"),
         "parents first"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2},{\"id\":3,\"parent\":0,\"verdict\":\"cut\"}],"
                         "\"order\":[0,1]"),
         "parents first"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2},{\"id\":3,\"parent\":0}],\"order\":[0],"
                         "\"path\":[1]"),
         "nodes that order lists"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2},{\"id\":3,\"parent\":0}],\"path\":[0]"),
         "from node to child"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2},{\"id\":3,\"parent\":0}],\"path\":[2]"),
         "path must be a whole number"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2}],\"committed\":[{\"id\":4}]"),
         "path, followed by bonus"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2},{\"id\":3,\"parent\":0}],"
                         "\"committed\":[{\"id\":5},{\"id\":5}]"),
         "committed has more tokens than path and bonus"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2}],"
                         "\"gauges\":[{},{},{},{},{},{},{},{},{},{},{},{},{}]"),
         "gauges has 13 entries"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2}],\"gauges\":[{\"name\":"
                         "\"a name that is much too long to be that of a gauge\"}]"),
         "names of gauges"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2}],\"layers\":[{\"nodes\":2,\"passes\":1}]"),
         "nodes must be"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2}],\"layers\":[{\"nodes\":1,\"passes\":1,"
                         "\"was\":[1]}]"),
         "was must be"},
        {ITERATION(BONUS ",\"nodes\":[{\"id\":2}],\"seconds\":{\"draft\":-1}"),
         "draft must be"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        snprintf(text, sizeof text, "%s%s%s%s", HEADER, PROMPT, cases[i].line, PROMPT);
        CHECK(open_text(text) < 0, "accepted: %s", cases[i].line);
        CHECK(strstr(err, cases[i].sentence) && strstr(err, "line 3 of "), "%s: %s",
              cases[i].line, err);
    }
}

TEST(unknown_fields_are_ignored)
{
    CHECK(
        open_text(HEADER
                  "{\"t\":0,\"type\":\"dance\",\"steps\":[1,2]}\n" PROMPT "{\"type\":7}\n{}\n"
                  "{\"t\":1,\"type\":\"marker\",\"text\":\"a\",\"colour\":\"red\"}\n" ITERATION(
                      BONUS ",\"nodes\":[{\"id\":2,\"reason\":\"whim\",\"new\":1}]")) == 3,
        "%s", err);
}

TEST(lines_too_long_or_too_deep_are_refused)
{
    size_t size = 3u << 20;
    char *text = malloc(size + 1);
    CHECK(text);
    int n = snprintf(text, size, HEADER "{\"t\":1,\"type\":\"marker\",\"text\":\"");
    memset(text + n, 'x', size - (size_t)n);
    text[size] = '\0';
    CHECK(open_text(text) < 0 && strstr(err, "line 2 of") && strstr(err, "longer than"), "%s",
          err);
    memcpy(text + n + ESP_RECORDING_LINE, "\"}\n", 4);
    CHECK(open_text(text) < 0 && strstr(err, "line 2 of") && strstr(err, "longer than"), "%s",
          err);
    for (int depth = 60; depth <= 70; depth++) {
        n = snprintf(text, size, HEADER "{\"t\":1,\"type\":\"marker\",\"deep\":");
        memset(text + n, '[', (size_t)depth);
        memset(text + n + depth, ']', (size_t)depth);
        strcpy(text + n + 2 * depth, "}\n");
        int events = open_text(text);
        CHECK(depth < ESP_RECORDING_DEPTH ? events == 1 : events < 0, "depth %d: %s", depth + 1,
              err);
    }
    free(text);
}

TEST(a_file_that_changes_is_noticed)
{
    const struct esp_event *event;
    recorded_session(NULL, "linear", 0, 5);
    struct esp_recording *recording = recorded_open();
    int last = esp_recording_events(recording) - 1;
    CHECK(truncate(recorded_path(), 2000) == 0);
    CHECK(esp_recording_read(recording, last, &event, err, sizeof err) < 0 &&
              strstr(err, "has changed"),
          "%s", err);
    esp_recording_close(recording);
}

/* ------------------------------------------------------------------ mutations */

/* Shows an event as the interface does. */
static void show(struct scene *scene, const struct esp_event *event)
{
    struct esp_snapshot snapshot = {.type = 0};
    if (esp_snapshot_take(&snapshot, event) == 0)
        esp_state_apply(&scene->state, &snapshot);
    esp_ui_act(&scene->ui, &scene->state, ESP_ACTION_NEXT_PANE, 100, 30);
    esp_ui_draw(&scene->canvas, &scene->ui, &scene->state);
    esp_snapshot_free(&snapshot);
}

/* Opens `bytes`, which need not be valid, as a recording. Reads and draws the events. Returns
 * how many events were shown. */
static int fuzz(const uint8_t *bytes, size_t length)
{
    char path[64];
    struct esp_recording *recording;
    struct scene scene;
    int shown = 0, fd = memfd_create("recording", MFD_CLOEXEC);
    CHECK(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int status = esp_recording_open(&recording, path, err, sizeof err);
    close(fd);
    if (status < 0)
        return 0;
    scene_open(&scene, 100, 30);
    scene.state.tokens = (struct esp_tokens){esp_recording_token_text, recording};
    for (int e = 0; e < esp_recording_events(recording); e++) {
        const struct esp_text_token *text;
        const struct esp_event *event;
        CHECK(esp_recording_read(recording, e, &event, err, sizeof err) == 0, "%s", err);
        CHECK(esp_recording_text(recording, e, &text) >= 0);
        for (int step = 0; step < esp_recording_steps(recording); step++)
            show(&scene, esp_recording_step(recording, step));
        show(&scene, event);
        shown++;
    }
    scene_close(&scene);
    esp_recording_close(recording);
    return shown;
}

/* A fuzzer found this case: the first iterations of a recording have no arrays, so the reader
 * has not allocated memory yet. The reader must not compute a pointer from a null pointer, and
 * must give even an empty array an address. */
TEST(iterations_without_arrays_are_read)
{
    static const char empty[] = HEADER ITERATION(BONUS ",\"nodes\":[{\"id\":2}]");
    const struct esp_text_token *added = NULL;
    const struct esp_event *event;
    struct esp_iteration_copy copy = {.node_capacity = 0};
    recorded_write(empty, strlen(empty));
    struct esp_recording *recording = recorded_open();
    CHECK(esp_recording_added(recording, 0, &added) == 0 && !added);
    CHECK(esp_recording_read(recording, 0, &event, err, sizeof err) == 0, "%s", err);
    const struct esp_iteration *it = event->iteration;
    CHECK(it->tree.order && it->path && it->committed);
    CHECK(esp_iteration_copy(&copy, it) == 0);
    CHECK(copy.it.tree.order && copy.it.path && copy.it.committed);
    esp_iteration_free(&copy);
    esp_recording_close(recording);
    for (int i = 1; i <= 3; i++) {
        char relative[64];
        snprintf(relative, sizeof relative, "vectors/recordings/no-arrays-%d.esp.jsonl", i);
        struct folder_bytes bytes = folder_read(check_path(relative));
        CHECK(fuzz((const uint8_t *)bytes.data, bytes.size) > 0, "%s: %s", relative, err);
        free(bytes.data);
    }
}

static size_t below(unsigned long long *random, size_t limit)
{
    return (size_t)(check_uniform(random) * (double)limit);
}

/* Replaces the first number at or after a random offset. Returns the new length. */
static size_t replace_number(char *bytes, size_t length, unsigned long long *random)
{
    static const char *const numbers[] = {"-1", "0",    "4095",       "2147483648", "1e999",
                                          "-0", "1e-9", "0.99999999", "null",       "[]",
                                          "1",  "2",    "true",       "{}",         "7"};
    const char *to = numbers[below(random, sizeof numbers / sizeof *numbers)];
    size_t at = below(random, length);
    at += strcspn(bytes + at, "0123456789");
    size_t old = strspn(bytes + at, "0123456789.e-"), new = strlen(to);
    if (old == 0)
        return length;
    memmove(bytes + at + new, bytes + at + old, length - at - old + 1);
    memcpy(bytes + at, to, new);
    return length + new - old;
}

/* Makes one random change, and returns the new length. `bytes` has room for 2 * `length` bytes
 * and ends with a NUL. */
static size_t mutate(char *bytes, size_t length, unsigned long long *random)
{
    size_t from = below(random, length), count = below(random, 40), to = below(random, length);
    switch (below(random, 6)) {
    case 0:
        bytes[from] = (char)(1 + below(random, 255));
        return length;
    case 1: /* removes a part */
        count = from + count > length ? length - from : count;
        memmove(bytes + from, bytes + from + count, length - from - count + 1);
        return length - count;
    case 2: /* copies a part to another place */
        count = from + count > length ? length - from : count;
        count = to + count > length ? length - to : count;
        memmove(bytes + to, bytes + from, count);
        return length;
    default:
        return replace_number(bytes, length, random);
    }
}

TEST(no_mutation_of_a_recording_does_harm)
{
    static const char *const drafters[] = {"dynatree", "dyspec:N=12", "iid", "salf:N=12"};
    unsigned long long random = 17;
    const char *wanted = getenv("ESPALIER_FUZZ"); /* the number of trials of a long run */
    int shown = 0, trials = wanted ? atoi(wanted) : check_quick() ? 2000 : 6000;
    for (int d = 0; d < 4; d++) {
        size_t length;
        recorded_session(NULL, drafters[d], d % 2, 2);
        char *bytes = recorded_read(&length), *changed = malloc(2 * length + 64);
        CHECK(changed);
        CHECK(fuzz((const uint8_t *)bytes, length) > 3);
        for (int trial = 0; trial < trials / 4; trial++) {
            size_t size = length;
            memcpy(changed, bytes, length + 1);
            for (size_t n = 1 + below(&random, 4); n > 0; n--)
                size = mutate(changed, size, &random);
            shown += fuzz((const uint8_t *)changed, size);
        }
        free(changed);
        free(bytes);
    }
    CHECK(shown > trials / 2, "only %d events could be read and were shown", shown);
}
