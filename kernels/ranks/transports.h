/* transports.h - the transports between ranks (struct esp_transport of ranks.h). */
#ifndef ESP_TRANSPORTS_H
#define ESP_TRANSPORTS_H

#include "kernels/ranks/ranks.h"

extern const struct esp_transport esp_transport_shm, esp_transport_mpi;

#endif
