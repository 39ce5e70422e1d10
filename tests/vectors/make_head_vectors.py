#!/usr/bin/env python3
"""Makes tests/vectors/heads: a tiny random target, draft heads for this target, and the drafts that
this script computes with the heads. The heads have the forms that the authors of EAGLE publish.

The folder `target` is a Llama model. Each other folder is a head with config.json, model.safetensors and

    reference.json   tokens: a text; tree: [parent, token] of each node after the text (parent -1 means
                     the last token of the text); input: the states of the target that the head reads
    drafts.f32       little-endian float32: a row for each token of the text except the first, then
                     a row for each node. A row has the drafted hidden state, then the logits

The script reads the weights from the files and widens them, so the rounding of stored numbers does
not affect the comparison. It follows the description in engine/model/README.md, and computes one token
at a time in float64. Needs torch and safetensors. The results are in the repository.
"""
import json
import math
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file

VOCABULARY, HIDDEN, FFN, HEADS, KV_HEADS, HEAD_DIM, EPSILON, THETA = 97, 32, 24, 4, 2, 8, 1e-5, 1e4
LAYERS, TEXT = 7, 20
TREE = [[-1, 5], [-1, 40], [0, 8], [0, 91], [2, 3], [1, 17], [4, 66]]

torch.set_default_dtype(torch.float64)


def config(**changes):
    values = dict(architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=VOCABULARY,
                  hidden_size=HIDDEN, intermediate_size=FFN, num_hidden_layers=1,
                  num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, head_dim=HEAD_DIM,
                  hidden_act="silu", max_position_embeddings=128, rms_norm_eps=EPSILON,
                  rope_theta=THETA, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2)
    values.update(changes)
    return values


class Maker:
    """Makes the random tensors of one folder, which are stored as `dtype`."""

    def __init__(self, seed, dtype):
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype, self.tensors = dtype, {}

    def random(self, name, *shape, middle=0.0, spread=None):
        spread = 2 / math.sqrt(shape[-1]) if spread is None else spread
        values = middle + spread * (2 * torch.rand(shape, generator=self.generator) - 1)
        self.tensors[name] = values.to(self.dtype)

    def norm(self, name, width):
        self.random(name, width, middle=1.0, spread=0.4)

    def layer(self, prefix, width, read, input_norm):
        if input_norm:
            self.norm(prefix + "input_layernorm.weight", width)
        self.random(prefix + "self_attn.q_proj.weight", HEADS * HEAD_DIM, read)
        self.random(prefix + "self_attn.k_proj.weight", KV_HEADS * HEAD_DIM, read)
        self.random(prefix + "self_attn.v_proj.weight", KV_HEADS * HEAD_DIM, read)
        self.random(prefix + "self_attn.o_proj.weight", width, HEADS * HEAD_DIM)
        self.norm(prefix + "post_attention_layernorm.weight", width)
        self.random(prefix + "mlp.gate_proj.weight", FFN, width)
        self.random(prefix + "mlp.up_proj.weight", FFN, width)
        self.random(prefix + "mlp.down_proj.weight", width, FFN)

    def save(self, folder, **changes):
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self.tensors, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(config(**changes), indent=2) + "\n")


# ---------------------------------------------------------------- computing

def read(folder):
    return {name: t.double() if t.is_floating_point() else t
            for name, t in load_file(folder / "model.safetensors").items()}


def rms(x, weight):
    return x / torch.sqrt((x * x).mean() + EPSILON) * weight


def rotate(x, position):
    """Rotates x (heads, HEAD_DIM): dimensions i and i + HEAD_DIM / 2 are a pair."""
    half = HEAD_DIM // 2
    angle = position * THETA ** (-2.0 * torch.arange(half) / HEAD_DIM)
    a, b = x[:, :half], x[:, half:]
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), dim=1)


def attention(w, prefix, x, position, seen, own):
    """Lets x attend to the (key, value) pairs in `seen` and to its own pair, which is stored in `own`."""
    def heads(name, count):
        y = w[prefix + name + ".weight"] @ x
        return (y + w.get(prefix + name + ".bias", 0)).view(count, HEAD_DIM)
    q = rotate(heads("q_proj", HEADS), position)
    own[:] = [rotate(heads("k_proj", KV_HEADS), position), heads("v_proj", KV_HEADS)]
    pairs, out = seen + [own], []
    for head in range(HEADS):
        group = head // (HEADS // KV_HEADS)
        scores = torch.stack([q[head] @ k[group] for k, _ in pairs]) / math.sqrt(HEAD_DIM)
        out.append(sum(p * v[group] for p, (_, v) in zip(torch.softmax(scores, 0), pairs)))
    return w[prefix + "o_proj.weight"] @ torch.cat(out)


def mlp(w, prefix, x):
    gate = w[prefix + "gate_proj.weight"] @ x
    return w[prefix + "down_proj.weight"] @ (gate * torch.sigmoid(gate) *
                                            (w[prefix + "up_proj.weight"] @ x))


def decoder_layer(w, prefix, x, attended, position, seen, own):
    x = x + attention(w, prefix + "self_attn.", attended, position, seen, own)
    return x + mlp(w, prefix + "mlp.", rms(x, w[prefix + "post_attention_layernorm.weight"]))


def run_target(w, tokens):
    """Returns the target's hidden states. At position s, layer i reads states[i][s]. states[LAYERS] are the states
    after the final norm."""
    caches, states = [[] for _ in range(LAYERS)], [[] for _ in range(LAYERS + 1)]
    for position, token in enumerate(tokens):
        x = w["model.embed_tokens.weight"][token]
        for i in range(LAYERS):
            states[i].append(x)
            prefix, own = f"model.layers.{i}.", []
            x = decoder_layer(w, prefix, x, rms(x, w[prefix + "input_layernorm.weight"]), position,
                              caches[i], own)
            caches[i].append(own)
        states[LAYERS].append(rms(x, w["model.norm.weight"]))
    return states


def run_eagle(w, target, token, state, position, seen, own, layers):
    embedding = w.get("embed_tokens.weight", target["model.embed_tokens.weight"])[token]
    x = w["fc.weight"] @ torch.cat((embedding, state)) + w.get("fc.bias", 0)
    for i in range(layers):
        prefix = f"layers.{i}."
        attended = rms(x, w[prefix + "input_layernorm.weight"]) if i > 0 else x
        own.append([])
        x = decoder_layer(w, prefix, x, attended, position, [row[i] for row in seen], own[i])
    return x, target["lm_head.weight"] @ x


def run_eagle3(w, target, token, state, position, seen, own, _):
    embedding = w.get("embed_tokens.weight", target["model.embed_tokens.weight"])[token]
    width = len(w["norm.weight"])
    x = state if len(state) == width else w["fc.weight"] @ state
    attended = torch.cat((rms(embedding, w["midlayer.input_layernorm.weight"]),
                          rms(x, w["midlayer.hidden_norm.weight"])))
    own.append([])
    x = decoder_layer(w, "midlayer.", x, attended, position, [row[0] for row in seen], own[0])
    return x, w["lm_head.weight"] @ rms(x, w["norm.weight"])


def draft(run, w, target, tokens, features, layers):
    """Returns the rows of drafts.f32. The head reads features[s] together with token s + 1."""
    text, nodes, rows = [], [], []
    for s in range(1, len(tokens)):
        own = []
        state, logits = run(w, target, tokens[s], features[s - 1], s - 1, text, own, layers)
        text.append(own)
        rows.append((state, logits))
    for parent, token in TREE:
        above, at = [], parent
        while at >= 0:
            above.insert(0, at)
            at = TREE[at][0]
        own = []
        state = rows[len(text) + parent][0] if parent >= 0 else rows[len(text) - 1][0]
        rows.append(run(w, target, token, state, len(text) + len(above),
                        text + [nodes[i] for i in above], own, layers))
        nodes.append(own)
    return torch.stack([torch.cat(row) for row in rows])


# ---------------------------------------------------------------- the folders

def make_target(folder):
    m = Maker(1, torch.bfloat16)
    m.random("model.embed_tokens.weight", VOCABULARY, HIDDEN, spread=1.0)
    for i in range(LAYERS):
        m.layer(f"model.layers.{i}.", HIDDEN, HIDDEN, True)
    m.norm("model.norm.weight", HIDDEN)
    m.random("lm_head.weight", VOCABULARY, HIDDEN)
    m.save(folder, num_hidden_layers=LAYERS)


def make_eagle(folder):
    """Makes a head in the published form: fc has a bias, and the head uses the target's embedding."""
    m = Maker(2, torch.bfloat16)
    m.random("fc.weight", HIDDEN, 2 * HIDDEN)
    m.random("fc.bias", HIDDEN, spread=0.5)
    m.layer("layers.0.", HIDDEN, HIDDEN, False)
    m.save(folder)


def make_eagle_own(folder):
    """Makes a head with two layers, biases as in Qwen2, a separate embedding, and an fc without a bias."""
    m = Maker(3, torch.float16)
    m.random("embed_tokens.weight", VOCABULARY, HIDDEN, spread=1.0)
    m.random("fc.weight", HIDDEN, 2 * HIDDEN)
    for i in range(2):
        m.layer(f"layers.{i}.", HIDDEN, HIDDEN, i > 0)
        for name, rows in ("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS):
            m.random(f"layers.{i}.self_attn.{name}_proj.bias", rows * HEAD_DIM, spread=0.5)
    m.save(folder, num_hidden_layers=2, bias=False)


def make_eagle3(folder, hidden, outputs, own, seed):
    m = Maker(seed, torch.bfloat16)
    m.random("fc.weight", hidden, 3 * HIDDEN)
    m.norm("midlayer.hidden_norm.weight", hidden)
    m.layer("midlayer.", hidden, 2 * hidden, True)
    m.norm("norm.weight", hidden)
    m.random("lm_head.weight", outputs, hidden)
    if own:
        m.random("embed_tokens.weight", VOCABULARY, hidden, spread=1.0)
    chosen = torch.randperm(VOCABULARY, generator=m.generator)[:outputs].sort().values
    m.tensors["d2t"] = chosen - torch.arange(outputs)
    m.tensors["t2d"] = torch.zeros(VOCABULARY, dtype=torch.bool).scatter(0, chosen, True)
    changes = dict(target_hidden_size=HIDDEN) if hidden != HIDDEN else {}
    m.save(folder, architectures=["LlamaForCausalLMEagle3"], hidden_size=hidden,
           draft_vocab_size=outputs, **changes)


def make_eagle3_torch(folder, like):
    """Writes the head of another folder as pytorch_model.bin. One of its tensors is a part of a larger storage."""
    tensors = load_file(like / "model.safetensors")
    storage = torch.cat((torch.zeros(7, dtype=tensors["norm.weight"].dtype), tensors["norm.weight"]))
    tensors["norm.weight"] = storage[7:]
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(tensors, folder / "pytorch_model.bin")
    for name in "config.json", "reference.json", "drafts.f32":
        (folder / name).write_bytes((like / name).read_bytes())


def make_reference(folder, target, run, inputs, layers):
    tokens = torch.randint(VOCABULARY, (TEXT,), generator=torch.Generator().manual_seed(9)).tolist()
    states = run_target(target, tokens)
    features = [torch.cat([states[i][s] for i in inputs]) for s in range(TEXT)]
    rows = draft(run, read(folder), target, tokens, features, layers)
    (folder / "drafts.f32").write_bytes(rows.float().numpy().astype("<f4").tobytes())
    reference = dict(tokens=tokens, tree=TREE, input=inputs)
    (folder / "reference.json").write_text(json.dumps(reference) + "\n")


def main():
    base = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "heads")
    make_target(base / "target")
    make_eagle(base / "eagle")
    make_eagle_own(base / "eagle-own")
    make_eagle3(base / "eagle3", HIDDEN, 40, False, 4)
    make_eagle3(base / "eagle3-narrow", 24, VOCABULARY, True, 5)
    target = read(base / "target")
    three = [2, LAYERS // 2, LAYERS - 3]
    make_reference(base / "eagle", target, run_eagle, [LAYERS], 1)
    make_reference(base / "eagle-own", target, run_eagle, [LAYERS], 2)
    make_reference(base / "eagle3", target, run_eagle3, three, 1)
    make_reference(base / "eagle3-narrow", target, run_eagle3, three, 1)
    make_eagle3_torch(base / "eagle3-torch", base / "eagle3")


if __name__ == "__main__":
    main()
