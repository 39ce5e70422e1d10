/* target_features.h - the target's hidden states that a draft head reads.
 *
 * The passes of the target leave them here: those of a stretch of the text, by the position of
 * their tokens. The head computes a row of its own cache from each, together with the token
 * behind it (Li et al., "EAGLE", 2024, section 4.1), and then they are forgotten.
 */
#ifndef ESP_TARGET_FEATURES_H
#define ESP_TARGET_FEATURES_H

#include "engine/kv_cache.h"
#include "engine/model/model.h"

struct esp_features {
    int fed_back; /* state of the head that takes the place of the target's behind its drafts */
    struct esp_states states; /* what a pass of the target is asked for */
    int first, count;         /* positions first..first+count-1 are there */
    int room;                 /* and so many at most */
    int32_t *row;             /* (room) their rows of states.to */
    int32_t *pass_row;        /* (room) where the rows of a pass go: rows that are not in use */
    bool *used;               /* (2 * room) by row of states.to */
};

/* For passes of at most `room` rows. */
int esp_features_open(struct esp_features *features, struct esp_backend *backend,
                      const struct esp_model *head, const struct esp_model *target, int room,
                      char *err, size_t errlen);
void esp_features_close(struct esp_features *features, const struct esp_backend_ops *ops);

/* The states that a pass of `rows` rows of the target is to hand out; what is there stays.
 * Valid until the next call. */
const struct esp_states *esp_features_ask(struct esp_features *features, int rows);

/* Of the pass asked for last, row which[i] (NULL: i) is that of position first + i. */
void esp_features_add(struct esp_features *features, int first, const int32_t *which,
                      int count);

/* The rows of positions begin..end-1; NULL if some are not there. */
const int32_t *esp_features_find(const struct esp_features *features, int begin, int end);

/* Forgets the positions from `end` on. */
void esp_features_cut(struct esp_features *features, int end);

/* Makes drafting behind a text of `length` tokens possible: the target's cache then holds all
 * tokens but the last, and the features of all rows that the head's cache lacks are there, one
 * or more. Where they are not, because the head was not used for a while, the target computes
 * their tokens again. Prefill is the case that all are lacking. */
int esp_features_catch_up(struct esp_features *features, struct esp_kv_cache *target,
                          struct esp_kv_cache *head, const int32_t *text, int length);

#endif
