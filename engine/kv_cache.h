/* kv_cache.h - manages the KV cache of one model for a session.
 *
 * Rows 0..length-1 belong to the first `length` tokens of the text. In a draft head's cache,
 * they belong to the `length` tokens after the first token, because no hidden state precedes
 * the first token. The rows after the text belong to the tree of the current iteration, in the
 * order of its passes. esp_kv_cache_keep() makes the rows of accepted tokens part of the text.
 * The next iteration overwrites the other rows.
 *
 * A draft model with another vocabulary (engine/model/translation.h) may have several rows for
 * a token of the text. `length` is still a number of tokens of the text, but there is one row
 * and one position for each of the model's tokens.
 *
 * With a window (struct esp_window) the cache may be smaller than the text. When there is no
 * room, the cache drops the oldest rows to which no later row attends. The remaining rows move
 * in steps of ESP_WINDOW_STEP; results do not depend on when they move. Keys keep the rotation
 * of their position in the whole text. This is correct because only distances between positions
 * matter; for the sinks, the distance is corrected in the query. StreamingLLM instead rotates
 * all keys again at every token.
 *
 * A model with recurrent layers also has states (struct esp_cache), from which no token can be
 * removed again. The cache saves copies of the states ("checkpoints") while the text grows, so
 * that a text can be shortened without computing all of it again. esp_kv_cache_cut() goes back
 * to the last checkpoint that is not after the new end. The tokens after the checkpoint are
 * computed again. The distance between checkpoints grows with their distance from the end of
 * the text.
 */
#ifndef ESP_KV_CACHE_H
#define ESP_KV_CACHE_H

#include "engine/arrays.h"
#include "engine/model/translation.h"
#include "kernels/kernels.h"

enum { ESP_CHECKPOINTS = 8 };

struct esp_kv_cache {
    const struct esp_backend_ops *ops;
    struct esp_weights *weights;
    struct esp_cache *cache;
    int vocabulary;           /* the model's tokens are 0 to vocabulary-1 */
    int context;              /* maximum number of rows of the text */
    int length;               /* number of tokens of the text that have rows */
    int rows;                 /* number of rows that the cache has */
    struct esp_window window; /* recent = 0: no window, the cache has the whole text */
    int max_batch;            /* maximum number of rows per pass */
    int passes;               /* number of forward passes since the last reset */
    int32_t *tokens, *positions, *logits_row; /* (max_batch) */
    /* (slots) For a model with recurrent layers, the number of tokens before each checkpoint;
     * 0: the slot is empty. */
    int slots, checkpoint[ESP_CHECKPOINTS];
    bool joined; /* the rows and states belong to another cache, see esp_kv_cache_join() */
    /* NULL if the model has the same vocabulary as the text. */
    const struct esp_translation *translation;
    int32_t *before; /* number of rows before each token; before_room entries, length + 1 of
                        them used */
    int before_room;
    int32_t *part_row[2]; /* (max_batch) each; logits_row and states_row of a pass */
    struct esp_arrays arrays;
};

/* Returns the maximum number of rows per pass of a cache for `tokens` tokens of text and
 * `tree_rows` rows of a tree. */
int esp_kv_cache_batch(int tokens, int tree_rows);

/* Returns how many tokens of text a cache with this window must have room for. */
int esp_kv_cache_window_rows(const struct esp_window *window);

/* Opens a cache for `tokens` tokens of text and `tree_rows` rows after them. `vocabulary` is
 * the size of the model's vocabulary. */
int esp_kv_cache_open(struct esp_kv_cache *cache, const struct esp_backend_ops *ops,
                      struct esp_weights *weights, int vocabulary, int tokens, int tree_rows,
                      char *err, size_t errlen);
/* Opens a view of the owner's cache, for passes of other weights (cache_join() of the backend).
 * The view shares the owner's rows and has no text. Close the view before its owner. */
int esp_kv_cache_join(struct esp_kv_cache *cache, const struct esp_kv_cache *owner,
                      struct esp_weights *weights, int vocabulary, char *err, size_t errlen);
/* Makes room for `rows` rows after the owner's text; the view begins at the first of these
 * rows. Also adds the text's complete chunks to the states of recurrent layers. Rows that
 * passes over the view write are temporary: the owner's next passes overwrite them, and the
 * owner's `length` never counts them. */
int esp_kv_cache_follow(struct esp_kv_cache *view, struct esp_kv_cache *owner, int rows);
/* Sets the window; the cache must be empty. If a text of `context` tokens has more rows than
 * the cache, the cache needs at least esp_kv_cache_window_rows() rows for text. */
void esp_kv_cache_set_window(struct esp_kv_cache *cache, const struct esp_window *window,
                             int context);
/* Makes this the cache of a model with another vocabulary. The cache must be empty, and the
 * translation must outlive it. */
int esp_kv_cache_translate(struct esp_kv_cache *cache,
                           const struct esp_translation *translation, char *err, size_t errlen);
void esp_kv_cache_close(struct esp_kv_cache *cache);

/* Returns the number of rows of the computed text, which is also the position of the next
 * row. */
int esp_kv_cache_text_rows(const struct esp_kv_cache *cache);
/* Returns how many rows `count` tokens of a text have, starting with the token at index
 * `at`. */
int esp_kv_cache_count(const struct esp_kv_cache *cache, const int32_t *tokens, int at,
                       int count);
/* Returns how many rows the context has left after the first `length` tokens of a text, whether
 * these tokens are computed or not. The result is negative if they do not fit. */
int esp_kv_cache_left(const struct esp_kv_cache *cache, const int32_t *text, int length);
/* Returns how many tokens of a text of `length` tokens fit in the context. */
int esp_kv_cache_most(const struct esp_kv_cache *cache, const int32_t *text, int length);
/* Returns whether the tree row of this token can become a row of the text. */
bool esp_kv_cache_keeps(const struct esp_kv_cache *cache, int32_t token);

/* Makes room for `rows` rows after the text. */
int esp_kv_cache_make_room(struct esp_kv_cache *cache, int rows);
/* Prepares a batch of rows that begins `ahead` rows after the end of the text: fills in
 * `first`, `prefix` and `window`. */
void esp_kv_cache_place(const struct esp_kv_cache *cache, int ahead, struct esp_batch *batch);
/* Shortens the text in the cache to its first `length` tokens. Empties the cache if the next
 * token attends to rows that have been dropped. If the states of recurrent layers include later
 * tokens, the text is shortened to the last checkpoint before `length`. Does nothing if the
 * text is not longer. */
void esp_kv_cache_cut(struct esp_kv_cache *cache, int length);
/* Saves the states of recurrent layers at the end of the text, so that the text can later be
 * shortened to this length. Does nothing for other models. */
int esp_kv_cache_checkpoint(struct esp_kv_cache *cache);
/* Runs a batch that esp_kv_cache_place() prepared. If the pass fails, the states of recurrent
 * layers are lost. They are then loaded from a checkpoint, and the cache has fewer tokens. */
int esp_kv_cache_forward(struct esp_kv_cache *cache, const struct esp_batch *batch);

/* Returns a copy of `count` tokens (at most max_batch), with token 0 in place of each token
 * that is outside this model's vocabulary. Valid until the next call. A draft model may have
 * fewer tokens than the target, if the target's logits have more padding. If the model has
 * another vocabulary, a token is replaced by the last of the model's tokens that spell it.
 * Replacing tokens can make drafts worse, but never changes the output. */
const int32_t *esp_kv_cache_known(struct esp_kv_cache *cache, const int32_t *tokens, int count);

/* Returns an array for the member logits_row of a batch of `rows` rows. It requests only the
 * logits of the batch's last row, which are written to row 0. Valid until the next call. */
const int32_t *esp_kv_cache_last(struct esp_kv_cache *cache, int rows);

/* Runs batch->rows tokens of the text (at most max_batch) and appends them. The caller sets the
 * outputs of the batch and batch->text. The tokens at row batch->text and after it can be
 * removed again without a checkpoint. This function sets tokens, positions and cache rows. If a
 * token has several rows, its outputs belong to the last of these rows. With batch->step, at
 * most two tokens may have outputs. */
int esp_kv_cache_run(struct esp_kv_cache *cache, const int32_t *tokens,
                     struct esp_batch *batch);

/* Runs tokens of the text and appends them. If `logits` is not NULL, the logits after the last
 * token are written to its row 0. If `step` is not NULL, it is applied to that row.
 * Returns ESP_E_CONTEXT if the tokens do not fit. */
int esp_kv_cache_append(struct esp_kv_cache *cache, const int32_t *tokens, int count,
                        struct esp_rows *logits, const struct esp_step *step);

/* Appends some of the rows after the text to the text. `which` has their indices in ascending
 * order; index 0 is the first row after the text. */
int esp_kv_cache_keep(struct esp_kv_cache *cache, const int32_t *which, int count);

#endif
