/* backend.c - opens the CPU backend and defines its table of operations; see cpu.h. */
#include "kernels/cpu/orders.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/status.h"
#include "kernels/system.h"

enum { MAX_THREADS = 1024 };

int esp_cpu_open(struct esp_backend **backend, const char *isa, int threads, char *err,
                 size_t errlen)
{
    *backend = NULL;
    if (threads < 0 || threads > MAX_THREADS)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%d threads: give a number from 0 (one per performance core) to %d",
                        threads, MAX_THREADS);
    const struct esp_cpu_isa *chosen;
    if (esp_cpu_choose(&chosen, isa, err, errlen) < 0)
        return ESP_E_DEVICE;
    struct esp_cpu_backend *cpu = calloc(1, sizeof *cpu);
    if (threads == 0)
        threads = esp_cores_best();
    if (cpu)
        cpu->pool = esp_pool_open(threads < MAX_THREADS ? threads : MAX_THREADS,
                                  esp_cores_best() < esp_cores_all());
    if (!cpu || !cpu->pool) {
        free(cpu);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to open the CPU backend");
    }
    cpu->base.ops = &esp_backend_cpu;
    cpu->isa = chosen;
    cpu->worth_a_thread = 3e5;
    cpu->threads = esp_pool_threads(cpu->pool);
    int used = snprintf(cpu->device, sizeof cpu->device, "%s, %d thread%s", chosen->name,
                        cpu->threads, cpu->threads == 1 ? "" : "s");
    if (esp_pool_nodes(cpu->pool) > 1)
        snprintf(cpu->device + used, sizeof cpu->device - (size_t)used, " on %d memory nodes",
                 esp_pool_nodes(cpu->pool));
    esp_cpu_name_ways(cpu);
    *backend = &cpu->base;
    return 0;
}

/* Opens the backend with at most one thread per core. More threads would only compete for the
 * cores. */
static int open_best(struct esp_backend **backend, int threads, char *err, size_t errlen)
{
    const int cores = esp_cores_all();
    const bool too_many = threads > cores && threads <= MAX_THREADS;
    const char *isa = getenv("ESPALIER_ISA");
    return esp_cpu_open(backend, isa && *isa ? isa : NULL, too_many ? cores : threads, err,
                        errlen);
}

static void close_backend(struct esp_backend *backend)
{
    esp_cpu_end_ranks((struct esp_cpu_backend *)backend);
    esp_pool_close(((struct esp_cpu_backend *)backend)->pool);
    free(backend);
}

static const char *device(const struct esp_backend *backend)
{
    return ((const struct esp_cpu_backend *)backend)->device;
}

static const char *failure(const struct esp_backend *backend)
{
    return ((const struct esp_cpu_backend *)backend)->failure;
}

static void set_exact(struct esp_backend *backend, bool exact)
{
    ((struct esp_cpu_backend *)backend)->exact = exact;
}

const struct esp_backend_ops esp_backend_cpu = {
    .gives_states = true,
    .windows = true,
    .name = "cpu",
    .summary = "this computer's processor, all cores",
    .open = open_best,
    .close = close_backend,
    .device = device,
    .failure = failure,
    .set_exact = set_exact,
    .way_key = esp_cpu_way_key,
    .measure_ways = esp_cpu_measure_ways,
    .start_ranks = esp_cpu_start_ranks,
    .ask_about_ranks = esp_cpu_ask_about_ranks,
    .restart_ranks = esp_cpu_restart_ranks,
    .rank_times = esp_cpu_rank_times,
    .set_rank_delay = esp_cpu_set_rank_delay,
    .plan_ranks = esp_cpu_plan_ranks,
    .state_bytes = esp_cpu_state_bytes,
    .checkpoint_bytes = esp_cpu_checkpoint_bytes,
    .fold = esp_cpu_fold,
    .state_save = esp_cpu_state_save,
    .state_load = esp_cpu_state_load,
#define X(result, name, ...) .name = esp_cpu_##name,
#include "kernels/model_ops.def"
#define X(name, ...) .name = esp_cpu_##name,
#include "kernels/row_ops.def"
};
