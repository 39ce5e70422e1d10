/* shm.h - memory that the ranks of one machine share, and functions to wait for changes in it.
 *
 * Two transports use it. In shm.c, all ranks are processes of one machine. In mpi.c, one
 * process of this machine (the bridge) represents the ranks of other machines.
 */
#ifndef ESP_SHM_H
#define ESP_SHM_H

#include <stdatomic.h>
#include <sys/types.h>

#include "kernels/ranks/ranks.h"

struct esp_shm_slot {
    _Alignas(64) _Atomic uint32_t written; /* number of rounds that the rank has written */
    _Atomic uint32_t sleepers;        /* number of ranks that sleep until `written` changes */
    _Atomic uint32_t beats;           /* increases while the rank works, as a sign of life */
    char sentence[ESP_RANK_SENTENCE]; /* why the rank ended, or "" */
};

/* The beginning of the shared memory. The areas of the ranks (2, ranks, ESP_RANK_AREA)
 * follow. */
struct esp_shm_memory {
    _Atomic uint32_t failed, left;    /* left: rank 0 has closed the group */
    uint64_t bytes[2][ESP_MAX_RANKS]; /* size of each rank's part of a round; rank 0 sets it */
    uint32_t to_first[2];
    struct esp_shm_slot slot[ESP_MAX_RANKS];
};

struct esp_shm {
    struct esp_ranks base;
    struct esp_shm_memory *memory;
    size_t bytes;
    uint32_t round;
    /* In ranks other than 0: this process ends when `parent` is no longer its parent, or when
     * `path` no longer exists. If one of them is 0 or NULL, it is not checked. */
    pid_t parent;
    const char *path;
    /* Processes that this process has started, indexed by rank. */
    pid_t child[ESP_MAX_RANKS];
    int file, log;
};

size_t esp_shm_bytes(int ranks);
/* Maps a file of esp_shm_bytes() bytes. Returns NULL if there is not enough memory. */
struct esp_shm *esp_shm_map(const struct esp_transport *transport, int file, int rank,
                            int count);
/* Creates the file and maps it. Only rank 0 calls this function. */
struct esp_shm *esp_shm_make(const struct esp_transport *transport, int count);
/* Returns whether the program that this process started (child[0]) has ended. Does not reap the
 * child. */
bool esp_shm_program_ended(const struct esp_shm *shm);
/* Returns the area of a rank in a round. Two consecutive rounds use different areas. */
char *esp_shm_area(struct esp_shm *shm, uint32_t round, int rank);
/* Marks a rank's part of this round as written. */
void esp_shm_arrive(struct esp_shm *shm, int rank);
/* Waits until a rank has written its part of this round. */
int esp_shm_wait(struct esp_shm *shm, int rank);

/* These are members of struct esp_transport. */
char *esp_shm_own(struct esp_ranks *ranks);
const char *esp_shm_of(struct esp_ranks *ranks, int rank);
int esp_shm_meet(struct esp_ranks *ranks, const size_t *bytes, bool to_first);
void esp_shm_beat(struct esp_ranks *ranks);
void esp_shm_fail(struct esp_ranks *ranks, const char *sentence);
void esp_shm_close(struct esp_ranks *ranks);

#endif
