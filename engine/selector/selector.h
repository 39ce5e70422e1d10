/* selector.h - a trained selector of (K, L1, L2), and its file (delayed-tree-expansion, sec.
 * 6).
 *
 * A selector is for one pair of models, one verifier and one goal. Its file is in the
 * safetensors format and lies beside the target's weights as nde-VERIFIER.safetensors, with
 * another goal than speed as nde-VERIFIER-GOAL.safetensors. It fits the pair also where the
 * models are quantised, or the target was made wider: then what the network sees is the same,
 * and only costs are others. Matrices are stored as 8-bit integers with a scale for each
 * output. Everything in a file is untrusted.
 */
#ifndef ESP_SELECTOR_H
#define ESP_SELECTOR_H

#include <stdint.h>

#include "engine/selector/pass_times.h"
#include "engine/selector/selector_shape.h"
#include "kernels/dense.h"

enum { ESP_RULE_NAME = 32, ESP_SELECTOR_NAME = 96 };

/* What it chooses for: tokens per second, tokens per iteration, or tokens per second with
 * esp_nominal_times(), where a row costs little beside a pass. */
enum esp_goal { ESP_GOAL_SPEED, ESP_GOAL_TOKENS, ESP_GOAL_CHEAP_ROWS, ESP_GOALS };
#define ESP_GOAL_NAMES "speed|tokens|cheap-rows"

struct esp_selector {
    char rule[ESP_RULE_NAME]; /* name of the verifier */
    enum esp_goal goal;
    uint64_t sources; /* of the models that it was trained with; see engine.h */
    uint64_t costs;   /* esp_engine.pair of those whose passes were timed; 0: nobody's */
    struct esp_selector_shape shape;
    float mean[ESP_SCALARS], deviation[ESP_SCALARS]; /* of the scalars in training */
    struct esp_pass_times times;
    int first;      /* the action where nothing is known yet: right after a prompt */
    float *weights; /* (esp_selector_count()) */
    float *value;   /* (ESP_SELECTOR_NARROW_WIDTH + 1, ESP_ACTIONS): E^ of an action from the
                       narrow   layer, a constant last */
    struct esp_dense *layer[ESP_SELECTOR_STATES + 3];
    float *scratch;
};

/* Takes memory for weights and values. Returns 0 or ESP_E_MEMORY. */
int esp_selector_open(struct esp_selector *selector, const struct esp_selector_shape *shape);
void esp_selector_close(struct esp_selector *selector);

/* Rounds the weights to what a file holds and prepares them for esp_selector_score(). To be
 * called when they are set. 0 or ESP_E_MEMORY. */
int esp_selector_prepare(struct esp_selector *selector);

/* A 127th of the largest value of a column of a matrix (inputs, outputs): what its 8-bit
 * integers count. */
float esp_selector_scale(const float *weights, int inputs, int outputs, int column);

struct esp_selector_score {
    float logits[ESP_ACTIONS];
    float narrow[ESP_SELECTOR_NARROW_WIDTH];
};

/* One pass: hidden states (shape.hidden[i]) and scalars, which are not standardised yet. */
void esp_selector_run(const struct esp_selector *selector, const float *const *states,
                      const float *scalars, struct esp_selector_score *score);

/* The tokens that the selector expects of an action, at least 1. */
double esp_selector_tokens(const struct esp_selector *selector,
                           const struct esp_selector_score *score, int action);

/* The goal with this name, or -1; and the name of one. */
int esp_goal_find(const char *name);
const char *esp_goal_name(enum esp_goal goal);

/* Writes the name of the file for a verifier and a goal. */
void esp_selector_file_name(char name[ESP_SELECTOR_NAME], const char *rule, enum esp_goal goal);

/* Reads the file that goes with a target (a folder or a GGUF file) and prepares it. The sources
 * and the widths must be these. ESP_E_FILE if there is no file; other negative statuses if it
 * cannot be used; a sentence. */
int esp_selector_read(struct esp_selector *selector, const char *target, const char *rule,
                      enum esp_goal goal, uint64_t sources,
                      const struct esp_selector_shape *shape, char *err, size_t errlen);

/* Writes a file whole, or leaves the old one. */
int esp_selector_write(const struct esp_selector *selector, const char *path, char *err,
                       size_t errlen);

#endif
