/* selector_samples.c - makes the samples that a selector learns from; see selector_samples.h.
 *
 * A piece is made in these steps:
 *  1 A prompt is taken from the text.
 *  2 The target generates tokens up to the next root.
 *  3 The draft model catches up. Its last pass covers the token before the root and the root.
 *  4 The features are computed.
 *  5 Four times, the draft model draws stem and paths, with one pass for each depth. Each time,
 *    the target then runs over root, stem and paths in one pass. The tree of each action
 *    consists of some of these tokens.
 *  6 E^ of an action is the mean over its four independent trees (sec. 5: s = 4). Then the
 *    process continues with step 2.
 */
#include "engine/train/selector_samples.h"

#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/espalier.h"
#include "engine/train/block.h"
#include "engine/support/rng.h"
#include "kernels/model_desc.h"
#include "kernels/status.h"

enum {
    STEM = ESP_ACTION_LENGTH,
    PATHS = ESP_ROLLOUT_STEM * ESP_ACTION_PATHS, /* number of paths that are drawn together */
    WORDS = (ESP_ROLLOUT_ROWS + 63) / 64,
    PREVIOUS = ESP_ROLLOUT_ROWS, /* row of p and q for the token before the root */
    LEAST_PROMPT = 8,
};

const struct esp_sampling esp_sample_settings[ESP_SAMPLE_SETTINGS] = {
    {0.2, 1, 0}, {0.4, 1, 0}, {0.6, 1, 0}, {0.8, 1, 0},
    {1, 1, 0},   {1.2, 1, 0}, {1, 0.9, 0}, {1, 0.99, 0},
};

size_t esp_sample_expected(const struct esp_sample_layout *layout, int rule)
{
    size_t at = ESP_SAMPLE_STATES + (size_t)rule * ESP_ACTIONS;
    for (int i = 0; i < ESP_SELECTOR_STATES; i++)
        at += (size_t)layout->shape.hidden[i];
    return at;
}

size_t esp_sample_size(const struct esp_sample_layout *layout)
{
    return esp_sample_expected(layout, layout->rules);
}

/* ------------------------------------------------------------------ memory */

static int open_rows(struct esp_sampler *s, char *err, size_t errlen)
{
    const struct {
        struct esp_rows **rows;
        int count, width;
    } all[] = {{&s->p, PREVIOUS + 1, s->vocabulary},
               {&s->q, PREVIOUS + 1, s->vocabulary},
               {&s->target_states, 1, s->engine->target->desc.hidden},
               {&s->draft_states, 2, s->engine->draft->desc.hidden}};
    int status = ESP_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && status == ESP_OK; i++)
        status = s->ops->rows_open(all[i].rows, s->engine->backend, all[i].count, all[i].width,
                                   err, errlen);
    return status;
}

static void *take_memory(struct esp_sampler *s)
{
    const size_t rows = ESP_ROLLOUT_ROWS, width = (size_t)s->vocabulary;
    return esp_block_take(
        ESP_ARRAY(s->piece, s->context + 1), ESP_ARRAY(s->tokens, rows),
        ESP_ARRAY(s->positions, rows), ESP_ARRAY(s->logits_row, rows),
        ESP_ARRAY(s->state_row, rows), ESP_ARRAY(s->mask, rows * WORDS), ESP_ARRAY(s->u, rows),
        ESP_ARRAY(s->values, rows), ESP_ARRAY(s->row[0], width), ESP_ARRAY(s->row[1], width),
        ESP_ARRAY(s->row[2], width), ESP_ARRAY(s->distributions, 2 * rows * width),
        ESP_ARRAY(s->p_at, rows), ESP_ARRAY(s->q_at, rows), NULL);
}

int esp_sampler_open(struct esp_sampler *s, char *err, size_t errlen)
{
    const struct esp_engine *e = s->engine;
    const struct esp_model_desc *target = &e->target->desc, *draft = &e->draft->desc;
    s->ops = e->backend->ops;
    s->vocabulary = target->vocabulary;
    s->context = draft->context < e->context ? draft->context : e->context;
    s->context -= 2 * STEM;
    s->layout.shape.hidden[ESP_SELECTOR_H_TARGET] = target->hidden;
    s->layout.shape.hidden[ESP_SELECTOR_H_DRAFT] = s->layout.shape.hidden[ESP_SELECTOR_H_ROOT] =
        draft->hidden;
    if (s->context < LEAST_PROMPT + 2 * ESP_SAMPLE_EVERY)
        return esp_fail(
            err, errlen, ESP_E_ARGUMENT,
            "a context of %d tokens is too short to train a selector: give %d or more",
            s->context + 2 * STEM, LEAST_PROMPT + 2 * ESP_SAMPLE_EVERY + 2 * STEM);
    if (s->length < 2 * LEAST_PROMPT)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "the text has only %d tokens: give more with --text", s->length);
    int status = esp_kv_cache_open(&s->target, s->ops, e->target_weights, target->vocabulary,
                                   s->context, ESP_ROLLOUT_ROWS, err, errlen);
    if (status == ESP_OK)
        status = esp_kv_cache_open(&s->draft, s->ops, e->draft_weights, draft->vocabulary,
                                   s->context, ESP_ROLLOUT_ROWS, err, errlen);
    if (status == ESP_OK)
        status = open_rows(s, err, errlen);
    if (status == ESP_OK && !(s->memory = take_memory(s)))
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to make samples");
    return status;
}

void esp_sampler_close(struct esp_sampler *s)
{
    struct esp_rows *rows[] = {s->p, s->q, s->target_states, s->draft_states};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i])
            s->ops->rows_close(rows[i]);
    if (s->target.cache)
        esp_kv_cache_close(&s->target);
    if (s->draft.cache)
        esp_kv_cache_close(&s->draft);
    free(s->memory);
}

/* ------------------------------------------------------------------ the text */

/* Draws one token from each row that s->logits_row (count) lists, and writes the tokens to
 * s->tokens. */
static int draw(struct esp_sampler *s, struct esp_rows *rows, int count)
{
    for (int i = 0; i < count; i++)
        s->u[i] = esp_rng_uniform(&s->rng);
    return s->ops->sample(rows, s->logits_row, s->u, count, 1, NULL, 0, s->tokens, s->values,
                          ESP_NOW);
}

/* Runs the tokens of the piece from the cache's length up to `end` and adds them to the cache.
 * For the last `wanted` tokens, writes logits to rows `to` of `logits`, and hidden states to
 * rows 0, 1, ... of `hidden`. */
static int append(struct esp_sampler *s, struct esp_kv_cache *c, int end, int wanted,
                  struct esp_rows *logits, const int32_t *to, struct esp_rows *hidden)
{
    const int first = end - wanted;
    int status = first > c->length ? esp_kv_cache_append(c, s->piece + c->length,
                                                         first - c->length, NULL, NULL)
                                   : (int)ESP_OK;
    if (status < 0)
        return status;
    c->length = first;
    for (int i = 0; i < wanted; i++) {
        s->positions[i] = first + i;
        s->state_row[i] = i;
    }
    const struct esp_states states = {1, {ESP_STATE_NORMED}, hidden, s->state_row};
    const struct esp_batch batch = {
        .rows = wanted,
        .tokens = esp_kv_cache_known(c, s->piece + first, wanted),
        .positions = s->positions,
        .first = first,
        .prefix = first,
        .logits = logits,
        .logits_row = to,
        .states = &states,
    };
    status = s->ops->forward(c->cache, &batch);
    c->length = end;
    return status;
}

/* The target generates `count` tokens. Row PREVIOUS of p receives the distribution from which
 * the last token was drawn. Returns ESP_OK, 1 at the end of a text, or a negative status. */
static int write_text(struct esp_sampler *s, int count)
{
    const int32_t previous = PREVIOUS;
    for (int i = 0; i < count; i++) {
        int status =
            append(s, &s->target, s->piece_length, 1, s->p, &previous, s->target_states);
        if (status == ESP_OK)
            status = s->ops->softmax(s->p, &previous, 1, s->sampling);
        s->logits_row[0] = PREVIOUS;
        if (status == ESP_OK)
            status = draw(s, s->p, 1);
        if (status < 0)
            return status;
        if (esp_token_is_end(s->engine, s->tokens[0]))
            return 1;
        s->piece[s->piece_length++] = s->tokens[0];
    }
    return ESP_OK;
}

static void begin_piece(struct esp_sampler *s)
{
    const int room = s->context - ESP_SAMPLE_EVERY * ESP_SAMPLE_ROOTS - 1;
    const double share = esp_rng_uniform(&s->rng);
    int prompt = LEAST_PROMPT + (int)(share * (room - LEAST_PROMPT));
    prompt = prompt < LEAST_PROMPT ? LEAST_PROMPT : prompt;
    prompt = prompt > s->length ? s->length : prompt;
    const int at = (int)(esp_rng_uniform(&s->rng) * (s->length - prompt + 1));
    memcpy(s->piece, s->text + at, (size_t)prompt * sizeof *s->piece);
    s->piece_length = prompt;
    esp_kv_cache_cut(&s->target, 0);
    esp_kv_cache_cut(&s->draft, 0);
}

/* ------------------------------------------------------------------ stem and paths */

static void set_bit(uint64_t *mask, int bit)
{
    mask[bit / 64] |= (uint64_t)1 << (bit % 64);
}

/* Sets the mask of row `row`. The row attends to the `before` rows before the stem and to the
 * first `stem` tokens of the stem. It also attends to tokens 0..at of path `path` (-1 if none).
 * The tokens of a path are PATHS rows apart. */
static void set_mask(struct esp_sampler *s, int row, int before, int stem, int path, int at)
{
    uint64_t *mask = s->mask + (size_t)row * WORDS;
    memset(mask, 0, WORDS * sizeof *mask);
    for (int i = 0; i < before + stem; i++)
        set_bit(mask, i);
    for (int i = 0; i <= at; i++)
        set_bit(mask, before + STEM + PATHS * i + path);
}

/* Runs a pass over `rows` tokens. Their rows are placed `first` rows after the end of the
 * cache. Writes the distributions after these tokens to rows s->logits_row of `logits`. */
static int pass(struct esp_sampler *s, struct esp_kv_cache *c, int rows, int first,
                struct esp_rows *logits)
{
    const struct esp_batch batch = {
        .rows = rows,
        .tokens = esp_kv_cache_known(c, s->tokens, rows),
        .positions = s->positions,
        .first = c->length + first,
        .prefix = c->length,
        .mask = s->mask,
        .mask_words = WORDS,
        .logits = logits,
        .logits_row = s->logits_row,
    };
    const int status = s->ops->forward(c->cache, &batch);
    return status < 0 ? status : s->ops->softmax(logits, s->logits_row, rows, s->sampling);
}

static int draw_stem(struct esp_sampler *s)
{
    for (int i = 0; i < STEM; i++) {
        s->logits_row[0] = i;
        int status = draw(s, s->q, 1);
        s->rollouts.stem[i] = s->tokens[0];
        s->positions[0] = s->piece_length + i;
        s->logits_row[0] = i + 1;
        set_mask(s, 0, 0, i + 1, 0, -1);
        if (status == ESP_OK)
            status = pass(s, &s->draft, 1, i, s->q);
        if (status < 0)
            return status;
    }
    return ESP_OK;
}

static int draw_paths(struct esp_sampler *s)
{
    int status = ESP_OK;
    for (int at = 0; at < ESP_ACTION_LENGTH && status == ESP_OK; at++) {
        for (int i = 0; i < PATHS; i++) {
            const int stem = i / ESP_ACTION_PATHS, path = i % ESP_ACTION_PATHS;
            s->logits_row[i] = at == 0 ? stem : esp_rollout_row(stem, path, at - 1);
        }
        status = draw(s, s->q, PATHS);
        for (int i = 0; i < PATHS; i++) {
            const int stem = i / ESP_ACTION_PATHS, path = i % ESP_ACTION_PATHS;
            s->rollouts.path[stem][path][at] = s->tokens[i];
            s->positions[i] = s->piece_length + stem + at;
            if (at < ESP_ACTION_LENGTH - 1)
                s->logits_row[i] = esp_rollout_row(stem, path, at);
            set_mask(s, i, 0, stem, i, at);
        }
        if (at == ESP_ACTION_LENGTH - 1 || status < 0)
            break;
        status = pass(s, &s->draft, PATHS, STEM + PATHS * at, s->q);
    }
    return status;
}

/* Runs the target over root (row 0), stem and paths. */
static int judge(struct esp_sampler *s)
{
    s->target.length = s->piece_length - 1;
    s->tokens[0] = s->piece[s->piece_length - 1];
    for (int i = 0; i <= STEM; i++) {
        if (i > 0)
            s->tokens[i] = s->rollouts.stem[i - 1];
        s->positions[i] = s->piece_length - 1 + i;
        s->logits_row[i] = i;
        set_mask(s, i, 1, i, 0, -1);
    }
    for (int at = 0; at < ESP_ACTION_LENGTH - 1; at++)
        for (int i = 0; i < PATHS; i++) {
            const int stem = i / ESP_ACTION_PATHS, path = i % ESP_ACTION_PATHS;
            const int row = 1 + STEM + PATHS * at + i;
            s->tokens[row] = s->rollouts.path[stem][path][at];
            s->positions[row] = s->piece_length + stem + at;
            s->logits_row[row] = esp_rollout_row(stem, path, at);
            set_mask(s, row, 1, stem, i, at);
        }
    return pass(s, &s->target, ESP_ROLLOUT_ROWS, 0, s->p);
}

static int read_distributions(struct esp_sampler *s)
{
    const size_t width = (size_t)s->vocabulary;
    int status = ESP_OK;
    for (int i = 0; i < 2 * ESP_ROLLOUT_ROWS && status == ESP_OK; i++) {
        const int row = i / 2;
        double *to = s->distributions + (size_t)i * width;
        status = s->ops->read_row(i % 2 ? s->q : s->p, row, s->row[0]);
        for (size_t x = 0; x < width; x++)
            to[x] = s->row[0][x];
        *(i % 2 ? &s->q_at[row] : &s->p_at[row]) = to;
    }
    return status;
}

/* ------------------------------------------------------------------ a sample */

static int look(struct esp_sampler *s, float *sample)
{
    static const int32_t to[2] = {PREVIOUS, 0};
    const int *hidden = s->layout.shape.hidden;
    float *scalars = sample + ESP_SAMPLE_SCALARS, *target = sample + ESP_SAMPLE_STATES,
          *draft = target + hidden[ESP_SELECTOR_H_TARGET];
    const struct {
        struct esp_rows *rows;
        int row;
        float *to;
    } read[] = {
        {s->p, PREVIOUS, s->row[0]}, {s->q, PREVIOUS, s->row[1]},
        {s->q, 0, s->row[2]},        {s->target_states, 0, target},
        {s->draft_states, 0, draft}, {s->draft_states, 1, draft + hidden[ESP_SELECTOR_H_DRAFT]},
    };
    int status = append(s, &s->draft, s->piece_length, 2, s->q, to, s->draft_states);
    if (status == ESP_OK)
        status = s->ops->softmax(s->q, to, 2, s->sampling);
    for (size_t i = 0; i < sizeof read / sizeof *read && status == ESP_OK; i++)
        status = s->ops->read_row(read[i].rows, read[i].row, read[i].to);
    if (status < 0)
        return status;
    esp_features_of(s->row[0], s->row[1], s->row[2], s->vocabulary, scalars);
    scalars[ESP_FEATURE_LENGTH] = (float)s->piece_length;
    scalars[ESP_FEATURE_TEMPERATURE] = (float)s->sampling->temperature;
    scalars[ESP_FEATURE_TOP_P] = (float)s->sampling->top_p;
    return ESP_OK;
}

/* Draws one tree for each action. Adds the tree's value / ESP_SAMPLE_TREES to the action's
 * E^. */
static int add_trees(struct esp_sampler *s, float *sample)
{
    const struct esp_distributions d = {s->vocabulary, s->p_at, s->q_at};
    float value[ESP_ACTIONS];
    int status = draw_stem(s);
    if (status == ESP_OK)
        status = draw_paths(s);
    if (status == ESP_OK)
        status = judge(s);
    if (status == ESP_OK)
        status = read_distributions(s);
    for (int i = 0; i < s->layout.rules && status == ESP_OK; i++) {
        float *expected = sample + esp_sample_expected(&s->layout, i);
        status = esp_action_values(&s->rollouts, &d, s->rules[i], value);
        for (int a = 0; a < ESP_ACTIONS && status == ESP_OK; a++)
            expected[a] += value[a] / ESP_SAMPLE_TREES;
    }
    return status;
}

static int make_sample(struct esp_sampler *s, float *sample)
{
    memset(sample, 0, esp_sample_size(&s->layout) * sizeof *sample);
    sample[ESP_SAMPLE_SETTING] = (float)s->setting;
    sample[ESP_SAMPLE_LENGTH] = (float)s->piece_length;
    int status = look(s, sample);
    for (int i = 0; i < ESP_SAMPLE_TREES && status == ESP_OK; i++)
        status = add_trees(s, sample);
    return status;
}

int esp_sampler_piece(struct esp_sampler *s, int index, float *samples)
{
    int count = 0;
    s->rng = (struct esp_rng){.seed = s->seed, .stream = 1000 + (uint64_t)index};
    s->setting = index % ESP_SAMPLE_SETTINGS;
    s->sampling = &esp_sample_settings[s->setting];
    begin_piece(s);
    while (count < ESP_SAMPLE_ROOTS && s->piece_length + ESP_SAMPLE_EVERY < s->context) {
        int status = write_text(s, ESP_SAMPLE_EVERY);
        if (status < 0)
            return status;
        if (status == 1)
            break;
        status = make_sample(s, samples + (size_t)count * esp_sample_size(&s->layout));
        if (status < 0)
            return status;
        count++;
    }
    return count;
}
