/* batch.c - checking a batch before anything is computed; see batch.h. */
#include "kernels/batch.h"

/* The row's own bit is number first - prefix + row. It must be set, and no bit beyond it. */
static bool mask_fits(const struct esp_batch *b)
{
    for (int row = 0; row < b->rows; row++) {
        const uint64_t *mask = b->mask + (size_t)row * (size_t)b->mask_words;
        int own = b->first - b->prefix + row;
        if (own / 64 >= b->mask_words || mask[own / 64] >> own % 64 != 1)
            return false;
        for (int i = own / 64 + 1; i < b->mask_words; i++)
            if (mask[i])
                return false;
    }
    return true;
}

static bool logits_fit(const struct esp_batch *b, const struct esp_cache *cache)
{
    const struct esp_rows *logits = b->logits;
    if (!logits)
        return true;
    if (logits->backend != cache->weights->backend)
        return false;
    for (int i = 0; i < b->rows; i++) {
        int at = b->logits_row ? b->logits_row[i] : i;
        if (at < -1 || at >= logits->capacity)
            return false;
    }
    return true;
}

static bool step_fits(const struct esp_batch *b)
{
    const struct esp_step *step = b->step;
    return !step || (b->logits && step->ids && step->values && step->k >= 1 &&
                     step->k <= b->logits->vocabulary);
}

bool esp_batch_fits(const struct esp_batch *b, const struct esp_cache *cache,
                    const struct esp_model_desc *desc, int rows, int max_batch)
{
    if (b->rows < 1 || b->rows > max_batch || !b->tokens || !b->positions || b->prefix < 0 ||
        b->prefix > b->first || b->first > rows - b->rows)
        return false;
    for (int i = 0; i < b->rows; i++)
        if (b->tokens[i] < 0 || b->tokens[i] >= desc->vocabulary || b->positions[i] < 0)
            return false;
    return (!b->mask || mask_fits(b)) && logits_fit(b, cache) && step_fits(b);
}

int esp_batch_wanted(const struct esp_batch *b, int32_t *wanted, int32_t *wanted_at)
{
    int count = 0;
    for (int i = 0; b->logits && i < b->rows; i++) {
        int at = b->logits_row ? b->logits_row[i] : i;
        if (at < 0)
            continue;
        if (wanted) {
            wanted[count] = i;
            wanted_at[count] = at;
        }
        count++;
    }
    return count;
}

int esp_batch_step(const struct esp_batch *b, const int32_t *wanted_at, int count)
{
    const struct esp_backend_ops *ops = b->logits->backend->ops;
    const struct esp_step *step = b->step;
    int status = ops->softmax(b->logits, wanted_at, count, &step->sampling);
    return status < 0 ? status
                      : ops->top_k(b->logits, wanted_at, count, step->k, step->ids,
                                   step->values, step->when);
}
