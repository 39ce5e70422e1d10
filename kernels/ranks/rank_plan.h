/* rank_plan.h - divides the rows of every matrix of a model among ranks.
 *
 * A rank computes whole outputs of a matrix: rows are divided, but never columns. So every
 * output is computed by the same operations, no matter which rank computes it. Afterwards the
 * ranks gather all outputs. A matrix can also be whole in every rank: then each rank computes
 * all outputs, and nothing is gathered.
 */
#ifndef ESP_RANK_PLAN_H
#define ESP_RANK_PLAN_H

#include "kernels/kernels.h"
#include "kernels/ranks/rank_options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Groups of matrices that are divided in the same way. X(NAME, word, what): `word` is used
 * in options, `what` in tables. */
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

/* Says which rank computes what. Rank r computes units begin[kind][r]..begin[kind][r + 1] - 1
 * of a kind. For attention, a unit is a key/value head with its queries. For the other kinds a
 * unit is an output, and all numbers in `begin` are multiples of 32, except the last number.
 * Every rank computes all units of the kinds in `whole`. */
struct esp_rank_plan {
    int ranks;
    unsigned whole; /* bit k is set if kind k is whole */
    /* True if ranks have whole layers; then every kind is whole. Rank r has layers
     * layer[r]..layer[r + 1] - 1. Rank 0 also has layer[ranks] and all later layers. */
    bool by_layers;
    int layer[ESP_MAX_RANKS + 2];
    int begin[ESP_RANK_KIND_COUNT][ESP_MAX_RANKS + 1];
};

/* Says which units of one kind of matrix a rank computes: units begin..end-1. */
struct esp_rank_part {
    int begin, end;
};

/* Returns the rank that computes a layer. */
int esp_rank_plan_owner(const struct esp_rank_plan *plan, int layer);

/* Divides a model among the ranks in the ratio of options->share. A model can be divided by
 * layers only if it has more layers than there are ranks. Rank 0 gets fewer layers, because it
 * also has the head. */
void esp_rank_plan_make(struct esp_rank_plan *plan, const struct esp_model_desc *desc,
                        const struct esp_rank_options *options);

/* Returns the units of one kind of matrix that a rank computes. A NULL plan means one rank. */
struct esp_rank_part esp_rank_plan_part(const struct esp_rank_plan *plan,
                                        const struct esp_model_desc *desc,
                                        enum esp_rank_kind kind, int rank);
static inline bool esp_rank_plan_divides(const struct esp_rank_plan *plan,
                                         enum esp_rank_kind kind)
{
    return plan && !(plan->whole >> kind & 1);
}

/* Returns whether a plan that came from another process divides this model into valid parts. */
bool esp_rank_plan_fits(const struct esp_rank_plan *plan, const struct esp_model_desc *desc);

/* Contains measured costs. The time of a pass is predicted from these costs. */
struct esp_rank_costs {
    double latency, rate; /* seconds of a small exchange; bytes per second of a large one */
    double read;          /* bytes of weights per second that a rank reads while it computes */
};

/* Predicts how many seconds a pass of `rows` rows takes, with logits for all rows. This is the
 * time to read the largest part of the weights, plus the time of all exchanges. */
double esp_rank_plan_seconds(const struct esp_rank_plan *plan,
                             const struct esp_model_desc *desc,
                             const struct esp_rank_costs *costs, int rows);

/* Holds the costs of one kind of matrix. `bytes` is the size of its weights in the whole model,
 * and `most` is the largest size that a single rank has. `gathered` is how many bytes the ranks
 * gather for one row of a pass. */
struct esp_rank_kind_cost {
    double bytes, most, gathered;
    int exchanges; /* the minimum number of exchanges in a pass */
};
struct esp_rank_kind_cost esp_rank_kind_cost(const struct esp_rank_plan *plan,
                                             const struct esp_model_desc *desc,
                                             enum esp_rank_kind kind);

/* Chooses the kinds that are whole, so that a pass of one row is as fast as possible. */
void esp_rank_plan_choose(struct esp_rank_plan *plan, const struct esp_model_desc *desc,
                          const struct esp_rank_costs *costs);

#ifdef __cplusplus
}
#endif
#endif
