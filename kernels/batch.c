/* batch.c - checks a batch before anything is computed; see batch.h. */
#include "kernels/batch.h"

#include "kernels/model_desc.h"

#include <string.h>

/* Returns whether every mask is valid. In the mask of row i, the bit of the row itself (bit
 * first - prefix + i) must be set, and no higher bit may be set. */
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

/* `row` has an entry for each batch row. Returns whether every entry is the index of a row of
 * `rows`. With least = -1, an entry can also be -1, which means "none". */
static bool rows_fit(const struct esp_batch *b, const struct esp_cache *cache,
                     const struct esp_rows *rows, const int32_t *row, int least)
{
    if (rows->backend != cache->weights->backend)
        return false;
    for (int i = 0; i < b->rows; i++) {
        int at = row ? row[i] : i;
        if (at < least || at >= rows->capacity)
            return false;
    }
    return true;
}

static bool logits_fit(const struct esp_batch *b, const struct esp_cache *cache)
{
    const struct esp_model_desc *desc = cache->weights->desc;
    return !b->logits ||
           ((!desc->output_token || b->logits->vocabulary >= esp_model_desc_tokens(desc)) &&
            rows_fit(b, cache, b->logits, b->logits_row, -1));
}

static bool step_fits(const struct esp_batch *b)
{
    const struct esp_step *step = b->step;
    return !step || (b->logits && step->ids && step->values && step->k >= 1 &&
                     step->k <= b->logits->vocabulary);
}

static bool states_fit(const struct esp_batch *b, const struct esp_cache *cache)
{
    const struct esp_model_desc *desc = cache->weights->desc;
    const struct esp_states *s = b->states;
    if (!s)
        return true;
    if (s->count < 1 || s->count > ESP_MAX_STATES || !s->to ||
        s->to->vocabulary != (int64_t)s->count * desc->hidden)
        return false;
    for (int i = 0; i < s->count; i++)
        if (s->state[i] != ESP_STATE_NORMED && (s->state[i] < 0 || s->state[i] > desc->layers))
            return false;
    return rows_fit(b, cache, s->to, s->row, -1);
}

static bool input_fits(const struct esp_batch *b, const struct esp_cache *cache)
{
    const struct esp_model_desc *desc = cache->weights->desc;
    if (desc->reads == ESP_READS_TOKENS || !b->input)
        return desc->reads == ESP_READS_TOKENS && !b->input;
    const int width = b->input->vocabulary;
    return (width == desc->input ||
            (desc->reads == ESP_READS_EAGLE3 && width == desc->hidden)) &&
           rows_fit(b, cache, b->input, b->input_row, 0);
}

static bool window_fits(const struct esp_batch *b, const struct esp_cache *cache)
{
    const struct esp_window *w = b->window;
    return !w || (cache->weights->backend->ops->windows && w->sinks >= 0 && w->recent > 0 &&
                  w->sinks <= INT32_MAX - w->recent && w->dropped >= 0 &&
                  w->dropped % ESP_WINDOW_STEP == 0);
}

/* Returns whether every batch row attends to all committed rows of the batch up to itself. In
 * the cache, these rows must follow the prefix without a gap. */
static bool text_fits(const struct esp_batch *b)
{
    if (b->text == 0)
        return true;
    if (b->text < 0 || b->text > b->rows || b->first != b->prefix)
        return false;
    for (int row = 0; b->mask && row < b->rows; row++) {
        const uint64_t *mask = b->mask + (size_t)row * (size_t)b->mask_words;
        for (int i = 0; i < b->text && i <= row; i++)
            if (!(mask[i / 64] >> i % 64 & 1))
                return false;
    }
    return true;
}

bool esp_batch_fits(const struct esp_batch *b, const struct esp_cache *cache, int rows,
                    int max_batch)
{
    const struct esp_model_desc *desc = cache->weights->desc;
    if (b->rows < 1 || b->rows > max_batch || !b->tokens || !b->positions || b->prefix < 0 ||
        b->prefix > b->first || b->first > rows - b->rows)
        return false;
    for (int i = 0; i < b->rows; i++)
        if (b->tokens[i] < 0 || b->tokens[i] >= desc->vocabulary || b->positions[i] < 0 ||
            (desc->position_embedding.data && b->positions[i] >= desc->position_embedding.rows))
            return false;
    return (!b->mask || mask_fits(b)) && text_fits(b) && window_fits(b, cache) &&
           logits_fit(b, cache) && step_fits(b) && states_fit(b, cache) && input_fits(b, cache);
}

static bool same_frequencies(const float *a, const float *b, int rotary)
{
    return a == b || (a && b && memcmp(a, b, (size_t)(rotary / 2) * sizeof *a) == 0);
}

/* Returns whether both models have recurrent states of the same shape, or none at all. */
static bool same_states(const struct esp_model_desc *a, const struct esp_model_desc *b)
{
    return a->state_heads == b->state_heads && a->key_heads == b->key_heads &&
           a->key_dim == b->key_dim && a->value_dim == b->value_dim &&
           a->conv_kernel == b->conv_kernel &&
           esp_model_desc_conv_width(a) == esp_model_desc_conv_width(b);
}

bool esp_cache_joins(const struct esp_weights *weights, const struct esp_cache *owner)
{
    const struct esp_model_desc *a = weights->desc, *b = owner->weights->desc;
    bool same =
        weights->backend == owner->weights->backend && a->lender == owner->weights &&
        a->reads == ESP_READS_TOKENS && b->reads == ESP_READS_TOKENS && same_states(a, b) &&
        a->layers == b->layers && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim &&
        a->rotary == b->rotary && a->rotary_scale == b->rotary_scale &&
        same_frequencies(a->inverse_frequency, b->inverse_frequency, a->rotary) &&
        same_frequencies(a->local_inverse_frequency, b->local_inverse_frequency, a->rotary);
    for (int i = 0; i < a->layers && same; i++)
        same = a->layer[i].window == b->layer[i].window &&
               a->layer[i].mixer == b->layer[i].mixer &&
               a->layer[i].rotation == b->layer[i].rotation;
    return same;
}

bool esp_keep_fits(int rows, int first, const int32_t *which, int count)
{
    if (first < 0 || count < 0 || first > rows - count)
        return false;
    for (int i = 0; i < count; i++)
        if (which[i] < first + i || which[i] >= rows || (i > 0 && which[i] <= which[i - 1]))
            return false;
    return true;
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
