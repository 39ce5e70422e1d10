/* order_wire.h - sends and receives orders, answers and greetings between ranks (order_wire.c).
 *
 * An order has a fixed part and a payload of bytes. Orders refer to weights and caches by number.
 * After an order that can fail, such as loading a model, every rank sends an answer.
 */
#ifndef ESP_CPU_ORDER_WIRE_H
#define ESP_CPU_ORDER_WIRE_H

#include "kernels/cpu/cpu.h"
#include "kernels/ranks/desc_wire.h"

enum esp_order_kind {
    ESP_ORDER_LEAVE,
    ESP_ORDER_WEIGHTS_OPEN, /* payload: struct esp_rank_plan, then a description */
    ESP_ORDER_WEIGHTS_CLOSE,
    ESP_ORDER_CACHE_OPEN,
    ESP_ORDER_CACHE_CLOSE,
    ESP_ORDER_KEEP,       /* payload: (count) int32_t */
    ESP_ORDER_FOLD,       /* first: the prefix; rows: the number of rows that were dropped */
    ESP_ORDER_STATE_SAVE, /* first: slot */
    ESP_ORDER_STATE_LOAD, /* first: slot */
    ESP_ORDER_PASS        /* payload: see pass_order.h */
};

enum { ESP_ORDER_BYTES = 4096, ESP_ORDER_MOST = 1 << 30 };

struct esp_order {
    int32_t kind, id;
    int32_t weights; /* for CACHE_OPEN: the number of the cache's weights */
    int32_t other;   /* for new weights: the number of their lender. For a joined cache: the
                        number of the cache that it joins. 0: none */
    int32_t rows, max_batch, first, exact;
    uint64_t bytes;
    char begin[ESP_ORDER_BYTES - 40]; /* the first bytes of the payload */
};

/* These functions send and receive an order. A received payload is stored in *payload, which
 * grows to *room bytes. The caller frees it. */
int esp_order_send(struct esp_ranks *ranks, struct esp_order *order, const void *payload,
                   size_t bytes);
int esp_order_receive(struct esp_ranks *ranks, struct esp_order *order, char **payload,
                      size_t *room);

/* Holds the answer of a rank to an order. Only rank 0 receives answers, one from each rank. */
struct esp_answer {
    int32_t status;
    uint64_t bytes; /* size of the opened weights or cache */
    char sentence[ESP_RANK_SENTENCE];
};
int esp_answer_gather(struct esp_ranks *ranks, struct esp_answer *answers);

/* The greeting is the first message that every rank sends. Its strings must be the same in all
 * ranks. Its size must never change, because ranks of different versions still have to read it.
 * In X(member, what, advice), `what` and `advice` are parts of the error message if ranks
 * differ. */
#define ESP_GREETING(X)                                                                        \
    X(version, "version", "install one version everywhere")                                    \
    X(protocol, "protocol", "install one version everywhere")                                  \
    X(build, "build", "build all ranks from the same source")                                  \
    X(layout, "layout of structs", "build all ranks for processors of the same kind")          \
    X(sums, "order of sums", "set ESPALIER_ISA=avx512 everywhere")

struct esp_greeting {
#define X(member, what, advice) char member[40];
    ESP_GREETING(X)
#undef X
    double read; /* bytes per second that the rank reads from memory */
    char later[304];
};
_Static_assert(sizeof(struct esp_greeting) == 512, "all versions greet with 512 bytes");

/* Exchanges the greetings of all ranks and measures the cost of exchanges. Fails in rank 0,
 * with a message, if the ranks would not compute bit-identical results. */
int esp_cpu_greet(struct esp_cpu_backend *cpu, char *err, size_t errlen);

#endif
