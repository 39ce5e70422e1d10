#!/usr/bin/env python3
"""Makes tests/vectors/heads/eagle3-speculators* and speculators-mtp*: tiny random EAGLE-3 heads and
MTP layers in the form in which the library speculators saves them. This library also computes what
they draft. The EAGLE-3 heads and the MTP layer of Qwen3 are for the target
tests/vectors/heads/target, so run make_head_vectors.py first to make this target. The other MTP
layers are for the folders named below. An MTP layer reads the target's states after the final norm,
as in vLLM, which runs these layers. make_head_vectors.py describes the files. Needs torch,
transformers 5 and speculators. The results are in the repository.

    tests/vectors/make_speculators_vectors.py [NAME...]
"""
import json
import pathlib
import shutil
import sys

import torch
from safetensors.torch import load_file
from speculators.config import SpeculatorsConfig, VerifierConfig
from speculators.convert.mtp.converter import MTPConverter
from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
from speculators.models.mtp import MTPDraftModel, MTPSpeculatorConfig
from speculators.proposals.greedy import GreedyTokenProposalConfig
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, Qwen3Config

import make_head_vectors as heads

BASE = pathlib.Path(__file__).parent / "heads"


def about(algorithm, architecture):
    method = GreedyTokenProposalConfig(speculative_tokens=3)
    return SpeculatorsConfig(algorithm=algorithm, proposal_methods=[method],
                             default_proposal_method="greedy",
                             verifier=VerifierConfig(name_or_path=None, architectures=[architecture]))


def layer_config(layer, **changes):
    values = dict(vocab_size=heads.VOCABULARY, hidden_size=heads.HIDDEN, intermediate_size=heads.FFN,
                  num_hidden_layers=1, num_attention_heads=heads.HEADS,
                  num_key_value_heads=heads.KV_HEADS, head_dim=heads.HEAD_DIM,
                  rms_norm_eps=heads.EPSILON, max_position_embeddings=128)
    return layer(**{**values, **changes})


def new_model(inner, states, **changes):
    inner._attn_implementation = "eager"
    return Eagle3DraftModel(Eagle3SpeculatorConfig(
        transformer_layer_config=inner, draft_vocab_size=40, eagle_aux_hidden_state_layer_ids=states,
        speculators_config=about("eagle3", "LlamaForCausalLM"), **changes))


def fill(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            drawn = 2 * torch.rand(value.shape, generator=generator, dtype=torch.float64) - 1
            value.copy_(1 + 0.4 * drawn if value.dim() == 1 else 2 / value.shape[-1] ** 0.5 * drawn)
        if model.d2t is None:
            return
        chosen = torch.randperm(heads.VOCABULARY, generator=generator)[:40].sort().values
        model.d2t.copy_(chosen - torch.arange(40))
        model.t2d.zero_()[chosen] = True


def mask_of(seen, window=None):
    """Returns a mask with which row i attends to the rows seen[i]. With a window, row i attends only to the last
    `window` of these rows."""
    mask = torch.full((1, 1, len(seen), len(seen)), float("-inf"))
    for i, rows in enumerate(seen):
        mask[0, 0, i, rows[-window:] if window else rows] = 0
    return mask


def run_eagle3(model, tokens, inputs, positions, seen):
    """Returns the head's states and logits for all rows. The head reads the states again in its next step."""
    out = torch.cat((model.embed_tokens(torch.tensor([tokens])), inputs.unsqueeze(0)), dim=-1)
    turns = model.rotary_emb(out, torch.tensor([positions]))
    for i, layer in enumerate(model.layers):
        window = model.sliding_window if i in model.sliding_window_indices else None
        out = layer(out, attention_mask=mask_of(seen, window), position_embeddings=turns)
    normed = model.norm(out)
    return (normed if model.config.norm_output else out)[0], model.lm_head(normed)[0]


def combine(model, tokens, states):
    """Returns the input of the head's layers, which the library computes from the target's states. `states` are the
    concatenated states of three layers."""
    combined = []
    hook = model.fc.register_forward_hook(lambda module, inputs, output: combined.append(output[0]))
    model(states.unsqueeze(0), torch.tensor([tokens]), torch.zeros(1, len(tokens), dtype=torch.long),
          ttt_steps=1)
    hook.remove()
    return combined[0]


def run_mtp(model, tokens, inputs, positions, seen):
    turns = model.rotary_emb(inputs.unsqueeze(0), torch.tensor([positions]))
    out = model.mtp_layers[0](inputs.unsqueeze(0), model.embed_tokens(torch.tensor([tokens])),
                              attention_mask=mask_of(seen), position_embeddings=turns)[0]
    return out, model.lm_head(out)


def draft(run, model, tokens, features):
    """Returns the rows of drafts.f32. `features` are the target's states, which the head reads together with the tokens."""
    text, depth, above = len(tokens) - 1, [], []
    for i, (parent, _) in enumerate(heads.TREE):
        depth.append(1 if parent < 0 else depth[parent] + 1)
        above.append((above[parent] if parent >= 0 else []) + [text + i])
    every = tokens[1:] + [token for _, token in heads.TREE]
    positions = list(range(text)) + [text - 1 + d for d in depth]
    seen = [list(range(i + 1)) for i in range(text)] + [list(range(text)) + a for a in above]
    inputs = torch.cat((features[:text], torch.zeros(len(depth), heads.HIDDEN)))
    for level in range(max(depth) + 1):
        states, logits = run(model, every, inputs, positions, seen)
        for i, (parent, _) in enumerate(heads.TREE):
            inputs[text + i] = states[text + parent if parent >= 0 else text - 1]
    return torch.cat((states, logits), dim=1)


def save(model, folder):
    shutil.rmtree(folder, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    (folder / "config.py").unlink(missing_ok=True)  # a copy of the library's source


def write(folder, rows, **reference):
    (folder / "drafts.f32").write_bytes(rows.float().numpy().astype("<f4").tobytes())
    (folder / "reference.json").write_text(json.dumps(reference) + "\n")
    for path in folder.iterdir():
        path.chmod(0o644)
        print(path, path.stat().st_size)


def tokens_of(name):
    return json.loads((BASE / name / "reference.json").read_text())["tokens"]


def make_eagle3(name, seed, layer, states, inner={}, **changes):
    torch.set_default_dtype(torch.float32)
    model = new_model(layer_config(layer, **inner), states, **changes)
    fill(model, seed)
    save(model, BASE / name)
    model = new_model(layer_config(layer, **inner), states, **changes).double()
    torch.set_default_dtype(torch.float64)
    model.load_state_dict(load_file(BASE / name / "model.safetensors"), strict=False)
    tokens, target = tokens_of("eagle3"), heads.read(BASE / "target")
    layers = heads.run_target(target, tokens)
    features = torch.stack([torch.cat([layers[i][s] for i in states]) for s in range(len(tokens))])
    with torch.no_grad():
        rows = draft(run_eagle3, model, tokens, combine(model, tokens, features))
    write(BASE / name, rows, tokens=tokens, tree=heads.TREE, input=states)


def new_mtp(inner):
    inner._attn_implementation = "eager"
    return MTPDraftModel(MTPSpeculatorConfig(
        transformer_layer_config=inner, speculators_config=about("mtp", "Qwen3ForCausalLM")))


def make_mtp(name, seed, target, layer=None):
    """Makes a folder with an MTP layer. `layer` is the class of the layer's configuration, or None if the layer has the
    target's configuration. If the target has an MTP layer, the library converts it; otherwise the layer is random."""
    torch.set_default_dtype(torch.float32)

    def read_config():
        return layer_config(layer, num_hidden_layers=heads.LAYERS) if layer else \
            AutoConfig.from_pretrained(target).get_text_config()

    model = new_mtp(read_config())
    fill(model, seed)
    if target.parent == BASE and not layer:
        model.load_state_dict(MTPConverter().convert_to_state_dict(target), strict=False)
    save(model, BASE / name)
    model = new_mtp(read_config())
    model.load_state_dict(load_file(BASE / name / "model.safetensors"), strict=False)
    whole = AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32,
                                                 attn_implementation="eager").eval()
    tokens = tokens_of("eagle3")
    with torch.no_grad():
        model.embed_tokens.weight.copy_(whole.get_input_embeddings().weight)
        model.lm_head.weight.copy_(whole.lm_head.weight)
        states = whole.model(torch.tensor([tokens])).last_hidden_state[0]
        rows = draft(run_mtp, model, tokens, states)
    write(BASE / name, rows, tokens=tokens, tree=heads.TREE)


QWEN35, NEXT = BASE / "mtp-qwen3-5", BASE.parent / "logits" / "qwen3-next"
EAGLE3 = {
    "eagle3-speculators": (11, Qwen3Config, [1, 3, 6], {},
                           dict(norm_before_residual=True, norm_output=True)),
    "eagle3-speculators-llama": (12, LlamaConfig, [2, heads.LAYERS // 2, heads.LAYERS - 3], {}, {}),
    "eagle3-speculators-layers": (
        13, Qwen3Config, [0, 4, 5],
        dict(num_hidden_layers=3, use_sliding_window=True, sliding_window=5,
             layer_types=["sliding_attention", "full_attention", "sliding_attention"]), {}),
    "eagle3-speculators-norm-before-fc": (17, Qwen3Config, [2, 3, 4], {}, dict(norm_before_fc=True)),
    "eagle3-speculators-fc-norm": (18, LlamaConfig, [1, 4, 6], {},
                                   dict(fc_norm=True, norm_output=True)),
}
MTP = {
    "speculators-mtp": (14, BASE / "target", Qwen3Config),
    "speculators-mtp-qwen3-5": (15, QWEN35),
    "speculators-mtp-qwen3-next": (16, NEXT),
}
for name, (seed, layer, states, inner, changes) in EAGLE3.items():
    if not sys.argv[1:] or name in sys.argv[1:]:
        make_eagle3(name, seed, layer, states, inner, **changes)
for name, settings in MTP.items():
    if not sys.argv[1:] or name in sys.argv[1:]:
        make_mtp(name, *settings)
