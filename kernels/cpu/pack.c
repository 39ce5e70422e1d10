/* pack.c - packs 32 rows of a stored matrix into a panel, in the form that the matrix product
 * reads, and reads single rows from a panel.
 *
 * A panel takes as many bytes as its rows take in the file:
 *   F32, F16      (column, 32)
 *   BF16          (column, 16) words of 32 bits; word j has rows j and j + 16
 *   BF16, pairs   (32 columns, half, pair of columns, 16) words: see amx.c
 *   blocks        (block, field): the fields of the format one after the other, fields
 *                 of 1 or 2 bytes as (field, 32), words of 4 bytes as (half, word, 16);
 *                 bits within a field do not move
 *
 * Packing must be fast, because streamed weights are packed for every pass. So vector
 * instructions transpose four words of four rows at a time.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/model_desc.h"

#include <string.h>

enum { TILE_COLUMNS = 64 };

size_t esp_cpu_panel_bytes(const struct esp_packed *w)
{
    const size_t columns = w->pairs ? esp_cpu_pad(w->columns, 32) : (size_t)w->columns;
    return columns / (size_t)esp_dtype_block(w->dtype) * esp_dtype_block_bytes(w->dtype) *
           ESP_PANEL;
}

/* ------------------------------------------------------------------ floats */

/* Describes the rows of a panel before they are packed, in the form that the file has. */
struct source {
    const char *rows;
    size_t stride;
    int count;
};

/* Copies columns begin..begin+n-1 of all rows to a small tile. Without this copy, rows whose
 * size is a power of two would compete for the same cache lines. Rows and columns that do
 * not exist are filled with zeros. */
static void gather(char *tile, size_t tile_stride, const struct source *s, size_t size,
                   int begin, int n)
{
    for (int j = 0; j < ESP_PANEL; j++, tile += tile_stride) {
        size_t bytes = j < s->count ? (size_t)n * size : 0;
        memcpy(tile, s->rows + (size_t)j * s->stride + (size_t)begin * size, bytes);
        memset(tile + bytes, 0, TILE_COLUMNS * size - bytes);
    }
}

typedef uint16_t halves __attribute__((vector_size(16)));
typedef uint32_t words __attribute__((vector_size(16)));

#ifdef __clang__
#define SHUFFLE(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(type, a, b, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})
#endif

static words load(const void *from)
{
    words w;
    memcpy(&w, from, sizeof w);
    return w;
}

/* Transposes four rows of four words: word i of each row is written to line i. A line has
 * `stride` bytes. */
static void turn_words(void *out, size_t stride, words a, words b, words c, words d)
{
    const words ab_low = SHUFFLE(words, a, b, 0, 4, 1, 5);
    const words ab_high = SHUFFLE(words, a, b, 2, 6, 3, 7);
    const words cd_low = SHUFFLE(words, c, d, 0, 4, 1, 5);
    const words cd_high = SHUFFLE(words, c, d, 2, 6, 3, 7);
    const words first = SHUFFLE(words, ab_low, cd_low, 0, 1, 4, 5);
    const words second = SHUFFLE(words, ab_low, cd_low, 2, 3, 6, 7);
    const words third = SHUFFLE(words, ab_high, cd_high, 0, 1, 4, 5);
    const words fourth = SHUFFLE(words, ab_high, cd_high, 2, 3, 6, 7);
    char *line = out;
    memcpy(line, &first, sizeof first);
    memcpy(line + stride, &second, sizeof second);
    memcpy(line + 2 * stride, &third, sizeof third);
    memcpy(line + 3 * stride, &fourth, sizeof fourth);
}

/* Packs eight columns of four pairs of BF16 rows. The pairs are `next` numbers apart. The
 * second row of a pair is `second` numbers after the first row. */
static void place_8_columns(void *out, const uint16_t *row, size_t next, size_t second)
{
    const size_t line = ESP_LANES * sizeof(uint32_t);
    words low[4], high[4];
    for (size_t j = 0; j < 4; j++) {
        halves a, b;
        memcpy(&a, row + j * next, sizeof a);
        memcpy(&b, row + j * next + second, sizeof b);
        low[j] = (words)SHUFFLE(halves, a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        high[j] = (words)SHUFFLE(halves, a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    turn_words(out, line, low[0], low[1], low[2], low[3]);
    turn_words((char *)out + 4 * line, line, high[0], high[1], high[2], high[3]);
}

static void place_f32(uint32_t *out, const uint32_t (*tile)[TILE_COLUMNS + 4], int n)
{
    int c = 0;
    for (; c + 4 <= n; c += 4)
        for (int j = 0; j < ESP_PANEL; j += 4)
            turn_words(&out[c * ESP_PANEL + j], ESP_PANEL * sizeof *out, load(&tile[j][c]),
                       load(&tile[j + 1][c]), load(&tile[j + 2][c]), load(&tile[j + 3][c]));
    for (; c < n; c++)
        for (int j = 0; j < ESP_PANEL; j++)
            out[c * ESP_PANEL + j] = tile[j][c];
}

static void place_f16(uint16_t *out, const uint16_t (*tile)[TILE_COLUMNS + 8], int n)
{
    int c = 0;
    for (; c + 8 <= n; c += 8)
        for (int j = 0; j < ESP_PANEL; j += 8)
            place_8_columns(out + c * ESP_PANEL + j, &tile[j][c], 2 * (TILE_COLUMNS + 8),
                            TILE_COLUMNS + 8);
    for (; c < n; c++)
        for (int j = 0; j < ESP_PANEL; j++)
            out[c * ESP_PANEL + j] = tile[j][c];
}

static void place_bf16(uint32_t *out, const uint16_t (*tile)[TILE_COLUMNS + 8], int n)
{
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    int c = 0;
    for (; little && c + 8 <= n; c += 8)
        for (int j = 0; j < ESP_LANES; j += 4)
            place_8_columns(out + c * ESP_LANES + j, &tile[j][c], TILE_COLUMNS + 8,
                            ESP_LANES * (TILE_COLUMNS + 8));
    for (; c < n; c++)
        for (int j = 0; j < ESP_LANES; j++)
            out[c * ESP_LANES + j] = tile[j][c] | (uint32_t)tile[j + ESP_LANES][c] << 16;
}

static void place_pairs(uint32_t *out, const uint16_t (*tile)[TILE_COLUMNS + 8], int n)
{
    for (int block = 0; block < n; block += 32)
        for (int half = 0; half < 2; half++)
            for (int c = 0; c < 32; c += 8, out += 4 * ESP_LANES)
                for (int j = 0; j < ESP_LANES; j += 4) {
                    const uint16_t(*rows)[TILE_COLUMNS + 8] = tile + half * ESP_LANES + j;
                    turn_words(&out[j], ESP_LANES * sizeof *out, load(&rows[0][block + c]),
                               load(&rows[1][block + c]), load(&rows[2][block + c]),
                               load(&rows[3][block + c]));
                }
}

static void pack_floats(const struct esp_packed *w, const struct source *s, char *out)
{
    const size_t size = esp_dtype_block_bytes(w->dtype);
    uint32_t wide[ESP_PANEL][TILE_COLUMNS + 4];
    uint16_t narrow[ESP_PANEL][TILE_COLUMNS + 8];
    for (int begin = 0, n; begin < w->columns; begin += n) {
        char *to = out + (size_t)begin * ESP_PANEL * size;
        n = w->columns - begin < TILE_COLUMNS ? w->columns - begin : TILE_COLUMNS;
        if (size == sizeof wide[0][0])
            gather((char *)wide, sizeof wide[0], s, size, begin, n);
        else
            gather((char *)narrow, sizeof narrow[0], s, size, begin, n);
        if (w->dtype == ESP_F32)
            place_f32((uint32_t *)(void *)to, wide, n);
        else if (w->dtype == ESP_F16)
            place_f16((uint16_t *)(void *)to, narrow, n);
        else if (w->pairs)
            place_pairs((uint32_t *)(void *)to, narrow, (int)esp_cpu_pad(n, 32));
        else
            place_bf16((uint32_t *)(void *)to, narrow, n);
    }
}

/* ------------------------------------------------------------------ blocks */

/* Packs words of up to 16 rows: word k of each row is written to line k, which has 16 words. */
static void place_words(char *out, const char *row, size_t stride, int rows, int count)
{
    const size_t line = ESP_LANES * sizeof(uint32_t);
    int k = 0;
    for (; rows == ESP_LANES && k + 4 <= count; k += 4, row += 16, out += 4 * line)
        for (int j = 0; j < ESP_LANES; j += 4) {
            const char *from = row + (size_t)j * stride;
            turn_words(out + 4 * j, line, load(from), load(from + stride),
                       load(from + 2 * stride), load(from + 3 * stride));
        }
    for (; k < count; k++, row += 4, out += ESP_LANES * 4)
        for (int j = 0; j < rows; j++)
            memcpy(out + 4 * j, row + (size_t)j * stride, 4);
}

static char *place_field(char *out, const struct esp_dtype_field *f, const struct source *s,
                         const char *block)
{
    block += f->from;
    if (f->size == 4)
        for (int half = 0; half < 2; half++) {
            const int first = half * ESP_LANES;
            const int rows = s->count - first;
            if (rows >= ESP_LANES) /* the loop is fast if its length is a constant */
                place_words(out, block + (size_t)first * s->stride, s->stride, ESP_LANES,
                            f->count);
            else if (rows > 0)
                place_words(out, block + (size_t)first * s->stride, s->stride, rows, f->count);
            out += ESP_LANES * 4 * f->count;
        }
    else if (f->size == 2)
        for (int k = 0; k < f->count; k++, out += ESP_PANEL * 2)
            for (int j = 0; j < s->count; j++)
                memcpy(out + 2 * j, block + 2 * k + (size_t)j * s->stride, 2);
    else
        for (int k = 0; k < f->count; k++, out += ESP_PANEL)
            for (int j = 0; j < s->count; j++)
                out[j] = block[k + (ptrdiff_t)((size_t)j * s->stride)];
    return out;
}

static void pack_blocks(const struct esp_packed *w, const struct source *s, char *out)
{
    const size_t bytes = esp_dtype_block_bytes(w->dtype);
    const int blocks = w->columns / esp_dtype_block(w->dtype);
    if (s->count < ESP_PANEL)
        memset(out, 0, esp_cpu_panel_bytes(w));
    for (int b = 0; b < blocks; b++)
        for (const struct esp_dtype_field *f = esp_dtype_fields(w->dtype); f->count; f++)
            out = place_field(out, f, s, s->rows + (size_t)b * bytes);
}

/* ------------------------------------------------------------------ floats and blocks */

void esp_cpu_pack(const struct esp_packed *w, int panel, const void *rows)
{
    const int left = w->rows - panel * ESP_PANEL;
    const struct source s = {rows, esp_dtype_row_bytes(w->dtype, w->columns),
                             left < ESP_PANEL ? left : ESP_PANEL};
    char *out = (char *)w->data + (size_t)panel * esp_cpu_panel_bytes(w);
    if (esp_dtype_quantised(w->dtype))
        pack_blocks(w, &s, out);
    else
        pack_floats(w, &s, out);
}

static size_t rows_bytes(const struct esp_packed *w)
{
    return esp_cpu_pad((int)esp_dtype_row_bytes(w->dtype, w->columns), 64) * ESP_PANEL;
}

size_t esp_cpu_stored_room(const struct esp_packed *w)
{
    return ESP_PACKED_TOGETHER * esp_cpu_panel_bytes(w) + rows_bytes(w);
}

void esp_cpu_pack_stored(struct esp_packed *part, const struct esp_packed *w, int begin,
                         int count, char *room)
{
    const struct esp_tensor *t = w->stored;
    const bool plain = !t->paired && !t->transposed && !t->scales && !t->listed &&
                       t->first == 0 && t->block == t->rows;
    const size_t row_bytes = esp_dtype_row_bytes(w->dtype, w->columns);
    const int first = begin * ESP_PANEL;
    char *copy = room + ESP_PACKED_TOGETHER * esp_cpu_panel_bytes(w);
    *part = *w;
    part->stored = NULL;
    part->data = room;
    part->bias = w->bias + first;
    part->panels = count;
    part->rows = w->rows - first < count * ESP_PANEL ? w->rows - first : count * ESP_PANEL;
    for (int panel = 0; panel < count; panel++) {
        const int row = panel * ESP_PANEL, left = part->rows - row;
        const char *rows = (const char *)t->data + (size_t)(first + row) * row_bytes;
        if (!plain) {
            esp_tensor_copy_rows(t, first + row, left < ESP_PANEL ? left : ESP_PANEL, copy);
            rows = copy;
        }
        esp_cpu_pack(part, panel, rows);
    }
}

/* Returns the index at which a panel stores the number in row j and column c. */
static size_t place_of(const struct esp_packed *w, size_t j, size_t c)
{
    if (w->dtype != ESP_BF16)
        return c * ESP_PANEL + j;
    if (!w->pairs)
        return c * ESP_PANEL + j % ESP_LANES * 2 + j / ESP_LANES;
    return c / 32 * 1024 + j / ESP_LANES * 512 + c % 32 / 2 * 32 + j % ESP_LANES * 2 + c % 2;
}

/* Copies row j of a packed block to `block`, in stored form. Returns the next packed block. */
static const char *take_block(enum esp_dtype dtype, const char *packed, int j, char *block)
{
    const int half = j / ESP_LANES, lane = j % ESP_LANES;
    for (const struct esp_dtype_field *f = esp_dtype_fields(dtype); f->count; f++) {
        for (int k = 0; k < f->count; k++) {
            const int at =
                f->size < 4 ? k * ESP_PANEL + j : (half * f->count + k) * ESP_LANES + lane;
            memcpy(block + f->from + k * f->size, packed + at * f->size, f->size);
        }
        packed += f->count * f->size * ESP_PANEL;
    }
    return packed;
}

void esp_cpu_packed_row(const struct esp_packed *w, int row, float *out)
{
    const char *panel =
        (const char *)w->data + (size_t)(row / ESP_PANEL) * esp_cpu_panel_bytes(w);
    const int j = row % ESP_PANEL, numbers = esp_dtype_block(w->dtype);
    const size_t bytes = esp_dtype_block_bytes(w->dtype);
    char stored[ESP_DTYPE_BLOCK_BYTES];
    for (int c = 0; c < w->columns; c += numbers) {
        if (numbers > 1)
            panel = take_block(w->dtype, panel, j, stored);
        else
            memcpy(stored, panel + place_of(w, (size_t)j, (size_t)c) * bytes, bytes);
        esp_dequantise(w->dtype, stored, numbers, out + c);
    }
}
