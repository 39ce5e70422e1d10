/* dynatree_history.h - rules by which dynatree's thresholds follow past acceptance.
 *
 *   off           they stay what they are set to.
 *   step          as in the authors' released program (cny123222/DynaTree, class
 *                 TreeSpeculativeGeneratorV2AdaptiveV3): once per generation, when at least 5
 *                 have ended. With a the mean over the last W generations of committed tokens
 *                 per round / the most that a tree of depth D0 gives, and outside of
 *                 target +- 0.1: D0 moves by 1, tauh and rhodeep by 0.05 each, within
 *                 [2, Dmax - 1], [0.5, 0.95] and [0.3, 0.8].
 *   proportional  as the paper prints it (dynatree, sec. 3.3): after every iteration, with a
 *                 the mean over the last W of path length / depth,
 *                   D0      <- clip(D0 + etaD (a - target), 1, Dmax - 1)
 *                   tauh    <- clip(tauh - etah (a - target), taul, 1)
 *                   rhodeep <- clip(rhodeep - etar (a - target), rhostop, 1)
 *                 The mean errs in one direction for as long as the target does not fit the
 *                 pair, and the thresholds run into their limits.
 *   price         ours: a layer is worth drafting if it brings more tokens than its time would
 *                 bring otherwise, and the deepest layer brings one token in every iteration
 *                 whose path reaches it. So the share of such iterations is steered to `price`:
 *                 with r = 1 if the path reached the deepest layer, else 0,
 *                   x       <- clip(x + etap (r - price), -REACH, REACH)
 *                 D0 is D0 + x, and rhostop, rhodeep and tau are divided by 2^x (Robbins and
 *                 Monro 1951). x grows only where one of these ended the tree, so nothing
 *                 winds up while Dmax, N or the end of the text does.
 */
#ifndef ESP_DYNATREE_HISTORY_H
#define ESP_DYNATREE_HISTORY_H

#include "engine/espalier.h"

enum esp_history_rule {
    ESP_HISTORY_OFF,
    ESP_HISTORY_STEP,
    ESP_HISTORY_PROPORTIONAL,
    ESP_HISTORY_PRICE,
};

enum { ESP_HISTORY_LONGEST = 1000 };

/* What is set and never moves. */
struct esp_history_plan {
    enum esp_history_rule rule;
    int window;           /* W */
    double target, price; /* of the acceptance; of a layer, in tokens */
    double step_d0, step_tauh, step_rhodeep, step_price; /* etaD, etah, etar, etap */
    double d0, tauh, rhostop, rhodeep, tau;              /* where the rules start from */
    double taul, dmax;
    bool draft_root; /* the tree starts at the draft's first guess, one layer deeper */
};

/* What moves. */
struct esp_history {
    double d0, tauh, rhostop, rhodeep, tau;
    double x;                      /* of `price` */
    double a[ESP_HISTORY_LONGEST]; /* ring of the rule's statistic */
    int count, next;
    double mean;        /* of the last W; NaN before the first */
    int tokens, rounds; /* of this generation, for `step` */
    int limit;          /* depth that the iteration allows; its drafter sets it */
};

/* What a changed plan puts back to where it starts from. */
enum { ESP_HISTORY_D0 = 1, ESP_HISTORY_TAUH = 2, ESP_HISTORY_RHODEEP = 4, ESP_HISTORY_ALL = 8 };

/* Takes the plan over; `changed`: of the values above. The others keep what they have come to,
 * as far as the plan's limits allow. */
void esp_history_start(struct esp_history *history, const struct esp_history_plan *plan,
                       unsigned changed);

/* Learns from an iteration, and from the end of a generation. */
void esp_history_learn(struct esp_history *history, const struct esp_history_plan *plan,
                       const struct esp_iteration *iteration);
void esp_history_end(struct esp_history *history, const struct esp_history_plan *plan);

#endif
