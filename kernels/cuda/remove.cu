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

int esp_cuda_remove(struct esp_rows *rows, int which, int32_t token, double *left)
{
    if (!esp_cuda_rows_exist(rows, &which, 1) || token < 0 || token >= rows->vocabulary)
        return esp_cuda_refuse(rows);
    int status = esp_cuda_begin(rows, esp_cuda_room<double>(1));
    if (status < 0)
        return status;
    float *row = esp_cuda_row(rows, which);
    const struct without function = {row, token};
    status = esp_launch_total(esp_cuda_rows_of(rows), function, row,
                              esp_cuda_promise(rows, 1, left), "remove");
    return left ? esp_cuda_finish(rows, status, ESP_NOW) : status;
}
