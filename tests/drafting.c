/* drafting.c - see drafting.h. */
#include "tests/drafting.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"

static void prompt(struct drafting *d)
{
    const int32_t tokens[DRAFTING_PROMPT] = {1, 0, 1};
    CHECK(esp_session_prompt(d->session, tokens, DRAFTING_PROMPT, d->err, sizeof d->err) == 0,
          "%s", d->err);
    esp_session_allow(d->session, DRAFTING_ALLOWED);
}

void drafting_open(struct drafting *d, const struct drafting_setup *s)
{
    memset(d, 0, sizeof *d);
    toy_open(&d->toy, s->vocabulary ? s->vocabulary : 12, s->context ? s->context : 256,
             s->max_nodes ? s->max_nodes : 64, s->toy_seed ? s->toy_seed : 1);
    d->ops = s->waits ? toy_backend_that_waits() : toy_backend;
    d->toy.engine.backend->ops = &d->ops;
    d->toy.sharpness = s->sharpness > 0 ? s->sharpness : 2;
    struct esp_session_options options = {.drafter = s->drafter,
                                          .values.temperature = s->temperature,
                                          .values.top_k = s->top_k,
                                          .values.seed = s->seed,
                                          .observer = s->observer,
                                          .user = d};
    esp_value_parse(&options.values, ESP_VALUE_OF_draft_temp, "draft_temp",
                    s->draft_temp ? s->draft_temp : "off", NULL, 0);
    CHECK(esp_session_open(&d->session, &d->toy.engine, &options, d->err, sizeof d->err) == 0,
          "%s: %s", s->drafter, d->err);
    d->tree = &d->session->tree.tree;
    prompt(d);
}

void drafting_close(struct drafting *d)
{
    esp_session_close(d->session);
    toy_close(&d->toy);
}

bool drafting_step(struct drafting *d)
{
    int status = esp_session_step(d->session, d->err, sizeof d->err);
    CHECK(status >= 0, "%s", d->err);
    return status > 0;
}

void drafting_restart(struct drafting *d, unsigned long long seed)
{
    char value[32];
    snprintf(value, sizeof value, "%llu", seed);
    drafting_set(d, "seed", value);
    esp_session_clear(d->session);
    prompt(d);
}

void drafting_set(struct drafting *d, const char *key, const char *value)
{
    CHECK(esp_session_set(d->session, key, value, d->err, sizeof d->err) == 0, "%s=%s: %s", key,
          value, d->err);
}

double drafting_gauge(const struct drafting *d, const char *name, bool before)
{
    const struct esp_iteration *it = &d->session->iteration;
    for (int i = 0; i < it->gauge_count; i++)
        if (strcmp(it->gauges[i].name, name) == 0)
            return before ? it->gauges[i].before : it->gauges[i].after;
    check_fail(__FILE__, __LINE__, " there is no gauge %s", name);
}

void drafting_q_after(const struct drafting *d, const int32_t *more, int count, double *q)
{
    int32_t context[1024];
    int length = d->session->iteration.position;
    memcpy(context, d->session->text, (size_t)length * sizeof *context);
    memcpy(context + length, more, (size_t)count * sizeof *context);
    toy_distribution(&d->toy, true, context, length + count, q);
}

void drafting_q(const struct drafting *d, int node, double *q)
{
    int32_t path[128];
    int depth = d->tree->nodes[node].depth;
    for (; node > 0; node = d->tree->nodes[node].parent)
        path[d->tree->nodes[node].depth - 1] = d->tree->nodes[node].token;
    drafting_q_after(d, path, depth, q);
}

bool drafting_chi_square(const int *seen, const double *p, int cells, int runs)
{
    double sum = 0;
    for (int i = 0; i < cells; i++) {
        double expected = runs * p[i];
        if (expected == 0 && seen[i] > 0)
            return false;
        if (expected > 0)
            sum += (seen[i] - expected) * (seen[i] - expected) / expected;
    }
    return sum < cells - 1 + 5 * sqrt(2.0 * (cells - 1));
}
