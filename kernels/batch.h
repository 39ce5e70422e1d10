/* batch.h - what backends do alike with a batch: is it one that a cache can take, which logits
 * does it ask for, and what becomes of them. */
#ifndef ESP_BATCH_H
#define ESP_BATCH_H

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows, max_batch: of the cache. Everything that indexes memory is checked. */
bool esp_batch_fits(const struct esp_batch *batch, const struct esp_cache *cache,
                    const struct esp_model_desc *desc, int rows, int max_batch);

/* The batch rows whose logits are wanted, and the rows of batch->logits they go to; returns how
 * many. wanted, wanted_at: (batch->rows), or both NULL. */
int esp_batch_wanted(const struct esp_batch *batch, int32_t *wanted, int32_t *wanted_at);

/* The batch's step by the operations it is made of, on rows wanted_at (count) of the logits. */
int esp_batch_step(const struct esp_batch *batch, const int32_t *wanted_at, int count);

#ifdef __cplusplus
}
#endif
#endif
