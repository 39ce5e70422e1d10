/* temper.cu - computes two sums over a row of probabilities: the mean log probability, and the
 * sum of the probabilities raised to a power. These sums show the effect of a different
 * temperature.
 *
 * There is one block per row. The sums are used to learn a draft temperature, once per
 * iteration and for a few rows. No draw depends on their last bits, so the order of summation
 * may depend on how a row is divided among the threads.
 */
#include "kernels/cuda/rows.h"

#include <cmath>

enum { THREADS = 512, WARPS = THREADS / ESP_WARP };

static __global__ void __launch_bounds__(THREADS)
    temper(const float *data, size_t stride, const int32_t *which, int n, float power,
           double *mean_log, double *power_sum)
{
    ESP_SHARED(double, room); /* (WARPS) */
    const float *x = data + (size_t)which[blockIdx.x] * stride;
    double mean = 0.0, total = 0.0;
    for (int i = threadIdx.x; i < n; i += THREADS) {
        const float value = x[i];
        if (!(value >= 0x1p-126f))
            continue;
        const float log_value = logf(value);
        mean += (double)(value * log_value);
        total += (double)expf(power * log_value);
    }
    mean = esp_block_sum(mean, room);
    total = esp_block_sum(total, room);
    if (threadIdx.x > 0)
        return;
    mean_log[blockIdx.x] = mean;
    power_sum[blockIdx.x] = total;
}

int esp_cuda_temper(struct esp_rows *rows, const int32_t *which, int count, double power,
                    double *mean_log, double *power_sum, enum esp_delivery when)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const struct esp_cuda_rows *r = esp_cuda_rows_of(rows);
    const int32_t *asked;
    if (!(power > 0.0) || !std::isfinite(power))
        return esp_cuda_refuse(rows);
    const int status =
        esp_cuda_ask(rows, which, count, 2 * esp_cuda_room<double>(count), &asked);
    if (!asked)
        return status;
    double *means = esp_cuda_promise(rows, count, mean_log);
    double *sums = esp_cuda_promise(rows, count, power_sum);
    ESP_LAUNCH(temper, count, THREADS, WARPS * sizeof(double), b->stream, r->data, r->stride,
               asked, rows->vocabulary, (float)power, means, sums);
    return esp_cuda_finish(rows, esp_cuda_launch_status(b, "temper"), when);
}
