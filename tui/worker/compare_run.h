/* compare_run.h - the session that is compared with, in the engine's thread (worker.h).
 *
 * A second session of the same engine runs over the text that the first writes, in lock step
 * (engine/compare.h). It has caches of its own, so it takes as much memory again; when it ends,
 * that is given back. What it does goes into the ring; whatever goes wrong with it ends the
 * comparison, never the text.
 */
#ifndef ESP_COMPARE_RUN_H
#define ESP_COMPARE_RUN_H

#include "engine/compare.h"
#include "tui/model/ring.h"

struct esp_compare_run {
    struct esp_compare compare;      /* its second is NULL: nothing is compared */
    char drafter[256], verifier[96]; /* as the user named them; verifier "": the best */
    bool differed;                   /* and that was said */
    struct esp_ring *ring;
    /* Something is in the ring; an iteration can wait to be seen together with others. */
    void (*wake)(void *user, bool iteration);
    void *user;
};

/* Begins, or with drafter NULL ends; verifier NULL: the best that changes nothing. A choice
 * that cannot be opened leaves all as it was. Says in the ring what became of it. */
void esp_compare_run_choose(struct esp_compare_run *second, struct esp_session *first,
                            const char *drafter, const char *verifier);
/* Ends, and says so, if anything is compared. */
void esp_compare_run_end(struct esp_compare_run *second);
/* Begins again with the same choice over another session. */
void esp_compare_run_again(struct esp_compare_run *second, struct esp_session *first);

/* The first has got a prompt or an allowance. */
void esp_compare_run_begin(struct esp_compare_run *second);
/* A setting of the first was changed; those that are not its drafter's or verifier's are the
 * second's too. */
void esp_compare_run_set(struct esp_compare_run *second, const char *key, const char *value);
/* Runs an iteration of the second, if it is its turn. */
bool esp_compare_run_run(struct esp_compare_run *second);

#endif
