/* selector_shape.c - sizes and places of the network's tensors; see selector_shape.h. */
#include "engine/selector/selector_shape.h"

static const char *const names[] = {
#define X(name, text) text,
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

int esp_selector_joined(const struct esp_selector_shape *shape)
{
    return ESP_SELECTOR_STATES * esp_selector_width(shape) + ESP_SCALARS;
}

int esp_selector_wide(const struct esp_selector_shape *shape)
{
    return 4 * esp_selector_width(shape);
}

static void size_of(const struct esp_selector_shape *shape, int index, int *inputs,
                    int *outputs)
{
    *inputs = 1;
    *outputs = esp_selector_width(shape);
    switch (index) {
    case ESP_SELECTOR_TARGET:
    case ESP_SELECTOR_DRAFT:
    case ESP_SELECTOR_ROOT:
        *inputs = shape->hidden[index / ESP_SELECTOR_PER_STATE];
        break;
    case ESP_SELECTOR_WIDE:
        *inputs = esp_selector_joined(shape);
        *outputs = esp_selector_wide(shape);
        break;
    case ESP_SELECTOR_WIDE_BIAS:
        *outputs = esp_selector_wide(shape);
        break;
    case ESP_SELECTOR_NARROW:
        *inputs = esp_selector_wide(shape);
        *outputs = ESP_SELECTOR_NARROW_WIDTH;
        break;
    case ESP_SELECTOR_NARROW_BIAS:
        *outputs = ESP_SELECTOR_NARROW_WIDTH;
        break;
    case ESP_SELECTOR_OUT:
        *inputs = ESP_SELECTOR_NARROW_WIDTH;
        *outputs = ESP_ACTIONS;
        break;
    case ESP_SELECTOR_OUT_BIAS:
        *outputs = ESP_ACTIONS;
        break;
    default:
        break;
    }
}

struct esp_selector_part esp_selector_part(const struct esp_selector_shape *shape, int index)
{
    struct esp_selector_part part = {.name = names[index]};
    for (int i = 0; i <= index; i++) {
        part.offset += part.count;
        size_of(shape, i, &part.inputs, &part.outputs);
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
