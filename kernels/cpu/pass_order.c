/* pass_order.c - serialises a batch; see pass_order.h. The bytes are a header, then masks,
 * tokens, positions, rows of logits and rows of hidden states. */
#include "kernels/cpu/pass_order.h"

#include <string.h>

#include "kernels/batch.h"

enum { ARRAYS = 4 };

struct header {
    int32_t rows, first, prefix, mask_words; /* mask_words = 0 means that there are no masks */
    int32_t text, columns;                   /* columns: number of columns of logits, or 0 */
    int32_t states, state[ESP_MAX_STATES];
    int32_t windowed;
    struct esp_window window;
};

static size_t order_bytes(int rows, int mask_words)
{
    return esp_cpu_pad(sizeof(struct header), 8) +
           (size_t)rows * ((size_t)mask_words * sizeof(uint64_t) + ARRAYS * sizeof(int32_t));
}

/* Returns the number of words of a mask that can have set bits. */
static int words_of(int rows, int first, int prefix)
{
    return (first - prefix + rows - 1) / 64 + 1;
}

size_t esp_cpu_order_bytes(int rows, int max_batch)
{
    return order_bytes(max_batch, words_of(rows, 0, 0));
}

/* For each batch row i, writes i if the row's result is stored in the matrix `of`, and -1
 * otherwise. Other ranks do not need to know in which row of `of` it is stored. */
static void write_rows(int32_t *to, int rows, const struct esp_rows *of, const int32_t *row)
{
    for (int i = 0; i < rows; i++)
        to[i] = of && (!row || row[i] >= 0) ? i : -1;
}

size_t esp_pass_order_write(struct esp_cpu_cache *c, const struct esp_batch *b)
{
    const struct esp_states *s = b->states;
    struct header h = {.rows = b->rows,
                       .first = b->first,
                       .prefix = b->prefix,
                       .mask_words = b->mask ? words_of(b->rows, b->first, b->prefix) : 0,
                       .text = b->text,
                       .columns = b->logits ? b->logits->vocabulary : 0,
                       .states = s ? s->count : 0,
                       .windowed = b->window != NULL};
    if (b->window)
        h.window = *b->window;
    if (s)
        memcpy(h.state, s->state, sizeof h.state);
    memcpy(c->order, &h, sizeof h);
    uint64_t *mask = (uint64_t *)(void *)(c->order + esp_cpu_pad(sizeof h, 8));
    for (int i = 0; i < b->rows && b->mask; i++, mask += h.mask_words)
        memcpy(mask, b->mask + (size_t)i * (size_t)b->mask_words,
               (size_t)h.mask_words * sizeof *mask);
    int32_t *array = (int32_t *)(void *)mask;
    memcpy(array, b->tokens, (size_t)b->rows * sizeof *array);
    memcpy(array + b->rows, b->positions, (size_t)b->rows * sizeof *array);
    write_rows(array + 2 * b->rows, b->rows, b->logits, b->logits_row);
    write_rows(array + 3 * b->rows, b->rows, s ? s->to : NULL, s ? s->row : NULL);
    return order_bytes(b->rows, h.mask_words);
}

static bool header_fits(const struct header *h, const struct esp_cpu_cache *c, size_t size)
{
    return h->rows >= 1 && h->rows <= c->max_batch && h->prefix >= 0 && h->prefix <= h->first &&
           h->first <= c->rows - h->rows && h->columns >= 0 && h->columns <= INT32_MAX / 2 &&
           h->states >= 0 && h->states <= ESP_MAX_STATES &&
           (h->mask_words == 0 || h->mask_words == words_of(h->rows, h->first, h->prefix)) &&
           size == order_bytes(h->rows, h->mask_words);
}

bool esp_pass_order_read(struct esp_pass_copy *copy, const struct esp_cpu_cache *c,
                         const void *bytes, size_t size)
{
    struct header h;
    struct esp_backend *backend = c->base.weights->backend;
    memset(copy, 0, sizeof *copy);
    if (size < sizeof h)
        return false;
    memcpy(&h, bytes, sizeof h);
    if (!header_fits(&h, c, size))
        return false;
    const uint64_t *mask = (const void *)((const char *)bytes + esp_cpu_pad(sizeof h, 8));
    const int32_t *array = (const void *)(mask + (size_t)h.rows * (size_t)h.mask_words);
    copy->window = h.window;
    copy->logits.base = (struct esp_rows){backend, h.rows, h.columns};
    copy->logits.stride = esp_cpu_pad(h.columns, ESP_PANEL);
    copy->hidden.base =
        (struct esp_rows){backend, h.rows, h.states * c->base.weights->desc->hidden};
    copy->states = (struct esp_states){
        .count = h.states, .to = &copy->hidden.base, .row = array + 3 * h.rows};
    memcpy(copy->states.state, h.state, sizeof h.state);
    copy->batch = (struct esp_batch){.rows = h.rows,
                                     .tokens = array,
                                     .positions = array + h.rows,
                                     .first = h.first,
                                     .prefix = h.prefix,
                                     .mask = h.mask_words > 0 ? mask : NULL,
                                     .mask_words = h.mask_words,
                                     .text = h.text,
                                     .window = h.windowed ? &copy->window : NULL,
                                     .logits = h.columns > 0 ? &copy->logits.base : NULL,
                                     .logits_row = array + 2 * h.rows,
                                     .states = h.states > 0 ? &copy->states : NULL};
    for (int i = 0; i < h.rows && h.columns > 0; i++)
        copy->wanted += array[2 * h.rows + i] >= 0;
    return esp_batch_fits(&copy->batch, &c->base, c->rows, c->max_batch);
}
