/* draft_head.c - opens draft heads and joins them with their targets; see draft_head.h.
 *
 * The formats and the order of computation follow eagle/model/cnets1.py (EAGLE-1 and EAGLE-2)
 * and eagle/model/cnets.py (EAGLE-3) of the authors' repository. The decoder layer is Llama's,
 * so its tensors are in the table of family_llama.c.
 */
#include "engine/model/draft_head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/multimodal.h"
#include "kernels/model_desc.h"
#include "kernels/status.h"

enum { TARGET_STATES = 3 }; /* number of the target's states that an EAGLE-3 head reads */

#define EAGLE_FAMILY                                                                           \
    .prefix = "", .activation = ESP_SWIGLU, .norm = ESP_NORM_RMS,                              \
    .layer_tensors = esp_llama_layer_tensors
#define EAGLE_TENSORS                                                                          \
    ESP_MODEL(fc, "fc.weight", HIDDEN, FC, ALWAYS),                                            \
        ESP_MODEL(fc_bias, "fc.bias", HIDDEN, ONE, IF_STORED),                                 \
        ESP_MODEL(embedding, "embed_tokens.weight", VOCABULARY, HIDDEN, IF_STORED)
/* The tensor names of the norms before the matrix fc. A head has one norm for the whole input
 * of fc, or one norm for each of the target's states. */
#define FC_NORM "input_norm.weight"
#define FC_NORMS(i) "fc_norm." #i ".weight"
#define EAGLE3_TENSORS                                                                         \
    EAGLE_TENSORS, ESP_MODEL(norm_fc[0], FC_NORM, FC_PART, ONE, IF_FC_NORM),                   \
        ESP_MODEL(norm_fc[0], FC_NORMS(0), FC_PART, ONE, IF_FC_NORMS),                         \
        ESP_MODEL(norm_fc[1], FC_NORMS(1), FC_PART, ONE, IF_FC_NORMS),                         \
        ESP_MODEL(norm_fc[2], FC_NORMS(2), FC_PART, ONE, IF_FC_NORMS),                         \
        ESP_MODEL(norm_final, "norm.weight", HIDDEN, ONE, ALWAYS),                             \
        ESP_MODEL(head, "lm_head.weight", OUTPUTS, HIDDEN, ALWAYS)

static const struct esp_tensor_rule eagle_tensors[] = {EAGLE_TENSORS, {0}};

static const struct esp_family eagle_family = {
    EAGLE_FAMILY,
    .layer_name = "layers.",
    .tensors = eagle_tensors,
};

static const struct esp_tensor_rule eagle3_tensors[] = {
    EAGLE3_TENSORS,
    ESP_MODEL(norm_input, "midlayer.hidden_norm.weight", HIDDEN, ONE, ALWAYS),
    {0},
};

static const struct esp_family eagle3_family = {
    EAGLE_FAMILY,
    .layer_name = "midlayer.",
    .single_layer = true,
    .tensors = eagle3_tensors,
};

/* In the library speculators, some of these tensors have different names. */
static const char speculators_norm[] = "layers.0.hidden_norm.weight";

static const struct esp_tensor_rule speculators_tensors[] = {
    EAGLE3_TENSORS,
    ESP_MODEL(norm_input, "layers.0.hidden_norm.weight", HIDDEN, ONE, ALWAYS),
    {0},
};

static const struct esp_family speculators_family = {
    EAGLE_FAMILY,
    .layer_name = "layers.",
    .tensors = speculators_tensors,
};

const struct esp_family *esp_draft_head_family(const struct esp_stored_set *files)
{
    return esp_stored_has_prefix(files, "midlayer.")  ? &eagle3_family
           : esp_stored_find(files, speculators_norm) ? &speculators_family
                                                      : &eagle_family;
}

enum esp_reads esp_draft_head_kind(const struct esp_stored_set *files)
{
    if (!esp_stored_find(files, "fc.weight"))
        return ESP_READS_TOKENS;
    return esp_draft_head_family(files) == &eagle_family ? ESP_READS_EAGLE : ESP_READS_EAGLE3;
}

int esp_draft_head_unwrap(struct esp_model *model, struct esp_json *json)
{
    static const char *const own[] = {"draft_vocab_size",
                                      "target_hidden_size",
                                      "eagle_aux_hidden_state_layer_ids",
                                      "norm_before_residual",
                                      "norm_output",
                                      "num_nextn_predict_layers",
                                      "norm_before_fc",
                                      "fc_norm"};
    const char *kind = esp_json_text(json->root, "speculators_model_type");
    if (!kind)
        return ESP_OK;
    model->head = strcmp(kind, "mtp") == 0; /* other heads are recognised by their tensors */
    if (!model->head && strcmp(kind, "eagle3") != 0)
        return esp_json_fail(json, ESP_E_UNSUPPORTED,
                             "speculators_model_type is %s, but only eagle3 and mtp are "
                             "supported",
                             kind);
    cJSON *inner =
        cJSON_DetachItemFromObjectCaseSensitive(json->root, "transformer_layer_config");
    if (!cJSON_IsObject(inner)) {
        cJSON_Delete(inner);
        return esp_json_fail(json, ESP_E_FORMAT,
                             "transformer_layer_config must describe the decoder layer");
    }
    if (!esp_json_item(inner, "model_type"))
        cJSON_AddStringToObject(inner, "model_type", "qwen3");
    esp_multimodal_fill_in(inner);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(json->root, own[i]);
        cJSON_DeleteItemFromObjectCaseSensitive(inner, own[i]);
        if (item && !cJSON_IsNull(item))
            cJSON_AddItemToObject(inner, own[i], item);
        else
            cJSON_Delete(item);
    }
    cJSON_Delete(json->root);
    json->root = inner;
    return ESP_OK;
}

/* Reads a whole number from `least` to `most`. *value does not change if the key is missing. */
static int read_size(int *value, const char *key, int least, int most,
                     const struct esp_json *json)
{
    const cJSON *item = esp_json_find(json->root, key, NULL, NULL);
    if (!item)
        return ESP_OK;
    double number = cJSON_IsNumber(item) ? item->valuedouble : -1;
    if (!(number >= least && number <= most) || number != (int)number)
        return esp_json_fail(json, ESP_E_FORMAT, "%s must be a whole number from %d to %d", key,
                             least, most);
    *value = (int)number;
    return ESP_OK;
}

/* Names a key of an EAGLE-3 head. In heads by NVIDIA, the key is inside eagle_config. */
#define EAGLE_KEY(key) key "|eagle_config." key

static bool is_true(const struct esp_json *json, const char *keys)
{
    return cJSON_IsTrue(esp_json_find(json->root, keys, NULL, NULL));
}

/* Sets which states of the target a head reads. State N is the input of layer N. If the list in
 * config.json is missing or empty, the head keeps the default states. */
static int read_states(struct esp_model *head, const struct esp_json *json)
{
    const cJSON *list =
        esp_json_find(json->root, EAGLE_KEY("eagle_aux_hidden_state_layer_ids"), NULL, NULL);
    if (!list || (cJSON_IsArray(list) && cJSON_GetArraySize(list) == 0))
        return ESP_OK;
    for (int i = 0; i < TARGET_STATES; i++) {
        const cJSON *item = cJSON_GetArrayItem(list, i);
        const double number = cJSON_IsNumber(item) ? item->valuedouble : -1;
        head->reads_state[i] = number >= 0 && number <= 1000 ? (int)number : -1;
        if (head->reads_state[i] != number || cJSON_GetArraySize(list) != TARGET_STATES)
            return esp_json_fail(json, ESP_E_UNSUPPORTED,
                                 "eagle_aux_hidden_state_layer_ids must list %d layers",
                                 TARGET_STATES);
    }
    return ESP_OK;
}

/* Sets which norms are applied before the matrix fc. If config.json does not say this, the
 * stored tensors decide. */
static int read_fc_norms(struct esp_config *c, const struct esp_stored_set *files,
                         const struct esp_json *json)
{
    bool one = is_true(json, EAGLE_KEY("norm_before_fc"));
    bool each = is_true(json, EAGLE_KEY("fc_norm"));
    if (one && each)
        return esp_json_fail(json, ESP_E_UNSUPPORTED,
                             "norm_before_fc and fc_norm are both true, but only one of them "
                             "is supported at a time");
    if (!one && !each) {
        one = esp_stored_find(files, FC_NORM) != NULL;
        each = !one && esp_stored_find(files, FC_NORMS(0));
    }
    c->fc_norms = one ? 1 : each ? TARGET_STATES : 0;
    c->fc_part = each ? c->fc / TARGET_STATES : c->fc;
    return ESP_OK;
}

/* Completes the configuration of an EAGLE-3 head from its config.json. */
static int read_eagle3(struct esp_model *head, struct esp_config *c,
                       const struct esp_json *json)
{
    int target = c->hidden;
    c->residual_normed = is_true(json, EAGLE_KEY("norm_before_residual"));
    head->feeds_normed = is_true(json, "norm_output|eagle_config.return_hidden_post_norm");
    int status = read_size(&target, "target_hidden_size", 1, 65536, json);
    if (status == ESP_OK)
        status = read_size(&c->outputs, "draft_vocab_size", 1, c->vocabulary, json);
    if (status == ESP_OK)
        status = read_states(head, json);
    c->attended = 2 * c->hidden;
    c->input = c->fc = TARGET_STATES * target;
    if (status == ESP_OK)
        status = read_fc_norms(c, head->files, json);
    if (status == ESP_OK && c->input == c->hidden)
        status = esp_json_fail(json, ESP_E_UNSUPPORTED,
                               "hidden_size is three times target_hidden_size, so hidden "
                               "states of head and target cannot be told apart");
    return status;
}

/* Sets which biases and norms the layers have. The first layer decides for all layers. */
static void read_layer(struct esp_config *c, const char *layer,
                       const struct esp_stored_set *files)
{
    char name[64];
    const struct {
        bool *flag;
        const char *tensor;
    } found[] = {{&c->attention_bias, "self_attn.q_proj.bias"},
                 {&c->output_bias, "self_attn.o_proj.bias"},
                 {&c->mlp_bias, "mlp.gate_proj.bias"},
                 {&c->head_norm, "self_attn.q_norm.weight"}};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        snprintf(name, sizeof name, "%s%s", layer, found[i].tensor);
        *found[i].flag = esp_stored_find(files, name) != NULL;
    }
}

int esp_draft_head_config(struct esp_model *head, struct esp_config *c, enum esp_reads reads,
                          const struct esp_architecture *architecture,
                          const struct esp_json *json)
{
    const bool single = esp_draft_head_family(head->files)->single_layer;
    if (architecture->family != &esp_family_llama)
        return esp_json_fail(json, ESP_E_UNSUPPORTED,
                             "a draft head needs a model_type with layers of Llama, not "
                             "%s",
                             architecture->name);
    c->reads = reads;
    c->layers = single ? 1 : c->layers;
    c->attended = c->input = c->hidden;
    c->fc = 2 * c->hidden;
    read_layer(c, single ? "midlayer." : "layers.0.", head->files);
    return reads == ESP_READS_EAGLE3 ? read_eagle3(head, c, json) : ESP_OK;
}

/* ------------------------------------------------------------------ MTP layers */

int esp_draft_head_names(struct esp_stored_set *set, char *err, size_t errlen)
{
    static const struct {
        const char *own, *usual; /* `usual` is never longer than `own` */
    } names[] = {{"mtp_layers.0.input_proj.", "mtp.fc."},
                 {"mtp_layers.0.token_layernorm.", "mtp.pre_fc_norm_embedding."},
                 {"mtp_layers.0.hidden_layernorm.", "mtp.pre_fc_norm_hidden."},
                 {"mtp_layers.0.final_layernorm.", "mtp.norm."},
                 {"mtp_layers.", "mtp.layers."}};
    if (!esp_stored_has_prefix(set, "mtp_layers."))
        return ESP_OK;
    for (size_t i = 0; i < set->count; i++)
        for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
            char *name = set->tensors[i].name;
            const size_t from = strlen(names[j].own), to = strlen(names[j].usual);
            if (strncmp(name, names[j].own, from) != 0)
                continue;
            memcpy(name, names[j].usual, to);
            memmove(name + to, name + from, strlen(name + from) + 1);
        }
    return esp_stored_finish(set, err, errlen);
}

const struct esp_family *esp_mtp_family(const struct esp_stored_set *files,
                                        const struct esp_architecture *architecture)
{
    const struct esp_family *mtp = architecture->mtp;
    return mtp && esp_stored_find(files, mtp->tensors[0].name) ? mtp : NULL;
}

int esp_mtp_config(struct esp_config *c, const struct esp_json *json,
                   const struct esp_stored_set *files)
{
    static const char *const keys = "mtp_num_hidden_layers|num_nextn_predict_layers";
    double layers = 1;
    int status = esp_config_number(&layers, 0, 1000, keys, json);
    if (status == ESP_OK && layers != 1)
        status = esp_json_fail(json, ESP_E_UNSUPPORTED,
                               "the model has %g MTP layers, but drafting needs a model with "
                               "exactly one; use --draft none",
                               layers);
    if (status == ESP_OK && esp_json_true(json->root, "mtp_use_dedicated_embeddings") &&
        !esp_stored_find(files, "mtp.embed_tokens.weight"))
        status = esp_json_fail(json, ESP_E_UNSUPPORTED,
                               "mtp_use_dedicated_embeddings is true, but there is no tensor "
                               "mtp.embed_tokens.weight; use --draft none");
    c->layers = 1;
    c->reads = ESP_READS_EAGLE;
    c->input = c->hidden;
    c->fc = 2 * c->hidden;
    return status;
}

/* ------------------------------------------------------------------ reduced vocabulary */

/* For each row of lm_head, tensor d2t has the row's token id minus the row's index. Tensor t2d
 * is not read, because its flags (one for each token) contain the same information. */
int esp_draft_head_outputs(struct esp_model *head, char *err, size_t errlen)
{
    struct esp_model_desc *d = &head->desc;
    struct esp_stored *map = esp_stored_find(head->files, "d2t");
    struct esp_stored *flags = esp_stored_find(head->files, "t2d");
    if (map)
        map->used = true;
    if (flags)
        flags->used = true;
    if (d->outputs == d->vocabulary)
        return ESP_OK;
    if (!map)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s: tensor d2t of shape (%d) is missing; it lists the tokens of the "
                        "rows of lm_head.weight",
                        head->path, d->outputs);
    if (strcmp(map->type, "I64") != 0 || map->rank != 1 || map->shape[0] != d->outputs)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s: tensor d2t must be of type I64 and shape (%d)", map->file,
                        d->outputs);
    const size_t count = (size_t)d->outputs;
    int64_t *offsets = malloc(count * sizeof *offsets);
    head->output_token = malloc(count * sizeof *head->output_token);
    int status = ESP_OK;
    if (!offsets || !head->output_token)
        status = esp_no_memory(head->path, err, errlen);
    else
        esp_tensor_file_read(map->source, map->offset, offsets, count * sizeof *offsets);
    for (int i = 0; i < d->outputs && status == ESP_OK; i++) {
        const int least = i ? head->output_token[i - 1] + 1 : 0;
        if (offsets[i] < least - i || offsets[i] >= d->vocabulary - i)
            status = esp_fail(err, errlen, ESP_E_FORMAT,
                              "%s: for row %d of lm_head.weight, d2t has the offset %lld, but "
                              "row plus offset must be a token from %d to %d",
                              map->file, i, (long long)offsets[i], least, d->vocabulary - 1);
        else
            head->output_token[i] = i + (int32_t)offsets[i];
    }
    free(offsets);
    d->output_token = head->output_token;
    return status;
}

/* ------------------------------------------------------------------ head and target */

int esp_draft_head_join(struct esp_model *head, const struct esp_model *target, char *err,
                        size_t errlen)
{
    struct esp_model_desc *d = &head->desc;
    const struct esp_model_desc *t = &target->desc;
    const int states = d->reads == ESP_READS_EAGLE3 ? TARGET_STATES : 1;
    if (d->vocabulary != t->vocabulary)
        return esp_fail(err, errlen, ESP_E_MISMATCH,
                        "the draft head %s is for a target with a vocabulary of %d tokens, but "
                        "%s has %d; name the target that it was trained for",
                        head->path, d->vocabulary, target->path, t->vocabulary);
    if (d->input != states * t->hidden)
        return esp_fail(err, errlen, ESP_E_MISMATCH,
                        "the draft head %s is for a target of hidden size %d, but %s has "
                        "%d; name the target that it was trained for",
                        head->path, d->input / states, target->path, t->hidden);
    if (states > 1 && t->layers < TARGET_STATES)
        return esp_fail(
            err, errlen, ESP_E_MISMATCH,
            "the draft head %s reads hidden states of three layers, but %s has only "
            "%d",
            head->path, target->path, t->layers);
    for (int i = 0; i < TARGET_STATES; i++)
        if (head->reads_state[i] > t->layers)
            return esp_fail(err, errlen, ESP_E_MISMATCH,
                            "the draft head %s reads the hidden state before layer %d, but %s "
                            "has %d layers; name the target that it was trained for",
                            head->path, head->reads_state[i], target->path, t->layers);
    if (!d->embedding.data && d->hidden != t->hidden)
        return esp_fail(err, errlen, ESP_E_MISMATCH,
                        "the draft head %s has no embed_tokens.weight, and embed_tokens.weight "
                        "of %s is %d wide, not %d",
                        head->path, target->path, t->hidden, d->hidden);
    if (!d->embedding.data)
        d->embedding = t->embedding;
    if (!d->head.data)
        d->head = t->head;
    d->context = t->context;
    return ESP_OK;
}

int esp_draft_head_fed_back(const struct esp_model *head)
{
    return head->desc.norm_embedding.data || head->feeds_normed ? ESP_STATE_NORMED
                                                                : head->desc.layers;
}

struct esp_states esp_draft_head_states(const struct esp_model *head,
                                        const struct esp_model *target)
{
    const int layers = target->desc.layers;
    if (head->desc.reads == ESP_READS_EAGLE)
        return (struct esp_states){.count = 1,
                                   .state = {head->reads_unnormed ? layers : ESP_STATE_NORMED}};
    const int *own = head->reads_state;
    if (own[1] > 0 || own[2] > 0)
        return (struct esp_states){.count = TARGET_STATES, .state = {own[0], own[1], own[2]}};
    return (struct esp_states){.count = TARGET_STATES,
                               .state = {layers > 2 ? 2 : 0, layers / 2, layers - 3}};
}
