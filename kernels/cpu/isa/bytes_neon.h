/* bytes_neon.h - the operations of bytes.h on 64-bit ARM. Sixty-four bytes are in four
 * registers. Each register holds four columns of four outputs.
 *
 * The weights are signed here, because the instructions multiply signed bytes by signed bytes.
 * So OFFSET is 0: weights of signed formats need no change. Products are computed in one of
 * three ways, which are all exact:
 *
 *   neon      activations of 8 bits: products are added in 16 bits, which is enough for 8
 *             groups of weights below 32, for 4 groups of weights below 64, and for 2 groups of
 *             any weights; activations of 16 bits: both factors are widened
 *   dotprod   sdot multiplies four columns of four outputs; activations of 16 bits are split
 *             into two bytes, 256 high + low
 *   i8mm      one row: as with dotprod; more rows: smmla multiplies eight columns of two
 *             outputs by two rows, after b64_for_rows() has rearranged the weights
 *
 * Functions compute one half of a panel, because there are not enough registers for the sums of
 * both halves.
 */
#ifndef ESP_CPU_BYTES_NEON_H
#define ESP_CPU_BYTES_NEON_H

enum { OFFSET = 0 };

struct b64 {
    uint8x16_t a, b, c, d; /* outputs 0-3, 4-7, 8-11, 12-15 */
};
struct s16 {
    int32x4_t a, b, c, d;
};

V16_VALUE const uint8_t *as_bytes(const void *p)
{
    return p;
}

V16 struct b64 b64_load(const void *p)
{
    return EACH_AT(b64, vld1q_u8, as_bytes(p), 16);
}

V16_VALUE uint8x16_t shift_bytes(uint8x16_t v,
                                 const int shift){B64_SHIFTS(shift, vshlq_n_u8, vshrq_n_u8, v)}

V16_VALUE uint8x16_t shift_and(uint8x16_t v, const int shift, const int mask)
{
    const uint8x16_t shifted = shift_bytes(v, shift);
    return shift < 0 && 255 >> -shift == mask ? shifted
                                              : vandq_u8(shifted, vdupq_n_u8((uint8_t)mask));
}

V16_VALUE struct b64 b64_shift_and(struct b64 x, const int shift, const int mask)
{
    return EACH_WITH(b64, shift_and, x, shift, mask);
}

V16_VALUE struct b64 b64_or(struct b64 x, struct b64 y)
{
    return EACH_TWO(b64, vorrq_u8, x, y);
}

V16_VALUE uint8x16_t set_fifth(uint8x16_t x, uint8x16_t bits, int8x16_t up)
{
    return vbslq_u8(vdupq_n_u8(16), vshlq_u8(bits, up), x);
}

/* Sets bit 4 of every byte of `x` to bit `which` of the same byte of `bits`. */
V16_VALUE struct b64 b64_set_fifth(struct b64 x, struct b64 bits, int which)
{
    const int8x16_t up = vdupq_n_s8((int8_t)(4 - which));
    const struct {
        int8x16_t a, b, c, d;
    } ups = {up, up, up, up};
    return EACH_THREE(b64, set_fifth, x, bits, ups);
}

V16_VALUE struct b64 b64_from_signed(struct b64 x)
{
    return x;
}

V16_VALUE uint8x16_t look_up(uint8x16_t places, uint8x16_t table)
{
    return vqtbl1q_u8(table, places);
}

V16 struct b64 b64_look_up(const uint8_t table[16], struct b64 x)
{
    return EACH_WITH(b64, look_up, x, vld1q_u8(table));
}

V16_VALUE uint8x16_t spread(int32x4_t x, const int group)
{
    const uint8_t first = (uint8_t)(group / 2), bit = (uint8_t)(1 << group % 2 * 4);
    const uint8x16_t from = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
    const uint32x4_t bits = vdupq_n_u32(0x08040201u * bit);
    const uint8x16_t four =
        vqtbl1q_u8(vreinterpretq_u8_s32(x), vaddq_u8(from, vdupq_n_u8(first)));
    return vandq_u8(vtstq_u8(four, vreinterpretq_u8_u32(bits)), vdupq_n_u8(16));
}

/* Copies bits 4 group..4 group + 3 of each lane to bit 4 of the lane's four bytes. */
V16_VALUE struct b64 b64_spread(struct s16 x, const int group)
{
    return EACH_WITH(b64, spread, x, group);
}

V16_VALUE int32x4_t load_words(const uint8_t *p)
{
    return vreinterpretq_s32_u8(vld1q_u8(p));
}

V16 struct s16 s16_load(const void *p)
{
    return EACH_AT(s16, load_words, as_bytes(p), 16);
}

V16_VALUE struct s16 s16_set(int32_t x)
{
    return EACH_SAME(s16, vdupq_n_s32(x));
}

V16_VALUE struct s16 s16_add(struct s16 x, struct s16 y)
{
    return EACH_TWO(s16, vaddq_s32, x, y);
}

V16_VALUE struct s16 s16_times_256(struct s16 x)
{
    return EACH_WITH(s16, vshlq_n_s32, x, 8);
}

V16_VALUE struct s16 s16_and(struct s16 x, uint32_t mask)
{
    return EACH_WITH(s16, vandq_s32, x, vdupq_n_s32((int32_t)mask));
}

V16_VALUE struct s16 s16_or(struct s16 x, struct s16 y)
{
    return EACH_TWO(s16, vorrq_s32, x, y);
}

V16_VALUE int32x4_t shift_right(int32x4_t x, const int n)
{
    return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(x), vdupq_n_s32(-n)));
}

V16_VALUE struct s16 s16_shift_right(struct s16 x, const int n)
{
    return EACH_WITH(s16, shift_right, x, n);
}

V16_VALUE int32x4_t signed_byte(int32x4_t x, const int k)
{
    return vshrq_n_s32(vshlq_s32(x, vdupq_n_s32(24 - 8 * k)), 24);
}

/* Returns byte k of each lane as a signed integer. */
V16_VALUE struct s16 s16_signed_byte(struct s16 x, const int k)
{
    return EACH_WITH(s16, signed_byte, x, k);
}

V16_VALUE struct v16 s16_to_float(struct s16 x)
{
    return EACH(v16, vcvtq_f32_s32, x);
}

V16_VALUE float32x4_t byte_to_float(int32x4_t x, uint8x16_t places)
{
    const uint8x16_t bytes = vqtbl1q_u8(vreinterpretq_u8_s32(x), places);
    return vcvtq_f32_u32(vreinterpretq_u32_u8(bytes));
}

/* Returns byte k of each lane as a float. */
V16_VALUE struct v16 s16_byte_to_float(struct s16 x, const int k)
{
    const uint32x4_t first = {0xffffff00u, 0xffffff04u, 0xffffff08u, 0xffffff0cu};
    const uint32x4_t places = vaddq_u32(first, vdupq_n_u32((uint32_t)k));
    return EACH_WITH(v16, byte_to_float, x, vreinterpretq_u8_u32(places));
}

V16_VALUE float32x4_t half_powers(uint16x4_t bytes)
{
    const int32x4_t e = vreinterpretq_s32_u32(vmovl_u16(bytes)), one = vdupq_n_s32(1);
    const int32x4_t low = vshlq_s32(vdupq_n_s32(0x200000), vminq_s32(e, one));
    return vreinterpretq_f32_s32(vmaxq_s32(vshlq_n_s32(vsubq_s32(e, one), 23), low));
}

/* Returns 2^(e - 128) for sixteen bytes e; see half_scale() in kernels/dtype.c. */
V16 struct v16 v16_load_half_powers(const void *p)
{
    const uint8x16_t bytes = vld1q_u8(as_bytes(p));
    const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
    return (struct v16){half_powers(vget_low_u16(low)), half_powers(vget_high_u16(low)),
                        half_powers(vget_low_u16(high)), half_powers(vget_high_u16(high))};
}

/* ------------------------------------------------------------------ products */

/* Call this between two groups of weights. If weights are in memory, the compiler would
 * otherwise load many groups at the same time, and there are not enough registers for that.
 * (With one row, this does nothing, because weights are in registers.) */
V16_VALUE void next_group(const int rows)
{
    if (rows > 1)
        __asm__ volatile("" ::: "memory");
}

#ifdef ESP_DOTPROD

V16_VALUE int32x4_t dot_columns(int32x4_t sum, uint8x16_t w, int8x16_t x, const int lane)
{
    const int8x16_t bytes = vreinterpretq_s8_u8(w);
    switch (lane) {
    case 0:
        return vdotq_laneq_s32(sum, bytes, x, 0);
    case 1:
        return vdotq_laneq_s32(sum, bytes, x, 1);
    case 2:
        return vdotq_laneq_s32(sum, bytes, x, 2);
    default:
        return vdotq_laneq_s32(sum, bytes, x, 3);
    }
}

/* Multiplies groups from..to-1 by the 8-bit activations of `rows` rows, and adds the products
 * to the sums of the rows. The activations of consecutive rows are `line` bytes apart. */
V16 void dot_rows(struct s16 sum[], const struct b64 w[GROUPS], const int from, const int to,
                  const int8_t *x, const size_t line, const int rows)
{
    int8x16_t columns[ESP_ROWS][GROUPS / 4];
    UNROLL for (int r = 0; r < rows; r++) for (int i = from / 4; i < to / 4; i++)
        columns[r][i] = vld1q_s8(x + (size_t)r * line + 16 * i);
    UNROLL for (int g = from; g < to; g++)
    {
        UNROLL for (int r = 0; r < rows; r++)
        {
            const int8x16_t four = columns[r][g / 4];
            sum[r] = (struct s16){dot_columns(sum[r].a, w[g].a, four, g % 4),
                                  dot_columns(sum[r].b, w[g].b, four, g % 4),
                                  dot_columns(sum[r].c, w[g].c, four, g % 4),
                                  dot_columns(sum[r].d, w[g].d, four, g % 4)};
        }
        next_group(rows);
    }
}

#ifdef ESP_I8MM

V16_VALUE uint8x16_t words_first(uint8x16_t x, uint8x16_t y)
{
    return vreinterpretq_u8_u32(vzip1q_u32(vreinterpretq_u32_u8(x), vreinterpretq_u32_u8(y)));
}

V16_VALUE uint8x16_t words_second(uint8x16_t x, uint8x16_t y)
{
    return vreinterpretq_u8_u32(vzip2q_u32(vreinterpretq_u32_u8(x), vreinterpretq_u32_u8(y)));
}

/* Rearranges pairs of groups, so that each register has eight columns of two outputs. Then the
 * first group of a pair has outputs 0-7, and the second group has outputs 8-15. */
V16 void b64_for_rows(struct b64 w[GROUPS])
{
    UNROLL for (int g = 0; g < GROUPS; g += 2)
    {
        const struct b64 x = w[g], y = w[g + 1];
        w[g] = (struct b64){words_first(x.a, y.a), words_second(x.a, y.a),
                            words_first(x.b, y.b), words_second(x.b, y.b)};
        w[g + 1] = (struct b64){words_first(x.c, y.c), words_second(x.c, y.c),
                                words_first(x.d, y.d), words_second(x.d, y.d)};
    }
}

V16_VALUE int32x4_t low_pair(int32x4_t x, int32x4_t y)
{
    return vreinterpretq_s32_s64(
        vzip1q_s64(vreinterpretq_s64_s32(x), vreinterpretq_s64_s32(y)));
}

V16_VALUE int32x4_t high_pair(int32x4_t x, int32x4_t y)
{
    return vreinterpretq_s32_s64(
        vzip2q_s64(vreinterpretq_s64_s32(x), vreinterpretq_s64_s32(y)));
}

/* Joins the sums of two rows. Each register of `pair` receives the sums of two outputs for the
 * first row, and the sums of the same outputs for the second row. part_rows() undoes this. */
V16_VALUE void join_rows(struct s16 pair[2], const struct s16 sum[2])
{
    pair[0] = (struct s16){low_pair(sum[0].a, sum[1].a), high_pair(sum[0].a, sum[1].a),
                           low_pair(sum[0].b, sum[1].b), high_pair(sum[0].b, sum[1].b)};
    pair[1] = (struct s16){low_pair(sum[0].c, sum[1].c), high_pair(sum[0].c, sum[1].c),
                           low_pair(sum[0].d, sum[1].d), high_pair(sum[0].d, sum[1].d)};
}

V16_VALUE void part_rows(struct s16 sum[2], const struct s16 pair[2])
{
    sum[0] = (struct s16){low_pair(pair[0].a, pair[0].b), low_pair(pair[0].c, pair[0].d),
                          low_pair(pair[1].a, pair[1].b), low_pair(pair[1].c, pair[1].d)};
    sum[1] = (struct s16){high_pair(pair[0].a, pair[0].b), high_pair(pair[0].c, pair[0].d),
                          high_pair(pair[1].a, pair[1].b), high_pair(pair[1].c, pair[1].d)};
}

V16_VALUE int32x4_t dot_pairs(int32x4_t sum, uint8x16_t w, int8x16_t x)
{
    return vmmlaq_s32(sum, x, vreinterpretq_s8_u8(w));
}

/* Computes the same sums as dot_rows(), but the number of rows must be even, and b64_for_rows()
 * must have rearranged the weights. */
V16 void dot_row_pairs(struct s16 sum[], const struct b64 w[GROUPS], const int from,
                       const int to, const int8_t *x, const size_t line, const int rows)
{
    struct s16 pair[ESP_ROWS];
    UNROLL for (int r = 0; r < rows; r += 2) join_rows(pair + r, sum + r);
    UNROLL for (int g = from; g < to; g += 2)
    {
        UNROLL for (int r = 0; r < rows; r += 2)
        {
            const int8_t *columns = x + (size_t)r * line + 4 * g;
            const int8x16_t two = vcombine_s8(vld1_s8(columns), vld1_s8(columns + line));
            pair[r] = EACH_TWO_WITH(s16, dot_pairs, pair[r], w[g], two);
            pair[r + 1] = EACH_TWO_WITH(s16, dot_pairs, pair[r + 1], w[g + 1], two);
        }
        next_group(rows);
    }
    UNROLL for (int r = 0; r < rows; r += 2) part_rows(sum + r, pair + r);
}

#else

V16_VALUE void b64_for_rows(struct b64 w[GROUPS])
{
    (void)w;
}

#endif

V16 void dots(struct s16 sum[], const struct b64 w[GROUPS], const int from, const int to,
              const int8_t *x, const size_t line, const int rows)
{
#ifdef ESP_I8MM
    if (rows > 1) {
        dot_row_pairs(sum, w, from, to, x, line, rows);
        return;
    }
#endif
    dot_rows(sum, w, from, to, x, line, rows);
}

V16 void s8_dots(struct s16 sum[], const struct b64 w[GROUPS], const int from, const int to,
                 const struct esp_cut *x, const int rows, const bool narrow)
{
    (void)narrow;
    dots(sum, w, from, to, (const int8_t *)x->x, sizeof *x - ESP_CUT_COLUMNS, rows);
}

V16 void s16_dots(struct s16 sum[], const struct b64 w[GROUPS], const int from, const int to,
                  const struct esp_cut *x, const int rows)
{
    const int8_t *bytes = (const int8_t *)x->x;
    struct s16 high[ESP_ROWS];
    UNROLL for (int r = 0; r < rows; r++) high[r] = s16_set(0);
    dots(high, w, from, to, bytes, sizeof *x, rows);
    dots(sum, w, from, to, bytes + ESP_CUT_COLUMNS, sizeof *x, rows);
    UNROLL for (int r = 0; r < rows; r++) sum[r] = s16_add(sum[r], s16_times_256(high[r]));
}

#else

/* Stores sums in 16 bits. A register of weights has the weights of four outputs. Each register
 * of sums has the sums of two of these outputs. */
struct b64_sums {
    int16x8_t a, b, c, d;
};

V16_VALUE void b64_for_rows(struct b64 w[GROUPS])
{
    (void)w;
}

V16_VALUE int16x8_t add_first(int16x8_t sum, uint8x16_t w, int8x8_t x)
{
    return vmlal_s8(sum, vget_low_s8(vreinterpretq_s8_u8(w)), x);
}

V16_VALUE int16x8_t add_second(int16x8_t sum, uint8x16_t w, int8x8_t x)
{
    return vmlal_high_s8(sum, vreinterpretq_s8_u8(w), vcombine_s8(x, x));
}

V16_VALUE int32x4_t of_four(int16x8_t first, int16x8_t second)
{
    return vpaddq_s32(vpaddlq_s16(first), vpaddlq_s16(second));
}

/* Multiplies groups from..to-1 by one row of activations, and adds the result to `before`. The
 * sums over these groups must fit in 16 bits. `rows` is the number of rows that the caller
 * multiplies. */
V16 struct s16 s8_dot_part(struct s16 before, const struct b64 *w, const int from, const int to,
                           const int8_t *x, const int rows)
{
    const int16x8_t zero = vdupq_n_s16(0);
    struct b64_sums first = {zero, zero, zero, zero}, second = first;
    UNROLL for (int g = from; g < to; g++)
    {
        int32_t four;
        memcpy(&four, x + 4 * g, sizeof four);
        const int8x8_t columns = vreinterpret_s8_s32(vdup_n_s32(four));
        first = EACH_TWO_WITH(b64_sums, add_first, first, w[g], columns);
        second = EACH_TWO_WITH(b64_sums, add_second, second, w[g], columns);
        next_group(rows);
    }
    return s16_add(before, EACH_TWO(s16, of_four, first, second));
}

V16 void s8_dots(struct s16 sum[], const struct b64 w[GROUPS], const int from, const int to,
                 const struct esp_cut *x, const int rows, const bool narrow)
{
    const int step = narrow ? to - from : 2;
    UNROLL for (int r = 0; r < rows; r++)
    {
        const int8_t *bytes = (const int8_t *)esp_cut_skip(x, (size_t)r, true)->x;
        UNROLL for (int g = from; g < to; g += step) sum[r] =
            s8_dot_part(sum[r], w, g, g + step, bytes, rows);
    }
}

/* Holds the sums of four outputs. Each output has a register, with a separate sum for each of
 * the four columns of a group. */
struct four_sums {
    int32x4_t a, b, c, d;
};

V16_VALUE struct four_sums add_words(struct four_sums sum, uint8x16_t w, int16x4_t x)
{
    const int8x16_t bytes = vreinterpretq_s8_u8(w);
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    const int16x8_t twice = vcombine_s16(x, x);
    return (struct four_sums){
        vmlal_s16(sum.a, vget_low_s16(low), x), vmlal_high_s16(sum.b, low, twice),
        vmlal_s16(sum.c, vget_low_s16(high), x), vmlal_high_s16(sum.d, high, twice)};
}

V16_VALUE int32x4_t of_columns(struct four_sums x)
{
    return vpaddq_s32(vpaddq_s32(x.a, x.b), vpaddq_s32(x.c, x.d));
}

V16 struct s16 s16_dot(struct s16 before, const struct b64 *w, const int from, const int to,
                       const int16_t *x)
{
    const struct four_sums zero = EACH_SAME(four_sums, vdupq_n_s32(0));
    struct four_sums a = zero, b = zero, c = zero, d = zero;
    UNROLL for (int g = from; g < to; g++)
    {
        const int16x4_t four = vld1_s16(x + 4 * g);
        a = add_words(a, w[g].a, four);
        b = add_words(b, w[g].b, four);
        c = add_words(c, w[g].c, four);
        d = add_words(d, w[g].d, four);
    }
    return s16_add(before,
                   (struct s16){of_columns(a), of_columns(b), of_columns(c), of_columns(d)});
}

V16 void s16_dots(struct s16 sum[], const struct b64 w[GROUPS], const int from, const int to,
                  const struct esp_cut *x, const int rows)
{
    UNROLL for (int r = 0; r < rows; r++) sum[r] = s16_dot(sum[r], w, from, to, x[r].x);
}

#endif
#endif
