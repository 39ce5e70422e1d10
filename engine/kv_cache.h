/* kv_cache.h - the KV cache of one model, as a session uses it.
 *
 * Rows 0..length-1 hold the first `length` tokens of the text; those of a draft head the
 * `length` tokens behind the first one, in front of which there is no hidden state. The rows
 * behind them belong to the tree of the current iteration, in the order of its passes, until
 * esp_kv_cache_keep() makes the accepted ones part of the text or the next iteration overwrites
 * them.
 *
 * With a window (struct esp_window) the cache need not hold the whole text: where there is no
 * room, the oldest rows that no later row sees are dropped. Rows that are still there move in
 * steps of ESP_WINDOW_STEP, and nothing that a row computes depends on when that happens. Keys
 * stay as they were rotated at their place in the whole text: only distances count, and the one
 * to the sinks is mended in the query (StreamingLLM rotates all keys anew at every token).
 */
#ifndef ESP_KV_CACHE_H
#define ESP_KV_CACHE_H

#include "kernels/kernels.h"

struct esp_kv_cache {
    const struct esp_backend_ops *ops;
    struct esp_weights *weights;
    struct esp_cache *cache;
    int vocabulary;           /* of the model */
    int context;              /* tokens that the text may have */
    int length;               /* tokens of the text that were computed */
    int rows;                 /* of the cache */
    struct esp_window window; /* recent = 0: none, the cache holds the whole text */
    int max_batch;            /* rows per pass */
    int passes;               /* forward passes since the last reset of this counter */
    int32_t *tokens, *positions, *logits_row; /* (max_batch) */
};

/* Rows per pass of a cache for `tokens` tokens of text and `tree_rows` rows of a tree. */
int esp_kv_cache_batch(int tokens, int tree_rows);

/* Tokens of text that a cache with this window must have rows for. */
int esp_kv_cache_window_rows(const struct esp_window *window);

/* Opens a cache for `tokens` tokens of text and `tree_rows` rows behind them. `vocabulary` is
 * the model's. */
int esp_kv_cache_open(struct esp_kv_cache *cache, const struct esp_backend_ops *ops,
                      struct esp_weights *weights, int vocabulary, int tokens, int tree_rows,
                      char *err, size_t errlen);
/* The rows see this window of the text; the cache must be empty. Where a text of `context`
 * tokens has more rows than the cache, that has esp_kv_cache_window_rows() for text at least.
 */
void esp_kv_cache_set_window(struct esp_kv_cache *cache, const struct esp_window *window,
                             int context);
void esp_kv_cache_close(struct esp_kv_cache *cache);

/* Makes room for `rows` rows behind the text. */
int esp_kv_cache_make_room(struct esp_kv_cache *cache, int rows);
/* The rows of the batch follow the text and `ahead` rows behind it: fills in first, prefix and
 * window. */
void esp_kv_cache_place(const struct esp_kv_cache *cache, int ahead, struct esp_batch *batch);
/* The text in the cache becomes its first `length` tokens; or nothing, if the row of the next
 * token sees some that have been dropped. Does nothing if it is no longer than that. */
void esp_kv_cache_cut(struct esp_kv_cache *cache, int length);

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
