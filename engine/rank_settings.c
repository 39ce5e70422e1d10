/* rank_settings.c - see rank_settings.h. */
#include "engine/rank_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ranks/rank_plan.h"
#include "kernels/system.h"

/* Reads how much of the model each rank gets, such as "3:1": a number above 0 for each rank. */
static int read_parts(struct esp_rank_options *ranks, const char *text, char *err,
                      size_t errlen)
{
    const char *at = text;
    int count = 0;
    for (char *end; count < ESP_MAX_RANKS; count++, at = end + 1) {
        const double part = strtod(at, &end);
        if (end == at || !(part > 0 && part <= 1e6) || (*end && *end != ':'))
            break;
        ranks->share[count] = part;
        if (!*end && ++count == ranks->ranks)
            return ESP_OK;
        if (!*end)
            break;
    }
    return esp_fail(err, errlen, ESP_E_ARGUMENT,
                    "--ranks-parts %.60s: give %d numbers above 0 with colons between them, "
                    "one for each rank",
                    text, ranks->ranks);
}

/* Reads a list of kinds of matrices, such as "output,down", or "none". */
static int read_whole(struct esp_rank_options *ranks, const char *text, char *err,
                      size_t errlen)
{
    char words[200] = "";
    ranks->planned = true;
    if (strcmp(text, "none") == 0)
        return ESP_OK;
    for (const char *at = text; *at; at += strspn(at, ",")) {
        const size_t length = strcspn(at, ",");
        int found = -1;
        for (int k = 0; k < ESP_RANK_KIND_COUNT; k++) {
            const char *word = esp_rank_kind_word((enum esp_rank_kind)k);
            if (strlen(word) == length && strncmp(word, at, length) == 0)
                found = k;
        }
        if (found < 0) {
            for (int k = 0; k < ESP_RANK_KIND_COUNT; k++)
                snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s",
                         k > 0 ? ", " : "", esp_rank_kind_word((enum esp_rank_kind)k));
            return esp_fail(err, errlen, ESP_E_ARGUMENT,
                            "--ranks-whole %.60s: give none, or one or more of %s", text,
                            words);
        }
        ranks->whole |= 1u << found;
        at += length;
    }
    return ESP_OK;
}

static int count_hosts(const char *hosts)
{
    int count = hosts && *hosts ? 1 : 0;
    for (const char *at = hosts; count > 0 && (at = strchr(at, ',')); at++)
        count++;
    return count;
}

int esp_rank_settings_read(struct esp_rank_options *ranks, const struct esp_engine_options *o,
                           char *err, size_t errlen)
{
    const char *given = getenv(ESP_RANKS_GIVEN) ? getenv(ESP_RANKS_COUNT) : NULL;
    const int hosts = count_hosts(o->hosts), machines = hosts > 0 ? hosts : 1;
    *ranks = (struct esp_rank_options){.ranks = o->ranks > 1 ? o->ranks : hosts,
                                       .threads = o->threads,
                                       .hosts = hosts > 0 ? o->hosts : NULL,
                                       .launcher = o->launcher};
    if (given && ranks->ranks == 0) { /* mpirun has started the ranks */
        ranks->ranks = atoi(given);
        ranks->hosts = given;
        ranks->given = true;
    }
    const int each = (ranks->ranks + machines - 1) / machines, cores = esp_cores_best();
    int status = ESP_OK;
    if (hosts > 0 && ranks->ranks < 2)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "--hosts %.60s: give more than one machine, with this machine "
                        "(localhost) first, or raise --ranks",
                        o->hosts);
    if (hosts == 0 && !given && o->launcher && *o->launcher)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "--launcher %.200s starts ranks on several machines; give their names "
                        "with --hosts, or leave out --launcher",
                        o->launcher);
    if (ranks->ranks > ESP_MAX_RANKS)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%d ranks: %d at most", ranks->ranks,
                        ESP_MAX_RANKS);
    if (o->ranks_split && *o->ranks_split && strcmp(o->ranks_split, "rows") != 0 &&
        strcmp(o->ranks_split, "layers") != 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "--ranks-split %.60s: give rows or layers",
                        o->ranks_split);
    ranks->by_layers = o->ranks_split && strcmp(o->ranks_split, "layers") == 0;
    if (ranks->ranks > 1 && o->threads == 0)
        ranks->threads = cores > each ? cores / each : 1;
    if (o->ranks_parts && *o->ranks_parts)
        status = read_parts(ranks, o->ranks_parts, err, errlen);
    if (status == ESP_OK && o->ranks_whole && *o->ranks_whole)
        status = read_whole(ranks, o->ranks_whole, err, errlen);
    return status;
}
