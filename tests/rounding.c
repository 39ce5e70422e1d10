/* rounding.c - see rounding.h. A special instruction set of the CPU backend adds the noise.
 * Before a product, it copies the activations and adds noise to the copy. */
#include "tests/rounding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/dtype.h"
#include "tests/check.h"

enum { DRAWS = 4 };

/* The instruction set that computes the products with the noisy activations. */
static const struct esp_cpu_isa *plain;
static bool tiles;
static uint32_t seed;

/* Returns a random number from -1 to 1. For equal activations, it is always the same. */
static float draw(float x, int column)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits ^ seed ^ (uint32_t)column * 0x9e3779b9u) * 0x85ebca6bu;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
    return (float)(int32_t)(bits ^ bits >> 16) * 0x1p-31f;
}

/* Copies the activations of a product and adds noise to each value: a random fraction of the
 * value. If `shared` is set, the noise is a fraction of the largest of the 32 values that
 * share a scale. */
static float *with_noise(const struct esp_matmul *p, int columns, double part, bool shared)
{
    const int stride = (int)p->in.stride;
    float *copy = esp_cpu_alloc((size_t)p->rows * p->in.stride, sizeof *copy);
    CHECK(copy);
    for (int i = 0; i < p->rows * stride; i += ESP_CUT_COLUMNS) {
        float most = 0;
        for (int k = i; k < i + ESP_CUT_COLUMNS; k++)
            most = fmaxf(most, fabsf(p->in.x[k]));
        for (int k = i; k < i + ESP_CUT_COLUMNS; k++) {
            const float of = shared ? most : p->in.x[k];
            copy[k] = p->in.x[k] + (float)part * of * draw(p->in.x[k], k % stride);
        }
        if (i % stride >= columns)
            memset(copy + i, 0, ESP_CUT_COLUMNS * sizeof *copy);
    }
    return copy;
}

static double part_of_sums(int columns)
{
    return 0x1p-24 * sqrt(columns / 2.0);
}

static void noisy_matmul(const struct esp_packed *w, int begin, int end,
                         const struct esp_matmul *p)
{
    struct esp_matmul noisy = *p;
    const double split = tiles && w->dtype == ESP_BF16 ? 0x1p-18 : 0;
    noisy.in.x =
        with_noise(p, w->columns, ROUNDING_NOISE * (part_of_sums(w->columns) + split), false);
    plain->matmul(w, begin, end, &noisy);
    esp_cpu_free(noisy.in.x);
}

static void noisy_matmul_blocks(const struct esp_packed *w, int begin, int end,
                                const struct esp_matmul *p)
{
    struct esp_matmul noisy = *p;
    const double cut = p->in.bytes ? 0x1p-8 : 0x1p-16;
    noisy.in.x =
        with_noise(p, w->columns, ROUNDING_NOISE * (part_of_sums(w->columns) + cut), true);
    noisy.in.together = esp_cut_together(p->rows);
    noisy.in.cut =
        esp_cpu_alloc(esp_cut_count((size_t)p->rows, p->in.stride), sizeof *noisy.in.cut);
    CHECK(noisy.in.cut);
    for (int row = 0; row < p->rows; row++)
        plain->cut(&noisy.in, row, 0, w->columns);
    plain->matmul_blocks(w, begin, end, &noisy);
    esp_cpu_free(noisy.in.x);
    esp_cpu_free(noisy.in.cut);
}

double rounding_bound(const struct esp_backend *cpu, rounding_outputs *run, void *user,
                      int count, long compared)
{
    const struct esp_cpu_backend *imitated = (const struct esp_cpu_backend *)cpu;
    float *exact = malloc((size_t)count * sizeof *exact);
    float *noisy = malloc((size_t)count * sizeof *noisy);
    struct esp_backend *backend;
    struct esp_cpu_isa isa;
    double square = 0;
    CHECK(exact && noisy && esp_cpu_open(&backend, "generic", 1, NULL, 0) == 0);
    struct esp_cpu_backend *own = (struct esp_cpu_backend *)backend;
    own->exact = imitated->exact;
    plain = own->isa = esp_cpu_vectors();
    tiles = imitated->isa->pairs;
    run(backend, user, exact, count);
    isa = *plain;
    isa.matmul = noisy_matmul;
    isa.matmul_blocks = noisy_matmul_blocks;
    own->isa = &isa;
    for (seed = 1; seed <= DRAWS; seed++) {
        run(backend, user, noisy, count);
        for (int i = 0; i < count; i++)
            square += pow((double)noisy[i] - exact[i], 2) / count / DRAWS;
    }
    backend->ops->close(backend);
    free(exact);
    free(noisy);
    square *= 1 + 4 * sqrt(2.0 / (double)compared);
    return ROUNDING_MOST * sqrt(square) / ROUNDING_NOISE;
}
