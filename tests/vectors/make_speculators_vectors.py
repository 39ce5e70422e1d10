#!/usr/bin/env python3
"""Makes tests/vectors/heads/eagle3-speculators and eagle3-speculators-llama: tiny random EAGLE-3
heads as the library speculators saves them, for the target that make_head_vectors.py makes there
first, and what they draft according to that library. The files are those that
make_head_vectors.py describes. Needs torch, transformers 5 and speculators; the results are
committed.
"""
import json
import pathlib

import torch
from safetensors.torch import load_file
from speculators.config import SpeculatorsConfig, VerifierConfig
from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
from speculators.proposals.greedy import GreedyTokenProposalConfig
from transformers import LlamaConfig, Qwen3Config

import make_head_vectors as heads

BASE = pathlib.Path(__file__).parent / "heads"


def new_model(layer, states, **changes):
    values = dict(vocab_size=heads.VOCABULARY, hidden_size=heads.HIDDEN, intermediate_size=heads.FFN,
                  num_hidden_layers=1, num_attention_heads=heads.HEADS,
                  num_key_value_heads=heads.KV_HEADS, head_dim=heads.HEAD_DIM,
                  rms_norm_eps=heads.EPSILON, max_position_embeddings=128)
    inner = layer(**values)
    inner._attn_implementation = "eager"
    method = GreedyTokenProposalConfig(speculative_tokens=3)
    config = Eagle3SpeculatorConfig(
        transformer_layer_config=inner, draft_vocab_size=40, eagle_aux_hidden_state_layer_ids=states,
        speculators_config=SpeculatorsConfig(
            algorithm="eagle3", proposal_methods=[method], default_proposal_method="greedy",
            verifier=VerifierConfig(name_or_path=None, architectures=["LlamaForCausalLM"])),
        **changes)
    return Eagle3DraftModel(config)


def fill(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            drawn = 2 * torch.rand(value.shape, generator=generator, dtype=torch.float64) - 1
            value.copy_(1 + 0.4 * drawn if value.dim() == 1 else 2 / value.shape[-1] ** 0.5 * drawn)
        chosen = torch.randperm(heads.VOCABULARY, generator=generator)[:40].sort().values
        model.d2t.copy_(chosen - torch.arange(40))
        model.t2d.zero_()[chosen] = True


def run(model, tokens, inputs, positions, seen):
    """The states that the head feeds back, and its logits, of all rows. seen[i]: the rows that row i
    attends to."""
    rows = len(tokens)
    mask = torch.full((1, 1, rows, rows), float("-inf"))
    for i in range(rows):
        mask[0, 0, i, seen[i]] = 0
    read = torch.cat((model.embed_tokens(torch.tensor([tokens])), inputs.unsqueeze(0)), dim=-1)
    turns = model.rotary_emb(read, torch.tensor([positions]))
    out = model.layers[0](read, attention_mask=mask, position_embeddings=turns)
    normed = model.norm(out)
    return (normed if model.config.norm_output else out)[0], model.lm_head(normed)[0]


def draft(model, tokens, features):
    """The rows of drafts.f32."""
    text, depth, above = len(tokens) - 1, [], []
    for i, (parent, _) in enumerate(heads.TREE):
        depth.append(1 if parent < 0 else depth[parent] + 1)
        above.append((above[parent] if parent >= 0 else []) + [text + i])
    every = tokens[1:] + [token for _, token in heads.TREE]
    positions = list(range(text)) + [text - 1 + d for d in depth]
    seen = [list(range(i + 1)) for i in range(text)] + [list(range(text)) + a for a in above]
    inputs = torch.cat((model.fc(features[:text]), torch.zeros(len(depth), heads.HIDDEN)))
    for level in range(max(depth) + 1):
        states, logits = run(model, every, inputs, positions, seen)
        for i, (parent, _) in enumerate(heads.TREE):
            inputs[text + i] = states[text + parent if parent >= 0 else text - 1]
    return torch.cat((states, logits), dim=1)


def make(name, seed, layer, states, **changes):
    torch.set_default_dtype(torch.float32)
    model = new_model(layer, states, **changes)
    fill(model, seed)
    model.to(torch.bfloat16).save_pretrained(BASE / name)
    (BASE / name / "config.py").unlink(missing_ok=True)  # a part of the library
    model = new_model(layer, states, **changes).double()
    torch.set_default_dtype(torch.float64)
    model.load_state_dict(load_file(BASE / name / "model.safetensors"), strict=False)
    reference = json.loads((BASE / "eagle3" / "reference.json").read_text())
    tokens, target = reference["tokens"], heads.read(BASE / "target")
    layers = heads.run_target(target, tokens)
    features = torch.stack([torch.cat([layers[i][s] for i in states]) for s in range(len(tokens))])
    with torch.no_grad():
        rows = draft(model, tokens, features)
    (BASE / name / "drafts.f32").write_bytes(rows.float().numpy().astype("<f4").tobytes())
    (BASE / name / "reference.json").write_text(
        json.dumps(dict(tokens=tokens, tree=heads.TREE, input=states)) + "\n")
    for path in (BASE / name).iterdir():
        path.chmod(0o644)
        print(path, path.stat().st_size)


make("eagle3-speculators", 11, Qwen3Config, [1, 3, 6], norm_before_residual=True, norm_output=True)
make("eagle3-speculators-llama", 12, LlamaConfig, [2, heads.LAYERS // 2, heads.LAYERS - 3])
