/* kernels.h - what a backend computes. Included by every backend and by every caller.
 *
 * A backend owns weights, key/value caches and matrices of row vectors over the vocabulary
 * ("rows": logits, then probabilities). Callers hold opaque pointers only; vocabulary-sized
 * data stays with the backend and callers ask for the few numbers they need. A backend keeps no
 * idea of trees or sessions.
 *
 * Promise (tested bitwise; see set_exact): what is computed for one row depends only on the tokens
 * and positions it sees, never on the other rows of the batch, on where in the cache its
 * ancestors lie, or on the number of threads. That is why greedy tree decoding equals plain
 * decoding to the last bit.
 *
 * Functions return 0 or a negative enum esp_status; those with `err` also write one sentence
 * there.
 */
#ifndef ESP_KERNELS_H
#define ESP_KERNELS_H

#include "espalier.h"
#include "ratio.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ a model, described */

#define ESP_DTYPES(X)                                                                          \
    X(F32, 4)                                                                                  \
    X(F16, 2)                                                                                  \
    X(BF16, 2)

enum esp_dtype {
#define X(name, bytes) ESP_##name,
    ESP_DTYPES(X)
#undef X
};

/* A matrix or vector in the model file. Row r of the matrix starts at row
 * (r / block) * stride + r % block of `data`, so that one matrix can be read out of a fused one
 * (gpt_neox interleaves q, k and v per head). A plain matrix has block = stride = rows. A
 * vector is a matrix with one column: its element r is found by the same rule, so a fused bias
 * is read alike. A tensor that the model does not have has data = NULL. */
struct esp_tensor {
    const void *data; /* row-major, unaligned; mapped, lives as long as the model */
    enum esp_dtype dtype;
    int rows, columns; /* (out, in); a vector has columns = 1 */
    int block, stride;
};

struct esp_layer {
    struct esp_tensor norm1, norm1_bias;            /* (hidden, 1) before attention */
    struct esp_tensor query, query_bias;            /* (heads * head_dim, hidden) */
    struct esp_tensor key, key_bias;                /* (kv_heads * head_dim, hidden) */
    struct esp_tensor value, value_bias;            /* (kv_heads * head_dim, hidden) */
    struct esp_tensor query_norm, key_norm; /* (head_dim, 1) RMSNorm of each head, or none */
    struct esp_tensor output, output_bias;          /* (hidden, heads * head_dim) */
    struct esp_tensor norm2, norm2_bias;            /* (hidden, 1) before the MLP */
    struct esp_tensor gate, gate_bias, up, up_bias; /* (ffn, hidden) */
    struct esp_tensor down, down_bias;              /* (hidden, ffn) */
};                                                  /* biases (out, 1) */

enum esp_norm { ESP_NORM_RMS, ESP_NORM_LAYER };
enum esp_activation { ESP_SWIGLU, ESP_GELU }; /* silu(gate) * up; exact (erf) gelu(up) */

struct esp_model_desc {
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, context;
    enum esp_norm norm;
    enum esp_activation activation;
    bool parallel_residual; /* x + attention(norm1 x) + mlp(norm2 x), as in gpt_neox */
    float norm_epsilon;
    int rotary; /* leading dims of a head that are rotated; pairs (i, i + rotary/2) */
    const float *inverse_frequency; /* (rotary / 2) radians per position, scaling included */
    struct esp_tensor embedding;    /* (vocabulary, hidden) */
    struct esp_tensor head;         /* (vocabulary, hidden); the embedding again if tied */
    struct esp_tensor norm_final, norm_final_bias; /* (hidden, 1) */
    struct esp_layer *layer;                       /* (layers) */
};

/* ------------------------------------------------------------------ one forward pass */

/* Row i of the batch holds tokens[i] at positions[i], is written to cache row first + i, and
 * sees the cache rows 0..prefix-1 and, of the rows prefix + j, those with bit j of its mask set
 * (its own row must be among them, and they must lie at or before first + i). mask = NULL: row
 * i sees everything up to and including itself, first + i. Seen rows must be in ascending order
 * of position. */
struct esp_batch {
    int rows;
    const int32_t *tokens;    /* (rows) */
    const int32_t *positions; /* (rows) */
    int first, prefix;        /* cache rows; prefix <= first */
    const uint64_t *mask;     /* (rows, mask_words) */
    int mask_words;
    /* Where logits go, or NULL. It may have more columns than the model has tokens: those get
     * -1e30, probability 0; or fewer: the rest is dropped. */
    struct esp_rows *logits;
    const int32_t *logits_row; /* (rows) row of `logits` for batch row i, -1: none; NULL: i */
    /* What is done with those rows at once, or NULL: with it, a pass is one draft step. */
    const struct esp_step *step;
};

/* How logits become probabilities. temperature > 0; top_k = 0 and top_p >= 1 mean off. */
struct esp_sampling {
    double temperature, top_p;
    int top_k;
};

/* softmax(), then top_k(), of the rows that got logits, in the order of the batch. */
struct esp_step {
    struct esp_sampling sampling;
    int k;
    int32_t *ids;  /* (rows with logits, k) */
    float *values; /* (rows with logits, k) */
};

struct esp_combination {
    double a, b, c, d;
};

/* ------------------------------------------------------------------ the backend */

struct esp_backend { /* first member of every backend's own struct, likewise below */
    const struct esp_backend_ops *ops;
};
struct esp_weights {
    struct esp_backend *backend;
};
struct esp_cache {
    struct esp_weights *weights;
};
struct esp_rows {
    struct esp_backend *backend;
    int capacity, vocabulary;
};

enum { ESP_MARKS = 128, ESP_MAX_DRAWS = 16 };

struct esp_backend_ops {
    const char *name, *summary;

    /* threads = 0: one per core. Fails with ESP_E_UNSUPPORTED if there is no such device here,
     * ESP_E_DEVICE if there is but it does not work. */
    int (*open)(struct esp_backend **backend, int threads, char *err, size_t errlen);
    void (*close)(struct esp_backend *backend);
    const char *(*device)(const struct esp_backend *backend); /* "AVX-512, 2 threads" */

    /* The following may be NULL: a backend that has nothing to say there. */

    /* One sentence about the last call that failed on the device, or "". */
    const char *(*failure)(const struct esp_backend *backend);
    /* Asks for the promise above to the last bit (NULL: it always holds), before weights are
     * opened. Without it, batches of different sizes may be added up in different orders. */
    void (*set_exact)(struct esp_backend *backend, bool exact);
    /* Bytes that are free, and bytes that weights, a cache or rows will take. */
    size_t (*memory_free)(const struct esp_backend *backend);
    size_t (*weights_need)(const struct esp_model_desc *desc);
    size_t (*cache_need)(const struct esp_model_desc *desc, int rows, int max_batch);
    size_t (*rows_need)(int capacity, int vocabulary);
    /* Where calls do not wait for the device, the host's clock cannot time them: mark() notes
     * the device's time in slot 0..ESP_MARKS-1, in order with the other calls; between() waits
     * for the later of two marks and gives the seconds from one to the other. */
    void (*mark)(struct esp_backend *backend, int slot);
    double (*between)(struct esp_backend *backend, int from, int to);
    /* Calls that return values wait for the device. While `deferred`, they do not: their values,
     * or a failure, come with the next call that does wait. */
    void (*defer)(struct esp_backend *backend, bool deferred);
    /* Measured bytes per second at which the device reads a block of so many bytes; 0 if there
     * is no room for it. */
    double (*read_rate)(struct esp_backend *backend, size_t bytes);

    /* Copies (repacks) the weights that `desc` points to. `desc` and its data must outlive
     * them. */
    int (*weights_open)(struct esp_weights **weights, struct esp_backend *backend,
                        const struct esp_model_desc *desc, esp_progress *progress, void *user,
                        char *err, size_t errlen);
    void (*weights_close)(struct esp_weights *weights);
    size_t (*weights_bytes)(const struct esp_weights *weights);

    /* A cache of `rows` rows for batches of at most `max_batch` rows. */
    int (*cache_open)(struct esp_cache **cache, struct esp_weights *weights, int rows,
                      int max_batch, char *err, size_t errlen);
    void (*cache_close)(struct esp_cache *cache);
    size_t (*cache_bytes)(const struct esp_cache *cache);

    /* A matrix (capacity, vocabulary) of float32. */
    int (*rows_open)(struct esp_rows **rows, struct esp_backend *backend, int capacity,
                     int vocabulary, char *err, size_t errlen);
    void (*rows_close)(struct esp_rows *rows);

    int (*forward)(struct esp_cache *cache, const struct esp_batch *batch);
    /* Compaction: cache row which[i] becomes row first + i. which ascends, which[i] >= first +
     * i. */
    int (*keep)(struct esp_cache *cache, int first, const int32_t *which, int count);

    /* Below, `which` (count) names rows of the matrix. */

    /* Index of the largest value (the lowest such index). ESP_E_NUMERIC if a value is NaN or
     * +-Inf. */
    int (*argmax)(struct esp_rows *rows, const int32_t *which, int count, int32_t *ids);
    /* The k largest values, descending; equal values by ascending index. ids, values: (count,
     * k). k is at most the vocabulary. ESP_E_NUMERIC if a value is NaN. */
    int (*top_k)(struct esp_rows *rows, const int32_t *which, int count, int k, int32_t *ids,
                 float *values);
    /* Logits to probabilities, in place: divide by the temperature, keep the top_k largest,
     * softmax, keep the smallest set of largest probabilities whose sum reaches top_p,
     * normalise. ESP_E_NUMERIC if a logit is NaN or +Inf, or all are -Inf; a device that works
     * behind the host may say so at the next call that returns values instead. */
    int (*softmax)(struct esp_rows *rows, const int32_t *which, int count,
                   const struct esp_sampling *sampling);
    /* values[i] = rows[which[i]][tokens[i]] */
    int (*gather)(struct esp_rows *rows, const int32_t *which, const int32_t *tokens, int count,
                  double *values);

    /* Distribution arithmetic of drafters and verifiers, on rows that hold probabilities.
     * Values stay float32, sums are double. */

    /* Draws `draws` (1..ESP_MAX_DRAWS) tokens from row which[i], one after the other and each
     * without those before it, and without its excluded tokens (excluded + i * per, entries of
     * -1 are skipped; per = 0: none), by inverting the cumulative sum in index order at u in [0,
     * 1). values: the tokens' probabilities in the row as it stands. A token of probability 0 is
     * never drawn; where nothing is left to draw from, the token is -1 and the value 0. u,
     * tokens, values: (count, draws). */
    int (*sample)(struct esp_rows *rows, const int32_t *which, const double *u, int count,
                  int draws, const int32_t *excluded, int per, int32_t *tokens, double *values);
    /* f(x) = max(0, a p(x) + b q(x) + c min(d p(x), q(x))). *sum (which may be NULL) becomes
     * the sum of f over all tokens. If `to` is not NULL and the sum is above 0, row `to_row` of
     * it becomes f / sum; it may be the row of p or q itself. */
    int (*combine)(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                   const struct esp_combination *f, struct esp_rows *to, int to_row,
                   double *sum);
    /* Sets one token's probability to 0 and normalises the rest. *left: what was left before
     * that, or NULL; if it is 0 (or rounds to it) the row becomes all zero. */
    int (*remove)(struct esp_rows *rows, int row, int32_t token, double *left);

    /* What p and q sum to in each class of p/q (ESP_RATIO_CLASSES each), see ratio.h. */
    int (*ratio_masses)(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                        double *p_mass, double *q_mass);
    /* Like combine, with f(x) = max(0, p(x) - factor[class of p(x)/q(x)] q(x)). */
    int (*ratio_residual)(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                          const double *factor, struct esp_rows *to, int to_row, double *sum);

    /* Copies a row to the host / from the host: (vocabulary) floats. For tests and inspection.
     */
    int (*read_row)(struct esp_rows *rows, int which, float *values);
    int (*write_row)(struct esp_rows *rows, int which, const float *values);
};

static inline void esp_defer(struct esp_backend *backend, bool deferred)
{
    if (backend->ops->defer)
        backend->ops->defer(backend, deferred);
}

/* Of a backend that is loaded when it is opened only name, summary and open are set here:
 * operations are called through backend->ops. */
extern const struct esp_backend_ops esp_backend_cpu, esp_backend_cuda;

#ifdef __cplusplus
}
#endif
#endif
