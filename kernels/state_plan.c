/* state_plan.c - see state_plan.h. */
#include "kernels/state_plan.h"

#include <stddef.h>

/* ------------------------------------------------------------------ memory */

/* Number of arrays of `room` numbers, and of those with one more. */
enum { ARRAYS = 4, LONGER = 6 };

size_t esp_state_plan_bytes(int room)
{
    const size_t n = (size_t)room;
    return n * (sizeof(struct esp_walk_step) + sizeof(struct esp_state_entry)) +
           (ARRAYS * n + LONGER * (n + 1)) * sizeof(int32_t);
}

void esp_state_plan_lay_out(struct esp_state_plan *p, void *memory)
{
    const size_t n = (size_t)p->room;
    int32_t **const arrays[ARRAYS] = {&p->walk.parent, &p->batch_slot, &p->before, &p->known};
    int32_t **const longer[LONGER] = {&p->walk.size, &p->walk.heavy,   &p->walk.first,
                                      &p->walk.next, &p->walk.pending, &p->walk.level};
    p->walk.step = memory;
    p->entry = (struct esp_state_entry *)(p->walk.step + n);
    int32_t *at = (int32_t *)(p->entry + n);
    for (int i = 0; i < ARRAYS; i++, at += n)
        *arrays[i] = at;
    for (int i = 0; i < LONGER; i++, at += n + 1)
        *longer[i] = at;
}

/* ------------------------------------------------------------------ the walk */

static int add_entry(struct esp_state_plan *p, int64_t token, int row, int parent)
{
    const int entry = p->walk.count++;
    p->entry[entry] = (struct esp_state_entry){.slot = (int32_t)(token % p->ring), .row = row};
    p->walk.parent[entry] = parent;
    return entry;
}

/* Sets `before` to the row that each row follows, both counted from the prefix; -1 means it
 * follows the prefix. The rows that a row sees are its path, in ascending order. An earlier row
 * that no row of the batch sees gets -2. */
static void find_parents(struct esp_state_plan *p, const struct esp_batch *b)
{
    const int ahead = b->first - b->prefix, rows = ahead + b->rows;
    for (int i = 0; i < rows; i++)
        p->before[i] = b->mask ? -2 : i - 1;
    for (int row = 0; b->mask && row < b->rows; row++) {
        const uint64_t *mask = b->mask + (size_t)row * (size_t)b->mask_words;
        int previous = -1;
        for (int i = 0; i <= (ahead + row) / 64; i++)
            for (uint64_t word = mask[i]; word; word &= word - 1) {
                const int at = 64 * i + __builtin_ctzll(word);
                if (at < ahead || at == ahead + row)
                    p->before[at] = previous;
                previous = at;
            }
    }
}

/* The number of tokens of the text before a batch. */
static int64_t tokens_before(const struct esp_batch *b)
{
    return (int64_t)b->prefix + (b->window ? b->window->dropped : 0);
}

bool esp_state_plan_fits(const struct esp_state_plan *p, const struct esp_cache *cache,
                         const struct esp_batch *b)
{
    const int64_t prefix = tokens_before(b);
    const int64_t end = prefix + (b->first - b->prefix) + b->rows;
    const int folded = prefix == 0 ? 0 : cache->folded;
    return folded >= 0 && prefix >= folded && end - folded <= p->room;
}

bool esp_state_plan_make(struct esp_state_plan *p, const struct esp_cache *cache,
                         const struct esp_batch *b)
{
    const int64_t prefix = tokens_before(b);
    const int ahead = b->first - b->prefix;
    if (!esp_state_plan_fits(p, cache, b))
        return false;
    p->begins = prefix == 0 && cache->folded != 0;
    p->dropped = b->window ? b->window->dropped : 0;
    p->walk.count = 0;
    for (int64_t token = p->begins ? 0 : cache->folded; token < prefix; token++)
        add_entry(p, token, -1, p->walk.count - 1);
    const int last = p->walk.count - 1;
    p->walk.texts = p->walk.count + b->text;
    find_parents(p, b);
    for (int i = 0; i < ahead + b->rows; i++) {
        const int row = i - ahead, before = p->before[i];
        p->known[i] = before == -2 ? -1
                                   : add_entry(p, prefix + i, row < 0 ? -1 : row,
                                               before < 0 ? last : p->known[before]);
        if (row >= 0)
            p->batch_slot[row] = p->entry[p->known[i]].slot;
    }
    p->folded = (int)prefix + b->text;
    esp_walk_order(&p->walk);
    return true;
}
