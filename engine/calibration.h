/* calibration.h - the draft temperature, and how often drafted tokens are accepted: learned
 * from every iteration, kept per pair of models and temperature.
 *
 * A draft model is often sure to another degree than it is right. Tempering mends most of that
 * with one number (temperature scaling, Guo et al. 2017, here online): with beta = temperature
 * of the text / temperature of the draft, q_beta(x) is proportional to q(x)^beta. It leaves the
 * order of the tokens, and whatever draws from q_beta is judged with q_beta, so the text keeps
 * its law: beta depends on the past alone.
 *
 * Beta maximises the likelihood of what became of the children of visited nodes. A node with
 * children c has the outcomes "the target takes c" and "it takes none of them"; with M = sum of
 * q_beta log q_beta, and s_c = log q_beta(c) - M the slope of log q_beta(c) in log beta,
 *
 *     slope       g = sum p(c) s_c - p(none) A / q(none),   A = sum q(c) s_c
 *     information I = sum q(c) s_c^2 + A^2 / q(none)
 *
 * where p(c) is the target's probability (at temperature 0: 1 or 0), and each step is g / sum
 * of I (natural gradient), older information fading. Only tokens that drafters really draft
 * count, so a draft that is wrong about the tail of the vocabulary does not matter.
 *
 * What is left after tempering is corrected by counts: the share of accepted children by their
 * q_beta (temperature 0), or by the draft's confidence and the place among the draws below one
 * node (above 0, where acceptance compares p and q, and no product of q tells it).
 */
#ifndef ESP_CALIBRATION_H
#define ESP_CALIBRATION_H

#include "engine/drafters/drafter.h"

enum { ESP_CALIBRATION_BINS = 10, ESP_CALIBRATION_DRAWS = 4, ESP_CALIBRATION_ROWS = 8 };

/* Predictions and outcomes, sorted by prediction; old ones fade. */
struct esp_tally {
    double tried[ESP_CALIBRATION_BINS], predicted[ESP_CALIBRATION_BINS],
        found[ESP_CALIBRATION_BINS];
};

struct esp_calibration {
    double log_beta, information;
    struct esp_tally raw, tempered; /* q and q_beta, in tenths */
    struct esp_tally likely; /* q_beta, in steps of its log odds; above 0 of first draws */
    struct esp_tally drawn[ESP_CALIBRATION_DRAWS]; /* confidence of the parent, in tenths */
    char key[384], file[64];                       /* as in rank_rates.h */
    bool learned;

    /* Of the iteration that runs: rows of q that were looked at, by row. */
    int rows;
    double mean_log[ESP_CALIBRATION_ROWS], power_sum[ESP_CALIBRATION_ROWS];
};

/* Turns to what is known for `key`, storing what was learned for another. An empty key has no
 * file, and there is none unless it is to be kept. */
void esp_calibration_turn(struct esp_calibration *calibration, const char *key, bool kept);

/* Stores what is not yet in the file. Where that fails, the next run learns again. */
void esp_calibration_save(struct esp_calibration *calibration);

double esp_calibration_beta(const struct esp_calibration *calibration);

/* Looks at the rows of q of this iteration's first expanded nodes, before a rule changes them.
 * `beta` is the one they were made with. */
int esp_calibration_look(struct esp_calibration *calibration, struct esp_draft *draft,
                         double beta);

/* Learns from a finished iteration. With `steps`, log_beta moves; without (the user named a
 * draft temperature), only the tallies do. */
void esp_calibration_learn(struct esp_calibration *calibration, const struct esp_draft *draft,
                           const struct esp_iteration *iteration, double beta, bool steps);

/* The share by which predictions are off, weighted by how often they were made: the sum over
 * bins of |found - predicted|, over all tries; NaN before the first one. */
double esp_tally_error(const struct esp_tally *tally);

/* How likely the target's first choice is a child with this q_beta. */
double esp_calibration_likely(const struct esp_calibration *calibration, double q);

/* How likely the draw number `draw` (from 0) below a node of this confidence is accepted, if
 * those before it were not. */
double esp_calibration_drawn(const struct esp_calibration *calibration, double confidence,
                             int draw);

/* How likely the first draw below a node is accepted, once it is known to be a token with this
 * q_beta. */
double esp_calibration_first(const struct esp_calibration *calibration, double q);

#endif
