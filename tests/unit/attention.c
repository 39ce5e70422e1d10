/* attention.c - tests that the CPU's attention skips a block of keys if no query attends to it.
 * In a tree, this is the case for most blocks after the prefix. batch_invariant.c tests that
 * skipping does not change results.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "tests/check.h"

enum {
    HEAD_DIM = 32,
    BLOCKS = 12,
    ROWS = BLOCKS * ESP_LANES,
    PREFIX = 40,
    QUERIES = ESP_QUERIES
};

static const float untouched = 12345.0f;

struct problem {
    struct esp_attention a;
    float *k, *v, *q, *out, *scores;
};

static void fill(float *x, int n, unsigned long long *state)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)check_uniform(state) - 0.5f;
}

/* Makes a problem in which every query attends to the prefix and to two more rows: one in block
 * 4 and one in block 9. */
static void make(struct problem *p, unsigned long long seed)
{
    static const int32_t extra[QUERIES][2] = {{64, 147}, {65, 148}, {70, 150}, {79, 159}};
    p->k = esp_cpu_alloc(ROWS * HEAD_DIM, sizeof(float));
    p->v = esp_cpu_alloc(ROWS * HEAD_DIM, sizeof(float));
    p->q = esp_cpu_alloc(QUERIES * HEAD_DIM, sizeof(float));
    p->out = esp_cpu_alloc(QUERIES * HEAD_DIM, sizeof(float));
    p->scores = esp_cpu_alloc(ESP_QUERIES * ROWS, sizeof(float));
    CHECK(p->k && p->v && p->q && p->out && p->scores, "no memory");
    fill(p->k, ROWS * HEAD_DIM, &seed);
    fill(p->v, ROWS * HEAD_DIM, &seed);
    fill(p->q, QUERIES * HEAD_DIM, &seed);
    for (int i = 0; i < ESP_QUERIES * ROWS; i++)
        p->scores[i] = untouched;
    p->a = (struct esp_attention){.head_dim = HEAD_DIM,
                                  .queries = QUERIES,
                                  .blocks = BLOCKS,
                                  .k = p->k,
                                  .v = p->v,
                                  .v_stride = HEAD_DIM,
                                  .scores = p->scores,
                                  .scores_stride = ROWS};
    for (int i = 0; i < QUERIES; i++) {
        p->a.q[i] = p->q + (size_t)i * HEAD_DIM;
        p->a.out[i] = p->out + (size_t)i * HEAD_DIM;
        p->a.contiguous[i] = PREFIX;
        p->a.extra[i] = extra[i];
        p->a.extras[i] = 2;
    }
}

static void drop(struct problem *p)
{
    esp_cpu_free(p->k);
    esp_cpu_free(p->v);
    esp_cpu_free(p->q);
    esp_cpu_free(p->out);
    esp_cpu_free(p->scores);
}

static int seen_row(const struct esp_attention *a, int query, int index)
{
    return index < a->contiguous[query] ? index : a->extra[query][index - a->contiguous[query]];
}

/* Computes attention by its definition, in double precision. */
static double expected(const struct esp_attention *a, int query, int column)
{
    const int seen = a->contiguous[query] + a->extras[query];
    double sum = 0, value = 0;
    for (int i = 0; i < seen; i++) {
        const int row = seen_row(a, query, i);
        double score = 0;
        for (int d = 0; d < HEAD_DIM; d++)
            score += (double)a->q[query][d] *
                     a->k[((size_t)(row / ESP_LANES) * HEAD_DIM + (size_t)d) * ESP_LANES +
                          (size_t)(row % ESP_LANES)];
        sum += exp(score);
        value += exp(score) * a->v[(size_t)row * HEAD_DIM + (size_t)column];
    }
    return value / sum;
}

static void check_isa(const struct esp_cpu_isa *isa)
{
    struct problem p;
    make(&p, 7);
    isa->attention(&p.a);
    for (int i = 0; i < QUERIES; i++)
        for (int c = 0; c < HEAD_DIM; c++) {
            double want = expected(&p.a, i, c), got = p.out[i * HEAD_DIM + c];
            CHECK(fabs(got - want) < 1e-5, "%s: query %d, column %d is %g, not %g", isa->name,
                  i, c, got, want);
        }
    for (int i = 0; i < QUERIES; i++)
        for (int block = PREFIX / ESP_LANES + 1; block < BLOCKS; block++) {
            const float *score = p.scores + (size_t)i * ROWS + (size_t)block * ESP_LANES;
            const bool seen = block == 4 || block == 9;
            for (int lane = 0; lane < ESP_LANES; lane++)
                CHECK((score[lane] != untouched) == seen, "%s: query %d, block %d was %sscored",
                      isa->name, i, block, seen ? "not " : "");
        }
    drop(&p);
}

TEST(blocks_that_no_query_sees_are_skipped)
{
    static const char *const names[] = {"generic", "avx2", "avx512", "vnni", "amx", "neon"};
    char err[200];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct esp_backend *backend;
        if (esp_cpu_open(&backend, names[i], 1, err, sizeof err) < 0)
            continue; /* this computer lacks the instruction set */
        check_isa(((struct esp_cpu_backend *)backend)->isa);
        backend->ops->close(backend);
    }
}
