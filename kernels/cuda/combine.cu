/* combine.cu - computes max(0, a p + b q + c min(d p, q)) for two rows p and q: the sum of
 * these values, and the values divided by the sum. Verifiers' overlaps and residuals have this
 * form. */
#include "kernels/cuda/total.h"

namespace
{

struct combination {
    enum { clears = false };
    const float *p, *q; /* (n) */
    struct esp_combination f;

    __device__ double operator()(int token) const
    {
        const double x = p[token], y = q[token];
        const double scaled = esp_times(f.d, x), less = scaled < y ? scaled : y;
        double value = esp_plus(esp_times(f.a, x), esp_times(f.b, y));
        value = esp_plus(value, esp_times(f.c, less));
        return value > 0.0 ? value : 0.0;
    }
};

} // namespace

int esp_cuda_combine(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                     const struct esp_combination *f, struct esp_rows *to, int to_row,
                     double *sum)
{
    if (!esp_rows_fit(p, p_row, q, q_row, to, to_row))
        return esp_cuda_refuse(p);
    const int status = esp_cuda_begin(p, esp_cuda_room<double>(1));
    const struct combination function = {esp_cuda_row(p, p_row), esp_cuda_row(q, q_row), *f};
    float *out = to ? esp_cuda_row(to, to_row) : NULL;
    return status < 0 ? status : esp_cuda_total(p, function, out, sum, "combine");
}
