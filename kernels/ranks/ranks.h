/* ranks.h - declares functions for exchanges between processes that compute one model together.
 *
 * Rank 0 is the program. It opens the group and sends orders, which the other ranks carry out
 * (serve.h). All ranks call the same functions in the same order. Numbers are only copied
 * between ranks, never added, so the result does not depend on the number of ranks.
 *
 * Every rank has an area of memory, through which bytes are exchanged. In a round every rank
 * writes into its own area, calls meet(), and reads the areas of the other ranks.
 *
 * If one rank fails, the whole group ends: all later calls return ESP_E_DEVICE immediately, and
 * `failure` has the message.
 */
#ifndef ESP_RANKS_H
#define ESP_RANKS_H

#include <stdint.h>

#include "kernels/ranks/rank_options.h"
#include "kernels/status.h"

/* argv[0] of a process that serves as a rank */
#define ESP_RANK_PROGRAM (char *)"espalier-rank"

/* Every rank adds this to its numbers in an exchange: how long it has computed since the
 * previous exchange, and how long that exchange took. Rank 0 also says which network is
 * simulated. */
struct esp_rank_said {
    double computed, met, delay, delay_rate;
};

/* Sizes in bytes: an area, the part of an area for numbers, and an error message. */
enum {
    ESP_RANK_AREA = 2 << 20,
    ESP_RANK_ROOM = ESP_RANK_AREA - (int)sizeof(struct esp_rank_said),
    ESP_RANK_SENTENCE = 400
};

struct esp_ranks;

/* Lists the functions of a transport. A transport has its own struct for a group, which begins
 * with struct esp_ranks. */
struct esp_transport {
    const char *name, *summary;
    /* In rank 0: starts the other ranks, each with options->threads threads. */
    int (*open)(struct esp_ranks **ranks, const struct esp_rank_options *options, char *err,
                size_t errlen);
    /* In other ranks: joins the group that started this process with these arguments. The
     * member is NULL if ranks run a different program. */
    int (*join)(struct esp_ranks **ranks, int argc, char **argv);
    /* own() returns the memory to which this rank writes before the next meet(). of() returns
     * the bytes that a rank wrote before the last meet(). */
    char *(*own)(struct esp_ranks *ranks);
    const char *(*of)(struct esp_ranks *ranks, int rank);
    /* Waits until every rank has written. bytes: (ranks) how many bytes each rank wrote.
     * to_first: true if only rank 0 will read. All ranks must pass the same values. */
    int (*meet)(struct esp_ranks *ranks, const size_t *bytes, bool to_first);
    /* Tells the other ranks that this rank is alive. A rank calls this while it works for a
     * long time without calling meet(). */
    void (*beat)(struct esp_ranks *ranks);
    /* Ends the group with an error message. */
    void (*fail)(struct esp_ranks *ranks, const char *sentence);
    /* Frees the group. Rank 0 waits for the other ranks to end, and kills ranks that do not
     * end. */
    void (*close)(struct esp_ranks *ranks);
};

/* All transports, NULL-terminated. */
extern const struct esp_transport *const esp_transports[];

struct esp_ranks {
    const struct esp_transport *transport;
    int rank, count, threads;
    bool failed;
    bool lost; /* a process has ended or hangs; the ranks can be started again */
    char failure[ESP_RANK_SENTENCE];
    double patience; /* seconds after which a rank that does not answer is considered hung */
    esp_rank_patience *patient; /* decides whether to wait longer; NULL ends the group */
    void *patient_user;
    double delay, delay_rate; /* simulated network: seconds; bytes per second, or 0 */
    struct esp_rank_times times;
    double came, left, met; /* start, end and duration of the last exchange */
    /* These are used in rank 0, during a pass. */
    bool passing;
    int exchanged;                  /* exchanges so far */
    int together;                   /* number of exchanges that a lap describes */
    double computed[ESP_MAX_RANKS]; /* seconds of computing before the last exchange */
    struct esp_rank_lap laps[ESP_RANK_LAPS];
};

/* Opens a group as rank 0. Returns ESP_E_ARGUMENT if the transport does not exist. */
int esp_ranks_open(struct esp_ranks **ranks, const struct esp_rank_options *options, char *err,
                   size_t errlen);
/* Must be called in rank 0. Makes all ranks simulate a slow network. text: "500us" or
 * "10ms,1Gb/s"; NULL or "" means none. Returns ESP_E_ARGUMENT if the text has neither form. */
int esp_ranks_set_delay(struct esp_ranks *ranks, const char *text);
/* NULL is allowed. */
void esp_ranks_close(struct esp_ranks *ranks);

/* Marks the group as failed and returns ESP_E_DEVICE. */
int esp_ranks_fail(struct esp_ranks *ranks, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Describes rows in which every rank has computed some of the columns. */
struct esp_rank_gather {
    char *rows;           /* (count, stride) bytes */
    size_t stride, unit;  /* unit: bytes of a column */
    const int32_t *which; /* (count) indices into `rows`; NULL means 0, 1, ... */
    int count;
    const int *begin; /* (ranks + 1) rank r has the columns begin[r]..begin[r + 1] - 1 */
    bool to_first;    /* only rank 0 gets the columns of the other ranks */
    bool compact;     /* in this rank, `rows` contains only the rank's own columns */
};

/* Gives every rank (or only rank 0) all columns. */
int esp_ranks_gather(struct esp_ranks *ranks, const struct esp_rank_gather *gather);

/* Copies bytes from rank 0 to all other ranks. */
int esp_ranks_broadcast(struct esp_ranks *ranks, void *data, size_t bytes);
/* Copies bytes from one rank to another. All ranks must call this function, but only ranks
 * `from` and `to` use `data`. */
int esp_ranks_pass_on(struct esp_ranks *ranks, int from, int to, void *data, size_t bytes);

/* In rank 0: between these calls, the times of all ranks are stored in ranks->times.laps. */
void esp_ranks_pass_begins(struct esp_ranks *ranks);
void esp_ranks_pass_ends(struct esp_ranks *ranks);

/* Measures how long a small exchange takes and how fast a large one is, and stores both in
 * ranks->times. All ranks must call it. */
int esp_ranks_measure(struct esp_ranks *ranks);

#endif
