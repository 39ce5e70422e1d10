/* attention.c - measures how the time of a tree's attention on the CPU depends on the order of
 * its rows and the length of the text before it (dyspec, app. C, table 5 and fig. 9).
 *
 *     make bench-attention [BENCH='256 512']
 *
 * The arguments are sizes of trees (default: 64, 256, 512, 1024, 2048). Trees are random: the
 * parent of a node is any earlier node, with equal probability. The output is CSV. Its columns
 * are the number of nodes, the length of the text before the tree (the prefix), the order of
 * the rows, the number of non-empty 32x32 blocks of the mask (for the tree alone, and with the
 * prefix), and the microseconds that one head of 128 dimensions takes on one thread.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/support/rng.h"
#include "engine/tree.h"
#include "kernels/clock.h"
#include "kernels/cpu/cpu.h"

enum { HEAD_DIM = 128, MASK_BLOCK = 32, TREES = 4, ROUNDS = 5, MOST_NODES = ESP_MAX_NODES };

static const char *const orders[] = {
#define X(name) #name,
    ESP_ORDERS(X)
#undef X
};

struct head {
    const struct esp_cpu_isa *isa;
    float *k, *v, *q, *out, *scores;
    int32_t *extra; /* shape (rows, rows) */
    int *extras;    /* shape (rows) */
    int prefix, rows, capacity;
};

static void *room(size_t count, size_t size)
{
    void *memory = esp_cpu_alloc(count, size);
    if (!memory) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return memory;
}

static void open_head(struct head *h, const struct esp_cpu_isa *isa, int prefix, int rows)
{
    struct esp_rng state = {.seed = 3};
    const int capacity = (prefix + rows + ESP_LANES - 1) / ESP_LANES * ESP_LANES;
    const size_t size = (size_t)capacity * HEAD_DIM;
    *h = (struct head){.isa = isa, .prefix = prefix, .rows = rows, .capacity = capacity};
    h->k = room(size, sizeof(float));
    h->v = room(size, sizeof(float));
    h->q = room((size_t)rows * HEAD_DIM, sizeof(float));
    h->out = room((size_t)rows * HEAD_DIM, sizeof(float));
    h->scores = room((size_t)ESP_QUERIES * (size_t)capacity, sizeof(float));
    h->extra = room((size_t)rows * (size_t)rows, sizeof *h->extra);
    h->extras = room((size_t)rows, sizeof *h->extras);
    for (size_t i = 0; i < size; i++) {
        h->k[i] = (float)esp_rng_uniform(&state) - 0.5f;
        h->v[i] = (float)esp_rng_uniform(&state) - 0.5f;
    }
    for (size_t i = 0; i < (size_t)rows * HEAD_DIM; i++)
        h->q[i] = (float)esp_rng_uniform(&state) - 0.5f;
}

static void close_head(struct head *h)
{
    esp_cpu_free(h->k);
    esp_cpu_free(h->v);
    esp_cpu_free(h->q);
    esp_cpu_free(h->out);
    esp_cpu_free(h->scores);
    esp_cpu_free(h->extra);
    esp_cpu_free(h->extras);
}

static void grow(struct esp_tree_builder *b, int nodes, struct esp_rng *state)
{
    esp_tree_reset(b, 0);
    for (int i = 1; i < nodes; i++)
        esp_tree_add(b, (int)(esp_rng_uniform(state) * i), i, 0.5);
}

static void list_ancestors(struct head *h, const struct esp_tree_builder *b)
{
    for (int row = 0; row < h->rows; row++) {
        const uint64_t *mask = b->mask + (size_t)row * (size_t)b->mask_words;
        h->extras[row] = 0;
        for (int i = 0; i <= row; i++)
            if (mask[i / 64] >> (i % 64) & 1)
                h->extra[(size_t)row * (size_t)h->rows + (size_t)h->extras[row]++] =
                    h->prefix + i;
    }
}

static void attend(const struct head *h)
{
    for (int begin = 0; begin < h->rows; begin += ESP_QUERIES) {
        struct esp_attention a = {.head_dim = HEAD_DIM,
                                  .k = h->k,
                                  .v = h->v,
                                  .v_stride = HEAD_DIM,
                                  .scores = h->scores,
                                  .scores_stride = (size_t)h->capacity};
        for (int row = begin; row < h->rows && a.queries < ESP_QUERIES; row++, a.queries++) {
            a.q[a.queries] = h->q + (size_t)row * HEAD_DIM;
            a.out[a.queries] = h->out + (size_t)row * HEAD_DIM;
            a.contiguous[a.queries] = h->prefix;
            a.extra[a.queries] = h->extra + (size_t)row * (size_t)h->rows;
            a.extras[a.queries] = h->extras[row];
            a.blocks = (h->prefix + row) / ESP_LANES + 1;
        }
        h->isa->attention(&a);
    }
}

static double seconds(const struct head *h)
{
    double least = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double start = esp_clock();
        attend(h);
        double taken = esp_clock() - start;
        least = taken < least ? taken : least;
    }
    return least;
}

static void measure(const struct esp_cpu_isa *isa, int nodes, int prefix, enum esp_order order)
{
    struct esp_tree_builder tree;
    struct head head;
    char err[200];
    struct esp_rng state = {.seed = 11};
    double blocks = 0, time = 0;
    if (esp_tree_open(&tree, nodes - 1, err, sizeof err) < 0) {
        fprintf(stderr, "%s\n", err);
        exit(1);
    }
    open_head(&head, isa, prefix, nodes);
    for (int i = 0; i < TREES; i++) {
        grow(&tree, nodes, &state);
        esp_tree_flatten(&tree, order);
        list_ancestors(&head, &tree);
        blocks += tree.mask_blocks;
        time += seconds(&head);
    }
    const double of_prefix = (double)((prefix + MASK_BLOCK - 1) / MASK_BLOCK) *
                             ((nodes + MASK_BLOCK - 1) / MASK_BLOCK);
    printf("%d,%d,%s,%.1f,%.1f,%.1f\n", nodes, prefix, orders[order], blocks / TREES,
           blocks / TREES + of_prefix, 1e6 * time / TREES);
    fflush(stdout);
    close_head(&head);
    esp_tree_close(&tree);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {64, 256, 512, 1024, 2048}, prefixes[] = {0, 256, 1024};
    const int count = argc > 1 ? argc - 1 : (int)(sizeof sizes / sizeof *sizes);
    struct esp_backend *backend;
    char err[200];
    if (esp_cpu_open(&backend, NULL, 1, err, sizeof err) < 0) {
        fprintf(stderr, "%s\n", err);
        return 1;
    }
    printf("nodes,prefix,order,mask_blocks,with_prefix,microseconds\n");
    for (int i = 0; i < count; i++) {
        const int nodes = argc > 1 ? atoi(argv[i + 1]) : sizes[i];
        if (nodes < 2 || nodes > MOST_NODES) {
            fprintf(stderr, "a tree must have 2 to %d nodes, not '%s'\n", MOST_NODES,
                    argv[i + 1]);
            return 1;
        }
        for (size_t j = 0; j < sizeof prefixes / sizeof *prefixes; j++)
            for (int order = 0; order < (int)(sizeof orders / sizeof *orders); order++)
                measure(((struct esp_cpu_backend *)backend)->isa, nodes, prefixes[j],
                        (enum esp_order)order);
    }
    backend->ops->close(backend);
    return 0;
}
