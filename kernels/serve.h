/* serve.h - runs a process as a rank, which computes its part of a model for rank 0. */
#ifndef ESP_SERVE_H
#define ESP_SERVE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether this process was started as a rank. A program that uses the engine option
 * `ranks` must call it first in main(), because the ranks of this machine are started as the
 * same program. */
bool esp_is_rank(int argc, char **argv);
/* Runs this process as a rank until rank 0 ends the group or no longer exists. Returns the exit
 * status for main(). */
int esp_serve_rank(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
