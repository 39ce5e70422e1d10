/* config.c - reads config.json by the rules of an architecture; see architecture.h.
 *
 * Every number is checked against its range before anything is computed from it, and the
 * sentence of a failure names the key as it stands in the file. The rotary embedding is
 * computed in float32, operation by operation as the transformers library does it
 * (modeling_rope_utils.py), because at large positions a last-bit difference in a frequency
 * becomes a visible difference in an angle.
 */
#include "architecture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

enum kind { KIND_int, KIND_double, KIND_bool };

static const struct {
    enum kind kind;
    size_t offset;
    double smallest, largest;
} fields[] = {
#define X(type, name, smallest, largest)                                                       \
    {KIND_##type, offsetof(struct esp_config, name), smallest, largest},
    ESP_CONFIG_FIELDS(X)
#undef X
};

/* A number or flag of the file, checked; `*value` keeps its fallback if there is none. */
static int read_value(double *value, enum kind kind, double smallest, double largest,
                      const char *keys, const struct esp_json *json, char *err, size_t errlen)
{
    const char *key;
    int length;
    const cJSON *item = esp_json_find(json->root, keys, &key, &length);
    if (!item && *value == ESP_REQUIRED)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s does not give %.*s", json->path, length,
                        key);
    if (!item)
        return 0;
    if (kind == KIND_bool && !cJSON_IsBool(item))
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s: %.*s must be true or false", json->path,
                        length, key);
    if (kind != KIND_bool && !cJSON_IsNumber(item))
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s: %.*s must be a number", json->path,
                        length, key);
    *value = kind == KIND_bool ? cJSON_IsTrue(item) : item->valuedouble;
    if (!(*value >= smallest && *value <= largest))
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s: %.*s is %.10g, but must be from %.10g to %.10g", json->path,
                        length, key, *value, smallest, largest);
    if (kind == KIND_int && *value != floor(*value))
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s: %.*s is %g, but must be a whole number",
                        json->path, length, key, *value);
    return 0;
}

/* Quantized weights are other tensors than the tables ask for. */
static int check_weights(const struct esp_json *json, char *err, size_t errlen)
{
    const char *key;
    int length;
    if (!esp_json_find(json->root, "quantization_config", &key, &length))
        return 0;
    const char *method = cJSON_GetStringValue(
        esp_json_find(json->root, "quantization_config.quant_method", &key, &length));
    return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                    "%s: the weights are quantized (%s); only F32, F16 and BF16 are supported",
                    json->path, method ? method : "method not given");
}

static int check_activation(const struct esp_architecture *architecture,
                            const struct esp_json *json, char *err, size_t errlen)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json->root, "hidden_act");
    if (!item || cJSON_IsNull(item) ||
        (cJSON_IsString(item) && strcmp(item->valuestring, architecture->hidden_act) == 0))
        return 0;
    return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                    "%s: hidden_act is %s, but %s models are computed with %s only", json->path,
                    cJSON_IsString(item) ? item->valuestring : "not text", architecture->name,
                    architecture->hidden_act);
}

int esp_config_read(struct esp_config *config, const struct esp_architecture *architecture,
                    const struct esp_json *json, char *err, size_t errlen)
{
    memset(config, 0, sizeof *config);
    for (const struct esp_config_rule *rule = architecture->config; rule->keys; rule++) {
        double value = rule->fallback;
        void *field = (char *)config + fields[rule->field].offset;
        int status = read_value(&value, fields[rule->field].kind, fields[rule->field].smallest,
                                fields[rule->field].largest, rule->keys, json, err, errlen);
        if (status < 0)
            return status;
        switch (fields[rule->field].kind) {
        case KIND_int:
            *(int *)field = (int)value;
            break;
        case KIND_double:
            *(double *)field = value;
            break;
        case KIND_bool:
            *(bool *)field = value != 0;
            break;
        }
    }
    if (config->kv_heads == 0)
        config->kv_heads = config->heads;
    if (config->heads % config->kv_heads != 0)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s: %d attention heads cannot share %d key/value heads evenly",
                        json->path, config->heads, config->kv_heads);
    if (config->head_dim == 0 && config->hidden % config->heads != 0)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s: a hidden size of %d cannot be divided among %d attention heads",
                        json->path, config->hidden, config->heads);
    if (config->head_dim == 0)
        config->head_dim = config->hidden / config->heads;
    if (config->head_dim % 2 != 0 || config->head_dim > 4096)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s: the head dimension is %d, but must be even and at most 4096",
                        json->path, config->head_dim);
    if (config->windowed && config->window > 0 && config->window < config->context)
        config->context = config->window;
    int status = check_weights(json, err, errlen);
    return status < 0 ? status : check_activation(architecture, json, err, errlen);
}

/* ------------------------------------------------------------------ rotary embedding */

enum { FACTOR, LOW, HIGH, ORIGINAL, LLAMA3_VALUES };

static int read_llama3(double value[LLAMA3_VALUES], int context, const struct esp_json *json,
                       char *err, size_t errlen)
{
#define EITHER(key) "rope_scaling." key "|rope_parameters." key
    static const struct {
        const char *keys;
        double smallest, largest;
    } rules[LLAMA3_VALUES] = {
        [FACTOR] = {EITHER("factor"), 1, 1e6},
        [LOW] = {EITHER("low_freq_factor"), 1e-6, 1e6},
        [HIGH] = {EITHER("high_freq_factor"), 1e-6, 1e6},
        [ORIGINAL] = {EITHER("original_max_position_embeddings"), 1, 16 << 20},
    };
#undef EITHER
    int status = 0;
    for (int i = 0; i < LLAMA3_VALUES && status == 0; i++) {
        value[i] = i == ORIGINAL ? context : ESP_REQUIRED;
        status = read_value(&value[i], KIND_double, rules[i].smallest, rules[i].largest,
                            rules[i].keys, json, err, errlen);
    }
    if (status == 0 && value[HIGH] <= value[LOW])
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s: high_freq_factor (%g) must be larger than low_freq_factor (%g)",
                        json->path, value[HIGH], value[LOW]);
    return status;
}

/* Llama 3.1: wavelengths far beyond the original context are stretched by `factor`, short ones
 * kept, those in between blended. 1 / x and a / x are reciprocals times a, as in PyTorch. */
static void scale_llama3(float *frequency, int count, const double value[LLAMA3_VALUES])
{
    float factor = (float)value[FACTOR], original = (float)value[ORIGINAL];
    float longest = (float)(value[ORIGINAL] / value[LOW]);
    float shortest = (float)(value[ORIGINAL] / value[HIGH]);
    float low = (float)value[LOW], width = (float)(value[HIGH] - value[LOW]);
    for (int i = 0; i < count; i++) {
        float wavelength = 1.0f / frequency[i] * (float)(2 * M_PI);
        if (wavelength > longest) {
            frequency[i] /= factor;
        } else if (!(wavelength < shortest)) {
            float smooth = (1.0f / wavelength * original - low) / width;
            frequency[i] = (1.0f - smooth) * frequency[i] / factor + smooth * frequency[i];
        }
    }
}

/* "dynamic" scales where max_position_embeddings ends, and there the context ends: it is none.
 */
enum rope_type { DEFAULT, LINEAR, DYNAMIC, LLAMA3, ROPE_TYPES };

/* Which rope scaling it is, or a negative status. */
static int rope_type(const struct esp_json *json, char *err, size_t errlen)
{
    static const char *const names[ROPE_TYPES] = {"default", "linear", "dynamic", "llama3"};
    const char *key;
    int length;
    const cJSON *item = esp_json_find(json->root,
                                      "rope_scaling.rope_type|rope_scaling.type|"
                                      "rope_parameters.rope_type|rope_parameters.type",
                                      &key, &length);
    const char *name = item ? cJSON_GetStringValue(item) : "default";
    for (int type = 0; name && type < ROPE_TYPES; type++)
        if (strcmp(name, names[type]) == 0)
            return type;
    return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                    "%s: %.*s is %s; only default, linear, dynamic and llama3 are supported",
                    json->path, length, key, name ? name : "not text");
}

int esp_config_rotary(float **inverse_frequency, int *rotary, const struct esp_config *config,
                      const struct esp_json *json, char *err, size_t errlen)
{
    double values[LLAMA3_VALUES] = {[FACTOR] = ESP_REQUIRED};
    *rotary = (int)(config->head_dim * config->rotary_fraction);
    if (*rotary < 2 || *rotary % 2 != 0)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s: %d of %d dimensions of a head are rotated; must be even and not 0",
                        json->path, *rotary, config->head_dim);
    int status = rope_type(json, err, errlen);
    enum rope_type type = (enum rope_type)status;
    if (status == LLAMA3)
        status = read_llama3(values, config->context, json, err, errlen);
    else if (status == LINEAR)
        status = read_value(&values[FACTOR], KIND_double, 1, 1e6,
                            "rope_scaling.factor|rope_parameters.factor", json, err, errlen);
    if (status < 0)
        return status;

    int count = *rotary / 2;
    float *frequency = malloc((size_t)count * sizeof *frequency);
    if (!frequency)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", json->path);
    for (int i = 0; i < count; i++)
        frequency[i] = 1.0f / powf((float)config->rope_theta, (float)(2 * i) / (float)*rotary);
    for (int i = 0; i < count && type == LINEAR; i++)
        frequency[i] /= (float)values[FACTOR];
    if (type == LLAMA3)
        scale_llama3(frequency, count, values);
    *inverse_frequency = frequency;
    return 0;
}
