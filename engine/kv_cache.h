/* kv_cache.h - the KV cache of one model, as a session uses it.
 *
 * Rows 0..length-1 hold the first `length` tokens of the text; those of a draft head the
 * `length` tokens behind the first one, in front of which there is no hidden state. The rows behind them belong to
 * the tree of the current iteration, in the order of its passes, until esp_kv_cache_keep()
 * makes the accepted ones part of the text or the next iteration overwrites them.
 */
#ifndef ESP_KV_CACHE_H
#define ESP_KV_CACHE_H

#include "kernels/kernels.h"

struct esp_kv_cache {
    const struct esp_backend_ops *ops;
    struct esp_weights *weights;
    struct esp_cache *cache;
    int vocabulary; /* of the model */
    int context;    /* tokens of text that fit */
    int length;     /* tokens of the text in the cache */
    int max_batch;  /* rows per pass */
    int passes;     /* forward passes since the last reset of this counter */
    int32_t *tokens, *positions, *logits_row; /* (max_batch) */
};

/* Rows per pass of a cache for `tokens` tokens of text and `tree_rows` rows of a tree. */
int esp_kv_cache_batch(int tokens, int tree_rows);

/* Opens a cache for `tokens` tokens of text and `tree_rows` rows behind them. `vocabulary` is
 * the model's. */
int esp_kv_cache_open(struct esp_kv_cache *cache, const struct esp_backend_ops *ops,
                      struct esp_weights *weights, int vocabulary, int tokens, int tree_rows,
                      char *err, size_t errlen);
void esp_kv_cache_close(struct esp_kv_cache *cache);

/* Returns `count` tokens (at most max_batch) with token 0 in place of those that are not in
 * this model's vocabulary. They are valid until the next call. A draft model may have fewer
 * tokens than the target, whose logits are padded further; the replacement only makes drafts
 * worse. */
const int32_t *esp_kv_cache_known(struct esp_kv_cache *cache, const int32_t *tokens, int count);

/* The list of rows that sends the last of `rows` rows to row 0 and the others nowhere; valid
 * until the next call. */
const int32_t *esp_kv_cache_last(struct esp_kv_cache *cache, int rows);

/* Runs batch->rows tokens of the text (at most max_batch) and appends them. The batch says what
 * comes out; tokens, positions and rows of the cache are filled in here. */
int esp_kv_cache_run(struct esp_kv_cache *cache, const int32_t *tokens,
                     struct esp_batch *batch);

/* Appends tokens of the text. If `logits` is not NULL, its row 0 becomes the logits after the
 * last token; if `step` is not NULL, it is computed on that row. ESP_E_CONTEXT if the tokens do
 * not fit. */
int esp_kv_cache_append(struct esp_kv_cache *cache, const int32_t *tokens, int count,
                        struct esp_rows *logits, const struct esp_step *step);

/* Rows `which` (ascending; row 0 is the first one behind the text) become the next tokens of
 * the text. */
int esp_kv_cache_keep(struct esp_kv_cache *cache, const int32_t *which, int count);

#endif
