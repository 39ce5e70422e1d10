/* distributions.c - compares two rows by the ratio of their probabilities, class by class.
 *
 * Implements ratio.h in plain C: one division and the bits of its result give the class, and
 * sums are in double in the order of the tokens, so nothing depends on the instruction set. A
 * verifier asks for this once per visited node, not once per token.
 */
#include "kernels/cpu/cpu.h"

#include <string.h>

struct pair {
    const float *p, *q; /* (n) */
    int n;
};

static const float *row(struct esp_rows *rows, int which)
{
    const struct esp_cpu_rows *r = (struct esp_cpu_rows *)rows;
    return which >= 0 && which < rows->capacity ? r->data + (size_t)which * r->stride : NULL;
}

static bool pair_up(struct pair *pair, struct esp_rows *p, int p_row, struct esp_rows *q,
                    int q_row)
{
    *pair = (struct pair){row(p, p_row), row(q, q_row), p->vocabulary};
    return pair->p && pair->q && p->vocabulary == q->vocabulary;
}

int esp_cpu_ratio_masses(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                         double *p_mass, double *q_mass)
{
    struct pair of;
    if (!pair_up(&of, p, p_row, q, q_row))
        return ESP_E_ARGUMENT;
    memset(p_mass, 0, ESP_RATIO_CLASSES * sizeof *p_mass);
    memset(q_mass, 0, ESP_RATIO_CLASSES * sizeof *q_mass);
    for (int x = 0; x < of.n; x++) {
        int class = esp_ratio_class(of.p[x], of.q[x]);
        p_mass[class] += of.p[x];
        q_mass[class] += of.q[x];
    }
    return ESP_OK;
}

static double left_of(float p, float q, const double *factor)
{
    double left = p - factor[esp_ratio_class(p, q)] * q;
    return left > 0.0 ? left : 0.0;
}

int esp_cpu_ratio_residual(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                           const double *factor, struct esp_rows *to, int to_row, double *sum)
{
    struct pair of;
    float *out = to ? (float *)row(to, to_row) : NULL;
    if (!pair_up(&of, p, p_row, q, q_row) || (to && (!out || to->vocabulary != of.n)))
        return ESP_E_ARGUMENT;
    double total = 0;
    for (int x = 0; x < of.n; x++)
        total += left_of(of.p[x], of.q[x], factor);
    double inverse = total > 0.0 ? 1.0 / total : 0.0;
    for (int x = 0; out && total > 0.0 && x < of.n; x++)
        out[x] = (float)(left_of(of.p[x], of.q[x], factor) * inverse);
    if (sum)
        *sum = total;
    return ESP_OK;
}
