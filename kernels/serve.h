/* serve.h - a process that computes its part of a model for the program. */
#ifndef ESP_SERVE_H
#define ESP_SERVE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Was this process started as a rank? To be asked first in main() of a program that uses the
 * engine option `ranks`, because a rank of this machine is the same program once more. */
bool esp_is_rank(int argc, char **argv);
/* Serves until rank 0 says or shows that it is over. Returns what main() returns. */
int esp_serve_rank(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
