/* remove.cu - removes one token from a row of probabilities and normalises the rest, for draws
 * without replacement. */
#include "kernels/cuda/total.h"

namespace
{

struct without {
    enum { clears = true };
    const float *row; /* (n) */
    int32_t gone;

    __device__ double operator()(int token) const
    {
        return token == gone ? 0.0 : row[token];
    }
};

} // namespace

int esp_cuda_launch_remove(struct esp_cuda_rows *r, float *row, int32_t token, double *left)
{
    const struct without function = {row, token};
    return esp_launch_total(r, function, row, left, "remove");
}
