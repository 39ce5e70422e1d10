/* pace.h - measures seconds per token, in the same way for speculation and plain decoding.
 *
 * Interruptions by other programs can make a pass of 2 ms take 20 ms. They raise a sum, but not
 * an order statistic. Comparing a sum with an order statistic would therefore measure the
 * interruptions. Speculation and plain decoding use the same statistic, separately for
 * drafting, verifying and all other work. Steps are grouped by work, and the lower quartile of
 * a group is used as the time of each step in it. A low quantile is best because interruptions
 * only ever make a step slower, and on a busy machine more than half of the steps are
 * interrupted. Work is the number of the target's rows plus the number of draft passes. Groups
 * span a factor of 1.4, because a large tree takes longer than a small one even without
 * interruptions.
 */
#ifndef ESP_PACE_H
#define ESP_PACE_H

#include "engine/espalier_event.h"

enum { ESP_PACE_STEPS = 256, ESP_PACE_PARTS = 3 };

struct esp_pace {
    int most; /* maximum number of steps that are stored: 1..ESP_PACE_STEPS */
    int count, next;
    struct esp_paced {
        double seconds[ESP_PACE_PARTS];
        int tokens;         /* number of tokens that the step added to the text */
        int class;          /* class of the step's work: twice log2 of the work, rounded down */
    } step[ESP_PACE_STEPS]; /* (count) ring buffer */
};

/* Records a step that did `work` >= 1 and added `tokens` to the text. */
void esp_pace_add(struct esp_pace *pace, const double seconds[ESP_STAGES], int tokens,
                  int work);

/* Returns the seconds per token; 0 if no token was added. */
double esp_pace_per_token(const struct esp_pace *pace);

#endif
