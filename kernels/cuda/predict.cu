/* predict.cu - predicts the time of each kind of kernel in a pass. A measurement that differs
 * from its prediction shows where this model of the device is wrong.
 *
 * The code of a pass is run, but launches are only recorded, and memory is not allocated.
 * model_layers.cu and the launchers decide as usual which kernels to launch, and with how many
 * blocks. So no weights are needed, and a model of any size can be predicted on any device or
 * on the emulator. The functions that launch kernels say what their blocks read (struct
 * esp_cuda_cost). The time of a launch is the sum of three parts:
 *
 *     begin   the gap after the previous kernel. If kernels begin early, the gap is shorter.
 *             Blocks that find room on a multiprocessor then read ahead while the previous
 *             kernel ends and leaves the memory idle.
 *     loop    the longest of the times given by memory bandwidth, by the second-level cache, by
 *             the reads of the busiest multiprocessor, by the bytes in flight (Little's law),
 *             by instructions, and by tensor cores
 *     end     what a block does before and after its loop: waits for memory, and cycles of
 *             shared memory including bank conflicts. This time is added once for each wave of
 *             blocks. It is added only once if a multiprocessor has several blocks at a time,
 *             because their waits overlap. A persistent block waits only once between two
 *             tiles, and the time of the reads during this wait is subtracted.
 *
 * The constants are assumptions that come from NVIDIA's documents and from common
 * microbenchmarks. None was measured with this program.
 */
#include "kernels/cuda/cuda.h"

#include <cstdlib>
#include <cstring>

enum { SHARED_RESERVED = 1024 }; /* shared memory that the device itself uses for each block */
static const double BEGIN = 2.0e-6, BEGIN_EARLY = 0.7e-6; /* seconds */
static const double WAIT = 0.7e-6;        /* latency of idle memory, in seconds */
static const double WAIT_LOADED = 1.0e-6; /* latency while all blocks read, in seconds */
/* CACHE_BYTES: bytes per cycle that the second-level cache delivers, divided by the number of
 * multiprocessors. TAKEN_BYTES: bytes per cycle that one multiprocessor can receive (80 % of
 * 64). */
static const double CACHE_BYTES = 24;
static const double TAKEN_BYTES = 51;
static const double ISSUED = 2.4; /* instructions per cycle: 60 % of four */
/* Multiply-adds of 16-bit floats per cycle: half of what the data sheet says, because the
 * instructions used here take their operands from registers. */
static const double MULTIPLIED = 1024;

struct esp_cuda_prediction {
    struct esp_device_speed speed;
    struct esp_cuda_backend *backend;
    struct esp_cuda_cost cost; /* cost of the next launch */
    double idle;               /* how many seconds the last launch left the memory idle */
    double shared;             /* bytes of shared memory of a multiprocessor */
    double room;               /* bytes of `shared` that the last launch left free */
    double seconds;            /* time of the launches since the last esp_cuda_predicted() */
    struct esp_kernel_time *kernel;
    int count, most;
};

void esp_cuda_costs(struct esp_cuda_backend *backend, const struct esp_cuda_cost *cost)
{
    if (backend->prediction)
        backend->prediction->cost = *cost;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

/* Returns how many seconds the loops of all blocks take. busiest: number of blocks on the
 * busiest multiprocessor; under_way: number of blocks that run at the same time. */
static double loop_of(const struct esp_cuda_prediction *p, double blocks, double busiest,
                      double under_way)
{
    const struct esp_cuda_cost *c = &p->cost;
    const double clock = p->speed.clock, bytes = c->memory + c->cache;
    double seconds = c->memory / p->speed.read_rate;
    seconds = most(seconds, bytes / (CACHE_BYTES * p->backend->multiprocessors * clock));
    seconds = most(seconds, busiest * bytes / blocks / (TAKEN_BYTES * clock));
    seconds = most(seconds, busiest * c->issue / (ISSUED * clock));
    seconds = most(seconds, busiest * c->products / (MULTIPLIED * clock));
    if (c->flight > 0)
        seconds = most(seconds, c->memory / (under_way * c->flight) * WAIT_LOADED);
    return seconds;
}

/* Returns how many blocks of a kernel a multiprocessor can run at the same time. */
static int blocks_each(const struct esp_launch *launch)
{
    int each = 0;
    if (!esp_cuda_fine(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &each, launch->kernel, (int)launch->block.x, launch->shared)) ||
        each < 1)
        return 1;
    return each;
}

/* Subtracts from p->cost what blocks do before the previous launch has ended: their first wait,
 * and the bytes that they read during this wait. */
static void read_ahead(struct esp_cuda_prediction *p, const struct esp_launch *launch,
                       double under_way)
{
    const double each = (double)(size_t)(p->room / (double)(launch->shared + SHARED_RESERVED));
    const double beside = each * p->backend->multiprocessors;
    const double blocks = beside < under_way ? beside : under_way;
    double bytes = blocks * p->cost.flight;
    if (!launch->early || bytes <= 0 || p->idle <= WAIT)
        return;
    bytes = bytes < p->idle * p->speed.read_rate ? bytes : p->idle * p->speed.read_rate;
    bytes = bytes < p->cost.memory ? bytes : p->cost.memory;
    p->cost.memory -= bytes;
    p->cost.waits--;
}

/* Returns how many seconds `waves` waves of blocks take before and after their loops, in
 * total. */
static double end_of(const struct esp_cuda_prediction *p, double waves, double under_way)
{
    const double end = p->cost.end_cycles / p->speed.clock;
    const double first = end + p->cost.waits * WAIT;
    if (p->cost.ahead <= 0)
        return waves * first;
    const double later = end + WAIT - under_way * p->cost.ahead / p->speed.read_rate;
    return first + (waves - 1) * most(0, later);
}

/* Adds the time of a launch to p->seconds. */
static void add_launch(void *user, const struct esp_launch *launch)
{
    struct esp_cuda_prediction *p = (struct esp_cuda_prediction *)user;
    const double all = (double)launch->grid.x * launch->grid.y * launch->grid.z;
    const double blocks = p->cost.blocks > 0 ? p->cost.blocks : all;
    const double here = p->backend->multiprocessors;
    const int each = blocks_each(launch);
    const double busiest = (double)(size_t)((blocks + here - 1) / here);
    const double waves = each > 1 ? 1 : busiest, most_here = busiest < each ? busiest : each;
    /* A persistent block computes several tiles, so there can be fewer blocks than tiles. */
    const double at_once = blocks < all ? blocks : all;
    const double under_way = at_once < here * each ? at_once : here * each;
    read_ahead(p, launch, under_way);
    const double seconds = (launch->early ? BEGIN_EARLY : BEGIN) +
                           loop_of(p, blocks, busiest, under_way) + end_of(p, waves, under_way);
    p->seconds += seconds;
    p->idle = seconds - p->cost.memory / p->speed.read_rate;
    p->room = p->shared - most_here * (double)(launch->shared + SHARED_RESERVED);
    p->cost = {};
    p->cost.waits = ESP_CUDA_WAITS;
}

void esp_cuda_predicted(struct esp_cuda_backend *backend, const char *name, size_t bytes)
{
    struct esp_cuda_prediction *p = backend->prediction;
    int k = 0;
    while (k < p->count && strcmp(p->kernel[k].name, name) != 0)
        k++;
    if (k < p->most) {
        if (k == p->count)
            p->kernel[p->count++] = {name, 0, 0.0, 0.0};
        p->kernel[k].count++;
        p->kernel[k].seconds += p->seconds;
        p->kernel[k].bytes += (double)bytes;
    }
    p->seconds = 0;
}

/* Runs the host code of a pass. The weights and the cache have their shapes, but no memory. */
static int walk(struct esp_cuda_backend *backend, const struct esp_model_desc *desc, int rows,
                int context, struct esp_cuda_prediction *p)
{
    struct esp_cuda_weights w = {};
    struct esp_cuda_cache c = {};
    w.layer = (struct esp_cuda_layer *)calloc((size_t)desc->layers, sizeof *w.layer);
    if (!w.layer)
        return ESP_E_MEMORY;
    w.base.backend = &backend->base;
    w.base.desc = desc;
    esp_cuda_weights_imagine(&w);
    c.base.weights = &w.base;
    esp_cuda_cache_imagine(&c, context + rows, rows);
    const struct esp_launches seen = {add_launch, p};
    backend->prediction = p;
    esp_launches = &seen;
    const int status = esp_cuda_walk(&c, rows, context);
    esp_launches = NULL;
    backend->prediction = NULL;
    free(w.layer);
    return status;
}

int esp_cuda_predict(struct esp_backend *backend, const struct esp_model_desc *desc, int rows,
                     int context, const struct esp_device_speed *speed,
                     struct esp_kernel_time *kernel, int most_kinds)
{
    struct esp_cuda_prediction p = {};
    esp_cuda_enter(backend);
    if (rows < 1 || rows > ESP_CUDA_PREDICTED || context < 0 || context > INT32_MAX - rows ||
        speed->read_rate <= 0 || speed->clock < 0)
        return ESP_E_ARGUMENT;
    p.speed = *speed;
    p.backend = (struct esp_cuda_backend *)backend;
    if (speed->clock == 0) {
        int kilohertz;
        ESP_CUDA(p.backend,
                 cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, p.backend->index));
        p.speed.clock = 1e3 * kilohertz;
    }
    int shared;
    ESP_CUDA(p.backend,
             cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                                    p.backend->index));
    p.shared = shared;
    p.kernel = kernel;
    p.most = most_kinds;
    p.cost.waits = ESP_CUDA_WAITS;
    const int status = walk(p.backend, desc, rows, context, &p);
    return status < 0 ? status : p.count;
}
