/* isa.h - the arithmetic of the CPU backend: one table of functions per instruction set.
 *
 * kernels/cpu/isa is compiled once per instruction set (see simd.h); cpu.c picks a table when a
 * backend opens. All tables except AMX's give the same bits. Nothing here allocates, starts
 * threads or checks its arguments: forward.c and rows.c do that, and give every function its
 * share of the work.
 *
 * Vectors of activations are padded with zeros to a multiple of ESP_PANEL, so that whole
 * registers can be read and written.
 */
#ifndef ESP_CPU_ISA_H
#define ESP_CPU_ISA_H

#include "kernels/kernels.h"

enum {
    ESP_LANES = 16,  /* floats computed together; reductions are defined over this many lanes */
    ESP_PANEL = 32,  /* outputs of a matrix product computed together */
    ESP_QUERIES = 4, /* query heads that share one pass over a key/value head */
    ESP_CUT_COLUMNS =
        32, /* activations that share an exponent in products with quantised blocks */
    ESP_TOGETHER = 32, /* rows that a block of weights is multiplied by at once */
};

/* A weight matrix in panels of 32 outputs, inputs in order within a panel, in its own dtype.
 * BF16 outputs j and j + 16 of a panel share a 32-bit word (j in the low half): a shift and a
 * mask expand them. Quantised blocks: see blocks.c. Outputs past `rows` are zero. */
struct esp_packed {
    enum esp_dtype dtype;
    int rows, columns, panels;
    int first;  /* output 0 of this is output `first` of the model's matrix */
    bool pairs; /* packed for tiles: see amx.c */
    const void
        *data; /* (panels, columns, 32), or of blocks (panels, columns / block, fields) */
    const float *bias; /* (panels * 32), zeros if the model has none */
    /* NULL; or the matrix as its file has it, of a layer that is streamed: no data, see
     * esp_cpu_pack_stored() */
    const struct esp_tensor *stored;
};

/* ESP_CUT_COLUMNS activations as integers and a scale. A function of an instruction set reads
 * what another function of the same set wrote. */
struct esp_cut {
    float scale;      /* activation = scale * integer; NaN if one of them is no finite number */
    float less_total; /* -scale * sum of the integers */
    int32_t less_8, less_16, less_128;     /* sum of the integers times -8, .. */
    int32_t first_less_32, second_less_32; /* of the first and the last 16 of them */
    int32_t unused;
    /* int16_t x[ESP_CUT_COLUMNS], in the order and form that the instruction set wants; or
     * int8_t, where esp_vectors.bytes is set, in their own order, and then no more follows */
    int16_t x[ESP_CUT_COLUMNS];
};

/* Vectors of activations, padded, and the outputs of split() and cut() for products that need
 * them. */
struct esp_vectors {
    float *x;            /* (rows, stride) */
    size_t stride;       /* a multiple of ESP_PANEL */
    void *parts;         /* esp_parts_bytes(rows, stride), zeroed once */
    struct esp_cut *cut; /* esp_cut_count(rows, stride), see esp_cut_at() */
    int together;        /* rows of cut that are adjacent */
    bool bytes;          /* cut() makes integers of 8 bits instead of 16 */
};

/* y[i] = W x[i] + bias for `rows` vectors, or y[i] += that. Row i of y is y_row[i] if given. */
struct esp_matmul {
    struct esp_vectors in;
    float *y;
    size_t y_stride;
    const int32_t *y_row;
    int rows;
    bool add;
    bool tiles; /* of quantised blocks: on the tile unit, where the instruction set has
                   two_ways; see ways.h. Results are the same bits. */
};

/* Up to ESP_QUERIES queries that read the same key/value head. Query i sees cache rows
 * 0..contiguous[i]-1 and then extra[i][0..extras[i]-1], ascending. The index in that sequence,
 * not the cache row, decides the order of every sum. Indices sinks..from[i]-1 are outside of
 * its window: they are ignored, but must be finite. If query i has for_sinks[i], that replaces
 * it for indices 0..sinks-1. */
struct esp_attention {
    int head_dim, queries;
    int blocks;     /* key blocks that hold all rows seen */
    const float *k; /* (position / 16, head_dim, 16) */
    const float *v; /* (position, v_stride) */
    size_t v_stride;
    const float *q[ESP_QUERIES]; /* (head_dim) rotated, scaled by 1 / sqrt(head_dim) */
    float *out[ESP_QUERIES];     /* (head_dim) */
    int contiguous[ESP_QUERIES], extras[ESP_QUERIES];
    const int32_t *extra[ESP_QUERIES];
    int sinks, from[ESP_QUERIES];        /* from[i] <= sinks: it sees all */
    const float *for_sinks[ESP_QUERIES]; /* (head_dim) as q, or NULL */
    /* An additional score per query that belongs to no row but takes part in the softmax; NULL:
     * none. */
    const float *sink_logit[ESP_QUERIES];
    float cap;     /* scores x become cap * tanh(x / cap); 0: they stay */
    float *scores; /* (queries, scores_stride), scratch for blocks * 16 each */
    size_t scores_stride;
};

struct esp_cpu_gradients;

struct esp_cpu_isa {
    const char *name; /* for users: "AVX-512" */
    bool pairs;       /* wants BF16 matrices packed for tiles */
    bool two_ways;    /* matmul_blocks() heeds esp_matmul.tiles */

    /* Splits columns begin..end-1 of vector `row` for products. NULL: products take whole
     * vectors. */
    void (*split)(const struct esp_vectors *vectors, int row, int begin, int end);
#define X(place, result, name, ...) result (*name)(__VA_ARGS__);
#include "kernels/cpu/isa/isa_ops.def"
#undef X

    const struct esp_cpu_gradients *gradients; /* of training; see gradients.h */
};

/* Only those of this build are defined. amx (amx.c) uses vnni. Only the tests' build has tiles,
 * which is amx with the tile unit's instructions in C (tests/emu/tiles.h), and dpbusd, which is
 * avxvnni with its instruction emulated (tests/emu/dpbusd.h). */
extern const struct esp_cpu_isa esp_cpu_isa_generic, esp_cpu_isa_avx2, esp_cpu_isa_avxvnni,
    esp_cpu_isa_avx512, esp_cpu_isa_vnni, esp_cpu_isa_amx, esp_cpu_isa_tiles,
    esp_cpu_isa_dpbusd, esp_cpu_isa_neon, esp_cpu_isa_dotprod, esp_cpu_isa_i8mm;

/* The cut `count` places after x. Cuts of bytes are shorter: each is one cache line. */
static inline struct esp_cut *esp_cut_skip(const struct esp_cut *x, size_t count, bool bytes)
{
    const size_t size = sizeof *x - (bytes ? ESP_CUT_COLUMNS : 0);
    return (struct esp_cut *)(void *)((char *)(void *)x + count * size);
}

/* Up to ESP_TOGETHER rows are adjacent, (block, row); `together` is the same for all rows. */
static inline struct esp_cut *esp_cut_at(const struct esp_vectors *v, int row, int block)
{
    const size_t blocks = v->stride / ESP_CUT_COLUMNS, t = (size_t)v->together;
    const size_t first = (size_t)row / t * t * blocks;
    return esp_cut_skip(v->cut, first + (size_t)block * t + (size_t)row % t, v->bytes);
}

/* Adjacent rows for a batch of `rows`, and the room of all of them. */
static inline int esp_cut_together(int rows)
{
    return rows < ESP_TOGETHER ? rows : ESP_TOGETHER;
}

static inline size_t esp_cut_count(size_t rows, size_t stride)
{
    return (rows + ESP_TOGETHER - 1) / ESP_TOGETHER * ESP_TOGETHER * (stride / ESP_CUT_COLUMNS);
}

/* Bytes of `rows` vectors split: two BF16 parts of each, in whole tiles of 16 parts. */
static inline size_t esp_parts_bytes(size_t rows, size_t stride)
{
    return (2 * rows + ESP_LANES - 1) / ESP_LANES * ESP_LANES * stride * sizeof(uint16_t);
}

#endif
