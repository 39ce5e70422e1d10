/* dynatree_history.c - see dynatree_history.h. */
#include "engine/drafters/dynatree_history.h"

#include <math.h>

/* Constants of the rule `step`, and the limit of |x| for the rule `price`. */
static const double DEAD_BAND = 0.1, STEP_TAUH = 0.05, STEP_RHODEEP = 0.05;
enum { LEAST_GENERATIONS = 5, STEP_D0 = 1 };
static const double REACH = 6;

static double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Sets the thresholds from the plan's starting values and x, the learned offset. */
static void apply_price(struct esp_history *h, const struct esp_history_plan *p)
{
    h->d0 = clip(p->d0 + h->x, 1, p->dmax - 1);
    h->rhostop = clip(p->rhostop * exp2(-h->x), 0, 1);
    h->rhodeep = clip(p->rhodeep * exp2(-h->x), 0, 1);
    h->tau = clip(p->tau * exp2(-h->x), 0, 1);
}

void esp_history_start(struct esp_history *h, const struct esp_history_plan *p,
                       unsigned changed)
{
    const bool all = changed & ESP_HISTORY_ALL;
    if (all) {
        *h = (struct esp_history){.mean = NAN};
        h->limit = 1 << 30;
    }
    h->rhostop = p->rhostop;
    h->tau = p->tau;
    if (all || changed & ESP_HISTORY_D0)
        h->d0 = p->d0;
    if (all || changed & ESP_HISTORY_TAUH)
        h->tauh = p->tauh;
    if (all || changed & ESP_HISTORY_RHODEEP)
        h->rhodeep = p->rhodeep;
    if (p->rule == ESP_HISTORY_PRICE)
        apply_price(h, p);
    h->d0 = clip(h->d0, 1, p->dmax - 1);
    h->tauh = clip(h->tauh, p->taul, 1);
    h->rhodeep = clip(h->rhodeep, h->rhostop, 1);
}

/* Adds a value to the ring buffer, and sets the mean over the window. */
static void note(struct esp_history *h, const struct esp_history_plan *p, double a)
{
    int window = p->window;
    h->a[h->next] = a;
    h->next = (h->next + 1) % ESP_HISTORY_LONGEST;
    h->count += h->count < ESP_HISTORY_LONGEST;
    if (window > h->count)
        window = h->count;
    double sum = 0;
    for (int i = 1; i <= window; i++)
        sum += h->a[(h->next - i + ESP_HISTORY_LONGEST) % ESP_HISTORY_LONGEST];
    h->mean = sum / window;
}

static void learn_proportional(struct esp_history *h, const struct esp_history_plan *p)
{
    const double off = h->mean - p->target;
    h->d0 = clip(h->d0 + p->step_d0 * off, 1, p->dmax - 1);
    h->tauh = clip(h->tauh - p->step_tauh * off, p->taul, 1);
    h->rhodeep = clip(h->rhodeep - p->step_rhodeep * off, p->rhostop, 1);
}

/* Returns whether one of the thresholds that x controls ended the tree at its deepest layer. */
static bool ended_by_price(const struct esp_history *h, const struct esp_history_plan *p,
                           const struct esp_iteration *it)
{
    if (it->deepest >= h->limit || it->deepest - p->draft_root >= (int)p->dmax)
        return false;
    for (int i = 0; i < it->tree.count; i++) {
        const struct esp_node *node = &it->tree.nodes[i];
        if (node->depth == it->deepest && node->verdict != ESP_CUT &&
            (node->reason == ESP_REASON_THRESHOLD || node->reason == ESP_REASON_DEPTH))
            return true;
    }
    return false;
}

static void learn_price(struct esp_history *h, const struct esp_history_plan *p,
                        const struct esp_iteration *it)
{
    const bool reached = it->path_length == it->deepest;
    if (!reached || ended_by_price(h, p, it))
        h->x = clip(h->x + p->step_price * (reached - p->price), -REACH, REACH);
    apply_price(h, p);
}

void esp_history_learn(struct esp_history *h, const struct esp_history_plan *p,
                       const struct esp_iteration *it)
{
    h->tokens += it->committed_count;
    h->rounds++;
    if (it->deepest == 0)
        return; /* nothing was drafted, so there is nothing to learn */
    if (p->rule == ESP_HISTORY_STEP)
        return; /* the rule `step` learns only at the end of a generation */
    note(h, p,
         p->rule == ESP_HISTORY_PRICE ? it->path_length == it->deepest
                                      : (double)it->path_length / it->deepest);
    if (p->rule == ESP_HISTORY_PROPORTIONAL)
        learn_proportional(h, p);
    if (p->rule == ESP_HISTORY_PRICE)
        learn_price(h, p, it);
}

/* The acceptance is the number of tokens per iteration, divided by the maximum. This maximum is
 * the initial depth, plus 1 for the bonus token, plus 1 if the tree starts at the draft's first
 * guess. The released program uses the same maximum; it calls the initial depth tree_depth. */
void esp_history_end(struct esp_history *h, const struct esp_history_plan *p)
{
    const int tokens = h->tokens, rounds = h->rounds;
    h->tokens = h->rounds = 0;
    if (p->rule != ESP_HISTORY_STEP || rounds == 0)
        return;
    note(h, p, tokens / (rounds * (floor(p->d0) + 1 + p->draft_root)));
    if (h->count < LEAST_GENERATIONS)
        return;
    const double off = h->mean - p->target;
    if (off > DEAD_BAND) {
        h->d0 = fmin(h->d0 + STEP_D0, p->dmax - 1);
        h->tauh = fmax(h->tauh - STEP_TAUH, 0.5);
        h->rhodeep = fmax(h->rhodeep - STEP_RHODEEP, 0.3);
    } else if (off < -DEAD_BAND) {
        h->d0 = fmax(h->d0 - STEP_D0, 2);
        h->tauh = fmin(h->tauh + STEP_TAUH, 0.95);
        h->rhodeep = fmin(h->rhodeep + STEP_RHODEEP, 0.8);
    }
}
