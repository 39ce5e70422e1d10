/* shm_memory.c - implements rounds of exchanges in shared memory; see shm.h.
 *
 * Every rank counts the rounds that it has written. To wait for another rank, a rank reads that
 * counter in a loop for 20 us and then sleeps until it changes. It wakes up regularly to check
 * whether the other processes are alive: rank 0 checks its children, and the other ranks check
 * rank 0.
 */
#include "kernels/ranks/shm.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "kernels/system.h"

static const double SPIN = 20e-6, SLEEP = 0.02, FAREWELL = 2;

/* ------------------------------------------------------------------ the memory */

size_t esp_shm_bytes(int ranks)
{
    return sizeof(struct esp_shm_memory) + (size_t)2 * (size_t)ranks * ESP_RANK_AREA;
}

struct esp_shm *esp_shm_map(const struct esp_transport *transport, int file, int rank,
                            int count)
{
    struct esp_shm *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->bytes = esp_shm_bytes(count);
    s->base = (struct esp_ranks){.transport = transport, .rank = rank, .count = count};
    s->file = s->log = -1;
    void *memory = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        free(s);
        return NULL;
    }
    s->memory = memory;
    return s;
}

struct esp_shm *esp_shm_make(const struct esp_transport *transport, int count)
{
    const int file = esp_unnamed_file("espalier-ranks");
    struct esp_shm *s = NULL;
    if (file >= 0 && ftruncate(file, (off_t)esp_shm_bytes(count)) == 0)
        s = esp_shm_map(transport, file, 0, count);
    if (s)
        s->file = file;
    else if (file >= 0)
        close(file);
    return s;
}

char *esp_shm_area(struct esp_shm *s, uint32_t round, int rank)
{
    const size_t number = round % 2 * (size_t)s->base.count + (size_t)rank;
    return (char *)s->memory + sizeof *s->memory + number * ESP_RANK_AREA;
}

char *esp_shm_own(struct esp_ranks *ranks)
{
    struct esp_shm *s = (struct esp_shm *)ranks;
    return esp_shm_area(s, s->round, ranks->rank);
}

const char *esp_shm_of(struct esp_ranks *ranks, int rank)
{
    struct esp_shm *s = (struct esp_shm *)ranks;
    return esp_shm_area(s, s->round - 1, rank);
}

/* --------------------------------------------------------------- which processes are alive */

/* Describes how a process ended, for example "signal 9". */
static void describe(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "signal %d", WTERMSIG(status));
    else
        snprintf(text, size, "exit code %d", WEXITSTATUS(status));
}

/* Searches the output of a launcher and its processes for the line that says why the ranks
 * ended. Prefers a message of a rank, then a message of the launcher, then the first line.
 * Returns whether a rank wrote the line. */
static bool read_log(const struct esp_shm *s, char *line, size_t size)
{
    static const char *const telling[] = {"espalier: ", "noticed that ", "BAD TERMINATION"};
    char text[8192];
    const ssize_t length = s->log >= 0 ? pread(s->log, text, sizeof text - 1, 0) : 0;
    text[length > 0 ? length : 0] = '\0';
    const char *said = text + strspn(text, "-\n ");
    for (int i = 2; i >= 0; i--) {
        const char *at = strstr(text, telling[i]);
        said = at ? at + (i < 2 ? strlen(telling[i]) : 0) : said;
    }
    snprintf(line, size, "%.*s", (int)strcspn(said, "\r\n"), said);
    for (size_t n = strlen(line); n > 0 && strchr(". ", line[n - 1]); n--)
        line[n - 1] = '\0';
    return strstr(text, telling[0]) != NULL;
}

/* Returns whether a child has ended. Reaps it and reports the failure. */
static bool has_ended(struct esp_shm *s, int rank)
{
    const struct esp_shm_slot *slot = &s->memory->slot[rank];
    int status = 0;
    char how[40], line[ESP_RANK_SENTENCE / 2];
    if (s->child[rank] <= 0 || waitpid(s->child[rank], &status, WNOHANG) == 0)
        return false;
    s->child[rank] = 0;
    describe(status, how, sizeof how);
    s->base.lost = !read_log(s, line, sizeof line) && !*slot->sentence;
    if (*slot->sentence)
        esp_ranks_fail(&s->base, "rank %d of %d: %.300s", rank, s->base.count, slot->sentence);
    else if (s->log >= 0)
        esp_ranks_fail(&s->base, "the ranks ended (%s)%s%s", how, *line ? ": " : "", line);
    else
        esp_ranks_fail(&s->base, "rank %d of %d ended (%s)", rank, s->base.count, how);
    return true;
}

bool esp_shm_program_ended(const struct esp_shm *s)
{
    siginfo_t end = {.si_pid = 0};
    if (s->child[0] > 0)
        waitid(P_PID, (id_t)s->child[0], &end, WEXITED | WNOHANG | WNOWAIT);
    return end.si_pid != 0;
}

/* Returns whether all processes that this process depends on are alive. */
static bool all_live(struct esp_shm *s)
{
    const bool alone = s->parent > 0 && getppid() != s->parent;
    if (alone && s->base.rank == 0)
        esp_ranks_fail(&s->base, "mpirun has ended the ranks");
    if (alone || (s->path && access(s->path, F_OK) != 0) || esp_shm_program_ended(s))
        return false;
    for (int i = 1; i < s->base.count && s->base.rank == 0; i++)
        if (has_ended(s, i))
            return false;
    return true;
}

/* ------------------------------------------------------------------ rounds */

static bool has_written(struct esp_shm *s, const struct esp_shm_slot *slot)
{
    return (int32_t)(atomic_load(&slot->written) - s->round) > 0;
}

static bool spin(struct esp_shm *s, const struct esp_shm_slot *slot)
{
    const double end = esp_clock() + SPIN;
    do
        for (int i = 0; i < 64; i++)
            if (has_written(s, slot))
                return true;
    while (esp_clock() < end);
    return false;
}

static bool is_patient(const struct esp_shm *s, int rank, double waited)
{
    const struct esp_ranks *r = &s->base;
    if (r->patience == 0 || waited <= r->patience)
        return true;
    return r->patient && r->patient(r->patient_user, rank, r->count, waited);
}

/* Sleeps until the rank has written. If the rank shows no sign of life for too long, ends the
 * group. The user can decide to wait longer (is_patient()). */
static int sleep_for(struct esp_shm *s, int rank)
{
    struct esp_shm_slot *slot = &s->memory->slot[rank];
    uint32_t beats = atomic_load(&slot->beats);
    double start = esp_clock();
    while (!has_written(s, slot)) {
        const uint32_t seen = atomic_load(&slot->written);
        if ((int32_t)(seen - s->round) <= 0)
            esp_wait_for_change(&slot->written, seen, SLEEP);
        if (has_written(s, slot))
            break;
        if (s->base.failed || atomic_load(&s->memory->failed) ||
            atomic_load(&s->memory->left) || !all_live(s))
            return ESP_E_DEVICE;
        if (atomic_load(&slot->beats) != beats) {
            beats = atomic_load(&slot->beats);
            start = esp_clock();
        }
        if (!is_patient(s, rank, esp_clock() - start)) {
            s->base.lost = true;
            return esp_ranks_fail(&s->base, "rank %d of %d has not answered for %.3g s", rank,
                                  s->base.count, round(10 * (esp_clock() - start)) / 10);
        }
    }
    return ESP_OK;
}

int esp_shm_wait(struct esp_shm *s, int rank)
{
    struct esp_shm_slot *slot = &s->memory->slot[rank];
    if (spin(s, slot))
        return ESP_OK;
    atomic_fetch_add(&slot->sleepers, 1);
    const int status = sleep_for(s, rank);
    atomic_fetch_sub(&slot->sleepers, 1);
    return status;
}

void esp_shm_arrive(struct esp_shm *s, int rank)
{
    struct esp_shm_slot *slot = &s->memory->slot[rank];
    atomic_fetch_add(&slot->written, 1);
    if (atomic_load(&slot->sleepers) > 0)
        esp_wake_for_change(&slot->written);
}

int esp_shm_meet(struct esp_ranks *ranks, const size_t *bytes, bool to_first)
{
    struct esp_shm *s = (struct esp_shm *)ranks;
    for (int i = 0; i < ranks->count && ranks->rank == 0; i++)
        s->memory->bytes[s->round % 2][i] = bytes[i];
    if (ranks->rank == 0)
        s->memory->to_first[s->round % 2] = to_first;
    esp_shm_arrive(s, ranks->rank);
    for (int i = 0; i < ranks->count; i++)
        if (i != ranks->rank && esp_shm_wait(s, i) < 0)
            return ESP_E_DEVICE;
    s->round++;
    return ESP_OK;
}

void esp_shm_beat(struct esp_ranks *ranks)
{
    atomic_fetch_add(&((struct esp_shm *)ranks)->memory->slot[ranks->rank].beats, 1);
}

/* ------------------------------------------------------------------ the end of a group */

/* Waits until a child ends, at most until the clock reaches `until`. */
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

/* Sends a signal to the remaining children and to the processes that they started. */
static void signal_children(const struct esp_shm *s, int number)
{
    for (int i = 1; i < s->base.count; i++)
        if (s->child[i] > 0)
            kill(-s->child[i], number);
}

static void end_children(struct esp_shm *s, double patience)
{
    for (int i = 1; i < s->base.count; i++)
        await_end(&s->child[i], esp_clock() + patience);
    if (s->log >= 0) { /* the launcher ends its processes on other machines */
        signal_children(s, SIGTERM);
        for (int i = 1; i < s->base.count; i++)
            await_end(&s->child[i], esp_clock() + FAREWELL);
    }
    signal_children(s, SIGKILL);
    for (int i = 1; i < s->base.count; i++)
        await_end(&s->child[i], esp_clock() + FAREWELL);
}

void esp_shm_fail(struct esp_ranks *ranks, const char *sentence)
{
    struct esp_shm *s = (struct esp_shm *)ranks;
    struct esp_shm_slot *slot = &s->memory->slot[ranks->rank];
    snprintf(slot->sentence, sizeof slot->sentence, "%s", sentence);
    if (ranks->rank > 0)
        return; /* this process ends; rank 0 reads the message */
    atomic_store(&s->memory->failed, 1);
    end_children(s, 0);
}

void esp_shm_close(struct esp_ranks *ranks)
{
    struct esp_shm *s = (struct esp_shm *)ranks;
    if (ranks->rank == 0)
        atomic_store(&s->memory->left, 1);
    end_children(s, ranks->failed ? 0 : FAREWELL);
    munmap(s->memory, s->bytes);
    if (s->file >= 0)
        close(s->file);
    if (s->log >= 0)
        close(s->log);
    free(s);
}
