/* paper.h - a file that holds figures of a paper, and says which of a suite's stand beside
 * them.
 *
 * sessions/samples/NAME.paper; sessions/samples/README.md describes its lines.
 */
#ifndef ESP_CLI_PAPER_H
#define ESP_CLI_PAPER_H

#include "viz/beside.h"

/* Does the name of a file say that it is one? */
bool cli_is_paper(const char *path);

/* Reads the file, and the figures from here out of the table that it names (a suite's results
 * as JSON, beside it). Returns 0, or a negative status with a sentence: also where a row of the
 * table is named that there is not. */
int cli_paper_read(struct esp_beside *beside, const char *path, char *err, size_t errlen);

#endif
