/* pace.h - seconds per token, told alike for speculation and for plain decoding.
 *
 * Now and then the machine does something else, and a pass of 2 ms takes 20. A total is made of
 * such hiccups, an order statistic has none; one divided by the other says more about the
 * machine's other work than about speculation. So both sides are told in the same way, for
 * drafting, verifying and the rest: of all steps that do as much work, the time that a quarter
 * of them keep below stands for each. (Nothing makes a step quicker than it is; on a busy
 * machine more than half of them are slower.) Work is counted in rows of the target and passes
 * of the draft, up to a factor of 1.4: an iteration with a large tree takes longer than one
 * with a small tree, and that is no hiccup.
 */
#ifndef ESP_PACE_H
#define ESP_PACE_H

#include "engine/espalier_event.h"

enum { ESP_PACE_STEPS = 256, ESP_PACE_PARTS = 3 };

struct esp_pace {
    int most; /* steps that count, the latest ones: 1..ESP_PACE_STEPS */
    int count, next;
    struct esp_paced {
        double seconds[ESP_PACE_PARTS];
        int tokens;         /* that it added to the text */
        int class;          /* of work: twice its logarithm to the base 2, rounded down */
    } step[ESP_PACE_STEPS]; /* (count) a ring */
};

/* Counts a step that did `work` >= 1 and added `tokens` to the text. */
void esp_pace_add(struct esp_pace *pace, const double seconds[ESP_STAGES], int tokens,
                  int work);

/* Seconds per token; 0 if nothing was added to a text. */
double esp_pace_per_token(const struct esp_pace *pace);

#endif
