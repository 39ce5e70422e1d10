/* run.h - one session in memory: its text, its iterations, and its clock.
 *
 * Races show two runs side by side, and lessons ask questions about a run. A run is filled from
 * the events of a session or from a recording, and needs neither afterwards.
 *
 * The clock of a run is the sum of its iterations' stage times. It leaves out pauses between
 * iterations (pace, step mode, turns of another session).
 *
 * One thread fills a run while another reads it. Both take the lock.
 */
#ifndef ESP_RUN_H
#define ESP_RUN_H

#include <pthread.h>

#include "engine/text_token.h"
#include "tui/model/trace.h"
#include "sessions/texts.h"

struct esp_run {
    pthread_mutex_t lock; /* protects everything below */
    char drafter[ESP_SPEC_TEXT], verifier[ESP_SPEC_TEXT];
    char target[160], draft[160]; /* names of the models; "" if none */
    double temperature;
    struct esp_texts texts;
    struct esp_text_token *tokens; /* (token_count) the text, prompt included */
    int token_count, token_capacity;
    struct esp_trace trace; /* all its iterations */
    char end[64];           /* the reason that the run ended; "" means unknown */
    bool complete;          /* no more events follow */
};

void esp_run_init(struct esp_run *run);
void esp_run_free(struct esp_run *run);
void esp_run_clear(struct esp_run *run);

/* Adds an event of a session. Token texts are copied. Returns 0 or ESP_E_MEMORY. */
int esp_run_take(struct esp_run *run, const struct esp_event *event,
                 const struct esp_tokens *tokens);

/* Fills an empty run from a recording. The run ends where the text was cleared or shortened.
 * Returns 0 or a negative status with a message. */
int esp_run_read(struct esp_run *run, const char *path, char *err, size_t errlen);

/* The texts of the run's tokens. */
struct esp_tokens esp_run_tokens(struct esp_run *run);
/* The number of generated tokens: those of the text without the prompts. */
int esp_run_written(const struct esp_run *run);
/* The number of iterations. */
int esp_run_steps(const struct esp_run *run);
/* The seconds that the whole run took, by its clock. */
double esp_run_seconds(const struct esp_run *run);
/* The number of iterations that had ended after `seconds` on the clock. */
int esp_run_steps_at(const struct esp_run *run, double seconds);
/* The number of tokens in the text after the first `steps` iterations; `steps` is at least
 * 1. */
int esp_run_tokens_after(const struct esp_run *run, int steps);

#endif
