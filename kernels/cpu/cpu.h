/* cpu.h - declares the structs and functions that the files of the CPU backend share.
 *
 * backend.c opens the backend, cpu.c chooses an instruction set, weights.c loads a model,
 * pack.c packs its matrices, cache.c stores keys and values, forward.c runs a batch through the
 * model on the threads of pool.c, and rows.c computes on rows of logits. The arithmetic is in
 * the functions of struct esp_cpu_isa. The structs here begin with the public structs of
 * kernels.h, so a pointer to a struct is also a pointer to its public part.
 */
#ifndef ESP_CPU_H
#define ESP_CPU_H

#include "kernels/cpu/isa.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/states.h"
#include "kernels/cpu/stream.h"
#include "kernels/ranks/desc_wire.h"
#include "kernels/ranks/rank_plan.h"
#include "kernels/ranks/ranks.h"

enum { ESP_PACKED_TOGETHER = 4 }; /* panels of a streamed matrix that are packed in one step */

struct esp_cpu_backend {
    struct esp_backend base;
    const struct esp_cpu_isa *isa;
    struct esp_pool *pool;
    bool exact;            /* requested by set_exact() */
    int threads;           /* number of threads of the pool */
    double worth_a_thread; /* multiply-adds that make one more thread worthwhile */
    char device[64];
    char way_key[128]; /* see esp_backend_ops; "" if products can be computed in one way only */
    struct esp_way_times way_times;
    char failure[400];       /* why the last failed pass failed, or "" */
    struct esp_ranks *ranks; /* the group of ranks that this process belongs to, or NULL */
    struct esp_rank_options rank_options;
    double read_rates[ESP_MAX_RANKS]; /* measured memory read rate of each rank, in bytes/s */
    int last_id;                      /* the id last given to weights or a cache of the ranks */
    double start_seconds;             /* time to start the ranks and load their models */
    struct esp_cpu_weights *divided;  /* the last weights that were divided; see next_divided */
};

struct esp_cpu_expert {
    struct esp_packed gate, up, down;
};

struct esp_cpu_layer {
#define X(name) const float *name; /* padded, or NULL */
    ESP_LAYER_VECTORS(X)
#undef X
    int place; /* index among the layers with attention, or among the recurrent layers */
    struct esp_packed query, key, value, attention_gate, output, gate, up, down;
    struct esp_packed conv_in, in_gate, out_gate, write, decay, mixed;
    const float *conv; /* (conv_kernel, channels, padded), or NULL */
    struct esp_packed router, shared_gate;
    struct esp_cpu_expert *expert; /* (experts), or NULL */
};

struct esp_cpu_weights {
    struct esp_weights base;
    struct esp_cpu_layer *layer; /* (layers) */
    const float *norm_final, *norm_final_bias, *norm_embedding, *norm_input;
    const float *norm_fc[ESP_FC_NORMS];
    struct esp_packed head, fc;
    /* (vocabulary, hidden), a copy; if it has no data, rows are read from `embedding_head` */
    struct esp_tensor embedding;
    struct esp_tensor position_embedding; /* a copy; has no data if the model has none */
    const struct esp_packed *embedding_head;
    bool split;                    /* true: products need vectors split into BF16 parts */
    bool cut;                      /* true: a product needs quantised vectors */
    bool cut_bytes;                /* true: a product needs vectors quantised to 8 bits */
    unsigned block_types;          /* bit t is set if a matrix has the quantised type t */
    double work_layers, work_head; /* multiply-adds for a row: in all layers; in the LM head */
    void *memory;
    /* NULL if there is no memory limit. */
    struct esp_cpu_stream *stream;
    char *packing; /* (threads, packing_bytes) for esp_cpu_pack_stored() */
    size_t packing_bytes;
    /* The plan, the index of this rank, and the id of these weights in orders to ranks. If the
     * weights are not divided among ranks, these are NULL and 0. */
    const struct esp_rank_plan *plan;
    int rank, id;
    /* Only in rank 0: the previous weights in the list of divided weights, and the description
     * of these weights as it was sent to the other ranks. The description is stored because the
     * model's files are closed when the description is needed again. */
    struct esp_cpu_weights *next_divided;
    struct esp_wire told;
};

struct esp_cpu_cache {
    struct esp_cache base;
    struct esp_cpu_cache *joined_to; /* the owner of k, v and states; NULL means this cache */
    int rows, max_batch, id;         /* id: see struct esp_cpu_weights */
    int start;                       /* `esp_rank_times.starts` when the cache was opened */
    int kv_begin, kv_heads;       /* this rank's key/value heads: the first, and their number */
    int blocks;                   /* number of blocks of 16 rows */
    size_t v_stride;              /* head_dim, padded to 16 */
    float *k;                     /* (attention layer, own kv_head, block, head_dim, 16) */
    float *v;                     /* (attention layer, own kv_head, block * 16, v_stride) */
    struct esp_cpu_states states; /* states of recurrent layers */

    /* Buffers of a forward pass; every width is padded to ESP_PANEL. */
    size_t hidden, q_width, kv_width, ffn; /* padded widths */
    float *x;                              /* (max_batch, hidden) the residual stream */
    float *q;                              /* (max_batch, q_width) */
    float *for_sinks;                      /* (max_batch, q_width), see struct esp_attention */
    float *key, *value;                    /* (max_batch, kv_width) */
    float *gate;                           /* (max_batch, ffn) */
    float *branch; /* (max_batch, hidden) values to add to x; NULL if not needed */
    /* (1 or 2 sets of frequencies, max_batch + 1, rotary / 2), see esp_cpu_row_for_sinks() */
    float *cosine, *sine;
    struct esp_vectors normed;   /* (max_batch, hidden) */
    struct esp_vectors attended; /* (max_batch, q_width) */
    float *attention_gate;       /* (max_batch, q_width), or NULL */
    struct esp_vectors mixed;    /* (max_batch, states.out) output of a recurrent mixer */
    struct esp_vectors up;       /* (max_batch, ffn) */
    /* Used for a mixture of experts; NULL in other models. */
    float *routed;                /* (max_batch, experts, padded) logits, then weights */
    int32_t *chosen;              /* (max_batch, experts_used) the experts that a row chose */
    int32_t *choosers;            /* (max_batch) the rows that chose an expert */
    struct esp_vectors expert_in; /* (max_batch, hidden) the inputs of those rows */
    float *expert_out;            /* (max_batch, hidden) the expert's outputs for them */
    struct esp_vectors joined;    /* (max_batch, widest) inputs joined into one vector */
    float *scores;                /* (threads, ESP_QUERIES, blocks * 16) */
    int32_t *extra;               /* (threads, ESP_QUERIES, rows) */
    int32_t *wanted;              /* (max_batch) batch rows that need logits */
    int32_t *wanted_at;           /* (max_batch) their rows in the logits matrix */
    int32_t *going;               /* (max_batch) rows that need the whole last layer */
    /* For divided weights: an order to the ranks and, in ranks other than 0, this rank's part
     * of the logits. */
    char *order;        /* esp_cpu_order_bytes() */
    float *part_logits; /* (part_rows, outputs of this rank, padded), grows as needed */
    int part_rows;
};

struct esp_cpu_rows {
    struct esp_rows base;
    size_t stride; /* vocabulary, padded to ESP_PANEL */
    float *data;   /* (capacity, stride) */
    void *scratch; /* (threads, 2 * vocabulary) 32-bit words */
};

static inline float *esp_cpu_row(const struct esp_rows *rows, int which)
{
    const struct esp_cpu_rows *r = (const struct esp_cpu_rows *)rows;
    return r->data + (size_t)which * r->stride;
}

/* Returns the index in k and v of one of this rank's key/value heads. */
static inline size_t esp_cpu_kv_head(const struct esp_cpu_cache *c, int layer, int kv_head)
{
    return (size_t)layer * (size_t)c->kv_heads + (size_t)(kv_head - c->kv_begin);
}

/* These functions do the work of weights_open(), weights_close(), cache_open(),
 * cache_join(), cache_close(), keep(), forward(), fold(), state_save() and state_load() in
 * one rank, or without ranks. `plan` may be NULL; otherwise it must outlive the weights. */
int esp_cpu_weights_load(struct esp_weights **weights, struct esp_backend *backend,
                         const struct esp_model_desc *desc, const struct esp_rank_plan *plan,
                         esp_progress *progress, void *user, char *err, size_t errlen);
void esp_cpu_weights_drop(struct esp_weights *weights);
/* owner: the cache that the new cache joins, or NULL. */
int esp_cpu_cache_make(struct esp_cache **cache, struct esp_weights *weights,
                       struct esp_cache *owner, int rows, int max_batch, char *err,
                       size_t errlen);
void esp_cpu_cache_drop(struct esp_cache *cache);
int esp_cpu_cache_keep(struct esp_cache *cache, int first, const int32_t *which, int count);
int esp_cpu_pass(struct esp_cache *cache, const struct esp_batch *batch);
int esp_cpu_states_fold(struct esp_cache *cache, int prefix, int dropped);
int esp_cpu_states_save(struct esp_cache *cache, int slot, int length);
int esp_cpu_states_load(struct esp_cache *cache, int slot);

/* Returns the maximum size of an order to run a pass, in bytes (pass_order.h). */
size_t esp_cpu_order_bytes(int rows, int max_batch);

/* This function is defined in ways.c. struct esp_backend_ops describes it. */
const char *esp_cpu_way_key(const struct esp_backend *backend);
/* These functions are defined in states.c or pass_mixer.c. Operations that other ranks must
 * repeat are defined in orders.c. struct esp_backend_ops describes all of them. */
size_t esp_cpu_state_bytes(const struct esp_model_desc *desc);
size_t esp_cpu_checkpoint_bytes(const struct esp_model_desc *desc);
int esp_cpu_fold(struct esp_cache *cache, int prefix, int dropped);
int esp_cpu_state_save(struct esp_cache *cache, int slot, int length);
int esp_cpu_state_load(struct esp_cache *cache, int slot);
int esp_cpu_measure_ways(struct esp_weights *weights, struct esp_way_times *times);

/* Opens a backend with this instruction set (esp_cpu_isa_name()); NULL means the best one.
 * Returns ESP_E_DEVICE if the processor lacks it. `threads` is the number of threads, even if
 * there are fewer cores; 0 means one thread per performance core. esp_backend_cpu.open() takes
 * the name of the instruction set from the environment variable ESPALIER_ISA. */
int esp_cpu_open(struct esp_backend **backend, const char *isa, int threads, char *err,
                 size_t errlen);

/* Returns the name of the i-th instruction set of this build and processor, or NULL after the
 * last. On x86 the names are "amx", "vnni", "avx512", "avxvnni" and "avx2"; on ARM "i8mm",
 * "dotprod" and "neon"; everywhere "generic"; in the tests' build also "dpbusd" and "tiles".
 */
const char *esp_cpu_isa_name(int i);
/* Sets *isa to the instruction set with this name; NULL means the best one. Returns 0, or
 * ESP_E_DEVICE with a sentence in err if this processor or this build lacks it. */
int esp_cpu_choose(const struct esp_cpu_isa **isa, const char *name, char *err, size_t errlen);
/* Sets way_key, a text that names the processor, the instruction set and the code's version. */
void esp_cpu_name_ways(struct esp_cpu_backend *cpu);

/* Returns the best available instruction set among those with bit-identical results. */
const struct esp_cpu_isa *esp_cpu_vectors(void);

/* Allocates zeroed memory that is aligned to a cache line. Returns NULL if memory runs out or
 * count * size overflows. */
void *esp_cpu_alloc(size_t count, size_t size);
void esp_cpu_free(void *memory);

/* Returns n rounded up to a multiple of `step`. */
static inline size_t esp_cpu_pad(int n, int step)
{
    return ((size_t)n + (size_t)step - 1) / (size_t)step * (size_t)step;
}

/* Divides `total` items into `parts` parts. Sets *begin and *end so that part number `part`
 * consists of items *begin..*end-1. */
static inline void esp_cpu_share(int total, int part, int parts, int *begin, int *end)
{
    *begin = (int)((int64_t)total * part / parts);
    *end = (int)((int64_t)total * (part + 1) / parts);
}

/* Packs the 32 rows of panel number `panel` into w->data. `rows` are these rows of the matrix
 * in stored form, one after another. w->data has room for esp_cpu_panel_bytes() per panel. */
void esp_cpu_pack(const struct esp_packed *w, int panel, const void *rows);
size_t esp_cpu_panel_bytes(const struct esp_packed *w);
/* Packs panels begin..begin+count-1 of a streamed matrix into `room`, which has
 * esp_cpu_stored_room() bytes, and makes *part a matrix of these panels. count is at most
 * ESP_PACKED_TOGETHER. */
void esp_cpu_pack_stored(struct esp_packed *part, const struct esp_packed *w, int begin,
                         int count, char *room);
size_t esp_cpu_stored_room(const struct esp_packed *w);
/* Writes one row of a packed matrix as floats: out (columns). */
void esp_cpu_packed_row(const struct esp_packed *w, int row, float *out);

/* Requests large memory pages, which avoid most TLB misses of matrix products. */
void esp_cpu_use_huge_pages(char *memory, size_t bytes);
/* Writes the embedding of a token as floats: out (hidden). */
void esp_cpu_embedding(const struct esp_cpu_weights *w, int32_t token, float *out);
#define X(result, name, ...) result esp_cpu_##name(__VA_ARGS__);
#include "kernels/model_ops.def"
#define X(name, ...) int esp_cpu_##name(__VA_ARGS__);
#include "kernels/row_ops.def"

#endif
