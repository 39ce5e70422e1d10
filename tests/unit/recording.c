/* Tests recordings. Every event and every step of every drafter must be read back bit for bit,
 * and so must events with random content. The index must have the text and the sums, and
 * seeking must be fast. */
#include "sessions/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>

#include "tests/check.h"
#include "sessions/event_json.h"
#include "engine/drafters/drafter.h"
#include "tests/recorded.h"

static char err[512];

static const struct esp_event *read_event(struct esp_recording *recording, int event)
{
    const struct esp_event *found = NULL;
    CHECK(esp_recording_read(recording, event, &found, err, sizeof err) == 0, "%s", err);
    return found;
}

/* ------------------------------------------------------------------ session and file */

/* Compares two events that are not iterations. */
static void same_event(const struct esp_event *got, const struct recorded_event *want,
                       const char *what)
{
    CHECK(got->type == want->type, "%s: type %d, not %d", what, got->type, want->type);
    CHECK(got->token_count == want->token_count, "%s: %d tokens, not %d", what,
          got->token_count, want->token_count);
    if (want->type == ESP_EVENT_PROMPT)
        CHECK(memcmp(got->tokens, want->tokens,
                     (size_t)want->token_count * sizeof *want->tokens) == 0,
              "%s: another prompt", what);
    CHECK(strcmp(got->key ? got->key : "", want->key) == 0 &&
              strcmp(got->text ? got->text : "", want->text) == 0,
          "%s: %s %s", what, want->key, want->text);
}

/* Compares each event of the file with the same event of the session. In the session, the steps
 * of an iteration come before the iteration. */
static void compare(struct esp_recording *recording, const struct recorded_events *events,
                    const char *drafter)
{
    int at = 0;
    char what[128];
    for (int e = 0; e < esp_recording_events(recording); e++) {
        const struct esp_event *event = read_event(recording, e);
        int steps = esp_recording_steps(recording);
        for (int step = 0; step < steps; step++, at++) {
            const struct recorded_event *want = events->event[at];
            const struct esp_event *got = esp_recording_step(recording, step);
            snprintf(what, sizeof what, "%s event %d step %d", drafter, e, step);
            CHECK(at < events->count && got, "%s: there is none", what);
            CHECK(got->type == want->type && got->stage == want->stage,
                  "%s: type %d stage %d, not %d %d", what, got->type, got->stage, want->type,
                  want->stage);
            recorded_same(got->iteration, &want->iteration.it, what);
        }
        snprintf(what, sizeof what, "%s event %d", drafter, e);
        CHECK(at < events->count, "%s: the session had %d events, but the file has more", what,
              events->count);
        if (steps > 0) {
            CHECK(events->event[at]->type == ESP_EVENT_ITERATION, "%s", what);
            recorded_same(event->iteration, &events->event[at]->iteration.it, what);
        } else {
            same_event(event, events->event[at], what);
        }
        at++;
    }
    CHECK(at == events->count, "%s: %d of %d events", drafter, at, events->count);
}

TEST(the_reader_returns_the_recorded_events)
{
    struct esp_item item;
    for (int i = 0; esp_item(ESP_DRAFTERS, i, &item); i++)
        for (int t = 0; t < 2 && !esp_drafter_find(item.name)->chooser; t++) {
            struct recorded_events events = {.count = 0};
            recorded_session(&events, item.name, t, 12);
            struct esp_recording *recording = recorded_open();
            CHECK(!esp_recording_is_cut(recording));
            compare(recording, &events, item.name);
            esp_recording_close(recording);
            recorded_forget(&events);
        }
}

TEST(events_can_be_read_in_any_order)
{
    struct recorded_events events = {.count = 0};
    unsigned long long random = 7;
    recorded_session(&events, "salf", 0, 30);
    struct esp_recording *recording = recorded_open();
    for (int trial = 0; trial < 200; trial++) {
        int wanted = (int)(check_uniform(&random) * 30), seen = -1;
        int event = esp_recording_iteration_event(recording, wanted);
        for (int i = 0; i < events.count; i++) {
            seen += events.event[i]->type == ESP_EVENT_ITERATION;
            if (seen == wanted) {
                recorded_same(read_event(recording, event)->iteration,
                              &events.event[i]->iteration.it, "salf");
                break;
            }
        }
        CHECK(seen == wanted && esp_recording_entry(recording, event).iterations == wanted);
    }
    esp_recording_close(recording);
    recorded_forget(&events);
}

/* While a page is exported, a second reader reads the recording. The screen continues to use
 * the first reader. */
TEST(two_readers_do_not_disturb_each_other)
{
    struct recorded_events events = {.count = 0};
    struct esp_recording *again;
    recorded_session(&events, "dynatree", 0, 20);
    struct esp_recording *recording = recorded_open();
    const struct esp_event *first =
        read_event(recording, esp_recording_iteration_event(recording, 19));
    CHECK(unlink(recorded_path()) == 0);
    recorded_write("another file\n", 13);
    CHECK(esp_recording_open_again(&again, recording, err, sizeof err) == 0, "%s", err);
    CHECK(first->iteration->index == 19, "the first reader's event is still valid");
    compare(again, &events, "the second reader");
    esp_recording_close(again);
    compare(recording, &events, "the first reader");
    esp_recording_close(recording);
    recorded_forget(&events);
}

/* ------------------------------------------------------------------ texts, sums, header */

TEST(token_texts_are_read_byte_for_byte)
{
    recorded_session(NULL, "eagle2", 0, 30);
    struct esp_recording *recording = recorded_open();
    int known = 0;
    for (int32_t token = 0; token < 12; token++) {
        size_t length = 0, wanted = 0;
        const char *want = recorded_token(NULL, token, &wanted);
        const char *got = esp_recording_token_text(recording, token, &length);
        CHECK(!got == !want, "token %d", token);
        if (got)
            CHECK(length == wanted && memcmp(got, want, length) == 0, "token %d", token);
        known += got != NULL;
    }
    CHECK(known == 11, "%d tokens have a text", known);
    esp_recording_close(recording);
}

TEST(the_first_text_of_a_token_stays)
{
    struct esp_texts texts = {.count = 0};
    size_t length = 0;
    for (int i = 0; i < 3; i++)
        CHECK(esp_texts_add(&texts, 7, i ? "another" : "first", i ? 7 : 5) == 0);
    const char *found = esp_texts_find(&texts, 7, &length);
    CHECK(found && length == 5 && memcmp(found, "first", 5) == 0 && texts.byte_count == 5);
    CHECK(!esp_texts_find(&texts, 8, &length));
    esp_texts_free(&texts);
}

TEST(the_index_knows_text_and_baseline)
{
    static const struct esp_text_token *text;
    recorded_session(NULL, "dynatree", 1, 40);
    struct esp_recording *recording = recorded_open();
    int32_t want[1024], count = 0, rewound = 0, iterations = 0;
    double baseline = 0;
    CHECK(esp_recording_text(recording, -1, &text) == 0);
    for (int e = 0; e < esp_recording_events(recording); e++) {
        const struct esp_event *event = read_event(recording, e);
        const struct esp_iteration *it = event->iteration;
        if (event->type == ESP_EVENT_REWIND) {
            count = event->token_count;
            rewound++;
        }
        for (int i = 0; event->type == ESP_EVENT_PROMPT && i < event->token_count; i++)
            want[count++] = event->tokens[i];
        for (int i = 0; it && i < it->committed_count; i++)
            want[count++] = it->committed[i];
        iterations += it != NULL;
        if (it && it->baseline > 0)
            baseline = it->baseline;
        CHECK(esp_recording_text(recording, e, &text) == count, "event %d", e);
        for (int i = 0; i < count; i++)
            CHECK(text[i].token == want[i], "event %d token %d", e, i);
        CHECK(esp_recording_iterations_of_text(recording, e) == iterations, "event %d", e);
        CHECK(esp_recording_baseline(recording, e) == baseline, "event %d", e);
    }
    CHECK(rewound == 1 && iterations == 40);
    esp_recording_close(recording);
}

TEST(a_cleared_text_starts_empty)
{
    static const char lines[] =
        "{\"format\":\"espalier-session\",\"version\":\"1.0\"}\n"
        "{\"t\":0,\"type\":\"prompt\",\"tokens\":[{\"id\":1},{\"id\":2},{\"id\":3}]}\n"
        "{\"t\":1,\"type\":\"iteration\",\"index\":0,\"position\":3,\"nodes\":[{\"id\":3}],"
        "\"bonus\":{\"id\":4},\"committed\":[{\"id\":4}],\"order\":[0],\"baseline\":0.5}\n"
        "{\"t\":2,\"type\":\"rewind\",\"count\":2}\n"
        "{\"t\":3,\"type\":\"prompt\",\"tokens\":[{\"id\":9}]}\n"
        "{\"t\":4,\"type\":\"clear\"}\n"
        "{\"t\":5,\"type\":\"prompt\",\"tokens\":[{\"id\":7}]}\n"
        "{\"t\":6,\"type\":\"iteration\",\"index\":0,\"position\":1,\"nodes\":[{\"id\":7}],"
        "\"bonus\":{\"id\":8},\"committed\":[{\"id\":8}],\"order\":[0]}\n";
    static const int wanted[][5] = {{3, 1, 2, 3}, {4, 1, 2, 3, 4}, {2, 1, 2}, {3, 1, 2, 9},
                                    {0},          {1, 7},          {2, 7, 8}};
    const struct esp_text_token *text;
    recorded_write(lines, sizeof lines - 1);
    struct esp_recording *recording = recorded_open();
    CHECK(esp_recording_events(recording) == 7 && esp_recording_iterations(recording) == 2);
    for (int e = 6; e >= 0; e--) {
        CHECK(esp_recording_text(recording, e, &text) == wanted[e][0], "event %d", e);
        for (int i = 0; i < wanted[e][0]; i++)
            CHECK(text[i].token == wanted[e][i + 1], "event %d token %d", e, i);
    }
    static const struct {
        int iterations;
        double baseline;
    } wanted_sums[] = {{0, 0}, {1, 0.5}, {1, 0.5}, {1, 0.5}, {0, 0.5}, {0, 0.5}, {1, 0.5}};
    CHECK(esp_recording_baseline(recording, -1) == 0);
    for (int e = 0; e < 7; e++)
        CHECK(esp_recording_iterations_of_text(recording, e) == wanted_sums[e].iterations &&
                  esp_recording_baseline(recording, e) == wanted_sums[e].baseline,
              "event %d", e);
    esp_recording_close(recording);
}

TEST(the_header_is_read_as_written)
{
    struct esp_recording_header header = {
        .target = {"a \"target\"", "llama", "bf16", 123456789012},
        .draft = {"draft", "gpt_neox", "f16", 7},
        .vocabulary = 12,
        .context = 512,
        .vocabulary_hash = "fnv1a:0123456789abcdef",
        .drafter = "dynatree:tau=0.05",
        .verifier = "traversal",
        .lossy = true,
        .values = {.temperature = 0.1,
                   .draft_temp = 0.7,
                   .top_p = 1.0 / 3,
                   .top_k = 40,
                   .seed = UINT64_MAX,
                   .order = 2,
                   .baseline = true},
        .backend = "cpu",
        .device = "AVX-512, 2 threads",
        .load_seconds = 0.123456789012345678,
        .columns = 120,
        .rows = 36,
    };
    struct esp_recorder_options options = {.path = recorded_path(), .force = true};
    struct esp_recorder *recorder;
    CHECK(esp_recorder_open(&recorder, &options, &header, err, sizeof err) == 0, "%s", err);
    CHECK(esp_recorder_close(recorder, err, sizeof err) == 0, "%s", err);
    struct esp_recording *recording = recorded_open();
    const struct esp_recording_header *got = esp_recording_header(recording);
    header.major = 1;
    snprintf(header.program, sizeof header.program, "espalier %s", ESP_VERSION);
    CHECK(strlen(got->started) == strlen("2024-01-31T12:00:00Z"));
    snprintf(header.started, sizeof header.started, "%s", got->started);
    CHECK(memcmp(got, &header, sizeof header) == 0);
    esp_recording_close(recording);
}

/* ------------------------------------------------------------------ random events */

static float random_float(unsigned long long *random, float missing)
{
    double kind = check_uniform(random);
    union {
        uint32_t bits;
        float value;
    } any = {.bits = (uint32_t)(check_uniform(random) * 0x3f800000u)};
    return kind < 0.2 ? missing : kind < 0.3 ? 0 : kind < 0.4 ? 1 : any.value;
}

static double random_double(unsigned long long *random)
{
    double x = check_uniform(random) + check_uniform(random) * 0x1p-53;
    return ldexp(x, (int)(check_uniform(random) * 1000) - 980);
}

struct random_iteration {
    struct esp_iteration it;
    struct esp_node nodes[64];
    int32_t order[64], path[64], committed[65];
};

static void make_tree(struct random_iteration *r, int count, unsigned long long *random)
{
    int at = 0;
    for (int i = 0; i < count; i++) {
        int parent = i == 0 ? -1 : (int)(check_uniform(random) * i);
        struct esp_node *node = &r->nodes[i];
        *node = (struct esp_node){
            .token = (int)(check_uniform(random) * INT32_MAX),
            .parent = parent,
            .depth = i == 0 ? 0 : r->nodes[parent].depth + 1,
            .rank = (int)(check_uniform(random) * 5),
            .copies = 1 + (int)(check_uniform(random) * 3),
            .copied = check_uniform(random) < 0.2 ? (int)(check_uniform(random) * 90) : 0,
            .q = random_float(random, NAN),
            .cumulative_log_q = -1e6f * random_float(random, INFINITY),
            .confidence = random_float(random, NAN),
            .value = random_float(random, NAN),
            .p = random_float(random, NAN),
            .u = random_float(random, NAN),
            .acceptance = random_float(random, NAN),
            .branching = random_float(random, NAN),
            .acceptance_rate = random_float(random, NAN),
            .ceiling = random_float(random, NAN),
            .drawn = check_uniform(random) < 0.1,
            .verdict = (uint8_t)(check_uniform(random) * 4),
            .reason = (uint8_t)(check_uniform(random) * (ESP_REASON_CONFIDENCE + 1)),
        };
        if (i > 0 && r->nodes[parent].verdict == ESP_CUT)
            node->verdict = ESP_CUT;
        if (i == 0 || (parent == at && node->verdict != ESP_CUT))
            node->verdict = ESP_ACCEPTED;
        if (i > 0 && parent == at && node->verdict == ESP_ACCEPTED)
            r->path[r->it.path_length++] = at = i;
        if (node->verdict != ESP_CUT)
            r->order[r->it.tree.verified++] = i;
    }
    r->it.tree.nodes = r->nodes;
    r->it.tree.order = r->order;
    r->it.tree.count = count;
}

static void make_iteration(struct random_iteration *r, unsigned long long *random)
{
    static const char *const names[] = {"tauh", "D0", "mean \"a\""};
    struct esp_iteration *it = &r->it;
    *it = (struct esp_iteration){
        .index = (int)(check_uniform(random) * 1e6),
        .position = (int)(check_uniform(random) * 1e6),
        .path = r->path,
        .bonus = (int)(check_uniform(random) * INT32_MAX),
        .bonus_u = random_float(random, NAN),
        .committed = r->committed,
        .deepest = (int)(check_uniform(random) * 60),
        .draft_passes = (int)(check_uniform(random) * 60),
        .target_passes = 1,
        .mask_blocks = (int)(check_uniform(random) * 60),
        .state_bytes = check_uniform(random) < 0.5 ? 0 : 1234567890123,
        .state_read = (int64_t)(check_uniform(random) * 1e12),
        .state_written = (int64_t)(check_uniform(random) * 1e12),
        .gauge_count = (int)(check_uniform(random) * 4),
        .baseline = check_uniform(random) < 0.5 ? 0 : random_double(random),
        .drafter = "some\tdrafter",
        .verifier = "greedy",
        .lossy = check_uniform(random) < 0.5,
    };
    make_tree(r, 1 + (int)(check_uniform(random) * 63), random);
    it->committed_count = (int)(check_uniform(random) * (it->path_length + 2));
    for (int i = 0; i < it->committed_count; i++)
        r->committed[i] = i < it->path_length ? r->nodes[r->path[i]].token : it->bonus;
    for (int i = 0; i < it->gauge_count; i++)
        it->gauges[i] = (struct esp_gauge){names[i], random_double(random), NAN,
                                           -random_double(random), random_double(random)};
    it->choice_count = (int)(check_uniform(random) * (ESP_MAX_CHOICES + 1));
    for (int i = 0; i < it->choice_count; i++)
        it->choices[i] = (struct esp_shape_choice){1 + i,
                                                   i,
                                                   8 - i,
                                                   check_uniform(random),
                                                   i ? random_double(random) : NAN,
                                                   random_double(random)};
    for (int i = 0; i < ESP_STAGES; i++)
        it->seconds[i] = random_double(random);
}

TEST(random_iterations_are_read_as_written)
{
    static struct random_iteration random_iteration;
    struct esp_line line = {.length = 0};
    struct esp_recorded_event recorded = {.texts = {NULL}};
    struct esp_texts texts = {.count = 0};
    struct esp_tokens tokens = {recorded_token, NULL};
    unsigned long long random = 1;
    for (int trial = 0; trial < (check_quick() ? 200 : 2000); trial++) {
        make_iteration(&random_iteration, &random);
        struct esp_event event = {.type = ESP_EVENT_ITERATION,
                                  .time = random_double(&random),
                                  .iteration = &random_iteration.it};
        line.length = 0;
        CHECK(esp_event_to_json(&line, &event, NULL, &tokens) == 0);
        CHECK(esp_event_from_json(&recorded, &texts, line.text, line.length - 1, 0, err,
                                  sizeof err) == 1,
              "trial %d: %s", trial, err);
        CHECK(recorded.event.time == event.time);
        recorded_same(&recorded.iteration.it, &random_iteration.it, "random");
    }
    for (int i = 0; i < random_iteration.it.tree.count; i++) {
        size_t length = 0, wanted = 0;
        int32_t token = random_iteration.nodes[i].token;
        const char *want = recorded_token(NULL, token, &wanted);
        const char *got = esp_texts_find(&texts, token, &length);
        CHECK(!want == !got && (!want || (length == wanted && memcmp(got, want, length) == 0)),
              "token %d", token);
    }
    esp_line_free(&line);
    esp_recorded_event_free(&recorded);
    esp_texts_free(&texts);
}

TEST(every_float_is_read_as_written)
{
    struct esp_line line = {.length = 0};
    unsigned long long random = 9;
    for (uint32_t i = 0; i < (check_quick() ? 20000 : 400000); i++) {
        union {
            uint32_t bits;
            float value;
        } any = {.bits = i < 1000 ? 0x3f800000u - 500 + i
                                  : (uint32_t)(check_uniform(&random) * 0x100000000)};
        if (i % 2)
            any.value = (float)(20 * check_uniform(&random) - 10);
        if (i % 4 == 1)
            any.value = (float)((int)(any.value * 1000) / 1000.0);
        line.length = 0;
        line.comma = false;
        esp_line_float(&line, NULL, any.value);
        esp_line_newline(&line);
        if (!isfinite(any.value))
            continue;
        float got = (float)strtod(line.text, NULL);
        CHECK(memcmp(&got, &any.value, sizeof got) == 0, "%.9g became %.20s", (double)any.value,
              line.text);
    }
    esp_line_free(&line);
}

TEST(every_double_is_read_as_written)
{
    struct esp_line line = {.length = 0};
    unsigned long long random = 9;
    for (uint32_t i = 0; i < (check_quick() ? 20000 : 400000); i++) {
        const uint64_t high = (uint64_t)(check_uniform(&random) * 0x100000000);
        union {
            uint64_t bits;
            double value;
        } any = {.bits = high << 32 | (uint64_t)(check_uniform(&random) * 0x100000000)};
        const double place[] = {1, 1e3, 1e6, 1e9};
        if (i % 2) /* a number with up to nine decimals, or the next double after it */
            any.value = floor(2e7 * check_uniform(&random) - 1e7) / place[i / 2 % 4];
        if (i % 8 == 1)
            any.value = nextafter(any.value, 1);
        line.length = 0;
        line.comma = false;
        esp_line_double(&line, NULL, any.value);
        esp_line_newline(&line);
        if (!isfinite(any.value))
            continue;
        const double got = strtod(line.text, NULL);
        CHECK(memcmp(&got, &any.value, sizeof got) == 0, "%.17g became %.30s", any.value,
              line.text);
        CHECK(i % 8 == 1 || i % 2 == 0 || line.length <= strlen("-0.123456789\n"), "%.30s",
              line.text);
    }
    esp_line_free(&line);
}

/* ------------------------------------------------------------------ large recordings */

static const char *long_text(void *user, int32_t token, size_t *length)
{
    static char text[600];
    (void)user;
    memset(text, 'a' + token % 26, sizeof text);
    *length = sizeof text;
    return text;
}

TEST(no_line_is_too_long_to_be_read)
{
    static struct esp_node nodes[ESP_RECORDING_NODES];
    static int32_t order[ESP_RECORDING_NODES], prompt[20000];
    struct esp_iteration it = {
        .tree = {.nodes = nodes, .order = order}, .drafter = "", .verifier = ""};
    struct esp_layers layers = {.count = 0};
    struct esp_event event = {.type = ESP_EVENT_LAYER, .iteration = &it};
    struct esp_recorder_options options = {
        .path = recorded_path(), .force = true, .tokens = {long_text, NULL}};
    struct esp_recording_header header = {.major = 0};
    struct esp_recorder *recorder;
    CHECK(esp_recorder_open(&recorder, &options, &header, err, sizeof err) == 0, "%s", err);
    for (int i = 0; i < ESP_RECORDING_NODES; i++) {
        nodes[i] = (struct esp_node){.token = i,
                                     .parent = i - 1,
                                     .depth = i,
                                     .copies = 1,
                                     .q = 1 / 3.0f,
                                     .cumulative_log_q = -1e6f / 3,
                                     .confidence = 1 / 3.0f,
                                     .value = 1 / 3.0f,
                                     .p = 1 / 3.0f,
                                     .u = 1 / 3.0f,
                                     .acceptance = 1 / 3.0f,
                                     .branching = 1 / 3.0f,
                                     .acceptance_rate = 1 / 3.0f,
                                     .ceiling = 1 / 3.0f,
                                     .verdict = ESP_REJECTED,
                                     .reason = ESP_REASON_CONFIDENCE};
        order[i] = i;
        it.tree.count = it.tree.verified = i + 1;
    }
    for (int i = 0; i < 20000; i++)
        prompt[i] = i;
    esp_recorder_event(recorder, &event);
    event.type = ESP_EVENT_ITERATION;
    esp_recorder_event(recorder, &event);
    event =
        (struct esp_event){.type = ESP_EVENT_PROMPT, .tokens = prompt, .token_count = 20000};
    esp_recorder_event(recorder, &event);
    CHECK(esp_recorder_close(recorder, err, sizeof err) == 0, "%s", err);
    struct esp_recording *recording = recorded_open();
    const struct esp_text_token *text;
    for (int i = 0; i < ESP_RECORDING_NODES; i++)
        nodes[i].branching = nodes[i].acceptance_rate = nodes[i].ceiling = NAN;
    recorded_same(read_event(recording, 0)->iteration, &it, "large");
    int count = esp_recording_text(recording, esp_recording_events(recording) - 1, &text);
    CHECK(count == 20000, "%d tokens", count);
    for (int i = 0; i < count; i++)
        CHECK(text[i].token == i);
    esp_recording_close(recording);
    esp_layers_free(&layers);
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* Repeats the iterations of a recording until there are `wanted` of them. */
static void make_long(int wanted)
{
    size_t length, used = 0;
    recorded_session(NULL, "fixed:D=4,B=2,tau=0", 0, 40);
    char *bytes = recorded_read(&length), *events = strchr(bytes, '\n') + 1;
    struct esp_recording *recording = recorded_open();
    char *all = malloc(length * (size_t)(wanted / 40 + 1));
    CHECK(all);
    memcpy(all, bytes, used = (size_t)(events - bytes));
    for (int n = 0, e = 0; n < wanted; e = (e + 1) % esp_recording_events(recording)) {
        size_t size;
        const char *line = esp_recording_line(recording, e, &size);
        memcpy(all + used, line, size);
        all[used + size] = '\n';
        used += size + 1;
        n += esp_recording_entry(recording, e).type == ESP_EVENT_ITERATION;
    }
    esp_recording_close(recording);
    recorded_write(all, used);
    free(all);
    free(bytes);
}

TEST(seeking_in_ten_thousand_iterations_is_quick)
{
    const struct esp_text_token *text;
    unsigned long long random = 3;
    int iterations = check_quick() ? 1000 : 10000;
    make_long(iterations);
    double start = now();
    struct esp_recording *recording = recorded_open();
    double opened = now() - start, slowest = 0;
    CHECK(esp_recording_iterations(recording) == iterations);
    for (int trial = 0; trial < 100; trial++) {
        int wanted = (int)(check_uniform(&random) * iterations);
        start = now();
        int event = esp_recording_iteration_event(recording, wanted);
        CHECK(read_event(recording, event)->iteration->tree.count > 1);
        CHECK(esp_recording_text(recording, event, &text) > 0);
        slowest = now() - start > slowest ? now() - start : slowest;
    }
    esp_recording_close(recording);
    CHECK(slowest < 0.2, "%.3f s for a seek (opening took %.3f s)", slowest, opened);
    if (getenv("ESPALIER_TIMES"))
        printf("  %d iterations: opened in %.3f s, slowest seek %.6f s\n", iterations, opened,
               slowest);
}

/* ------------------------------------------------------------------ the manual */

/* Reads the example of a recording from a literal block of the man page, and joins continued
 * lines. */
static size_t read_example(const char *path, char *text, size_t size)
{
    char line[512];
    bool inside = false;
    size_t used = 0;
    FILE *page = fopen(path, "r");
    CHECK(page, "cannot read %s", path);
    while (fgets(line, sizeof line, page)) {
        if (strcmp(line, ".Ed\n") == 0)
            inside = false;
        used -= inside && line[0] == ' ';
        if (inside)
            used += (size_t)snprintf(text + used, size - used, "%s", line);
        if (strcmp(line, ".Bd -literal\n") == 0)
            inside = true;
    }
    fclose(page);
    return used;
}

TEST(the_example_of_the_manual_is_a_recording)
{
    char text[4096];
    recorded_write(text,
                   read_example(check_path("../man/espalier-session.5"), text, sizeof text));
    struct esp_recording *recording = recorded_open();
    CHECK(esp_recording_events(recording) == 3 && esp_recording_iterations(recording) == 1);
    CHECK(read_event(recording, 1)->iteration->path_length == 1);
    CHECK(esp_recording_steps(recording) == 1 + ESP_STAGES);
    esp_recording_close(recording);
}

/* The target's scores of the committed tokens must be read back unchanged. */
TEST(scores_are_read_back)
{
    struct esp_node root = {.token = 2, .parent = -1, .copies = 1};
    const int32_t order = 0, committed = 3;
    const struct esp_token_score score = {.p = 0.25f,
                                          .entropy = 1.5f,
                                          .rank = 2,
                                          .count = 3,
                                          .likely = {4, 3, 1},
                                          .likely_p = {0.5f, 0.25f, 0.125f}};
    const struct esp_iteration it = {.position = 0,
                                     .tree = {&root, 1, (int32_t *)&order, 1},
                                     .bonus = 3,
                                     .bonus_u = NAN,
                                     .committed = &committed,
                                     .committed_count = 1,
                                     .scores = &score,
                                     .drafter = "ar",
                                     .verifier = "greedy"};
    const struct esp_event event = {.type = ESP_EVENT_ITERATION, .iteration = &it};
    struct esp_recording_header header = {.major = ESP_RECORDING_MAJOR, .vocabulary = 12};
    struct esp_line line = {.text = NULL};
    CHECK(esp_header_to_json(&line, &header) == 0);
    CHECK(esp_event_to_json(&line, &event, NULL, NULL) == 0);
    recorded_write(line.text, line.length);
    esp_line_free(&line);
    struct esp_recording *recording = recorded_open();
    const struct esp_event *found;
    char why[256];
    CHECK(esp_recording_events(recording) == 1);
    CHECK(esp_recording_read(recording, 0, &found, why, sizeof why) == 0, "%s", why);
    CHECK(found->iteration->scores &&
          memcmp(found->iteration->scores, &score, sizeof score) == 0);
    esp_recording_close(recording);
}
