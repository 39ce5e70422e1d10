/* chance.h - the two random decisions of a verifier.
 *
 * A verifier either tests drafts (it picks one and accepts or refuses it) or draws a token from
 * a row. Each decision takes one number from [0, 1). In a session the numbers come from the
 * seeded generator. A test may replace this source by its own, which is told the possible
 * outcomes and their probabilities. So it can run a verifier once for every outcome and add up
 * exact probabilities.
 */
#ifndef ESP_CHANCE_H
#define ESP_CHANCE_H

#include "kernels/kernels.h"
#include "engine/support/rng.h"

/* The outcomes that the next number decides between. They divide [0, 1) in this order. */
struct esp_odds {
    const double *weight; /* (count) probabilities of the outcomes; NULL: the outcomes are */
    int count;
    const struct esp_backend_ops *ops; /* the tokens of this row, in proportion to its values */
    struct esp_rows *rows;
    int row;
};

struct esp_chance {
    struct esp_rng *rng;
    double (*number)(void *user, const struct esp_odds *odds); /* NULL: from rng */
    void *user;
};

enum { ESP_MAX_TESTED = 64 };

/* Returns true with probability `acceptance`. *u is the number drawn: below `acceptance` if and
 * only if the result is true. */
bool esp_chance_accept(struct esp_chance *chance, double acceptance, double *u);

/* Picks one of `count` (1..ESP_MAX_TESTED) drafts with probabilities in proportion to share[i]
 * and accepts draft i with probability acceptance[i]. *which is the draft picked. *u, what is
 * left of the number after the choice, is uniform in [0, 1) and is below acceptance[*which] if
 * and only if the draft was accepted. */
bool esp_chance_test(struct esp_chance *chance, const double *share, const double *acceptance,
                     int count, int *which, double *u);

/* Draws a token from a row of probabilities. *value is the probability of the token drawn.
 * ESP_E_NUMERIC if all probabilities are 0. */
int esp_chance_draw(struct esp_chance *chance, const struct esp_backend_ops *ops,
                    struct esp_rows *rows, int row, int32_t *token, double *value, double *u);

#endif
