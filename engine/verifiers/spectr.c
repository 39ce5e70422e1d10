/* spectr.c - K-SEQ: the same test for every draft, made stricter by a factor rho.
 *
 * Sun et al. 2023. Draft x is accepted with probability min(1, p(x) / (rho q(x))). Let
 * beta(rho) be the sum of min(p / rho, q). One of k drafts is accepted with probability 1 - (1
 * - beta)^k. If that is at most rho beta, no token is accepted more often than p allows. The
 * smallest such rho in [1, k] accepts most often. If no draft is accepted, the token is drawn
 * from the residual (p - gamma min(p / rho, q))+ with gamma = (1 - (1 - beta)^k) / beta
 * (delayed-tree-expansion, eqs. 6 and 7, alg. 3). A larger rho is also exact, so the search may
 * stop early if it returns the upper end of its interval.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/verifiers/verifier.h"

enum { MOST_STEPS = 60 };
static const double SAME = 1e-14; /* if 1 - beta is smaller, p equals q up to rounding */
static const double NEAR = 1e-13; /* tolerance of the search, in rho or in a probability */

struct k_seq {
    double rho, beta, gamma;
};

/* Returns 1 - (1 - beta)^k: the probability that one of k drafts is accepted. */
static double any_of(int k, double beta)
{
    return beta < 1 ? -expm1(k * log1p(-beta)) : 1;
}

/* Finds rho between 1, where too many drafts are accepted, and k, where too few are accepted.
 * Each call of beta_at(data, rho) reads the whole vocabulary, so it is important that few steps
 * are needed. A step cuts the interval where the line through its ends crosses zero. The value
 * at an end that does not move is halved from then on (the Illinois variant of regula falsi),
 * so that both ends converge. */
static int solve_rho(int k, int (*beta_at)(void *data, double rho, double *beta), void *data,
                     struct k_seq *s)
{
    double low = 1, high = k, beta, above, below;
    int status = beta_at(data, 1, &beta), stayed = 0;
    *s = (struct k_seq){1, beta, 1};
    if (status < 0 || k == 1 || !(beta > 0) || 1 - beta < SAME)
        return status;
    above = any_of(k, beta) - beta;
    status = beta_at(data, high, &s->beta);
    below = any_of(k, s->beta) - high * s->beta;
    for (int i = 0;
         i < MOST_STEPS && status == ESP_OK && below < -NEAR && high - low > NEAR * high; i++) {
        double rho = low + (high - low) * above / (above - below);
        status = beta_at(data, rho, &beta);
        double excess = any_of(k, beta) - rho * beta;
        if (excess <= 0) {
            high = rho;
            s->beta = beta;
            above *= stayed == 1 ? 0.5 : 1;
            below = excess;
            stayed = 1;
        } else {
            low = rho;
            below *= stayed == -1 ? 0.5 : 1;
            above = excess;
            stayed = -1;
        }
    }
    s->rho = high;
    s->gamma = any_of(k, s->beta) / s->beta;
    return status;
}

/* ------------------------------------------------------------------ the verifier */

struct rows {
    struct esp_verify *v;
    const struct esp_site *site;
};

static int beta_of_rows(void *data, double rho, double *beta)
{
    const struct rows *r = data;
    const struct esp_combination overlap = {.c = 1, .d = 1 / rho};
    return r->v->ops->combine(r->v->p, r->site->p_row, r->v->q, r->site->q_row, &overlap, NULL,
                              0, beta);
}

static int solve(struct esp_verify *v, const struct esp_site *site, struct esp_residual *left)
{
    struct rows rows = {v, site};
    struct k_seq s;
    int status = solve_rho(site->count, beta_of_rows, &rows, &s);
    (void)left; /* not used: this residual differs in form and is written to the row of p */
    for (int i = 0; i < site->count && status == ESP_OK; i++) {
        int draft = site->draws[i];
        if (esp_verify_accept(v, draft, esp_keep(v->p_of[draft] / s.rho, v->q_of[draft])))
            return draft;
    }
    const struct esp_combination rest = {.a = 1, .c = -s.gamma, .d = 1 / s.rho};
    if (status == ESP_OK)
        status = esp_verify_keep_end(v, site->node);
    return status < 0 ? status
                      : v->ops->combine(v->p, site->p_row, v->q, site->q_row, &rest, v->p,
                                        site->p_row, NULL);
}

/* ------------------------------------------------------------------ formulas for display */

struct arrays {
    const double *p, *q;
    int n;
};

static int beta_of_arrays(void *data, double rho, double *beta)
{
    const struct arrays *a = data;
    *beta = 0;
    for (int x = 0; x < a->n; x++)
        *beta += fmin(a->p[x] / rho, a->q[x]);
    return ESP_OK;
}

/* Returns the residual of p at a token, not normalised. */
static double left_at(const struct k_seq *s, double p, double q)
{
    return fmax(p - s->gamma * fmin(p / s->rho, q), 0);
}

static double left_sum(const struct k_seq *s, const double *p, const double *q, int n)
{
    double sum = 0;
    for (int x = 0; x < n; x++)
        sum += left_at(s, p[x], q[x]);
    return sum;
}

/* Computes the acceptance rate (delayed-tree-expansion, alg. 8). A rejected draft has the
 * distribution (q - p / rho)+ / (1 - beta). */
static double acceptance_rate(const double *p, const double *q, int n, int k)
{
    struct arrays arrays = {p, q, n};
    struct k_seq s;
    solve_rho(k, beta_of_arrays, &arrays, &s);
    double refused = 1 - any_of(k, s.beta), sum = left_sum(&s, p, q, n), rate = 1 - refused;
    for (int x = 0; x < n && sum > 0 && s.beta < 1; x++) {
        double draft = fmin(fmax(q[x] - p[x] / s.rho, 0) / (1 - s.beta), 1);
        rate += refused * left_at(&s, p[x], q[x]) / sum * (1 - pow(1 - draft, k));
    }
    return rate;
}

/* Computes the branching probabilities (delayed-tree-expansion, alg. 13). */
static int branching(const double *p, const double *q, int n, const int32_t *children, int k,
                     double *branch)
{
    struct arrays arrays = {p, q, n};
    struct k_seq s;
    double accepted[ESP_MAX_TESTED], refused = 1;
    solve_rho(k, beta_of_arrays, &arrays, &s);
    double sum = left_sum(&s, p, q, n);
    for (int i = 0; i < k; i++) {
        double keep = esp_keep(p[children[i]] / s.rho, q[children[i]]);
        accepted[i] = refused * keep;
        refused *= 1 - keep;
    }
    for (int i = 0; i < k; i++) {
        int32_t x = children[i];
        branch[i] = sum > 0 ? refused * left_at(&s, p[x], q[x]) / sum : 0;
        for (int j = 0; j < k; j++)
            if (children[j] == x)
                branch[i] += accepted[j];
    }
    return ESP_OK;
}

const struct esp_verifier_ops esp_verifier_spectr = {
    .name = "spectr",
    .summary = "test drafts in turn against p / rho, with one factor rho for all (K-SEQ)",
    .source = "Sun et al. 2023; delayed-tree-expansion, app. B.3",
    .lossless = ESP_DRAW_IID,
    .formula = "min(1, p/(rho q))",
    .numbers = "min(1, $p/($k x $q))",
    .where = "rho >= 1 is common to all drafts of the node",
    .solve = solve,
    .acceptance_rate = acceptance_rate,
    .branching = branching,
};
