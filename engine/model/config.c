/* config.c - reads config.json by the rules of an architecture; see architecture.h.
 *
 * Every number is checked against its range before anything is computed from it, and the
 * sentence of a failure names the key as it stands in the file. The rotary embedding is
 * computed in float32, operation by operation as the transformers library does it
 * (modeling_rope_utils.py), because at large positions a last-bit difference in a frequency
 * becomes a visible difference in an angle.
 */
#include "engine/model/architecture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

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

/* Reads and checks a number or flag. *value keeps its fallback if the file has none. */
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

/* Quantized weights are refused: they are stored in other tensors than the tables name. */
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
        (cJSON_IsString(item) &&
         strcmp(item->valuestring, architecture->family->hidden_act) == 0))
        return 0;
    return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                    "%s: hidden_act is %s, but %s models are computed with %s only", json->path,
                    cJSON_IsString(item) ? item->valuestring : "not text", architecture->name,
                    architecture->family->hidden_act);
}

static const struct esp_config_rule *find_rule(const struct esp_config_rule *table,
                                               enum esp_config_field field)
{
    for (; table && table->keys; table++)
        if (table->field == field)
            return table;
    return NULL;
}

const struct esp_config_rule *esp_config_rule(const struct esp_architecture *architecture,
                                              enum esp_config_field field)
{
    const struct esp_config_rule *own = find_rule(architecture->config, field);
    return own ? own : find_rule(architecture->family->config, field);
}

static int read_field(struct esp_config *config, const struct esp_config_rule *rule,
                      const struct esp_json *json, char *err, size_t errlen)
{
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
    return 0;
}

int esp_config_read(struct esp_config *config, const struct esp_architecture *architecture,
                    const struct esp_json *json, char *err, size_t errlen)
{
    memset(config, 0, sizeof *config);
    for (int field = 0; field < ESP_CONFIG_FIELD_COUNT; field++) {
        const struct esp_config_rule *rule =
            esp_config_rule(architecture, (enum esp_config_field)field);
        int status = rule ? read_field(config, rule, json, err, errlen) : 0;
        if (status < 0)
            return status;
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
    int status = check_weights(json, err, errlen);
    return status < 0 ? status : check_activation(architecture, json, err, errlen);
}

/* ------------------------------------------------------------------ layers */

/* Whether the file's list of layer types gives a layer a window: 1, 0, or a negative status. */
static int windowed_type(const cJSON *item, const struct esp_json *json, char *err,
                         size_t errlen)
{
    const char *type = cJSON_GetStringValue(item);
    if (type && strcmp(type, "sliding_attention") == 0)
        return 1;
    if (type && strcmp(type, "full_attention") == 0)
        return 0;
    return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                    "%s: layer_types has %s; only full_attention and sliding_attention are "
                    "supported",
                    json->path, type ? type : "an entry that is not text");
}

int esp_config_layers(struct esp_layer *layer, const struct esp_config *config,
                      const struct esp_json *json, char *err, size_t errlen)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(json->root, "layer_types"), *type;
    if (!config->windowed || config->window == 0)
        return 0;
    if (cJSON_IsNull(types))
        types = NULL;
    if (types && (!cJSON_IsArray(types) || cJSON_GetArraySize(types) != config->layers))
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s: layer_types must list the type of each of the %d layers",
                        json->path, config->layers);
    type = types ? types->child : NULL;
    for (int i = 0; i < config->layers; i++, type = type ? type->next : NULL) {
        int windowed = i >= config->window_from &&
                       (config->full_every == 0 || (i + 1) % config->full_every != 0);
        if (type)
            windowed = windowed_type(type, json, err, errlen);
        if (windowed < 0)
            return windowed;
        if (windowed && config->window < config->context)
            layer[i].window = config->window;
    }
    return 0;
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

/* DYNAMIC scales only positions beyond max_position_embeddings. The context ends there, so it
 * needs no code. */
enum rope_type { DEFAULT, LINEAR, DYNAMIC, LLAMA3, ROPE_TYPES };

/* Returns the kind of RoPE scaling, or a negative status. */
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
