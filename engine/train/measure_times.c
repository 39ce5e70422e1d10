/* measure_times.c - measures the times of passes on this machine; see pass_times.h.
 *
 * The selector itself is timed, too, with random weights. All passes are timed in turn, round
 * after round, and the fastest time of each is used. Therefore, even if the machine is slow for
 * a few seconds, passes of one size do not look more expensive than the others.
 *
 * The time of a pass includes the work that follows it in an iteration. After a draft pass this
 * is a softmax and a draw for each row; after a target pass it is a softmax. The text before a
 * pass does not affect its time, so the text consists of token 0 repeated.
 */
#include "engine/train/selector_samples.h"

#include <math.h>
#include <string.h>

#include "engine/selector/selector.h"
#include "kernels/clock.h"
#include "kernels/status.h"

enum { TRIES = 12, LEAST_ROUNDS = 4, MOST_ROUNDS = 60 };

/* Clock speed and processor caches change with the number of rows, so a pass is repeated for
 * SETTLED seconds. All rounds together take SECONDS. */
static const double SETTLED = 0.004, SECONDS = 4;

static int time_pass(struct esp_sampler *s, struct esp_kv_cache *c, struct esp_rows *rows,
                     int count, float *least)
{
    const int length = c->length;
    static const struct esp_sampling sampling = {1, 1, 0};
    for (int i = 0; i < count; i++) {
        s->positions[i] = length + i;
        s->logits_row[i] = i;
        s->u[i] = 0.5;
    }
    const struct esp_batch batch = {
        .rows = count,
        .tokens = s->tokens,
        .positions = s->positions,
        .first = length,
        .prefix = length,
        .logits = rows,
    };
    const double began = esp_clock();
    for (int try = 0; try < 2 || (try < TRIES && esp_clock() - began < SETTLED); try++) {
        memset(s->tokens, 0, (size_t)count * sizeof *s->tokens);
        const double start = esp_clock();
        int status = s->ops->forward(c->cache, &batch);
        if (status == ESP_OK)
            status = s->ops->softmax(rows, s->logits_row, count, &sampling);
        if (status == ESP_OK)
            status = s->ops->sample(rows, s->logits_row, s->u, c == &s->draft ? count : 1, 1,
                                    NULL, 0, s->tokens, s->values, ESP_NOW);
        if (status < 0)
            return status;
        *least = fminf(*least, (float)(esp_clock() - start));
    }
    return ESP_OK;
}

/* Cuts or extends the cache's text to `length` tokens. Later calls find a checkpoint at this
 * length. */
static int go_to(struct esp_sampler *s, struct esp_kv_cache *c, int length)
{
    esp_kv_cache_cut(c, length);
    const int missing = length - c->length;
    if (missing == 0)
        return ESP_OK;
    memset(s->piece, 0, (size_t)missing * sizeof *s->piece);
    int status = esp_kv_cache_append(c, s->piece, missing, NULL, NULL);
    return status < 0 ? status : esp_kv_cache_checkpoint(c);
}

static int time_choice(struct esp_sampler *s, float *seconds)
{
    struct esp_selector selector;
    struct esp_selector_score score;
    float scalars[ESP_SCALARS] = {0};
    const float *states[ESP_SELECTOR_STATES];
    double least = INFINITY;
    int status = esp_selector_open(&selector, &s->layout.shape);
    if (status < 0)
        return status;
    for (int i = 0; i < ESP_SELECTOR_STATES; i++) /* the time does not depend on the states */
        states[i] = selector.weights +
                    esp_selector_part(&selector.shape, ESP_SELECTOR_PER_STATE * i).offset;
    for (int i = 0; i < ESP_SCALARS; i++)
        selector.deviation[i] = 1;
    status = esp_selector_prepare(&selector);
    for (int try = 0; try < TRIES && status == ESP_OK; try++) {
        const double start = esp_clock();
        for (int i = 0; i < ESP_SELECTOR_STATES && status == ESP_OK; i++)
            status = s->ops->read_row(i == 0 ? s->p : s->q, 0, s->row[i]);
        esp_features_of(s->row[0], s->row[1], s->row[2], s->vocabulary, scalars);
        esp_selector_run(&selector, states, scalars, &score);
        least = fmin(least, esp_clock() - start);
    }
    esp_selector_close(&selector);
    *seconds = (float)least;
    return status;
}

static int time_round(struct esp_sampler *s, struct esp_pass_times *times)
{
    int status = ESP_OK;
    for (int i = 0; i < ESP_TIME_LENGTHS && status == ESP_OK; i++) {
        const int length = (int)times->length[i];
        status = go_to(s, &s->draft, length);
        if (status == ESP_OK)
            status = go_to(s, &s->target, length);
        for (int j = 0; j < ESP_TIME_DRAFT_ROWS && status == ESP_OK; j++)
            status = time_pass(s, &s->draft, s->q, j + 1, &times->draft[i][j]);
        for (int j = 0; j < ESP_TIME_ROWS && status == ESP_OK; j++)
            status = time_pass(s, &s->target, s->p, esp_time_rows[j], &times->target[i][j]);
    }
    return status;
}

int esp_measure_times(struct esp_sampler *s, struct esp_pass_times *times)
{
    for (int i = 0; i < ESP_TIME_LENGTHS; i++) {
        times->length[i] = (float)(s->context * (i + 1) / (ESP_TIME_LENGTHS + 1));
        for (int j = 0; j < ESP_TIME_DRAFT_ROWS; j++)
            times->draft[i][j] = INFINITY;
        for (int j = 0; j < ESP_TIME_ROWS; j++)
            times->target[i][j] = INFINITY;
    }
    const double start = esp_clock();
    int status = time_choice(s, &times->choice);
    for (int round = 0; status == ESP_OK; round++) {
        const double passed = esp_clock() - start;
        if (round >= MOST_ROUNDS || (round >= LEAST_ROUNDS && passed > SECONDS))
            break;
        status = time_round(s, times);
    }
    return status;
}
