/* recycling.h - a session's recycled tokens: when they are read, written and kept. */
#ifndef ESP_RECYCLING_H
#define ESP_RECYCLING_H

#include "engine/arrays.h"
#include "engine/recycled.h"

struct esp_session;

/* Values of setting `recycle`. */
enum { ESP_RECYCLE_KEEP, ESP_RECYCLE_SESSION, ESP_RECYCLE_OFF };

struct esp_recycling {
    struct esp_recycled matrix;
    int width;          /* tokens per row: ESP_RECYCLED_WIDTH, or the vocabulary */
    bool looked;        /* the rows of this iteration were asked for */
    int32_t *likeliest; /* (max_nodes + 1, width) of each verified row */
    float *logits;      /* the same */
    struct esp_arrays arrays;
};

/* Opens or closes the matrix, as the session's settings and its drafter demand. Returns 0 or
 * ESP_E_MEMORY. */
int esp_recycling_turn(struct esp_session *session);
void esp_recycling_close(struct esp_recycling *recycling);

/* Asks for the likeliest tokens of all verified rows. They are there when the verifier has
 * run. */
int esp_recycling_look(struct esp_session *session);

/* Learns from them and from the committed tokens. */
void esp_recycling_learn(struct esp_session *session);

#endif
