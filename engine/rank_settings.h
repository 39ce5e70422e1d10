/* rank_settings.h - reads the engine options of ranks. */
#ifndef ESP_RANK_SETTINGS_H
#define ESP_RANK_SETTINGS_H

#include "engine/espalier_options.h"
#include "kernels/ranks/rank_options.h"

/* Reads the options `ranks`, `ranks_parts` and `ranks_whole`. Chooses how many threads a rank
 * has: the number that the user gave, or the processor's cores divided by the number of ranks.
 * Returns ESP_E_ARGUMENT and writes one sentence to err if an option is not valid. */
int esp_rank_settings_read(struct esp_rank_options *ranks,
                           const struct esp_engine_options *options, char *err, size_t errlen);

#endif
