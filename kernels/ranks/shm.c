/* shm.c - the transport between ranks of one machine: memory that they share.
 *
 * Rank 0 starts the other ranks: the running program once more, with the argument list
 * "espalier-rank shm RANK RANKS PARENT THREADS", in sessions of their own, so that the
 * terminal's keys do not reach them. They inherit a file without a name as descriptor 3 and map
 * it.
 *
 * Every rank counts the rounds that it has written. A rank that waits for another one reads its
 * counter for 20 us and then sleeps until the counter changes. It wakes up now and then, and
 * sees whether the others still live: rank 0 asks for its children, they ask for their parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "kernels/ranks/transports.h"
#include "kernels/system.h"

enum { INHERITED = 3, LINE = 64 };
static const double SPIN = 20e-6, SLEEP = 0.02, FAREWELL = 2;

struct slot {
    _Alignas(LINE) _Atomic uint32_t written; /* rounds */
    _Atomic uint32_t sleepers;               /* who wait for it in the system */
    _Atomic uint32_t beats;                  /* signs of life while it works */
    char sentence[ESP_RANK_SENTENCE];        /* why it ended, or "" */
};

/* The beginning of the shared memory; the areas follow: (2, ranks, ESP_RANK_AREA). */
struct shared {
    _Atomic uint32_t failed;
    struct slot slot[ESP_MAX_RANKS];
};

struct shm {
    struct esp_ranks base;
    struct shared *shared;
    size_t bytes;
    uint32_t round;
    pid_t parent;               /* of a rank that was started */
    pid_t child[ESP_MAX_RANKS]; /* of rank 0; 0: none */
};

static size_t shared_bytes(int ranks)
{
    return sizeof(struct shared) + (size_t)2 * (size_t)ranks * ESP_RANK_AREA;
}

static struct shm *map(int file, int rank, int count)
{
    struct shm *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->bytes = shared_bytes(count);
    s->base = (struct esp_ranks){.transport = &esp_transport_shm, .rank = rank, .count = count};
    void *memory = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        free(s);
        return NULL;
    }
    s->shared = memory;
    return s;
}

/* ------------------------------------------------------------------ rounds */

/* A rank's area of a round; those of two consecutive rounds differ. */
static char *area(struct shm *s, uint32_t round, int rank)
{
    const size_t number = round % 2 * (size_t)s->base.count + (size_t)rank;
    return (char *)s->shared + sizeof *s->shared + number * ESP_RANK_AREA;
}

static char *own(struct esp_ranks *ranks)
{
    struct shm *s = (struct shm *)ranks;
    return area(s, s->round, ranks->rank);
}

static const char *of(struct esp_ranks *ranks, int rank)
{
    struct shm *s = (struct shm *)ranks;
    return area(s, s->round - 1, rank);
}

/* Writes how a child ended: "(signal 9)". */
static void describe(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "signal %d", WTERMSIG(status));
    else
        snprintf(text, size, "exit code %d", WEXITSTATUS(status));
}

/* Has a child ended? Takes its status. */
static bool has_ended(struct shm *s, int rank)
{
    const struct slot *slot = &s->shared->slot[rank];
    int status = 0;
    char how[40];
    if (s->child[rank] == 0 || waitpid(s->child[rank], &status, WNOHANG) == 0)
        return false;
    s->child[rank] = 0;
    describe(status, how, sizeof how);
    if (*slot->sentence)
        esp_ranks_fail(&s->base, "rank %d of %d: %.300s", rank, s->base.count, slot->sentence);
    else
        esp_ranks_fail(&s->base, "rank %d of %d ended (%s); load the models again", rank,
                       s->base.count, how);
    return true;
}

/* Do all processes of the group live? */
static bool all_live(struct shm *s)
{
    if (s->base.rank > 0)
        return getppid() == s->parent;
    for (int i = 1; i < s->base.count; i++)
        if (has_ended(s, i))
            return false;
    return true;
}

static bool has_written(struct shm *s, const struct slot *slot)
{
    return (int32_t)(atomic_load(&slot->written) - s->round) > 0;
}

static bool spin(struct shm *s, const struct slot *slot)
{
    const double end = esp_clock() + SPIN;
    do
        for (int i = 0; i < 64; i++)
            if (has_written(s, slot))
                return true;
    while (esp_clock() < end);
    return false;
}

/* Sleeps until the rank has written. Rank 0 loses its patience with one that shows no sign of
 * life. */
static int sleep_for(struct shm *s, int rank)
{
    struct slot *slot = &s->shared->slot[rank];
    uint32_t beats = atomic_load(&slot->beats);
    double start = esp_clock();
    while (!has_written(s, slot)) {
        const uint32_t seen = atomic_load(&slot->written);
        if ((int32_t)(seen - s->round) > 0)
            break;
        esp_wait_for_change(&slot->written, seen, SLEEP);
        if (has_written(s, slot))
            break;
        if (s->base.failed || atomic_load(&s->shared->failed) || !all_live(s))
            return ESP_E_DEVICE;
        if (atomic_load(&slot->beats) != beats) {
            beats = atomic_load(&slot->beats);
            start = esp_clock();
        }
        if (s->base.rank == 0 && esp_clock() - start > s->base.patience)
            return esp_ranks_fail(&s->base,
                                  "rank %d of %d has not answered for %.0f s; load the models "
                                  "again",
                                  rank, s->base.count, s->base.patience);
    }
    return ESP_OK;
}

static int wait_for(struct shm *s, int rank)
{
    struct slot *slot = &s->shared->slot[rank];
    if (spin(s, slot))
        return ESP_OK;
    atomic_fetch_add(&slot->sleepers, 1);
    const int status = sleep_for(s, rank);
    atomic_fetch_sub(&slot->sleepers, 1);
    return status;
}

static int meet(struct esp_ranks *ranks, const size_t *bytes)
{
    struct shm *s = (struct shm *)ranks;
    struct slot *own = &s->shared->slot[ranks->rank];
    (void)bytes;
    atomic_fetch_add(&own->written, 1);
    if (atomic_load(&own->sleepers) > 0)
        esp_wake_for_change(&own->written);
    for (int i = 0; i < ranks->count; i++)
        if (i != ranks->rank && wait_for(s, i) < 0)
            return ESP_E_DEVICE;
    s->round++;
    return ESP_OK;
}

static void beat(struct esp_ranks *ranks)
{
    atomic_fetch_add(&((struct shm *)ranks)->shared->slot[ranks->rank].beats, 1);
}

/* ------------------------------------------------------------------ ends */

/* Waits for the end of a child until the clock is at `until`. */
static void await_end(pid_t *child, double until)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    while (*child > 0 && waitpid(*child, NULL, WNOHANG) == 0) {
        if (esp_clock() > until)
            return;
        nanosleep(&moment, NULL);
    }
    *child = 0;
}

static void end_children(struct shm *s, double patience)
{
    for (int i = 1; i < s->base.count; i++)
        await_end(&s->child[i], esp_clock() + patience);
    for (int i = 1; i < s->base.count; i++)
        if (s->child[i] > 0)
            kill(s->child[i], SIGKILL);
    for (int i = 1; i < s->base.count; i++)
        await_end(&s->child[i], esp_clock() + FAREWELL);
}

static void fail(struct esp_ranks *ranks, const char *sentence)
{
    struct shm *s = (struct shm *)ranks;
    struct slot *slot = &s->shared->slot[ranks->rank];
    snprintf(slot->sentence, sizeof slot->sentence, "%s", sentence);
    if (ranks->rank > 0)
        return; /* this process ends, and rank 0 reads the sentence */
    atomic_store(&s->shared->failed, 1);
    end_children(s, 0);
}

static void close_ranks(struct esp_ranks *ranks)
{
    struct shm *s = (struct shm *)ranks;
    end_children(s, ranks->failed ? 0 : FAREWELL);
    munmap(s->shared, s->bytes);
    free(s);
}

/* ------------------------------------------------------------------ beginnings */

static int start(struct shm *s, const char *program, int rank, int threads, int file)
{
    char text[4][16];
    const int number[4] = {rank, s->base.count, (int)getpid(), threads};
    for (int i = 0; i < 4; i++)
        snprintf(text[i], sizeof text[i], "%d", number[i]);
    char *argv[] = {ESP_RANK_PROGRAM, (char *)"shm", text[0], text[1], text[2], text[3], NULL};
    s->child[rank] = esp_start_apart(program, argv, file, INHERITED);
    return s->child[rank] > 0 ? ESP_OK : ESP_E_DEVICE;
}

static int open_ranks(struct esp_ranks **ranks, const struct esp_rank_options *o, char *err,
                      size_t errlen)
{
    char program[4096];
    const int file = esp_unnamed_file("espalier-ranks");
    struct shm *s = NULL;
    if (file >= 0 && ftruncate(file, (off_t)shared_bytes(o->ranks)) == 0)
        s = map(file, 0, o->ranks);
    int status = s && esp_program_path(program, sizeof program) ? ESP_OK : ESP_E_MEMORY;
    for (int i = 1; i < o->ranks && status == ESP_OK; i++)
        status = start(s, program, i, o->threads, file);
    if (status < 0)
        esp_fail(err, errlen, status, "%d ranks could not be started: %s", o->ranks,
                 strerror(errno));
    if (file >= 0)
        close(file);
    if (status < 0 && s) {
        s->base.failed = true;
        close_ranks(&s->base);
    }
    *ranks = status == ESP_OK ? &s->base : NULL;
    return status;
}

/* argv: see the top of this file. */
static int join(struct esp_ranks **ranks, int argc, char **argv)
{
    struct stat about;
    const int rank = argc == 6 ? atoi(argv[2]) : 0, count = argc == 6 ? atoi(argv[3]) : 0;
    if (count < 2 || count > ESP_MAX_RANKS || rank < 1 || rank >= count ||
        fstat(INHERITED, &about) != 0 || about.st_size != (off_t)shared_bytes(count))
        return ESP_E_ARGUMENT;
    struct shm *s = map(INHERITED, rank, count);
    close(INHERITED);
    if (!s)
        return ESP_E_MEMORY;
    s->parent = (pid_t)atoi(argv[4]);
    s->base.threads = atoi(argv[5]);
    *ranks = &s->base;
    return ESP_OK;
}

const struct esp_transport esp_transport_shm = {
    .name = "shm",
    .summary = "processes of this machine, over memory that they share",
    .open = open_ranks,
    .join = join,
    .own = own,
    .of = of,
    .meet = meet,
    .beat = beat,
    .fail = fail,
    .close = close_ranks,
};
