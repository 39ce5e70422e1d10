/* bad_head.c - tests that damaged draft heads, and heads of other targets, are refused with an
 * error message of one line. A good head must open with the built-in target. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/espalier.h"
#include "engine/model/draft_head.h"
#include "engine/support/paths.h"
#include "tests/check.h"
#include "tests/folder.h"

static char err[512];

static void check_sentence(int line, int status, int want, const char *first,
                           const char *second)
{
    if (status != want || !strstr(err, first) || !strstr(err, second) || strchr(err, '\n'))
        check_fail(__FILE__, line, " status %d (want %d), \"%s\" should name %s, %s", status,
                   want, err, first, second);
}

static void copy_head(const char *head)
{
    char name[64];
    snprintf(name, sizeof name, "../heads/%s", head);
    folder_copy(name);
}

/* Checks that the folder in its current state is refused. */
static void check_refused(int line, int want, const char *first, const char *second)
{
    struct esp_model *model;
    *err = '\0';
    int status = esp_model_open(&model, folder_path(), err, sizeof err);
    CHECK(!model);
    check_sentence(line, status, want, first, second);
}

static void check_config(int line, const char *head, const char *key, const char *value,
                         int want, const char *first, const char *second)
{
    copy_head(head);
    folder_edit("config.json", key, NULL, value);
    check_refused(line, want, first, second);
}

#define BAD_CONFIG(head, key, value, status, first, second)                                    \
    check_config(__LINE__, head, key, value, status, first, second)

TEST(a_config_that_does_not_fit_the_head_is_named)
{
    BAD_CONFIG("eagle", "hidden_size", "16", ESP_E_FORMAT, "fc.weight", "(16, 32)");
    BAD_CONFIG("eagle", "num_hidden_layers", "2", ESP_E_FORMAT,
               "layers.1.input_layernorm.weight", "missing");
    BAD_CONFIG("eagle", "intermediate_size", "25", ESP_E_FORMAT,
               "layers.0.mlp.gate_proj.weight", "(25, 32)");
    BAD_CONFIG("eagle3", "draft_vocab_size", "41", ESP_E_FORMAT, "lm_head.weight", "(41, 32)");
    BAD_CONFIG("eagle3", "draft_vocab_size", "98", ESP_E_FORMAT, "draft_vocab_size", "97");
    BAD_CONFIG("eagle3", "draft_vocab_size", "0", ESP_E_FORMAT, "draft_vocab_size", "from 1");
    BAD_CONFIG("eagle3", "draft_vocab_size", "\"all\"", ESP_E_FORMAT, "draft_vocab_size",
               "whole number");
    BAD_CONFIG("eagle3", "target_hidden_size", "1e9", ESP_E_FORMAT, "target_hidden_size",
               "65536");
    BAD_CONFIG("eagle3", "target_hidden_size", "31", ESP_E_FORMAT, "fc.weight", "(32, 93)");
    BAD_CONFIG("eagle3-narrow", "target_hidden_size", "8", ESP_E_UNSUPPORTED,
               "target_hidden_size", "told apart");
    static const char own[] = "eagle3-speculators";
    BAD_CONFIG(own, "speculators_model_type", "\"dflash\"", ESP_E_UNSUPPORTED, "is dflash",
               "only eagle3 and mtp");
    BAD_CONFIG(own, "speculators_model_type", "\"mtp\"", ESP_E_FILE, "no MTP layer", "--draft");
    BAD_CONFIG("speculators-mtp", "num_nextn_predict_layers", "2", ESP_E_UNSUPPORTED,
               "2 MTP layers", "exactly one");
    BAD_CONFIG(own, "transformer_layer_config", "[]", ESP_E_FORMAT, "transformer_layer_config",
               "decoder layer");
    BAD_CONFIG(own, "norm_before_fc", "true", ESP_E_FORMAT, "input_norm.weight",
               "(96) is missing");
    BAD_CONFIG(own, "fc_norm", "true", ESP_E_FORMAT, "fc_norm.0.weight", "(32) is missing");
    BAD_CONFIG("eagle3-speculators-fc-norm", "norm_before_fc", "true", ESP_E_UNSUPPORTED,
               "norm_before_fc and fc_norm", "config.json");
    BAD_CONFIG(own, "draft_vocab_size", "41", ESP_E_FORMAT, "lm_head.weight", "(41, 32)");
    BAD_CONFIG(own, "eagle_aux_hidden_state_layer_ids", "[1, 2]", ESP_E_UNSUPPORTED,
               "eagle_aux_hidden_state_layer_ids", "3 layers");
    BAD_CONFIG(own, "eagle_aux_hidden_state_layer_ids", "[1, 2, -3]", ESP_E_UNSUPPORTED,
               "eagle_aux_hidden_state_layer_ids", "3 layers");
    BAD_CONFIG(own, "eagle_aux_hidden_state_layer_ids", "[1, 2, 1e300]", ESP_E_UNSUPPORTED,
               "eagle_aux_hidden_state_layer_ids", "3 layers");
    copy_head(own);
    folder_edit("config.json", "transformer_layer_config", "num_hidden_layers", "2");
    check_refused(__LINE__, ESP_E_FORMAT, "layers.1.input_layernorm.weight", "missing");
    copy_head("eagle3-speculators-layers");
    folder_edit("config.json", "transformer_layer_config", "layer_types",
                "[\"full_attention\"]");
    check_refused(__LINE__, ESP_E_FORMAT, "layer_types", "3");
    copy_head("speculators-mtp");
    folder_edit("config.json", "transformer_layer_config", "model_type", "\"llama\"");
    check_refused(__LINE__, ESP_E_FILE, "no MTP layer", "--draft");
    copy_head("eagle");
    folder_edit("config.json", "hidden_act", NULL, "\"gelu\"");
    folder_edit("config.json", "model_type", NULL, "\"gpt_neox\"");
    check_refused(__LINE__, ESP_E_UNSUPPORTED, "config.json", "layers of Llama");
}

/* Replaces the first occurrence of `from` in a file by `to`, which has the same length. */
static void replace(const char *file, const char *from, const char *to)
{
    struct folder_bytes bytes = folder_read(folder_file(file));
    char *at = memmem(bytes.data, bytes.size, from, strlen(from));
    CHECK(at && strlen(from) == strlen(to));
    memcpy(at, to, strlen(to));
    folder_write(file, bytes.data, bytes.size);
    free(bytes.data);
}

static void check_renamed(int line, const char *head, const char *from, const char *to,
                          const char *first, const char *second)
{
    copy_head(head);
    replace("model.safetensors", from, to);
    check_refused(line, ESP_E_FORMAT, first, second);
}

/* ------------------------------------------------------------------ MTP layers */

/* Checks that the MTP layer in the folder is refused. */
static void check_mtp_refused(int line, int want, const char *first, const char *second)
{
    struct esp_model *head;
    *err = '\0';
    int status = esp_model_open_mtp(&head, folder_path(), err, sizeof err);
    CHECK(!head);
    check_sentence(line, status, want, first, second);
}

/* Renames a tensor of an MTP layer to a name of the same length. The tensor must be reported as
 * missing. */
static void check_mtp_renamed(int line, const char *from, const char *to, const char *shape)
{
    copy_head("mtp-qwen3-5");
    replace("model.safetensors", from, to);
    check_mtp_refused(line, ESP_E_FORMAT, from, shape);
}

TEST(a_tensor_that_an_mtp_layer_lacks_is_named)
{
    check_mtp_renamed(__LINE__, "mtp.norm.weight", "mtp.form.weight", "(32)");
    check_mtp_renamed(__LINE__, "mtp.pre_fc_norm_hidden.weight",
                      "mtp.pre_fc_norm_hedden.weight", "(32)");
    check_mtp_renamed(__LINE__, "mtp.pre_fc_norm_embedding.weight",
                      "mtp.pre_fc_norm_embodding.weight", "(32)");
    check_mtp_renamed(__LINE__, "mtp.layers.0.mlp.up_proj.weight",
                      "mtp.layers.1.mlp.up_proj.weight", "(24, 32)");
    check_mtp_renamed(__LINE__, "mtp.layers.0.self_attn.q_proj.weight",
                      "mtp.layers.1.self_attn.q_proj.weight", "(128, 32)");
    copy_head("mtp-qwen3-5");
    replace("model.safetensors", "mtp.fc.weight", "mtp.fe.weight");
    check_mtp_refused(__LINE__, ESP_E_FILE, folder_path(), "no MTP layer");
}

/* Gives fc.weight another shape in the header of the file. */
TEST(an_mtp_layer_of_another_shape_is_refused)
{
    copy_head("mtp-qwen3-5");
    struct folder_bytes bytes = folder_read(folder_file("model.safetensors"));
    char *name = memmem(bytes.data, bytes.size, "\"mtp.fc.weight\"", 15);
    CHECK(name);
    char *shape = memmem(name, 200, "[32,64]", 7);
    CHECK(shape);
    memcpy(shape, "[64,32]", 7);
    folder_write("model.safetensors", bytes.data, bytes.size);
    free(bytes.data);
    check_mtp_refused(__LINE__, ESP_E_FORMAT, "mtp.fc.weight has shape (64, 32)", "(32, 64)");
    static const struct {
        const char *key, *value;
        int status;
        const char *says;
    } configs[] = {
        {"mtp_num_hidden_layers", "2", ESP_E_UNSUPPORTED, "2 MTP layers"},
        {"mtp_num_hidden_layers", "\"one\"", ESP_E_FORMAT, "mtp_num_hidden_layers"},
        {"mtp_num_hidden_layers", "-1", ESP_E_FORMAT, "mtp_num_hidden_layers"},
        {"mtp_use_dedicated_embeddings", "true", ESP_E_UNSUPPORTED, "mtp.embed_tokens.weight"},
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        copy_head("mtp-qwen3-5");
        folder_edit("config.json", configs[i].key, NULL, configs[i].value);
        check_mtp_refused(__LINE__, configs[i].status, "config.json", configs[i].says);
    }
}

/* The target must not use tensors of its MTP layer, and the layer must not use tensors of the
 * target. Together, they must use every tensor of the file. */
TEST(a_target_and_its_mtp_layer_use_all_tensors_together)
{
    static const char *const heads[] = {"mtp-qwen3-5", "mtp-qwen3-next"};
    for (int h = 0; h < 2; h++) {
        struct esp_model *parts[2];
        const char *unused;
        copy_head(heads[h]);
        CHECK(esp_model_open(&parts[0], folder_path(), err, sizeof err) == 0, "%s", err);
        CHECK(esp_model_open_mtp(&parts[1], folder_path(), err, sizeof err) == 0, "%s", err);
        CHECK(parts[0]->mtp && !parts[0]->head && !parts[1]->mtp && parts[1]->head);
        int64_t numbers = 0;
        for (size_t i = 0; i < parts[0]->files->count; i++) {
            int64_t count = 1;
            for (int k = 0; k < parts[0]->files->tensors[i].rank; k++)
                count *= parts[0]->files->tensors[i].shape[k];
            numbers += count;
        }
        CHECK(parts[0]->parameters + parts[1]->parameters == numbers, "%s", heads[h]);
        for (int i = 0; i < 2; i++) {
            CHECK(esp_stored_unused(parts[i]->files, &unused) == 0, "%s", unused);
            esp_model_close(parts[i]);
        }
    }
}

/* ------------------------------------------------------------------ PyTorch files */

/* Opens the folder's pytorch_model.bin with `size` bytes of `bytes`. */
static int open_torch(const char *bytes, size_t size)
{
    struct esp_model *model;
    folder_write("pytorch_model.bin", bytes, size);
    *err = '\0';
    int status = esp_model_open(&model, folder_path(), err, sizeof err);
    CHECK((status == 0) == (model != NULL) && !strchr(err, '\n'));
    esp_model_close(model);
    return status;
}

TEST(a_truncated_or_invalid_file_of_pytorch_is_refused)
{
    copy_head("eagle3-torch");
    struct folder_bytes good = folder_read(folder_file("pytorch_model.bin"));
    CHECK(open_torch(good.data, good.size) == 0, "%s", err);
    for (size_t size = 0; size < good.size; size += 1 + good.size / 97)
        CHECK(open_torch(good.data, size) == ESP_E_FORMAT, "%zu bytes", size);
    check_sentence(__LINE__, open_torch("PK\3\4", 4), ESP_E_FORMAT, "pytorch_model.bin",
                   "truncated, or was not written by PyTorch");
    free(good.data);
}

/* Changes every byte of the pickle and of the archive's directory in several ways. Opening the
 * folder can succeed or fail. Sanitizers detect reads beyond the file. */
TEST(a_damaged_file_of_pytorch_never_crashes)
{
    static const unsigned char flips[] = {0x01, 0x80, 0xff};
    copy_head("eagle3-torch");
    struct folder_bytes good = folder_read(folder_file("pytorch_model.bin"));
    const char *pickle = memmem(good.data, good.size, "\x80\2}q", 4);
    CHECK(pickle);
    const size_t begin = (size_t)(pickle - good.data), end = begin + 1388;
    const size_t directory = good.size - 1700;
    int refused = 0;
    for (size_t at = begin; at < good.size; at += check_quick() ? 11 : 3) {
        if (at >= end && at < directory)
            at = directory;
        good.data[at] ^= (char)flips[at % 3];
        refused += open_torch(good.data, good.size) < 0;
        good.data[at] ^= (char)flips[at % 3];
    }
    CHECK(refused > 50, "only %d were refused", refused);
    CHECK(open_torch(good.data, good.size) == 0, "%s", err);
    free(good.data);
}

/* Replaces some bytes of the pickle with other bytes of the same length. The file must be
 * refused. */
static void check_pickle(int line, const char *from, const char *to, size_t length,
                         const char *text)
{
    copy_head("eagle3-torch");
    struct folder_bytes bytes = folder_read(folder_file("pytorch_model.bin"));
    char *at = memmem(bytes.data, bytes.size, from, length);
    CHECK(at, "no %s", from);
    memcpy(at, to, length);
    check_sentence(line, open_torch(bytes.data, bytes.size), ESP_E_FORMAT, "pytorch_model.bin",
                   text);
    free(bytes.data);
}

TEST(a_pickle_that_does_more_than_needed_is_refused)
{
    check_pickle(__LINE__, "BFloat16Storage", "BFloat17Storage", 15, "unknown type");
    check_pickle(__LINE__, "X\7\0\0\0storage", "X\7\0\0\0storagf", 12, "other than a storage");
    /* `i` is the opcode INST, which makes an object */
    check_pickle(__LINE__, "}q", "iq", 2, "is not needed for weights");
    check_pickle(__LINE__, "X\7\0\0\0storage", "X\7\0\0\7storage", 12, "is truncated");
}

/* --------------------------------------------------------------- archives made by the test */

static void put(FILE *file, unsigned long number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        putc(i < 8 ? (int)(number >> 8 * i & 255) : 0, file);
}

/* Writes one of the two headers that a file in an archive has: the one before the file's bytes,
 * or the entry in the archive's directory. The checksum is 0, because it is never checked. */
static void put_header(FILE *file, bool directory, const char *name, size_t length,
                       size_t start)
{
    fputs(directory ? "PK\1\2" : "PK\3\4", file);
    put(file, 0, directory ? 16 : 14);
    put(file, length, 4);
    put(file, length, 4);
    put(file, strlen(name), 2);
    put(file, 0, directory ? 12 : 2);
    if (directory)
        put(file, start, 4);
    fputs(name, file);
}

/* Opens a head from an archive that contains this pickle and one storage of four bytes. */
static int open_pickle(const char *pickle, size_t length)
{
    static const char name[] = "a/data.pkl", storage[] = "a/data/0";
    char *bytes = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&bytes, &size);
    CHECK(file);
    put_header(file, false, name, length, 0);
    fwrite(pickle, 1, length, file);
    const long second = ftell(file);
    put_header(file, false, storage, 4, 0);
    put(file, 0, 4);
    const long directory = ftell(file);
    put_header(file, true, name, length, 0);
    put_header(file, true, storage, 4, (size_t)second);
    const long end = ftell(file);
    fputs("PK\5\6", file);
    put(file, 0, 4);
    put(file, 2, 2);
    put(file, 2, 2);
    put(file, (unsigned long)(end - directory), 4);
    put(file, (unsigned long)directory, 4);
    put(file, 0, 2);
    CHECK(fclose(file) == 0);
    copy_head("eagle3-torch");
    int status = open_torch(bytes, size);
    free(bytes);
    return status;
}

/* Opens a head from a pickle with `times` entries. All entries are the same tensor under the
 * same name of `length` characters. Each entry takes only 4 bytes of the pickle. */
static int open_names(size_t length, int times)
{
    static const char tensor[] = "ctorch._utils\n_rebuild_tensor_v2\n"
                                 "((X\7\0\0\0storagectorch\nFloatStorage\n"
                                 "X\1\0\0\0000X\3\0\0\0cpuK\1tQK\0))tRq\1";
    char *pickle = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&pickle, &size);
    CHECK(file);
    fputs("X", file);
    put(file, length, 4);
    for (size_t i = 0; i < length; i++)
        putc('n', file);
    fputs("q", file);
    putc(0, file);
    fwrite(tensor, 1, sizeof tensor - 1, file);
    fputs("}(", file);
    for (int i = 0; i < times; i++)
        fwrite("h\0h\1", 1, 4, file);
    fputs("u.", file);
    CHECK(fclose(file) == 0);
    int status = open_pickle(pickle, size);
    free(pickle);
    return status;
}

TEST(a_repeated_name_takes_limited_memory)
{
    check_sentence(__LINE__, open_names(4, 1), ESP_E_FORMAT, "is missing", "tensor");
    check_sentence(__LINE__, open_names(1 << 20, 2), ESP_E_FORMAT, "pytorch_model.bin",
                   "with a name that is too long");
    check_sentence(__LINE__, open_names(200, 1 << 16), ESP_E_FORMAT, "pytorch_model.bin",
                   "more tensors than");
}

TEST(a_tensor_that_is_missing_is_named)
{
    check_renamed(__LINE__, "eagle", "layers.0.self_attn.v_proj", "layers.0.self_attn.w_proj",
                  "layers.0.self_attn.v_proj.weight", "missing");
    check_renamed(__LINE__, "eagle3", "\"d2t\"", "\"d3t\"", "d2t", "missing");
    check_renamed(__LINE__, "eagle3", "hidden_norm", "hidden_nose", "midlayer.hidden_norm",
                  "missing");
    check_renamed(__LINE__, "eagle3", "\"norm.weight\"", "\"nose.weight\"", "norm.weight",
                  "missing");
    check_renamed(__LINE__, "eagle3-speculators-norm-before-fc", "input_norm", "imput_norm",
                  "input_norm.weight", "(96) is missing");
    check_renamed(__LINE__, "eagle3-speculators-fc-norm", "fc_norm.2", "fc_norm.3",
                  "fc_norm.2.weight", "(32) is missing");
    copy_head("eagle3-speculators-fc-norm");
    folder_edit("config.json", "fc_norm", NULL, "false");
    replace("model.safetensors", "fc_norm.0", "fc_norm.9");
    check_refused(__LINE__, ESP_E_FORMAT, "fc_norm.1.weight",
                  "correct norm_before_fc, fc_norm");
    check_renamed(__LINE__, "eagle-own", "layers.1.input_layernorm", "layers.1.input_layernose",
                  "layers.1.input_layernorm.weight", "missing");
}

/* Sets entry `row` of d2t, the head's map of tokens, to `value`. The file must be refused
 * because of d2t. */
static void check_map(int line, int row, int64_t value)
{
    struct esp_model *good;
    copy_head("eagle3");
    CHECK(esp_model_open(&good, folder_path(), err, sizeof err) == 0, "%s", err);
    const size_t at = esp_stored_find(good->files, "d2t")->offset + (size_t)row * 8;
    esp_model_close(good);
    struct folder_bytes bytes = folder_read(folder_file("model.safetensors"));
    memcpy(bytes.data + at, &value, sizeof value);
    folder_write("model.safetensors", bytes.data, bytes.size);
    free(bytes.data);
    check_refused(line, ESP_E_FORMAT, "d2t", "row plus offset must be a token from");
}

TEST(an_invalid_map_of_tokens_is_refused)
{
    static const int64_t values[] = {-1, 97, 1000, INT32_MAX, INT64_MAX, INT64_MIN, -INT32_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        check_map(__LINE__, 0, values[i]);
        check_map(__LINE__, 39, i ? values[i] : 58);
    }
    copy_head("eagle3");
    folder_edit_header("model.safetensors", "d2t", "dtype", "\"U64\"");
    check_refused(__LINE__, ESP_E_FORMAT, "d2t", "I64");
    copy_head("eagle3");
    folder_edit_header("model.safetensors", "d2t", "shape", "[20, 2]");
    check_refused(__LINE__, ESP_E_FORMAT, "d2t", "(40)");
}

/* ------------------------------------------------------------------ pairs */

static void check_apart(int line, const char *target, const char *first, const char *second)
{
    struct esp_model *head, *other;
    char name[80];
    snprintf(name, sizeof name, "vectors/%s", target);
    CHECK(esp_model_open(&head, folder_path(), err, sizeof err) == 0, "%s", err);
    CHECK(esp_model_open(&other, check_path(name), err, sizeof err) == 0, "%s", err);
    *err = '\0';
    int status = esp_draft_head_join(head, other, err, sizeof err);
    check_sentence(line, status, ESP_E_MISMATCH, first, second);
    esp_model_close(head);
    esp_model_close(other);
}

TEST(a_head_of_another_target_is_refused)
{
    copy_head("eagle");
    check_apart(__LINE__, "logits/neox-bf16", "97 tokens", "103");
    copy_head("eagle3");
    check_apart(__LINE__, "logits/llama-gqa", "three layers", "only 2");
    copy_head("eagle3-narrow");
    replace("model.safetensors", "embed_tokens", "embed_tokers");
    check_apart(__LINE__, "heads/target", "embed_tokens.weight", "32 wide, not 24");
    copy_head("eagle-own");
    replace("config.json", "\"vocab_size\": 97", "\"vocab_size\":103");
    folder_edit_header("model.safetensors", "embed_tokens.weight", "dtype", "\"F16\"");
    check_refused(__LINE__, ESP_E_FORMAT, "embed_tokens.weight", "(103, 32)");
}

static const char *target_folder(void)
{
    static char path[PATH_MAX];
    CHECK(esp_find_data(path, sizeof path, "models", "fairytale-target") == 0);
    return path;
}

static int open_pair(struct esp_engine **engine, const char *target, const char *draft)
{
    const struct esp_engine_options options = {
        .target = target, .draft = draft, .backend = "cpu", .threads = 1};
    *err = '\0';
    return esp_engine_open(engine, &options, err, sizeof err);
}

TEST(a_user_is_told_which_pair_does_not_fit)
{
    struct esp_engine *engine;
    copy_head("eagle");
    check_sentence(__LINE__, open_pair(&engine, target_folder(), folder_path()), ESP_E_MISMATCH,
                   "97 tokens", "4096");
    folder_edit("config.json", "vocab_size", NULL, "4096");
    check_sentence(__LINE__, open_pair(&engine, target_folder(), folder_path()), ESP_E_MISMATCH,
                   "hidden size 32", "256");
    check_sentence(__LINE__, open_pair(&engine, folder_path(), NULL), ESP_E_ARGUMENT,
                   "draft head (eagle)", "name the target model first");
}

/* ------------------------------------------------------------------ a good head */

enum { HIDDEN = 256, NUMBERS = HIDDEN * 2 * HIDDEN + 3 * 2 * HIDDEN + 2 * HIDDEN + 4 * HIDDEN };

/* Makes the smallest possible head for the built-in target. Its matrix fc copies the target's
 * hidden state, and all other weights are 0. So the head drafts the token that the target
 * expected one token earlier. */
static void write_head(void)
{
    static const struct {
        const char *name;
        int rows, columns;
    } tensors[] = {{"fc.weight", HIDDEN, 2 * HIDDEN},
                   {"layers.0.self_attn.q_proj.weight", 2, HIDDEN},
                   {"layers.0.self_attn.k_proj.weight", 2, HIDDEN},
                   {"layers.0.self_attn.v_proj.weight", 2, HIDDEN},
                   {"layers.0.self_attn.o_proj.weight", HIDDEN, 2},
                   {"layers.0.mlp.gate_proj.weight", 1, HIDDEN},
                   {"layers.0.mlp.up_proj.weight", 1, HIDDEN},
                   {"layers.0.mlp.down_proj.weight", HIDDEN, 1},
                   {"layers.0.post_attention_layernorm.weight", HIDDEN, 0}};
    static float data[NUMBERS];
    char header[4096] = "{";
    size_t at = 0;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const int rows = tensors[i].rows, columns = tensors[i].columns;
        const size_t end = at + (size_t)rows * (size_t)(columns ? columns : 1) * sizeof(float);
        char shape[32], entry[256];
        snprintf(shape, sizeof shape, columns ? "%d,%d" : "%d", rows, columns);
        snprintf(entry, sizeof entry,
                 "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                 i ? "," : "", tensors[i].name, shape, at, end);
        strcat(header, entry);
        at = end;
    }
    strcat(header, "}");
    CHECK(at == sizeof data);
    for (int i = 0; i < HIDDEN; i++)
        data[i * 2 * HIDDEN + HIDDEN + i] = 1;
    copy_head("eagle");
    struct folder_bytes bytes = {.size = 8 + sizeof data};
    bytes.data = calloc(1, bytes.size);
    memcpy(bytes.data + 8, data, sizeof data);
    folder_write_tensors("model.safetensors", header, &bytes);
    free(bytes.data);
    folder_write_text("config.json",
                      "{\"model_type\": \"llama\", \"hidden_size\": 256, \"vocab_size\": 4096,"
                      " \"num_hidden_layers\": 1, \"num_attention_heads\": 1, \"head_dim\": 2,"
                      " \"intermediate_size\": 1}");
}

/* Some training programs write the settings of the head in config.json next to the settings of
 * its layer. NVIDIA's program writes them in eagle_config. If a setting is missing, the tensors
 * show which norms the head has. */
TEST(keys_of_a_head_may_be_in_other_places)
{
    static const char layer[] = "\"model_type\": \"qwen3\", \"vocab_size\": 97, "
                                "\"hidden_size\": 32, \"intermediate_size\": 24, "
                                "\"num_hidden_layers\": 1, \"num_attention_heads\": 4, "
                                "\"num_key_value_heads\": 2, \"head_dim\": 8, "
                                "\"draft_vocab_size\": 40";
    static const struct {
        const char *head, *keys;
        /* `state` is the second hidden state that the head reads, and 0 means the default */
        int norms, state;
        bool fed_normed;
    } cases[] = {
        {"eagle3-speculators-norm-before-fc",
         "\"eagle_config\": {\"norm_before_fc\": true, \"return_hidden_post_norm\": true, "
         "\"eagle_aux_hidden_state_layer_ids\": [1, 5, 6]}",
         1, 5, true},
        {"eagle3-speculators-norm-before-fc",
         "\"norm_before_fc\": true, \"eagle_config\": {\"eagle_aux_hidden_state_layer_ids\": "
         "[]}",
         1, 0, false},
        {"eagle3-speculators-norm-before-fc", "\"norm_output\": true", 1, 0, true},
        {"eagle3-speculators-fc-norm", "\"fc_norm\": true", 3, 0, false},
        {"eagle3-speculators-fc-norm", "\"tie_word_embeddings\": false", 3, 0, false},
        {"eagle3-speculators", "\"tie_word_embeddings\": false", 0, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct esp_model *head;
        char text[1024];
        const char *unused;
        copy_head(cases[i].head);
        snprintf(text, sizeof text, "{%s, %s}", layer, cases[i].keys);
        folder_write_text("config.json", text);
        CHECK(esp_model_open(&head, folder_path(), err, sizeof err) == 0, "%s", err);
        CHECK(head->desc.reads == ESP_READS_EAGLE3 && head->desc.fc_norms == cases[i].norms,
              "%s", text);
        CHECK(head->feeds_normed == cases[i].fed_normed &&
                  head->reads_state[1] == cases[i].state,
              "%s", text);
        CHECK(esp_stored_unused(head->files, &unused) == 0, "%s", unused);
        esp_model_close(head);
    }
}

static void write_text(struct esp_engine *engine, const char *drafter, int32_t *tokens,
                       int most, int *count, struct esp_stats *stats)
{
    static const char text[] = "Once upon a time there was";
    struct esp_session *session;
    const struct esp_session_options options = {.drafter = drafter, .repeatable = true};
    CHECK(esp_session_open(&session, engine, &options, err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_prompt_text(session, text, strlen(text), 0, err, sizeof err) == 0, "%s",
          err);
    esp_session_allow(session, 40);
    while (esp_session_step(session, err, sizeof err) > 0)
        continue;
    const int32_t *all = esp_session_tokens(session, count);
    CHECK(*count <= most);
    memcpy(tokens, all, (size_t)*count * sizeof *tokens);
    esp_session_stats(session, stats);
    esp_session_close(session);
}

TEST(a_good_head_is_a_draft_like_any_other)
{
    struct esp_engine *engine;
    struct esp_model_info info;
    struct esp_stats stats;
    int32_t plain[100], drafted[100];
    int length, count;
    write_head();
    CHECK(open_pair(&engine, target_folder(), folder_path()) == 0, "%s", err);
    CHECK(esp_engine_target(engine, &info) && !info.head);
    CHECK(esp_engine_draft(engine, &info) && info.head && info.outputs == 4096);
    CHECK(strcmp(info.architecture, "eagle") == 0 && info.parameters == NUMBERS);
    write_text(engine, "ar", plain, 100, &length, &stats);
    write_text(engine, "dynatree", drafted, 100, &count, &stats);
    CHECK(count == length && memcmp(plain, drafted, (size_t)count * sizeof *plain) == 0);
    CHECK(stats.draft_passes > 0);
    esp_engine_close(engine);
}
