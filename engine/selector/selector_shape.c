/* selector_shape.c - sizes and places of the network's tensors; see selector_shape.h. */
#include "engine/selector/selector_shape.h"

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
