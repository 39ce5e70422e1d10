/* serve.c - runs a rank other than 0. The rank carries out the orders of rank 0; see serve.h
 * and orders.h.
 *
 * The rank prints nothing to a terminal. If a pass fails, the rank ends, and the transport
 * sends the error message to rank 0.
 */
#include "kernels/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/orders.h"
#include "kernels/cpu/pass_order.h"
#include "kernels/model_desc.h"

/* An object that this rank has opened: weights or a cache. The pointer to the other kind is
 * NULL. */
struct object {
    int id; /* the number that orders use for this object */
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_desc_copy *model; /* description of the weights */
    struct esp_rank_plan *plan;  /* the division of the weights among ranks */
};

struct server {
    struct esp_cpu_backend *cpu;
    struct object *object;
    int objects;
};

bool esp_is_rank(int argc, char **argv)
{
    return argc > 0 && strcmp(argv[0], ESP_RANK_PROGRAM) == 0;
}

/* ------------------------------------------------------------------ objects */

static struct object *find(struct server *s, int id)
{
    for (int i = 0; i < s->objects; i++)
        if (s->object[i].id == id)
            return &s->object[i];
    return NULL;
}

static struct esp_weights *find_weights(struct server *s, int id)
{
    const struct object *o = id > 0 ? find(s, id) : NULL;
    return o ? o->weights : NULL;
}

static struct esp_cache *find_cache(struct server *s, int id)
{
    const struct object *o = id > 0 ? find(s, id) : NULL;
    return o ? o->cache : NULL;
}

static int add(struct server *s, const struct object *o)
{
    struct object *more = realloc(s->object, ((size_t)s->objects + 1) * sizeof *more);
    if (!more)
        return ESP_E_MEMORY;
    s->object = more;
    s->object[s->objects++] = *o;
    return ESP_OK;
}

static void close_object(struct object *o)
{
    esp_cpu_cache_drop(o->cache);
    esp_cpu_weights_drop(o->weights);
    if (o->model)
        esp_desc_copy_close(o->model);
    free(o->model);
    free(o->plan);
}

static void remove_object(struct server *s, int id)
{
    struct object *o = find(s, id);
    if (!o)
        return;
    close_object(o);
    *o = s->object[--s->objects];
}

/* ------------------------------------------------------------------ orders */

static bool tell_life(void *user, const char *what, size_t done, size_t total)
{
    struct esp_ranks *ranks = user;
    (void)what, (void)done, (void)total;
    ranks->transport->beat(ranks);
    return true;
}

/* Reads the plan and the description from an order, and stores them in the object. */
static int read_model(struct server *s, struct object *o, const struct esp_order *order,
                      const char *payload, char *err, size_t errlen)
{
    o->plan = malloc(sizeof *o->plan);
    o->model = calloc(1, sizeof *o->model);
    if (!o->plan || !o->model)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a model");
    if (order->bytes < sizeof *o->plan)
        return esp_fail(err, errlen, ESP_E_FORMAT, "the description of the model is too short");
    memcpy(o->plan, payload, sizeof *o->plan);
    int status = esp_desc_read(o->model, payload + sizeof *o->plan,
                               (size_t)order->bytes - sizeof *o->plan, err, errlen);
    if (status == ESP_OK)
        status = esp_model_desc_check(&o->model->desc, err, errlen);
    if (status == ESP_OK && (!esp_rank_plan_fits(o->plan, &o->model->desc) ||
                             o->plan->ranks != s->cpu->ranks->count))
        status = esp_fail(err, errlen, ESP_E_FORMAT, "the plan does not fit the model");
    o->model->desc.lender = find_weights(s, order->other);
    return status;
}

static int open_weights(struct server *s, const struct esp_order *order, const char *payload,
                        size_t *bytes, char *err, size_t errlen)
{
    struct object o = {.id = order->id};
    struct esp_way_times times = s->cpu->way_times;
    s->cpu->exact = order->exact != 0;
    int status = read_model(s, &o, order, payload, err, errlen);
    if (status == ESP_OK)
        status = esp_cpu_weights_load(&o.weights, &s->cpu->base, &o.model->desc, o.plan,
                                      tell_life, s->cpu->ranks, err, errlen);
    if (status == ESP_OK)
        status = esp_desc_close_files(o.model, err, errlen);
    if (status == ESP_OK && (status = add(s, &o)) < 0)
        esp_fail(err, errlen, status, "not enough memory for a model");
    if (status < 0) {
        close_object(&o);
        return status;
    }
    esp_cpu_measure_ways(o.weights, &times);
    *bytes = o.weights->bytes;
    return ESP_OK;
}

static int open_cache(struct server *s, const struct esp_order *order, size_t *bytes, char *err,
                      size_t errlen)
{
    struct object o = {.id = order->id};
    struct esp_weights *weights = find_weights(s, order->weights);
    struct esp_cache *owner = find_cache(s, order->other);
    if (!weights || (order->other > 0 && !owner))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "an order to open a cache names no loaded model");
    int status = esp_cpu_cache_make(&o.cache, weights, owner, order->rows, order->max_batch,
                                    err, errlen);
    if (status == ESP_OK && (status = add(s, &o)) < 0) {
        esp_fail(err, errlen, status, "not enough memory for a cache");
        esp_cpu_cache_drop(o.cache);
    }
    *bytes = status == ESP_OK ? o.cache->bytes : 0;
    return status;
}

/* Carries out an order that must be answered. */
static int do_and_answer(struct server *s, const struct esp_order *order, const char *payload)
{
    struct esp_answer *all = calloc((size_t)s->cpu->ranks->count, sizeof *all);
    size_t bytes = 0;
    if (!all)
        return esp_ranks_fail(s->cpu->ranks, "not enough memory for an answer");
    struct esp_answer *own = &all[s->cpu->ranks->rank];
    own->status =
        order->kind == ESP_ORDER_WEIGHTS_OPEN
            ? open_weights(s, order, payload, &bytes, own->sentence, sizeof own->sentence)
            : open_cache(s, order, &bytes, own->sentence, sizeof own->sentence);
    own->bytes = bytes;
    const int status = esp_answer_gather(s->cpu->ranks, all);
    free(all);
    return status;
}

/* Allocates memory for this rank's part of the logits, if it has too little. Returns false if
 * memory runs out. */
static bool has_room(struct esp_cpu_cache *c, int rows)
{
    const struct esp_cpu_weights *w = (const struct esp_cpu_weights *)c->base.weights;
    const size_t width = (size_t)w->head.panels * ESP_PANEL;
    if (rows <= c->part_rows)
        return true;
    esp_cpu_free(c->part_logits);
    c->part_logits = esp_cpu_alloc((size_t)rows * width + 1, sizeof *c->part_logits);
    c->part_rows = c->part_logits ? rows : 0;
    return c->part_logits != NULL;
}

static int run_pass(struct server *s, const struct esp_order *order, const char *payload)
{
    struct esp_pass_copy copy;
    struct esp_cache *cache = find_cache(s, order->id);
    if (!cache || !esp_pass_order_read(&copy, (struct esp_cpu_cache *)cache, payload,
                                       (size_t)order->bytes))
        return esp_ranks_fail(s->cpu->ranks, "an order to run a pass is damaged");
    if (!has_room((struct esp_cpu_cache *)cache, copy.wanted))
        return esp_ranks_fail(s->cpu->ranks, "not enough memory for %d rows of logits",
                              copy.wanted);
    const int status = esp_cpu_pass(cache, &copy.batch);
    if (status < 0 && !s->cpu->ranks->failed)
        return esp_ranks_fail(s->cpu->ranks, "%s",
                              *s->cpu->failure ? s->cpu->failure : esp_status_message(status));
    return status;
}

static int keep(struct server *s, const struct esp_order *order, const char *payload)
{
    struct esp_cache *cache = find_cache(s, order->id);
    const size_t count = (size_t)order->bytes / sizeof(int32_t);
    if (!cache ||
        esp_cpu_cache_keep(cache, order->first, (const void *)payload, (int)count) < 0)
        return esp_ranks_fail(s->cpu->ranks, "an order to keep rows is damaged");
    return ESP_OK;
}

static int change_states(struct server *s, const struct esp_order *order)
{
    struct esp_cache *cache = find_cache(s, order->id);
    const int status = !cache ? (int)ESP_E_ARGUMENT
                       : order->kind == ESP_ORDER_FOLD
                           ? esp_cpu_states_fold(cache, order->first, order->rows)
                       : order->kind == ESP_ORDER_STATE_SAVE
                           ? esp_cpu_states_save(cache, order->first, order->rows)
                           : esp_cpu_states_load(cache, order->first);
    return status < 0 ? esp_ranks_fail(s->cpu->ranks, "an order to change states is damaged")
                      : status;
}

static int do_order(struct server *s, const struct esp_order *order, const char *payload)
{
    switch (order->kind) {
    case ESP_ORDER_WEIGHTS_OPEN:
    case ESP_ORDER_CACHE_OPEN:
        return do_and_answer(s, order, payload);
    case ESP_ORDER_WEIGHTS_CLOSE:
    case ESP_ORDER_CACHE_CLOSE:
        remove_object(s, order->id);
        return ESP_OK;
    case ESP_ORDER_KEEP:
        return keep(s, order, payload);
    case ESP_ORDER_FOLD:
    case ESP_ORDER_STATE_SAVE:
    case ESP_ORDER_STATE_LOAD:
        return change_states(s, order);
    case ESP_ORDER_PASS:
        return run_pass(s, order, payload);
    default:
        return esp_ranks_fail(s->cpu->ranks, "order number %d is unknown", (int)order->kind);
    }
}

/* ------------------------------------------------------------------ service */

int esp_ranks_serve(struct esp_ranks *ranks)
{
    struct server s = {.objects = 0};
    struct esp_order *order = calloc(1, sizeof *order);
    struct esp_backend *backend = NULL;
    char err[ESP_RANK_SENTENCE] = "not enough memory", *payload = NULL;
    size_t room = 0;
    int status = order ? esp_backend_cpu.open(&backend, ranks->threads, err, sizeof err)
                       : (int)ESP_E_MEMORY;
    if (status < 0)
        esp_ranks_fail(ranks, "%s", err);
    s.cpu = (struct esp_cpu_backend *)backend;
    if (status == ESP_OK) {
        s.cpu->ranks = ranks;
        status = esp_cpu_greet(s.cpu, err, sizeof err);
    }
    while (status == ESP_OK &&
           (status = esp_order_receive(ranks, order, &payload, &room)) == ESP_OK &&
           order->kind != ESP_ORDER_LEAVE)
        status = do_order(&s, order, payload);
    while (s.objects > 0)
        close_object(&s.object[--s.objects]);
    free(s.object);
    free(payload);
    free(order);
    if (backend) {
        s.cpu->ranks = NULL; /* the ranks are closed elsewhere in this file */
        backend->ops->close(backend);
    }
    return status;
}

int esp_serve_rank(int argc, char **argv)
{
    struct esp_ranks *ranks = NULL;
    for (int i = 0; argc > 1 && esp_transports[i]; i++)
        if (strcmp(esp_transports[i]->name, argv[1]) == 0 && esp_transports[i]->join &&
            esp_transports[i]->join(&ranks, argc, argv) < 0)
            ranks = NULL;
    if (!ranks) {
        fprintf(stderr,
                "espalier: this program cannot be started alone; run espalier with --ranks\n");
        return 1;
    }
    const int status = esp_ranks_serve(ranks);
    esp_ranks_close(ranks);
    return status == ESP_OK ? 0 : 1;
}
