/* gpus.h - lets several GPUs of this machine compute one model together (kernels/ranks).
 *
 * One thread of the program drives all GPUs. It launches each step of a pass on every GPU, then
 * an exchange, then the next step. Each GPU stores whole rows of the matrices and computes
 * their outputs in the same way as a single GPU. ncclAllGather() copies the results of the
 * other GPUs and does not change them. So in exact mode, results are bit-identical for any
 * number of GPUs.
 *
 * The GPU of rank 0 is the GPU that the program opened. It also stores all rows of logits, and
 * all models that are not divided.
 */
#ifndef ESP_CUDA_GPUS_H
#define ESP_CUDA_GPUS_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/nccl_library.h"

struct esp_cuda_gpus {
    int count;
    struct esp_cuda_backend *backend[ESP_MAX_RANKS];
    esp_nccl_comm comm[ESP_MAX_RANKS];
    struct esp_nccl_library call;
    struct esp_rank_options options;
    struct esp_rank_costs costs;
};

/* These functions are members of struct esp_backend_ops. If the backend's own device has number
 * n, rank r uses device n + r. */
int esp_cuda_start_ranks(struct esp_backend *backend, const struct esp_rank_options *options,
                         char *err, size_t errlen);
bool esp_cuda_rank_times(const struct esp_backend *backend, struct esp_rank_times *times);
int esp_cuda_plan_ranks(struct esp_backend *backend, const struct esp_model_desc *desc,
                        struct esp_rank_plan *plan, struct esp_rank_costs *costs, char *err,
                        size_t errlen);

/* Closes the GPUs of all ranks except rank 0. NULL is allowed. */
void esp_cuda_gpus_close(struct esp_cuda_gpus *gpus);

/* These functions open and close the device of a rank other than 0 (plugin.cu). */
int esp_cuda_open_rank(struct esp_cuda_backend *program, int rank,
                       struct esp_cuda_backend **backend, char *err, size_t errlen);
void esp_cuda_close_rank(struct esp_cuda_backend *backend);

/* Copies `bytes` bytes of every rank to all other ranks. at[r] is memory of shape (ranks,
 * bytes) on GPU r, to which GPU r has already written its own bytes. */
int esp_cuda_all_gather(struct esp_cuda_gpus *gpus, char *const *at, size_t bytes);

/* Returns a description of the part of a model that a rank computes, or NULL if memory runs
 * out. `plan` and `desc` must be valid, and `desc` must outlive the part. */
struct esp_cuda_part *esp_cuda_part_open(const struct esp_rank_plan *plan, int rank,
                                         const struct esp_model_desc *desc);
void esp_cuda_part_close(struct esp_cuda_part *part); /* NULL is allowed */

/* Returns the size of c->exchanged. */
size_t esp_cuda_exchange_need(const struct esp_cuda_cache *c);
/* Describes an exchange in a pass of `rows` rows. Each rank has computed some columns of a
 * result, and sends them to the other ranks. */
struct esp_cuda_exchange {
    enum esp_rank_kind kind;
    int rows;
    bool pairs;  /* results of a mixture of experts: one row for each row and expert */
    bool halves; /* x is exchanged together with the first half of the next norm (norm.h) */
    int state;   /* index of the hidden state that this norm outputs */
};
/* Performs the exchange *e. Does nothing if this kind of result is not divided among ranks. For
 * ESP_RANK_HEAD, only rank 0 gets the `rows` rows of logits. */
int esp_cuda_share(struct esp_cuda_cache *c, const struct esp_cuda_exchange *e);

#endif
