/* rows.h - shared by the operations of kernels/row_ops.def, which compute with rows of logits
 * or probabilities on the device.
 *
 * Each operation has a file with a kernel and a function esp_cuda_NAME(). This function checks
 * the arguments in the same way as cpu/rows.c, copies them to memory that kernels can read (on
 * the device, or pinned), and launches the kernel. If the caller needs the results now, the
 * function also waits for them.
 *
 * Results must not depend on how a row is divided among blocks. Comparisons are exact: a value
 * and its index become one integer, a rank (rank.h), and the smallest rank of a set does not
 * depend on the order of comparisons. Sums are added in a fixed order (total.h), or as
 * integers.
 */
#ifndef ESP_CUDA_ROWS_H
#define ESP_CUDA_ROWS_H

#include "kernels/cuda/cuda.h"
#include "kernels/row_checks.h"

enum {
    ESP_PART = 4096,               /* values of a row that one block reads */
    ESP_VOCABULARY_MOST = 1 << 20, /* a rank (rank.h) has only 20 bits for the index */
    ESP_COUNTERS = 1024,
};

/* Device memory that blocks use to exchange numbers. The work memory of the operations follows
 * this struct. `counter` and `mass` are zero between calls. */
struct esp_cuda_scratch {
    unsigned counter[ESP_COUNTERS]; /* for each row of a launch: number of finished blocks */
    unsigned long long mass[2 * ESP_RATIO_CLASSES]; /* see ratio.cu */
    double total[2];                                /* only [0] is used; [1] is padding */
};

static __host__ __device__ inline int esp_parts(int n)
{
    return (n + ESP_PART - 1) / ESP_PART;
}

template <typename T> static inline T *esp_cuda_work(const struct esp_cuda_rows *r)
{
    return reinterpret_cast<T *>(r->scratch + 1);
}

/* Adds a number to a 64-bit sum in shared memory. The sum is stored as two 32-bit halves,
 * because 64-bit atomics are slow in shared memory. */
static __device__ __forceinline__ void esp_add_halves(unsigned *low, unsigned *high,
                                                      uint64_t number)
{
    const unsigned add = (unsigned)number;
    unsigned carry = (unsigned)(number >> 32);
    if (add)
        carry += atomicAdd(low, add) > ~add;
    if (carry)
        atomicAdd(high, carry);
}

/* Returns for how many rows a single launch can find the k largest of n values. Returns 0 if k
 * is too large for the kernel that finds them. */
int esp_cuda_top_k_at_once(int n, int k);
/* Returns how many bytes of work memory top_k needs for a row of n values. No operation needs
 * more. */
size_t esp_cuda_top_k_work(int n);

/* Returns the factor by which softmax.h multiplies logits at this temperature. */
float esp_cuda_softmax_factor(double temperature);

/* Tells the kernels of softmax and top_k which rows to process, and how. */
struct esp_cuda_job {
    float *data; /* rows of `stride` numbers */
    size_t stride;
    const int32_t *which; /* (rows) */
    int rows, n;
    struct esp_cuda_step step;
    int *numeric;
};

/* A kernel gets one of these two structs as an argument and calls it to get its job. With
 * esp_cuda_job_given, the job is in the argument itself. Kernels in a graph use
 * esp_cuda_job_of_pass, which reads the job of a draft step from device memory. */
struct esp_cuda_job_given {
    struct esp_cuda_job job;

    __device__ struct esp_cuda_job operator()() const
    {
        return job;
    }
};

struct esp_cuda_job_of_pass {
    const struct esp_cuda_pass *pass;
    const int32_t *wanted_at;
    int *numeric;

    __device__ struct esp_cuda_job operator()() const
    {
        return {pass->logits, pass->logits_stride,     wanted_at,
                pass->wanted, pass->logits_vocabulary, pass->step,
                numeric};
    }
};

/* Returns a job for rows `which`. In its member `step`, only `scratch` is set. */
static inline struct esp_cuda_job esp_cuda_job_for(struct esp_cuda_rows *r,
                                                   const int32_t *which, int count)
{
    struct esp_cuda_job job = {};
    job.data = r->data;
    job.stride = r->stride;
    job.which = which;
    job.rows = count;
    job.n = r->base.vocabulary;
    job.step.scratch = r->scratch;
    job.numeric = esp_cuda_of(&r->base)->numeric;
    return job;
}

/* ------------------------------------------------------------------ a call */

static inline struct esp_cuda_rows *esp_cuda_rows_of(struct esp_rows *rows)
{
    return reinterpret_cast<struct esp_cuda_rows *>(rows);
}

static inline float *esp_cuda_row(struct esp_rows *rows, int which)
{
    return esp_cuda_rows_of(rows)->data + (size_t)which * esp_cuda_rows_of(rows)->stride;
}

int esp_cuda_transfer_open(struct esp_cuda_backend *b, struct esp_cuda_transfer *t,
                           size_t bytes);
void esp_cuda_transfer_close(struct esp_cuda_transfer *t);

/* Ends a call with wrong arguments and returns its status. Like every failure, this discards
 * all results that have not been delivered yet. */
int esp_cuda_refuse(struct esp_rows *rows);

/* Returns how many bytes `count` arguments or results take. */
template <typename T> static inline size_t esp_cuda_room(size_t count)
{
    return (count * sizeof(T) + 15) / 16 * 16;
}

/* Begins a call: reserves `bytes` bytes for its arguments and results. */
int esp_cuda_begin(struct esp_rows *rows, size_t bytes);
/* Begins a call for rows `which`: reserves memory for `which`, and `bytes` bytes for other
 * data. Copies `which` to memory that kernels can read, and writes the address of the copy to
 * *asked. If `which` is wrong, memory runs out or there are no rows, *asked becomes NULL, and
 * the caller must return the status. */
int esp_cuda_ask(struct esp_rows *rows, const int32_t *which, int count, size_t bytes,
                 const int32_t **asked);
void *esp_cuda_take_pinned(struct esp_rows *rows, size_t bytes);

/* Copies arguments to memory that kernels can read, and writes the copy's address to *to. */
int esp_cuda_put_bytes(struct esp_rows *rows, const void *from, size_t bytes, const void **to);
template <typename T>
static inline int esp_cuda_put(struct esp_rows *rows, const T *from, size_t count, const T **to)
{
    const void *put = NULL;
    const int status = esp_cuda_put_bytes(rows, from, count * sizeof(T), &put);
    *to = static_cast<const T *>(put);
    return status;
}

/* Returns pinned memory to which a kernel writes a result. If `to` is not NULL, the result is
 * copied from this memory to `to` when the stream is idle. */
void *esp_cuda_promise_bytes(struct esp_rows *rows, void *to, size_t bytes);
template <typename T>
static inline T *esp_cuda_promise(struct esp_rows *rows, size_t count, T *to)
{
    return static_cast<T *>(esp_cuda_promise_bytes(rows, to, count * sizeof(T)));
}

/* Ends a call that returns values. With ESP_NOW, waits for the values, and returns
 * ESP_E_NUMERIC if a kernel has found a value that is not a number. */
int esp_cuda_finish(struct esp_rows *rows, int status, enum esp_delivery when);

#endif
