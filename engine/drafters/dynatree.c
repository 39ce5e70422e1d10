/* dynatree.c - confidence-aware adaptive trees (dynatree, sec. 3.3 and app. D).
 *
 * With P(u) the cumulative draft probability, d(u) the depth and c(u) = max q(.|u) the
 * confidence:
 *   depth     u is expanded iff d(u) < Dmax and P(u) >= rhostop
 *             and (d(u) < D0 or P(u) >= rhodeep);
 *   breadth   it gets Bmin children if c(u) >= tauh, Bmax if c(u) < taul, else Bmid;
 *   pruning   leaves with P(u) < tau are cut before verification; N caps the tree;
 *   history   with a the mean, over the last W iterations, of accepted path length / depth:
 *               D0      <- clip(D0 + etaD (a - target), 1, Dmax - 1)
 *               tauh    <- clip(tauh - etah (a - target), taul, 1)
 *               rhodeep <- clip(rhodeep - etar (a - target), rhostop, 1)
 *
 * The paper's a is the share of drafted tokens that were committed, which side branches keep
 * low however good the guesses are: no target would fit narrow and wide trees. It names D0 and
 * tauh (sec. 3.3) and taul (app. D, line 7); the released experiments move rhodeep.
 *
 * D0 is kept as a real number and floored for use, so that its trace is smooth. The first three
 * parts can be switched off one by one (the ablation, sec. 4.5); with all off this is `fixed`
 * with D = D0 and B = Bmid.
 */
#include "drafter.h"

#include <math.h>
#include <string.h>

#include "error.h"

enum {
    D0, DMAX, BMIN, BMID, BMAX, TAUH, TAUL, RHOSTOP, RHODEEP, TAU, N, W, TARGET, ETAD, ETAH,
    ETAR, BREADTH, DEPTH, HISTORY, ROOT, CACHE,
};

enum { LONGEST_HISTORY = 1000 };

static const struct esp_param params[] = {
    [D0] = {"D0", ESP_REAL, 1, 63, 5, .help = "base depth, where the history starts from"},
    [DMAX] = {"Dmax", ESP_INT, 2, 64, 8, .help = "no node is deeper"},
    [BMIN] = {"Bmin", ESP_INT, 1, ESP_MAX_TOP, 1, .help = "children of a confident node"},
    [BMID] = {"Bmid", ESP_INT, 1, ESP_MAX_TOP, 2, .help = "children of a node in between"},
    [BMAX] = {"Bmax", ESP_INT, 1, ESP_MAX_TOP, 3, .help = "children of an unsure node"},
    [TAUH] = {"tauh", ESP_REAL, 0, 1, 0.9, .help = "confidence from which a node is confident"},
    [TAUL] = {"taul", ESP_REAL, 0, 1, 0.4, .help = "confidence below which a node is unsure"},
    [RHOSTOP] = {"rhostop", ESP_REAL, 0, 1, 0.1, .help = "paths less likely are not continued"},
    [RHODEEP] = {"rhodeep", ESP_REAL, 0, 1, 0.5, .help = "paths this likely go deeper than D0"},
    [TAU] = {"tau", ESP_REAL, 0, 1, 0.05, .help = "cut paths less likely than this"},
    [N] = {"N", ESP_INT, 1, ESP_MAX_NODES, 256, .help = "nodes at most"},
    [W] = {"W", ESP_INT, 1, LONGEST_HISTORY, 10, .help = "iterations the history looks back"},
    [TARGET] = {"target", ESP_REAL, 0, 1, 0.7, .help = "accepted path / depth to steer for"},
    [ETAD] = {"etaD", ESP_REAL, 0, 10, 0.5, .help = "step of D0"},
    [ETAH] = {"etah", ESP_REAL, 0, 1, 0.05, .help = "step of tauh"},
    [ETAR] = {"etar", ESP_REAL, 0, 1, 0.05, .help = "step of rhodeep"},
    [BREADTH] = {"breadth", ESP_FLAG, 0, 1, 1, .help = "children by confidence (off: Bmid)"},
    [DEPTH] = {"depth", ESP_FLAG, 0, 1, 1, .help = "depth by probability (off: D0)"},
    [HISTORY] = {"history", ESP_FLAG, 0, 1, 1, .help = "adapt D0, tauh and rhodeep"},
    [ROOT] = ESP_PARAM_ROOT,
    [CACHE] = ESP_PARAM_CACHE,
    {0},
};

struct state {
    double d0, tauh, rhodeep;
    double a[LONGEST_HISTORY]; /* ring of acceptance statistics */
    int count, next;
    double mean; /* of the last W; NaN before the first iteration */
};

struct policy { /* what the layer rule needs */
    const struct esp_params *params;
    const struct state *state;
};

static int check(const struct esp_params *p, char *err, size_t errlen)
{
    if (!(esp_param(p, D0) < esp_param(p, DMAX)))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "dynatree: D0 (%g) must be below Dmax (%g)", esp_param(p, D0),
                        esp_param(p, DMAX));
    if (esp_param(p, BMIN) > esp_param(p, BMID) || esp_param(p, BMID) > esp_param(p, BMAX))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "dynatree: needs Bmin <= Bmid <= Bmax, has %g, %g, %g",
                        esp_param(p, BMIN), esp_param(p, BMID), esp_param(p, BMAX));
    if (esp_param(p, TAUL) > esp_param(p, TAUH))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "dynatree: taul (%g) must not be above tauh (%g)", esp_param(p, TAUL),
                        esp_param(p, TAUH));
    if (esp_param(p, RHOSTOP) > esp_param(p, RHODEEP))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "dynatree: rhostop (%g) must not be above rhodeep (%g)",
                        esp_param(p, RHOSTOP), esp_param(p, RHODEEP));
    return ESP_OK;
}

static double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

static void init(void *memory, const struct esp_params *p, int changed)
{
    struct state *s = memory;
    if (changed < 0)
        s->mean = NAN;
    if (changed < 0 || changed == D0)
        s->d0 = esp_param(p, D0);
    if (changed < 0 || changed == TAUH)
        s->tauh = esp_param(p, TAUH);
    if (changed < 0 || changed == RHODEEP)
        s->rhodeep = esp_param(p, RHODEEP);
    s->d0 = clip(s->d0, 1, esp_param(p, DMAX) - 1);
    s->tauh = clip(s->tauh, esp_param(p, TAUL), 1);
    s->rhodeep = clip(s->rhodeep, esp_param(p, RHOSTOP), 1);
}

static bool expand(const void *memory, const struct esp_node *node, enum esp_reason *reason)
{
    const struct policy *policy = memory;
    const struct esp_params *p = policy->params;
    int depth = node->depth - (int)esp_param(p, ROOT); /* literal form: the guess has depth 0 */
    double probability = exp(node->cumulative_log_q);
    bool deep = depth >= (int)floor(policy->state->d0);
    if (esp_param(p, DEPTH) == 0) {
        *reason = ESP_REASON_DEPTH;
        return !deep;
    }
    if (depth >= (int)esp_param(p, DMAX)) {
        *reason = ESP_REASON_DEPTH;
        return false;
    }
    *reason = deep ? ESP_REASON_DEPTH : ESP_REASON_THRESHOLD;
    return probability >= esp_param(p, RHOSTOP) &&
           (!deep || probability >= policy->state->rhodeep);
}

static int breadth(const void *memory, const struct esp_node *node)
{
    const struct policy *policy = memory;
    const struct esp_params *p = policy->params;
    if (esp_param(p, BREADTH) == 0)
        return (int)esp_param(p, BMID);
    if (node->confidence >= policy->state->tauh)
        return (int)esp_param(p, BMIN);
    return (int)esp_param(p, node->confidence < esp_param(p, TAUL) ? BMAX : BMID);
}

static int draft(struct esp_draft *d)
{
    struct policy policy = {d->params, d->state};
    struct esp_layer_rule rule = {
        .policy = &policy,
        .expand = expand,
        .breadth = breadth,
        .most = (int)esp_param(d->params, BMAX),
        .budget = (int)esp_param(d->params, N),
        .log_cut = log(esp_param(d->params, TAU)),
        .draft_root = esp_param(d->params, ROOT) != 0,
    };
    return esp_draft_grow(d, &rule);
}

static void adapt(void *memory, const struct esp_params *p, const struct esp_iteration *it)
{
    struct state *s = memory;
    if (it->deepest == 0)
        return; /* nothing was drafted: nothing to learn */
    int window = (int)esp_param(p, W);
    s->a[s->next] = (double)it->path_length / it->deepest;
    s->next = (s->next + 1) % LONGEST_HISTORY;
    s->count += s->count < LONGEST_HISTORY;
    if (window > s->count)
        window = s->count;
    double sum = 0;
    for (int i = 1; i <= window; i++)
        sum += s->a[(s->next - i + LONGEST_HISTORY) % LONGEST_HISTORY];
    s->mean = sum / window;
    if (esp_param(p, HISTORY) == 0)
        return;
    double off = s->mean - esp_param(p, TARGET);
    s->d0 = clip(s->d0 + esp_param(p, ETAD) * off, 1, esp_param(p, DMAX) - 1);
    s->tauh = clip(s->tauh - esp_param(p, ETAH) * off, esp_param(p, TAUL), 1);
    s->rhodeep = clip(s->rhodeep - esp_param(p, ETAR) * off, esp_param(p, RHOSTOP), 1);
}

static int gauges(const void *memory, const struct esp_params *p, struct esp_gauge *g)
{
    const struct state *s = memory;
    g[0] = (struct esp_gauge){"tauh", .after = s->tauh, .minimum = esp_param(p, TAUL),
                              .maximum = 1};
    g[1] = (struct esp_gauge){"taul", .after = esp_param(p, TAUL), .maximum = 1};
    g[2] = (struct esp_gauge){"D0", .after = s->d0, .minimum = 1,
                              .maximum = esp_param(p, DMAX) - 1};
    g[3] = (struct esp_gauge){"rhodeep", .after = s->rhodeep, .minimum = esp_param(p, RHOSTOP),
                              .maximum = 1};
    g[4] = (struct esp_gauge){"rhostop", .after = esp_param(p, RHOSTOP), .maximum = 1};
    g[5] = (struct esp_gauge){"tau", .after = esp_param(p, TAU), .maximum = 1};
    g[6] = (struct esp_gauge){"acceptance", .after = s->mean, .maximum = 1};
    g[7] = (struct esp_gauge){"target", .after = esp_param(p, TARGET), .maximum = 1};
    return 8;
}

const struct esp_drafter_ops esp_drafter_dynatree = {
    .name = "dynatree",
    .summary = "breadth and depth follow the draft's confidence and past acceptance",
    .source = "dynatree, sec. 3.3",
    .differs = "a layer that does not fit N and leaves below tau are treated as in fixed; a is "
               "path length over depth, not over the number of drafted tokens, which side "
               "branches keep low however good the guesses; rhodeep is adapted too, and taul "
               "(app. D) is not, so that thresholds keep their order, for which tauh too stays "
               "above taul; rhostop, rhodeep, tau, W, target and the steps, for which the "
               "paper prints no values, have those of the released experiments",
    .draws = ESP_DRAW_TOPK,
    .needs_model = true,
    .params = params,
    .state_size = sizeof(struct state),
    .check = check,
    .init = init,
    .draft = draft,
    .adapt = adapt,
    .gauges = gauges,
};
