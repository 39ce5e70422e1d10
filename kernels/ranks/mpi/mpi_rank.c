/* mpi_rank.c - espalier-rank: a process in a group of ranks that MPI connects; see ../mpi.c.
 *
 * The process with MPI's rank 0 is the bridge. It shares memory with the program. When the
 * program has written a round into that memory, the bridge exchanges the areas with the other
 * ranks, and then marks the areas as written. All other processes work as ranks
 * (kernels/serve.h).
 *
 * Waiting must use little processor time, but MPI's own calls spin. So every exchange is
 * started without blocking and then tested. The tests run for 20 us without a pause, then with
 * short sleeps, which grow longer while the program is idle.
 */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "kernels/cpu/orders.h"
#include "kernels/ranks/shm.h"

enum { BEAT = 7 }; /* MPI tag of the messages that say that a process is alive */
static const double AWAKE = 20e-6, BUSY = 0.05, BETWEEN_BEATS = 0.5;

struct remote {
    struct esp_ranks base;
    char *areas; /* (ranks, ESP_RANK_AREA) */
    double beaten;
};

/* ------------------------------------------------------------------ exchanges */

/* Receives pending messages that say that a process is alive. */
static void take_beats(struct esp_shm *s)
{
    int there = 1;
    while (s && there) {
        MPI_Status from;
        MPI_Iprobe(MPI_ANY_SOURCE, BEAT, MPI_COMM_WORLD, &there, &from);
        if (!there)
            return;
        MPI_Recv(NULL, 0, MPI_BYTE, from.MPI_SOURCE, BEAT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        atomic_fetch_add(&s->memory->slot[from.MPI_SOURCE].beats, 1);
    }
}

/* Returns whether the program is alive. If the program started the ranks, this tests whether
 * its shared memory still exists. If the bridge started the program, this tests whether that
 * child process runs. */
static bool program_lives(const struct esp_shm *s)
{
    return s->path ? access(s->path, F_OK) == 0 : !esp_shm_program_ended(s);
}

/* Waits for an exchange. During the wait, a bridge also receives messages that say that a
 * process is alive, and it stops when the program ends. Ranks other than the bridge pass
 * NULL. */
static int await(MPI_Request *request, struct esp_shm *bridge)
{
    const double start = esp_clock();
    for (int done = 0;;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done)
            return ESP_OK;
        const double waited = esp_clock() - start;
        if (waited < AWAKE)
            continue;
        const struct timespec pause = {.tv_nsec = waited < BUSY ? 50000 : 500000};
        nanosleep(&pause, NULL);
        take_beats(bridge);
        if (bridge && !program_lives(bridge))
            return ESP_E_DEVICE;
    }
}

/* Exchanges areas. The first area begins at `areas`, and each area has ESP_RANK_AREA bytes. */
static int exchange(char *areas, const size_t *bytes, bool to_first, int rank, int count,
                    struct esp_shm *bridge)
{
    int counts[ESP_MAX_RANKS], places[ESP_MAX_RANKS];
    char *own = areas + (size_t)rank * ESP_RANK_AREA;
    MPI_Request request;
    for (int i = 0; i < count; i++) {
        counts[i] = (int)bytes[i];
        places[i] = i * ESP_RANK_AREA;
    }
    if (!to_first)
        MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, areas, counts, places, MPI_BYTE,
                        MPI_COMM_WORLD, &request);
    else
        MPI_Igatherv(rank == 0 ? MPI_IN_PLACE : own, counts[rank], MPI_BYTE, areas, counts,
                     places, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    return await(&request, bridge);
}

/* ------------------------------------------------------------------ the bridge */

static int cross(struct esp_shm *s)
{
    size_t bytes[ESP_MAX_RANKS];
    if (esp_shm_wait(s, 0) < 0)
        return ESP_E_DEVICE;
    for (int i = 0; i < s->base.count; i++) {
        bytes[i] = (size_t)s->memory->bytes[s->round % 2][i];
        if (bytes[i] > ESP_RANK_AREA)
            return ESP_E_ARGUMENT;
    }
    const int status = exchange(esp_shm_area(s, s->round, 0), bytes,
                                s->memory->to_first[s->round % 2], 0, s->base.count, s);
    for (int i = 1; i < s->base.count && status == ESP_OK; i++)
        esp_shm_arrive(s, i);
    s->round++;
    return status;
}

/* Runs until the program has closed the group and its last order has been sent, or until the
 * program is gone. Returns a negative status if the program has not sent its last order,
 * because then the other ranks still wait for an order. */
static int be_bridge(struct esp_shm *s)
{
    int status = ESP_OK;
    while (status == ESP_OK)
        status = cross(s);
    return atomic_load(&s->memory->left) && !atomic_load(&s->memory->failed) ? (int)ESP_OK
                                                                             : status;
}

/* Runs the bridge for a program that has started the ranks. */
static int serve_program(const char *path, int count)
{
    struct stat about;
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || fstat(file, &about) != 0 || about.st_size != (off_t)esp_shm_bytes(count)) {
        fprintf(stderr,
                "espalier: %s is not memory shared with %d ranks; the first machine of "
                "--hosts must be this machine\n",
                path, count);
        return ESP_E_FILE;
    }
    struct esp_shm *s = esp_shm_map(NULL, file, 1, count);
    close(file);
    if (!s)
        return ESP_E_MEMORY;
    s->path = path;
    return be_bridge(s);
}

/* Starts the program with this process's input and output, and runs the bridge for it. *code
 * becomes the program's exit status. */
static int start_program(char **argv, int count, int *code)
{
    char path[64], text[16];
    extern char **environ;
    int ended = 0;
    struct esp_shm *s = esp_shm_make(NULL, count);
    if (!s)
        return ESP_E_MEMORY;
    s->base.rank = 1; /* rank 0 is the program */
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), s->file);
    snprintf(text, sizeof text, "%d", count);
    setenv(ESP_RANKS_GIVEN, path, 1);
    setenv(ESP_RANKS_COUNT, text, 1);
    const int failed = posix_spawnp(&s->child[0], argv[0], NULL, NULL, argv, environ);
    if (failed) {
        fprintf(stderr, "espalier: %s could not be started: %s\n", argv[0], strerror(failed));
        return ESP_E_FILE;
    }
    const int status = be_bridge(s);
    while (waitpid(s->child[0], &ended, 0) < 0 && errno == EINTR)
        continue;
    *code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 1;
    return status;
}

/* ------------------------------------------------------------------ the other ranks */

static char *own(struct esp_ranks *ranks)
{
    return ((struct remote *)ranks)->areas + (size_t)ranks->rank * ESP_RANK_AREA;
}

static const char *of(struct esp_ranks *ranks, int rank)
{
    return ((struct remote *)ranks)->areas + (size_t)rank * ESP_RANK_AREA;
}

static int meet(struct esp_ranks *ranks, const size_t *bytes, bool to_first)
{
    return exchange(((struct remote *)ranks)->areas, bytes, to_first, ranks->rank, ranks->count,
                    NULL);
}

static void beat(struct esp_ranks *ranks)
{
    struct remote *r = (struct remote *)ranks;
    if (esp_clock() - r->beaten < BETWEEN_BEATS)
        return;
    r->beaten = esp_clock();
    MPI_Send(NULL, 0, MPI_BYTE, 0, BEAT, MPI_COMM_WORLD);
}

static void fail(struct esp_ranks *ranks, const char *sentence)
{
    char host[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Get_processor_name(host, &length);
    fprintf(stderr, "espalier: rank %d of %d on %s: %s\n", ranks->rank, ranks->count, host,
            sentence);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void close_ranks(struct esp_ranks *ranks)
{
    free(((struct remote *)ranks)->areas);
    free(ranks);
}

static const struct esp_transport over_mpi = {.name = "mpi",
                                              .summary = "between machines",
                                              .own = own,
                                              .of = of,
                                              .meet = meet,
                                              .beat = beat,
                                              .fail = fail,
                                              .close = close_ranks};

static int be_rank(int rank, int count, int threads)
{
    struct remote *r = calloc(1, sizeof *r);
    if (r)
        r->areas = malloc((size_t)count * ESP_RANK_AREA);
    if (!r || !r->areas) {
        fprintf(stderr, "espalier: rank %d of %d: not enough memory\n", rank, count);
        return ESP_E_MEMORY;
    }
    r->base = (struct esp_ranks){
        .transport = &over_mpi, .rank = rank, .count = count, .threads = threads};
    const int status = esp_ranks_serve(&r->base);
    esp_ranks_close(&r->base);
    return status;
}

int main(int argc, char **argv)
{
    int rank, count, code = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    const bool serves = argc == 5 && strcmp(argv[1], "--serve") == 0;
    const bool runs = argc > 1 && argv[1][0] != '-';
    if ((!serves && !runs) || (serves && count != atoi(argv[3])) || count < 2 ||
        count > ESP_MAX_RANKS) {
        fprintf(stderr, "espalier: use mpirun -n RANKS (2 to %d) %s espalier generate ...\n",
                ESP_MAX_RANKS, argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int threads = serves ? atoi(argv[4]) : 0;
    const int status = rank > 0 ? be_rank(rank, count, threads)
                       : serves ? serve_program(argv[2], count)
                                : start_program(argv + 1, count, &code);
    if (status < 0)
        MPI_Abort(MPI_COMM_WORLD, code > 0 ? code : 1);
    MPI_Finalize();
    return code;
}
