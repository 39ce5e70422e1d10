/* perplexity.c - runs plain passes of the target over pieces of a text; see perplexity.h. */
#include "engine/perplexity.h"

#include <math.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "engine/kv_cache.h"
#include "kernels/status.h"

enum { PIECE = 512, ROWS = 64 /* rows per pass */ };

static const double LEAST = 1e-38; /* smaller probabilities are replaced by this one */

struct measuring {
    struct esp_engine *engine;
    struct esp_kv_cache cache; /* KV cache for one piece of the text */
    struct esp_rows *rows;
    int32_t *tokens; /* (count) the whole text */
    int count, piece;
    double sum, squares; /* sums of -log p and of its square */
    int counted;
};

static int open_all(struct measuring *m, const char *text, size_t length, char *err,
                    size_t errlen)
{
    struct esp_engine *e = m->engine;
    const struct esp_backend_ops *ops = e->backend->ops;
    m->count = esp_tokenize(e, text, length, NULL, 0);
    if (m->count < 0)
        return esp_fail(err, errlen, m->count, "the text cannot be tokenized");
    if (m->count < 4)
        return esp_fail(
            err, errlen, ESP_E_ARGUMENT,
            "the text has %d tokens; at least 4 are needed, and thousands are better",
            m->count);
    m->piece = e->context < PIECE ? e->context : PIECE;
    m->piece = m->count < m->piece ? m->count : m->piece;
    m->tokens = malloc((size_t)m->count * sizeof *m->tokens);
    if (!m->tokens)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the text");
    esp_tokenize(e, text, length, m->tokens, m->count);
    int status = esp_kv_cache_open(&m->cache, ops, e->target_weights,
                                   e->target->desc.vocabulary, m->piece, 0, err, errlen);
    return status < 0 ? status
                      : ops->rows_open(&m->rows, e->backend, ROWS, e->target->desc.vocabulary,
                                       err, errlen);
}

/* Adds -log p of each token that follows one of the rows begin..end-1 of the piece. The last
 * pass must have computed the logits of these rows. */
static int count_rows(struct measuring *m, const int32_t *piece, int begin, int end)
{
    static const struct esp_sampling plain = {.temperature = 1, .top_p = 1};
    const struct esp_backend_ops *ops = m->engine->backend->ops;
    int32_t which[ROWS];
    double p[ROWS];
    int rows = end - begin;
    for (int i = 0; i < rows; i++)
        which[i] = i;
    int status = ops->softmax(m->rows, which, rows, &plain);
    if (status == ESP_OK)
        status = ops->gather(m->rows, which, piece + begin + 1, rows, p, ESP_NOW);
    for (int i = 0; i < rows && status == ESP_OK; i++) {
        double loss = -log(p[i] > LEAST ? p[i] : LEAST);
        m->sum += loss;
        m->squares += loss * loss;
        m->counted++;
    }
    return status;
}

static int run_piece(struct measuring *m, int32_t *piece)
{
    int32_t prefix = esp_tokenizer_prefix(m->engine->tokenizer), first = piece[0];
    int status = ESP_OK;
    if (prefix >= 0)
        piece[0] = prefix;
    for (int at = 0; at < m->piece && status == ESP_OK; at += ROWS) {
        int rows = m->piece - at < ROWS ? m->piece - at : ROWS, wanted = 0;
        int32_t to[ROWS];
        for (int i = 0; i < rows; i++) {
            bool counts = at + i >= m->piece / 2 && at + i < m->piece - 1;
            to[i] = counts ? wanted++ : -1;
        }
        struct esp_batch batch = {
            .rows = rows, .logits = wanted > 0 ? m->rows : NULL, .logits_row = to};
        int begin = at > m->piece / 2 ? at : m->piece / 2;
        status = esp_kv_cache_run(&m->cache, piece + at, &batch);
        if (status == ESP_OK && wanted > 0)
            status = count_rows(m, piece, begin, begin + wanted);
    }
    m->cache.length = 0;
    piece[0] = first;
    return status;
}

int esp_perplexity_measure(struct esp_engine *engine, const char *text, size_t length,
                           struct esp_perplexity *result, esp_progress *progress, void *user,
                           char *err, size_t errlen)
{
    struct measuring m = {.engine = engine};
    const struct esp_backend_ops *ops = engine->backend->ops;
    int status = open_all(&m, text, length, err, errlen);
    for (int at = 0; status == ESP_OK && at + m.piece <= m.count; at += m.piece) {
        status = run_piece(&m, m.tokens + at);
        if (status < 0)
            esp_fail(err, errlen, status, "%s failed on the text: %s", engine->target->path,
                     esp_status_message(status));
        else if (progress && !progress(user, "perplexity", (size_t)at, (size_t)m.count))
            status = esp_fail(err, errlen, ESP_E_CANCELLED, "the measurement was cancelled");
    }
    if (status == ESP_OK) {
        double mean = m.sum / m.counted;
        double spread = m.squares / m.counted - mean * mean;
        result->value = exp(mean);
        result->error = result->value * sqrt(fmax(spread, 0) / m.counted);
        result->tokens = m.counted;
        result->piece = m.piece;
    }
    if (m.rows)
        ops->rows_close(m.rows);
    esp_kv_cache_close(&m.cache);
    free(m.tokens);
    return status;
}
