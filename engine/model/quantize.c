/* quantize.c - writes a model as a GGUF file with weights of another type; see quantize.h.
 *
 * 1. The model is opened and checked as for a run. It may have any supported format.
 * 2. Every filled slot of its description becomes a tensor of the plan, with a name, a type and
 *    an order of rows.
 * 3. The header is made from the plan and the keys.
 * 4. The tensors are read, rounded and written in order; the rounding errors are summed up.
 * 5. The file is renamed to its final name.
 *
 * Some matrices are small but important, so the mixes of 4 and 5 bits use more bits for them.
 * These are the LM head, the output matrices of recurrent layers, and the value and down
 * matrices of some layers: the first and the last eighth, and every third layer in between.
 * These mixes are known as Q4_K_M and Q5_K_M. In a mixture of experts, most weights are in the
 * experts. The same matrix of all experts becomes one tensor.
 */
#include "engine/model/quantize.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/model/gguf_describe.h"
#include "engine/model/gguf_model.h"
#include "engine/model/tokenizer.h"
#include "engine/support/write_file.h"
#include "kernels/cpu/pool.h"
#include "kernels/system.h"
#include "kernels/model_desc.h"

enum { CHUNK = 8 << 20 /* bytes per write */, MOST_FUSED = 3, PARTS = 64 };

/* Describes a mix of types that users can request: the types of most matrices, of important
 * matrices, of most matrices of experts, and of important matrices of experts. The last member
 * is the value of general.file_type for the mix. */
static const struct mix {
    const char *name;
    enum esp_dtype most, important, experts, important_experts;
    int file_type;
} mixes[] = {
    {"q8_0", ESP_Q8_0, ESP_Q8_0, ESP_Q8_0, ESP_Q8_0, 7},
    {"q6_k", ESP_Q6_K, ESP_Q6_K, ESP_Q6_K, ESP_Q6_K, 18},
    {"q5_k", ESP_Q5_K, ESP_Q6_K, ESP_Q5_K, ESP_Q6_K, 17},
    {"q4_k", ESP_Q4_K, ESP_Q6_K, ESP_Q4_K, ESP_Q6_K, 15},
    {"q4_0", ESP_Q4_0, ESP_Q4_0, ESP_Q4_0, ESP_Q4_0, 2},
    {"mxfp4", ESP_Q8_0, ESP_Q8_0, ESP_MXFP4, ESP_MXFP4, 38},
    {"bf16", ESP_BF16, ESP_BF16, ESP_BF16, ESP_BF16, 32},
    {"f16", ESP_F16, ESP_F16, ESP_F16, ESP_F16, 1},
    {"f32", ESP_F32, ESP_F32, ESP_F32, ESP_F32, 0},
};

enum { MIXES = sizeof mixes / sizeof *mixes };

const char *esp_quantize_types(void)
{
    return "q8_0, q6_k, q5_k, q4_k, q4_0, mxfp4, bf16, f16, f32";
}

/* Describes one tensor of the new file. A fused tensor contains several slots one after the
 * other. A tensor of experts contains the same slot of every expert. */
struct planned {
    char name[128];
    const struct esp_tensor *fused[MOST_FUSED];
    const struct esp_tensor *first_expert; /* or NULL */
    int part_count;
    enum esp_dtype dtype;
    bool vector;
    int paired;      /* if rows are stored in pairs, the number of rows per head; else 0 */
    int interleaved; /* if blocks of the parts alternate, the rows per block; else 0 */
    /* These members are 0 unless the state heads are written in tiled order (`heads_tiled`).
     * They are the number of rows or columns per head, the first row that belongs to a head,
     * the number of state heads, and the number of key heads. */
    int tiled_rows, tiled_columns, tiled_from, state_heads, key_heads;
    int groups; /* if a vector is written as a matrix, the number of its rows; else 0 */
};

struct quantizing {
    struct esp_model *model, *mtp; /* mtp: the model's MTP layer, or NULL */
    const struct esp_architecture *architecture;
    /* The part being planned (the model or its MTP layer), its family, and the index of its
     * first layer in the file. */
    const struct esp_model *part;
    const struct esp_family *family;
    int first;
    const struct mix *mix;
    struct planned *planned; /* (count) */
    int count;
    float *factors; /* for rope_freqs.weight, or NULL */
    struct esp_pool *pool;
    struct esp_quantize_report *report;
    double lost, all; /* sums of squared differences and of squared numbers */
    double numbers, stored;
    esp_progress *progress;
    void *user;
    char *err;
    size_t errlen;
};

/* ------------------------------------------------------------------ the plan */

static const struct esp_tensor *part_of(const struct planned *p, int i)
{
    const char *first = (const char *)p->first_expert;
    return first ? (const struct esp_tensor *)(first + (size_t)i * sizeof(struct esp_expert))
                 : p->fused[i];
}

static int rows_of(const struct planned *p)
{
    int rows = 0;
    for (int i = 0; i < p->part_count; i++)
        rows += part_of(p, i)->rows;
    return rows;
}

static int columns_of(const struct planned *p)
{
    return part_of(p, 0)->columns;
}

static size_t size_of(const struct planned *p)
{
    return (size_t)rows_of(p) * esp_dtype_row_bytes(p->dtype, columns_of(p));
}

/* Returns `dtype` if the row length is a multiple of its block size. Otherwise returns a type
 * with smaller blocks and at least the same precision. */
static enum esp_dtype fitting(enum esp_dtype dtype, int columns)
{
    if (columns % esp_dtype_block(dtype) != 0)
        dtype = dtype == ESP_Q4_K ? ESP_Q5_0 : ESP_Q8_0;
    return columns % esp_dtype_block(dtype) != 0 ? ESP_F16 : dtype;
}

/* Returns whether the value and down matrices of this layer get more bits. */
static bool is_important_layer(const struct quantizing *q, int layer)
{
    const int layers = q->model->desc.layers, eighth = layers / 8;
    return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

static bool is_important(const struct quantizing *q, size_t slot, int layer)
{
    const bool tied = q->model->desc.head.data == q->model->desc.embedding.data;
    if (layer < 0)
        return slot == offsetof(struct esp_model_desc, head) ||
               (tied && slot == offsetof(struct esp_model_desc, embedding));
    if (slot == offsetof(struct esp_layer, mixed)) /* the output of recurrent layers */
        return true;
    if (slot != offsetof(struct esp_layer, value) && slot != offsetof(struct esp_layer, down))
        return false;
    return is_important_layer(q, layer);
}

/* Returns whether the tensor is written as F32. That includes convolutions, which are small,
 * and the router, because it is small and chooses the experts. */
static bool is_kept(const struct esp_tensor_rule *rule, int layer)
{
    return rule->columns == ESP_ONE || rule->columns == ESP_TAPS ||
           (layer >= 0 && rule->slot == offsetof(struct esp_layer, shared_gate)) ||
           rule->slot == (layer < 0 ? offsetof(struct esp_model_desc, position_embedding)
                                    : offsetof(struct esp_layer, router));
}

/* In a layer with experts, changes the name of an MLP's tensor to the name of the shared
 * expert's tensor. The shared expert is the MLP that all tokens use. */
static void name_shared(char *name, size_t size, size_t slot)
{
    static const char end[] = ".weight", shared[] = "_shexp.weight";
    char *at = strstr(name, end);
    if (at &&
        (slot == offsetof(struct esp_layer, gate) || slot == offsetof(struct esp_layer, up) ||
         slot == offsetof(struct esp_layer, down)))
        snprintf(at, size - (size_t)(at - name), "%s", shared);
}

/* Returns the number of rows if llama.cpp expects this vector of a recurrent layer as a
 * matrix; otherwise 0. */
static int groups_of(const struct esp_model_desc *d, size_t slot, int layer)
{
    if (d->layer[layer].mixer != ESP_MIXER_SSM)
        return 0;
    return slot == offsetof(struct esp_layer, mixed_norm) ? d->key_heads
           : slot == offsetof(struct esp_layer, rate) ||
                   slot == offsetof(struct esp_layer, skip)
               ? d->state_heads
               : 0;
}

/* Plans the order of state heads. State heads are tiled in GGUF files of Qwen3.5, but not in
 * model folders. */
static void plan_heads(const struct quantizing *q, struct planned *p, size_t slot)
{
    const struct esp_model_desc *d = &q->model->desc;
    const struct esp_gguf_architecture *own = esp_gguf_architecture_of(q->architecture->name);
    const size_t of_heads[] = {
        offsetof(struct esp_layer, write), offsetof(struct esp_layer, decay),
        offsetof(struct esp_layer, decay_bias), offsetof(struct esp_layer, rate)};
    if (!own || !own->tiled || d->heads_tiled)
        return;
    p->state_heads = d->state_heads;
    p->key_heads = d->key_heads;
    for (size_t i = 0; i < sizeof of_heads / sizeof *of_heads; i++)
        p->tiled_rows = slot == of_heads[i] ? 1 : p->tiled_rows;
    if (slot == offsetof(struct esp_layer, conv_in) || slot == offsetof(struct esp_layer, conv))
        p->tiled_from = 2 * d->key_heads * d->key_dim;
    if (p->tiled_from > 0 || slot == offsetof(struct esp_layer, out_gate))
        p->tiled_rows = d->value_dim;
    if (slot == offsetof(struct esp_layer, mixed))
        p->tiled_columns = d->value_dim;
}

/* Writes the name of a rule's tensor in the file. In GGUF, the tensors that only an MTP layer
 * has are named as tensors of that layer. Returns false if GGUF has no name for the tensor. */
static bool name_tensor(const struct quantizing *q, struct planned *p,
                        const struct esp_tensor_rule *rule, int layer, bool experts)
{
    char own[sizeof p->name - 16];
    if (!esp_gguf_tensor_name(own, sizeof own, q->family, rule,
                              layer < 0 ? layer : q->first + layer, experts))
        return false;
    if (layer < 0 && q->part == q->mtp)
        snprintf(p->name, sizeof p->name, "blk.%d.%s", q->first, own);
    else
        snprintf(p->name, sizeof p->name, "%s", own);
    return true;
}

/* Plans the tensors of one table; `base` is the struct with the slots. */
static int plan_table(struct quantizing *q, const struct esp_tensor_rule *rules,
                      const void *base, int layer)
{
    const struct esp_gguf_architecture *own = esp_gguf_architecture_of(q->architecture->name);
    for (const struct esp_tensor_rule *rule = rules; rule->name; rule++) {
        const struct esp_tensor *slot = esp_rule_slot(base, rule);
        bool tied = layer < 0 && rule->slot == offsetof(struct esp_model_desc, head) &&
                    slot->data == q->part->desc.embedding.data;
        const bool experts = layer >= 0 && q->part->desc.layer[layer].expert;
        if (!slot->data || tied || esp_rule_first(rules, rule) != rule ||
            rule->when == (experts ? ESP_IF_ONLY_MLP : ESP_IF_MIXED))
            continue;
        struct planned *p = &q->planned[q->count];
        *p = (struct planned){.vector = rule->columns == ESP_ONE};
        if (!name_tensor(q, p, rule, layer, false))
            return esp_fail(q->err, q->errlen, ESP_E_UNSUPPORTED,
                            "%s: GGUF has no name for the tensor %s", q->model->path,
                            rule->name);
        if (experts)
            name_shared(p->name, sizeof p->name, rule->slot);
        for (const struct esp_tensor_rule *part = rules; part->name; part++)
            if (esp_rule_first(rules, part) == rule)
                p->fused[p->part_count++] = esp_rule_slot(base, part);
        enum esp_dtype wanted =
            is_important(q, rule->slot, layer) ? q->mix->important : q->mix->most;
        p->dtype = is_kept(rule, layer) ? ESP_F32 : fitting(wanted, slot->columns);
        p->paired = esp_gguf_is_paired(own, rule, layer) ? q->part->desc.head_dim : 0;
        p->interleaved = rule->kept ? slot->block : 0;
        if (layer >= 0) {
            p->groups = groups_of(&q->part->desc, rule->slot, layer);
            plan_heads(q, p, rule->slot);
        }
        q->count++;
    }
    return ESP_OK;
}

/* Plans the tensors with the experts of a layer. */
static void plan_experts(struct quantizing *q, int layer)
{
    const struct esp_expert *expert = q->part->desc.layer[layer].expert;
    for (const struct esp_tensor_rule *rule = q->family->expert_tensors; expert && rule->name;
         rule++) {
        struct planned *p = &q->planned[q->count++];
        const bool down = rule->slot == offsetof(struct esp_expert, down);
        const enum esp_dtype wanted =
            down && is_important_layer(q, layer) ? q->mix->important_experts : q->mix->experts;
        *p = (struct planned){.vector = rule->columns == ESP_ONE};
        name_tensor(q, p, rule, layer, true);
        p->first_expert = esp_rule_slot(expert, rule);
        p->part_count = q->part->desc.experts;
        p->dtype = p->vector ? ESP_F32 : fitting(wanted, columns_of(p));
    }
}

static int plan_part(struct quantizing *q, const struct esp_model *part,
                     const struct esp_family *family, int first)
{
    const struct esp_model_desc *d = &part->desc;
    q->part = part;
    q->family = family;
    q->first = first;
    int status = plan_table(q, family->tensors, d, -1);
    for (int i = 0; i < d->layers && status == ESP_OK; i++) {
        status = plan_table(q, family->layer_tensors, &d->layer[i], i);
        if (status == ESP_OK)
            plan_experts(q, i);
    }
    return status;
}

static int plan(struct quantizing *q)
{
    const struct esp_model_desc *d = &q->model->desc;
    const int layers = d->layers + (q->mtp ? q->mtp->desc.layers : 0);
    /* The plan has at most one tensor for each slot. */
    const size_t slots = sizeof(struct esp_layer) + sizeof(struct esp_expert);
    const size_t most = (2 * sizeof *d + (size_t)layers * slots) / sizeof(struct esp_tensor);
    q->planned = calloc(most, sizeof *q->planned);
    if (!q->planned)
        return esp_no_memory(q->model->path, q->err, q->errlen);
    const int status = plan_part(q, q->model, q->architecture->family, 0);
    return status == ESP_OK && q->mtp ? plan_part(q, q->mtp, q->architecture->mtp, d->layers)
                                      : status;
}

/* ------------------------------------------------------------------ the header */

/* Reads the factors of the rotary frequencies from the model's tensor rope_freqs.weight. Only
 * GGUF files have this tensor. */
static int find_factors(struct quantizing *q)
{
    const struct esp_stored *stored = esp_stored_find(q->model->files, "rope_freqs.weight");
    if (q->factors || !stored || !stored->used)
        return ESP_OK;
    q->factors = malloc(stored->end - stored->begin);
    if (!q->factors)
        return esp_no_memory(q->model->path, q->err, q->errlen);
    esp_tensor_file_read(stored->source, stored->offset, q->factors,
                         stored->end - stored->begin);
    return ESP_OK;
}

static int make_header(struct quantizing *q, struct esp_bytes *bytes)
{
    struct esp_gguf_header header = {.value_count = 0};
    int status = esp_gguf_describe(&header, &q->factors, q->model, q->architecture,
                                   q->mtp != NULL, q->err, q->errlen);
    if (status == ESP_OK)
        status = find_factors(q);
    if (status == ESP_OK) {
        const int64_t factors = q->model->desc.rotary / 2;
        esp_gguf_put(&header, "general.file_type", ESP_GGUF_U32, q->mix->file_type);
        esp_gguf_put(&header, "general.quantization_version", ESP_GGUF_U32, 2);
        if (q->factors)
            esp_gguf_put_tensor(&header, "rope_freqs.weight", &factors, 1, 0,
                                (size_t)factors * sizeof *q->factors);
        for (int i = 0; i < q->count; i++) {
            const struct planned *p = &q->planned[i];
            const bool experts = p->first_expert != NULL; /* if true, there are 3 dimensions */
            const int64_t grouped[] = {p->groups, p->groups ? rows_of(p) / p->groups : 0};
            if (p->groups > 0) {
                esp_gguf_put_tensor(&header, p->name, grouped, 2,
                                    esp_gguf_type_of(p->dtype)->number, size_of(p));
                continue;
            }
            const int64_t shape[] = {p->part_count, experts ? part_of(p, 0)->rows : rows_of(p),
                                     columns_of(p)};
            esp_gguf_put_tensor(&header, p->name, shape + !experts, 3 - !experts - p->vector,
                                esp_gguf_type_of(p->dtype)->number, size_of(p));
        }
        if (!esp_gguf_header_bytes(&header, bytes))
            status = esp_no_memory(q->model->path, q->err, q->errlen);
    }
    esp_gguf_header_free(&header);
    return status;
}

/* ------------------------------------------------------------------ the tensors */

/* Describes rows of a tensor that are rounded together. They are divided into parts, and each
 * thread rounds some of the parts. */
struct chunk {
    const struct planned *planned;
    int first, rows, parts;
    unsigned char *out; /* (rows) the rounded rows in the format of the file */
    float *room;        /* (threads, 2, columns) scratch: a row before and after rounding */
    double lost[PARTS], all[PARTS];
    bool infinite[PARTS];
};

/* Returns which state head of the model becomes state head `head` of the file. */
static int head_of(const struct planned *p, int head)
{
    return head % p->key_heads * (p->state_heads / p->key_heads) + head / p->key_heads;
}

static void read_part(const struct planned *p, int row, float *out)
{
    const int block = p->interleaved;
    int part = 0;
    if (block > 0) {
        part = row / block % p->part_count;
        row = row / (block * p->part_count) * block + row % block;
    }
    while (row >= part_of(p, part)->rows)
        row -= part_of(p, part++)->rows;
    esp_tensor_read_row(part_of(p, part), row, out);
}

/* Puts the columns of the state heads in the order of the file. `room` is scratch memory for
 * one row. */
static void turn_columns(const struct planned *p, float *row, float *room)
{
    const size_t each = (size_t)p->tiled_columns, count = (size_t)p->state_heads * each;
    memcpy(room, row, count * sizeof *row);
    for (int head = 0; head < p->state_heads; head++)
        memcpy(row + (size_t)head * each, room + (size_t)head_of(p, head) * each,
               each * sizeof *row);
}

/* Reads the row of the model that becomes row `row` of the tensor in the file. */
static void read_row(const struct planned *p, int row, float *out, float *room)
{
    if (p->paired > 0) {
        const int in_head = row % p->paired;
        row += in_head / 2 + (in_head % 2) * p->paired / 2 - in_head;
    }
    if (p->tiled_rows > 0 && row >= p->tiled_from) {
        const int at = row - p->tiled_from;
        row =
            p->tiled_from + head_of(p, at / p->tiled_rows) * p->tiled_rows + at % p->tiled_rows;
    }
    read_part(p, row, out);
    if (p->tiled_columns > 0)
        turn_columns(p, out, room);
}

static void round_part(void *arg, int part, int thread)
{
    struct chunk *c = arg;
    const int columns = columns_of(c->planned);
    const size_t bytes = esp_dtype_row_bytes(c->planned->dtype, columns);
    float *row = c->room + (size_t)thread * 2 * (size_t)columns, *back = row + columns;
    int begin = (int)((int64_t)c->rows * part / c->parts);
    int end = (int)((int64_t)c->rows * (part + 1) / c->parts);
    c->lost[part] = c->all[part] = 0;
    c->infinite[part] = false;
    for (int i = begin; i < end; i++) {
        unsigned char *out = c->out + (size_t)i * bytes;
        bool finite = true;
        read_row(c->planned, c->first + i, row, back);
        for (int k = 0; k < columns; k++)
            finite &= isfinite(row[k]) != 0;
        c->infinite[part] |= !finite;
        if (!finite)
            continue;
        if (c->planned->dtype == ESP_F32)
            memcpy(out, row, bytes);
        else
            esp_quantise(c->planned->dtype, row, columns, out);
        esp_dequantise(c->planned->dtype, out, columns, back);
        for (int k = 0; k < columns; k++) {
            double difference = (double)back[k] - (double)row[k];
            c->lost[part] += difference * difference;
            c->all[part] += (double)row[k] * (double)row[k];
        }
    }
}

static int write_padded(const struct quantizing *q, const struct esp_writing *w,
                        const void *bytes, size_t size, size_t padding)
{
    static const char zeros[ESP_GGUF_ALIGNMENT];
    if (esp_write_all(w->file, bytes, size) && esp_write_all(w->file, zeros, padding))
        return ESP_OK;
    return esp_fail(q->err, q->errlen, ESP_E_FILE, "%.300s cannot be written: %s", w->path,
                    strerror(errno));
}

static void count_loss(struct quantizing *q, const struct planned *p, double lost, double all)
{
    double share = all > 0 ? sqrt(lost / all) : 0;
    if (p->vector)
        return;
    q->lost += lost;
    q->all += all;
    q->numbers += (double)rows_of(p) * columns_of(p);
    q->stored += (double)size_of(p);
    if (share > q->report->worst) {
        q->report->worst = share;
        snprintf(q->report->worst_name, sizeof q->report->worst_name, "%s", p->name);
    }
}

static int write_tensor(struct quantizing *q, const struct esp_writing *w,
                        const struct planned *p)
{
    const int rows = rows_of(p), columns = columns_of(p);
    const size_t bytes = esp_dtype_row_bytes(p->dtype, columns);
    const int most = (int)(bytes < CHUNK ? CHUNK / bytes : 1);
    struct chunk c = {.planned = p};
    double lost = 0, all = 0;
    int status = ESP_OK;
    c.out = malloc((size_t)(rows < most ? rows : most) * bytes);
    c.room = malloc((size_t)esp_pool_threads(q->pool) * 2 * (size_t)columns * sizeof *c.room);
    if (!c.out || !c.room)
        status = esp_no_memory(p->name, q->err, q->errlen);
    for (; c.first < rows && status == ESP_OK; c.first += c.rows) {
        c.rows = rows - c.first < most ? rows - c.first : most;
        c.parts = c.rows < PARTS ? c.rows : PARTS;
        esp_pool_run(q->pool, c.parts, round_part, &c);
        for (int i = 0; i < c.parts; i++) {
            lost += c.lost[i];
            all += c.all[i];
            if (c.infinite[i])
                status = esp_fail(q->err, q->errlen, ESP_E_NUMERIC,
                                  "%s: the matrix that becomes %s has a number that is not "
                                  "finite",
                                  q->model->path, p->name);
        }
        if (status == ESP_OK)
            status = write_padded(q, w, c.out, (size_t)c.rows * bytes, 0);
    }
    free(c.out);
    free(c.room);
    count_loss(q, p, lost, all);
    return status == ESP_OK ? write_padded(q, w, NULL, 0, esp_gguf_padding(size_of(p)))
                            : status;
}

static int write_tensors(struct quantizing *q, const struct esp_writing *w)
{
    size_t factors = (size_t)q->model->desc.rotary / 2 * sizeof *q->factors;
    size_t done = 0, total = 0;
    int status = q->factors ? write_padded(q, w, q->factors, factors, esp_gguf_padding(factors))
                            : (int)ESP_OK;
    for (int i = 0; i < q->count; i++)
        total += size_of(&q->planned[i]);
    for (int i = 0; i < q->count && status == ESP_OK; i++) {
        status = write_tensor(q, w, &q->planned[i]);
        done += size_of(&q->planned[i]);
        if (status == ESP_OK && q->progress && !q->progress(q->user, "writing", done, total))
            status = esp_fail(q->err, q->errlen, ESP_E_CANCELLED, "writing was cancelled");
    }
    q->report->bytes_before = (double)q->model->bytes + (q->mtp ? (double)q->mtp->bytes : 0);
    q->report->bytes_after = (double)total;
    q->report->loss = q->all > 0 ? sqrt(q->lost / q->all) : 0;
    q->report->bits = q->numbers > 0 ? 8 * q->stored / q->numbers : 0;
    if (status == ESP_OK && q->mtp)
        status = esp_stored_release(q->mtp->files, q->err, q->errlen);
    return status < 0 ? status : esp_stored_release(q->model->files, q->err, q->errlen);
}

/* ------------------------------------------------------------------ the tokenizer */

/* Returns one string with the texts of all tokens, separated by spaces. The caller frees the
 * string. */
static char *all_texts(const struct esp_tokenizer *t, size_t *length)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, length);
    for (int32_t id = 0; stream && id < esp_tokenizer_size(t); id++) {
        size_t size = 0;
        const char *bytes = esp_tokenizer_bytes(t, id, &size);
        if (bytes)
            fwrite(bytes, 1, size, stream);
        if (bytes && id % 3 == 0)
            fputc(' ', stream);
    }
    if (!stream || fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void compare_tokens(const struct esp_tokenizer *a, const struct esp_tokenizer *b,
                           struct esp_quantize_report *report)
{
    size_t length = 0;
    char *text = all_texts(a, &length);
    int32_t *tokens = text ? malloc(2 * (4 * length + 1) * sizeof *tokens) : NULL;
    if (tokens) {
        int room = (int)(4 * length + 1);
        int32_t *others = tokens + room;
        int n = esp_tokenizer_encode(a, text, length, tokens, room);
        int m = esp_tokenizer_encode(b, text, length, others, room);
        report->tokens = n > 0 ? n : 0;
        report->other_tokens = n > m ? n - m : m - n;
        for (int i = 0; i < n && i < m; i++)
            report->other_tokens += tokens[i] != others[i];
    }
    free(text);
    free(tokens);
}

/* Reads the written tokenizer back and compares it with the original one. */
static int check_tokenizer(const struct quantizing *q, const char *path)
{
    struct esp_tokenizer *before, *after;
    char why[512];
    int status = esp_tokenizer_open(&before, q->model->path, q->err, q->errlen);
    if (status < 0)
        return status;
    status = esp_tokenizer_open(&after, path, why, sizeof why);
    if (status == ESP_OK)
        compare_tokens(before, after, q->report);
    else
        esp_fail(q->err, q->errlen, status, "%s: its tokenizer cannot be written as GGUF: %s",
                 q->model->path, why);
    if (status == ESP_OK)
        esp_tokenizer_close(after);
    esp_tokenizer_close(before);
    return status;
}

/* ------------------------------------------------------------------ the whole file */

static int write_file(struct quantizing *q, const char *to, bool over)
{
    struct esp_bytes header = {.size = 0};
    struct esp_writing writing;
    int status = plan(q);
    if (status == ESP_OK)
        status = make_header(q, &header);
    if (status == ESP_OK)
        status = esp_write_begin(&writing, to, over, q->err, q->errlen);
    if (status == ESP_OK) {
        status = write_padded(q, &writing, header.data, header.size, 0);
        if (status == ESP_OK)
            status = write_tensors(q, &writing);
        if (status == ESP_OK)
            status = check_tokenizer(q, writing.beside);
        int ended = esp_write_end(&writing, status == ESP_OK, q->err, q->errlen);
        status = status < 0 ? status : ended;
    }
    free(header.data);
    return status;
}

/* Returns the window that other programs ignore, or 0. A file of architecture "llama" may have
 * a window (Mistral's), but llama.cpp ignores the key of the window in such files. */
static int ignored_window(const struct quantizing *q)
{
    const struct esp_gguf_architecture *own =
        q->architecture ? esp_gguf_architecture_of(q->architecture->name) : NULL;
    const struct esp_model_desc *d = &q->model->desc;
    for (int i = 0; own && strcmp(own->name, "llama") == 0 && i < d->layers; i++)
        if (d->layer[i].window > 0)
            return d->layer[i].window;
    return 0;
}

int esp_model_quantize(const char *from, const char *to, const char *type, bool over,
                       struct esp_quantize_report *report, esp_progress *progress, void *user,
                       char *err, size_t errlen)
{
    struct quantizing q = {.report = report, .progress = progress, .user = user, .err = err};
    q.errlen = errlen;
    *report = (struct esp_quantize_report){.tokens = 0};
    for (int i = 0; i < MIXES; i++)
        if (strcasecmp(mixes[i].name, type) == 0)
            q.mix = &mixes[i];
    if (!q.mix)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "there is no type %.40s; the types are %s",
                        type, esp_quantize_types());
    int status = esp_model_open(&q.model, from, err, errlen);
    if (status < 0)
        return status;
    q.architecture = esp_architecture_named(q.model->architecture);
    report->ignored_window = ignored_window(&q);
    if (q.model->mtp)
        status = esp_model_open_mtp(&q.mtp, from, err, errlen);
    if (status == ESP_E_UNSUPPORTED) { /* the model has several MTP layers */
        snprintf(report->mtp_left_out, sizeof report->mtp_left_out, "%s", err);
        status = ESP_OK;
    }
    report->mtp = q.mtp != NULL;
    q.pool = esp_pool_open(esp_cores_all(), esp_cores_best() < esp_cores_all());
    if (!q.pool)
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for threads");
    if (status == ESP_OK)
        status = write_file(&q, to, over);
    esp_pool_close(q.pool);
    free(q.planned);
    free(q.factors);
    esp_model_close(q.mtp);
    esp_model_close(q.model);
    return status;
}
