/* layers.c - reads how the layers of a model differ (windows, rotations, mixers and experts);
 * see architecture.h. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "engine/model/architecture.h"
#include "kernels/status.h"

/* Finds the list `key`, which must have one entry per layer. Sets *list to NULL if config.json
 * has no such key. */
static int find_list(const cJSON **list, const char *key, const struct esp_config *config,
                     const struct esp_json *json)
{
    const cJSON *item = esp_json_find(json->root, key, NULL, NULL);
    *list = NULL;
    if (!item)
        return 0;
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != config->layers)
        return esp_json_fail(json, ESP_E_FORMAT,
                             "%s must be a list of %d entries, one for each layer", key,
                             config->layers);
    *list = item;
    return 0;
}

/* Returns 1 if an entry of layer_types gives the layer a window, 0 if not, or a negative
 * status. */
static int windowed_type(const cJSON *item, const struct esp_json *json)
{
    const char *type = cJSON_GetStringValue(item);
    if (type && strcmp(type, "sliding_attention") == 0)
        return 1;
    if (type && strcmp(type, "full_attention") == 0)
        return 0;
    return esp_json_fail(json, ESP_E_UNSUPPORTED,
                         "layer_types has %s; only full_attention and sliding_attention are "
                         "supported",
                         type ? type : "an entry that is not a string");
}

static int rotates(const cJSON *item, const struct esp_json *json)
{
    if (cJSON_IsNumber(item) && (item->valuedouble == 0 || item->valuedouble == 1))
        return item->valuedouble == 1;
    return esp_json_fail(json, ESP_E_FORMAT, "no_rope_layers must be a list of 0 and 1");
}

/* Returns whether a layer has an attention window. In models in which some layers have no RoPE,
 * exactly these layers have the window. */
static bool has_window(const struct esp_config *config, int layer, bool rotated)
{
    if (config->unrotated_every > 0)
        return !rotated;
    return layer >= config->window_from &&
           (config->full_every == 0 || (layer + 1) % config->full_every != 0);
}

int esp_config_mixed(bool *mixed, int layer, const struct esp_config *config,
                     const struct esp_json *json)
{
    const cJSON *list = esp_json_find(json->root, "mlp_only_layers", NULL, NULL), *item;
    if (config->mixed_every == 0) { /* layer_types says which layers are mixtures */
        const cJSON *types = esp_json_item(json->root, "layer_types");
        const char *type = cJSON_GetStringValue(cJSON_GetArrayItem(types, layer));
        *mixed = type && strcmp(type, "moe") == 0;
        if (*mixed && config->experts == 0)
            return esp_json_fail(
                json, ESP_E_FORMAT,
                "layer %d is a mixture of experts, but n_routed_experts is not "
                "given",
                layer);
        return 0;
    }
    *mixed = config->experts > 0 && layer >= config->mixed_from &&
             (layer + 1) % config->mixed_every == 0;
    if (!list)
        return 0;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > config->layers)
        return esp_json_fail(json, ESP_E_FORMAT,
                             "mlp_only_layers must be a list of some of the %d layers",
                             config->layers);
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
            !(item->valuedouble < config->layers))
            return esp_json_fail(json, ESP_E_FORMAT,
                                 "mlp_only_layers must list layers from 0 to %d",
                                 config->layers - 1);
        if (item->valuedouble == layer)
            *mixed = false;
    }
    return 0;
}

/* Returns whether config.json requests RoPE in an architecture that usually has none. */
static bool asks_for_rotation(const struct esp_config *config, const struct esp_json *json)
{
    const char *kind = esp_json_text(json->root, "position_embedding_type");
    return config->unrotated_every == 1 && kind && strcmp(kind, "rope") == 0;
}

static int step_limit(float *limit, const cJSON *item, const struct esp_json *json)
{
    const char *text = cJSON_GetStringValue(esp_json_item(item, "__float__"));
    if (text && strcmp(text, "Infinity") == 0)
        return 0;
    if (cJSON_IsNumber(item) && isinf(item->valuedouble) && item->valuedouble > 0)
        return 0;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > 1e30)
        return esp_json_fail(json, ESP_E_FORMAT,
                             "time_step_limit must be two numbers that are not negative");
    *limit = (float)item->valuedouble;
    return 0;
}

int esp_config_steps(struct esp_model_desc *desc, const struct esp_json *json)
{
    const cJSON *limits = esp_json_item(json->root, "time_step_limit");
    if (!limits || cJSON_IsNull(limits))
        return 0;
    int status = step_limit(&desc->least_step, cJSON_GetArrayItem(limits, 0), json);
    return status < 0 ? status
                      : step_limit(&desc->most_step, cJSON_GetArrayItem(limits, 1), json);
}

/* Returns how many entries of layer_types are of this kind. */
static int count_kind(const cJSON *types, const char *kind)
{
    const cJSON *item;
    int count = 0;
    cJSON_ArrayForEach(item, types)
    {
        const char *own = cJSON_GetStringValue(item);
        count += own && strcmp(own, kind) == 0;
    }
    return count;
}

/* Checks and translates the keys about experts. If no layer has experts, removes these keys.
 * Otherwise sets intermediate_size to the width of the expert that all tokens use. Therefore,
 * in a model with experts, layers with an MLP must have the same width as this expert. */
static int use_experts(const cJSON *types, const struct esp_json *json)
{
    static const char own_key[] = "intermediate_size",
                      key[] = "moe_shared_expert_intermediate_size";
    const cJSON *own = esp_json_item(json->root, own_key),
                *shared = esp_json_item(json->root, key);
    if (count_kind(types, "moe") == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(json->root, "n_routed_experts");
        return ESP_OK;
    }
    static const char *const ones[] = {"n_group", "topk_group", "n_shared_experts"};
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        double one = 1;
        const int status = esp_config_number(&one, 1, 1, ones[i], json);
        if (status < 0)
            return status;
    }
    if (cJSON_IsNumber(esp_json_item(json->root, "moe_latent_size")))
        return esp_json_fail(json, ESP_E_UNSUPPORTED,
                             "moe_latent_size is given, but experts that read a projection of "
                             "the hidden state are not supported");
    if (!shared)
        return ESP_OK;
    if (count_kind(types, "mlp") > 0 && own && !cJSON_Compare(own, shared, true))
        return esp_json_fail(json, ESP_E_UNSUPPORTED,
                             "%s and %s differ, which is supported only if no layer is an MLP "
                             "without experts",
                             own_key, key);
    cJSON *copy = cJSON_Duplicate(shared, true);
    cJSON_DeleteItemFromObjectCaseSensitive(json->root, own_key);
    return cJSON_AddItemToObject(json->root, own_key, copy)
               ? ESP_OK
               : esp_no_memory(json->path, json->err, json->errlen);
}

int esp_config_pattern(struct esp_json *json)
{
    static const char *const kinds[UCHAR_MAX + 1] = {
        ['M'] = "mamba", ['*'] = "attention", ['-'] = "mlp", ['E'] = "moe"};
    const char *pattern = esp_json_text(json->root, "hybrid_override_pattern");
    cJSON *types = cJSON_DetachItemFromObjectCaseSensitive(json->root, "layers_block_type");
    if (!types && pattern)
        types = cJSON_CreateArray();
    for (; pattern && *pattern && cJSON_GetArraySize(types) < 1000; pattern++) {
        const char *kind = kinds[(unsigned char)*pattern];
        const char own[2] = {*pattern, '\0'};
        cJSON_AddItemToArray(types, cJSON_CreateString(kind ? kind : own));
    }
    if (!types)
        return ESP_OK;
    if (!esp_json_item(json->root, "num_hidden_layers"))
        cJSON_AddNumberToObject(json->root, "num_hidden_layers", cJSON_GetArraySize(types));
    cJSON_DeleteItemFromObjectCaseSensitive(json->root, "layer_types");
    if (!cJSON_AddItemToObject(json->root, "layer_types", types))
        return esp_no_memory(json->path, json->err, json->errlen);
    return use_experts(types, json);
}

static bool is_one_of(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(*list, text) == 0)
            return true;
    return false;
}

/* Sets *mixer to the kind that an entry of layer_types names. */
static int mixer_type(enum esp_mixer *mixer, const cJSON *item, const struct esp_family *family,
                      const struct esp_json *json)
{
    static const char *const recurrent[] = {"conv", "linear_attention", "mamba", NULL};
    static const char *const attention[] = {"full_attention", "attention", NULL};
    static const char *const only_mlp[] = {"mlp", "moe", NULL};
    const char *type = cJSON_GetStringValue(item);
    if (type && is_one_of(type, recurrent))
        *mixer = family->mixer;
    else if (type && is_one_of(type, attention))
        *mixer = ESP_MIXER_ATTENTION;
    else if (type && family->one_part && is_one_of(type, only_mlp))
        *mixer = ESP_MIXER_NONE;
    else
        return esp_json_fail(json, ESP_E_UNSUPPORTED,
                             "layer_types has %s; only full_attention, attention, conv, "
                             "linear_attention%s mamba%s are supported",
                             type ? type : "an entry that is not a string",
                             family->one_part ? "," : " and",
                             family->one_part ? ", mlp and moe" : "");
    return ESP_OK;
}

static bool lists(const cJSON *list, int number)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (cJSON_IsNumber(item) && item->valuedouble == number)
            return true;
    }
    return false;
}

int esp_config_mixer(enum esp_mixer *mixer, int layer, const struct esp_family *family,
                     const struct esp_config *config, const struct esp_json *json)
{
    const cJSON *types, *full = esp_json_find(json->root, "full_attn_idxs", NULL, NULL);
    *mixer = ESP_MIXER_ATTENTION;
    if (family->mixer == ESP_MIXER_ATTENTION)
        return ESP_OK;
    int status = find_list(&types, "layer_types", config, json);
    if (status < 0 || types)
        return status < 0 ? status
                          : mixer_type(mixer, cJSON_GetArrayItem(types, layer), family, json);
    if (full ? !lists(full, layer)
             : config->attention_every > 0 && (layer + 1) % config->attention_every != 0)
        *mixer = family->mixer;
    return ESP_OK;
}

int esp_config_layers(struct esp_layer *layer, const struct esp_config *config,
                      const struct esp_json *json)
{
    const cJSON *types = NULL, *rotations = NULL;
    const bool windows = config->windowed && config->window > 0;
    int status = windows ? find_list(&types, "layer_types", config, json) : 0;
    if (status == 0 && config->unrotated_every > 0)
        status = find_list(&rotations, "no_rope_layers", config, json);
    const cJSON *type = types ? types->child : NULL;
    const cJSON *rotation = rotations ? rotations->child : NULL;
    for (int i = 0; i < config->layers && status >= 0; i++) {
        int rotated = config->unrotated_every == 0 || (i + 1) % config->unrotated_every != 0 ||
                      asks_for_rotation(config, json);
        if (rotation)
            rotated = status = rotates(rotation, json);
        int windowed = windows && has_window(config, i, rotated);
        if (type && status >= 0)
            windowed = status = windowed_type(type, json);
        if (windowed && config->window < config->context)
            layer[i].window = config->window;
        layer[i].rotation = !rotated                                   ? ESP_ROTATION_NONE
                            : windowed && config->rope_theta_local > 0 ? ESP_ROTATION_LOCAL
                                                                       : ESP_ROTATION_GLOBAL;
        type = type ? type->next : NULL;
        rotation = rotation ? rotation->next : NULL;
    }
    return status < 0 ? status : 0;
}
