/* selector.h - runs a trained selector, which chooses the shape (K, L1, L2) of a delayed tree
 * (delayed-tree-expansion, sec. 6). Also reads and writes the selector's file.
 *
 * A selector is for one pair of models, one verifier and one goal. Its file is in the
 * safetensors format, in the folder of the target's weights; its name is
 * nde-VERIFIER.safetensors for goal speed and nde-VERIFIER-GOAL.safetensors for other goals. A
 * selector also works if the models are quantised or the target was made wider, because the
 * input of the network is then the same; only the costs differ. Matrices are stored as 8-bit
 * integers with a scale for each output. The file is untrusted.
 *
 * The network (eq. 10): three hidden states (h_prev of target and draft, h_cur of the draft)
 * are each projected to w numbers and normalised (LayerNorm). Together with 11 scalars they
 * are the input of layers 3 w + 11 -> 4 w -> 32 with GELU, and of an output layer with 324
 * logits, one for each action. The paper's w is 128, for targets of a few billion weights. Here
 * w is an eighth of the target's width, at least 32 and at most 128, so that the selector is
 * small compared with a small target.
 */
#ifndef ESP_SELECTOR_H
#define ESP_SELECTOR_H

#include <stdint.h>

#include "engine/selector/pass_times.h"
#include "engine/selector/selector_features.h"
#include "kernels/dense.h"

/* ------------------------------------------------------------------ the network */

enum {
    ESP_SELECTOR_STATES = 3, /* hidden states */
    ESP_SELECTOR_LEAST_WIDTH = 32,
    ESP_SELECTOR_MOST_WIDTH = 128,
    ESP_SELECTOR_NARROW_WIDTH = 32,
};

/* Lists the hidden states that the network reads: h_prev of target and draft, and h_cur of
 * the draft. */
enum esp_selector_state { ESP_SELECTOR_H_TARGET, ESP_SELECTOR_H_DRAFT, ESP_SELECTOR_H_ROOT };

/* Lists the tensors in memory order: X(identifier, name in the file, inputs, outputs). `inputs`
 * and `outputs` are members of enum size in selector.c. A matrix has a row for each input. */
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
    int hidden[ESP_SELECTOR_STATES]; /* number of values in each hidden state */
};

struct esp_selector_part {
    const char *name;
    int inputs, outputs; /* a vector has inputs = 1 */
    size_t offset, count;
};

/* Returns the name, the size and the position in memory of tensor number `index`. */
struct esp_selector_part esp_selector_part(const struct esp_selector_shape *shape, int index);

/* Returns w, the number of values that a hidden state is projected to. */
int esp_selector_width(const struct esp_selector_shape *shape);

/* Returns the number of weights of the network. */
size_t esp_selector_count(const struct esp_selector_shape *shape);

/* LayerNorm's epsilon. */
#define ESP_SELECTOR_EPSILON 1e-5

/* ------------------------------------------------------------------ a selector */

enum { ESP_RULE_NAME = 32, ESP_SELECTOR_NAME = 96 };

/* Says what a selector maximises: tokens per second; tokens per iteration; or tokens per second
 * with esp_nominal_times(), where an additional row costs little compared with a pass. */
enum esp_goal { ESP_GOAL_SPEED, ESP_GOAL_TOKENS, ESP_GOAL_CHEAP_ROWS, ESP_GOALS };
#define ESP_GOAL_NAMES "speed|tokens|cheap-rows"

struct esp_selector {
    char rule[ESP_RULE_NAME]; /* name of the verifier */
    enum esp_goal goal;
    uint64_t sources; /* esp_engine.sources of the models that it was trained with */
    uint64_t costs;   /* esp_engine.pair of the models whose passes were timed; 0: not timed */
    struct esp_selector_shape shape;
    float mean[ESP_SCALARS], deviation[ESP_SCALARS]; /* of each scalar in the training data */
    struct esp_pass_times times;
    int first;      /* the action that is taken right after a prompt, before any pass of the
                       models */
    float *weights; /* (esp_selector_count()) */
    /* (ESP_SELECTOR_NARROW_WIDTH + 1, ESP_ACTIONS) a linear layer that computes the expected
     * tokens of an action from the network's narrow layer; the last row is the bias. */
    float *value;
    struct esp_dense *layer[ESP_SELECTOR_STATES + 3];
    float *scratch;
};

/* Allocates memory for weights and values. Returns 0 or ESP_E_MEMORY. */
int esp_selector_open(struct esp_selector *selector, const struct esp_selector_shape *shape);
void esp_selector_close(struct esp_selector *selector);

/* Rounds the weights to values that a file can store, and prepares them for
 * esp_selector_run(). Call this when the weights are set. Returns 0 or ESP_E_MEMORY. */
int esp_selector_prepare(struct esp_selector *selector);

/* Returns the scale of the 8-bit integers of a column: 1/127 of its largest absolute value.
 * weights: (inputs, outputs). */
float esp_selector_scale(const float *weights, int inputs, int outputs, int column);

struct esp_selector_score {
    float logits[ESP_ACTIONS];
    float narrow[ESP_SELECTOR_NARROW_WIDTH];
};

/* Runs the network. states[i]: (shape.hidden[i]) a hidden state; scalars: (ESP_SCALARS), not
 * standardised. */
void esp_selector_run(const struct esp_selector *selector, const float *const *states,
                      const float *scalars, struct esp_selector_score *score);

/* Returns the number of tokens that the selector expects from an action, at least 1. */
double esp_selector_tokens(const struct esp_selector *selector,
                           const struct esp_selector_score *score, int action);

/* The first function returns the goal with this name, or -1. The second returns the name of a
 * goal. */
int esp_goal_find(const char *name);
const char *esp_goal_name(enum esp_goal goal);

/* Writes the file name of the selector for a verifier and a goal. */
void esp_selector_file_name(char name[ESP_SELECTOR_NAME], const char *rule, enum esp_goal goal);

/* Reads and prepares the selector for a target (a folder or a GGUF file). The selector's file
 * must have these sources and widths. Returns 0, ESP_E_FILE if there is no file, or another
 * negative status if the file cannot be used. In this case, err says why. */
int esp_selector_read(struct esp_selector *selector, const char *target, const char *rule,
                      enum esp_goal goal, uint64_t sources,
                      const struct esp_selector_shape *shape, char *err, size_t errlen);

/* Writes a selector to a file. If this fails, an existing file stays unchanged. */
int esp_selector_write(const struct esp_selector *selector, const char *path, char *err,
                       size_t errlen);

#endif
