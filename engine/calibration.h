/* calibration.h - learns the draft temperature and acceptance rates of drafted tokens online.
 * Both are stored separately for each model pair and temperature.
 *
 * Draft probabilities are usually miscalibrated: too sharp or too flat. One temperature per
 * pair corrects most of this (temperature scaling, Guo et al. 2017). With beta = sampling
 * temperature / draft temperature, q_beta(x) is proportional to q(x)^beta. Tempering never
 * changes the ranking of tokens. It does not change the output distribution either: drafted
 * tokens are sampled from q_beta and verified against the same q_beta, and beta depends only on
 * past iterations.
 *
 * Beta maximises the likelihood of the outcomes at visited nodes. A node with children c has
 * the outcomes "the target chooses c" and "the target chooses none of the children". Let M =
 * sum of q_beta log q_beta, and s_c = log q_beta(c) - M, the slope of log q_beta(c) in log
 * beta. Then
 *
 *     slope       g = sum p(c) s_c - p(none) A / q(none),   A = sum q(c) s_c
 *     information I = sum q(c) s_c^2 + A^2 / q(none)
 *
 * where p(c) is the target's probability (at temperature 0: 1 or 0). Each step is g / sum of I
 * (natural gradient); older information decays. Only drafted tokens are used, so errors in the
 * tail of the vocabulary do not matter.
 *
 * Some error remains after tempering. Counts of accepted tokens correct it. At temperature 0,
 * these counts give the fraction of accepted children as a function of q_beta. Above 0,
 * acceptance depends on p and q, and no function of q alone predicts it. The counts are then
 * binned by the parent's confidence and by the index of the draw among the parent's draws.
 */
#ifndef ESP_CALIBRATION_H
#define ESP_CALIBRATION_H

#include "engine/drafters/drafter.h"

enum { ESP_CALIBRATION_BINS = 10, ESP_CALIBRATION_DRAWS = 4, ESP_CALIBRATION_ROWS = 8 };

/* Counts how many tokens were tried, predicted to be accepted, and accepted, in bins of the
 * predicted probability. Old counts decay. */
struct esp_tally {
    double tried[ESP_CALIBRATION_BINS], predicted[ESP_CALIBRATION_BINS],
        found[ESP_CALIBRATION_BINS];
};

struct esp_calibration {
    double log_beta, information;
    struct esp_tally raw, tempered; /* raw: bins are tenths of q; tempered: tenths of q_beta */
    /* Bins: log odds of q_beta. Above temperature 0, it contains only first draws. */
    struct esp_tally likely;
    struct esp_tally drawn[ESP_CALIBRATION_DRAWS]; /* bins: tenths of the parent's confidence */
    char key[384], file[64];                       /* key of this state; name of the file */
    bool learned;

    /* For each of the first `rows` rows of q in the current iteration: the sum of q_beta log
     * q_beta, and the sum of q_beta^(1/beta), which is needed to compute q from q_beta. */
    int rows;
    double mean_log[ESP_CALIBRATION_ROWS], power_sum[ESP_CALIBRATION_ROWS];
};

/* Switches to another key: stores the current state under the old key, then loads the state of
 * `key`. If `kept` is false or the key is empty, no file is read or written. */
void esp_calibration_turn(struct esp_calibration *calibration, const char *key, bool kept);

/* Writes unsaved state to its file. If that fails, the next run learns again. */
void esp_calibration_save(struct esp_calibration *calibration);

double esp_calibration_beta(const struct esp_calibration *calibration);

/* Call this before the verifier changes the draft probabilities. Reads the probabilities q of
 * the children of the first nodes that this iteration expanded. `beta` is the value that was
 * used to compute these probabilities. */
int esp_calibration_look(struct esp_calibration *calibration, struct esp_draft *draft,
                         double beta);

/* Learns from a finished iteration. If `steps` is true, updates log_beta and the tallies. If
 * `steps` is false, because the user set a draft temperature, updates only the tallies. */
void esp_calibration_learn(struct esp_calibration *calibration, const struct esp_draft *draft,
                           const struct esp_iteration *iteration, double beta, bool steps);

/* Returns the expected calibration error: the sum over bins of |found - predicted|, divided by
 * the number of tries. Returns NaN before the first try. */
double esp_tally_error(const struct esp_tally *tally);

/* Returns the probability that a child with this q_beta is the target's first choice. */
double esp_calibration_likely(const struct esp_calibration *calibration, double q);

/* Returns the probability that draw `draw` (from 0) below a node of this confidence is
 * accepted, given that the draws before it were rejected. */
double esp_calibration_drawn(const struct esp_calibration *calibration, double confidence,
                             int draw);

/* Returns the probability that the first draw below a node is accepted, given its q_beta. */
double esp_calibration_first(const struct esp_calibration *calibration, double q);

#endif
