/* rotation.c - the frequencies of the rotary embedding, with the scalings that models have.
 *
 * They are computed in float32, operation by operation as the transformers library does it
 * (modeling_rope_utils.py), because at large positions a last-bit difference in a frequency
 * becomes a visible difference in an angle.
 *
 *   linear    positions are divided by a factor (Chen et al. 2023)
 *   dynamic   scales only positions beyond max_position_embeddings; the context ends there,
 *             so it needs no code
 *   llama3    long wavelengths are stretched (Llama 3.1)
 *   yarn      low frequencies are stretched, and cosine and sine scaled (Peng et al. 2023)
 *   longrope  a factor for each frequency, in two sets (Ding et al. 2024)
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/architecture.h"
#include "kernels/status.h"

enum rope_type { DEFAULT, LINEAR, DYNAMIC, LLAMA3, YARN, LONGROPE, ROPE_TYPES };

struct rotation {
    const struct esp_config *config;
    const struct esp_json *json;
    struct esp_rotation_tables *tables;
    enum rope_type type;
    int count; /* of frequencies */
    double theta, factor, original;
    char *err;
    size_t errlen;
};

static int read_number(const struct rotation *r, double *value, double smallest, double largest,
                       const char *keys)
{
    return esp_config_number(value, smallest, largest, keys, r->json, r->err, r->errlen);
}

static const cJSON *find(const struct rotation *r, const char *keys)
{
    const char *key;
    int length;
    return esp_json_find(r->json->root, keys, &key, &length);
}

/* Returns the kind of scaling, or a negative status. */
static int rope_type(const struct rotation *r)
{
    static const char *const names[ROPE_TYPES] = {"default", "linear", "dynamic",
                                                  "llama3",  "yarn",   "longrope"};
    const char *key;
    int length;
    const cJSON *item = esp_json_find(
        r->json->root, ESP_ROPE_KEY("rope_type") "|" ESP_ROPE_KEY("type"), &key, &length);
    const char *name = item ? cJSON_GetStringValue(item) : "default";
    bool lists = find(r, ESP_ROPE_KEY("long_factor")) != NULL;
    if (name && (strcmp(name, "su") == 0 || (lists && strcmp(name, "yarn") == 0)))
        name = "longrope"; /* as the first Phi-3 models call it */
    for (int type = 0; name && type < ROPE_TYPES; type++)
        if (strcmp(name, names[type]) == 0)
            return type;
    return esp_fail(r->err, r->errlen, ESP_E_UNSUPPORTED,
                    "%s: %.*s is %s; only default, linear, dynamic, llama3, yarn and longrope "
                    "are supported",
                    r->json->path, length, key, name ? name : "not text");
}

static float *new_table(const struct rotation *r)
{
    return malloc(((size_t)r->count + 1) * sizeof(float));
}

static void fill(float *frequency, int count, double theta)
{
    for (int i = 0; i < count; i++)
        frequency[i] = 1.0f / powf((float)theta, (float)(2 * i) / (float)(2 * count));
}

/* ------------------------------------------------------------------ llama3 */

enum { LOW, HIGH, LLAMA3_VALUES };

/* Wavelengths far beyond the original context are stretched by `factor`, short ones kept, those
 * in between blended. 1 / x and a / x are reciprocals times a, as in PyTorch. */
static void stretch_long(const struct rotation *r, const double value[LLAMA3_VALUES])
{
    float *frequency = r->tables->global;
    float factor = (float)r->factor, original = (float)r->original;
    float longest = (float)(r->original / value[LOW]);
    float shortest = (float)(r->original / value[HIGH]);
    float low = (float)value[LOW], width = (float)(value[HIGH] - value[LOW]);
    for (int i = 0; i < r->count; i++) {
        float wavelength = 1.0f / frequency[i] * (float)(2 * M_PI);
        if (wavelength > longest) {
            frequency[i] /= factor;
        } else if (!(wavelength < shortest)) {
            float smooth = (1.0f / wavelength * original - low) / width;
            frequency[i] = (1.0f - smooth) * frequency[i] / factor + smooth * frequency[i];
        }
    }
}

static int scale_llama3(const struct rotation *r)
{
    double value[LLAMA3_VALUES] = {ESP_REQUIRED, ESP_REQUIRED};
    int status = read_number(r, &value[LOW], 1e-6, 1e6, ESP_ROPE_KEY("low_freq_factor"));
    if (status == 0)
        status = read_number(r, &value[HIGH], 1e-6, 1e6, ESP_ROPE_KEY("high_freq_factor"));
    if (status == 0 && value[HIGH] <= value[LOW])
        return esp_fail(r->err, r->errlen, ESP_E_FORMAT,
                        "%s: high_freq_factor (%g) must be larger than low_freq_factor (%g)",
                        r->json->path, value[HIGH], value[LOW]);
    if (status == 0)
        stretch_long(r, value);
    return status;
}

/* ------------------------------------------------------------------ yarn */

static double yarn_scale(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

/* The number of the frequency that turns `turns` times within the original context. */
static double frequency_with(const struct rotation *r, double turns)
{
    return 2 * r->count * log(r->original / (turns * 2 * M_PI)) / (2 * log(r->theta));
}

static int scale_yarn(const struct rotation *r)
{
    double fast = 32, slow = 1, scale = 0, mscale = 0, mscale_all = 0;
    const cJSON *truncate = find(r, ESP_ROPE_KEY("truncate"));
    int status = read_number(r, &fast, 1e-6, 1e6, ESP_ROPE_KEY("beta_fast"));
    if (status == 0)
        status = read_number(r, &slow, 1e-6, 1e6, ESP_ROPE_KEY("beta_slow"));
    if (status == 0)
        status = read_number(r, &mscale, 0, 1e3, ESP_ROPE_KEY("mscale"));
    if (status == 0)
        status = read_number(r, &mscale_all, 0, 1e3, ESP_ROPE_KEY("mscale_all_dim"));
    if (status == 0)
        status = read_number(r, &scale, 1e-3, 1e3, ESP_ROPE_KEY("attention_factor"));
    if (status < 0)
        return status;
    if (r->theta <= 1)
        return esp_fail(r->err, r->errlen, ESP_E_FORMAT,
                        "%s: rope_theta must be above 1 with yarn", r->json->path);
    if (scale == 0)
        scale = mscale > 0 && mscale_all > 0
                    ? yarn_scale(r->factor, mscale) / yarn_scale(r->factor, mscale_all)
                    : yarn_scale(r->factor, 1);
    double low = frequency_with(r, fast), high = frequency_with(r, slow);
    if (!cJSON_IsFalse(truncate)) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, 2 * r->count - 1);
    if (low == high)
        high += 0.001;
    float *frequency = r->tables->global;
    for (int i = 0; i < r->count; i++) {
        float ramp = ((float)i - (float)low) / (float)(high - low);
        float keep = 1.0f - fminf(fmaxf(ramp, 0.0f), 1.0f);
        float stretched = 1.0f / ((float)r->factor * (1.0f / frequency[i]));
        frequency[i] = stretched * (1 - keep) + frequency[i] * keep;
    }
    r->tables->scale = (float)scale;
    return 0;
}

/* ------------------------------------------------------------------ longrope */

static int divide_by_list(const struct rotation *r, float *frequency, const char *keys)
{
    const char *key;
    int length, i = 0;
    const cJSON *list = esp_json_find(r->json->root, keys, &key, &length), *item;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != r->count)
        return esp_fail(r->err, r->errlen, ESP_E_FORMAT,
                        "%s: %.*s must be a list of %d numbers", r->json->path, length, key,
                        r->count);
    cJSON_ArrayForEach(item, list)
    {
        double factor = cJSON_GetNumberValue(item);
        if (!(factor >= 1e-6 && factor <= 1e6))
            return esp_fail(r->err, r->errlen, ESP_E_FORMAT,
                            "%s: %.*s has an entry that is not a number from 1e-6 to 1e6",
                            r->json->path, length, key);
        frequency[i] = 1.0f / ((float)factor *
                               powf((float)r->theta, (float)(2 * i) / (float)(2 * r->count)));
        i++;
    }
    return 0;
}

static int scale_longrope(const struct rotation *r)
{
    struct esp_rotation_tables *t = r->tables;
    double scale = 0;
    int status = read_number(r, &scale, 1e-3, 1e3, ESP_ROPE_KEY("attention_factor"));
    if (status < 0)
        return status;
    if (scale == 0)
        scale =
            r->factor <= 1 || r->original < 2 ? 1 : sqrt(1 + log(r->factor) / log(r->original));
    t->scale = (float)scale;
    t->original = (int)r->original;
    if (!(t->extended = new_table(r)))
        return esp_fail(r->err, r->errlen, ESP_E_MEMORY, "not enough memory for %s",
                        r->json->path);
    status = divide_by_list(r, t->global, ESP_ROPE_KEY("short_factor"));
    return status < 0 ? status : divide_by_list(r, t->extended, ESP_ROPE_KEY("long_factor"));
}

/* ------------------------------------------------------------------ all of them */

/* Reads what the scaling needs beside its kind. */
static int read_scaling(struct rotation *r)
{
    int status = rope_type(r);
    if (status < 0)
        return status;
    r->type = (enum rope_type)status;
    r->original = r->config->context;
    r->factor = 1;
    if (r->type == DEFAULT || r->type == DYNAMIC)
        return 0;
    if (r->type != LINEAR)
        status = read_number(r, &r->original, 1, 16 << 20,
                             "original_max_position_embeddings|" ESP_ROPE_KEY(
                                 "original_max_position_embeddings"));
    if (status < 0)
        return status;
    r->factor = r->type == LINEAR || r->type == LLAMA3 ? ESP_REQUIRED
                                                       : r->config->context / r->original;
    return read_number(r, &r->factor, r->type == LONGROPE ? 1e-6 : 1, 1e6,
                       ESP_ROPE_KEY("factor"));
}

static int scale(const struct rotation *r)
{
    for (int i = 0; i < r->count && r->type == LINEAR; i++)
        r->tables->global[i] /= (float)r->factor;
    return r->type == LLAMA3     ? scale_llama3(r)
           : r->type == YARN     ? scale_yarn(r)
           : r->type == LONGROPE ? scale_longrope(r)
                                 : 0;
}

int esp_config_rotation(struct esp_rotation_tables *tables, const struct esp_config *config,
                        const struct esp_json *json, char *err, size_t errlen)
{
    struct rotation r = {.config = config,
                         .json = json,
                         .tables = tables,
                         .theta = config->rope_theta,
                         .err = err,
                         .errlen = errlen};
    *tables = (struct esp_rotation_tables){.scale = 1};
    if (config->rotary_fraction == 0)
        return 0;
    tables->rotary = (int)(config->head_dim * config->rotary_fraction);
    if (tables->rotary < 2 || tables->rotary % 2 != 0)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s: %d of %d dimensions of a head are rotated; must be even and not 0",
                        json->path, tables->rotary, config->head_dim);
    r.count = tables->rotary / 2;
    int status = read_scaling(&r);
    if (status < 0)
        return status;
    tables->global = new_table(&r);
    tables->local = config->rope_theta_local > 0 ? new_table(&r) : NULL;
    if (!tables->global || (config->rope_theta_local > 0 && !tables->local))
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", json->path);
    fill(tables->global, r.count, config->rope_theta);
    if (tables->local)
        fill(tables->local, r.count, config->rope_theta_local);
    return scale(&r);
}
