/* calibration.h - learns the draft temperature and acceptance rates of drafted tokens online.
 * Both are kept per model pair and temperature.
 *
 * Draft probabilities are usually miscalibrated: too sharp or too flat. One temperature per
 * pair corrects most of this (temperature scaling, Guo et al. 2017). With beta = text
 * temperature / draft temperature, q_beta(x) is proportional to q(x)^beta. Tempering never
 * changes the ranking of tokens. It does not change the output distribution either: drafted
 * tokens are sampled from q_beta and verified against the same q_beta, and beta depends only on
 * past iterations.
 *
 * Beta maximises the likelihood of the outcomes at visited nodes. A node with children c has
 * the outcomes "the target takes c" and "it takes none of them". Let M = sum of q_beta log
 * q_beta, and s_c = log q_beta(c) - M, the slope of log q_beta(c) in log beta. Then
 *
 *     slope       g = sum p(c) s_c - p(none) A / q(none),   A = sum q(c) s_c
 *     information I = sum q(c) s_c^2 + A^2 / q(none)
 *
 * where p(c) is the target's probability (at temperature 0: 1 or 0). Each step is g / sum of I
 * (natural gradient); older information decays. Only tokens that drafters draft enter, so
 * errors in the tail of the vocabulary do not matter.
 *
 * Counts correct the error that tempering leaves. At temperature 0 they are the share of
 * accepted children, by q_beta. Above 0, acceptance compares p with q and no product of q
 * predicts it; there the counts go by the draft's confidence and by the index of the draw below
 * its node.
 */
#ifndef ESP_CALIBRATION_H
#define ESP_CALIBRATION_H

#include "engine/drafters/drafter.h"

enum { ESP_CALIBRATION_BINS = 10, ESP_CALIBRATION_DRAWS = 4, ESP_CALIBRATION_ROWS = 8 };

/* Predictions and outcomes, binned by prediction; old ones decay. */
struct esp_tally {
    double tried[ESP_CALIBRATION_BINS], predicted[ESP_CALIBRATION_BINS],
        found[ESP_CALIBRATION_BINS];
};

struct esp_calibration {
    double log_beta, information;
    struct esp_tally raw, tempered; /* q and q_beta, in tenths */
    struct esp_tally likely; /* q_beta by its log odds; above temperature 0: first draws */
    struct esp_tally drawn[ESP_CALIBRATION_DRAWS]; /* by the parent's confidence, in tenths */
    char key[384], file[64];                       /* as in rank_rates.h */
    bool learned;

    /* The running iteration: rows of q that were read, by row. */
    int rows;
    double mean_log[ESP_CALIBRATION_ROWS], power_sum[ESP_CALIBRATION_ROWS];
};

/* Switches to `key`: stores the current state under its old key, then loads the one of `key`.
 * Without `kept`, or with an empty key, no file is read or written. */
void esp_calibration_turn(struct esp_calibration *calibration, const char *key, bool kept);

/* Writes unsaved state to its file. If that fails, the next run learns again. */
void esp_calibration_save(struct esp_calibration *calibration);

double esp_calibration_beta(const struct esp_calibration *calibration);

/* Reads the rows of q of this iteration's first expanded nodes, before a drafter changes them.
 * `beta` is the one they were made with. */
int esp_calibration_look(struct esp_calibration *calibration, struct esp_draft *draft,
                         double beta);

/* Learns from a finished iteration. `steps`: log_beta moves; otherwise (the user set a draft
 * temperature) only the tallies do. */
void esp_calibration_learn(struct esp_calibration *calibration, const struct esp_draft *draft,
                           const struct esp_iteration *iteration, double beta, bool steps);

/* Expected calibration error: the sum over bins of |found - predicted| over all tries. NaN
 * before the first one. */
double esp_tally_error(const struct esp_tally *tally);

/* Probability that a child with this q_beta is the target's first choice. */
double esp_calibration_likely(const struct esp_calibration *calibration, double q);

/* Probability that draw `draw` (from 0) below a node of this confidence is accepted, given that
 * the draws before it were rejected. */
double esp_calibration_drawn(const struct esp_calibration *calibration, double confidence,
                             int draw);

/* Probability that the first draw below a node is accepted, given its q_beta. */
double esp_calibration_first(const struct esp_calibration *calibration, double q);

#endif
