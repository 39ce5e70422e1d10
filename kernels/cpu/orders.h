/* orders.h - sends orders from rank 0 to the other ranks (orders.c). The other ranks carry them
 * out (serve.c).
 *
 * Rank 0 sends an order to all other ranks at the same time, and then does the same work
 * itself. order_wire.h defines the orders.
 */
#ifndef ESP_CPU_ORDERS_H
#define ESP_CPU_ORDERS_H

#include "kernels/cpu/order_wire.h"

/* Carries out the orders of rank 0 until ESP_ORDER_LEAVE. */
int esp_ranks_serve(struct esp_ranks *ranks);

/* Each of these functions sends an order to the other ranks and does the same in rank 0; see
 * esp_backend_ops. */
int esp_cpu_start_ranks(struct esp_backend *backend, const struct esp_rank_options *options,
                        char *err, size_t errlen);
void esp_cpu_ask_about_ranks(struct esp_backend *backend, esp_rank_patience *patient,
                             void *user);
int esp_cpu_restart_ranks(struct esp_backend *backend, double most, char *why, size_t size);
bool esp_cpu_rank_times(const struct esp_backend *backend, struct esp_rank_times *times);
int esp_cpu_set_rank_delay(struct esp_backend *backend, const char *delay);
int esp_cpu_plan_ranks(struct esp_backend *backend, const struct esp_model_desc *desc,
                       struct esp_rank_plan *plan, struct esp_rank_costs *costs, char *err,
                       size_t errlen);
void esp_cpu_end_ranks(struct esp_cpu_backend *cpu);

#endif
