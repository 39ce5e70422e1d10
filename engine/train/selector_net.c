/* selector_net.c - runs the selector's network forward and backward; see selector_net.h.
 *
 * For each hidden state h: u = h W + b, n = (u - mean) / deviation, x = n gain + shift. The
 * three x and the scalars s are joined: a = GELU([x; s] W + b) with dropout, c = GELU(a W + b)
 * with dropout, logits = c W + b. Every product has its own W and b.
 */
#include "engine/train/selector_net.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/block.h"
#include "kernels/product.h"
#include "kernels/status.h"

static const double DROPOUT = 0.1;

static double *weights_of(const struct esp_selector_net *net, int tensor)
{
    return net->weights + esp_selector_part(&net->shape, tensor).offset;
}

static double *gradient_of(const struct esp_selector_net *net, int tensor)
{
    return net->gradient + esp_selector_part(&net->shape, tensor).offset;
}

/* ------------------------------------------------------------------ memory */

static void set_weights(struct esp_selector_net *net, uint64_t seed)
{
    struct esp_rng rng = {.seed = seed, .stream = 1};
    for (int i = 0; i < ESP_SELECTOR_TENSOR_COUNT; i++) {
        const struct esp_selector_part part = esp_selector_part(&net->shape, i);
        const bool gain = i < ESP_SELECTOR_WIDE && i % ESP_SELECTOR_PER_STATE == 2;
        const double bound = part.inputs > 1 ? 1 / sqrt(part.inputs) : 0;
        for (size_t j = 0; j < part.count; j++)
            net->weights[part.offset + j] = gain ? 1 : bound * (2 * esp_rng_uniform(&rng) - 1);
    }
}

static size_t largest_matrix(const struct esp_selector_net *net)
{
    size_t most = 0;
    for (int i = 0; i < ESP_SELECTOR_TENSOR_COUNT; i++) {
        const size_t count = esp_selector_part(&net->shape, i).count;
        most = count > most ? count : most;
    }
    return most;
}

static void *take_memory(struct esp_selector_net *net)
{
    const int rows = net->capacity, wide = rows * net->wide_width,
              narrow = rows * ESP_SELECTOR_NARROW_WIDTH, states = rows * ESP_SELECTOR_STATES;
    return esp_block_take(
        ESP_ARRAY(net->weights, net->count), ESP_ARRAY(net->gradient, net->count),
        ESP_ARRAY(net->mean, net->count), ESP_ARRAY(net->square, net->count),
        ESP_ARRAY(net->state[0], rows * net->shape.hidden[0]),
        ESP_ARRAY(net->state[1], rows * net->shape.hidden[1]),
        ESP_ARRAY(net->state[2], rows * net->shape.hidden[2]),
        ESP_ARRAY(net->scalars, rows * ESP_SCALARS), ESP_ARRAY(net->logits, rows * ESP_ACTIONS),
        ESP_ARRAY(net->logit_gradient, rows * ESP_ACTIONS),
        ESP_ARRAY(net->projected, states * net->width),
        ESP_ARRAY(net->normal, states * net->width), ESP_ARRAY(net->deviation, states),
        ESP_ARRAY(net->joined, rows * net->joined_width), ESP_ARRAY(net->wide_in, wide),
        ESP_ARRAY(net->wide, wide), ESP_ARRAY(net->narrow_in, narrow),
        ESP_ARRAY(net->narrow, narrow), ESP_ARRAY(net->wide_kept, wide),
        ESP_ARRAY(net->narrow_kept, narrow), ESP_ARRAY(net->turned, largest_matrix(net)),
        ESP_ARRAY(net->back, wide), ESP_ARRAY(net->back_narrow, narrow),
        ESP_ARRAY(net->back_joined, rows * net->joined_width), NULL);
}

int esp_selector_net_open(struct esp_selector_net *net, const struct esp_selector_shape *shape,
                          int capacity, uint64_t seed)
{
    *net = (struct esp_selector_net){.shape = *shape, .capacity = capacity};
    const struct esp_selector_part wide = esp_selector_part(shape, ESP_SELECTOR_WIDE);
    net->count = esp_selector_count(shape);
    net->width = esp_selector_width(shape);
    net->joined_width = wide.inputs;
    net->wide_width = wide.outputs;
    if (!(net->memory = take_memory(net)))
        return ESP_E_MEMORY;
    set_weights(net, seed);
    return ESP_OK;
}

void esp_selector_net_close(struct esp_selector_net *net)
{
    free(net->memory);
    memset(net, 0, sizeof *net);
}

/* ------------------------------------------------------------------ layers */

/* Computes y (rows, outputs) = x (rows, inputs) W + b. */
static void linear(const struct esp_selector_net *net, int tensor, const double *x, double *y,
                   int rows)
{
    const struct esp_selector_part w = esp_selector_part(&net->shape, tensor);
    const double *bias = weights_of(net, tensor + 1);
    for (int i = 0; i < rows; i++)
        memcpy(y + (size_t)i * (size_t)w.outputs, bias, (size_t)w.outputs * sizeof *y);
    esp_product_add(y, (struct esp_strided){x, (size_t)w.inputs, 1}, net->weights + w.offset,
                    rows, w.outputs, w.inputs);
}

/* Given the gradient of y, adds to the gradients of W and b, and sets the gradient of x unless
 * x_back is NULL. */
static void linear_back(struct esp_selector_net *net, int tensor, const double *x,
                        const double *y_back, double *x_back, int rows)
{
    const struct esp_selector_part w = esp_selector_part(&net->shape, tensor);
    double *bias = gradient_of(net, tensor + 1);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < w.outputs; j++)
            bias[j] += y_back[(size_t)i * (size_t)w.outputs + (size_t)j];
    esp_product_add(net->gradient + w.offset, (struct esp_strided){x, 1, (size_t)w.inputs},
                    y_back, w.inputs, w.outputs, rows);
    if (!x_back)
        return;
    esp_transpose(net->turned, net->weights + w.offset, w.inputs, w.outputs);
    memset(x_back, 0, (size_t)rows * (size_t)w.inputs * sizeof *x_back);
    esp_product_add(x_back, (struct esp_strided){y_back, (size_t)w.outputs, 1}, net->turned,
                    rows, w.inputs, w.outputs);
}

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x * M_SQRT1_2));
}

static double gelu_slope(double x)
{
    return 0.5 * (1 + erf(x * M_SQRT1_2)) + x * exp(-0.5 * x * x) * M_SQRT1_2 * M_2_SQRTPI / 2;
}

static void activate(const double *in, double *out, double *kept, size_t count,
                     struct esp_rng *rng)
{
    for (size_t i = 0; i < count; i++) {
        kept[i] = !rng ? 1 : esp_rng_uniform(rng) < DROPOUT ? 0 : 1 / (1 - DROPOUT);
        out[i] = kept[i] * gelu(in[i]);
    }
}

static void activate_back(const double *in, const double *kept, double *back, size_t count)
{
    for (size_t i = 0; i < count; i++)
        back[i] *= kept[i] * gelu_slope(in[i]);
}

/* Computes LayerNorm of one row, without gain and shift: writes n and returns the deviation. */
static double normalise(const double *u, double *n, int width)
{
    double mean = 0, square = 0;
    for (int i = 0; i < width; i++)
        mean += u[i] / width;
    for (int i = 0; i < width; i++)
        square += (u[i] - mean) * (u[i] - mean) / width;
    const double deviation = sqrt(square + ESP_SELECTOR_EPSILON);
    for (int i = 0; i < width; i++)
        n[i] = (u[i] - mean) / deviation;
    return deviation;
}

static void project(struct esp_selector_net *net, int state, int rows)
{
    const int first = state * ESP_SELECTOR_PER_STATE, width = net->width;
    const size_t joined = (size_t)net->joined_width;
    const size_t block = (size_t)net->capacity * (size_t)width;
    double *u = net->projected + (size_t)state * block,
           *n = net->normal + (size_t)state * block;
    const double *gain = weights_of(net, first + 2), *shift = weights_of(net, first + 3);
    linear(net, first, net->state[state], u, rows);
    for (int i = 0; i < rows; i++) {
        double *to = net->joined + (size_t)i * joined + state * width;
        const size_t row = (size_t)i * (size_t)width;
        net->deviation[(size_t)state * (size_t)net->capacity + (size_t)i] =
            normalise(u + row, n + row, width);
        for (int j = 0; j < width; j++)
            to[j] = n[row + (size_t)j] * gain[j] + shift[j];
    }
}

static void project_back(struct esp_selector_net *net, int state, int rows)
{
    const int first = state * ESP_SELECTOR_PER_STATE, width = net->width;
    const size_t joined = (size_t)net->joined_width;
    const size_t block = (size_t)net->capacity * (size_t)width;
    double *u_back = net->projected + (size_t)state * block; /* reuses the memory of u */
    const double *gain = weights_of(net, first + 2);
    double *gain_back = gradient_of(net, first + 2), *shift_back = gradient_of(net, first + 3);
    for (int i = 0; i < rows; i++) {
        const size_t row = (size_t)i * (size_t)width;
        const double *n = net->normal + (size_t)state * block + row;
        const double *back = net->back_joined + (size_t)i * joined + state * width;
        const double deviation =
            net->deviation[(size_t)state * (size_t)net->capacity + (size_t)i];
        double mean = 0, along = 0;
        for (int j = 0; j < width; j++) {
            gain_back[j] += back[j] * n[j];
            shift_back[j] += back[j];
            mean += back[j] * gain[j] / width;
            along += back[j] * gain[j] * n[j] / width;
        }
        for (int j = 0; j < width; j++)
            u_back[row + (size_t)j] = (back[j] * gain[j] - mean - n[j] * along) / deviation;
    }
    linear_back(net, first, net->state[state], u_back, NULL, rows);
}

/* ------------------------------------------------------------------ the network */

void esp_selector_net_forward(struct esp_selector_net *net, int rows, struct esp_rng *rng)
{
    const size_t n = (size_t)rows, joined = (size_t)net->joined_width;
    for (int i = 0; i < ESP_SELECTOR_STATES; i++)
        project(net, i, rows);
    for (int i = 0; i < rows; i++)
        memcpy(net->joined + (size_t)i * joined + ESP_SELECTOR_STATES * net->width,
               net->scalars + (size_t)i * ESP_SCALARS, ESP_SCALARS * sizeof *net->scalars);
    linear(net, ESP_SELECTOR_WIDE, net->joined, net->wide_in, rows);
    activate(net->wide_in, net->wide, net->wide_kept, n * (size_t)net->wide_width, rng);
    linear(net, ESP_SELECTOR_NARROW, net->wide, net->narrow_in, rows);
    activate(net->narrow_in, net->narrow, net->narrow_kept, n * ESP_SELECTOR_NARROW_WIDTH, rng);
    linear(net, ESP_SELECTOR_OUT, net->narrow, net->logits, rows);
}

void esp_selector_net_backward(struct esp_selector_net *net, int rows)
{
    const size_t n = (size_t)rows;
    memset(net->gradient, 0, net->count * sizeof *net->gradient);
    linear_back(net, ESP_SELECTOR_OUT, net->narrow, net->logit_gradient, net->back_narrow,
                rows);
    activate_back(net->narrow_in, net->narrow_kept, net->back_narrow,
                  n * ESP_SELECTOR_NARROW_WIDTH);
    linear_back(net, ESP_SELECTOR_NARROW, net->wide, net->back_narrow, net->back, rows);
    activate_back(net->wide_in, net->wide_kept, net->back, n * (size_t)net->wide_width);
    linear_back(net, ESP_SELECTOR_WIDE, net->joined, net->back, net->back_joined, rows);
    for (int i = 0; i < ESP_SELECTOR_STATES; i++)
        project_back(net, i, rows);
}

void esp_selector_net_step(struct esp_selector_net *net, double rate)
{
    static const double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0.01;
    net->steps++;
    const double unbiased1 = 1 - pow(beta1, net->steps), unbiased2 = 1 - pow(beta2, net->steps);
    for (size_t i = 0; i < net->count; i++) {
        const double g = net->gradient[i];
        net->mean[i] += (1 - beta1) * (g - net->mean[i]);
        net->square[i] += (1 - beta2) * (g * g - net->square[i]);
        const double step =
            net->mean[i] / unbiased1 / (sqrt(net->square[i] / unbiased2) + epsilon);
        net->weights[i] -= rate * (step + decay * net->weights[i]);
    }
}

/* ------------------------------------------------------------------ the loss */

struct share {
    double value; /* the row's penalty */
    int row;
};

static int by_value(const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->row - y->row;
}

struct policy {
    double pi[ESP_ACTIONS];
    double tokens, seconds; /* means of E^ and T^ under pi */
    double ratio;           /* r */
};

static void follow(struct policy *p, const double *logits, const struct esp_selector_goal *goal)
{
    double top = -INFINITY, total = 0;
    for (int a = 0; a < ESP_ACTIONS; a++)
        if (goal->expected[a] > 0)
            top = fmax(top, logits[a]);
    for (int a = 0; a < ESP_ACTIONS; a++)
        total += p->pi[a] = goal->expected[a] > 0 ? exp(logits[a] - top) : 0;
    p->tokens = p->seconds = 0;
    for (int a = 0; a < ESP_ACTIONS; a++) {
        p->pi[a] /= total;
        p->tokens += p->pi[a] * goal->expected[a];
        p->seconds += p->pi[a] * goal->seconds[a];
    }
    p->ratio = p->tokens / p->seconds / goal->base;
}

/* Adds `factor` times the derivative of log r: d log r / d logit a = pi_a (E_a / tokens - T_a
 * / seconds). The derivatives of the softmax's denominator cancel. */
static void add_slope(const struct policy *p, const struct esp_selector_goal *goal,
                      double factor, double *gradient)
{
    for (int a = 0; a < ESP_ACTIONS; a++)
        gradient[a] +=
            factor * p->pi[a] * (goal->expected[a] / p->tokens - goal->seconds[a] / p->seconds);
}

/* Returns the negative entropy of pi; adds `factor` times its derivative to the gradient. */
static double add_order(const double *pi, double factor, double *gradient)
{
    double order = 0;
    for (int a = 0; a < ESP_ACTIONS; a++)
        order += pi[a] > 0 ? pi[a] * log(pi[a]) : 0;
    for (int a = 0; a < ESP_ACTIONS && gradient; a++)
        gradient[a] += pi[a] > 0 ? factor * pi[a] * (log(pi[a]) - order) : 0;
    return order;
}

double esp_selector_loss(const struct esp_selector_loss *loss, const double *logits,
                         const struct esp_selector_goal *goals, int rows, double *gradient)
{
    struct share shares[ESP_SELECTOR_BATCH];
    struct policy p;
    double sum = 0, penalty = 0;
    assert(rows > 0 && rows <= ESP_SELECTOR_BATCH);
    if (gradient)
        memset(gradient, 0, (size_t)rows * ESP_ACTIONS * sizeof *gradient);
    for (int i = 0; i < rows; i++) {
        double *to = gradient ? gradient + (size_t)i * ESP_ACTIONS : NULL;
        follow(&p, logits + (size_t)i * ESP_ACTIONS, &goals[i]);
        shares[i] = (struct share){p.ratio < 1 ? (1 - p.ratio) * (1 - p.ratio) : 0, i};
        sum -= log(p.ratio);
        if (to)
            add_slope(&p, &goals[i], -1.0 / rows, to);
        if (loss->entropy > 0)
            sum += loss->entropy * add_order(p.pi, loss->entropy / rows, to);
    }
    qsort(shares, (size_t)rows, sizeof *shares, by_value);
    int worst = (int)ceil(loss->alpha * rows);
    worst = worst < 1 ? 1 : worst > rows ? rows : worst;
    for (int i = 0; i < worst; i++) {
        const int row = shares[i].row;
        const size_t at = (size_t)row * ESP_ACTIONS;
        penalty += shares[i].value / worst;
        if (!gradient || shares[i].value == 0)
            continue;
        follow(&p, logits + at, &goals[row]);
        add_slope(&p, &goals[row], -2 * loss->lambda * (1 - p.ratio) * p.ratio / worst,
                  gradient + at);
    }
    return sum / rows + loss->lambda * penalty;
}
