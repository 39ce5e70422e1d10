/* recycling.h - connects a session with its recycled tokens (recycled.h): collects these tokens
 * from the target's passes, and opens and closes their matrix. */
#ifndef ESP_RECYCLING_H
#define ESP_RECYCLING_H

#include "engine/arrays.h"
#include "engine/recycled.h"

struct esp_session;

/* Lists the values of setting `recycle`. */
enum { ESP_RECYCLE_KEEP, ESP_RECYCLE_SESSION, ESP_RECYCLE_OFF };

struct esp_recycling {
    struct esp_recycled matrix;
    int width;   /* tokens per row: the smaller of ESP_RECYCLED_WIDTH and the vocabulary size */
    bool looked; /* true: esp_recycling_look() has requested this iteration's tokens */
    int32_t *likeliest; /* (max_nodes + 1, width) likeliest tokens of each verified row */
    float *logits;      /* (max_nodes + 1, width) logits of these tokens */
    struct esp_arrays arrays;
};

/* Opens or closes the matrix of recycled tokens, depending on the session's settings and
 * drafter. Returns 0 or ESP_E_MEMORY. */
int esp_recycling_turn(struct esp_session *session);
void esp_recycling_close(struct esp_recycling *recycling);

/* Asks the backend for the likeliest tokens of all verified rows. They are available after the
 * verifier has run. */
int esp_recycling_look(struct esp_session *session);

/* Learns from the likeliest tokens of the verified rows and from the committed tokens. */
void esp_recycling_learn(struct esp_session *session);

#endif
