/* state_plan.c - see state_plan.h. */
#include "kernels/state_plan.h"

#include <stddef.h>

/* ------------------------------------------------------------------ memory */

/* A plan has ARRAYS arrays of `room` numbers, and LONGER arrays of `room` + 1 numbers. */
enum { ARRAYS = 6, LONGER = 6 };

size_t esp_state_plan_bytes(int room)
{
    const size_t n = (size_t)room;
    return n * (sizeof(struct esp_walk_step) + sizeof(struct esp_state_entry)) +
           (n + 1) * sizeof(struct esp_state_group) +
           (ARRAYS * n + LONGER * (n + 1)) * sizeof(int32_t);
}

void esp_state_plan_lay_out(struct esp_state_plan *p, void *memory)
{
    const size_t n = (size_t)p->room;
    int32_t **const arrays[ARRAYS] = {&p->walk.parent, &p->member, &p->batch_slot,
                                      &p->follower,    &p->before, &p->known};
    int32_t **const longer[LONGER] = {&p->walk.size, &p->walk.heavy,   &p->walk.first,
                                      &p->walk.next, &p->walk.pending, &p->walk.level};
    p->walk.step = memory;
    p->entry = (struct esp_state_entry *)(p->walk.step + n);
    p->group = (struct esp_state_group *)(p->entry + n);
    int32_t *at = (int32_t *)(p->group + n + 1);
    for (int i = 0; i < ARRAYS; i++, at += n)
        *arrays[i] = at;
    for (int i = 0; i < LONGER; i++, at += n + 1)
        *longer[i] = at;
}

/* ------------------------------------------------------------------ entries and groups */

/* Returns the group that begins after this entry, which completes a chunk. Adds the group if
 * there is none yet. */
static int group_after(struct esp_state_plan *p, int entry)
{
    if (p->follower[entry] == 0) {
        p->walk.parent[p->walk.count++] = p->entry[entry].group - 1;
        p->follower[entry] = p->groups;
        p->group[p->groups++] = (struct esp_state_group){.last = entry};
    }
    return p->follower[entry];
}

void esp_state_plan_begin(struct esp_state_plan *p)
{
    p->entries = p->walk.count = 0;
    p->groups = 1;
    p->group[0] = (struct esp_state_group){.last = -1};
}

int esp_state_plan_add(struct esp_state_plan *p, int parent)
{
    const int entry = p->entries++;
    const int place = parent < 0 ? 0 : (p->entry[parent].place + 1) % ESP_STATE_CHUNK;
    const int group = parent < 0   ? 0
                      : place == 0 ? group_after(p, parent)
                                   : p->entry[parent].group;
    p->entry[entry] =
        (struct esp_state_entry){.parent = parent, .place = place, .group = group};
    p->follower[entry] = 0;
    return entry;
}

/* Sorts the rows of the batch by group. */
static void list_members(struct esp_state_plan *p)
{
    const int first = p->entries - p->rows;
    for (int row = 0; row < p->rows; row++)
        p->group[p->entry[first + row].group].count++;
    for (int g = 0, at = 0; g < p->groups; g++) {
        p->group[g].first = at;
        at += p->group[g].count;
        p->group[g].count = 0;
    }
    for (int row = 0; row < p->rows; row++) {
        struct esp_state_group *g = &p->group[p->entry[first + row].group];
        p->member[g->first + g->count++] = row;
    }
}

void esp_state_plan_end(struct esp_state_plan *p, int text, int rows)
{
    p->rows = rows;
    p->walk.texts = text / ESP_STATE_CHUNK;
    if (text > 0 && text % ESP_STATE_CHUNK == 0)
        group_after(p, text - 1);
    list_members(p);
    esp_walk_order(&p->walk);
}

/* ------------------------------------------------------------------ the plan of a batch */

/* Sets before[i] to the row that row i follows in its path. Rows are counted from the prefix.
 * -1 means that row i follows the prefix. The path of a row consists of the rows to which it
 * attends, in ascending order. If no row of the batch attends to a row of an earlier pass, that
 * row gets -2. */
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

/* Returns the number of tokens of the text before a batch. */
static int64_t tokens_before(const struct esp_batch *b)
{
    return (int64_t)b->prefix + (b->window ? b->window->dropped : 0);
}

/* Returns how many tokens of the text are included in the states before a batch. */
static int folded_before(const struct esp_state_plan *p, const struct esp_cache *cache,
                         int64_t prefix)
{
    return prefix == 0 ? 0 : p->owner ? p->owner->folded : cache->folded;
}

bool esp_state_plan_fits(const struct esp_state_plan *p, const struct esp_cache *cache,
                         const struct esp_batch *b)
{
    const int64_t prefix = tokens_before(b);
    const int64_t end = prefix + (b->first - b->prefix) + b->rows;
    const int folded = folded_before(p, cache, prefix);
    return folded >= 0 && prefix >= folded && end - folded <= p->room;
}

static int add_token(struct esp_state_plan *p, int64_t token, int parent)
{
    const int entry = esp_state_plan_add(p, parent);
    p->entry[entry].slot = (int32_t)(token % p->ring);
    return entry;
}

/* Adds entries for the rows of earlier passes over the same tree, then for rows of the batch.
 */
static void add_rows(struct esp_state_plan *p, const struct esp_batch *b, int64_t prefix)
{
    const int ahead = b->first - b->prefix, last = p->entries - 1;
    find_parents(p, b);
    for (int i = 0; i < ahead + b->rows; i++) {
        const int before = p->before[i];
        p->known[i] =
            before == -2 ? -1 : add_token(p, prefix + i, before < 0 ? last : p->known[before]);
        if (i >= ahead)
            p->batch_slot[i - ahead] = p->entry[p->known[i]].slot;
    }
}

bool esp_state_plan_make(struct esp_state_plan *p, const struct esp_cache *cache,
                         const struct esp_batch *b)
{
    const int64_t prefix = tokens_before(b);
    if (!esp_state_plan_fits(p, cache, b))
        return false;
    p->start = folded_before(p, cache, prefix);
    p->begins = prefix == 0 && (p->owner ? p->owner : cache)->folded != 0;
    if (p->owner && p->begins)
        p->owner->folded = 0;
    p->dropped = b->window ? b->window->dropped : 0;
    esp_state_plan_begin(p);
    for (int64_t token = p->start; token < prefix; token++)
        add_token(p, token, p->entries - 1);
    add_rows(p, b, prefix);
    esp_state_plan_end(p, p->owner ? 0 : (int)(prefix - p->start) + b->text, b->rows);
    p->folded = p->start + p->walk.texts * ESP_STATE_CHUNK;
    return true;
}
