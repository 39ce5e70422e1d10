/* weights_open.cu - opens a model on one or several GPUs, or says why that is impossible.
 * weights.cu loads the tensors.
 */
#include "kernels/cuda/blocks.h"
#include "kernels/cuda/gpus.h"
#include "kernels/model_desc.h"

#include <cstdlib>

enum { WIDEST_HEAD = 256 };

/* Returns whether two matrices are stored in the same form on the device. */
static bool alike(const struct esp_tensor *a, const struct esp_tensor *b)
{
    return a->dtype == b->dtype ||
           (!esp_dtype_quantised(a->dtype) && !esp_dtype_quantised(b->dtype));
}

static bool same_bias(const struct esp_tensor *a, const struct esp_tensor *b)
{
    return (a->data == NULL) == (b->data == NULL);
}

/* Returns a feature of the model that this backend cannot compute, or NULL. In all known files,
 * the experts of a layer have the same type. So layers with experts of different types are not
 * supported. */
static const char *missing_for(const struct esp_model_desc *d)
{
    if (d->experts > ESP_CUDA_EXPERTS || d->experts_used > ESP_CUDA_EXPERTS_USED)
        return "so many experts";
    for (int i = 0; i < d->layers; i++)
        for (int j = 1; d->layer[i].router.data && j < d->experts; j++) {
            const struct esp_expert *a = &d->layer[i].expert[0], *b = &d->layer[i].expert[j];
            if (!alike(&a->gate, &b->gate) || !alike(&a->up, &b->up) ||
                !alike(&a->down, &b->down) || !same_bias(&a->gate_bias, &b->gate_bias) ||
                !same_bias(&a->up_bias, &b->up_bias) ||
                !same_bias(&a->down_bias, &b->down_bias))
                return "experts of different types";
        }
    return NULL;
}

/* Returns a feature that prevents the model from being divided among several GPUs. Returns NULL
 * if there is none. */
static const char *undivided_of(const struct esp_model_desc *d)
{
    if (esp_model_desc_recurrent(d))
        return esp_special_name(ESP_SPECIAL_RECURRENT);
    for (int i = 0; i < d->layers; i++) {
        if (d->layer[i].attention_gate.data)
            return "gates of attention";
        if (d->layer[i].router.data && d->layer[i].up.data)
            return "shared experts";
    }
    return NULL;
}

/* Frees the weights of one GPU. */
static void close_one(struct esp_cuda_weights *w)
{
    esp_cuda_enter(w->base.backend);
    esp_cuda_stream_close(w->stream);
    esp_cuda_fine(cudaFree(w->memory));
    esp_cuda_part_close(w->part);
    free(w->layer);
    free(w);
}

/* Frees the weights of all GPUs; w may be NULL. */
static void close_all(struct esp_cuda_weights *w)
{
    while (w) {
        struct esp_cuda_weights *next = w->next;
        close_one(w);
        w = next;
    }
}

/* Opens the weights of one GPU. The weights own `part`, which may be NULL. If this function
 * fails, it frees `part`. */
static int open_one(struct esp_cuda_weights **weights, struct esp_cuda_backend *cuda,
                    const struct esp_model_desc *desc, struct esp_cuda_part *part,
                    esp_progress *progress, void *user, char *err, size_t errlen)
{
    struct esp_cuda_weights *w = (struct esp_cuda_weights *)calloc(1, sizeof *w);
    if (w)
        w->layer = (struct esp_cuda_layer *)calloc((size_t)desc->layers, sizeof *w->layer);
    if (!w || !w->layer) {
        free(w);
        esp_cuda_part_close(part);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the model's tables");
    }
    esp_cuda_enter(&cuda->base);
    w->base.backend = &cuda->base;
    w->base.desc = desc;
    w->part = part;
    const int status = esp_cuda_weights_load(w, cuda, progress, user);
    if (status < 0) {
        const size_t pinned = esp_cuda_stream_host_bytes(w->stream);
        const bool host = status == ESP_E_MEMORY && w->memory && pinned > 0;
        close_one(w);
        if (host)
            return esp_fail(
                err, errlen, status,
                "%.2f GB of layers do not fit on the GPU, and this computer has too little "
                "free memory to hold them for the GPU; try --backend cpu --memory",
                (double)pinned / 1e9);
        return esp_cuda_tell(esp_cuda_program(cuda), status, err, errlen);
    }
    *weights = w;
    return ESP_OK;
}

/* Reports the progress of all parts together. The parts are loaded one after another. */
struct progress_of_parts {
    esp_progress *progress;
    void *user;
    int rank, ranks;
};

static bool part_progress(void *user, const char *what, size_t done, size_t total)
{
    const struct progress_of_parts *p = (const struct progress_of_parts *)user;
    return p->progress(p->user, what, p->rank * total + done, p->ranks * total);
}

/* Opens a rank's part of a model on each GPU. A model may borrow matrices from another model,
 * the lender, and use its cache. Such a model is divided in the same way as the lender. */
static int open_parts(struct esp_weights **weights, struct esp_cuda_gpus *gpus,
                      const struct esp_model_desc *desc, esp_progress *progress, void *user,
                      char *err, size_t errlen)
{
    struct esp_cuda_weights *lender = (struct esp_cuda_weights *)desc->lender;
    struct esp_cuda_weights *first = NULL, **next = &first;
    struct esp_rank_plan plan;
    struct esp_rank_costs costs;
    int status = esp_cuda_plan_ranks(&gpus->backend[0]->base, desc, &plan, &costs, err, errlen);
    if (lender && lender->part)
        plan = lender->part->plan;
    for (int i = 0; i < gpus->count && status == ESP_OK; i++) {
        struct progress_of_parts of = {progress, user, i, gpus->count};
        struct esp_cuda_part *part = esp_cuda_part_open(&plan, i, desc);
        if (!part) {
            status =
                esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the model's tables");
            break;
        }
        if (lender) {
            part->desc.lender = &lender->base;
            lender = lender->next;
        }
        status = open_one(next, gpus->backend[i], &part->desc, part,
                          progress ? part_progress : NULL, &of, err, errlen);
        if (status == ESP_OK)
            next = &(*next)->next;
    }
    if (status < 0) {
        close_all(first);
        return status;
    }
    *weights = &first->base;
    return ESP_OK;
}

int esp_cuda_weights_open(struct esp_weights **weights, struct esp_backend *backend,
                          const struct esp_model_desc *desc, esp_progress *progress, void *user,
                          char *err, size_t errlen)
{
    *weights = NULL;
    struct esp_cuda_backend *cuda = (struct esp_cuda_backend *)backend;
    int status = esp_model_desc_check(desc, err, errlen);
    if (status < 0)
        return status;
    const char *missing = missing_for(desc);
    if (missing)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "--backend cuda cannot compute a model with %s yet; use --backend cpu",
                        missing);
    if (desc->key_dim > ESP_CUDA_STATE_KEYS)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "the model's states have %d keys, but --backend cuda supports at most "
                        "%d; use --backend cpu",
                        desc->key_dim, ESP_CUDA_STATE_KEYS);
    if (desc->head_dim > WIDEST_HEAD)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "the model's heads have %d values, but --backend cuda supports at most "
                        "%d; use --backend cpu",
                        desc->head_dim, WIDEST_HEAD);
    const size_t row = esp_cuda_pad(esp_model_desc_widest(desc), ESP_CUDA_PAD);
    if ((esp_cuda_has_blocks(desc) ? 2 * ESP_CUDA_TILE * row : 4 * row) > ESP_CUDA_PIECE)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "a model of hidden size %d is wider than --backend cuda can load; use "
                        "--backend cpu",
                        desc->hidden);
    const char *undivided = desc->divided && cuda->gpus ? undivided_of(desc) : NULL;
    if (undivided)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "several GPUs cannot divide a model with %s yet; use one GPU",
                        undivided);
    if (desc->divided && cuda->gpus)
        return open_parts(weights, cuda->gpus, desc, progress, user, err, errlen);
    struct esp_cuda_weights *w = NULL;
    status = open_one(&w, cuda, desc, NULL, progress, user, err, errlen);
    if (status == ESP_OK)
        *weights = &w->base;
    return status;
}

void esp_cuda_weights_close(struct esp_weights *weights)
{
    close_all((struct esp_cuda_weights *)weights);
}

bool esp_cuda_weights_streamed(const struct esp_weights *weights, struct esp_streamed *streamed)
{
    const struct esp_cuda_weights *w = (const struct esp_cuda_weights *)weights;
    if (!w->stream)
        return false;
    esp_cuda_stream_count(w->stream, streamed);
    streamed->resident_bytes = w->base.bytes;
    return true;
}
