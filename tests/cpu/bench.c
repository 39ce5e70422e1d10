/* bench.c - measures how fast the CPU backend multiplies by matrices that are larger than the
 * processor's caches, for every dtype and several numbers of rows. It also measures how fast
 * the same threads read memory.
 *
 *     make bench-cpu [BENCH='best 2 256 Q8_0 Q4_K']
 *
 * The arguments are an instruction set or `best`, the number of threads, the size of the
 * weights in MB, and the types to measure (default: all). Quantised types are measured with
 * activations of 16 and of 8 bits. On a processor with a tile unit, they are also measured
 * without it. The columns of the table are: the rate at which weights are read for one row, in
 * GB/s and in percent of the memory's read rate; the time for 2, 4, .. rows divided by the time
 * for one row; and the multiplications per second for 256 rows. Each figure is the best of
 * ROUNDS rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "kernels/cpu/cpu.h"
#include "kernels/dtype.h"

enum { COLUMNS = 2048, PANELS_PART = 64, ROUNDS = 5, MOST_ROWS = 256 };
#define SECONDS 0.4

struct bench {
    const struct esp_cpu_isa *isa;
    struct esp_packed w;
    struct esp_matmul product;
    int parts;
    const char *memory;
    size_t bytes;
};

static void multiply(void *arg, int part, int thread)
{
    const struct bench *b = arg;
    int begin, end;
    (void)thread;
    esp_cpu_share(b->w.panels, part, b->parts, &begin, &end);
    if (esp_dtype_quantised(b->w.dtype))
        b->isa->matmul_blocks(&b->w, begin, end, &b->product);
    else
        b->isa->matmul(&b->w, begin, end, &b->product);
}

static void read_memory(void *arg, int part, int thread)
{
    const struct bench *b = arg;
    const size_t share = b->bytes / (size_t)b->parts / 64 * 64;
    const uint64_t *p = (const uint64_t *)(const void *)(b->memory + (size_t)part * share);
    uint64_t sums[8] = {0};
    (void)thread;
    for (size_t i = 0; i < share / 8; i += 8) {
        __builtin_prefetch(p + i + 256);
        for (int j = 0; j < 8; j++)
            sums[j] += p[i + (size_t)j];
    }
    for (int j = 1; j < 8; j++)
        sums[0] += sums[j];
    __asm__ volatile("" ::"r"(sums[0]));
}

static double best(struct esp_pool *pool, struct bench *b, void (*run)(void *, int, int))
{
    double least = 1e9;
    const double end = esp_clock() + SECONDS;
    for (int i = 0; i < ROUNDS || esp_clock() < end; i++) {
        double start = esp_clock();
        esp_pool_run(pool, b->parts, run, b);
        double seconds = esp_clock() - start;
        least = seconds < least ? seconds : least;
    }
    return least;
}

/* Fills panels with copies of the same random blocks. Equal values do not change the speed. */
static void fill(struct bench *b, enum esp_dtype dtype, size_t bytes)
{
    static float row[COLUMNS];
    b->w = (struct esp_packed){.dtype = dtype, .rows = ESP_PANEL, .columns = COLUMNS};
    const size_t panel = esp_cpu_panel_bytes(&b->w);
    const size_t row_bytes = esp_dtype_row_bytes(dtype, COLUMNS);
    char *stored = malloc(row_bytes * ESP_PANEL);
    b->w.panels = (int)(bytes / panel);
    b->w.rows = b->w.panels * ESP_PANEL;
    b->w.data = b->memory;
    b->w.bias = esp_cpu_alloc((size_t)b->w.rows, sizeof(float));
    for (int i = 0; i < ESP_PANEL; i++) {
        for (int c = 0; c < COLUMNS; c++)
            row[c] = (float)((i * 37 + c * 101) % 199 - 99) / 99;
        esp_quantise(dtype, row, COLUMNS, stored + (size_t)i * row_bytes);
    }
    for (int i = 0; i < b->w.panels; i++)
        if (i == 0)
            esp_cpu_pack(&b->w, i, stored);
        else
            memcpy((char *)b->memory + (size_t)i * panel, b->memory, panel);
    free(stored);
    b->bytes = (size_t)b->w.panels * panel;
}

static void prepare(struct bench *b, const struct esp_vectors *in, float *y, int rows)
{
    b->product = (struct esp_matmul){
        .in = *in, .y = y, .y_stride = (size_t)b->w.panels * ESP_PANEL, .rows = rows};
    for (int i = 0; i < rows; i++)
        b->isa->cut(in, i, 0, COLUMNS);
}

static void measure(struct esp_pool *pool, struct bench *b, double rate, bool bytes, bool tiles)
{
    static const int rows[] = {1, 2, 4, 8, 16, 32, 64, 256};
    struct esp_vectors in = {.stride = COLUMNS, .bytes = bytes};
    in.x = esp_cpu_alloc(MOST_ROWS, COLUMNS * sizeof(float));
    in.cut = esp_cpu_alloc(esp_cut_count(MOST_ROWS, COLUMNS), sizeof *in.cut);
    float *y = esp_cpu_alloc((size_t)b->w.panels * ESP_PANEL, MOST_ROWS * sizeof(float));
    double one = 0, last = 0;
    for (int i = 0; i < MOST_ROWS * COLUMNS; i++)
        in.x[i] = (float)(i % 113 - 56) / 56;
    printf("| %s%s%s |", esp_dtype_name(b->w.dtype), bytes ? ", 8 bits" : "",
           tiles ? ", tiles" : "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        in.together = esp_cut_together(rows[i]);
        prepare(b, &in, y, rows[i]);
        b->product.tiles = tiles;
        last = best(pool, b, multiply);
        if (i == 0) {
            one = last;
            printf(" %.1f | %.0f%% |", (double)b->bytes / one / 1e9,
                   100 * (double)b->bytes / one / rate);
        } else {
            printf(" %.2f |", last / one);
        }
        fflush(stdout);
    }
    printf(" %.0f |\n", (double)b->w.rows * COLUMNS * MOST_ROWS / last / 1e9);
    esp_cpu_free(in.x);
    esp_cpu_free(in.cut);
    esp_cpu_free(y);
}

int main(int argc, char **argv)
{
    const char *isa = argc > 1 && strcmp(argv[1], "best") != 0 ? argv[1] : NULL;
    const int threads = argc > 2 ? atoi(argv[2]) : 0;
    const size_t bytes = (size_t)((argc > 3 ? atof(argv[3]) : 256) * 1048576);
    char err[256];
    struct esp_backend *backend;
    if (esp_cpu_open(&backend, isa, threads, err, sizeof err) < 0) {
        fprintf(stderr, "bench: %s\n", err);
        return 1;
    }
    const struct esp_cpu_backend *cpu = (const struct esp_cpu_backend *)backend;
    struct bench b = {.isa = cpu->isa, .parts = 4 * cpu->threads, .bytes = bytes};
    char *memory = esp_cpu_alloc(bytes, 1);
    if (!memory)
        return 1;
    b.memory = memory;
    esp_cpu_use_huge_pages(memory, bytes);
    memset(memory, 1, bytes);
    const double rate = (double)bytes / best(cpu->pool, &b, read_memory);
    printf("%s; memory is read at %.1f GB/s\n\n", cpu->device, rate / 1e9);
    printf(
        "| weights | 1 row, GB/s | of the read rate | 2 rows / 1 | 4 | 8 | 16 | 32 | 64 | 256 "
        "| 256 rows, G products/s |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (int t = 0; t < ESP_DTYPE_COUNT; t++) {
        bool wanted = argc <= 4;
        for (int i = 4; i < argc; i++)
            wanted |= esp_dtype_find(argv[i]) == (enum esp_dtype)t;
        if (!wanted)
            continue;
        fill(&b, (enum esp_dtype)t, bytes);
        const bool quantised = esp_dtype_quantised(b.w.dtype);
        for (int eight = 0; eight <= quantised; eight++)
            for (int tiles = 0; tiles <= (quantised && b.isa->two_ways); tiles++)
                measure(cpu->pool, &b, rate, eight, tiles);
        esp_cpu_free((void *)b.w.bias);
    }
    esp_cpu_free(memory);
    esp_backend_cpu.close(backend);
    return 0;
}
