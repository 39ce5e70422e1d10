/* selector.c - runs the network of a selector; see selector.h. */
#include "engine/selector/selector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

enum { ROOM = 4 * ESP_SELECTOR_MOST_WIDTH };

/* ------------------------------------------------------------------ the network */

enum size {
    ONE,
    TARGET_HIDDEN,
    DRAFT_HIDDEN,
    ROOT_HIDDEN,
    WIDTH,
    JOINED,
    WIDE,
    NARROW,
    ACTIONS
};

static const struct {
    const char *name;
    enum size inputs, outputs;
} tensors[] = {
#define X(name, ...) {__VA_ARGS__},
    ESP_SELECTOR_TENSORS(X)
#undef X
};

int esp_selector_width(const struct esp_selector_shape *shape)
{
    const int width = shape->hidden[ESP_SELECTOR_H_TARGET] / 8;
    return width < ESP_SELECTOR_LEAST_WIDTH  ? ESP_SELECTOR_LEAST_WIDTH
           : width > ESP_SELECTOR_MOST_WIDTH ? ESP_SELECTOR_MOST_WIDTH
                                             : width;
}

struct esp_selector_part esp_selector_part(const struct esp_selector_shape *shape, int index)
{
    const int width = esp_selector_width(shape);
    const int sizes[] = {
        [ONE] = 1,
        [TARGET_HIDDEN] = shape->hidden[ESP_SELECTOR_H_TARGET],
        [DRAFT_HIDDEN] = shape->hidden[ESP_SELECTOR_H_DRAFT],
        [ROOT_HIDDEN] = shape->hidden[ESP_SELECTOR_H_ROOT],
        [WIDTH] = width,
        [JOINED] = ESP_SELECTOR_STATES * width + ESP_SCALARS,
        [WIDE] = 4 * width,
        [NARROW] = ESP_SELECTOR_NARROW_WIDTH,
        [ACTIONS] = ESP_ACTIONS,
    };
    struct esp_selector_part part = {.name = tensors[index].name};
    for (int i = 0; i <= index; i++) {
        part.offset += part.count;
        part.inputs = sizes[tensors[i].inputs];
        part.outputs = sizes[tensors[i].outputs];
        part.count = (size_t)part.inputs * (size_t)part.outputs;
    }
    return part;
}

size_t esp_selector_count(const struct esp_selector_shape *shape)
{
    const struct esp_selector_part last =
        esp_selector_part(shape, ESP_SELECTOR_TENSOR_COUNT - 1);
    return last.offset + last.count;
}

/* ------------------------------------------------------------------ a selector */

int esp_selector_open(struct esp_selector *s, const struct esp_selector_shape *shape)
{
    memset(s, 0, sizeof *s);
    s->shape = *shape;
    s->weights = calloc(esp_selector_count(shape), sizeof *s->weights);
    s->value = calloc((ESP_SELECTOR_NARROW_WIDTH + 1) * ESP_ACTIONS, sizeof *s->value);
    s->scratch = calloc(4 * ROOM, sizeof *s->scratch);
    if (s->weights && s->value && s->scratch)
        return ESP_OK;
    esp_selector_close(s);
    return ESP_E_MEMORY;
}

void esp_selector_close(struct esp_selector *s)
{
    for (size_t i = 0; i < sizeof s->layer / sizeof *s->layer; i++)
        esp_dense_close(s->layer[i]);
    free(s->weights);
    free(s->value);
    free(s->scratch);
    memset(s, 0, sizeof *s);
}

float esp_selector_scale(const float *weights, int inputs, int outputs, int column)
{
    float largest = 0;
    for (int i = 0; i < inputs; i++)
        largest = fmaxf(largest, fabsf(weights[(size_t)i * (size_t)outputs + (size_t)column]));
    return largest / 127;
}

/* Rounds the columns of a matrix to multiples of their scales. */
static void round_matrix(float *weights, int inputs, int outputs)
{
    for (int j = 0; j < outputs; j++) {
        const float scale = esp_selector_scale(weights, inputs, outputs, j);
        for (int i = 0; i < inputs && scale > 0; i++) {
            float *w = &weights[(size_t)i * (size_t)outputs + (size_t)j];
            *w = rintf(*w / scale) * scale;
        }
    }
}

int esp_selector_prepare(struct esp_selector *s)
{
    int layer = 0;
    round_matrix(s->value, ESP_SELECTOR_NARROW_WIDTH + 1, ESP_ACTIONS);
    for (int i = 0; i < ESP_SELECTOR_TENSOR_COUNT; i++) {
        const struct esp_selector_part part = esp_selector_part(&s->shape, i);
        float *weights = s->weights + part.offset, *bias = weights + part.count;
        if (part.inputs == 1)
            continue;
        round_matrix(weights, part.inputs, part.outputs);
        esp_dense_close(s->layer[layer]);
        s->layer[layer] = esp_dense_open(weights, bias, part.inputs, part.outputs);
        if (!s->layer[layer++])
            return ESP_E_MEMORY;
    }
    return ESP_OK;
}

/* Applies LayerNorm to x, in place. */
static void normalise(const struct esp_selector *s, int state, float *x)
{
    const int first = state * ESP_SELECTOR_PER_STATE;
    const float *gain = s->weights + esp_selector_part(&s->shape, first + 2).offset;
    const float *shift = s->weights + esp_selector_part(&s->shape, first + 3).offset;
    const int width = esp_selector_width(&s->shape);
    float mean = 0, square = 0;
    for (int i = 0; i < width; i++)
        mean += x[i] / width;
    for (int i = 0; i < width; i++)
        square += (x[i] - mean) * (x[i] - mean) / width;
    const float factor = 1 / sqrtf(square + (float)ESP_SELECTOR_EPSILON);
    for (int i = 0; i < width; i++)
        x[i] = (x[i] - mean) * factor * gain[i] + shift[i];
}

static void gelu(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] *= 0.5f * (1 + erff(x[i] * (float)M_SQRT1_2));
}

void esp_selector_run(const struct esp_selector *s, const float *const *states,
                      const float *scalars, struct esp_selector_score *score)
{
    const int width = esp_selector_width(&s->shape);
    float *joined = s->scratch, *wide = joined + ROOM, *narrow = wide + ROOM,
          *logits = narrow + ROOM;
    for (int i = 0; i < ESP_SELECTOR_STATES; i++) {
        float *to = joined + i * width;
        esp_dense_apply(s->layer[i], states[i], to);
        normalise(s, i, to);
    }
    for (int i = 0; i < ESP_SCALARS; i++)
        joined[ESP_SELECTOR_STATES * width + i] = (scalars[i] - s->mean[i]) / s->deviation[i];
    esp_dense_apply(s->layer[ESP_SELECTOR_STATES], joined, wide);
    gelu(wide, 4 * width);
    esp_dense_apply(s->layer[ESP_SELECTOR_STATES + 1], wide, narrow);
    gelu(narrow, ESP_SELECTOR_NARROW_WIDTH);
    esp_dense_apply(s->layer[ESP_SELECTOR_STATES + 2], narrow, logits);
    memcpy(score->logits, logits, sizeof score->logits);
    memcpy(score->narrow, narrow, sizeof score->narrow);
}

double esp_selector_tokens(const struct esp_selector *s, const struct esp_selector_score *score,
                           int action)
{
    double sum = s->value[ESP_SELECTOR_NARROW_WIDTH * ESP_ACTIONS + action];
    for (int i = 0; i < ESP_SELECTOR_NARROW_WIDTH; i++)
        sum += (double)score->narrow[i] * s->value[i * ESP_ACTIONS + action];
    const int most = esp_action_depth(esp_action_at(action)) + 1;
    return sum < 1 ? 1 : sum > most ? most : sum;
}
