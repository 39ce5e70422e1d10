/* row_checks.h - checks the arguments of operations on rows (row_ops.def), for every backend.
 * A backend must not index memory with these arguments before the checks. */
#ifndef ESP_ROW_CHECKS_H
#define ESP_ROW_CHECKS_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

bool esp_rows_exist(const struct esp_rows *rows, const int32_t *which, int count);
/* Returns whether both rows exist and have the same vocabulary. If `to` is not NULL, its row
 * must also exist and have this vocabulary. */
bool esp_rows_fit(const struct esp_rows *p, int p_row, const struct esp_rows *q, int q_row,
                  const struct esp_rows *to, int to_row);
/* Returns whether all of these tokens are in the vocabulary. */
bool esp_tokens_exist(const struct esp_rows *rows, const int32_t *tokens, int count);
bool esp_sampling_fits(const struct esp_sampling *sampling);
/* Returns whether all arguments of sample(), except the row indices, are valid. */
bool esp_draws_fit(const struct esp_rows *rows, const double *u, int count, int draws,
                   const int32_t *excluded, int per);

#ifdef __cplusplus
}
#endif
#endif
