/* kv_cache.c - appends tokens to a model's KV cache and compacts it; see kv_cache.h. */
#include "engine/kv_cache.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

enum { PREFILL_ROWS = 128 };

int esp_kv_cache_batch(int tokens, int tree_rows)
{
    int rows = tree_rows > PREFILL_ROWS ? tree_rows : PREFILL_ROWS;
    return rows < tokens + tree_rows ? rows : tokens + tree_rows;
}

int esp_kv_cache_open(struct esp_kv_cache *c, const struct esp_backend_ops *ops,
                      struct esp_weights *weights, int vocabulary, int tokens, int tree_rows,
                      char *err, size_t errlen)
{
    memset(c, 0, sizeof *c);
    c->ops = ops;
    c->weights = weights;
    c->vocabulary = vocabulary;
    c->context = tokens;
    c->max_batch = esp_kv_cache_batch(tokens, tree_rows);
    c->tokens = calloc((size_t)c->max_batch, sizeof *c->tokens);
    c->positions = calloc((size_t)c->max_batch, sizeof *c->positions);
    c->logits_row = calloc((size_t)c->max_batch, sizeof *c->logits_row);
    int status = ESP_OK;
    if (!c->tokens || !c->positions || !c->logits_row)
        status = esp_fail(err, errlen, ESP_E_MEMORY, "no memory for a batch of %d rows",
                          c->max_batch);
    else
        status =
            ops->cache_open(&c->cache, weights, tokens + tree_rows, c->max_batch, err, errlen);
    if (status < 0)
        esp_kv_cache_close(c);
    return status;
}

void esp_kv_cache_close(struct esp_kv_cache *c)
{
    if (c->cache)
        c->ops->cache_close(c->cache);
    free(c->tokens);
    free(c->positions);
    free(c->logits_row);
    memset(c, 0, sizeof *c);
}

const int32_t *esp_kv_cache_known(struct esp_kv_cache *c, const int32_t *tokens, int count)
{
    for (int i = 0; i < count; i++)
        c->tokens[i] = tokens[i] < c->vocabulary ? tokens[i] : 0;
    return c->tokens;
}

const int32_t *esp_kv_cache_last(struct esp_kv_cache *c, int rows)
{
    for (int i = 0; i < rows; i++)
        c->logits_row[i] = i == rows - 1 ? 0 : -1;
    return c->logits_row;
}

int esp_kv_cache_run(struct esp_kv_cache *c, const int32_t *tokens, struct esp_batch *batch)
{
    for (int i = 0; i < batch->rows; i++)
        c->positions[i] = c->length + i;
    batch->tokens = esp_kv_cache_known(c, tokens, batch->rows);
    batch->positions = c->positions;
    batch->first = batch->prefix = c->length;
    int status = c->ops->forward(c->cache, batch);
    if (status < 0)
        return status;
    c->passes++;
    c->length += batch->rows;
    return ESP_OK;
}

int esp_kv_cache_append(struct esp_kv_cache *c, const int32_t *tokens, int count,
                        struct esp_rows *logits, const struct esp_step *step)
{
    if (count > c->context - c->length)
        return ESP_E_CONTEXT;
    while (count > 0) {
        int rows = count < c->max_batch ? count : c->max_batch;
        bool last = rows == count;
        struct esp_batch batch = {
            .rows = rows,
            .logits = last ? logits : NULL,
            .logits_row = esp_kv_cache_last(c, rows),
            .step = last ? step : NULL,
        };
        int status = esp_kv_cache_run(c, tokens, &batch);
        if (status < 0)
            return status;
        tokens += rows;
        count -= rows;
    }
    return ESP_OK;
}

int esp_kv_cache_keep(struct esp_kv_cache *c, const int32_t *which, int count)
{
    bool moved = false;
    for (int i = 0; i < count; i++) {
        moved |= which[i] != i;
        c->logits_row[i] = c->length + which[i];
    }
    int status = moved ? c->ops->keep(c->cache, c->length, c->logits_row, count) : ESP_OK;
    if (status == ESP_OK)
        c->length += count;
    return status;
}
