/* event_read.c - converts lines of JSON to events and headers, and checks them; see
 * event_json.h.
 *
 * Reading a line stops at its first error. `struct reader` stores the status and the message,
 * so the functions below need not check for errors after every member. Every value that is
 * shown or added up later must be within its range. This is checked here and nowhere else.
 */
#include "sessions/event_json.h"

#include <cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/event_fields.h"

enum { MOST = 1 << 30 };

struct reader {
    char *err;
    size_t errlen;
    int status;
    struct esp_recorded_event *to;
    struct esp_texts *texts;
    int vocabulary;
    int ids, kept; /* how many of the ids and texts in `to` are used */
};

static void read_fields(struct reader *r, const cJSON *object, const struct esp_field *fields,
                        void *base);

__attribute__((format(printf, 3, 4))) static void refuse(struct reader *r, int status,
                                                         const char *format, ...)
{
    char sentence[256];
    va_list args;
    if (r->status < 0)
        return;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    r->status = esp_fail(r->err, r->errlen, status, "%s", sentence);
}

/* ------------------------------------------------------------------ values */

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static int32_t integer_value(struct reader *r, const cJSON *item, const char *name, int low,
                             int high)
{
    double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (value >= low && value <= high && value == floor(value))
        return (int32_t)value;
    refuse(r, ESP_E_FORMAT, "%s must be a whole number from %d to %d", name, low, high);
    return low;
}

static int32_t integer(struct reader *r, const cJSON *object, const struct esp_field *f)
{
    const cJSON *item = member(object, f->name);
    if (!item && f->when != ESP_FIELD_REQUIRED)
        return (int32_t)f->missing;
    return integer_value(r, item, f->name, (int)f->low, (int)f->high);
}

static double real(struct reader *r, const cJSON *object, const struct esp_field *f)
{
    const cJSON *item = member(object, f->name);
    if (!item || cJSON_IsNull(item))
        return f->missing;
    double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (value >= f->low && value <= f->high)
        return value;
    refuse(r, ESP_E_FORMAT, "%s must be a number from %g to %g", f->name, f->low, f->high);
    return f->missing;
}

/* Returns the string in a member, or "" if the object has no such member. */
static const char *text(const cJSON *object, const char *name)
{
    const char *value = cJSON_GetStringValue(member(object, name));
    return value ? value : "";
}

/* Returns the array in a member, and sets *count to its length. Returns NULL if the object has
 * no such member. */
static const cJSON *array(struct reader *r, const cJSON *object, const char *name, int most,
                          int *count)
{
    const cJSON *item = member(object, name);
    *count = 0;
    if (item && !cJSON_IsArray(item)) {
        refuse(r, ESP_E_FORMAT, "%s must be an array", name);
        return NULL;
    }
    *count = item ? cJSON_GetArraySize(item) : 0;
    if (*count <= most)
        return item;
    refuse(r, ESP_E_FORMAT, "%s has %d entries; at most %d are allowed", name, *count, most);
    *count = 0;
    return NULL;
}

/* Copies a string of the line of JSON. The copy is valid while the event exists. */
static const char *keep(struct reader *r, const char *value)
{
    char **place = &r->to->texts[r->kept++], *copy = strdup(value);
    if (!copy)
        refuse(r, ESP_E_MEMORY, "not enough memory for its text");
    free(*place);
    *place = copy;
    return copy;
}

static const char *gauge_name(struct reader *r, const char *value)
{
    const char *name = esp_texts_name(r->texts, value);
    if (!name)
        refuse(r, ESP_E_FORMAT, "the names of gauges are too long, too many or not UTF-8");
    return name;
}

/* Returns the enumerator with this name, or `unknown` if no enumerator has it. */
static uint8_t word(const char *const *names, const char *name, uint8_t unknown)
{
    for (uint8_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return unknown;
}

static uint8_t verdict(struct reader *r, const char *name)
{
    const uint8_t found = *name ? word(esp_verdict_names, name, UINT8_MAX) : ESP_UNVISITED;
    if (found == UINT8_MAX)
        refuse(r, ESP_E_FORMAT, "verdict must be unvisited, accepted, rejected or cut");
    return found;
}

/* ------------------------------------------------------------------ tokens */

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Turns hexadecimal digits into bytes, in place. Returns -1 if the text has any other
 * character. */
static long bytes_of(char *hex)
{
    long count = 0;
    for (char *at = hex; *at; at += 2) {
        int high = digit(at[0]), low = high < 0 ? -1 : digit(at[1]);
        if (low < 0)
            return -1;
        hex[count++] = (char)(high << 4 | low);
    }
    return count;
}

/* Reads a token. Returns its id, and adds its text to the store of texts. */
static int32_t token(struct reader *r, const cJSON *object)
{
    int last = r->vocabulary > 0 ? r->vocabulary - 1 : INT32_MAX - 1;
    int32_t id = integer_value(r, member(object, "id"), "id", 0, last);
    char *bytes = cJSON_GetStringValue(member(object, "bytes"));
    const char *string = cJSON_GetStringValue(member(object, "text"));
    if (r->status < 0 || (!bytes && !string))
        return id;
    long length = bytes ? bytes_of(bytes) : (long)strlen(string);
    if (length < 0)
        refuse(r, ESP_E_FORMAT, "bytes must be pairs of hexadecimal digits");
    else if (esp_texts_add(r->texts, id, bytes ? bytes : string, (size_t)length) < 0)
        refuse(r, ESP_E_MEMORY, "not enough memory for its texts");
    return id;
}

/* ------------------------------------------------------------------ trees */

/* Reads the parent of a node, and computes its depth from it. */
static void read_parent(struct reader *r, const cJSON *object, struct esp_node *node)
{
    const struct esp_node *nodes = r->to->iteration.nodes;
    const int index = (int)(node - nodes);
    const cJSON *depth = member(object, "depth");
    node->parent = -1;
    node->depth = 0;
    if (index > 0) {
        node->parent = integer_value(r, member(object, "parent"), "parent", 0, index - 1);
        node->depth = nodes[node->parent].depth + 1;
    }
    if (depth && integer_value(r, depth, "depth", 0, ESP_RECORDING_NODES) != node->depth)
        refuse(r, ESP_E_FORMAT, "depth must be the parent's depth plus one");
}

/* Reads an array of tokens, or of indices of nodes. */
static const int32_t *read_ids(struct reader *r, const cJSON *object, const struct esp_field *f,
                               int *count)
{
    const int nodes = r->to->iteration.it.tree.count;
    const int32_t *first = r->to->iteration.ids + r->ids;
    const cJSON *item, *items = array(r, object, f->name, nodes, count);
    cJSON_ArrayForEach(item, items) r->to->iteration.ids[r->ids++] =
        f->kind == ESP_FIELD_TOKENS ? token(r, item)
                                    : integer_value(r, item, f->name, 0, nodes - 1);
    return first;
}

/* Checks the member `order`. The root must be first, and every parent must be before its
 * children. No node may be listed twice, and no listed node may be cut. */
static void check_order(struct reader *r)
{
    const struct esp_tree *tree = &r->to->iteration.it.tree;
    uint8_t placed[ESP_RECORDING_NODES] = {0};
    for (int i = 0; i < tree->verified && r->status == 0; i++) {
        int32_t at = tree->order[i], parent = tree->nodes[at].parent;
        if (placed[at] || tree->nodes[at].verdict == ESP_CUT ||
            (parent < 0 ? i > 0 : !placed[parent]))
            refuse(r, ESP_E_FORMAT,
                   "order must list only nodes that were not cut, each once, parents first");
        placed[at] = 1;
    }
    for (int i = 0; i < r->to->iteration.it.path_length && r->status == 0; i++)
        if (tree->verified > 0 && !placed[r->to->iteration.it.path[i]])
            refuse(r, ESP_E_FORMAT, "path must contain only nodes that order lists");
}

static void check_path(struct reader *r)
{
    const struct esp_iteration *it = &r->to->iteration.it;
    for (int i = 0; i < it->path_length && r->status == 0; i++)
        if (it->tree.nodes[it->path[i]].parent != (i == 0 ? 0 : it->path[i - 1]))
            refuse(r, ESP_E_FORMAT, "path must lead down from the root, from node to child");
    if (it->committed_count > it->path_length + 1)
        refuse(r, ESP_E_FORMAT, "committed has more tokens than path and bonus together");
    for (int i = 0; i < it->committed_count && r->status == 0; i++)
        if (it->committed[i] !=
            (i < it->path_length ? it->tree.nodes[it->path[i]].token : it->bonus))
            refuse(r, ESP_E_FORMAT, "committed must be the tokens of path, followed by bonus");
}

int esp_event_check(struct esp_recorded_event *recorded, char *err, size_t errlen)
{
    struct reader r = {.err = err, .errlen = errlen, .to = recorded};
    check_order(&r);
    if (r.status == 0)
        check_path(&r);
    return r.status;
}

static void read_change(struct reader *r, const cJSON *item, int nodes)
{
    struct esp_change change = {.was = {.copies = 1, .confidence = NAN}};
    const bool alone = cJSON_IsNumber(item);
    const cJSON *node = alone ? item : member(item, "node");
    change.node = integer_value(r, node, alone ? "was" : "node", 0, nodes - 1);
    if (!alone)
        read_fields(r, item, esp_fields_change, &change);
    if (r->status == 0 && esp_layers_change(&r->to->layers, change) < 0)
        refuse(r, ESP_E_MEMORY, "not enough memory for its layers");
}

static void read_layers(struct reader *r, const cJSON *object)
{
    int count, least = 1;
    const cJSON *item, *was, *layers = array(r, object, "layers", ESP_RECORDING_NODES, &count);
    cJSON_ArrayForEach(item, layers)
    {
        struct esp_tree_layer layer = {.nodes = least};
        const int most = r->to->iteration.it.tree.count;
        least = integer_value(r, member(item, "nodes"), "nodes", least, most);
        read_fields(r, item, esp_fields_layer, &layer);
        const cJSON *list = array(r, item, "was", layer.nodes, &layer.changes);
        cJSON_ArrayForEach(was, list) read_change(r, was, layer.nodes);
        if (r->status == 0 && esp_layers_add(&r->to->layers, layer) < 0)
            refuse(r, ESP_E_MEMORY, "not enough memory for its layers");
        if (r->status < 0)
            return;
    }
}

/* ------------------------------------------------------------------ scores */

static void read_score(struct reader *r, const cJSON *object, struct esp_token_score *score)
{
    static const struct esp_field p = {
        .kind = ESP_FIELD_FLOAT, .when = ESP_FIELD_REQUIRED, .name = "p", .high = 1.01};
    const cJSON *item, *items = array(r, object, "likely", ESP_LIKELY, &score->count);
    int count = 0;
    *score = (struct esp_token_score){.count = score->count};
    read_fields(r, object, esp_fields_score, score);
    cJSON_ArrayForEach(item, items)
    {
        score->likely[count] = token(r, item);
        score->likely_p[count++] = (float)real(r, item, &p);
    }
    if (score->rank > score->count)
        refuse(r, ESP_E_FORMAT, "rank must be the rank of one of the likely tokens");
}

/* Reads the scores. There is one score for each committed token, or no score at all. */
static const struct esp_token_score *read_scores(struct reader *r, const cJSON *object,
                                                 const char *name)
{
    struct esp_iteration_copy *to = &r->to->iteration;
    const int committed = to->it.committed_count;
    int count, at = 0;
    const cJSON *item, *items = array(r, object, name, ESP_RECORDING_NODES, &count);
    if (count == 0)
        return NULL;
    if (count != committed)
        refuse(r, ESP_E_FORMAT, "%s must have an entry for each committed token", name);
    if (r->status == 0 && esp_iteration_reserve_scores(to, committed) < 0)
        refuse(r, ESP_E_MEMORY, "not enough memory for the iteration");
    cJSON_ArrayForEach(item, items)
    {
        if (r->status < 0)
            return NULL;
        read_score(r, item, &to->scores[at++]);
    }
    return to->scores;
}

/* ------------------------------------------------------------------ tables */

static void read_array(struct reader *r, const cJSON *object, const struct esp_field *f,
                       char *entry, int *count)
{
    const cJSON *item, *items = array(r, object, f->name, (int)f->high, count);
    cJSON_ArrayForEach(item, items)
    {
        read_fields(r, item, f->of, entry);
        entry += f->size;
    }
}

/* Reads a setting. An unknown or invalid setting is ignored, because settings are only shown.
 * An invalid seed is an error, because it is needed to repeat the session. */
static void read_setting(struct reader *r, const cJSON *object, const char *name,
                         struct esp_session_values *values, int setting)
{
    const char *words = text(object, name);
    char why[160];
    if (esp_value_parse(values, setting, name, words, why, sizeof why) < 0 && *words &&
        setting == ESP_VALUE_OF_seed)
        refuse(r, ESP_E_FORMAT, "its seed is not a whole number from 0 to 2^64 - 1");
}

static void read_settings(struct reader *r, const cJSON *object,
                          struct esp_session_values *values)
{
    struct esp_value_info info;
    char why[160];
    for (int i = 0; esp_value_info(i, &info); i++)
        if (!esp_has_own_place(i))
            read_setting(r, object, info.name, values, i);
    esp_values_check(values, why, sizeof why);
}

static void read_field(struct reader *r, const cJSON *object, const struct esp_field *f,
                       void *base)
{
    const enum esp_member_kind kind = f->kind;
    void *at = (char *)base + f->offset, *count = (char *)base + f->count;
    if (kind == ESP_FIELD_FLOAT)
        *(float *)at = (float)real(r, object, f);
    else if (kind == ESP_FIELD_INTEGER)
        *(int *)at = integer(r, object, f);
    else if (kind == ESP_FIELD_DOUBLE)
        *(double *)at = real(r, object, f);
    else if (kind == ESP_FIELD_LARGE)
        *(int64_t *)at = (int64_t)real(r, object, f);
    else if (kind == ESP_FIELD_FLAG)
        *(bool *)at = cJSON_IsTrue(member(object, f->name));
    else if (kind == ESP_FIELD_VERDICT)
        *(uint8_t *)at = verdict(r, text(object, f->name));
    else if (kind == ESP_FIELD_REASON)
        *(uint8_t *)at = word(esp_reason_names, text(object, f->name), ESP_REASON_NONE);
    else if (kind == ESP_FIELD_SOURCE)
        *(uint8_t *)at = word(esp_source_names, text(object, f->name), ESP_SOURCE_DRAFT);
    else if (kind == ESP_FIELD_TEXT)
        snprintf(at, f->size, "%s", text(object, f->name));
    else if (kind == ESP_FIELD_KEPT)
        *(const char **)at = keep(r, text(object, f->name));
    else if (kind == ESP_FIELD_GAUGE)
        *(const char **)at = gauge_name(r, text(object, f->name));
    else if (kind == ESP_FIELD_SETTING)
        read_setting(r, object, f->name, at, (int)f->low);
    else if (kind == ESP_FIELD_SETTINGS)
        read_settings(r, member(object, f->name), at);
    else if (kind == ESP_FIELD_MODEL)
        read_fields(r, member(object, f->name), f->of, at);
    else if (kind == ESP_FIELD_ARRAY)
        read_array(r, object, f, at, count);
    else if (kind == ESP_FIELD_TOKEN)
        *(int32_t *)at = token(r, object);
    else if (kind == ESP_FIELD_TOKENS || kind == ESP_FIELD_PLACES)
        *(const int32_t **)at = read_ids(r, object, f, count);
    else if (kind == ESP_FIELD_PARENT)
        read_parent(r, object, base);
    else if (kind == ESP_FIELD_SCORES)
        *(const struct esp_token_score **)at = read_scores(r, object, f->name);
    else if (kind == ESP_FIELD_LAYERS)
        read_layers(r, object);
}

static void read_fields(struct reader *r, const cJSON *object, const struct esp_field *fields,
                        void *base)
{
    const cJSON *in = object;
    for (const struct esp_field *f = fields; f->kind != ESP_FIELD_END && r->status == 0; f++) {
        if (f->kind == ESP_FIELD_OPEN)
            in = member(object, f->name);
        else if (f->kind == ESP_FIELD_CLOSE)
            in = object;
        else
            read_field(r, in, f, base);
    }
}

/* ------------------------------------------------------------------ events */

static void make_room(struct reader *r, int nodes, int ids)
{
    if (esp_iteration_reserve(&r->to->iteration, nodes, ids) < 0)
        refuse(r, ESP_E_MEMORY, "not enough memory for the iteration");
}

/* Reads an iteration. Its nodes are read first, because the other members refer to them. */
static void read_iteration(struct reader *r, const cJSON *object)
{
    struct esp_iteration_copy *to = &r->to->iteration;
    int nodes;
    const cJSON *item, *items = array(r, object, "nodes", ESP_RECORDING_NODES, &nodes);
    if (nodes < 1)
        refuse(r, ESP_E_FORMAT, "an iteration has at least one node, the root");
    make_room(r, nodes, 3 * nodes);
    if (r->status < 0)
        return;
    r->to->event.iteration = &to->it;
    to->it.tree.nodes = to->nodes;
    cJSON_ArrayForEach(item, items)
        read_fields(r, item, esp_fields_node, &to->nodes[to->it.tree.count++]);
    read_fields(r, object, esp_fields_iteration, &to->it);
    if (r->status == 0)
        check_order(r);
    if (r->status == 0)
        check_path(r);
}

static void read_prompt(struct reader *r, const cJSON *object)
{
    struct esp_event *event = &r->to->event;
    int count;
    const cJSON *item, *items = array(r, object, "tokens", ESP_RECORDING_LINE, &count);
    const cJSON *marks = member(object, "marks"), *after = member(object, "marks_after");
    make_room(r, 0, count);
    event->tokens = r->to->iteration.ids;
    cJSON_ArrayForEach(item, items)
    {
        if (r->status < 0)
            return;
        r->to->iteration.ids[event->token_count++] = token(r, item);
    }
    event->marks = marks ? integer_value(r, marks, "marks", 0, count) : 0;
    event->marks_after = after ? integer_value(r, after, "marks_after", 0, count) : 0;
}

static void read_event(struct reader *r, const cJSON *object,
                       const struct esp_recorded_type *type)
{
    struct esp_event *event = &r->to->event;
    if (!member(object, "t"))
        refuse(r, ESP_E_FORMAT, "it has no time \"t\"");
    read_fields(r, object, esp_fields_event, event);
    if (event->type == ESP_EVENT_ITERATION)
        read_iteration(r, object);
    else if (event->type == ESP_EVENT_PROMPT)
        read_prompt(r, object);
    else
        read_fields(r, object, type->fields, event);
}

/* ------------------------------------------------------------------ lines */

/* Returns how deep the brackets of a line are nested. Brackets inside strings do not count. */
static int nesting(const char *line, size_t length)
{
    int depth = 0, deepest = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        char c = line[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            deepest = ++depth > deepest ? depth : deepest;
        else if (!quoted && (c == '}' || c == ']'))
            depth--;
    }
    return deepest;
}

static cJSON *parse(struct reader *r, const char *line, size_t length)
{
    const char *end = NULL;
    if (length > ESP_RECORDING_LINE || nesting(line, length) > ESP_RECORDING_DEPTH) {
        refuse(r, ESP_E_FORMAT, "it is longer than %d bytes or nested deeper than %d",
               ESP_RECORDING_LINE, ESP_RECORDING_DEPTH);
        return NULL;
    }
    cJSON *object = cJSON_ParseWithLengthOpts(line, length, &end, 0);
    while (object && end < line + length && (*end == ' ' || *end == '\t' || *end == '\r'))
        end++;
    if (object && cJSON_IsObject(object) && end == line + length)
        return object;
    refuse(r, ESP_E_FORMAT, "it is not one JSON object");
    cJSON_Delete(object);
    return NULL;
}

int esp_event_from_json(struct esp_recorded_event *recorded, struct esp_texts *texts,
                        const char *line, size_t length, int vocabulary, char *err,
                        size_t errlen)
{
    struct reader r = {err, errlen, 0, recorded, texts, vocabulary, 0, 0};
    cJSON *object = parse(&r, line, length);
    if (!object)
        return r.status;
    const struct esp_recorded_type *type = esp_recorded_type(text(object, "type"), -1);
    recorded->event = (struct esp_event){.type = type ? type->type : -1};
    recorded->iteration.it = (struct esp_iteration){.index = 0};
    esp_layers_begin(&recorded->layers);
    if (type)
        read_event(&r, object, type);
    cJSON_Delete(object);
    return r.status < 0 ? r.status : type != NULL;
}

static void read_version(struct reader *r, const cJSON *object, struct esp_recording_header *h)
{
    char more;
    if (strcmp(text(object, "format"), "espalier-session") != 0)
        refuse(r, ESP_E_FORMAT, "it is not an espalier recording");
    else if (sscanf(text(object, "version"), "%9d.%9d%c", &h->major, &h->minor, &more) != 2 ||
             h->major < 0 || h->minor < 0)
        refuse(r, ESP_E_FORMAT, "its version is not of the form \"1.0\"");
    else if (h->major != ESP_RECORDING_MAJOR)
        refuse(r, ESP_E_UNSUPPORTED,
               "it has format version %d.%d, and this espalier reads %d.x; use %s one",
               h->major, h->minor, ESP_RECORDING_MAJOR,
               h->major > ESP_RECORDING_MAJOR ? "a newer" : "an older");
}

int esp_header_from_json(struct esp_recording_header *header, const char *line, size_t length,
                         char *err, size_t errlen)
{
    struct reader r = {.err = err, .errlen = errlen};
    cJSON *object = parse(&r, line, length);
    *header = (struct esp_recording_header){.major = 0};
    if (object)
        read_version(&r, object, header);
    if (object && r.status == 0)
        read_fields(&r, object, esp_fields_header, header);
    cJSON_Delete(object);
    return r.status;
}

void esp_recorded_event_free(struct esp_recorded_event *recorded)
{
    esp_layers_free(&recorded->layers);
    esp_iteration_free(&recorded->iteration);
    free(recorded->texts[0]);
    free(recorded->texts[1]);
    *recorded = (struct esp_recorded_event){.texts = {NULL}};
}
