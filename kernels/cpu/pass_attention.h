/* pass_attention.h - computes attention for all rows of a pass. */
#ifndef ESP_CPU_PASS_ATTENTION_H
#define ESP_CPU_PASS_ATTENTION_H

#include "kernels/cpu/pass.h"

/* Computes steps 3 and 4 of a layer with attention (forward.c numbers them). Reads queries,
 * keys and values of all rows of the batch. For the rows that later layers need, writes the
 * output of attention to the cache's `attended`. */
void esp_cpu_attention(struct esp_cpu_pass *p);

#endif
