/* cuda.h - declares the structs and functions that the files of the CUDA backend share.
 *
 * plugin.cu opens a device and defines the table of operations. weights.cu copies a model to
 * the device. cache.cu stores keys and values, and plans memory. forward.cu runs a batch
 * through the model, and calls the launchers that are declared below. rows.h is shared by the
 * operations on logits and probabilities. Each of the other .cu files has one operation: its
 * kernel and the function that launches it. Several structs begin with a public struct of
 * kernels.h, so a pointer to one can be converted to a pointer to the other.
 *
 * A backend queues all its work on one stream, which executes it in order. Calls that return
 * values with ESP_NOW wait for the stream once, at their end. forward(), keep() and softmax()
 * do not wait. So if they compute a NaN, the next call that returns values reports it.
 */
#ifndef ESP_CUDA_H
#define ESP_CUDA_H

#include "kernels/cuda/device.h"

#include "kernels/batch.h"
#include "kernels/model_desc.h"
#include "kernels/ranks/rank_plan.h"
#include "kernels/state_plan.h"
extern "C" {
#include "kernels/status.h"
}

struct esp_cuda_lt;
struct esp_cuda_times;
struct esp_cuda_prediction;
struct esp_cuda_stream;
struct esp_cuda_cut;
struct esp_cuda_gpus;

/* Describes values that a call has not delivered to its caller yet. When the stream is idle,
 * the values are copied from `from`, which is in pinned memory, to `to`. The caller owns `to`,
 * and can free it after a failure. So a call that fails discards all answers. */
struct esp_cuda_answer {
    struct esp_cuda_rows *rows;
    void *to;
    const void *from;
    size_t bytes;
};

enum { ESP_CUDA_ANSWERS = 8 };

struct esp_cuda_backend {
    struct esp_backend base;
    bool exact; /* exact mode: the order of a sum does not depend on the number of rows */
    int index;  /* CUDA's number of the device; see esp_cuda_enter() */
    int multiprocessors;
    size_t shared_limit; /* maximum bytes of shared memory in a block */
    bool early;          /* kernels can begin before the previous one has ended (device.h) */
    cudaStream_t stream;
    /* A kernel that finds a value that is not a number sets *numeric to 1. This flag is in
     * pinned memory, which kernels can write and the host can read. */
    int *numeric;
    struct esp_cuda_answer answer[ESP_CUDA_ANSWERS];
    int answers;
    struct esp_cuda_lt *lt; /* cuBLASLt; NULL before it is opened, or if it is missing */
    bool lt_asked;          /* the backend has tried to open cuBLASLt */
    cudaEvent_t mark[ESP_MARKS];
    struct esp_cuda_times *times; /* NULL, unless the kernels of a pass are being timed */
    struct esp_cuda_prediction *prediction; /* NULL, unless a pass is being predicted */
    struct esp_cuda_gpus *gpus; /* the GPUs that divide models (gpus.h); NULL for one GPU */
    /* The backend of rank 0, which is the backend that the program opened. It gets the error
     * messages of all ranks. NULL if this backend is itself the backend of rank 0. */
    struct esp_cuda_backend *program;
    char device[160];
    char failure[256]; /* message about the last call that failed, or "" */
};

/* Returns the backend that the program opened: the backend of rank 0. */
static inline struct esp_cuda_backend *esp_cuda_program(struct esp_cuda_backend *backend)
{
    return backend->program ? backend->program : backend;
}

/* Makes the backend's device the current device of this thread (in CUDA, each thread has one).
 * Every operation in the table begins with this call. */
void esp_cuda_enter(const struct esp_backend *backend);
/* Must be called after code that may have changed this thread's device. */
void esp_cuda_forget_device();

/* Runs a CUDA call inside a function that returns a status. If it fails, the function returns
 * ESP_E_DEVICE (ESP_E_MEMORY if memory ran out), and the backend's `failure` says why. */
#define ESP_CUDA(backend, call)                                                                \
    do {                                                                                       \
        cudaError_t esp_cuda_result = (call);                                                  \
        if (esp_cuda_result != cudaSuccess)                                                    \
            return esp_cuda_failed((backend), #call, esp_cuda_result);                         \
    } while (0)

int esp_cuda_failed(struct esp_cuda_backend *backend, const char *call, cudaError_t result);
/* Returns `status`. If it is a failure, discards all answers that have not been delivered. */
int esp_cuda_end(struct esp_cuda_backend *backend, int status);
/* Returns whether a CUDA call succeeded. Use this in functions that return no status. If the
 * call failed, clears the error in the CUDA runtime, because otherwise the next launch would
 * report it. */
bool esp_cuda_fine(cudaError_t result);
/* Copies the message about the last failure to `err`, and returns `status`. */
int esp_cuda_tell(const struct esp_cuda_backend *backend, int status, char *err, size_t errlen);

/* Must be called after a launch. Returns ESP_OK if the launch succeeded. Otherwise records that
 * `what` has failed, and returns the status of the failure. */
int esp_cuda_launch_status(struct esp_cuda_backend *backend, const char *what);
/* Allows a kernel to use this many bytes of shared memory. */
int esp_cuda_allow_shared(struct esp_cuda_backend *backend, const void *kernel, size_t bytes);
/* Calls esp_cuda_allow_shared() for the kernels in a table. Skips kernels that need more shared
 * memory than a block can have on this device. */
template <typename V>
static inline int esp_cuda_allow_variants(struct esp_cuda_backend *backend, const V *all,
                                          int count)
{
    int status = ESP_OK;
    for (int i = 0; i < count && status == ESP_OK; i++)
        if (all[i].bytes <= backend->shared_limit)
            status = esp_cuda_allow_shared(backend, (const void *)all[i].kernel, all[i].bytes);
    return status;
}

/* Call each of these functions once per backend. Each allows its kernels to use the shared
 * memory that they need. */
int esp_cuda_softmax_prepare(struct esp_cuda_backend *backend);
int esp_cuda_sample_prepare(struct esp_cuda_backend *backend);
int esp_cuda_matmul_prepare(struct esp_cuda_backend *backend);
int esp_cuda_blocks_prepare(struct esp_cuda_backend *backend);
int esp_cuda_attention_prepare(struct esp_cuda_backend *backend);

double esp_cuda_read_rate(struct esp_backend *backend, size_t bytes);
int esp_cuda_time_kernels(struct esp_cache *cache, const struct esp_batch *batch,
                          struct esp_kernel_time *kernel, int most);
/* Describes the cost of a launch, from which predict.cu predicts the launch's time. A launcher
 * passes the cost to esp_cuda_costs() before the launch. This has no effect if no pass is being
 * predicted. If a launcher passes no cost, the kernel is assumed to wait for memory
 * ESP_CUDA_WAITS times and to read nothing. */
enum { ESP_CUDA_WAITS = 3, ESP_CUDA_PREDICTED = 64 };
struct esp_cuda_cost {
    double memory;     /* bytes of weights, keys and values that all blocks read */
    double cache;      /* bytes that all blocks read and find in the second-level cache */
    double flight;     /* bytes of `memory` that a block has in flight; 0 means no limit */
    double issue;      /* instructions of a block's warps in its loop; 0 means no limit */
    double products;   /* multiply-adds of a block on tensor cores; of bytes: half the number */
    double end_cycles; /* cycles that a block needs for shared memory after its loop */
    double ahead;      /* bytes of `memory` that a persistent block reads ahead */
    double blocks;     /* number of blocks (if persistent: of tiles) with this cost; 0: all */
    int waits;         /* how often a block waits for memory outside its loop */
};
void esp_cuda_costs(struct esp_cuda_backend *backend, const struct esp_cuda_cost *cost);
void esp_cuda_predicted(struct esp_cuda_backend *backend, const char *name, size_t bytes);
int esp_cuda_predict(struct esp_backend *backend, const struct esp_model_desc *desc, int rows,
                     int context, const struct esp_device_speed *speed,
                     struct esp_kernel_time *kernel, int most);
/* Call this after one or more launches, with a name for them and the number of bytes that they
 * read. If the pass is timed or predicted, records the time since the previous call. */
void esp_cuda_launched(struct esp_cuda_backend *backend, const char *name, size_t bytes);

/* Divides one allocation into pieces. With base = NULL, only counts bytes. `shared` is true if
 * the same memory is also divided differently; then no fences (ESP_FENCE) are put between the
 * pieces. */
struct esp_cuda_arena {
    char *base;
    size_t used;
    bool shared;
};

static inline void *esp_cuda_take_bytes(struct esp_cuda_arena *arena, size_t bytes)
{
    const size_t room = (bytes + 255) / 256 * 256 + ESP_FENCE;
    char *at = arena->base ? arena->base + arena->used : NULL;
    if (at && !arena->shared)
        ESP_PUT_FENCE(at + bytes, room - bytes);
    arena->used += room;
    return at;
}

template <typename V> static inline V *esp_cuda_take(struct esp_cuda_arena *arena, size_t count)
{
    return (V *)esp_cuda_take_bytes(arena, count * sizeof(V));
}

/* ------------------------------------------------------------------ models on the device */

/* The rows of every matrix and every vector of activations are padded with zeros to a multiple
 * of 32 values (ESP_CUDA_PAD). So a 16-byte load of a warp never crosses the end of a row. */
enum { ESP_CUDA_PAD = 32, ESP_CUDA_TILE = 16, ESP_CUDA_CHUNK = 128 };

static __host__ __device__ inline size_t esp_cuda_pad(size_t n, size_t step)
{
    return (n + step - 1) / step * step;
}

/* Describes a weight matrix. A matrix in bf16 or fp16 is row-major. A quantised matrix is
 * stored in tiles (blocks.h). */
struct esp_cuda_matrix {
    const void *data;  /* (rows padded to 16, stride) */
    const float *bias; /* (rows padded to 16) or NULL */
    int rows, columns;
    size_t stride;        /* number of columns, padded to a multiple of 32 */
    enum esp_dtype dtype; /* ESP_BF16, ESP_F16 or a quantised type */
    int count;            /* number of such matrices, one after another (experts); 0 means 1 */
};

/* Returns the number of bytes that a product reads from a matrix. */
static inline size_t esp_cuda_matrix_bytes(const struct esp_cuda_matrix *m)
{
    return m->rows * (esp_dtype_quantised(m->dtype) ? esp_dtype_row_bytes(m->dtype, m->columns)
                                                    : 2 * m->stride);
}

struct esp_cuda_mlp {
    /* (2 ffn, hidden): the rows of gate and up in groups of 8: gate 0-7, up 0-7, gate 8-15, ...
     * If there is no gate, or if weights are quantised, this matrix has only the rows of up.
     */
    struct esp_cuda_matrix up;
    struct esp_cuda_matrix gate; /* (ffn, hidden) if weights are quantised; otherwise no data */
    struct esp_cuda_matrix down; /* (hidden, ffn) */
};

/* The maximum number of tensors that a mixer multiplies with its input. */
enum { ESP_CUDA_PARTS = 5 };

struct esp_cuda_layer {
#define X(name) const float *name; /* padded, or NULL */
    ESP_LAYER_VECTORS(X)
#undef X
    int place; /* index among the layers with attention, or among the recurrent layers */
    /* Holds the rows of all tensors that the mixer multiplies with its input, one tensor after
     * the other. For attention, these are `query`, `key`, `value` and `attention_gate`. For a
     * recurrent layer, they are `conv_in`, `write`, `decay`, `in_gate` and `out_gate`. Without
     * a mixer, this matrix has no data. */
    struct esp_cuda_matrix inputs;
    struct esp_cuda_matrix output; /* the tensor `output` or, in a recurrent layer, `mixed` */
    const float *conv;             /* (C, conv_kernel) of a recurrent layer */
    /* `mlp` is the MLP, or all experts of a mixture. `shared` is the expert that all tokens
     * use. */
    struct esp_cuda_mlp mlp, shared;
    /* The router of a mixture of experts: (logits, hidden padded) and (experts padded). Without
     * a router, both pointers are NULL. A router without a bias has router_bias = NULL. If the
     * shared expert has a gate, the gate is the last row of the router. */
    const float *router, *router_bias;
    int logits;
    /* If weights are quantised, these matrices replace `inputs`. A matrix that the layer lacks
     * has no data. */
    struct esp_cuda_matrix part[ESP_CUDA_PARTS];
};

/* Describes the part of a model that one of several GPUs computes. `desc` describes this part
 * as a separate model, with fewer heads and with fewer rows in the matrices. The results of a
 * matrix are written to the columns of the whole result that begin at first[kind]. */
struct esp_cuda_part {
    struct esp_rank_plan plan;
    int rank;
    const struct esp_model_desc *all; /* the whole model */
    struct esp_model_desc desc;
    struct esp_layer *layer;
    struct esp_expert *expert; /* (layers, experts) or NULL */
    size_t first[ESP_RANK_KIND_COUNT];
};

struct esp_cuda_weights {
    struct esp_weights base;
    struct esp_cuda_part *part;    /* NULL means the whole model */
    struct esp_cuda_weights *next; /* the weights of the next rank, or NULL */
    bool half;                     /* true: weights are fp16; false: bf16 */
    /* True if any matrix is quantised. In that case, every tensor is a separate matrix with its
     * own type, and all activations except c->attended are float32. */
    bool blocks;
    struct esp_cuda_layer *layer;
    const float *norm_final, *norm_final_bias;
    const float *norm_embedding, *norm_input; /* norms of a draft head; otherwise NULL */
    const float *norm_fc[ESP_FC_NORMS];
    struct esp_cuda_matrix fc; /* layer fc of a draft head; other models have no data here */
    /* (vocabulary) the row of `head` for each token, or -1 if it has none. NULL means that row
     * i is for token i. */
    const int32_t *output_of;
    const float *inverse_frequency, *local_inverse_frequency; /* (rotary / 2); or NULL */
    struct esp_cuda_matrix position_embedding;                /* 16-bit numbers, or no data */
    struct esp_cuda_matrix embedding, head;                   /* the same memory if tied */
    char *memory; /* the single allocation for all weights */
    /* NULL if all layers stay on the device. Otherwise the elements of `layer` for streamed
     * layers point into the first buffer. */
    struct esp_cuda_stream *stream;
};

enum { ESP_CUDA_PIECE = 8 << 20 }; /* bytes that are sent to the device at a time */
/* Loads the tensors of w->base.desc. Returns 0, or a negative status. After a failure, the
 * caller must free the memory that w owns. */
int esp_cuda_weights_load(struct esp_cuda_weights *w, struct esp_cuda_backend *backend,
                          esp_progress *progress, void *user);
/* Returns how many bytes the weights take on the device. If desc->limit sets a limit, as many
 * layers as fit into it stay on the device. If the weights exceed the limit even then, returns
 * the fewest bytes that they can take. */
size_t esp_cuda_weights_need(const struct esp_model_desc *desc);
/* Returns whether any matrix of the model is quantised. */
bool esp_cuda_has_blocks(const struct esp_model_desc *desc);

/* For predict.cu, these functions lay out a model and a cache at addresses where there is no
 * memory. The caller must first set w->layer, w->base.desc, w->base.backend and
 * c->base.weights. */
void esp_cuda_weights_imagine(struct esp_cuda_weights *w);
void esp_cuda_cache_imagine(struct esp_cuda_cache *c, int rows, int max_batch);
/* Runs the code of a pass of `rows` rows after `context` tokens, but launches nothing. */
int esp_cuda_walk(struct esp_cuda_cache *c, int rows, int context);
/* The address at which the imagined memory of these models and caches begins. */
static char *const ESP_CUDA_NOWHERE = (char *)(uintptr_t)4096;

/* ------------------------------------------------------------------ layers that are streamed
 */

/* Prepares to stream some layers of a model: every pass copies them from the host to the device
 * (stream.cu). `streamed` is the number of these layers, and `layers` is the number of all
 * layers. Returns NULL if memory runs out. */
struct esp_cuda_stream *esp_cuda_stream_open(struct esp_cuda_backend *backend, int layers,
                                             int streamed);
void esp_cuda_stream_close(struct esp_cuda_stream *stream); /* NULL is allowed */
/* Call this for each streamed layer, in order. `bytes` is the size of the layer. `second`
 * contains the addresses of its matrices and vectors in the second buffer. */
void esp_cuda_stream_put(struct esp_cuda_stream *stream, int layer, size_t bytes,
                         const struct esp_cuda_layer *second);
void esp_cuda_stream_set_buffers(struct esp_cuda_stream *stream, char *first, char *second);
size_t esp_cuda_stream_host_bytes(const struct esp_cuda_stream *stream);
/* esp_cuda_stream_pin() allocates pinned memory on the host for all streamed layers. `to` is an
 * address in the first buffer. esp_cuda_stream_host() returns the address in host memory from
 * which this piece of the layer is copied, or NULL if the layer is not streamed. */
int esp_cuda_stream_pin(struct esp_cuda_stream *stream);
char *esp_cuda_stream_host(const struct esp_cuda_stream *stream, int layer, const void *to);
/* Must be called when all streamed layers are in the host's memory. Copies the first two layers
 * to the device, and measures the speed of these copies. */
int esp_cuda_stream_start(struct esp_cuda_stream *stream);
/* Fills in the members of *streamed, except resident_bytes. */
void esp_cuda_stream_count(const struct esp_cuda_stream *stream, struct esp_streamed *streamed);

/* Call esp_cuda_stream_begin() at the start of a pass. Then call hold() and release() for each
 * layer, in order. Kernels that are launched between these two calls can read the matrices and
 * vectors of the layer at the addresses in *held. */
int esp_cuda_stream_begin(struct esp_cuda_stream *stream);
int esp_cuda_stream_hold(struct esp_cuda_weights *weights, int layer,
                         const struct esp_cuda_layer **held);
int esp_cuda_stream_release(struct esp_cuda_weights *weights, int layer);

/* ------------------------------------------------------------------ one pass */

/* Holds the arguments of the softmax and the top-k at the end of a draft step (softmax.h,
 * top_k.cu). */
struct esp_cuda_step {
    float factor; /* 1 / temperature */
    int32_t top_k;
    double top_p;
    int32_t k;
    int32_t *ids;  /* (wanted, k) the likeliest tokens, in pinned memory */
    float *values; /* (wanted, k) the probabilities of these tokens, in pinned memory */
    struct esp_cuda_scratch *scratch;
};

/* Holds the numbers that change from pass to pass. This struct is in device memory, because a
 * captured graph cannot get new arguments. Each launch of the graph reads the current numbers
 * from this struct. */
struct esp_cuda_pass {
    int32_t rows, first, prefix, wanted;
    int32_t words;             /* number of words in a row's mask; 0 without masks */
    int32_t sinks, recent;     /* see struct esp_window; recent = 0 means no window */
    int32_t dropped, shift;    /* see struct esp_window; shift = dropped % ESP_CUDA_CHUNK */
    int32_t logits_vocabulary; /* number of logits in a row */
    float *logits;             /* (wanted, logits_stride) */
    size_t logits_stride;
    /* The pass outputs `states` hidden states. Hidden state state[i] is written to the columns
     * of states_to that begin with column i * hidden. The rows of states_to are `states_stride`
     * floats apart. */
    int32_t states, state[ESP_MAX_STATES];
    float *states_to;
    size_t states_stride;
    const float *input; /* input of a draft head: rows of `input_stride` numbers */
    size_t input_stride;
    /* The plan for recurrent layers has `entries` entries and `steps` steps. Before the pass,
     * the states include `folded` tokens. */
    int32_t entries, steps, folded;
    struct esp_cuda_step step;
};

/* Holds element i of the plan for recurrent layers (state_plan.h) in the form that the device
 * reads: entry i, member i and step i of the plan. A step belongs to a group: it loads a state,
 * adds the updates of a chunk to it, and computes the rows of the group. */
struct esp_cuda_visit {
    int32_t slot, parent, place; /* as in struct esp_state_entry */
    int32_t member;              /* a row of the batch */
    int32_t last, first, count;  /* as in struct esp_state_group, for the group of the step */
    /* The levels of the stack from which the step loads the state, and to which it stores the
     * new state. load = -1: the state is still where the previous step left it. store = -1: the
     * new state is not needed again. */
    int16_t load, store;
};

/* Holds the addresses of a pass's arrays on the device. */
struct esp_cuda_arrays {
    const struct esp_cuda_pass *pass;
    const int32_t *tokens, *positions;
    /* (max_batch) wanted: the batch rows that need logits. wanted_at: for each of these rows,
     * the row of the logits matrix to which its logits are written. */
    const int32_t *wanted, *wanted_at;
    const int32_t *states_row; /* row of states_to for each batch row, or -1 */
    const int32_t *input_row;  /* row of `input` for each batch row */
    const uint64_t *mask;      /* (rows, pass->words) */
    /* (rows, seen_stride) The cache rows to which each row attends, in ascending order. Rows of
     * the prefix are not listed, because every row attends to them. */
    int32_t *seen;
    int32_t *seen_count; /* (rows) the number of these cache rows */
    int seen_stride;
    const struct esp_cuda_visit *visit; /* (the larger of pass->entries and steps) */
};

/* Returns whether the window (struct esp_window) leaves a gap between the sinks and the recent
 * tokens to which this row attends. */
static __device__ __forceinline__ bool esp_cuda_has_gap(const struct esp_cuda_arrays &at,
                                                        int row)
{
    return at.pass->recent > 0 && at.positions[row] >= at.pass->sinks + at.pass->recent;
}

/* Describes a tile of pairs: pairs first..end-1, which all use the same expert (experts.h). */
struct esp_cuda_tile {
    int32_t expert, first, end;
};

/* Says which experts the rows of a pass use. experts.cu computes this. A row and one of its
 * experts are a pair. */
struct esp_cuda_routing {
    int32_t *chosen; /* (rows, used) the experts of each row, in ascending order */
    float *share;    /* (rows, used) the weight of each expert's output */
    int32_t *place;  /* (rows, used) the index of the pair of the row and this expert */
    int32_t *row_of; /* (pairs) the row of each pair */
    struct esp_cuda_tile *tiles;
    int32_t *tile_count;
};

/* Passes the tiles of pairs to the kernel of a product. Without experts, `tiles` is NULL. */
struct esp_cuda_mixture {
    const struct esp_cuda_tile *tiles;
    const int32_t *tile_count;
    const int32_t *row_of; /* the row of x for each pair; NULL means row i for pair i */
};

/* The maximum number of experts in a layer, and the maximum number that a row uses. */
enum { ESP_CUDA_EXPERTS = 1024, ESP_CUDA_EXPERTS_USED = 32 };

/* The largest allowed key dimension of a state (esp_model_desc.key_dim). */
enum { ESP_CUDA_STATE_KEYS = 256 };

/* Holds the states and inputs of recurrent layers (states.cu). The widths include padding. */
struct esp_cuda_states {
    int layers; /* number of recurrent layers; if 0, the other members are not used */
    struct esp_state_plan plan;
    void *plan_memory;   /* host memory for the arrays of `plan` */
    int32_t *saved;      /* (state_slots) number of tokens before each copy, plus 1; 0: empty */
    size_t width, rates; /* width: convolved values of a token; rates: number of state heads */
    size_t key_values, values; /* number of floats in a token's keys, and in its updates */
    size_t out;                /* number of values that a mixer outputs for a token */
    int keys;                  /* number of keys that a thread of mixer.cu computes */
    size_t each;               /* number of floats in the states of a layer */
    /* (layers, plan.ring, width + 2 * rates + key_values + values) for each slot: the values to
     * convolve, the factors `write` and `decay`, the keys, and the updates */
    float *inputs;
    float *memory; /* (layers, each) the states after the first `folded` tokens */
    /* The copies of states: (state_slots, layers, conv_kernel - 1 + ESP_STATE_CHUNK - 1 inputs
     * and `each`). A copy contains the inputs of the last conv_kernel - 1 tokens before
     * `folded`, the inputs of the tokens after `folded`, and the states. */
    float *slots;
    float *convolved; /* (max_batch, width) */
    float *products;  /* (max_batch, state_heads, 2 * ESP_STATE_CHUNK), see mixer.cu */
    float *stack;     /* (levels, each) states for paths of a tree (state_plan.h) */
    float *o;         /* (max_batch, out) values read from the states */
    void *mixed;      /* (max_batch, out) 16-bit numbers: the mixer's output */
};

enum { ESP_CUDA_SLOTS = 4, ESP_CUDA_BUCKETS = 4, ESP_CUDA_LENGTHS = 16 };

struct esp_cuda_cache {
    struct esp_cache base;
    struct esp_cuda_cache *next;       /* the cache of the next rank, or NULL */
    const struct esp_cuda_layer *held; /* the layer that is computed; esp_cuda_stream_hold() */
    char *exchanged; /* (ranks, rows, bytes) the results that ranks exchange; or NULL */
    size_t exchange_bytes;
    float *own_logits; /* (max_batch, own_logits_width) in ranks other than 0; otherwise NULL */
    size_t own_logits_width;
    struct esp_cuda_cache *joined_to; /* the cache that owns k, v and the states, or NULL */
    int rows, max_batch;
    int chunks;        /* maximum number of chunks (ESP_CUDA_CHUNK keys) in a full cache */
    size_t head_width; /* head_dim, padded to a multiple of 8 */
    void *k, *v;       /* (attention layer, kv_head, rows, head_width) bf16 or fp16 */
    char *memory;      /* the single allocation for all device memory of this struct */

    size_t hidden, q_width, inputs_width, up_width, ffn; /* padded */
    size_t joined_width, outputs_width;                  /* padded; 0 if not needed */
    float *x;       /* (max_batch, hidden) residual stream */
    void *normed;   /* (max_batch, hidden) 16-bit numbers; floats if weights are quantised */
    float *squares; /* (max_batch, hidden / 16) sums of squares for norms in halves (norm.h) */
    void *normed2;  /* (max_batch, hidden) like `normed`, in models with a parallel residual */
    float *inputs;  /* (max_batch, inputs_width) outputs of a layer's matrix `inputs` */
    /* (max_batch + 1, rotary / 2) cosines and sines of the rows' positions, for layers with the
     * model's global rotary frequencies and for layers with its local frequencies. The last row
     * is for queries that attend to the sinks of a window. */
    float2 *rotation, *local_rotation;
    float *together; /* (max_batch, 2) factors of norms over all heads (rope.h); or NULL */
    void *attended;  /* (max_batch, q_width) the output of attention */
    float *up;       /* (max_batch, up_width) results of cuBLASLt before the activation */
    void *active;    /* (max_batch, ffn) numbers of the same type as `normed` */
    float *branch;   /* (max_batch, hidden) an output that is changed before it is added to x */
    void *joined;    /* (max_batch, joined_width) the joined inputs of a draft head; or NULL */
    float *embedded; /* (max_batch, hidden) embeddings, for EAGLE-3; or NULL */
    float *outputs;  /* (max_batch, outputs_width) logits of a head for some tokens; or NULL */
    /* If weights are quantised: the quantised activations (blocks.h), with room for the widest
     * matrix. With experts, there is a row for each pair. */
    void *cut_words;           /* (max_batch, blocks, 64 bytes) */
    struct esp_cuda_cut *cuts; /* (max_batch, blocks) */
    void *narrow;              /* (max_batch, columns) 16-bit numbers */
    /* The following buffers are used only for a mixture of experts. */
    struct esp_cuda_routing routing;
    float *routed;     /* (max_batch, layer's `logits`) the router's logits */
    size_t expert_ffn; /* padded */
    float *pair_up;    /* (pairs, 2 expert_ffn) if weights are quantised; otherwise NULL */
    void *pair_active; /* (pairs, expert_ffn) numbers of the same type as `active` */
    float *pair_out;   /* (pairs, hidden) */
    /* (rows, heads, parts + 1, esp_cuda_part(head_width)) partial results of attention; the
     * last part is for the sinks (attention.h). There is room for `parts` partial results. This
     * limits the number of rows that one launch of attention computes. */
    float *partial;
    size_t parts;
    unsigned *done; /* number of finished blocks for each tile of queries (attention.h) */
    struct esp_cuda_states states;

    struct esp_cuda_arrays at;
    size_t pass_bytes;
    char *pass_device, *pass_host[ESP_CUDA_SLOTS]; /* (pass_bytes); pass_host is pinned */
    cudaEvent_t copied[ESP_CUDA_SLOTS];
    int slot;
    int32_t *keep_rows; /* (max_batch) on the device, part of the block pass_device */
    /* The captured graphs. graph[0] is for passes that end with logits, and graph[1] is for
     * draft steps. The second index selects a graph for up to 1, 4, 16 or 64 rows, and the
     * third index selects a graph for up to 1, 2, 4, ... chunks. NULL means that this graph has
     * not been captured. */
    cudaGraphExec_t graph[2][ESP_CUDA_BUCKETS][ESP_CUDA_LENGTHS];
};

static inline struct esp_cuda_weights *esp_cuda_weights_of(const struct esp_cuda_cache *c)
{
    return reinterpret_cast<struct esp_cuda_weights *>(c->base.weights);
}

static inline struct esp_cuda_backend *esp_cuda_backend_of(const struct esp_cuda_cache *c)
{
    return reinterpret_cast<struct esp_cuda_backend *>(c->base.weights->backend);
}

/* Returns the first column that this GPU computes of a kind of result. */
static inline size_t esp_cuda_first(const struct esp_cuda_cache *c, enum esp_rank_kind kind)
{
    const struct esp_cuda_part *part = esp_cuda_weights_of(c)->part;
    return part ? part->first[kind] : 0;
}

/* Returns whether this GPU computes only some columns of a kind of result. */
static inline bool esp_cuda_divides(const struct esp_cuda_cache *c, enum esp_rank_kind kind)
{
    const struct esp_cuda_part *part = esp_cuda_weights_of(c)->part;
    return part && esp_rank_plan_divides(&part->plan, kind);
}

/* Makes a cache's device the current one. Returns false if `c` is NULL, so that a loop over the
 * caches of all ranks ends after the last one. */
static inline bool esp_cuda_enter_rank(const struct esp_cuda_cache *c)
{
    if (c)
        esp_cuda_enter(c->base.weights->backend);
    return c;
}

/* Returns whether the kernels of this cache's passes begin early (device.h). If the model has
 * streamed layers, its kernels do not begin early, because they also wait for copies. */
static inline bool esp_cuda_early(const struct esp_cuda_cache *c)
{
    return esp_cuda_backend_of(c)->early && !esp_cuda_weights_of(c)->stream;
}

static inline const struct esp_model_desc *esp_cuda_desc_of(const struct esp_cuda_cache *c)
{
    return c->base.weights->desc;
}

/* Returns the number of floats in a partial result of a query's attention: head_width sums, the
 * maximum and the weight, and padding that aligns the next partial result to 16 bytes. */
static __host__ __device__ __forceinline__ size_t esp_cuda_part(size_t head_width)
{
    return head_width + 4;
}

/* In passes of up to this many rows, the attention kernels rotate the keys of the pass
 * themselves (attention.h). */
enum { ESP_CUDA_FRESH = 16 };

static inline bool esp_cuda_fresh(int rows)
{
    return rows <= ESP_CUDA_FRESH;
}

/* Prepares a new cache and the caches of the other ranks: chooses algorithms of cuBLASLt, and
 * captures as many graphs as fit into memory. */
int esp_cuda_prepare(struct esp_cuda_cache *cache);
/* esp_cuda_take_slot() waits until the last copy from the next pinned block has ended. Then it
 * writes the address of this block to *slot. esp_cuda_send_slot() sends bytes at..at+bytes-1 of
 * the block to the device. */
int esp_cuda_take_slot(struct esp_cuda_cache *cache, char **slot);
int esp_cuda_send_slot(struct esp_cuda_cache *cache, size_t at, size_t bytes);

/* The following functions are launchers. Each starts one kernel (attention: at most two) on the
 * backend's stream for `rows` rows. `rows` may be larger than the number of rows in the pass,
 * because kernels stop at pass->rows. T, the type of weights and cache, is esp_bf16 or esp_f16.
 * A, the type of activations, is T, or float if weights are quantised. */

/* Writes the embeddings of the tokens to c->x. Also expands the masks into `seen` and computes
 * c->rotation. For draft heads, also writes the input of fc to c->joined. If fc is not used,
 * writes the pass's input to c->x instead. */
template <typename T, typename A>
void esp_cuda_embed(struct esp_cuda_cache *c, bool fc, int rows);
/* Describes a norm of the residual stream. `state` is the index of the hidden state that the
 * norm reads, or ESP_CUDA_NO_STATE. */
enum { ESP_CUDA_NO_STATE = -2 };
struct esp_cuda_norm {
    const float *weight,
        *bias; /* (hidden padded); bias may be NULL. weight = NULL means the identity */
    int state;
    bool cut; /* true: the kernel also quantises the result, for quantised weights. This is
                 true for at most one norm of a call. */
};
/* Writes norm[0](x) to c->normed and, if count is 2, norm[1](x) to c->normed2. Fills the
 * padding with zeros, and outputs the hidden states that these norms read. */
template <typename A>
void esp_cuda_norms(struct esp_cuda_cache *c, const struct esp_cuda_norm *norm, int count,
                    int rows);
/* Computes the final norm: writes the norm of row wanted[i] of x to row i of c->normed, for i <
 * pass->wanted. Outputs the hidden states after the last layer and after this norm. */
template <typename A> void esp_cuda_norm_final(struct esp_cuda_cache *c, int rows);
/* For EAGLE-3: writes [norm1 c->embedded, norm_input x] to c->joined. Outputs hidden state 0.
 */
template <typename A> void esp_cuda_join(struct esp_cuda_cache *c, int rows);
/* In a large pass, computes keys and values from c->inputs and writes them to the cache. Also
 * computes the factors of norms over all heads. Here and below, `held` is the layer with the
 * addresses that it has in this pass (esp_cuda_stream_hold()). */
template <typename T>
void esp_cuda_rope(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, int layer,
                   int rows);
/* Computes the attention of the queries in c->inputs to the keys in the cache, and writes it to
 * c->attended. The cache has at most `chunks` chunks of keys. */
template <typename T>
void esp_cuda_attention(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, int layer,
                        int rows, int chunks);
/* Multiplies c->attended by the sigmoid of the gate in c->inputs. */
template <typename T> void esp_cuda_gate(struct esp_cuda_cache *c, int rows);
/* Computes a recurrent layer for the inputs in c->inputs: writes its output to c->states.mixed,
 * and changes its states. With rows = 0, only adds complete chunks to the states. */
template <typename T>
void esp_cuda_mix(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, int layer,
                  int rows);
/* Adds residual_scale * norm(y) to x. If `experts` is NULL, y is c->branch. Otherwise y is the
 * weighted sum of c->pair_out over each row's experts. If this layer has a shared expert, its
 * output, which is in c->branch, is added to y. norm = NULL means the identity. If `next` is
 * not NULL, also computes the norm `next`, as esp_cuda_norms() would. */
template <typename T>
void esp_cuda_add(struct esp_cuda_cache *c, const struct esp_cuda_layer *experts,
                  const float *norm, const struct esp_cuda_norm *next, int rows);
/* Chooses the experts for each row of x (rows, hidden), makes tiles of at most `width` pairs,
 * and writes both to c->routing. If x is the first half of a norm (norm.h), `norm` is the
 * weight of this norm; otherwise it is NULL. Launches two kernels. */
template <typename A>
void esp_cuda_route(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, const void *x,
                    const float *norm, int rows, int width);
/* Scales and caps the logits. If the head gives logits for some tokens only, also moves them
 * from c->outputs to the columns of their tokens. */
void esp_cuda_logits(struct esp_cuda_cache *c, int rows);
/* These functions compute the softmax and the top-k of a draft step, for logits over the
 * model's own vocabulary. The softmax takes either one launch or six launches. */
void esp_cuda_step_softmax(struct esp_cuda_cache *c, int rows);
void esp_cuda_step_top_k(struct esp_cuda_cache *c, int rows);

/* Says what a kernel does with the result r of a product W x + bias. `y` and `out` are members
 * of struct esp_cuda_product. */
enum esp_cuda_epilogue {
    ESP_CUDA_STORE,     /* y = r */
    ESP_CUDA_ADD,       /* y += r */
    ESP_CUDA_GATED,     /* out = activation(gate) * up; gate and up are interleaved rows of r */
    ESP_CUDA_ACTIVATED, /* out = activation(r) */
    ESP_CUDA_LOGITS,    /* writes r to the rows of pass->logits that `wanted_at` lists */
};

struct esp_cuda_product {
    const struct esp_cuda_matrix *w;
    const void *x; /* (rows, x_stride) */
    size_t x_stride;
    enum esp_cuda_epilogue epilogue;
    float *y; /* for STORE and ADD: (rows, y_stride) */
    size_t y_stride;
    void *out; /* for GATED and ACTIVATED: (rows, out_stride), padded with zeros */
    size_t out_stride;
    size_t columns; /* for LOGITS after cuBLASLt: number of logits in a row */
    /* `tile` is the maximum number of pairs in a tile of experts, or 0 without experts. With
     * experts, y and out have a row for each pair. If `by_pair` is true, x also has a row for
     * each pair; otherwise it has a row for each row of the pass. */
    int tile;
    bool by_pair;
    bool cut; /* for quantised weights: the kernel that computed x has quantised it */
    /* For norms in halves (norm.h), only in matmul.cu. `normed` is true if x is the first half
     * of a norm. If `next` is not NULL, the epilogue ADD also writes the first half of the
     * norm `next` to c->normed. */
    bool normed;
    const struct esp_cuda_norm *next;
    size_t first; /* for `next`: the first column of the residual stream that ADD changes */
};

static inline struct esp_cuda_mixture esp_cuda_mixture_of(const struct esp_cuda_cache *c,
                                                          const struct esp_cuda_product *p)
{
    if (p->tile == 0)
        return {NULL, NULL, NULL};
    return {c->routing.tiles, c->routing.tile_count, p->by_pair ? NULL : c->routing.row_of};
}

/* Computes a product without cuBLASLt (matmul.cu). The order of the sums does not depend on the
 * number of rows. */
template <typename T>
void esp_cuda_matmul(struct esp_cuda_cache *c, const struct esp_cuda_product *p, int rows);

/* These are the launchers for quantised weights (blocks.cu). multiply() runs `count` products
 * that read the same activations, with matrices of any type. The order of the sums does not
 * depend on the number of rows. activate() applies the activation function to c->up (gate, then
 * up) and writes c->active; if `pairs` is true, it does this for c->pair_up and c->pair_active.
 * embed() writes the rows of a quantised embedding to c->x. */
template <typename T>
void esp_cuda_blocks_multiply(struct esp_cuda_cache *c, const struct esp_cuda_product *p,
                              int count, int rows);
void esp_cuda_blocks_activate(struct esp_cuda_cache *c, bool pairs, int rows);
void esp_cuda_blocks_embed(struct esp_cuda_cache *c, int rows);
/* Applies the epilogue to an output of cuBLASLt. */
template <typename T>
void esp_cuda_finish(struct esp_cuda_cache *c, const struct esp_cuda_product *p,
                     const float *product, size_t product_stride, int rows);

/* lt.cu computes products with cuBLASLt. The algorithm for a shape is chosen once, when a cache
 * is opened. */
/* Opens cuBLASLt, unless this has been tried before. If cuBLASLt is missing, backend->lt stays
 * NULL, and the description of the device says so. */
int esp_cuda_lt_open(struct esp_cuda_backend *backend);
void esp_cuda_lt_close(struct esp_cuda_backend *backend);

struct esp_cuda_lt_product {
    bool half, add; /* half: fp16 instead of bf16; add: y += W x instead of y = W x */
    const struct esp_cuda_matrix *w;
    const void *x; /* (rows, x_stride) */
    float *y;      /* (rows, y_stride) */
    size_t x_stride, y_stride;
    int rows, outputs; /* outputs: only the first `outputs` rows of W are used */
};

/* Chooses an algorithm for the shape of this product, unless one has been chosen before. */
int esp_cuda_lt_choose(struct esp_cuda_backend *backend, const struct esp_cuda_lt_product *p);
/* Computes the product. If cuBLASLt has no algorithm for this shape, does nothing, sets *done
 * to false and returns ESP_OK. */
int esp_cuda_lt_run(struct esp_cuda_backend *backend, const struct esp_cuda_lt_product *p,
                    bool *done);

/* ------------------------------------------------------------------ rows */

/* Describes pinned memory for the arguments and results of calls, and device memory of the same
 * size for arguments that are copied to the device. Calls use this memory from front to back,
 * and start at the front again when the stream is idle. So a call never overwrites arguments of
 * an earlier call that did not wait. The memory grows only if a single call needs more than all
 * of it. */
struct esp_cuda_transfer {
    char *host, *device; /* (bytes) */
    size_t bytes, used;
};

struct esp_cuda_rows {
    struct esp_rows base;
    size_t stride;                    /* vocabulary, padded to a multiple of 32 */
    float *data;                      /* (capacity, stride) on the device */
    struct esp_cuda_scratch *scratch; /* on the device, see rows.h */
    size_t work_bytes;                /* size of the work memory after *scratch */
    struct esp_cuda_transfer transfer;
};

static inline struct esp_cuda_backend *esp_cuda_of(const struct esp_rows *rows)
{
    return reinterpret_cast<struct esp_cuda_backend *>(rows->backend);
}

/* esp_cuda_step_fits() returns whether a draft step can be part of a graph for passes of `rows`
 * rows. esp_cuda_step_begin() reserves memory for the results of `count` rows and fills in
 * *made, the arguments of the step. */
bool esp_cuda_step_fits(const struct esp_rows *logits, const struct esp_model_desc *desc,
                        const struct esp_step *step, int rows);
int esp_cuda_step_begin(struct esp_rows *logits, const struct esp_step *step, int count,
                        struct esp_cuda_step *made);

/* These functions are defined in states.cu. struct esp_backend_ops describes them. */
size_t esp_cuda_state_bytes(const struct esp_model_desc *desc);
size_t esp_cuda_checkpoint_bytes(const struct esp_model_desc *desc);
int esp_cuda_fold(struct esp_cache *cache, int prefix, int dropped);
int esp_cuda_state_save(struct esp_cache *cache, int slot, int length);
int esp_cuda_state_load(struct esp_cache *cache, int slot);
/* esp_cuda_states_set_sizes() sets the sizes for batches of max_batch rows.
 * esp_cuda_states_lay_out() places the arrays, with room for the activations of `rows` rows. A
 * joined cache passes its owner's states as `owner`, and uses their inputs and states; other
 * caches pass NULL. */
void esp_cuda_states_set_sizes(struct esp_cuda_states *s, const struct esp_model_desc *d,
                               int max_batch);
void esp_cuda_states_lay_out(struct esp_cuda_arena *arena, struct esp_cuda_states *s,
                             const struct esp_cuda_states *owner,
                             const struct esp_model_desc *d, size_t rows);
int esp_cuda_states_open(struct esp_cuda_states *s, const struct esp_model_desc *d);
void esp_cuda_states_close(struct esp_cuda_states *s);
/* Plans the pass of a batch. If the batch starts a new text, sets the states to zero. The
 * cache's `folded` then stays -1 until esp_cuda_states_end() is called. Returns ESP_E_ARGUMENT
 * if the batch does not match the states. */
int esp_cuda_states_begin(struct esp_cuda_cache *c, const struct esp_batch *batch);
/* Writes the plan to `visit`, which is in a pinned block. Returns the number of elements. */
int esp_cuda_states_write(const struct esp_cuda_cache *c, struct esp_cuda_visit *visit);
void esp_cuda_states_end(struct esp_cuda_cache *c);
/* Runs the recurrent layers for a plan that has no rows of a batch. This only adds complete
 * chunks to the states. */
int esp_cuda_run_fold(struct esp_cuda_cache *c, const struct esp_batch *none);
/* Moves the inputs of the `count` rows that c->keep_rows lists to the slots of rows first,
 * first + 1, ... */
void esp_cuda_keep_inputs(struct esp_cuda_cache *c, int first, int count);
#define X(result, name, ...) result esp_cuda_##name(__VA_ARGS__);
#include "kernels/model_ops.def"
#undef X
#define X(name, ...) int esp_cuda_##name(__VA_ARGS__);
#include "kernels/row_ops.def"
#undef X

#endif
