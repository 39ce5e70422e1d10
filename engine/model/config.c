/* config.c - reads config.json by the rules of an architecture; see architecture.h.
 *
 * Every number is checked against its range before it is used. Error sentences name the key
 * with the file's spelling.
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
static int read_kind(double *value, enum kind kind, double smallest, double largest,
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

int esp_config_number(double *value, double smallest, double largest, const char *keys,
                      const struct esp_json *json, char *err, size_t errlen)
{
    return read_kind(value, KIND_double, smallest, largest, keys, json, err, errlen);
}

/* Refuses quantized weights: they are in tensors with other names than in the tables. MXFP4 is
 * supported, because esp_stored_join_scales renames its tensors. */
static int check_weights(const struct esp_json *json, char *err, size_t errlen)
{
    const char *key;
    int length;
    if (!esp_json_find(json->root, "quantization_config", &key, &length))
        return 0;
    const char *method = cJSON_GetStringValue(
        esp_json_find(json->root, "quantization_config.quant_method", &key, &length));
    if (method && strcmp(method, "mxfp4") == 0)
        return 0;
    return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                    "%s: the weights are quantized (%s); only F32, F16, BF16 "
                    "and mxfp4 are supported",
                    json->path, method ? method : "method not given");
}

static int check_activation(const struct esp_architecture *architecture,
                            const struct esp_json *json, char *err, size_t errlen)
{
    const struct esp_family *family = architecture->family;
    const char *key = family->activation_key ? family->activation_key : "hidden_act";
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json->root, key);
    if (!item || cJSON_IsNull(item) ||
        (cJSON_IsString(item) && strcmp(item->valuestring, family->hidden_act) == 0))
        return 0;
    return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                    "%s: %s is %s, but for %s models only %s is supported", json->path, key,
                    cJSON_IsString(item) ? item->valuestring : "not text", architecture->name,
                    family->hidden_act);
}

static int check_flags(const struct esp_architecture *architecture, const struct esp_json *json,
                       char *err, size_t errlen)
{
    const struct esp_config_flag *flag = architecture->flags;
    for (; flag && flag->key; flag++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(json->root, flag->key);
        if (item && !cJSON_IsNull(item) &&
            !(flag->value ? cJSON_IsTrue(item) : cJSON_IsFalse(item)))
            return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                            "%s: %s models are supported only if %s is %s", json->path,
                            architecture->name, flag->key, flag->value ? "true" : "false");
    }
    return 0;
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
    int status = read_kind(&value, fields[rule->field].kind, fields[rule->field].smallest,
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
                        "%s: %d attention heads are not a multiple of %d key/value heads",
                        json->path, config->heads, config->kv_heads);
    if (config->head_dim == 0 && config->hidden % config->heads != 0)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s: the hidden size %d is not a multiple of %d attention heads",
                        json->path, config->hidden, config->heads);
    if (config->head_dim == 0)
        config->head_dim = config->hidden / config->heads;
    if (config->head_dim % 2 != 0 || config->head_dim > 4096)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s: the head dimension is %d, but must be even and at most 4096",
                        json->path, config->head_dim);
    if (config->experts > 0 && config->experts_used > config->experts)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s: a token cannot use %d of %d experts",
                        json->path, config->experts_used, config->experts);
    if (config->ffn == 0)
        config->ffn = 4 * config->hidden;
    int status = check_weights(json, err, errlen);
    if (status == 0)
        status = check_flags(architecture, json, err, errlen);
    return status < 0 ? status : check_activation(architecture, json, err, errlen);
}
