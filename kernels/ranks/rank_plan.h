/* rank_plan.h - who computes what: the rows of every matrix of a model divided among ranks.
 *
 * A rank computes whole outputs of a matrix: its rows are divided, its columns never. So every
 * number is computed by the same operations, whoever computes it. Afterwards the ranks gather
 * the outputs of all. A matrix may also be whole in every rank: then each computes all outputs,
 * and nothing has to be gathered.
 */
#ifndef ESP_RANK_PLAN_H
#define ESP_RANK_PLAN_H

#include "kernels/kernels.h"
#include "kernels/ranks/rank_options.h"

/* Matrices that are divided in the same way. X(NAME, word, what): `word` in options, `what` in
 * tables. */
#define ESP_RANK_KINDS(X)                                                                      \
    X(ATTENTION, "attention", "queries, keys, values")                                         \
    X(OUTPUT, "output", "output of attention")                                                 \
    X(MLP, "mlp", "gate, up")                                                                  \
    X(EXPERTS, "experts", "gate, up of experts")                                               \
    X(DOWN, "down", "down")                                                                    \
    X(HEAD, "head", "LM head")                                                                 \
    X(STATES, "states", "inputs of recurrent layers")                                          \
    X(GATES, "gates", "gates of recurrent layers")

enum esp_rank_kind {
#define X(name, word, what) ESP_RANK_##name,
    ESP_RANK_KINDS(X)
#undef X
        ESP_RANK_KIND_COUNT
};

const char *esp_rank_kind_word(enum esp_rank_kind kind);
const char *esp_rank_kind_name(enum esp_rank_kind kind);

/* Rank r computes begin[kind][r]..begin[kind][r + 1] - 1: key/value heads with their queries, or
 * outputs; of the latter all but the last bound are multiples of 32. A kind in `whole` belongs
 * to all ranks. */
struct esp_rank_plan {
    int ranks;
    unsigned whole; /* bit k: kind k */
    /* Or ranks have whole layers, and all kinds are whole: rank r has layer[r]..layer[r + 1] - 1,
     * and rank 0 also the last ones, from layer[ranks] on. */
    bool by_layers;
    int layer[ESP_MAX_RANKS + 2];
    int begin[ESP_RANK_KIND_COUNT][ESP_MAX_RANKS + 1];
};

/* What a rank has of a kind: begin..end-1. */
struct esp_rank_part {
    int begin, end;
};

/* The rank that has a layer. */
int esp_rank_plan_owner(const struct esp_rank_plan *plan, int layer);

/* Divides a model in the ratio of options->share. By layers, there are more of them than ranks;
 * rank 0, which has the head, gets fewer. */
void esp_rank_plan_make(struct esp_rank_plan *plan, const struct esp_model_desc *desc,
                        const struct esp_rank_options *options);

/* plan NULL: one rank. */
struct esp_rank_part esp_rank_plan_part(const struct esp_rank_plan *plan,
                                        const struct esp_model_desc *desc,
                                        enum esp_rank_kind kind, int rank);
static inline bool esp_rank_plan_divides(const struct esp_rank_plan *plan,
                                         enum esp_rank_kind kind)
{
    return plan && !(plan->whole >> kind & 1);
}

/* Does a plan that came from elsewhere divide this model into parts that exist? */
bool esp_rank_plan_fits(const struct esp_rank_plan *plan, const struct esp_model_desc *desc);

/* What a pass costs. */
struct esp_rank_costs {
    double latency, rate; /* seconds of a small exchange; bytes per second of a large one */
    double read;          /* bytes of weights per second that a rank computes with */
};

/* Seconds of a pass of so many rows, all with logits, as far as the costs tell: reading the
 * weights of the largest part, and all exchanges. */
double esp_rank_plan_seconds(const struct esp_rank_plan *plan,
                             const struct esp_model_desc *desc,
                             const struct esp_rank_costs *costs, int rows);

/* Of a kind, for a table: bytes of its weights in the whole model, the largest number of them in
 * a rank, and bytes that a row makes the ranks gather in a pass. */
struct esp_rank_kind_cost {
    double bytes, most, gathered;
    int exchanges; /* in a pass, at least */
};
struct esp_rank_kind_cost esp_rank_kind_cost(const struct esp_rank_plan *plan,
                                             const struct esp_model_desc *desc,
                                             enum esp_rank_kind kind);

/* Chooses which kinds are whole, so that a pass of one row is quickest. */
void esp_rank_plan_choose(struct esp_rank_plan *plan, const struct esp_model_desc *desc,
                          const struct esp_rank_costs *costs);

#endif
