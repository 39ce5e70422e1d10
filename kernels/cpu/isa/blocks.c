/* blocks.c - computes matrix products with quantised weights, which are never expanded to
 * floats in memory.
 *
 * The activations of 32 columns become integers with one scale (cut()). With integers of 16
 * bits, the scale is a power of two, and rounding errors are at most 2^-15 of the largest
 * activation. With integers of 8 bits (esp_vectors.bytes), the scale is 1/127 of the largest
 * activation. Products with 8 bits take half the work. Their rounding error is small compared
 * with the error of weights of 4 to 6 bits. The weights of 32 columns are small integers with
 * one scale, or with two scales for 16 columns each. So the dot product of a block is an exact
 * integer, which does not depend on the order or on the instruction set. From these integers,
 * an output is computed in float32, block after block, starting from the bias:
 *
 *     sum <- fma(integer, scale of the weights * scale of the activations, sum)
 *     sum <- fma(minimum of the weights, -total of the activations, sum)    Q4_K, Q5_K
 *
 * The results of a row are bit-identical on every instruction set and in any batch.
 *
 * Weights are unsigned bytes here. If the weights of a format are signed, an offset is added to
 * them, and the offset times the sum of the activations is subtracted from the integer. (On ARM
 * weights are signed: see OFFSET.) Sixteen outputs are computed together. The bytes of a block
 * are unpacked once into registers and used for up to ESP_TOGETHER rows.
 *
 * With ESP_AMX the tile unit computes the integers. One operand contains the unpacked bytes of
 * a block, and the other contains the activations of several rows. 256 columns of a panel are
 * unpacked once for up to AT_ONCE rows. The unit multiplies signed bytes, so the offset is
 * subtracted when weights are unpacked. The sums of a tile of rows by sixteen outputs stay in
 * registers over these 256 columns. While the unit multiplies one block, the integers of the
 * previous block are scaled. VNNI instructions are another way to compute the same results; see
 * kernels/cpu/ways.h.
 *
 * In the packed form (kernels/cpu/pack.c), the blocks of a panel of 32 outputs are stored one
 * after another. A block contains the fields of the format, each for all 32 outputs. Fields of
 * 1 or 2 bytes are stored as (field, 32), and 4-byte words as (half of the panel, word, 16).
 */
#include "kernels/cpu/isa/bytes.h"
#include "kernels/cpu/isa/parts.h"
#ifdef ESP_AMX
#include "kernels/cpu/isa/tiles.h"
#endif

/* A panel is computed in this many parts, one after the other. */
enum { PARTS = ESP_SIMD == 4 ? 2 : 1 };

enum { NEAR = 1024, FAR = 8192, LINE = 64, HALF = 32 };

/* Loops over the eight parts of a block. The code for a part depends only on its index modulo
 * `some`, so it is enough to unroll `some` iterations. More iterations would not fit in the
 * instruction cache. */
#define FOR_EIGHT(i, some)                                                                     \
    _Pragma("GCC unroll 1") for (int first_ = 0; first_ < 8; first_ += some)                   \
        UNROLL for (int i = first_; i < first_ + some; i++)

/* ------------------------------------------------------------------ activations */

/* Returns the bits of the largest absolute value in a block. The bits of infinity and NaN are
 * larger than the bits of any number. */
V16 uint32_t largest_bits(const float *x)
{
    uint32_t most = 0;
    for (int i = 0; i < ESP_CUT_COLUMNS; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0x7fffffffu;
        most = bits > most ? bits : most;
    }
    return most;
}

/* Returns x * up, rounded to an integer. The magnitude of x * up must be at most 2^22. */
V16 int16_t to_integer(float x, float up)
{
    const float shifted = x * up + V16_ROUND;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return (int16_t)(bits - 0x4b400000);
}

V16 void store_totals(struct esp_cut *out, const int16_t q[ESP_CUT_COLUMNS], float scale)
{
    int32_t first = 0, second = 0;
    for (int i = 0; i < ESP_CUT_COLUMNS / 2; i++) {
        first += q[i];
        second += q[i + ESP_CUT_COLUMNS / 2];
    }
    out->scale = scale;
    out->less_total = -(float)(first + second) * scale;
    out->less_8 = -8 * (first + second);
    out->less_16 = -16 * (first + second);
    out->less_128 = -128 * (first + second);
    out->first_less_32 = -32 * first;
    out->second_less_32 = -32 * second;
}

/* Returns the common exponent of the numbers of a block, or 0 if a number is not finite. For
 * each number x, |x| 2^(141 - exponent) rounds to at most 32512. This limit is chosen so that
 * the integer can be written as 256 high + low with two signed bytes. */
V16 uint32_t common_exponent(const float *x)
{
    const uint32_t most = largest_bits(x);
    return most >= 0x7f800000u            ? 0
           : (most + 0x1ffffu) >> 23 < 15 ? 15
                                          : (most + 0x1ffffu) >> 23;
}

V16 float power_of_two(uint32_t exponent)
{
    const uint32_t bits = exponent << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

V16 void cut_block(struct esp_cut *out, const float *x)
{
    const uint32_t exponent = common_exponent(x);
    const float scale = exponent ? power_of_two(exponent - 14) : NAN;
    const float up = exponent ? power_of_two(268 - exponent) : 0.0f;
    int16_t q[ESP_CUT_COLUMNS];
    for (int i = 0; i < ESP_CUT_COLUMNS; i++)
        q[i] = to_integer(exponent ? x[i] : 0.0f, up);
    s16_store_block(out->x, q);
    store_totals(out, q, scale);
}

/* Quantises a block to integers of 8 bits; the largest magnitude becomes 127. */
V16 void cut_block_to_bytes(struct esp_cut *out, const float *x)
{
    const uint32_t bits = largest_bits(x);
    const bool finite = bits < 0x7f800000u;
    float most;
    memcpy(&most, &bits, sizeof most);
    most = most > 0x1p-100f ? most : 0x1p-100f;
    const float scale = finite ? most / 127.0f : NAN, up = finite ? 127.0f / most : 0.0f;
    int16_t q[ESP_CUT_COLUMNS];
    for (int i = 0; i < ESP_CUT_COLUMNS; i++) {
        q[i] = to_integer(finite ? x[i] : 0.0f, up);
        ((int8_t *)out->x)[i] = (int8_t)q[i];
    }
    store_totals(out, q, scale);
}

void OWN(cut)(const struct esp_vectors *v, int row, int begin, int end)
{
    for (int c = begin; c < end; c += ESP_CUT_COLUMNS) {
        struct esp_cut *out = esp_cut_at(v, row, c / ESP_CUT_COLUMNS);
        const float *x = v->x + (size_t)row * v->stride + (size_t)c;
        if (v->bytes)
            cut_block_to_bytes(out, x);
        else
            cut_block(out, x);
    }
}

/* ------------------------------------------------------------------ products of a block */

/* The unpacked weights of a block, for a whole panel. `more` contains the minima or, for
 * TWO_SCALES, the scales of the last 16 columns. */
struct unpacked {
    struct b64 w[2][GROUPS];
    struct v16 scale[2], more[2];
};

/* Says how the unsigned integers of a type become weights. LESS_n: n is subtracted before the
 * integer is multiplied by the scale. MINIMUM: a minimum is subtracted after that. TWO_SCALES:
 * 32 is subtracted, and the first and the last 16 columns have different scales. */
enum form { LESS_8, LESS_16, LESS_128, MINIMUM, TWO_SCALES };

#ifdef ESP_AMX

enum {
    STRETCH = 256 / ESP_CUT_COLUMNS, /* number of blocks that are unpacked together */
    AT_ONCE = 128,   /* maximum number of rows that share unpacked blocks */
    HEIGHT_STEP = 4, /* registers hold the sums of 4, 8, 12 or 16 rows */
};

struct tile {
    const struct esp_vectors *in;
    int row, rows;         /* first row, and number of rows, at most AT_ONCE */
    int blocks;            /* number of blocks in a panel */
    struct unpacked *kept; /* (STRETCH) unpacked blocks with signed weights */
    float *sum;            /* (AT_ONCE, 2, 16) */
};

#else

struct tile {
    const struct esp_cut *cut; /* (block, together) */
    int rows, together;
    float *sum; /* (rows, 2, 16) */
};

#endif

/* Says how a block is multiplied. On ARM, only one half of the panel is multiplied at a time;
 * `half` selects the half. The functions below also contain code that unpacks the other half,
 * but the compiler removes it, because nothing uses its results. */
struct way {
    int rows;   /* number of rows that are multiplied by a block at a time; 0 means all */
    bool bytes; /* activations have 8 bits */
    int half;
};

#ifdef ESP_AMX

#define EACH_ROW(r, rows) _Pragma("GCC unroll 16") for (int r = 0; r < (rows); r++)

/* Returns the number of rows for which sums are computed if a tile has `rows` rows: the next
 * multiple of HEIGHT_STEP. The additional rows belong to other blocks, or are in memory that
 * esp_cut_count() reserves. Their sums are ignored. */
V16 int tile_height(int rows)
{
    const int height = (rows + HEIGHT_STEP - 1) / HEIGHT_STEP * HEIGHT_STEP;
    return height < TILE_ROWS ? height : TILE_ROWS;
}

/* Describes columns that have a common scale. They begin at group `from` of block *u. *x
 * contains the activations of these columns. */
struct columns {
    const struct unpacked *u;
    const struct esp_cut *x;
    int from;
};

/* Computes the dot products of a tile of rows by sixteen outputs, for columns with a common
 * scale. For activations of 16 bits, dots[0] is for their high bytes, and dots[1] is for their
 * low bytes. */
V16 void multiply_tile(struct s16 dots[2][TILE_ROWS], const struct columns *c, int half,
                       const bool bytes)
{
    const char *activations = (const char *)c->x->x + 4 * c->from;
    const size_t line = sizeof *c->x - (bytes ? ESP_CUT_COLUMNS : 0);
    _tile_loadd(6, &c->u->w[half][c->from], ROW_BYTES);
    _tile_zero(0);
    _tile_loadd(4, activations, line);
    _tile_dpbssd(0, 4, 6);
    if (!bytes) {
        _tile_zero(1);
        _tile_loadd(5, activations + ESP_CUT_COLUMNS, line);
        _tile_dpbssd(1, 5, 6);
        _tile_stored(1, dots[1], ROW_BYTES);
    }
    _tile_stored(0, dots[0], ROW_BYTES);
}

/* Scales the dot products that multiply_tile() has computed for columns *c, and adds them to
 * the sums of the rows. Computes the same floats as add_dot(). */
V16 void scale_tile(struct v16 sum[TILE_ROWS], const struct s16 dots[2][TILE_ROWS],
                    const struct columns *c, int half, const enum form form, const bool bytes,
                    const int height)
{
    const struct v16 more = c->u->more[half], scale = c->from ? more : c->u->scale[half];
    EACH_ROW(r, height)
    {
        const struct esp_cut *row = esp_cut_skip(c->x, (size_t)r, bytes);
        const struct s16 first = s16_load(&dots[0][r]);
        const struct s16 dot =
            bytes ? first : s16_add(s16_times_256(first), s16_load(&dots[1][r]));
        sum[r] = v16_fma(s16_to_float(dot), v16_mul(scale, v16_set(row->scale)), sum[r]);
        if (form == MINIMUM)
            sum[r] = v16_fma(more, v16_set(row->less_total), sum[r]);
    }
}

/* Returns the columns with a common scale that follow c. The activations of a row for the next
 * block are stored `step` blocks later. */
V16 struct columns columns_after(struct columns c, size_t step, const enum form form,
                                 const bool bytes)
{
    if (form == TWO_SCALES && c.from == 0)
        return (struct columns){c.u, c.x, GROUPS / 2};
    return (struct columns){c.u + 1, esp_cut_skip(c.x, step, bytes), 0};
}

/* Multiplies `blocks` unpacked blocks by a tile of rows, for the sixteen outputs in half `half`
 * of a panel. Adds the results to the sums at `to`. */
V16 void multiply_stretch(const struct unpacked *u, int half, int blocks,
                          const struct esp_cut *x, size_t step, float *to, const enum form form,
                          const bool bytes, const int height)
{
    struct s16 dots[2][2][TILE_ROWS] __attribute__((aligned(64)));
    struct v16 sum[TILE_ROWS];
    struct columns now = {u, x, 0};
    int parity = 0;
    EACH_ROW(r, height) sum[r] = v16_load(to + r * ESP_PANEL);
    __asm__ volatile("" ::"r"(u) : "memory"); /* forces the compiler to store the weights */
    multiply_tile(dots[0], &now, half, bytes);
    for (int left = form == TWO_SCALES ? 2 * blocks : blocks; left > 1; left--) {
        const struct columns next = columns_after(now, step, form, bytes);
        multiply_tile(dots[1 - parity], &next, half, bytes);
        scale_tile(sum, dots[parity], &now, half, form, bytes, height);
        now = next;
        parity = 1 - parity;
    }
    scale_tile(sum, dots[parity], &now, half, form, bytes, height);
    EACH_ROW(r, height) v16_store(to + r * ESP_PANEL, sum[r]);
}

typedef void stretch_fn(const struct unpacked *, int, int, const struct esp_cut *, size_t,
                        float *);

/* Defines a separate function for each form, number of bits and height. So the loops over rows
 * can be unrolled, and the sums stay in registers. */
#define STRETCH_OF(form, bits, height)                                                         \
    static __attribute__((noinline)) void form##_##bits##_by_##height(                         \
        const struct unpacked *u, int half, int blocks, const struct esp_cut *x, size_t step,  \
        float *to)                                                                             \
    {                                                                                          \
        multiply_stretch(u, half, blocks, x, step, to, form, bits == 8, height);               \
    }
#define HEIGHTS(X, form, bits)                                                                 \
    X(form, bits, 4) X(form, bits, 8) X(form, bits, 12) X(form, bits, 16)
#define FORMS(X)                                                                               \
    HEIGHTS(X, LESS_128, 16)                                                                   \
    HEIGHTS(X, LESS_128, 8)                                                                    \
    HEIGHTS(X, MINIMUM, 16)                                                                    \
    HEIGHTS(X, MINIMUM, 8)                                                                     \
    HEIGHTS(X, TWO_SCALES, 16)                                                                 \
    HEIGHTS(X, TWO_SCALES, 8)
FORMS(STRETCH_OF)
#undef STRETCH_OF

/* Multiplies all rows of a tile by the stored blocks. The last stored block is number `block`.
 */
V16 void multiply_kept(const struct tile *t, const enum form form, int block, const bool bytes)
{
#define NAME(form, bits, height) form##_##bits##_by_##height,
    static stretch_fn *const all[] = {FORMS(NAME)};
#undef NAME
    const int kind = form < MINIMUM ? 0 : form == MINIMUM ? 1 : 2, blocks = block % STRETCH + 1;
    stretch_fn *const *by = all + (2 * kind + bytes) * (TILE_ROWS / HEIGHT_STEP);
    float *sum = t->sum;
    for (int row = 0, height; row < t->rows; row += height, sum += height * ESP_PANEL) {
        const struct esp_cut *x = esp_cut_at(t->in, t->row + row, block + 1 - blocks);
        height = tile_height(t->rows - row);
        for (int half = 0; half < 2; half++)
            by[height / HEIGHT_STEP - 1](t->kept, half, blocks, x, (size_t)t->in->together,
                                         sum + half * ESP_LANES);
    }
}

/* Stores an unpacked block, with signed weights. If STRETCH blocks are stored, or the block is
 * the last of the panel, multiplies the stored blocks. (For LESS_128, b64_from_signed() makes
 * weights signed again, because it is its own inverse.) */
V16 void add_block(const struct unpacked *u, const enum form form, const struct tile *t,
                   int block, const struct way way)
{
    const int offset = form == LESS_8 ? 8 : form == LESS_16 ? 16 : form == TWO_SCALES ? 32 : 0;
    struct unpacked *kept = &t->kept[block % STRETCH];
    UNROLL for (int half = 0; half < 2; half++)
    {
        kept->scale[half] = u->scale[half];
        if (form >= MINIMUM)
            kept->more[half] = u->more[half];
        UNROLL for (int g = 0; g < GROUPS; g++) kept->w[half][g] =
            form == LESS_128 ? b64_from_signed(u->w[half][g]) : b64_less(u->w[half][g], offset);
    }
    if (block % STRETCH == STRETCH - 1 || block == t->blocks - 1)
        multiply_kept(t, form, block, way.bytes);
}

#else

/* Returns the value to which the products of a block are added: minus the offset of the weights
 * times the sum of the activations. */
V16 int32_t before_products(const struct esp_cut *x, const enum form form, const int from)
{
    return form == LESS_8      ? x->less_8
           : form == LESS_16   ? x->less_16
           : form == LESS_128  ? (OFFSET ? x->less_128 : 0)
           : form == MINIMUM   ? 0
           : from < GROUPS / 2 ? x->first_less_32
                               : x->second_less_32;
}

/* Scales a dot product of columns with a common scale, and adds it to sixteen sums of a row. */
V16 void add_dot(const struct unpacked *u, const enum form form, const struct esp_cut *x,
                 const struct s16 dot, float *sum, const int from, const int half)
{
    const struct v16 *scales = from ? u->more : u->scale;
    const struct v16 scale = v16_mul(scales[half], v16_set(x->scale));
    struct v16 y = v16_fma(s16_to_float(dot), scale, v16_load(sum));
    if (form == MINIMUM)
        y = v16_fma(u->more[half], v16_set(x->less_total), y);
    v16_store(sum, y);
}

/* Calls add_dot() for halves first..first+HALVES-1 of the panel. */
V16 void add_dots(const struct unpacked *u, const enum form form, const struct esp_cut *x,
                  const struct s16 dot[HALVES], float *sum, const int from, const int first)
{
    UNROLL for (int i = 0; i < HALVES; i++)
        add_dot(u, form, x, dot[i], sum + (first + i) * ESP_LANES, from, first + i);
}

#if ESP_SIMD == 4

/* Multiplies `rows` rows of activations by groups from..to-1 of a block, which share a scale.
 * Computes only half a panel, because there are not enough registers for the sums of both
 * halves. */
V16 void add_columns(const struct unpacked *u, const enum form form, const struct esp_cut *x,
                     float *sum, const int rows, const bool bytes, const int from, const int to)
{
    struct s16 dot[ESP_ROWS];
    UNROLL for (int r = 0; r < rows; r++) dot[r] =
        s16_set(before_products(esp_cut_skip(x, (size_t)r, bytes), form, from));
    if (bytes)
        s8_dots(dot, u->w[0], from, to, x, rows, form != LESS_128);
    else
        s16_dots(dot, u->w[0], from, to, x, rows);
    UNROLL for (int r = 0; r < rows; r++, x = esp_cut_skip(x, 1, bytes), sum += ESP_PANEL)
        add_dot(u, form, x, dot[r], sum, from, 0);
}

/* Copies the half of `u` that `way` selects to the first half of *to. */
V16 void take_half(struct unpacked *to, const struct unpacked *u, const enum form form,
                   const struct way way)
{
    UNROLL for (int g = 0; g < GROUPS; g++) to->w[0][g] = u->w[way.half][g];
    to->scale[0] = u->scale[way.half];
    if (form == MINIMUM || form == TWO_SCALES)
        to->more[0] = u->more[way.half];
    if (way.rows > 1)
        b64_for_rows(to->w[0]);
}

#else

/* Multiplies `rows` rows of activations by groups from..to-1 of a block, which share a scale,
 * for halves first..first+HALVES-1 of the panel. */
V16 void add_halves(const struct unpacked *u, const enum form form, const struct esp_cut *x,
                    float *sum, const int rows, const bool bytes, const int from, const int to,
                    const int first)
{
    struct s16 dot[ESP_ROWS][HALVES];
    UNROLL for (int r = 0; r < rows; r++)
    {
        const struct esp_cut *row = esp_cut_skip(x, (size_t)r, bytes);
        for (int i = 0; i < HALVES; i++)
            dot[r][i] = s16_set(before_products(row, form, from));
    }
    /* The last argument says that the sum of two products of bytes fits in 16 bits. This is
     * true for weights below 64, so for all forms except LESS_128. */
    if (bytes)
        s8_dots(dot, u->w + first, from, to, x, rows, form != LESS_128);
    else
        s16_dots(dot, u->w + first, from, to, x, rows);
    UNROLL for (int r = 0; r < rows; r++, x = esp_cut_skip(x, 1, bytes), sum += ESP_PANEL)
        add_dots(u, form, x, dot[r], sum, from, first);
}

V16 void add_columns(const struct unpacked *u, const enum form form, const struct esp_cut *x,
                     float *sum, const int rows, const bool bytes, const int from, const int to)
{
    UNROLL for (int first = 0; first < 2; first += HALVES)
    {
        add_halves(u, form, x, sum, rows, bytes, from, to, first);
        if (HALVES == 1) /* activations must not stay in registers */
            __asm__ volatile("" ::: "memory");
    }
}

#endif

V16 void add_rows(const struct unpacked *u, const enum form form, const struct esp_cut *x,
                  float *sum, const int rows, const bool bytes)
{
    if (form == TWO_SCALES) {
        add_columns(u, form, x, sum, rows, bytes, 0, GROUPS / 2);
        add_columns(u, form, x, sum, rows, bytes, GROUPS / 2, GROUPS);
    } else {
        add_columns(u, form, x, sum, rows, bytes, 0, GROUPS);
    }
}

/* add_block() multiplies most rows in groups of way.rows. It calls separate functions for the
 * remaining rows, so that its own loop keeps the weights in registers. Without VNNI, products
 * with two scales need too many registers for that, so all rows are treated as remaining rows.
 * The same is done on ARM, where the weights of half a panel take all 32 registers. */
#ifdef ESP_VNNI
#define ALL_LEFT(form) false
#else
#define ALL_LEFT(form) ((form) == TWO_SCALES)
#endif

/* At most this many rows at the end of a tile are not computed in pairs. With i8mm all rows are
 * computed in pairs. If the number of rows is odd, the second row of the last pair belongs to
 * another block, and its result is ignored. */
#ifdef ESP_I8MM
enum { ALONE = 0 };
#else
enum { ALONE = 1 };
#endif

V16 void add_left(const struct unpacked *u, const enum form form, const struct esp_cut *x,
                  float *sum, int rows, const bool bytes)
{
    if (ESP_SIMD == 4 && bytes)
        for (; rows >= ESP_ROWS; rows -= ESP_ROWS, sum += ESP_ROWS * ESP_PANEL) {
            add_rows(u, form, x, sum, ESP_ROWS, bytes);
            x = esp_cut_skip(x, ESP_ROWS, bytes);
        }
    for (; rows > ALONE; rows -= 2, sum += 2 * ESP_PANEL) {
        add_rows(u, form, x, sum, 2, bytes);
        x = esp_cut_skip(x, 2, bytes);
    }
    if (rows > 0)
        add_rows(u, form, x, sum, 1, bytes);
}

#define ROWS_LEFT(form, name, bytes)                                                           \
    static __attribute__((noinline)) void name##_##form(                                       \
        const struct unpacked *u, const struct esp_cut *x, float *sum, int rows)               \
    {                                                                                          \
        add_left(u, form, x, sum, rows, bytes);                                                \
    }
#define FORM(form)                                                                             \
    ROWS_LEFT(form, left, false)                                                               \
    ROWS_LEFT(form, left_of_bytes, true)
FORM(LESS_8)
FORM(LESS_16)
FORM(LESS_128)
FORM(MINIMUM)
FORM(TWO_SCALES)
#undef FORM

typedef void left_fn(const struct unpacked *, const struct esp_cut *, float *, int);
#define FORM(form)                                                                             \
    {                                                                                          \
        left_##form, left_of_bytes_##form                                                      \
    }
static left_fn *const left_rows[][2] = {FORM(LESS_8), FORM(LESS_16), FORM(LESS_128),
                                        FORM(MINIMUM), FORM(TWO_SCALES)};
#undef FORM

#if ESP_SIMD == 4

/* Multiplies a block by all rows of a tile. If there is only one row, add_rows() is inlined,
 * and the compiler unpacks weights immediately before their use. */
V16 void add_block(const struct unpacked *u, const enum form form, const struct tile *t,
                   int block, const struct way way)
{
    const struct esp_cut *x =
        esp_cut_skip(t->cut, (size_t)block * (size_t)t->together, way.bytes);
    float *sum = t->sum + way.half * ESP_LANES;
    struct unpacked half;
    take_half(&half, u, form, way);
    if (way.rows == 1)
        add_rows(&half, form, x, sum, 1, way.bytes);
    else
        left_rows[form][way.bytes](&half, x, sum, t->rows);
    __asm__ volatile("" ::: "memory"); /* otherwise the next blocks would be loaded first */
}

#else

V16 void add_block(const struct unpacked *u, const enum form form, const struct tile *t,
                   int block, const struct way way)
{
    const struct esp_cut *x =
        esp_cut_skip(t->cut, (size_t)block * (size_t)t->together, way.bytes);
    float *sum = t->sum;
    __asm__ volatile("" ::: "memory"); /* otherwise the next blocks would be loaded first */
    if (way.rows == 1) {
        add_rows(u, form, x, sum, 1, way.bytes);
        return;
    }
    int rows = t->rows;
    for (; !ALL_LEFT(form) && rows >= way.rows; rows -= way.rows, sum += way.rows * ESP_PANEL) {
        add_rows(u, form, x, sum, way.rows, way.bytes);
        x = esp_cut_skip(x, (size_t)way.rows, way.bytes);
    }
    if (rows) {
        const struct unpacked copy = *u;
        left_rows[form][way.bytes](&copy, x, sum, rows);
    }
}

#endif /* ESP_SIMD == 4 */
#endif /* ESP_AMX */

/* ------------------------------------------------------------------ the formats */

/* PANEL_type is the number of bytes that a block of the type takes in a panel. */
enum {
#define X(type, gguf, numbers, bytes, ...) PANEL_##type = ESP_PANEL * (bytes),
    ESP_BLOCK_TYPES(X)
#undef X
};

V16 const char *words(const char *p, const int before, const int count, int half)
{
    return p + before + half * count * LINE;
}

/* Prefetches weights. Loads `bytes` bytes that begin FAR bytes after `part` into the
 * second-level cache, and `bytes` bytes that begin NEAR bytes after it into the first-level
 * cache. */
V16 void call_ahead(const char *part, const int bytes, const struct way way)
{
    if (way.half)
        return; /* the first half has prefetched these bytes */
    _Pragma("GCC unroll 18") for (int line = 0; line < bytes; line += LINE)
    {
        __builtin_prefetch(part + FAR + line, 0, 2);
        __builtin_prefetch(part + NEAR + line);
    }
}

V16 struct v16 halves(const char *p, const int field, int half)
{
    return v16_load_f16((const uint16_t *)(const void *)(p + field * LINE + half * HALF));
}

V16 void block_Q8_0(const struct tile *t, const char *p, int block, const struct way way)
{
    struct unpacked u;
    call_ahead(p, PANEL_Q8_0, way);
    UNROLL for (int half = 0; half < 2; half++)
    {
        const char *bytes = words(p, LINE, 8, half);
        u.scale[half] = halves(p, 0, half);
        UNROLL for (int g = 0; g < GROUPS; g++) u.w[half][g] =
            b64_from_signed(b64_load(bytes + g * LINE));
    }
    add_block(&u, LESS_128, t, block, way);
}

/* Loads 32 half-bytes of a block as weights. In the block, `before` bytes precede them. */
V16 void load_nibbles(struct unpacked *u, const char *p, const int before)
{
    UNROLL for (int half = 0; half < 2; half++)
    {
        const char *bytes = words(p, before, 4, half);
        UNROLL for (int g = 0; g < GROUPS / 2; g++)
        {
            const struct b64 both = b64_load(bytes + g * LINE);
            u->w[half][g] = b64_shift_and(both, 0, 15);
            u->w[half][g + GROUPS / 2] = b64_shift_and(both, -4, 15);
        }
    }
}

/* Loads a block of Q4_0, Q5_0 or IQ4_NL, which begins with the scale. */
V16 void load_scaled_nibbles(struct unpacked *u, const char *p, const int before)
{
    load_nibbles(u, p, before);
    UNROLL for (int half = 0; half < 2; half++) u->scale[half] = halves(p, 0, half);
}

/* Replaces the loaded half-bytes, which are indices into a table, by weights of the table. */
V16 void look_up_weights(struct unpacked *u, const uint8_t table[16])
{
    UNROLL for (int half = 0; half < 2; half++)
    {
        UNROLL for (int g = 0; g < GROUPS; g++) u->w[half][g] =
            b64_look_up(table, u->w[half][g]);
    }
}

V16 void block_Q4_0(const struct tile *t, const char *p, int block, const struct way way)
{
    struct unpacked u;
    call_ahead(p, PANEL_Q4_0, way);
    load_scaled_nibbles(&u, p, LINE);
    add_block(&u, LESS_8, t, block, way);
}

V16 void block_Q5_0(const struct tile *t, const char *p, int block, const struct way way)
{
    struct unpacked u;
    call_ahead(p, PANEL_Q5_0, way);
    load_scaled_nibbles(&u, p, 3 * LINE);
    UNROLL for (int half = 0; half < 2; half++)
    {
        const struct s16 fifth = s16_load(words(p, LINE, 1, half));
        UNROLL for (int g = 0; g < GROUPS; g++) u.w[half][g] =
            b64_or(u.w[half][g], b64_spread(fifth, g));
    }
    add_block(&u, LESS_16, t, block, way);
}

V16 void block_IQ4_NL(const struct tile *t, const char *p, int block, const struct way way)
{
#define W(x) (uint8_t)((x) + OFFSET)
    static const uint8_t table[16] = {W(-127), W(-104), W(-83), W(-65), W(-49), W(-35),
                                      W(-22),  W(-10),  W(1),   W(13),  W(25),  W(38),
                                      W(53),   W(69),   W(89),  W(113)};
#undef W
    struct unpacked u;
    call_ahead(p, PANEL_IQ4_NL, way);
    load_scaled_nibbles(&u, p, LINE);
    look_up_weights(&u, table);
    add_block(&u, LESS_128, t, block, way);
}

/* In MXFP4, the scale is a power of two, which is stored as one byte. */
V16 void block_MXFP4(const struct tile *t, const char *p, int block, const struct way way)
{
    static const uint8_t table[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                      16, 15, 14, 13, 12, 10, 8,  4}; /* + 16 */
    struct unpacked u;
    call_ahead(p, PANEL_MXFP4, way);
    load_nibbles(&u, p, HALF);
    look_up_weights(&u, table);
    UNROLL for (int half = 0; half < 2; half++) u.scale[half] =
        v16_load_half_powers(p + half * ESP_LANES);
    add_block(&u, LESS_16, t, block, way);
}

/* Holds the scales and minima of a block of 256 columns. Each lane holds four bytes of one
 * output. A byte is the scale or the minimum of 32 columns. */
struct k_scales {
    struct v16 d, dmin;
    struct s16 scale[2], minimum[2];
};

V16 struct k_scales load_k_scales(const char *p, int half)
{
    const char *packed = words(p, 2 * LINE, 3, half);
    const struct s16 a = s16_load(packed), b = s16_load(packed + LINE);
    const struct s16 c = s16_load(packed + 2 * LINE);
    const uint32_t six = 0x3f3f3f3fu, four = 0x0f0f0f0fu, top = 0x30303030u;
    return (struct k_scales){
        halves(p, 0, half),
        halves(p, 1, half),
        {s16_and(a, six), s16_or(s16_and(c, four), s16_and(s16_shift_right(a, 2), top))},
        {s16_and(b, six),
         s16_or(s16_and(s16_shift_right(c, 4), four), s16_and(s16_shift_right(b, 2), top))},
    };
}

/* Loads the scales, the minima and the low 4 bits of the weights for part i of a block of Q4_K
 * or Q5_K. A part has 32 columns. */
V16 void load_k(struct unpacked *u, const struct k_scales s[2], const char *p, const int before,
                const int i)
{
    UNROLL for (int half = 0; half < 2; half++)
    {
        const char *bytes = words(p, before, 32, half) + i / 2 * GROUPS * LINE;
        const struct k_scales *k = &s[half];
        u->scale[half] = v16_mul(k->d, s16_byte_to_float(k->scale[i / 4], i % 4));
        u->more[half] = v16_mul(k->dmin, s16_byte_to_float(k->minimum[i / 4], i % 4));
        UNROLL for (int g = 0; g < GROUPS; g++) u->w[half][g] =
            b64_shift_and(b64_load(bytes + g * LINE), i % 2 * -4, 15);
    }
}

V16 void block_Q4_K(const struct tile *t, const char *p, int block, const struct way way)
{
    const struct k_scales s[2] = {load_k_scales(p, 0), load_k_scales(p, 1)};
    FOR_EIGHT(i, 2)
    {
        struct unpacked u;
        call_ahead(p + i * (PANEL_Q4_K / 8), PANEL_Q4_K / 8, way);
        load_k(&u, s, p, 8 * LINE, i);
        add_block(&u, MINIMUM, t, block + i, way);
    }
}

V16 void block_Q5_K(const struct tile *t, const char *p, int block, const struct way way)
{
    const struct k_scales s[2] = {load_k_scales(p, 0), load_k_scales(p, 1)};
    FOR_EIGHT(i, 2)
    {
        struct unpacked u;
        call_ahead(p + i * (PANEL_Q5_K / 8), PANEL_Q5_K / 8, way);
        load_k(&u, s, p, 24 * LINE, i);
        UNROLL for (int half = 0; half < 2; half++)
        {
            const char *fifth = words(p, 8 * LINE, 8, half);
            UNROLL for (int g = 0; g < GROUPS; g++) u.w[half][g] =
                b64_set_fifth(u.w[half][g], b64_load(fifth + g * LINE), i);
        }
        add_block(&u, MINIMUM, t, block + i, way);
    }
}

V16 void block_Q6_K(const struct tile *t, const char *p, int block, const struct way way)
{
    FOR_EIGHT(i, 4)
    {
        struct unpacked u;
        call_ahead(p + i * (PANEL_Q6_K / 8), PANEL_Q6_K / 8, way);
        UNROLL for (int half = 0; half < 2; half++)
        {
            const struct v16 d = halves(p, 0, half);
            const struct s16 s = s16_load(words(p, LINE, 4, half) + i / 2 * LINE);
            const char *high = words(p, 9 * LINE, 16, half) + i / 4 * 8 * LINE;
            const char *low = words(p, 41 * LINE, 32, half) + (i / 4 * 16 + i % 2 * 8) * LINE;
            u.scale[half] = v16_mul(d, s16_to_float(s16_signed_byte(s, i % 2 * 2)));
            u.more[half] = v16_mul(d, s16_to_float(s16_signed_byte(s, i % 2 * 2 + 1)));
            UNROLL for (int g = 0; g < GROUPS; g++) u.w[half][g] =
                b64_or(b64_shift_and(b64_load(low + g * LINE), i / 2 % 2 * -4, 15),
                       b64_shift_and(b64_load(high + g * LINE), 4 - i % 4 * 2, 0x30));
        }
        add_block(&u, TWO_SCALES, t, block + i, way);
    }
}

/* ------------------------------------------------------------------ the product */

V16 void block_of(const enum esp_dtype dtype, const struct tile *t, const char *p, int block,
                  const struct way way)
{
#define X(type, ...)                                                                           \
    if (dtype == ESP_##type)                                                                   \
        block_##type(t, p, block, way);
    ESP_BLOCK_TYPES(X)
#undef X
}

V16 void finish(const struct esp_matmul *p, int row, int rows, int panel, const float *sum)
{
    for (int i = 0; i < rows; i++, sum += ESP_PANEL) {
        size_t y_row = (size_t)(p->y_row ? p->y_row[row + i] : row + i);
        float *y = p->y + y_row * p->y_stride + (size_t)panel * ESP_PANEL;
        for (int half = 0; half < ESP_PANEL; half += ESP_LANES) {
            const struct v16 value = v16_load(sum + half);
            v16_store(y + half, p->add ? v16_add(v16_load(y + half), value) : value);
        }
    }
}

/* Multiplies one panel by rows row..row+rows-1, which are one tile. */
V16 void panel_by_tile(const enum esp_dtype dtype, const int numbers, const int bytes,
                       const struct esp_packed *w, int panel, const struct esp_matmul *p,
                       int row, int rows, const struct way way)
{
    const int blocks = w->columns / numbers;
    const char *data = (const char *)w->data + (size_t)panel * (size_t)blocks * (size_t)bytes;
#ifdef ESP_AMX
    float sum[AT_ONCE * ESP_PANEL] __attribute__((aligned(64)));
    struct unpacked kept[STRETCH] __attribute__((aligned(64)));
    const struct tile t = {&p->in, row, rows, w->columns / ESP_CUT_COLUMNS, kept, sum};
    const int summed = (rows + HEIGHT_STEP - 1) / HEIGHT_STEP * HEIGHT_STEP;
#else
    float sum[ESP_TOGETHER * ESP_PANEL] __attribute__((aligned(64)));
    const struct tile t = {esp_cut_at(&p->in, row, 0), rows, p->in.together, sum};
    const int summed = rows;
#endif
    for (int i = 0; i < summed; i++)
        memcpy(sum + i * ESP_PANEL, w->bias + (size_t)panel * ESP_PANEL,
               ESP_PANEL * sizeof *sum);
    for (int b = 0; b < blocks; b++, data += bytes)
        UNROLL for (int half = 0; half < PARTS; half++)
            block_of(dtype, &t, data, b * (numbers / ESP_CUT_COLUMNS),
                     (struct way){way.rows, way.bytes, half});
    finish(p, row, rows, panel, sum);
}

/* Defines a separate function for each type and way, so that the compiler keeps the weights of
 * a block in registers. */
#define PANEL(type, name, numbers, ...)                                                        \
    static __attribute__((noinline)) void type##_##name(                                       \
        const struct esp_packed *w, int panel, const struct esp_matmul *p, int row, int rows)  \
    {                                                                                          \
        panel_by_tile(ESP_##type, numbers, PANEL_##type, w, panel, p, row, rows,               \
                      (struct way){__VA_ARGS__, 0});                                           \
    }
#ifdef ESP_AMX

#define X(type, gguf, numbers, ...)                                                            \
    PANEL(type, rows, numbers, 0, false)                                                       \
    PANEL(type, rows_of_bytes, numbers, 0, true)
ESP_BLOCK_TYPES(X)
#undef X

void OWN(matmul_blocks)(const struct esp_packed *w, int begin, int end,
                        const struct esp_matmul *p)
{
    typedef void panel_fn(const struct esp_packed *, int, const struct esp_matmul *, int, int);
#define X(type, gguf, numbers, ...) [ESP_##type] = {type##_rows, type##_rows_of_bytes},
    static panel_fn *const panels[ESP_DTYPE_COUNT][2] = {ESP_BLOCK_TYPES(X)};
#undef X
#ifdef ESP_VNNI
    if (!p->tiles) {
        esp_matmul_blocks_vnni(w, begin, end, p);
        return;
    }
#endif
    configure_tiles(tile_height(p->rows),
                    w->dtype == ESP_Q6_K ? ESP_CUT_COLUMNS / 2 : ESP_CUT_COLUMNS);
    for (int panel = begin; panel < end; panel++)
        for (int row = 0; row < p->rows; row += AT_ONCE) {
            const int left = p->rows - row;
            panels[w->dtype][p->in.bytes](w, panel, p, row, left < AT_ONCE ? left : AT_ONCE);
        }
    _tile_release();
}

#else

#define X(type, gguf, numbers, ...)                                                            \
    PANEL(type, row, numbers, 1, false)                                                        \
    PANEL(type, rows, numbers, ESP_ROWS / 2, false)                                            \
    PANEL(type, row_of_bytes, numbers, 1, true)                                                \
    PANEL(type, rows_of_bytes, numbers, ESP_ROWS, true)
ESP_BLOCK_TYPES(X)
#undef X

void OWN(matmul_blocks)(const struct esp_packed *w, int begin, int end,
                        const struct esp_matmul *p)
{
    typedef void panel_fn(const struct esp_packed *, int, const struct esp_matmul *, int, int);
#define X(type, gguf, numbers, ...)                                                            \
    [ESP_##type] = {type##_row, type##_rows, type##_row_of_bytes, type##_rows_of_bytes},
    static panel_fn *const panels[ESP_DTYPE_COUNT][4] = {ESP_BLOCK_TYPES(X)};
#undef X
    panel_fn *const *ways = panels[w->dtype] + 2 * p->in.bytes;
    const int most = p->in.together;
    for (int panel = begin; panel < end; panel++)
        for (int row = 0; row < p->rows; row += most) {
            const int left = p->rows - row, rows = left < most ? left : most;
            ways[rows > 1](w, panel, p, row, rows);
        }
}

#endif
