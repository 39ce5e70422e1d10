/* selector_samples.h - makes the samples that a selector learns from: roots in text that the
 * target wrote, and how many tokens each action gains at a root under each verifier.
 *
 * The target continues pieces of the user's text by plain decoding, with one of eight sampling
 * settings (delayed-tree-expansion, sec. 4.1). There is a root every ESP_SAMPLE_EVERY tokens.
 * At a root, the value of every action is computed from ESP_SAMPLE_TREES independent trees
 * (sec. 5). The trees of different actions share their draws (struct esp_rollouts in
 * tree_value.h). Draft and target use the setting's temperature and top-p, because they also do
 * so with drafter nde (see least_draft_temp).
 *
 * Pieces are independent: piece i depends only on the seed and on i. Therefore samples can be
 * made in several runs.
 */
#ifndef ESP_SELECTOR_SAMPLES_H
#define ESP_SELECTOR_SAMPLES_H

#include "engine/kv_cache.h"
#include "engine/selector/selector.h"
#include "engine/support/rng.h"
#include "engine/train/tree_value.h"

enum {
    ESP_SAMPLE_EVERY = 16,
    ESP_SAMPLE_ROOTS = 8,
    ESP_SAMPLE_TREES = 4,
    ESP_SAMPLE_SETTINGS = 8,
    ESP_MAX_RULES = 8
};

extern const struct esp_sampling esp_sample_settings[ESP_SAMPLE_SETTINGS];

/* A sample is an array of floats. These are the indices of its first values. The times among
 * the scalars are not set; fit_selector.c fills them in. After the scalars come the hidden
 * states, then E^ of each action under each verifier: (rules, ESP_ACTIONS). */
enum {
    ESP_SAMPLE_SETTING,
    ESP_SAMPLE_LENGTH,
    ESP_SAMPLE_SCALARS,
    ESP_SAMPLE_STATES = ESP_SAMPLE_SCALARS + ESP_SCALARS
};

struct esp_sample_layout {
    struct esp_selector_shape shape;
    int rules;
};

/* The first function returns the offset in a sample at which E^ of verifier number `rule`
 * begins. The second returns the size of a sample. Both results are in floats. */
size_t esp_sample_expected(const struct esp_sample_layout *layout, int rule);
size_t esp_sample_size(const struct esp_sample_layout *layout);

struct esp_engine;

struct esp_sampler {
    struct esp_engine *engine;
    const struct esp_backend_ops *ops;
    const struct esp_verifier_ops *rules[ESP_MAX_RULES];
    struct esp_sample_layout layout;
    const int32_t *text; /* (length) */
    int length;
    uint64_t seed;

    struct esp_kv_cache target, draft;
    struct esp_rows *p, *q, *target_states, *draft_states;
    struct esp_rollouts rollouts;
    int piece_length, context, vocabulary;
    int setting;                              /* index of the piece's sampling setting */
    const struct esp_sampling *sampling;      /* temperature and top-p of this setting */
    struct esp_rng rng;                       /* random numbers of the piece */
    void *memory;                             /* the block with all arrays that follow */
    int32_t *piece;                           /* (context) tokens of the piece */
    int32_t *tokens, *positions, *logits_row; /* (ESP_ROLLOUT_ROWS) for the rows of a pass */
    int32_t *state_row;
    uint64_t *mask;
    double *u, *values;          /* (ESP_ROLLOUT_ROWS) */
    float *row[3];               /* (vocabulary) p and q before the root, and q at the root */
    double *distributions;       /* (2, ESP_ROLLOUT_ROWS, vocabulary) */
    const double **p_at, **q_at; /* (ESP_ROLLOUT_ROWS) */
};

/* Allocates memory; close the sampler even if that fails. Set engine, rules, layout.rules,
 * text, length and seed before this call. The engine must have a draft model. */
int esp_sampler_open(struct esp_sampler *sampler, char *err, size_t errlen);
void esp_sampler_close(struct esp_sampler *sampler);

/* Makes the samples of piece number `index` and writes them one after the other. Returns their
 * number, at most ESP_SAMPLE_ROOTS, or a negative status. */
int esp_sampler_piece(struct esp_sampler *sampler, int index, float *samples);

/* Measures the times of passes of both models (see pass_times.h). Each time is the shortest of
 * several measurements. They take about four seconds for the built-in pair. */
int esp_measure_times(struct esp_sampler *sampler, struct esp_pass_times *times);

#endif
