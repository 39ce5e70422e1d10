/* amx.c - matrix products on Intel's tile unit (AMX), for BF16 weights; all else is AVX-512's.
 *
 * The unit multiplies BF16 by BF16 and adds in float32, sixteen times as fast as AVX-512
 * multiplies float32. The weights are BF16 as they are. An activation is cut into three BF16
 * parts of 8 bits each (x = high + middle + low, exactly), so that nothing of it is lost: a
 * batch of n vectors becomes a batch of 3 n rows, and an output is the sum of its three rows.
 * Small batches then cost little more than one vector, which is what verifying a tree in one
 * pass wants.
 *
 * A row of a tile never meets another row, so results do not depend on the batch here either;
 * but the order of the sums is the unit's own, so they differ in the last bits from the other
 * instruction sets'.
 *
 * Weights are packed in tiles (esp_packed.pairs): per panel and 32 inputs, two tiles of 16
 * outputs; a tile is (16 pairs of inputs, 16 outputs, 2).
 */
#define ESP_ISA avx512
#include "cpu/isa/parts.h"

#include <immintrin.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    TILE_FLOATS = 256,
    BLOCK = 32,
    TILE_ROWS = 16,
    TILE_BYTES = 1024,
    ROW_BYTES = 64,
    PARTS = 3,
    AHEAD = 8192
};
enum { ARCH_REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };

struct tile_config {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} __attribute__((aligned(64)));

/* Tiles 0..3 hold sums, 4 and 5 activations, 6 and 7 weights. */
static void configure(int rows)
{
    struct tile_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = ROW_BYTES;
        config.rows[i] = (uint8_t)(i < 6 ? rows : TILE_ROWS);
    }
    _tile_loadconfig(&config);
}

/* Row 3 i + k of `parts` (rounded up to whole tiles, columns) becomes part k of vector i. */
static void split(uint16_t *parts, const struct esp_product *p, int columns)
{
    const __m512i top = _mm512_set1_epi32((int)0xffff0000u);
    for (int i = 0; i < p->rows; i++) {
        const float *x = p->x + (size_t)i * p->x_stride;
        uint16_t *out = parts + (size_t)i * PARTS * (size_t)columns;
        for (int c = 0; c < columns; c += ESP_LANES) {
            __m512 rest = _mm512_loadu_ps(x + c);
            for (int k = 0; k < PARTS; k++) {
                __m512i bits = _mm512_and_si512(_mm512_castps_si512(rest), top);
                _mm256_storeu_si256((__m256i *)(out + (size_t)k * (size_t)columns + c),
                                    _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
                rest = _mm512_sub_ps(rest, _mm512_castsi512_ps(bits));
            }
        }
    }
}

/* The weights stream past once; the next ones are called for while these are multiplied. */
static inline void prefetch(const char *b)
{
    for (int line = 0; line < 2 * TILE_BYTES; line += ROW_BYTES)
        __builtin_prefetch(b + AHEAD + line);
}

static inline void clear_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/* Two tiles of activation rows by one panel: sums 0 and 1 are the first tile's. */
static void two_by_one(const char *a, size_t a_row, const char *b, int blocks)
{
    const size_t a_tile = TILE_ROWS * a_row;
    clear_sums();
    for (int i = 0; i < blocks; i++, a += ROW_BYTES, b += 2 * TILE_BYTES) {
        prefetch(b);
        _tile_loadd(6, b, ROW_BYTES);
        _tile_loadd(4, a, a_row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + TILE_BYTES, ROW_BYTES);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + a_tile, a_row);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* One tile of activation rows by one or two panels, the second `panel` bytes behind the first.
 */
static void one_by_many(const char *a, size_t a_row, const char *b, size_t panel, int blocks,
                        const bool both)
{
    clear_sums();
    for (int i = 0; i < blocks; i++, a += ROW_BYTES, b += 2 * TILE_BYTES) {
        prefetch(b);
        _tile_loadd(4, a, a_row);
        _tile_loadd(6, b, ROW_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + TILE_BYTES, ROW_BYTES);
        _tile_dpbf16ps(1, 4, 7);
        if (!both)
            continue;
        prefetch(b + panel);
        _tile_loadd(6, b + panel, ROW_BYTES);
        _tile_dpbf16ps(2, 4, 6);
        _tile_loadd(7, b + panel + TILE_BYTES, ROW_BYTES);
        _tile_dpbf16ps(3, 4, 7);
    }
}

/* Sums 2 i and 2 i + 1 go to `sums` and `half` floats behind it, i tiles on. */
static void store_sums(float *sums, size_t half)
{
    _tile_stored(0, sums, ROW_BYTES);
    _tile_stored(1, sums + half, ROW_BYTES);
    _tile_stored(2, sums + TILE_FLOATS, ROW_BYTES);
    _tile_stored(3, sums + half + TILE_FLOATS, ROW_BYTES);
}

/* Sixteen outputs, number `half` of a panel, of `rows` vectors from `row` on: bias and all
 * parts. */
static void finish(const struct esp_packed *w, const struct esp_product *p, int panel, int half,
                   int row, int rows, const float *sums)
{
    const size_t at = (size_t)panel * ESP_PANEL + (size_t)half * ESP_LANES;
    const __m512 bias = _mm512_loadu_ps(w->bias + at);
    for (int i = 0; i < rows; i++, sums += PARTS * ESP_LANES) {
        size_t y_row = (size_t)(p->y_row ? p->y_row[row + i] : row + i);
        float *y = p->y + y_row * p->y_stride + at;
        __m512 sum = _mm512_add_ps(_mm512_load_ps(sums), _mm512_load_ps(sums + ESP_LANES));
        sum = _mm512_add_ps(sum, _mm512_load_ps(sums + 2 * ESP_LANES));
        sum = _mm512_add_ps(sum, bias);
        if (p->add)
            sum = _mm512_add_ps(_mm512_loadu_ps(y), sum);
        _mm512_storeu_ps(y, sum);
    }
}

/* Up to five vectors: their rows are one tile. */
static void few_rows(const struct esp_packed *w, int begin, int end,
                     const struct esp_product *p, const char *a, size_t a_row, int blocks)
{
    const size_t panel = (size_t)blocks * 2 * TILE_BYTES;
    float sums[4 * TILE_FLOATS] __attribute__((aligned(64)));
    for (int first = begin, n; first < end; first += n) {
        const char *b = (const char *)w->data + (size_t)first * panel;
        n = end - first < 2 ? 1 : 2;
        one_by_many(a, a_row, b, panel, blocks, n == 2);
        store_sums(sums, 2 * TILE_FLOATS);
        for (int i = 0; i < n; i++)
            for (int half = 0; half < 2; half++)
                finish(w, p, first + i, half, 0, p->rows, sums + (2 * half + i) * TILE_FLOATS);
    }
}

/* Sixteen vectors at a time: their rows are three tiles, for up to ten vectors two. */
static void many_rows(const struct esp_packed *w, int begin, int end,
                      const struct esp_product *p, const char *a, size_t a_row, int blocks)
{
    const size_t panel = (size_t)blocks * 2 * TILE_BYTES;
    float sums[(2 * PARTS + 1) * TILE_FLOATS] __attribute__((aligned(64)));
    for (int first = begin; first < end; first++) {
        const char *b = (const char *)w->data + (size_t)first * panel;
        for (int top = 0; top < p->rows; top += TILE_ROWS) {
            const char *rows = a + (size_t)top * PARTS * a_row;
            int n = p->rows - top < TILE_ROWS ? p->rows - top : TILE_ROWS;
            if (PARTS * n > 2 * TILE_ROWS) {
                one_by_many(rows + 2 * TILE_ROWS * a_row, a_row, b, 0, blocks, false);
                store_sums(sums + 2 * TILE_FLOATS, PARTS * TILE_FLOATS);
            }
            two_by_one(rows, a_row, b, blocks);
            store_sums(sums, PARTS * TILE_FLOATS);
            for (int half = 0; half < 2; half++)
                finish(w, p, first, half, top, n, sums + half * PARTS * TILE_FLOATS);
        }
    }
}

static void product(const struct esp_packed *w, int begin, int end, const struct esp_product *p)
{
    if (!w->pairs) {
        esp_product_panels(w, begin, end, p);
        return;
    }
    const int blocks = (w->columns + BLOCK - 1) / BLOCK;
    const size_t a_row = (size_t)blocks * ROW_BYTES;
    bool few = PARTS * p->rows <= TILE_ROWS;
    split(p->scratch, p, blocks * BLOCK);
    configure(few ? PARTS * p->rows : TILE_ROWS);
    if (few)
        few_rows(w, begin, end, p, p->scratch, a_row, blocks);
    else
        many_rows(w, begin, end, p, p->scratch, a_row, blocks);
    _tile_release();
}

bool esp_cpu_amx_allowed(void)
{
    /* The system lets a process use the tiles once it has asked. */
    return syscall(SYS_arch_prctl, ARCH_REQUEST_PERMISSION, TILE_DATA) == 0;
}

const struct esp_cpu_isa esp_cpu_isa_amx = {
    .name = "AMX",
    .pairs = true,
    .product = product,
    .attention = esp_attention_queries,
    .norm = esp_norm_vector,
    .rotate = esp_rotate_head,
    .scale = esp_scale_vector,
    .activate = esp_activate_vector,
    .argmax = esp_row_argmax,
    .top_k = esp_row_top_k,
    .softmax = esp_row_softmax,
    .sample = esp_row_sample,
    .combine = esp_row_combine,
    .remove = esp_row_remove,
};
