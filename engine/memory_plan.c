/* memory_plan.c - adds up the memory that will be allocated; see memory_plan.h.
 *
 * The backend gives the sizes for the same arguments with which engine.c and session.c open
 * weights, caches and rows. So the plan is exact except for the memory that the device keeps
 * for itself.
 */
#include "engine/memory_plan.h"

#include <stdio.h>
#include <unistd.h>

#include "engine/kv_cache.h"
#include "kernels/status.h"

enum { LEAST_CONTEXT = 64 };

static const char NO_LIMIT[] = "--backend cpu has no such limit";

/* Memory for handles, workspaces and graphs. */
static const size_t RESERVE = (size_t)160 << 20;

static size_t model_need(const struct esp_engine *e, const struct esp_model *model, int context,
                         int tree_rows)
{
    if (!model)
        return 0;
    const struct esp_backend_ops *ops = e->backend->ops;
    int tokens = context < model->desc.context ? context : model->desc.context;
    return ops->cache_need(&model->desc, tokens + tree_rows,
                           esp_kv_cache_batch(tokens, tree_rows)) +
           ops->rows_need(tree_rows, e->target->desc.vocabulary);
}

static size_t session_need(const struct esp_engine *e, int context, int nodes)
{
    return model_need(e, e->target, context, nodes + 1) +
           model_need(e, e->draft, context, nodes + 1);
}

/* Writes advice: "a context of 1024 tokens (--context) would fit". */
static void suggest(const struct esp_engine *e, size_t left, char *text, size_t size)
{
    int context = e->context;
    while (context >= LEAST_CONTEXT && session_need(e, context, e->max_nodes) > left)
        context /= 2;
    if (context >= LEAST_CONTEXT)
        snprintf(text, size, "a context of %d tokens (--context) would fit", context);
    else if (session_need(e, LEAST_CONTEXT, LEAST_CONTEXT) <= left)
        snprintf(text, size, "try smaller trees (--max-nodes) and a shorter --context");
    else
        snprintf(text, size, "%s", NO_LIMIT);
}

int esp_memory_plan(const struct esp_engine *e, char *err, size_t errlen)
{
    const struct esp_backend_ops *ops = e->backend->ops;
    size_t left = ops->memory_free ? ops->memory_free(e->backend) : 0;
    if (left == 0)
        return ESP_OK;
    size_t weights = ops->weights_need(&e->target->desc) +
                     (e->draft ? ops->weights_need(&e->draft->desc) : 0) + RESERVE;
    size_t session = session_need(e, e->context, e->max_nodes);
    if (weights + session <= left)
        return ESP_OK;
    char advice[100];
    snprintf(advice, sizeof advice, "%s", NO_LIMIT);
    if (weights < left)
        suggest(e, left - weights, advice, sizeof advice);
    return esp_fail(err, errlen, ESP_E_MEMORY,
                    "the models need %.2f GB and a context of %d tokens with trees of %d nodes "
                    "%.2f GB, but only %.2f GB are free on %s; %s",
                    (double)weights / 1e9, e->context, e->max_nodes, (double)session / 1e9,
                    (double)left / 1e9, ops->device(e->backend), advice);
}

/* ------------------------------------------------------------------ a limit */

/* A small embedding is kept beside the head that equals it. */
static const size_t SMALL_EMBEDDING = (size_t)16 << 20;
/* The program itself, trees, texts, threads and what is shown. */
static const size_t PROGRAM = (size_t)32 << 20;

static size_t draft_need(const struct esp_engine *e)
{
    if (!e->draft)
        return 0;
    const struct esp_tensor *t = &e->draft->desc.embedding;
    const size_t embedding = (size_t)t->rows * esp_dtype_row_bytes(t->dtype, t->columns);
    return e->draft->bytes + (embedding < SMALL_EMBEDDING ? embedding : 0);
}

size_t esp_process_bytes(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*s %zu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

int esp_memory_set_limit(struct esp_engine *e, size_t bytes, char *err, size_t errlen)
{
    const struct esp_backend_ops *ops = e->backend->ops;
    struct esp_memory_limit *limit = &e->target->desc.limit;
    *limit = (struct esp_memory_limit){.bytes = bytes};
    if (bytes == 0)
        return ESP_OK;
    if (!ops->weights_streamed)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "a limit of the memory works with --backend cpu so far");
    const size_t now = esp_process_bytes();
    limit->others = PROGRAM + (now > e->process_bytes ? now - e->process_bytes : 0) +
                    draft_need(e) + session_need(e, e->context, e->max_nodes);
    return ESP_OK;
}
