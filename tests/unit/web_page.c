/* Tests the page of a recording. It must have the data of the recording, and text from a model
 * must not run as code. A large tree must be reduced, and the colours must have enough
 * contrast. tests/cli/web_page.sh checks that the file is valid HTML, and tests the page in a
 * browser if there is one. */
#include "tui/model/export_all.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "viz/explain.h"
#include "viz/gauges.h"
#include "viz/page/page_parts.h"
#include "viz/page/page_writer.h"

static char err[512];

static struct esp_recording *open_sample(const char *path)
{
    struct esp_recording *recording;
    CHECK(esp_recording_open(&recording, check_path(path), err, sizeof err) == 0, "%s", err);
    return recording;
}

/* Makes the page of some iterations, and returns its text. `data` receives the data in the
 * page. */
static char *page_of(struct esp_recording *recording, int first, int last, cJSON **data)
{
    char *page, *ended;
    size_t length;
    CHECK(esp_export_page(recording, first, last, &page, &length, err, sizeof err) == 0, "%s",
          err);
    ended = realloc(page, length + 1);
    CHECK(ended != NULL);
    ended[length] = '\0';
    CHECK(strlen(ended) == length, "the page contains a NUL byte");
    const char *start = strstr(ended, "id=\"recording\">"), *end = strstr(start, "</script>");
    start += strlen("id=\"recording\">");
    *data = cJSON_ParseWithLength(start, (size_t)(end - start));
    CHECK(*data != NULL);
    CHECK(!memchr(start, '<', (size_t)(end - start)), "the data contain a <");
    return ended;
}

static const cJSON *member(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, name);
    CHECK(found != NULL, "no %s", name);
    return found;
}

static int integer(const cJSON *object, const char *name)
{
    return member(object, name)->valueint;
}

static const char *string_at(const cJSON *data, int index)
{
    const cJSON *found = cJSON_GetArrayItem(member(data, "strings"), index);
    CHECK(found && cJSON_IsString(found), "string %d", index);
    return found->valuestring;
}

/* ------------------------------------------------------------------ the data */

enum { MOST_TEXT = 1 << 16 };

struct shown_text {
    char bytes[MOST_TEXT];
    size_t start[MOST_TEXT / 4];
    int count;
    size_t length;
};

static void show_tokens(struct shown_text *shown, const cJSON *data, const cJSON *text)
{
    for (const cJSON *at = text->child; at; at = at->next->next) {
        const char *piece = string_at(data, at->valueint);
        CHECK(at->next && at->next->valueint >= 0 && at->next->valueint <= ESP_TEXT_MARK);
        CHECK(shown->length + strlen(piece) < MOST_TEXT);
        shown->start[shown->count++] = shown->length;
        memcpy(shown->bytes + shown->length, piece, strlen(piece) + 1);
        shown->length += strlen(piece);
    }
}

/* Computes the text after the iteration from the page's data, as the page's script does. */
static void show(struct shown_text *shown, const cJSON *data, const cJSON *iteration)
{
    const cJSON *change, *before = cJSON_GetObjectItemCaseSensitive(iteration, "before");
    cJSON_ArrayForEach(change, before)
    {
        const cJSON *keep = cJSON_GetObjectItemCaseSensitive(change, "keep"),
                    *text = cJSON_GetObjectItemCaseSensitive(change, "text");
        if (keep && keep->valueint < shown->count) {
            shown->count = keep->valueint;
            shown->length = shown->start[shown->count];
        }
        if (text)
            show_tokens(shown, data, text);
    }
    show_tokens(shown, data, member(iteration, "text"));
}

/* Compares the text after the iteration with the text in the recording. */
static void check_text(struct esp_recording *recording, int event,
                       const struct shown_text *shown)
{
    const struct esp_text_token *tokens;
    int count = esp_recording_text(recording, event, &tokens);
    size_t at = 0, length;
    CHECK(count == shown->count, "%d tokens, want %d", shown->count, count);
    for (int i = 0; i < count; i++) {
        const char *bytes = esp_recording_token_text(recording, tokens[i].token, &length);
        CHECK(at + length <= shown->length && memcmp(shown->bytes + at, bytes, length) == 0,
              "token %d", i);
        at += length;
    }
    CHECK(at == shown->length);
}

static void check_nodes(struct esp_recording *recording, const cJSON *data, const cJSON *shown,
                        const struct esp_iteration *it)
{
    enum { TOKEN, PARENT, VERDICT, Q, P, U = 7, CHANCE, COPIED = 11 };
    const struct esp_tokens tokens = {esp_recording_token_text, recording};
    char said[1024];
    const cJSON *node;
    int i = 0;
    CHECK(cJSON_GetArraySize(shown) == it->tree.count);
    cJSON_ArrayForEach(node, shown)
    {
        const struct esp_node *n = &it->tree.nodes[i];
        CHECK(cJSON_GetArraySize(node) == 12);
        CHECK(cJSON_GetArrayItem(node, COPIED)->valueint == n->copied);
        CHECK(cJSON_IsNull(cJSON_GetArrayItem(node, Q)) == (n->copied > 0), "node %d", i);
        CHECK(cJSON_GetArrayItem(node, PARENT)->valueint == n->parent, "node %d", i);
        CHECK(cJSON_GetArrayItem(node, VERDICT)->valueint == n->verdict, "node %d", i);
        CHECK(isnan(n->p) == cJSON_IsNull(cJSON_GetArrayItem(node, P)), "node %d", i);
        CHECK(isnan(n->p) ||
                  fabs(cJSON_GetArrayItem(node, P)->valuedouble - (double)n->p) < 0.001,
              "node %d", i);
        const cJSON *u = cJSON_GetArrayItem(node, U),
                    *chance = cJSON_GetArrayItem(node, CHANCE);
        CHECK(cJSON_IsNull(u) ||
                  n->verdict ==
                      (u->valuedouble < chance->valuedouble ? ESP_ACCEPTED : ESP_REJECTED),
              "node %d: u %g, chance %g", i, u->valuedouble, chance->valuedouble);
        CHECK(string_at(data, cJSON_GetArrayItem(node, TOKEN)->valueint)[0] == '"');
        esp_explain_node(said, sizeof said, it, ESP_STAGES, i, &tokens);
        CHECK(*said != '\0', "says nothing");
        CHECK(strcmp(string_at(data, cJSON_GetArrayItem(node, 10)->valueint), said) == 0,
              "%s instead of %s", string_at(data, cJSON_GetArrayItem(node, 10)->valueint),
              said);
        i++;
    }
}

/* Checks that the page explains changes of values in the same words as the controller pane. */
static void check_gauges(const cJSON *data, const cJSON *shown, const struct esp_iteration *it)
{
    char why[1024];
    int i = 0;
    const cJSON *gauge;
    CHECK(cJSON_GetArraySize(shown) == it->gauge_count);
    cJSON_ArrayForEach(gauge, shown)
    {
        const cJSON *said = cJSON_GetArrayItem(gauge, 3);
        esp_gauge_why(why, sizeof why, it, i);
        CHECK(strcmp(said ? string_at(data, said->valueint) : "", why) == 0, "%s: %s",
              it->gauges[i].name, why);
        i++;
    }
}

static void check_recording(const char *path)
{
    static struct shown_text shown;
    struct esp_recording *recording = open_sample(path);
    int count = esp_recording_iterations(recording), i = 0;
    const struct esp_event *event;
    cJSON *data;
    const cJSON *iteration;
    char *page = page_of(recording, 0, count - 1, &data);
    shown = (struct shown_text){.count = 0};
    CHECK(cJSON_GetArraySize(member(data, "iterations")) == count, "%s", path);
    cJSON_ArrayForEach(iteration, member(data, "iterations"))
    {
        const int number = esp_recording_iteration_event(recording, i++);
        CHECK(esp_recording_read(recording, number, &event, err, sizeof err) == 0, "%s", err);
        CHECK(integer(iteration, "index") == event->iteration->index);
        check_nodes(recording, data, member(iteration, "nodes"), event->iteration);
        check_gauges(data, member(iteration, "gauges"), event->iteration);
        CHECK(cJSON_GetArraySize(member(iteration, "seconds")) == ESP_STAGES);
        CHECK(strcmp(string_at(data, integer(iteration, "drafter")),
                     event->iteration->drafter) == 0);
        show(&shown, data, iteration);
        check_text(recording, number, &shown);
    }
    cJSON_Delete(data);
    free(page);
    esp_recording_close(recording);
}

TEST(the_page_has_the_data_of_the_recording)
{
    check_recording("../sessions/samples/dynatree-adapting.esp.jsonl");
    check_recording("../sessions/samples/traversal-sampling.esp.jsonl");
    check_recording("cli/three.esp.jsonl");
}

TEST(some_iterations_have_the_text_before_them)
{
    static struct shown_text shown;
    struct esp_recording *recording =
        open_sample("../sessions/samples/dynatree-adapting.esp.jsonl");
    cJSON *data;
    char *page = page_of(recording, 30, 33, &data);
    const cJSON *iterations = member(data, "iterations");
    shown = (struct shown_text){.count = 0};
    CHECK(cJSON_GetArraySize(iterations) == 4 && integer(data, "earlier") == 30);
    for (int i = 0; i < 4; i++)
        show(&shown, data, cJSON_GetArrayItem(iterations, i));
    check_text(recording, esp_recording_iteration_event(recording, 33), &shown);
    cJSON_Delete(data);
    free(page);
    esp_recording_close(recording);
}

/* ------------------------------------------------------------------ text is not executed */

static int count_of(const char *page, const char *what)
{
    int count = 0;
    for (; (page = strstr(page, what)); page += strlen(what))
        count++;
    return count;
}

/* Returns whether the page is free of control characters (including C1) and of characters that
 * reorder or hide text. */
static bool is_harmless(const char *page)
{
    static const char *const marks[] = {"\u200b", "\u200e", "\u200f", "\u202a", "\u202e",
                                        "\u2028", "\u2066", "\u2069", "\ufeff"};
    for (const unsigned char *c = (const unsigned char *)page; *c; c++)
        if ((*c < ' ' && *c != '\n') || *c == 0x7f ||
            (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
            return false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(page, marks[i]))
            return false;
    return true;
}

TEST(hostile_text_stays_plain_text)
{
    struct esp_recording *recording = open_sample("vectors/recordings/hostile.esp.jsonl");
    const int count = esp_recording_iterations(recording);
    cJSON *data;
    char *page = page_of(recording, 0, count - 1, &data);
    CHECK(count > 0 && cJSON_GetArraySize(member(data, "iterations")) == count);
    CHECK(count_of(page, "<script") == 2 && count_of(page, "</script") == 2);
    CHECK(is_harmless(page));
    CHECK(strstr(page, "U+202E>"), "a bidirectional override must be visible as its code");
    cJSON_Delete(data);
    free(page);
    esp_recording_close(recording);
}

/* ------------------------------------------------------------------ size */

static const char *letter(void *user, int32_t token, size_t *length)
{
    (void)user;
    (void)token;
    *length = 1;
    return "a";
}

/* Makes a state with one iteration. Its tree has `nodes` nodes. All nodes except the root are
 * children of the root, and the last of them is accepted. */
static struct esp_state *state_with(int nodes)
{
    struct esp_state *state = calloc(1, sizeof *state);
    struct esp_snapshot snapshot = {.type = ESP_EVENT_PROMPT};
    struct esp_node *node = calloc((size_t)nodes, sizeof *node);
    int32_t *order = calloc((size_t)nodes, sizeof *order), path[] = {nodes - 1},
            committed[] = {5, 7}, prompt[] = {1, 2, 3};
    CHECK(state && node && order);
    state->tokens.text = letter;
    for (int i = 0; i < nodes; i++) {
        node[i] = (struct esp_node){.token = 5,
                                    .parent = i ? 0 : -1,
                                    .depth = i > 0,
                                    .copies = 1,
                                    .q = 0.5f,
                                    .p = 0.5f,
                                    .cumulative_log_q = -(float)i,
                                    .confidence = NAN,
                                    .u = NAN,
                                    .acceptance = NAN};
        order[i] = i;
    }
    node[nodes - 1].verdict = ESP_ACCEPTED;
    struct esp_iteration it = {.position = 3,
                               .tree = {node, nodes, order, nodes},
                               .path = path,
                               .path_length = 1,
                               .committed = committed,
                               .committed_count = 2,
                               .drafter = "fixed",
                               .verifier = "greedy"};
    const struct esp_event events[] = {
        {.type = ESP_EVENT_PROMPT, .tokens = prompt, .token_count = 3},
        {.type = ESP_EVENT_ITERATION, .iteration = &it}};
    for (int i = 0; i < 2; i++) {
        CHECK(esp_snapshot_take(&snapshot, &events[i]) == 0);
        CHECK(esp_state_apply(state, &snapshot) == 0);
    }
    esp_snapshot_free(&snapshot);
    free(node);
    free(order);
    return state;
}

static void check_state(int nodes, int shown)
{
    struct esp_state *state = state_with(nodes);
    char *page;
    size_t length;
    int count;
    CHECK(esp_export_page_of_state(state, &page, &length, &count, err, sizeof err) == 0, "%s",
          err);
    CHECK(count == 1);
    const char *start = strstr(page, "id=\"recording\">") + strlen("id=\"recording\">");
    cJSON *data = cJSON_Parse(start);
    const cJSON *it = cJSON_GetArrayItem(member(data, "iterations"), 0), *hidden;
    CHECK(cJSON_GetArraySize(member(it, "nodes")) == shown);
    hidden = cJSON_GetObjectItemCaseSensitive(it, "hidden");
    CHECK((hidden ? hidden->valueint : 0) == nodes - shown);
    const cJSON *last = cJSON_GetArrayItem(member(it, "nodes"), shown - 1);
    CHECK(cJSON_GetArrayItem(last, 2)->valueint == ESP_ACCEPTED,
          "the accepted path must be in the reduced tree");
    CHECK(cJSON_GetArraySize(member(it, "text")) == 4);
    CHECK(cJSON_GetArraySize(member(member(it, "before")->child, "text")) == 6, "the prompt");
    cJSON_Delete(data);
    free(page);
    esp_state_free(state);
    free(state);
}

TEST(a_live_session_has_a_page)
{
    check_state(5, 5);
}

TEST(a_large_tree_keeps_its_likeliest_nodes_and_the_path)
{
    check_state(1000, ESP_PAGE_NODES + 1);
}

TEST(without_an_iteration_there_is_no_page)
{
    struct esp_state *state = calloc(1, sizeof *state);
    char *page;
    size_t length;
    int count;
    CHECK(esp_export_page_of_state(state, &page, &length, &count, err, sizeof err) < 0);
    CHECK(!page && strstr(err, "no tree"), "%s", err);
    free(state);
}

/* ------------------------------------------------------------------ colours */

static double linear(int value)
{
    const double c = value / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

/* Returns the relative luminance of a colour of page.css. This file writes a colour in the form
 * "--NAME: light-dark(#rrggbb, #rrggbb)". */
static double luminance(const char *name, bool dark)
{
    char start[64];
    unsigned colours[2];
    snprintf(start, sizeof start, "--%s: light-dark(", name);
    const char *at = strstr(esp_page_style, start);
    CHECK(at && sscanf(at + strlen(start), "#%6x, #%6x", &colours[0], &colours[1]) == 2, "%s",
          name);
    const unsigned c = colours[dark];
    return 0.2126 * linear(c >> 16) + 0.7152 * linear(c >> 8 & 255) + 0.0722 * linear(c & 255);
}

static double contrast(const char *one, const char *other, bool dark)
{
    const double a = luminance(one, dark), b = luminance(other, dark);
    return (fmax(a, b) + 0.05) / (fmin(a, b) + 0.05);
}

TEST(every_text_can_be_read)
{
    static const char *const texts[] = {"text",     "label", "accepted",
                                        "rejected", "cut",   "bonus"};
    static const char *const papers[] = {"paper", "panel"};
    for (int dark = 0; dark < 2; dark++) {
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            for (size_t j = 0; j < sizeof papers / sizeof *papers; j++)
                CHECK(contrast(texts[i], papers[j], dark) >= 4.5, "%s on %s: %.2f", texts[i],
                      papers[j], contrast(texts[i], papers[j], dark));
        CHECK(contrast("text", "new", dark) >= 4.5 && contrast("bonus", "new", dark) >= 4.5);
        CHECK(contrast("focus", "panel", dark) >= 3 && contrast("line", "paper", dark) >= 3);
    }
}
