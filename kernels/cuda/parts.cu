/* parts.cu - describes the part of a model that a GPU computes; see struct esp_cuda_part. */
#include "kernels/cuda/gpus.h"

#include <cstdlib>

/* Replaces a tensor by its rows for the units part.begin..part.end-1, such as outputs or heads.
 * A unit has `each` rows. */
static void take_rows(struct esp_tensor *t, struct esp_rank_part part, int each)
{
    if (t->data)
        *t = esp_tensor_slice(t, part.begin * each, (part.end - part.begin) * each);
}

static struct esp_rank_part part_of(const struct esp_cuda_part *p, enum esp_rank_kind kind)
{
    return esp_rank_plan_part(&p->plan, p->all, kind, p->rank);
}

static void divide_experts(const struct esp_cuda_part *p, struct esp_layer *layer,
                           struct esp_expert *to)
{
    const struct esp_rank_part up = part_of(p, ESP_RANK_EXPERTS),
                               down = part_of(p, ESP_RANK_DOWN);
    for (int i = 0; i < p->all->experts; i++) {
        to[i] = layer->expert[i];
        struct esp_tensor *const rows[] = {&to[i].gate, &to[i].gate_bias, &to[i].up,
                                           &to[i].up_bias};
        for (struct esp_tensor *t : rows)
            take_rows(t, up, 1);
        take_rows(&to[i].down, down, 1);
        take_rows(&to[i].down_bias, down, 1);
    }
    layer->expert = to;
}

static void divide_layer(const struct esp_cuda_part *p, struct esp_layer *l)
{
    const struct esp_model_desc *d = p->all;
    const struct esp_rank_part heads = part_of(p, ESP_RANK_ATTENTION),
                               output = part_of(p, ESP_RANK_OUTPUT),
                               up = part_of(p, ESP_RANK_MLP), down = part_of(p, ESP_RANK_DOWN);
    const int group = d->heads / d->kv_heads;
    const struct {
        struct esp_tensor *tensor;
        struct esp_rank_part part;
        int each;
    } rows[] = {{&l->query, heads, group * d->head_dim},
                {&l->query_bias, heads, group * d->head_dim},
                {&l->key, heads, d->head_dim},
                {&l->key_bias, heads, d->head_dim},
                {&l->value, heads, d->head_dim},
                {&l->value_bias, heads, d->head_dim},
                {&l->sink_logit, heads, group},
                {&l->output, output, 1},
                {&l->output_bias, output, 1},
                {&l->gate, up, 1},
                {&l->gate_bias, up, 1},
                {&l->up, up, 1},
                {&l->up_bias, up, 1},
                {&l->down, down, 1},
                {&l->down_bias, down, 1}};
    for (const auto &one : rows)
        take_rows(one.tensor, one.part, one.each);
}

struct esp_cuda_part *esp_cuda_part_open(const struct esp_rank_plan *plan, int rank,
                                         const struct esp_model_desc *desc)
{
    struct esp_cuda_part *p = (struct esp_cuda_part *)calloc(1, sizeof *p);
    if (!p)
        return NULL;
    const size_t layers = (size_t)desc->layers, experts = layers * (size_t)desc->experts;
    p->plan = *plan;
    p->rank = rank;
    p->all = desc;
    p->desc = *desc;
    p->layer = (struct esp_layer *)calloc(layers, sizeof *p->layer);
    p->expert = experts ? (struct esp_expert *)calloc(experts, sizeof *p->expert) : NULL;
    if (!p->layer || (experts && !p->expert)) {
        esp_cuda_part_close(p);
        return NULL;
    }
    for (int i = 0; i < desc->layers; i++) {
        p->layer[i] = desc->layer[i];
        divide_layer(p, &p->layer[i]);
        if (p->layer[i].router.data)
            divide_experts(p, &p->layer[i], p->expert + (size_t)i * desc->experts);
    }
    const struct esp_rank_part heads = part_of(p, ESP_RANK_ATTENTION),
                               up = part_of(p, ESP_RANK_MLP),
                               of_experts = part_of(p, ESP_RANK_EXPERTS);
    const int group = desc->heads / desc->kv_heads;
    p->desc.layer = p->layer;
    take_rows(&p->desc.head, part_of(p, ESP_RANK_HEAD), 1);
    p->desc.kv_heads = heads.end - heads.begin;
    p->desc.heads = p->desc.kv_heads * group;
    p->desc.ffn = up.end - up.begin;
    p->desc.expert_ffn = of_experts.end - of_experts.begin;
    p->desc.limit = {desc->limit.bytes / plan->ranks, desc->limit.others / plan->ranks};
    for (int k = 0; k < ESP_RANK_KIND_COUNT; k++)
        p->first[k] = (size_t)part_of(p, (enum esp_rank_kind)k).begin;
    p->first[ESP_RANK_ATTENTION] *= (size_t)group * desc->head_dim;
    return p;
}

void esp_cuda_part_close(struct esp_cuda_part *part)
{
    if (!part)
        return;
    free(part->layer);
    free(part->expert);
    free(part);
}
