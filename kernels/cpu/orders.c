/* orders.c - the CPU backend's operations on weights and caches, for rank 0 and for a program
 * without ranks. If weights are divided among ranks, these operations order the other ranks to
 * do the same. See orders.h. */
#include "kernels/cpu/orders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/batch.h"
#include "kernels/clock.h"
#include "kernels/cpu/pass_order.h"
#include "kernels/model_desc.h"

static struct esp_cpu_backend *cpu_of(const struct esp_weights *weights)
{
    return (struct esp_cpu_backend *)weights->backend;
}

static const struct esp_rank_plan *plan_of(const struct esp_weights *weights)
{
    return ((const struct esp_cpu_weights *)weights)->plan;
}

static int id_of(const struct esp_weights *weights)
{
    return weights ? ((const struct esp_cpu_weights *)weights)->id : 0;
}

static int id_of_cache(const struct esp_cache *cache)
{
    return cache ? ((const struct esp_cpu_cache *)cache)->id : 0;
}

/* If the ranks have failed, copies their error message to the backend. */
static int note_failure(struct esp_cpu_backend *cpu, int status)
{
    if (cpu->ranks && cpu->ranks->failed) {
        snprintf(cpu->failure, sizeof cpu->failure, "%.*s%s", (int)sizeof cpu->failure - 40,
                 cpu->ranks->failure, cpu->ranks->lost ? "; load the models again" : "");
        return ESP_E_DEVICE;
    }
    return status;
}

static int send(struct esp_cpu_backend *cpu, struct esp_order *order, const void *payload,
                size_t bytes)
{
    return note_failure(cpu, esp_order_send(cpu->ranks, order, payload, bytes));
}

/* Sends an order about a cache, unless the ranks that stored this cache have ended. */
static int send_about(struct esp_cache *cache, struct esp_order *order, const void *payload,
                      size_t bytes)
{
    struct esp_cpu_backend *cpu = cpu_of(cache->weights);
    if (((const struct esp_cpu_cache *)cache)->start == cpu->ranks->times.starts)
        return send(cpu, order, payload, bytes);
    snprintf(cpu->failure, sizeof cpu->failure,
             "the ranks were started again and have lost the keys and values of this text");
    return ESP_E_DEVICE;
}

/* Waits for the answers to an order. *bytes becomes the sum of the bytes in the answers. */
static int collect(struct esp_cpu_backend *cpu, size_t *bytes, char *err, size_t errlen)
{
    struct esp_answer answer[ESP_MAX_RANKS];
    memset(answer, 0, sizeof answer);
    if (note_failure(cpu, esp_answer_gather(cpu->ranks, answer)) < 0)
        return esp_fail(err, errlen, ESP_E_DEVICE, "%s", cpu->failure);
    for (int i = 1; i < cpu->ranks->count; i++) {
        *bytes += (size_t)answer[i].bytes;
        answer[i].sentence[sizeof answer[i].sentence - 1] = '\0';
        if (answer[i].status < 0)
            return esp_fail(err, errlen, answer[i].status, "rank %d of %d: %s", i,
                            cpu->ranks->count, answer[i].sentence);
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ the group of ranks */

static int check_options(const struct esp_rank_options *o, char *err, size_t errlen)
{
    double sum = 0;
    for (int i = 0; i < o->ranks && i < ESP_MAX_RANKS; i++) {
        if (!(o->share[i] >= 0) || !(o->share[i] <= 1e6))
            return esp_fail(err, errlen, ESP_E_ARGUMENT,
                            "--ranks-parts: the part of rank %d must be a number from 0 to a "
                            "million",
                            i);
        sum += o->share[i];
    }
    for (int i = 0; i < o->ranks && sum > 0; i++)
        if (o->share[i] == 0)
            return esp_fail(err, errlen, ESP_E_ARGUMENT,
                            "--ranks-parts: rank %d would get no part of the model", i);
    return ESP_OK;
}

int esp_cpu_start_ranks(struct esp_backend *backend, const struct esp_rank_options *options,
                        char *err, size_t errlen)
{
    struct esp_cpu_backend *cpu = (struct esp_cpu_backend *)backend;
    const double start = esp_clock();
    int status = check_options(options, err, errlen);
    if (status == ESP_OK)
        status = esp_ranks_open(&cpu->ranks, options, err, errlen);
    if (status < 0)
        return status;
    cpu->rank_options = *options;
    status = esp_cpu_greet(cpu, err, errlen);
    cpu->start_seconds = esp_clock() - start;
    if (status < 0)
        esp_cpu_end_ranks(cpu);
    else
        snprintf(cpu->device, sizeof cpu->device, "%s, %d ranks of %d thread%s", cpu->isa->name,
                 options->ranks, cpu->threads, cpu->threads == 1 ? "" : "s");
    return status;
}

void esp_cpu_end_ranks(struct esp_cpu_backend *cpu)
{
    struct esp_order order = {.kind = ESP_ORDER_LEAVE};
    if (cpu->ranks && !cpu->ranks->failed)
        esp_order_send(cpu->ranks, &order, NULL, 0);
    esp_ranks_close(cpu->ranks);
    cpu->ranks = NULL;
}

void esp_cpu_ask_about_ranks(struct esp_backend *backend, esp_rank_patience *patient,
                             void *user)
{
    struct esp_ranks *ranks = ((struct esp_cpu_backend *)backend)->ranks;
    if (ranks) {
        ranks->patient = patient;
        ranks->patient_user = user;
    }
}

bool esp_cpu_rank_times(const struct esp_backend *backend, struct esp_rank_times *times)
{
    const struct esp_ranks *ranks = ((const struct esp_cpu_backend *)backend)->ranks;
    if (ranks)
        *times = ranks->times;
    return ranks != NULL;
}

int esp_cpu_set_rank_delay(struct esp_backend *backend, const char *delay)
{
    return esp_ranks_set_delay(((struct esp_cpu_backend *)backend)->ranks, delay);
}

/* ------------------------------------------------------------------ plans */

int esp_cpu_plan_ranks(struct esp_backend *backend, const struct esp_model_desc *desc,
                       struct esp_rank_plan *plan, struct esp_rank_costs *costs, char *err,
                       size_t errlen)
{
    const struct esp_cpu_backend *cpu = (const struct esp_cpu_backend *)backend;
    const int widths[] = {desc->outputs,
                          desc->ffn,
                          desc->hidden,
                          desc->expert_ffn,
                          desc->heads * desc->head_dim,
                          esp_model_desc_conv_width(desc),
                          esp_model_desc_mixed_width(desc)};
    double least = cpu->read_rates[0];
    for (int i = 1; i < cpu->ranks->count; i++)
        least = cpu->read_rates[i] < least ? cpu->read_rates[i] : least;
    *costs = (struct esp_rank_costs){
        .latency = cpu->ranks->times.latency, .rate = cpu->ranks->times.rate, .read = least};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (esp_cpu_pad(widths[i], ESP_PANEL) * sizeof(float) > ESP_RANK_ROOM)
            return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                            "a matrix with %d outputs cannot be divided among ranks: the limit "
                            "is %d outputs",
                            widths[i], (int)(ESP_RANK_ROOM / sizeof(float)));
    struct esp_rank_options options = cpu->rank_options;
    if (options.by_layers && desc->layers <= options.ranks)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%d layers are too few for %d ranks: rank 0 needs the first and the "
                        "last layer",
                        desc->layers, options.ranks);
    if (options.hosts && options.share[0] == 0) /* faster machines get larger parts */
        memcpy(options.share, cpu->read_rates, sizeof options.share);
    esp_rank_plan_make(plan, desc, &options);
    if (!options.planned)
        esp_rank_plan_choose(plan, desc, costs);
    return ESP_OK;
}

/* Makes the plan for new weights. If these weights have a lender (kernels.h), their caches join
 * caches of the lender, so they use the lender's plan. */
static int make_plan(struct esp_rank_plan *plan, struct esp_backend *backend,
                     const struct esp_model_desc *desc, char *err, size_t errlen)
{
    struct esp_rank_costs costs;
    if (desc->reads != ESP_READS_TOKENS)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "a model that reads hidden states cannot be divided among ranks; leave "
                        "out --ranks");
    const int status = esp_cpu_plan_ranks(backend, desc, plan, &costs, err, errlen);
    if (status == ESP_OK && !esp_rank_plan_fits(plan, desc))
        return esp_fail(
            err, errlen, ESP_E_UNSUPPORTED,
            "a model whose recurrent layers differ in width cannot be divided among "
            "ranks; leave out --ranks");
    if (status == ESP_OK && desc->lender && plan_of(desc->lender) &&
        esp_rank_plan_fits(plan_of(desc->lender), desc))
        *plan = *plan_of(desc->lender);
    return status;
}

/* ------------------------------------------------------------------ weights */

/* Writes the plan and the description of a model for the other ranks. */
static int tell_model(struct esp_wire *wire, const struct esp_model_desc *desc,
                      const struct esp_rank_plan *plan, char *err, size_t errlen)
{
    *wire = (struct esp_wire){.bytes = NULL};
    esp_wire_write(wire, plan, sizeof *plan);
    esp_desc_write(wire, desc);
    return !wire->failed && wire->size <= ESP_ORDER_MOST
               ? (int)ESP_OK
               : esp_fail(err, errlen, ESP_E_MEMORY,
                          "not enough memory to describe the model to the ranks");
}

static int send_model(struct esp_cpu_backend *cpu, const struct esp_model_desc *desc,
                      const struct esp_wire *wire, int id, char *err, size_t errlen)
{
    struct esp_order order = {.kind = ESP_ORDER_WEIGHTS_OPEN,
                              .id = id,
                              .other = id_of(desc->lender),
                              .exact = cpu->exact};
    const int status = send(cpu, &order, wire->bytes, wire->size);
    return status < 0 ? esp_fail(err, errlen, status, "%s", cpu->failure) : status;
}

static int open_divided(struct esp_weights **weights, struct esp_backend *backend,
                        const struct esp_model_desc *desc, esp_progress *progress, void *user,
                        char *err, size_t errlen)
{
    struct esp_cpu_backend *cpu = (struct esp_cpu_backend *)backend;
    struct esp_rank_plan *plan = malloc(sizeof *plan);
    const double start = esp_clock();
    struct esp_wire wire = {.bytes = NULL};
    size_t others = 0;
    const int id = ++cpu->last_id;
    *weights = NULL;
    int status = plan ? make_plan(plan, backend, desc, err, errlen)
                      : esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a plan");
    if (status == ESP_OK)
        status = tell_model(&wire, desc, plan, err, errlen);
    if (status == ESP_OK)
        status = send_model(cpu, desc, &wire, id, err, errlen);
    if (status < 0) {
        free(wire.bytes);
        free(plan);
        return status;
    }
    status = esp_cpu_weights_load(weights, backend, desc, plan, progress, user, err, errlen);
    if (status == ESP_E_CANCELLED)
        esp_ranks_fail(cpu->ranks, "loading was cancelled");
    if (*weights)
        ((struct esp_cpu_weights *)*weights)->id = id;
    char why[512];
    const int answered = collect(cpu, &others, why, sizeof why);
    if (status == ESP_OK && answered < 0)
        status = esp_fail(err, errlen, answered, "%s", why);
    if (status < 0) {
        struct esp_order order = {.kind = ESP_ORDER_WEIGHTS_CLOSE, .id = id};
        send(cpu, &order, NULL, 0);
        esp_cpu_weights_drop(*weights);
        free(wire.bytes);
        free(plan);
        *weights = NULL;
        return status;
    }
    ((struct esp_cpu_weights *)*weights)->told = wire;
    ((struct esp_cpu_weights *)*weights)->next_divided = cpu->divided;
    cpu->divided = (struct esp_cpu_weights *)*weights;
    cpu->start_seconds += esp_clock() - start;
    return ESP_OK;
}

int esp_cpu_weights_open(struct esp_weights **weights, struct esp_backend *backend,
                         const struct esp_model_desc *desc, esp_progress *progress, void *user,
                         char *err, size_t errlen)
{
    *weights = NULL;
    const int status = esp_model_desc_check(desc, err, errlen);
    if (status < 0)
        return status;
    if (desc->divided && ((struct esp_cpu_backend *)backend)->ranks)
        return open_divided(weights, backend, desc, progress, user, err, errlen);
    return esp_cpu_weights_load(weights, backend, desc, NULL, progress, user, err, errlen);
}

void esp_cpu_weights_close(struct esp_weights *weights)
{
    if (!weights)
        return;
    struct esp_rank_plan *plan = (struct esp_rank_plan *)plan_of(weights);
    struct esp_order order = {.kind = ESP_ORDER_WEIGHTS_CLOSE, .id = id_of(weights)};
    struct esp_cpu_weights **at = &cpu_of(weights)->divided;
    while (*at && *at != (struct esp_cpu_weights *)weights)
        at = &(*at)->next_divided;
    if (*at)
        *at = (*at)->next_divided;
    if (plan)
        send(cpu_of(weights), &order, NULL, 0);
    free(((struct esp_cpu_weights *)weights)->told.bytes);
    esp_cpu_weights_drop(weights);
    free(plan);
}

/* Makes restarted ranks load their parts of all weights again, beginning with the oldest
 * weights. */
static int load_again(struct esp_cpu_backend *cpu, const struct esp_cpu_weights *w, char *err,
                      size_t errlen)
{
    size_t others = 0;
    if (!w)
        return ESP_OK;
    int status = load_again(cpu, w->next_divided, err, errlen);
    if (status == ESP_OK)
        status = send_model(cpu, w->base.desc, &w->told, w->id, err, errlen);
    return status == ESP_OK ? collect(cpu, &others, err, errlen) : status;
}

int esp_cpu_restart_ranks(struct esp_backend *backend, double most, char *why, size_t size)
{
    struct esp_cpu_backend *cpu = (struct esp_cpu_backend *)backend;
    struct esp_ranks *old = cpu->ranks;
    char err[ESP_RANK_SENTENCE];
    if (!old || !old->lost || cpu->rank_options.given || old->times.starts > 1 ||
        cpu->start_seconds > most)
        return ESP_E_DEVICE;
    int status = esp_ranks_open(&cpu->ranks, &cpu->rank_options, err, sizeof err);
    if (status == ESP_OK) {
        cpu->ranks->times.starts = old->times.starts + 1;
        status = esp_cpu_greet(cpu, err, sizeof err);
    }
    if (status == ESP_OK)
        status = load_again(cpu, cpu->divided, err, sizeof err);
    if (status < 0) {
        esp_cpu_end_ranks(cpu);
        cpu->ranks = old;
        old->lost = false; /* ranks are started again only once */
        snprintf(cpu->failure, sizeof cpu->failure,
                 "%.174s; the ranks could not be started again: %.180s", old->failure, err);
        return status;
    }
    cpu->ranks->times.seconds += old->times.seconds;
    cpu->ranks->times.bytes += old->times.bytes;
    cpu->ranks->times.exchanges += old->times.exchanges;
    cpu->ranks->patient = old->patient;
    cpu->ranks->patient_user = old->patient_user;
    cpu->ranks->delay = old->delay;
    cpu->ranks->delay_rate = old->delay_rate;
    snprintf(why, size, "%s", old->failure);
    esp_ranks_close(old);
    return ESP_OK;
}

/* ------------------------------------------------------------------ caches and passes */

static int open_cache(struct esp_cache **cache, struct esp_weights *weights,
                      struct esp_cache *owner, int rows, int max_batch, char *err,
                      size_t errlen)
{
    struct esp_cpu_backend *cpu = cpu_of(weights);
    int status = esp_cpu_cache_make(cache, weights, owner, rows, max_batch, err, errlen);
    if (status < 0 || !plan_of(weights))
        return status;
    struct esp_order order = {.kind = ESP_ORDER_CACHE_OPEN,
                              .id = ((struct esp_cpu_cache *)*cache)->id = ++cpu->last_id,
                              .weights = id_of(weights),
                              .other = id_of_cache(owner),
                              .rows = rows,
                              .max_batch = max_batch};
    size_t others = 0;
    ((struct esp_cpu_cache *)*cache)->start = cpu->ranks->times.starts;
    status = send(cpu, &order, NULL, 0);
    if (status < 0)
        esp_fail(err, errlen, status, "%s", cpu->failure);
    else
        status = collect(cpu, &others, err, errlen);
    if (status < 0) {
        esp_cpu_cache_close(*cache);
        *cache = NULL;
    }
    return status;
}

int esp_cpu_cache_open(struct esp_cache **cache, struct esp_weights *weights, int rows,
                       int max_batch, char *err, size_t errlen)
{
    return open_cache(cache, weights, NULL, rows, max_batch, err, errlen);
}

int esp_cpu_cache_join(struct esp_cache **cache, struct esp_weights *weights,
                       struct esp_cache *owner, int max_batch, char *err, size_t errlen)
{
    return open_cache(cache, weights, owner, ((struct esp_cpu_cache *)owner)->rows, max_batch,
                      err, errlen);
}

void esp_cpu_cache_close(struct esp_cache *cache)
{
    if (!cache)
        return;
    struct esp_order order = {.kind = ESP_ORDER_CACHE_CLOSE, .id = id_of_cache(cache)};
    if (plan_of(cache->weights))
        send_about(cache, &order, NULL, 0);
    esp_cpu_cache_drop(cache);
}

int esp_cpu_keep(struct esp_cache *cache, int first, const int32_t *which, int count)
{
    struct esp_order order = {.kind = ESP_ORDER_KEEP, .id = id_of_cache(cache), .first = first};
    int status = esp_cpu_cache_keep(cache, first, which, count);
    if (status == ESP_OK && count > 0 && plan_of(cache->weights))
        status = send_about(cache, &order, which, (size_t)count * sizeof *which);
    return status;
}

/* Orders the other ranks to change their states in the same way as this rank has done. */
static int send_states(struct esp_cache *cache, enum esp_order_kind kind, int first, int rows,
                       int status)
{
    struct esp_order order = {
        .kind = (int32_t)kind, .id = id_of_cache(cache), .first = first, .rows = rows};
    return status == ESP_OK && plan_of(cache->weights) ? send_about(cache, &order, NULL, 0)
                                                       : status;
}

int esp_cpu_fold(struct esp_cache *cache, int prefix, int dropped)
{
    return send_states(cache, ESP_ORDER_FOLD, prefix, dropped,
                       esp_cpu_states_fold(cache, prefix, dropped));
}

int esp_cpu_state_save(struct esp_cache *cache, int slot, int length)
{
    return send_states(cache, ESP_ORDER_STATE_SAVE, slot, length,
                       esp_cpu_states_save(cache, slot, length));
}

int esp_cpu_state_load(struct esp_cache *cache, int slot)
{
    return send_states(cache, ESP_ORDER_STATE_LOAD, slot, 0, esp_cpu_states_load(cache, slot));
}

int esp_cpu_forward(struct esp_cache *cache, const struct esp_batch *batch)
{
    struct esp_cpu_cache *c = (struct esp_cpu_cache *)cache;
    struct esp_cpu_backend *cpu = cpu_of(cache->weights);
    struct esp_order order = {.kind = ESP_ORDER_PASS, .id = c->id};
    if (!plan_of(cache->weights))
        return esp_cpu_pass(cache, batch);
    if (!esp_batch_fits(batch, cache, c->rows, c->max_batch) ||
        (c->states.layers > 0 && !esp_state_plan_fits(&c->states.plan, cache, batch)))
        return ESP_E_ARGUMENT;
    int status = send_about(cache, &order, c->order, esp_pass_order_write(c, batch));
    if (status < 0)
        return status;
    esp_ranks_pass_begins(cpu->ranks);
    status = esp_cpu_pass(cache, batch);
    esp_ranks_pass_ends(cpu->ranks);
    if (status == ESP_E_FILE) /* the other ranks still run the pass, so all ranks must end */
        esp_ranks_fail(cpu->ranks, "%s", cpu->failure);
    return note_failure(cpu, status);
}
