/* engine.c - opens a target model, its draft model, their tokenizer and the backend that
 * computes the models.
 *
 * A draft tree consists of token ids of the target. A draft model with another vocabulary
 * computes logits only for the tokens that both models have (translation.h). The number of
 * logits may differ between the models, because models pad their vocabulary. The target's
 * number is used.
 */
#include "engine/engine.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/chat/chat_format.h"
#include "kernels/backends.h"
#include "engine/kv_cache.h"
#include "kernels/model_desc.h"
#include "kernels/status.h"
#include "kernels/system.h"
#include "engine/memory_plan.h"
#include "engine/model/draft_head.h"
#include "engine/model/inflate.h"
#include "engine/model/json.h"
#include "engine/model/mtp.h"
#include "engine/model/own_copy.h"
#include "engine/model/stored.h"
#include "engine/model/vocabulary.h"
#include "engine/rank_settings.h"
#include "engine/support/paths.h"
#include "engine/way_times.h"

static const char *token_text(char text[64], const struct esp_tokenizer *tokenizer,
                              int32_t token)
{
    size_t length = 0;
    const char *bytes = token >= 0 ? esp_tokenizer_bytes(tokenizer, token, &length) : NULL;
    snprintf(text, 64, "%.*s", bytes ? (int)length : 0, bytes ? bytes : "");
    return text;
}

/* Reads the target's chat template, which may be inside a GGUF file. */
static int open_chat(struct esp_engine *e, const char *path, char *err, size_t errlen)
{
    const char *own = e->target->chat_template;
    const size_t length = own ? strlen(own) : 0;
    char bos[64], eos[64];
    if (!own)
        return esp_chat_open(&e->chat, path, err, errlen);
    if (length > ESP_CHAT_TEMPLATE_LIMIT)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s: tokenizer.chat_template is longer than %d bytes", path,
                        ESP_CHAT_TEMPLATE_LIMIT);
    token_text(bos, e->tokenizer, esp_tokenizer_prefix(e->tokenizer));
    token_text(eos, e->tokenizer, e->target->end_count > 0 ? e->target->end[0] : -1);
    if (esp_chat_read(&e->chat, own, length, bos, eos) < 0)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the chat template");
    return ESP_OK;
}

/* Checks that every token of the tokenizer has a row in the model's embedding. */
static int check_vocabulary(const struct esp_model *model,
                            const struct esp_tokenizer *tokenizer, char *err, size_t errlen)
{
    int tokens = esp_tokenizer_size(tokenizer);
    if (tokens <= model->desc.vocabulary)
        return ESP_OK;
    return esp_fail(err, errlen, ESP_E_MISMATCH,
                    "%s: tokenizer.json has tokens up to %d, but the model has only %d tokens",
                    model->path, tokens - 1, model->desc.vocabulary);
}

static struct esp_language language_of(const struct esp_model *model,
                                       const struct esp_tokenizer *tokenizer)
{
    return (struct esp_language){tokenizer, model->desc.vocabulary, model->end,
                                 model->end_count};
}

struct esp_language esp_engine_language(const struct esp_engine *e, bool draft)
{
    return draft ? language_of(e->draft, e->draft_tokenizer)
                 : language_of(e->target, e->tokenizer);
}

/* If the models share less than this fraction of their tokens, the draft model drafts text
 * instead of tokens. */
static const double FEW_COMMON = 0.6;

/* Lets a draft model with another vocabulary draft either the tokens that both models have, or
 * text. If it drafts text, the engine takes ownership of its tokenizer, and *own becomes
 * NULL. */
static int translate(struct esp_engine *e, struct esp_tokenizer **own, int match, char *err,
                     size_t errlen)
{
    const struct esp_tokenizer *other = *own;
    const struct esp_language target = language_of(e->target, e->tokenizer),
                              draft = language_of(e->draft, other);
    struct esp_translation *t = &e->translation;
    const int status = esp_translation_open(t, &target, &draft);
    if (status < 0)
        return esp_fail(err, errlen, status,
                        "not enough memory to compare the vocabularies of %s and %s",
                        e->target->path, e->draft->path);
    if (e->draft->head)
        return esp_fail(err, errlen, ESP_E_MISMATCH,
                        "the draft head %s and the target %s have different vocabularies; a "
                        "head must have the vocabulary of its target",
                        e->draft->path, e->target->path);
    if (esp_model_desc_recurrent(&e->draft->desc))
        return esp_fail(
            err, errlen, ESP_E_UNSUPPORTED,
            "the draft %s has recurrent layers and a different vocabulary from the target "
            "%s; such a draft must have the target's tokenizer",
            e->draft->path, e->target->path);
    if (match == ESP_MATCH_TEXT || (match == ESP_MATCH_AUTO && t->text_share < FEW_COMMON)) {
        e->draft_tokenizer = *own;
        *own = NULL;
        return ESP_OK;
    }
    if (t->shared == 0)
        return esp_fail(err, errlen, ESP_E_MISMATCH,
                        "the vocabularies of the draft %s and the target %s have no token in "
                        "common; use --draft-match text",
                        e->draft->path, e->target->path);
    esp_model_set_outputs(e->draft, t->output_token, t->output_row, t->shared, t->tokens);
    return ESP_OK;
}

static int open_models(struct esp_engine *e, const struct esp_engine_options *o, char *err,
                       size_t errlen)
{
    char target[PATH_MAX], draft[PATH_MAX];
    const char *target_path = o->target, *draft_path = o->draft;
    if (!target_path) {
        if (esp_find_data(target, sizeof target, "models", "fairytale-target") < 0)
            return esp_fail(
                err, errlen, ESP_E_FILE,
                "the built-in model pair was not found; name a model with --target, "
                "or set ESPALIER_DATA to the folder that contains models/");
        target_path = target;
        if ((!draft_path || strcmp(draft_path, "auto") == 0) &&
            esp_find_data(draft, sizeof draft, "models", "fairytale-draft") == 0)
            draft_path = draft;
    }
    int status = esp_model_open(&e->target, target_path, err, errlen);
    if (status == ESP_OK && e->target->head)
        status = esp_fail(err, errlen, ESP_E_ARGUMENT,
                          "%s is a draft head (%s) and needs a target; name the target model "
                          "first, and the head as its draft",
                          target_path, e->target->architecture);
    if (status == ESP_OK && (o->width > 0 || o->layers > 0))
        status =
            esp_model_enlarge(e->target, o->width > 0 ? o->width : 1, o->layers, err, errlen);
    if (status == ESP_OK)
        status = esp_tokenizer_open(&e->tokenizer, target_path, err, errlen);
    if (status == ESP_OK)
        status = check_vocabulary(e->target, e->tokenizer, err, errlen);
    if (status == ESP_OK)
        status = open_chat(e, target_path, err, errlen);
    if (status < 0 || !draft_path || !*draft_path || strcmp(draft_path, "none") == 0 ||
        strcmp(draft_path, "auto") == 0)
        return status;
    if (esp_is_mtp(draft_path))
        return esp_mtp_open(&e->draft, e->target, err, errlen);
    if (esp_is_own_copy(draft_path))
        return esp_own_copy_open(&e->draft, e->target, draft_path, err, errlen);
    status = esp_model_open(&e->draft, draft_path, err, errlen);
    if (status == ESP_OK && e->draft->head)
        status = esp_draft_head_join(e->draft, e->target, err, errlen);
    if (status == ESP_OK && e->draft->head && !esp_file_exists(draft_path, "tokenizer.json"))
        return check_vocabulary(e->draft, e->tokenizer, err, errlen);
    struct esp_tokenizer *other = NULL;
    if (status == ESP_OK)
        status = esp_tokenizer_open(&other, draft_path, err, errlen);
    if (status == ESP_OK)
        status = check_vocabulary(e->draft, other, err, errlen);
    if (status == ESP_OK && esp_tokenizer_hash(e->tokenizer) != esp_tokenizer_hash(other))
        status = translate(e, &other, o->draft_match, err, errlen);
    esp_tokenizer_close(other);
    return status;
}

static void close_device(struct esp_engine *e)
{
    if (e->draft_weights)
        e->backend->ops->weights_close(e->draft_weights);
    if (e->target_weights)
        e->backend->ops->weights_close(e->target_weights);
    if (e->backend)
        e->backend->ops->close(e->backend);
    e->draft_weights = e->target_weights = NULL;
    e->backend = NULL;
}

static void name_device(struct esp_engine *e)
{
    struct esp_streamed streamed;
    snprintf(e->device, sizeof e->device, "%s", e->backend->ops->device(e->backend));
    const size_t used = strlen(e->device);
    if (esp_engine_streamed(e, &streamed))
        snprintf(e->device + used, sizeof e->device - used, ", %d of %d layers in%s memory",
                 streamed.resident, streamed.layers,
                 e->backend->ops->memory_free ? " its" : "");
}

static void set_context(struct esp_engine *e, int context)
{
    e->context = context;
    esp_model_set_context(e->target, context);
    if (e->draft)
        esp_model_set_context(e->draft, context);
}

/* Uses the target's MTP layer as the draft, if the target has an MTP layer of a supported
 * kind. */
static int try_mtp(struct esp_engine *e, const struct esp_engine_options *o, char *err,
                   size_t errlen)
{
    char why[512];
    if (o->width > 1)
        return ESP_OK;
    const int status = esp_mtp_open(&e->draft, e->target, why, sizeof why);
    if (status == ESP_E_UNSUPPORTED || status == ESP_E_FILE)
        return ESP_OK;
    return status < 0 ? esp_fail(err, errlen, status, "%s", why) : status;
}

/* For draft "auto": uses the target's MTP layer. If there is none and the backend is the CPU,
 * uses a quantised copy of the target, provided that it is expected to save time. With a memory
 * limit neither is used, because they would leave less memory for the target's layers. */
static int choose_draft(struct esp_engine *e, const struct esp_engine_options *o, char *err,
                        size_t errlen)
{
    if (!o->draft || strcmp(o->draft, "auto") != 0)
        return ESP_OK;
    esp_model_close(e->draft); /* an earlier attempt with another device may have opened
                                 it */
    e->draft = NULL;
    if (o->memory > 0 || o->gpu_memory > 0)
        return ESP_OK;
    const int status = try_mtp(e, o, err, errlen);
    if (status < 0 || e->draft || e->backend->ops->memory_free || !esp_own_copy_pays(e->target))
        return status;
    const size_t left = esp_available_bytes();
    if (left > 0 && left <= 2 * e->target->bytes) /* no room for the target and the copy */
        return status;
    return esp_own_copy_open(&e->draft, e->target, "self", err, errlen);
}

/* Opens the backend. If the options request ranks, starts the ranks too. */
static int open_backend(struct esp_engine *e, const struct esp_engine_options *o,
                        const char *name, char *err, size_t errlen)
{
    struct esp_rank_options ranks;
    int status = esp_rank_settings_read(&ranks, o, err, errlen);
    if (status == ESP_OK)
        status = esp_backend_open(&e->backend, name, ranks.threads, o->device, err, errlen);
    if (status < 0 || ranks.ranks < 2)
        return status;
    const struct esp_backend_ops *ops = e->backend->ops;
    status = ops->start_ranks(e->backend, &ranks, err, errlen);
    if (status == ESP_OK && ops->ask_about_ranks)
        ops->ask_about_ranks(e->backend, o->patient, o->user);
    if (status < 0) {
        ops->close(e->backend);
        e->backend = NULL;
    }
    return status;
}

/* Chooses how many checkpoints (copies of the states of recurrent layers) a cache can store.
 * See engine/kv_cache.h. */
static void choose_checkpoints(const struct esp_engine *e, struct esp_model *model)
{
    static const size_t BUDGET = (size_t)512 << 20;
    const struct esp_backend_ops *ops = e->backend->ops;
    const size_t bytes = model && !model->original && ops->checkpoint_bytes
                             ? ops->checkpoint_bytes(&model->desc)
                             : 0;
    const size_t fit = bytes > 0 ? BUDGET / bytes : 0;
    if (bytes > 0)
        model->desc.state_slots = fit < 1                 ? 1
                                  : fit < ESP_CHECKPOINTS ? (int)fit
                                                          : ESP_CHECKPOINTS;
}

/* Opens a backend and copies the weights to it. */
static int open_device(struct esp_engine *e, const struct esp_engine_options *o,
                       const char *name, char *err, size_t errlen)
{
    int status = open_backend(e, o, name, err, errlen);
    if (status < 0)
        return status;
    const struct esp_backend_ops *ops = e->backend->ops;
    if (ops->set_exact)
        ops->set_exact(e->backend, o->exact);
    e->device_free = ops->memory_free ? ops->memory_free(e->backend) : 0;
    if (o->gpu_memory > 0 && !ops->memory_free && o->backend && strcmp(o->backend, "auto") != 0)
        status = esp_fail(err, errlen, ESP_E_ARGUMENT,
                          "--gpu-memory limits the use of a GPU's memory, but --backend %s "
                          "has no GPU memory; use --memory instead",
                          ops->name);
    if (status == ESP_OK)
        status = choose_draft(e, o, err, errlen);
    choose_checkpoints(e, e->target);
    choose_checkpoints(e, e->draft);
    e->target->desc.exact = o->exact;
    if (e->draft)
        e->draft->desc.exact = o->exact;
    set_context(e, o->context ? o->context : e->target->desc.context);
    if (status == ESP_OK && !o->context) {
        esp_memory_fit_context(e, o->gpu_memory);
        set_context(e, e->context);
        if (e->context < e->target->desc.context)
            snprintf(e->notice, sizeof e->notice,
                     "%.150s has room for texts of %d tokens; the model allows %d",
                     ops->device(e->backend), e->context, e->target->desc.context);
    }
    if (status == ESP_OK)
        status = esp_memory_plan(e, o->gpu_memory, err, errlen);
    if (status == ESP_OK)
        status = esp_memory_set_limit(e, o->memory, err, errlen);
    e->target->desc.divided = true; /* this has an effect only if there are ranks */
    if (e->draft)                   /* the only draft that is divided is a quantised copy of
                                       the target, because it uses the target's KV cache */
        e->draft->desc.divided = e->draft->original != NULL;
    if (status == ESP_OK)
        status = ops->weights_open(&e->target_weights, e->backend, &e->target->desc,
                                   o->progress, o->user, err, errlen);
    if (e->draft && (e->draft->head || e->draft->original))
        e->draft->desc.lender = e->target_weights;
    if (status == ESP_OK && e->draft)
        status = ops->weights_open(&e->draft_weights, e->backend, &e->draft->desc, o->progress,
                                   o->user, err, errlen);
    if (status < 0) {
        close_device(e);
        return status;
    }
    esp_way_times_use(e->backend,
                      (struct esp_weights *const[]){e->target_weights, e->draft_weights}, 2);
    name_device(e);
    return status;
}

/* Opens the device. With "auto", the CPU backend is used instead of a device that fails, is too
 * small, or does not support the model. An example is a model with heads that are too wide. */
static int open_best_device(struct esp_engine *e, const struct esp_engine_options *o, char *err,
                            size_t errlen)
{
    if (o->backend && strcmp(o->backend, "auto") != 0)
        return open_device(e, o, o->backend, err, errlen);
    if (o->ranks > 1 || (o->hosts && *o->hosts) || getenv(ESP_RANKS_GIVEN))
        return open_device(e, o, esp_backend_cpu.name, err, errlen);
    int status = open_device(e, o, "auto", e->notice, sizeof e->notice);
    if (status == ESP_E_DEVICE || status == ESP_E_MEMORY || status == ESP_E_UNSUPPORTED) {
        struct esp_engine_options cpu = *o;
        cpu.device = 0;
        return open_device(e, &cpu, esp_backend_cpu.name, err, errlen);
    }
    if (status < 0)
        esp_fail(err, errlen, status, "%s", e->notice);
    return status;
}

/* Returns the hash of a model's sizes and of two rows of a matrix. Two rows are enough, because
 * training changes every number. */
static uint64_t hash_model(const struct esp_model *m, uint64_t hash)
{
    const struct esp_model_desc *d = &m->desc;
    const struct esp_tensor *query = esp_layer_matrix(&d->layer[0]);
    const int sizes[] = {d->layers, d->hidden, d->heads, d->kv_heads, d->ffn, d->vocabulary};
    const size_t row = esp_dtype_row_bytes(query->dtype, query->columns);
    char *stored = malloc(2 * row);
    hash = esp_fnv(hash, sizes, sizeof sizes);
    for (int i = 0; stored && i < 2; i++) {
        esp_tensor_copy_rows(query, i * (query->rows - 1), 1, stored + (size_t)i * row);
        hash = esp_fnv(hash, stored + (size_t)i * row, row);
    }
    free(stored);
    return hash;
}

static uint64_t hash_vector(const struct esp_tensor *t, uint64_t hash)
{
    const size_t rows = (size_t)(t->stored_rows ? t->stored_rows : t->rows);
    float *numbers = t->data ? malloc(rows * sizeof *numbers) : NULL;
    if (numbers) {
        esp_tensor_read_rows(t, 0, (int)rows, numbers);
        hash = esp_fnv(hash, numbers, rows * sizeof *numbers);
    }
    free(numbers);
    return hash;
}

/* Returns the hash of the vocabulary's size and of the norms. It is the same for all number
 * formats, because norms are never quantised. It is also the same for all widths, because
 * making a model wider only repeats its norms. */
static uint64_t hash_source(const struct esp_model *m, uint64_t hash)
{
    const struct esp_model_desc *d = &m->desc;
    const struct esp_layer *l = &d->layer[0];
    const struct esp_tensor *const norms[] = {
        &l->norm1,    &l->norm1_bias, &l->norm2,      &l->norm2_bias,      &l->norm_attended,
        &l->norm_mlp, &l->query_norm, &d->norm_input, &d->norm_final_bias, &d->norm_final,
    };
    hash = esp_fnv(hash, &d->vocabulary, sizeof d->vocabulary);
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        hash = hash_vector(norms[i], hash);
    return hash;
}

static void identify(struct esp_engine *e)
{
    const struct esp_tensor *embedding = &e->target->desc.embedding;
    e->source_hidden =
        embedding->stored_columns ? embedding->stored_columns : embedding->columns;
    if (!e->draft)
        return;
    e->pair = hash_model(e->draft, hash_model(e->target, ESP_FNV_START));
    e->sources = hash_source(e->draft, hash_source(e->target, ESP_FNV_START));
}

int esp_engine_open(struct esp_engine **engine, const struct esp_engine_options *options,
                    char *err, size_t errlen)
{
    const struct esp_engine_options none = {0}, *o = options ? options : &none;
    double start = esp_clock();
    *engine = NULL;
    if (o->max_nodes < 0 || o->max_nodes > ESP_MAX_NODES)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "a tree has 1 to %d nodes, not %d",
                        ESP_MAX_NODES, o->max_nodes);
    if (o->device < 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "GPUs are numbered from 0; there is no GPU %d", o->device);
    struct esp_engine *e = calloc(1, sizeof *e);
    if (!e)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the engine");
    e->process_bytes = esp_resident_bytes();
    e->max_nodes = o->max_nodes ? o->max_nodes : 256;
    int status = open_models(e, o, err, errlen);
    if (status == ESP_OK && (o->context < 0 || o->context > e->target->desc.context))
        status = esp_fail(err, errlen, ESP_E_ARGUMENT,
                          "%s can have a context of 1 to %d tokens, not %d", e->target->path,
                          e->target->desc.context, o->context);
    if (status == ESP_OK)
        status = open_best_device(e, o, err, errlen);
    if (status == ESP_OK)
        identify(e);
    if (status == ESP_OK)
        status = esp_stored_release(e->target->files, err, errlen);
    if (status == ESP_OK && e->draft)
        status = e->draft->original ? esp_own_copy_check(e->draft, err, errlen)
                                    : esp_stored_release(e->draft->files, err, errlen);
    if (status < 0) {
        esp_engine_close(e);
        return status;
    }
    e->load_seconds = esp_clock() - start;
    *engine = e;
    return ESP_OK;
}

void esp_engine_close(struct esp_engine *e)
{
    if (!e)
        return;
    close_device(e);
    esp_model_close(e->draft);
    esp_model_close(e->target);
    esp_tokenizer_close(e->tokenizer);
    esp_tokenizer_close(e->draft_tokenizer);
    esp_translation_free(&e->translation);
    esp_chat_free(&e->chat);
    free(e);
}

static bool describe(const struct esp_engine *e, const struct esp_model *m,
                     struct esp_model_info *info)
{
    const struct esp_backend_ops *ops = e->backend->ops;
    if (!m)
        return false;
    *info = (struct esp_model_info){
        .path = m->path,
        .name = m->name,
        .architecture = m->architecture,
        .head = m->head,
        .mtp = m->mtp,
        .copy = m->original != NULL,
        .dtype = m->dtype,
        .parameters = m->parameters,
        .active = m->parameters - m->idle,
        .experts = m->desc.experts,
        .experts_used = m->desc.experts_used,
        .expert_ffn = m->desc.expert_ffn,
        .expert_dtype = m->expert_dtype,
        .ignored = m->ignored,
        .bytes = m->bytes,
        .layers = m->desc.layers,
        .hidden = m->desc.hidden,
        .heads = m->desc.heads,
        .kv_heads = m->desc.kv_heads,
        .head_dim = m->desc.head_dim,
        .ffn = m->desc.ffn,
        .recurrent = esp_model_desc_recurrents(&m->desc),
        .checkpoints = m->desc.state_slots,
        .state_bytes = ops->state_bytes ? ops->state_bytes(&m->desc) : 0,
        .checkpoint_bytes = ops->checkpoint_bytes ? ops->checkpoint_bytes(&m->desc) : 0,
        .vocabulary = m->desc.vocabulary,
        .outputs = m->desc.outputs,
        .context = m->desc.context,
    };
    if (m->files)
        info->unused = esp_stored_unused(m->files, &info->unused_name);
    return true;
}

bool esp_engine_target(const struct esp_engine *e, struct esp_model_info *info)
{
    return describe(e, e->target, info);
}

bool esp_engine_draft(const struct esp_engine *e, struct esp_model_info *info)
{
    const bool there = describe(e, e->draft, info);
    if (there && e->translation.tokens > 0) {
        info->translated = true;
        info->shared = e->translation.shared;
        info->text_share = e->translation.text_share;
    }
    return there;
}

const char *esp_engine_backend(const struct esp_engine *e)
{
    return e->backend->ops->name;
}

const char *esp_engine_device(const struct esp_engine *e)
{
    return e->device;
}

bool esp_engine_streamed(const struct esp_engine *e, struct esp_streamed *streamed)
{
    const struct esp_backend_ops *ops = e->backend->ops;
    return ops->weights_streamed && ops->weights_streamed(e->target_weights, streamed);
}

const char *esp_engine_notice(const struct esp_engine *e)
{
    return e->notice;
}

int esp_engine_context(const struct esp_engine *e)
{
    return e->context;
}

double esp_engine_load_seconds(const struct esp_engine *e)
{
    return e->load_seconds;
}

const char *esp_engine_preset(const struct esp_engine *e, bool sampling)
{
    if (!e->draft || e->draft->original)
        return NULL;
    return sampling && e->target->sampling_preset ? e->target->sampling_preset
                                                  : e->target->preset;
}

const char *esp_engine_chat(const struct esp_engine *e)
{
    return e->chat.format ? e->chat.format->name : e->chat.has_template ? NULL : "";
}

int esp_tokenize(const struct esp_engine *e, const char *text, size_t length, int32_t *tokens,
                 int capacity)
{
    return esp_tokenizer_encode(e->tokenizer, text, length, tokens, capacity);
}

const char *esp_token_bytes(const struct esp_engine *e, int32_t token, size_t *length)
{
    return esp_tokenizer_bytes(e->tokenizer, token, length);
}

bool esp_token_is_special(const struct esp_engine *e, int32_t token)
{
    return esp_tokenizer_is_special(e->tokenizer, token);
}

bool esp_token_is_end(const struct esp_engine *e, int32_t token)
{
    for (int i = 0; i < e->target->end_count; i++)
        if (e->target->end[i] == token)
            return true;
    return false;
}
