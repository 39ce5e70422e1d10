/* rotation.c - computes the frequencies of the rotary embedding, and scales them as a model
 * requires.
 *
 * The frequencies are computed in float32, with the same operations in the same order as in the
 * transformers library (modeling_rope_utils.py). The reason is that at large positions a
 * last-bit difference in a frequency becomes a visible difference in an angle.
 *
 * Kinds of RoPE scaling:
 *   linear    positions are divided by a factor (Chen et al. 2023)
 *   dynamic   scales only positions beyond max_position_embeddings. The context ends there, so
 *             this kind needs no code
 *   llama3    long wavelengths are stretched (Llama 3.1)
 *   yarn      low frequencies are stretched, and cosine and sine are scaled (Peng et al. 2023)
 *   longrope  each frequency is divided by a separate factor. There are two sets of factors
 *             (Ding et al. 2024)
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
    int count; /* number of frequencies */
    double theta, factor, original;
    int status; /* the first failure, or ESP_OK */
};

/* Reads a number. Does nothing if an earlier call failed. */
static void read_number(struct rotation *r, double *value, double smallest, double largest,
                        const char *keys)
{
    if (r->status == ESP_OK)
        r->status = esp_config_number(value, smallest, largest, keys, r->json);
}

/* Returns the kind of RoPE scaling, or a negative status. */
static int rope_type(const struct rotation *r)
{
    static const char *const names[ROPE_TYPES] = {"default", "linear", "dynamic",
                                                  "llama3",  "yarn",   "longrope"};
    const char *key;
    int length;
    const cJSON *item = esp_json_find(
        r->json->root, ESP_ROPE_KEY("rope_type") "|" ESP_ROPE_KEY("type"), &key, &length);
    const char *name = item ? cJSON_GetStringValue(item) : "default";
    bool lists = esp_json_find(r->json->root, ESP_ROPE_KEY("long_factor"), NULL, NULL) != NULL;
    if (name && (strcmp(name, "su") == 0 || (lists && strcmp(name, "yarn") == 0)))
        name = "longrope"; /* the first Phi-3 models call it "su" */
    for (int type = 0; name && type < ROPE_TYPES; type++)
        if (strcmp(name, names[type]) == 0)
            return type;
    return esp_json_fail(r->json, ESP_E_UNSUPPORTED,
                         "%.*s is %s; only default, linear, dynamic, llama3, yarn and longrope "
                         "are supported",
                         length, key, name ? name : "not text");
}

static void fill(float *frequency, int count, double theta)
{
    for (int i = 0; i < count; i++)
        frequency[i] = 1.0f / powf((float)theta, (float)(2 * i) / (float)(2 * count));
}

/* ------------------------------------------------------------------ llama3 */

/* Stretches wavelengths by `factor` if they are long relative to the original context. Does not
 * change short wavelengths. Interpolates for wavelengths in between. The order of operations is
 * the same as in PyTorch, which computes a / x as (1 / x) * a. */
static void stretch_long(const struct rotation *r, double least, double most)
{
    float *frequency = r->tables->global;
    float factor = (float)r->factor, original = (float)r->original;
    float longest = (float)(r->original / least);
    float shortest = (float)(r->original / most);
    float low = (float)least, width = (float)(most - least);
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

static void scale_llama3(struct rotation *r)
{
    double low = ESP_REQUIRED, high = ESP_REQUIRED;
    read_number(r, &low, 1e-6, 1e6, ESP_ROPE_KEY("low_freq_factor"));
    read_number(r, &high, 1e-6, 1e6, ESP_ROPE_KEY("high_freq_factor"));
    if (r->status == ESP_OK && high <= low)
        r->status = esp_json_fail(
            r->json, ESP_E_FORMAT,
            "high_freq_factor (%g) must be larger than low_freq_factor (%g)", high, low);
    if (r->status == ESP_OK)
        stretch_long(r, low, high);
}

/* ------------------------------------------------------------------ yarn */

static double yarn_scale(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

/* Returns the index of the frequency that makes `turns` turns in the original context. The
 * index is usually not an integer. */
static double frequency_with(const struct rotation *r, double turns)
{
    return 2 * r->count * log(r->original / (turns * 2 * M_PI)) / (2 * log(r->theta));
}

static void scale_yarn(struct rotation *r)
{
    double fast = 32, slow = 1, scale = 0, mscale = 0, mscale_all = 0;
    read_number(r, &fast, 1e-6, 1e6, ESP_ROPE_KEY("beta_fast"));
    read_number(r, &slow, 1e-6, 1e6, ESP_ROPE_KEY("beta_slow"));
    read_number(r, &mscale, 0, 1e3, ESP_ROPE_KEY("mscale"));
    read_number(r, &mscale_all, 0, 1e3, ESP_ROPE_KEY("mscale_all_dim"));
    read_number(r, &scale, 1e-3, 1e3, ESP_ROPE_KEY("attention_factor"));
    if (r->status == ESP_OK && r->theta <= 1)
        r->status =
            esp_json_fail(r->json, ESP_E_FORMAT, "rope_theta must be above 1 with yarn");
    if (r->status < 0)
        return;
    if (scale == 0)
        scale = mscale > 0 && mscale_all > 0
                    ? yarn_scale(r->factor, mscale) / yarn_scale(r->factor, mscale_all)
                    : yarn_scale(r->factor, 1);
    double low = frequency_with(r, fast), high = frequency_with(r, slow);
    if (!cJSON_IsFalse(esp_json_find(r->json->root, ESP_ROPE_KEY("truncate"), NULL, NULL))) {
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
}

/* ------------------------------------------------------------------ longrope */

static int divide_by_list(const struct rotation *r, float *frequency, const char *keys)
{
    const char *key;
    int length, i = 0;
    const cJSON *list = esp_json_find(r->json->root, keys, &key, &length), *item;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != r->count)
        return esp_json_fail(r->json, ESP_E_FORMAT, "%.*s must be a list of %d numbers", length,
                             key, r->count);
    cJSON_ArrayForEach(item, list)
    {
        double factor = cJSON_GetNumberValue(item);
        if (!(factor >= 1e-6 && factor <= 1e6))
            return esp_json_fail(r->json, ESP_E_FORMAT,
                                 "%.*s has an entry that is not a number from 1e-6 to 1e6",
                                 length, key);
        frequency[i] = 1.0f / ((float)factor *
                               powf((float)r->theta, (float)(2 * i) / (float)(2 * r->count)));
        i++;
    }
    return 0;
}

static void scale_longrope(struct rotation *r)
{
    struct esp_rotation_tables *t = r->tables;
    double scale = 0;
    read_number(r, &scale, 1e-3, 1e3, ESP_ROPE_KEY("attention_factor"));
    if (r->status < 0)
        return;
    if (scale == 0)
        scale =
            r->factor <= 1 || r->original < 2 ? 1 : sqrt(1 + log(r->factor) / log(r->original));
    t->scale = (float)scale;
    t->original = (int)r->original;
    t->extended = malloc(((size_t)r->count + 1) * sizeof(float));
    r->status = !t->extended ? esp_no_memory(r->json->path, r->json->err, r->json->errlen)
                             : divide_by_list(r, t->global, ESP_ROPE_KEY("short_factor"));
    if (r->status == ESP_OK)
        r->status = divide_by_list(r, t->extended, ESP_ROPE_KEY("long_factor"));
}

/* ------------------------------------------------------------------ all kinds */

/* Reads the kind of RoPE scaling and the numbers that all kinds use. */
static void read_scaling(struct rotation *r)
{
    const int type = rope_type(r);
    r->status = type < 0 ? type : ESP_OK;
    r->type = type < 0 ? DEFAULT : (enum rope_type)type;
    r->original = r->config->context;
    r->factor = 1;
    if (r->type == DEFAULT || r->type == DYNAMIC)
        return;
    if (r->type != LINEAR)
        read_number(r, &r->original, 1, 16 << 20,
                    "original_max_position_embeddings|" ESP_ROPE_KEY(
                        "original_max_position_embeddings"));
    r->factor = r->type == LINEAR || r->type == LLAMA3 ? ESP_REQUIRED
                                                       : r->config->context / r->original;
    read_number(r, &r->factor, r->type == LONGROPE ? 1e-6 : 1, 1e6, ESP_ROPE_KEY("factor"));
}

static int scale(struct rotation *r)
{
    for (int i = 0; i < r->count && r->type == LINEAR; i++)
        r->tables->global[i] /= (float)r->factor;
    if (r->type == LLAMA3)
        scale_llama3(r);
    else if (r->type == YARN)
        scale_yarn(r);
    else if (r->type == LONGROPE)
        scale_longrope(r);
    return r->status;
}

int esp_config_rotation(struct esp_rotation_tables *tables, const struct esp_config *config,
                        const struct esp_json *json)
{
    struct rotation r = {
        .config = config, .json = json, .tables = tables, .theta = config->rope_theta};
    *tables = (struct esp_rotation_tables){.scale = 1};
    if (config->rotary_fraction == 0)
        return 0;
    tables->rotary = (int)(config->head_dim * config->rotary_fraction);
    if (tables->rotary < 2 || tables->rotary % 2 != 0)
        return esp_json_fail(
            json, ESP_E_UNSUPPORTED,
            "%d of %d dimensions of a head are rotated, but the number must be even and not 0",
            tables->rotary, config->head_dim);
    r.count = tables->rotary / 2;
    read_scaling(&r);
    if (r.status < 0)
        return r.status;
    const size_t bytes = ((size_t)r.count + 1) * sizeof *tables->global;
    tables->global = malloc(bytes);
    tables->local = config->rope_theta_local > 0 ? malloc(bytes) : NULL;
    if (!tables->global || (config->rope_theta_local > 0 && !tables->local))
        return esp_no_memory(json->path, json->err, json->errlen);
    fill(tables->global, r.count, config->rope_theta);
    if (tables->local)
        fill(tables->local, r.count, config->rope_theta_local);
    return scale(&r);
}
