/* rows.h - rows over the vocabulary on the device: shared by the operations of
 * kernels/row_ops.def.
 *
 * The file of an operation has its kernel and its function esp_cuda_NAME(), which checks the
 * arguments as cpu/rows.c does, puts them where kernels can read them (on the device or in
 * pinned memory), launches the kernel, and waits if values are wanted now.
 *
 * Results must not depend on how a row was divided among blocks. Comparisons are exact: a
 * value and its index become one integer, a rank (rank.h), and the smallest of a set is the
 * same in any order. Sums are added in one order (total.h), or as integers.
 */
#ifndef ESP_CUDA_ROWS_H
#define ESP_CUDA_ROWS_H

#include "kernels/cuda/cuda.h"
#include "kernels/row_checks.h"

enum {
    ESP_PART = 4096,               /* values of a row that one block reads */
    ESP_VOCABULARY_MOST = 1 << 20, /* an index has 20 bits of a rank */
    ESP_COUNTERS = 1024,
};

/* Memory on the device through which blocks exchange numbers; work memory follows it.
 * `counter` and `mass` are zero between calls. */
struct esp_cuda_scratch {
    unsigned counter[ESP_COUNTERS]; /* number of finished blocks for each row of a launch */
    unsigned long long mass[2 * ESP_RATIO_CLASSES]; /* see ratio.cu */
    double total[2];                                /* [0] is used; 16 bytes */
};

static __host__ __device__ inline int esp_parts(int n)
{
    return (n + ESP_PART - 1) / ESP_PART;
}

template <typename T> static inline T *esp_cuda_work(const struct esp_cuda_rows *r)
{
    return reinterpret_cast<T *>(r->scratch + 1);
}

/* Adds to a 64-bit number in shared memory. Its halves are stored separately, because 64-bit
 * atomics are slow in shared memory. */
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

/* Returns the number of rows for which one launch finds the k largest, or 0 if this takes
 * several launches. */
int esp_cuda_top_k_at_once(int n, int k);
/* Bytes of work memory that top_k needs for a row of n values; no operation needs more. */
size_t esp_cuda_top_k_work(int n);

/* Returns the factor by which softmax.h multiplies logits, for a temperature. */
float esp_cuda_softmax_factor(double temperature);

/* The work of a call of softmax or top_k. */
struct esp_cuda_job {
    float *data; /* rows of `stride` numbers */
    size_t stride;
    const int32_t *which; /* (rows) */
    int rows, n;
    struct esp_cuda_step step;
    int *numeric;
};

/* Where a kernel finds its job: in its arguments or, in a graph, in the pass of a draft step.
 */
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

/* Fills in a job for rows `which`, except its step. */
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

/* Returns the status of a call with wrong arguments and, as for every failure, discards all
 * answers that are due. */
int esp_cuda_refuse(struct esp_rows *rows);

/* Bytes that `count` arguments or results take. */
template <typename T> static inline size_t esp_cuda_room(size_t count)
{
    return (count * sizeof(T) + 15) / 16 * 16;
}

/* Begins a call: makes `bytes` of room for its arguments and results. */
int esp_cuda_begin(struct esp_rows *rows, size_t bytes);
/* Does the same for a call about rows `which`, and copies `which` to where kernels read it
 * (*asked). `bytes` is the room for everything else. *asked becomes NULL if `which` is
 * wrong, if there is no room, or if there are no rows; the caller must then return the
 * status. */
int esp_cuda_ask(struct esp_rows *rows, const int32_t *which, int count, size_t bytes,
                 const int32_t **asked);
void *esp_cuda_take_pinned(struct esp_rows *rows, size_t bytes);

/* Copies arguments to where kernels read them. */
int esp_cuda_put_bytes(struct esp_rows *rows, const void *from, size_t bytes, const void **to);
template <typename T>
static inline int esp_cuda_put(struct esp_rows *rows, const T *from, size_t count, const T **to)
{
    const void *put = NULL;
    const int status = esp_cuda_put_bytes(rows, from, count * sizeof(T), &put);
    *to = static_cast<const T *>(put);
    return status;
}

/* Returns memory to which a kernel writes an answer for `to`, or NULL if the answer is not
 * wanted. */
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
