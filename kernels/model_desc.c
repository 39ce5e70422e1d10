/* model_desc.c - checks the shapes of the tensors in a model description and reads tensors; see
 * model_desc.h.
 *
 * Descriptions come from untrusted files. A backend may use the dimensions of a description to
 * index memory only after esp_model_desc_check().
 */
#include "kernels/model_desc.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/status.h"

/* ------------------------------------------------------------------ reading the file */

void esp_tensor_file_read(struct esp_tensor_file *file, size_t offset, void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(file->fd, (char *)to + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            memset((char *)to + done, 0, size - done);
            __atomic_store_n(&file->failed, true, __ATOMIC_RELAXED);
            return;
        }
        done += (size_t)n;
    }
}

/* Returns which stored row contains row `row` of the matrix. *run becomes the number of rows,
 * beginning with this row, that are stored contiguously. */
static size_t stored_row(const struct esp_tensor *t, int row, int *run)
{
    const int in_block = row % t->block;
    size_t at = (size_t)(row / t->block) * (size_t)t->stride + (size_t)in_block;
    *run = t->block - in_block;
    if (t->paired > 0) {
        const size_t head = (size_t)t->paired, in_head = at % head, half = head / 2;
        at += (in_head < half ? 2 * in_head : 2 * (in_head - half) + 1) - in_head;
        *run = 1;
    }
    return at;
}

/* Reads bytes at `begin` + `offset` of a file or, if `file` is NULL, at `offset` of `data`. */
static void read_bytes(struct esp_tensor_file *file, size_t begin, const void *data,
                       size_t offset, void *to, size_t size)
{
    if (file)
        esp_tensor_file_read(file, begin + offset, to, size);
    else
        memcpy(to, (const char *)data + offset, size);
}

static void read_stored(const struct esp_tensor *t, size_t offset, void *to, size_t size)
{
    read_bytes(t->source, t->offset, t->data, offset, to, size);
}

/* Transposes a piece (columns, length) of a stored matrix: number i * step in line c of the
 * piece is copied to number c in row i of `to`. Rows of `to` are `stride` numbers apart.
 * Callers pass a constant `size`, so that memcpy() compiles to a move. */
static inline void turn(char *to, size_t stride, const char *piece, size_t columns, size_t rows,
                        size_t length, size_t step, size_t size)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t c = 0; c < columns; c++)
            memcpy(to + (i * stride + c) * size, piece + (c * length + i * step) * size, size);
}

/* Returns how many stored rows apart two consecutive rows of a matrix are in the file. This is
 * more than 1 if rows of several matrices alternate. */
static size_t step_of(const struct esp_tensor *t)
{
    return t->block == 1 ? (size_t)t->stride : 1;
}

/* Copies rows of a transposed tensor, piece by piece. Pieces are as long as possible,
 * because each piece needs a separate read. Rows of an interleaved matrix are `step` numbers
 * apart. */
static void copy_transposed(const struct esp_tensor *t, int row, int count, char *to)
{
    enum { ROWS = 512, COLUMNS = 16 };
    const size_t size = esp_dtype_block_bytes(t->dtype), columns = (size_t)t->columns;
    const size_t step = step_of(t);
    const int most = step < ROWS ? (int)(ROWS / step) : 1;
    char piece[ROWS * COLUMNS * sizeof(float)];
    for (int n; count > 0; row += n, count -= n, to += (size_t)n * columns * size) {
        n = count < most ? count : most;
        const size_t length = ((size_t)n - 1) * step + 1;
        for (size_t c = 0, m; c < columns; c += m) {
            m = columns - c < COLUMNS ? columns - c : COLUMNS;
            for (size_t i = 0; i < m; i++)
                read_stored(t, ((c + i) * (size_t)t->transposed + (size_t)row * step) * size,
                            piece + i * length * size, length * size);
            if (size == sizeof(uint32_t))
                turn(to + c * size, columns, piece, m, (size_t)n, length, step,
                     sizeof(uint32_t));
            else
                turn(to + c * size, columns, piece, m, (size_t)n, length, step,
                     sizeof(uint16_t));
        }
    }
}

/* Joins MXFP4 blocks with their scales, and puts the half-bytes into the order of GGUF. */
static void join_scales(unsigned char *to, const unsigned char *blocks,
                        const unsigned char *scales, size_t count)
{
    enum { BYTES = 16 };
    for (size_t b = 0; b < count; b++, to += BYTES + 1, blocks += BYTES) {
        to[0] = scales[b];
        for (int i = 0; i < BYTES; i++) {
            const unsigned char low = blocks[i / 2], high = blocks[BYTES / 2 + i / 2];
            to[1 + i] = i % 2 ? (unsigned char)(low >> 4 | (high & 0xf0))
                              : (unsigned char)((low & 15) | (high & 15) << 4);
        }
    }
}

static void copy_joined(const struct esp_tensor *t, int row, int count, unsigned char *to)
{
    enum { MOST = 1024, BYTES = 16 };
    const size_t blocks = (size_t)(t->columns / esp_dtype_block(t->dtype));
    unsigned char block[MOST * BYTES], scale[MOST];
    for (int i = 0; i < count; i++)
        for (size_t b = 0, n; b < blocks; b += n, to += n * (BYTES + 1)) {
            const size_t at = (size_t)(row + i) * step_of(t) * blocks + b;
            n = blocks - b < MOST ? blocks - b : MOST;
            read_stored(t, at * BYTES, block, n * BYTES);
            read_bytes(t->scale_source, t->scale_offset, t->scales, at, scale, n);
            join_scales(to, block, scale, n);
        }
}

/* Copies rows that are short and interleaved. An interleaved bias is such a matrix: each row is
 * one number. */
static void copy_interleaved(const struct esp_tensor *t, size_t row_bytes, int row, int count,
                             char *to)
{
    enum { SPAN = 4096 };
    const size_t step = step_of(t), most = (SPAN / row_bytes - 1) / step + 1;
    char span[SPAN];
    for (size_t n; count > 0; row += (int)n, count -= (int)n) {
        n = (size_t)count < most ? (size_t)count : most;
        read_stored(t, (size_t)row * step * row_bytes, span, ((n - 1) * step + 1) * row_bytes);
        for (size_t i = 0; i < n; i++, to += row_bytes)
            memcpy(to, span + i * step * row_bytes, row_bytes);
    }
}

static void copy_stored(const struct esp_tensor *t, int columns, int row, int count, void *to)
{
    const size_t row_bytes = esp_dtype_row_bytes(t->dtype, columns);
    if (t->transposed > 0)
        copy_transposed(t, row, count, to);
    else if (t->scales)
        copy_joined(t, row, count, to);
    else if (t->block == 1 && t->paired == 0 && row_bytes <= 64)
        copy_interleaved(t, row_bytes, row, count, to);
    else
        for (int run; count > 0; row += run, count -= run) {
            size_t at = stored_row(t, row, &run);
            run = count < run ? count : run;
            read_stored(t, at * row_bytes, to, (size_t)run * row_bytes);
            to = (char *)to + (size_t)run * row_bytes;
        }
}

/* Divides numbers by a power of two. A BF16 number is the upper half of an F32 number, so both
 * can be divided without rounding. */
static void divide(char *numbers, int count, enum esp_dtype dtype, int divisor)
{
    const size_t size = esp_dtype_block_bytes(dtype);
    for (int i = 0; i < count; i++) {
        char *at = numbers + (size_t)i * size;
        uint32_t bits = 0;
        float value;
        memcpy((char *)&bits + (4 - size), at, size);
        memcpy(&value, &bits, sizeof value);
        value /= (float)divisor;
        memcpy(&bits, &value, sizeof bits);
        memcpy(at, (char *)&bits + (4 - size), size);
    }
}

/* Copies a row of an enlarged tensor. Only tensors of floats are enlarged. */
static void copy_larger(const struct esp_tensor *t, int row, char *to)
{
    const size_t size = esp_dtype_block_bytes(t->dtype);
    const size_t part = (size_t)t->stored_columns * size;
    if (t->divisor == 0) {
        memset(to, 0, (size_t)t->columns * size);
        return;
    }
    copy_stored(t, t->stored_columns, row % t->stored_rows, 1, to);
    if (t->divisor > 1)
        divide(to, t->stored_columns, t->dtype, t->divisor);
    for (int i = 1; i < t->columns / t->stored_columns; i++)
        memcpy(to + (size_t)i * part, to, part);
}

/* Writes rows of a tensor that is a quantised copy of another tensor. */
static void copy_quantised(const struct esp_tensor *t, int row, int count, char *to)
{
    const size_t row_bytes = esp_dtype_row_bytes(t->dtype, t->columns);
    float *numbers = malloc((size_t)t->columns * sizeof *numbers);
    if (!numbers) {
        t->source->failed = true;
        memset(to, 0, (size_t)count * row_bytes);
        return;
    }
    for (int i = 0; i < count; i++, to += row_bytes) {
        esp_tensor_read_row(t->original, row + i, numbers);
        for (int k = 0; k < t->columns; k++)
            numbers[k] = isfinite(numbers[k]) ? numbers[k] : 0;
        esp_quantise_quickly(t->dtype, numbers, t->columns, to);
    }
    free(numbers);
}

static void copy_listed(const struct esp_tensor *t, int row, int count, char *to)
{
    const size_t row_bytes = esp_dtype_row_bytes(t->dtype, t->columns);
    struct esp_tensor all = *t;
    all.listed = NULL;
    all.first = 0; /* indices of `listed` already include `first` */
    for (int i = 0; i < count; i++)
        esp_tensor_copy_rows(&all, t->listed[row + i], 1, to + (size_t)i * row_bytes);
}

void esp_tensor_copy_rows(const struct esp_tensor *t, int row, int count, void *to)
{
    const size_t row_bytes = esp_dtype_row_bytes(t->dtype, t->columns);
    row += t->first;
    if (t->listed) {
        copy_listed(t, row, count, to);
        return;
    }
    if (t->original) {
        copy_quantised(t, row, count, to);
        return;
    }
    if (t->stored_rows == 0)
        copy_stored(t, t->columns, row, count, to);
    for (int i = 0; i < count && t->stored_rows > 0; i++)
        copy_larger(t, row + i, (char *)to + (size_t)i * row_bytes);
}

enum { FLOATS_TOGETHER = 64 };

/* No stored number takes more bytes than a float. So rows are read into the end of `out` and
 * converted from the front: floats overwrite only what has already been converted. */
void esp_tensor_read_rows(const struct esp_tensor *tensor, int row, int count, float *out)
{
    const size_t block = (size_t)esp_dtype_block(tensor->dtype);
    const size_t bytes = esp_dtype_block_bytes(tensor->dtype);
    const size_t blocks = (size_t)count * (size_t)tensor->columns / block;
    const size_t most = block == 1 ? FLOATS_TOGETHER : 1;
    char *from = (char *)out + blocks * (block * sizeof *out - bytes);
    esp_tensor_copy_rows(tensor, row, count, from);
    for (size_t i = 0, n; i < blocks && tensor->dtype != ESP_F32; i += n) {
        char stored[ESP_DTYPE_BLOCK_BYTES];
        n = blocks - i < most ? blocks - i : most;
        memcpy(stored, from + i * bytes, n * bytes);
        esp_dequantise(tensor->dtype, stored, (int)(n * block), out + i * block);
    }
    for (size_t i = 0; i < blocks * block && tensor->added != 0; i++)
        out[i] += tensor->added;
    for (size_t i = 0; i < blocks * block && tensor->logarithm; i++)
        out[i] = -expf(out[i]);
}

void esp_tensor_read_row(const struct esp_tensor *tensor, int row, float *out)
{
    esp_tensor_read_rows(tensor, row, 1, out);
}

/* Returns whether rows `first` and later can be described by moving the start of the data. */
static bool is_movable(const struct esp_tensor *t, int first)
{
    return t->block == t->rows && t->first == 0 && t->transposed == 0 && !t->scales &&
           t->stored_rows == 0 && !t->original && !t->listed &&
           (t->paired == 0 || first % t->paired == 0);
}

struct esp_tensor esp_tensor_slice(const struct esp_tensor *t, int first, int count)
{
    struct esp_tensor slice = *t;
    slice.rows = count;
    if (!t->data || !is_movable(t, first)) {
        slice.first += first;
        return slice;
    }
    const size_t skipped = (size_t)first * esp_dtype_row_bytes(t->dtype, t->columns);
    if (t->source)
        slice.offset += skipped;
    else
        slice.data = (const char *)t->data + skipped;
    slice.block = slice.stride = count;
    return slice;
}

bool esp_tensor_same(const struct esp_tensor *a, const struct esp_tensor *b)
{
    return a->data == b->data && a->first == b->first && a->original == b->original &&
           a->listed == b->listed && a->source == b->source && a->offset == b->offset &&
           a->dtype == b->dtype && a->block == b->block && a->stride == b->stride &&
           a->paired == b->paired && a->stored_rows == b->stored_rows &&
           a->stored_columns == b->stored_columns && a->divisor == b->divisor;
}

int esp_model_desc_tokens(const struct esp_model_desc *d)
{
    return d->output_tokens > 0 ? d->output_tokens : d->vocabulary;
}

bool esp_model_desc_lent(const struct esp_model_desc *d, const struct esp_tensor *t)
{
    const struct esp_model_desc *lender = d->lender ? d->lender->desc : NULL;
    return lender && esp_tensor_same(t, t == &d->head ? &lender->head : &lender->embedding);
}

size_t esp_memory_limit_left(const struct esp_memory_limit *limit)
{
    return limit->bytes == 0              ? SIZE_MAX
           : limit->bytes > limit->others ? limit->bytes - limit->others
                                          : 0;
}

bool esp_layer_is_streamed(int layer, int layers, int count)
{
    const int64_t before = (int64_t)layer * count / layers;
    return ((int64_t)layer + 1) * count / layers > before;
}

int esp_model_desc_widest(const struct esp_model_desc *d)
{
    const int widths[] = {d->hidden,
                          d->ffn,
                          d->heads * d->head_dim,
                          d->expert_ffn,
                          d->fc.columns,
                          d->layer[0].query.columns,
                          esp_model_desc_mixed_width(d)};
    int most = 0;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        most = widths[i] > most ? widths[i] : most;
    return most;
}

bool esp_model_desc_recurrent(const struct esp_model_desc *d)
{
    return d->conv_kernel > 0;
}

int esp_model_desc_attentions(const struct esp_model_desc *d)
{
    int count = 0;
    for (int i = 0; i < d->layers; i++)
        count += d->layer[i].mixer == ESP_MIXER_ATTENTION;
    return count;
}

int esp_model_desc_recurrents(const struct esp_model_desc *d)
{
    int count = 0;
    for (int i = 0; i < d->layers; i++)
        count += esp_recurs(d->layer[i].mixer);
    return count;
}

bool esp_layer_has_mlp(const struct esp_layer *layer)
{
    return layer->router.data || layer->up.data;
}

int esp_conv_width(const struct esp_model_desc *d, enum esp_mixer mixer)
{
    return mixer == ESP_MIXER_CONV
               ? d->hidden
               : 2 * d->key_heads * d->key_dim + d->state_heads * d->value_dim;
}

int esp_mixed_width(const struct esp_model_desc *d, enum esp_mixer mixer)
{
    return mixer == ESP_MIXER_CONV ? d->hidden : d->state_heads * d->value_dim;
}

static int most_of(const struct esp_model_desc *d,
                   int (*width)(const struct esp_model_desc *, enum esp_mixer))
{
    int most = 0;
    for (int i = 0; i < d->layers; i++) {
        const enum esp_mixer mixer = d->layer[i].mixer;
        const int own = esp_recurs(mixer) ? width(d, mixer) : 0;
        most = own > most ? own : most;
    }
    return most;
}

int esp_model_desc_conv_width(const struct esp_model_desc *d)
{
    return most_of(d, esp_conv_width);
}

int esp_model_desc_mixed_width(const struct esp_model_desc *d)
{
    return most_of(d, esp_mixed_width);
}

const struct esp_tensor *esp_layer_matrix(const struct esp_layer *layer)
{
    return layer->mixer == ESP_MIXER_ATTENTION ? &layer->query
           : layer->mixer == ESP_MIXER_NONE ? layer->up.data ? &layer->up : &layer->expert->up
                                            : &layer->conv_in;
}

bool esp_model_desc_has_branch(const struct esp_model_desc *d)
{
    bool any = d->residual_scale != 0;
    for (int i = 0; i < d->layers; i++)
        any = any || d->layer[i].norm_attended.data || d->layer[i].norm_mlp.data;
    return any;
}

int esp_model_desc_joined(const struct esp_model_desc *d)
{
    if (d->reads == ESP_READS_EAGLE)
        return d->hidden + d->input;
    return d->reads == ESP_READS_TOKENS ? 0
           : d->input > 2 * d->hidden   ? d->input
                                        : 2 * d->hidden;
}

/* ------------------------------------------------------------------ checking */

static bool fits_together(const struct esp_model_desc *d)
{
    return d->layers > 0 && d->hidden > 0 && d->heads > 0 && d->kv_heads > 0 &&
           d->head_dim > 0 && d->ffn > 0 && d->vocabulary > 0 && d->heads % d->kv_heads == 0 &&
           (int64_t)d->heads * d->head_dim <= INT32_MAX / 2 && d->hidden <= INT32_MAX / 2 &&
           d->ffn <= INT32_MAX / 2 && d->vocabulary <= INT32_MAX / 2 && d->rotary >= 0 &&
           d->rotary <= d->head_dim && d->rotary % 2 == 0 &&
           (d->rotary == 0 || d->inverse_frequency) && d->layer &&
           (!d->position_embedding.data || d->position_embedding.rows >= d->context) &&
           d->output_tokens >= 0 && (d->output_tokens == 0 || d->output_token) &&
           (d->output_token ? d->outputs > 0 && d->outputs <= d->vocabulary
                            : d->outputs == d->vocabulary) &&
           (d->reads == ESP_READS_TOKENS ? d->input == 0
                                         : d->input > 0 && d->input <= INT32_MAX / 4) &&
           (!d->norm_embedding.data ||
            (d->reads == ESP_READS_EAGLE && d->input == d->hidden)) &&
           (d->reads != ESP_READS_EAGLE3 ||
            (d->input != d->hidden && d->hidden <= INT32_MAX / 8)) &&
           (d->fc_norms == 0 || (d->reads == ESP_READS_EAGLE3 && d->fc_norms > 0 &&
                                 d->fc_norms <= ESP_FC_NORMS && d->input % d->fc_norms == 0));
}

/* Returns whether the sizes of layers with a state are supported. All state heads that share a
 * key head also share a norm. Values are computed in vectors of 16. */
static bool states_fit(const struct esp_model_desc *d)
{
    return d->state_heads > 0 && d->key_heads > 0 && d->state_heads % d->key_heads == 0 &&
           d->key_dim > 0 && d->key_dim % 4 == 0 && d->value_dim > 0 &&
           d->value_dim % 16 == 0 && d->state_heads <= 4096 && d->key_dim <= 4096 &&
           d->value_dim <= 4096;
}

static bool recurrence_fits(const struct esp_model_desc *d)
{
    for (int i = 0; i < d->layers; i++) {
        const enum esp_mixer mixer = d->layer[i].mixer;
        if (mixer == ESP_MIXER_ATTENTION)
            continue;
        if (mixer == ESP_MIXER_NONE && esp_model_desc_recurrent(d))
            continue;
        if (d->conv_kernel < 2 || d->conv_kernel > 16 || d->reads != ESP_READS_TOKENS ||
            d->parallel_residual || (mixer != ESP_MIXER_CONV && !states_fit(d)))
            return false;
    }
    return true;
}

struct checker {
    int layer;  /* the layer that is checked; -1 for tensors outside the layers */
    int status; /* the first failure; nothing is checked after it */
    char *err;
    size_t errlen;
};

static void check(struct checker *c, const struct esp_tensor *t, const char *name, int rows,
                  int columns)
{
    const bool known = (unsigned)t->dtype < ESP_DTYPE_COUNT;
    const bool fits =
        t->data && t->rows == rows && t->columns == columns && t->block > 0 && t->stride > 0 &&
        known && !(t->listed && (t->transposed || t->scales)) &&
        (t->transposed == 0 || (((size_t)rows - 1) * step_of(t) < (size_t)t->transposed &&
                                !esp_dtype_quantised(t->dtype))) &&
        (!t->scales || (t->dtype == ESP_MXFP4 && (t->block == 1 || t->block == rows)));
    if (c->status < 0 || (fits && columns % esp_dtype_block(t->dtype) == 0))
        return;
    char where[32] = "";
    if (c->layer >= 0)
        snprintf(where, sizeof where, " of layer %d", c->layer);
    c->status = ESP_E_FORMAT;
    if (!t->data)
        esp_fail(c->err, c->errlen, ESP_E_FORMAT, "the model has no %s%s", name, where);
    else if (!known)
        c->status = esp_fail(c->err, c->errlen, ESP_E_UNSUPPORTED,
                             "%s%s has the unknown type number %d", name, where, (int)t->dtype);
    else if (fits)
        esp_fail(c->err, c->errlen, ESP_E_FORMAT,
                 "%s%s has %d columns, not a multiple of %d (the block size of %s)", name,
                 where, columns, esp_dtype_block(t->dtype), esp_dtype_name(t->dtype));
    else
        esp_fail(c->err, c->errlen, ESP_E_FORMAT, "%s%s has the shape (%d, %d), not (%d, %d)",
                 name, where, t->rows, t->columns, rows, columns);
}

static void check_if_there(struct checker *c, const struct esp_tensor *t, const char *name,
                           int rows)
{
    if (t->data)
        check(c, t, name, rows, 1);
}

static void check_matrix(struct checker *c, const struct esp_tensor *t,
                         const struct esp_tensor *bias, const char *name, int rows, int columns)
{
    check(c, t, name, rows, columns);
    check_if_there(c, bias, "a bias", rows);
}

static void check_norm(struct checker *c, const struct esp_tensor *t,
                       const struct esp_tensor *bias, int n)
{
    check(c, t, "a norm weight", n, 1);
    check_if_there(c, bias, "a norm bias", n);
}

/* Checks a norm of queries or keys, which applies to each head or to all heads together. */
static void check_head_norm(struct checker *c, const struct esp_tensor *t, const char *name,
                            int heads, int head_dim)
{
    check_if_there(c, t, name, t->rows == head_dim ? head_dim : heads * head_dim);
}

/* Returns whether this norm must exist. An EAGLE head may lack it; see enum esp_reads. */
static bool needs_norm(const struct esp_model_desc *d, const struct esp_tensor *weight)
{
    return d->reads != ESP_READS_EAGLE || weight->data;
}

static void check_experts(struct checker *c, const struct esp_model_desc *d,
                          const struct esp_layer *l)
{
    if (d->experts < 1 || d->experts_used < 1 || d->experts_used > d->experts ||
        d->expert_ffn < 1 || d->expert_ffn > INT32_MAX / 2 || !l->expert) {
        if (c->status == 0)
            c->status = esp_fail(c->err, c->errlen, ESP_E_FORMAT,
                                 "cannot use %d of %d experts of width %d in layer %d",
                                 d->experts_used, d->experts, d->expert_ffn, c->layer);
        return;
    }
    check_matrix(c, &l->router, &l->router_bias, "the router", d->experts, d->hidden);
    check_if_there(c, &l->choice_bias, "the bias that chooses experts", d->experts);
    for (int i = 0; i < d->experts; i++) {
        const struct esp_expert *e = &l->expert[i];
        if (esp_gated(d->activation))
            check_matrix(c, &e->gate, &e->gate_bias, "an expert", d->expert_ffn, d->hidden);
        check_matrix(c, &e->up, &e->up_bias, "an expert", d->expert_ffn, d->hidden);
        check_matrix(c, &e->down, &e->down_bias, "an expert", d->hidden, d->expert_ffn);
    }
}

static void check_attention(struct checker *c, const struct esp_model_desc *d,
                            const struct esp_layer *l)
{
    const int q = d->heads * d->head_dim, kv = d->kv_heads * d->head_dim;
    const int read = esp_layer_reads_both(d, c->layer) ? 2 * d->hidden : d->hidden;
    check_head_norm(c, &l->query_norm, "the norm of the queries", d->heads, d->head_dim);
    check_head_norm(c, &l->key_norm, "the norm of the keys", d->kv_heads, d->head_dim);
    check_if_there(c, &l->sink_logit, "the logits of the sinks", d->heads);
    check_matrix(c, &l->query, &l->query_bias, "the query matrix", q, read);
    check_matrix(c, &l->key, &l->key_bias, "the key matrix", kv, read);
    check_matrix(c, &l->value, &l->value_bias, "the value matrix", kv, read);
    check_matrix(c, &l->output, &l->output_bias, "the output matrix", d->hidden, q);
    if (l->attention_gate.data)
        check(c, &l->attention_gate, "the gate of attention", q, read);
}

static void check_recurrence(struct checker *c, const struct esp_model_desc *d,
                             const struct esp_layer *l)
{
    const int width = esp_conv_width(d, l->mixer), out = esp_mixed_width(d, l->mixer);
    check_matrix(c, &l->conv_in, &l->conv_in_bias, "the input matrix of the convolution", width,
                 d->hidden);
    check_matrix(c, &l->out_gate, &l->out_gate_bias, "the gate matrix of the mixer", out,
                 d->hidden);
    check_matrix(c, &l->conv, &l->conv_bias, "the convolution", width, d->conv_kernel);
    check_matrix(c, &l->mixed, &l->mixed_bias, "the output matrix of the mixer", d->hidden,
                 out);
    if (l->mixer == ESP_MIXER_CONV) {
        check_matrix(c, &l->in_gate, &l->in_gate_bias, "the gate before the convolution", width,
                     d->hidden);
        return;
    }
    check_matrix(c, &l->decay, &l->decay_bias, "the decay matrix", d->state_heads, d->hidden);
    check(c, &l->decay_bias, "the bias of the decay", d->state_heads, 1);
    check(c, &l->rate, "the rate of the decay", d->state_heads, 1);
    check(c, &l->mixed_norm, "the norm of the mixer",
          l->mixer == ESP_MIXER_SSM ? out : d->value_dim, 1);
    if (l->mixer == ESP_MIXER_SSM)
        check(c, &l->skip, "the skip weights of the mixer", d->state_heads, 1);
    else
        check(c, &l->write, "the write matrix", d->state_heads, d->hidden);
}

static void check_layer(struct checker *c, const struct esp_model_desc *d,
                        const struct esp_layer *l)
{
    check_if_there(c, &l->norm_attended, "a norm weight", d->hidden);
    check_if_there(c, &l->norm_mlp, "a norm weight", d->hidden);
    if ((l->norm1.data || !l->norm_attended.data) && (c->layer > 0 || needs_norm(d, &l->norm1)))
        check_norm(c, &l->norm1, &l->norm1_bias, d->hidden);
    const bool alone =
        l->mixer == ESP_MIXER_NONE || (esp_model_desc_recurrent(d) && !esp_layer_has_mlp(l));
    if (alone ? l->norm2.data != NULL : l->norm2.data || !l->norm_mlp.data)
        check_norm(c, &l->norm2, &l->norm2_bias, d->hidden);
    if (c->status == 0 && l->rotation == ESP_ROTATION_LOCAL && !d->local_inverse_frequency)
        c->status =
            esp_fail(c->err, c->errlen, ESP_E_FORMAT,
                     "the model has no local RoPE frequencies, which layer %d needs", c->layer);
    if (l->router.data)
        check_experts(c, d, l);
    if (l->mixer == ESP_MIXER_ATTENTION)
        check_attention(c, d, l);
    else if (l->mixer != ESP_MIXER_NONE)
        check_recurrence(c, d, l);
    if (l->shared_gate.data)
        check(c, &l->shared_gate, "the gate of the shared expert", 1, d->hidden);
    if (!l->up.data && (l->router.data || (alone && l->mixer != ESP_MIXER_NONE)))
        return;
    if (esp_gated(d->activation))
        check_matrix(c, &l->gate, &l->gate_bias, "the gate matrix", d->ffn, d->hidden);
    check_matrix(c, &l->up, &l->up_bias, "the up matrix", d->ffn, d->hidden);
    check_matrix(c, &l->down, &l->down_bias, "the down matrix", d->hidden, d->ffn);
}

static bool tokens_ascend(const struct esp_model_desc *d)
{
    for (int i = 0; i < d->outputs; i++)
        if (d->output_token[i] < (i ? d->output_token[i - 1] + 1 : 0) ||
            d->output_token[i] >= esp_model_desc_tokens(d))
            return false;
    return true;
}

static void check_draft_head(struct checker *c, const struct esp_model_desc *d)
{
    const bool eagle3 = d->reads == ESP_READS_EAGLE3;
    check_matrix(c, &d->fc, &d->fc_bias, "the fc matrix", d->hidden,
                 eagle3 ? d->input : d->hidden + d->input);
    if (eagle3 || d->norm_embedding.data)
        check(c, &d->norm_input, "a norm weight", d->hidden, 1);
    if (d->norm_embedding.data)
        check(c, &d->norm_embedding, "a norm weight", d->hidden, 1);
    for (int i = 0; i < d->fc_norms; i++)
        check(c, &d->norm_fc[i], "a norm weight", d->input / d->fc_norms, 1);
}

int esp_model_desc_check(const struct esp_model_desc *d, char *err, size_t errlen)
{
    struct checker c = {.layer = -1, .err = err, .errlen = errlen};
    if (!fits_together(d))
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "the model's dimensions (layers %d, hidden %d, heads %d, key/value "
                        "heads %d, head_dim %d, rotary %d, ffn %d, vocabulary %d) do not fit "
                        "together",
                        d->layers, d->hidden, d->heads, d->kv_heads, d->head_dim, d->rotary,
                        d->ffn, d->vocabulary);
    if (!recurrence_fits(d))
        return esp_fail(
            err, errlen, ESP_E_UNSUPPORTED,
            "recurrent layers of these sizes are not supported: convolution over %d tokens, "
            "%d state heads, %d key heads, keys of %d and values of %d numbers",
            d->conv_kernel, d->state_heads, d->key_heads, d->key_dim, d->value_dim);
    check(&c, &d->embedding, "the embedding", d->vocabulary, d->hidden);
    check(&c, &d->head, "the head matrix", d->outputs, d->hidden);
    if (c.status == 0 && d->output_token && !tokens_ascend(d))
        c.status = esp_fail(err, errlen, ESP_E_FORMAT,
                            "the tokens that get logits are not in ascending order, or not in "
                            "the vocabulary");
    if (needs_norm(d, &d->norm_final))
        check_norm(&c, &d->norm_final, &d->norm_final_bias, d->hidden);
    if (d->position_embedding.data)
        check(&c, &d->position_embedding, "the embedding of positions",
              d->position_embedding.rows, d->hidden);
    if (d->reads != ESP_READS_TOKENS)
        check_draft_head(&c, d);
    for (c.layer = 0; c.layer < d->layers && c.status == 0; c.layer++)
        check_layer(&c, d, &d->layer[c.layer]);
    return c.status;
}

/* Returns the special features (ESP_SPECIAL_*) of one layer. */
static unsigned layer_specials(const struct esp_model_desc *d, const struct esp_layer *l)
{
    const bool head_norms = l->query_norm.data && l->query_norm.rows == d->head_dim;
    /* In a recurrent model, a layer may lack the MLP, and then it has no norm2 either. */
    const bool lacks_norm = !l->norm2.data && !esp_model_desc_recurrent(d);
    unsigned found = 0;
    if (l->norm_attended.data || l->norm_mlp.data || lacks_norm)
        found |= ESP_SPECIAL_OUTPUT_NORMS;
    if (l->rotation != ESP_ROTATION_GLOBAL)
        found |= ESP_SPECIAL_ROTATIONS;
    if (l->query_norm.data && !head_norms)
        found |= ESP_SPECIAL_WIDE_NORMS;
    if (l->router.data)
        found |= ESP_SPECIAL_MIXTURE;
    if (l->sink_logit.data)
        found |= ESP_SPECIAL_SINKS;
    if (l->query.transposed != 0)
        found |= ESP_SPECIAL_TRANSPOSED;
    return found;
}

unsigned esp_model_desc_specials(const struct esp_model_desc *d)
{
    unsigned found = 0;
    if (esp_model_desc_recurrent(d))
        found |= ESP_SPECIAL_RECURRENT;
    if (d->norm_embedding.data)
        found |= ESP_SPECIAL_MTP;
    if (d->position_embedding.data)
        found |= ESP_SPECIAL_POSITIONS;
    if (d->activation == ESP_GELU_TANH || d->activation == ESP_GEGLU)
        found |= ESP_SPECIAL_GELU;
    if (d->activation == ESP_SWIGLU_CLAMPED)
        found |= ESP_SPECIAL_CLAMPED;
    if (d->attention_cap != 0 || d->logit_cap != 0)
        found |= ESP_SPECIAL_CAPPED;
    if (d->embedding_scale != 0 || d->residual_scale != 0 || d->logit_scale != 0 ||
        d->attention_scale != 0)
        found |= ESP_SPECIAL_SCALED;
    if (d->rotary_scale != 0)
        found |= ESP_SPECIAL_SCALED_ROTATION;
    for (int i = 0; i < d->layers; i++)
        found |= layer_specials(d, &d->layer[i]);
    return found;
}

const char *esp_special_name(unsigned specials)
{
    static const char *const names[] = {
#define X(name, text) text,
        ESP_SPECIALS(X)
#undef X
    };
    return specials ? names[__builtin_ctz(specials)] : NULL;
}
