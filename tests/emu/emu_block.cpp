/* emu_block.cpp - the scheduler. It runs blocks one after another, and their threads as fibres.
 *
 * A fibre takes a thread of the block that has not begun, and runs it. If the thread returns,
 * the fibre takes another thread. So a kernel that never waits never switches fibres. If the
 * thread must wait, the fibre switches to a thread that can continue, or else to a fibre that
 * begins a new thread. If no thread can run and some have not returned, this is a deadlock:
 * the emulator reports what a thread waits for, and the program ends.
 *
 * Blocks, warps and lanes run in an order that is drawn from the seed. A warp runs as far as it
 * can before the next warp runs. Because of this order, tests notice a missing barrier. Shared
 * memory is exactly as large as the launch requests, and lies between guards. When a block
 * begins, all bytes of shared memory are 0xff (NaN).
 */
#include "tests/emu/emu_block.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/emu/emu_banks.h"
#include "tests/emu/emu_fibre.h"
#include "tests/emu/emu_poison.h"

enum { warp_lanes = 32, max_threads = 1024, max_warps = max_threads / warp_lanes, guard = 64 };

enum thread_state : unsigned char {
    thread_new,
    thread_runs,
    thread_meets,
    thread_at_barrier,
    thread_done
};

/* An unfinished copy of 16 bytes to shared memory. If `from` is NULL, zeros are written. */
struct background_copy {
    void *to;
    const void *from;
    int group;
};

struct thread {
    uint3 index;
    thread_state state;
    unsigned char lane, warp;
    emu_fibre *fibre;
    thread *next; /* the next thread in the queue of threads that can continue */
    /* The warp function in which the thread waits, and the arguments of the call. */
    emu_finish *finish;
    const char *what, *file;
    int line;
    unsigned mask;
    void *data;
    std::vector<background_copy> copies;
    int groups;  /* number of groups of copies so far */
    bool waited; /* true if the thread has waited for the previous kernel */
};

static struct {
    const emu_launch_shape *launch;
    const emu_body *body;
    emu_place place;
    int threads, order[max_threads];       /* `order`: the order in which threads begin */
    int lanes[warp_lanes];                 /* the order in which lanes continue, reversed */
    uint64_t blocks, block, first, stride; /* the i-th block is (first + stride i) % blocks */
    unsigned char *shared;                 /* lies between two guards */
    const char *function; /* the kernel's name; set when it requests shared memory */

    thread thread_of[max_threads];
    unsigned meeting[max_warps]; /* per warp: the lanes that wait for other lanes */
    int begun, done, at_barrier, barrier_yes;
    emu_count barrier_count;
    thread *barrier_first;

    /* the first and the last thread in the queue of threads that can continue */
    thread *head, *tail;
    std::vector<emu_fibre *> &idle = *new std::vector<emu_fibre *>; /* outlives main */
    emu_fibre *running;
} run;

static thread *now;
const uint3 *emu_thread;
const emu_place *emu_where;

/* ------------------------------------------------------------------ errors */

void emu_say_where(char *text, size_t bytes)
{
    text[0] = '\0';
    if (!now || !run.launch)
        return;
    uint3 block = run.place.block, index = now->index;
    snprintf(text, bytes,
             "kernel %s, block (%u, %u, %u), thread (%u, %u, %u): ", run.launch->name, block.x,
             block.y, block.z, index.x, index.y, index.z);
}

void emu_fail(const char *format, ...)
{
    char where[256], what[512];
    emu_say_where(where, sizeof where);
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    fprintf(stderr, "emulator: %s%s\n", where, what);
    abort();
}

static int number_of(const thread *t)
{
    return (int)(t - run.thread_of);
}

static void say_state(const thread *t, char *text, size_t bytes)
{
    int lane = number_of(t) % warp_lanes;
    if (number_of(t) >= run.threads)
        snprintf(text, bytes, "lane %d does not exist", lane);
    else if (t->state == thread_done)
        snprintf(text, bytes, "lane %d has returned", lane);
    else
        snprintf(text, bytes, "lane %d waits in %s at %s:%d with mask %08x", lane, t->what,
                 t->file, t->line, t->mask);
}

/* Reports that no thread can run although some have not returned. */
[[noreturn]] static void report_deadlock()
{
    for (int i = 0; i < run.threads; i++) {
        thread *t = &run.thread_of[i];
        if (t->state != thread_meets)
            continue;
        for (int lane = 0; lane < warp_lanes; lane++) {
            thread *other = &run.thread_of[i / warp_lanes * warp_lanes + lane];
            if (!(t->mask >> lane & 1) ||
                (number_of(other) < run.threads && other->state == thread_meets &&
                 other->finish == t->finish && other->mask == t->mask &&
                 other->line == t->line))
                continue;
            char state[256];
            say_state(other, state, sizeof state);
            now = t;
            emu_fail("waits forever in %s at %s:%d with mask %08x: %s", t->what, t->file,
                     t->line, t->mask, state);
        }
    }
    for (int i = 0; i < run.threads; i++)
        if (run.thread_of[i].state == thread_done) {
            now = &run.thread_of[i];
            emu_fail("has returned while other threads wait in %s at %s:%d",
                     run.barrier_first->what, run.barrier_first->file, run.barrier_first->line);
        }
    emu_fail("threads wait for each other");
}

/* ------------------------------------------------------------------ order */

static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Draws a random order: the map i -> (first + stride i) % count visits each index once. */
static void draw_order(uint64_t *seed, uint64_t count, uint64_t *first, uint64_t *stride)
{
    *first = 0;
    *stride = 1;
    if (*seed == 0 || count < 2)
        return;
    *first = draw(seed) % count;
    do
        *stride = 1 + draw(seed) % (count - 1);
    while (common_divisor(*stride, count) != 1);
}

static void draw_thread_order(uint64_t *seed)
{
    uint64_t warps = ((uint64_t)run.threads + warp_lanes - 1) / warp_lanes, first, stride;
    int filled = 0;
    draw_order(seed, warp_lanes, &first, &stride);
    for (uint64_t i = 0; i < warp_lanes; i++)
        run.lanes[i] = (int)((first + stride * (warp_lanes - 1 - i)) % warp_lanes);
    draw_order(seed, warps, &first, &stride);
    for (uint64_t i = 0; i < warps; i++) {
        int warp = (int)((first + stride * i) % warps), base = warp * warp_lanes;
        int lanes = run.threads - base < warp_lanes ? run.threads - base : (int)warp_lanes;
        uint64_t first_lane, lane_stride;
        draw_order(seed, (uint64_t)lanes, &first_lane, &lane_stride);
        for (int lane = 0; lane < lanes; lane++)
            run.order[filled++] =
                base + (int)((first_lane + lane_stride * (uint64_t)lane) % (uint64_t)lanes);
    }
}

/* ------------------------------------------------------------------ blocks */

static void begin_block()
{
    uint64_t number = (run.first + run.stride * run.block) % run.blocks;
    dim3 grid = run.launch->grid;
    run.place.block.x = (unsigned)(number % grid.x);
    run.place.block.y = (unsigned)(number / grid.x % grid.y);
    run.place.block.z = (unsigned)(number / grid.x / grid.y);
    memset(run.shared, 0xff, run.launch->shared);
    memset(run.meeting, 0, sizeof run.meeting);
    for (int i = 0; i < run.threads; i++) {
        run.thread_of[i].state = thread_new;
        run.thread_of[i].copies.clear();
        run.thread_of[i].groups = 0;
        run.thread_of[i].waited = false;
    }
    run.begun = run.done = run.at_barrier = 0;
}

static void end_block()
{
    now = nullptr;
    if (!emu_guards_hold(run.shared, run.launch->shared, guard, guard))
        emu_fail("kernel %s, block (%u, %u, %u): a thread wrote outside shared memory "
                 "(%zu bytes)",
                 run.launch->name, run.place.block.x, run.place.block.y, run.place.block.z,
                 run.launch->shared);
    if (emu_banks_counted && run.function)
        emu_banks_end_block(run.function);
    run.block++;
}

static void set_running(thread *t)
{
    now = t;
    emu_thread = t ? &t->index : nullptr;
}

/* Switches to the first thread in the queue of threads that can continue. */
static void resume_next(emu_fibre *from)
{
    thread *t = run.head;
    run.head = t->next;
    if (t->next)
        emu_fibre_prefetch(t->next->fibre);
    t->state = thread_runs;
    set_running(t);
    run.running = t->fibre;
    emu_fibre_switch(from, t->fibre);
}

/* Runs threads and blocks until the launch is over. Every fibre runs this function. */
static void run_threads()
{
    for (;;) {
        emu_fibre *self = run.running;
        if (run.head) {
            run.idle.push_back(self);
            resume_next(self);
        } else if (run.begun < run.threads) {
            thread *t = &run.thread_of[run.order[run.begun++]];
            t->state = thread_runs;
            t->fibre = self;
            set_running(t);
            run.body->run();
            if (run.launch->early && !now->waited)
                emu_fail("was launched to begin early and returns without having waited for "
                         "the previous kernel");
            now->state = thread_done;
            run.done++;
        } else if (run.done < run.threads) {
            report_deadlock();
        } else {
            end_block();
            if (run.block < run.blocks) {
                begin_block();
                continue;
            }
            set_running(nullptr);
            run.idle.push_back(self);
            emu_fibre_switch(self, emu_fibre_host());
        }
    }
}

static void begin_fibre()
{
    if (run.idle.empty()) {
        run.running = emu_fibre_new(run_threads);
    } else {
        run.running = run.idle.back();
        run.idle.pop_back();
    }
}

/* Called when the running thread must wait. Switches to another fibre, and returns when the
 * thread can continue. */
static void give_way()
{
    emu_fibre *self = now->fibre;
    if (run.head) {
        resume_next(self);
        return;
    }
    if (run.begun == run.threads)
        report_deadlock();
    begin_fibre();
    emu_fibre_switch(self, run.running);
}

void emu_run_kernel(const emu_launch_shape &launch, const emu_body &body, uint64_t seed)
{
    dim3 grid = launch.grid, block = launch.block;
    run.launch = &launch;
    run.body = &body;
    run.function = nullptr;
    run.place.blocks = grid;
    run.place.threads = block;
    run.threads = (int)(block.x * block.y * block.z);
    run.blocks = (uint64_t)grid.x * grid.y * grid.z;
    run.block = 0;
    run.head = run.tail = nullptr;
    for (int i = 0; i < run.threads; i++) {
        unsigned u = (unsigned)i;
        run.thread_of[i].lane = (unsigned char)(u % warp_lanes);
        run.thread_of[i].warp = (unsigned char)(u / warp_lanes);
        run.thread_of[i].index =
            uint3{u % block.x, u / block.x % block.y, u / block.x / block.y};
    }
    draw_order(&seed, run.blocks, &run.first, &run.stride);
    draw_thread_order(&seed);
    std::vector<unsigned char> shared(launch.shared + 2 * guard);
    run.shared = shared.data() + guard;
    emu_guard(run.shared, launch.shared, guard, guard);
    emu_where = &run.place;
    begin_block();
    begin_fibre();
    emu_fibre_switch(emu_fibre_host(), run.running);
    emu_where = nullptr;
    run.launch = nullptr;
    emu_unpoison(shared.data(), shared.size());
}

/* ------------------------------------------------------------------ waiting */

void *emu_shared(const char *function)
{
    if (!now)
        emu_fail("shared memory was requested outside a kernel");
    run.function = function;
    return run.shared;
}

void emu_touch(const void *at, size_t bytes, const char *caller)
{
    if (emu_banks_counted && now)
        emu_banks_touch(number_of(now), at, bytes, caller);
}

void emu_wait_previous()
{
    if (!now)
        emu_fail("code outside a kernel tried to wait for the previous kernel");
    now->waited = true;
}

/* ------------------------------------------------------------------ copies in the background
 */

enum { copied_together = 16 };

void emu_copy_begin(void *to, const void *from, bool there)
{
    const uintptr_t at = reinterpret_cast<uintptr_t>(to);
    const uintptr_t shared = reinterpret_cast<uintptr_t>(run.shared);
    if (!now)
        emu_fail("a copy to shared memory was begun outside a kernel");
    if (at < shared || at + copied_together > shared + run.launch->shared)
        emu_fail("a copy goes to an address outside shared memory");
    if (at % copied_together != 0 || reinterpret_cast<uintptr_t>(from) % copied_together != 0)
        emu_fail("a copy to shared memory is not aligned to 16 bytes");
    memset(to, 0xff, copied_together);
    emu_touch(to, copied_together, "cp.async");
    now->copies.push_back({to, there ? from : nullptr, now->groups});
}

void emu_copy_group()
{
    now->groups++;
}

void emu_copy_wait(int left)
{
    std::vector<background_copy> &copies = now->copies;
    size_t later = 0;
    for (const background_copy &copy : copies)
        if (copy.group >= now->groups - left)
            copies[later++] = copy;
        else if (copy.from)
            memcpy(copy.to, copy.from, copied_together);
        else
            memset(copy.to, 0, copied_together);
    copies.erase(copies.begin() + (ptrdiff_t)later, copies.end());
}

int emu_lane()
{
    if (!now)
        emu_fail("a warp function was called outside a kernel");
    return now->lane;
}

void emu_meet(emu_finish *finish, const char *what, unsigned mask, void *data, const char *file,
              int line)
{
    if (!now)
        emu_fail("a warp function was called outside a kernel");
    thread *self = now, *warp = self - self->lane;
    if (!(mask >> self->lane & 1))
        emu_fail("calls %s at %s:%d with mask %08x, which leaves out its own lane", what, file,
                 line, mask);
    self->finish = finish;
    self->what = what;
    self->file = file;
    self->line = line;
    self->mask = mask;
    self->data = data;
    self->state = thread_meets;
    unsigned *meeting = &run.meeting[self->warp];
    *meeting |= 1u << self->lane;
    if ((*meeting & mask) != mask) {
        give_way();
        return;
    }
    void *brought[warp_lanes] = {};
    for (unsigned left = mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const thread *other = &warp[i];
        if (other->finish != finish || other->mask != mask || other->line != line) {
            give_way(); /* a lane of the mask waits in a different function */
            return;
        }
        brought[i] = other->data;
    }
    finish(brought, mask);
    *meeting &= ~mask;
    self->state = thread_runs;
    for (int i = 0; i < warp_lanes; i++) { /* puts the lanes at the head of the queue */
        int other_lane = run.lanes[i];
        thread *other = &warp[other_lane];
        if (!(mask >> other_lane & 1) || other == self)
            continue;
        if (!run.head)
            run.tail = other;
        other->next = run.head;
        run.head = other;
    }
}

emu_count emu_barrier(const char *what, int predicate, const char *file, int line)
{
    if (!now)
        emu_fail("%s was called outside a kernel", what);
    thread *self = now;
    if (run.at_barrier == 0) {
        run.barrier_first = self;
        run.barrier_yes = 0;
    } else if (run.barrier_first->line != line ||
               (run.barrier_first->file != file &&
                strcmp(run.barrier_first->file, file) != 0)) {
        emu_fail("is at the barrier %s at %s:%d, other threads at %s at %s:%d", what, file,
                 line, run.barrier_first->what, run.barrier_first->file,
                 run.barrier_first->line);
    }
    self->what = what;
    self->file = file;
    self->line = line;
    self->mask = 0;
    self->state = thread_at_barrier;
    run.barrier_yes += predicate != 0;
    run.at_barrier++;
    if (run.at_barrier < run.threads) {
        give_way();
        return run.barrier_count;
    }
    run.barrier_count = emu_count{run.threads, run.barrier_yes};
    run.at_barrier = 0;
    self->state = thread_runs;
    for (int i = 0; i < run.threads; i++) {
        thread *other = &run.thread_of[run.order[i]];
        if (other == self)
            continue;
        if (run.head)
            run.tail->next = other;
        else
            run.head = other;
        other->next = nullptr;
        run.tail = other;
    }
    return run.barrier_count;
}
