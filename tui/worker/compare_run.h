/* compare_run.h - runs the compared session, in the engine thread (worker.h).
 *
 * A second session of the same engine decodes the text that the first one writes, in lock step
 * (engine/compare.h). It has its own caches: it doubles their memory until it ends. Its events
 * go into the ring. An error in it ends the comparison, never the text.
 */
#ifndef ESP_COMPARE_RUN_H
#define ESP_COMPARE_RUN_H

#include "engine/compare.h"
#include "tui/model/ring.h"

struct esp_compare_run {
    struct esp_compare compare;      /* its second is NULL: no comparison */
    char drafter[256], verifier[96]; /* as the user named them; verifier "": the default */
    bool differed;                   /* the texts differed, and the user was told */
    struct esp_ring *ring;
    /* Announces new snapshots; those of iterations may be announced later, together. */
    void (*wake)(void *user, bool iteration);
    void *user;
};

/* Begins a comparison, or with drafter NULL ends it; verifier NULL: the default, the best
 * lossless one. Reports the result through the ring. A configuration that cannot be opened
 * changes nothing. */
void esp_compare_run_choose(struct esp_compare_run *second, struct esp_session *first,
                            const char *drafter, const char *verifier);
/* Ends the comparison, if there is one, and reports it. */
void esp_compare_run_end(struct esp_compare_run *second);
/* Restarts it with the same configuration beside another first session. */
void esp_compare_run_again(struct esp_compare_run *second, struct esp_session *first);

/* The first session has received a prompt or a new token limit. */
void esp_compare_run_begin(struct esp_compare_run *second);
/* A setting of the first session changed. The second gets it too, unless it belongs to the
 * drafter or verifier. */
void esp_compare_run_set(struct esp_compare_run *second, const char *key, const char *value);
/* Runs an iteration of the second session if it is its turn. */
bool esp_compare_run_run(struct esp_compare_run *second);

#endif
