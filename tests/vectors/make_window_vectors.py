#!/usr/bin/env python3
"""Makes tests/vectors/window.json: logits of the built-in target for one text, with an attention window.

The script implements StreamingLLM (Xiao et al., "Efficient Streaming Language Models with
Attention Sinks", 2024, section 3.2) differently from espalier. Keys are cached before they are
rotated. Before each token, all tokens between the sinks and the most recent tokens are removed.
Then every key is rotated by the angle of its position in the cache, and the query by the angle of
the last position. The window includes the new token, so a full cache has sinks + recent positions.
The script computes in double precision, one token at a time.

    make_window_vectors.py [FOLDER OF THE BUILT-IN TARGET]

Needs torch and safetensors. The result is in the repository.
"""
import json
import pathlib
import sys

import torch
from safetensors.torch import load_file

HERE = pathlib.Path(__file__).resolve().parent
WINDOWS = [(4, 20), (1, 12), (0, 16), (2, 7), (17, 5), (4, 200)]
TOKENS, TOLD, SHOWN, CONTINUED = 72, 9, 6, 48
PROMPT = 11


class Streaming:
    def __init__(self, folder, sinks, recent):
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = {name: tensor.double()
                        for name, tensor in load_file(folder / "model.safetensors").items()}
        self.sinks, self.recent = sinks, recent
        self.cache = [([], []) for _ in range(self.config["num_hidden_layers"])]

    def norm(self, x, name):
        scale = torch.rsqrt((x * x).mean() + self.config["rms_norm_eps"])
        return x * scale * self.weights[name]

    def rotate(self, x, place):
        """Rotates x (heads, head_dim) by the angles of position `place`."""
        half = x.shape[-1] // 2
        exponent = torch.arange(half, dtype=torch.float64) / half
        angle = place * self.config["rope_theta"] ** -exponent
        first, second = x[..., :half], x[..., half:]
        return torch.cat([first * angle.cos() - second * angle.sin(),
                          second * angle.cos() + first * angle.sin()], -1)

    def attend(self, layer, x):
        heads, kv_heads = (self.config["num_attention_heads"],
                           self.config["num_key_value_heads"])
        name = f"model.layers.{layer}.self_attn."
        query, key, value = ((self.weights[name + part + "_proj.weight"] @ x).view(n, -1)
                             for part, n in (("q", heads), ("k", kv_heads), ("v", kv_heads)))
        keys, values = self.cache[layer]
        if len(keys) == self.sinks + self.recent:
            del keys[self.sinks], values[self.sinks]
        keys.append(key)
        values.append(value)
        query = self.rotate(query, len(keys) - 1)
        placed = torch.stack([self.rotate(k, place) for place, k in enumerate(keys)])
        out = []
        for head in range(heads):
            group = head * kv_heads // heads
            score = placed[:, group] @ query[head] / query.shape[-1] ** 0.5
            out.append(score.softmax(0) @ torch.stack(values)[:, group])
        return self.weights[name + "o_proj.weight"] @ torch.cat(out)

    def step(self, token):
        """Appends a token to the text, and returns the logits after it."""
        x = self.weights["model.embed_tokens.weight"][token]
        for layer in range(self.config["num_hidden_layers"]):
            name = f"model.layers.{layer}."
            x = x + self.attend(layer, self.norm(x, name + "input_layernorm.weight"))
            y = self.norm(x, name + "post_attention_layernorm.weight")
            gate, up, down = (self.weights[f"{name}mlp.{part}_proj.weight"]
                              for part in ("gate", "up", "down"))
            x = x + down @ (torch.nn.functional.silu(gate @ y) * (up @ y))
        return self.weights["model.embed_tokens.weight"] @ self.norm(x, "model.norm.weight")


def main():
    root = HERE.parent.parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else \
        root / "engine/models/fairytale-target"
    tokens = [(i * i * 131 + i * 17 + 5) % 4093 + 3 for i in range(TOKENS)]
    result = dict(tokens=tokens, prompt=PROMPT, cases=[])
    for sinks, recent in WINDOWS:
        model, rows = Streaming(folder, sinks, recent), []
        for position, token in enumerate(tokens):
            logits = model.step(token)
            if position % TOLD == TOLD - 1:
                best = logits.topk(SHOWN)
                rows.append(dict(position=position, ids=best.indices.tolist(),
                                 logits=[round(v, 5) for v in best.values.tolist()]))
        model = Streaming(folder, sinks, recent)
        for token in tokens[:PROMPT]:
            logits = model.step(token)
        text = []
        while len(text) < CONTINUED:
            text.append(int(logits.argmax()))
            logits = model.step(text[-1])
        result["cases"].append(dict(sinks=sinks, recent=recent, rows=rows, text=text))
    (HERE / "window.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")


main()
