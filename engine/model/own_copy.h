/* own_copy.h - a quantised copy of the target, used as its draft model (`--draft self`).
 *
 * A model that is quantised to 4 bits makes nearly the same predictions, and each pass reads a
 * quarter of the bytes ("ML-SpecQD", arXiv 2503.13565, 2025). The copy has the target's shape,
 * so it can use the target's KV cache: it needs no separate file, prefill or cache.
 *
 * The linear layers are quantised when a backend reads them. Embedding, norms, biases and the
 * router of a mixture are not copied: the copy uses the target's.
 */
#ifndef ESP_OWN_COPY_H
#define ESP_OWN_COPY_H

#include "engine/find_models.h"
#include "engine/model/model.h"

/* Returns the i-th TYPE that a draft "self:TYPE" can name, or NULL after the last TYPE. The
 * first TYPE is the default. */
const char *esp_own_copy_type(int i);

/* Returns the size of the copy's matrices as a fraction of the size of the target's matrices.
 * Returns 1 if `draft` names a type that does not exist. */
double esp_own_copy_share(const struct esp_model *target, const char *draft);

/* Returns whether a copy is expected to save time for this target. If so, the copy is the
 * default draft model. The target's weights must be floats, so that 4 bits save most of the
 * bytes. The target must also be too large for the processor's caches. A copy of a mixture of
 * experts does not save time: a tree's rows use different experts, so verifying several rows
 * costs much more than one. */
bool esp_own_copy_pays(const struct esp_model *target);

/* Describes the copy that `draft` names; reads no weights yet. The target must outlive the
 * copy. Returns ESP_E_ARGUMENT if there is no such type, or if the copy would hardly be
 * smaller. */
int esp_own_copy_open(struct esp_model **copy, const struct esp_model *target,
                      const char *draft, char *err, size_t errlen);

/* Call this after a backend has read the copy. Returns 0, or ESP_E_MEMORY if not all rows
 * could be quantised. */
int esp_own_copy_check(const struct esp_model *copy, char *err, size_t errlen);

#endif
