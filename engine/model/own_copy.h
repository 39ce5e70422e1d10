/* own_copy.h - the target's own copy, quantised, as its draft model (`--draft self`).
 *
 * A model that is quantised to 4 bits says nearly the same as before, and a pass over it reads
 * a quarter of the bytes ("ML-SpecQD", arXiv 2503.13565, 2025). The copy has the target's shape, so
 * it also uses the target's KV cache: it needs no file, no prefill and no cache of its own.
 *
 * The linear layers are quantised when a backend reads them. Embedding, norms, biases and the
 * router of a mixture are the target's.
 */
#ifndef ESP_OWN_COPY_H
#define ESP_OWN_COPY_H

#include "engine/find_models.h"
#include "engine/model/model.h"

/* Type i of the names "self:TYPE", the default first; NULL after the last. */
const char *esp_own_copy_type(int i);

/* Bytes of the copy's matrices over those of the target's. 1: there is no such type. */
double esp_own_copy_share(const struct esp_model *target, const char *draft);

/* Would a copy be chosen for this target where no draft is named? It must be made of floats, of
 * which 4 bits are a quarter, and too large for the processor's caches. A mixture is not: a tree's
 * rows use different experts, so verifying several costs much more than one. */
bool esp_own_copy_pays(const struct esp_model *target);

/* Describes the copy that `draft` names; reads no weights yet. The target must outlive it.
 * ESP_E_ARGUMENT if there is no such type, or if the copy would hardly be smaller. */
int esp_own_copy_open(struct esp_model **copy, const struct esp_model *target,
                      const char *draft, char *err, size_t errlen);

/* Call it after a backend has read the copy. ESP_E_MEMORY: not all rows could be quantised. */
int esp_own_copy_check(const struct esp_model *copy, char *err, size_t errlen);

#endif
