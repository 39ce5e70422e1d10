/* bad_model.c - tests that bad model folders are refused with an error message and never crash
 * the program.
 *
 * Each bad folder is a copy of a good folder in tests/vectors/logits, damaged in one place. A
 * refusal must have the right status, and a message of one line that names the file and the
 * wrong value.
 */
#include "engine/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/folder.h"
#include "engine/model/safetensors.h"
#include "kernels/model_desc.h"

static char err[512];

/* Checks that a folder is refused with this status and a message that contains both texts. */
static void check_refused(int line, const char *path, int want, const char *first,
                          const char *second)
{
    struct esp_model *model;
    *err = '\0';
    int status = esp_model_open(&model, path, err, sizeof err);
    if (status != want || model || !strstr(err, first) || !strstr(err, second) ||
        strchr(err, '\n'))
        check_fail(__FILE__, line, " status %d (want %d), \"%s\" should name %s, %s", status,
                   want, err, first, second);
}

#define REFUSED(status, first, second)                                                         \
    check_refused(__LINE__, folder_path(), status, first, second)

/* Changes one key of config.json. The message must name config.json and contain `text`. */
static void check_config(int line, const char *vector, const char *key, const char *inner,
                         const char *value, int want, const char *text)
{
    folder_copy(vector);
    folder_edit("config.json", key, inner, value);
    check_refused(line, folder_path(), want, "config.json", text);
}

#define BAD_CONFIG(vector, key, inner, value, status, text)                                    \
    check_config(__LINE__, vector, key, inner, value, status, text)

/* Changes an entry of the safetensors header. The message must name the file and contain
 * `text`. */
static void check_header(int line, const char *key, const char *inner, const char *value,
                         int want, const char *text)
{
    folder_copy("llama-mha");
    folder_edit_header("model.safetensors", key, inner, value);
    check_refused(line, folder_path(), want, "model.safetensors", text);
}

#define BAD_HEADER(key, inner, value, status, text)                                            \
    check_header(__LINE__, key, inner, value, status, text)

TEST(missing_files_are_named)
{
    folder_copy("llama-mha");
    check_refused(__LINE__, folder_file("nothing"), ESP_E_FILE, "/nothing", "No such file");
    check_refused(__LINE__, folder_file("config.json"), ESP_E_FILE, "config.json",
                  "neither a folder");
    unlink(folder_file("model.safetensors"));
    REFUSED(ESP_E_FILE, folder_path(), "model.safetensors.index.json");
    unlink(folder_file("config.json"));
    REFUSED(ESP_E_FILE, "config.json", "not a model folder");
    CHECK(mkfifo(folder_file("config.json"), 0600) == 0);
    REFUSED(ESP_E_FILE, "config.json", "not a regular file");
}

/* Changes values in config.json, so that the tensors in the file no longer have the required
 * shapes. */
TEST(tensors_of_recurrent_layers_are_checked)
{
    static const struct {
        const char *vector, *key, *value, *tensor;
    } rows[] = {
        {"lfm2", "conv_L_cache", "4", "conv.conv.weight"},
        {"lfm2", "full_attn_idxs", "[]", "correct layer_types or"},
        {"lfm2", "block_ff_dim", "96", "feed_forward"},
        {"qwen3-5", "linear_conv_kernel_dim", "3", "conv1d.weight"},
        {"qwen3-5", "linear_key_head_dim", "12", "in_proj_qkv.weight"},
        {"qwen3-5", "linear_value_head_dim", "4096", "in_proj_qkv.weight"},
        {"qwen3-5", "full_attention_interval", "1", "self_attn.q_proj.weight"},
        {"qwen3-5", "head_dim", "32", "self_attn.q_proj.weight"},
        {"lfm2-moe", "num_dense_layers", "2", "feed_forward.gate.weight"},
        {"lfm2-moe", "use_expert_bias", "false", "expert_bias"},
        {"nemotron-h-ends", "layers_block_type", "[\"mlp\", \"mlp\", \"attention\"]",
         "layers.1.mixer"},
        {"qwen3-next", "linear_num_key_heads", "1", "in_proj_qkvz.weight"},
        {"qwen3-next", "linear_value_head_dim", "32", "in_proj_qkvz.weight"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        folder_copy(rows[i].vector);
        folder_edit("config.json", rows[i].key, NULL, rows[i].value);
        REFUSED(ESP_E_FORMAT, folder_path(), rows[i].tensor);
    }
    folder_copy("lfm2");
    folder_edit_header("model.safetensors", "model.layers.0.conv.conv.weight", "shape",
                       "[32, 3, 1]");
    REFUSED(ESP_E_FORMAT, folder_path(), "shape (32, 3, 1)");
}

/* hybrid_override_pattern has a character for each layer. */
TEST(patterns_of_layers_are_checked)
{
    static const struct {
        const char *pattern;
        int status;
        const char *text;
    } rows[] = {{"M-*M", ESP_E_FORMAT, "5 entries"},
                {"M-*ME", ESP_E_FORMAT, "layer 4 is a mixture of experts"},
                {"M-*M+", ESP_E_UNSUPPORTED, "layer_types has +; only full_attention"},
                {"MM*M-", ESP_E_FORMAT, "layers.1.mixer"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        folder_copy("nemotron-h");
        struct folder_bytes config = folder_read(folder_file("config.json"));
        char *at = strstr(config.data, "M-*M-\"");
        CHECK(at);
        char text[4096];
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - config.data), config.data,
                 rows[i].pattern, at + strlen("M-*M-"));
        folder_write_text("config.json", text);
        free(config.data);
        REFUSED(rows[i].status, folder_path(), rows[i].text);
    }
}

/* No backend supports states of these sizes. */
TEST(states_of_odd_sizes_are_refused)
{
    struct esp_model *model;
    folder_copy("qwen3-5");
    CHECK(esp_model_open(&model, folder_path(), err, sizeof err) == 0, "%s", err);
    struct esp_model_desc d = model->desc;
    CHECK(esp_model_desc_check(&d, err, sizeof err) == 0);
    d.value_dim = 8;
    CHECK(esp_model_desc_check(&d, err, sizeof err) == ESP_E_UNSUPPORTED &&
              strstr(err, "keys of 16 and values of 8 numbers"),
          "%s", err);
    d = model->desc;
    d.key_dim = 6;
    CHECK(esp_model_desc_check(&d, err, sizeof err) == ESP_E_UNSUPPORTED);
    d = model->desc;
    d.conv_kernel = 17;
    CHECK(esp_model_desc_check(&d, err, sizeof err) == ESP_E_UNSUPPORTED);
    d = model->desc;
    d.key_heads = 3;
    CHECK(esp_model_desc_check(&d, err, sizeof err) == ESP_E_UNSUPPORTED);
    esp_model_close(model);
}

/* Only models with recurrent layers may have layers without a mixer or without an MLP. */
TEST(layers_without_a_part_are_refused_in_other_models)
{
    struct esp_model *model;
    folder_copy("nemotron-h-ends");
    CHECK(esp_model_open(&model, folder_path(), err, sizeof err) == 0, "%s", err);
    struct esp_model_desc d = model->desc;
    CHECK(esp_model_desc_check(&d, err, sizeof err) == 0, "%s", err);
    d.layer += 2; /* a layer with attention but no MLP */
    d.layers = 1;
    CHECK(esp_model_desc_check(&d, err, sizeof err) == 0, "%s", err);
    d.conv_kernel = 0;
    CHECK(esp_model_desc_check(&d, err, sizeof err) == ESP_E_FORMAT);
    d.layer -= 2; /* a layer with an MLP but no mixer */
    CHECK(esp_model_desc_check(&d, err, sizeof err) == ESP_E_UNSUPPORTED);
    esp_model_close(model);
}

TEST(configurations_out_of_range_are_refused)
{
    static const struct {
        const char *key, *value;
    } rows[] = {
        {"num_hidden_layers", "0"},
        {"num_hidden_layers", "1001"},
        {"num_hidden_layers", "1.5"},
        {"num_hidden_layers", "\"2\""},
        {"num_hidden_layers", "null"},
        {"num_hidden_layers", NULL},
        {"hidden_size", "65537"},
        {"hidden_size", "-32"},
        {"hidden_size", "1e999"},
        {"num_attention_heads", "0"},
        {"num_attention_heads", "99999"},
        {"num_key_value_heads", "[]"},
        {"head_dim", "1e9"},
        {"head_dim", "0"},
        {"intermediate_size", "4e9"},
        {"vocab_size", "2097153"},
        {"vocab_size", NULL},
        {"max_position_embeddings", "16777217"},
        {"rms_norm_eps", "-1e-5"},
        {"rms_norm_eps", "1e999"},
        {"rms_norm_eps", "\"1e-5\""},
        {"rope_theta", "0"},
        {"rope_theta", "-1e999"},
        {"tie_word_embeddings", "1"},
        {"attention_bias", "\"false\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        BAD_CONFIG("llama-mha", rows[i].key, NULL, rows[i].value, ESP_E_FORMAT, rows[i].key);
    BAD_CONFIG("llama-mha", "num_key_value_heads", NULL, "3", ESP_E_FORMAT,
               "4 attention heads");
    BAD_CONFIG("llama-mha", "hidden_size", NULL, "33", ESP_E_FORMAT, "33");
    BAD_CONFIG("llama-mha", "head_dim", NULL, "7", ESP_E_UNSUPPORTED, "7");
    BAD_CONFIG("neox-parallel", "rotary_pct", NULL, "1.5", ESP_E_FORMAT, "rotary_pct");
    BAD_CONFIG("neox-parallel", "rotary_pct", NULL, "0.2", ESP_E_UNSUPPORTED, "3 of 16");
    BAD_CONFIG("neox-parallel", "rotary_pct", NULL, "0.01", ESP_E_UNSUPPORTED, "0 of 16");
    BAD_CONFIG("neox-bf16", "rope_parameters", "partial_rotary_factor", "-1", ESP_E_FORMAT,
               "rope_parameters.partial_rotary_factor");
}

TEST(unsupported_features_are_refused_by_name)
{
    BAD_CONFIG("qwen3-window", "layer_types", NULL, "[\"sliding_attention\"]", ESP_E_FORMAT,
               "layer_types must be a list of 2 entries");
    BAD_CONFIG("qwen3-window", "layer_types", NULL, "[1, 2]", ESP_E_UNSUPPORTED,
               "not a string");
    BAD_CONFIG("qwen3-window", "layer_types", NULL, "[\"chunked_attention\", \"x\"]",
               ESP_E_UNSUPPORTED, "chunked_attention");
    BAD_CONFIG("mistral-window", "sliding_window", NULL, "0", ESP_E_FORMAT, "sliding_window");
    BAD_CONFIG("llama-mha", "model_type", NULL, "\"mamba\"", ESP_E_UNSUPPORTED,
               "mamba; the supported types are llama, gpt_neox, mistral, qwen2, qwen3");
    BAD_CONFIG("llama-mha", "model_type", NULL, NULL, ESP_E_UNSUPPORTED, "not given");
    BAD_CONFIG("llama-mha", "model_type", NULL, "\"\\u001b[2J\"", ESP_E_UNSUPPORTED, "?[2J");
    BAD_CONFIG("llama-mha", "hidden_act", NULL, "\"relu\"", ESP_E_UNSUPPORTED, "relu");
    BAD_CONFIG("neox-parallel", "hidden_act", NULL, "\"gelu_fast\"", ESP_E_UNSUPPORTED,
               "gelu_fast");
    BAD_CONFIG("llama-mha", "rope_scaling", NULL, "{\"type\": \"longrope\", \"factor\": 2}",
               ESP_E_FORMAT, "rope_scaling.short_factor");
    BAD_CONFIG("llama-linear", "rope_scaling", "factor", "0.5", ESP_E_FORMAT, "factor is 0.5");
    BAD_CONFIG("llama-mha", "quantization_config", NULL, "{\"quant_method\": \"awq\"}",
               ESP_E_UNSUPPORTED, "quantized (awq)");
    BAD_CONFIG("llama-mha", "quantization_config", NULL, "{}", ESP_E_UNSUPPORTED,
               "quantized (method not given)");
    BAD_CONFIG("llama-rope3", "rope_parameters", "rope_type", "\"ntk\"", ESP_E_UNSUPPORTED,
               "rope_parameters.rope_type is ntk");
    BAD_CONFIG("phi3-short", "rope_parameters", "long_factor", "[1, 2]", ESP_E_FORMAT,
               "rope_parameters.long_factor must be a list of 8 numbers");
    BAD_CONFIG("phi3-short", "rope_parameters", "short_factor", "[0, 1, 1, 1, 1, 1, 1, 1]",
               ESP_E_FORMAT, "rope_parameters.short_factor");
    BAD_CONFIG("qwen3-yarn", "rope_parameters", "factor", "1e-3", ESP_E_FORMAT,
               "rope_parameters.factor");
    BAD_CONFIG("qwen3-yarn", "rope_parameters", "beta_fast", "-1", ESP_E_FORMAT, "beta_fast");
    BAD_CONFIG("smollm3-window", "no_rope_layers", NULL, "[0, 1]", ESP_E_FORMAT,
               "no_rope_layers must be a list of 3 entries");
    BAD_CONFIG("smollm3-window", "no_rope_layers", NULL, "[0, 1, 2]", ESP_E_FORMAT,
               "no_rope_layers must be a list of 0 and 1");
    BAD_CONFIG("lfm2", "conv_L_cache", NULL, "17", ESP_E_FORMAT, "conv_L_cache is 17");
    BAD_CONFIG("lfm2", "conv_L_cache", NULL, "1", ESP_E_FORMAT, "conv_L_cache is 1");
    BAD_CONFIG("lfm2", "block_multiple_of", NULL, "0", ESP_E_FORMAT, "block_multiple_of");
    BAD_CONFIG("lfm2", "block_ffn_dim_multiplier", NULL, "-1", ESP_E_FORMAT,
               "block_ffn_dim_multiplier");
    BAD_CONFIG("lfm2", "layer_types", NULL, "[\"conv\"]", ESP_E_FORMAT, "5 entries");
    BAD_CONFIG("lfm2", "layer_types", NULL,
               "[\"conv\", \"full_attention\", \"conv\", \"conv\", \"\\u001b[2J\"]",
               ESP_E_UNSUPPORTED, "?[2J");
    BAD_CONFIG("qwen3-5", "linear_num_key_heads", NULL, "3", ESP_E_FORMAT, "multiple of 3");
    BAD_CONFIG("qwen3-5", "linear_num_value_heads", NULL, "4097", ESP_E_FORMAT, "4097");
    BAD_CONFIG("nemotron-h-ends", "mamba_hidden_act", NULL, "\"gelu\"", ESP_E_UNSUPPORTED,
               "mamba_hidden_act is silu");
    BAD_CONFIG("nemotron-h-ends", "mlp_hidden_act", NULL, "\"silu\"", ESP_E_UNSUPPORTED,
               "mlp_hidden_act is silu");
    BAD_CONFIG("nemotron-h-ends", "layers_block_type", NULL, "[\"mlp\", 3, \"mlp\"]",
               ESP_E_UNSUPPORTED, "not a string");
    BAD_CONFIG("lfm2-moe", "num_dense_layers", NULL, "-1", ESP_E_FORMAT, "num_dense_layers");
    BAD_CONFIG("lfm2-moe", "routed_scaling_factor", NULL, "0", ESP_E_FORMAT,
               "routed_scaling_factor");
    BAD_CONFIG("qwen3-5", "attention_bias", NULL, "true", ESP_E_UNSUPPORTED, "attention_bias");
    BAD_CONFIG("gpt2", "scale_attn_by_inverse_layer_idx", NULL, "true", ESP_E_UNSUPPORTED,
               "scale_attn_by_inverse_layer_idx is false");
    BAD_CONFIG("gpt2", "activation_function", NULL, "\"relu\"", ESP_E_UNSUPPORTED,
               "activation_function is relu");
    BAD_CONFIG("gpt2", "n_positions", NULL, "300", ESP_E_FORMAT, "(300, 32)");
    BAD_CONFIG("gemma2", "query_pre_attn_scalar", NULL, "0", ESP_E_FORMAT,
               "query_pre_attn_scalar");
    BAD_CONFIG("granite", "logits_scaling", NULL, "\"2\"", ESP_E_FORMAT, "logits_scaling");
    BAD_CONFIG("phi3-partial", "intermediate_size", NULL, "25", ESP_E_FORMAT, "(50, 32)");
    BAD_CONFIG("olmo2", "num_key_value_heads", NULL, "4", ESP_E_FORMAT, "k_proj");
    BAD_CONFIG("llama-rope3", "rope_parameters", "rope_type", "3", ESP_E_UNSUPPORTED,
               "rope_parameters.rope_type");
    BAD_CONFIG("llama-rope3", "rope_parameters", "factor", NULL, ESP_E_FORMAT, "factor");
    BAD_CONFIG("llama-rope3", "rope_parameters", "factor", "0", ESP_E_FORMAT, "factor is 0");
    BAD_CONFIG("llama-rope3", "rope_parameters", "low_freq_factor", "4", ESP_E_FORMAT,
               "high_freq_factor");
    BAD_CONFIG("llama-rope3", "rope_parameters", "original_max_position_embeddings", "0",
               ESP_E_FORMAT, "original_max_position_embeddings");
}

TEST(bad_mixtures_of_experts_are_refused)
{
    BAD_CONFIG("nemotron-h-moe", "n_routed_experts", NULL, "4", ESP_E_FORMAT, "(4, 32)");
    BAD_CONFIG("nemotron-h-moe", "n_group", NULL, "2", ESP_E_FORMAT, "n_group is 2");
    BAD_CONFIG("nemotron-h-moe", "topk_group", NULL, "0", ESP_E_FORMAT, "topk_group is 0");
    BAD_CONFIG("nemotron-h-moe", "n_shared_experts", NULL, "0", ESP_E_FORMAT,
               "n_shared_experts is 0");
    BAD_CONFIG("nemotron-h-moe", "moe_latent_size", NULL, "16", ESP_E_UNSUPPORTED,
               "moe_latent_size is given");
    BAD_CONFIG("nemotron-h-moe", "moe_shared_expert_intermediate_size", NULL, "\"28\"",
               ESP_E_FORMAT, "intermediate_size must be a number");
    BAD_CONFIG("nemotron-h-moe", "moe_shared_expert_intermediate_size", NULL, "29",
               ESP_E_FORMAT, "shared_experts.up_proj.weight");
    BAD_CONFIG("nemotron-h-moe", "hybrid_override_pattern", NULL, "\"ME*-M\"",
               ESP_E_UNSUPPORTED, "moe_shared_expert_intermediate_size differ");
    BAD_CONFIG("qwen3-moe", "num_local_experts", NULL, "0", ESP_E_FORMAT, "experts is 0");
    BAD_CONFIG("qwen3-moe", "num_local_experts", NULL, "1e9", ESP_E_FORMAT, "1000000000");
    BAD_CONFIG("qwen3-moe", "num_local_experts", NULL, "4", ESP_E_FORMAT, "(4, 32)");
    BAD_CONFIG("qwen3-moe", "num_experts_per_tok", NULL, "6", ESP_E_FORMAT, "6 of 5 experts");
    BAD_CONFIG("qwen3-moe", "num_experts_per_tok", NULL, "0", ESP_E_FORMAT, "per_tok is 0");
    BAD_CONFIG("qwen3-moe", "moe_intermediate_size", NULL, "21", ESP_E_FORMAT, "(21, 32)");
    BAD_CONFIG("qwen3-moe", "decoder_sparse_step", NULL, "0", ESP_E_FORMAT, "sparse_step is 0");
    BAD_CONFIG("qwen3-moe", "mlp_only_layers", NULL, "[2]", ESP_E_FORMAT, "layers from 0 to 1");
    BAD_CONFIG("qwen3-moe", "mlp_only_layers", NULL, "[0, 0, 0]", ESP_E_FORMAT, "2 layers");
    BAD_CONFIG("qwen3-moe", "mlp_only_layers", NULL, "1", ESP_E_FORMAT, "2 layers");
    folder_copy("qwen3-moe");
    folder_edit("config.json", "mlp_only_layers", NULL, "[1]");
    REFUSED(ESP_E_FORMAT, "layers.1.mlp.gate.weight", "mlp_only_layers");
    folder_copy("qwen3-moe");
    struct folder_bytes bytes = folder_read(folder_file("model.safetensors"));
    char *expert = strstr(bytes.data + 8, "experts.3.up_proj");
    CHECK(expert);
    memcpy(expert, "experts.7", 9);
    folder_write("model.safetensors", bytes.data, bytes.size);
    free(bytes.data);
    REFUSED(ESP_E_FORMAT, "experts.3.up_proj.weight", "missing");
    folder_copy("qwen3-moe");
    folder_edit_header("model.safetensors", "model.layers.0.mlp.experts.4.down_proj.weight",
                       "shape", "[20, 32]");
    REFUSED(ESP_E_FORMAT, "model.layers.0.mlp.experts.4.down_proj.weight", "(32, 20)");
}

TEST(bad_tensors_of_gpt_oss_are_refused)
{
    static const char blocks[] = "model.layers.0.mlp.experts.gate_up_proj_blocks";
    static const char scales[] = "model.layers.1.mlp.experts.down_proj_scales";
    BAD_CONFIG("gpt-oss", "quantization_config", "quant_method", "\"gptq\"", ESP_E_UNSUPPORTED,
               "gptq");
    BAD_CONFIG("gpt-oss", "num_local_experts", NULL, "4", ESP_E_FORMAT, "(4, 32)");
    BAD_CONFIG("gpt-oss", "intermediate_size", NULL, "64", ESP_E_FORMAT, "(5, 128, 32)");
    BAD_CONFIG("gpt-oss", "swiglu_limit", NULL, "0", ESP_E_FORMAT, "swiglu_limit");
    BAD_CONFIG("gpt-oss-floats", "num_attention_heads", NULL, "8", ESP_E_FORMAT, "(64, 32)");
    folder_copy("gpt-oss");
    folder_edit_header("model.safetensors", blocks, "shape", "[5, 64, 2, 8]");
    REFUSED(ESP_E_FORMAT, "layers.0.mlp.experts.gate_up_proj", "missing");
    folder_copy("gpt-oss");
    folder_edit_header("model.safetensors", blocks, "shape", "[64, 5, 1, 16]");
    REFUSED(ESP_E_FORMAT, "layers.0.mlp.experts.gate_up_proj", "missing");
    folder_copy("gpt-oss");
    folder_edit_header("model.safetensors", blocks, "dtype", "\"I8\"");
    REFUSED(ESP_E_FORMAT, "layers.0.mlp.experts.gate_up_proj", "missing");
    folder_copy("gpt-oss");
    folder_edit_header("model.safetensors", scales, "shape", "[160]");
    REFUSED(ESP_E_FORMAT, "layers.1.mlp.experts.down_proj", "missing");
    folder_copy("gpt-oss-floats");
    folder_edit_header("model.safetensors", "model.layers.2.self_attn.sinks", "shape",
                       "[2, 2]");
    REFUSED(ESP_E_FORMAT, "model.layers.2.self_attn.sinks", "(4)");
}

TEST(bad_text_parts_are_refused)
{
    BAD_CONFIG("gemma3-pictures", "text_config", NULL, NULL, ESP_E_FORMAT, "text_config");
    BAD_CONFIG("gemma3-pictures", "text_config", NULL, "[1]", ESP_E_FORMAT, "text_config");
    BAD_CONFIG("gemma3-pictures", "text_config", "model_type", "\"mamba\"", ESP_E_UNSUPPORTED,
               "mamba");
    BAD_CONFIG("gemma3-pictures", "text_config", "hidden_size", "64", ESP_E_FORMAT, "(97, 64)");
    /* In LLaVA's format, text_config can lack keys. Missing keys have the values of a 7B model.
     */
    BAD_CONFIG("llava-pictures", "text_config", "hidden_size", NULL, ESP_E_FORMAT,
               "(97, 4096)");
    BAD_CONFIG("gemma3-pictures", "model_type", NULL, "\"paligemma\"", ESP_E_UNSUPPORTED,
               "paligemma");
    BAD_CONFIG("mistral3-pictures", "quantization_config", NULL, "{\"quant_method\": \"fp8\"}",
               ESP_E_UNSUPPORTED, "fp8");
}

TEST(bad_end_tokens_and_presets_are_refused)
{
    folder_copy("llama-mha");
    unlink(folder_file("generation_config.json"));
    folder_edit("config.json", "eos_token_id", NULL, "97");
    REFUSED(ESP_E_FORMAT, "config.json", "eos_token_id");
    folder_edit("config.json", "eos_token_id", NULL, "[1, 2.5]");
    REFUSED(ESP_E_FORMAT, "config.json", "eos_token_id");
    folder_edit("config.json", "eos_token_id", NULL, "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]");
    REFUSED(ESP_E_UNSUPPORTED, "config.json", "eos_token_id");
    folder_edit("config.json", "eos_token_id", NULL, "2");
    folder_write_text("espalier.json", "{\"drafter\": 3}");
    REFUSED(ESP_E_FORMAT, "espalier.json", "drafter");
    folder_write_text("espalier.json", "{\"sampling_drafter\": []}");
    REFUSED(ESP_E_FORMAT, "espalier.json", "sampling_drafter");
    folder_write_text("espalier.json", "{\"draftr\": \"linear\"}");
    REFUSED(ESP_E_FORMAT, "espalier.json: unknown key 'draftr'", "sampling_drafter");
    folder_write_text("espalier.json", "{\"drafter\": \"linear\", \"drafter\": \"ar\"}");
    REFUSED(ESP_E_FORMAT, "espalier.json", "repeated key 'drafter'");
    folder_write_text("espalier.json", "{\"drafter\": ");
    REFUSED(ESP_E_FORMAT, "espalier.json", "line 1");
}

TEST(broken_json_is_refused_with_its_line)
{
    folder_copy("llama-mha");
    folder_write_text("config.json", "{\n\"model_type\": \"llama\",\n\"rms_norm_eps\": NaN\n}");
    REFUSED(ESP_E_FORMAT, "config.json", "line 3");
    folder_write_text("config.json", "{\"1\":1,");
    REFUSED(ESP_E_FORMAT, "config.json", "line 1");
    folder_write_text("config.json", "");
    REFUSED(ESP_E_FORMAT, "config.json", "line 1");
    folder_write_text("config.json", "[1]");
    REFUSED(ESP_E_FORMAT, "config.json", "object");
    folder_write_text("config.json", "{} x");
    REFUSED(ESP_E_FORMAT, "config.json", "line 1");
    char *deep = malloc(1000001);
    memset(deep, '[', 1000000);
    memcpy(deep, "{\"a\":", 5);
    deep[1000000] = '\0';
    folder_write_text("config.json", deep);
    free(deep);
    REFUSED(ESP_E_FORMAT, "config.json", "line 1");
}

#define QUERY "model.layers.1.self_attn.q_proj.weight"

TEST(bad_tensor_entries_are_refused)
{
    BAD_HEADER(QUERY, "dtype", "\"F31\"", ESP_E_FORMAT, QUERY);
    BAD_HEADER(QUERY, "dtype", "3", ESP_E_FORMAT, QUERY);
    BAD_HEADER(QUERY, "dtype", "\"F16\"", ESP_E_FORMAT, "shape and dtype");
    BAD_HEADER(QUERY, "dtype", "\"I32\"", ESP_E_UNSUPPORTED, "stored as I32");
    BAD_HEADER(QUERY, "shape", "[32, 31]", ESP_E_FORMAT, "shape and dtype");
    BAD_HEADER(QUERY, "shape", "[32, -32]", ESP_E_FORMAT, "bad shape");
    BAD_HEADER(QUERY, "shape", "[32, 32.5]", ESP_E_FORMAT, "bad shape");
    BAD_HEADER(QUERY, "shape", "[32, \"32\"]", ESP_E_FORMAT, "bad shape");
    BAD_HEADER(QUERY, "shape", "[4294967296, 4294967296]", ESP_E_FORMAT, "bad shape");
    BAD_HEADER(QUERY, "shape", "[4294967296, 1073741824]", ESP_E_FORMAT, "shape and dtype");
    BAD_HEADER(QUERY, "shape", "[1e300]", ESP_E_FORMAT, "bad shape");
    BAD_HEADER(QUERY, "shape", "[1,1,1,1,1,1,1,1,1]", ESP_E_FORMAT, "bad shape");
    BAD_HEADER(QUERY, "shape", NULL, ESP_E_FORMAT, "bad shape");
    BAD_HEADER(QUERY, "data_offsets", "[0]", ESP_E_FORMAT, "data_offsets");
    BAD_HEADER(QUERY, "data_offsets", "[4096, 0]", ESP_E_FORMAT, "data_offsets");
    BAD_HEADER(QUERY, "data_offsets", "[-4096, 0]", ESP_E_FORMAT, "data_offsets");
    BAD_HEADER(QUERY, "data_offsets", "[0, 4096, 8192]", ESP_E_FORMAT, "data_offsets");
    BAD_HEADER(QUERY, "data_offsets", "{}", ESP_E_FORMAT, "data_offsets");
    BAD_HEADER(QUERY, "data_offsets", "[1e15, 1e15]", ESP_E_FORMAT, "outside the file");
    BAD_HEADER(QUERY, "data_offsets", "[0, 4096]", ESP_E_FORMAT, "starts at byte");
    BAD_HEADER(QUERY, NULL, "17", ESP_E_FORMAT, QUERY);
    BAD_HEADER(QUERY, NULL, NULL, ESP_E_FORMAT, "starts at byte");
    BAD_HEADER("model.extra", NULL, "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}",
               ESP_E_FORMAT, "starts at byte");
}

TEST(tensors_that_do_not_fit_the_configuration_are_named)
{
    BAD_HEADER(QUERY, "shape", "[16, 64]", ESP_E_FORMAT,
               QUERY " has shape (16, 64), but config.json requires (32, 32)");
    BAD_HEADER(QUERY, "shape", "[1024]", ESP_E_FORMAT, "has shape (1024)");
    BAD_HEADER("model.norm.weight", "shape", "[32, 1]", ESP_E_FORMAT,
               "has shape (32, 1), but config.json requires (32)");
    folder_copy("llama-mha");
    folder_edit("config.json", "num_hidden_layers", NULL, "3");
    REFUSED(ESP_E_FORMAT, folder_path(),
            "tensor model.layers.2.input_layernorm.weight of shape (32) is missing");
    folder_copy("llama-mqa-tied");
    folder_edit("config.json", "tie_word_embeddings", NULL, "false");
    REFUSED(ESP_E_FORMAT, "tensor lm_head.weight", "(97, 36) is missing");
    folder_copy("neox-parallel");
    folder_edit("config.json", "vocab_size", NULL, "100");
    REFUSED(ESP_E_FORMAT, "gpt_neox.embed_in.weight", "(103, 32)");
    folder_copy("llama-gqa");
    folder_edit("config.json", "attention_bias", NULL, "true");
    REFUSED(ESP_E_FORMAT, "self_attn.q_proj.bias of shape (32)", "is missing");
    folder_copy("llama-bias");
    folder_edit("config.json", "mlp_bias", NULL, "false");
    REFUSED(ESP_E_FORMAT, "mlp.gate_proj.bias, which a llama model with this config.json does",
            "correct mlp_bias");
    folder_edit("config.json", "attention_bias", NULL, NULL);
    REFUSED(ESP_E_FORMAT, "self_attn.q_proj.bias", "correct attention_bias");
    folder_edit("config.json", "model_type", NULL, "\"qwen2\"");
    REFUSED(ESP_E_FORMAT, "self_attn.o_proj.bias, which a qwen2 model", "model_type");
}

TEST(bad_headers_are_refused)
{
    folder_copy("llama-mha");
    struct folder_bytes bytes = folder_read(folder_file("model.safetensors"));
    size_t length = folder_header_length(&bytes);

    folder_write("model.safetensors", "", 0);
    REFUSED(ESP_E_FORMAT, "model.safetensors", "0 bytes");
    folder_write_text("model.safetensors", "version https://git-lfs.github.com/spec/v1\n");
    REFUSED(ESP_E_FORMAT, "model.safetensors", "not a safetensors file");
    folder_write("model.safetensors", "\377\377\377\377\377\377\377\377{}", 10);
    REFUSED(ESP_E_FORMAT, "model.safetensors", "not a safetensors file");
    folder_write_tensors("model.safetensors", "{\"a\": ", &bytes);
    REFUSED(ESP_E_FORMAT, "model.safetensors", "not valid JSON");
    folder_write_tensors("model.safetensors", "[]", &bytes);
    REFUSED(ESP_E_FORMAT, "model.safetensors", "object");
    folder_write_tensors("model.safetensors", "{}", &bytes);
    REFUSED(ESP_E_FORMAT, "model.safetensors", "bytes of data");
    bytes.data[length / 2] = '\0';
    folder_write("model.safetensors", bytes.data, bytes.size);
    REFUSED(ESP_E_FORMAT, "model.safetensors", "not valid JSON");
    free(bytes.data);

    folder_copy("llama-mha");
    bytes = folder_read(folder_file("model.safetensors"));
    char *twice = malloc(length + 200);
    snprintf(
        twice, length + 200,
        "{\"lm_head.weight\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},%.*s",
        (int)length - 1, bytes.data + 9);
    folder_write_tensors("model.safetensors", twice, &bytes);
    REFUSED(ESP_E_FORMAT, "lm_head.weight", "twice");
    free(twice);

    folder_write("model.safetensors", bytes.data, bytes.size);
    FILE *file = fopen(folder_file("model.safetensors"), "ab");
    fputc('x', file);
    fclose(file);
    REFUSED(ESP_E_FORMAT, "model.safetensors", "bytes of data");
    free(bytes.data);
}

TEST(truncated_files_are_refused)
{
    folder_copy("llama-mha");
    struct folder_bytes bytes = folder_read(folder_file("model.safetensors"));
    size_t data = 8 + folder_header_length(&bytes);
    for (size_t size = 0; size < bytes.size; size += size < data ? 37 : 1009) {
        CHECK(truncate(folder_file("model.safetensors"), 0) == 0);
        folder_write("model.safetensors", bytes.data, size);
        REFUSED(ESP_E_FORMAT, "model.safetensors", size < 8 ? "bytes" : "truncated");
    }
    folder_write("model.safetensors", bytes.data, bytes.size - 1);
    REFUSED(ESP_E_FORMAT, "model.safetensors", "truncated");
    free(bytes.data);
}

/* The prefix "model." can be missing from all names of tensors, but not from only some of them.
 */
TEST(a_prefix_that_only_some_names_lack_is_refused)
{
    folder_copy("llama-mha");
    struct folder_bytes bytes = folder_read(folder_file("model.safetensors"));
    char *header = calloc(1, folder_header_length(&bytes) + 1);
    memcpy(header, bytes.data + 8, folder_header_length(&bytes));
    char *name = strstr(header, "\"model.norm.weight");
    CHECK(name);
    memmove(name + 1, name + 7, strlen(name + 7) + 1);
    folder_write_tensors("model.safetensors", header, &bytes);
    REFUSED(ESP_E_FORMAT, "tensor model.norm.weight", "is missing");
    free(header);
    free(bytes.data);
}

TEST(shards_are_checked)
{
    const char *index = "model.safetensors.index.json";
    static const char *const escapes[] = {"\"../llama-mha/model.safetensors\"",
                                          "\"/etc/passwd\"",
                                          "\"..\"",
                                          "\"\"",
                                          "\".hidden\"",
                                          "\"a/b.safetensors\"",
                                          "12"};
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        folder_copy("llama-gqa");
        folder_edit(index, "weight_map", "lm_head.weight", escapes[i]);
        REFUSED(ESP_E_FORMAT, index, "lm_head.weight is not a plain file name");
    }
    folder_copy("llama-gqa");
    unlink(folder_file("model-00002-of-00003.safetensors"));
    REFUSED(ESP_E_FILE, "model-00002-of-00003.safetensors", "No such file");

    folder_copy("llama-gqa");
    struct folder_bytes bytes = folder_read(folder_file("model-00002-of-00003.safetensors"));
    folder_write("model-00002-of-00003.safetensors", bytes.data, bytes.size - 5);
    REFUSED(ESP_E_FORMAT, "model-00002-of-00003.safetensors", "truncated");
    folder_write("model-00003-of-00003.safetensors", bytes.data, bytes.size);
    folder_write("model-00002-of-00003.safetensors", bytes.data, bytes.size);
    REFUSED(ESP_E_FORMAT, "of-00003.safetensors", "twice");
    free(bytes.data);

    folder_copy("llama-gqa");
    folder_write_text(index, "{\"weight_map\": {}}");
    REFUSED(ESP_E_FORMAT, index, "weight_map");
    folder_write_text(index, "{\"weight_map\": [\"model-00001-of-00003.safetensors\"]}");
    REFUSED(ESP_E_FORMAT, index, "weight_map");
    folder_write_text(index, "{\"weight_map\": {\"x\": \"model-00001-of-00003.safetensors\"}}");
    REFUSED(ESP_E_FORMAT, folder_path(), "is missing");
}

/* Reads every byte of a tensor. */
static unsigned touch(const struct esp_tensor *tensor)
{
    unsigned sum = 0;
    const size_t size = (size_t)tensor->columns * (tensor->dtype == ESP_F32 ? 4 : 2);
    unsigned char *bytes = malloc(size);
    for (int r = 0; tensor->data && r < tensor->rows; r++) {
        esp_tensor_copy_rows(tensor, r, 1, bytes);
        for (size_t i = 0; i < size; i++)
            sum += bytes[i];
    }
    free(bytes);
    return sum;
}

/* After random damage to the header or to config.json, either the folder is refused with an
 * error message, or every tensor can be read. */
TEST(random_damage_never_crashes)
{
    unsigned long long state = 1;
    static const char *const files[] = {"model.safetensors", "config.json"};
    for (int f = 0; f < 2; f++) {
        folder_copy("neox-f16-tied");
        struct folder_bytes bytes = folder_read(folder_file(files[f]));
        size_t range = f == 0 ? 8 + folder_header_length(&bytes) : bytes.size;
        int opened = 0;
        for (int i = 0; i < 1000; i++) {
            struct folder_bytes bad = {malloc(bytes.size), bytes.size};
            memcpy(bad.data, bytes.data, bytes.size);
            int changes = 1 + (int)(3 * check_uniform(&state));
            for (int k = 0; k < changes; k++) {
                size_t at = (size_t)(check_uniform(&state) * (double)range);
                double kind = check_uniform(&state);
                bad.data[at] = kind < 0.5 ? (char)('0' + (int)(10 * check_uniform(&state)))
                                          : (char)(unsigned char)(256 * check_uniform(&state));
            }
            folder_write(files[f], bad.data, bad.size);
            free(bad.data);
            struct esp_model *model;
            *err = '\0';
            int status = esp_model_open(&model, folder_path(), err, sizeof err);
            CHECK((status < 0) == (*err != '\0') && (status < 0) == !model);
            if (status < 0)
                continue;
            opened++;
            const struct esp_layer *layer = &model->desc.layer[model->desc.layers - 1];
            CHECK(touch(&model->desc.embedding) + touch(&model->desc.head) +
                      touch(&layer->key) + touch(&layer->value_bias) + touch(&layer->down) >
                  0);
            CHECK(esp_stored_release(model->files, err, sizeof err) == 0, "%s", err);
            esp_model_close(model);
        }
        CHECK(opened > 0 && opened < 1000, "%d opened", opened);
        free(bytes.data);
    }
}
