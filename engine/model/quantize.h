/* quantize.h - writes a model as a GGUF file with quantised matrices. */
#ifndef ESP_QUANTIZE_H
#define ESP_QUANTIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/status.h"

/* Reports the size and the rounding error of the written file. */
struct esp_quantize_report {
    double bytes_before, bytes_after; /* size of all tensors in bytes, before and after */
    double bits;                      /* average bits per number of the matrices */
    double loss;  /* relative error of all matrices: the square root of (sum of squared
                     differences / sum of squared numbers) */
    double worst; /* the largest relative error of a matrix */
    char worst_name[128];
    /* The written tokenizer is compared with the original one on a text made of the whole
     * vocabulary. `tokens` is the number of tokens of this text. `other_tokens` is the number
     * of tokens in which the two tokenizers differ. */
    int tokens, other_tokens;
    /* The size of an attention window that other programs do not expect in files of this
     * architecture, or 0 if no layer has one. For texts longer than the window, programs such
     * as llama.cpp compute different results. */
    int ignored_window;
    bool mtp;               /* true: the file has the model's MTP layer, too */
    char mtp_left_out[256]; /* why the file does not have the model's MTP layers, or "" */
};

/* Returns a list of all types that esp_model_quantize() can write: "q8_0, q6_k, ...". */
const char *esp_quantize_types(void);

/* Reads `from`, a model folder or a GGUF file, and writes the GGUF file `to`. If writing fails,
 * `to` does not change. If `over` is true, it may replace an existing file. `type` is one of
 * esp_quantize_types(). If the row length of a matrix is not a multiple of the type's block
 * size, the matrix gets the next larger type with blocks of 32, or F16. `progress` may be
 * NULL. */
int esp_model_quantize(const char *from, const char *to, const char *type, bool over,
                       struct esp_quantize_report *report, esp_progress *progress, void *user,
                       char *err, size_t errlen);

#endif
