/* transports.c - lists the transports between ranks and chooses one. */
#include "kernels/ranks/transports.h"

#include <stdlib.h>
#include <string.h>

const struct esp_transport *const esp_transports[] = {&esp_transport_shm, &esp_transport_mpi,
                                                      NULL};

/* Returns how many seconds a rank can fail to answer before it is considered hung.
 * ESPALIER_RANKS_PATIENCE overrides the default of 10 seconds. */
static double patience(void)
{
    static const double SECONDS = 10;
    const char *text = getenv("ESPALIER_RANKS_PATIENCE");
    const double given = text ? atof(text) : 0;
    return given > 0 && given < 1e6 ? given : SECONDS;
}

int esp_ranks_open(struct esp_ranks **ranks, const struct esp_rank_options *options, char *err,
                   size_t errlen)
{
    const struct esp_transport *transport =
        options->hosts ? &esp_transport_mpi : &esp_transport_shm;
    *ranks = NULL;
    if (options->ranks < 2 || options->ranks > ESP_MAX_RANKS)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%d ranks: give 2 to %d", options->ranks,
                        ESP_MAX_RANKS);
    int status = transport->open(ranks, options, err, errlen);
    if (status < 0)
        return status;
    (*ranks)->patience = patience();
    (*ranks)->times.starts = 1;
    if (esp_ranks_set_delay(*ranks, getenv("ESPALIER_RANKS_DELAY")) == ESP_OK)
        return ESP_OK;
    esp_ranks_fail(*ranks, "ESPALIER_RANKS_DELAY is not a delay");
    esp_ranks_close(*ranks);
    *ranks = NULL;
    return esp_fail(err, errlen, ESP_E_ARGUMENT,
                    "ESPALIER_RANKS_DELAY=%.40s: give a time, such as 500us, or a time and "
                    "a rate, as in 10ms,1Gb/s",
                    getenv("ESPALIER_RANKS_DELAY"));
}

void esp_ranks_close(struct esp_ranks *ranks)
{
    if (ranks)
        ranks->transport->close(ranks);
}
