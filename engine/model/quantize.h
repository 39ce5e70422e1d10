/* quantize.h - writes a model as a GGUF file, with its matrices in another type. */
#ifndef ESP_QUANTIZE_H
#define ESP_QUANTIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/status.h"

/* What a file took and lost. */
struct esp_quantize_report {
    double bytes_before, bytes_after; /* of all tensors */
    double bits;                      /* per number of the matrices */
    double loss;  /* root of the squared differences of all matrices, relative to that of their
                     squared numbers */
    double worst; /* the same of the matrix that lost most */
    char worst_name[128];
    /* Of the tokens of a text made of the whole vocabulary: how many there are, and how many of
     * them are others with the tokenizer that was written. */
    int tokens, other_tokens;
    /* The layers' window is written, but programs that read the file by its architecture, as
     * llama.cpp does, have none for it: they compute another model behind so many tokens. 0:
     * no such window. */
    int ignored_window;
};

/* "q8_0, q6_k, ...": the types there are, separated by ", ". */
const char *esp_quantize_types(void);

/* Reads `from`, a model folder or a GGUF file, and writes the GGUF file `to`, as a whole or not
 * at all; with `over`, also where a file is. `type` is one of the types; rows whose length is
 * no multiple of its block get the next larger type with blocks of 32, or F16. `progress` may
 * be NULL. */
int esp_model_quantize(const char *from, const char *to, const char *type, bool over,
                       struct esp_quantize_report *report, esp_progress *progress, void *user,
                       char *err, size_t errlen);

#endif
