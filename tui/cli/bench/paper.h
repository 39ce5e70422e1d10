/* paper.h - reads a file that lists figures of a paper. The file also says where to find
 * the corresponding figures in the table of a suite.
 *
 * These files are sessions/samples/NAME.paper; README.md in that folder describes their lines.
 */
#ifndef ESP_CLI_PAPER_H
#define ESP_CLI_PAPER_H

#include "viz/beside.h"

/* Returns whether the name of a file ends in ".paper". */
bool cli_is_paper(const char *path);

/* Reads the file and the table that it names. The table contains the results of a suite as
 * JSON, and its path is relative to the file. Returns 0, or a negative status with a message.
 * It is an error if the table lacks a row. */
int cli_paper_read(struct esp_beside *beside, const char *path, char *err, size_t errlen);

#endif
