/* shapes.c - measures the CUDA backend on models that have the shapes of real models.
 *
 *     shapes [--try] [--list | PART...]
 *     shapes --predict RATE CLOCK [PART...]
 *
 * The weights are random, and all matrices of a model share one piece of memory on the host,
 * so an 8B model needs no file and little memory. A pass takes as long as with the real
 * weights. The program prints tables in Markdown:
 *
 *   - times of passes of several sizes after texts of several lengths, and what fraction of the
 *     read rate the passes reach;
 *   - the time of each kind of kernel in a pass, and what fraction of the read rate it reaches;
 *   - times of the steps of a draft model;
 *   - times of passes with quantised weights;
 *   - times of passes of a target if only half of it fits on the device. The other half is
 *     copied for every pass.
 *
 * Next to each measurement is the backend's prediction (kernels/cuda/predict.cu), which uses
 * the device's read rate and clock. The passes of every model are checked in exact mode before
 * they are timed: each row of a pass must be bit-identical to the row computed alone.
 *
 * --try uses small shapes, to test this program. --predict prints only the predictions, for a
 * device that reads RATE GB/s at CLOCK MHz. It is assumed to have as many multiprocessors as
 * the device or emulator on which the program runs. --list prints the names of the parts. Each
 * part runs in its own process, so the other parts still run if one fails. The last line is "N
 * passed, N failed". Times are medians, measured by the device.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/backends.h"
#include "kernels/clock.h"
#include "kernels/kernels.h"

enum { MOST_ROWS = 256, MOST_RUNS = 30, WORDS = MOST_ROWS / 64, CONTEXTS = 4 };

struct shape {
    const char *name;
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
    bool tied;
    int experts, experts_used; /* number of experts (of width `ffn`); number that a row uses */
};

/* The two largest shapes come first. */
static const struct shape shapes[] = {
    {"Llama 3.1 8B", 32, 4096, 32, 8, 128, 14336, 128256, false, 0, 0},
    {"Qwen 3 30B A3B, 12 of 48 layers", 12, 2048, 32, 4, 128, 768, 151936, false, 128, 8},
    {"Qwen 2.5 0.5B", 24, 896, 14, 2, 64, 4864, 151936, true, 0, 0},
    {"Llama 3.2 1B", 16, 2048, 32, 8, 64, 8192, 128256, true, 0, 0},
    {"Llama 3.2 3B", 28, 3072, 24, 8, 128, 8192, 128256, true, 0, 0},
    {"Qwen 3 4B", 36, 2560, 32, 8, 128, 9728, 151936, true, 0, 0},
};
/* With --try, these shapes replace the shapes above. The last one replaces the third shape and
 * all later ones. */
static const struct shape small_shapes[] = {
    {"a small one", 4, 256, 4, 2, 64, 256, 100, true, 0, 0},
    {"a small mixture", 1, 64, 2, 1, 32, 64, 50, false, 8, 2},
    {"a smaller one", 1, 64, 2, 1, 32, 96, 50, false, 0, 0},
};

/* MIXED stands for the types in files of type Q4_K_M: Q6_K for the head, and for the value and
 * down matrices of half of the layers; Q4_K for all other matrices. */
static const enum esp_dtype MIXED = ESP_DTYPE_COUNT;

static int runs = 20, contexts[CONTEXTS] = {256, 1024, 8192, 32768};
static int rows_of[] = {1, 2, 4, 8, 16, 17, 32, 64, 128, 256};
enum { ROW_COUNTS = sizeof rows_of / sizeof *rows_of, MOST_KINDS = 16 };
static struct esp_device_speed speed; /* measured, or set by --predict */

static void stop(const char *what, const char *err)
{
    fprintf(stderr, "shapes: %s: %s\n", what, err);
    exit(1);
}

/* ------------------------------------------------------------------ a random model */

struct made {
    struct esp_model_desc desc;
    struct esp_layer *layer;
    struct esp_expert *expert; /* the experts, the same for every layer, or NULL */
    float *frequencies, *ones;
    char *numbers; /* random numbers, which all matrices share */
    char *precise; /* the numbers that all Q6_K matrices of a mixed model share, or NULL */
};

static size_t bytes_of(const struct esp_tensor *t)
{
    return (size_t)t->rows * esp_dtype_row_bytes(t->dtype, t->columns);
}

static struct esp_tensor matrix(enum esp_dtype dtype, int rows, int columns)
{
    return (struct esp_tensor){
        .dtype = dtype, .rows = rows, .columns = columns, .block = rows, .stride = rows};
}

static struct esp_tensor vector(const float *ones, int n)
{
    return (struct esp_tensor){
        .data = ones, .dtype = ESP_F32, .rows = n, .columns = 1, .block = n, .stride = n};
}

/* Fills memory with random numbers of this type, by repeating one short random piece. */
static void fill(char *to, size_t bytes, enum esp_dtype dtype, int columns)
{
    enum { PIECE = 64 };
    const int block = esp_dtype_block(dtype), count = PIECE * (block > 1 ? block : 256);
    const size_t piece = esp_dtype_row_bytes(dtype, count);
    float *values = malloc((size_t)count * sizeof *values);
    char *stored = malloc(piece);
    uint64_t state = 1;
    for (int i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values[i] = ((float)(state >> 40) / (1 << 23) - 1.0f) / sqrtf((float)columns);
    }
    esp_quantise(dtype, values, count, stored);
    for (size_t at = 0; at < bytes; at += piece)
        memcpy(to + at, stored, bytes - at < piece ? bytes - at : piece);
    free(values);
    free(stored);
}

/* Replaces the layer's gate, up and down matrices by a mixture of equal experts. */
static void make_experts(struct made *m, const struct shape *s, struct esp_layer *layer,
                         enum esp_dtype dtype)
{
    m->expert = calloc((size_t)s->experts, sizeof *m->expert);
    if (!m->expert)
        stop(s->name, "not enough memory");
    for (int i = 0; i < s->experts; i++)
        m->expert[i] =
            (struct esp_expert){.gate = layer->gate, .up = layer->up, .down = layer->down};
    layer->router = matrix(dtype, s->experts, s->hidden);
    layer->router.data = m->numbers;
    layer->expert = m->expert;
    layer->gate = layer->up = layer->down = (struct esp_tensor){0};
}

/* Makes all layers. In a mixed model, about half of the layers have more bits: the first eighth
 * of the layers, the last eighth, and every third layer between them. */
static void make_layers(struct made *m, const struct shape *s, const struct esp_layer *one,
                        bool mixed)
{
    const int eighth = s->layers / 8;
    for (int i = 0; i < s->layers; i++) {
        m->layer[i] = *one;
        if (mixed &&
            (i < eighth || i >= s->layers - eighth || (i - eighth) % 3 == 2 || s->layers < 8)) {
            m->layer[i].value.dtype = m->layer[i].down.dtype = ESP_Q6_K;
            m->layer[i].value.data = m->layer[i].down.data = m->precise;
        }
    }
}

/* Allocates and returns random numbers of a type. The numbers suffice for the larger one of the
 * tensors `head` and `other`, and one more block. If `filled` is false, the caller must not
 * read them. */
static char *make_numbers(const struct shape *s, enum esp_dtype dtype,
                          const struct esp_tensor *head, const struct esp_tensor *other,
                          bool filled)
{
    const size_t block = esp_dtype_block_bytes(dtype);
    const size_t wide = bytes_of(head), high = bytes_of(other);
    const size_t bytes = (filled ? (wide > high ? wide : high) : 0) + block;
    char *numbers = malloc(bytes);
    if (!numbers)
        stop(s->name, "not enough memory");
    if (filled)
        fill(numbers, bytes, dtype, s->hidden);
    return numbers;
}

static void make(struct made *m, const struct shape *s, enum esp_dtype of, bool numbers)
{
    const bool mixed = of == MIXED;
    const enum esp_dtype dtype = mixed ? ESP_Q4_K : of;
    const int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    const int widest = s->hidden > s->ffn ? s->hidden : s->ffn;
    *m = (struct made){.layer = calloc((size_t)s->layers, sizeof *m->layer),
                       .frequencies = malloc((size_t)s->head_dim / 2 * sizeof(float)),
                       .ones = malloc((size_t)widest * sizeof(float))};
    struct esp_layer one = {.norm1 = vector(m->ones, s->hidden),
                            .norm2 = vector(m->ones, s->hidden),
                            .query = matrix(dtype, q, s->hidden),
                            .key = matrix(dtype, kv, s->hidden),
                            .value = matrix(dtype, kv, s->hidden),
                            .output = matrix(dtype, s->hidden, q),
                            .gate = matrix(dtype, s->ffn, s->hidden),
                            .up = matrix(dtype, s->ffn, s->hidden),
                            .down = matrix(dtype, s->hidden, s->ffn)};
    struct esp_tensor head = matrix(mixed ? ESP_Q6_K : dtype, s->vocabulary, s->hidden);
    if (!m->layer || !m->frequencies || !m->ones)
        stop(s->name, "not enough memory");
    m->numbers = make_numbers(s, dtype, mixed ? &one.gate : &head, &one.gate, numbers);
    if (mixed) {
        struct esp_tensor down = one.down;
        down.dtype = ESP_Q6_K;
        m->precise = make_numbers(s, ESP_Q6_K, &head, &down, numbers);
    }
    for (int i = 0; i < widest; i++)
        m->ones[i] = 1;
    for (int i = 0; i < s->head_dim / 2; i++)
        m->frequencies[i] = powf(500000, -2.0f * (float)i / (float)s->head_dim);
    struct esp_tensor *const all[] = {&one.query, &one.key, &one.value, &one.output,
                                      &one.gate,  &one.up,  &one.down,  &head};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        all[i]->data = m->numbers;
    if (mixed)
        head.data = m->precise;
    if (s->experts > 0)
        make_experts(m, s, &one, dtype);
    make_layers(m, s, &one, mixed);
    m->desc = (struct esp_model_desc){.layers = s->layers,
                                      .hidden = s->hidden,
                                      .heads = s->heads,
                                      .kv_heads = s->kv_heads,
                                      .head_dim = s->head_dim,
                                      .ffn = s->ffn,
                                      .experts = s->experts,
                                      .experts_used = s->experts_used,
                                      .expert_ffn = s->experts > 0 ? s->ffn : 0,
                                      .experts_normed = true,
                                      .vocabulary = s->vocabulary,
                                      .outputs = s->vocabulary,
                                      .context = 1 << 20,
                                      .norm = ESP_NORM_RMS,
                                      .activation = ESP_SWIGLU,
                                      .norm_epsilon = 1e-5f,
                                      .rotary = s->head_dim,
                                      .inverse_frequency = m->frequencies,
                                      .embedding = head,
                                      .head = head,
                                      .norm_final = vector(m->ones, s->hidden),
                                      .layer = m->layer};
    if (!s->tied) /* a different address makes the head a separate matrix on the device */
        m->desc.head.data = (char *)head.data + esp_dtype_block_bytes(head.dtype);
}

static void unmake(struct made *m)
{
    free(m->layer);
    free(m->expert);
    free(m->frequencies);
    free(m->ones);
    free(m->numbers);
    free(m->precise);
}

/* ------------------------------------------------------------------ a pass */

struct runner {
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits;
    int vocabulary;
};

static const char *failure(const struct runner *r)
{
    return r->backend->ops->failure(r->backend);
}

static double memory_free(const struct runner *r)
{
    return (double)r->backend->ops->memory_free(r->backend) / 1e9;
}

/* How many bytes are reserved for the graphs of captured passes. The graphs probably need
 * less. */
static const size_t ALL_GRAPHS = (size_t)256 << 20;

/* Opens a model, and a KV cache for a text of `context` tokens and passes of `batch` rows. Only
 * the fraction `part` of the weights is kept on the device. Returns false if the device has too
 * little memory. */
static bool open_runner(struct runner *r, struct esp_backend *backend, struct made *m,
                        int context, int batch, double part)
{
    const struct esp_backend_ops *ops = backend->ops;
    const struct esp_model_desc *d = &m->desc;
    char err[400] = "";
    *r = (struct runner){.backend = backend, .vocabulary = d->vocabulary};
    m->desc.limit = (struct esp_memory_limit){.bytes = 0};
    const size_t all = ops->weights_need(d);
    if (part < 1)
        m->desc.limit.bytes = (size_t)(part * (double)all);
    m->desc.graph_bytes = ALL_GRAPHS;
    const size_t need = ALL_GRAPHS + ops->weights_need(d) +
                        ops->cache_need(d, context + batch, batch) +
                        ops->rows_need(MOST_ROWS, d->vocabulary);
    const double before = memory_free(r);
    if (need > ops->memory_free(backend)) {
        printf("\nLeft out: %.1f GB are needed, %.1f GB are free.\n", (double)need / 1e9,
               (double)ops->memory_free(backend) / 1e9);
        return false;
    }
    const double start = esp_clock();
    if (ops->weights_open(&r->weights, backend, d, NULL, NULL, err, sizeof err) < 0 ||
        ops->cache_open(&r->cache, r->weights, context + batch, batch, err, sizeof err) < 0 ||
        ops->rows_open(&r->logits, backend, MOST_ROWS, d->vocabulary, err, sizeof err) < 0)
        stop("a model", err);
    printf("\n%.2f GB of weights, opened in %.1f s. Memory free: %.3f GB before, %.3f GB with "
           "weights, cache, rows and graphs, for which %.3f GB were planned.\n",
           (double)all / 1e9, esp_clock() - start, before, memory_free(r), (double)need / 1e9);
    return true;
}

static void close_runner(struct runner *r)
{
    r->backend->ops->rows_close(r->logits);
    r->backend->ops->cache_close(r->cache);
    r->backend->ops->weights_close(r->weights);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, (size_t)runs, sizeof *values, by_size);
    return values[runs / 2];
}

/* Returns a pass over a tree of `rows` nodes after `context` tokens. The parent of node i is
 * node (i - 1) / 2. The result is valid until the next call. */
static struct esp_batch tree_pass(struct runner *r, int rows, int context)
{
    static uint64_t mask[MOST_ROWS][WORDS];
    static int32_t tokens[MOST_ROWS], positions[MOST_ROWS];
    memset(mask, 0, sizeof mask);
    for (int i = 0; i < rows; i++) {
        tokens[i] = (i * 37 + 11) % r->vocabulary;
        positions[i] = i == 0 ? context : positions[(i - 1) / 2] + 1;
        if (i > 0)
            memcpy(mask[i], mask[(i - 1) / 2], sizeof mask[i]);
        mask[i][i / 64] |= (uint64_t)1 << i % 64;
    }
    return (struct esp_batch){.rows = rows,
                              .tokens = tokens,
                              .positions = positions,
                              .first = context,
                              .prefix = context,
                              .mask = mask[0],
                              .mask_words = WORDS,
                              .logits = r->logits};
}

/* Returns how many seconds a pass over a tree of `rows` nodes after `context` tokens takes,
 * including choosing a token at each node. */
static double pass_seconds(struct runner *r, int rows, int context)
{
    static int32_t which[MOST_ROWS], ids[MOST_ROWS];
    static double seconds[MOST_RUNS];
    const struct esp_backend_ops *ops = r->backend->ops;
    const struct esp_batch batch = tree_pass(r, rows, context);
    for (int i = 0; i < rows; i++)
        which[i] = i;
    for (int i = -2; i < runs; i++) {
        ops->mark(r->backend, 0);
        if (ops->forward(r->cache, &batch) < 0 ||
            ops->argmax(r->logits, which, rows, ids, ESP_NOW) < 0)
            stop("a pass", failure(r));
        ops->mark(r->backend, 1);
        if (i >= 0)
            seconds[i] = ops->between(r->backend, 0, 1);
    }
    return median(seconds);
}

static double step_seconds(struct runner *r, int context)
{
    static double seconds[MOST_RUNS];
    const struct esp_backend_ops *ops = r->backend->ops;
    int32_t token = 1, position = context, ids[4];
    float values[4];
    const struct esp_step step = {{.temperature = 1, .top_p = 1}, 4, ids, values, ESP_NOW};
    const struct esp_batch batch = {.rows = 1,
                                    .tokens = &token,
                                    .positions = &position,
                                    .first = context,
                                    .prefix = context,
                                    .logits = r->logits,
                                    .step = &step};
    for (int i = -2; i < runs; i++) {
        ops->mark(r->backend, 0);
        if (ops->forward(r->cache, &batch) < 0)
            stop("a draft step", failure(r));
        ops->mark(r->backend, 1);
        if (i >= 0)
            seconds[i] = ops->between(r->backend, 0, 1);
    }
    return median(seconds);
}

/* ------------------------------------------------------------------ exact mode */

/* Runs a pass over `rows` tokens of a chain that follows `context` tokens. The first of these
 * rows is token number `first` of the chain. */
static void run_chain(struct runner *r, int context, int first, int rows)
{
    int32_t tokens[MOST_ROWS], positions[MOST_ROWS], to[MOST_ROWS];
    for (int i = 0; i < rows; i++) {
        tokens[i] = ((first + i) * 37 + 11) % r->vocabulary;
        positions[i] = context + first + i;
        to[i] = first + i;
    }
    const struct esp_batch batch = {.rows = rows,
                                    .tokens = tokens,
                                    .positions = positions,
                                    .first = context + first,
                                    .prefix = context + first,
                                    .logits = r->logits,
                                    .logits_row = to};
    if (r->backend->ops->forward(r->cache, &batch) < 0)
        stop("a pass in exact mode", failure(r));
}

/* Reads `rows` rows of logits to `to`. Ends the program if a number is not finite. */
static void read_rows(struct runner *r, int rows, float *to)
{
    for (int i = 0; i < rows; i++) {
        float *row = to + (size_t)i * (size_t)r->vocabulary;
        if (r->backend->ops->read_row(r->logits, i, row) < 0)
            stop("reading logits", failure(r));
        for (int k = 0; k < r->vocabulary; k++)
            if (!isfinite(row[k]))
                stop("logits of exact mode", "not a number");
    }
}

/* In exact mode, compares passes of up to `batch` rows with the same rows computed one by one.
 * With `batch` below 64, the cache has no graph of 64 rows. Then passes of 17 to 32 rows use
 * other kernels for products. */
static void check_exact(struct esp_backend *backend, struct made *m, int batch)
{
    enum { CONTEXT = 200, MOST = 64 };
    static const int counts[] = {2, 8, 12, 16, 17, 20, 32, 33, 40, 63, 64};
    struct runner r;
    int wrong = 0, rows = 0;
    const size_t row = (size_t)m->desc.vocabulary, most = (size_t)(batch < MOST ? batch : MOST);
    float *plain = malloc(2 * most * row * sizeof *plain), *together = plain + most * row;
    if (!plain)
        stop("exact mode", "not enough memory");
    backend->ops->set_exact(backend, true);
    m->desc.exact = true;
    if (open_runner(&r, backend, m, CONTEXT + MOST, batch, 1)) {
        for (int i = 0; i < (int)most; i++)
            run_chain(&r, CONTEXT, i, 1);
        read_rows(&r, (int)most, plain);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            if (counts[c] > batch || counts[c] > MOST)
                continue;
            run_chain(&r, CONTEXT, 0, counts[c]);
            read_rows(&r, counts[c], together);
            for (int i = 0; i < counts[c]; i++, rows++)
                wrong += memcmp(plain + (size_t)i * row, together + (size_t)i * row,
                                row * sizeof *plain) != 0;
        }
        printf("\nExact mode, passes of 2 to %zu rows: %d of %d rows have the bits of plain "
               "decoding.\n",
               most, rows - wrong, rows);
        close_runner(&r);
    }
    backend->ops->set_exact(backend, false);
    m->desc.exact = false;
    free(plain);
    if (wrong > 0)
        stop("exact mode", "a row depends on the other rows of its pass");
}

/* ------------------------------------------------------------------ tables */

static void print_share(double bytes, double seconds, double rate)
{
    if (bytes > 0)
        printf(" %.0f %% |", 100 * bytes / seconds / rate);
    else
        printf(" - |");
}

/* Writes the backend's predictions for the kernels of a pass. Returns how many kinds of
 * kernels there are, or 0 if the pass has more rows than the backend can predict. */
static int predict(const struct esp_backend *backend, const struct esp_model_desc *desc,
                   int rows, int context, struct esp_kernel_time kernel[MOST_KINDS])
{
    const int count = backend->ops->predict((struct esp_backend *)backend, desc, rows, context,
                                            &speed, kernel, MOST_KINDS);
    if (count < 0 && count != ESP_E_ARGUMENT)
        stop("a prediction", backend->ops->failure(backend));
    return count < 0 ? 0 : count;
}

/* Returns the predicted seconds of a pass, or 0 if there is no prediction. A captured pass runs
 * the smallest graph that has enough rows, so it takes as long as a pass of that size. */
static double predicted_seconds(const struct esp_backend *backend,
                                const struct esp_model_desc *desc, int rows, int context)
{
    struct esp_kernel_time kernel[MOST_KINDS];
    double seconds = 0;
    const int captured = rows > 64 ? rows : rows > 16 ? 64 : rows > 4 ? 16 : rows > 1 ? 4 : 1;
    const int count = predict(backend, desc, captured, context, kernel);
    for (int i = 0; i < count; i++)
        seconds += kernel[i].seconds;
    return seconds;
}

static void print_milliseconds(double seconds)
{
    if (seconds > 0)
        printf(" %.3f |", 1e3 * seconds);
    else
        printf(" - |");
}

/* Prints a table with a line for each number of rows, and three columns for each length of the
 * text: the milliseconds of a pass, the predicted milliseconds, and what fraction of the read
 * rate the pass reaches. If r is NULL, prints only predictions, for `bytes` bytes of
 * weights. */
static void print_passes(struct esp_backend *backend, struct runner *r,
                         const struct esp_model_desc *desc, double bytes, int count)
{
    printf("\n| rows |");
    for (int i = 0; i < count; i++) {
        const int context = contexts[count == 1 ? 1 : i];
        if (r)
            printf(" ms at %d | predicted | of the read rate |", context);
        else
            printf(" ms at %d, predicted | of the read rate |", context);
    }
    printf("\n|---|");
    for (int i = 0; i < count; i++)
        printf(r ? "---|---|---|" : "---|---|");
    putchar('\n');
    for (int i = 0; i < ROW_COUNTS; i++) {
        printf("| %d |", rows_of[i]);
        for (int j = 0; j < count; j++) {
            const int context = contexts[count == 1 ? 1 : j];
            const double seconds = predicted_seconds(backend, desc, rows_of[i], context);
            const double took = r ? pass_seconds(r, rows_of[i], context) : seconds;
            if (r)
                printf(" %.3f |", 1e3 * took);
            print_milliseconds(seconds);
            print_share(took > 0 ? bytes : 0, took, speed.read_rate);
        }
        putchar('\n');
    }
}

/* Returns the predicted seconds of all kernels of a kind, or 0 if there is no prediction. */
static double seconds_of(const struct esp_kernel_time *kernel, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(kernel[i].name, name) == 0)
            return kernel[i].seconds;
    return 0;
}

/* Prints how long each kind of kernel takes in a pass: the median and the prediction. If r is
 * NULL, prints only the prediction. */
static void print_kernels(struct esp_backend *backend, struct runner *r,
                          const struct esp_model_desc *desc, int rows, int context)
{
    static double seconds[MOST_KINDS][MOST_RUNS];
    struct esp_kernel_time kernel[MOST_KINDS] = {0}, predicted[MOST_KINDS];
    const int known = predict(backend, desc, rows, context, predicted);
    int count = 0;
    for (int i = 0; r && i < runs; i++) {
        const struct esp_batch batch = tree_pass(r, rows, context);
        count = backend->ops->time_kernels(r->cache, &batch, kernel, MOST_KINDS);
        if (count < 0)
            stop("a timed pass", failure(r));
        for (int k = 0; k < count; k++)
            seconds[k][i] = kernel[k].seconds;
    }
    printf("\nKernels of a pass of %d rows at %d:\n\n| kernels | of them |%s MB read | of the "
           "read rate |\n|---|---|%s---|---|---|\n",
           rows, context, r ? " ms | predicted |" : " ms, predicted |", r ? "---|" : "");
    for (int k = 0; k < (r ? count : known); k++) {
        const struct esp_kernel_time *of = r ? &kernel[k] : &predicted[k];
        const double expected = seconds_of(predicted, known, of->name);
        const double took = r ? median(seconds[k]) : expected;
        printf("| %s | %d |", of->name, of->count);
        if (r)
            printf(" %.4f |", 1e3 * took);
        printf(" %.4f |", 1e3 * expected);
        if (of->bytes > 0)
            printf(" %.3f |", of->bytes / 1e6);
        else
            printf(" - |");
        print_share(of->bytes, took, speed.read_rate);
        putchar('\n');
    }
}

/* Returns how many bytes of weights a pass reads. For a mixture of experts, returns 0, because
 * the number depends on the rows. */
static double pass_bytes(const struct esp_backend *backend, const struct esp_model_desc *d)
{
    struct esp_model_desc whole = *d;
    whole.limit = (struct esp_memory_limit){.bytes = 0};
    double bytes = (double)backend->ops->weights_need(&whole);
    if (d->head.data != d->embedding.data)
        bytes -= (double)bytes_of(&d->embedding);
    return d->experts > 0 ? 0 : bytes;
}

static const int timed[] = {1, 16, 64};
enum { TIMED = sizeof timed / sizeof *timed };

/* Prints the predictions for a model without measuring it. The weights can have any type. */
static void print_predictions(struct esp_backend *backend, const struct shape *s,
                              enum esp_dtype dtype)
{
    struct made m;
    make(&m, s, dtype, false);
    const bool dense = dtype == ESP_BF16;
    print_passes(backend, NULL, &m.desc, pass_bytes(backend, &m.desc), dense ? CONTEXTS : 1);
    for (int i = 0; i < TIMED; i++)
        print_kernels(backend, NULL, &m.desc, timed[i], contexts[1]);
    unmake(&m);
}

/* Prints the times of passes in exact mode, for only one length of the preceding text. */
static void print_exact(struct esp_backend *backend, struct made *m)
{
    struct runner r;
    backend->ops->set_exact(backend, true);
    m->desc.exact = true;
    printf("\nExact mode:\n");
    if (open_runner(&r, backend, m, contexts[1], MOST_ROWS, 1)) {
        print_passes(backend, &r, &m->desc, pass_bytes(backend, &m->desc), 1);
        close_runner(&r);
    }
    m->desc.exact = false;
    backend->ops->set_exact(backend, false);
}

static void print_shape(struct esp_backend *backend, const struct shape *s)
{
    struct made m;
    struct runner r;
    make(&m, s, ESP_BF16, true);
    check_exact(backend, &m, 63);
    check_exact(backend, &m, 64);
    if (open_runner(&r, backend, &m, contexts[CONTEXTS - 1], MOST_ROWS, 1)) {
        print_passes(backend, &r, &m.desc, pass_bytes(backend, &m.desc), CONTEXTS);
        printf("\nA draft step:");
        for (int i = 0; i < CONTEXTS; i++)
            printf("%s %.3f ms at %d", i ? "," : "", 1e3 * step_seconds(&r, contexts[i]),
                   contexts[i]);
        printf(".\n");
        for (int i = 0; i < TIMED; i++)
            print_kernels(backend, &r, &m.desc, timed[i], contexts[1]);
        close_runner(&r);
    }
    print_exact(backend, &m);
    unmake(&m);
}

/* Prints the times of passes of a model with quantised weights. */
static void print_quantised(struct esp_backend *backend, const struct shape *s,
                            enum esp_dtype dtype)
{
    struct made m;
    struct runner r;
    make(&m, s, dtype, true);
    check_exact(backend, &m, 63);
    if (open_runner(&r, backend, &m, contexts[1], MOST_ROWS, 1)) {
        print_passes(backend, &r, &m.desc, pass_bytes(backend, &m.desc), 1);
        for (int i = 0; i < TIMED; i++)
            print_kernels(backend, &r, &m.desc, timed[i], contexts[1]);
        close_runner(&r);
    }
    unmake(&m);
}

/* Prints the times of passes if only half of the weights fit on the device. Then most layers
 * are copied to the device for every pass. */
static void print_streamed(struct esp_backend *backend, const struct shape *s)
{
    struct made m;
    struct runner r;
    struct esp_streamed streamed;
    printf("\nHalf of the weights are on the device.\n");
    make(&m, s, ESP_BF16, true);
    if (open_runner(&r, backend, &m, contexts[1], MOST_ROWS, 0.5)) {
        if (!backend->ops->weights_streamed(r.weights, &streamed))
            stop(s->name, "nothing is streamed");
        const double copies = streamed.bytes / streamed.seconds;
        printf(
            "%d of %d layers stay; a pass copies %.2f GB, at the measured %.1f GB/s: %.1f ms.\n"
            "\n| rows | ms at %d | GB/s of copies |\n|---|---|---|\n",
            streamed.resident, streamed.layers, (double)streamed.pass_bytes / 1e9, copies / 1e9,
            1e3 * (double)streamed.pass_bytes / copies, contexts[1]);
        for (int i = 0; i < ROW_COUNTS; i++) {
            const double seconds = pass_seconds(&r, rows_of[i], contexts[1]);
            printf("| %d | %.2f | %.1f |\n", rows_of[i], 1e3 * seconds,
                   (double)streamed.pass_bytes / seconds / 1e9);
        }
        close_runner(&r);
    }
    unmake(&m);
}

/* ------------------------------------------------------------------ parts */

enum kind { DENSE, QUANTISED, STREAMED };

/* The parts of a run, the most important first, in case the time is too short for all of them.
 * `shape` is an index into `shapes`. */
static const struct part {
    const char *name;
    enum kind kind;
    int shape;
    enum esp_dtype dtype; /* ESP_DTYPE_COUNT means the mix of Q4_K_M */
} parts[] = {
    {"8b", DENSE, 0, ESP_BF16},          {"8b-q4_k_m", QUANTISED, 0, ESP_DTYPE_COUNT},
    {"mixture", DENSE, 1, ESP_BF16},     {"1b", DENSE, 3, ESP_BF16},
    {"8b-q8_0", QUANTISED, 0, ESP_Q8_0}, {"8b-q4_k", QUANTISED, 0, ESP_Q4_K},
    {"8b-q6_k", QUANTISED, 0, ESP_Q6_K}, {"8b-q4_0", QUANTISED, 0, ESP_Q4_0},
    {"4b", DENSE, 5, ESP_BF16},          {"0.5b", DENSE, 2, ESP_BF16},
    {"3b", DENSE, 4, ESP_BF16},          {"streamed", STREAMED, 0, ESP_BF16},
};
enum { PARTS = sizeof parts / sizeof *parts };

static const struct shape *shape_of(const struct part *p, bool small)
{
    return small ? &small_shapes[p->shape < 2 ? p->shape : 2] : &shapes[p->shape];
}

/* Runs a part. If anything fails, ends the process with exit status 1. */
static void run_part(const struct part *p, bool small, bool predicted)
{
    const struct shape *s = shape_of(p, small);
    struct esp_backend *backend;
    char err[400] = "";
    if (esp_backend_open(&backend, "cuda", 0, 0, err, sizeof err) < 0)
        stop("the device", err);
    if (predicted)
        printf("\n# A GPU like %s, reading %.0f GB/s at %.0f MHz\n",
               backend->ops->device(backend), speed.read_rate / 1e9, speed.clock / 1e6);
    else
        speed.read_rate = backend->ops->read_rate(backend, small ? 1 << 20 : (size_t)4 << 30);
    if (!predicted)
        printf("\n# %s\n\nRead rate: %.0f GB/s. Medians of %d.\n",
               backend->ops->device(backend), speed.read_rate / 1e9, runs);
    printf("\n## %s, %s\n", s->name, p->dtype == MIXED ? "Q4_K_M" : esp_dtype_name(p->dtype));
    if (predicted)
        print_predictions(backend, s, p->dtype);
    else if (p->kind == QUANTISED)
        print_quantised(backend, s, p->dtype);
    else if (p->kind == STREAMED)
        print_streamed(backend, s);
    else
        print_shape(backend, s);
    backend->ops->close(backend);
}

/* Runs a part in a separate process. Returns whether it succeeded. */
static bool part_succeeds(const struct part *p, bool small, bool predicted)
{
    int status = 1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        run_part(p, small, predicted);
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "shapes: %s failed\n", p->name);
        return false;
    }
    return true;
}

static bool is_wanted(const char *part, char **names, int count)
{
    bool wanted = count == 0;
    for (int i = 0; i < count; i++)
        wanted = wanted || strcmp(names[i], part) == 0;
    return wanted;
}

static void take_small_shapes(void)
{
    runs = 1;
    for (int i = 0; i < CONTEXTS; i++)
        contexts[i] = 8 << i;
    for (int i = 0; i < ROW_COUNTS; i++)
        rows_of[i] = 1 + i;
}

/* Reads RATE and CLOCK from the arguments. */
static void read_speed(char **text)
{
    speed.read_rate = 1e9 * atof(text[0]);
    speed.clock = 1e6 * atof(text[1]);
    if (!(speed.read_rate > 0) || !(speed.clock > 0))
        stop("--predict", "give GB/s and MHz as numbers above 0, such as 3100 and 1755");
}

int main(int argc, char **argv)
{
    const bool small = argc > 1 && strcmp(argv[1], "--try") == 0;
    const bool predicted = argc > 3 && strcmp(argv[1], "--predict") == 0;
    int passed = 0, failed = 0;
    if (predicted)
        read_speed(argv + 2);
    argv += predicted ? 4 : 1 + small;
    argc -= predicted ? 4 : 1 + small;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 1 && strcmp(argv[0], "--list") == 0) {
        for (int i = 0; i < PARTS; i++)
            puts(parts[i].name);
        return 0;
    }
    if (small)
        take_small_shapes();
    for (int i = 0; i < PARTS; i++)
        if (is_wanted(parts[i].name, argv, argc)) {
            const bool succeeded = part_succeeds(&parts[i], small, predicted);
            passed += succeeded;
            failed += !succeeded;
        }
    printf("\nshapes: %d passed, %d failed\n", passed, failed);
    return failed > 0 || passed == 0;
}
