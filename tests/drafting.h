/* drafting.h - runs a session on the toy models of toy.h, for tests of drafters. */
#ifndef ESP_DRAFTING_H
#define ESP_DRAFTING_H

#include "tests/toy.h"

/* Options of the session. Members that are 0 get defaults: a vocabulary of 12, a context of
 * 256, 64 nodes, sharpness 2, and toy seed 1. draft_temp is `temperature` by default. */
struct drafting_setup {
    const char *drafter, *draft_temp;
    int vocabulary, context, max_nodes, top_k;
    unsigned long long toy_seed, seed; /* seeds of the toy's distributions and of the session */
    double sharpness, temperature;
    esp_observer *observer;
    bool waits; /* true: use toy_backend_that_waits() */
};

struct drafting {
    struct toy toy;
    struct esp_backend_ops ops;
    struct esp_session *session;
    const struct esp_tree *tree; /* the tree of the last iteration */
    char err[512];
};

enum { DRAFTING_PROMPT = 3, DRAFTING_ALLOWED = 200 }; /* the prompt has tokens 1, 0, 1 */

/* Opens a session with the prompt. The session may generate DRAFTING_ALLOWED tokens. Its
 * observer gets *d as `user`. */
void drafting_open(struct drafting *d, const struct drafting_setup *setup);
void drafting_close(struct drafting *d);

/* Runs an iteration. Returns false if the generation has ended. */
bool drafting_step(struct drafting *d);
/* Starts the session again from the prompt, with another seed. */
void drafting_restart(struct drafting *d, unsigned long long seed);
void drafting_set(struct drafting *d, const char *key, const char *value);
double drafting_gauge(const struct drafting *d, const char *name, bool before);

/* Writes to q (vocabulary) the draft's distribution after a node of the last tree. It is
 * computed from the tokens up to the node. */
void drafting_q(const struct drafting *d, int node, double *q);
/* Writes to q (vocabulary) the draft's distribution after a text: the text as it was before the
 * last iteration, followed by the `count` tokens of `more`. */
void drafting_q_after(const struct drafting *d, const int32_t *more, int count, double *q);

/* Computes the sum over all cells of (seen - expected)^2 / expected, and returns whether it is
 * at most 5 standard deviations above its mean. Cell i is expected `runs` * p[i] times. */
bool drafting_chi_square(const int *seen, const double *p, int cells, int runs);

#endif
