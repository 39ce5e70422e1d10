/* multimodal.c - see multimodal.h. */
#include "engine/model/multimodal.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

/* Gives the model_type of the language model in each kind of vision-language model, for a
 * text_config that does not name it. The transformers library has the same defaults. */
static const struct {
    const char *type, *text;
} known[] = {
    {"gemma3", "gemma3_text"}, {"mistral3", "mistral"},     {"llava", "llama"},
    {"llava_next", "llama"},   {"qwen3_5", "qwen3_5_text"}, {"qwen3_5_moe", "qwen3_5_moe_text"},
};

/* Configurations of LLaVA and of speculators' draft heads omit some keys of their language
 * model. `left_out` has the values that the transformers library then uses. 0 means that the
 * key is never omitted, or that the architecture's table already has this fallback. */
static const char *const keys[] = {
    "num_hidden_layers",   "hidden_size",       "vocab_size",    "num_attention_heads",
    "num_key_value_heads", "intermediate_size", "sliding_window"};
enum { KEYS = sizeof keys / sizeof *keys };

static const struct {
    const char *text;
    int value[KEYS];
} left_out[] = {
    {"llama", {32, 4096, 32000, 32, 0, 11008}},
    {"mistral", {32, 4096, 32000, 32, 8, 14336}},
    {"qwen3", {32, 4096, 151936, 32, 32, 22016, 4096}},
    {"qwen3_5_text", {32, 4096, 248320}},
    {"qwen3_5_moe_text", {40, 2048, 248320}},
    {"qwen3_next", {48, 2048, 151936}},
};

void esp_multimodal_fill_in(cJSON *inner)
{
    const char *text = esp_json_text(inner, "model_type");
    for (size_t i = 0; text && i < sizeof left_out / sizeof *left_out; i++)
        for (int key = 0; key < KEYS && strcmp(text, left_out[i].text) == 0; key++)
            if (left_out[i].value[key] > 0 && !esp_json_item(inner, keys[key]))
                cJSON_AddNumberToObject(inner, keys[key], left_out[i].value[key]);
}

/* Lists keys that may be in the outer configuration instead of the language model's
 * configuration. */
static const char *const shared[] = {"eos_token_id", "quantization_config"};

int esp_multimodal_config(struct esp_json *json)
{
    const char *type = esp_json_text(json->root, "model_type");
    const char *text = NULL;
    for (size_t i = 0; type && i < sizeof known / sizeof *known; i++)
        if (strcmp(type, known[i].type) == 0)
            text = known[i].text;
    if (!text)
        return ESP_OK;
    cJSON *inner = cJSON_DetachItemFromObjectCaseSensitive(json->root, "text_config");
    if (!cJSON_IsObject(inner)) {
        cJSON_Delete(inner);
        return esp_json_fail(json, ESP_E_FORMAT,
                             "a %s model must describe its language model in text_config",
                             type);
    }
    if (!esp_json_item(inner, "model_type"))
        cJSON_AddStringToObject(inner, "model_type", text);
    if (strncmp(type, "llava", strlen("llava")) == 0)
        esp_multimodal_fill_in(inner);
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (!esp_json_item(inner, shared[i])) {
            cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(json->root, shared[i]);
            if (item)
                cJSON_AddItemToObject(inner, shared[i], item);
        }
    /* Both configurations may say whether the LM head is the embedding, and they may
     * contradict each other. If the value is `true`, the stored tensors decide. */
    cJSON_DeleteItemFromObjectCaseSensitive(inner, "tie_word_embeddings");
    cJSON_AddBoolToObject(inner, "tie_word_embeddings", true);
    cJSON_Delete(json->root);
    json->root = inner;
    return ESP_OK;
}

/* Shortens `name` to the language model's name for the tensor, and returns it. Returns NULL if
 * the tensor belongs to another modality. */
static const char *text_name(char *name)
{
    static const char outer[] = "language_model.", inner[] = "model.language_model.";
    if (strncmp(name, outer, strlen(outer)) == 0)
        return name + strlen(outer);
    if (strncmp(name, inner, strlen(inner)) == 0) {
        char *own = name + strlen(inner) - strlen("model.");
        memcpy(own, "model.", strlen("model."));
        return own;
    }
    return strncmp(name, "lm_head.", strlen("lm_head.")) == 0 ||
                   strncmp(name, "mtp.", strlen("mtp.")) == 0
               ? name
               : NULL;
}

int esp_multimodal_tensors(struct esp_stored_set *set, int *ignored, char *err, size_t errlen)
{
    size_t kept = 0;
    *ignored = 0;
    if (!esp_stored_has_prefix(set, "language_model.") &&
        !esp_stored_has_prefix(set, "model.language_model."))
        return ESP_OK;
    for (size_t i = 0; i < set->count; i++) {
        struct esp_stored *t = &set->tensors[i];
        const char *name = text_name(t->name);
        if (name) {
            memmove(t->name, name, strlen(name) + 1);
            set->tensors[kept++] = *t;
        } else {
            free(t->name);
            ++*ignored;
        }
    }
    set->count = kept;
    return esp_stored_finish(set, err, errlen);
}
