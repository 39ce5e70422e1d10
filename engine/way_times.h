/* way_times.h - stores the times of a processor's two ways to multiply by quantised weights
 * (struct esp_way_times in kernels/kernels.h), in one file of the state folder for each
 * processor.
 *
 * The times affect only how fast a product is, never its result. So repeatable runs (with a
 * seed) use them, too. The file is untrusted: values that are not plausible times are measured
 * again.
 */
#ifndef ESP_WAY_TIMES_H
#define ESP_WAY_TIMES_H

#include "kernels/kernels.h"

/* Reads the stored times for the backend's processor, lets the backend measure the times that
 * are needed for the weights and are not in the file, and writes the file if anything was
 * measured. Does nothing if the backend has only one way. weights: (count) weights on the
 * backend; NULL ones are skipped. */
void esp_way_times_use(struct esp_backend *backend, struct esp_weights *const weights[],
                       int count);

#endif
