/* event_write.c - converts events and headers to lines of JSON; see event_json.h. */
#include "sessions/event_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sessions/event_fields.h"

enum {
    LONGEST_TEXT = 1 << 16, /* limit in bytes; a token's text is left out if it is longer */
    PROMPT_LINE = ESP_RECORDING_LINE / 2, /* a longer prompt is divided into several lines */
};

/* Says how much of an iteration is written. Each value also leaves out what the values before
 * it leave out. */
enum detail { ALL, NO_LAYERS, NO_TEXTS, NO_FORMULAS };

struct writer {
    struct esp_line *line;
    const struct esp_tokens *tokens;
    const struct esp_layers *layers;
    enum detail detail;
};

static void put_fields(const struct writer *w, const struct esp_field *fields,
                       const void *base);

static void put_object(const struct writer *w, const char *name, const struct esp_field *fields,
                       const void *base)
{
    esp_line_open(w->line, name, '{');
    put_fields(w, fields, base);
    esp_line_close(w->line, '}');
}

/* ------------------------------------------------------------------ values */

static void put_text(struct esp_line *line, const char *name, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    esp_line_string(line, name, text, length < LONGEST_TEXT ? length : LONGEST_TEXT);
}

static void put_setting(struct esp_line *line, const char *name,
                        const struct esp_session_values *values, int setting)
{
    char text[64];
    esp_value_print(values, setting, text, sizeof text);
    put_text(line, name, text);
}

/* Writes the settings that have no separate members in the header. Their values are written as
 * the user would type them after `:set`. */
static void put_settings(struct esp_line *line, const char *name,
                         const struct esp_session_values *values)
{
    struct esp_value_info info;
    esp_line_open(line, name, '{');
    for (int i = 0; esp_value_info(i, &info); i++)
        if (!esp_has_own_place(i))
            put_setting(line, info.name, values, i);
    esp_line_close(line, '}');
}

/* ------------------------------------------------------------------ trees */

/* Writes the members of a token into the JSON object that was opened last. */
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

/* Writes an array of tokens, or of indices of nodes. */
static void put_ids(const struct writer *w, const struct esp_field *f, const int32_t *ids,
                    int count)
{
    esp_line_open(w->line, f->name, '[');
    for (int i = 0; ids && i < count; i++)
        if (f->kind == ESP_FIELD_TOKENS)
            put_token(w, ids[i]);
        else
            esp_line_integer(w->line, NULL, ids[i]);
    esp_line_close(w->line, ']');
}

/* Writes the parent and the depth of a node. Writes nothing for the root. */
static void put_parent(struct esp_line *line, const struct esp_node *node)
{
    if (node->parent < 0)
        return;
    esp_line_integer(line, "parent", node->parent);
    esp_line_integer(line, "depth", node->depth);
}

/* Writes the earlier state of a node. If a newly added node always has this state, writes only
 * the node's index. */
static void put_change(const struct writer *w, const struct esp_change *change)
{
    const struct esp_growth *was = &change->was;
    if (was->copies == 1 && isnan(was->confidence) && !was->cut && was->reason == 0)
        esp_line_integer(w->line, NULL, change->node);
    else
        put_object(w, NULL, esp_fields_change, change);
}

static void put_layers(const struct writer *w)
{
    struct esp_line *line = w->line;
    if (!w->layers || w->layers->count == 0 || w->detail >= NO_LAYERS)
        return;
    const struct esp_change *change = w->layers->changes;
    esp_line_open(line, "layers", '[');
    for (int i = 0; i < w->layers->count; i++) {
        const struct esp_tree_layer *layer = &w->layers->layers[i];
        esp_line_open(line, NULL, '{');
        put_fields(w, esp_fields_layer, layer);
        esp_line_open(line, "was", '[');
        for (int j = 0; j < layer->changes; j++)
            put_change(w, change++);
        esp_line_close(line, ']');
        esp_line_close(line, '}');
    }
    esp_line_close(line, ']');
}

/* ------------------------------------------------------------------ scores */

static void put_score(const struct writer *w, const struct esp_token_score *score)
{
    esp_line_open(w->line, NULL, '{');
    put_fields(w, esp_fields_score, score);
    esp_line_open(w->line, "likely", '[');
    for (int i = 0; i < score->count; i++) {
        esp_line_open(w->line, NULL, '{');
        put_token_members(w, score->likely[i]);
        esp_line_float(w->line, "p", score->likely_p[i]);
        esp_line_close(w->line, '}');
    }
    esp_line_close(w->line, ']');
    esp_line_close(w->line, '}');
}

static void put_scores(const struct writer *w, const char *name, const struct esp_iteration *it)
{
    if (!it->scores || it->committed_count == 0)
        return;
    esp_line_open(w->line, name, '[');
    for (int i = 0; i < it->committed_count; i++)
        put_score(w, &it->scores[i]);
    esp_line_close(w->line, ']');
}

/* ------------------------------------------------------------------ tables */

static void put_array(const struct writer *w, const struct esp_field *f, const char *entry,
                      int count)
{
    esp_line_open(w->line, f->name, '[');
    for (int i = 0; i < count; i++, entry += f->size)
        put_object(w, NULL, f->of, entry);
    esp_line_close(w->line, ']');
}

/* Writes a member. Most members are left out if they have the value that a reader assumes for a
 * missing member. */
static void put_field(const struct writer *w, const struct esp_field *f, const void *base)
{
    struct esp_line *line = w->line;
    const enum esp_member_kind kind = f->kind;
    const void *at = (const char *)base + f->offset, *count = (const char *)base + f->count;
    const bool always = f->when & ESP_FIELD_ALWAYS;
    if (kind == ESP_FIELD_FLOAT)
        esp_line_float(line, f->name, *(const float *)at);
    else if (kind == ESP_FIELD_INTEGER && (always || *(const int *)at != (int)f->missing))
        esp_line_integer(line, f->name, *(const int *)at);
    else if (kind == ESP_FIELD_DOUBLE && (always || *(const double *)at != f->missing))
        esp_line_double(line, f->name, *(const double *)at);
    else if (kind == ESP_FIELD_LARGE && (always || *(const int64_t *)at != (int64_t)f->missing))
        esp_line_integer(line, f->name, *(const int64_t *)at);
    else if (kind == ESP_FIELD_FLAG && (always || *(const bool *)at))
        esp_line_flag(line, f->name, *(const bool *)at);
    else if (kind == ESP_FIELD_VERDICT && *(const uint8_t *)at != ESP_UNVISITED)
        put_text(line, f->name, esp_verdict_names[*(const uint8_t *)at]);
    else if (kind == ESP_FIELD_REASON && *(const uint8_t *)at != ESP_REASON_NONE)
        put_text(line, f->name, esp_reason_names[*(const uint8_t *)at]);
    else if (kind == ESP_FIELD_SOURCE && *(const uint8_t *)at != ESP_SOURCE_DRAFT)
        put_text(line, f->name, esp_source_names[*(const uint8_t *)at]);
    else if (kind == ESP_FIELD_TEXT)
        put_text(line, f->name, at);
    else if (kind == ESP_FIELD_KEPT || kind == ESP_FIELD_GAUGE)
        put_text(line, f->name, *(const char *const *)at);
    else if (kind == ESP_FIELD_SETTING)
        put_setting(line, f->name, at, (int)f->low);
    else if (kind == ESP_FIELD_SETTINGS)
        put_settings(line, f->name, at);
    else if (kind == ESP_FIELD_OPEN)
        esp_line_open(line, f->name, '{');
    else if (kind == ESP_FIELD_CLOSE)
        esp_line_close(line, '}');
    else if (kind == ESP_FIELD_MODEL && *(const char *)at)
        put_object(w, f->name, f->of, at);
    else if (kind == ESP_FIELD_ARRAY && *(const int *)count > 0)
        put_array(w, f, at, *(const int *)count);
    else if (kind == ESP_FIELD_NODES)
        put_array(w, f, *(const void *const *)at, *(const int *)count);
    else if (kind == ESP_FIELD_TOKEN)
        put_token_members(w, *(const int32_t *)at);
    else if (kind == ESP_FIELD_TOKENS || kind == ESP_FIELD_PLACES)
        put_ids(w, f, *(const int32_t *const *)at, *(const int *)count);
    else if (kind == ESP_FIELD_PARENT)
        put_parent(line, base);
    else if (kind == ESP_FIELD_SCORES)
        put_scores(w, f->name, base);
    else if (kind == ESP_FIELD_LAYERS)
        put_layers(w);
}

static void put_fields(const struct writer *w, const struct esp_field *fields, const void *base)
{
    for (const struct esp_field *f = fields; f->kind != ESP_FIELD_END; f++)
        if (!(f->when & ESP_FIELD_FORMULA) || w->detail < NO_FORMULAS)
            put_field(w, f, base);
}

/* ------------------------------------------------------------------ events */

static void begin(const struct writer *w, const struct esp_event *event)
{
    esp_line_open(w->line, NULL, '{');
    put_fields(w, esp_fields_event, event);
    put_text(w->line, "type", esp_recorded_type(NULL, event->type)->name);
}

static void end(struct esp_line *line)
{
    esp_line_close(line, '}');
    esp_line_newline(line);
}

/* Writes how many of the `count` tokens of this line are control tokens of the chat format.
 * `marks` is this number, but it can be above `count` (all tokens) or below 0 (no token). */
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
        begin(w, event);
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

/* Writes an event that is not a prompt. */
static void put_event(const struct writer *w, const struct esp_event *event)
{
    const bool tree = event->type == ESP_EVENT_ITERATION;
    begin(w, event);
    put_fields(w, esp_recorded_type(NULL, event->type)->fields,
               tree ? (const void *)event->iteration : event);
    end(w->line);
}

int esp_event_to_json(struct esp_line *line, const struct esp_event *event,
                      const struct esp_layers *layers, const struct esp_tokens *tokens)
{
    struct writer w = {line, tokens, layers, ALL};
    size_t start = line->length;
    if (!esp_recorded_type(NULL, event->type))
        return ESP_OK;
    if (event->type == ESP_EVENT_PROMPT)
        put_prompt(&w, event);
    else
        put_event(&w, event);
    while (event->type == ESP_EVENT_ITERATION && line->length - start > ESP_RECORDING_LINE &&
           w.detail < NO_FORMULAS) {
        line->length = start;
        w.detail++;
        put_event(&w, event);
    }
    return line->failed ? ESP_E_MEMORY : ESP_OK;
}

int esp_header_to_json(struct esp_line *line, const struct esp_recording_header *h)
{
    const struct writer w = {.line = line};
    char version[32];
    snprintf(version, sizeof version, "%d.%d", h->major, h->minor);
    esp_line_open(line, NULL, '{');
    put_text(line, "format", "espalier-session");
    put_text(line, "version", version);
    put_fields(&w, esp_fields_header, h);
    end(line);
    return line->failed ? ESP_E_MEMORY : ESP_OK;
}
