/* row_checks.c - checks arguments of operations on rows; see row_checks.h. */
#include "kernels/row_checks.h"

#include <math.h>

bool esp_rows_exist(const struct esp_rows *rows, const int32_t *which, int count)
{
    if (count < 0)
        return false;
    for (int i = 0; i < count; i++)
        if (which[i] < 0 || which[i] >= rows->capacity)
            return false;
    return true;
}

bool esp_rows_fit(const struct esp_rows *p, int p_row, const struct esp_rows *q, int q_row,
                  const struct esp_rows *to, int to_row)
{
    return esp_rows_exist(p, &p_row, 1) && esp_rows_exist(q, &q_row, 1) &&
           p->vocabulary == q->vocabulary &&
           (!to || (to->vocabulary == p->vocabulary && esp_rows_exist(to, &to_row, 1)));
}

bool esp_tokens_exist(const struct esp_rows *rows, const int32_t *tokens, int count)
{
    for (int i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= rows->vocabulary)
            return false;
    return true;
}

bool esp_sampling_fits(const struct esp_sampling *sampling)
{
    return sampling->temperature > 0.0 && isfinite(sampling->temperature) &&
           sampling->top_p >= 0.0 && sampling->top_k >= 0;
}

bool esp_draws_fit(const struct esp_rows *rows, const double *u, int count, int draws,
                   const int32_t *excluded, int per)
{
    if (count < 0 || per < 0 || draws < 1 || draws > ESP_MAX_DRAWS)
        return false;
    for (size_t i = 0; i < (size_t)count * (size_t)draws; i++)
        if (!(u[i] >= 0.0 && u[i] < 1.0))
            return false;
    for (size_t i = 0; i < (size_t)count * (size_t)per; i++)
        if (excluded[i] >= rows->vocabulary)
            return false;
    return true;
}
