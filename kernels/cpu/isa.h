/* isa.h - the arithmetic of the CPU backend: one table of functions per instruction set.
 *
 * kernels/cpu/isa is compiled once per instruction set (see simd.h); cpu.c chooses a table when
 * a backend opens. All tables except AMX's give bit-identical results. These functions do not
 * allocate memory, start threads or check their arguments. forward.c and rows.c do that, and
 * tell every function which part of the work to do.
 *
 * Vectors of activations are padded with zeros to a multiple of ESP_PANEL, so that whole
 * registers can be read and written.
 */
#ifndef ESP_CPU_ISA_H
#define ESP_CPU_ISA_H

#include "kernels/kernels.h"

enum {
    ESP_LANES = 16,  /* floats computed together; a sum has a partial sum for each lane */
    ESP_PANEL = 32,  /* outputs of a matrix product that are computed together */
    ESP_QUERIES = 4, /* query heads that share one pass over a key/value head */
    ESP_CUT_COLUMNS =
        32, /* activations that share an exponent in products with quantised blocks */
    ESP_TOGETHER = 32, /* maximum number of rows that share one unpacked block of weights */
};

/* A weight matrix in its own dtype, in panels of 32 outputs. Within a panel the inputs are in
 * order. BF16 outputs j and j + 16 of a panel share a 32-bit word (j in the low half), so that
 * a shift and a mask expand them. blocks.c describes quantised blocks. Outputs after the first
 * `rows` are zero. */
struct esp_packed {
    enum esp_dtype dtype;
    int rows, columns, panels;
    int first;  /* output 0 of this matrix is output `first` of the model's matrix */
    bool pairs; /* packed for tiles: see amx.c */
    /* Shape: (panels, columns, 32); for quantised types (panels, columns / block, fields). */
    const void *data;
    const float *bias; /* (panels * 32); zeros if the model has no bias here */
    /* For a streamed layer, this is the matrix as its file stores it, and `data` is not set
     * (see esp_cpu_pack_stored()). For other layers, this is NULL. */
    const struct esp_tensor *stored;
};

/* A quantised block: ESP_CUT_COLUMNS activations as integers with a common scale. The form of x
 * depends on the instruction set, so only functions of one set write and read a block. */
struct esp_cut {
    float scale;      /* activation = scale * integer; NaN if an activation is not finite */
    float less_total; /* -scale * sum of the integers */
    int32_t less_8, less_16, less_128;     /* sum of the integers, times -8, -16 and -128 */
    int32_t first_less_32, second_less_32; /* sums of the first and the last 16, times -32 */
    int32_t unused;
    /* int16_t x[ESP_CUT_COLUMNS], in the order and form that the instruction set needs. If
     * esp_vectors.bytes is set, this is int8_t x[ESP_CUT_COLUMNS] in order, and the struct ends
     * after these bytes. */
    int16_t x[ESP_CUT_COLUMNS];
};

/* Padded vectors of activations. If a product needs them split or quantised, the struct also
 * holds the output of split() or cut(). */
struct esp_vectors {
    float *x;            /* (rows, stride) */
    size_t stride;       /* a multiple of ESP_PANEL */
    void *parts;         /* output of split(): esp_parts_bytes(rows, stride), zeroed once */
    struct esp_cut *cut; /* output of cut(): esp_cut_count(rows, stride), see esp_cut_at() */
    int together;        /* number of rows whose quantised blocks are adjacent */
    bool bytes;          /* cut() makes integers of 8 bits instead of 16 */
};

/* Describes the product y[i] = W x[i] + bias for `rows` vectors. If `add` is set, the product
 * is added: y[i] += W x[i] + bias. Row i of the result is row i of y, or row y_row[i] if y_row
 * is not NULL. */
struct esp_matmul {
    struct esp_vectors in;
    float *y;
    size_t y_stride;
    const int32_t *y_row;
    int rows;
    bool add;
    bool tiles; /* use the tile unit for quantised blocks, if the instruction set has two_ways
                   (see ways.h); the results are bit-identical */
};

/* Describes attention of up to ESP_QUERIES queries of one key/value head. Query i attends to
 * cache rows 0..contiguous[i]-1, and then to rows extra[i][0..extras[i]-1], which are
 * ascending. The order of every sum depends on the index of a row in this sequence, not on the
 * cache row. Rows with an index from sinks to from[i]-1 in the sequence are outside of the
 * query's window. They are ignored, but their keys and values must be finite. If for_sinks[i]
 * is not NULL, it replaces q[i] for indices 0..sinks-1. */
struct esp_attention {
    int head_dim, queries;
    int blocks;     /* number of key blocks; they contain all rows to which a query attends */
    const float *k; /* (position / 16, head_dim, 16) */
    const float *v; /* (position, v_stride) */
    size_t v_stride;
    const float *q[ESP_QUERIES]; /* (head_dim) rotated, scaled by 1 / sqrt(head_dim) */
    float *out[ESP_QUERIES];     /* (head_dim) */
    int contiguous[ESP_QUERIES], extras[ESP_QUERIES];
    const int32_t *extra[ESP_QUERIES];
    int sinks, from[ESP_QUERIES];        /* if from[i] <= sinks, query i attends to all rows */
    const float *for_sinks[ESP_QUERIES]; /* (head_dim) rotated, scaled like q; or NULL */
    /* An additional score for each query, which takes part in the softmax but belongs to no
     * row. NULL if there is none. */
    const float *sink_logit[ESP_QUERIES];
    float cap;     /* scores x become cap * tanh(x / cap); 0 means scores are not capped */
    float *scores; /* (queries, scores_stride >= blocks * 16) scratch memory */
    size_t scores_stride;
};

/* In the following structs, a part of a state consists of 16 value columns of one head, stored
 * as (keys, 16). `keys` is key_dim, a multiple of 4. The formulas are described at enum
 * esp_mixer and in kernels/state_plan.h. */

/* Describes the product of a part of a state with `count` vectors, which are keys and queries
 * of rows. Output i is the sum over k of with[i][k] times row k of the state. */
struct esp_state_read {
    int keys, count;
    const float *state;       /* (keys, 16) */
    const float *const *with; /* (count) pointers to (keys) */
    float *const *out;        /* (count) pointers to (16) */
};

/* Describes how the update and the output of a row are computed for 16 columns. The inputs are
 * the values that the row reads from the state before its chunk, and the updates of its
 * `ancestors` in the chunk, the nearest ancestor first. by_key[i] and by_query[i] are the
 * products of the row's key and query with the key of ancestor i, times the decay since that
 * ancestor. `left` is the decay since the chunk began: the fraction of the chunk's initial
 * state that remains at this row. */
struct esp_state_update {
    int ancestors;
    const float *const *before;     /* (ancestors) updates of the ancestors: pointers to (16) */
    const float *by_key, *by_query; /* (ancestors); by_key is NULL for ESP_MIXER_SSM */
    float left, write, own, skip;   /* own: key times query; skip: factor of `value` in `out` */
    const float *value;             /* (16) */
    float *update; /* (16) in: what the key recalled from the state; out: the update */
    float *out;    /* (16) in: what the query read from the state; out: the output */
};

/* Describes how the updates of a chunk are added to a part of a state, the oldest update first.
 * `from` and `to` can be the same memory. `left` is the fraction of `from` that remains after
 * the chunk. weight[i] is the factor of update i. */
struct esp_state_fold {
    int keys;
    const float *from; /* (keys, 16) */
    float *to;         /* (keys, 16) */
    float left, weight[ESP_STATE_CHUNK];
    const float *key[ESP_STATE_CHUNK];    /* pointers to (keys) */
    const float *update[ESP_STATE_CHUNK]; /* pointers to (16) */
};

struct esp_cpu_gradients;

struct esp_cpu_isa {
    const char *name; /* as shown to users, e.g. "AVX-512" */
    bool pairs;       /* BF16 matrices must be packed for tiles */
    bool two_ways;    /* quantised products can work with or without tiles (esp_matmul.tiles) */

    /* Splits each number in columns begin..end-1 of vector `row` into BF16 parts, which the
     * products multiply. NULL means that products multiply the numbers themselves. */
    void (*split)(const struct esp_vectors *vectors, int row, int begin, int end);
#define X(place, result, name, ...) result (*name)(__VA_ARGS__);
#include "kernels/cpu/isa/isa_ops.def"

    const struct esp_cpu_gradients *gradients; /* for training; see gradients.h */
};

/* A build defines only some of these tables. Table amx (amx.c) uses functions of table vnni.
 * Only the build of the tests has `tiles` and `dpbusd`. `tiles` is amx, but the instructions of
 * the tile unit are emulated in C (tests/emu/tiles.h). `dpbusd` is avxvnni, but its instruction
 * is emulated (tests/emu/dpbusd.h). */
extern const struct esp_cpu_isa esp_cpu_isa_generic, esp_cpu_isa_avx2, esp_cpu_isa_avxvnni,
    esp_cpu_isa_avx512, esp_cpu_isa_vnni, esp_cpu_isa_amx, esp_cpu_isa_tiles,
    esp_cpu_isa_dpbusd, esp_cpu_isa_neon, esp_cpu_isa_dotprod, esp_cpu_isa_i8mm;

/* Returns the quantised block that is `count` blocks after x. Blocks of 8-bit integers are
 * shorter: each is one cache line. */
static inline struct esp_cut *esp_cut_skip(const struct esp_cut *x, size_t count, bool bytes)
{
    const size_t size = sizeof *x - (bytes ? ESP_CUT_COLUMNS : 0);
    return (struct esp_cut *)(void *)((char *)(void *)x + count * size);
}

/* Returns block `block` (ESP_CUT_COLUMNS columns) of a quantised row. Rows are in groups of
 * v->together; the blocks of a group are stored as (block, row). */
static inline struct esp_cut *esp_cut_at(const struct esp_vectors *v, int row, int block)
{
    const size_t blocks = v->stride / ESP_CUT_COLUMNS, t = (size_t)v->together;
    const size_t first = (size_t)row / t * t * blocks;
    return esp_cut_skip(v->cut, first + (size_t)block * t + (size_t)row % t, v->bytes);
}

/* Returns the value of esp_vectors.together for a batch of `rows` rows. */
static inline int esp_cut_together(int rows)
{
    return rows < ESP_TOGETHER ? rows : ESP_TOGETHER;
}

/* Returns the number of quantised blocks in the memory that `rows` vectors need. */
static inline size_t esp_cut_count(size_t rows, size_t stride)
{
    return (rows + ESP_TOGETHER - 1) / ESP_TOGETHER * ESP_TOGETHER * (stride / ESP_CUT_COLUMNS);
}

/* Returns the size in bytes of the parts of `rows` vectors. A vector has two BF16 parts, and
 * the parts are stored in whole tiles of 16. */
static inline size_t esp_parts_bytes(size_t rows, size_t stride)
{
    return (2 * rows + ESP_LANES - 1) / ESP_LANES * ESP_LANES * stride * sizeof(uint16_t);
}

#endif
