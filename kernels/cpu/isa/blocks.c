/* blocks.c - the matrix product on quantised blocks, which are never expanded in memory.
 *
 * The activations of 32 columns become integers with one scale (esp_cut_vector): of 16 bits,
 * with a power of two as their scale, so that at most 2^-15 of the largest of them is lost; or
 * of 8 bits (esp_vectors.bytes), with a 127th of the largest as their scale, which takes half
 * the work and loses little beside what weights of 4 to 6 bits have lost. The weights of 32
 * columns are small integers with one scale, or with two for 16 columns each. So the dot
 * product of a block is an exact integer, whatever the order and the instruction set. Then
 *
 *     sum <- fma(integer, scale of the weights * scale of the activations, sum)
 *     sum <- fma(minimum of the weights, -total of the activations, sum)    Q4_K, Q5_K
 *
 * in float32, block after block, started from the bias: the same bits on every instruction set,
 * and for a row in any batch.
 *
 * Weights are unsigned bytes here; where they are signed in the format, the activations' total
 * times the offset is subtracted from the integer. Sixteen outputs go together. The bytes of a
 * block are unpacked once into registers and serve up to ESP_TOGETHER rows.
 *
 * Packed (see kernels/cpu/pack.c): for each panel of 32 outputs and each block, the fields of
 * the format, side by side for the 32 outputs: fields of 1 or 2 bytes as (field, 32), 4-byte
 * words as (half of the panel, word, 16).
 */
#include "kernels/cpu/isa/bytes.h"
#include "kernels/cpu/isa/parts.h"

enum { AHEAD = 4096, LINE = 64, HALF = 32 };

/* ------------------------------------------------------------------ activations */

/* The largest of the numbers of a block, without its sign. Above all: what is not finite. */
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

/* x * up, rounded; at most 2^22. */
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
    out->by_8 = 8 * (first + second);
    out->by_16 = 16 * (first + second);
    out->by_128 = 128 * (first + second);
    out->first_by_32 = 32 * first;
    out->second_by_32 = 32 * second;
}

/* Numbers x of a block and their exponent: |x| 2^(141 - exponent) rounds to at most 32512, the
 * most for which 256 high + low with two signed bytes holds. */
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

/* The same with 8 bits: the largest of them becomes 127. */
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

void esp_cut_vector(const struct esp_vectors *v, int row, int begin, int end)
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

/* ------------------------------------------------------------------ a block by all rows */

/* A panel's weights of a block, unpacked. `more` is the minimum, or the scale of the last 16
 * columns. */
struct unpacked {
    struct b64 w[2][GROUPS];
    struct v16 scale[2], more[2];
};

/* How a type's integers become numbers: less an offset; above a minimum; with two scales. */
enum form { LESS_8, LESS_16, LESS_128, MINIMUM, TWO_SCALES };

struct tile {
    const struct esp_cut *cut; /* (block, together) */
    int rows, together;
    bool bytes; /* activations of 8 bits */
    float *sum; /* (rows, 2, 16) */
};

V16 int32_t offset_of(const struct esp_cut *x, const enum form form)
{
    return form == LESS_8 ? x->by_8 : form == LESS_16 ? x->by_16 : x->by_128;
}

V16 struct v16 less(struct s16 sum, int32_t offset)
{
    return s16_to_float(s16_sub(sum, s16_set(offset)));
}

/* Weights below 64: two products with bytes fit 16 bits. */
V16 void dots(struct s16 out[][2], const struct unpacked *u, const enum form form,
              const int from, const int to, const struct esp_cut *x, const int rows,
              const bool bytes)
{
    if (bytes)
        s8_dots(out, u->w, from, to, x, rows, form != LESS_128);
    else
        s16_dots(out, u->w, from, to, x, rows);
}

V16 void add_rows(const struct unpacked *u, const enum form form, const struct esp_cut *x,
                  float *sum, const int rows, const bool bytes)
{
    struct s16 dot[ESP_ROWS][2], last[ESP_ROWS][2];
    dots(dot, u, form, 0, form == TWO_SCALES ? GROUPS / 2 : GROUPS, x, rows, bytes);
    if (form == TWO_SCALES)
        dots(last, u, form, GROUPS / 2, GROUPS, x, rows, bytes);
    UNROLL for (int r = 0; r < rows; r++, x = esp_cut_skip(x, 1, bytes))
    {
        UNROLL for (int half = 0; half < 2; half++, sum += ESP_LANES)
        {
            const struct v16 scale = v16_set(x->scale), before = v16_load(sum);
            const struct v16 first = v16_mul(u->scale[half], scale);
            struct v16 y;
            if (form == MINIMUM) {
                y = v16_fma(s16_to_float(dot[r][half]), first, before);
                y = v16_fma(u->more[half], v16_set(x->less_total), y);
            } else if (form == TWO_SCALES) {
                y = v16_fma(less(dot[r][half], x->first_by_32), first, before);
                y = v16_fma(less(last[r][half], x->second_by_32), v16_mul(u->more[half], scale),
                            y);
            } else {
                y = v16_fma(less(dot[r][half], offset_of(x, form)), first, before);
            }
            v16_store(sum, y);
        }
    }
}

/* Several rows. Functions of their own, so that the compiler keeps a panel's weights in
 * registers in their loops, whatever the formats do around them. */
#define ROWS_OF(name, form, most, bytes)                                                       \
    static __attribute__((noinline)) void name(const struct unpacked *u,                       \
                                               const struct esp_cut *x, float *sum, int rows)  \
    {                                                                                          \
        const struct unpacked here = *u;                                                       \
        for (; rows >= most; rows -= most, sum += most * ESP_PANEL) {                          \
            add_rows(&here, form, x, sum, most, bytes);                                        \
            x = esp_cut_skip(x, most, bytes);                                                  \
        }                                                                                      \
        for (; rows; rows--, sum += ESP_PANEL) {                                               \
            add_rows(&here, form, x, sum, 1, bytes);                                           \
            x = esp_cut_skip(x, 1, bytes);                                                     \
        }                                                                                      \
    }
#define FORM(form)                                                                             \
    ROWS_OF(rows_##form, form, ESP_ROWS / 2, false)                                            \
    ROWS_OF(rows_of_bytes_##form, form, ESP_ROWS, true)
FORM(LESS_8)
FORM(LESS_16)
FORM(LESS_128)
FORM(MINIMUM)
FORM(TWO_SCALES)

/* One row streams past the weights once: nothing but their way to the registers counts. */
V16 void add_block(const struct unpacked *u, const enum form form, const struct tile *t,
                   int block)
{
    typedef void rows_fn(const struct unpacked *, const struct esp_cut *, float *, int);
    static rows_fn *const several[][2] = {{rows_LESS_8, rows_of_bytes_LESS_8},
                                          {rows_LESS_16, rows_of_bytes_LESS_16},
                                          {rows_LESS_128, rows_of_bytes_LESS_128},
                                          {rows_MINIMUM, rows_of_bytes_MINIMUM},
                                          {rows_TWO_SCALES, rows_of_bytes_TWO_SCALES}};
    const struct esp_cut *x =
        esp_cut_skip(t->cut, (size_t)block * (size_t)t->together, t->bytes);
    if (t->rows > 1)
        several[form][t->bytes](u, x, t->sum, t->rows);
    else if (t->bytes)
        add_rows(u, form, x, t->sum, 1, true);
    else
        add_rows(u, form, x, t->sum, 1, false);
}

/* ------------------------------------------------------------------ the formats */

V16 const char *words(const char *p, const int before, const int count, int half)
{
    return p + before + half * count * LINE;
}

/* A part of a panel is used: calls for as many bytes that come AHEAD of it. */
V16 void call_ahead(const char *part, const int bytes)
{
    UNROLL for (int line = 0; line < bytes; line += LINE)
        __builtin_prefetch(part + AHEAD + line);
}

V16 struct v16 halves(const char *p, const int field, int half)
{
    return v16_load_f16((const uint16_t *)(const void *)(p + field * LINE + half * HALF));
}

V16 void q8_0(const struct tile *t, const char *p, int block)
{
    struct unpacked u;
    call_ahead(p, 1088);
    UNROLL for (int half = 0; half < 2; half++)
    {
        const char *bytes = words(p, LINE, 8, half);
        u.scale[half] = halves(p, 0, half);
        UNROLL for (int g = 0; g < GROUPS; g++) u.w[half][g] =
            b64_flip_signs(b64_load(bytes + g * LINE));
    }
    add_block(&u, LESS_128, t, block);
}

/* The weights of a block of 32 half bytes begin after `before` bytes. */
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

/* Of Q4_0, Q5_0 and IQ4_NL, which begin with the scale. */
V16 void load_scaled_nibbles(struct unpacked *u, const char *p, const int before)
{
    load_nibbles(u, p, before);
    UNROLL for (int half = 0; half < 2; half++) u->scale[half] = halves(p, 0, half);
}

V16 void q4_0(const struct tile *t, const char *p, int block)
{
    struct unpacked u;
    call_ahead(p, 576);
    load_scaled_nibbles(&u, p, LINE);
    add_block(&u, LESS_8, t, block);
}

V16 void q5_0(const struct tile *t, const char *p, int block)
{
    struct unpacked u;
    call_ahead(p, 704);
    load_scaled_nibbles(&u, p, 3 * LINE);
    UNROLL for (int half = 0; half < 2; half++)
    {
        const struct s16 fifth = s16_load(words(p, LINE, 1, half));
        UNROLL for (int g = 0; g < GROUPS; g++) u.w[half][g] =
            b64_or(u.w[half][g], b64_spread(fifth, g));
    }
    add_block(&u, LESS_16, t, block);
}

V16 void iq4_nl(const struct tile *t, const char *p, int block)
{
    static const uint8_t table[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                      129, 141, 153, 166, 181, 197, 217, 241}; /* + 128 */
    struct unpacked u;
    call_ahead(p, 576);
    load_scaled_nibbles(&u, p, LINE);
    UNROLL for (int half = 0; half < 2; half++)
    {
        UNROLL for (int g = 0; g < GROUPS; g++) u.w[half][g] = b64_look_up(table, u.w[half][g]);
    }
    add_block(&u, LESS_128, t, block);
}

/* A scale is the byte of an exponent. */
V16 void mxfp4(const struct tile *t, const char *p, int block)
{
    static const uint8_t table[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                      16, 15, 14, 13, 12, 10, 8,  4}; /* + 16 */
    struct unpacked u;
    call_ahead(p, 544);
    load_nibbles(&u, p, HALF);
    UNROLL for (int half = 0; half < 2; half++)
    {
        u.scale[half] = v16_load_half_powers(p + half * ESP_LANES);
        UNROLL for (int g = 0; g < GROUPS; g++) u.w[half][g] = b64_look_up(table, u.w[half][g]);
    }
    add_block(&u, LESS_16, t, block);
}

/* Scales and minima of a block of 256: four bytes in each lane, for 32 columns each. */
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

/* Scales and minima, and the low halves of the weights, of 32 columns of Q4_K or Q5_K. */
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

V16 void q4_k(const struct tile *t, const char *p, int block)
{
    const struct k_scales s[2] = {load_k_scales(p, 0), load_k_scales(p, 1)};
    UNROLL for (int i = 0; i < 8; i++)
    {
        struct unpacked u;
        call_ahead(p + i * 576, 576);
        load_k(&u, s, p, 8 * LINE, i);
        add_block(&u, MINIMUM, t, block + i);
    }
}

V16 void q5_k(const struct tile *t, const char *p, int block)
{
    const struct k_scales s[2] = {load_k_scales(p, 0), load_k_scales(p, 1)};
    UNROLL for (int i = 0; i < 8; i++)
    {
        struct unpacked u;
        call_ahead(p + i * 704, 704);
        load_k(&u, s, p, 24 * LINE, i);
        UNROLL for (int half = 0; half < 2; half++)
        {
            const char *fifth = words(p, 8 * LINE, 8, half);
            UNROLL for (int g = 0; g < GROUPS; g++) u.w[half][g] =
                b64_or(u.w[half][g], b64_shift_and(b64_load(fifth + g * LINE), 4 - i, 16));
        }
        add_block(&u, MINIMUM, t, block + i);
    }
}

V16 void q6_k(const struct tile *t, const char *p, int block)
{
    UNROLL for (int i = 0; i < 8; i++)
    {
        struct unpacked u;
        call_ahead(p + i * 840, 840);
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
        add_block(&u, TWO_SCALES, t, block + i);
    }
}

/* ------------------------------------------------------------------ the product */

V16 void block_of(const enum esp_dtype dtype, const struct tile *t, const char *p, int block)
{
    if (dtype == ESP_Q8_0)
        q8_0(t, p, block);
    else if (dtype == ESP_Q4_0)
        q4_0(t, p, block);
    else if (dtype == ESP_Q5_0)
        q5_0(t, p, block);
    else if (dtype == ESP_IQ4_NL)
        iq4_nl(t, p, block);
    else if (dtype == ESP_MXFP4)
        mxfp4(t, p, block);
    else if (dtype == ESP_Q4_K)
        q4_k(t, p, block);
    else if (dtype == ESP_Q5_K)
        q5_k(t, p, block);
    else
        q6_k(t, p, block);
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

/* One panel by the rows of one tile. */
V16 void panel_by_tile(const enum esp_dtype dtype, const struct esp_packed *w, int panel,
                       const struct esp_matmul *p, int row, int rows, const int numbers,
                       const int bytes)
{
    const int blocks = w->columns / numbers;
    const char *data = (const char *)w->data + (size_t)panel * (size_t)blocks * (size_t)bytes;
    float sum[ESP_TOGETHER * ESP_PANEL] __attribute__((aligned(64)));
    const struct tile t = {esp_cut_at(&p->in, row, 0), rows, p->in.together, p->in.bytes, sum};
    for (int i = 0; i < rows; i++)
        memcpy(sum + i * ESP_PANEL, w->bias + (size_t)panel * ESP_PANEL,
               ESP_PANEL * sizeof *sum);
    for (int b = 0; b < blocks; b++, data += bytes)
        block_of(dtype, &t, data, b * (numbers / ESP_CUT_COLUMNS));
    finish(p, row, rows, panel, sum);
}

V16 void panels_of(const enum esp_dtype dtype, const struct esp_packed *w, int begin, int end,
                   const struct esp_matmul *p, const int numbers, const int bytes)
{
    const int most = p->in.together;
    for (int panel = begin; panel < end; panel++)
        for (int row = 0; row < p->rows; row += most) {
            const int left = p->rows - row;
            panel_by_tile(dtype, w, panel, p, row, left < most ? left : most, numbers, bytes);
        }
}

void esp_matmul_blocks(const struct esp_packed *w, int begin, int end,
                       const struct esp_matmul *p)
{
    switch (w->dtype) {
#define X(name, numbers, bytes)                                                                \
    case ESP_##name:                                                                           \
        if (numbers > 1)                                                                       \
            panels_of(ESP_##name, w, begin, end, p, numbers, bytes *ESP_PANEL);                \
        break;
        ESP_DTYPES(X)
#undef X
    case ESP_DTYPE_COUNT:
        break;
    }
}
