/* dynatree.c - confidence-aware adaptive trees (dynatree, sec. 3.3 and app. D).
 *
 * P(u) is the cumulative draft probability, d(u) the depth, c(u) = max q(.|u) the confidence.
 *   depth     u is expanded iff d(u) < Dmax and P(u) >= rhostop
 *             and (d(u) < D0 or P(u) >= rhodeep);
 *   breadth   u gets Bmin children if c(u) >= tauh, Bmax if c(u) < taul, else Bmid;
 *   pruning   nodes with P(u) < tau are cut before verification (prune=cut), or they are
 *             verified but not expanded (prune=stop); the tree has at most N nodes;
 *   history   D0 and thresholds follow past acceptance (dynatree_history.h).
 *
 * Above temperature 0 the children are drawn without replacement, so that a verifier for such
 * draws is exact. Expansion and number of children depend only on tokens that are already in
 * the tree, never on the token that is drawn next. For the same reason a drawn node is never
 * cut, whatever its probability.
 *
 * In the paper, the acceptance a is the fraction of drafted tokens that were committed. Side
 * branches keep this fraction low, however good the guesses are. Therefore no value of `target`
 * would suit both narrow and wide trees. Here, acceptance is path length / depth. The paper
 * adapts D0 and tauh (sec. 3.3) and taul (app. D, line 7); the released program also adapts
 * rhodeep.
 *
 * D0 is a real number, so that it changes smoothly; it is rounded down where it is used. Depth,
 * breadth and pruning can be switched off one by one, as in sec. 4.5. With all three switched
 * off, this drafter is `fixed` with D = D0 and B = Bmid.
 */
#include "engine/drafters/drafter.h"

#include <math.h>
#include <string.h>

#include "engine/drafters/dynatree_history.h"
#include "kernels/status.h"

enum {
    D0,
    DMAX,
    BMIN,
    BMID,
    BMAX,
    TAUH,
    TAUL,
    RHOSTOP,
    RHODEEP,
    TAU,
    N,
    W,
    TARGET,
    ETAD,
    ETAH,
    ETAR,
    ETAP,
    PRICE,
    BREADTH,
    DEPTH,
    HISTORY,
    PRUNE,
    DRAWS,
    ROOT,
    CACHE,
};

static const struct esp_param params[] = {
    [D0] = {"D0", ESP_REAL, 1, 63, 5, .help = "initial base depth; history changes it"},
    [DMAX] = {"Dmax", ESP_INT, 2, 64, 8, .help = "maximum depth"},
    [BMIN] = {"Bmin", ESP_INT, 1, ESP_MAX_TOP, 1, .help = "children of a confident node"},
    [BMID] = {"Bmid", ESP_INT, 1, ESP_MAX_TOP, 2, .help = "children of other nodes"},
    [BMAX] = {"Bmax", ESP_INT, 1, ESP_MAX_TOP, 3, .help = "children of an unsure node"},
    [TAUH] = {"tauh", ESP_REAL, 0, 1, 0.9, .help = "a node above this confidence is confident"},
    [TAUL] = {"taul", ESP_REAL, 0, 1, 0.4, .help = "a node below this confidence is unsure"},
    [RHOSTOP] = {"rhostop", ESP_REAL, 0, 1, 0.1,
                 .help = "paths less likely than this are not continued"},
    [RHODEEP] = {"rhodeep", ESP_REAL, 0, 1, 0.5,
                 .help = "paths likelier than this go deeper than D0"},
    [TAU] = {"tau", ESP_REAL, 0, 1, 0.05, .help = "cut paths less likely than this"},
    [N] = {"N", ESP_INT, 1, ESP_MAX_NODES, 256, .help = "maximum number of nodes"},
    [W] = {"W", ESP_INT, 1, ESP_HISTORY_LONGEST, 10,
           .help = "history averages acceptance over this many iterations (history=step: "
                   "generations)"},
    [TARGET] = {"target", ESP_REAL, 0, 1, 0.7,
                .help = "history=step and proportional: the acceptance to aim for"},
    [ETAD] = {"etaD", ESP_REAL, 0, 10, 0.5, .help = "history=proportional: step size of D0"},
    [ETAH] = {"etah", ESP_REAL, 0, 1, 0.05, .help = "history=proportional: step size of tauh"},
    [ETAR] = {"etar", ESP_REAL, 0, 1, 0.05,
              .help = "history=proportional: step size of rhodeep"},
    [ETAP] = {"etap", ESP_REAL, 0, 10, 0.3, .help = "history=price: step size of the depth"},
    [PRICE] = {"price", ESP_REAL, 0, 1, 0.4,
               .help = "history=price: fraction of paths that must reach the deepest layer"},
    [BREADTH] = {"breadth", ESP_FLAG, 0, 1, 1,
                 .help = "breadth follows confidence (off: Bmid)"},
    [DEPTH] = {"depth", ESP_FLAG, 0, 1, 1, .help = "depth follows probability (off: D0)"},
    [HISTORY] = {"history", ESP_CHOICE, 0, 3, ESP_HISTORY_OFF,
                 .choices = "off|step|proportional|price",
                 .help = "how thresholds follow acceptance; step: as in the released program; "
                         "proportional: as printed in the paper; price: according to "
                         "whether the deepest layer is worth its cost"},
    [PRUNE] = ESP_PARAM_PRUNE,
    [DRAWS] = ESP_PARAM_DRAWS("swor"),
    [ROOT] = ESP_PARAM_ROOT,
    [CACHE] = ESP_PARAM_CACHE,
    {0},
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

static struct esp_history_plan plan_of(const struct esp_params *p)
{
    return (struct esp_history_plan){
        .rule = (enum esp_history_rule)esp_param(p, HISTORY),
        .window = (int)esp_param(p, W),
        .target = esp_param(p, TARGET),
        .price = esp_param(p, PRICE),
        .step_d0 = esp_param(p, ETAD),
        .step_tauh = esp_param(p, ETAH),
        .step_rhodeep = esp_param(p, ETAR),
        .step_price = esp_param(p, ETAP),
        .d0 = esp_param(p, D0),
        .tauh = esp_param(p, TAUH),
        .rhostop = esp_param(p, RHOSTOP),
        .rhodeep = esp_param(p, RHODEEP),
        .tau = esp_param(p, TAU),
        .taul = esp_param(p, TAUL),
        .dmax = esp_param(p, DMAX),
        .draft_root = esp_param(p, ROOT) != 0,
    };
}

static void init(void *memory, const struct esp_params *p, int changed)
{
    const struct esp_history_plan plan = plan_of(p);
    esp_history_start(memory, &plan,
                      changed < 0 || changed == HISTORY ? ESP_HISTORY_ALL
                      : changed == D0                   ? ESP_HISTORY_D0
                      : changed == TAUH                 ? ESP_HISTORY_TAUH
                      : changed == RHODEEP              ? ESP_HISTORY_RHODEEP
                                                        : 0);
}

static bool expand(const void *drafter, const struct esp_node *node, enum esp_reason *reason)
{
    const struct esp_draft *d = drafter;
    const struct esp_history *h = d->state;
    /* root=draft follows the paper literally: the draft's first guess has depth 0. */
    const int depth = node->depth - (int)esp_param(d->params, ROOT);
    const double probability = exp(node->cumulative_log_q);
    const bool deep = depth >= (int)floor(h->d0);
    *reason = ESP_REASON_DEPTH;
    if (esp_param(d->params, DEPTH) == 0)
        return !deep;
    if (depth >= (int)esp_param(d->params, DMAX))
        return false;
    *reason = deep ? ESP_REASON_DEPTH : ESP_REASON_THRESHOLD;
    return probability >= h->rhostop && (!deep || probability >= h->rhodeep);
}

static int breadth(const void *drafter, const struct esp_node *node)
{
    const struct esp_draft *d = drafter;
    const struct esp_history *h = d->state;
    const bool unsure = node->confidence < esp_param(d->params, TAUL);
    const bool confident = node->confidence >= h->tauh;
    const bool adaptive = esp_param(d->params, BREADTH) != 0;
    return (int)esp_param(d->params, !adaptive   ? BMID
                                     : confident ? BMIN
                                     : unsure    ? BMAX
                                                 : BMID);
}

static int draft(struct esp_draft *d)
{
    struct esp_history *h = d->state;
    struct esp_layer_rule rule = {
        .drafter = d,
        .expand = expand,
        .breadth = breadth,
        .most = (int)esp_param(d->params, BMAX),
        .budget = (int)esp_param(d->params, N),
        .log_least = log(h->tau),
        .cut = esp_param(d->params, PRUNE) == ESP_PRUNE_CUT,
        .draft_root = esp_param(d->params, ROOT) != 0,
    };
    h->limit = d->max_depth;
    return esp_draft_grow(d, &rule);
}

static void adapt(struct esp_draft *d, const struct esp_iteration *it)
{
    const struct esp_history_plan plan = plan_of(d->params);
    esp_history_learn(d->state, &plan, it);
}

static void finish(struct esp_draft *d)
{
    const struct esp_history_plan plan = plan_of(d->params);
    esp_history_end(d->state, &plan);
}

static int gauges(const struct esp_draft *d, struct esp_gauge *g)
{
    const struct esp_params *p = d->params;
    const struct esp_history *h = d->state;
    const bool price = esp_param(p, HISTORY) == ESP_HISTORY_PRICE;
    const struct esp_gauge all[] = {
        {"tauh", .after = h->tauh, .minimum = esp_param(p, TAUL), .maximum = 1},
        {"taul", .after = esp_param(p, TAUL), .maximum = 1},
        {"D0", .after = h->d0, .minimum = 1, .maximum = esp_param(p, DMAX) - 1},
        {"rhodeep", .after = h->rhodeep, .minimum = price ? 0 : h->rhostop, .maximum = 1},
        {"rhostop", .after = h->rhostop, .maximum = 1},
        {"tau", .after = h->tau, .maximum = 1},
        {price ? "reached" : "acceptance", .after = h->mean, .maximum = 1},
        {price ? "price" : "target", .after = esp_param(p, price ? PRICE : TARGET),
         .maximum = 1},
    };
    memcpy(g, all, sizeof all);
    return sizeof all / sizeof *all;
}

const struct esp_drafter_ops esp_drafter_dynatree = {
    .name = "dynatree",
    .summary = "breadth and depth follow the draft's confidence and past acceptance",
    .source = "dynatree, sec. 3.3",
    .differs =
        "a layer that exceeds N is treated as in drafter fixed. Above temperature 0 children "
        "are drawn without replacement, which keeps the target's distribution (the paper only "
        "decodes greedily). history=step is the released program's rule: it changes "
        "thresholds once per generation, by fixed steps, if acceptance is outside a dead "
        "band. history=proportional is the paper's rule with three differences: acceptance "
        "is path length / depth, because side branches keep accepted / drafted tokens low; "
        "rhodeep is adapted, but taul (app. D) is not; and tauh stays above taul. The paper "
        "prints no step sizes, so the step sizes here are our own. prune=cut follows the "
        "paper's text, and prune=stop the released program. " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK | ESP_DRAW_SWOR,
    .params = params,
    .state_size = sizeof(struct esp_history),
    .check = check,
    .init = init,
    .finish = finish,
    .draft = draft,
    .adapt = adapt,
    .gauges = gauges,
};
