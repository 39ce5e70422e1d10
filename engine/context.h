/* context.h - one model's key/value cache as the session uses it.
 *
 * Rows 0..length-1 hold the first `length` tokens of the text; rows behind them belong to the
 * tree of the current iteration, in the order of its passes, until esp_context_keep() makes the
 * accepted ones part of the text or the next iteration writes over them.
 */
#ifndef ESP_CONTEXT_H
#define ESP_CONTEXT_H

#include "kernels.h"

struct esp_model_cache {
    const struct esp_backend_ops *ops;
    struct esp_weights *weights;
    struct esp_cache *cache;
    int vocabulary; /* of the model */
    int context;    /* tokens the model can hold */
    int length;     /* tokens of the text in the cache */
    int max_batch;  /* rows per pass */
    int passes;     /* forward passes since the last reset of this counter */
    int32_t *tokens, *positions, *logits_row; /* (max_batch) */
};

/* Rows per pass of a cache for so many tokens of text and rows of a tree. */
int esp_context_batch(int tokens, int tree_rows);

/* `tree_rows`: rows needed behind the text. */
int esp_context_open(struct esp_model_cache *context, const struct esp_backend_ops *ops,
                     struct esp_weights *weights, int vocabulary, int tokens, int tree_rows,
                     char *err, size_t errlen);
void esp_context_close(struct esp_model_cache *context);

/* At most max_batch tokens of a text as the model may be given them, until the next call. A
 * draft model may have fewer than the target, whose logits are padded further: one that it does
 * not know counts as its token 0, which only makes its drafts worse. */
const int32_t *esp_context_known(struct esp_model_cache *context, const int32_t *tokens,
                                 int count);

/* Appends text tokens, whatever they are. If `logits` is not NULL its row 0 receives the logits
 * after the last token, on which `step` is done if that is not NULL. */
int esp_context_append(struct esp_model_cache *context, const int32_t *tokens, int count,
                       struct esp_rows *logits, const struct esp_step *step);

/* Rows `which` (ascending, counted from the row behind the text) become the next tokens of the
 * text. */
int esp_context_keep(struct esp_model_cache *context, const int32_t *which, int count);

#endif
