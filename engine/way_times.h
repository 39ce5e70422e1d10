/* way_times.h - stores the times of a processor's two ways to multiply by quantised weights
 * (struct esp_way_times in kernels/kernels.h). The state folder has one file for each
 * processor.
 *
 * The times affect only how fast a product is, never its result. Therefore even runs with a
 * seed, which must be repeatable, can use the stored times. The file is untrusted: values that
 * are not plausible times are measured again.
 */
#ifndef ESP_WAY_TIMES_H
#define ESP_WAY_TIMES_H

#include "kernels/kernels.h"

/* Reads the stored times for the backend's processor. If the weights need times that are not in
 * the file, lets the backend measure them and writes the file. Does nothing if the backend has
 * only one way. weights: (count) weights on the backend; entries may be NULL. */
void esp_way_times_use(struct esp_backend *backend, struct esp_weights *const weights[],
                       int count);

#endif
