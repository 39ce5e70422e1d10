/* transports.c - the list of transports between ranks, and the choice among them. */
#include "kernels/ranks/transports.h"

#include <stdlib.h>
#include <string.h>

const struct esp_transport *const esp_transports[] = {&esp_transport_shm, NULL};

static const struct esp_transport *find_transport(const char *name)
{
    for (int i = 0; esp_transports[i]; i++)
        if (!name || strcmp(esp_transports[i]->name, name) == 0)
            return esp_transports[i];
    return NULL;
}

/* Seconds without an answer after which a rank counts as hung; ESPALIER_RANKS_PATIENCE sets
 * others. */
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
    const struct esp_transport *transport = find_transport(options->transport);
    *ranks = NULL;
    if (options->ranks < 2 || options->ranks > ESP_MAX_RANKS)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%d ranks: give 2 to %d", options->ranks,
                        ESP_MAX_RANKS);
    if (!transport)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "there is no transport '%s' for ranks",
                        options->transport);
    const int status = transport->open(ranks, options, err, errlen);
    if (status == ESP_OK)
        (*ranks)->patience = patience();
    return status;
}

void esp_ranks_close(struct esp_ranks *ranks)
{
    if (ranks)
        ranks->transport->close(ranks);
}
