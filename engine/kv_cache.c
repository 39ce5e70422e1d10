/* kv_cache.c - appends tokens to a model's KV cache and compacts it; see kv_cache.h. */
#include "engine/kv_cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/model_desc.h"
#include "kernels/status.h"

/* With a window, at least SLACK rows are dropped at a time, because the remaining rows must be
 * moved each time. The rows to which the last REWIND tokens attend are not dropped. These
 * tokens can therefore be removed from the text without computing anything again. */
enum { PREFILL_ROWS = 128, SLACK = 256, REWIND = 64 };

/* While a text grows, a checkpoint is saved each time this number of tokens has been added. */
enum { CHECKPOINT_EVERY = 64 };

static int round_up(int rows)
{
    return (rows + ESP_WINDOW_STEP - 1) / ESP_WINDOW_STEP * ESP_WINDOW_STEP;
}

int esp_kv_cache_window_rows(const struct esp_window *w)
{
    return round_up(w->sinks) + w->recent + REWIND + SLACK;
}

_Static_assert((int)SLACK >= PREFILL_ROWS + 2 * ESP_WINDOW_STEP, "a pass fits");

int esp_kv_cache_batch(int tokens, int tree_rows)
{
    int rows = tree_rows > PREFILL_ROWS ? tree_rows : PREFILL_ROWS;
    return rows < tokens + tree_rows ? rows : tokens + tree_rows;
}

static int open_batch(struct esp_kv_cache *c, char *err, size_t errlen)
{
    c->tokens = esp_arrays_add(&c->arrays, (size_t)c->max_batch, sizeof *c->tokens);
    c->positions = esp_arrays_add(&c->arrays, (size_t)c->max_batch, sizeof *c->positions);
    c->logits_row = esp_arrays_add(&c->arrays, (size_t)c->max_batch, sizeof *c->logits_row);
    return c->arrays.failed ? esp_fail(err, errlen, ESP_E_MEMORY,
                                       "not enough memory for a batch of %d rows", c->max_batch)
                            : (int)ESP_OK;
}

int esp_kv_cache_open(struct esp_kv_cache *c, const struct esp_backend_ops *ops,
                      struct esp_weights *weights, int vocabulary, int tokens, int tree_rows,
                      char *err, size_t errlen)
{
    *c = (struct esp_kv_cache){.ops = ops, .weights = weights, .vocabulary = vocabulary};
    c->context = tokens;
    c->slots = esp_model_desc_recurrent(weights->desc) ? weights->desc->state_slots : 0;
    c->rows = tokens + tree_rows;
    c->max_batch = esp_kv_cache_batch(tokens, tree_rows);
    int status = open_batch(c, err, errlen);
    if (status == ESP_OK)
        status = ops->cache_open(&c->cache, weights, c->rows, c->max_batch, err, errlen);
    if (status < 0)
        esp_kv_cache_close(c);
    return status;
}

int esp_kv_cache_join(struct esp_kv_cache *c, const struct esp_kv_cache *owner,
                      struct esp_weights *weights, int vocabulary, char *err, size_t errlen)
{
    *c = (struct esp_kv_cache){.ops = owner->ops, .weights = weights, .vocabulary = vocabulary};
    c->joined = true;
    c->context = owner->context;
    c->rows = owner->rows;
    c->max_batch = owner->max_batch;
    c->window = owner->window;
    int status = open_batch(c, err, errlen);
    if (status == ESP_OK)
        status =
            c->ops->cache_join(&c->cache, weights, owner->cache, c->max_batch, err, errlen);
    if (status < 0)
        esp_kv_cache_close(c);
    return status;
}

void esp_kv_cache_close(struct esp_kv_cache *c)
{
    if (c->cache)
        c->ops->cache_close(c->cache);
    free(c->before);
    esp_arrays_free(&c->arrays);
    memset(c, 0, sizeof *c);
}

void esp_kv_cache_set_window(struct esp_kv_cache *c, const struct esp_window *window,
                             int context)
{
    c->window = *window;
    c->window.dropped = 0;
    c->context = context;
}

/* ------------------------------------------------------------------ checkpoints */

/* Returns whether the cache has its own states of recurrent layers. */
static bool is_recurrent(const struct esp_kv_cache *c)
{
    return c->weights && !c->joined && esp_model_desc_recurrent(c->weights->desc);
}

/* Updates the states of recurrent layers with all complete chunks of the text. */
static int fold(struct esp_kv_cache *c)
{
    const int dropped = c->window.dropped;
    if (!is_recurrent(c) || c->length < c->cache->folded + ESP_STATE_CHUNK)
        return ESP_OK;
    return c->ops->fold(c->cache, c->length - dropped, dropped);
}

int esp_kv_cache_follow(struct esp_kv_cache *view, struct esp_kv_cache *owner, int rows)
{
    int status = esp_kv_cache_make_room(owner, rows);
    if (status == ESP_OK)
        status = fold(owner);
    view->window = owner->window;
    view->length = owner->length;
    return status;
}

/* Returns the slot to overwrite: an empty slot if there is one. Otherwise returns the slot of
 * the checkpoint that leaves the smallest gap when it is removed. The gap is the distance
 * between the neighbours of the checkpoint, divided by the distance from the end of the
 * text. */
static int least_missed(const struct esp_kv_cache *c)
{
    int least = 0;
    double least_cost = INFINITY;
    for (int i = 0; i < c->slots; i++) {
        const int own = c->checkpoint[i];
        int before = 0, after = c->length;
        for (int k = 0; k < c->slots; k++) {
            const int other = c->checkpoint[k];
            before = other < own && other > before ? other : before;
            after = other > own && other < after ? other : after;
        }
        const double cost = own == 0 ? -1 : (double)(after - before) / (c->length - after + 1);
        if (cost < least_cost) {
            least = i;
            least_cost = cost;
        }
    }
    return least;
}

/* Returns the slot of the last checkpoint that is not after `length`. Returns -1 if there is
 * none. */
static int last_checkpoint(const struct esp_kv_cache *c, int length)
{
    int last = -1;
    for (int i = 0; i < c->slots; i++)
        if (c->checkpoint[i] > (last < 0 ? 0 : c->checkpoint[last]) &&
            c->checkpoint[i] <= length)
            last = i;
    return last;
}

int esp_kv_cache_checkpoint(struct esp_kv_cache *c)
{
    const int last = last_checkpoint(c, c->length);
    if (c->slots == 0 || c->length == 0 || (last >= 0 && c->checkpoint[last] == c->length))
        return ESP_OK;
    int status = fold(c);
    if (status < 0)
        return status;
    const int slot = least_missed(c);
    status = c->ops->state_save(c->cache, slot, c->length);
    if (status == ESP_OK)
        c->checkpoint[slot] = c->length;
    return status;
}

/* While a text grows, saves the states after every CHECKPOINT_EVERY tokens. */
static int save_often(struct esp_kv_cache *c)
{
    const int last = last_checkpoint(c, c->length);
    const int since = c->length - (last < 0 ? 0 : c->checkpoint[last]);
    return since >= CHECKPOINT_EVERY ? esp_kv_cache_checkpoint(c) : (int)ESP_OK;
}

/* If the states include tokens after the end of the text, loads the last checkpoint that is not
 * after that end. The text in the cache is then shortened to the checkpoint. */
static void restore(struct esp_kv_cache *c)
{
    for (int i = 0; i < c->slots; i++)
        if (c->checkpoint[i] > c->length)
            c->checkpoint[i] = 0;
    if (c->cache->folded >= 0 && c->cache->folded <= c->length)
        return;
    const int slot = last_checkpoint(c, c->length);
    c->length = 0;
    if (slot >= 0 && c->ops->state_load(c->cache, slot) == ESP_OK)
        c->length = c->checkpoint[slot];
}

int esp_kv_cache_forward(struct esp_kv_cache *c, const struct esp_batch *batch)
{
    const int status = c->ops->forward(c->cache, batch);
    if (status < 0)
        esp_kv_cache_cut(c, c->length);
    return status;
}

/* ------------------------------------------------------------------ another vocabulary */

/* Allocates memory for `length` tokens of text. Returns false if there is no memory. */
static bool reserve(struct esp_kv_cache *c, int length)
{
    int64_t room = c->before_room > 0 ? c->before_room : 256;
    while (room <= length)
        room *= 2;
    if (!c->translation || room == c->before_room)
        return true;
    int32_t *grown = realloc(c->before, (size_t)room * sizeof *grown);
    if (!grown)
        return false;
    grown[0] = 0;
    c->before = grown;
    c->before_room = (int)(room < INT32_MAX ? room : INT32_MAX);
    return true;
}

int esp_kv_cache_translate(struct esp_kv_cache *c, const struct esp_translation *translation,
                           char *err, size_t errlen)
{
    c->translation = translation;
    for (int i = 0; i < 2; i++)
        c->part_row[i] =
            esp_arrays_add(&c->arrays, (size_t)c->max_batch, sizeof *c->part_row[i]);
    return !c->arrays.failed && reserve(c, c->context < 1 << 16 ? c->context : 1)
               ? ESP_OK
               : esp_fail(err, errlen, ESP_E_MEMORY,
                          "not enough memory for a text of the draft");
}

/* Spells `token`, which has index `at` in the text, with tokens of the model. Writes these
 * tokens to `out`, one for each row, and returns the number of rows. Two of the longest
 * spellings fit in a pass. */
static int spell(const struct esp_kv_cache *c, int at, int32_t token,
                 int32_t out[ESP_SPELLED_MOST + 1])
{
    const int32_t *spelled, lead = c->translation->lead;
    const int most = c->max_batch / 2 < ESP_SPELLED_MOST ? c->max_batch / 2 : ESP_SPELLED_MOST;
    int count = esp_translation_spell(c->translation, token, &spelled);
    const int skipped = count > most ? count - most : 0;
    const int first = at == 0 && lead >= 0 && count - skipped < c->max_batch / 2;
    if (first)
        out[0] = lead;
    count -= skipped;
    memcpy(out + first, spelled + skipped, (size_t)count * sizeof *out);
    return first + count;
}

static int rows_before(const struct esp_kv_cache *c, int length)
{
    return c->translation ? c->before[length] : length;
}

int esp_kv_cache_text_rows(const struct esp_kv_cache *c)
{
    return rows_before(c, c->length);
}

int esp_kv_cache_count(const struct esp_kv_cache *c, const int32_t *tokens, int at, int count)
{
    int32_t spelled[ESP_SPELLED_MOST + 1];
    int rows = 0;
    if (!c->translation)
        return count;
    for (int i = 0; i < count && rows < INT32_MAX / 2; i++)
        rows += spell(c, at + i, tokens[i], spelled);
    return rows;
}

int esp_kv_cache_left(const struct esp_kv_cache *c, const int32_t *text, int length)
{
    return length <= c->length
               ? c->context - rows_before(c, length)
               : c->context - esp_kv_cache_text_rows(c) -
                     esp_kv_cache_count(c, text + c->length, c->length, length - c->length);
}

int esp_kv_cache_most(const struct esp_kv_cache *c, const int32_t *text, int length)
{
    int left = c->context - esp_kv_cache_text_rows(c), most = c->length;
    if (!c->translation)
        return length < c->context ? length : c->context;
    while (most < length && (left -= esp_kv_cache_count(c, text + most, most, 1)) >= 0)
        most++;
    return most;
}

bool esp_kv_cache_keeps(const struct esp_kv_cache *c, int32_t token)
{
    const int32_t *spelled;
    return !c->translation || esp_translation_spell(c->translation, token, &spelled) == 1;
}

/* ------------------------------------------------------------------ rows */

/* Returns the index of the first token after the sinks that has a row. */
static int first_kept(const struct esp_kv_cache *c)
{
    return round_up(c->window.sinks) + c->window.dropped;
}

int esp_kv_cache_make_room(struct esp_kv_cache *c, int rows)
{
    struct esp_window *w = &c->window;
    const int begin = round_up(w->sinks), text = esp_kv_cache_text_rows(c);
    const int end = text - w->dropped;
    if (rows <= c->rows - end)
        return ESP_OK;
    const int gone = text - w->recent - REWIND - first_kept(c);
    const int step = gone / ESP_WINDOW_STEP * ESP_WINDOW_STEP;
    if (w->recent == 0 || gone < 0 || rows > c->rows - end + step)
        return ESP_E_CONTEXT;
    int status = fold(c);
    if (status < 0)
        return status;
    for (int at = begin, n; at + step < end; at += n) {
        n = end - step - at < c->max_batch ? end - step - at : c->max_batch;
        for (int i = 0; i < n; i++)
            c->positions[i] = at + step + i;
        status = c->ops->keep(c->cache, at, c->positions, n);
        if (status < 0)
            return status;
    }
    w->dropped += step;
    return ESP_OK;
}

void esp_kv_cache_place(const struct esp_kv_cache *c, int ahead, struct esp_batch *batch)
{
    batch->prefix = esp_kv_cache_text_rows(c) - c->window.dropped;
    batch->first = batch->prefix + ahead;
    batch->window = c->window.recent > 0 ? &c->window : NULL;
}

void esp_kv_cache_cut(struct esp_kv_cache *c, int length)
{
    const bool lost = is_recurrent(c) && (c->cache->folded < 0 || c->cache->folded > c->length);
    if (length >= c->length && !lost)
        return;
    c->length = length < c->length ? length : c->length;
    if (is_recurrent(c))
        restore(c);
    if (c->window.dropped == 0 ||
        rows_before(c, c->length) + 1 - c->window.recent >= first_kept(c))
        return;
    c->length = c->window.dropped = 0;
    if (is_recurrent(c))
        restore(c);
}

static int32_t known(const struct esp_kv_cache *c, int32_t token)
{
    const int32_t *spelled;
    if (!c->translation)
        return token < c->vocabulary ? token : 0;
    const int count = esp_translation_spell(c->translation, token, &spelled);
    return spelled[count - 1];
}

const int32_t *esp_kv_cache_known(struct esp_kv_cache *c, const int32_t *tokens, int count)
{
    for (int i = 0; i < count; i++)
        c->tokens[i] = known(c, tokens[i]);
    return c->tokens;
}

const int32_t *esp_kv_cache_last(struct esp_kv_cache *c, int rows)
{
    for (int i = 0; i < rows; i++)
        c->logits_row[i] = i == rows - 1 ? 0 : -1;
    return c->logits_row;
}

/* Returns how many of the tokens fit in a pass. Sets *rows to the number of rows of these
 * tokens. */
static int fill(const struct esp_kv_cache *c, const int32_t *tokens, int count, int *rows)
{
    int n = 0;
    *rows = 0;
    for (int more; n < count; n++, *rows += more) {
        int32_t spelled[ESP_SPELLED_MOST + 1];
        more = spell(c, c->length + n, tokens[n], spelled);
        if (more > c->max_batch - *rows)
            break;
    }
    return n;
}

/* Returns the output row of token `i` of a batch. */
static int32_t row_of(const int32_t *rows, int i)
{
    return rows ? rows[i] : i;
}

/* Writes the rows of `count` tokens. The first of these tokens has index `done` in the batch.
 * Outputs belong to the last row of each token. Returns whether logits are computed for any of
 * the tokens. */
static bool write_rows(struct esp_kv_cache *c, const int32_t *tokens, int count,
                       const struct esp_batch *batch, int done)
{
    const int first = esp_kv_cache_text_rows(c);
    bool any = false;
    for (int n = 0, row = 0; n < count; n++) {
        const int rows = spell(c, c->length + n, tokens[n], c->tokens + row);
        for (int end = row + rows; row < end; row++) {
            const bool last = row == end - 1;
            c->positions[row] = first + row;
            c->part_row[0][row] = last ? row_of(batch->logits_row, done + n) : -1;
            c->part_row[1][row] =
                last && batch->states ? row_of(batch->states->row, done + n) : -1;
            any |= batch->logits && c->part_row[0][row] >= 0;
        }
        c->before[c->length + n + 1] = first + row;
    }
    return any;
}

/* Does the same as esp_kv_cache_run(), but runs as many passes as the rows of the tokens
 * need. */
static int run_translated(struct esp_kv_cache *c, const int32_t *tokens,
                          const struct esp_batch *batch)
{
    int status = reserve(c, c->length + batch->rows) ? ESP_OK : ESP_E_MEMORY;
    for (int done = 0, n; done < batch->rows && status == ESP_OK; done += n) {
        int rows;
        n = fill(c, tokens + done, batch->rows - done, &rows);
        if ((status = esp_kv_cache_make_room(c, rows)) < 0)
            return status;
        const bool any = write_rows(c, tokens + done, n, batch, done);
        struct esp_states states = {.count = 0};
        if (batch->states)
            states = *batch->states;
        states.row = c->part_row[1];
        struct esp_batch part = {.rows = rows,
                                 .tokens = c->tokens,
                                 .positions = c->positions,
                                 .logits = any ? batch->logits : NULL,
                                 .logits_row = c->part_row[0],
                                 .step = any ? batch->step : NULL,
                                 .states = batch->states ? &states : NULL};
        esp_kv_cache_place(c, 0, &part);
        status = c->ops->forward(c->cache, &part);
        c->passes++;
        c->length += status < 0 ? 0 : n;
    }
    return status;
}

int esp_kv_cache_run(struct esp_kv_cache *c, const int32_t *tokens, struct esp_batch *batch)
{
    if (c->translation)
        return run_translated(c, tokens, batch);
    int status = esp_kv_cache_make_room(c, batch->rows);
    if (status < 0)
        return status;
    for (int i = 0; i < batch->rows; i++)
        c->positions[i] = c->length + i;
    batch->tokens = esp_kv_cache_known(c, tokens, batch->rows);
    batch->positions = c->positions;
    esp_kv_cache_place(c, 0, batch);
    status = esp_kv_cache_forward(c, batch);
    if (status < 0)
        return status;
    c->passes++;
    c->length += batch->rows;
    return save_often(c);
}

int esp_kv_cache_append(struct esp_kv_cache *c, const int32_t *tokens, int count,
                        struct esp_rows *logits, const struct esp_step *step)
{
    if (esp_kv_cache_count(c, tokens, c->length, count) >
        c->context - esp_kv_cache_text_rows(c))
        return ESP_E_CONTEXT;
    while (count > 0) {
        int rows = count < c->max_batch ? count : c->max_batch;
        bool last = rows == count;
        struct esp_batch batch = {
            .rows = rows,
            .text = rows,
            .logits = last ? logits : NULL,
            .logits_row = esp_kv_cache_last(c, rows),
            .step = last ? step : NULL,
        };
        int status = esp_kv_cache_run(c, tokens, &batch);
        if (status < 0)
            return status;
        tokens += rows;
        count -= rows;
    }
    return ESP_OK;
}

int esp_kv_cache_keep(struct esp_kv_cache *c, const int32_t *which, int count)
{
    const int text = esp_kv_cache_text_rows(c), end = text - c->window.dropped;
    bool moved = false;
    if (!reserve(c, c->length + count))
        return ESP_E_MEMORY;
    for (int i = 0; i < count; i++) {
        moved |= which[i] != i;
        c->logits_row[i] = end + which[i];
    }
    int status = moved ? c->ops->keep(c->cache, end, c->logits_row, count) : ESP_OK;
    if (status < 0)
        return status;
    for (int i = 1; i <= count && c->translation; i++)
        c->before[c->length + i] = text + i;
    c->length += count;
    return save_often(c);
}
