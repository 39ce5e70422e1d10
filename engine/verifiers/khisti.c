/* khisti.c - chooses one draft, which follows a distribution r close to p, and tests this
 * draft.
 *
 * Khisti et al. 2025; delayed-tree-expansion, alg. 5: a tournament chooses one of the drafts,
 * x, such that x follows a distribution r; then speculative sampling tests x with r instead of
 * q. A distribution r can be reached with k independent drafts if and only if r(S) >= q(S)^k
 * for all sets S. Of these distributions we use one for which sum min(p, r) equals the ceiling
 * alpha* of ceiling.c; this r has a closed form.
 *
 * Construction of r. Order the tokens by ascending p/q and let P and Q be their cumulative
 * sums. F = Q^k is the cumulative distribution of the highest of k drafts. The cumulative
 * distribution G of r is a convex curve over Q that is nowhere below F. Let m be the index at
 * which F - P is largest. D_i is the largest F_j - P_j over all j <= i if i <= m, and over all
 * j >= i if i > m, but at least 0. Then G = P + D. G rises faster than P before m and slower
 * after m. So 1 - sum min(p, r) equals the total fall of D, which is max (F - P) = 1 - alpha*.
 * G is convex: where D is flat, G has the slopes p/q of P. Elsewhere, G has the slopes of
 * chords of F. The slope rises at each change.
 *
 * The tournament. Cut the order of tokens into classes. The highest class that contains a draft
 * wins, and within it the first draft. The winner's cumulative distribution is then the polygon
 * of chords of F through the cuts. Every convex G >= F is a mixture of such polygons: G is pi
 * G' + (1 - pi) (no cut), with the smallest pi for which G' >= F, so that G' touches F at some
 * point. A cut at that point is certain in G', and both sides of the cut are divided further in
 * the same way. Only the side with the highest draft matters, so computing the distribution of
 * the winner, given the drafts, takes only a few steps.
 *
 * All tokens of a ratio class (ratio.h) have the same slope. This loses a little acceptance,
 * but the verifier stays exact.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/verifiers/verifier.h"

enum { CLASSES = ESP_RATIO_CLASSES };

struct plan {
    int count;             /* number of ratio classes whose tokens q can draw */
    int16_t at[CLASSES];   /* index of a ratio class among these classes, from 1; 0: q cannot
                              draw its tokens */
    double Q[CLASSES + 1]; /* (count + 1) cumulative q; F and G are for the same classes */
    double F[CLASSES + 1], G[CLASSES + 1];
    double factor[CLASSES]; /* r(x) = factor[ratio class of x] q(x) */
};

/* Computes G = P + D and the factors of r. P: (count + 1) cumulative p over the classes. */
static void choose_distribution(struct plan *plan, const double *P)
{
    const int n = plan->count;
    int peak = 0;
    double D = 0;
    for (int i = 1; i <= n; i++)
        if (plan->F[i] - P[i] > plan->F[peak] - P[peak])
            peak = i;
    for (int i = 0; i <= peak; i++) {
        D = fmax(D, plan->F[i] - P[i]);
        plan->G[i] = P[i] + D;
    }
    D = 0;
    for (int i = n; i > peak; i--) {
        D = fmax(D, plan->F[i] - P[i]);
        plan->G[i] = P[i] + D;
    }
}

static double power(double x, int k)
{
    double y = x;
    while (--k > 0)
        y *= x;
    return y;
}

static void make_plan(struct plan *plan, const double *p_mass, const double *q_mass, int k)
{
    double P[CLASSES + 1] = {0}, p_sum = 0, q_sum = 0;
    int n = 0;
    for (int c = 0; c < CLASSES; c++) {
        p_sum += p_mass[c];
        q_sum += q_mass[c];
    }
    plan->Q[0] = plan->F[0] = 0;
    for (int c = 0; c < CLASSES; c++) {
        plan->at[c] = 0;
        if (!(q_mass[c] > 0))
            continue;
        n++;
        plan->at[c] = (int16_t)n;
        P[n] = P[n - 1] + p_mass[c] / p_sum;
        plan->Q[n] = plan->Q[n - 1] + q_mass[c] / q_sum;
    }
    plan->count = n;
    plan->Q[n] = 1;
    for (int i = 1; i <= n; i++)
        plan->F[i] = power(plan->Q[i], k);
    choose_distribution(plan, P);
    plan->G[n] = 1;
    for (int c = 0; c < CLASSES; c++) {
        int i = plan->at[c];
        plan->factor[c] = i > 0 ? fmax(plan->G[i] - plan->G[i - 1], 0) / q_mass[c] : 0;
    }
}

/* A range of classes to which the tournament has been narrowed: classes a + 1..b of the order.
 * `left` is the probability that this happens. Within these classes, G = left * (remaining
 * distribution) + (constant + slope Q). */
struct stretch {
    int a, b;
    double left, constant, slope;
};

/* Narrows the range of classes at the cuts that are certain, then finds the likeliest other
 * cut. Returns the probability of that cut, or 0 if there is none. top: class of the highest
 * draft. */
static double find_cut(const struct plan *plan, struct stretch *s, int top, int *cut)
{
    const double *Q = plan->Q, *F = plan->F;
    const int a = s->a, b = s->b;
    const double rise = (F[b] - F[a]) / (Q[b] - Q[a]);
    double most = 0;
    for (int i = a + 1; i < b; i++) {
        double chord = F[a] + rise * (Q[i] - Q[a]), room = chord - F[i];
        double below = s->left * chord - (plan->G[i] - s->constant - s->slope * Q[i]);
        if (!(room > 0) || below < most * s->left * room)
            continue;
        most = below / (s->left * room);
        *cut = i;
        if (most < 1 - 1e-13)
            continue;
        most = 1 - 1e-13; /* a value below 1 lets the loop find further certain cuts */
        if (i < top)
            s->a = i;
        else if (s->b == b)
            s->b = i;
    }
    return most;
}

/* Sets share[i] to the probability that draft i wins the tournament; the shares sum to 1.
 * class[i] is the class of draft i. */
static void tournament(const struct plan *plan, const int *class, int k, double *share)
{
    struct stretch s = {.a = 0, .b = plan->count, .left = 1};
    int top = 0;
    for (int i = 0; i < k; i++) {
        share[i] = 0;
        top = class[i] > top ? class[i] : top;
    }
    while (s.left > 0) {
        const struct stretch before = s;
        int first = -1, cut = 0;
        bool alone = true;
        for (int i = 0; i < k; i++)
            if (class[i] > s.a && class[i] <= s.b) {
                first = first < 0 ? i : first;
                alone = alone && class[i] == top;
            }
        if (first < 0) { /* all drafts have probability 0 */
            share[0] = 1;
            return;
        }
        double chance = alone ? 0 : find_cut(plan, &s, top, &cut);
        if (s.a != before.a || s.b != before.b)
            continue;
        double stop = s.left * (1 - chance);
        if (!(s.left - stop > 1e-15))
            stop = s.left;
        share[first] += stop;
        double rise = (plan->F[s.b] - plan->F[s.a]) / (plan->Q[s.b] - plan->Q[s.a]);
        s.constant += stop * (plan->F[s.a] - rise * plan->Q[s.a]);
        s.slope += stop * rise;
        s.left -= stop;
        if (cut < top)
            s.a = cut;
        else
            s.b = cut;
    }
}

/* ------------------------------------------------------------------ the verifier */

static int solve(struct esp_verify *v, const struct esp_site *site, struct esp_residual *left)
{
    double p_mass[CLASSES], q_mass[CLASSES];
    double share[ESP_MAX_TESTED], keep[ESP_MAX_TESTED], u;
    int class[ESP_MAX_TESTED], which;
    struct plan plan;
    int status = v->ops->ratio_masses(v->p, site->p_row, v->q, site->q_row, p_mass, q_mass);
    if (status < 0)
        return status;
    make_plan(&plan, p_mass, q_mass, site->count);
    for (int i = 0; i < site->count; i++) {
        double p = v->p_of[site->draws[i]], q = v->q_of[site->draws[i]];
        int ratio = esp_ratio_class(p, q);
        class[i] = plan.at[ratio];
        keep[i] = esp_keep(p, plan.factor[ratio] * q);
    }
    tournament(&plan, class, site->count, share);
    bool accepted = esp_chance_test(&v->chance, share, keep, site->count, &which, &u);
    esp_verify_record(v, site->draws[which], keep[which], u, accepted);
    if (accepted)
        return site->draws[which];
    (void)left; /* not used, because ratio_residual() writes this residual to the row of p */
    status = esp_verify_keep_end(v, site->node);
    return status < 0 ? status
                      : v->ops->ratio_residual(v->p, site->p_row, v->q, site->q_row,
                                               plan.factor, v->p, site->p_row, NULL);
}

/* ------------------------------------------------------------------ formulas for display */

static void plan_arrays(struct plan *plan, const double *p, const double *q, int n, int k)
{
    double p_mass[CLASSES] = {0}, q_mass[CLASSES] = {0};
    for (int x = 0; x < n; x++) {
        p_mass[esp_ratio_class(p[x], q[x])] += p[x];
        q_mass[esp_ratio_class(p[x], q[x])] += q[x];
    }
    make_plan(plan, p_mass, q_mass, k);
}

static double r_at(const struct plan *plan, double p, double q)
{
    return plan->factor[esp_ratio_class(p, q)] * q;
}

/* Computes a lower bound of the acceptance rate (delayed-tree-expansion, alg. 10). The bound
 * ignores the case in which a token that is drawn from the residual is one of the drafts. */
static double acceptance_rate(const double *p, const double *q, int n, int k)
{
    struct plan plan;
    double rate = 0;
    plan_arrays(&plan, p, q, n, k);
    for (int x = 0; x < n; x++)
        rate += fmin(p[x], r_at(&plan, p[x], q[x]));
    return rate;
}

/* Computes the branching probabilities (delayed-tree-expansion, alg. 15). */
static int branching(const double *p, const double *q, int n, const int32_t *children, int k,
                     double *branch)
{
    double share[ESP_MAX_TESTED], left = 0, refused = 1;
    int class[ESP_MAX_TESTED] = {0};
    struct plan plan;
    plan_arrays(&plan, p, q, n, k);
    for (int x = 0; x < n; x++)
        left += fmax(p[x] - r_at(&plan, p[x], q[x]), 0);
    for (int i = 0; i < k; i++)
        class[i] = plan.at[esp_ratio_class(p[children[i]], q[children[i]])];
    tournament(&plan, class, k, share);
    for (int i = 0; i < k; i++) {
        int32_t x = children[i];
        share[i] *= esp_keep(p[x], r_at(&plan, p[x], q[x]));
        refused -= share[i];
    }
    for (int i = 0; i < k; i++) {
        int32_t x = children[i];
        branch[i] = left > 0 ? refused * fmax(p[x] - r_at(&plan, p[x], q[x]), 0) / left : 0;
        for (int j = 0; j < k; j++)
            branch[i] += children[j] == x ? share[j] : 0;
    }
    return ESP_OK;
}

const struct esp_verifier_ops esp_verifier_khisti = {
    .name = "khisti",
    .summary = "pick a draft in a tournament, nearly as the target would, and test this draft",
    .source = "Khisti et al. 2025; delayed-tree-expansion, app. B.5",
    .differs = "the distribution of the picked draft, r, is computed in closed form, and is "
               "optimal up to the width of the classes of p/q. The paper solves a truncated "
               "linear program",
    .lossless = ESP_DRAW_IID,
    .formula = "min(1, p/r)",
    .numbers = "min(1, $p/$r)",
    .where = "r is the distribution of the winner of the tournament that picked this draft",
    .solve = solve,
    .acceptance_rate = acceptance_rate,
    .branching = branching,
};
