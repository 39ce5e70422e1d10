/* weights.cu - copies the weights of a model to one allocation on the device, through pinned
 * memory.
 *
 * With a memory limit, the layers that do not fit stay in pinned memory of the host
 * (stream.cu). The allocation then has two buffers for these layers.
 *
 * The tensors are read row by row, converted to bf16 (fp16 stays fp16), arranged as the kernels
 * need them, and sent in pieces: one piece is filled while the previous one is copied. All
 * tensors that a layer's mixer multiplies with its input become one matrix; in attention, these
 * are the tensors for queries, keys and values. The tensors gate and up also become one matrix,
 * where eight rows of gate and eight rows of up alternate. So one product computes both, and
 * the thread that has a gate value also has the up value to multiply it with.
 */
#include "kernels/cuda/blocks.h"
#include "kernels/cuda/gpus.h"

#include <cstdlib>
#include <cstring>

enum { TURNED_ROWS = 256 };

/* Says where a row of a matrix on the device comes from: it is row `from` of a tensor. from =
 * -1 means that the row is zero. */
struct source {
    const struct esp_tensor *tensor, *bias;
    int from;
};

/* Holds some rows of the tensor `of`, beginning with row `first`. The file stores this tensor
 * transposed, so several rows are read together. */
struct turned {
    const struct esp_tensor *of;
    struct esp_tensor rows;
    int first;
    char *memory;
};

/* The state of a walk over the model. A walk reserves memory on the device for each tensor in
 * turn. The first walk does nothing else; the second walk also sends the tensors. */
struct loader {
    struct esp_cuda_weights *w;
    struct esp_cuda_arena arena;
    bool sending;
    struct esp_cuda_backend *backend;
    esp_progress *progress;
    void *user;
    char *piece[2]; /* (piece_bytes) in pinned memory */
    size_t piece_bytes;
    float *wide;             /* memory for one row of floats */
    struct turned turned[2]; /* two, because rows of gate and up alternate */
    int turned_last;
    char *tile_rows; /* 16 rows of a quantised matrix, as stored in the file */
    cudaEvent_t sent[2];
    int current;
    size_t filled, done;
    char *to;     /* the current piece is copied to here */
    int layer;    /* the layer that is being sent, or -1 */
    bool on_host; /* the piece belongs to a streamed layer, so it stays on the host */
    int status;
};

/* ------------------------------------------------------------------ reading tensors */

static float read_value(const struct esp_tensor *t, int row)
{
    float value;
    esp_tensor_read_row(t, row, &value);
    return value;
}

/* Reads up to TURNED_ROWS rows of a transposed tensor into `turned`, beginning with row
 * `first`. */
static void turn(struct loader *l, struct turned *turned, const struct esp_tensor *t, int first)
{
    const int left = t->rows - first, count = left < TURNED_ROWS ? left : TURNED_ROWS;
    char *rows = (char *)realloc(turned->memory,
                                 (size_t)count * esp_dtype_row_bytes(t->dtype, t->columns));
    if (!rows) {
        l->status = ESP_E_MEMORY;
        return;
    }
    esp_tensor_copy_rows(t, first, count, rows);
    turned->memory = rows;
    turned->of = t;
    turned->first = first;
    turned->rows = *t;
    turned->rows.data = rows;
    turned->rows.source = NULL;
    turned->rows.offset = 0;
    turned->rows.first = 0;
    turned->rows.transposed = 0;
    turned->rows.rows = turned->rows.block = turned->rows.stride = count;
}

/* Returns a group of rows of a transposed tensor that includes row `row`. */
static const struct turned *find_turned(struct loader *l, const struct esp_tensor *t, int row)
{
    for (const struct turned &turned : l->turned)
        if (t == turned.of && row >= turned.first && row < turned.first + turned.rows.rows)
            return &turned;
    int slot = l->turned_last = 1 - l->turned_last;
    for (int i = 0; i < 2; i++)
        if (l->turned[i].of == t)
            slot = i;
    turn(l, &l->turned[slot], t, row);
    return &l->turned[slot];
}

/* Reads row `from` of a tensor, and converts it to the dtype of the weights. */
static void read_row(struct loader *l, const struct source *s, char *to, size_t stride)
{
    const struct esp_tensor *t = s->tensor;
    const bool half = l->w->half;
    int from = s->from;
    memset(to, 0, stride * 2);
    if (from < 0)
        return;
    if (t->transposed > 0) {
        const struct turned *turned = find_turned(l, t, from);
        if (l->status < 0)
            return;
        t = &turned->rows;
        from -= turned->first;
    }
    if (t->dtype == (half ? ESP_F16 : ESP_BF16)) {
        esp_tensor_copy_rows(t, from, 1, to);
        return;
    }
    esp_tensor_read_row(t, from, l->wide);
    for (int i = 0; i < t->columns; i++)
        if (half)
            ((esp_f16 *)to)[i] = __float2half(l->wide[i]);
        else
            ((esp_bf16 *)to)[i] = __float2bfloat16(l->wide[i]);
}

/* ------------------------------------------------------------------ sending */

/* Returns how many bytes the model takes on the device and on the host together. */
static size_t all_bytes(const struct loader *l)
{
    return l->w->base.bytes + esp_cuda_stream_host_bytes(l->w->stream);
}

static int send(struct loader *l)
{
    if (l->filled == 0)
        return ESP_OK;
    if (l->on_host) {
        memcpy(l->to, l->piece[l->current], l->filled);
    } else {
        ESP_CUDA(l->backend, cudaMemcpyAsync(l->to, l->piece[l->current], l->filled,
                                             cudaMemcpyHostToDevice, l->backend->stream));
        ESP_CUDA(l->backend, cudaEventRecord(l->sent[l->current], l->backend->stream));
        l->current = 1 - l->current;
        ESP_CUDA(l->backend, cudaEventSynchronize(l->sent[l->current]));
    }
    l->to += l->filled;
    l->done += l->filled;
    l->filled = 0;
    if (l->progress && !l->progress(l->user, "weights", l->done, all_bytes(l)))
        return ESP_E_CANCELLED;
    return ESP_OK;
}

/* Returns memory in the current piece for the next `bytes` bytes. The caller writes them there.
 */
static char *room(struct loader *l, size_t bytes)
{
    if (l->filled + bytes > l->piece_bytes && l->status == ESP_OK)
        l->status = send(l);
    char *at = l->piece[l->current] + l->filled;
    l->filled += bytes;
    return at;
}

static void begin(struct loader *l, const void *to)
{
    char *host = esp_cuda_stream_host(l->w->stream, l->layer, to);
    l->on_host = host != NULL;
    l->to = host ? host : (char *)to;
}

static void end(struct loader *l)
{
    if (l->status == ESP_OK)
        l->status = send(l);
}

typedef struct source find_source(const void *layer, int row);

/* Returns the source of a row. Rows after the last one are zero. */
static struct source find_or_zero(find_source *find, const void *user, int row, int rows)
{
    return row < rows ? find(user, row) : (struct source){NULL, NULL, -1};
}

/* Sends the biases of `rows` rows as floats, and then zeros up to `padded` floats. `find`
 * returns the source of each row. */
static void send_floats(struct loader *l, const float *to, int rows, size_t padded,
                        find_source *find, const void *user)
{
    if (!l->sending || !to || l->status < 0)
        return;
    begin(l, to);
    for (size_t i = 0; i < padded && l->status == ESP_OK; i++) {
        const struct source s = find_or_zero(find, user, (int)i, rows);
        const float value = s.from >= 0 && s.bias->data ? read_value(s.bias, s.from) : 0.0f;
        memcpy(room(l, 4), &value, 4);
    }
    end(l);
}

static void send_bias(struct loader *l, const struct esp_cuda_matrix *m, find_source *find,
                      const void *user)
{
    send_floats(l, m->bias, m->rows, esp_cuda_pad(m->rows, ESP_CUDA_TILE), find, user);
}

static void send_matrix(struct loader *l, const struct esp_cuda_matrix *m, find_source *find,
                        const void *user)
{
    const size_t rows = esp_cuda_pad(m->rows, ESP_CUDA_TILE);
    if (!l->sending || l->status < 0)
        return;
    begin(l, m->data);
    for (size_t i = 0; i < rows && l->status == ESP_OK; i++) {
        const struct source s = find_or_zero(find, user, (int)i, m->rows);
        char *to = room(l, m->stride * 2);
        if (l->status == ESP_OK)
            read_row(l, &s, to, m->stride);
    }
    end(l);
    send_bias(l, m, find, user);
}

/* Sends a quantised matrix tile by tile (blocks.h). Rows after the last row are zero. */
static void send_blocks(struct loader *l, const struct esp_cuda_matrix *m,
                        const struct esp_tensor *tensor)
{
    const size_t row_bytes = esp_dtype_row_bytes(m->dtype, m->columns);
    if (!l->sending || l->status < 0)
        return;
    begin(l, m->data);
    for (int row = 0; row < m->rows && l->status == ESP_OK; row += ESP_CUDA_TILE) {
        const int left = m->rows - row, count = left < ESP_CUDA_TILE ? left : ESP_CUDA_TILE;
        char *to = room(l, ESP_CUDA_TILE * row_bytes);
        if (l->status < 0)
            return;
        memset(l->tile_rows, 0, ESP_CUDA_TILE * row_bytes);
        esp_tensor_copy_rows(tensor, row, count, l->tile_rows);
        esp_cuda_pack_tile(m->dtype, m->columns, l->tile_rows, to);
    }
    end(l);
}

/* ------------------------------------------------------------------ where rows come from */

/* Lists the tensors that a layer's mixer multiplies with its input, and their biases. */
struct parts {
    int count;
    const struct esp_tensor *tensor[ESP_CUDA_PARTS], *bias[ESP_CUDA_PARTS];
};

static struct parts parts_of(const struct esp_layer *l)
{
    static const struct esp_tensor none = {};
    const struct esp_tensor *const attention[][2] = {{&l->query, &l->query_bias},
                                                     {&l->key, &l->key_bias},
                                                     {&l->value, &l->value_bias},
                                                     {&l->attention_gate, &none}};
    const struct esp_tensor *const recurrent[][2] = {{&l->conv_in, &l->conv_in_bias},
                                                     {&l->write, &none},
                                                     {&l->decay, &none},
                                                     {&l->in_gate, &l->in_gate_bias},
                                                     {&l->out_gate, &l->out_gate_bias}};
    const bool recurs = esp_recurs(l->mixer);
    const int most = l->mixer == ESP_MIXER_NONE ? 0 : recurs ? ESP_CUDA_PARTS : 4;
    struct parts p = {};
    for (int i = 0; i < most; i++) {
        const struct esp_tensor *const *pair = recurs ? recurrent[i] : attention[i];
        if (!pair[0]->data)
            continue;
        p.tensor[p.count] = pair[0];
        p.bias[p.count++] = pair[1];
    }
    return p;
}

static const struct esp_tensor *output_of(const struct esp_layer *l)
{
    return esp_recurs(l->mixer) ? &l->mixed : &l->output;
}

/* Finds the source of a row of the matrix that joins a layer's `parts`. `user` is a struct
 * parts. */
static struct source find_input(const void *user, int row)
{
    const struct parts *p = (const struct parts *)user;
    int i = 0;
    while (row >= p->tensor[i]->rows)
        row -= p->tensor[i++]->rows;
    return {p->tensor[i], p->bias[i], row};
}

/* Finds the source of a row of the matrix that joins gate and up. `user` is {gate, its bias,
 * up, its bias}. */
static struct source find_gated(const void *user, int row)
{
    const struct esp_tensor *const *pair = (const struct esp_tensor *const *)user;
    const int half = ESP_CUDA_TILE / 2, at = row % ESP_CUDA_TILE;
    const int from = row / ESP_CUDA_TILE * half + at % half;
    if (from >= pair[2]->rows)
        return {NULL, NULL, -1};
    if (at < half)
        return {pair[0], pair[1], from};
    return {pair[2], pair[3], from};
}

/* Finds the source of a row of a matrix that is one tensor. `user` is {tensor, bias}. */
static struct source find_plain(const void *user, int row)
{
    const struct esp_tensor *const *pair = (const struct esp_tensor *const *)user;
    return {pair[0], pair[1], row};
}

static void send_plain(struct loader *l, const struct esp_cuda_matrix *m,
                       const struct esp_tensor *tensor, const struct esp_tensor *bias)
{
    const struct esp_tensor *pair[] = {tensor, bias};
    if (!esp_dtype_quantised(m->dtype)) {
        send_matrix(l, m, find_plain, pair);
    } else {
        send_blocks(l, m, tensor);
        send_bias(l, m, find_plain, pair);
    }
}

static void send_gated(struct loader *l, const struct esp_cuda_matrix *m,
                       const struct esp_tensor *gate, const struct esp_tensor *gate_bias,
                       const struct esp_tensor *up, const struct esp_tensor *up_bias)
{
    const struct esp_tensor *pair[] = {gate, gate_bias, up, up_bias};
    send_matrix(l, m, find_gated, pair);
}

/* Returns the matrix of expert `i`. */
static struct esp_cuda_matrix matrix_of(const struct esp_cuda_matrix *all, int i)
{
    struct esp_cuda_matrix m = *all;
    const size_t rows = i * esp_cuda_pad(m.rows, ESP_CUDA_TILE);
    const size_t row_bytes =
        esp_dtype_quantised(m.dtype) ? esp_dtype_row_bytes(m.dtype, m.columns) : m.stride * 2;
    m.data = (const char *)m.data + rows * row_bytes;
    if (m.bias)
        m.bias += rows;
    return m;
}

/* Sends a matrix as floats. Each row is padded with zeros to `stride` numbers. */
static void send_rows(struct loader *l, const float *to, const struct esp_tensor *t,
                      size_t stride)
{
    if (!l->sending || l->status < 0)
        return;
    begin(l, to);
    for (int i = 0; i < t->rows && l->status == ESP_OK; i++) {
        float *row = (float *)room(l, stride * sizeof *row);
        if (l->status < 0)
            return;
        memset(row, 0, stride * sizeof *row);
        esp_tensor_read_row(t, i, row);
    }
    end(l);
}

/* ------------------------------------------------------------------ the layout */

/* Reserves memory for `count` adjacent matrices of 16-bit floats. `count` is larger than 1 only
 * for experts. */
static struct esp_cuda_matrix take_matrices(struct loader *l, int rows, int columns, bool bias,
                                            int count)
{
    struct esp_cuda_matrix m = {
        NULL, NULL, rows, columns, esp_cuda_pad(columns, ESP_CUDA_PAD), ESP_BF16, count};
    const size_t padded = (size_t)count * esp_cuda_pad(rows, ESP_CUDA_TILE);
    m.data = esp_cuda_take_bytes(&l->arena, padded * m.stride * 2);
    if (bias)
        m.bias = esp_cuda_take<float>(&l->arena, padded);
    return m;
}

/* Reserves memory for `count` tensors of the same form, which stay quantised or become 16-bit
 * floats. */
static struct esp_cuda_matrix take_tensors(struct loader *l, const struct esp_tensor *t,
                                           const struct esp_tensor *bias, int count)
{
    if (!esp_dtype_quantised(t->dtype))
        return take_matrices(l, t->rows, t->columns, bias && bias->data, count);
    struct esp_cuda_matrix m = {NULL,     NULL, t->rows, t->columns, (size_t)t->columns,
                                t->dtype, count};
    const size_t padded = (size_t)count * esp_cuda_pad(t->rows, ESP_CUDA_TILE);
    m.data = esp_cuda_take_bytes(&l->arena, padded * esp_dtype_row_bytes(t->dtype, t->columns));
    if (bias && bias->data)
        m.bias = esp_cuda_take<float>(&l->arena, padded);
    return m;
}

bool esp_cuda_has_blocks(const struct esp_model_desc *d)
{
    bool any = esp_dtype_quantised(d->embedding.dtype) || esp_dtype_quantised(d->head.dtype);
    for (int i = 0; i < d->layers && !any; i++) {
        const struct esp_layer *l = &d->layer[i];
        const struct esp_expert *e = l->router.data ? l->expert : NULL;
        const struct parts p = parts_of(l);
        for (int j = 0; j < p.count; j++)
            any = any || esp_dtype_quantised(p.tensor[j]->dtype);
        const struct esp_tensor *const matrices[] = {output_of(l),
                                                     &l->gate,
                                                     &l->up,
                                                     &l->down,
                                                     e ? &e->gate : &l->gate,
                                                     e ? &e->up : &l->up,
                                                     e ? &e->down : &l->down};
        for (const struct esp_tensor *t : matrices)
            any = any || (t->data && esp_dtype_quantised(t->dtype));
    }
    return any;
}

/* Returns the number of rows of the matrix that joins gate and up. */
static int up_rows(int ffn)
{
    return (int)(2 * esp_cuda_pad(ffn, ESP_CUDA_TILE / 2));
}

/* ------------------------------------------------------------------ the walk */

static const float *put_vector(struct loader *l, const struct esp_tensor *t)
{
    if (!t->data)
        return NULL;
    const size_t padded = esp_cuda_pad(t->rows, ESP_CUDA_PAD);
    const float *to = esp_cuda_take<float>(&l->arena, padded);
    const struct esp_tensor *pair[] = {NULL, t};
    send_floats(l, to, t->rows, padded, find_plain, pair);
    return to;
}

static struct esp_cuda_matrix put_tensor(struct loader *l, const struct esp_tensor *t,
                                         const struct esp_tensor *bias)
{
    const struct esp_cuda_matrix m = take_tensors(l, t, bias, 1);
    send_plain(l, &m, t, bias);
    return m;
}

/* Reserves memory for gate, up and down of a layer without experts, or of the shared expert,
 * and sends these matrices. */
static struct esp_cuda_mlp put_mlp(struct loader *l, const struct esp_layer *from)
{
    const struct esp_model_desc *d = l->w->base.desc;
    const bool gated = esp_gated(d->activation);
    struct esp_cuda_mlp to = {};
    if (gated && !l->w->blocks) {
        to.up = take_matrices(l, up_rows(d->ffn), d->hidden,
                              from->up_bias.data || from->gate_bias.data, 1);
        send_gated(l, &to.up, &from->gate, &from->gate_bias, &from->up, &from->up_bias);
    } else {
        if (gated)
            to.gate = put_tensor(l, &from->gate, &from->gate_bias);
        to.up = put_tensor(l, &from->up, &from->up_bias);
    }
    to.down = put_tensor(l, &from->down, &from->down_bias);
    return to;
}

/* Reserves memory for the router's matrix, and sends it. If the shared expert has a gate, the
 * gate becomes the last row of this matrix. */
static void put_router(struct loader *l, const struct esp_layer *from,
                       struct esp_cuda_layer *to)
{
    const struct esp_model_desc *d = l->w->base.desc;
    const size_t stride = esp_cuda_pad(d->hidden, ESP_CUDA_PAD);
    to->logits = d->experts + (from->shared_gate.data ? 1 : 0);
    to->router = esp_cuda_take<float>(&l->arena, to->logits * stride);
    send_rows(l, to->router, &from->router, stride);
    if (from->shared_gate.data)
        send_rows(l, to->router + d->experts * stride, &from->shared_gate, stride);
    to->router_bias = put_vector(l, &from->router_bias);
}

/* Reserves memory for the experts of a layer, and sends their matrices. All experts have the
 * same types and biases as the first expert; missing_for() in weights_open.cu checks this. */
static struct esp_cuda_mlp put_experts(struct loader *l, const struct esp_layer *from)
{
    const struct esp_model_desc *d = l->w->base.desc;
    const struct esp_expert *e = &from->expert[0];
    const bool gated = esp_gated(d->activation), joined = gated && !l->w->blocks;
    struct esp_cuda_mlp to = {};
    if (gated && !joined)
        to.gate = take_tensors(l, &e->gate, &e->gate_bias, d->experts);
    to.up = joined ? take_matrices(l, up_rows(d->expert_ffn), d->hidden,
                                   e->up_bias.data || e->gate_bias.data, d->experts)
                   : take_tensors(l, &e->up, &e->up_bias, d->experts);
    to.down = take_tensors(l, &e->down, &e->down_bias, d->experts);
    for (int i = 0; i < d->experts && l->sending; i++, e++) {
        const struct esp_cuda_matrix up = matrix_of(&to.up, i), down = matrix_of(&to.down, i);
        const struct esp_cuda_matrix gate = matrix_of(&to.gate, i);
        if (joined)
            send_gated(l, &up, &e->gate, &e->gate_bias, &e->up, &e->up_bias);
        else
            send_plain(l, &up, &e->up, &e->up_bias);
        if (to.gate.data)
            send_plain(l, &gate, &e->gate, &e->gate_bias);
        send_plain(l, &down, &e->down, &e->down_bias);
    }
    return to;
}

/* Reserves memory for the matrices of a layer's mixer, and sends them. */
static void put_mixer(struct loader *l, int i, struct esp_cuda_layer *to)
{
    const struct esp_model_desc *d = l->w->base.desc;
    const struct esp_layer *from = &d->layer[i];
    const int columns = esp_layer_reads_both(d, i) ? 2 * d->hidden : d->hidden;
    const struct parts p = parts_of(from);
    int rows = 0;
    bool bias = false;
    for (int j = 0; j < p.count; j++) {
        rows += p.tensor[j]->rows;
        bias = bias || p.bias[j]->data;
        if (l->w->blocks)
            to->part[j] = put_tensor(l, p.tensor[j], p.bias[j]);
    }
    if (!l->w->blocks) {
        to->inputs = take_matrices(l, rows, columns, bias, 1);
        send_matrix(l, &to->inputs, find_input, &p);
    }
    to->output = put_tensor(l, output_of(from),
                            esp_recurs(from->mixer) ? &from->mixed_bias : &from->output_bias);
    if (from->conv.data) {
        to->conv =
            esp_cuda_take<float>(&l->arena, (size_t)from->conv.rows * from->conv.columns);
        send_rows(l, to->conv, &from->conv, from->conv.columns);
    }
}

/* Returns how many layers of the same kind (attention or recurrent) come before this layer.
 */
static int place_of(const struct esp_model_desc *d, int layer)
{
    const bool recurs = esp_recurs(d->layer[layer].mixer);
    int place = 0;
    for (int i = 0; i < layer; i++)
        place += d->layer[i].mixer != ESP_MIXER_NONE && esp_recurs(d->layer[i].mixer) == recurs;
    return place;
}

/* Reserves memory for the tensors of layer `i`, and sends them. The first norm is left out. */
static void put_layer(struct loader *l, int i, struct esp_cuda_layer *to)
{
    const struct esp_model_desc *d = l->w->base.desc;
    const struct esp_layer *from = &d->layer[i];
    l->layer = i;
    to->place = place_of(d, i);
#define X(name) to->name = put_vector(l, &from->name);
    ESP_OTHER_VECTORS(X)
#undef X
    if (from->mixer != ESP_MIXER_NONE)
        put_mixer(l, i, to);
    if (!esp_layer_has_mlp(from))
        return;
    if (!from->router.data) {
        to->mlp = put_mlp(l, from);
        return;
    }
    put_router(l, from, to);
    to->mlp = put_experts(l, from);
    if (from->up.data)
        to->shared = put_mlp(l, from);
}

/* Sends a table with an entry for every token: the row of the head that computes the token's
 * logit, or -1 if there is none. */
static void send_outputs(struct loader *l)
{
    const struct esp_model_desc *d = l->w->base.desc;
    if (!l->sending || l->status < 0)
        return;
    begin(l, l->w->output_of);
    for (int32_t token = 0, next = 0; token < esp_model_desc_tokens(d) && l->status == ESP_OK;
         token++) {
        const bool has = next < d->outputs && d->output_token[next] == token;
        const int32_t output = has ? next++ : -1;
        memcpy(room(l, sizeof output), &output, sizeof output);
    }
    end(l);
}

/* Sends the frequencies of a rotation, if `values` is not NULL. */
static const float *put_frequencies(struct loader *l, const float *values)
{
    const int rotary = l->w->base.desc->rotary;
    struct esp_tensor t = {};
    t.data = rotary > 1 ? values : NULL;
    t.dtype = ESP_F32;
    t.rows = t.block = t.stride = rotary / 2;
    t.columns = 1;
    return put_vector(l, &t);
}

/* Reserves memory for the tensors that do not belong to a layer, and for the first norms of all
 * layers. Sends all of these. The kernels of the previous layer compute a layer's first norm
 * (norm.h). At that time a streamed layer may not have arrived yet, so its first norm stays on
 * the device. */
static void put_rest(struct loader *l)
{
    struct esp_cuda_weights *w = l->w;
    const struct esp_model_desc *d = w->base.desc;
    const struct esp_cuda_weights *lender = (const struct esp_cuda_weights *)d->lender;
    l->layer = -1;
    w->norm_final = put_vector(l, &d->norm_final);
    w->norm_final_bias = put_vector(l, &d->norm_final_bias);
    for (int i = 0; i < d->layers; i++) {
        struct esp_cuda_layer only_counted = {}, *to = w->layer ? &w->layer[i] : &only_counted;
#define X(name) to->name = put_vector(l, &d->layer[i].name);
        ESP_FIRST_NORM(X)
#undef X
    }
    w->inverse_frequency = put_frequencies(l, d->inverse_frequency);
    w->local_inverse_frequency = put_frequencies(l, d->local_inverse_frequency);
    if (d->position_embedding.data) {
        w->position_embedding =
            take_matrices(l, d->position_embedding.rows, d->hidden, false, 1);
        send_plain(l, &w->position_embedding, &d->position_embedding, NULL);
    }
    w->norm_embedding = put_vector(l, &d->norm_embedding);
    w->norm_input = put_vector(l, &d->norm_input);
    for (int i = 0; i < d->fc_norms; i++)
        w->norm_fc[i] = put_vector(l, &d->norm_fc[i]);
    if (d->reads != ESP_READS_TOKENS)
        w->fc = put_tensor(l, &d->fc, &d->fc_bias);
    if (d->output_token) {
        w->output_of = esp_cuda_take<int32_t>(&l->arena, esp_model_desc_tokens(d));
        send_outputs(l);
    }
    w->embedding = esp_model_desc_lent(d, &d->embedding) ? lender->embedding
                                                         : put_tensor(l, &d->embedding, NULL);
    const bool tied =
        d->head.rows == d->embedding.rows && esp_tensor_same(&d->head, &d->embedding);
    if (w->part && w->part->rank > 0 && !esp_rank_plan_divides(&w->part->plan, ESP_RANK_HEAD))
        return; /* rank 0 has the head */
    w->head = esp_model_desc_lent(d, &d->head) ? lender->head
              : tied                           ? w->embedding
                                               : put_tensor(l, &d->head, NULL);
}

static size_t layer_bytes(const struct loader *l, int i)
{
    struct loader only = {};
    struct esp_cuda_layer layer = {};
    only.w = l->w;
    put_layer(&only, i, &layer);
    return only.arena.used;
}

/* Returns the size of the largest streamed layer, if `count` layers are streamed. */
static size_t buffer_bytes(const struct loader *l, int count)
{
    const int layers = l->w->base.desc->layers;
    size_t most = 0;
    for (int i = 0; i < layers && count > 0; i++) {
        const size_t bytes = esp_layer_is_streamed(i, layers, count) ? layer_bytes(l, i) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Lays out the streamed layers, and sends them. On the device, each of them begins at the start
 * of the buffer `first` or `second`. */
static void put_streamed(struct loader *l, int count, char *first, char *second)
{
    struct esp_cuda_weights *w = l->w;
    const int layers = w->base.desc->layers;
    esp_cuda_stream_set_buffers(w->stream, first, second);
    for (int i = 0; i < layers; i++) {
        if (!esp_layer_is_streamed(i, layers, count))
            continue;
        if (!l->sending) {
            struct esp_cuda_layer there = w->layer[i];
            l->arena = {second, 0, true};
            put_layer(l, i, &there);
            esp_cuda_stream_put(w->stream, i, l->arena.used, &there);
        }
        l->arena = {first, 0, true};
        put_layer(l, i, &w->layer[i]);
    }
}

/* Walks over the model, with `count` streamed layers. If l->w->layer is NULL, the walk only
 * counts bytes. */
static void walk(struct loader *l, int count)
{
    const int layers = l->w->base.desc->layers;
    const size_t buffer = buffer_bytes(l, count);
    put_rest(l);
    for (int i = 0; i < layers; i++) {
        struct esp_cuda_layer only_counted = {};
        if (!esp_layer_is_streamed(i, layers, count))
            put_layer(l, i, l->w->layer ? &l->w->layer[i] : &only_counted);
    }
    if (count == 0)
        return;
    char *first = esp_cuda_take<char>(&l->arena, buffer);
    char *second = esp_cuda_take<char>(&l->arena, buffer);
    if (l->w->layer)
        put_streamed(l, count, first, second);
}

static void set_types(struct esp_cuda_weights *w)
{
    const struct esp_model_desc *d = w->base.desc;
    w->blocks = esp_cuda_has_blocks(d);
    w->half = d->lender ? ((const struct esp_cuda_weights *)d->lender)->half
                        : d->embedding.dtype == ESP_F16 &&
                              esp_layer_matrix(&d->layer[0])->dtype == ESP_F16;
}

/* ------------------------------------------------------------------ the limit */

/* Returns how many layers should be streamed. This is the smallest number for which the model
 * fits into the memory limit. If the model never fits, this is the number for which the model
 * needs the fewest bytes. Writes to *bytes how many bytes the model then needs on the
 * device. */
static int fit(const struct esp_model_desc *d, size_t *bytes)
{
    const size_t left = esp_memory_limit_left(&d->limit);
    int best = 0;
    *bytes = SIZE_MAX;
    for (int count = 0; count <= d->layers && (count == 0 || *bytes > left); count++) {
        struct esp_cuda_weights w = {};
        struct loader l = {};
        w.base.desc = d;
        w.blocks = esp_cuda_has_blocks(d);
        l.w = &w;
        walk(&l, count);
        if (l.arena.used < *bytes) {
            *bytes = l.arena.used;
            best = count;
        }
    }
    return best;
}

size_t esp_cuda_weights_need(const struct esp_model_desc *desc)
{
    size_t bytes;
    fit(desc, &bytes);
    return bytes;
}

void esp_cuda_weights_imagine(struct esp_cuda_weights *w)
{
    struct loader l = {};
    set_types(w);
    l.w = w;
    l.arena = {ESP_CUDA_NOWHERE, 0, true};
    walk(&l, 0);
}

/* ------------------------------------------------------------------ loading */

static int send_model(struct loader *l, int streamed)
{
    for (int i = 0; i < 2; i++) {
        ESP_CUDA(l->backend, cudaMallocHost((void **)&l->piece[i], l->piece_bytes));
        ESP_CUDA(l->backend, cudaEventCreateWithFlags(&l->sent[i], cudaEventDisableTiming));
    }
    l->arena = {l->w->memory, 0, false};
    l->sending = true;
    walk(l, streamed);
    ESP_CUDA(l->backend, cudaStreamSynchronize(l->backend->stream));
    if (l->status == ESP_OK && l->w->stream)
        l->status = esp_cuda_stream_start(l->w->stream);
    if (l->status == ESP_OK && l->progress &&
        !l->progress(l->user, "weights", all_bytes(l), all_bytes(l)))
        return ESP_E_CANCELLED;
    return l->status;
}

int esp_cuda_weights_load(struct esp_cuda_weights *w, struct esp_cuda_backend *backend,
                          esp_progress *progress, void *user)
{
    set_types(w);
    const int streamed = fit(w->base.desc, &w->base.bytes);
    if (streamed > 0) {
        w->stream = esp_cuda_stream_open(backend, w->base.desc->layers, streamed);
        if (!w->stream)
            return ESP_E_MEMORY;
    }
    ESP_CUDA(backend, cudaMalloc((void **)&w->memory, w->base.bytes));
    struct loader l = {};
    l.w = w;
    l.arena.base = w->memory;
    walk(&l, streamed);
    int status = w->stream ? esp_cuda_stream_pin(w->stream) : ESP_OK;
    if (status < 0)
        return status;
    l.backend = backend;
    l.progress = progress;
    l.user = user;
    l.piece_bytes =
        w->base.bytes < (size_t)ESP_CUDA_PIECE ? w->base.bytes : (size_t)ESP_CUDA_PIECE;
    /* 16 rows of any quantised type take less than 64 bytes per column. */
    const size_t widest = esp_model_desc_widest(w->part ? w->part->all : w->base.desc);
    l.wide = (float *)malloc(widest * sizeof *l.wide);
    l.tile_rows = (char *)malloc(widest * ESP_CUDA_TILE * sizeof *l.wide);
    status = l.wide && l.tile_rows ? send_model(&l, streamed) : ESP_E_MEMORY;
    free(l.wide);
    free(l.turned[0].memory);
    free(l.turned[1].memory);
    free(l.tile_rows);
    for (int i = 0; i < 2; i++) {
        esp_cuda_fine(cudaFreeHost(l.piece[i]));
        if (l.sent[i])
            esp_cuda_fine(cudaEventDestroy(l.sent[i]));
    }
    return status;
}
