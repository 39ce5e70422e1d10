/* rank_plan.c - see rank_plan.h. */
#include "kernels/ranks/rank_plan.h"

#include <math.h>
#include <string.h>

#include "kernels/model_desc.h"

enum { PANEL = 32 }; /* a product computes this many outputs together (ESP_PANEL) */

const char *esp_rank_kind_word(enum esp_rank_kind kind)
{
    static const char *const words[] = {
#define X(name, word, what) word,
        ESP_RANK_KINDS(X)
#undef X
    };
    return words[kind];
}

const char *esp_rank_kind_name(enum esp_rank_kind kind)
{
    static const char *const names[] = {
#define X(name, word, what) what,
        ESP_RANK_KINDS(X)
#undef X
    };
    return names[kind];
}

/* ------------------------------------------------------------------ parts */

/* Returns how many units of a kind the model has: key/value heads, or outputs. */
static int total_of(const struct esp_model_desc *d, enum esp_rank_kind kind)
{
    switch (kind) {
    case ESP_RANK_ATTENTION:
        return d->kv_heads;
    case ESP_RANK_MLP:
        return d->ffn;
    case ESP_RANK_EXPERTS:
        return d->experts > 0 ? d->expert_ffn : 0;
    case ESP_RANK_HEAD:
        return d->outputs;
    case ESP_RANK_STATES:
        return esp_model_desc_conv_width(d);
    case ESP_RANK_GATES:
        return esp_model_desc_mixed_width(d);
    default:
        return d->hidden;
    }
}

static double share_of(const struct esp_rank_options *o, int ranks, int rank)
{
    double sum = 0;
    for (int i = 0; i < ranks; i++)
        sum += o->share[i];
    return sum > 0 ? o->share[rank] / sum : 1.0 / ranks;
}

/* Divides `total` heads or outputs among the ranks, in pieces of `piece`. */
static void divide(int *begin, int total, int piece, const struct esp_rank_options *o,
                   int ranks)
{
    const int pieces = (total + piece - 1) / piece;
    double until = 0;
    begin[0] = 0;
    for (int i = 0; i < ranks; i++) {
        until += share_of(o, ranks, i);
        const int bound = (int)lround(until * pieces);
        begin[i + 1] = i == ranks - 1 || bound >= pieces ? total : bound * piece;
    }
}

static double bytes_of(const struct esp_tensor *t)
{
    return t->data ? (double)t->rows * (double)esp_dtype_row_bytes(t->dtype, t->columns) : 0;
}

/* Returns how many bytes of weights of this kind a pass of one row reads in a layer. Of the
 * experts, only those that one row uses are included. */
static double layer_bytes(const struct esp_model_desc *d, const struct esp_layer *l,
                          enum esp_rank_kind kind)
{
    const struct esp_expert *e = l->expert;
    switch (kind) {
    case ESP_RANK_ATTENTION:
        return bytes_of(&l->query) + bytes_of(&l->key) + bytes_of(&l->value);
    case ESP_RANK_OUTPUT:
        return bytes_of(&l->output) + bytes_of(&l->mixed);
    case ESP_RANK_MLP:
        return bytes_of(&l->gate) + bytes_of(&l->up);
    case ESP_RANK_EXPERTS:
        return e ? d->experts_used * (bytes_of(&e->gate) + bytes_of(&e->up)) : 0;
    case ESP_RANK_DOWN:
        return bytes_of(&l->down) + (e ? d->experts_used * bytes_of(&e->down) : 0);
    case ESP_RANK_STATES:
        return bytes_of(&l->conv_in) + bytes_of(&l->in_gate);
    case ESP_RANK_GATES:
        return bytes_of(&l->out_gate);
    default:
        return 0;
    }
}

int esp_rank_plan_owner(const struct esp_rank_plan *plan, int layer)
{
    int part = 0;
    while (layer >= plan->layer[part + 1])
        part++;
    return part < plan->ranks ? part : 0;
}

/* Returns how many layers take as much time as the head. */
static double head_in_layers(const struct esp_model_desc *d)
{
    double layer = 0;
    for (int k = 0; k < ESP_RANK_KIND_COUNT; k++)
        layer += layer_bytes(d, &d->layer[0], (enum esp_rank_kind)k);
    return layer > 0 ? bytes_of(&d->head) / layer : 0;
}

static int within(int value, int least, int most)
{
    return value > most ? most : value < least ? least : value;
}

/* Gives every rank at least one layer, and rank 0 at least the first and the last layer. */
static void divide_layers(struct esp_rank_plan *plan, const struct esp_model_desc *d,
                          const struct esp_rank_options *o)
{
    const int others = o->ranks - 1;
    const double rest = 1 - share_of(o, o->ranks, 0), all = d->layers + head_in_layers(d);
    const int theirs = within((int)lround(rest * all), others, d->layers - 2);
    const int first = (d->layers - theirs + 1) / 2;
    double until = 0;
    plan->layer[0] = 0;
    plan->layer[1] = first;
    for (int i = 1; i <= others; i++) {
        until += share_of(o, o->ranks, i) / rest;
        plan->layer[i + 1] = within(first + (int)lround(until * theirs), plan->layer[i] + 1,
                                    first + theirs - (others - i));
    }
    plan->layer[o->ranks + 1] = d->layers;
    plan->by_layers = true;
    plan->whole = (1u << ESP_RANK_KIND_COUNT) - 1;
}

void esp_rank_plan_make(struct esp_rank_plan *plan, const struct esp_model_desc *desc,
                        const struct esp_rank_options *o)
{
    memset(plan, 0, sizeof *plan);
    plan->ranks = o->ranks;
    plan->whole = o->planned ? o->whole : 0;
    for (int k = 0; k < ESP_RANK_KIND_COUNT; k++)
        divide(plan->begin[k], total_of(desc, (enum esp_rank_kind)k),
               k == ESP_RANK_ATTENTION ? 1 : PANEL, o, o->ranks);
    if (o->by_layers)
        divide_layers(plan, desc, o);
}

struct esp_rank_part esp_rank_plan_part(const struct esp_rank_plan *plan,
                                        const struct esp_model_desc *desc,
                                        enum esp_rank_kind kind, int rank)
{
    if (!esp_rank_plan_divides(plan, kind))
        return (struct esp_rank_part){0, total_of(desc, kind)};
    return (struct esp_rank_part){plan->begin[kind][rank], plan->begin[kind][rank + 1]};
}

static bool bounds_fit(const int *begin, int ranks, int total, int piece)
{
    bool fit = begin[0] == 0 && begin[ranks] == total;
    for (int i = 0; i < ranks; i++)
        fit = fit && begin[i] <= begin[i + 1] && (begin[i] % piece == 0 || begin[i] == total);
    return fit;
}

/* Returns whether all recurrent layers are as wide as the widest one. A plan requires this. */
static bool widths_fit(const struct esp_model_desc *d)
{
    bool fit = true;
    for (int i = 0; i < d->layers; i++) {
        const enum esp_mixer mixer = d->layer[i].mixer;
        fit = fit && (!esp_recurs(mixer) ||
                      (esp_conv_width(d, mixer) == esp_model_desc_conv_width(d) &&
                       esp_mixed_width(d, mixer) == esp_model_desc_mixed_width(d)));
    }
    return fit;
}

bool esp_rank_plan_fits(const struct esp_rank_plan *plan, const struct esp_model_desc *desc)
{
    bool fits = plan->ranks >= 2 && plan->ranks <= ESP_MAX_RANKS && widths_fit(desc);
    for (int k = 0; k < ESP_RANK_KIND_COUNT && fits; k++)
        fits = bounds_fit(plan->begin[k], plan->ranks, total_of(desc, (enum esp_rank_kind)k),
                          k == ESP_RANK_ATTENTION ? 1 : PANEL);
    if (!fits || !plan->by_layers)
        return fits;
    for (int i = 0; i <= plan->ranks; i++)
        fits = fits && plan->layer[i] <= plan->layer[i + 1];
    return fits && plan->layer[0] == 0 && plan->layer[1] > 0 &&
           plan->layer[plan->ranks] < desc->layers &&
           plan->layer[plan->ranks + 1] == desc->layers &&
           plan->whole == (1u << ESP_RANK_KIND_COUNT) - 1;
}

/* ------------------------------------------------------------------ costs */

/* Returns how many values of a row the ranks gather for the matrices of a kind in a layer.
 * *exchanges becomes the number of exchanges that this needs. */
static double layer_numbers(const struct esp_model_desc *d, const struct esp_layer *l,
                            enum esp_rank_kind kind, int *exchanges)
{
    const bool mixture = l->expert != NULL, recurrent = esp_recurs(l->mixer);
    const bool attends = l->mixer == ESP_MIXER_ATTENTION;
    *exchanges = 1;
    switch (kind) {
    case ESP_RANK_ATTENTION:
        *exchanges = attends;
        return attends ? (double)d->heads * d->head_dim : 0;
    case ESP_RANK_MLP:
        *exchanges = l->up.data != NULL;
        return l->up.data ? d->ffn : 0;
    case ESP_RANK_STATES:
        *exchanges = recurrent ? 1 + (l->in_gate.data != NULL) : 0;
        return (double)*exchanges * total_of(d, kind);
    case ESP_RANK_GATES:
        *exchanges = recurrent;
        return recurrent ? total_of(d, kind) : 0;
    case ESP_RANK_EXPERTS:
        *exchanges = mixture ? d->experts_used : 0;
        return mixture ? (double)d->experts_used * d->expert_ffn : 0;
    case ESP_RANK_HEAD:
        *exchanges = 0;
        return 0;
    case ESP_RANK_OUTPUT:
        *exchanges = attends || recurrent;
        return attends || recurrent ? d->hidden : 0;
    default: /* ESP_RANK_DOWN */
        *exchanges = esp_layer_has_mlp(l);
        return esp_layer_has_mlp(l) ? d->hidden : 0;
    }
}

/* Returns the largest part of this kind of matrix that a rank has, as a fraction of the whole.
 */
static double largest_part(const struct esp_rank_plan *plan, const struct esp_model_desc *d,
                           enum esp_rank_kind kind)
{
    const int total = total_of(d, kind);
    int most = 0;
    for (int i = 0; i < plan->ranks; i++) {
        const struct esp_rank_part part = esp_rank_plan_part(plan, d, kind, i);
        most = part.end - part.begin > most ? part.end - part.begin : most;
    }
    return total > 0 ? (double)most / total : 0;
}

struct esp_rank_kind_cost esp_rank_kind_cost(const struct esp_rank_plan *plan,
                                             const struct esp_model_desc *d,
                                             enum esp_rank_kind kind)
{
    struct esp_rank_kind_cost cost = {0, 0, 0, 0};
    const bool divided = esp_rank_plan_divides(plan, kind);
    for (int i = 0; i < d->layers; i++) {
        int exchanges;
        const double numbers = layer_numbers(d, &d->layer[i], kind, &exchanges);
        cost.bytes += layer_bytes(d, &d->layer[i], kind);
        cost.gathered += divided ? numbers * sizeof(float) : 0;
        cost.exchanges += divided ? exchanges : 0;
    }
    if (kind == ESP_RANK_HEAD) {
        cost.bytes = bytes_of(&d->head);
        cost.gathered = divided ? (double)d->outputs * sizeof(float) : 0;
        cost.exchanges = divided;
    }
    cost.most = cost.bytes * largest_part(plan, d, kind);
    return cost;
}

static double kind_seconds(const struct esp_rank_plan *plan, const struct esp_model_desc *d,
                           const struct esp_rank_costs *costs, enum esp_rank_kind kind,
                           int rows)
{
    const struct esp_rank_kind_cost c = esp_rank_kind_cost(plan, d, kind);
    const double foreign = (double)(plan->ranks - 1) / plan->ranks;
    return c.most / costs->read + c.exchanges * costs->latency +
           c.gathered * rows * foreign / costs->rate;
}

double esp_rank_plan_seconds(const struct esp_rank_plan *plan, const struct esp_model_desc *d,
                             const struct esp_rank_costs *costs, int rows)
{
    double seconds = 2 * costs->latency; /* to send the order and the embedding */
    if (plan->by_layers)                 /* the rows travel from rank to rank and back */
        seconds += plan->ranks *
                   (costs->latency + (double)rows * d->hidden * sizeof(float) / costs->rate);
    for (int k = 0; k < ESP_RANK_KIND_COUNT; k++)
        seconds += kind_seconds(plan, d, costs, (enum esp_rank_kind)k, rows);
    return seconds;
}

/* The total cost is the sum of the costs of all kinds, which do not depend on each other. So
 * this function decides for each kind separately whether it is whole. */
void esp_rank_plan_choose(struct esp_rank_plan *plan, const struct esp_model_desc *d,
                          const struct esp_rank_costs *costs)
{
    for (int k = 0; k < ESP_RANK_KIND_COUNT && !plan->by_layers; k++) {
        struct esp_rank_plan whole = *plan;
        whole.whole |= 1u << k;
        if (kind_seconds(&whole, d, costs, (enum esp_rank_kind)k, 1) <
            kind_seconds(plan, d, costs, (enum esp_rank_kind)k, 1))
            plan->whole = whole.whole;
    }
}
