/* perplexity.h - measures how well a target predicts a text. */
#ifndef ESP_PERPLEXITY_H
#define ESP_PERPLEXITY_H

#include "engine/espalier.h"

struct esp_perplexity {
    double value; /* exp of the mean of -log p over the measured tokens */
    double error; /* standard error of `value` */
    int tokens;   /* number of measured tokens */
    int piece;    /* length of a piece in tokens */
};

/* Splits the text into independent pieces of 512 tokens (or of the context, if that is shorter)
 * and measures the second half of each piece. At least 256 tokens then precede every measured
 * token. llama.cpp's `perplexity` tool prints the same measure. An incomplete last piece is not
 * measured; a text shorter than a piece is one piece. If the tokenizer has a begin-of-text
 * token, it replaces the first token of each piece. `progress` may be NULL. */
int esp_perplexity_measure(struct esp_engine *engine, const char *text, size_t length,
                           struct esp_perplexity *result, esp_progress *progress, void *user,
                           char *err, size_t errlen);

#endif
