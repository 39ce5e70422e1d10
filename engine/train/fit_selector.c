/* fit_selector.c - runs the training loop of a selector; see fit_selector.h.
 *
 * Training uses AdamW with a learning rate of 1e-3 and cosine decay, batches of 64, dropout .1,
 * and the loss of equation 12 with lambda 1 and alpha .1. The base of the loss is the best
 * static action of each sampling setting on the training samples. Two things are not in the
 * paper: the policy begins with the best static actions, and .03 of its entropy is subtracted
 * from the loss. Without them the softmax settles on one action, the best for an
 * average root, before the network has learned to tell roots apart. After each epoch the
 * policy's choices on the held-out samples are compared with the base, and the weights of the
 * best epoch are kept. At the end, a least-squares fit learns to predict the tokens that
 * actions gain from the outputs of the narrow layer. These predictions are only displayed.
 */
#include "engine/train/fit_selector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/block.h"
#include "engine/train/selector_net.h"
#include "kernels/status.h"

enum { FEATURES = ESP_SELECTOR_NARROW_WIDTH + 1, BATCH = 64 };

static const struct esp_selector_loss loss = {.lambda = 1, .alpha = 0.1, .entropy = 0.03};
static const double RATE = 1e-3, RIDGE = 1e-3;

struct fit {
    const struct esp_selector_fit *of;
    struct esp_selector *selector;
    struct esp_selector_net net;
    void *memory;       /* one allocation that contains the arrays below */
    int *train, *apart; /* indices of the training samples and of the held-out samples */
    int *order;         /* the training samples in random order */
    int train_count, apart_count;
    float *seconds; /* (samples, ESP_ACTIONS) seconds of an iteration, including `choice` */
    float choice;   /* seconds that the selector itself takes; static trees do not need it */
    int base[ESP_SAMPLE_SETTINGS]; /* best static action of each setting */
    double *best;                  /* weights of the best epoch */
    double best_ratio;
    struct esp_rng rng;
};

static const float *sample_at(const struct fit *f, int i)
{
    return f->of->samples->samples + (size_t)i * f->of->samples->size;
}

static const float *expected_of(const struct fit *f, int i)
{
    return sample_at(f, i) + esp_sample_expected(&f->of->layout, f->of->rule);
}

static int setting_of(const struct fit *f, int i)
{
    return (int)sample_at(f, i)[ESP_SAMPLE_SETTING];
}

static const float *seconds_of(const struct fit *f, int i)
{
    return f->seconds + (size_t)i * ESP_ACTIONS;
}

/* Writes the scalar inputs of a sample, in the form that drafter `nde` will give the
 * network. */
static void scalars_of(const struct fit *f, int i, float scalars[ESP_SCALARS])
{
    const float *sample = sample_at(f, i);
    const double length = sample[ESP_SAMPLE_LENGTH];
    memcpy(scalars, sample + ESP_SAMPLE_SCALARS, ESP_SCALARS * sizeof *scalars);
    scalars[ESP_FEATURE_TIME_Q] = (float)esp_time_draft(f->of->times, 1, length);
    scalars[ESP_FEATURE_TIME_P] = (float)esp_time_target(f->of->times, 1, length);
}

/* ------------------------------------------------------------------ preparation */

static bool split(struct fit *f)
{
    const struct esp_sample_file *s = f->of->samples;
    f->memory = esp_block_take(ESP_ARRAY(f->train, s->count), ESP_ARRAY(f->apart, s->count),
                               ESP_ARRAY(f->order, s->count),
                               ESP_ARRAY(f->seconds, (size_t)s->count * ESP_ACTIONS),
                               ESP_ARRAY(f->best, f->net.count), NULL);
    if (!f->memory)
        return false;
    const bool tokens_only = f->of->goal == ESP_GOAL_TOKENS;
    f->choice = tokens_only ? 0 : f->of->times->choice;
    for (int i = 0; i < s->count; i++) {
        const bool apart = s->piece[i] / ESP_SAMPLE_SETTINGS % 8 == 7;
        if (apart)
            f->apart[f->apart_count++] = i;
        else
            f->train[f->train_count] = f->order[f->train_count] = i;
        f->train_count += !apart;
        const int length = (int)sample_at(f, i)[ESP_SAMPLE_LENGTH];
        for (int a = 0; a < ESP_ACTIONS; a++)
            f->seconds[(size_t)i * ESP_ACTIONS + (size_t)a] =
                tokens_only ? 1
                            : f->choice + (float)esp_time_of_action(f->of->times,
                                                                    esp_action_at(a), length);
    }
    return true;
}

/* Holds two sums over a set of samples: the tokens that the chosen actions gained, and the
 * seconds that they took. */
struct tally {
    double tokens, seconds;
    int samples;
};

/* Adds the result of an action on one sample. If `is_static` is true, no time for choosing the
 * action is added. */
static void add_action(const struct fit *f, struct tally *t, int sample, int action,
                       bool is_static)
{
    t->tokens += expected_of(f, sample)[action];
    t->seconds += seconds_of(f, sample)[action] - is_static * f->choice;
    t->samples++;
}

/* Returns the static action with the most tokens per second (`timed`) or per iteration on the
 * training samples of one setting (-1 means all settings). */
static int best_static(const struct fit *f, int setting, bool timed)
{
    double best = 0;
    int found = 0;
    for (int a = 0; a < ESP_ACTIONS; a++) {
        struct tally t = {0};
        for (int i = 0; i < f->train_count && esp_action_canonical(a); i++)
            if (setting < 0 || setting_of(f, f->train[i]) == setting)
                add_action(f, &t, f->train[i], a, true);
        const double cost = timed ? t.seconds : t.samples;
        if (cost > 0 && t.tokens / cost > best) {
            best = t.tokens / cost;
            found = a;
        }
    }
    return found;
}

static void standardise(struct fit *f)
{
    double sum[ESP_SCALARS] = {0}, square[ESP_SCALARS] = {0};
    float scalars[ESP_SCALARS];
    for (int i = 0; i < f->train_count; i++) {
        scalars_of(f, f->train[i], scalars);
        for (int j = 0; j < ESP_SCALARS; j++)
            sum[j] += scalars[j];
    }
    for (int i = 0; i < f->train_count; i++) {
        scalars_of(f, f->train[i], scalars);
        for (int j = 0; j < ESP_SCALARS; j++)
            square[j] += pow(scalars[j] - sum[j] / f->train_count, 2);
    }
    for (int j = 0; j < ESP_SCALARS; j++) {
        f->selector->mean[j] = (float)(sum[j] / f->train_count);
        f->selector->deviation[j] = (float)fmax(sqrt(square[j] / f->train_count), 1e-9);
    }
}

static void load_rows(struct fit *f, const int *which, int count)
{
    float scalars[ESP_SCALARS];
    for (int i = 0; i < count; i++) {
        const float *sample = sample_at(f, which[i]);
        const float *state = sample + ESP_SAMPLE_STATES;
        for (int s = 0; s < ESP_SELECTOR_STATES; s++) {
            const int width = f->net.shape.hidden[s];
            for (int j = 0; j < width; j++)
                f->net.state[s][(size_t)i * (size_t)width + (size_t)j] = *state++;
        }
        scalars_of(f, which[i], scalars);
        for (int j = 0; j < ESP_SCALARS; j++)
            f->net.scalars[i * ESP_SCALARS + j] =
                ((double)scalars[j] - f->selector->mean[j]) / f->selector->deviation[j];
    }
}

/* Runs the network over the samples which[first], which[first + 1], ..., at most `most` of
 * them. Returns the number of samples. */
static int run_batch(struct fit *f, const int *which, int count, int first, int most,
                     struct esp_rng *rng)
{
    const int rows = count - first < most ? count - first : most;
    load_rows(f, which + first, rows);
    esp_selector_net_forward(&f->net, rows, rng);
    return rows;
}

/* Makes the policy begin as a mixture of the best static actions: the last layer's weights are
 * small, and its biases grow with the logarithm of an action's tokens per second. From random
 * logits, the first steps would favour any action that is better than an average tree, and the
 * softmax would settle on it. */
static void begin_with_static(struct fit *f)
{
    static const double SMALL = 0.1;
    const struct esp_selector_part out = esp_selector_part(&f->net.shape, ESP_SELECTOR_OUT);
    const struct esp_selector_part bias =
        esp_selector_part(&f->net.shape, ESP_SELECTOR_OUT_BIAS);
    const int best = best_static(f, -1, true);
    double tokens[ESP_ACTIONS] = {0}, seconds[ESP_ACTIONS] = {0};
    for (int i = 0; i < f->train_count; i++)
        for (int a = 0; a < ESP_ACTIONS; a++) {
            tokens[a] += expected_of(f, f->train[i])[a];
            seconds[a] += seconds_of(f, f->train[i])[a];
        }
    for (int a = 0; a < ESP_ACTIONS; a++)
        if (tokens[a] > 0)
            f->net.weights[bias.offset + (size_t)a] =
                log(tokens[a] / seconds[a] * seconds[best] / tokens[best]) / loss.entropy;
    for (size_t i = 0; i < out.count; i++)
        f->net.weights[out.offset + i] *= SMALL;
}

/* ------------------------------------------------------------------ epochs */

static double train_epoch(struct fit *f, double rate)
{
    struct esp_selector_goal goals[BATCH];
    double sum = 0;
    esp_rng_shuffle(&f->rng, f->order, f->train_count);
    for (int first = 0; first < f->train_count; first += BATCH) {
        const int rows = run_batch(f, f->order, f->train_count, first, BATCH, &f->rng);
        for (int i = 0; i < rows; i++) {
            const int at = f->order[first + i], base = f->base[setting_of(f, at)];
            goals[i] = (struct esp_selector_goal){expected_of(f, at), seconds_of(f, at),
                                                  (double)expected_of(f, at)[base] /
                                                      (seconds_of(f, at)[base] - f->choice)};
        }
        sum +=
            rows * esp_selector_loss(&loss, f->net.logits, goals, rows, f->net.logit_gradient);
        esp_selector_net_backward(&f->net, rows);
        esp_selector_net_step(&f->net, rate);
    }
    return sum / f->train_count;
}

static int best_logit(const double *logits)
{
    int best = 0;
    for (int a = 1; a < ESP_ACTIONS; a++)
        if (esp_action_canonical(a) && logits[a] > logits[best])
            best = a;
    return best;
}

/* Judges the policy on the held-out samples: computes the tokens per second of its choices,
 * divided by the tokens per second of the base, for each setting. Returns the mean over
 * settings. */
static double judge(struct fit *f)
{
    struct tally chosen[ESP_SAMPLE_SETTINGS] = {{0}}, base[ESP_SAMPLE_SETTINGS] = {{0}};
    double sum = 0;
    int settings = 0;
    for (int first = 0; first < f->apart_count; first += ESP_SELECTOR_BATCH) {
        const int rows =
            run_batch(f, f->apart, f->apart_count, first, ESP_SELECTOR_BATCH, NULL);
        for (int i = 0; i < rows; i++) {
            const int at = f->apart[first + i], setting = setting_of(f, at);
            add_action(f, &chosen[setting], at,
                       best_logit(f->net.logits + (size_t)i * ESP_ACTIONS), false);
            add_action(f, &base[setting], at, f->base[setting], true);
        }
    }
    for (int i = 0; i < ESP_SAMPLE_SETTINGS; i++)
        if (chosen[i].seconds > 0) {
            sum += chosen[i].tokens / chosen[i].seconds / (base[i].tokens / base[i].seconds);
            settings++;
        }
    return settings ? sum / settings : NAN;
}

static int train(struct fit *f)
{
    const struct esp_selector_training *t = f->of->training;
    for (int epoch = 0; epoch < t->epochs; epoch++) {
        const double rate = RATE * 0.5 * (1 + cos(M_PI * epoch / t->epochs));
        const double found = train_epoch(f, rate), ratio = judge(f);
        if (!(ratio <= f->best_ratio)) {
            f->best_ratio = ratio;
            memcpy(f->best, f->net.weights, f->net.count * sizeof *f->best);
        }
        const struct esp_selector_progress progress = {
            ESP_TRAIN_NETWORK, f->selector->rule, epoch + 1, t->epochs, found, ratio};
        if (t->progress && !t->progress(t->user, &progress))
            return ESP_E_CANCELLED;
    }
    memcpy(f->net.weights, f->best, f->net.count * sizeof *f->best);
    return ESP_OK;
}

/* ------------------------------------------------------------------ values of actions */

/* Solves a x = b for all columns of b (FEATURES, ESP_ACTIONS) by Cholesky's method; a is
 * symmetric and positive definite. Overwrites both; b becomes x. */
static void solve(double a[FEATURES][FEATURES], double *b)
{
    for (int i = 0; i < FEATURES; i++)
        for (int j = 0; j <= i; j++) {
            double sum = a[i][j];
            for (int k = 0; k < j; k++)
                sum -= a[i][k] * a[j][k];
            a[i][j] = i == j ? sqrt(sum) : sum / a[j][j];
        }
    for (int c = 0; c < ESP_ACTIONS; c++) {
        for (int i = 0; i < FEATURES; i++) {
            for (int k = 0; k < i; k++)
                b[i * ESP_ACTIONS + c] -= a[i][k] * b[k * ESP_ACTIONS + c];
            b[i * ESP_ACTIONS + c] /= a[i][i];
        }
        for (int i = FEATURES - 1; i >= 0; i--) {
            for (int k = i + 1; k < FEATURES; k++)
                b[i * ESP_ACTIONS + c] -= a[k][i] * b[k * ESP_ACTIONS + c];
            b[i * ESP_ACTIONS + c] /= a[i][i];
        }
    }
}

static int fit_values(struct fit *f)
{
    static double square[FEATURES][FEATURES];
    double *sum = calloc((size_t)FEATURES * ESP_ACTIONS, sizeof *sum);
    if (!sum)
        return ESP_E_MEMORY;
    memset(square, 0, sizeof square);
    for (int first = 0; first < f->train_count; first += ESP_SELECTOR_BATCH) {
        const int rows =
            run_batch(f, f->order, f->train_count, first, ESP_SELECTOR_BATCH, NULL);
        for (int i = 0; i < rows; i++) {
            double x[FEATURES];
            memcpy(x, f->net.narrow + (size_t)i * ESP_SELECTOR_NARROW_WIDTH,
                   sizeof x - sizeof *x);
            x[FEATURES - 1] = 1;
            const float *y = expected_of(f, f->order[first + i]);
            for (int j = 0; j < FEATURES; j++) {
                for (int k = 0; k < FEATURES; k++)
                    square[j][k] += x[j] * x[k];
                for (int a = 0; a < ESP_ACTIONS; a++)
                    sum[j * ESP_ACTIONS + a] += x[j] * y[a];
            }
        }
    }
    for (int j = 0; j < FEATURES; j++)
        square[j][j] += RIDGE * f->train_count;
    solve(square, sum);
    for (int i = 0; i < FEATURES * ESP_ACTIONS; i++)
        f->selector->value[i] = (float)sum[i];
    free(sum);
    return ESP_OK;
}

/* ------------------------------------------------------------------ comparison */

static int choose(const struct fit *f, int i)
{
    const float *sample = sample_at(f, i);
    const float *states[ESP_SELECTOR_STATES];
    struct esp_selector_score score;
    float scalars[ESP_SCALARS];
    double logits[ESP_ACTIONS];
    scalars_of(f, i, scalars);
    states[0] = sample + ESP_SAMPLE_STATES;
    for (int s = 1; s < ESP_SELECTOR_STATES; s++)
        states[s] = states[s - 1] + f->selector->shape.hidden[s - 1];
    esp_selector_run(f->selector, states, scalars, &score);
    for (int a = 0; a < ESP_ACTIONS; a++)
        logits[a] = score.logits[a];
    return best_logit(logits);
}

static void report(const struct fit *f, int setting)
{
    const bool all = setting == ESP_SAMPLE_SETTINGS;
    struct esp_selector_result result = {.rule = f->selector->rule};
    struct tally own = {0}, fast = {0}, many = {0};
    const int fastest = best_static(f, all ? -1 : setting, true);
    const int most = best_static(f, all ? -1 : setting, false);
    for (int n = 0; n < f->apart_count; n++) {
        const int i = f->apart[n];
        if (!all && setting_of(f, i) != setting)
            continue;
        add_action(f, &own, i, choose(f, i), false);
        add_action(f, &fast, i, fastest, true);
        add_action(f, &many, i, most, true);
    }
    if (own.samples == 0)
        return;
    result.samples = own.samples;
    result.speed = own.tokens / own.seconds / (fast.tokens / fast.seconds);
    result.tokens = own.tokens / own.samples;
    result.fastest_tokens = fast.tokens / own.samples;
    result.most_tokens = many.tokens / own.samples;
    if (!all) {
        result.temperature = esp_sample_settings[setting].temperature;
        result.top_p = esp_sample_settings[setting].top_p;
    }
    esp_action_print(esp_action_at(fastest), result.fastest, sizeof result.fastest);
    esp_action_print(esp_action_at(most), result.most, sizeof result.most);
    f->of->training->result(f->of->training->user, &result);
}

/* ------------------------------------------------------------------ public */

static int fit(struct fit *f)
{
    struct esp_selector *selector = f->selector;
    for (int i = 0; i < ESP_SAMPLE_SETTINGS; i++)
        f->base[i] = best_static(f, i, true);
    selector->first = best_static(f, -1, true);
    selector->times = *f->of->times;
    standardise(f);
    begin_with_static(f);
    int status = train(f);
    if (status == ESP_OK)
        status = fit_values(f);
    for (size_t i = 0; i < f->net.count && status == ESP_OK; i++)
        selector->weights[i] = (float)f->net.weights[i];
    return status == ESP_OK ? esp_selector_prepare(selector) : status;
}

int esp_selector_fit(const struct esp_selector_fit *of, struct esp_selector *selector)
{
    struct fit f = {.of = of, .selector = selector, .best_ratio = -INFINITY};
    const uint64_t seed = of->training->seed;
    int status = esp_selector_net_open(&f.net, &selector->shape, ESP_SELECTOR_BATCH, seed);
    f.rng = (struct esp_rng){.seed = seed, .stream = 2};
    if (status == ESP_OK && !split(&f))
        status = ESP_E_MEMORY;
    if (status == ESP_OK)
        status = f.train_count > 0 ? fit(&f) : (int)ESP_E_ARGUMENT;
    for (int i = 0; i <= ESP_SAMPLE_SETTINGS && status == ESP_OK && of->training->result; i++)
        report(&f, i);
    esp_selector_net_close(&f.net);
    free(f.memory);
    return status;
}
