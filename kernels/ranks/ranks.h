/* ranks.h - processes that compute one model together: what they say to one another.
 *
 * Rank 0 is the program. It opens the group and sends orders; the other ranks serve (serve.h).
 * All ranks call the same functions in the same order. Numbers are only copied from rank to
 * rank, never added on the way, so the result does not depend on how many ranks there are.
 *
 * A group moves bytes through areas: every rank has one. A round is: write into the own area,
 * meet(), read the areas of the others.
 *
 * A failure of any rank ends the whole group: all later calls return ESP_E_DEVICE at once, and
 * failure() has the sentence.
 */
#ifndef ESP_RANKS_H
#define ESP_RANKS_H

#include <stdint.h>

#include "kernels/ranks/rank_options.h"
#include "kernels/status.h"

#define ESP_RANK_PROGRAM (char *)"espalier-rank" /* argv[0] of a process that serves */

/* With everything that a rank writes it says how long it has computed since the last exchange,
 * and how long that one took; rank 0 also says which network is played. */
struct esp_rank_said {
    double computed, met, delay, delay_rate;
};

enum {
    ESP_RANK_AREA = 2 << 20,                                           /* bytes of an area */
    ESP_RANK_ROOM = ESP_RANK_AREA - (int)sizeof(struct esp_rank_said), /* for numbers in it */
    ESP_RANK_SENTENCE = 400                                            /* bytes of a failure */
};

struct esp_ranks;

/* What a transport does. Each is the first member of the transport's own struct. */
struct esp_transport {
    const char *name, *summary;
    /* Rank 0: starts the other ranks, each with so many threads. */
    int (*open)(struct esp_ranks **ranks, const struct esp_rank_options *options, char *err,
                size_t errlen);
    /* Another rank: joins the group that started this process with these arguments. NULL: ranks
     * are processes of another program. */
    int (*join)(struct esp_ranks **ranks, int argc, char **argv);
    /* Where this rank writes before the next meeting, and what a rank wrote before the last. */
    char *(*own)(struct esp_ranks *ranks);
    const char *(*of)(struct esp_ranks *ranks, int rank);
    /* Waits until every rank has written. bytes: (ranks) what each of them wrote; to_first: only
     * rank 0 will read. Both are the same everywhere. */
    int (*meet)(struct esp_ranks *ranks, const size_t *bytes, bool to_first);
    /* Says that this rank works, though it does not meet the others. */
    void (*beat)(struct esp_ranks *ranks);
    /* Ends the group with a sentence. */
    void (*fail)(struct esp_ranks *ranks, const char *sentence);
    /* Frees it. Rank 0: waits until the other ranks have ended, and ends those that do not. */
    void (*close)(struct esp_ranks *ranks);
};

/* All transports, NULL-terminated. */
extern const struct esp_transport *const esp_transports[];

struct esp_ranks {
    const struct esp_transport *transport;
    int rank, count, threads;
    bool failed;
    bool lost; /* a process has ended or hangs; others in its place could go on */
    char failure[ESP_RANK_SENTENCE];
    double patience; /* seconds after which a rank that does not answer counts as hung */
    esp_rank_patience *patient; /* who is asked then; NULL: it is ended */
    void *patient_user;
    double delay, delay_rate; /* of a network that is played: seconds, bytes per second or 0 */
    struct esp_rank_times times;
    double came, left, met; /* the last exchange: its begin, its end, the seconds it took */
    /* Rank 0, in a pass: */
    bool passing;
    int exchanged;                  /* how often */
    int together;                   /* exchanges that are one lap */
    double computed[ESP_MAX_RANKS]; /* before the last exchange */
    struct esp_rank_lap laps[ESP_RANK_LAPS];
};

/* Opens a group as rank 0. ESP_E_ARGUMENT for a transport that does not exist. */
int esp_ranks_open(struct esp_ranks **ranks, const struct esp_rank_options *options, char *err,
                   size_t errlen);
/* Rank 0 lets all play a slow network: every exchange takes so much longer. text: "500us",
 * "10ms,1Gb/s"; NULL or "": none. ESP_E_ARGUMENT: neither. */
int esp_ranks_set_delay(struct esp_ranks *ranks, const char *text);
/* NULL is allowed. */
void esp_ranks_close(struct esp_ranks *ranks);

/* Marks the group as failed and returns ESP_E_DEVICE. */
int esp_ranks_fail(struct esp_ranks *ranks, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Rows of which every rank has computed some columns. */
struct esp_rank_gather {
    char *rows;           /* (count, stride) bytes */
    size_t stride, unit;  /* unit: bytes of a column */
    const int32_t *which; /* (count) rows of `rows`; NULL: 0, 1, .. */
    int count;
    const int *begin; /* (ranks + 1) rank r has the columns begin[r]..begin[r + 1] - 1 */
    bool to_first;    /* only rank 0 wants them */
    bool compact;     /* this rank's `rows` have only its own columns */
};

/* Afterwards every rank (or rank 0) has all columns. */
int esp_ranks_gather(struct esp_ranks *ranks, const struct esp_rank_gather *gather);
/* Is the part of a rank small enough for an area? */
bool esp_rank_gather_fits(const struct esp_rank_gather *gather, int ranks);

/* Copies bytes of rank 0 to all others. */
int esp_ranks_broadcast(struct esp_ranks *ranks, void *data, size_t bytes);
/* Copies bytes of one rank to another. All ranks call it; only these two use `data`. */
int esp_ranks_pass_on(struct esp_ranks *ranks, int from, int to, void *data, size_t bytes);

/* Rank 0: between these calls, times of all ranks are noted in ranks->times.laps. */
void esp_ranks_pass_begins(struct esp_ranks *ranks);
void esp_ranks_pass_ends(struct esp_ranks *ranks);

/* Measures how long a small exchange takes and how fast a large one is, and notes it in
 * ranks->times. All ranks call it. */
int esp_ranks_measure(struct esp_ranks *ranks);

#endif
