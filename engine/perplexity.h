/* perplexity.h - how well a target predicts a text. */
#ifndef ESP_PERPLEXITY_H
#define ESP_PERPLEXITY_H

#include "engine/espalier.h"

struct esp_perplexity {
    double value; /* exp of the mean of -log p over the tokens that count */
    double error; /* standard error of `value` */
    int tokens;   /* that count */
    int piece;    /* tokens of a piece */
};

/* Cuts the text into pieces of 512 tokens (or of the whole context, if that is shorter), each
 * read for itself, and counts the second half of each, so that every token that counts has at
 * least 256 before it. This is the measure that llama.cpp's tool of the same name prints. A
 * rest shorter than a piece does not count; a text that is no whole piece is one piece. If
 * every text begins with a token, it takes the place of the first of each piece. `progress` may
 * be NULL. */
int esp_perplexity_measure(struct esp_engine *engine, const char *text, size_t length,
                           struct esp_perplexity *result, esp_progress *progress, void *user,
                           char *err, size_t errlen);

#endif
