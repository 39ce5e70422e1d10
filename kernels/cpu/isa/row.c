/* row.c - operations on one row of logits: finds the largest values, and turns the row into
 * probabilities.
 *
 * One loop over the row finds the k largest values. It compares 16 values at a time with the
 * smallest of the k largest values so far. After a few hundred values, almost all
 * further values are smaller. So the loop takes little more time than the comparisons. Of two
 * equal values, the value with the lower index ranks first. All backends use this rule, so
 * their results agree.
 *
 * Top-p ("nucleus") sampling (Holtzman et al. 2020) selects the largest values until their sum
 * reaches p. A quickselect that adds up probabilities finds the last selected value without
 * sorting.
 */
#include "kernels/cpu/isa/parts.h"

#include <float.h>

/* ------------------------------------------------------------------ largest entries */

V16 struct v16 load_tail(const float *x, int i, int n, float fill)
{
    return n - i < ESP_LANES ? v16_load_part(x + i, n - i, fill) : v16_load(x + i);
}

V16 void store_tail(float *x, int i, int n, struct v16 value)
{
    if (n - i < ESP_LANES)
        v16_store_part(x + i, n - i, value);
    else
        v16_store(x + i, value);
}

/* Returns the highest value. If a value is NaN, the result may be any of the values. */
static float highest(const float *x, int n)
{
    struct v16 a = v16_set(-INFINITY), b = a;
    for (int i = 0; i < n; i += 2 * ESP_LANES) {
        a = v16_max(a, load_tail(x, i, n, -INFINITY));
        if (i + ESP_LANES < n)
            b = v16_max(b, load_tail(x, i + ESP_LANES, n, -INFINITY));
    }
    return v16_highest(v16_max(a, b));
}

int ISA(argmax)(const float *x, int n, int32_t *id)
{
    /* `finite` becomes NaN if a value is not finite. */
    struct v16 zero = v16_set(0.0f), finite = zero;
    for (int i = 0; i < n; i += ESP_LANES)
        finite = v16_fma(load_tail(x, i, n, 0.0f), zero, finite);
    if (v16_equal(finite, finite) != 0xffff)
        return ESP_E_NUMERIC;

    struct v16 top = v16_set(highest(x, n));
    for (int i = 0; i < n; i += ESP_LANES) {
        unsigned found = v16_equal(load_tail(x, i, n, -INFINITY), top);
        if (found) {
            *id = i + __builtin_ctz(found);
            break;
        }
    }
    return 0;
}

static bool ranks_below(float value, int32_t id, float other_value, int32_t other_id)
{
    return value < other_value || (value == other_value && id > other_id);
}

/* Replaces entry `at` of a heap by (value, id), and moves the new entry down to its place. The
 * entry that ranks lowest is at the top of the heap. */
static void sift(float *values, int32_t *ids, int count, int at, float value, int32_t id)
{
    for (int child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count &&
            ranks_below(values[child + 1], ids[child + 1], values[child], ids[child]))
            child++;
        if (!ranks_below(values[child], ids[child], value, id))
            break;
        values[at] = values[child];
        ids[at] = ids[child];
    }
    values[at] = value;
    ids[at] = id;
}

int ISA(top_k)(const float *x, int n, int k, int32_t *ids, float *values)
{
    for (int i = 0; i < k; i++) {
        if (isnan(x[i]))
            return ESP_E_NUMERIC;
        values[i] = x[i];
        ids[i] = i;
    }
    for (int i = k / 2 - 1; i >= 0; i--)
        sift(values, ids, k, i, values[i], ids[i]);
    for (int i = k; i < n; i += ESP_LANES) {
        struct v16 value = load_tail(x, i, n, -INFINITY);
        unsigned passed = v16_not_at_most(value, v16_set(values[0]));
        for (; passed; passed &= passed - 1) {
            int at = i + __builtin_ctz(passed);
            if (isnan(x[at]))
                return ESP_E_NUMERIC;
            if (x[at] > values[0])
                sift(values, ids, k, 0, x[at], at);
        }
    }
    for (int last = k - 1; last > 0; last--) {
        float value = values[last];
        int32_t id = ids[last];
        values[last] = values[0];
        ids[last] = ids[0];
        sift(values, ids, last, 0, value, id);
    }
    return 0;
}

/* ------------------------------------------------------------------ probabilities */

/* Replaces x by e^((x - top) / temperature). */
static void exponentials(float *x, int n, float top, double temperature)
{
    double inverse = 1.0 / temperature;
    inverse = inverse > FLT_MAX ? FLT_MAX : inverse < FLT_MIN ? FLT_MIN : inverse;
    const struct v16 highest_value = v16_set(top), factor = v16_set((float)inverse);
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 value = v16_sub(load_tail(x, i, n, -INFINITY), highest_value);
        store_tail(x, i, n, v16_exp(v16_mul(value, factor)));
    }
}

/* Replaces all entries that rank below (cut, cut_id) by `fill`. */
static void drop_below(float *x, int n, float cut, int32_t cut_id, float fill)
{
    const struct v16 limit = v16_set(cut), other = v16_set(fill);
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 value = load_tail(x, i, n, fill);
        unsigned equal = v16_equal(value, limit);
        value = v16_where_less(value, limit, other, value);
        store_tail(x, i, n, value);
        for (; equal; equal &= equal - 1) {
            int at = i + __builtin_ctz(equal);
            if (at > cut_id && at < n)
                x[at] = fill;
        }
    }
}

struct entry {
    float value;
    int32_t id;
};

/* Partitions entries by a pivot: the entries that rank above the pivot come first, then the
 * pivot, then all other entries. Returns how many entries rank above the pivot. */
static int split(struct entry *entries, int count, int pivot)
{
    struct entry at = entries[pivot];
    int above = 0;
    entries[pivot] = entries[count - 1];
    for (int i = 0; i < count - 1; i++) {
        struct entry entry = entries[i];
        entries[i] = entries[above];
        entries[above] = entry;
        above += ranks_below(at.value, at.id, entry.value, entry.id);
    }
    entries[count - 1] = entries[above];
    entries[above] = at;
    return above;
}

/* Returns the last entry that top-p selects. If the entries were sorted in descending order and
 * added one after another, the sum would first reach `mass` at this entry. */
static struct entry select_mass(struct entry *entries, int count, double mass)
{
    struct entry last = entries[0];
    unsigned random = 1;
    while (count > 0) {
        random = random * 1664525u + 1013904223u;
        int above = split(entries, count, (int)(((uint64_t)random * (uint64_t)count) >> 32));
        double sum = 0.0;
        for (int i = 0; i < above; i++)
            sum += entries[i].value;
        if (above > 0 && sum >= mass) {
            count = above;
            continue;
        }
        last = entries[above];
        mass -= sum + last.value;
        if (mass <= 0.0)
            break;
        entries += above + 1;
        count -= above + 1;
    }
    return last;
}

/* Zeroes the entries that top-p does not select, and returns the sum of the selected entries.
 * The search ignores entries that are at most `least`, because all of them together have less
 * than half of the mass that top-p leaves out. */
static double keep_mass(float *x, int n, double top_p, double total, struct entry *entries)
{
    struct v16 least = v16_set((float)(0.5 * (1.0 - top_p) * total / n));
    int count = 0;
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 value = load_tail(x, i, n, 0.0f);
        unsigned passed = v16_greater(value, least);
        for (; passed; passed &= passed - 1) {
            int at = i + __builtin_ctz(passed);
            entries[count++] = (struct entry){x[at], at};
        }
    }
    struct entry last = select_mass(entries, count, top_p * total);
    drop_below(x, n, last.value, last.id, 0.0f);
    return ISA(row_sum)(x, n);
}

int ISA(softmax)(float *x, int n, const struct esp_sampling *sampling, void *scratch)
{
    float top = highest(x, n);
    if (!isfinite(top))
        return ESP_E_NUMERIC;
    int k = sampling->top_k;
    if (k > 0 && k < n) {
        int32_t *ids = scratch;
        float *values = (float *)scratch + k;
        int status = ISA(top_k)(x, n, k, ids, values);
        if (status < 0)
            return status;
        drop_below(x, n, values[k - 1], ids[k - 1], -INFINITY);
    }
    exponentials(x, n, top, sampling->temperature);
    double total = ISA(row_sum)(x, n); /* this is NaN if a logit is NaN */
    if (isnan(total))
        return ESP_E_NUMERIC;
    if (sampling->top_p < 1.0)
        total = keep_mass(x, n, sampling->top_p, total, scratch);
    struct v16 factor = v16_set((float)(1.0 / total));
    for (int i = 0; i < n; i += ESP_LANES)
        store_tail(x, i, n, v16_mul(load_tail(x, i, n, 0.0f), factor));
    return 0;
}
