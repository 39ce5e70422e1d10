/* shapes.c - the speed of the CUDA backend on models that have the shapes of real ones.
 *
 *     shapes [--try]
 *
 * The weights are numbers made here: all matrices of a model are read from the same memory, so
 * that an 8B model needs no file and little memory of the host. A pass costs what one of the
 * real model costs. Printed as tables in Markdown: passes by rows and by context, with the
 * share of the measured read rate that reading the weights takes; the kernels of a pass, one by
 * one, likewise; steps of a draft model;
 * quantised weights; and a target of which only half fits on the device, so that the others
 * are copied for every pass. --try measures small shapes, to see that this program works.
 *
 * Times are medians, taken by the device.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends.h"
#include "kernels/clock.h"
#include "kernels/kernels.h"

enum { MOST_ROWS = 256, MOST_RUNS = 30, WORDS = MOST_ROWS / 64, CONTEXTS = 4 };

struct shape {
    const char *name;
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
    bool tied;
};

static const struct shape shapes[] = {
    {"Qwen 2.5 0.5B", 24, 896, 14, 2, 64, 4864, 151936, true},
    {"Llama 3.2 1B", 16, 2048, 32, 8, 64, 8192, 128256, true},
    {"Llama 3.2 3B", 28, 3072, 24, 8, 128, 8192, 128256, true},
    {"Llama 3.1 8B", 32, 4096, 32, 8, 128, 14336, 128256, false},
};
static const struct shape small_shapes[] = {
    {"a small one", 4, 256, 4, 2, 64, 256, 100, true},
    {"a smaller one", 4, 64, 2, 1, 32, 96, 50, false},
};

static int runs = 20, contexts[CONTEXTS] = {256, 1024, 8192, 32768};
static int rows_of[] = {1, 8, 16, 17, 64, 256};
enum { ROW_COUNTS = sizeof rows_of / sizeof *rows_of };

static void stop(const char *what, const char *err)
{
    fprintf(stderr, "shapes: %s: %s\n", what, err);
    exit(1);
}

/* ------------------------------------------------------------------ a model out of nothing */

struct made {
    struct esp_model_desc desc;
    struct esp_layer *layer;
    float *frequencies, *ones;
    char *numbers; /* of every matrix */
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

/* Random numbers of a type, a piece of them again and again. */
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

static void make(struct made *m, const struct shape *s, enum esp_dtype dtype)
{
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
    struct esp_tensor head = matrix(dtype, s->vocabulary, s->hidden);
    const size_t most =
        bytes_of(&head) > bytes_of(&one.gate) ? bytes_of(&head) : bytes_of(&one.gate);
    const size_t block = esp_dtype_block_bytes(dtype);
    m->numbers = malloc(most + block);
    if (!m->layer || !m->frequencies || !m->ones || !m->numbers)
        stop(s->name, "not enough memory");
    fill(m->numbers, most + block, dtype, s->hidden);
    for (int i = 0; i < widest; i++)
        m->ones[i] = 1;
    for (int i = 0; i < s->head_dim / 2; i++)
        m->frequencies[i] = powf(500000, -2.0f * (float)i / (float)s->head_dim);
    struct esp_tensor *const all[] = {&one.query, &one.key, &one.value, &one.output,
                                      &one.gate,  &one.up,  &one.down,  &head};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        all[i]->data = m->numbers;
    for (int i = 0; i < s->layers; i++)
        m->layer[i] = one;
    m->desc = (struct esp_model_desc){.layers = s->layers,
                                      .hidden = s->hidden,
                                      .heads = s->heads,
                                      .kv_heads = s->kv_heads,
                                      .head_dim = s->head_dim,
                                      .ffn = s->ffn,
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
    if (!s->tied) /* at another address, and so by itself on the device */
        m->desc.head.data = m->numbers + block;
}

static void unmake(struct made *m)
{
    free(m->layer);
    free(m->frequencies);
    free(m->ones);
    free(m->numbers);
}

/* ------------------------------------------------------------------ a pass */

struct runner {
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits;
    int vocabulary;
    double bytes; /* that a pass reads of the weights */
};

static const char *failure(const struct runner *r)
{
    return r->backend->ops->failure(r->backend);
}

/* False: it does not fit on the device. `part` of the weights' memory is allowed. */
static bool open_runner(struct runner *r, struct esp_backend *backend, struct made *m,
                        int context, double part)
{
    const struct esp_backend_ops *ops = backend->ops;
    const struct esp_model_desc *d = &m->desc;
    char err[400] = "";
    *r = (struct runner){.backend = backend, .vocabulary = d->vocabulary};
    m->desc.limit = (struct esp_memory_limit){.bytes = 0};
    const size_t all = ops->weights_need(d);
    if (part < 1)
        m->desc.limit.bytes = (size_t)(part * (double)all);
    const size_t need = ops->weights_need(d) +
                        ops->cache_need(d, context + MOST_ROWS, MOST_ROWS) +
                        ops->rows_need(MOST_ROWS, d->vocabulary);
    if (need > ops->memory_free(backend)) {
        printf("\nLeft out: %.1f GB are needed, %.1f GB are free.\n", (double)need / 1e9,
               (double)ops->memory_free(backend) / 1e9);
        return false;
    }
    const double start = esp_clock();
    if (ops->weights_open(&r->weights, backend, d, NULL, NULL, err, sizeof err) < 0 ||
        ops->cache_open(&r->cache, r->weights, context + MOST_ROWS, MOST_ROWS, err,
                        sizeof err) < 0 ||
        ops->rows_open(&r->logits, backend, MOST_ROWS, d->vocabulary, err, sizeof err) < 0)
        stop("a model", err);
    r->bytes = (double)all;
    if (d->head.data != d->embedding.data)
        r->bytes -= (double)bytes_of(&d->embedding);
    printf("\n%.2f GB of weights, opened in %.1f s.\n", (double)all / 1e9, esp_clock() - start);
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

/* A pass over a tree of `rows` nodes behind `context` tokens: node i hangs below node (i - 1)
 * / 2. It is valid until the next call. */
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

/* Seconds of such a pass and of the choice of a token at each node. */
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

/* ------------------------------------------------------------------ tables */

/* Rows of a pass by contexts: milliseconds, and the share of the read rate. */
static void print_passes(struct runner *r, double rate)
{
    printf("\n| rows |");
    for (int i = 0; i < CONTEXTS; i++)
        printf(" ms at %d | of the read rate |", contexts[i]);
    printf("\n|---|");
    for (int i = 0; i < CONTEXTS; i++)
        printf("---|---|");
    putchar('\n');
    for (int i = 0; i < ROW_COUNTS; i++) {
        printf("| %d |", rows_of[i]);
        for (int j = 0; j < CONTEXTS; j++) {
            const double seconds = pass_seconds(r, rows_of[i], contexts[j]);
            printf(" %.3f | %.0f %% |", 1e3 * seconds, 100 * r->bytes / seconds / rate);
        }
        putchar('\n');
    }
}

/* The kernels of a pass, by what they compute: the median of each. */
static void print_kernels(struct runner *r, int rows, int context, double rate)
{
    enum { MOST = 16 };
    static double seconds[MOST][MOST_RUNS];
    struct esp_kernel_time kernel[MOST] = {0};
    const struct esp_batch batch = tree_pass(r, rows, context);
    int count = 0;
    for (int i = 0; i < runs; i++) {
        count = r->backend->ops->time_kernels(r->cache, &batch, kernel, MOST);
        if (count < 0)
            stop("a timed pass", failure(r));
        for (int k = 0; k < count; k++)
            seconds[k][i] = kernel[k].seconds;
    }
    printf("\nKernels of a pass of %d rows at %d:\n\n"
           "| kernels | of them | ms | MB read | of the read rate |\n|---|---|---|---|---|\n",
           rows, context);
    for (int k = 0; k < count; k++) {
        const double took = median(seconds[k]), bytes = kernel[k].bytes;
        printf("| %s | %d | %.4f |", kernel[k].name, kernel[k].count, 1e3 * took);
        if (bytes > 0)
            printf(" %.3f | %.0f %% |\n", bytes / 1e6, 100 * bytes / took / rate);
        else
            printf(" - | - |\n");
    }
}

static void print_shape(struct esp_backend *backend, const struct shape *s, double rate)
{
    struct made m;
    struct runner r;
    printf("\n## %s, bf16\n", s->name);
    make(&m, s, ESP_BF16);
    if (open_runner(&r, backend, &m, contexts[CONTEXTS - 1], 1)) {
        print_passes(&r, rate);
        printf("\nA draft step:");
        for (int i = 0; i < CONTEXTS; i++)
            printf("%s %.3f ms at %d", i ? "," : "", 1e3 * step_seconds(&r, contexts[i]),
                   contexts[i]);
        printf(".\n");
        for (int i = 0; i < ROW_COUNTS; i += 2) /* 1, 16, 64 rows */
            print_kernels(&r, rows_of[i], contexts[1], rate);
        close_runner(&r);
    }
    unmake(&m);
}

static void print_quantised(struct esp_backend *backend, const struct shape *s, double rate)
{
    static const enum esp_dtype types[] = {ESP_Q8_0, ESP_Q4_0, ESP_Q4_K, ESP_Q6_K};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct made m;
        struct runner r;
        printf("\n## %s, %s\n", s->name, esp_dtype_name(types[i]));
        make(&m, s, types[i]);
        if (open_runner(&r, backend, &m, contexts[1], 1)) {
            printf("\n| rows | ms at %d | of the read rate |\n|---|---|---|\n", contexts[1]);
            for (int j = 0; j < ROW_COUNTS; j++) {
                const double seconds = pass_seconds(&r, rows_of[j], contexts[1]);
                printf("| %d | %.3f | %.0f %% |\n", rows_of[j], 1e3 * seconds,
                       100 * r.bytes / seconds / rate);
            }
            close_runner(&r);
        }
        unmake(&m);
    }
}

/* Half of the weights' memory: most layers are copied for every pass. */
static void print_streamed(struct esp_backend *backend, const struct shape *s)
{
    struct made m;
    struct runner r;
    struct esp_streamed streamed;
    printf("\n## %s, bf16, half of it on the device\n", s->name);
    make(&m, s, ESP_BF16);
    if (open_runner(&r, backend, &m, contexts[1], 0.5)) {
        if (!backend->ops->weights_streamed(r.weights, &streamed))
            stop(s->name, "nothing is streamed");
        const double copies = streamed.bytes / streamed.seconds;
        printf(
            "%d of %d layers stay; a pass copies %.2f GB, at %.1f GB/s as measured: %.1f ms.\n"
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

int main(int argc, char **argv)
{
    const bool small = argc > 1 && strcmp(argv[1], "--try") == 0;
    const struct shape *all = small ? small_shapes : shapes;
    const int count = small ? 2 : 4, largest = small ? 0 : count - 1;
    struct esp_backend *backend;
    char err[400] = "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (esp_backend_open(&backend, "cuda", 0, 0, err, sizeof err) < 0)
        stop("the device", err);
    if (small) {
        runs = 1;
        for (int i = 0; i < CONTEXTS; i++)
            contexts[i] = 8 << i;
        for (int i = 0; i < ROW_COUNTS; i++)
            rows_of[i] = 1 + i * 4;
    }
    const double rate = backend->ops->read_rate(backend, small ? 1 << 20 : (size_t)4 << 30);
    printf("# %s\n\nRead rate: %.0f GB/s. Medians of %d.\n", backend->ops->device(backend),
           rate / 1e9, runs);
    for (int i = 0; i < count; i++)
        print_shape(backend, &all[i], rate);
    print_quantised(backend, &all[largest], rate);
    print_streamed(backend, &all[largest]);
    backend->ops->close(backend);
    return 0;
}
