/* rank_report.c - describes the plan and the costs of the ranks; see espalier_ranks.h. */
#include <math.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/espalier_ranks.h"
#include "kernels/ranks/rank_plan.h"

_Static_assert((int)ESP_RANK_KIND_COUNT <= (int)ESP_RANK_KINDS_MOST,
               "ESP_RANK_KINDS_MOST is large enough");
_Static_assert((int)ESP_MAX_RANKS == (int)ESP_RANKS_MOST, "ESP_RANKS_MOST is large enough");

static bool find_plan(const struct esp_engine *e, struct esp_rank_plan *plan,
                      struct esp_rank_costs *costs)
{
    const struct esp_backend_ops *ops = e->backend->ops;
    struct esp_rank_times times;
    char err[1];
    return ops->rank_times && ops->rank_times(e->backend, &times) &&
           ops->plan_ranks(e->backend, &e->target->desc, plan, costs, err, sizeof err) >= 0;
}

static void describe(struct esp_rank_kind_report *to, const struct esp_rank_plan *plan,
                     const struct esp_model_desc *desc, enum esp_rank_kind kind)
{
    const struct esp_rank_kind_cost cost = esp_rank_kind_cost(plan, desc, kind);
    *to = (struct esp_rank_kind_report){.word = esp_rank_kind_word(kind),
                                        .name = esp_rank_kind_name(kind),
                                        .bytes = cost.bytes,
                                        .whole = !esp_rank_plan_divides(plan, kind),
                                        .gathered = cost.gathered,
                                        .exchanges = cost.exchanges};
    for (int i = 0; i < plan->ranks; i++) {
        const struct esp_rank_part part = esp_rank_plan_part(plan, desc, kind, i);
        to->part[i] = part.end - part.begin;
    }
}

bool esp_engine_ranks(const struct esp_engine *e, struct esp_rank_report *report)
{
    struct esp_rank_plan plan;
    struct esp_rank_costs costs;
    memset(report, 0, sizeof *report);
    if (!find_plan(e, &plan, &costs))
        return false;
    report->ranks = plan.ranks;
    report->latency = costs.latency;
    report->rate = costs.rate;
    report->read = costs.read;
    report->by_layers = plan.by_layers;
    for (int i = 0; i <= plan.ranks && plan.by_layers; i++)
        report->layers[i] = plan.layer[i + 1] - plan.layer[i];
    for (int k = 0; k < ESP_RANK_KIND_COUNT; k++) {
        struct esp_rank_kind_report *to = &report->kind[report->kinds];
        describe(to, &plan, &e->target->desc, (enum esp_rank_kind)k);
        report->kinds += to->bytes > 0;
    }
    return true;
}

double esp_engine_ranks_expected(const struct esp_engine *e, int ranks, int rows)
{
    struct esp_rank_plan plan;
    struct esp_rank_costs costs;
    if (!find_plan(e, &plan, &costs))
        return 0;
    if (ranks == plan.ranks)
        return esp_rank_plan_seconds(&plan, &e->target->desc, &costs, rows);
    if (plan.by_layers && ranks > 1 && ranks >= e->target->desc.layers)
        return 0;
    const struct esp_rank_options other = {
        .ranks = ranks, .planned = true, .by_layers = plan.by_layers && ranks > 1};
    costs.latency *= log2(ranks) / log2(plan.ranks);
    esp_rank_plan_make(&plan, &e->target->desc, &other);
    if (ranks > 1)
        esp_rank_plan_choose(&plan, &e->target->desc, &costs);
    return esp_rank_plan_seconds(&plan, &e->target->desc, &costs, rows);
}

int esp_engine_set_delay(struct esp_engine *e, const char *delay, char *err, size_t errlen)
{
    const struct esp_backend_ops *ops = e->backend->ops;
    struct esp_rank_times times;
    if (!ops->rank_times || !ops->rank_times(e->backend, &times))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "a delay between ranks needs at least two ranks: give --ranks 2");
    if (!ops->set_rank_delay)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "a delay simulates a network between processes, but here the ranks are "
                        "GPUs");
    return ops->set_rank_delay(e->backend, delay) == ESP_OK
               ? (int)ESP_OK
               : esp_fail(err, errlen, ESP_E_ARGUMENT,
                          "'%.40s' is not a delay between ranks: give a time, such as 500us, "
                          "or a time and a rate, as in 10ms,1Gb/s",
                          delay);
}
