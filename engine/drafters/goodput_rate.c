/* goodput_rate.c - see goodput_rate.h. */
#include "engine/drafters/goodput_rate.h"

#include <math.h>

static const double FADE = 1.0 / 32; /* fraction by which the sums decay in each iteration */

void esp_rate_read(struct esp_rate *r, const struct esp_costs *costs, int budget)
{
    r->budget = budget;
    for (int rows = 1; rows <= budget + ESP_RATE_AHEAD + 1; rows++)
        r->verify[rows] = esp_costs_verify(costs, rows);
    r->now = r->verify[1] > 0 ? 1 / r->verify[1] : 0;
    if (r->seconds > 0 && r->tokens > r->now * r->seconds)
        r->now = r->tokens / r->seconds;
}

double esp_rate_row(const struct esp_rate *r, int n)
{
    double least = INFINITY;
    for (int m = 1; m <= ESP_RATE_AHEAD; m++) {
        double each = (r->verify[n + 1 + m] - r->verify[n + 1]) / m;
        if (each < least) /* with fmin(), gcc 12.2 for ARM fails with an internal error */
            least = each;
    }
    return r->now * least;
}

void esp_rate_learn(struct esp_rate *r, int tokens, double seconds)
{
    r->tokens += tokens - FADE * r->tokens;
    r->seconds += seconds - FADE * r->seconds;
}
