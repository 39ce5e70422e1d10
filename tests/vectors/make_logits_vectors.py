#!/usr/bin/env python3
"""Makes tests/vectors/logits: tiny random model folders, and their logits from the Hugging Face library.

Each folder has the files that save_pretrained writes: config.json, and the weights in one file or in
shards. In some folders, the configuration is rewritten in the form that older releases used. Each
folder also has

    reference.json   tokens: the sequence; greedy: the tokens of greedy decoding after it;
                     inverse_frequency: the inverse frequencies of the rotary embedding
    logits.f32       (tokens, vocabulary) little-endian float32

The reference is computed in float32 from the files. BF16 and F16 weights are widened first, so the
rounding of stored numbers does not affect the comparison. If arguments name folders, only these
folders are made. The random weights, norms and biases are so large that a wrong head, bias, rotation
or residual changes the logits by far more than the tolerance of the test. Needs torch and
transformers 5. The results are in the repository.
"""
import json
import pathlib
import shutil
import sys

import safetensors.torch
import torch
from transformers import (AutoModelForCausalLM, AutoModelForImageTextToText, Gemma2Config,
                          Gemma3Config, Gemma3TextConfig, GPT2Config,
                          GPTNeoXConfig, GptOssConfig, GraniteConfig, GraniteMoeHybridConfig, Lfm2Config, Lfm2MoeConfig, LlamaConfig, LlavaConfig,
                          NemotronHConfig,                           Mistral3Config, MistralConfig, Olmo2Config, Phi3Config, Qwen2Config,
                          Qwen3_5Config, Qwen3_5MoeTextConfig, Qwen3_5TextConfig, Qwen3Config, Qwen3MoeConfig,
                          Qwen3NextConfig, SmolLM3Config)
from transformers.utils import logging

TOKENS, GREEDY = 24, 48
RECURRENT_TOKENS = 40  # models with recurrent layers get a longer text, because their states depend on the whole text


def llama(cls=LlamaConfig, **changes):
    values = dict(vocab_size=97, hidden_size=32, intermediate_size=24, num_hidden_layers=2,
                  num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=256,
                  rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False)
    values.update(changes)
    return cls(**values)


def neox(parallel, rotary, **changes):
    values = dict(vocab_size=103, hidden_size=32, intermediate_size=24, num_hidden_layers=2,
                  num_attention_heads=4, max_position_embeddings=256, layer_norm_eps=1e-5,
                  bos_token_id=0, eos_token_id=[0, 5], use_parallel_residual=parallel,
                  rope_parameters=dict(rope_type="default", rope_theta=10000.0,
                                       partial_rotary_factor=rotary))
    values.update(changes)
    return GPTNeoXConfig(**values)


LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=32)


YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0,
            original_max_position_embeddings=64)
# The 8 frequencies of a head of width 16 are divided by these factors: SHORT in short contexts, LONG in long contexts.
SHORT = [1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 1.8, 2.0]
LONG = [1.0, 1.2, 1.9, 3.0, 5.5, 8.0, 13.0, 16.0]


def longrope(original):
    return dict(rope_type="longrope", rope_theta=10000.0, short_factor=SHORT, long_factor=LONG,
                original_max_position_embeddings=original)


def gpt2(**changes):
    values = dict(vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=256,
                  bos_token_id=1, eos_token_id=2)
    values.update(changes)
    return GPT2Config(**values)


def with_pictures(cls, text, **changes):
    """Returns the configuration of a model that reads text and pictures. The logits are computed for a text without
    pictures."""
    vision = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
                  image_size=28, patch_size=14, head_dim=8)
    kind = {Gemma3Config: "siglip_vision_model", LlavaConfig: "clip_vision_model"}.get(cls, "pixtral")
    return cls(text_config=text, vision_config=dict(vision, model_type=kind),
               vocab_size=text.vocab_size, image_token_index=3, image_token_id=3, **changes)


def older_gemma3(config):
    """Rewrites the configuration in the form of the published Gemma 3 models."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope["full_attention"]["rope_theta"]
    config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
    config["rope_scaling"] = dict(rope_type="linear", factor=rope["full_attention"]["factor"])
    config["sliding_window_pattern"] = 6
    del config["layer_types"]


def older_phi3(config):
    """Rewrites the configuration in the form of the published Phi-3 models, in which
    original_max_position_embeddings is not in rope_scaling."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["original_max_position_embeddings"] = rope.pop("original_max_position_embeddings")
    rope.pop("partial_rotary_factor", None)
    rope["type"] = rope.pop("rope_type")
    config["rope_scaling"] = rope


def older_llama(config):
    """Puts rope_theta and rope_scaling at the top level, as before transformers 5."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None


def older_qwen3_moe(config):
    """Rewrites the configuration in the form of the published Qwen3 MoE models."""
    older_llama(config)
    config["num_experts"] = config.pop("num_local_experts")


MXFP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def to_mxfp4(weight):
    """Quantises a matrix (..., columns, rows) as in the published gpt-oss models. Returns the blocks, the
    scales, and the matrix of the quantised values."""
    rows = weight.transpose(-1, -2).float()
    parts = rows.reshape(*rows.shape[:-1], -1, 32)
    exponent = parts.abs().amax(-1, keepdim=True).log2().floor() - 2
    codes = (parts / 2 ** exponent).unsqueeze(-1).sub(MXFP4).abs().argmin(-1).to(torch.uint8)
    blocks = codes[..., ::2] | codes[..., 1::2] << 4
    known = (MXFP4[codes.long()] * 2 ** exponent).reshape(rows.shape).transpose(-1, -2)
    return blocks, (exponent.squeeze(-1) + 127).to(torch.uint8), known


def store_mxfp4(folder):
    """Rounds the experts of a folder to MXFP4, the format of the published gpt-oss models. The reference is
    computed from the rounded values."""
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    published = {}
    for name, value in list(tensors.items()):
        if name.endswith("_proj") and ".experts." in name:
            blocks, scales, known = to_mxfp4(value)
            tensors[name] = known.to(value.dtype).contiguous()
            published[name + "_blocks"], published[name + "_scales"] = blocks, scales
        else:
            published[name] = value
    safetensors.torch.save_file(tensors, path, {"format": "pt"})
    return published


def publish_mxfp4(folder, published):
    safetensors.torch.save_file({name: value.contiguous() for name, value in published.items()},
                                folder / "model.safetensors", {"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    path = folder / "config.json"
    values = json.loads(path.read_text())
    values["quantization_config"] = dict(
        quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn",
                                                      "model.layers.*.mlp.router",
                                                      "model.embed_tokens", "lm_head"])
    path.write_text(json.dumps(values, indent=2) + "\n")


def older_gpt_oss(config):
    """Rewrites the configuration in the form of the published gpt-oss models."""
    older_llama(config)
    config["experts_per_token"] = config["num_experts_per_tok"]
    config["swiglu_limit"] = 7.0
    del config["swiglu_alpha"]


def lfm2(cls=Lfm2Config, **changes):
    values = dict(vocab_size=97, hidden_size=32, intermediate_size=36, num_hidden_layers=5,
                  num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
                  block_multiple_of=8, bos_token_id=1, eos_token_id=2,
                  layer_types=["conv", "full_attention", "conv", "conv", "full_attention"])
    values.update(changes)
    return cls(**values)


def older_lfm2(config):
    """Rewrites the configuration in the form of the published LFM2 models."""
    older_llama(config)
    config["full_attn_idxs"] = [i for i, kind in enumerate(config.pop("layer_types"))
                                if kind == "full_attention"]
    config["block_ff_dim"] = config.pop("intermediate_size")
    config["tie_embedding"] = config.pop("tie_word_embeddings")


def qwen3_5(cls=Qwen3_5TextConfig, **changes):
    values = dict(vocab_size=97, hidden_size=32, intermediate_size=24, num_hidden_layers=4,
                  num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                  max_position_embeddings=256, linear_num_key_heads=2, linear_num_value_heads=4,
                  linear_key_head_dim=16, linear_value_head_dim=16, bos_token_id=1, eos_token_id=2)
    values.update(changes)
    return cls(**values)


def granite_hybrid(**changes):
    values = dict(
        num_hidden_layers=3, num_key_value_heads=2, intermediate_size=20, shared_intermediate_size=28,
        num_local_experts=0, mamba_n_heads=4, mamba_d_head=16, mamba_d_state=12, mamba_n_groups=2,
        position_embedding_type="nope", embedding_multiplier=3.0, residual_multiplier=0.5,
        attention_multiplier=0.2, logits_scaling=2.0, tie_word_embeddings=True,
        layer_types=["linear_attention", "full_attention", "linear_attention"])
    values.update(changes)
    return llama(GraniteMoeHybridConfig, **values)


def nemotron_h(kinds, **changes):
    names = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
    values = dict(intermediate_size=20, num_key_value_heads=2, head_dim=8, layer_norm_epsilon=1e-5,
                  mamba_num_heads=4, mamba_head_dim=16, ssm_state_size=12, n_groups=2,
                  layers_block_type=[names[kind] for kind in kinds])
    values.update(changes)
    return llama(NemotronHConfig, **values)


def older_nemotron_h(config):
    """Rewrites the configuration in the form of the published Nemotron-H models."""
    letters = {"linear_attention": "M", "full_attention": "*", "mlp": "-", "moe": "E"}
    kinds = config.pop("layers_block_type")
    config["hybrid_override_pattern"] = "".join(letters[kind] for kind in kinds)
    config["num_hidden_layers"] = len(kinds)
    config["time_step_limit"] = [0.0, float("inf")]
    if "E" in config["hybrid_override_pattern"]:
        del config["time_step_limit"]
        return
    for key in [key for key in config if "expert" in key or key.startswith("moe_")]:
        del config[key]


def older_granite_hybrid(config):
    """Rewrites the configuration in the form of the published Granite 4.0-H models."""
    older_llama(config)
    config["layer_types"] = ["mamba" if kind == "linear_attention" else "attention"
                             for kind in config["layer_types"]]
    del config["time_step_limit"]


def fused_experts(folder):
    """Joins the tensors of all experts of a layer, as in the published Qwen3.5 MoE models: a layer then has one tensor
    for the gate and up matrices, and one for the down matrices."""
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    layers = sorted({name.split(".mlp.experts.")[0] for name in tensors if ".mlp.experts." in name})
    for layer in layers:
        own = {name: tensors.pop(name) for name in list(tensors)
               if name.startswith(layer + ".mlp.experts.")}
        count = 1 + max(int(name.split(".mlp.experts.")[1].split(".")[0]) for name in own)
        part = lambda kind: [own[f"{layer}.mlp.experts.{i}.{kind}_proj.weight"] for i in range(count)]
        tensors[f"{layer}.mlp.experts.gate_up_proj"] = torch.stack(
            [torch.cat(pair) for pair in zip(part("gate"), part("up"))])
        tensors[f"{layer}.mlp.experts.down_proj"] = torch.stack(part("down"))
    safetensors.torch.save_file(tensors, path, {"format": "pt"})


def without_layer_kinds(config):
    """Rewrites the configuration in the form of the published Qwen3.5 models: every fourth layer has full attention."""
    del config["layer_types"]
    config["full_attention_interval"] = 4


def older_neox(config):
    rope = config.pop("rope_parameters")
    config["rotary_emb_base"] = rope["rope_theta"]
    config["rotary_pct"] = rope["partial_rotary_factor"]
    config["rope_scaling"] = None


def without_sizes(config):
    """Removes head_dim and num_key_value_heads. espalier must then derive them from other values."""
    older_llama(config)
    del config["head_dim"], config["num_key_value_heads"]


def type_for_rope_type(config):
    older_llama(config)
    config["rope_scaling"]["type"] = config["rope_scaling"].pop("rope_type")


def window_not_used(config):
    """Rewrites the configuration in the form of the published Qwen 2.5 models, which name a window but do not use it."""
    older_llama(config)
    config["sliding_window"] = 16


def without_layer_types(config):
    """Rewrites the configuration in the form that transformers wrote before release 4.53."""
    del config["layer_types"]


def without_layer_lists(config):
    del config["layer_types"], config["no_rope_layers"]


# For each folder: configuration, storage type, size of the largest shard in bytes or None, function that changes config.json
FOLDERS = {
    "llama-mha": (llama(), torch.float32, None, without_sizes),
    "llama-gqa": (llama(num_key_value_heads=2), torch.float32, 30000, older_llama),
    "llama-mqa-tied": (llama(hidden_size=36, num_attention_heads=6,
                             num_key_value_heads=1, tie_word_embeddings=True),
                       torch.float32, None, None),
    "llama-bias": (llama(attention_bias=True, mlp_bias=True, num_key_value_heads=2),
                   torch.float32, None, None),
    "llama-head-dim": (llama(head_dim=12, num_key_value_heads=1), torch.float32,
                       None, None),
    "llama-rope3": (llama(num_attention_heads=2, num_key_value_heads=1, rope_parameters=LLAMA3),
                    torch.float32, None, None),
    "llama-rope3-f16": (llama(num_attention_heads=2, num_key_value_heads=2, num_hidden_layers=3,
                              rope_parameters=dict(LLAMA3, rope_theta=500000.0)),
                        torch.float16, None, older_llama),
    "llama-bf16": (llama(num_key_value_heads=2, num_hidden_layers=3), torch.bfloat16, 30000,
                   None),
    "neox-parallel": (neox(True, 0.25, num_attention_heads=2), torch.float32, None, older_neox),
    "neox-sequential": (neox(False, 1.0), torch.float32, None, None),
    "neox-bf16": (neox(True, 0.5, num_hidden_layers=3), torch.bfloat16, None, None),
    "neox-f16-tied": (neox(False, 0.25, num_attention_heads=2, tie_word_embeddings=True,
                           attention_bias=False),
                      torch.float16, None, older_neox),
    "llama-linear": (llama(rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0)),
                     torch.float32, None, type_for_rope_type),
    "mistral": (llama(MistralConfig, head_dim=12, num_key_value_heads=2, sliding_window=200,
                      rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=2.0)),
                torch.float32, None, None),
    "qwen2": (llama(Qwen2Config, num_key_value_heads=2, tie_word_embeddings=True),
              torch.bfloat16, None, window_not_used),
    "qwen3": (llama(Qwen3Config, num_key_value_heads=2, head_dim=12, tie_word_embeddings=True),
              torch.bfloat16, None, window_not_used),
    "mistral-window": (llama(MistralConfig, num_key_value_heads=2, sliding_window=7),
                       torch.float32, None, older_llama),
    "qwen2-window": (llama(Qwen2Config, num_key_value_heads=1, sliding_window=5,
                           use_sliding_window=True, max_window_layers=1),
                     torch.float32, None, without_layer_types),
    "qwen3-window": (llama(Qwen3Config, num_key_value_heads=4, sliding_window=6, head_dim=8,
                           use_sliding_window=True,
                           layer_types=["sliding_attention", "full_attention"]),
                     torch.float32, None, None),
    "llama-yarn": (llama(head_dim=16, num_attention_heads=2, num_key_value_heads=1,
                         rope_parameters=YARN),
                   torch.float32, None, older_llama),
    "qwen3-yarn": (llama(Qwen3Config, num_attention_heads=2, num_key_value_heads=1, head_dim=16,
                         rope_parameters=dict(YARN, mscale=0.7, mscale_all_dim=1.1, beta_fast=4,
                                              truncate=False)),
                   torch.float32, None, None),
    "gemma2": (llama(Gemma2Config, num_key_value_heads=2, head_dim=12, sliding_window=7,
                     query_pre_attn_scalar=12, final_logit_softcapping=3.0,
                     attn_logit_softcapping=2.0, tie_word_embeddings=True),
               torch.float32, None, older_llama),
    "gemma3": (llama(Gemma3TextConfig, num_hidden_layers=6, num_key_value_heads=1, head_dim=12,
                     sliding_window=6, query_pre_attn_scalar=12, tie_word_embeddings=True,
                     rope_parameters=dict(
                         full_attention=dict(rope_type="linear", rope_theta=1e5, factor=4.0),
                         sliding_attention=dict(rope_type="default", rope_theta=1e4))),
               torch.bfloat16, None, older_gemma3),
    "gemma3-layers": (llama(Gemma3TextConfig, num_key_value_heads=2, head_dim=8,
                            sliding_window=5, query_pre_attn_scalar=20, tie_word_embeddings=True,
                            layer_types=["full_attention", "sliding_attention"]),
                      torch.float32, None, None),
    "phi3-short": (llama(Phi3Config, num_attention_heads=2, num_key_value_heads=1,
                         sliding_window=9, rope_parameters=longrope(128),
                         original_max_position_embeddings=128, pad_token_id=0),
                   torch.float32, None, None),
    "phi3-long": (llama(Phi3Config, num_attention_heads=2, num_key_value_heads=2,
                        rope_parameters=longrope(16),
                        original_max_position_embeddings=16, pad_token_id=0),
                  torch.float32, None, older_phi3),
    "phi3-partial": (llama(Phi3Config, num_key_value_heads=2, tie_word_embeddings=True,
                           rope_parameters=dict(rope_type="default", rope_theta=10000.0,
                                                partial_rotary_factor=0.75),
                           pad_token_id=0),
                     torch.bfloat16, None, None),
    "olmo2": (llama(Olmo2Config, num_key_value_heads=2, num_hidden_layers=2), torch.float32,
              None, None),
    "smollm3": (llama(SmolLM3Config, num_hidden_layers=4, num_key_value_heads=2,
                      tie_word_embeddings=True, pad_token_id=0),
                torch.bfloat16, None, without_layer_lists),
    "smollm3-window": (llama(SmolLM3Config, num_hidden_layers=3, num_key_value_heads=1,
                             no_rope_layers=[0, 1, 0], use_sliding_window=True, sliding_window=6,
                             pad_token_id=0),
                       torch.float32, None, without_layer_types),
    "gpt2": (gpt2(), torch.float32, None, None),
    "gpt2-f16": (gpt2(n_inner=40, n_layer=1, n_head=1), torch.float16, None, None),
    "granite": (llama(GraniteConfig, num_key_value_heads=2, embedding_multiplier=3.0,
                      residual_multiplier=0.5, attention_multiplier=0.2, logits_scaling=2.0,
                      tie_word_embeddings=True),
                torch.float32, None, None),
    "qwen3-moe": (llama(Qwen3MoeConfig, num_key_value_heads=2, head_dim=12, num_experts=5,
                        num_experts_per_tok=2, moe_intermediate_size=20, norm_topk_prob=True),
                  torch.bfloat16, None, None),
    "qwen3-moe-some": (llama(Qwen3MoeConfig, num_hidden_layers=4, num_key_value_heads=1,
                             head_dim=8, num_experts=4, num_experts_per_tok=3,
                             moe_intermediate_size=28, decoder_sparse_step=2,
                             mlp_only_layers=[3]),
                       torch.float32, None, older_qwen3_moe),
    "gpt-oss": (llama(GptOssConfig, num_key_value_heads=2, head_dim=16, intermediate_size=32,
                      num_local_experts=5, num_experts_per_tok=2, sliding_window=7,
                      rope_parameters=dict(YARN, beta_fast=4, truncate=False)),
                torch.bfloat16, None, older_gpt_oss),
    "gpt-oss-floats": (llama(GptOssConfig, num_hidden_layers=3, num_key_value_heads=1, head_dim=8,
                             num_local_experts=3, num_experts_per_tok=3, sliding_window=5,
                             swiglu_limit=0.6, swiglu_alpha=1.2,
                             layer_types=["full_attention", "sliding_attention",
                                          "full_attention"],
                             rope_parameters=dict(rope_type="default", rope_theta=10000.0)),
                       torch.float32, None, None),
    "gemma3-pictures": (with_pictures(Gemma3Config, llama(
        Gemma3TextConfig, num_key_value_heads=2, head_dim=8, sliding_window=5,
        query_pre_attn_scalar=20, tie_word_embeddings=True), mm_tokens_per_image=1),
                        torch.bfloat16, None, None),
    "mistral3-pictures": (with_pictures(Mistral3Config, llama(
        MistralConfig, num_key_value_heads=2, sliding_window=None)),
                          torch.bfloat16, None, None),
    "llava-pictures": (with_pictures(LlavaConfig, llama(LlamaConfig, num_key_value_heads=2)),
                       torch.float16, None, None),
    "lfm2": (lfm2(), torch.bfloat16, None, older_lfm2),
    "lfm2-bias": (lfm2(conv_bias=True, conv_L_cache=4, block_auto_adjust_ff_dim=False,
                       tie_word_embeddings=False, hidden_size=40, num_hidden_layers=3,
                       layer_types=["full_attention", "conv", "conv"]),
                  torch.bfloat16, None, None),
    "qwen3-5": (qwen3_5(), torch.float32, None, without_layer_kinds),
    "qwen3-5-tied": (qwen3_5(num_hidden_layers=3, linear_num_key_heads=3, linear_num_value_heads=3,
                             linear_key_head_dim=12, linear_value_head_dim=32,
                             linear_conv_kernel_dim=3, tie_word_embeddings=True,
                             layer_types=["linear_attention", "full_attention",
                                          "linear_attention"]),
                     torch.bfloat16, None, None),
    "qwen3-5-pictures": (Qwen3_5Config(
        text_config=qwen3_5(num_hidden_layers=2, hidden_size=24, full_attention_interval=2),
        vision_config=dict(depth=1, hidden_size=16, intermediate_size=8, num_heads=1, patch_size=4,
                           out_hidden_size=24, num_position_embeddings=16),
        tie_word_embeddings=False), torch.bfloat16, None, None),
    "qwen3-5-moe": (qwen3_5(Qwen3_5MoeTextConfig, num_hidden_layers=2, num_experts=5,
                            num_experts_per_tok=2, moe_intermediate_size=20,
                            shared_expert_intermediate_size=28, full_attention_interval=2),
                    torch.bfloat16, None, None),
    "qwen3-5-moe-fused": (qwen3_5(Qwen3_5MoeTextConfig, num_hidden_layers=2, num_experts=4,
                                  num_experts_per_tok=3, moe_intermediate_size=12,
                                  shared_expert_intermediate_size=20,
                                  layer_types=["linear_attention", "full_attention"]),
                          torch.bfloat16, None, None),
    "granite-hybrid": (granite_hybrid(), torch.float32, None, older_granite_hybrid),
    "granite-hybrid-moe": (granite_hybrid(num_local_experts=5, num_experts_per_tok=2,
                                          mamba_n_heads=2, mamba_d_head=32, mamba_n_groups=1,
                                          mamba_conv_bias=False),
                           torch.bfloat16, None, None),
    "qwen3-next": (qwen3_5(Qwen3NextConfig, num_hidden_layers=3, num_experts=5,
                           num_experts_per_tok=2, moe_intermediate_size=20,
                           shared_expert_intermediate_size=28, linear_key_head_dim=12,
                           layer_types=["linear_attention", "full_attention",
                                        "linear_attention"]),
                   torch.bfloat16, None, None),
    "nemotron-h": (nemotron_h("M-*M-"), torch.bfloat16, None, older_nemotron_h),
    "lfm2-moe": (lfm2(Lfm2MoeConfig, num_hidden_layers=3, num_dense_layers=1, num_experts=5,
                      num_experts_per_tok=2, moe_intermediate_size=20, routed_scaling_factor=1.5,
                      layer_types=["conv", "full_attention", "conv"]),
                 torch.bfloat16, None, None),
    "nemotron-h-ends": (nemotron_h("-M*", use_conv_bias=False, n_groups=1), torch.bfloat16, None, None),
    "nemotron-h-moe": (nemotron_h("ME*EM", n_routed_experts=5, num_experts_per_tok=2,
                                  moe_intermediate_size=20, moe_shared_expert_intermediate_size=28,
                                  routed_scaling_factor=2.5),
                       torch.bfloat16, None, older_nemotron_h),
}


# In these folders, two tensors of a layer contain all its experts.
FUSED = ["qwen3-5-moe-fused"]
# In these folders, the experts are rounded to MXFP4.
PUBLISHED = ["gpt-oss"]


def greedy(model, tokens):
    """Returns the next GREEDY tokens of greedy decoding. Each token is computed without a cache."""
    for _ in range(GREEDY):
        with torch.no_grad():
            tokens = torch.cat([tokens, model(tokens).logits[:, -1:].argmax(-1)], dim=1)
    return tokens[0, -GREEDY:].tolist()


def check_steps(model, tokens, logits):
    """Checks that the model gives the same logits token by token, with the library's cache."""
    cache, rows = None, []
    for token in tokens:
        with torch.no_grad():
            out = model(token.reshape(1, 1), past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        rows.append(out.logits[0, 0])
    error = (torch.stack(rows) - logits).norm() / logits.norm()
    assert error < 1e-4, f"token by token: {error}"
    print(f"token by token: relative distance {error:.1e} from one call")


def make(folder, seed, config, dtype, shard, change):
    torch.manual_seed(seed)
    text = getattr(config, "text_config", config)
    kind = AutoModelForCausalLM if text is config else AutoModelForImageTextToText
    model = kind.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, value in model.named_parameters():
            center = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            if name.endswith("A_log"):  # small values make the state decay slowly
                value.copy_(torch.randn_like(value) - 3)
                continue
            value.copy_(center + 0.3 * torch.randn_like(value))
        for name, value in model.named_buffers():
            if name.endswith(("expert_bias", "correction_bias")):
                value.copy_(0.3 * torch.randn_like(value))
    model.to(dtype).save_pretrained(folder, **({"max_shard_size": shard} if shard else {}))
    for path in folder.iterdir():
        path.chmod(0o644)
    if change:
        path = folder / "config.json"
        values = json.loads(path.read_text())
        change(values)
        path.write_text(json.dumps(values, indent=2) + "\n")
    if folder.name in FUSED:
        fused_experts(folder)
    published = store_mxfp4(folder) if folder.name in PUBLISHED else None

    model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    recurrent = set(getattr(text, "layer_types", None) or []) & {"conv", "linear_attention", "mamba"}
    tokens = torch.randint(0, text.vocab_size, (1, RECURRENT_TOKENS if recurrent else TOKENS))
    with torch.no_grad():
        logits = model(tokens).logits[0]
    assert logits.abs().mean() > 0.3, f"{folder.name}: logits too small to show a mistake"
    (folder / "logits.f32").write_bytes(logits.numpy().astype("<f4").tobytes())
    if recurrent:
        check_steps(model, tokens[0], logits)
    reference = {"tokens": tokens[0].tolist(), "greedy": greedy(model, tokens)}
    rotary = getattr(model.base_model, "rotary_emb", None)
    for name in ("inv_freq", "full_attention_inv_freq"):
        if hasattr(rotary, name):
            reference["inverse_frequency"] = getattr(rotary, name).double().tolist()
    (folder / "reference.json").write_text(json.dumps(reference) + "\n")
    if published:
        publish_mxfp4(folder, published)
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{folder.name:16} {size} bytes, logits {logits.mean():.2f} +- {logits.std():.2f}")


def main():
    logging.disable_progress_bar()
    root = pathlib.Path(__file__).parent / "logits"
    for seed, (name, settings) in enumerate(FOLDERS.items()):
        if not sys.argv[1:] or name in sys.argv[1:]:
            shutil.rmtree(root / name, ignore_errors=True)
            make(root / name, seed, *settings)
    total = sum(path.stat().st_size for path in root.glob("*/*"))
    print(f"{total} bytes in {len(FOLDERS)} folders")
    return total > 4_900_000


if __name__ == "__main__":
    sys.exit(main())
