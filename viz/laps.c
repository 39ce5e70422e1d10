/* laps.c - see laps.h. Laps can come from a file, so their ranks can be in any order. */
#include "viz/laps.h"

#include <math.h>

#include "viz/chart.h"

const char *const esp_lap_words[ESP_LAP_PARTS] = {"computes", "waits", "exchanges"};

int esp_laps_ranks(const struct esp_iteration *it)
{
    int ranks = 0;
    for (int i = 0; i < it->lap_count; i++)
        ranks = it->laps[i].rank >= ranks ? it->laps[i].rank + 1 : ranks;
    return ranks;
}

static void parts_of(const struct esp_rank_lap *lap, double parts[ESP_LAP_PARTS])
{
    parts[ESP_LAP_COMPUTE] = esp_measured(lap->compute);
    parts[ESP_LAP_WAIT] = esp_measured(lap->wait);
    parts[ESP_LAP_HOP] = esp_measured(lap->hop);
}

int esp_laps_of(const struct esp_iteration *it, int rank,
                struct esp_lap_piece pieces[ESP_LAP_PIECES], double *all)
{
    double begin = 0, end = 0, parts[ESP_LAP_PARTS];
    int count = 0;
    for (int i = 0; i < it->lap_count; i++) {
        const struct esp_rank_lap *lap = &it->laps[i];
        if (i > 0 && lap->rank <= it->laps[i - 1].rank) /* the next lap begins */
            begin = end;
        double at = begin;
        parts_of(lap, parts);
        for (int part = 0; part < ESP_LAP_PARTS; at += parts[part++])
            if (lap->rank == rank && parts[part] > 0)
                pieces[count++] = (struct esp_lap_piece){at, parts[part], part};
        end = fmax(end, at);
    }
    *all = end;
    return count;
}

void esp_laps_sums(const struct esp_iteration *it, int rank, double sums[ESP_LAP_PARTS])
{
    double parts[ESP_LAP_PARTS];
    for (int part = 0; part < ESP_LAP_PARTS; part++)
        sums[part] = 0;
    for (int i = 0; i < it->lap_count; i++) {
        parts_of(&it->laps[i], parts);
        for (int part = 0; part < ESP_LAP_PARTS && it->laps[i].rank == rank; part++)
            sums[part] += parts[part];
    }
}
