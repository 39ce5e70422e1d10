/* toy.h - a backend for tests. Instead of a transformer it has random distributions, in double
 * precision.
 *
 * The next-token distribution after a context is a function of a seed and of the tokens that
 * the row sees, in order, through the prefix and the tree mask. So a wrong mask, position,
 * cache row or compaction gives another distribution, and a test can compute the right one with
 * toy_distribution(). Target and draft have different seeds. `closeness` (0 to 1) is the share
 * of the target's distribution in the draft's.
 */
#ifndef ESP_TOY_H
#define ESP_TOY_H

#include "engine/engine.h"
#include "engine/session.h"

struct toy {
    struct esp_engine engine; /* pass &toy.engine to esp_session_open() */
    struct esp_model target, draft;
    unsigned long long seed;
    double closeness;
    double sharpness; /* 1: flat distributions; with larger values, one token dominates */
    double dulled;    /* the draft's log probabilities are divided by this; 0 means 1 */
    /* If true, the target's likeliest token is random, because Gumbel noise is added to the
     * logits. After the same tokens, the noise is always the same. */
    bool chancy;
    int vocabulary;
};

/* Opens an engine with two toy models. max_nodes is described in struct esp_engine_options. */
void toy_open(struct toy *toy, int vocabulary, int context, int max_nodes,
              unsigned long long seed);
/* Makes the draft the target's own copy from now on: it drafts in the target's cache, and a
 * pass of the target fails if it sees one of the copy's rows. */
void toy_join(struct toy *toy);
/* From now on the draft has its own vocabulary of `vocabulary` tokens. The caller owns the
 * translation. Call this before a session is opened. */
void toy_translate(struct toy *toy, const struct esp_translation *translation, int vocabulary);
void toy_close(struct toy *toy);

/* Writes the distribution (vocabulary) after `count` tokens. */
void toy_distribution(const struct toy *toy, bool draft, const int32_t *tokens, int count,
                      double *p);

/* Returns row `which` of a matrix of this backend, as doubles (vocabulary). */
double *toy_row(struct esp_rows *rows, int which);

extern const struct esp_backend_ops toy_backend;

/* Returns a copy of toy_backend with `asynchronous` set. So drafters act as if calls that
 * return values had to wait for a device: they draw children before they need them. */
struct esp_backend_ops toy_backend_that_waits(void);

#endif
