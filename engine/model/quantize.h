/* quantize.h - writes a model as a GGUF file with quantised matrices. */
#ifndef ESP_QUANTIZE_H
#define ESP_QUANTIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/status.h"

/* Size and error of the written file. */
struct esp_quantize_report {
    double bytes_before, bytes_after; /* of all tensors */
    double bits;                      /* per number of the matrices */
    double loss;  /* relative error of all matrices: root of the sum of squared differences
                     over the sum of squared numbers */
    double worst; /* the same for the matrix with the largest error */
    char worst_name[128];
    /* Check of the tokenizer, on a text of the whole vocabulary: number of tokens, and how many
     * differ with the written tokenizer. */
    int tokens, other_tokens;
    /* A window of the layers that other programs do not know: those that read the file by its
     * architecture, such as llama.cpp, compute another model beyond this many tokens. 0: no
     * such window. */
    int ignored_window;
};

/* "q8_0, q6_k, ...": all types. */
const char *esp_quantize_types(void);

/* Reads `from`, a model folder or a GGUF file, and writes the GGUF file `to`, as a whole or not
 * at all; with `over` it may replace a file. `type` is one of the types. Rows with a length
 * that is no multiple of its block get the next larger type with blocks of 32, or F16.
 * `progress` may be NULL. */
int esp_model_quantize(const char *from, const char *to, const char *type, bool over,
                       struct esp_quantize_report *report, esp_progress *progress, void *user,
                       char *err, size_t errlen);

#endif
