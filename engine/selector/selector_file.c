/* selector_file.c - reads and writes files of selectors; see selector.h.
 *
 * The tensors `rule`, `goal`, `sources` and `costs` are bytes of text. The other tensors are
 * `scalars.mean`, `scalars.deviation`, `times.length`, `times.draft`, `times.target`,
 * `times.choice`, `first`, `value`, and the tensors of the network. A matrix NAME is I8
 * (inputs, outputs), and NAME.scale has its scales, F32 (outputs). All other numbers are F32.
 */
#include "engine/selector/selector.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/preset.h"
#include "engine/model/safetensors.h"
#include "engine/model/safetensors_write.h"
#include "engine/support/write_file.h"
#include "kernels/model_desc.h"
#include "kernels/status.h"

enum { HASH_TEXT = 16, NAME = 64 };

static const char *const goals[ESP_GOALS] = {"speed", "tokens", "cheap-rows"};

enum { VALUES = ESP_SELECTOR_NARROW_WIDTH + 1 };
static const struct esp_selector_part value_part = {"value", VALUES, ESP_ACTIONS, 0,
                                                    VALUES *ESP_ACTIONS};

/* Lists the tensors that are arrays of floats in struct esp_selector. If `columns` is 0, the
 * tensor is a vector. */
static const struct {
    const char *name;
    size_t offset;
    int rows, columns;
} fields[] = {
#define FIELD(name, member, ...)                                                               \
    {                                                                                          \
        name, offsetof(struct esp_selector, member), __VA_ARGS__                               \
    }
    FIELD("scalars.mean", mean, ESP_SCALARS, 0),
    FIELD("scalars.deviation", deviation, ESP_SCALARS, 0),
    FIELD("times.length", times.length, ESP_TIME_LENGTHS, 0),
    FIELD("times.draft", times.draft, ESP_TIME_LENGTHS, ESP_TIME_DRAFT_ROWS),
    FIELD("times.target", times.target, ESP_TIME_LENGTHS, ESP_TIME_ROWS),
    FIELD("times.choice", times.choice, 1, 0),
#undef FIELD
};

int esp_goal_find(const char *name)
{
    for (int i = 0; i < ESP_GOALS; i++)
        if (strcmp(name, goals[i]) == 0)
            return i;
    return -1;
}

const char *esp_goal_name(enum esp_goal goal)
{
    return goals[goal];
}

void esp_selector_file_name(char name[ESP_SELECTOR_NAME], const char *rule, enum esp_goal goal)
{
    const bool plain = goal == ESP_GOAL_SPEED;
    snprintf(name, ESP_SELECTOR_NAME, "nde-%.31s%s%s.safetensors", rule, plain ? "" : "-",
             plain ? "" : goals[goal]);
}

/* ------------------------------------------------------------------ writing */

struct writer {
    struct esp_safetensors_header header;
    char *data;
    size_t room;
};

/* Adds the next tensor, which has `length` bytes. If `columns` is 0, it is a vector. */
static void put(struct writer *w, const char *name, const char *type, int rows, int columns,
                const void *bytes, size_t length)
{
    const size_t used = w->header.data;
    esp_safetensors_add(&w->header, name, type, rows, columns, length);
    if (w->header.data > w->room) {
        w->room = 2 * w->header.data;
        char *more = realloc(w->data, w->room);
        w->header.failed |= !more;
        w->data = more ? more : w->data;
    }
    if (!w->header.failed)
        memcpy(w->data + used, bytes, length);
}

static void put_floats(struct writer *w, const char *name, int rows, int columns,
                       const float *values)
{
    put(w, name, "F32", rows, columns, values,
        (size_t)rows * (size_t)(columns ? columns : 1) * sizeof *values);
}

/* Adds a matrix as 8-bit integers and scales. Its values must already be multiples of the
 * scales; see esp_selector_prepare(). */
static void put_matrix(struct writer *w, const struct esp_selector_part *part,
                       const float *weights)
{
    char name[NAME];
    const int columns = part->outputs;
    float *scales = calloc((size_t)columns, sizeof *scales);
    int8_t *steps = malloc(part->count);
    w->header.failed |= !scales || !steps;
    for (int j = 0; j < columns && !w->header.failed; j++)
        scales[j] = esp_selector_scale(weights, part->inputs, columns, j);
    for (size_t i = 0; i < part->count && !w->header.failed; i++) {
        const float scale = scales[i % (size_t)columns];
        steps[i] = (int8_t)(scale > 0 ? lrintf(weights[i] / scale) : 0);
    }
    if (!w->header.failed) {
        put(w, part->name, "I8", part->inputs, columns, steps, part->count);
        snprintf(name, sizeof name, "%s.scale", part->name);
        put_floats(w, name, columns, 0, scales);
    }
    free(scales);
    free(steps);
}

static void put_text(struct writer *w, const char *name, const char *text)
{
    put(w, name, "U8", (int)strlen(text), 0, text, strlen(text));
}

static void put_hash(struct writer *w, const char *name, uint64_t hash)
{
    char text[HASH_TEXT + 1];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    put_text(w, name, text);
}

static void put_all(struct writer *w, const struct esp_selector *s)
{
    const float first = (float)s->first;
    put_text(w, "rule", s->rule);
    put_text(w, "goal", goals[s->goal]);
    put_hash(w, "sources", s->sources);
    put_hash(w, "costs", s->costs);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        put_floats(w, fields[i].name, fields[i].rows, fields[i].columns,
                   (const float *)((const char *)s + fields[i].offset));
    put_floats(w, "first", 1, 0, &first);
    put_matrix(w, &value_part, s->value);
    for (int i = 0; i < ESP_SELECTOR_TENSOR_COUNT; i++) {
        const struct esp_selector_part part = esp_selector_part(&s->shape, i);
        if (part.inputs > 1)
            put_matrix(w, &part, s->weights + part.offset);
        else
            put_floats(w, part.name, part.outputs, 0, s->weights + part.offset);
    }
}

int esp_selector_write(const struct esp_selector *s, const char *path, char *err, size_t errlen)
{
    struct writer w = {0};
    size_t begin;
    put_all(&w, s);
    char *file = esp_safetensors_begin(&w.header, false, w.header.data, &begin);
    int status = ESP_E_MEMORY;
    if (file) {
        memcpy(file + begin, w.data, w.header.data);
        status = esp_write_file(path, file, begin + w.header.data, true, err, errlen);
    } else {
        esp_fail(err, errlen, status, "not enough memory to write %s", path);
    }
    free(file);
    free(w.data);
    return status;
}

/* ------------------------------------------------------------------ reading */

struct reader {
    struct esp_stored_set *set;
    const char *path;
    char *err;
    size_t errlen;
    int status;
};

static void complain(struct reader *r, const char *name, const char *what)
{
    if (r->status == ESP_OK)
        r->status =
            esp_fail(r->err, r->errlen, ESP_E_FORMAT,
                     "%s: tensor %s %s; make the selector again with espalier train selector",
                     r->path, name, what);
}

/* Reads a tensor of exactly this type and size. Returns whether this succeeded. */
static bool get(struct reader *r, const char *name, const char *type, size_t length, void *to)
{
    const struct esp_stored *tensor =
        r->status == ESP_OK ? esp_stored_find(r->set, name) : NULL;
    if (!tensor)
        complain(r, name, "is missing");
    else if (strcmp(tensor->type, type) != 0 || tensor->end - tensor->begin != length)
        complain(r, name, "has the wrong type or the wrong size");
    else
        esp_tensor_file_read(tensor->source, tensor->offset, to, length);
    return r->status == ESP_OK;
}

static void get_floats(struct reader *r, const char *name, size_t count, float *to)
{
    if (!get(r, name, "F32", count * sizeof *to, to))
        return;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(to[i])) {
            complain(r, name, "has a value that is not a number");
            return;
        }
}

static void get_matrix(struct reader *r, const struct esp_selector_part *part, float *weights)
{
    char name[NAME];
    int8_t *steps = malloc(part->count);
    float *scales = calloc((size_t)part->outputs, sizeof *scales);
    snprintf(name, sizeof name, "%s.scale", part->name);
    if (!steps || !scales)
        r->status =
            r->status < 0 ? r->status : esp_fail(r->err, r->errlen, ESP_E_MEMORY, "no memory");
    else if (get(r, part->name, "I8", part->count, steps))
        get_floats(r, name, (size_t)part->outputs, scales);
    for (size_t i = 0; i < part->count && r->status == ESP_OK; i++)
        weights[i] = (float)steps[i] * scales[i % (size_t)part->outputs];
    free(steps);
    free(scales);
}

/* Reads the text in tensor `name`, which must be as long as `wants`. Returns true if the text
 * could be read and differs from `wants`. */
static bool differs(struct reader *r, const char *name, const char *wants)
{
    char has[NAME] = "";
    return get(r, name, "U8", strlen(wants), has) && strcmp(has, wants) != 0;
}

static void get_identity(struct reader *r, struct esp_selector *s)
{
    char hash[HASH_TEXT + 1];
    if (differs(r, "rule", s->rule))
        complain(r, "rule", "names another verifier");
    if (differs(r, "goal", goals[s->goal]))
        complain(r, "goal", "names another goal");
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)s->sources);
    if (differs(r, "sources", hash))
        r->status =
            esp_fail(r->err, r->errlen, ESP_E_MISMATCH,
                     "%s was trained for another pair of models; train one for this pair with "
                     "espalier train selector --verifier %s",
                     r->path, s->rule);
    *hash = '\0';
    if (get(r, "costs", "U8", HASH_TEXT, hash))
        s->costs = strtoull(hash, NULL, 16);
}

static void get_all(struct reader *r, struct esp_selector *s)
{
    float first = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        get_floats(r, fields[i].name,
                   (size_t)fields[i].rows * (size_t)(fields[i].columns ? fields[i].columns : 1),
                   (float *)((char *)s + fields[i].offset));
    for (int i = 0; i < ESP_SCALARS; i++)
        if (r->status == ESP_OK && !(s->deviation[i] > 0))
            complain(r, "scalars.deviation", "has a value that is not above 0");
    if (r->status == ESP_OK && !esp_pass_times_sound(&s->times))
        complain(r, "times.target", "or another tensor of times has an invalid value");
    get_floats(r, "first", 1, &first);
    s->first = (int)first;
    if (r->status == ESP_OK && !(first >= 0 && first < ESP_ACTIONS))
        complain(r, "first", "has a value that is not the index of an action");
    get_matrix(r, &value_part, s->value);
    for (int i = 0; i < ESP_SELECTOR_TENSOR_COUNT; i++) {
        const struct esp_selector_part part = esp_selector_part(&s->shape, i);
        if (part.inputs > 1)
            get_matrix(r, &part, s->weights + part.offset);
        else
            get_floats(r, part.name, part.count, s->weights + part.offset);
    }
}

int esp_selector_read(struct esp_selector *s, const char *target, const char *rule,
                      enum esp_goal goal, uint64_t sources,
                      const struct esp_selector_shape *shape, char *err, size_t errlen)
{
    char folder[4096], name[ESP_SELECTOR_NAME], file[4096], path[8192];
    struct reader r = {.path = path, .err = err, .errlen = errlen};
    memset(s, 0, sizeof *s);
    esp_selector_file_name(name, rule, goal);
    if (!esp_place_beside(target, name, folder, file))
        return esp_fail(err, errlen, ESP_E_FILE, "the path of %.200s is too long", target);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    r.status = esp_safetensors_open(&r.set, folder, file, err, errlen);
    if (r.status == ESP_OK && esp_selector_open(s, shape) < 0)
        r.status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", path);
    if (r.status == ESP_OK) {
        snprintf(s->rule, sizeof s->rule, "%s", rule);
        s->goal = goal;
        s->sources = sources;
        get_identity(&r, s);
        get_all(&r, s);
    }
    if (r.status == ESP_OK)
        r.status = esp_stored_release(r.set, err, errlen);
    if (r.status == ESP_OK && esp_selector_prepare(s) < 0)
        r.status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", path);
    esp_stored_close(r.set);
    if (r.status < 0)
        esp_selector_close(s);
    return r.status;
}
