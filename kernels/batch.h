/* batch.h - shared by all backends: checks that a batch fits in a cache, lists the rows whose
 * logits are wanted, and computes the batch's draft step. */
#ifndef ESP_BATCH_H
#define ESP_BATCH_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether the batch fits in a cache of `rows` rows and has at most `max_batch` rows.
 * Checks every value that is used as an index into memory. */
bool esp_batch_fits(const struct esp_batch *batch, const struct esp_cache *cache, int rows,
                    int max_batch);

/* Returns whether these rows of a cache of `rows` rows may be moved to first, first + 1, ...;
 * see keep() of struct esp_backend_ops. */
bool esp_keep_fits(int rows, int first, const int32_t *which, int count);

/* Returns whether a model with these weights can use the keys, values and states of this cache;
 * see cache_join() of struct esp_backend_ops. */
bool esp_cache_joins(const struct esp_weights *weights, const struct esp_cache *owner);

/* Lists in `wanted` the batch rows whose logits are wanted. wanted_at[i] becomes the row of
 * batch->logits that receives the logits of row wanted[i]. Returns the number of these rows.
 * wanted, wanted_at: (batch->rows), or both NULL. */
int esp_batch_wanted(const struct esp_batch *batch, int32_t *wanted, int32_t *wanted_at);

/* Computes the batch's draft step: runs the operations softmax and top_k on the rows
 * `wanted_at` (count) of the logits. */
int esp_batch_step(const struct esp_batch *batch, const int32_t *wanted_at, int count);

#ifdef __cplusplus
}
#endif
#endif
