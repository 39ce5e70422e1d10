/* gguf_describe.c - makes the keys of a model's GGUF file; see gguf_describe.h.
 *
 * gguf_model.c, gguf_tokenizer.c and llama.cpp read these keys. Two properties of added tokens
 * have no GGUF key and are lost: that a token must be a single word, and that a token includes
 * the spaces around it.
 */
#include "engine/model/gguf_describe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "engine/model/gguf_model.h"
#include "engine/model/gguf_tokenizer.h"
#include "engine/model/multimodal.h"
#include "engine/model/tokenizer.h"
#include "engine/support/int_map.h"
#include "kernels/model_desc.h"
#include "kernels/status.h"

enum { TEMPLATE_LIMIT = 1 << 20, KEY = 128 };

struct describing {
    struct esp_gguf_header *header;
    const struct esp_model *model;
    const struct esp_architecture *architecture;
    const struct esp_gguf_architecture *own;
    const cJSON *json; /* config.json */
    int mtp;           /* number of MTP layers that follow the model's layers */
    struct esp_config config;
    char *err;
    size_t errlen;
};

/* ------------------------------------------------------------------ configuration */

static void put(const struct describing *d, const char *key, enum esp_gguf_kind kind,
                double value)
{
    char name[KEY];
    snprintf(name, sizeof name, "%s.%s", d->own->name, key);
    esp_gguf_put(d->header, name, kind, value);
}

static void put_text(const struct describing *d, const char *key, const char *text)
{
    char name[KEY];
    snprintf(name, sizeof name, "%s.%s", d->own->name, key);
    esp_gguf_put_text(d->header, name, text);
}

static const cJSON *find(const struct describing *d, const char *keys)
{
    return esp_json_find(d->json, keys, NULL, NULL);
}

static bool has_shared_expert(const struct describing *d)
{
    const struct esp_model_desc *m = &d->model->desc;
    for (int i = 0; i < m->layers; i++)
        if (m->layer[i].router.data && m->layer[i].up.data)
            return true;
    return false;
}

/* Returns the value of a key. If a model has both an MLP and experts, feed_forward_length is
 * the size of an expert. */
static double value_of(const struct describing *d, const struct esp_gguf_key *key)
{
    const struct esp_model_desc *m = &d->model->desc;
    if (strcmp(key->gguf, ESP_GGUF_FFN) == 0 && has_shared_expert(d))
        return m->expert_ffn;
    enum { SIGMOID = 2 }; /* llama.cpp's number for a sigmoid router */
    return key->field == ESP_CONFIG_layers            ? m->layers + d->mtp
           : key->field == ESP_CONFIG_rotary_fraction ? m->rotary
           : key->field == ESP_CONFIG_sigmoid_router  ? m->sigmoid_router * SIGMOID
           : key->field == ESP_CONFIG_attention_scale ? (double)m->attention_scale
           : key->field == ESP_CONFIG_value_dim       ? (double)m->state_heads * m->value_dim
                                                : esp_config_value(&d->config, key->field);
}

/* Returns whether this key is written. The key of the attention window is not written for an
 * architecture in which config.json can turn the window off. */
static bool is_written(const struct describing *d, const struct esp_gguf_key *key, double value)
{
    const struct esp_config_rule *windowed =
        esp_config_rule(d->architecture, ESP_CONFIG_windowed);
    const bool rms = strstr(key->gguf, "_rms_") != NULL;
    const bool conv = strncmp(key->gguf, "shortconv.", strlen("shortconv.")) == 0;
    const bool states = strncmp(key->gguf, "ssm.", strlen("ssm.")) == 0;
    const enum esp_mixer mixer = d->architecture->family->mixer;
    if ((conv && mixer != ESP_MIXER_CONV) || (states && mixer == ESP_MIXER_CONV))
        return false;
    if (strncmp(key->gguf, "expert_shared", strlen("expert_shared")) == 0)
        return has_shared_expert(d);
    if (key->field == ESP_CONFIG_window && (!windowed || *windowed->keys))
        return false;
    if (key->field == ESP_CONFIG_norm_epsilon && rms != (d->model->desc.norm == ESP_NORM_RMS))
        return false;
    return key->neutral == ESP_GGUF_ALWAYS ||
           (value != key->neutral && (key->field == ESP_CONFIG_attention_scale ||
                                      esp_config_rule(d->architecture, key->field)));
}

/* Writes a key with one number per layer, for models with recurrent layers. Layers with the
 * mixer `mixer` get `number`; the other layers get 0. */
static void put_of_layers(const struct describing *d, const char *key, enum esp_mixer mixer,
                          int32_t number)
{
    static const int32_t none = 0;
    const struct esp_model_desc *m = &d->model->desc;
    struct esp_bytes bytes = {NULL, 0, 0, false};
    char name[KEY];
    for (int i = 0; i < m->layers; i++)
        esp_bytes_add(&bytes, m->layer[i].mixer == mixer ? &number : &none, sizeof number);
    snprintf(name, sizeof name, "%s.%s", d->own->name, key);
    esp_gguf_put_array(d->header, name, ESP_GGUF_I32, (uint64_t)m->layers, &bytes);
    free(bytes.data);
}

/* Adds the list of recurrent layers. Also adds a key that llama.cpp requires. An image token
 * has three positions, and the key says how many pairs of a head each position rotates. */
static void put_delta(const struct describing *d)
{
    const struct esp_model_desc *m = &d->model->desc;
    struct esp_bytes layers = {NULL, 0, 0, false}, sections = {NULL, 0, 0, false};
    const cJSON *own = find(d, "rope_parameters.mrope_section|rope_scaling.mrope_section");
    static const int32_t usual[4] = {11, 11, 10, 0};
    char name[KEY];
    for (int i = 0; i < m->layers + d->mtp; i++) {
        const bool recurrent = i < m->layers && m->layer[i].mixer == ESP_MIXER_DELTA;
        esp_bytes_add(&layers, &recurrent, 1);
    }
    for (int i = 0; i < 4; i++) {
        const cJSON *item = cJSON_IsArray(own) ? cJSON_GetArrayItem(own, i) : NULL;
        const int32_t pairs = !cJSON_IsArray(own) ? usual[i] : item ? item->valueint : 0;
        esp_bytes_add(&sections, &pairs, sizeof pairs);
    }
    snprintf(name, sizeof name, "%s.%s", d->own->name, ESP_GGUF_RECURRENT);
    esp_gguf_put_array(d->header, name, ESP_GGUF_BOOL, (uint64_t)(m->layers + d->mtp), &layers);
    snprintf(name, sizeof name, "%s.rope.dimension_sections", d->own->name);
    esp_gguf_put_array(d->header, name, ESP_GGUF_I32, 4, &sections);
    free(layers.data);
    free(sections.data);
}

static void put_keys(const struct describing *d)
{
    const enum esp_mixer mixer = d->architecture->family->mixer;
    for (int i = 0; i < esp_gguf_key_count; i++) {
        const struct esp_gguf_key *key = &esp_gguf_keys[i];
        if (key->field == ESP_CONFIG_FIELD_COUNT)
            continue;
        const double value = value_of(d, key);
        if (key->field == ESP_CONFIG_kv_heads && mixer != ESP_MIXER_ATTENTION &&
            mixer != ESP_MIXER_DELTA)
            put_of_layers(d, key->gguf, ESP_MIXER_ATTENTION, (int32_t)value);
        else if (strcmp(key->gguf, ESP_GGUF_FFN) == 0 && d->architecture->family->one_part)
            put_of_layers(d, key->gguf, ESP_MIXER_NONE, (int32_t)value);
        else if (is_written(d, key, value))
            put(d, key->gguf, key->kind, value);
    }
    if (d->mtp > 0)
        put(d, "nextn_predict_layers", ESP_GGUF_U32, d->mtp);
    if (mixer == ESP_MIXER_DELTA)
        put_delta(d);
    for (int i = 0; mixer == ESP_MIXER_SSM && i < d->model->desc.layers; i++)
        if (d->model->desc.layer[i].mixer == ESP_MIXER_ATTENTION) {
            put(d, ESP_GGUF_ROTATED, ESP_GGUF_BOOL,
                d->model->desc.layer[i].rotation != ESP_ROTATION_NONE);
            break;
        }
}

/* config.json may have lists with an entry per layer, for which GGUF has no keys. Checks that
 * the configuration has the same meaning without these lists. */
static int check_layers(const struct describing *d)
{
    static const char *const lost[] = {
        "layer_types",    "sliding_window_pattern", "_sliding_window_pattern",
        "no_rope_layers", "no_rope_layer_interval", "use_sliding_window"};
    const struct esp_model_desc *m = &d->model->desc;
    struct esp_layer *layer = calloc((size_t)m->layers, sizeof *layer);
    struct esp_json json = {
        .root = cJSON_Duplicate(d->json, true), .err = d->err, .errlen = d->errlen};
    struct esp_config config;
    bool same = layer && json.root;
    snprintf(json.path, sizeof json.path, "%s", d->model->path);
    for (size_t i = 0; same && i < sizeof lost / sizeof *lost; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(json.root, lost[i]);
    int status = !same ? ESP_E_MEMORY : esp_config_read(&config, d->architecture, &json);
    if (status == ESP_OK)
        status = esp_config_layers(layer, &config, &json);
    for (int i = 0; i < m->layers && status == ESP_OK; i++)
        same &=
            layer[i].window == m->layer[i].window && layer[i].rotation == m->layer[i].rotation;
    free(layer);
    cJSON_Delete(json.root);
    if (status == ESP_OK && !same)
        return esp_fail(d->err, d->errlen, ESP_E_UNSUPPORTED,
                        "%s: a GGUF file of a %s model cannot say which layers have a window "
                        "or no rotation; programs that read it would assume the usual layers",
                        d->model->path, d->own->name);
    return status;
}

/* Checks that llama.cpp can compute the mixture of experts. Every layer except the first ones
 * must be a mixture, and the router's probabilities of the chosen experts must be divided by
 * their sum. In architectures whose layers are either a mixer or an MLP, every layer without a
 * mixer must be a mixture. */
static int check_experts(const struct describing *d)
{
    const struct esp_model_desc *m = &d->model->desc;
    bool same = m->experts_normed;
    if (m->experts == 0)
        return ESP_OK;
    for (int i = 0; i < m->layers; i++)
        same &= (m->layer[i].expert != NULL) == (d->architecture->family->one_part
                                                     ? m->layer[i].mixer == ESP_MIXER_NONE
                                                     : i >= d->config.mixed_from);
    if (!same)
        return esp_fail(d->err, d->errlen, ESP_E_UNSUPPORTED,
                        "%s: in a GGUF file of a %s model, all layers must have experts, and "
                        "norm_topk_prob must be true",
                        d->model->path, d->own->name);
    if (m->activation == ESP_SWIGLU_CLAMPED &&
        (m->clamp.limit != 7.0f || m->clamp.slope != 1.702f))
        return esp_fail(d->err, d->errlen, ESP_E_UNSUPPORTED,
                        "%s: in a GGUF file of a %s model, swiglu_limit must be 7 and "
                        "swiglu_alpha 1.702",
                        d->model->path, d->own->name);
    return ESP_OK;
}

/* Writes the keys of YaRN. GGUF has no key for the scale of cosine and sine; programs compute
 * it from the factor. llama.cpp rounds the ends of the ramp, except for gpt-oss. A model with
 * a different scale, or with differently rounded ends, is refused. */
static int put_yarn(const struct describing *d, double theta)
{
    static const struct {
        const char *config, *gguf;
    } numbers[] = {
        {ESP_ROPE_KEY("original_max_position_embeddings"),
         "rope.scaling.original_context_length"},
        {ESP_ROPE_KEY("beta_fast"), "rope.scaling.yarn_beta_fast"},
        {ESP_ROPE_KEY("beta_slow"), "rope.scaling.yarn_beta_slow"},
    };
    const struct esp_model_desc *m = &d->model->desc;
    const cJSON *own = find(d, ESP_ROPE_KEY("factor"));
    const cJSON *original = find(d, numbers[0].config);
    const double positions = cJSON_IsNumber(original) ? original->valuedouble : m->context;
    const double factor = cJSON_IsNumber(own) ? own->valuedouble : m->context / positions;
    const bool truncated = !cJSON_IsFalse(find(d, ESP_ROPE_KEY("truncate")));
    if (fabs(0.1 * log(factor) + 1 - (double)m->rotary_scale) > 1e-6 ||
        truncated == (strcmp(d->own->name, "gpt-oss") == 0))
        return esp_fail(d->err, d->errlen, ESP_E_UNSUPPORTED,
                        "%s scales its rotation (yarn) in a way that the GGUF keys of %s "
                        "models cannot express",
                        d->model->path, d->own->name);
    put(d, "rope.freq_base", ESP_GGUF_F32, theta);
    put_text(d, "rope.scaling.type", "yarn");
    put(d, "rope.scaling.factor", ESP_GGUF_F32, factor);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const cJSON *number = find(d, numbers[i].config);
        if (cJSON_IsNumber(number))
            put(d, numbers[i].gguf, i == 0 ? ESP_GGUF_U32 : ESP_GGUF_F32, number->valuedouble);
    }
    return ESP_OK;
}

/* Writes the keys of the rotary embedding. The model's frequencies are computed from rope_theta
 * and may then be divided by one factor (linear scaling), or by one factor per frequency
 * (Llama 3). Sets *factors to the factors per frequency, if there are any. */
static int put_rotation(const struct describing *d, float **factors)
{
    const struct esp_model_desc *m = &d->model->desc;
    const double theta = d->config.rope_theta > 0 ? d->config.rope_theta : 1e4;
    const char *type =
        cJSON_GetStringValue(find(d, ESP_ROPE_KEY("rope_type") "|" ESP_ROPE_KEY("type")));
    int count = m->rotary / 2;
    bool one = true;
    if (type && strcmp(type, "yarn") == 0)
        return put_yarn(d, theta);
    float *own = malloc(((size_t)count + 1) * sizeof *own);
    if (!own)
        return esp_no_memory(d->model->path, d->err, d->errlen);
    for (int i = 0; i < count; i++) {
        own[i] = 1.0f / powf((float)theta, (float)(2 * i) / (float)m->rotary) /
                 m->inverse_frequency[i];
        one &= fabsf(own[i] - own[0]) <= 1e-6f * own[0];
    }
    put(d, "rope.freq_base", ESP_GGUF_F32, theta);
    if (d->config.rope_theta_local > 0)
        put(d, "rope.freq_base_swa", ESP_GGUF_F32, d->config.rope_theta_local);
    if (one && count > 0 && fabsf(own[0] - 1) > 1e-6f) {
        put_text(d, "rope.scaling.type", "linear");
        put(d, "rope.scaling.factor", ESP_GGUF_F32, (double)own[0]);
    }
    if ((!one && !d->own->paired) || m->rotary_scale != 0) {
        free(own);
        return esp_fail(
            d->err, d->errlen, ESP_E_UNSUPPORTED,
            "%s scales its rotation in a way that the GGUF keys of %s models cannot "
            "express",
            d->model->path, d->own->name);
    }
    if (one)
        free(own);
    else
        *factors = own;
    return ESP_OK;
}

/* ------------------------------------------------------------------ tokenizer */

struct tokens {
    const char **texts; /* (count) NULL means no token has this id */
    int32_t *types;     /* (count) */
    float *scores;      /* (count) only vocabularies with byte fallback need scores */
    int count;
    bool fallback;
};

static int take_token(const struct describing *d, struct tokens *t, const cJSON *number,
                      const char *text, int type)
{
    double id = cJSON_GetNumberValue(number);
    if (!(id >= 0 && id < t->count))
        return esp_fail(d->err, d->errlen, ESP_E_MISMATCH,
                        "%s: tokenizer.json has token %g, but the model has only %d tokens",
                        d->model->path, id, t->count);
    t->texts[(int)id] = text;
    t->types[(int)id] = type;
    return 0;
}

static bool is_byte(const char *text)
{
    return strlen(text) == 6 && strncmp(text, "<0x", 3) == 0 && text[5] == '>';
}

static int take_tokens(const struct describing *d, struct tokens *t, const cJSON *json)
{
    const cJSON *model = esp_json_item(json, "model"), *item;
    const char *unknown = esp_json_text(model, "unk_token");
    int status = 0;
    cJSON_ArrayForEach(item, esp_json_item(model, "vocab"))
    {
        int type = t->fallback && is_byte(item->string) ? ESP_GGUF_BYTE : ESP_GGUF_NORMAL;
        if (status == 0)
            status = take_token(d, t, item, item->string, type);
    }
    cJSON_ArrayForEach(item, esp_json_item(json, "added_tokens"))
    {
        const char *text = esp_json_text(item, "content");
        bool special = esp_json_true(item, "special");
        bool is_unknown = t->fallback && unknown && strcmp(unknown, text) == 0;
        if (status == 0 && *text)
            status = take_token(d, t, esp_json_item(item, "id"), text,
                                is_unknown ? ESP_GGUF_UNKNOWN
                                : special  ? ESP_GGUF_CONTROL
                                           : ESP_GGUF_USER_DEFINED);
    }
    return status;
}

/* Returns one merge as "left right", or NULL if there is no memory. The caller frees it. */
static char *merge_text(const cJSON *item)
{
    const char *left = cJSON_GetStringValue(cJSON_GetArrayItem(item, 0));
    const char *right = cJSON_GetStringValue(cJSON_GetArrayItem(item, 1));
    char *text = NULL;
    if (cJSON_IsString(item))
        return strdup(item->valuestring);
    return left && right && asprintf(&text, "%s %s", left, right) >= 0 ? text : NULL;
}

static void put_merges(const struct describing *d, const cJSON *merges)
{
    struct esp_bytes texts = {NULL, 0, 0, false};
    uint64_t count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, merges)
    {
        char *text = merge_text(item);
        if (text && strncmp(text, "#version", 8) != 0) {
            esp_bytes_text(&texts, text, strlen(text));
            count++;
        }
        texts.failed |= !text;
        free(text);
    }
    esp_gguf_put_array(d->header, "tokenizer.ggml.merges", ESP_GGUF_TEXT, count, &texts);
    free(texts.data);
}

/* Computes the scores of all tokens from the merges. A token's score is -r if the first merge
 * that makes the token is the r-th one. */
static int find_scores(struct tokens *t, const cJSON *merges)
{
    struct esp_int_map ids = {.entries = NULL};
    const cJSON *item;
    int rank = 0;
    if (!esp_int_map_init(&ids, (size_t)t->count))
        return ESP_E_MEMORY;
    for (int i = 0; i < t->count; i++)
        if (t->texts[i])
            esp_int_map_put(&ids, esp_fnv(ESP_FNV_START, t->texts[i], strlen(t->texts[i])) >> 1,
                            (uint64_t)i);
    cJSON_ArrayForEach(item, merges)
    {
        char *text = merge_text(item), *space = text ? strchr(text, ' ') : NULL;
        if (space)
            memmove(space, space + 1, strlen(space));
        uint64_t id =
            text ? esp_int_map_get(&ids, esp_fnv(ESP_FNV_START, text, strlen(text)) >> 1)
                 : ESP_INT_MAP_NONE;
        rank++;
        if (id != ESP_INT_MAP_NONE && t->scores[id] == 0)
            t->scores[id] = (float)-rank;
        free(text);
    }
    esp_int_map_free(&ids);
    return ESP_OK;
}

/* Adds an array of numbers. Each number has four bytes. */
static void put_numbers(const struct describing *d, const char *key, enum esp_gguf_kind kind,
                        const void *numbers, int count)
{
    struct esp_bytes bytes = {NULL, 0, 0, false};
    esp_bytes_add(&bytes, numbers, 4 * (size_t)count);
    esp_gguf_put_array(d->header, key, kind, (uint64_t)count, &bytes);
    free(bytes.data);
}

static void put_tokens(const struct describing *d, const struct tokens *t)
{
    struct esp_bytes texts = {NULL, 0, 0, false};
    for (int i = 0; i < t->count; i++) {
        char padding[32];
        snprintf(padding, sizeof padding, "[PAD%d]", i);
        const char *text = t->texts[i] ? t->texts[i] : padding;
        esp_bytes_text(&texts, text, strlen(text));
    }
    esp_gguf_put_array(d->header, "tokenizer.ggml.tokens", ESP_GGUF_TEXT, (uint64_t)t->count,
                       &texts);
    free(texts.data);
    put_numbers(d, "tokenizer.ggml.token_type", ESP_GGUF_I32, t->types, t->count);
    if (t->fallback)
        put_numbers(d, "tokenizer.ggml.scores", ESP_GGUF_F32, t->scores, t->count);
}

/* Returns whether the vocabulary has the tokens of Phi-3. llama.cpp recognises Phi-3 by the
 * model's name, and cannot load a model with that name if it lacks one of these tokens. */
static bool has_tokens_of_phi3(const struct tokens *t)
{
    static const char *const needed[] = {"</s>", "<unk>", "<s>", "<|endoftext|>"};
    size_t found = 0;
    for (int i = 0; i < t->count; i++)
        for (size_t k = 0; t->texts[i] && k < sizeof needed / sizeof *needed; k++)
            found += strcmp(t->texts[i], needed[k]) == 0;
    return found == sizeof needed / sizeof *needed;
}

/* Writes the model's name. If the vocabulary lacks the tokens of Phi-3, "phi3" and "phi-3"
 * become "phi_3" and "phi_-3", so that llama.cpp can load the file. */
static void put_name(const struct describing *d, const struct tokens *t)
{
    const char *from = d->model->name;
    const bool as_it_is = has_tokens_of_phi3(t);
    char name[512], *to = name;
    while (*from && to < name + sizeof name - sizeof "phi_") {
        const bool phi =
            strncasecmp(from, "phi3", 4) == 0 || strncasecmp(from, "phi-3", 5) == 0;
        const int count = phi && !as_it_is ? 3 : 1;
        to += sprintf(to, "%.*s%s", count, from, count == 3 ? "_" : "");
        from += count;
    }
    *to = '\0';
    esp_gguf_put_text(d->header, "general.name", name);
}

/* Returns whether `json`, a normalizer or pre-tokenizer, adds a space before a text. Prepend
 * and Metaspace do this. */
static bool prepends(const cJSON *json)
{
    const cJSON *item;
    const char *type = esp_json_text(json, "type");
    const char *scheme = esp_json_text(json, "prepend_scheme");
    if (type && strcmp(type, "Prepend") == 0)
        return true;
    if (type && strcmp(type, "Metaspace") == 0)
        return !(scheme && strcmp(scheme, "never") == 0);
    cJSON_ArrayForEach(item, esp_json_item(json, "normalizers"))
    {
        if (prepends(item))
            return true;
    }
    return false;
}

static int put_vocabulary(const struct describing *d, const cJSON *json)
{
    const cJSON *model = esp_json_item(json, "model");
    const cJSON *merges = esp_json_item(model, "merges");
    size_t count = (size_t)d->model->desc.vocabulary;
    struct tokens t = {.count = (int)count};
    t.fallback = esp_json_true(model, "byte_fallback");
    const char *split = t.fallback ? "default" : esp_gguf_split_name(json);
    if (!split)
        return esp_fail(d->err, d->errlen, ESP_E_UNSUPPORTED,
                        "%s: tokenizer.json splits text by rules that have no name in GGUF",
                        d->model->path);
    t.texts = calloc(count, sizeof *t.texts);
    t.types = malloc(count * sizeof *t.types);
    t.scores = calloc(count, sizeof *t.scores);
    int status = t.texts && t.types && t.scores ? ESP_OK : ESP_E_MEMORY;
    for (size_t i = 0; i < count && status == ESP_OK; i++)
        t.types[i] = ESP_GGUF_UNUSED;
    if (status == ESP_OK)
        status = take_tokens(d, &t, json);
    if (status == ESP_OK && t.fallback)
        status = find_scores(&t, merges);
    if (status == ESP_OK) {
        esp_gguf_put_text(d->header, "tokenizer.ggml.model", t.fallback ? "llama" : "gpt2");
        esp_gguf_put_text(d->header, "tokenizer.ggml.pre", split);
        put_tokens(d, &t);
        put_name(d, &t);
        if (t.fallback)
            esp_gguf_put(d->header, "tokenizer.ggml.add_space_prefix", ESP_GGUF_BOOL,
                         prepends(esp_json_item(json, "normalizer")) ||
                             prepends(esp_json_item(json, "pre_tokenizer")));
        else
            put_merges(d, merges);
    }
    free(t.texts);
    free(t.types);
    free(t.scores);
    return status == ESP_E_MEMORY
               ? esp_fail(d->err, d->errlen, status, "not enough memory for the tokenizer")
               : status;
}

/* Writes the tokens that begin and end a text. */
static void put_special(const struct describing *d, int32_t prefix)
{
    const struct esp_model *m = d->model;
    const cJSON *own = find(d, "bos_token_id");
    const double bos = prefix >= 0 ? prefix : cJSON_IsNumber(own) ? own->valuedouble : -1;
    if (prefix >= 0 || (bos >= 0 && bos < m->desc.vocabulary))
        esp_gguf_put(d->header, "tokenizer.ggml.bos_token_id", ESP_GGUF_U32, bos);
    esp_gguf_put(d->header, "tokenizer.ggml.add_bos_token", ESP_GGUF_BOOL, prefix >= 0);
    if (m->end_count > 0)
        esp_gguf_put(d->header, "tokenizer.ggml.eos_token_id", ESP_GGUF_U32, m->end[0]);
    if (m->end_count > 1)
        esp_gguf_put(d->header, "tokenizer.ggml.eot_token_id", ESP_GGUF_U32, m->end[1]);
    put_numbers(d, "espalier.end_tokens", ESP_GGUF_I32, m->end, m->end_count);
}

static int put_tokenizer(const struct describing *d)
{
    struct esp_json json;
    struct esp_tokenizer *tokenizer;
    /* This checks tokenizer.json, so the code below does not check it again. */
    int status = esp_tokenizer_open(&tokenizer, d->model->path, d->err, d->errlen);
    if (status < 0)
        return status;
    int32_t prefix = esp_tokenizer_prefix(tokenizer);
    esp_tokenizer_close(tokenizer);
    status = esp_json_read(&json, d->model->path, "tokenizer.json", d->err, d->errlen);
    if (status == ESP_OK)
        status = put_vocabulary(d, json.root);
    if (status == ESP_OK)
        put_special(d, prefix);
    esp_json_close(&json);
    return status;
}

/* Writes the chat template. In newer folders it is in a separate file, in older folders in
 * tokenizer_config.json. */
static int put_template(const struct describing *d)
{
    static const char key[] = "tokenizer.chat_template";
    char path[PATH_MAX], *text;
    size_t size;
    struct esp_json json;
    int status = ESP_OK;
    if (esp_file_exists(d->model->path, "chat_template.jinja")) {
        status = esp_file_read(&text, &size, path, d->model->path, "chat_template.jinja",
                               TEMPLATE_LIMIT, d->err, d->errlen);
        if (status == ESP_OK)
            esp_gguf_put_text(d->header, key, text);
        free(text);
    } else if (esp_file_exists(d->model->path, "tokenizer_config.json")) {
        status =
            esp_json_read(&json, d->model->path, "tokenizer_config.json", d->err, d->errlen);
        const cJSON *item = status == ESP_OK ? esp_json_item(json.root, "chat_template") : NULL;
        if (cJSON_IsString(item))
            esp_gguf_put_text(d->header, key, item->valuestring);
        esp_json_close(&json);
    }
    return status;
}

/* ------------------------------------------------------------------ folders and GGUF files */

static int describe_folder(struct describing *d, float **factors)
{
    struct esp_json json;
    const struct esp_model *m = d->model;
    d->own = esp_gguf_architecture_for(m);
    if (!d->own)
        return esp_fail(d->err, d->errlen, ESP_E_UNSUPPORTED,
                        "%s: models of architecture %s cannot be written as GGUF", m->path,
                        d->architecture->name);
    int status = esp_json_read(&json, m->path, "config.json", d->err, d->errlen);
    if (status == ESP_OK)
        status = esp_multimodal_config(&json);
    if (status == ESP_OK)
        status = esp_config_pattern(&json);
    if (status == ESP_OK)
        status = esp_config_read(&d->config, d->architecture, &json);
    if (status < 0) {
        esp_json_close(&json);
        return status;
    }
    d->json = json.root;
    esp_gguf_put_text(d->header, "general.architecture", d->own->name);
    put_keys(d);
    status = check_layers(d);
    if (status == ESP_OK)
        status = check_experts(d);
    if (status == ESP_OK)
        status = put_rotation(d, factors);
    if (status == ESP_OK)
        status = put_tokenizer(d);
    if (status == ESP_OK)
        status = put_template(d);
    if (m->preset)
        esp_gguf_put_text(d->header, "espalier.drafter", m->preset);
    if (m->sampling_preset)
        esp_gguf_put_text(d->header, "espalier.sampling_drafter", m->sampling_preset);
    esp_json_close(&json);
    return status;
}

static int describe_file(const struct describing *d)
{
    static const char *const replaced[] = {
        "general.alignment", "general.file_type", "general.quantization_version",
        "split.no",          "split.count",       "split.tensors.count",
    };
    struct esp_gguf gguf;
    struct esp_stored_set *set = calloc(1, sizeof *set);
    if (!set)
        return esp_no_memory(d->model->path, d->err, d->errlen);
    int status = esp_gguf_open_first(&gguf, set, d->model->path, d->err, d->errlen);
    for (size_t i = 0; status == ESP_OK && i < gguf.value_count; i++) {
        bool keep = true;
        for (size_t k = 0; k < sizeof replaced / sizeof *replaced; k++)
            keep &= !esp_gguf_is_text(gguf.values[i].key, replaced[k]);
        if (keep)
            esp_gguf_put_value(d->header, &gguf.values[i]);
    }
    esp_gguf_close(&gguf);
    esp_stored_close(set);
    return status;
}

int esp_gguf_describe(struct esp_gguf_header *header, float **factors,
                      const struct esp_model *model,
                      const struct esp_architecture *architecture, bool mtp, char *err,
                      size_t errlen)
{
    struct stat about;
    struct describing d = {.header = header,
                           .model = model,
                           .architecture = architecture,
                           .mtp = mtp,
                           .err = err,
                           .errlen = errlen};
    *factors = NULL;
    if (model->rotation.extended)
        return esp_fail(
            err, errlen, ESP_E_UNSUPPORTED,
            "%s has two sets of rotary frequencies (longrope), which cannot be written yet",
            model->path);
    bool folder = stat(model->path, &about) == 0 && S_ISDIR(about.st_mode);
    return folder ? describe_folder(&d, factors) : describe_file(&d);
}
