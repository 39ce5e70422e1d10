/* scores.c - computes the likeliest tokens and the entropy of rows; see scores.h. */
#include "engine/scores.h"

#include <math.h>
#include <string.h>

#include "kernels/clock.h"
#include "kernels/status.h"

int esp_scores_open(struct esp_scores *s, struct esp_backend *backend, int record,
                    int vocabulary, char *err, size_t errlen)
{
    const size_t nodes = (size_t)record;
    memset(s, 0, sizeof *s);
    s->ops = backend->ops;
    s->record = record;
    s->k = vocabulary < ESP_LIKELY ? vocabulary : ESP_LIKELY;
    s->known = esp_arrays_add(&s->arrays, nodes, sizeof *s->known);
    s->changed = esp_arrays_add(&s->arrays, nodes, sizeof *s->changed);
    s->ids = esp_arrays_add(&s->arrays, nodes * ESP_LIKELY, sizeof *s->ids);
    s->values = esp_arrays_add(&s->arrays, nodes * ESP_LIKELY, sizeof *s->values);
    s->mean_log = esp_arrays_add(&s->arrays, nodes, sizeof *s->mean_log);
    s->power = esp_arrays_add(&s->arrays, nodes, sizeof *s->power);
    s->of = esp_arrays_add(&s->arrays, nodes, sizeof *s->of);
    int status =
        s->arrays.failed
            ? esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for scores of tokens")
            : s->ops->rows_open(&s->end, backend, 1, vocabulary, err, errlen);
    if (status < 0)
        esp_scores_close(s);
    return status;
}

void esp_scores_close(struct esp_scores *s)
{
    if (s->end)
        s->ops->rows_close(s->end);
    esp_arrays_free(&s->arrays);
    memset(s, 0, sizeof *s);
}

void esp_scores_begin(struct esp_scores *s)
{
    memset(s->known, 0, (size_t)s->record * sizeof *s->known);
    memset(s->changed, 0, (size_t)s->record * sizeof *s->changed);
    s->end_exact = true;
    s->seconds = 0;
}

int esp_scores_keep(struct esp_scores *s, int node, struct esp_rows *p, int32_t row,
                    enum esp_delivery when)
{
    const double start = esp_clock();
    const ptrdiff_t at = (ptrdiff_t)node * s->k;
    int status = s->ops->top_k(p, &row, 1, s->k, s->ids + at, s->values + at, ESP_LATER);
    if (status == ESP_OK)
        status = s->ops->temper(p, &row, 1, 1, &s->mean_log[node], &s->power[node], when);
    s->known[node] = status == ESP_OK;
    s->seconds += esp_clock() - start;
    return status;
}

struct esp_token_score esp_scores_of(const struct esp_scores *s, int node, int32_t token,
                                     double p)
{
    const int32_t *ids = s->ids + (ptrdiff_t)node * s->k;
    const float *values = s->values + (ptrdiff_t)node * s->k;
    struct esp_token_score score = {.p = (float)p,
                                    .entropy = (float)(-s->mean_log[node] / log(2))};
    for (int i = 0; i < s->k && values[i] > 0; i++) {
        score.likely[score.count] = ids[i];
        score.likely_p[score.count++] = values[i];
        if (ids[i] == token) {
            score.rank = score.count;
            score.p = values[i];
        }
    }
    if (!(score.entropy > 0))
        score.entropy = 0;
    return score;
}
