/* dynatree_history.h - rules that adapt dynatree's thresholds to past acceptance.
 *
 *   off           The thresholds do not change.
 *   step          As in the authors' released program (cny123222/DynaTree, class
 *                 TreeSpeculativeGeneratorV2AdaptiveV3). The thresholds change once per
 *                 generation, beginning with the 5th.
 *                 Let a = committed tokens per iteration / the maximum that a tree of depth D0
 *                 gives, averaged over the last W generations. If a is outside target +-
 *                 0.1, D0 moves by 1, and tauh and rhodeep by 0.05 each, within [2, Dmax - 1],
 *                 [0.5, 0.95] and [0.3, 0.8].
 *   proportional  As printed in the paper (dynatree, sec. 3.3). The thresholds change after
 *                 every iteration. Let
 *                 a = path length / depth, averaged over the last W iterations.
 *                   D0      <- clip(D0 + etaD (a - target), 1, Dmax - 1)
 *                   tauh    <- clip(tauh - etah (a - target), taul, 1)
 *                   rhodeep <- clip(rhodeep - etar (a - target), rhostop, 1)
 *                 If a stays above or below the target for long, the thresholds move to their
 *                 limits.
 *   price         Our own rule. A layer is worth drafting if it gains more tokens than could be
 *                 gained otherwise in the same time. The deepest layer gains one token in every
 *                 iteration whose path reaches it. So this rule moves the fraction of such
 *                 iterations towards `price` (Robbins and Monro 1951): with r = 1 if the path
 *                 reached the deepest layer, else 0,
 *                   x       <- clip(x + etap (r - price), -REACH, REACH)
 *                 D0 becomes D0 + x; rhostop, rhodeep and tau are divided by 2^x. x grows only
 *                 if one of these thresholds ended the tree. So it does not keep growing while
 *                 Dmax, N or the end of the text limits the trees.
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

/* Settings, which the rules never change. */
struct esp_history_plan {
    enum esp_history_rule rule;
    int window;           /* W */
    double target, price; /* target: acceptance to aim for; price: cost of a layer, in tokens */
    double step_d0, step_tauh, step_rhodeep, step_price; /* etaD, etah, etar, etap */
    double d0, tauh, rhostop, rhodeep, tau;              /* starting values */
    double taul, dmax;
    bool draft_root; /* true if the tree starts one layer deeper, at the draft's first guess */
};

/* State, which the rules change. */
struct esp_history {
    double d0, tauh, rhostop, rhodeep, tau;
    double x;                      /* rule `price`: how much is added to D0 */
    double a[ESP_HISTORY_LONGEST]; /* ring buffer with the last values of the rule's
                                      statistic */
    int count, next;               /* number of values in the ring buffer; index of the next
                                      value */
    double mean;                   /* mean of the last W values; NaN before the first */
    int tokens, rounds;            /* rule `step`: tokens and iterations of this generation */
    int limit;                     /* depth limit of this iteration; the drafter sets it */
};

/* Flags for the values that a changed plan resets to their starting values. */
enum { ESP_HISTORY_D0 = 1, ESP_HISTORY_TAUH = 2, ESP_HISTORY_RHODEEP = 4, ESP_HISTORY_ALL = 8 };

/* Applies a plan: resets the values in `changed` (flags above). The other values keep what was
 * learned, but are clipped to the plan's limits. */
void esp_history_start(struct esp_history *history, const struct esp_history_plan *plan,
                       unsigned changed);

/* Call esp_history_learn() after every iteration, and esp_history_end() at the end of a
 * generation. */
void esp_history_learn(struct esp_history *history, const struct esp_history_plan *plan,
                       const struct esp_iteration *iteration);
void esp_history_end(struct esp_history *history, const struct esp_history_plan *plan);

#endif
