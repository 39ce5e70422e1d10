/* tree_measure.c - compares target and draft in trees; see tree_measure.h. */
#include "engine/tree_measure.h"

#include <math.h>
#include <stdlib.h>

#include "engine/session_parts.h"
#include "engine/verifiers/verifier.h"

void esp_tree_measure_free(struct esp_tree_measure *m)
{
    for (int i = 0; i < ESP_MEASURE_RANKS; i++) {
        free(m->rank[i].guess);
        m->rank[i] = (struct esp_rank_measure){0};
    }
}

void esp_session_measure(struct esp_session *s, struct esp_tree_measure *measure)
{
    if (measure)
        measure->rules = esp_verifiers;
    s->verify.measure = measure;
}

/* ------------------------------------------------------------------ figures */

double esp_rank_accuracy(const struct esp_rank_measure *r)
{
    int right = 0;
    for (int i = 0; i < r->count; i++)
        right += r->guess[i].right;
    return r->count > 0 ? (double)right / r->count : NAN;
}

static int by_confidence(const void *a, const void *b)
{
    const struct esp_next_guess *x = a, *y = b;
    return (x->confidence > y->confidence) - (x->confidence < y->confidence);
}

double esp_rank_error(struct esp_rank_measure *r, int bins)
{
    double error = 0;
    if (r->count == 0)
        return NAN;
    qsort(r->guess, (size_t)r->count, sizeof *r->guess, by_confidence);
    for (int bin = 0; bin < bins; bin++) {
        const int begin = (int)((int64_t)r->count * bin / bins);
        const int end = (int)((int64_t)r->count * (bin + 1) / bins);
        double right = 0, confidence = 0;
        for (int i = begin; i < end; i++) {
            right += r->guess[i].right;
            confidence += r->guess[i].confidence;
        }
        error += fabs(right - confidence);
    }
    return error / r->count;
}
