/* gradients.c - the operations of training other than matrix products, forward and backward:
 * attention over trees, RMSNorm, SwiGLU, the loss against a target's distribution, and AdamW.
 *
 * The forward pass of attention does not store the scores, because they would take more memory
 * than everything else. The backward pass computes them again (Chen et al., "Training Deep Nets
 * with Sublinear Memory Cost", 2016; Dao et al., "FlashAttention", 2022). Sums over a row have
 * 16 lanes, which are added in a fixed order at the end.
 */
#include "kernels/cpu/isa/parts.h"

/* load() returns elements i..i+15 of x (n), with `fill` instead of elements after the end.
 * store() writes elements i..i+15 of x, but does not write after the end. */
V16 struct v16 load(const float *x, size_t i, size_t n, float fill)
{
    return n - i < ESP_LANES ? v16_load_part(x + i, (int)(n - i), fill) : v16_load(x + i);
}

V16 void store(float *x, size_t i, size_t n, struct v16 value)
{
    if (n - i < ESP_LANES)
        v16_store_part(x + i, (int)(n - i), value);
    else
        v16_store(x + i, value);
}

V16 float dot(const float *x, const float *y, int n)
{
    struct v16 sum = v16_set(0.0f);
    for (int i = 0; i < n; i += ESP_LANES)
        sum = v16_fma(load(x, (size_t)i, (size_t)n, 0.0f), load(y, (size_t)i, (size_t)n, 0.0f),
                      sum);
    return v16_sum(sum);
}

/* Computes y += factor x. */
V16 void add_scaled(float *y, const float *x, float factor, int n)
{
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 value = load(y, (size_t)i, (size_t)n, 0.0f);
        value = v16_fma(v16_set(factor), load(x, (size_t)i, (size_t)n, 0.0f), value);
        store(y, (size_t)i, (size_t)n, value);
    }
}

static void add(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i += ESP_LANES)
        store(x, i, n, v16_add(load(x, i, n, 0.0f), load(y, i, n, 0.0f)));
}

/* ------------------------------------------------------------------ attention */

static int32_t extra_of(const struct esp_tree_attention *a, int row, int i)
{
    return i < a->extras ? a->extra[(size_t)row * (size_t)a->extras + (size_t)i] : -1;
}

/* Computes products (rows, keys + extras) = x y^T. y (.., kv_stride) has a row for each key. */
static void against_keys(const struct esp_tree_attention *a, const float *x, const float *y,
                         float *products)
{
    const size_t width = (size_t)a->keys + (size_t)a->extras;
    const struct esp_gemm g = {a->rows, a->keys, a->head_dim,  x,        a->q_stride, 1,
                               y,       1,       a->kv_stride, products, width,       false};
    ISA(gemm_whole)(&g, a->scratch);
    for (int row = 0; row < a->rows; row++)
        for (int i = 0; i < a->extras; i++) {
            int32_t at = extra_of(a, row, i);
            products[(size_t)row * width + (size_t)(a->keys + i)] =
                at < 0 ? 0.0f
                       : dot(x + (size_t)row * a->q_stride, y + (size_t)at * a->kv_stride,
                             a->head_dim);
        }
}

/* Multiplies weights (rows, keys + extras) by the rows of y, and writes the products to `to`.
 * If `back` is true, multiplies weights^T by the rows of y, and adds the products to `to`. */
static void weighted_sum(const struct esp_tree_attention *a, const float *weights,
                         const float *y, float *to, bool back)
{
    const size_t width = (size_t)a->keys + (size_t)a->extras;
    const size_t y_stride = back ? a->q_stride : a->kv_stride;
    const size_t to_stride = back ? a->kv_stride : a->q_stride;
    const size_t row = back ? 1 : width, column = back ? width : 1;
    const int m = back ? a->keys : a->rows, k = back ? a->rows : a->keys;
    const struct esp_gemm g = {m, a->head_dim, k, weights, row,       column,
                               y, y_stride,    1, to,      to_stride, back};
    ISA(gemm_whole)(&g, a->scratch);
    for (int query = 0; query < a->rows; query++)
        for (int i = 0; i < a->extras; i++) {
            int32_t at = extra_of(a, query, i);
            if (at >= 0)
                add_scaled(to + (size_t)(back ? at : query) * to_stride,
                           y + (size_t)(back ? query : at) * y_stride,
                           weights[(size_t)query * width + (size_t)(a->keys + i)], a->head_dim);
        }
}

/* Turns the scores of a row into weights. The weight of a key is 0 if the row does not attend
 * to the key. */
static void weigh(const struct esp_tree_attention *a, int row, float *score)
{
    const size_t width = (size_t)a->keys + (size_t)a->extras;
    for (int i = a->seen[row]; i < a->keys; i++)
        score[i] = -INFINITY;
    for (int i = 0; i < a->extras; i++)
        if (extra_of(a, row, i) < 0)
            score[a->keys + i] = -INFINITY;
    struct v16 top = v16_set(-INFINITY), sum = v16_set(0.0f);
    for (size_t i = 0; i < width; i += ESP_LANES)
        top = v16_max(top, load(score, i, width, -INFINITY));
    const struct v16 highest = v16_set(v16_highest(top)), scale = v16_set(a->scale);
    for (size_t i = 0; i < width; i += ESP_LANES) {
        struct v16 x = v16_sub(load(score, i, width, -INFINITY), highest);
        x = v16_exp(v16_mul(x, scale));
        store(score, i, width, x);
        sum = v16_add(sum, x);
    }
    const struct v16 factor = v16_set(1.0f / v16_sum(sum));
    for (size_t i = 0; i < width; i += ESP_LANES)
        store(score, i, width, v16_mul(load(score, i, width, 0.0f), factor));
}

static float *weights_of(const struct esp_tree_attention *a)
{
    const size_t width = (size_t)a->keys + (size_t)a->extras;
    float *weights = a->scratch + ESP_GEMM_SCRATCH;
    against_keys(a, a->q, a->k, weights);
    for (int row = 0; row < a->rows; row++)
        weigh(a, row, weights + (size_t)row * width);
    return weights;
}

static void attention(const struct esp_tree_attention *a)
{
    weighted_sum(a, weights_of(a), a->v, a->out, false);
}

/* Turns the gradients of the weights into the gradients of the scores: ds = w (dw - sum w dw)
 * scale. */
static void weigh_backward(const struct esp_tree_attention *a, const float *weight, float *d)
{
    const size_t width = (size_t)a->keys + (size_t)a->extras;
    const struct v16 mean = v16_set(dot(weight, d, (int)width)), scale = v16_set(a->scale);
    for (size_t i = 0; i < width; i += ESP_LANES) {
        struct v16 x = v16_mul(v16_sub(load(d, i, width, 0.0f), mean), scale);
        store(d, i, width, v16_mul(load(weight, i, width, 0.0f), x));
    }
}

static void attention_backward(const struct esp_tree_attention *a)
{
    const size_t width = (size_t)a->keys + (size_t)a->extras;
    float *weights = weights_of(a), *d = weights + (size_t)a->rows * width;
    against_keys(a, a->d_out, a->v, d);
    for (int row = 0; row < a->rows; row++)
        weigh_backward(a, weights + (size_t)row * width, d + (size_t)row * width);
    weighted_sum(a, d, a->k, a->dq, false);
    weighted_sum(a, d, a->q, a->dk, true);
    weighted_sum(a, weights, a->d_out, a->dv, true);
}

/* ------------------------------------------------------------------ norm and activation */

static float rmsnorm(float *out, const float *x, const float *weight, int n, float epsilon)
{
    const size_t count = (size_t)n;
    float factor = 1.0f / sqrtf(dot(x, x, n) / (float)n + epsilon);
    for (size_t i = 0; i < count; i += ESP_LANES) {
        struct v16 value = v16_mul(load(x, i, count, 0.0f), v16_set(factor));
        store(out, i, count, v16_mul(value, load(weight, i, count, 0.0f)));
    }
    return factor;
}

/* For y = w x f with f = 1 / rms(x), the gradient is dx = f (w dy - x f^2 mean(w dy x)). Adds
 * this gradient to dx. */
static void rmsnorm_backward(float *dx, const float *x, const float *weight, const float *dy,
                             int n, float factor)
{
    const size_t count = (size_t)n;
    struct v16 sum = v16_set(0.0f);
    for (size_t i = 0; i < count; i += ESP_LANES) {
        struct v16 g = v16_mul(load(weight, i, count, 0.0f), load(dy, i, count, 0.0f));
        sum = v16_fma(g, load(x, i, count, 0.0f), sum);
    }
    const struct v16 mean = v16_set(-factor * factor * v16_sum(sum) / (float)n);
    for (size_t i = 0; i < count; i += ESP_LANES) {
        struct v16 g = v16_mul(load(weight, i, count, 0.0f), load(dy, i, count, 0.0f));
        g = v16_fma(load(x, i, count, 0.0f), mean, g);
        store(dx, i, count, v16_fma(g, v16_set(factor), load(dx, i, count, 0.0f)));
    }
}

static void rmsnorm_weight(float *dw, const float *x, const float *dy, const float *factor,
                           int rows, int n, int begin, int end)
{
    const size_t stop = (size_t)end;
    for (int row = 0; row < rows; row++) {
        const float *xi = x + (size_t)row * (size_t)n, *yi = dy + (size_t)row * (size_t)n;
        const struct v16 f = v16_set(factor[row]);
        for (size_t i = (size_t)begin; i < stop; i += ESP_LANES) {
            struct v16 g =
                v16_mul(v16_mul(load(xi, i, stop, 0.0f), f), load(yi, i, stop, 0.0f));
            store(dw, i, stop, v16_add(load(dw, i, stop, 0.0f), g));
        }
    }
}

static void column_sums(float *sums, const float *y, int rows, int n, int begin, int end)
{
    for (int row = 0; row < rows; row++)
        add(sums + begin, y + (size_t)row * (size_t)n + begin, (size_t)(end - begin));
}

V16 struct v16 sigmoid(struct v16 x)
{
    return v16_div(v16_set(1.0f), v16_add(v16_set(1.0f), v16_exp(v16_sub(v16_set(0.0f), x))));
}

static void swiglu(float *out, const float *gate, const float *up, int n)
{
    const size_t count = (size_t)n;
    for (size_t i = 0; i < count; i += ESP_LANES) {
        struct v16 g = load(gate, i, count, 0.0f);
        g = v16_mul(v16_mul(g, sigmoid(g)), load(up, i, count, 0.0f));
        store(out, i, count, g);
    }
}

/* With s = sigmoid(g), the derivative of silu is s + g s (1 - s). */
static void swiglu_backward(float *gate, float *up, const float *d_out, int n)
{
    const size_t count = (size_t)n;
    for (size_t i = 0; i < count; i += ESP_LANES) {
        struct v16 g = load(gate, i, count, 0.0f), u = load(up, i, count, 0.0f);
        struct v16 d = load(d_out, i, count, 0.0f), s = sigmoid(g), silu = v16_mul(g, s);
        struct v16 slope = v16_fma(silu, v16_sub(v16_set(1.0f), s), s);
        store(gate, i, count, v16_mul(v16_mul(d, u), slope));
        store(up, i, count, v16_mul(d, silu));
    }
}

/* ------------------------------------------------------------------ losses */

/* Holds the sums from which the loss of a row is computed: -sum t log q (struct esp_soft_loss).
 * x are the draft's logits. sum_up() computes these sums, and writes e^(x - top) to each x. */
struct sums {
    double cross, entropy; /* sum p (x - top); sum p log p */
    double total;          /* sum e^(x - top) */
    float top;
};

static void sum_up(float *draft, const float *p, int n, struct sums *s)
{
    const size_t count = (size_t)n;
    struct v16 top = v16_set(-INFINITY);
    for (size_t i = 0; i < count; i += ESP_LANES)
        top = v16_max(top, load(draft, i, count, -INFINITY));
    s->top = v16_highest(top);
    struct v16 cross = v16_set(0.0f), total = cross;
    const struct v16 highest = v16_set(s->top);
    for (size_t i = 0; i < count; i += ESP_LANES) {
        struct v16 x = v16_sub(load(draft, i, count, -INFINITY), highest);
        struct v16 inside = count - i < ESP_LANES ? v16_max(x, v16_set(-1e30f)) : x;
        cross = v16_fma(load(p, i, count, 0.0f), inside, cross);
        x = v16_exp(x);
        total = v16_add(total, x);
        store(draft, i, count, x);
    }
    s->cross = v16_sum(cross);
    s->total = v16_sum(total);
}

static int soft_loss(float *draft, float *target, int n, const struct esp_soft_loss *how,
                     struct esp_soft_result *result)
{
    static const struct esp_sampling plain = {.temperature = 1.0, .top_p = 1.0};
    const size_t count = (size_t)n;
    int32_t likeliest, ids[ESP_SOFT_TOP];
    float values[ESP_SOFT_TOP];
    struct sums s;
    struct v16 finite = v16_set(0.0f);
    for (size_t i = 0; i < count; i += ESP_LANES)
        finite = v16_fma(load(draft, i, count, 0.0f), v16_set(0.0f), finite);
    if (v16_equal(finite, finite) != 0xffff || ISA(argmax)(target, n, &likeliest) < 0)
        return ESP_E_NUMERIC;
    const float highest = target[likeliest], matched = draft[likeliest];
    double total = 0.0, mean = 0.0, distilled = 0.0, distilled_cross = 0.0;
    const int top = how->distil > 0.0f ? (how->top < n ? how->top : n) : 0;
    if (top > 0)
        ISA(top_k)(target, n, top, ids, values);
    /* Computes the target's probabilities p and its entropy. The entropy needs log p, which is
     * x - highest - log total. */
    struct v16 sum = v16_set(0.0f), weighted = sum;
    for (size_t i = 0; i < count; i += ESP_LANES) {
        struct v16 x = v16_sub(load(target, i, count, -INFINITY), v16_set(highest));
        struct v16 e = v16_exp(x);
        weighted = v16_fma(e, v16_max(x, v16_set(-1e30f)), weighted);
        sum = v16_add(sum, e);
    }
    total = v16_sum(sum);
    mean = v16_sum(weighted) / total - log(total);
    if (ISA(softmax)(target, n, &plain, NULL) < 0)
        return ESP_E_NUMERIC;
    for (int i = 0; i < top; i++) {
        distilled += target[ids[i]];
        values[i] = draft[ids[i]];
    }
    sum_up(draft, target, n, &s);
    for (int i = 0; i < top; i++)
        distilled_cross += (double)target[ids[i]] * ((double)values[i] - s.top);
    const double log_total = log(s.total), cross = log_total - s.cross;
    result->loss = how->cls * cross + how->distil * (distilled * log_total - distilled_cross);
    result->entropy_gap = cross + mean;
    result->agrees = matched == s.top;

    const float mass = how->cls + how->distil * (float)distilled;
    const struct v16 inverse = v16_set((float)(1.0 / s.total));
    const struct v16 cls = v16_set(-how->cls * how->weight),
                     whole = v16_set(mass * how->weight);
    struct v16 overlap = v16_set(0.0f);
    for (size_t i = 0; i < count; i += ESP_LANES) {
        struct v16 q = v16_mul(load(draft, i, count, 0.0f), inverse);
        struct v16 p = load(target, i, count, 0.0f);
        overlap = v16_add(overlap, v16_min(p, q));
        store(draft, i, count, v16_fma(whole, q, v16_mul(cls, p)));
    }
    for (int i = 0; i < top; i++)
        draft[ids[i]] -= how->distil * how->weight * target[ids[i]];
    result->overlap = v16_sum(overlap);
    return ESP_OK;
}

static double regression(float *dx, const float *x, const float *to, int n, bool smooth,
                         float weight)
{
    const float slope = weight / (float)n;
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        const float d = x[i] - to[i], size = fabsf(d);
        const bool round = smooth && size < 1.0f;
        sum += round ? 0.5 * (double)d * d : smooth ? size - 0.5 : size;
        dx[i] += slope * (round ? d : d > 0.0f ? 1.0f : d < 0.0f ? -1.0f : 0.0f);
    }
    return sum / n;
}

/* ------------------------------------------------------------------ the optimiser's step */

static double square_sum(const float *x, size_t n)
{
    enum { BLOCK = 4096 };
    double sum = 0.0;
    for (size_t i = 0; i < n; i += BLOCK)
        sum += dot(x + i, x + i, n - i < BLOCK ? (int)(n - i) : BLOCK);
    return sum;
}

V16 struct v16 square_root(struct v16 x)
{
    float lanes[ESP_LANES];
    v16_store(lanes, x);
    for (int i = 0; i < ESP_LANES; i++)
        lanes[i] = sqrtf(lanes[i]);
    return v16_load(lanes);
}

static void adamw(float *w, const float *dw, float *m, float *v, size_t n,
                  const struct esp_adamw_update *how)
{
    const struct v16 beta1 = v16_set(how->beta1), rest1 = v16_set(1.0f - how->beta1);
    const struct v16 beta2 = v16_set(how->beta2), rest2 = v16_set(1.0f - how->beta2);
    const struct v16 rate = v16_set(-how->rate / how->correction1),
                     epsilon = v16_set(how->epsilon);
    const struct v16 root = v16_set(1.0f / sqrtf(how->correction2));
    const struct v16 keep = v16_set(1.0f - how->rate * how->decay),
                     factor = v16_set(how->factor);
    for (size_t i = 0; i < n; i += ESP_LANES) {
        struct v16 g = v16_mul(load(dw, i, n, 0.0f), factor);
        struct v16 first = v16_fma(beta1, load(m, i, n, 0.0f), v16_mul(rest1, g));
        struct v16 second = v16_fma(beta2, load(v, i, n, 0.0f), v16_mul(rest2, v16_mul(g, g)));
        struct v16 size = v16_add(v16_mul(square_root(second), root), epsilon);
        struct v16 value = v16_mul(load(w, i, n, 0.0f), keep);
        store(m, i, n, first);
        store(v, i, n, second);
        store(w, i, n, v16_fma(rate, v16_div(first, size), value));
    }
}

const struct esp_cpu_gradients ISA(cpu_gradients) = {
    .gemm = ISA(gemm_whole),
    .attention = attention,
    .attention_backward = attention_backward,
    .rmsnorm = rmsnorm,
    .rmsnorm_backward = rmsnorm_backward,
    .rmsnorm_weight = rmsnorm_weight,
    .column_sums = column_sums,
    .swiglu = swiglu,
    .swiglu_backward = swiglu_backward,
    .rope = ISA(rope),
    .soft_loss = soft_loss,
    .regression = regression,
    .square_sum = square_sum,
    .adamw = adamw,
    .add = add,
};
