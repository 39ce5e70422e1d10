/* ranks.c - implements the exchanges between ranks over any transport; see ranks.h. */
#include "kernels/ranks/ranks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/clock.h"

int esp_ranks_fail(struct esp_ranks *r, const char *format, ...)
{
    va_list args;
    char text[ESP_RANK_SENTENCE];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!r->failed) {
        r->failed = true;
        esp_fail(r->failure, sizeof r->failure, 0, "%s", text);
        r->transport->fail(r, r->failure);
    }
    return ESP_E_DEVICE;
}

/* ------------------------------------------------------------------ a simulated network */

static const double MOST_DELAY = 60;

/* Reads a number with its unit, such as "500us" or "1Gb/s". Returns the text after the unit. */
static const char *read_unit(const char *text, const char *const *units, const double *factors,
                             double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end == text || !(*value >= 0) || !isfinite(*value))
        return NULL;
    for (int i = 0; units[i]; i++)
        if (strncmp(end, units[i], strlen(units[i])) == 0) {
            *value *= factors[i];
            return end + strlen(units[i]);
        }
    return NULL;
}

int esp_ranks_set_delay(struct esp_ranks *r, const char *text)
{
    static const char *const times[] = {"us", "ms", "s", NULL};
    static const char *const rates[] = {"Kb/s", "Mb/s", "Gb/s", NULL};
    static const double seconds[] = {1e-6, 1e-3, 1}, bytes[] = {125, 125e3, 125e6};
    double delay = 0, rate = 0;
    const char *end = text && *text ? read_unit(text, times, seconds, &delay) : "";
    if (end && *end == ',')
        end = read_unit(end + 1, rates, bytes, &rate);
    if (!end || *end || delay > MOST_DELAY)
        return ESP_E_ARGUMENT;
    r->delay = delay;
    r->delay_rate = rate;
    return ESP_OK;
}

/* Waits as long as the simulated network would take. The system's sleep lasts slightly too
 * long, so the last part of the time is spent in a loop. */
static void play_network(const struct esp_ranks *r, double received)
{
    static const double AWAKE = 2e-4;
    const double seconds = r->delay + (r->delay_rate > 0 ? received / r->delay_rate : 0);
    const double end = esp_clock() + seconds;
    if (seconds > AWAKE) {
        const double asleep = seconds - AWAKE;
        const struct timespec t = {.tv_sec = (time_t)asleep,
                                   .tv_nsec = (long)(fmod(asleep, 1) * 1e9)};
        nanosleep(&t, NULL);
    }
    while (esp_clock() < end)
        continue;
}

/* Reads the message of rank 0 that says which network all ranks simulate. */
static void hear_of_network(struct esp_ranks *r, size_t place)
{
    struct esp_rank_said said;
    memcpy(&said, r->transport->of(r, 0) + place, sizeof said);
    r->delay = said.delay >= 0 && said.delay <= MOST_DELAY ? said.delay : 0;
    r->delay_rate = said.delay_rate > 0 ? said.delay_rate : 0;
}

/* ------------------------------------------------------------------ laps */

/* Returns how many laps can be stored. The number is even. */
static int most_laps(const struct esp_ranks *r)
{
    const int fit = ESP_RANK_LAPS / 2 / r->count & ~1;
    return fit < 2 ? 2 : fit < 12 ? fit : 12;
}

static void add_lap(struct esp_rank_lap *to, const struct esp_rank_lap *from)
{
    to->compute += from->compute;
    to->wait += from->wait;
    to->hop += from->hop;
}

/* Returns the lap to which exchange number `which` of a pass belongs. The result points to one
 * entry for every rank. If there are too many laps, neighbouring laps are merged in pairs. */
static struct esp_rank_lap *lap_of(struct esp_ranks *r, int which)
{
    const int most = most_laps(r), n = r->count;
    if (which / r->together == most) {
        for (int i = 0; i < most * n; i++) {
            const struct esp_rank_lap lap = r->laps[i];
            struct esp_rank_lap *to = &r->laps[i / n / 2 * n + i % n];
            if (i / n % 2 == 0)
                *to = lap;
            else
                add_lap(to, &lap);
        }
        r->together *= 2;
        r->times.lap_count = most / 2 * n;
    }
    struct esp_rank_lap *lap = &r->laps[which / r->together * n];
    if (lap == r->laps + r->times.lap_count) {
        for (int i = 0; i < n; i++)
            lap[i] = (struct esp_rank_lap){.rank = i};
        r->times.lap_count += n;
    }
    return lap;
}

/* Stores the times of an exchange. The last rank to reach an exchange does not wait. So the
 * shortest time that any rank spends in the exchange is the time of the transfer. The clocks of
 * different machines are never compared. */
static void note_laps(struct esp_ranks *r, const size_t *bytes, const struct esp_rank_said *own)
{
    struct esp_rank_said said[ESP_MAX_RANKS];
    double hop = INFINITY;
    for (int i = 0; i < r->count; i++) {
        said[i] = *own;
        if (i != r->rank)
            memcpy(&said[i], r->transport->of(r, i) + bytes[i], sizeof *said);
        hop = fmin(hop, said[i].met);
    }
    struct esp_rank_lap *before = r->exchanged > 0 ? lap_of(r, r->exchanged - 1) : NULL;
    for (int i = 0; before && i < r->count; i++) {
        before[i].hop += (float)hop;
        before[i].wait += (float)(said[i].met - hop);
    }
    struct esp_rank_lap *lap = lap_of(r, r->exchanged++);
    for (int i = 0; i < r->count; i++)
        lap[i].compute += (float)(r->computed[i] = said[i].computed);
}

void esp_ranks_pass_begins(struct esp_ranks *r)
{
    r->passing = true;
    r->exchanged = 0;
    r->together = 1;
    r->times.laps = r->laps;
    r->times.lap_count = 0;
    r->left = esp_clock();
}

/* Stores the times of the last exchange of a pass. Ranks report the times of an exchange in the
 * exchange that follows it. No exchange follows the last one, so the waiting times of the other
 * ranks are derived from how long each rank computed before the last exchange. */
void esp_ranks_pass_ends(struct esp_ranks *r)
{
    const double tail = esp_clock() - r->left;
    double slowest = 0;
    r->passing = false;
    if (r->failed)
        return;
    for (int i = 0; i < r->count && r->exchanged > 0; i++)
        slowest = fmax(slowest, r->computed[i]);
    const double hop = fmax(r->met - (slowest - r->computed[0]), 0);
    struct esp_rank_lap *last = r->exchanged > 0 ? lap_of(r, r->exchanged - 1) : NULL;
    for (int i = 0; last && i < r->count; i++) {
        last[i].hop += (float)hop;
        last[i].wait += (float)(i == r->rank ? r->met - hop : slowest - r->computed[i]);
    }
    lap_of(r, r->exchanged)->compute += (float)tail;
}

/* ------------------------------------------------------------------ exchanges */

static int meet(struct esp_ranks *r, const size_t *bytes, bool to_first)
{
    const struct esp_rank_said said = {r->came - r->left, r->met, r->delay, r->delay_rate};
    size_t all[ESP_MAX_RANKS];
    double received = 0;
    for (int i = 0; i < r->count; i++) {
        all[i] = bytes[i] + sizeof said;
        received += i == r->rank ? 0 : (double)bytes[i];
    }
    r->times.exchanges++;
    r->times.bytes += received;
    memcpy(r->transport->own(r) + bytes[r->rank], &said, sizeof said);
    if (!r->failed && r->transport->meet(r, all, to_first) < 0)
        r->failed = true;
    if (!r->failed && r->rank > 0 && !to_first)
        hear_of_network(r, bytes[0]);
    if ((r->delay > 0 || r->delay_rate > 0) && (r->rank == 0 || !to_first))
        play_network(r, received);
    if (r->passing && !r->failed)
        note_laps(r, bytes, &said);
    return r->failed ? ESP_E_DEVICE : ESP_OK;
}

/* Starts timing an exchange, before this rank copies to its own area. leave() stops the timing,
 * after this rank has copied from the areas of the other ranks. */
static void come(struct esp_ranks *r)
{
    r->came = esp_clock();
}

static void leave(struct esp_ranks *r)
{
    r->left = esp_clock();
    r->met = r->left - r->came;
    r->times.seconds += r->met;
}

static size_t part_bytes(const struct esp_rank_gather *g, int rank)
{
    return (size_t)(g->begin[rank + 1] - g->begin[rank]) * g->unit;
}

static char *part_of_row(const struct esp_rank_gather *g, int row, size_t column)
{
    const size_t at = g->which ? (size_t)g->which[row] : (size_t)row;
    return g->rows + at * g->stride + column;
}

/* Copies rows first..first+rows-1 of one rank's part to or from its area. */
static void copy_part(struct esp_ranks *r, const struct esp_rank_gather *g, int rank, int first,
                      int rows)
{
    const size_t bytes = part_bytes(g, rank), begin = (size_t)g->begin[rank] * g->unit;
    const bool mine = rank == r->rank;
    char *to = mine ? r->transport->own(r) : NULL;
    const char *from = mine ? NULL : r->transport->of(r, rank);
    for (int i = 0; i < rows && bytes > 0; i++) {
        char *row = part_of_row(g, first + i, mine && g->compact ? 0 : begin);
        if (mine)
            memcpy(to + (size_t)i * bytes, row, bytes);
        else
            memcpy(row, from + (size_t)i * bytes, bytes);
    }
}

static size_t widest_part(const struct esp_rank_gather *g, int ranks)
{
    size_t most = 1;
    for (int i = 0; i < ranks; i++)
        most = part_bytes(g, i) > most ? part_bytes(g, i) : most;
    return most;
}

int esp_ranks_gather(struct esp_ranks *r, const struct esp_rank_gather *g)
{
    const int most = (int)(ESP_RANK_ROOM / widest_part(g, r->count));
    int status = ESP_OK;
    for (int first = 0, rows; first < g->count && status == ESP_OK; first += rows) {
        size_t bytes[ESP_MAX_RANKS];
        come(r);
        rows = g->count - first < most ? g->count - first : most;
        for (int i = 0; i < r->count; i++)
            bytes[i] = (size_t)rows * part_bytes(g, i);
        copy_part(r, g, r->rank, first, rows);
        status = meet(r, bytes, g->to_first);
        for (int i = 0; i < r->count && status == ESP_OK; i++)
            if (i != r->rank && !(g->to_first && r->rank > 0))
                copy_part(r, g, i, first, rows);
        leave(r);
    }
    return status;
}

/* If the receiver is ALL, copy() copies the bytes to all ranks except the sender. */
enum { ALL = -1 };

static int copy(struct esp_ranks *r, int from, int to, void *data, size_t bytes)
{
    const bool wants = r->rank != from && (to == ALL || to == r->rank);
    int status = ESP_OK;
    for (size_t at = 0, n; at < bytes && status == ESP_OK; at += n) {
        size_t sent[ESP_MAX_RANKS] = {0};
        come(r);
        sent[from] = n = bytes - at < ESP_RANK_ROOM ? bytes - at : ESP_RANK_ROOM;
        if (r->rank == from)
            memcpy(r->transport->own(r), (char *)data + at, n);
        status = meet(r, sent, to == 0);
        if (wants && status == ESP_OK)
            memcpy((char *)data + at, r->transport->of(r, from), n);
        leave(r);
    }
    return status;
}

int esp_ranks_broadcast(struct esp_ranks *r, void *data, size_t bytes)
{
    return copy(r, 0, ALL, data, bytes);
}

int esp_ranks_pass_on(struct esp_ranks *r, int from, int to, void *data, size_t bytes)
{
    return copy(r, from, to, data, bytes);
}

/* ------------------------------------------------------------------ the cost of exchanges */

/* Measures the shortest time of an exchange in which every rank sends `bytes` bytes. */
static int time_exchange(struct esp_ranks *r, int bytes, char *room, double *seconds)
{
    enum { ROUNDS = 32 };
    int begin[ESP_MAX_RANKS + 1], status = ESP_OK;
    *seconds = INFINITY;
    for (int i = 0; i <= r->count; i++)
        begin[i] = i * bytes;
    const struct esp_rank_gather gather = {
        .rows = room, .stride = (size_t)begin[r->count], .unit = 1, .count = 1, .begin = begin};
    for (int i = 0; i < ROUNDS && status == ESP_OK; i++) {
        const double start = esp_clock();
        status = esp_ranks_gather(r, &gather);
        *seconds = fmin(*seconds, esp_clock() - start);
    }
    return status;
}

int esp_ranks_measure(struct esp_ranks *r)
{
    enum { SMALL = 64, LARGE = 256 << 10 };
    char *room = calloc((size_t)r->count, LARGE);
    double small = 0, large = 0;
    if (!room)
        return esp_ranks_fail(r, "not enough memory to measure the exchanges between ranks");
    int status = time_exchange(r, SMALL, room, &small);
    if (status == ESP_OK)
        status = time_exchange(r, LARGE, room, &large);
    free(room);
    r->times = (struct esp_rank_times){.latency = small, .starts = r->times.starts};
    /* On a busy machine the small exchange may take longer than the large one. */
    r->times.rate = (double)(r->count - 1) * LARGE / fmax(large - small, large / 4);
    return status;
}
