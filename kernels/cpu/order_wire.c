/* order_wire.c - sends orders and answers between ranks, and exchanges their greetings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "kernels/cpu/order_wire.h"
#include "kernels/version.h"

/* The version of the protocol. It must be increased when orders or their payloads change. */
enum { PROTOCOL = 1 };

_Static_assert(sizeof(struct esp_order) == ESP_ORDER_BYTES, "struct esp_order has no padding");

int esp_order_send(struct esp_ranks *ranks, struct esp_order *order, const void *payload,
                   size_t bytes)
{
    const size_t now = bytes < sizeof order->begin ? bytes : sizeof order->begin;
    order->bytes = bytes;
    if (now > 0)
        memcpy(order->begin, payload, now);
    int status = esp_ranks_broadcast(ranks, order, sizeof *order);
    if (status == ESP_OK && bytes > now)
        status = esp_ranks_broadcast(ranks, (char *)payload + now, bytes - now);
    return status;
}

int esp_order_receive(struct esp_ranks *ranks, struct esp_order *order, char **payload,
                      size_t *room)
{
    int status = esp_ranks_broadcast(ranks, order, sizeof *order);
    if (status < 0)
        return status;
    const size_t now =
        order->bytes < sizeof order->begin ? (size_t)order->bytes : sizeof order->begin;
    if (order->bytes > ESP_ORDER_MOST)
        return esp_ranks_fail(ranks, "an order of %llu bytes is too long",
                              (unsigned long long)order->bytes);
    if (order->bytes > *room || !*payload) {
        free(*payload);
        *room = (size_t)order->bytes + sizeof order->begin;
        *payload = malloc(*room);
        if (!*payload)
            return esp_ranks_fail(ranks, "not enough memory for an order of %llu bytes",
                                  (unsigned long long)order->bytes);
    }
    memcpy(*payload, order->begin, now);
    return order->bytes > now
               ? esp_ranks_broadcast(ranks, *payload + now, (size_t)order->bytes - now)
               : (int)ESP_OK;
}

static int gather_all(struct esp_ranks *ranks, void *of_all, size_t each, bool to_first)
{
    int begin[ESP_MAX_RANKS + 1];
    for (int i = 0; i <= ranks->count; i++)
        begin[i] = i;
    const struct esp_rank_gather gather = {.rows = of_all,
                                           .stride = (size_t)ranks->count * each,
                                           .unit = each,
                                           .count = 1,
                                           .begin = begin,
                                           .to_first = to_first};
    return esp_ranks_gather(ranks, &gather);
}

int esp_answer_gather(struct esp_ranks *ranks, struct esp_answer *answers)
{
    return gather_all(ranks, answers, sizeof *answers, true);
}

/* ------------------------------------------------------------------ greetings */

struct reading {
    const uint64_t *memory;
    int parts;
    _Atomic uint64_t sum; /* keeps the compiler from removing the reads */
};

enum { READ_BYTES = 64 << 20, READ_WORDS = READ_BYTES / 8 };

static void read_part(void *arg, int part, int thread)
{
    struct reading *r = arg;
    uint64_t sum = 0;
    int begin, end;
    (void)thread;
    esp_cpu_share(READ_WORDS, part, r->parts, &begin, &end);
    for (int i = begin; i < end; i++)
        sum += r->memory[i];
    r->sum += sum;
}

/* Measures how fast this rank's threads read memory, in bytes per second. */
static double read_rate(const struct esp_cpu_backend *cpu)
{
    static const double UNKNOWN = 1e9;
    uint64_t *memory = esp_cpu_alloc(READ_WORDS, sizeof *memory);
    double best = 0;
    if (!memory)
        return UNKNOWN;
    esp_cpu_use_huge_pages((char *)memory, READ_BYTES); /* weights use large pages, too */
    memset(memory, 1, READ_BYTES);
    struct reading r = {.memory = memory,
                        .parts = esp_pool_parts(cpu->pool, READ_WORDS, cpu->threads)};
    for (int round = 0; round < 3; round++) {
        const double start = esp_clock();
        esp_pool_run(cpu->pool, r.parts, read_part, &r);
        const double rate = READ_BYTES / (esp_clock() - start + 1e-9);
        best = rate > best ? rate : best;
    }
    esp_cpu_free(memory);
    return best;
}

static struct esp_greeting greet_as(const struct esp_cpu_backend *cpu)
{
    struct esp_greeting g = {
        .version = ESP_VERSION, .build = ESP_BUILD, .read = read_rate(cpu)};
    snprintf(g.protocol, sizeof g.protocol, "%d", PROTOCOL);
    snprintf(g.layout, sizeof g.layout, "%zu+%zu+%zu+%zu", sizeof(struct esp_order),
             sizeof(struct esp_model_desc), sizeof(struct esp_tensor),
             sizeof(struct esp_answer));
    snprintf(g.sums, sizeof g.sums, "%s", cpu->isa->pairs ? "by AMX tiles" : "by vectors");
    return g;
}

static int compare(const struct esp_greeting *a, const struct esp_greeting *b, int rank,
                   char *err, size_t errlen)
{
#define X(member, what, advice)                                                                \
    if (memcmp(a->member, b->member, sizeof a->member) != 0)                                   \
        return esp_fail(err, errlen, ESP_E_MISMATCH,                                           \
                        "rank %d has " what " %.39s and this program %.39s; " advice, rank,    \
                        b->member, a->member);
    ESP_GREETING(X)
#undef X
    return ESP_OK;
}

int esp_cpu_greet(struct esp_cpu_backend *cpu, char *err, size_t errlen)
{
    struct esp_ranks *ranks = cpu->ranks;
    struct esp_greeting all[ESP_MAX_RANKS];
    memset(all, 0, sizeof all);
    all[ranks->rank] = greet_as(cpu);
    int status = gather_all(ranks, all, sizeof *all, false);
    for (int i = 1; i < ranks->count && status == ESP_OK && ranks->rank == 0; i++)
        status = compare(&all[0], &all[i], i, err, errlen);
    if (status == ESP_E_MISMATCH) {
        esp_ranks_fail(ranks, "%s", err);
        return status;
    }
    if (status == ESP_OK)
        status = esp_ranks_measure(ranks);
    for (int i = 0; i < ranks->count; i++)
        cpu->read_rates[i] = all[i].read;
    return status < 0 ? esp_fail(err, errlen, status, "%s", ranks->failure) : status;
}
