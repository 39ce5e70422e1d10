/* way_times.h - keeps what a processor's two ways to multiply by quantised weights take, in a
 * file of the state folder for each processor. See struct esp_way_times in kernels/kernels.h.
 *
 * The times decide only how fast a product is, never its result. So runs with a seed use them
 * too. The file is untrusted: what is no time of a plausible size is measured again.
 */
#ifndef ESP_WAY_TIMES_H
#define ESP_WAY_TIMES_H

#include "kernels/kernels.h"

/* Reads the times of the backend's processor, lets the backend measure what the weights need
 * and the file lacks, and writes the file if there was something. Does nothing on a backend
 * with one way. `weights` are on the backend; NULL ones are left out. */
void esp_way_times_use(struct esp_backend *backend, struct esp_weights *const weights[],
                       int count);

#endif
