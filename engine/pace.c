/* pace.c - computes times from the lower quartile of steps with the same work; see pace.h.
 *
 * If a class has n steps and their lower quartile is m, the class adds n * m seconds to the
 * total. In plain decoding there is a single class, so the time of a step is the quartile.
 * Without interruptions the total is close to the sum of all times. The tokens of all steps are
 * counted, including the tokens of interrupted steps.
 */
#include "engine/pace.h"

#include <math.h>
#include <stdlib.h>

/* Stages other than drafting and verifying are too short to be measured separately. */
static int part_of(enum esp_stage stage)
{
    return stage == ESP_STAGE_DRAFT ? 0 : stage == ESP_STAGE_VERIFY ? 1 : 2;
}

void esp_pace_add(struct esp_pace *pace, const double seconds[ESP_STAGES], int tokens, int work)
{
    struct esp_paced *step = &pace->step[pace->next];
    *step = (struct esp_paced){.tokens = tokens, .class = (int)(2 * log2(work))};
    for (int i = 0; i < ESP_STAGES; i++)
        step->seconds[part_of(i)] += seconds[i];
    pace->next = (pace->next + 1) % pace->most;
    pace->count += pace->count < pace->most;
}

struct timed {
    double seconds;
    int class;
};

static int by_class_and_time(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->class != y->class)
        return x->class - y->class;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

static double seconds_of(const struct esp_pace *pace, int part)
{
    struct timed sorted[ESP_PACE_STEPS];
    double seconds = 0;
    for (int i = 0; i < pace->count; i++)
        sorted[i] = (struct timed){pace->step[i].seconds[part], pace->step[i].class};
    qsort(sorted, (size_t)pace->count, sizeof *sorted, by_class_and_time);
    for (int first = 0, end = 0; first < pace->count; first = end) {
        while (end < pace->count && sorted[end].class == sorted[first].class)
            end++;
        seconds += (end - first) * sorted[first + (end - first - 1) / 4].seconds;
    }
    return seconds;
}

double esp_pace_per_token(const struct esp_pace *pace)
{
    double seconds = 0, tokens = 0;
    for (int part = 0; part < ESP_PACE_PARTS; part++)
        seconds += seconds_of(pace, part);
    for (int i = 0; i < pace->count; i++)
        tokens += pace->step[i].tokens;
    return tokens > 0 ? seconds / tokens : 0;
}
