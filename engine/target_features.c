/* target_features.c - keeps the target's hidden states and the draft head's cache up to date;
 * see target_features.h. */
#include "engine/target_features.h"

#include <stdlib.h>
#include <string.h>

#include "engine/model/draft_head.h"
#include "kernels/status.h"

int esp_features_open(struct esp_features *f, struct esp_backend *backend,
                      const struct esp_model *head, const struct esp_model *target, int room,
                      char *err, size_t errlen)
{
    memset(f, 0, sizeof *f);
    f->states = esp_draft_head_states(head, target);
    f->fed_back = esp_draft_head_fed_back(head);
    f->room = room;
    f->row = esp_arrays_add(&f->arrays, (size_t)room, sizeof *f->row);
    f->pass_row = esp_arrays_add(&f->arrays, (size_t)room, sizeof *f->pass_row);
    f->used = esp_arrays_add(&f->arrays, 2 * (size_t)room, sizeof *f->used);
    if (f->arrays.failed)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a batch of %d rows",
                        room);
    return backend->ops->rows_open(&f->states.to, backend, 2 * room, head->desc.input, err,
                                   errlen);
}

void esp_features_close(struct esp_features *f, const struct esp_backend_ops *ops)
{
    if (f->states.to)
        ops->rows_close(f->states.to);
    esp_arrays_free(&f->arrays);
    memset(f, 0, sizeof *f);
}

const struct esp_states *esp_features_ask(struct esp_features *f, int rows)
{
    memset(f->used, 0, 2 * (size_t)f->room * sizeof *f->used);
    for (int i = 0; i < f->count; i++)
        f->used[f->row[i]] = true;
    for (int i = 0, free_row = 0; i < rows; i++, free_row++) {
        while (f->used[free_row])
            free_row++;
        f->pass_row[i] = free_row;
    }
    f->states.row = f->pass_row;
    return &f->states;
}

void esp_features_add(struct esp_features *f, int first, const int32_t *which, int count)
{
    if (first != f->first + f->count || count > f->room - f->count) {
        f->first = first;
        f->count = 0;
    }
    for (int i = 0; i < count; i++)
        f->row[f->count++] = f->pass_row[which ? which[i] : i];
}

const int32_t *esp_features_find(const struct esp_features *f, int begin, int end)
{
    bool there = begin >= f->first && begin < end && end <= f->first + f->count;
    return there ? f->row + (begin - f->first) : NULL;
}

void esp_features_cut(struct esp_features *f, int end)
{
    if (f->count > end - f->first)
        f->count = end > f->first ? end - f->first : 0;
}

/* Drops the states of all positions before `begin`. */
static void forget(struct esp_features *f, int begin)
{
    const int gone = begin - f->first < f->count ? begin - f->first : f->count;
    if (gone <= 0)
        return;
    f->first += gone;
    f->count -= gone;
    memmove(f->row, f->row + gone, (size_t)f->count * sizeof *f->row);
}

static int run_target(struct esp_features *f, struct esp_kv_cache *target, const int32_t *text,
                      int rows)
{
    const int first = target->length;
    struct esp_batch batch = {.rows = rows, .text = rows, .states = esp_features_ask(f, rows)};
    int status = esp_kv_cache_run(target, text + first, &batch);
    if (status == ESP_OK)
        esp_features_add(f, first, NULL, rows);
    return status;
}

/* Computes the head's missing rows for positions before `end`. The target's states for
 * these positions must be stored already. */
static int run_head(struct esp_features *f, struct esp_kv_cache *head, const int32_t *text,
                    int end)
{
    struct esp_batch batch = {.rows = end - head->length, .input = f->states.to};
    if (batch.rows < 1)
        return ESP_OK;
    batch.input_row = esp_features_find(f, head->length, end);
    if (!batch.input_row)
        return ESP_E_ARGUMENT;
    int status = esp_kv_cache_run(head, text + head->length + 1, &batch);
    forget(f, head->length);
    return status;
}

int esp_features_catch_up(struct esp_features *f, struct esp_kv_cache *target,
                          struct esp_kv_cache *head, const int32_t *text, int length)
{
    const int last = length - 1; /* the position of the root, which the target does not compute
                                    now */
    int status = ESP_OK;
    if (last < 1)
        return ESP_OK;
    esp_kv_cache_cut(head, last - 1); /* a failed iteration may have computed the root's row
                                         already */
    forget(f, head->length);
    if (head->length < target->length && !esp_features_find(f, head->length, target->length))
        esp_kv_cache_cut(target, head->length);
    if (target->length == last && last - head->length <= f->room / 2)
        return ESP_OK;
    do {
        const int left = last - target->length;
        const int rows = left < target->max_batch ? left : target->max_batch;
        status = run_head(f, head, text, left > 0 ? target->length : last - 1);
        if (status == ESP_OK && rows > 0)
            status = run_target(f, target, text, rows);
    } while (status == ESP_OK && target->length < last);
    return status == ESP_OK ? run_head(f, head, text, last - 1) : status;
}
