/* divided.c - gathers the outputs of all ranks in a pass; see divided.h. */
#include "kernels/cpu/divided.h"

static struct esp_ranks *ranks_of(const struct esp_cpu_pass *p)
{
    return ((const struct esp_cpu_backend *)p->w->base.backend)->ranks;
}

bool esp_cpu_ranks_failed(const struct esp_cpu_pass *p)
{
    return p->w->plan && ranks_of(p)->failed;
}

void esp_cpu_share_embedding(struct esp_cpu_pass *p)
{
    if (p->w->plan && !p->w->plan->by_layers)
        esp_ranks_broadcast(ranks_of(p), p->c->x,
                            (size_t)p->rows * p->c->hidden * sizeof *p->c->x);
}

static void pass_on(struct esp_cpu_pass *p, int from, int to)
{
    if (from != to)
        esp_ranks_pass_on(ranks_of(p), from, to, p->c->x,
                          (size_t)p->rows * p->c->hidden * sizeof *p->c->x);
}

bool esp_cpu_has_layer(const struct esp_cpu_pass *p)
{
    const struct esp_rank_plan *plan = p->w->plan;
    return !plan || !plan->by_layers || esp_rank_plan_owner(plan, p->layer) == p->w->rank;
}

bool esp_cpu_takes_layer(struct esp_cpu_pass *p, int *holder)
{
    if (!p->w->plan || !p->w->plan->by_layers)
        return true;
    const int owner = esp_rank_plan_owner(p->w->plan, p->layer);
    pass_on(p, *holder, owner);
    *holder = owner;
    return owner == p->w->rank;
}

void esp_cpu_show_rows(struct esp_cpu_pass *p, int holder)
{
    if (p->w->plan && p->w->plan->by_layers)
        pass_on(p, holder, 0);
}

void esp_cpu_gather_heads(struct esp_cpu_pass *p, float *rows, size_t width, int heads,
                          int count)
{
    const size_t each = (size_t)(heads / p->d->kv_heads) * (size_t)p->d->head_dim;
    if (!esp_cpu_divides(p, ESP_RANK_ATTENTION))
        return;
    const struct esp_rank_gather gather = {.rows = (char *)rows,
                                           .stride = width * sizeof *rows,
                                           .unit = each * sizeof *rows,
                                           .count = count,
                                           .begin = p->w->plan->begin[ESP_RANK_ATTENTION]};
    esp_ranks_gather(ranks_of(p), &gather);
}

/* Sets begin[r] and begin[r + 1] to the bounds of rank r's outputs, for the matrices of a kind.
 * The outputs are padded with zeros; the padding belongs to the rank with the last outputs. */
static void bounds_of(const struct esp_cpu_pass *p, enum esp_rank_kind kind, int *begin)
{
    for (int i = 0; i <= p->w->plan->ranks; i++)
        begin[i] = (int)esp_cpu_pad(p->w->plan->begin[kind][i], ESP_PANEL);
}

void esp_cpu_gather_columns(struct esp_cpu_pass *p, enum esp_rank_kind kind, float *rows,
                            size_t stride, const int32_t *which)
{
    int begin[ESP_MAX_RANKS + 1];
    if (!esp_cpu_divides(p, kind))
        return;
    bounds_of(p, kind, begin);
    const struct esp_rank_gather gather = {.rows = (char *)rows,
                                           .stride = stride * sizeof *rows,
                                           .unit = sizeof *rows,
                                           .which = which,
                                           .count = p->rows,
                                           .begin = begin};
    esp_ranks_gather(ranks_of(p), &gather);
}

struct prepare_step {
    const struct esp_cpu_pass *p;
    const struct esp_vectors *v;
};

static void prepare_row(void *arg, int row)
{
    const struct prepare_step *step = arg;
    esp_cpu_prepare(step->p, step->v, row, 0, (int)step->v->stride);
}

void esp_cpu_prepare_all(struct esp_cpu_pass *p, const struct esp_vectors *v)
{
    struct prepare_step step = {p, v};
    if (p->w->cut || p->w->split)
        esp_cpu_run_rows(p, p->rows, v->stride, prepare_row, &step);
}

void esp_cpu_gather_logits(struct esp_cpu_pass *p, float *part, size_t stride)
{
    int begin[ESP_MAX_RANKS + 1];
    if (!esp_cpu_divides(p, ESP_RANK_HEAD))
        return;
    const int room = (int)((const struct esp_cpu_rows *)p->batch->logits)->stride;
    bounds_of(p, ESP_RANK_HEAD, begin);
    for (int i = 0; i <= p->w->plan->ranks; i++)
        begin[i] = begin[i] < room ? begin[i] : room;
    const struct esp_rank_gather gather = {.rows = (char *)part,
                                           .stride = stride * sizeof *part,
                                           .unit = sizeof *part,
                                           .which = p->w->rank == 0 ? p->c->wanted_at : NULL,
                                           .count = p->wanted,
                                           .begin = begin,
                                           .to_first = true,
                                           .compact = p->w->rank > 0};
    esp_ranks_gather(ranks_of(p), &gather);
}
