/* combine.cu - max(0, a p + b q + c min(d p, q)) of two rows: its sum, and its values divided
 * by the sum. Overlaps and residuals of verifiers are such combinations, see kernels.h. */
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

int esp_cuda_launch_combine(struct esp_cuda_rows *r, const float *p, const float *q,
                            const struct esp_combination *f, float *to, double *sum)
{
    const struct combination function = {p, q, *f};
    return esp_launch_total(r, function, to, sum, "combine");
}
