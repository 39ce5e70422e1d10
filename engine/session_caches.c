/* session_caches.c - manages a session's matrices of rows and its KV caches. The caches contain
 * the whole text or a window of it.
 *
 * With a window ("StreamingLLM", Xiao et al. 2024), a text can be endless: each token attends
 * only to the first few tokens of the text (the sinks) and to the most recent tokens. This
 * changes the output distribution. However, only the position of a token decides to which
 * tokens it attends; the tree, the cache and the drafter have no influence. Therefore every
 * drafter gives the same output as plain decoding with the same window. Draft models use the
 * target's window, or the largest window that fits in their own context. A quantised copy of
 * the target has no cache: it reads the rows of the target's cache, and writes scratch rows
 * after them.
 *
 * Differences from the paper: The window includes the token itself. Therefore a model uses no
 * more than `sinks` + `window` positions. Tokens of a prompt have windows, too. Keys are not
 * rotated again with every token; see kv_cache.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session_parts.h"
#include "kernels/clock.h"
#include "kernels/status.h"

enum { SINKS = 4, RECENT = 1020 /* StreamingLLM's code has a cache of 1024 rows */ };

/* A number of tokens that no text reaches. */
enum { ENDLESS = 1 << 30 };

bool esp_session_has_head(const struct esp_session *s)
{
    return s->engine->draft && s->engine->draft->head;
}

bool esp_session_has_mtp(const struct esp_session *s)
{
    return esp_session_has_head(s) && s->engine->draft->desc.norm_embedding.data;
}

bool esp_session_has_copy(const struct esp_session *s)
{
    return s->engine->draft && s->engine->draft->original;
}

const char *esp_session_failure(const struct esp_session *s, int status)
{
    const char *failure = s->ops->failure ? s->ops->failure(s->engine->backend) : "";
    bool device = status == ESP_E_DEVICE || status == ESP_E_MEMORY || status == ESP_E_FILE;
    return device && *failure ? failure : esp_status_message(status);
}

/* ------------------------------------------------------------------ rows */

static int prefill(struct esp_session *s)
{
    int32_t *text = s->text;
    s->stats.prefill_rows += s->length - 1 - s->target.length;
    if (esp_session_has_head(s) && !s->set.drafter->without_model)
        return esp_features_catch_up(&s->features, &s->target, &s->draft_cache, text,
                                     s->length);
    int status = esp_kv_cache_append(&s->target, text + s->target.length,
                                     s->length - 1 - s->target.length, NULL, NULL);
    const int draft_length = /* number of tokens that fit in the draft model's context; in
                                longer texts, nothing is drafted */
        esp_kv_cache_most(&s->draft_cache, text, s->length - 1);
    if (status == ESP_OK && !s->set.drafter->without_model && !esp_session_has_copy(s) &&
        s->draft_cache.length < draft_length)
        status = esp_kv_cache_append(&s->draft_cache, text + s->draft_cache.length,
                                     draft_length - s->draft_cache.length, NULL, NULL);
    return status;
}

/* Saves the states of recurrent layers at two positions, so that users can go back to them:
 * before the prompt and at its end. */
static int fill(struct esp_session *s)
{
    int status = esp_kv_cache_checkpoint(&s->target);
    if (status == ESP_OK)
        status = prefill(s);
    if (status == ESP_OK)
        status = esp_kv_cache_checkpoint(&s->target);
    if (status == ESP_OK && s->draft_cache.cache && !esp_session_has_copy(s))
        status = esp_kv_cache_checkpoint(&s->draft_cache);
    return status;
}

int esp_session_prefill(struct esp_session *s)
{
    const int status = fill(s);
    return status < 0 ? esp_session_recover(s, status) : status;
}

/* The row of the last remaining token is removed, too, because that token becomes the root. A
 * draft head has no row for the first token. */
void esp_session_shorten(struct esp_session *s, int count)
{
    esp_session_keep_rows(s, count, count - 1);
}

void esp_session_keep_rows(struct esp_session *s, int count, int computed)
{
    computed = computed > 0 ? computed : 0;
    if (esp_session_has_head(s)) {
        esp_features_cut(&s->features, computed);
        esp_kv_cache_cut(&s->draft_cache, computed > 0 ? computed - 1 : 0);
    }
    if (count < s->length)
        s->draft_context.back.length = 0; /* the last iteration's data describe the removed
                                             tokens */
    s->length = count;
    esp_kv_cache_cut(&s->target, computed);
    esp_kv_cache_cut(&s->draft_cache, computed);
}

/* ------------------------------------------------------------------ the window */

/* Returns whether the model has learned position embeddings. */
static bool has_positions(const struct esp_model *model)
{
    return model && model->desc.position_embedding.data;
}

void esp_window_of(const struct esp_session_values *values, int context, int *recent,
                   int *sinks)
{
    const int word = values->sinks;
    *recent = *sinks = 0;
    if (values->window == ESP_WINDOW_OFF)
        return;
    *sinks = word == ESP_SINKS_AUTO ? SINKS : word == ESP_SINKS_NONE ? 0 : word;
    const int room = context - *sinks;
    *recent = values->window != ESP_WINDOW_ON ? values->window : room < RECENT ? room : RECENT;
}

int esp_session_choose_window(const struct esp_session *s,
                              const struct esp_session_values *values,
                              struct esp_window *window, char *err, size_t errlen)
{
    const int context = s->engine->context;
    int recent, sinks;
    esp_window_of(values, context, &recent, &sinks);
    const int room = context - sinks;
    *window = (struct esp_window){.sinks = sinks, .recent = recent};
    if (values->window == ESP_WINDOW_OFF) {
        return s->length <= context
                   ? ESP_OK
                   : esp_fail(err, errlen, ESP_E_CONTEXT,
                              "the text has %d tokens, but without a window the context holds "
                              "%d; clear the text first",
                              s->length, context);
    }
    if (!s->ops->windows)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "backend %s does not support windows yet; use --backend cpu, or "
                        "window off",
                        s->ops->name);
    if (has_positions(s->engine->target) || has_positions(s->engine->draft))
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s has learned positions, which end with its context, so it cannot "
                        "have a window",
                        has_positions(s->engine->target) ? s->engine->target->path
                                                         : s->engine->draft->path);
    if (room < 1)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%d sinks leave no room for a window in a context of %d tokens", sinks,
                        context);
    if (recent > room)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "a window of %d tokens with %d sinks does not fit in a context of %d: "
                        "the window can have at most %d",
                        recent, sinks, context, room);
    return ESP_OK;
}

/* Returns the window. If it does not fit in a context of this many tokens, makes it smaller. */
static struct esp_window within(const struct esp_window *window, int context)
{
    struct esp_window w = *window;
    w.sinks = w.sinks < context ? w.sinks : context - 1;
    w.recent = w.recent < context - w.sinks ? w.recent : context - w.sinks;
    return w;
}

static int open_cache(struct esp_session *s, struct esp_kv_cache *cache,
                      const struct esp_model *model, struct esp_weights *weights,
                      const struct esp_window *window, char *err, size_t errlen)
{
    const struct esp_engine *e = s->engine;
    const int own = model->desc.context < e->context ? model->desc.context : e->context;
    const struct esp_window w = within(window, own);
    const bool windowed = window->recent > 0;
    const int tokens = windowed ? esp_kv_cache_window_rows(&w) : own;
    int status = esp_kv_cache_open(cache, s->ops, weights, model->desc.vocabulary, tokens,
                                   e->max_nodes + 1, err, errlen);
    if (status == ESP_OK && windowed)
        esp_kv_cache_set_window(cache, &w, ENDLESS);
    if (status == ESP_OK && model == e->draft && e->translation.tokens > 0)
        status = esp_kv_cache_translate(cache, &e->translation, err, errlen);
    return status;
}

/* Swaps the session's caches with `caches`. */
static void exchange(struct esp_session *s, struct esp_kv_cache caches[2])
{
    const struct esp_kv_cache target = s->target, draft = s->draft_cache;
    s->target = caches[0];
    s->draft_cache = caches[1];
    caches[0] = target;
    caches[1] = draft;
    s->context = s->target.context;
    if (esp_session_has_head(s))
        esp_features_cut(&s->features, 0);
}

/* Replaces the caches, or opens caches if there are none yet. */
static int open_caches(struct esp_session *s, const struct esp_window *window, char *err,
                       size_t errlen)
{
    const struct esp_engine *e = s->engine;
    struct esp_kv_cache caches[2] = {{.ops = NULL}};
    struct esp_rank_times times = {.starts = 0};
    if (s->ops->rank_times)
        s->ops->rank_times(e->backend, &times);
    int status = open_cache(s, &caches[0], e->target, e->target_weights, window, err, errlen);
    if (status == ESP_OK && esp_session_has_copy(s))
        status = esp_kv_cache_join(&caches[1], &caches[0], e->draft_weights,
                                   e->draft->desc.vocabulary, err, errlen);
    else if (status == ESP_OK && e->draft)
        status = open_cache(s, &caches[1], e->draft, e->draft_weights, window, err, errlen);
    if (status == ESP_OK) {
        exchange(s, caches);
        status = s->length > 1 ? fill(s) : (int)ESP_OK;
        if (status < 0) {
            esp_fail(err, errlen, status, "prefill of the text failed: %s",
                     esp_session_failure(s, status));
            exchange(s, caches);
        }
    }
    if (status == ESP_OK)
        s->rank_starts = times.starts;
    esp_kv_cache_close(&caches[1]);
    esp_kv_cache_close(&caches[0]);
    return status;
}

int esp_session_open_caches(struct esp_session *s, const struct esp_window *window, char *err,
                            size_t errlen)
{
    return s->target.cache && window->recent == s->target.window.recent &&
                   window->sinks == s->target.window.sinks
               ? (int)ESP_OK
               : open_caches(s, window, err, errlen);
}

/* Estimates how many seconds the models need to compute the text again, from the speed of the
 * prefills so far. */
static double text_seconds(const struct esp_session *s)
{
    const struct esp_stats *t = &s->stats;
    const double rows = t->prefill_rows > 0 ? (double)t->prefill_rows : 1;
    return t->prefill_seconds / rows * s->length;
}

int esp_session_recover(struct esp_session *s, int status)
{
    static const double MOST = 30;
    const double start = esp_clock();
    const struct esp_window window = s->target.window;
    struct esp_rank_times times;
    char why[512] = "", err[512], text[640];
    if (status != ESP_E_DEVICE || !s->ops->restart_ranks ||
        !s->ops->rank_times(s->engine->backend, &times))
        return status;
    const bool first = times.starts == s->rank_starts; /* false if another session has already
                                                        * restarted the ranks */
    if (first &&
        s->ops->restart_ranks(s->engine->backend, MOST - text_seconds(s), why, sizeof why) < 0)
        return status;
    status = open_caches(s, &window, err, sizeof err);
    if (status < 0 || !first)
        return status;
    snprintf(text, sizeof text,
             "%s; the ranks were started again, and the text was computed once more, in %.1f s",
             why, esp_clock() - start);
    esp_session_emit(s, (struct esp_event){.type = ESP_EVENT_NOTE, .text = text});
    return ESP_OK;
}

int esp_session_seen(const struct esp_session *s, int length)
{
    const struct esp_window *w = &s->target.window;
    const int most = w->recent > 0 ? w->sinks + w->recent : length;
    return length < most ? length : most;
}

/* ------------------------------------------------------------------ matrices of rows */

int esp_session_open_rows(const struct esp_session *s, const struct esp_wanted_rows *wanted,
                          int count, char *err, size_t errlen)
{
    int status = ESP_OK;
    for (int i = 0; i < count && status == ESP_OK; i++)
        if (wanted[i].rows > 0 && !*wanted[i].to)
            status = s->ops->rows_open(wanted[i].to, s->engine->backend, wanted[i].rows,
                                       wanted[i].width, err, errlen);
    return status;
}

/* ------------------------------------------------------------------ the text */

int esp_session_text_room(struct esp_session *s, int tokens)
{
    int64_t room = s->text_room > 0 ? s->text_room : 1024;
    while (room < tokens)
        room *= 2;
    if (room == s->text_room)
        return ESP_OK;
    int32_t *text = realloc(s->text, (size_t)room * sizeof *text);
    if (!text)
        return ESP_E_MEMORY;
    s->text = text;
    s->text_room = (int)(room < INT32_MAX ? room : INT32_MAX);
    return ESP_OK;
}
