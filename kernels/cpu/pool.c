/* pool.c - a thread pool: helper threads that share the parts of a step with their caller.
 *
 * A step has a number of parts that can run in any order on any thread. Each thread has a share
 * of the parts. For the same number of parts the share is always the same, so the weights that
 * a thread reads stay in its core's cache from pass to pass. A thread that finishes its share
 * takes parts from the shares of other threads. The caller runs all parts that no helper has
 * begun. So if another program preempts a helper, the step is delayed only if the helper was in
 * the middle of a part. If the caller has to wait long for such a part, it runs all parts
 * itself for a while: the pool rests for four times the length of the wait. This limits the
 * cost of a busy machine.
 *
 * If cores differ in speed, there is one share for all threads: each takes the next part. Parts
 * are small, so that a step does not wait long for the last part of a slow core.
 *
 * On a machine whose memory is divided into nodes (NUMA, several sockets), each helper is bound
 * to the cores of one node; threads with neighbouring numbers are on the same node. The system
 * places memory on the node of the thread that first writes it, so a thread's memory stays near
 * the thread. A thread that has finished its share takes parts of its own node's shares first.
 * The caller has number 0 and is not bound.
 *
 * A working helper yields its core now and then, always between two parts. Otherwise the system
 * would preempt it in the middle of a part.
 *
 * Idle helpers spin for two milliseconds and then sleep. At full speed, the pause between two
 * passes is shorter than that. A step wakes sleepers and does not wait for them.
 *
 * Invariant: the caller overwrites a step only when all its parts are done, so a thread that
 * has taken a part may read the step.
 */
#include "kernels/cpu/pool.h"

#include "kernels/cpu/cores.h"
#include "kernels/system.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { LINE = 64, SPINS = 100, REST_FACTOR = 4, PARTS = 2, PARTS_UNEVEN = 8 };
static const double KEEP_SECONDS = 1e-4;  /* time until an idle helper yields its core */
static const double SPIN_SECONDS = 2e-3;  /* time until an idle helper sleeps */
static const double YIELD_SECONDS = 1e-3; /* time until a working helper yields its core */
static const double LONG_WAIT = 2e-4;     /* after a longer wait for a part, the pool rests */
static const double LONGEST_REST = 0.5;

/* Describes the parts of a step that one thread (or all threads) must run. The high 16 bits of
 * `ticket` are the end of this range, and its low 16 bits are the next part. */
struct share {
    _Alignas(LINE) atomic_uint_least32_t ticket;
    int node; /* memory node of the thread to which the share belongs */
};

struct helper {
    struct esp_pool *pool;
    pthread_t thread;
    int index; /* index of the thread; the caller is thread 0, so the first helper is 1 */
};

struct esp_pool {
    esp_pool_part *run;
    void *arg;
    struct share *share; /* (threads), or only one if `uneven` */
    bool uneven;         /* the cores differ in speed: one share for all threads */
    struct esp_nodes nodes;

    _Alignas(LINE) atomic_int done; /* parts of this step that helpers have finished */

    _Alignas(LINE) atomic_flag busy; /* set while a caller is in esp_pool_run() */
    double resting_until;            /* monotonic time; 0 means not resting */
    atomic_int sleepers;
    atomic_bool quit;
    pthread_mutex_t lock; /* for sleeping and waking */
    pthread_cond_t wake;
    int threads;
    struct helper *helper; /* (threads - 1) */
};

static double now(void)
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

static int end_of(uint32_t ticket)
{
    return (int)(ticket >> 16 & 0xffff);
}

static int next_of(uint32_t ticket)
{
    return (int)(ticket & 0xffff);
}

static bool left_over(uint32_t ticket)
{
    return next_of(ticket) < end_of(ticket);
}

/* Runs the remaining parts of a share, and returns the number of parts that it has run. The
 * parts can belong to a newer step than the step that woke the thread. */
static int run_share(struct esp_pool *pool, struct share *share, int thread)
{
    int count = 0;
    while (left_over(atomic_load_explicit(&share->ticket, memory_order_acquire))) {
        uint32_t taken = atomic_fetch_add_explicit(&share->ticket, 1, memory_order_acq_rel);
        if (!left_over(taken))
            break;
        pool->run(pool->arg, next_of(taken), thread);
        count++;
    }
    return count;
}

/* ------------------------------------------------------------------ helpers */

static int shares(const struct esp_pool *pool)
{
    return pool->uneven ? 1 : pool->threads;
}

/* Returns the share from which a thread takes parts in turn `turn`. It takes parts of its own
 * share first, then of its node's shares, then of other nodes' shares. The first half of the
 * turns visits all shares but returns only the shares of the thread's node. The second half
 * returns only the shares of other nodes. For all other shares, the result is NULL. */
static struct share *share_of(struct esp_pool *pool, int thread, int turn)
{
    const int count = shares(pool), own = thread % count;
    struct share *share = &pool->share[(own + turn) % count];
    return (share->node == pool->share[own].node) == (turn < count) ? share : NULL;
}

/* Runs parts until all are taken, starting with the helper's own share. */
static void run_parts(const struct helper *helper)
{
    struct esp_pool *pool = helper->pool;
    const int turns = pool->nodes.count > 1 ? 2 * shares(pool) : shares(pool);
    for (int i = 0; i < turns; i++) {
        struct share *share = share_of(pool, helper->index, i);
        int count = share ? run_share(pool, share, helper->index) : 0;
        if (count > 0)
            atomic_fetch_add_explicit(&pool->done, count, memory_order_release);
    }
}

/* Returns whether there are parts left in the helper's share. */
static bool has_work(const struct helper *helper)
{
    const struct esp_pool *pool = helper->pool;
    return left_over(atomic_load(&pool->share[pool->uneven ? 0 : helper->index].ticket));
}

static void sleep_until_called(const struct helper *helper)
{
    struct esp_pool *pool = helper->pool;
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1); /* see publish() */
    while (!has_work(helper) && !atomic_load(&pool->quit))
        pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
}

/* Returns when there is work or the pool closes. */
static void wait_for_work(const struct helper *helper)
{
    const double start = now();
    while (!has_work(helper) && !atomic_load(&helper->pool->quit)) {
        const double waited = now() - start;
        if (waited > SPIN_SECONDS)
            sleep_until_called(helper);
        else if (waited > KEEP_SECONDS)
            sched_yield();
        for (int i = 0; i < SPINS && !has_work(helper); i++)
            relax();
    }
}

static void *help(void *arg)
{
    const struct helper *helper = arg;
    struct esp_pool *pool = helper->pool;
    double yielded = now();
    if (pool->nodes.count > 1)
        esp_stay_on_node(&pool->nodes, pool->share[helper->index].node);
    while (!atomic_load(&pool->quit)) {
        wait_for_work(helper);
        run_parts(helper);
        if (now() - yielded > YIELD_SECONDS) {
            sched_yield();
            yielded = now();
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------ open and close */

/* Blocks all signals except faults: helpers do not handle the program's signals. */
static void block_signals(sigset_t *before)
{
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

/* Returns the node of a thread. Nodes get threads in proportion to their cores. */
static int node_of(const struct esp_nodes *nodes, int thread, int threads)
{
    int all = 0, node = 0;
    for (int i = 0; i < nodes->count; i++)
        all += nodes->cores[i];
    const double place = (thread + 0.5) * all / threads;
    for (int cores = nodes->cores[0]; node + 1 < nodes->count && place > cores;)
        cores += nodes->cores[++node];
    return node;
}

static struct esp_pool *reserve(int threads, bool uneven)
{
    struct esp_pool *pool = aligned_alloc(LINE, sizeof *pool);
    if (!pool)
        return NULL;
    *pool = (struct esp_pool){.threads = 1, .uneven = uneven, .busy = ATOMIC_FLAG_INIT};
    pool->share = aligned_alloc(LINE, (size_t)threads * sizeof *pool->share);
    pool->helper = calloc((size_t)threads, sizeof *pool->helper);
    if (!pool->share || !pool->helper) {
        free(pool->share);
        free(pool->helper);
        free(pool);
        return NULL;
    }
    esp_nodes_find(&pool->nodes);
    pool->uneven &= pool->nodes.count == 1;
    for (int i = 0; i < threads; i++) {
        atomic_init(&pool->share[i].ticket, 0);
        pool->share[i].node = node_of(&pool->nodes, i, threads);
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    return pool;
}

struct esp_pool *esp_pool_open(int threads, bool uneven)
{
    sigset_t before;
    struct esp_pool *pool = reserve(threads, uneven);
    if (!pool)
        return NULL;
    block_signals(&before);
    for (int i = 0; i < threads - 1; i++) {
        struct helper *helper = &pool->helper[i];
        *helper = (struct helper){.pool = pool, .index = i + 1};
        if (pthread_create(&helper->thread, NULL, help, helper) != 0)
            break;
        pool->threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pool;
}

static void wake_all(struct esp_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

void esp_pool_close(struct esp_pool *pool)
{
    if (!pool)
        return;
    atomic_store(&pool->quit, true);
    wake_all(pool);
    for (int i = 0; i < pool->threads - 1; i++)
        pthread_join(pool->helper[i].thread, NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->share);
    free(pool->helper);
    free(pool);
}

int esp_pool_threads(const struct esp_pool *pool)
{
    return pool->threads;
}

int esp_pool_nodes(const struct esp_pool *pool)
{
    return pool->nodes.count;
}

int esp_pool_node_of(const struct esp_pool *pool, int unit, int units)
{
    const int thread = (int)((int64_t)unit * pool->threads / units);
    return pool->nodes.number[pool->share[thread].node];
}

int esp_pool_parts(const struct esp_pool *pool, int units, int threads)
{
    const int most = threads > 1 ? threads * (pool && pool->uneven ? PARTS_UNEVEN : PARTS) : 1;
    return units < most ? units : most;
}

/* ------------------------------------------------------------------ a step */

static void run_alone(int parts, esp_pool_part *run, void *arg)
{
    for (int i = 0; i < parts; i++)
        run(arg, i, 0);
}

static bool resting(struct esp_pool *pool)
{
    if (pool->resting_until > 0 && now() >= pool->resting_until)
        pool->resting_until = 0;
    return pool->resting_until > 0;
}

/* Publishes a step and wakes sleepers. A helper counts itself as a sleeper before it reads its
 * share; here, the shares change before the sleepers are counted. So no helper sleeps while it
 * has work. */
static void publish(struct esp_pool *pool, int parts, esp_pool_part *run, void *arg)
{
    pool->run = run;
    pool->arg = arg;
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    for (int i = shares(pool) - 1; i >= 0; i--) {
        uint32_t begin = (uint32_t)(parts * i / shares(pool));
        uint32_t end = (uint32_t)(parts * (i + 1) / shares(pool));
        atomic_store(&pool->share[i].ticket, end << 16 | begin);
    }
    if (atomic_load(&pool->sleepers) > 0)
        wake_all(pool);
}

/* Returns whether helpers have finished `parts` parts. */
static bool done(struct esp_pool *pool, int parts)
{
    return atomic_load_explicit(&pool->done, memory_order_acquire) == parts;
}

/* Waits until helpers have finished `parts` parts. The caller has run `count` parts since
 * `began`. */
static void wait_for_helpers(struct esp_pool *pool, int parts, int count, double began)
{
    for (int i = 0; i < SPINS; i++) {
        if (done(pool, parts))
            return;
        relax();
    }
    const double start = now();
    while (!done(pool, parts))
        sched_yield();
    const double end = now(), waited = end - start, rest = REST_FACTOR * waited;
    if (waited > LONG_WAIT && waited * count > 2 * (start - began))
        pool->resting_until = end + (rest < LONGEST_REST ? rest : LONGEST_REST);
}

static void run_together(struct esp_pool *pool, int parts, esp_pool_part *run, void *arg)
{
    const double began = now();
    publish(pool, parts, run, arg);
    int count = run_share(pool, &pool->share[0], 0);
    for (int i = 1; i < 2 * shares(pool) && !done(pool, parts - count); i++) {
        struct share *share = share_of(pool, 0, i);
        count += share ? run_share(pool, share, 0) : 0;
    }
    wait_for_helpers(pool, parts - count, count, began);
}

void esp_pool_run(struct esp_pool *pool, int parts, esp_pool_part *run, void *arg)
{
    if (!pool || pool->threads == 1 || parts < 2 || atomic_flag_test_and_set(&pool->busy)) {
        run_alone(parts, run, arg);
        return;
    }
    if (resting(pool))
        run_alone(parts, run, arg);
    else
        run_together(pool, parts, run, arg);
    atomic_flag_clear(&pool->busy);
}
