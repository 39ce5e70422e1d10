/* calibration.c - learns from verified trees, corrects draft probabilities, and stores what was
 * learned; see calibration.h. A stored file is checked before it is used.
 */
#include "engine/calibration.h"

#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/drafters/draft.h"
#include "engine/kv_cache.h"
#include "engine/support/paths.h"

enum {
    BINS = ESP_CALIBRATION_BINS,
    PRIOR_TRIES = 4,  /* the prior counts like this many tries */
    REMEMBERED = 512, /* above this number of tries in a bin, old tries decay */
    FILE_SIZE = 16384,
};

static const double MOST_BETA = 8, LEAST_BETA = 0.25, LONGEST_STEP = 0.25;
static const double PRIOR_INFORMATION = 4, FADE = 1.0 / 4096; /* FADE: decay per visited node */

/* ------------------------------------------------------------------ tallies */

static void tally(struct esp_tally *t, int bin, double predicted, double found)
{
    if (t->tried[bin] > REMEMBERED) {
        t->tried[bin] /= 2;
        t->predicted[bin] /= 2;
        t->found[bin] /= 2;
    }
    t->tried[bin] += 1;
    t->predicted[bin] += predicted;
    t->found[bin] += found;
}

static int tenth_of(double x)
{
    int bin = (int)(x * BINS);
    return bin < 0 ? 0 : bin < BINS ? bin : BINS - 1;
}

/* Returns the position of q among the bins of log odds. Bin b is centred at log odds b - 4.5.
 * Smaller and larger values belong to the first and the last bin. */
static double odds_of(double q)
{
    double odds = log(fmax(q, 1e-9) / fmax(1 - q, 1e-9)) + 4.5;
    return fmin(fmax(odds, 0), BINS - 1);
}

double esp_tally_error(const struct esp_tally *t)
{
    double sum = 0, tried = 0;
    for (int i = 0; i < BINS; i++) {
        sum += fabs(t->found[i] - t->predicted[i]);
        tried += t->tried[i];
    }
    return tried > 0 ? sum / tried : NAN;
}

/* Returns found / predicted. The ratio is computed as if there had been PRIOR_TRIES more tries
 * with exactly the predicted outcomes. */
static double ratio_of(const struct esp_tally *t, int bin)
{
    double mean = t->tried[bin] > 0 ? t->predicted[bin] / t->tried[bin] : 1;
    return (t->found[bin] + PRIOR_TRIES * mean) / (t->predicted[bin] + PRIOR_TRIES * mean);
}

double esp_calibration_likely(const struct esp_calibration *c, double q)
{
    double at = odds_of(q);
    int bin = (int)at < BINS - 1 ? (int)at : BINS - 2;
    double share = at - bin;
    double ratio =
        (1 - share) * ratio_of(&c->likely, bin) + share * ratio_of(&c->likely, bin + 1);
    return fmin(q * ratio, 1);
}

double esp_calibration_first(const struct esp_calibration *c, double q)
{
    const struct esp_tally *t = &c->likely;
    double at = odds_of(q), prior = 0.4 + 0.6 * q;
    int bin = (int)at < BINS - 1 ? (int)at : BINS - 2;
    double low = (t->found[bin] + PRIOR_TRIES * prior) / (t->tried[bin] + PRIOR_TRIES);
    double high = (t->found[bin + 1] + PRIOR_TRIES * prior) / (t->tried[bin + 1] + PRIOR_TRIES);
    return low + (at - bin) * (high - low);
}

double esp_calibration_drawn(const struct esp_calibration *c, double confidence, int draw)
{
    /* Initial guesses: the more confident the draft is, the more often a first draw is
     * accepted. Later draws are rarely accepted. */
    int at = draw < ESP_CALIBRATION_DRAWS ? draw : ESP_CALIBRATION_DRAWS - 1;
    int bin = tenth_of(confidence);
    double prior = at == 0 ? 0.4 + 0.6 * confidence : 0.5 / (at + 1);
    const struct esp_tally *t = &c->drawn[at];
    return (t->found[bin] + PRIOR_TRIES * prior) / (t->tried[bin] + PRIOR_TRIES);
}

/* ------------------------------------------------------------------ learning */

double esp_calibration_beta(const struct esp_calibration *c)
{
    return exp(c->log_beta);
}

int esp_calibration_look(struct esp_calibration *c, struct esp_draft *d, double beta)
{
    int32_t which[ESP_CALIBRATION_ROWS];
    c->rows = d->expanded < ESP_CALIBRATION_ROWS ? d->expanded : ESP_CALIBRATION_ROWS;
    if (!d->work->cache || c->rows == 0)
        return ESP_OK;
    for (int i = 0; i < c->rows; i++)
        which[i] = i;
    /* With ESP_LATER, this call does not wait for the device. The sums arrive on the host with
     * the verifier's first call with ESP_NOW. */
    return d->work->cache->ops->temper(d->work->q, which, c->rows, 1 / beta, c->mean_log,
                                       c->power_sum, ESP_LATER);
}

/* The sums from which beta is learned, over the children of visited nodes. calibration.h
 * defines the slope, the information and s. */
struct evidence {
    double slope, information; /* sums over all nodes so far */
    double q, p;               /* sums over the children of the current node */
    double a;                  /* sum of q s over the children of the current node */
};

static void count_child(struct esp_calibration *c, struct evidence *e,
                        const struct esp_node *node, int row, double beta, double p)
{
    const double q = node->q;
    double s = log(q) - c->mean_log[row];
    double raw = pow(q, 1 / beta) / c->power_sum[row];
    tally(&c->raw, tenth_of(raw), raw, p);
    tally(&c->tempered, tenth_of(q), q, p);
    e->slope += p * s;
    e->information += q * s * s;
    e->q += q;
    e->p += p;
    e->a += q * s;
}

/* Adds the children of a visited node to the tallies and to the sums from which beta is
 * learned. `next` is the child that the verifier visited next, or -1 if it stopped at this
 * node. */
static void count_node(struct esp_calibration *c, const struct esp_draft *d,
                       const struct esp_tree *tree, int parent, int next, double beta,
                       struct evidence *e)
{
    const int row = d->q_row[parent];
    bool known = row >= 0 && row < c->rows && c->power_sum[row] > 0, came = false;
    e->q = e->p = e->a = 0;
    for (int u = parent + 1, draw = 0; u < tree->count; u++) {
        const struct esp_node *node = &tree->nodes[u];
        if (node->parent != parent || node->verdict == ESP_CUT || !(node->q > 0) ||
            node->source != ESP_SOURCE_DRAFT)
            continue;
        if (d->greedy || draw == 0)
            tally(&c->likely, (int)(odds_of(node->q) + 0.5), node->q, u == next);
        if (!d->greedy && !came && isfinite(tree->nodes[parent].confidence))
            tally(&c->drawn[draw < ESP_CALIBRATION_DRAWS ? draw : ESP_CALIBRATION_DRAWS - 1],
                  tenth_of(tree->nodes[parent].confidence), 0, u == next);
        if (known)
            count_child(c, e, node, row, beta,
                        d->greedy || !isfinite(node->p) ? u == next : node->p);
        came |= u == next;
        draw++;
        c->learned = true;
    }
    double rest = fmax(1 - e->q, 1e-6);
    e->slope -= fmax(1 - e->p, 0) * e->a / rest;
    e->information += e->a * e->a / rest;
}

void esp_calibration_learn(struct esp_calibration *c, const struct esp_draft *d,
                           const struct esp_iteration *it, double beta, bool steps)
{
    struct evidence e = {0};
    if (!d->work->cache || d->expanded == 0)
        return;
    for (int i = 0; i <= it->path_length; i++)
        count_node(c, d, &it->tree, i == 0 ? 0 : it->path[i - 1],
                   i < it->path_length ? it->path[i] : -1, beta, &e);
    if (!steps || !isfinite(e.slope) || !isfinite(e.information))
        return;
    c->information += e.information - (it->path_length + 1) * FADE * c->information;
    double step = e.slope / (c->information + PRIOR_INFORMATION);
    c->log_beta += fmin(fmax(step, -LONGEST_STEP), LONGEST_STEP);
    c->log_beta = fmin(fmax(c->log_beta, log(LEAST_BETA)), log(MOST_BETA));
}

/* ------------------------------------------------------------------ the file */

static bool read_tally(const cJSON *o, struct esp_tally *t)
{
    bool sound = esp_state_numbers(cJSON_GetObjectItem(o, "tried"), t->tried, BINS) &&
                 esp_state_numbers(cJSON_GetObjectItem(o, "predicted"), t->predicted, BINS) &&
                 esp_state_numbers(cJSON_GetObjectItem(o, "found"), t->found, BINS);
    for (int i = 0; i < BINS && sound; i++) /* rounding can make a sum a little too large */
        sound = t->found[i] <= t->tried[i] + 1e-3 && t->predicted[i] <= t->tried[i] + 1e-3;
    return sound;
}

static bool read_real(const cJSON *o, const char *name, double low, double high, double *x)
{
    const cJSON *item = cJSON_GetObjectItem(o, name);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= low && item->valuedouble <= high))
        return false;
    *x = item->valuedouble;
    return true;
}

/* Loads the file if it is valid and has the current key. */
static void load(struct esp_calibration *c)
{
    struct esp_calibration found = *c;
    cJSON *root = esp_state_object(c->file, FILE_SIZE, c->key);
    const cJSON *drawn = cJSON_GetObjectItem(root, "drawn");
    bool sound =
        read_real(root, "log_beta", log(LEAST_BETA), log(MOST_BETA), &found.log_beta) &&
        read_real(root, "information", 0, 1e6, &found.information) &&
        read_tally(cJSON_GetObjectItem(root, "raw"), &found.raw) &&
        read_tally(cJSON_GetObjectItem(root, "tempered"), &found.tempered) &&
        read_tally(cJSON_GetObjectItem(root, "likely"), &found.likely) &&
        cJSON_IsArray(drawn) && cJSON_GetArraySize(drawn) == ESP_CALIBRATION_DRAWS;
    for (int i = 0; i < ESP_CALIBRATION_DRAWS && sound; i++)
        sound = read_tally(cJSON_GetArrayItem(drawn, i), &found.drawn[i]);
    if (sound)
        *c = found;
    cJSON_Delete(root);
}

static cJSON *tally_object(const struct esp_tally *t)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "tried", cJSON_CreateDoubleArray(t->tried, BINS));
    cJSON_AddItemToObject(o, "predicted", cJSON_CreateDoubleArray(t->predicted, BINS));
    cJSON_AddItemToObject(o, "found", cJSON_CreateDoubleArray(t->found, BINS));
    return o;
}

void esp_calibration_save(struct esp_calibration *c)
{
    if (!c->learned || !*c->file)
        return;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "key", c->key);
    cJSON_AddNumberToObject(root, "log_beta", c->log_beta);
    cJSON_AddNumberToObject(root, "information", c->information);
    cJSON_AddItemToObject(root, "raw", tally_object(&c->raw));
    cJSON_AddItemToObject(root, "tempered", tally_object(&c->tempered));
    cJSON_AddItemToObject(root, "likely", tally_object(&c->likely));
    cJSON *drawn = cJSON_AddArrayToObject(root, "drawn");
    for (int i = 0; i < ESP_CALIBRATION_DRAWS; i++)
        cJSON_AddItemToArray(drawn, tally_object(&c->drawn[i]));
    if (esp_state_write_object(c->file, root))
        c->learned = false;
}

void esp_calibration_turn(struct esp_calibration *c, const char *key, bool kept)
{
    if (strcmp(key, c->key) == 0)
        return;
    esp_calibration_save(c);
    memset(c, 0, sizeof *c);
    snprintf(c->key, sizeof c->key, "%s", key);
    if (kept)
        esp_state_name(c->file, sizeof c->file, "calibration", key);
    load(c);
}
