/* selector_shape.h - the selector's network: which tensors it has (delayed-tree-expansion, eq.
 * 10).
 *
 * Three hidden states (h_prev of target and draft, h_cur of the draft) are each projected to w
 * numbers and normalised (LayerNorm); they and 11 scalars go through 3 w + 11 -> 4 w -> 32 with
 * GELU, and 324 logits come out, one for each action. The paper's w is 128, for targets of some
 * billion weights; here it is an eighth of the target's width, at least 32 and at most 128, so
 * that the selector stays small beside a small target.
 */
#ifndef ESP_SELECTOR_SHAPE_H
#define ESP_SELECTOR_SHAPE_H

#include <stddef.h>

#include "engine/selector/actions.h"
#include "engine/selector/selector_features.h"

enum {
    ESP_SELECTOR_STATES = 3, /* hidden states */
    ESP_SELECTOR_LEAST_WIDTH = 32,
    ESP_SELECTOR_MOST_WIDTH = 128,
    ESP_SELECTOR_NARROW_WIDTH = 32,
};

/* h_prev of the target and of the draft, h_cur of the draft. */
enum esp_selector_state { ESP_SELECTOR_H_TARGET, ESP_SELECTOR_H_DRAFT, ESP_SELECTOR_H_ROOT };

/* The tensors in the order of their memory, with inputs and outputs (selector_shape.c). A
 * matrix has a row for each input. */
#define ESP_SELECTOR_TENSORS(X)                                                                \
    X(TARGET, "target.weight", TARGET_HIDDEN, WIDTH)                                           \
    X(TARGET_BIAS, "target.bias", ONE, WIDTH)                                                  \
    X(TARGET_GAIN, "target.norm.weight", ONE, WIDTH)                                           \
    X(TARGET_SHIFT, "target.norm.bias", ONE, WIDTH)                                            \
    X(DRAFT, "draft.weight", DRAFT_HIDDEN, WIDTH)                                              \
    X(DRAFT_BIAS, "draft.bias", ONE, WIDTH)                                                    \
    X(DRAFT_GAIN, "draft.norm.weight", ONE, WIDTH)                                             \
    X(DRAFT_SHIFT, "draft.norm.bias", ONE, WIDTH)                                              \
    X(ROOT, "root.weight", ROOT_HIDDEN, WIDTH)                                                 \
    X(ROOT_BIAS, "root.bias", ONE, WIDTH)                                                      \
    X(ROOT_GAIN, "root.norm.weight", ONE, WIDTH)                                               \
    X(ROOT_SHIFT, "root.norm.bias", ONE, WIDTH)                                                \
    X(WIDE, "wide.weight", JOINED, WIDE)                                                       \
    X(WIDE_BIAS, "wide.bias", ONE, WIDE)                                                       \
    X(NARROW, "narrow.weight", WIDE, NARROW)                                                   \
    X(NARROW_BIAS, "narrow.bias", ONE, NARROW)                                                 \
    X(OUT, "out.weight", NARROW, ACTIONS)                                                      \
    X(OUT_BIAS, "out.bias", ONE, ACTIONS)

enum esp_selector_tensor {
#define X(name, ...) ESP_SELECTOR_##name,
    ESP_SELECTOR_TENSORS(X)
#undef X
        ESP_SELECTOR_TENSOR_COUNT
};

enum { ESP_SELECTOR_PER_STATE = ESP_SELECTOR_DRAFT - ESP_SELECTOR_TARGET };

struct esp_selector_shape {
    int hidden[ESP_SELECTOR_STATES]; /* width of each hidden state */
};

struct esp_selector_part {
    const char *name;
    int inputs, outputs; /* a vector has inputs = 1 */
    size_t offset, count;
};

/* Tensor number `index`: its name, its size, its place among all numbers. */
struct esp_selector_part esp_selector_part(const struct esp_selector_shape *shape, int index);

/* Numbers that a hidden state is projected to. */
int esp_selector_width(const struct esp_selector_shape *shape);

/* How many numbers the network has. */
size_t esp_selector_count(const struct esp_selector_shape *shape);

/* LayerNorm's epsilon. */
#define ESP_SELECTOR_EPSILON 1e-5

#endif
