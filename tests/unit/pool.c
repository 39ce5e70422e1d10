/* Tests the thread pool. Every part of the work must run once, even if helper threads are slow.
 * If the system refuses to create threads, the pool must work with fewer helpers. */
#include "kernels/cpu/pool.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/check.h"

enum { MOST = 200 };

/* ------------------------------------------------------------------ refused threads
 */

static atomic_int allowed = 1 << 20;

typedef int creator(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Replaces the system's function. Makes `allowed` threads, and refuses all further threads. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *arg)
{
    creator *create = (creator *)dlsym(RTLD_NEXT, "pthread_create");
    return atomic_fetch_sub(&allowed, 1) > 0 ? create(thread, attributes, run, arg) : EAGAIN;
}

/* ------------------------------------------------------------------ steps */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_for(double seconds)
{
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)},
              NULL);
}

struct step {
    atomic_int ran[MOST];
    atomic_int on[8]; /* number of parts that are running, for each thread number */
    atomic_int threads, faults, helped;
    double helper_sleeps; /* how many seconds a helper sleeps in its first part */
};

static void part(void *arg, int at, int thread)
{
    struct step *step = arg;
    if (thread < 0 || thread >= atomic_load(&step->threads) ||
        atomic_fetch_add(&step->on[thread], 1) != 0)
        atomic_fetch_add(&step->faults, 1);
    atomic_fetch_add(&step->ran[at], 1);
    if (thread > 0 && atomic_fetch_add(&step->helped, 1) == 0 && step->helper_sleeps > 0)
        wait_for(step->helper_sleeps);
    atomic_fetch_sub(&step->on[thread], 1);
}

static void run_step(struct esp_pool *pool, struct step *step, int parts)
{
    step->threads = pool ? esp_pool_threads(pool) : 1;
    esp_pool_run(pool, parts, part, step);
    for (int i = 0; i < MOST; i++)
        CHECK(step->ran[i] == (i < parts), "part %d of %d ran %d times", i, parts,
              step->ran[i]);
    CHECK(step->faults == 0);
}

TEST(every_part_runs_once)
{
    for (int kind = 0; kind < 10; kind++) {
        const int threads = 1 + kind / 2;
        struct esp_pool *pool = esp_pool_open(threads, kind % 2);
        CHECK(pool && esp_pool_threads(pool) == threads);
        for (int i = 0; i < (check_quick() ? 200 : 5000); i++) {
            struct step step = {0};
            run_step(pool, &step, i % 2 ? i % 7 : i % MOST);
            if (i % 1000 == 500)
                wait_for(5e-3); /* long enough for helpers to fall asleep */
        }
        esp_pool_close(pool);
    }
    struct step step = {0};
    run_step(NULL, &step, 10);
    esp_pool_close(NULL);
}

static void *use(void *pool)
{
    for (int i = 0; i < 2000; i++) {
        struct step step = {0};
        run_step(pool, &step, i % 9);
    }
    return NULL;
}

TEST(two_callers_do_not_disturb_each_other)
{
    pthread_t other;
    struct esp_pool *pool = esp_pool_open(3, true);
    CHECK(pthread_create(&other, NULL, use, pool) == 0);
    use(pool);
    pthread_join(other, NULL);
    esp_pool_close(pool);
}

/* While the helpers sleep in their first parts, the caller must run all other parts. */
TEST(a_delayed_helper_delays_only_one_part)
{
    struct esp_pool *pool = esp_pool_open(2, false);
    bool helped = false;
    for (double end = now() + 20; !helped && now() < end;) {
        struct step step = {.helper_sleeps = 0.05};
        double start = now();
        run_step(pool, &step, MOST);
        helped = step.helped > 0;
        CHECK(!helped || step.helped < MOST / 2, "the helper ran %d parts", step.helped);
        CHECK(now() - start < 5);
        if (!helped)
            wait_for(1e-3);
    }
    CHECK(helped);
    /* after such a long wait for a helper, the pool runs without helpers for some time */
    struct step step = {0};
    run_step(pool, &step, MOST);
    CHECK(step.helped == 0);
    helped = false;
    for (double end = now() + 20; !helped && now() < end;) {
        struct step again = {0};
        run_step(pool, &again, MOST);
        helped = again.helped > 0;
    }
    CHECK(helped, "the helper was never used again");
    esp_pool_close(pool);
}

struct order {
    int last[2]; /* the last part that each thread has run */
    atomic_int faults, helped;
};

/* Runs a part. The calling thread is slower than the helper. */
static void part_in_order(void *arg, int at, int thread)
{
    struct order *order = arg;
    if (at <= order->last[thread])
        atomic_fetch_add(&order->faults, 1);
    order->last[thread] = at;
    atomic_fetch_add(&order->helped, thread > 0);
    if (thread == 0)
        wait_for(1e-3);
}

/* If cores are equal, each thread gets a fixed share of the parts. In this test, the fast
 * thread would then wait for the slow thread. */
TEST(if_cores_differ_each_thread_takes_the_next_part)
{
    struct esp_pool *pool = esp_pool_open(2, true);
    int helped = 0;
    for (double end = now() + 20; helped < 30 && now() < end;) {
        struct order order = {{-1, -1}, 0, 0};
        esp_pool_run(pool, 40, part_in_order, &order);
        CHECK(order.faults == 0);
        helped = order.helped;
    }
    CHECK(helped >= 30, "the fast thread ran %d of 40 parts", helped);
    esp_pool_close(pool);
}

TEST(parts_are_smaller_if_cores_differ)
{
    for (int uneven = 0; uneven < 2; uneven++) {
        struct esp_pool *pool = esp_pool_open(3, uneven);
        CHECK(esp_pool_parts(pool, 1000, 3) == (uneven ? 24 : 6));
        CHECK(esp_pool_parts(pool, 5, 3) == 5 && esp_pool_parts(pool, 1000, 1) == 1);
        esp_pool_close(pool);
    }
    CHECK(esp_pool_parts(NULL, 1000, 2) == 4);
}

TEST(if_threads_are_refused_the_pool_has_fewer)
{
    for (int most = 0; most < 3; most++) {
        struct step step = {0};
        atomic_store(&allowed, most);
        struct esp_pool *pool = esp_pool_open(4, false);
        atomic_store(&allowed, 1 << 20);
        CHECK(pool && esp_pool_threads(pool) == most + 1, "%d threads of %d",
              esp_pool_threads(pool), most + 1);
        run_step(pool, &step, 50);
        esp_pool_close(pool);
    }
}

/* ------------------------------------------------------------------ NUMA nodes */

struct places {
    int cpu[MOST], thread[MOST];
};

static void note_place(void *arg, int part, int thread)
{
    struct places *places = arg;
    places->cpu[part] = sched_getcpu();
    places->thread[part] = thread;
    wait_for(1e-4);
}

static void write_list(const char *sys, int node, int cpu)
{
    char command[300];
    snprintf(command, sizeof command,
             "mkdir -p '%s/devices/system/node/node%d' && echo %d >'%s/devices/system/node/"
             "node%d/cpulist'",
             sys, node, cpu, sys, node);
    CHECK(system(command) == 0);
}

/* The test needs two CPUs, and makes each of them a NUMA node. Helpers of the second node must
 * run only on its CPU. Every part must run once, and parts are numbered node by node. */
TEST(helpers_stay_on_their_node)
{
    cpu_set_t set;
    char sys[] = "/tmp/espalier-nodes-XXXXXX", command[64];
    int cpu[2], found = 0;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    if (CPU_COUNT(&set) != 2) /* uses only two of the CPUs */
        for (int i = 0, seen = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &set) && ++seen > 2)
                CPU_CLR(i, &set);
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &set))
            cpu[found++] = i;
    if (found < 2 || sched_setaffinity(0, sizeof set, &set) != 0) {
        printf("  NUMA nodes are not tested, because there is only one CPU\n");
        return;
    }
    CHECK(mkdtemp(sys));
    write_list(sys, 0, cpu[0]);
    write_list(sys, 5, cpu[1]);
    setenv("ESPALIER_SYS", sys, 1);
    struct esp_pool *pool = esp_pool_open(4, true);
    unsetenv("ESPALIER_SYS");
    CHECK(esp_pool_nodes(pool) == 2);
    CHECK(esp_pool_node_of(pool, 0, 8) == 0 && esp_pool_node_of(pool, 3, 8) == 0);
    CHECK(esp_pool_node_of(pool, 4, 8) == 5 && esp_pool_node_of(pool, 7, 8) == 5);
    for (int round = 0; round < 20; round++) {
        struct places places;
        struct step step = {0};
        memset(&places, -1, sizeof places);
        esp_pool_run(pool, MOST, note_place, &places);
        for (int i = 0; i < MOST; i++) {
            CHECK(places.thread[i] >= 0);
            CHECK(places.thread[i] == 0 || places.cpu[i] == cpu[places.thread[i] / 2],
                  "thread %d on CPU %d", places.thread[i], places.cpu[i]);
        }
        run_step(pool, &step, MOST);
    }
    esp_pool_close(pool);
    snprintf(command, sizeof command, "rm -r '%s'", sys);
    CHECK(system(command) == 0);
}
