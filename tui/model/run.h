/* run.h - a run is a session in memory. It has the text, the iterations and a clock.
 *
 * Races show two runs side by side, and lessons ask questions about a run. A run is filled from
 * the events of a session or from a recording. After that, the source is no longer needed.
 *
 * The clock of a run shows the sum of its iterations' stage times. It leaves out the time
 * between iterations, when the program waits (pace, step mode) or another session runs.
 *
 * A thread can fill a run while another thread reads it. Both threads must lock the run.
 */
#ifndef ESP_RUN_H
#define ESP_RUN_H

#include <pthread.h>

#include "engine/text_token.h"
#include "tui/model/trace.h"
#include "sessions/texts.h"

struct esp_run {
    pthread_mutex_t lock; /* protects all members below */
    char drafter[ESP_SPEC_TEXT], verifier[ESP_SPEC_TEXT];
    char target[160], draft[160]; /* names of the models; "" if there is none */
    double temperature;
    struct esp_texts texts;
    struct esp_text_token *tokens; /* (token_count) the text, with the prompt */
    int token_count, token_capacity;
    struct esp_trace trace; /* all iterations of the run */
    char end[64];           /* the reason why the run ended; "" if unknown */
    bool complete;          /* no more events follow */
};

void esp_run_init(struct esp_run *run);
void esp_run_free(struct esp_run *run);
void esp_run_clear(struct esp_run *run);

/* Adds an event of a session. Copies the texts of its tokens. Returns 0 or ESP_E_MEMORY. */
int esp_run_take(struct esp_run *run, const struct esp_event *event,
                 const struct esp_tokens *tokens);

/* Fills an empty run from a recording. The run ends where the text was cleared or shortened.
 * Returns 0 or a negative status with a message. */
int esp_run_read(struct esp_run *run, const char *path, char *err, size_t errlen);

/* Returns the texts of the run's tokens. */
struct esp_tokens esp_run_tokens(struct esp_run *run);
/* Returns the number of generated tokens. These are all tokens of the text except prompts. */
int esp_run_written(const struct esp_run *run);
/* Returns the number of iterations. */
int esp_run_steps(const struct esp_run *run);
/* Returns how many seconds the whole run took, according to its clock. */
double esp_run_seconds(const struct esp_run *run);
/* Returns the number of iterations that had ended after `seconds` on the clock. */
int esp_run_steps_at(const struct esp_run *run, double seconds);
/* Returns the number of tokens in the text after the first `steps` iterations. `steps` is at
 * least 1. */
int esp_run_tokens_after(const struct esp_run *run, int steps);

#endif
