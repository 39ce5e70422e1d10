/* toy.h - a backend for tests. It computes random distributions in double precision instead of
 * running a transformer.
 *
 * A row's distribution is a function of a seed and of the sequence of tokens to which the row
 * attends: the tokens of the prefix, then the tokens that the tree mask includes. So a wrong
 * mask, position, cache row or compaction gives a wrong distribution. A test can compute the
 * right distribution with toy_distribution(). The draft's logits are a weighted mean of the
 * target's logits and of other random numbers. The target's logits have the weight `closeness`
 * (0 to 1).
 */
#ifndef ESP_TOY_H
#define ESP_TOY_H

#include "engine/engine.h"
#include "engine/session_parts.h"

struct toy {
    struct esp_engine engine; /* pass &toy.engine to esp_session_open() */
    struct esp_model target, draft;
    unsigned long long seed;
    double closeness;
    double sharpness; /* 1: flat distributions; with larger values, one token dominates */
    double dulled;    /* the draft's log probabilities are divided by this; 0 means 1 */
    /* If true, noise makes the target's likeliest token random: Gumbel noise is added to the
     * logits. After the same tokens, the noise is always the same. */
    bool chancy;
    int vocabulary;
};

/* Opens an engine with two toy models. max_nodes is described in struct esp_engine_options. */
void toy_open(struct toy *toy, int vocabulary, int context, int max_nodes,
              unsigned long long seed);
/* Makes the draft a copy of the target, which drafts in the target's KV cache. A pass of the
 * target then fails if it attends to a row of the copy. */
void toy_join(struct toy *toy);
/* Gives the draft another vocabulary, which has `vocabulary` tokens. The caller owns the
 * translation. Call this function before you open a session. */
void toy_translate(struct toy *toy, const struct esp_translation *translation, int vocabulary);
void toy_close(struct toy *toy);

/* Writes the distribution (vocabulary) of the target or the draft after `count` tokens. */
void toy_distribution(const struct toy *toy, bool draft, const int32_t *tokens, int count,
                      double *p);

/* Returns row `which` of a matrix of this backend, as doubles (vocabulary). */
double *toy_row(struct esp_rows *rows, int which);

extern const struct esp_backend_ops toy_backend;

/* Returns a copy of toy_backend with `asynchronous` set. So drafters act as if they had to wait
 * for a device at each call that returns values: they draw children before they need them. */
struct esp_backend_ops toy_backend_that_waits(void);

#endif
