/* event_read.c - lines of JSON to events and headers, checked; see event_json.h.
 *
 * Reading a line ends at its first error. `struct reader` keeps the status and the sentence, so
 * the functions below need not check them after every member. Every value that could spoil a
 * drawing or a sum is range-checked here, so that no other code has to.
 */
#include "sessions/event_json.h"

#include <cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/event_names.h"

static const double LARGEST = 1e9; /* of a time, a threshold, ... */
static const double ONE = 1.01;    /* of a probability, with rounding */

enum { MOST = 1 << 30 };

struct reader {
    char *err;
    size_t errlen;
    int status;
    struct esp_recorded_event *to;
    struct esp_texts *texts;
    int vocabulary;
};

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

static int32_t integer(struct reader *r, const cJSON *object, const char *name, int low,
                       int high)
{
    return integer_value(r, member(object, name), name, low, high);
}

static int32_t integer_or(struct reader *r, const cJSON *object, const char *name, int low,
                          int high, int missing)
{
    const cJSON *item = member(object, name);
    return item ? integer_value(r, item, name, low, high) : missing;
}

/* A number, or `missing` if there is none. */
static double real_or(struct reader *r, const cJSON *object, const char *name, double low,
                      double high, double missing)
{
    const cJSON *item = member(object, name);
    if (!item || cJSON_IsNull(item))
        return missing;
    double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (value >= low && value <= high)
        return value;
    refuse(r, ESP_E_FORMAT, "%s must be a number from %g to %g", name, low, high);
    return missing;
}

static bool flag(const cJSON *object, const char *name)
{
    return cJSON_IsTrue(member(object, name));
}

/* A text, or "". */
static const char *text(const cJSON *object, const char *name)
{
    const char *value = cJSON_GetStringValue(member(object, name));
    return value ? value : "";
}

/* An array (its length in *count), or NULL if there is none. */
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

/* ------------------------------------------------------------------ tokens */

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Turns hexadecimal digits into bytes, in place; -1 if there is anything else. */
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

/* The id of a token; its text is kept. */
static int32_t token(struct reader *r, const cJSON *object)
{
    int last = r->vocabulary > 0 ? r->vocabulary - 1 : INT32_MAX - 1;
    int32_t id = integer(r, object, "id", 0, last);
    char *bytes = cJSON_GetStringValue(member(object, "bytes"));
    const char *string = cJSON_GetStringValue(member(object, "text"));
    if (r->status < 0 || (!bytes && !string))
        return id;
    long length = bytes ? bytes_of(bytes) : (long)strlen(string);
    if (length < 0)
        refuse(r, ESP_E_FORMAT, "bytes must be pairs of hexadecimal digits");
    else if (esp_texts_add(r->texts, id, bytes ? bytes : string, (size_t)length) < 0)
        refuse(r, ESP_E_MEMORY, "no memory for its texts");
    return id;
}

/* Makes room for one id more than needed, so that the array exists even if it is empty. */
static void make_room(struct reader *r, int nodes, int ids)
{
    struct esp_recorded_event *to = r->to;
    ids++;
    if (nodes > to->node_capacity) {
        free(to->nodes);
        to->nodes = malloc((size_t)nodes * sizeof *to->nodes);
        to->node_capacity = to->nodes ? nodes : 0;
    }
    if (ids > to->id_capacity) {
        free(to->ids);
        to->ids = malloc((size_t)ids * sizeof *to->ids);
        to->id_capacity = to->ids ? ids : 0;
    }
    if (to->node_capacity < nodes || to->id_capacity < ids)
        refuse(r, ESP_E_MEMORY, "no memory for it");
}

/* ------------------------------------------------------------------ iterations */

/* The enumerator with this name, or `unknown`. */
static int word(const char *const *names, const char *name, int unknown)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return unknown;
}

static struct esp_node read_node(struct reader *r, const cJSON *object, int index)
{
    const struct esp_node *nodes = r->to->nodes;
    struct esp_node node = {.token = token(r, object), .parent = -1};
    if (index > 0) {
        node.parent = integer(r, object, "parent", 0, index - 1);
        node.depth = nodes[node.parent].depth + 1;
    }
    if (integer_or(r, object, "depth", 0, ESP_RECORDING_NODES, node.depth) != node.depth)
        refuse(r, ESP_E_FORMAT, "depth must be the parent's depth plus one");
    node.rank = integer_or(r, object, "rank", 0, ESP_RECORDING_NODES, 0);
    node.copies = integer_or(r, object, "copies", 1, MOST, 1);
    node.copied = integer_or(r, object, "copied", 0, MOST, 0);
    node.q = (float)real_or(r, object, "q", 0, ONE, NAN);
    node.cumulative_log_q =
        (float)real_or(r, object, "cumulative_log_q", -LARGEST, ONE, -INFINITY);
    node.confidence = (float)real_or(r, object, "confidence", 0, ONE, NAN);
    node.value = (float)real_or(r, object, "value", -LARGEST, LARGEST, NAN);
    node.p = (float)real_or(r, object, "p", 0, ONE, NAN);
    node.u = (float)real_or(r, object, "u", 0, ONE, NAN);
    node.acceptance = (float)real_or(r, object, "acceptance", 0, ONE, NAN);
    node.branching = (float)real_or(r, object, "branching", 0, ONE, NAN);
    node.acceptance_rate = (float)real_or(r, object, "acceptance_rate", 0, ONE, NAN);
    node.ceiling = (float)real_or(r, object, "ceiling", 0, ONE, NAN);
    node.drawn = flag(object, "drawn");
    const char *verdict = text(object, "verdict");
    int known = *verdict ? word(esp_verdict_names, verdict, -1) : ESP_UNVISITED;
    if (known < 0)
        refuse(r, ESP_E_FORMAT, "verdict must be unvisited, accepted, rejected or cut");
    node.verdict = (uint8_t)known;
    node.reason = (uint8_t)word(esp_reason_names, text(object, "reason"), ESP_REASON_NONE);
    return node;
}

static void read_nodes(struct reader *r, const cJSON *nodes)
{
    const cJSON *item;
    int count = 0;
    cJSON_ArrayForEach(item, nodes)
    {
        r->to->nodes[count] = read_node(r, item, count);
        if (r->status < 0)
            return;
        count++;
    }
    r->to->iteration.tree.nodes = r->to->nodes;
    r->to->iteration.tree.count = count;
}

static void read_ids(struct reader *r, const cJSON *items, const char *name, int32_t *ids)
{
    const cJSON *item;
    int last = r->to->iteration.tree.count - 1;
    cJSON_ArrayForEach(item, items) *ids++ = integer_value(r, item, name, 0, last);
}

/* The flattened order: root first, no node twice, no cut node, parents before children. */
static void check_order(struct reader *r)
{
    const struct esp_tree *tree = &r->to->iteration.tree;
    uint8_t placed[ESP_RECORDING_NODES] = {0};
    for (int i = 0; i < tree->verified && r->status == 0; i++) {
        int32_t at = tree->order[i], parent = tree->nodes[at].parent;
        if (placed[at] || tree->nodes[at].verdict == ESP_CUT ||
            (parent < 0 ? i > 0 : !placed[parent]))
            refuse(r, ESP_E_FORMAT,
                   "order must list nodes that were not cut once, parents first");
        placed[at] = 1;
    }
    for (int i = 0; i < r->to->iteration.path_length && r->status == 0; i++)
        if (tree->verified > 0 && !placed[r->to->iteration.path[i]])
            refuse(r, ESP_E_FORMAT, "path must consist of nodes in order");
}

static void check_path(struct reader *r)
{
    const struct esp_iteration *it = &r->to->iteration;
    for (int i = 0; i < it->path_length && r->status == 0; i++)
        if (it->tree.nodes[it->path[i]].parent != (i == 0 ? 0 : it->path[i - 1]))
            refuse(r, ESP_E_FORMAT, "path must lead from the root from node to child");
    if (it->committed_count > it->path_length + 1)
        refuse(r, ESP_E_FORMAT, "more tokens are committed than path and bonus have");
    for (int i = 0; i < it->committed_count && r->status == 0; i++)
        if (it->committed[i] !=
            (i < it->path_length ? it->tree.nodes[it->path[i]].token : it->bonus))
            refuse(r, ESP_E_FORMAT, "committed must be the tokens of path, then bonus");
}

static void read_gauges(struct reader *r, const cJSON *object)
{
    struct esp_iteration *it = &r->to->iteration;
    const cJSON *item, *gauges = array(r, object, "gauges", ESP_MAX_GAUGES, &it->gauge_count);
    int count = 0;
    cJSON_ArrayForEach(item, gauges)
    {
        it->gauges[count++] = (struct esp_gauge){
            .name = esp_texts_name(r->texts, text(item, "name")),
            .before = real_or(r, item, "before", -LARGEST, LARGEST, NAN),
            .after = real_or(r, item, "after", -LARGEST, LARGEST, NAN),
            .minimum = real_or(r, item, "minimum", -LARGEST, LARGEST, NAN),
            .maximum = real_or(r, item, "maximum", -LARGEST, LARGEST, NAN),
        };
        if (!it->gauges[count - 1].name)
            refuse(r, ESP_E_FORMAT,
                   "gauges have names that are too long, too many or not UTF-8");
    }
}

static void read_choices(struct reader *r, const cJSON *object)
{
    struct esp_iteration *it = &r->to->iteration;
    const cJSON *item,
        *choices = array(r, object, "choices", ESP_MAX_CHOICES, &it->choice_count);
    int count = 0;
    cJSON_ArrayForEach(item, choices)
    {
        it->choices[count++] = (struct esp_shape_choice){
            .paths = integer(r, item, "K", 1, ESP_MAX_NODES),
            .stem = integer(r, item, "L1", 0, ESP_MAX_NODES),
            .branch = integer(r, item, "L2", 0, ESP_MAX_NODES),
            .share = real_or(r, item, "share", 0, ONE, NAN),
            .tokens = real_or(r, item, "tokens", 0, LARGEST, NAN),
            .seconds = real_or(r, item, "seconds", 0, LARGEST, NAN),
        };
    }
}

static void read_change(struct reader *r, const cJSON *item, int nodes)
{
    struct esp_change change = {.was = {.copies = 1, .confidence = NAN}};
    if (cJSON_IsNumber(item)) {
        change.node = integer_value(r, item, "was", 0, nodes - 1);
    } else {
        change.node = integer(r, item, "node", 0, nodes - 1);
        change.was.copies = integer_or(r, item, "copies", 1, MOST, 1);
        change.was.confidence = (float)real_or(r, item, "confidence", 0, ONE, NAN);
        change.was.cut = flag(item, "cut");
        change.was.reason =
            (uint8_t)word(esp_reason_names, text(item, "reason"), ESP_REASON_NONE);
    }
    if (r->status == 0 && esp_layers_change(&r->to->layers, change) < 0)
        refuse(r, ESP_E_MEMORY, "no memory for its layers");
}

static void read_layers(struct reader *r, const cJSON *object)
{
    int count, changes, least = 1;
    const cJSON *item, *was, *layers = array(r, object, "layers", ESP_RECORDING_NODES, &count);
    cJSON_ArrayForEach(item, layers)
    {
        struct esp_tree_layer layer = {
            .time = real_or(r, item, "t", 0, LARGEST, 0),
            .nodes = integer(r, item, "nodes", least, r->to->iteration.tree.count),
            .passes = integer(r, item, "passes", 0, MOST),
        };
        const cJSON *list = array(r, item, "was", layer.nodes, &changes);
        cJSON_ArrayForEach(was, list) read_change(r, was, layer.nodes);
        layer.changes = changes;
        least = layer.nodes;
        if (r->status == 0 && esp_layers_add(&r->to->layers, layer) < 0)
            refuse(r, ESP_E_MEMORY, "no memory for its layers");
        if (r->status < 0)
            return;
    }
}

static void read_numbers(struct reader *r, const cJSON *object)
{
    struct esp_iteration *it = &r->to->iteration;
    const cJSON *bonus = member(object, "bonus"), *seconds = member(object, "seconds");
    it->index = integer(r, object, "index", 0, MOST);
    it->position = integer(r, object, "position", 0, MOST);
    it->lossy = flag(object, "lossy");
    it->ends_turn = flag(object, "ends_turn");
    it->bonus = token(r, bonus);
    it->bonus_u = (float)real_or(r, bonus, "u", 0, ONE, NAN);
    it->deepest = integer_or(r, object, "deepest", 0, ESP_RECORDING_NODES, 0);
    it->draft_passes = integer_or(r, object, "draft_passes", 0, MOST, 0);
    it->target_passes = integer_or(r, object, "target_passes", 0, MOST, 0);
    it->mask_blocks = integer_or(r, object, "mask_blocks", 0, MOST, 0);
    it->baseline = real_or(r, object, "baseline", 0, LARGEST, 0);
    for (int i = 0; i < ESP_STAGES; i++)
        it->seconds[i] = real_or(r, seconds, esp_stage_name(i), 0, LARGEST, 0);
}

static void read_iteration(struct reader *r, const cJSON *object)
{
    struct esp_recorded_event *to = r->to;
    struct esp_iteration *it = &to->iteration;
    int nodes, order, path, committed, most = ESP_RECORDING_NODES;
    const cJSON *node_items = array(r, object, "nodes", most, &nodes);
    const cJSON *order_items = array(r, object, "order", nodes, &order);
    const cJSON *path_items = array(r, object, "path", nodes, &path);
    const cJSON *item, *committed_items = array(r, object, "committed", nodes, &committed);
    if (nodes < 1)
        refuse(r, ESP_E_FORMAT, "an iteration has at least one node, the root");
    make_room(r, nodes, order + path + committed);
    if (r->status < 0)
        return;
    to->event.iteration = it;
    read_nodes(r, node_items);
    read_numbers(r, object);
    if (r->status < 0)
        return;
    it->tree.order = to->ids;
    it->tree.verified = order;
    it->path = to->ids + order;
    it->path_length = path;
    it->committed = to->ids + order + path;
    it->committed_count = committed;
    read_ids(r, order_items, "order", to->ids);
    read_ids(r, path_items, "path", to->ids + order);
    committed = order + path;
    cJSON_ArrayForEach(item, committed_items) to->ids[committed++] = token(r, item);
    read_gauges(r, object);
    read_choices(r, object);
    read_layers(r, object);
    if (r->status == 0)
        check_order(r);
    if (r->status == 0)
        check_path(r);
}

/* ------------------------------------------------------------------ other events */

static void read_prompt(struct reader *r, const cJSON *object)
{
    struct esp_recorded_event *to = r->to;
    int count;
    const cJSON *item, *items = array(r, object, "tokens", ESP_RECORDING_LINE, &count);
    make_room(r, 0, count);
    to->event.tokens = to->ids;
    cJSON_ArrayForEach(item, items)
    {
        if (r->status < 0)
            return;
        to->ids[to->event.token_count++] = token(r, item);
    }
    if (member(object, "marks"))
        to->event.marks = integer(r, object, "marks", 0, count);
    if (member(object, "marks_after"))
        to->event.marks_after = integer(r, object, "marks_after", 0, count);
}

/* Copies a text of the line, because it must live as long as the event. */
static const char *keep(struct reader *r, char **place, const char *value)
{
    char *copy = strdup(value);
    if (!copy)
        refuse(r, ESP_E_MEMORY, "no memory for its text");
    free(*place);
    *place = copy;
    return copy;
}

static void read_event(struct reader *r, const cJSON *object)
{
    struct esp_recorded_event *to = r->to;
    if (!member(object, "t"))
        refuse(r, ESP_E_FORMAT, "it has no time \"t\"");
    to->event.time = real_or(r, object, "t", 0, LARGEST, 0);
    switch (to->event.type) {
    case ESP_EVENT_ITERATION:
        read_iteration(r, object);
        to->iteration.drafter = keep(r, &to->key, text(object, "drafter"));
        to->iteration.verifier = keep(r, &to->text, text(object, "verifier"));
        break;
    case ESP_EVENT_PROMPT:
        read_prompt(r, object);
        break;
    case ESP_EVENT_SETTING:
        to->event.key = keep(r, &to->key, text(object, "key"));
        to->event.text = keep(r, &to->text, text(object, "value"));
        to->event.lossy = flag(object, "lossy");
        break;
    case ESP_EVENT_DROP:
        to->event.token_start = integer(r, object, "start", 0, MOST);
        to->event.token_count = integer(r, object, "count", 1, MOST);
        break;
    case ESP_EVENT_REWIND:
        to->event.token_count = integer(r, object, "count", 0, MOST);
        break;
    default:
        to->event.text = keep(r, &to->text, text(object, "text"));
        break;
    }
}

/* ------------------------------------------------------------------ lines */

/* The nesting depth of a line's brackets, without those inside strings. */
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
    struct reader r = {err, errlen, 0, recorded, texts, vocabulary};
    cJSON *object = parse(&r, line, length);
    if (!object)
        return r.status;
    recorded->event = (struct esp_event){.type = esp_event_type_of(text(object, "type"))};
    recorded->iteration = (struct esp_iteration){.index = 0};
    esp_layers_begin(&recorded->layers);
    bool known = recorded->event.type >= 0;
    if (known)
        read_event(&r, object);
    cJSON_Delete(object);
    return r.status < 0 ? r.status : known;
}

/* ------------------------------------------------------------------ the header */

/* A text of the header; it is only shown, so it may be truncated. */
static void copy(char *to, size_t size, const cJSON *object, const char *name)
{
    snprintf(to, size, "%s", text(object, name));
}

static void read_model(struct reader *r, const cJSON *object, const char *name,
                       struct esp_recorded_model *model)
{
    const cJSON *item = member(object, name);
    copy(model->name, sizeof model->name, item, "name");
    copy(model->architecture, sizeof model->architecture, item, "architecture");
    copy(model->dtype, sizeof model->dtype, item, "dtype");
    model->parameters = (int64_t)real_or(r, item, "parameters", 0, 1e15, 0);
}

static void read_version(struct reader *r, const cJSON *object, struct esp_recording_header *h)
{
    char more;
    if (strcmp(text(object, "format"), "espalier-session") != 0)
        refuse(r, ESP_E_FORMAT, "it is not a recording of espalier");
    else if (sscanf(text(object, "version"), "%9d.%9d%c", &h->major, &h->minor, &more) != 2 ||
             h->major < 0 || h->minor < 0)
        refuse(r, ESP_E_FORMAT, "its version is not of the form \"1.0\"");
    else if (h->major != ESP_RECORDING_MAJOR)
        refuse(r, ESP_E_UNSUPPORTED,
               "it has format version %d.%d, and this espalier reads %d.x; use %s one",
               h->major, h->minor, ESP_RECORDING_MAJOR,
               h->major > ESP_RECORDING_MAJOR ? "a newer" : "an older");
}

/* Ignores settings that are unknown or invalid: they are only shown. */
static void read_settings(const cJSON *object, struct esp_session_values *values)
{
    struct esp_value_info info;
    char why[160];
    for (int i = 0; esp_value_info(i, &info); i++)
        if (!esp_has_own_place(i))
            esp_value_parse(values, i, info.name, text(object, info.name), why, sizeof why);
    esp_values_check(values, why, sizeof why);
}

static void read_header(struct reader *r, const cJSON *object, struct esp_recording_header *h)
{
    const cJSON *vocabulary = member(object, "vocabulary"), *sampling, *terminal;
    const char *seed = text(object, "seed");
    char *end, why[160];
    copy(h->program, sizeof h->program, object, "program");
    copy(h->started, sizeof h->started, object, "started");
    read_model(r, object, "target", &h->target);
    read_model(r, object, "draft", &h->draft);
    h->vocabulary = integer_or(r, vocabulary, "size", 0, MOST, 0);
    h->context = integer_or(r, object, "context", 0, MOST, 0);
    copy(h->vocabulary_hash, sizeof h->vocabulary_hash, vocabulary, "hash");
    copy(h->drafter, sizeof h->drafter, object, "drafter");
    copy(h->verifier, sizeof h->verifier, object, "verifier");
    esp_value_parse(&h->values, ESP_VALUE_OF_order, "order", text(object, "order"), why,
                    sizeof why);
    h->lossy = flag(object, "lossy");
    h->values.baseline = flag(object, "baseline");
    sampling = member(object, "sampling");
    h->values.temperature = real_or(r, sampling, "temperature", 0, LARGEST, 0);
    h->values.top_p = real_or(r, sampling, "top_p", 0, 1, 1);
    h->values.top_k = integer_or(r, sampling, "top_k", 0, INT32_MAX, 0);
    errno = 0;
    h->values.seed = strtoull(seed, &end, 10);
    if (*end || errno || *seed == '-')
        refuse(r, ESP_E_FORMAT, "its seed is not a whole number from 0 to 2^64 - 1");
    read_settings(member(object, "settings"), &h->values);
    copy(h->backend, sizeof h->backend, object, "backend");
    copy(h->device, sizeof h->device, object, "device");
    h->load_seconds = real_or(r, object, "load_seconds", 0, LARGEST, 0);
    terminal = member(object, "terminal");
    h->columns = integer_or(r, terminal, "columns", 0, 1 << 16, 0);
    h->rows = integer_or(r, terminal, "rows", 0, 1 << 16, 0);
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
        read_header(&r, object, header);
    cJSON_Delete(object);
    return r.status;
}

void esp_recorded_event_free(struct esp_recorded_event *recorded)
{
    esp_layers_free(&recorded->layers);
    free(recorded->nodes);
    free(recorded->ids);
    free(recorded->key);
    free(recorded->text);
    *recorded = (struct esp_recorded_event){.node_capacity = 0};
}
