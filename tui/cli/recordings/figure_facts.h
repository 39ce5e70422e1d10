/* figure_facts.h - collects the data for drawing a figure of an iteration. Besides the event of
 * the iteration, a figure needs other data of the recording, such as the text so far. */
#ifndef ESP_CLI_FIGURE_FACTS_H
#define ESP_CLI_FIGURE_FACTS_H

#include "sessions/recording.h"
#include "viz/export.h"

/* Collects the data for the iteration at event `event`. Returns 0, or a negative status with a
 * message. Free the data with cli_figure_facts_free(). */
int cli_figure_facts(struct esp_recording *recording, int event, struct esp_export_facts *facts,
                     char *err, size_t errlen);
void cli_figure_facts_free(struct esp_export_facts *facts);

#endif
