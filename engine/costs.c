/* costs.c - collects samples of times, fits curves to them and stores them in a file; see
 * costs.h. A stored file is checked before it is used. */
#include "engine/costs.h"

#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/espalier.h"
#include "engine/support/paths.h"

enum { EXACT = 16, FILE_SIZE = 1 << 17, SHORTEST = 8 /* octave 0: texts below 2^8 tokens */ };

/* Cost of one more row in nominal mode, as a fraction of a one-row pass. It is close to the
 * cost that was measured on processors with tile units. */
static const double NOMINAL_ROW = 1.0 / 16;
/* OPTIMISTIC: assumed cost of one more row, as a fraction of a one-row pass, until it is
 * measured. HOPE: the line's slope is multiplied by this factor for sizes that have few samples
 * or none. */
static const double OPTIMISTIC = 0.03, HOPE = 0.7;
/* LEFT: the factor by which a class's weight decays when another class gets a sample.
 * LEFT_PLAIN: the factor if that sample is for plain decoding. TRUSTED: number of samples after
 * which an estimate is no longer lowered. SCATTER: when a class is averaged with the line, the
 * line has the weight of this number of samples. */
static const double LEFT = 0.998, LEFT_PLAIN = 0.9995, TRUSTED = 3, SCATTER = 4;
/* KEPT: maximum weight of a class from a file. The machine may have been busy when the file was
 * written. LEFT_KEPT: the factor by which that weight decays when another class gets a
 * sample. */
static const double KEPT = 2, LEFT_KEPT = 0.98;

/* Returns the class of a row count. Each count up to 16 has a class to itself. Above 16 there
 * are four classes per octave. */
static int class_of(int rows)
{
    if (rows <= EXACT)
        return rows - 1;
    int octave = (int)floor(log2(rows - 1)); /* 17..32: 4 */
    int first = 1 << octave, class = EXACT + 4 * (octave - 4) + 4 * (rows - 1 - first) / first;
    return class < ESP_COST_CLASSES ? class : ESP_COST_CLASSES - 1;
}

/* Returns the row count in the middle of a class. */
static double rows_of(int class)
{
    if (class < EXACT)
        return class + 1;
    int octave = 4 + (class - EXACT) / 4, part = (class - EXACT) % 4;
    double first = ldexp(1, octave);
    return first + (part + 0.5) * first / 4 + 0.5;
}

static void sort(const struct esp_cost_class *c, double sorted[ESP_COST_SAMPLES])
{
    for (int i = 0; i < c->count; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > c->sample[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = c->sample[i];
    }
}

static double quartile(const struct esp_cost_class *c)
{
    double sorted[ESP_COST_SAMPLES];
    sort(c, sorted);
    return sorted[(c->count - 1) / 4];
}

/* Returns the uncertainty of a class's lower quartile, estimated from the spread of its
 * samples. */
static double doubt(const struct esp_cost_class *c)
{
    double sorted[ESP_COST_SAMPLES];
    if (c->count < ESP_COST_SAMPLES / 2)
        return INFINITY;
    sort(c, sorted);
    return (sorted[3 * (c->count - 1) / 4] - sorted[0]) / sqrt(c->count);
}

/* Returns the weight of a class when the line is fitted. A class with a single sample has a
 * weight of nearly 0, because the pass may have been interrupted. The class of plain decoding
 * has its full weight, because it soon has more than one sample. */
static double weight_of(const struct esp_cost_curve *curve, int class)
{
    const struct esp_cost_class *c = &curve->class[class];
    return c->count == 0 ? 0 : class == 0 ? c->weight : fmax(c->weight - 1, 1e-3);
}

/* Fits a line to all classes, with their weights. If samples are few or old, OPTIMISTIC pulls
 * the slope of the line down. The class of plain decoding is fitted like the other classes,
 * because plain decoding is seldom timed while trees are faster. */
static void draw_line(struct esp_cost_curve *curve)
{
    static const double pull = 2; /* the assumed slope OPTIMISTIC has the weight of half a
                                     sample that is two rows away from the mean */
    double weights = 0, x = 0, y = 0, squares = pull, products = 0;
    for (int i = 0; i < ESP_COST_CLASSES; i++) {
        const struct esp_cost_class *c = &curve->class[i];
        if (c->count == 0)
            continue;
        const double w = weight_of(curve, i);
        weights += w;
        x += w * rows_of(i);
        y += w * quartile(c);
    }
    curve->one = curve->slope = 0;
    if (!(weights > 0))
        return;
    x /= weights;
    y /= weights;
    for (int i = 0; i < ESP_COST_CLASSES; i++) {
        const struct esp_cost_class *c = &curve->class[i];
        if (c->count == 0)
            continue;
        const double more = rows_of(i) - x, w = weight_of(curve, i);
        squares += w * more * more;
        products += w * more * (quartile(c) - y);
    }
    const double optimistic = y * OPTIMISTIC / (1 + OPTIMISTIC * (x - 1));
    curve->slope = fmax((products + pull * optimistic) / squares, 0);
    curve->slope = fmin(curve->slope, y / x); /* a further row costs at most as much as a whole
                                                 pass over one row */
    curve->one = y - curve->slope * (x - 1);
}

/* Returns the estimated seconds of a class with samples. Samples often scatter by more than the
 * cost of a row. The estimate is therefore a weighted mean of the class and the line. The
 * farther the class is from the line, relative to its spread, the larger its weight is. With
 * few samples the line is lowered a little, so that a size that was slow only by chance is
 * tried again. */
static double believed(const struct esp_cost_curve *curve, int class)
{
    const struct esp_cost_class *c = &curve->class[class];
    const double hope = HOPE + (1 - HOPE) * fmin(c->weight / TRUSTED, 1);
    const double line = curve->one + hope * curve->slope * (rows_of(class) - 1);
    const double off = quartile(c) - line, doubted = doubt(c) / fabs(off);
    double share = c->weight / (c->weight + SCATTER);
    if (c->weight > TRUSTED && doubted < 1)
        share = fmax(share, 1 - doubted * doubted);
    return line + share * off;
}

/* Averages neighbouring classes if the one with more rows is faster (isotonic regression). */
static void fit(struct esp_cost_curve *curve)
{
    double value[ESP_COST_CLASSES], weight[ESP_COST_CLASSES];
    int width[ESP_COST_CLASSES], blocks = 0;
    curve->knots = 0;
    draw_line(curve);
    for (int i = 0; i < ESP_COST_CLASSES; i++) {
        const struct esp_cost_class *c = &curve->class[i];
        if (c->count == 0)
            continue;
        curve->rows[curve->knots++] = rows_of(i);
        value[blocks] = believed(curve, i);
        weight[blocks] = c->weight;
        width[blocks++] = 1;
        for (; blocks > 1 && value[blocks - 2] > value[blocks - 1]; blocks--) {
            int a = blocks - 2, b = blocks - 1;
            value[a] = (value[a] * weight[a] + value[b] * weight[b]) / (weight[a] + weight[b]);
            weight[a] += weight[b];
            width[a] += width[b];
        }
    }
    for (int i = 0, at = 0; i < blocks; i++)
        for (int j = 0; j < width[i]; j++)
            curve->seconds[at++] = value[i];
}

/* Returns how many of the last ESP_COST_RECENT samples belong to this class. */
static int recently(const struct esp_cost_curve *curve, int class)
{
    int count = 0;
    for (unsigned i = 0; i < ESP_COST_RECENT && i < curve->added; i++)
        count += curve->recent[i] == class;
    return count;
}

/* Call this when a class has become slower or faster by `factor`, as happens when other
 * programs start or end. Scales the classes without recent samples, too. Otherwise they would
 * look cheap or expensive only because their samples are older. The larger the class's share of
 * the recent samples, the more of the factor is applied to the other classes. */
static void move_along(struct esp_cost_curve *curve, int class, double factor)
{
    const double moved = pow(factor, recently(curve, class) / (double)ESP_COST_RECENT);
    for (int i = 0; i < ESP_COST_CLASSES; i++) {
        struct esp_cost_class *c = &curve->class[i];
        if (c->count == 0 || recently(curve, i) > 0)
            continue;
        for (int j = 0; j < c->count; j++)
            c->sample[j] *= moved;
    }
}

static void add(struct esp_cost_curve *curve, int class, double seconds)
{
    struct esp_cost_class *c = &curve->class[class];
    const double before = c->count > 0 ? quartile(c) : 0;
    for (int i = 0; i < ESP_COST_CLASSES; i++) {
        struct esp_cost_class *other = &curve->class[i];
        if (i != class)
            other->weight *= !other->fresh ? LEFT_KEPT : class == 0 ? LEFT_PLAIN : LEFT;
    }
    c->fresh = true;
    c->sample[c->next] = seconds;
    c->next = (c->next + 1) % ESP_COST_SAMPLES;
    c->count += c->count < ESP_COST_SAMPLES;
    c->weight = fmin(c->weight + 1, ESP_COST_SAMPLES);
    curve->recent[curve->added++ % ESP_COST_RECENT] = class;
    if (c->count > TRUSTED)
        move_along(curve, class, quartile(c) / before);
    fit(curve);
}

static double value_at(const struct esp_cost_curve *curve, int rows)
{
    const int last = curve->knots - 1;
    int at = 0;
    if (rows <= curve->rows[0])
        return curve->seconds[0];
    while (at <= last && curve->rows[at] < rows)
        at++;
    if (at > last)
        return curve->seconds[last] + HOPE * curve->slope * (rows - curve->rows[last]);
    double share = (rows - curve->rows[at - 1]) / (curve->rows[at] - curve->rows[at - 1]);
    return curve->seconds[at - 1] + share * (curve->seconds[at] - curve->seconds[at - 1]);
}

/* ------------------------------------------------------------------ public functions */

/* If the curve of an octave has no samples, starts it as a copy of the curve for shorter
 * texts. */
static void begin_curve(struct esp_cost_curve *curves, int octave)
{
    int from = octave;
    if (curves[octave].knots > 0)
        return;
    while (from > 0 && curves[from].knots == 0)
        from--;
    if (curves[from].knots == 0)
        return;
    curves[octave] = curves[from];
    for (int i = 0; i < ESP_COST_CLASSES; i++) { /* the copy has the weight of one sample per
                                                    class, so new samples soon outweigh it */
        struct esp_cost_class *c = &curves[octave].class[i];
        if (c->count == 0)
            continue;
        c->sample[0] = quartile(c);
        c->count = c->next = 1;
        c->weight = TRUSTED;
    }
}

void esp_costs_at(struct esp_costs *costs, int length)
{
    int octave = 0;
    while (octave < ESP_COST_OCTAVES - 1 && length >> (SHORTEST + octave) > 0)
        octave++;
    costs->octave = octave;
    for (int i = 0; i < ESP_COSTS; i++)
        begin_curve(costs->curve[i], octave);
}

void esp_costs_nominal(struct esp_costs *costs, const struct esp_nominal_costs *given)
{
    costs->nominal = true;
    costs->nominal_row = given ? given->row : NOMINAL_ROW;
    costs->relative = given ? given->draft : costs->relative;
}

/* Returns the nominal cost of a pass, as a multiple of the cost of the same pass over one
 * row. */
static double nominal(const struct esp_costs *costs, int rows)
{
    return 1 + costs->nominal_row * (rows - 1);
}

/* Returns whether this is one of the program's first passes. Their times are not used. */
static bool is_early(struct esp_costs *costs, double seconds)
{
    const bool early = costs->warm < ESP_COST_WARM_UP;
    costs->warm += early ? seconds : 0;
    return early;
}

void esp_costs_took(struct esp_costs *costs, enum esp_cost of, int rows, double seconds)
{
    if (costs->nominal || costs->planted[of] || rows < 1 || !(seconds > 0) ||
        is_early(costs, seconds))
        return;
    add(&costs->curve[of][costs->octave], class_of(rows), seconds);
    costs->learned = true;
}

double esp_costs_verify(const struct esp_costs *costs, int rows)
{
    const struct esp_cost_curve *curve = &costs->curve[ESP_COST_VERIFY][costs->octave];
    if (costs->planted[ESP_COST_VERIFY])
        return costs->planted[ESP_COST_VERIFY](rows);
    if (costs->nominal)
        return nominal(costs, rows);
    return curve->knots > 0 ? value_at(curve, rows) : 0;
}

double esp_costs_draft(const struct esp_costs *costs, int rows)
{
    const struct esp_cost_curve *curve = &costs->curve[ESP_COST_DRAFT][costs->octave];
    if (costs->planted[ESP_COST_DRAFT])
        return costs->planted[ESP_COST_DRAFT](rows);
    if (costs->nominal)
        return costs->relative * nominal(costs, rows);
    if (curve->knots > 0)
        return value_at(curve, rows);
    return esp_costs_verify(costs, 1) * costs->relative * (1 + OPTIMISTIC * (rows - 1));
}

/* ------------------------------------------------------------------ the file */

static const double LONGEST = 1e4; /* maximum seconds of a pass */

/* Reads a curve. It is stored as the index, the seconds and the weight of each class. */
static void read_curve(const cJSON *array, struct esp_cost_curve *curve)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, array)
    {
        const cJSON *class = cJSON_GetArrayItem(item, 0), *took = cJSON_GetArrayItem(item, 1);
        const cJSON *weight = cJSON_GetArrayItem(item, 2);
        if (!cJSON_IsNumber(class) || !cJSON_IsNumber(took) || !(class->valuedouble >= 0) ||
            !(class->valuedouble < ESP_COST_CLASSES) || !(took->valuedouble > 0) ||
            !(took->valuedouble < LONGEST))
            continue;
        struct esp_cost_class *c = &curve->class[(int)class->valuedouble];
        if (!c->fresh)
            *c = (struct esp_cost_class){
                .sample = {took->valuedouble},
                .count = 1,
                .next = 1,
                .weight =
                    cJSON_IsNumber(weight) ? fmin(fmax(weight->valuedouble, 0), KEPT) : KEPT};
    }
    fit(curve);
}

static const char *const names[ESP_COSTS] = {"draft", "verify"};

/* Reads the file's curves, if the file has the current key. Another session may have written
 * newer curves, so classes without new samples in this session get the file's values. */
static void load(struct esp_costs *costs)
{
    cJSON *root = esp_state_object(costs->file, FILE_SIZE, costs->key);
    for (int i = 0; i < ESP_COSTS && root; i++) {
        const cJSON *octaves = cJSON_GetObjectItem(root, names[i]);
        for (int j = 0; j < ESP_COST_OCTAVES; j++)
            read_curve(cJSON_GetArrayItem(octaves, j), &costs->curve[i][j]);
    }
    cJSON_Delete(root);
}

static cJSON *curves_array(const struct esp_cost_curve *curves)
{
    cJSON *octaves = cJSON_CreateArray();
    for (int j = 0; j < ESP_COST_OCTAVES; j++) {
        cJSON *array = cJSON_CreateArray();
        for (int i = 0; i < ESP_COST_CLASSES; i++) {
            const struct esp_cost_class *c = &curves[j].class[i];
            if (c->count > 0)
                cJSON_AddItemToArray(
                    array, cJSON_CreateDoubleArray((double[]){i, quartile(c), c->weight}, 3));
        }
        cJSON_AddItemToArray(octaves, array);
    }
    return octaves;
}

void esp_costs_save(struct esp_costs *costs)
{
    if (!costs->learned || !*costs->file)
        return;
    load(costs);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "key", costs->key);
    for (int i = 0; i < ESP_COSTS; i++)
        cJSON_AddItemToObject(root, names[i], curves_array(costs->curve[i]));
    if (esp_state_write_object(costs->file, root))
        costs->learned = false;
}

void esp_costs_turn(struct esp_costs *costs, const char *key)
{
    if (strcmp(key, costs->key) == 0)
        return;
    esp_costs_save(costs);
    memset(costs->curve, 0, sizeof costs->curve);
    costs->learned = false;
    snprintf(costs->key, sizeof costs->key, "%s", key);
    esp_state_name(costs->file, sizeof costs->file, "costs", key);
    load(costs);
}
