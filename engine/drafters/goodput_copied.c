/* goodput_copied.c - see goodput_copied.h. */
#include "engine/drafters/goodput_copied.h"

#include <math.h>

#include "engine/drafters/goodput_account.h"

static const double PER_TOKEN = 2; /* number of guesses for each token of the match */
/* The fraction of correct guesses that is assumed until some guesses were tested. RIGHT is for
 * temperature 0, RIGHT_DRAWN for higher temperatures. At higher temperatures, no guess is
 * verified until some guesses have been correct. */
static const double RIGHT = 0.5, RIGHT_DRAWN = 0;
static const double WORTH = 0.1; /* minimum expected gain of a tree, in tokens */

int esp_copied_find(struct esp_copied *c, const struct esp_draft *d,
                    const struct esp_rate *rate, const struct esp_copied_plan *plan)
{
    struct esp_retrieval *r = &c->retrieval;
    struct esp_guess_plan guesses = {.nodes = rate->budget,
                                     .depth = plan->depth,
                                     .factor = plan->copy ? PER_TOKEN : 0,
                                     .least = plan->free ? 0 : 0.25 * esp_rate_row(rate, 0)};
    r->prior = d->greedy ? RIGHT : RIGHT_DRAWN;
    return esp_retrieval_find(r, d, &guesses, plan->recycle);
}

/* Returns the number of guesses for which the gain minus the cost of the rows is largest, if
 * the target pass can take at most `seconds`. Sets *gain to this difference. The guesses are
 * sorted by probability, parents first. */
static int count_best(const struct esp_copied *c, const struct esp_rate *rate, double seconds,
                      double *gain)
{
    const double *verify = rate->verify;
    double sum = 0;
    int nodes = 0;
    *gain = 0;
    for (int i = 0; i < c->retrieval.count && i < rate->budget && verify[i + 2] <= seconds;
         i++) {
        sum += c->retrieval.value[i];
        const double now = sum - rate->now * (verify[i + 2] - verify[1]);
        if (now > *gain) {
            *gain = now;
            nodes = i + 1;
        }
    }
    return nodes;
}

void esp_copied_choose(struct esp_copied *c, const struct esp_rate *rate, double least)
{
    double gain;
    c->nodes = count_best(c, rate, rate->verify[1] * (1 + c->balance), &gain);
    c->used = c->nodes > 0 && gain >= fmax(least, WORTH);
    if (!c->used) /* esp_copied_learn() then computes what the best tree would have saved */
        c->nodes = count_best(c, rate, INFINITY, &gain);
}

double esp_copied_take(struct esp_copied *c, struct esp_draft *d)
{
    double expected = 1;
    for (int i = 0; i < c->nodes; i++) {
        struct esp_node *node = esp_retrieval_add(&c->retrieval, d, i);
        if (!node)
            break;
        node->value = (float)c->retrieval.value[i];
        node->reason = ESP_REASON_RETRIEVED;
        expected += c->retrieval.value[i];
    }
    d->tree->tree.nodes[0].reason = ESP_REASON_RETRIEVED;
    return expected;
}

void esp_copied_learn(struct esp_copied *c, const struct esp_rate *rate, int right,
                      double saved)
{
    /* A tree that was not verified also changes the balance: the time that it would have saved
     * is added, or the time that it would have lost is subtracted. The account therefore
     * recovers from a bad start. */
    if (c->used)
        c->balance += saved;
    else if (c->nodes > 0)
        c->balance =
            fmax(c->balance + right - rate->verify[c->nodes + 1] / rate->verify[1] + 1, 0);
    c->balance = fmin(c->balance, ESP_SAVINGS);
}
