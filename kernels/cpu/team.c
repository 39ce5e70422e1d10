/* team.c - threads that go through a pass together.
 *
 * OpenMP starts the threads, once per pass; between the steps of a pass they meet at a barrier.
 * Ours spins for a few microseconds and then yields: OpenMP's own spins for milliseconds, which
 * stalls a pass of 0.2 ms badly when two threads find themselves on one core.
 *
 * A pass is divided evenly beforehand, so a thread that the system has put aside for another
 * program holds up all others, for longer than the whole pass takes on one thread. When thread
 * 0 spends most of a pass waiting, the next passes are therefore run by it alone, then the team
 * is tried again: after 8 passes, 16, ... 256. Results do not depend on the number of threads,
 * so only the time shows this.
 */
#include "cpu/cpu.h"

#include <omp.h>
#include <sched.h>
#include <time.h>

enum { SPINS = 1000, PATIENCE_LEAST = 8, PATIENCE_MOST = 256 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
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
    double start = seconds();
    while (!passed(b, round))
        sched_yield();
    if (team.thread == 0)
        b->waited += seconds() - start;
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
    double start = seconds();
#pragma omp parallel num_threads(cpu->threads)
    {
        struct esp_cpu_team team = {omp_get_thread_num(), omp_get_num_threads(), &barrier};
        pass(arg, team);
        esp_cpu_meet(team);
    }
    if (barrier.waited > 0.5 * (seconds() - start)) {
        int twice = 2 * crowd->patience;
        crowd->patience = twice < PATIENCE_LEAST  ? PATIENCE_LEAST
                          : twice > PATIENCE_MOST ? PATIENCE_MOST
                                                  : twice;
        crowd->alone = crowd->patience;
    } else {
        crowd->patience = 0;
    }
}
