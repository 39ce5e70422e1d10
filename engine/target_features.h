/* target_features.h - keeps the target's hidden states for a draft head.
 *
 * The target's passes store their hidden states here, indexed by token position. The head
 * computes one row of its own cache from each state and the token after it (Li et al., "EAGLE",
 * 2024, section 4.1). After that, the states are dropped.
 */
#ifndef ESP_TARGET_FEATURES_H
#define ESP_TARGET_FEATURES_H

#include "engine/kv_cache.h"
#include "engine/model/model.h"

struct esp_features {
    int fed_back; /* for drafted tokens, the head's state with this index replaces the target's
                     state */
    struct esp_states states; /* the request that esp_features_ask() returns */
    int first, count;         /* stored positions: first..first+count-1 */
    int room;                 /* maximum of `count` */
    int32_t *row;             /* (room) row in states.to of each stored position */
    int32_t *pass_row;        /* (room) free rows for the output of a pass */
    bool *used;               /* (2 * room) true if this row of states.to is in use */
    struct esp_arrays arrays; /* owns row, pass_row and used */
};

/* Allocates memory for passes of at most `room` rows. */
int esp_features_open(struct esp_features *features, struct esp_backend *backend,
                      const struct esp_model *head, const struct esp_model *target, int room,
                      char *err, size_t errlen);
void esp_features_close(struct esp_features *features, const struct esp_backend_ops *ops);

/* Returns a request to store the hidden states of the target's next pass. That pass has `rows`
 * rows. States that are already stored are kept. The request is valid until the next call. */
const struct esp_states *esp_features_ask(struct esp_features *features, int rows);

/* Stores `count` states of the last requested pass. Row which[i] of the pass (row i if `which`
 * is NULL) has position first + i. */
void esp_features_add(struct esp_features *features, int first, const int32_t *which,
                      int count);

/* Returns the rows of states.to for positions begin..end-1, or NULL if some are missing. */
const int32_t *esp_features_find(const struct esp_features *features, int begin, int end);

/* Drops the states at position `end` and after it. */
void esp_features_cut(struct esp_features *features, int end);

/* Prepares drafting after a text of `length` tokens. Afterwards the target's cache holds all
 * tokens but the last. The states of all positions that the head's cache lacks (one or more)
 * are stored. If some states are missing because the head was not used for a while, the target
 * computes their tokens again. At prefill, all states are missing. */
int esp_features_catch_up(struct esp_features *features, struct esp_kv_cache *target,
                          struct esp_kv_cache *head, const int32_t *text, int length);

#endif
