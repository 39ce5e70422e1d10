/* distributions.c - compares two rows of probabilities, p and q, by sums over classes of
 * tokens.
 *
 * The class of a token follows from its ratio p/q (ratio.h). Sums are in double, in the order
 * of the tokens, so nothing depends on the instruction set. Plain C is fast enough, because a
 * verifier needs this only once per visited node.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/row_checks.h"

#include <string.h>

int esp_cpu_ratio_masses(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                         double *p_mass, double *q_mass)
{
    if (!esp_rows_fit(p, p_row, q, q_row, NULL, 0))
        return ESP_E_ARGUMENT;
    const float *of_p = esp_cpu_row(p, p_row), *of_q = esp_cpu_row(q, q_row);
    memset(p_mass, 0, ESP_RATIO_CLASSES * sizeof *p_mass);
    memset(q_mass, 0, ESP_RATIO_CLASSES * sizeof *q_mass);
    for (int x = 0; x < p->vocabulary; x++) {
        int class = esp_ratio_class(of_p[x], of_q[x]);
        p_mass[class] += of_p[x];
        q_mass[class] += of_q[x];
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
    if (!esp_rows_fit(p, p_row, q, q_row, to, to_row))
        return ESP_E_ARGUMENT;
    const float *of_p = esp_cpu_row(p, p_row), *of_q = esp_cpu_row(q, q_row);
    float *out = to ? esp_cpu_row(to, to_row) : NULL;
    double total = 0;
    for (int x = 0; x < p->vocabulary; x++)
        total += left_of(of_p[x], of_q[x], factor);
    double inverse = total > 0.0 ? 1.0 / total : 0.0;
    for (int x = 0; out && total > 0.0 && x < p->vocabulary; x++)
        out[x] = (float)(left_of(of_p[x], of_q[x], factor) * inverse);
    if (sum)
        *sum = total;
    return ESP_OK;
}
