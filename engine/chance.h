/* chance.h - the two decisions that an acceptance rule leaves to chance.
 *
 * A rule either tests drafts (pick one, accept or refuse it) or draws a token from a row. Each
 * takes one number from [0, 1). In a session the numbers come from the seeded generator. A test
 * may put another source in its place: it is told which outcomes the number decides between and
 * how likely they are, so it can run a rule once for every outcome and add up exact
 * probabilities.
 */
#ifndef ESP_CHANCE_H
#define ESP_CHANCE_H

#include "kernels.h"
#include "rng.h"

/* What the next number decides: [0, 1) is divided among the outcomes in order. */
struct esp_odds {
    const double *weight; /* (count) probabilities of the outcomes; or NULL: */
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

/* True with this probability; *u is the number, below `acceptance` if so. */
bool esp_chance_accept(struct esp_chance *chance, double acceptance, double *u);

/* Picks one of `count` (1..ESP_MAX_TESTED) drafts with probabilities in proportion to share[i]
 * and accepts draft i with probability acceptance[i]. *which is the pick, *u the rest of the
 * number, uniform in [0, 1) and below its acceptance if it was accepted. */
bool esp_chance_test(struct esp_chance *chance, const double *share, const double *acceptance,
                     int count, int *which, double *u);

/* Draws a token from a row of probabilities; *value is its own. ESP_E_NUMERIC if all of them
 * are 0. */
int esp_chance_draw(struct esp_chance *chance, const struct esp_backend_ops *ops,
                    struct esp_rows *rows, int row, int32_t *token, double *value, double *u);

#endif
