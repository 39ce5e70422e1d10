/* distribution.c - arithmetic on rows of probabilities, for drafters and verifiers.
 *
 * Verifiers draw from distributions and from residuals. The values of a row are float32. Sums
 * are computed in double precision, in 16 lanes over chunks of 256 values. The search for the
 * token at a given cumulative sum skips whole chunks. It finds the same token as a search that
 * adds the probabilities one by one, up to the rounding of a double.
 */
#include "kernels/cpu/isa/parts.h"

enum { CHUNK = 256 };

static double chunk_sum(const float *x, int n)
{
    double lane[ESP_LANES] = {0};
    int i = 0;
    for (; i + ESP_LANES <= n; i += ESP_LANES)
        for (int j = 0; j < ESP_LANES; j++)
            lane[j] += x[i + j];
    for (int j = 0; i + j < n; j++)
        lane[j] += x[i + j];
    for (int width = ESP_LANES / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++)
            lane[j] += lane[j + width];
    return lane[0];
}

static int chunk_size(int at, int n)
{
    return n - at < CHUNK ? n - at : CHUNK;
}

double ISA(row_sum)(const float *x, int n)
{
    double sum = 0.0;
    for (int at = 0; at < n; at += CHUNK)
        sum += chunk_sum(x + at, chunk_size(at, n));
    return sum;
}

/* Returns the first token at which the cumulative sum exceeds `target`. If there is none,
 * returns the last token whose probability is not 0. */
static int32_t invert(const float *x, int n, double target)
{
    double before = 0.0;
    int at = 0, last = 0; /* last: the start of the last chunk whose sum is not 0 */
    for (; at < n; at += CHUNK) {
        double sum = chunk_sum(x + at, chunk_size(at, n));
        if (sum > 0.0)
            last = at;
        if (before + sum > target)
            break;
        before += sum;
    }
    int end = at < n ? at + chunk_size(at, n) : last + chunk_size(last, n);
    int32_t token = -1;
    for (int i = at < n ? at : last; i < end; i++) {
        if (!(x[i] > 0.0f))
            continue;
        token = i;
        before += x[i];
        if (at < n && before > target)
            break;
    }
    return token;
}

void ISA(sample)(float *x, int n, double u, const int32_t *excluded, int per, int32_t *token,
                 double *value, void *scratch)
{
    struct {
        int32_t id;
        float value;
    } *hidden = scratch;
    int count = 0;
    for (int i = 0; i < per; i++) {
        int32_t id = excluded[i];
        if (id < 0 || x[id] == 0.0f)
            continue;
        hidden[count].id = id;
        hidden[count++].value = x[id];
        x[id] = 0.0f;
    }
    double total = ISA(row_sum)(x, n);
    *token = total > 0.0 ? invert(x, n, u * total) : -1;
    for (int i = 0; i < count; i++)
        x[hidden[i].id] = hidden[i].value;
    *value = *token < 0 ? 0.0 : x[*token];
}

V16 double combined(const struct esp_combination *f, double p, double q)
{
    double scaled = f->d * p;
    double value = f->a * p + f->b * q + f->c * (scaled < q ? scaled : q);
    return value > 0.0 ? value : 0.0;
}

double ISA(combine)(float *out, const float *p, const float *q, int n,
                    const struct esp_combination *f)
{
    const struct esp_combination k = *f;
    double lane[ESP_LANES] = {0}, sum = 0.0;
    int i = 0;
    for (; i + ESP_LANES <= n; i += ESP_LANES)
        for (int j = 0; j < ESP_LANES; j++)
            lane[j] += combined(&k, p[i + j], q[i + j]);
    for (int j = 0; i + j < n; j++)
        lane[j] += combined(&k, p[i + j], q[i + j]);
    for (int j = 0; j < ESP_LANES; j++)
        sum += lane[j];
    if (out && sum > 0.0) {
        double inverse = 1.0 / sum;
        for (i = 0; i < n; i++)
            out[i] = (float)(combined(&k, p[i], q[i]) * inverse);
    }
    return sum;
}

double ISA(remove)(float *x, int n, int32_t token)
{
    x[token] = 0.0f;
    double left = ISA(row_sum)(x, n), inverse = left > 0.0 ? 1.0 / left : 0.0;
    for (int i = 0; i < n; i++)
        x[i] = (float)(x[i] * inverse);
    return left;
}
