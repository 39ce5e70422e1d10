/* chance.c - makes the random decisions of verifiers; see chance.h. */
#include "engine/verifiers/chance.h"

static double next(struct esp_chance *chance, const struct esp_odds *odds)
{
    return chance->number ? chance->number(chance->user, odds) : esp_rng_uniform(chance->rng);
}

bool esp_chance_accept(struct esp_chance *chance, double acceptance, double *u)
{
    double weight[2] = {acceptance, 1 - acceptance};
    struct esp_odds odds = {.weight = weight, .count = 2};
    *u = next(chance, &odds);
    return *u < acceptance;
}

bool esp_chance_test(struct esp_chance *chance, const double *share, const double *acceptance,
                     int count, int *which, double *u)
{
    double weight[2 * ESP_MAX_TESTED], total = 0, left;
    for (int i = 0; i < count; i++)
        total += share[i];
    for (int i = 0; i < count; i++) {
        weight[2 * i] = share[i] / total * acceptance[i];
        weight[2 * i + 1] = share[i] / total * (1 - acceptance[i]);
    }
    struct esp_odds odds = {.weight = weight, .count = 2 * count};
    left = next(chance, &odds) * total;
    *which = 0;
    for (int i = 0; i < count; i++) {
        if (!(share[i] > 0))
            continue;
        *which = i;
        if (left < share[i])
            break;
        left -= share[i];
    }
    *u = left / share[*which];
    if (*u >= 1) /* because of rounding, no share contained u: the last draft is taken */
        *u = 0x1.fffffffffffffp-1;
    return *u < acceptance[*which];
}

int esp_chance_draw(struct esp_chance *chance, const struct esp_backend_ops *ops,
                    struct esp_rows *rows, int row, int32_t *token, double *value, double *u)
{
    struct esp_odds odds = {.ops = ops, .rows = rows, .row = row};
    int32_t which = row;
    *u = next(chance, &odds);
    int status = ops->sample(rows, &which, u, 1, 1, NULL, 0, token, value, ESP_NOW);
    if (status == ESP_OK && *token < 0)
        return ESP_E_NUMERIC;
    return status;
}
