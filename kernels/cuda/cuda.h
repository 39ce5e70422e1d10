/* cuda.h - what the files of the CUDA backend share.
 *
 * plugin.cu opens a device and holds the table of operations, weights.cu copies a model to it,
 * cache.cu holds keys and values and plans memory, forward.cu runs a batch through the model by
 * the launchers below, rows.h has what operations on logits and probabilities share. Each .cu
 * file holds one operation: the kernel and what starts it. The structs begin with the public
 * ones of kernels.h, so that a pointer to one is a pointer to the other.
 *
 * A backend does everything on one stream, in order. Calls that give values with ESP_NOW wait
 * for the stream once, at their end; forward(), keep() and softmax() do not wait. So a value
 * that is not a number is reported by the next call that gives values.
 */
#ifndef ESP_CUDA_H
#define ESP_CUDA_H

#include "kernels/cuda/device.h"

#include "kernels/batch.h"
extern "C" {
#include "kernels/status.h"
}

struct esp_cuda_lt;
struct esp_cuda_times;
struct esp_cuda_stream;
struct esp_cuda_cut;

/* Values that a call still has to deliver. They are copied from pinned memory when the stream
 * is idle. `to` belongs to the caller, who may free it after a failure, so a call that fails
 * discards all answers. */
struct esp_cuda_answer {
    struct esp_cuda_rows *rows;
    void *to;
    const void *from;
    size_t bytes;
};

enum { ESP_CUDA_ANSWERS = 8 };

struct esp_cuda_backend {
    struct esp_backend base;
    bool exact; /* every sum has one order, for any number of rows */
    int index;  /* of the device, see esp_cuda_enter */
    int multiprocessors;
    size_t shared_limit; /* bytes of shared memory that a block may ask for */
    cudaStream_t stream;
    /* Pinned, so that kernels write it and the host reads it: a kernel that finds a value that
     * is not a number sets it to 1. */
    int *numeric;
    struct esp_cuda_answer answer[ESP_CUDA_ANSWERS];
    int answers;
    struct esp_cuda_lt *lt; /* NULL: not opened, or there is no cuBLASLt here */
    bool lt_asked;          /* cuBLASLt was looked for */
    cudaEvent_t mark[ESP_MARKS];
    struct esp_cuda_times *times; /* of a pass that is timed, else NULL */
    char device[160];
    char failure[256]; /* the sentence about the last call that failed, or "" */
};

/* Makes the backend's device the current one, which CUDA keeps per thread. Every operation of
 * the table begins with this. */
void esp_cuda_enter(const struct esp_backend *backend);

/* Runs a CUDA call inside a function that returns a status: a failure is remembered in the
 * backend's `failure` and returned as ESP_E_DEVICE (ESP_E_MEMORY if memory ran out). */
#define ESP_CUDA(backend, call)                                                                \
    do {                                                                                       \
        cudaError_t esp_cuda_result = (call);                                                  \
        if (esp_cuda_result != cudaSuccess)                                                    \
            return esp_cuda_failed((backend), #call, esp_cuda_result);                         \
    } while (0)

int esp_cuda_failed(struct esp_cuda_backend *backend, const char *call, cudaError_t result);
/* Returns `status`; if it is a failure, all answers that are due are discarded. */
int esp_cuda_end(struct esp_cuda_backend *backend, int status);
/* For calls that return no status: true if the CUDA call succeeded. If it failed, the error is
 * cleared in the CUDA runtime; otherwise the next launch would report it. */
bool esp_cuda_fine(cudaError_t result);
/* Copies the sentence about a failure to err; returns `status`. */
int esp_cuda_tell(const struct esp_cuda_backend *backend, int status, char *err, size_t errlen);

/* After a launch: a failure to start `what`, or ESP_OK. */
int esp_cuda_launch_status(struct esp_cuda_backend *backend, const char *what);
/* Lets a kernel use so many bytes of shared memory. */
int esp_cuda_allow_shared(struct esp_cuda_backend *backend, const void *kernel, size_t bytes);
/* The same for the kernels of a table, as far as a block may have the memory that they need. */
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

/* Once per backend: lets kernels use the shared memory that they need. */
int esp_cuda_softmax_prepare(struct esp_cuda_backend *backend);
int esp_cuda_sample_prepare(struct esp_cuda_backend *backend);
int esp_cuda_matmul_prepare(struct esp_cuda_backend *backend);
int esp_cuda_blocks_prepare(struct esp_cuda_backend *backend);
int esp_cuda_attention_prepare(struct esp_cuda_backend *backend);

double esp_cuda_read_rate(struct esp_backend *backend, size_t bytes);
int esp_cuda_time_kernels(struct esp_cache *cache, const struct esp_batch *batch,
                          struct esp_kernel_time *kernel, int most);
/* Names what has been launched since the last call of this, and the bytes that it reads. Notes
 * the time if the pass is timed. */
void esp_cuda_launched(struct esp_cuda_backend *backend, const char *name, size_t bytes);

/* Divides one allocation; with base = NULL it only counts. `shared`: the same memory is also
 * divided in another way, so it gets no fences. */
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

/* Columns of every matrix and width of every vector of activations: a multiple of 32 values, so
 * that a warp's 16-byte loads never end inside one. Padding is zero. */
enum { ESP_CUDA_PAD = 32, ESP_CUDA_TILE = 16, ESP_CUDA_CHUNK = 128 };

static __host__ __device__ inline size_t esp_cuda_pad(size_t n, size_t step)
{
    return (n + step - 1) / step * step;
}

/* A weight matrix: bf16 or fp16, row-major; or quantised, in tiles (blocks.h). */
struct esp_cuda_matrix {
    const void *data;  /* (rows padded to 16, stride) */
    const float *bias; /* (rows padded to 16) or NULL */
    int rows, columns;
    size_t stride;        /* columns, padded to 32 */
    enum esp_dtype dtype; /* ESP_BF16, ESP_F16 or a quantised one */
    int count;            /* matrices of this form in a row (experts); 0: one */
};

struct esp_cuda_layer {
#define X(name) const float *name; /* padded, or NULL */
    ESP_LAYER_VECTORS(X)
#undef X
    struct esp_cuda_matrix qkv;    /* queries, keys, values one below the other */
    struct esp_cuda_matrix output; /* (hidden, heads * head_dim) */
    /* (2 ffn, hidden), in groups of 8 rows: gate 0-7, up 0-7, gate 8-15, ...; or (ffn, hidden)
     * of up alone where there is no gate */
    struct esp_cuda_matrix up;
    struct esp_cuda_matrix down; /* (hidden, ffn) */
    /* Of a mixture of experts, whose matrices are in `up`, `gate` and `down`: (experts, hidden
     * padded), (experts padded). NULL: there is none; the bias may be NULL. */
    const float *router, *router_bias;
    /* Of weights with blocks, in place of qkv; `up` is then by itself, too. gate has no data
     * where there is none. */
    struct esp_cuda_matrix query, key, value, gate;
};

struct esp_cuda_weights {
    struct esp_weights base;
    bool half; /* fp16, else bf16 */
    /* Some of the matrices are quantised. Then every tensor is a matrix of its own type, and
     * activations are float32 except for c->attended. */
    bool blocks;
    struct esp_cuda_layer *layer;
    const float *norm_final, *norm_final_bias;
    const float *norm_input;   /* of EAGLE-3 */
    struct esp_cuda_matrix fc; /* of draft heads, or no data */
    const int32_t *output_of; /* (vocabulary) row of `head`, -1: none; NULL: token i is row i */
    const float *inverse_frequency, *local_inverse_frequency; /* (rotary / 2); or NULL */
    struct esp_cuda_matrix position_embedding;                /* 16 bits; or no data */
    struct esp_cuda_matrix embedding, head;                   /* the same memory if tied */
    char *memory; /* the one allocation for all of it */
    /* NULL: all layers stay on the device. Otherwise the streamed layers of `layer` point into
     * the first buffer. */
    struct esp_cuda_stream *stream;
};

/* With a limit: the most that fits in it, or the least that is possible. */
size_t esp_cuda_weights_need(const struct esp_model_desc *desc);
/* Is a matrix of the model quantised? */
bool esp_cuda_has_blocks(const struct esp_model_desc *desc);

/* ------------------------------------------------------------------ layers that do not fit */

/* NULL: no memory. */
struct esp_cuda_stream *esp_cuda_stream_open(struct esp_cuda_backend *backend, int layers,
                                             int streamed);
void esp_cuda_stream_close(struct esp_cuda_stream *stream); /* NULL is allowed */
/* For each streamed layer, in order: its size, and its pieces in the second buffer. */
void esp_cuda_stream_put(struct esp_cuda_stream *stream, int layer, size_t bytes,
                         const struct esp_cuda_layer *second);
void esp_cuda_stream_set_buffers(struct esp_cuda_stream *stream, char *first, char *second);
size_t esp_cuda_stream_host_bytes(const struct esp_cuda_stream *stream);
/* Allocates the host's memory for all of them. esp_cuda_stream_host: the place in it of a piece
 * of a layer that lies at `to` in the first buffer; NULL: the layer is not streamed. */
int esp_cuda_stream_pin(struct esp_cuda_stream *stream);
char *esp_cuda_stream_host(const struct esp_cuda_stream *stream, int layer, const void *to);
/* When all are written: requests the first ones, and measures the speed of the copies. */
int esp_cuda_stream_start(struct esp_cuda_stream *stream);
/* All but resident_bytes. */
void esp_cuda_stream_count(const struct esp_cuda_stream *stream, struct esp_streamed *streamed);

/* begin() starts a pass, which holds the layers in order. Kernels that are launched between
 * hold() and release() may use *held. */
int esp_cuda_stream_begin(struct esp_cuda_stream *stream);
int esp_cuda_stream_hold(struct esp_cuda_weights *weights, int layer,
                         const struct esp_cuda_layer **held);
int esp_cuda_stream_release(struct esp_cuda_weights *weights, int layer);

/* ------------------------------------------------------------------ one pass */

/* Arguments of softmax and top-k at the end of a draft step, see softmax.h and top_k.cu. */
struct esp_cuda_step {
    float factor; /* 1 / temperature */
    int32_t top_k;
    double top_p;
    int32_t k;
    int32_t *ids;  /* (wanted, k), pinned, likewise */
    float *values; /* (wanted, k) */
    struct esp_cuda_scratch *scratch;
};

/* The numbers that change from pass to pass. They are on the device, so that a captured graph
 * reads the values of its own launch; arrays are (max_batch). */
struct esp_cuda_pass {
    int32_t rows, first, prefix, wanted;
    int32_t words;             /* of each row's mask; 0: no masks */
    int32_t sinks, recent;     /* of a window of the text; recent = 0: none */
    int32_t dropped, shift;    /* see struct esp_window; shift = dropped % ESP_CUDA_CHUNK */
    int32_t logits_vocabulary; /* columns of a row of logits */
    float *logits;             /* rows of `logits_stride` */
    size_t logits_stride;
    /* Hidden states that the pass outputs: state[i] goes to columns i * hidden of states_to,
     * rows of `states_stride`. */
    int32_t states, state[ESP_MAX_STATES];
    float *states_to;
    size_t states_stride;
    const float *input; /* of a draft head: rows of `input_stride` */
    size_t input_stride;
    struct esp_cuda_step step;
};

/* Where the arrays of a pass lie on the device. */
struct esp_cuda_arrays {
    const struct esp_cuda_pass *pass;
    const int32_t *tokens, *positions;
    const int32_t *wanted, *wanted_at; /* batch rows with logits; their rows there */
    const int32_t *states_row;         /* of states_to for each batch row, -1: none */
    const int32_t *input_row;          /* of `input` for each batch row */
    const uint64_t *mask;              /* (rows, pass->words) */
    int32_t *seen;       /* (rows, seen_stride) cache rows seen after the prefix, ascending */
    int32_t *seen_count; /* (rows) */
    int seen_stride;
};

/* Does the window of the text leave a gap in what this row sees? */
static __device__ __forceinline__ bool esp_cuda_has_gap(const struct esp_cuda_arrays &at,
                                                        int row)
{
    return at.pass->recent > 0 && at.positions[row] >= at.pass->sinks + at.pass->recent;
}

/* A tile of pairs first..end-1, all of one expert; see experts.h. */
struct esp_cuda_tile {
    int32_t expert, first, end;
};

/* The routing of a pass, by experts.cu. A pair is a row with one of its experts. */
struct esp_cuda_routing {
    int32_t *chosen; /* (rows, used) experts, ascending */
    float *share;    /* (rows, used) of each */
    int32_t *place;  /* (rows, used) its pair */
    int32_t *row_of; /* (pairs) */
    struct esp_cuda_tile *tiles;
    int32_t *tile_count;
};

/* Arguments of a product's kernel: the tiles of pairs; without experts tiles = NULL. */
struct esp_cuda_mixture {
    const struct esp_cuda_tile *tiles;
    const int32_t *tile_count;
    const int32_t *row_of; /* of x, for each pair; NULL: its own */
};

/* The most experts of a layer, and of a row. */
enum { ESP_CUDA_EXPERTS = 1024, ESP_CUDA_EXPERTS_USED = 32 };

enum { ESP_CUDA_SLOTS = 4, ESP_CUDA_BUCKETS = 4, ESP_CUDA_LENGTHS = 16 };

struct esp_cuda_cache {
    struct esp_cache base;
    const struct esp_cuda_cache *joined_to; /* the owner of k and v, or NULL */
    int rows, max_batch;
    int chunks;        /* of ESP_CUDA_CHUNK keys in a full cache, shifted by some of them */
    size_t head_width; /* head_dim, padded to 8 */
    void *k, *v;       /* (layer, kv_head, rows, head_width) bf16 or fp16 */
    char *memory;      /* the one allocation for all of this on the device */

    size_t hidden, q_width, qkv_width, up_width, ffn; /* padded */
    size_t joined_width, outputs_width;               /* padded; 0: not needed */
    float *x;                                         /* (max_batch, hidden) residual stream */
    void *normed;   /* (max_batch, hidden) of 16 bits, or floats in a model with blocks */
    float *squares; /* (max_batch, hidden / 16) of norms in halves */
    void *normed2;  /* (max_batch, hidden) of models with a parallel residual, likewise */
    float *qkv;     /* (max_batch, qkv_width) */
    /* (max_batch + 1, rotary / 2) cosines and sines of the rows' positions, for the two kinds
     * of layers. The last row is for queries of the sinks of a window. */
    float2 *rotation, *local_rotation;
    float *together; /* (max_batch, 2) see rope.h; or NULL */
    void *attended;  /* (max_batch, q_width) */
    float *up;       /* (max_batch, up_width) of cuBLASLt products before the activation */
    void *active;    /* (max_batch, ffn), likewise */
    float *branch;   /* (max_batch, hidden) an output before it is added to x; or NULL */
    void *joined;    /* (max_batch, joined_width) what a draft head's products read; or NULL */
    float *embedded; /* (max_batch, hidden) embeddings that EAGLE-3 reads beside x; or NULL */
    float *outputs;  /* (max_batch, outputs_width) logits of some tokens only; or NULL */
    /* Of a model with blocks, for the widest matrix (of experts: for all pairs), see blocks.cu:
     */
    void *cut_words;           /* (max_batch, blocks, 64 bytes) */
    struct esp_cuda_cut *cuts; /* (max_batch, blocks) */
    void *narrow;              /* (max_batch, columns) of 16 bits */
    /* Of a mixture of experts: */
    struct esp_cuda_routing routing;
    float *routed;     /* (max_batch, experts) logits */
    size_t expert_ffn; /* padded */
    float *pair_up;    /* (pairs, 2 expert_ffn) of weights with blocks, or NULL */
    void *pair_active; /* (pairs, expert_ffn), as `active` */
    float *pair_out;   /* (pairs, hidden) */
    /* (partial_rows, heads, chunks + 1, esp_cuda_part(head_width)); the last one of the sinks
     */
    float *partial;
    unsigned *done;   /* counters of tiles of queries, see attention.h */
    int partial_rows; /* rows whose attention is computed at once */

    struct esp_cuda_arrays at;
    size_t pass_bytes;
    char *pass_device, *pass_host[ESP_CUDA_SLOTS]; /* (pass_bytes), the host's pinned */
    cudaEvent_t copied[ESP_CUDA_SLOTS];
    int slot;
    int32_t *keep_rows; /* (max_batch) on the device, part of the pass block */
    /* passes that end with logits, and draft steps; by rows (1, 4, 16, 64) and by chunks (1, 2,
     * 4, ...); NULL: not for graphs, or without room */
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

static inline const struct esp_model_desc *esp_cuda_desc_of(const struct esp_cuda_cache *c)
{
    return c->base.weights->desc;
}

/* Numbers in a part of a query's attention: head_width sums, the maximum and the weight, padded
 * so that parts are aligned to 16 bytes. */
static __host__ __device__ __forceinline__ size_t esp_cuda_part(size_t head_width)
{
    return head_width + 4;
}

/* In passes of so few rows, attention itself makes the keys of the pass (attention.h). */
enum { ESP_CUDA_FRESH = 16 };

static inline bool esp_cuda_fresh(int rows)
{
    return rows <= ESP_CUDA_FRESH;
}

/* Chooses algorithms and captures graphs for a new cache, as many as have room. */
int esp_cuda_prepare(struct esp_cuda_cache *cache);
/* esp_cuda_take_slot gives the next pinned block to write into, after its last copy has ended.
 * esp_cuda_send_slot sends `bytes` of it, from byte `at` on, to the device. */
int esp_cuda_take_slot(struct esp_cuda_cache *cache, char **slot);
int esp_cuda_send_slot(struct esp_cuda_cache *cache, size_t at, size_t bytes);

/* The launchers. Each starts one kernel (attention: two at most) on the backend's stream for
 * `rows` rows, which may be more than the pass has: kernels stop at pass->rows. T, the type of
 * weights and cache, is esp_bf16 or esp_f16. A, the type of activations, is T, or float in a
 * model with blocks. */

/* x = embedding row of each token; expands the masks into `seen`; c->rotation. Of draft heads:
 * c->joined becomes what fc reads, or x the input if fc is not used. */
template <typename T, typename A>
void esp_cuda_embed(struct esp_cuda_cache *c, bool fc, int rows);
/* A norm of the residual stream, and the number of the hidden state that it reads. */
enum { ESP_CUDA_NO_STATE = -2 };
struct esp_cuda_norm {
    const float *weight,
        *bias; /* (hidden padded); bias may be NULL. weight = NULL: the identity */
    int state;
    bool cut; /* it is also cut for products with blocks; one of them at a time (blocks.h) */
};
/* c->normed = norm[0](x), and with count = 2 c->normed2 = norm[1](x), zero in the padding.
 * Outputs the hidden states. */
template <typename A>
void esp_cuda_norms(struct esp_cuda_cache *c, const struct esp_cuda_norm *norm, int count,
                    int rows);
/* The final norm: row i of c->normed, of pass->wanted rows, is the norm of x's row wanted[i].
 * Outputs the hidden states after the last layer and after this norm. */
template <typename A> void esp_cuda_norm_final(struct esp_cuda_cache *c, int rows);
/* c->joined = [norm1 c->embedded, norm_input x] of EAGLE-3. Outputs hidden state 0. */
template <typename A> void esp_cuda_join(struct esp_cuda_cache *c, int rows);
/* Below, `held` is the layer in its place for this pass, see esp_cuda_stream_hold. In a large
 * pass, writes keys and values of c->qkv to the cache. Prepares norms over all heads.
 */
template <typename T>
void esp_cuda_rope(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, int layer,
                   int rows);
/* c->attended = attention of the queries of c->qkv over the cache, `chunks` chunks of keys at
 * most. */
template <typename T>
void esp_cuda_attention(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, int layer,
                        int rows, int chunks);
/* x += residual_scale * norm(c->branch), or of the sum of c->pair_out over each row's experts;
 * norm = NULL: the identity. next: what esp_cuda_norms does with it, or NULL. */
template <typename T>
void esp_cuda_add(struct esp_cuda_cache *c, bool experts, const float *norm,
                  const struct esp_cuda_norm *next, int rows);
/* Chooses the experts of x (rows, hidden) and makes tiles of at most `width` pairs: c->routing.
 * normed: see struct esp_cuda_product. Two kernels. */
template <typename A>
void esp_cuda_route(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, const void *x,
                    bool normed, int rows, int width);
/* Scales and caps the output of the head. Logits in c->outputs go to their tokens. */
void esp_cuda_logits(struct esp_cuda_cache *c, int rows);
/* The rest of a draft step, for logits of the model's own vocabulary. softmax takes one launch
 * or six. */
void esp_cuda_step_softmax(struct esp_cuda_cache *c, int rows);
void esp_cuda_step_top_k(struct esp_cuda_cache *c, int rows);

/* What is done with a product y = W x + bias. */
enum esp_cuda_epilogue {
    ESP_CUDA_STORE,     /* y */
    ESP_CUDA_ADD,       /* to += y */
    ESP_CUDA_GATED,     /* out = activation(gate) * up of interleaved rows */
    ESP_CUDA_ACTIVATED, /* out = activation(y) */
    ESP_CUDA_LOGITS,    /* into the rows wanted_at of pass->logits */
};

struct esp_cuda_product {
    const struct esp_cuda_matrix *w;
    const void *x; /* (rows, x_stride) */
    size_t x_stride;
    enum esp_cuda_epilogue epilogue;
    float *y; /* STORE, ADD: (rows, y_stride) */
    size_t y_stride;
    void *out; /* GATED, ACTIVATED: (rows, out_stride), padding zero */
    size_t out_stride;
    size_t columns; /* LOGITS after cuBLASLt: of a row of them */
    /* Of experts: pairs of a tile at most, and whether x has a row for each pair rather than
     * for each row of the pass; y and out have. 0: not of experts. */
    int tile;
    bool by_pair;
    bool cut; /* of weights with blocks: x has been cut by the kernel that made it */
    /* Norms in halves (norm.h), of matmul.cu only. normed: x is what a first half has left.
     * next: with ADD, the norm whose first half follows, into c->normed; or NULL. */
    bool normed;
    const struct esp_cuda_norm *next;
};

static inline struct esp_cuda_mixture esp_cuda_mixture_of(const struct esp_cuda_cache *c,
                                                          const struct esp_cuda_product *p)
{
    if (p->tile == 0)
        return {NULL, NULL, NULL};
    return {c->routing.tiles, c->routing.tile_count, p->by_pair ? NULL : c->routing.row_of};
}

/* Our own product. The order of its sums does not depend on the number of rows. */
template <typename T>
void esp_cuda_matmul(struct esp_cuda_cache *c, const struct esp_cuda_product *p, int rows);

/* Of models with blocks (blocks.cu). multiply() runs `count` products that read the same
 * activations, with matrices of any type. Their order of sums does not depend on the number of
 * rows either. activate() computes c->active from c->up (gate, then up), or with `pairs`
 * c->pair_active from c->pair_up. embed() writes the rows of a quantised embedding to c->x. */
template <typename T>
void esp_cuda_blocks_multiply(struct esp_cuda_cache *c, const struct esp_cuda_product *p,
                              int count, int rows);
void esp_cuda_blocks_activate(struct esp_cuda_cache *c, bool pairs, int rows);
void esp_cuda_blocks_embed(struct esp_cuda_cache *c, int rows);
/* Applies the epilogue to an output of cuBLASLt. */
template <typename T>
void esp_cuda_finish(struct esp_cuda_cache *c, const struct esp_cuda_product *p,
                     const float *product, size_t product_stride, int rows);

/* lt.cu: products by cuBLASLt. Algorithms are chosen per shape, once, when a cache is opened.
 */
/* Looks for cuBLASLt, once. If there is none, backend->lt stays NULL and the device's
 * description says so. */
int esp_cuda_lt_open(struct esp_cuda_backend *backend);
void esp_cuda_lt_close(struct esp_cuda_backend *backend);

struct esp_cuda_lt_product {
    bool half, add; /* fp16, else bf16; y += W x, else y = W x */
    const struct esp_cuda_matrix *w;
    const void *x; /* (rows, x_stride) */
    float *y;      /* (rows, y_stride) */
    size_t x_stride, y_stride;
    int rows, outputs; /* outputs: the first so many of w */
};

/* Chooses an algorithm for the shape of this product, if there is none yet. */
int esp_cuda_lt_choose(struct esp_cuda_backend *backend, const struct esp_cuda_lt_product *p);
/* *done is false, with ESP_OK, if cuBLASLt has no algorithm for this shape: nothing was done.
 */
int esp_cuda_lt_run(struct esp_cuda_backend *backend, const struct esp_cuda_lt_product *p,
                    bool *done);

/* ------------------------------------------------------------------ rows */

/* Pinned memory for arguments and results of calls, and as much memory on the device for
 * arguments that are worth a copy. Calls use it from front to back, and from the front again
 * once the stream is idle. So a call never overwrites the arguments of one that did not wait.
 * It grows only if a call needs more than any before. */
struct esp_cuda_transfer {
    char *host, *device; /* (bytes) */
    size_t bytes, used;
};

struct esp_cuda_rows {
    struct esp_rows base;
    size_t stride;                    /* vocabulary, padded to 32 */
    float *data;                      /* (capacity, stride) on the device */
    struct esp_cuda_scratch *scratch; /* on the device, see rows.h */
    size_t work_bytes;                /* that follow the struct */
    struct esp_cuda_transfer transfer;
};

static inline struct esp_cuda_backend *esp_cuda_of(const struct esp_rows *rows)
{
    return reinterpret_cast<struct esp_cuda_backend *>(rows->backend);
}

/* A draft step in a graph for passes of `rows` rows. fits() tells whether that is possible.
 * begin() makes room for the answers of `count` rows and fills in `made`. */
bool esp_cuda_step_fits(const struct esp_rows *logits, const struct esp_model_desc *desc,
                        const struct esp_step *step, int rows);
int esp_cuda_step_begin(struct esp_rows *logits, const struct esp_step *step, int count,
                        struct esp_cuda_step *made);
#define X(result, name, ...) result esp_cuda_##name(__VA_ARGS__);
#include "kernels/model_ops.def"
#undef X
#define X(name, ...) int esp_cuda_##name(__VA_ARGS__);
#include "kernels/row_ops.def"
#undef X

#endif
