/* pass_attention.h - computes attention for all rows of a pass. */
#ifndef ESP_CPU_PASS_ATTENTION_H
#define ESP_CPU_PASS_ATTENTION_H

#include "kernels/cpu/pass.h"

/* Steps 3 and 4 of a layer (forward.c numbers them): reads queries, keys and values of all
 * rows of the batch, and writes the attention of the rows that continue into the cache's
 * `attended`. */
void esp_cpu_attention(struct esp_cpu_pass *p);

#endif
