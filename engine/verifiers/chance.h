/* chance.h - makes the two random decisions of a verifier.
 *
 * A verifier either tests drafts (picks one, then accepts or rejects it) or draws a token from
 * a row of probabilities. Each decision uses one number from [0, 1). In a session the numbers
 * come from the seeded generator. A test can replace the generator by its own function, which
 * gets the possible outcomes and their probabilities. The test can then run a verifier once per
 * outcome and add up exact probabilities.
 */
#ifndef ESP_CHANCE_H
#define ESP_CHANCE_H

#include "kernels/kernels.h"
#include "engine/support/rng.h"

/* The possible outcomes of a decision. They divide the interval [0, 1) in this order. If
 * `weight` is NULL, the outcomes are the tokens of a row, with probabilities in proportion to
 * the row's values. */
struct esp_odds {
    const double *weight; /* (count) the probability of each outcome, or NULL */
    int count;
    /* If the outcomes are tokens of a row: the backend of the row, the matrix that contains the
     * row, and the index of the row in it. */
    const struct esp_backend_ops *ops;
    struct esp_rows *rows;
    int row;
};

struct esp_chance {
    struct esp_rng *rng;
    double (*number)(void *user, const struct esp_odds *odds); /* if NULL, rng is used */
    void *user;
};

enum { ESP_MAX_TESTED = 64 };

/* Returns true with probability `acceptance`. Sets *u to the drawn number; the result is *u <
 * acceptance. */
bool esp_chance_accept(struct esp_chance *chance, double acceptance, double *u);

/* Picks one of `count` (1..ESP_MAX_TESTED) drafts with probabilities in proportion to share[i],
 * and accepts draft i with probability acceptance[i]. Sets *which to the picked draft. Rescales
 * the random number that picked the draft, so that it is uniform in [0, 1), and stores it in
 * *u. The draft is accepted if and only if *u < acceptance[*which]. Returns whether it is
 * accepted. */
bool esp_chance_test(struct esp_chance *chance, const double *share, const double *acceptance,
                     int count, int *which, double *u);

/* Draws a token from a row of probabilities. Sets *value to the token's probability. Returns
 * ESP_E_NUMERIC if all probabilities are 0. */
int esp_chance_draw(struct esp_chance *chance, const struct esp_backend_ops *ops,
                    struct esp_rows *rows, int row, int32_t *token, double *value, double *u);

#endif
