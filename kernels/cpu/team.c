/* team.c - threads that go through a pass together.
 *
 * OpenMP starts the threads, once per pass; between the steps of a pass they meet at a barrier.
 * Ours spins for a few microseconds and then yields: OpenMP's own spins for milliseconds, which
 * stalls a pass of 0.2 ms badly when two threads find themselves on one core.
 *
 * A pass is divided evenly beforehand, so a thread that the system has put aside for another
 * program holds up all others, for longer than the whole pass takes on one thread. When thread
 * 0 loses most of two passes in a row to waiting or to being put aside itself (one may be a
 * thread that wakes up after a pause), the next passes are therefore run by it alone, then the
 * team is tried again: after 8 passes, 16, ... 256. Results do not depend on the number of
 * threads, so only the time shows this.
 */
#include "cpu/cpu.h"

#include <omp.h>
#include <sched.h>
#include <time.h>

enum { SPINS = 300, PATIENCE_LEAST = 8, PATIENCE_MOST = 256 };

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

static bool passed(struct esp_cpu_barrier *barrier, int round)
{
    return atomic_load_explicit(&barrier->round, memory_order_acquire) != round;
}

void esp_cpu_meet(struct esp_cpu_team team)
{
    struct esp_cpu_barrier *b = team.barrier;
    if (team.threads == 1)
        return;
    int round = atomic_load_explicit(&b->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&b->waiting, 1, memory_order_acq_rel) == team.threads - 1) {
        atomic_store_explicit(&b->waiting, 0, memory_order_relaxed);
        atomic_store_explicit(&b->round, round + 1, memory_order_release);
        return;
    }
    for (int i = 0; i < SPINS; i++) {
        if (passed(b, round))
            return;
        relax();
    }
    double start = seconds(CLOCK_MONOTONIC);
    while (!passed(b, round))
        sched_yield();
    if (team.thread == 0)
        b->waited += seconds(CLOCK_MONOTONIC) - start;
}

/* Waking a thread that sleeps is not yet a crowd: that takes some 50 microseconds. */
static bool crowded(double elapsed, double lost)
{
    return lost > 3e-4 && lost > 0.5 * elapsed;
}

static void next_passes(struct esp_cpu_crowd *crowd, bool alone)
{
    bool again = crowd->suspected;
    crowd->suspected = alone && !again;
    if (crowd->suspected)
        return;
    int patience = crowd->patience ? 2 * crowd->patience : PATIENCE_LEAST;
    crowd->patience = !alone ? 0 : patience < PATIENCE_MOST ? patience : PATIENCE_MOST;
    crowd->alone = crowd->patience;
}

void esp_cpu_together(struct esp_cpu_backend *cpu, bool small,
                      void (*pass)(void *arg, struct esp_cpu_team team), void *arg)
{
    struct esp_cpu_crowd *crowd = &cpu->crowd;
    if (small || cpu->threads == 1 || crowd->alone > 0) {
        if (!small && crowd->alone > 0)
            crowd->alone--;
        pass(arg, (struct esp_cpu_team){0, 1, NULL});
        return;
    }
    struct esp_cpu_barrier barrier = {0};
    double start = seconds(CLOCK_MONOTONIC), running = seconds(CLOCK_THREAD_CPUTIME_ID);
#pragma omp parallel num_threads(cpu->threads)
    {
        struct esp_cpu_team team = {omp_get_thread_num(), omp_get_num_threads(), &barrier};
        pass(arg, team);
        esp_cpu_meet(team);
    }
    double elapsed = seconds(CLOCK_MONOTONIC) - start;
    double stopped = elapsed - (seconds(CLOCK_THREAD_CPUTIME_ID) - running);
    next_passes(crowd, crowded(elapsed, barrier.waited > stopped ? barrier.waited : stopped));
}
