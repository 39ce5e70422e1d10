/* shm.h - memory that the ranks of one machine share, and how they wait for one another in it.
 *
 * Shared by the transports whose rank 0 meets the others in such memory: shm.c, where they are
 * processes of this machine, and mpi.c, where one process of this machine speaks for ranks of
 * others.
 */
#ifndef ESP_SHM_H
#define ESP_SHM_H

#include <stdatomic.h>
#include <sys/types.h>

#include "kernels/ranks/ranks.h"

struct esp_shm_slot {
    _Alignas(64) _Atomic uint32_t written; /* rounds */
    _Atomic uint32_t sleepers;             /* who wait for it in the system */
    _Atomic uint32_t beats;                /* signs of life while it works */
    char sentence[ESP_RANK_SENTENCE];      /* why it ended, or "" */
};

/* The beginning of the memory; the areas follow: (2, ranks, ESP_RANK_AREA). */
struct esp_shm_memory {
    _Atomic uint32_t failed, left;    /* rank 0 has closed the group */
    uint64_t bytes[2][ESP_MAX_RANKS]; /* what each rank writes in a round, by rank 0 */
    uint32_t to_first[2];
    struct esp_shm_slot slot[ESP_MAX_RANKS];
};

struct esp_shm {
    struct esp_ranks base;
    struct esp_shm_memory *memory;
    size_t bytes;
    uint32_t round;
    /* Not rank 0: this process ends when that one is not its parent any more, or when that path
     * has gone; 0 and NULL: not. */
    pid_t parent;
    const char *path;
    /* Processes that this one has started, by rank, and what they have said, or -1. */
    pid_t child[ESP_MAX_RANKS];
    int file, log;
};

size_t esp_shm_bytes(int ranks);
/* Maps a file of esp_shm_bytes(). NULL: no memory. */
struct esp_shm *esp_shm_map(const struct esp_transport *transport, int file, int rank,
                            int count);
/* Makes the file and maps it, for rank 0. */
struct esp_shm *esp_shm_make(const struct esp_transport *transport, int count);
/* Of a process that started the program, child[0]: has that ended? Leaves it to be awaited. */
bool esp_shm_program_ended(const struct esp_shm *shm);
/* A rank's area of a round; those of two consecutive rounds differ. */
char *esp_shm_area(struct esp_shm *shm, uint32_t round, int rank);
/* A rank has written its part of this round. */
void esp_shm_arrive(struct esp_shm *shm, int rank);
/* Waits until a rank has written its part of this round. */
int esp_shm_wait(struct esp_shm *shm, int rank);

/* Members of the transport's table. */
char *esp_shm_own(struct esp_ranks *ranks);
const char *esp_shm_of(struct esp_ranks *ranks, int rank);
int esp_shm_meet(struct esp_ranks *ranks, const size_t *bytes, bool to_first);
void esp_shm_beat(struct esp_ranks *ranks);
void esp_shm_fail(struct esp_ranks *ranks, const char *sentence);
void esp_shm_close(struct esp_ranks *ranks);

#endif
