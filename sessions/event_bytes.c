/* event_bytes.c - writes and reads iterations as binary records; see event_bytes.h. */
#include "sessions/event_bytes.h"

#include <math.h>

#include "sessions/event_fields.h"

enum { MOST = 1 << 30 };

/* ------------------------------------------------------------------ writing */

/* Writes the value of a time or gauge. A value that is neither tiny nor huge is rounded to nine
 * decimals (nanoseconds) and stored as an even number, which takes few bytes. Any other value
 * is stored as the number 1 and the eight bytes of the double. Bit 0 of the number tells the
 * two forms apart. */
static void put_double(struct esp_pack *to, double value)
{
    const double size = fabs(value);
    uint64_t bits;
    if ((size > 1e-3 && size < 1e6) || value == 0) {
        const int64_t decimals = (int64_t)floor(value * 1e9 + 0.5);
        esp_pack_number(to, ((uint64_t)decimals << 1 ^ (uint64_t)(decimals >> 63)) << 1);
        return;
    }
    memcpy(&bits, &value, sizeof bits);
    esp_pack_number(to, 1);
    esp_pack_fixed(to, bits, 8);
}

/* Returns whether a record stores a separate value for this row of a table. */
static inline bool has_row(const struct esp_field *f)
{
    return f->kind != ESP_FIELD_OPEN && f->kind != ESP_FIELD_CLOSE &&
           f->kind != ESP_FIELD_SCORES && f->kind != ESP_FIELD_NODES &&
           f->kind != ESP_FIELD_LAYERS;
}

static void put_fields(struct esp_pack *to, const struct esp_field *fields, const void *base);

static void put_ids(struct esp_pack *to, const int32_t *ids, int count)
{
    esp_pack_number(to, (uint64_t)count);
    for (int i = 0; i < count; i++)
        esp_pack_number(to, (uint32_t)ids[i]);
}

static void put_array(struct esp_pack *to, const struct esp_field *f, const char *entry,
                      int count)
{
    esp_pack_number(to, (uint64_t)count);
    for (int i = 0; i < count; i++, entry += f->size)
        put_fields(to, f->of, entry);
}

/* Writes the member that row `f` of a table describes, unless it has the value that a reader
 * assumes for a missing member. Returns whether the member was written. */
static bool put_field(struct esp_pack *to, const struct esp_field *f, const char *base)
{
    const char *at = base + f->offset;
    int count;
    switch (f->kind) {
    case ESP_FIELD_FLOAT:
        if (!isfinite(*(const float *)at) || *(const float *)at == (float)f->missing)
            return false;
        esp_pack_float(to, *(const float *)at);
        return true;
    case ESP_FIELD_DOUBLE:
        if (!isfinite(*(const double *)at) || *(const double *)at == f->missing)
            return false;
        put_double(to, *(const double *)at);
        return true;
    case ESP_FIELD_INTEGER:
        if (*(const int *)at == (int)f->missing)
            return false;
        esp_pack_number(to, *(const uint32_t *)at);
        return true;
    case ESP_FIELD_LARGE:
        if (*(const int64_t *)at == (int64_t)f->missing)
            return false;
        esp_pack_number(to, *(const uint64_t *)at);
        return true;
    case ESP_FIELD_TOKEN:
        esp_pack_number(to, *(const uint32_t *)at);
        return true;
    case ESP_FIELD_PARENT:
        esp_pack_number(to, (uint64_t)(((const struct esp_node *)base)->parent + 1));
        return true;
    case ESP_FIELD_FLAG:
        return *(const bool *)at;
    case ESP_FIELD_VERDICT:
    case ESP_FIELD_REASON:
    case ESP_FIELD_SOURCE:
        if (*(const uint8_t *)at)
            esp_pack_number(to, *(const uint8_t *)at);
        return *(const uint8_t *)at;
    case ESP_FIELD_KEPT:
    case ESP_FIELD_GAUGE:
        esp_pack_text(to, *(const char *const *)at, strlen(*(const char *const *)at));
        return true;
    case ESP_FIELD_TOKENS:
    case ESP_FIELD_PLACES:
        count = *(const int *)(base + f->count);
        if (count > 0)
            put_ids(to, *(const int32_t *const *)at, count);
        return count > 0;
    default: /* ESP_FIELD_ARRAY */
        count = *(const int *)(base + f->count);
        if (count > 0)
            put_array(to, f, at, count);
        return count > 0;
    }
}

static void put_fields(struct esp_pack *to, const struct esp_field *fields, const void *base)
{
    const size_t start = to->length;
    uint32_t present = 0, bit = 1;
    esp_pack_fixed(to, 0, 4);
    for (const struct esp_field *f = fields; f->kind != ESP_FIELD_END; f++) {
        if (!has_row(f))
            continue;
        present |= put_field(to, f, base) ? bit : 0;
        bit <<= 1;
    }
    for (int i = 0; i < 4 && !to->failed; i++)
        to->at[start + (size_t)i] = (unsigned char)(present >> 8 * i);
}

static void put_layers(struct esp_pack *to, const struct esp_layers *layers)
{
    const struct esp_change *change = layers ? layers->changes : NULL;
    const int count = layers ? layers->count : 0;
    esp_pack_number(to, (uint64_t)count);
    for (int i = 0; i < count; i++) {
        put_fields(to, esp_fields_layer, &layers->layers[i]);
        esp_pack_number(to, (uint64_t)layers->layers[i].changes);
        for (int j = 0; j < layers->layers[i].changes; j++)
            put_fields(to, esp_fields_change, change++);
    }
}

void esp_event_to_bytes(struct esp_pack *to, const struct esp_event *event,
                        const struct esp_layers *layers)
{
    const struct esp_iteration *it = event->iteration;
    put_double(to, event->time);
    esp_pack_number(to, (uint64_t)it->tree.count);
    for (int i = 0; i < it->tree.count; i++)
        put_fields(to, esp_fields_node, &it->tree.nodes[i]);
    put_fields(to, esp_fields_iteration, it);
    put_layers(to, layers);
}

/* ------------------------------------------------------------------ reading */

struct reader {
    struct esp_from *from;
    struct esp_recorded_event *to;
    struct esp_texts *texts;
    int vocabulary;
    int ids, kept; /* how many of the ids and texts in `to` are used */
};

static double get_double(struct esp_from *from)
{
    const uint64_t value = esp_from_number(from, UINT64_MAX);
    if (!(value & 1)) {
        const uint64_t folded = value >> 1;
        return (double)(int64_t)(folded >> 1 ^ (0 - (folded & 1))) / 1e9;
    }
    const uint64_t bits = esp_from_fixed(from, 8);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static double get_real(struct esp_from *from, const struct esp_field *f)
{
    const double value = get_double(from);
    if (value >= f->low && value <= f->high)
        return value;
    from->bad = true;
    return 0;
}

static int get_integer(struct esp_from *from, double least, double most)
{
    const int value = (int)esp_from_number(from, most < 0 ? 0 : (uint64_t)most);
    from->bad |= value < least;
    return value;
}

static int32_t get_token(struct reader *r)
{
    return (int32_t)esp_from_number(r->from, r->vocabulary > 0 ? (uint64_t)r->vocabulary - 1
                                                               : INT32_MAX - 1);
}

/* Reads a name. It is valid while the event exists. The name of a gauge is valid longer, while
 * r->texts exists. */
static const char *get_name(struct reader *r, enum esp_member_kind kind)
{
    char name[256];
    esp_from_copy(r->from, name, sizeof name);
    if (kind == ESP_FIELD_GAUGE) {
        const char *known = esp_texts_name(r->texts, name);
        r->from->bad |= !known;
        return known ? known : "";
    }
    char **place = &r->to->texts[r->kept++];
    free(*place);
    *place = strdup(name);
    r->from->bad |= !*place;
    return *place ? *place : "";
}

static void get_parent(struct reader *r, struct esp_node *node)
{
    const struct esp_node *nodes = r->to->iteration.nodes;
    const int index = (int)(node - nodes);
    node->parent = (int32_t)esp_from_number(r->from, (uint64_t)index) - 1;
    r->from->bad |= (node->parent < 0) != (index == 0);
    node->depth = r->from->bad || index == 0 ? 0 : nodes[node->parent].depth + 1;
}

static const int32_t *get_ids(struct reader *r, enum esp_member_kind kind, int *count)
{
    const int nodes = r->to->iteration.it.tree.count;
    int32_t *first = r->to->iteration.ids + r->ids;
    *count = (int)esp_from_number(r->from, (uint64_t)nodes);
    for (int i = 0; i < *count; i++)
        first[i] = kind == ESP_FIELD_TOKENS
                       ? get_token(r)
                       : (int32_t)esp_from_number(r->from, (uint64_t)nodes - 1);
    r->ids += *count;
    return first;
}

static void get_fields(struct reader *r, const struct esp_field *fields, void *base);

static uint8_t get_byte(struct reader *r, int most)
{
    return (uint8_t)esp_from_number(r->from, (uint64_t)most);
}

static void get_field(struct reader *r, const struct esp_field *f, char *at, char *base)
{
    int *count = (int *)(void *)(base + f->count);
    switch (f->kind) {
    case ESP_FIELD_FLOAT:
        *(float *)at = esp_from_float(r->from, f->low, f->high);
        return;
    case ESP_FIELD_DOUBLE:
        *(double *)at = get_real(r->from, f);
        return;
    case ESP_FIELD_INTEGER:
        *(int *)at = get_integer(r->from, f->low, f->high);
        return;
    case ESP_FIELD_LARGE:
        *(int64_t *)at = (int64_t)esp_from_number(r->from, (uint64_t)f->high);
        return;
    case ESP_FIELD_TOKEN:
        *(int32_t *)at = get_token(r);
        return;
    case ESP_FIELD_PARENT:
        get_parent(r, (struct esp_node *)base);
        return;
    case ESP_FIELD_VERDICT:
        *(uint8_t *)at = get_byte(r, ESP_CUT);
        return;
    case ESP_FIELD_REASON:
        *(uint8_t *)at = get_byte(r, ESP_REASON_RETRIEVED);
        return;
    case ESP_FIELD_SOURCE:
        *(uint8_t *)at = get_byte(r, ESP_SOURCES - 1);
        return;
    case ESP_FIELD_FLAG:
        *(bool *)at = true;
        return;
    case ESP_FIELD_KEPT:
    case ESP_FIELD_GAUGE:
        *(const char **)at = get_name(r, f->kind);
        return;
    case ESP_FIELD_TOKENS:
    case ESP_FIELD_PLACES:
        *(const int32_t **)at = get_ids(r, f->kind, count);
        return;
    default: /* ESP_FIELD_ARRAY */
        *count = get_integer(r->from, 0, f->high);
        for (int i = 0; i < *count && !r->from->bad; i++)
            get_fields(r, f->of, at + (size_t)i * f->size);
        return;
    }
}

/* Sets a member that is missing in the record to its default. */
static void set_missing(const struct esp_field *f, char *at, char *base)
{
    if (f->kind == ESP_FIELD_FLOAT)
        *(float *)at = (float)f->missing;
    else if (f->kind == ESP_FIELD_DOUBLE)
        *(double *)at = f->missing;
    else if (f->kind == ESP_FIELD_INTEGER)
        *(int *)at = (int)f->missing;
    else if (f->kind == ESP_FIELD_LARGE)
        *(int64_t *)at = (int64_t)f->missing;
    else if (f->kind == ESP_FIELD_FLAG)
        *(bool *)at = false;
    else if (f->kind == ESP_FIELD_VERDICT || f->kind == ESP_FIELD_REASON ||
             f->kind == ESP_FIELD_SOURCE)
        *(uint8_t *)at = 0;
    else if (f->kind == ESP_FIELD_TOKENS || f->kind == ESP_FIELD_PLACES ||
             f->kind == ESP_FIELD_ARRAY)
        *(int *)(base + f->count) = 0;
}

static void get_fields(struct reader *r, const struct esp_field *fields, void *base)
{
    uint32_t present = (uint32_t)esp_from_fixed(r->from, 4);
    for (const struct esp_field *f = fields; f->kind != ESP_FIELD_END && !r->from->bad; f++) {
        char *at = (char *)base + f->offset;
        if (!has_row(f))
            continue;
        if (present & 1)
            get_field(r, f, at, base);
        else if (f->kind == ESP_FIELD_TOKEN || f->kind == ESP_FIELD_PARENT ||
                 f->kind == ESP_FIELD_KEPT || f->kind == ESP_FIELD_GAUGE)
            r->from->bad = true;
        else
            set_missing(f, at, base);
        present >>= 1;
    }
    r->from->bad |= present != 0; /* a newer program has added a member; this program does
                                     not know its length */
}

static void get_layers(struct reader *r)
{
    const int nodes = r->to->iteration.it.tree.count;
    const int count = (int)esp_from_number(r->from, ESP_RECORDING_NODES);
    int least = 1;
    for (int i = 0; i < count && !r->from->bad; i++) {
        struct esp_tree_layer layer = {.nodes = 0};
        get_fields(r, esp_fields_layer, &layer);
        r->from->bad |= layer.nodes < least || layer.nodes > nodes;
        least = layer.nodes;
        layer.changes = (int)esp_from_number(r->from, (uint64_t)nodes);
        for (int j = 0; j < layer.changes && !r->from->bad; j++) {
            struct esp_change change = {.node = 0};
            get_fields(r, esp_fields_change, &change);
            r->from->bad |=
                change.node >= layer.nodes || esp_layers_change(&r->to->layers, change) < 0;
        }
        r->from->bad |= esp_layers_add(&r->to->layers, layer) < 0;
    }
}

bool esp_event_from_bytes(struct esp_recorded_event *recorded, struct esp_texts *texts,
                          struct esp_from *from, int vocabulary)
{
    struct reader r = {from, recorded, texts, vocabulary, 0, 0};
    struct esp_iteration_copy *copy = &recorded->iteration;
    char err[160];
    recorded->event = (struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &copy->it};
    copy->it = (struct esp_iteration){.index = 0};
    esp_layers_begin(&recorded->layers);
    recorded->event.time = get_double(from);
    const int nodes = (int)esp_from_number(from, ESP_RECORDING_NODES);
    from->bad |= nodes < 1 || !(recorded->event.time >= 0 && recorded->event.time <= 1e9) ||
                 esp_iteration_reserve(copy, nodes, 3 * nodes) < 0;
    for (int i = 0; i < nodes && !from->bad; i++)
        get_fields(&r, esp_fields_node, &copy->nodes[i]);
    copy->it.tree.nodes = copy->nodes;
    copy->it.tree.count = nodes;
    if (!from->bad)
        get_fields(&r, esp_fields_iteration, &copy->it);
    if (!from->bad)
        get_layers(&r);
    return !from->bad && from->at == from->end &&
           esp_event_check(recorded, err, sizeof err) == ESP_OK;
}
