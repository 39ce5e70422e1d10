/* event_write.c - events and headers to lines of JSON; see event_json.h. */
#include "sessions/event_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sessions/event_names.h"

enum {
    LONGEST_TEXT = 1 << 16,               /* bytes of one text; longer ones are left out */
    PROMPT_LINE = ESP_RECORDING_LINE / 2, /* a longer prompt is split over lines */
};

/* How much of an iteration is written. */
enum detail { ALL, NO_LAYERS, NO_TEXTS, NO_FORMULAS };

struct writer {
    struct esp_line *line;
    const struct esp_tokens *tokens;
    enum detail detail;
};

/* ------------------------------------------------------------------ parts */

static void put_text(struct esp_line *line, const char *name, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    esp_line_string(line, name, text, length < LONGEST_TEXT ? length : LONGEST_TEXT);
}

/* The members of a token, in an object that is open. */
static void put_token_members(const struct writer *w, int32_t token)
{
    size_t length = 0;
    const struct esp_tokens *t = w->tokens;
    const char *bytes =
        t && t->text && w->detail < NO_TEXTS ? t->text(t->user, token, &length) : NULL;
    esp_line_integer(w->line, "id", token);
    if (!bytes || length > LONGEST_TEXT)
        return;
    if (!esp_line_string(w->line, "text", bytes, length))
        esp_line_hex(w->line, "bytes", bytes, length);
}

static void put_token(const struct writer *w, int32_t token)
{
    esp_line_open(w->line, NULL, '{');
    put_token_members(w, token);
    esp_line_close(w->line, '}');
}

static void put_ids(struct esp_line *line, const char *name, const int32_t *ids, int count)
{
    esp_line_open(line, name, '[');
    for (int i = 0; ids && i < count; i++)
        esp_line_integer(line, NULL, ids[i]);
    esp_line_close(line, ']');
}

static void put_node(const struct writer *w, const struct esp_node *node)
{
    struct esp_line *line = w->line;
    esp_line_open(line, NULL, '{');
    put_token_members(w, node->token);
    if (node->parent >= 0) {
        esp_line_integer(line, "parent", node->parent);
        esp_line_integer(line, "depth", node->depth);
    }
    if (node->rank != 0)
        esp_line_integer(line, "rank", node->rank);
    if (node->copies != 1)
        esp_line_integer(line, "copies", node->copies);
    if (node->copied != 0)
        esp_line_integer(line, "copied", node->copied);
    esp_line_float(line, "q", node->q);
    esp_line_float(line, "cumulative_log_q", node->cumulative_log_q);
    esp_line_float(line, "confidence", node->confidence);
    esp_line_float(line, "value", node->value);
    esp_line_float(line, "p", node->p);
    esp_line_float(line, "u", node->u);
    esp_line_float(line, "acceptance", node->acceptance);
    if (w->detail < NO_FORMULAS) {
        esp_line_float(line, "branching", node->branching);
        esp_line_float(line, "acceptance_rate", node->acceptance_rate);
        esp_line_float(line, "ceiling", node->ceiling);
    }
    if (node->drawn)
        esp_line_flag(line, "drawn", true);
    if (node->verdict != ESP_UNVISITED)
        put_text(line, "verdict", esp_verdict_names[node->verdict]);
    if (node->reason != ESP_REASON_NONE)
        put_text(line, "reason", esp_reason_names[node->reason]);
    esp_line_close(line, '}');
}

static void put_gauges(struct esp_line *line, const struct esp_iteration *it)
{
    if (it->gauge_count == 0)
        return;
    esp_line_open(line, "gauges", '[');
    for (int i = 0; i < it->gauge_count; i++) {
        const struct esp_gauge *gauge = &it->gauges[i];
        esp_line_open(line, NULL, '{');
        put_text(line, "name", gauge->name);
        esp_line_double(line, "before", gauge->before);
        esp_line_double(line, "after", gauge->after);
        esp_line_double(line, "minimum", gauge->minimum);
        esp_line_double(line, "maximum", gauge->maximum);
        esp_line_close(line, '}');
    }
    esp_line_close(line, ']');
}

static void put_choices(struct esp_line *line, const struct esp_iteration *it)
{
    if (it->choice_count == 0)
        return;
    esp_line_open(line, "choices", '[');
    for (int i = 0; i < it->choice_count; i++) {
        const struct esp_shape_choice *choice = &it->choices[i];
        esp_line_open(line, NULL, '{');
        esp_line_integer(line, "K", choice->paths);
        esp_line_integer(line, "L1", choice->stem);
        esp_line_integer(line, "L2", choice->branch);
        esp_line_double(line, "share", choice->share);
        esp_line_double(line, "tokens", choice->tokens);
        esp_line_double(line, "seconds", choice->seconds);
        esp_line_close(line, '}');
    }
    esp_line_close(line, ']');
}

static void put_seconds(struct esp_line *line, const struct esp_iteration *it)
{
    esp_line_open(line, "seconds", '{');
    for (int i = 0; i < ESP_STAGES; i++)
        esp_line_double(line, esp_stage_name(i), it->seconds[i]);
    esp_line_close(line, '}');
}

/* A node that had not changed since it was added is only its index. */
static void put_change(struct esp_line *line, const struct esp_change *change)
{
    const struct esp_growth *was = &change->was;
    if (was->copies == 1 && isnan(was->confidence) && !was->cut && was->reason == 0) {
        esp_line_integer(line, NULL, change->node);
        return;
    }
    esp_line_open(line, NULL, '{');
    esp_line_integer(line, "node", change->node);
    if (was->copies != 1)
        esp_line_integer(line, "copies", was->copies);
    esp_line_float(line, "confidence", was->confidence);
    if (was->cut)
        esp_line_flag(line, "cut", true);
    if (was->reason != ESP_REASON_NONE)
        put_text(line, "reason", esp_reason_names[was->reason]);
    esp_line_close(line, '}');
}

static void put_layers(struct esp_line *line, const struct esp_layers *layers)
{
    const struct esp_change *change = layers->changes;
    esp_line_open(line, "layers", '[');
    for (int i = 0; i < layers->count; i++) {
        const struct esp_tree_layer *layer = &layers->layers[i];
        esp_line_open(line, NULL, '{');
        esp_line_double(line, "t", layer->time);
        esp_line_integer(line, "nodes", layer->nodes);
        esp_line_integer(line, "passes", layer->passes);
        esp_line_open(line, "was", '[');
        for (int j = 0; j < layer->changes; j++)
            put_change(line, change++);
        esp_line_close(line, ']');
        esp_line_close(line, '}');
    }
    esp_line_close(line, ']');
}

/* ------------------------------------------------------------------ events */

static void begin(struct esp_line *line, const struct esp_event *event)
{
    esp_line_open(line, NULL, '{');
    esp_line_double(line, "t", event->time);
    put_text(line, "type", esp_event_type_name(event->type));
}

static void end(struct esp_line *line)
{
    esp_line_close(line, '}');
    esp_line_newline(line);
}

static void put_iteration(const struct writer *w, const struct esp_event *event,
                          const struct esp_layers *layers)
{
    struct esp_line *line = w->line;
    const struct esp_iteration *it = event->iteration;
    begin(line, event);
    esp_line_integer(line, "index", it->index);
    esp_line_integer(line, "position", it->position);
    put_text(line, "drafter", it->drafter);
    put_text(line, "verifier", it->verifier);
    if (it->lossy)
        esp_line_flag(line, "lossy", true);
    esp_line_open(line, "committed", '[');
    for (int i = 0; it->committed && i < it->committed_count; i++)
        put_token(w, it->committed[i]);
    esp_line_close(line, ']');
    put_ids(line, "path", it->path, it->path_length);
    esp_line_open(line, "bonus", '{');
    put_token_members(w, it->bonus);
    esp_line_float(line, "u", it->bonus_u);
    esp_line_close(line, '}');
    esp_line_integer(line, "deepest", it->deepest);
    esp_line_integer(line, "draft_passes", it->draft_passes);
    esp_line_integer(line, "target_passes", it->target_passes);
    esp_line_integer(line, "mask_blocks", it->mask_blocks);
    put_seconds(line, it);
    if (it->ends_turn)
        esp_line_flag(line, "ends_turn", true);
    if (it->baseline > 0)
        esp_line_double(line, "baseline", it->baseline);
    put_gauges(line, it);
    put_choices(line, it);
    esp_line_open(line, "nodes", '[');
    for (int i = 0; i < it->tree.count; i++)
        put_node(w, &it->tree.nodes[i]);
    esp_line_close(line, ']');
    put_ids(line, "order", it->tree.order, it->tree.verified);
    if (layers && layers->count > 0 && w->detail < NO_LAYERS)
        put_layers(line, layers);
    end(line);
}

/* Writes how many of the `count` tokens of this line are control tokens of the chat format. */
static void put_marks(struct esp_line *line, const char *name, int marks, int count)
{
    if (marks > 0)
        esp_line_integer(line, name, marks < count ? marks : count);
}

static void put_prompt(const struct writer *w, const struct esp_event *event)
{
    struct esp_line *line = w->line;
    const int said_end = event->token_count - event->marks_after;
    int i = 0;
    do {
        const int first = i;
        size_t start = line->length;
        begin(line, event);
        esp_line_open(line, "tokens", '[');
        for (; i < event->token_count && line->length - start < PROMPT_LINE && !line->failed;
             i++)
            put_token(w, event->tokens[i]);
        esp_line_close(line, ']');
        put_marks(line, "marks", event->marks - first, i - first);
        put_marks(line, "marks_after", i - said_end, i - first);
        end(line);
    } while (i < event->token_count && !line->failed);
}

int esp_event_to_json(struct esp_line *line, const struct esp_event *event,
                      const struct esp_layers *layers, const struct esp_tokens *tokens)
{
    struct writer w = {line, tokens, ALL};
    size_t start = line->length;
    if (!esp_event_type_name(event->type))
        return ESP_OK;
    switch (event->type) {
    case ESP_EVENT_PROMPT:
        put_prompt(&w, event);
        break;
    case ESP_EVENT_ITERATION:
        put_iteration(&w, event, layers);
        while (line->length - start > ESP_RECORDING_LINE && w.detail < NO_FORMULAS) {
            line->length = start;
            w.detail++;
            put_iteration(&w, event, layers);
        }
        break;
    default:
        begin(line, event);
        if (event->type == ESP_EVENT_DROP)
            esp_line_integer(line, "start", event->token_start);
        if (event->type == ESP_EVENT_REWIND || event->type == ESP_EVENT_DROP)
            esp_line_integer(line, "count", event->token_count);
        if (event->type == ESP_EVENT_SETTING)
            put_text(line, "key", event->key);
        if (event->type == ESP_EVENT_SETTING)
            put_text(line, "value", event->text);
        if (event->type == ESP_EVENT_SETTING && event->lossy)
            esp_line_flag(line, "lossy", true);
        if (event->type == ESP_EVENT_MARKER || event->type == ESP_EVENT_END)
            put_text(line, "text", event->text);
        end(line);
        break;
    }
    return line->failed ? ESP_E_MEMORY : ESP_OK;
}

/* ------------------------------------------------------------------ the header */

static void put_model(struct esp_line *line, const char *name,
                      const struct esp_recorded_model *model)
{
    if (!model->name[0])
        return;
    esp_line_open(line, name, '{');
    put_text(line, "name", model->name);
    put_text(line, "architecture", model->architecture);
    put_text(line, "dtype", model->dtype);
    esp_line_integer(line, "parameters", model->parameters);
    esp_line_close(line, '}');
}

/* The settings that are not members of the header itself, each as `:set` takes it. */
static void put_settings(struct esp_line *line, const struct esp_session_values *values)
{
    struct esp_value_info info;
    char text[64];
    esp_line_open(line, "settings", '{');
    for (int i = 0; esp_value_info(i, &info); i++) {
        if (esp_has_own_place(i))
            continue;
        esp_value_print(values, i, text, sizeof text);
        put_text(line, info.name, text);
    }
    esp_line_close(line, '}');
}

int esp_header_to_json(struct esp_line *line, const struct esp_recording_header *h)
{
    char version[32], seed[32], order[16];
    snprintf(version, sizeof version, "%d.%d", h->major, h->minor);
    snprintf(seed, sizeof seed, "%" PRIu64, h->values.seed);
    esp_value_print(&h->values, ESP_VALUE_OF_order, order, sizeof order);
    esp_line_open(line, NULL, '{');
    put_text(line, "format", "espalier-session");
    put_text(line, "version", version);
    put_text(line, "program", h->program);
    put_text(line, "started", h->started);
    put_model(line, "target", &h->target);
    put_model(line, "draft", &h->draft);
    esp_line_open(line, "vocabulary", '{');
    esp_line_integer(line, "size", h->vocabulary);
    put_text(line, "hash", h->vocabulary_hash);
    esp_line_close(line, '}');
    esp_line_integer(line, "context", h->context);
    put_text(line, "drafter", h->drafter);
    put_text(line, "verifier", h->verifier);
    esp_line_flag(line, "lossy", h->lossy);
    put_text(line, "order", order);
    esp_line_open(line, "sampling", '{');
    esp_line_double(line, "temperature", h->values.temperature);
    esp_line_double(line, "top_p", h->values.top_p);
    esp_line_integer(line, "top_k", h->values.top_k);
    esp_line_close(line, '}');
    put_text(line, "seed", seed);
    esp_line_flag(line, "baseline", h->values.baseline);
    put_settings(line, &h->values);
    put_text(line, "backend", h->backend);
    put_text(line, "device", h->device);
    esp_line_double(line, "load_seconds", h->load_seconds);
    esp_line_open(line, "terminal", '{');
    esp_line_integer(line, "columns", h->columns);
    esp_line_integer(line, "rows", h->rows);
    esp_line_close(line, '}');
    end(line);
    return line->failed ? ESP_E_MEMORY : ESP_OK;
}
