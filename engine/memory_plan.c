/* memory_plan.c - adds up the memory that will be allocated; see memory_plan.h.
 *
 * The backend computes sizes from the arguments that engine.c and session.c also use to open
 * weights, caches and rows. The plan is therefore exact, except for the memory that the driver
 * uses.
 */
#include "engine/memory_plan.h"

#include <stdio.h>

#include "engine/kv_cache.h"
#include "kernels/status.h"
#include "kernels/system.h"

enum { LEAST_CONTEXT = 64 };

static const char NO_LIMIT[] = "Try --backend cpu";

/* RESERVE: device memory that is left to the driver for handles, workspaces and code. Only the
 * driver knows their size. GRAPHS: the part of this memory that the captured passes of a model
 * (CUDA graphs) may use even if nothing else is free. A pass that is not captured is slower but
 * gives the same result. */
static const size_t RESERVE = (size_t)160 << 20, GRAPHS = (size_t)48 << 20;

static size_t model_need(const struct esp_engine *e, const struct esp_model *model, int context,
                         int tree_rows)
{
    if (!model)
        return 0;
    const struct esp_backend_ops *ops = e->backend->ops;
    int tokens = context < model->desc.context ? context : model->desc.context;
    return (model->original ? ops->join_need : ops->cache_need)(
               &model->desc, tokens + tree_rows, esp_kv_cache_batch(tokens, tree_rows)) +
           ops->rows_need(tree_rows, e->target->desc.vocabulary);
}

static size_t session_need(const struct esp_engine *e, int context, int nodes)
{
    return model_need(e, e->target, context, nodes + 1) +
           model_need(e, e->draft, context, nodes + 1);
}

/* Writes advice for an error message, such as "Try --context 1024". */
static void suggest(const struct esp_engine *e, size_t left, char *text, size_t size)
{
    int context = e->context;
    while (context >= LEAST_CONTEXT && session_need(e, context, e->max_nodes) > left)
        context /= 2;
    if (context >= LEAST_CONTEXT)
        snprintf(text, size, "Try --context %d", context);
    else if (session_need(e, LEAST_CONTEXT, LEAST_CONTEXT) <= left)
        snprintf(text, size, "Try smaller trees (--max-nodes) and a shorter --context");
    else
        snprintf(text, size, "%s", NO_LIMIT);
}

static void write_size(size_t bytes, char *text, size_t size)
{
    if (bytes < 1000000000)
        snprintf(text, size, "%.1f MB", (double)bytes / 1e6);
    else
        snprintf(text, size, "%.2f GB", (double)bytes / 1e9);
}

/* Returns how many bytes espalier may use on the device, or SIZE_MAX if this is unknown. */
static size_t device_room(const struct esp_engine *e, size_t limit)
{
    const size_t free = e->backend->ops->memory_free(e->backend);
    const size_t left = free > RESERVE ? free - RESERVE : 0;
    if (free == 0)
        return limit ? limit : SIZE_MAX;
    return limit > 0 && limit < left ? limit : left;
}

void esp_memory_fit_context(struct esp_engine *e, size_t limit)
{
    enum { STEP = 64, LEAST_SHARE = 4 };
    const struct esp_backend_ops *ops = e->backend->ops;
    if (!ops->memory_free)
        return;
    e->target->desc.limit = (struct esp_memory_limit){.bytes = 0};
    const size_t room = device_room(e, limit),
                 weights = ops->weights_need(&e->target->desc) +
                           (e->draft ? ops->weights_need(&e->draft->desc) : 0);
    int least = e->context / LEAST_SHARE / STEP, most = e->context / STEP;
    if (weights + session_need(e, e->context, e->max_nodes) <= room || least < 1 ||
        weights + session_need(e, least * STEP, e->max_nodes) > room)
        return;
    while (most - least > 1) { /* `least` fits; `most` may not fit */
        const int middle = (least + most) / 2;
        if (weights + session_need(e, middle * STEP, e->max_nodes) <= room)
            least = middle;
        else
            most = middle;
    }
    e->context = least * STEP;
}

/* Lets captured passes use the part of `room` that the plan leaves free: half of it for each
 * model. */
static void allow_graphs(struct esp_engine *e, size_t room, size_t planned)
{
    const size_t each = GRAPHS + (room - planned) / 2;
    e->target->desc.graph_bytes = each;
    if (e->draft)
        e->draft->desc.graph_bytes = each;
}

int esp_memory_plan(struct esp_engine *e, size_t limit, char *err, size_t errlen)
{
    const struct esp_backend_ops *ops = e->backend->ops;
    e->target->desc.limit = (struct esp_memory_limit){.bytes = 0};
    if (!ops->memory_free)
        return ESP_OK;
    const size_t room = device_room(e, limit);
    const size_t draft = e->draft ? ops->weights_need(&e->draft->desc) : 0;
    const size_t session = session_need(e, e->context, e->max_nodes);
    size_t target = ops->weights_need(&e->target->desc);
    const bool all = target + draft + session <= room;
    if (all) {
        allow_graphs(e, room, target + draft + session);
        return ESP_OK;
    }
    if (ops->weights_streamed) {
        e->target->desc.limit = (struct esp_memory_limit){room, draft + session};
        target = ops->weights_need(&e->target->desc);
    }
    const size_t weights = target + draft;
    if (weights + session <= room) {
        allow_graphs(e, room, weights + session);
        return ESP_OK;
    }
    char advice[100], where[200], models[32], sessions[32], allowed[32], needed[32];
    const bool chosen = limit > 0 && room == limit;
    write_size(weights, models, sizeof models);
    write_size(session, sessions, sizeof sessions);
    write_size(room, allowed, sizeof allowed);
    write_size(weights + session, needed, sizeof needed);
    snprintf(advice, sizeof advice, "%s", NO_LIMIT);
    if (weights < room)
        suggest(e, room - weights, advice, sizeof advice);
    snprintf(where, sizeof where, "%s%s", chosen ? "allowed by --gpu-memory" : "free on ",
             chosen ? "" : ops->device(e->backend));
    return esp_fail(err, errlen, ESP_E_MEMORY,
                    "not enough GPU memory: %s needed, %s %s. (Models %s, with target layers "
                    "offloaded; context of %d tokens and trees of %d nodes %s.) %s",
                    needed, allowed, where, models, e->context, e->max_nodes, sessions, advice);
}

/* ------------------------------------------------------------------ a limit */

/* An embedding that is also the LM head is stored twice if it is smaller than this. */
static const size_t SMALL_EMBEDDING = (size_t)16 << 20;
/* The program itself, trees, texts, threads and the display are assumed to need this much. */
static const size_t PROGRAM = (size_t)32 << 20;

static size_t draft_need(const struct esp_engine *e)
{
    if (!e->draft || e->draft->original)
        return e->draft ? e->draft->bytes : 0;
    const struct esp_tensor *t = &e->draft->desc.embedding;
    const size_t embedding = (size_t)t->rows * esp_dtype_row_bytes(t->dtype, t->columns);
    return e->draft->bytes + (embedding < SMALL_EMBEDDING ? embedding : 0);
}

int esp_memory_set_limit(struct esp_engine *e, size_t bytes, char *err, size_t errlen)
{
    const struct esp_backend_ops *ops = e->backend->ops;
    struct esp_memory_limit *limit = &e->target->desc.limit;
    if (bytes == 0)
        return ESP_OK;
    if (ops->memory_free)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "--memory limits the memory of --backend cpu; for --backend %s, "
                        "use --gpu-memory instead",
                        ops->name);
    limit->bytes = bytes;
    const size_t now = esp_resident_bytes();
    limit->others = PROGRAM + (now > e->process_bytes ? now - e->process_bytes : 0) +
                    draft_need(e) + session_need(e, e->context, e->max_nodes);
    return ESP_OK;
}
