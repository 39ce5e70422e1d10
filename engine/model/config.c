/* config.c - reads config.json by the rules of an architecture; see architecture.h.
 *
 * Every number is checked against its range before it is used. Error messages name the key as
 * it is spelled in the file.
 */
#include "engine/model/architecture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/status.h"

static const struct esp_architecture *const architectures[] = {
#define X(name) &esp_architecture_##name,
#include "engine/model/architectures.def"
};

enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

const struct esp_architecture *esp_architecture_named(const char *type)
{
    for (int i = 0; i < ARCHITECTURES; i++)
        if (strcmp(architectures[i]->name, type) == 0)
            return architectures[i];
    return NULL;
}

int esp_architecture_read(const struct esp_architecture **found, const struct esp_json *json)
{
    char known[512] = "";
    const char *type = esp_json_text(json->root, "model_type");
    *found = type ? esp_architecture_named(type) : NULL;
    for (size_t i = 0, used = 0; i < ARCHITECTURES; i++, used = strlen(known))
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                 architectures[i]->name);
    return *found ? ESP_OK
                  : esp_json_fail(json, ESP_E_UNSUPPORTED,
                                  "model_type is %s; the supported types are %s",
                                  type ? type : "not given", known);
}

/* ------------------------------------------------------------------ tensor rules */

const struct esp_tensor_rule *esp_rule_first(const struct esp_tensor_rule *rules,
                                             const struct esp_tensor_rule *rule)
{
    if (rule->apart)
        return rule;
    while (strcmp(rules->name, rule->name) != 0)
        rules++;
    return rules;
}

void esp_rule_name(char name[ESP_TENSOR_NAME], const struct esp_family *family,
                   const struct esp_tensor_rule *rule, int layer, int expert)
{
    char number[16] = "", experts[64] = "";
    if (!family->single_layer)
        snprintf(number, sizeof number, "%d.", layer);
    if (expert == ESP_ALL_EXPERTS)
        snprintf(experts, sizeof experts, "%s", family->expert_name);
    else if (expert >= 0)
        snprintf(experts, sizeof experts, "%s%d.", family->expert_name, expert);
    if (layer < 0)
        snprintf(name, ESP_TENSOR_NAME, "%s", rule->name);
    else
        snprintf(name, ESP_TENSOR_NAME, "%s%s%s%s", family->layer_name, number, experts,
                 rule->name);
}

/* ------------------------------------------------------------------ config.json */

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

/* Reads and checks a number or flag. If config.json lacks it, *value does not change. */
static int read_kind(double *value, enum kind kind, double smallest, double largest,
                     const char *keys, const struct esp_json *json)
{
    const char *key;
    int length;
    const cJSON *item = esp_json_find(json->root, keys, &key, &length);
    if (!item && *value == ESP_REQUIRED)
        return esp_fail(json->err, json->errlen, ESP_E_FORMAT, "%s does not give %.*s",
                        json->path, length, key);
    if (!item)
        return 0;
    if (kind == KIND_bool && !cJSON_IsBool(item))
        return esp_json_fail(json, ESP_E_FORMAT, "%.*s must be true or false", length, key);
    if (kind != KIND_bool && !cJSON_IsNumber(item))
        return esp_json_fail(json, ESP_E_FORMAT, "%.*s must be a number", length, key);
    *value = kind == KIND_bool ? cJSON_IsTrue(item) : item->valuedouble;
    if (!(*value >= smallest && *value <= largest))
        return esp_json_fail(json, ESP_E_FORMAT,
                             "%.*s is %.10g, but must be from %.10g to %.10g", length, key,
                             *value, smallest, largest);
    if (kind == KIND_int && *value != floor(*value))
        return esp_json_fail(json, ESP_E_FORMAT, "%.*s is %g, but must be a whole number",
                             length, key, *value);
    return 0;
}

int esp_config_number(double *value, double smallest, double largest, const char *keys,
                      const struct esp_json *json)
{
    return read_kind(value, KIND_double, smallest, largest, keys, json);
}

/* Refuses quantized weights, because the architecture's tables lack the names of their tensors.
 * MXFP4 is supported, because esp_stored_join_scales() renames its tensors. */
static int check_weights(const struct esp_json *json)
{
    const cJSON *weights = esp_json_find(json->root, "quantization_config", NULL, NULL);
    const char *method = esp_json_text(weights, "quant_method");
    if (!weights)
        return 0;
    if (method && strcmp(method, "mxfp4") == 0)
        return 0;
    return esp_json_fail(json, ESP_E_UNSUPPORTED,
                         "the weights are quantized (%s); only F32, F16, BF16 "
                         "and mxfp4 are supported",
                         method ? method : "method not given");
}

static int check_activation(const struct esp_architecture *architecture,
                            const struct esp_json *json)
{
    const struct esp_family *family = architecture->family;
    const char *key = family->activation_key ? family->activation_key : "hidden_act";
    const cJSON *item = esp_json_find(json->root, key, NULL, NULL);
    if (!item || (cJSON_IsString(item) && strcmp(item->valuestring, family->hidden_act) == 0))
        return 0;
    return esp_json_fail(json, ESP_E_UNSUPPORTED,
                         "%s is %s, but for %s models only %s is supported", key,
                         cJSON_IsString(item) ? item->valuestring : "not text",
                         architecture->name, family->hidden_act);
}

static int check_flags(const struct esp_architecture *architecture, const struct esp_json *json)
{
    for (const struct esp_config_flag *flag = architecture->flags; flag->key; flag++) {
        const cJSON *item = esp_json_find(json->root, flag->key, NULL, NULL);
        const char *text = cJSON_GetStringValue(item);
        const bool same = flag->text    ? text && strcmp(text, flag->text) == 0
                          : flag->value ? cJSON_IsTrue(item)
                                        : cJSON_IsFalse(item);
        if (item && !same)
            return esp_json_fail(json, ESP_E_UNSUPPORTED,
                                 "%s models are supported only if %s is %s", architecture->name,
                                 flag->key,
                                 flag->text    ? flag->text
                                 : flag->value ? "true"
                                               : "false");
    }
    return 0;
}

const struct esp_config_rule *esp_config_rule(const struct esp_architecture *architecture,
                                              enum esp_config_field field)
{
    const struct esp_config_rule *rule = &architecture->config[field];
    if (!rule->keys && architecture->family->config)
        rule = &architecture->family->config[field];
    return rule->keys ? rule : NULL;
}

static int read_field(struct esp_config *config, enum esp_config_field number,
                      const struct esp_architecture *architecture, const struct esp_json *json)
{
    const struct esp_config_rule *rule = esp_config_rule(architecture, number);
    const enum kind kind = fields[number].kind;
    double value = rule ? rule->fallback : 0;
    void *field = (char *)config + fields[number].offset;
    int status = rule ? read_kind(&value, kind, fields[number].smallest, fields[number].largest,
                                  rule->keys, json)
                      : 0;
    if (status < 0) /* the value might not fit into the field */
        return status;
    if (kind == KIND_double)
        *(double *)field = value;
    else if (kind == KIND_int)
        *(int *)field = (int)value;
    else
        *(bool *)field = value != 0;
    return 0;
}

double esp_config_value(const struct esp_config *config, enum esp_config_field field)
{
    const void *at = (const char *)config + fields[field].offset;
    return fields[field].kind == KIND_int      ? *(const int *)at
           : fields[field].kind == KIND_double ? *(const double *)at
                                               : *(const bool *)at;
}

/* Checks that a mixture of experts has at least one expert. Some families allow a model without
 * experts; for these families, the function checks nothing. */
static int check_experts(const struct esp_architecture *architecture,
                         const struct esp_json *json)
{
    const struct esp_config_rule *rule = esp_config_rule(architecture, ESP_CONFIG_experts);
    double experts = rule ? rule->fallback : 0;
    return rule && !architecture->family->experts_optional
               ? esp_config_number(&experts, 1, 4096, rule->keys, json)
               : 0;
}

/* In LFM2, config.json has the width of an MLP without a gate. Sets the width at which an MLP
 * with a gate has as many weights. */
static void adjust_ffn(struct esp_config *config)
{
    const int multiple = config->ffn_multiple;
    const int ffn = (int)(config->ffn_multiplier * (int)(2 * config->ffn / 3.0));
    config->ffn = (ffn + multiple - 1) / multiple * multiple;
}

int esp_config_read(struct esp_config *config, const struct esp_architecture *architecture,
                    const struct esp_json *json)
{
    int status = 0;
    memset(config, 0, sizeof *config);
    for (int field = 0; field < ESP_CONFIG_FIELD_COUNT && status == 0; field++)
        status = read_field(config, (enum esp_config_field)field, architecture, json);
    if (status < 0)
        return status;
    if (config->kv_heads == 0)
        config->kv_heads = config->heads;
    if (config->heads % config->kv_heads != 0)
        return esp_json_fail(json, ESP_E_FORMAT,
                             "%d attention heads are not a multiple of %d key/value heads",
                             config->heads, config->kv_heads);
    if (config->head_dim == 0 && config->hidden % config->heads != 0)
        return esp_json_fail(json, ESP_E_FORMAT,
                             "the hidden size %d is not a multiple of %d attention heads",
                             config->hidden, config->heads);
    if (config->head_dim == 0)
        config->head_dim = config->hidden / config->heads;
    if (config->head_dim % 2 != 0 || config->head_dim > 4096)
        return esp_json_fail(json, ESP_E_UNSUPPORTED,
                             "the head dimension is %d, but must be even and at most 4096",
                             config->head_dim);
    if (config->experts > 0 && config->experts_used > config->experts)
        return esp_json_fail(json, ESP_E_FORMAT, "a token cannot use %d of %d experts",
                             config->experts_used, config->experts);
    if (config->ffn == 0)
        config->ffn = 4 * config->hidden;
    status = check_experts(architecture, json);
    if (status < 0)
        return status;
    if (config->ffn_adjusted)
        adjust_ffn(config);
    if (config->state_heads > 0 && config->state_heads % config->key_heads != 0)
        return esp_json_fail(json, ESP_E_FORMAT,
                             "%d heads of a recurrent layer are not a multiple of %d key heads",
                             config->state_heads, config->key_heads);
    status = check_weights(json);
    if (status == 0)
        status = check_flags(architecture, json);
    return status < 0 ? status : check_activation(architecture, json);
}
