/* own_copy.c - describes a quantised copy of the target; see own_copy.h.
 *
 * A matrix of the copy is a tensor whose rows are quantised from the target's rows whenever a
 * backend reads them (`original` of struct esp_tensor). Therefore loading needs no memory
 * except for the packed copy, and the target may have any format.
 */
#include "engine/model/own_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/model_desc.h"
#include "kernels/status.h"

/* Lists the formats that a type of copy uses: one for most matrices, and one for the LM head.
 * The LM head gets more bits, because it is small and every token depends on it. If the number
 * of columns is not a multiple of 256, `narrow` and `narrow_head` are used instead. They have
 * blocks of 32 numbers.
 */
static const struct type {
    const char *name;
    enum esp_dtype most, narrow, head, narrow_head;
} types[] = {
    {"q4_k", ESP_Q4_K, ESP_Q4_0, ESP_Q6_K, ESP_Q8_0},
    {"q4_0", ESP_Q4_0, ESP_Q4_0, ESP_Q6_K, ESP_Q8_0},
    {"q8_0", ESP_Q8_0, ESP_Q8_0, ESP_Q8_0, ESP_Q8_0},
};

enum { TYPES = sizeof types / sizeof *types };

static const char SELF[] = "self";

/* A copy with more than this fraction of the target's bytes is hardly faster than the
 * target. */
static const double LARGEST = 0.8;

bool esp_is_own_copy(const char *draft)
{
    const size_t n = strlen(SELF);
    return draft && strncmp(draft, SELF, n) == 0 && (!draft[n] || draft[n] == ':');
}

const char *esp_own_copy_type(int i)
{
    return i < TYPES ? types[i].name : NULL;
}

static const struct type *type_of(const char *draft)
{
    const char *name = draft + strlen(SELF);
    if (!*name)
        return &types[0];
    for (int i = 0; i < TYPES; i++)
        if (strcmp(name + 1, types[i].name) == 0)
            return &types[i];
    return NULL;
}

struct copying {
    struct esp_model *copy; /* NULL means only the sizes are needed */
    const struct type *type;
    double before, after; /* bytes of the matrices before and after quantising */
};

static size_t bytes_of(enum esp_dtype dtype, const struct esp_tensor *t)
{
    return (size_t)t->rows * esp_dtype_row_bytes(dtype, t->columns);
}

/* Returns the dtype that a matrix has in the copy. This is the dtype of the original if the
 * copy's dtype would not be smaller. */
static enum esp_dtype dtype_of(const struct type *type, const struct esp_tensor *t, bool head)
{
    enum esp_dtype dtype = head ? type->head : type->most;
    if (t->columns % esp_dtype_block(dtype) != 0)
        dtype = head ? type->narrow_head : type->narrow;
    const bool fits = t->columns % esp_dtype_block(dtype) == 0;
    return fits && bytes_of(dtype, t) < bytes_of(t->dtype, t) ? dtype : t->dtype;
}

/* Changes *to, which must be equal to the target's matrix *from, into the description of the
 * quantised matrix. If `to` is NULL, only adds up the bytes. */
static void quantise(struct copying *c, struct esp_tensor *to, const struct esp_tensor *from,
                     bool head)
{
    if (!from->data)
        return;
    const enum esp_dtype dtype = dtype_of(c->type, from, head);
    c->before += (double)bytes_of(from->dtype, from);
    c->after += (double)bytes_of(dtype, from);
    if (to && dtype != from->dtype)
        *to = (struct esp_tensor){.data = from->data,
                                  .dtype = dtype,
                                  .rows = from->rows,
                                  .columns = from->columns,
                                  .block = from->rows,
                                  .stride = from->rows,
                                  .source = &c->copy->quantising,
                                  .original = from};
}

#define QUANTISE(name) quantise(c, to ? &to->name : NULL, &from->name, false)

static void quantise_layer(struct copying *c, struct esp_layer *to,
                           const struct esp_layer *from)
{
    QUANTISE(query);
    QUANTISE(key);
    QUANTISE(value);
    QUANTISE(output);
    QUANTISE(attention_gate);
    QUANTISE(conv_in);
    QUANTISE(in_gate);
    QUANTISE(out_gate);
    QUANTISE(mixed);
    QUANTISE(gate);
    QUANTISE(up);
    QUANTISE(down);
}

static void quantise_expert(struct copying *c, struct esp_expert *to,
                            const struct esp_expert *from)
{
    QUANTISE(gate);
    QUANTISE(up);
    QUANTISE(down);
}

static void quantise_all(struct copying *c, const struct esp_model_desc *from)
{
    struct esp_model_desc *to = c->copy ? &c->copy->desc : NULL;
    for (int i = 0; i < from->layers; i++) {
        const struct esp_layer *layer = &from->layer[i];
        quantise_layer(c, to ? &to->layer[i] : NULL, layer);
        for (int e = 0; layer->expert && e < from->experts; e++)
            quantise_expert(c, to ? &to->layer[i].expert[e] : NULL, &layer->expert[e]);
    }
    quantise(c, to ? &to->head : NULL, &from->head, true);
}

/* Copies the descriptions of the target's layers, so that they can be changed. Returns false
 * if there is no memory. */
static bool copy_layers(struct esp_model_desc *to, const struct esp_model_desc *from)
{
    if (!(to->layer = calloc((size_t)from->layers, sizeof *to->layer)))
        return false;
    memcpy(to->layer, from->layer, (size_t)from->layers * sizeof *to->layer);
    for (int i = 0; i < from->layers; i++)
        to->layer[i].expert = NULL;
    for (int i = 0; i < from->layers; i++) {
        const size_t experts = from->layer[i].expert ? (size_t)from->experts : 0;
        if (experts == 0)
            continue;
        if (!(to->layer[i].expert = calloc(experts, sizeof *to->layer[i].expert)))
            return false;
        memcpy(to->layer[i].expert, from->layer[i].expert,
               experts * sizeof *to->layer[i].expert);
    }
    return true;
}

double esp_own_copy_share(const struct esp_model *target, const char *draft)
{
    struct copying c = {.type = type_of(draft)};
    if (!c.type)
        return 1;
    quantise_all(&c, &target->desc);
    return c.before > 0 ? c.after / c.before : 1;
}

bool esp_own_copy_pays(const struct esp_model *target)
{
    static const double SMALL = 0.4, LARGE = 128e6;
    return target->desc.experts == 0 && (double)target->bytes >= LARGE &&
           esp_own_copy_share(target, SELF) <= SMALL;
}

static int refuse(const struct esp_model *target, const char *draft, char *err, size_t errlen)
{
    if (!type_of(draft))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "there is no copy '%.40s'; a copy of the target is self, self:q4_k, "
                        "self:q4_0 or self:q8_0",
                        draft);
    return esp_fail(err, errlen, ESP_E_ARGUMENT,
                    "%s is small already: a copy '%.40s' would take %.0f %% of its bytes and "
                    "be hardly faster than the target; leave --draft out, or name a smaller "
                    "model",
                    target->path, draft, 100 * esp_own_copy_share(target, draft));
}

int esp_own_copy_open(struct esp_model **copy, const struct esp_model *target,
                      const char *draft, char *err, size_t errlen)
{
    char name[32];
    *copy = NULL;
    if (!(esp_own_copy_share(target, draft) <= LARGEST))
        return refuse(target, draft, err, errlen);
    struct copying c = {.type = type_of(draft), .copy = calloc(1, sizeof *c.copy)};
    struct esp_model *made = c.copy;
    bool there = made != NULL;
    snprintf(name, sizeof name, "%s:%s", SELF, c.type->name);
    if (made) {
        made->desc = target->desc;
        there = copy_layers(&made->desc, &target->desc);
        made->path = strdup(name);
        made->name = strdup(name);
    }
    if (!there || !made->path || !made->name) {
        esp_model_close(made);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a copy of %s",
                        target->path);
    }
    made->original = target;
    made->quantising = (struct esp_tensor_file){.fd = -1, .path = made->path};
    made->architecture = target->architecture;
    made->parameters = target->parameters;
    made->idle = target->idle;
    quantise_all(&c, &target->desc);
    made->bytes = (size_t)c.after;
    made->dtype = esp_dtype_name(esp_layer_matrix(&made->desc.layer[0])->dtype);
    if (made->desc.layer[0].expert)
        made->expert_dtype = esp_dtype_name(made->desc.layer[0].expert[0].up.dtype);
    *copy = made;
    return ESP_OK;
}

int esp_own_copy_check(const struct esp_model *copy, char *err, size_t errlen)
{
    return copy->quantising.failed
               ? esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to quantise %s",
                          copy->original->path)
               : (int)ESP_OK;
}
