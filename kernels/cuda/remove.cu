/* remove.cu - removes one token from a row of probabilities and normalises the remaining
 * probabilities, for draws without replacement. */
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

int esp_cuda_remove(struct esp_rows *rows, int which, int32_t token, double *left)
{
    if (!esp_rows_exist(rows, &which, 1) || !esp_tokens_exist(rows, &token, 1))
        return esp_cuda_refuse(rows);
    const int status = esp_cuda_begin(rows, esp_cuda_room<double>(1));
    const struct without function = {esp_cuda_row(rows, which), token};
    return status < 0
               ? status
               : esp_cuda_total(rows, function, esp_cuda_row(rows, which), left, "remove");
}
