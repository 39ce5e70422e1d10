/* figure_facts.h - data of a recording that figures of an iteration need in addition to the
 * iteration's event. */
#ifndef ESP_CLI_FIGURE_FACTS_H
#define ESP_CLI_FIGURE_FACTS_H

#include "sessions/recording.h"
#include "viz/export.h"

/* Collects the facts for the iteration at event `event`. Returns 0 or a negative status with a
 * message. Free them with cli_figure_facts_free(). */
int cli_figure_facts(struct esp_recording *recording, int event, struct esp_export_facts *facts,
                     char *err, size_t errlen);
void cli_figure_facts_free(struct esp_export_facts *facts);

#endif
