#!/usr/bin/env python3
"""Computes one optimisation step of a tiny draft head in PyTorch, for tests/unit/training_step.c.

Writes training/model.safetensors. It has a batch (two texts with trees after some of their tokens),
the weights before the step, AdamW's moments, and the change of each weight. The script computes in
double precision. Needs torch, numpy and safetensors: make_training_vectors.py [FOLDER]
"""
import math
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

D, HEADS, KV, DIM, FFN, V, EPS = 24, 4, 2, 6, 19, 37, 1e-5
FREQUENCY = torch.tensor([1.0, 0.3, 0.05], dtype=torch.float32).double()
CLS, REG, DISTIL, TOP = 10.0, 1.0, 10.0, 10
RATE, DECAY, CLIP, STEP = 1e-2, 0.01, 0.5, 5  # STEP: the number of steps before this one

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)


def exact(*shape, scale=1.0):
    """Returns random numbers that float32 can represent exactly."""
    return (torch.randn(*shape) * scale).float().double()


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        shapes = {
            "fc.weight": (D, 2 * D), "fc.bias": (D,),
            "layers.0.self_attn.q_proj.weight": (HEADS * DIM, D),
            "layers.0.self_attn.k_proj.weight": (KV * DIM, D),
            "layers.0.self_attn.v_proj.weight": (KV * DIM, D),
            "layers.0.self_attn.o_proj.weight": (D, HEADS * DIM),
            "layers.0.post_attention_layernorm.weight": (D,),
            "layers.0.mlp.gate_proj.weight": (FFN, D), "layers.0.mlp.up_proj.weight": (FFN, D),
            "layers.0.mlp.down_proj.weight": (D, FFN),
        }
        self.w = {k: torch.nn.Parameter(exact(*s, scale=0.2) + ("norm" in k)) for k, s in shapes.items()}
        for p in self.w.values():
            p.data = p.data.float().double()

    def rotate(self, x, position):
        angle = position[:, None, None] * FREQUENCY
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    def rows(self, embedded, feature, position, cache, mask):
        """Computes the rows of one depth, which come after the rows in `cache`. The mask has shape (rows, all rows)."""
        w, layer = self.w, "layers.0."
        x = F.linear(torch.cat([embedded, feature], -1), w["fc.weight"], w["fc.bias"])
        q = F.linear(x, w[layer + "self_attn.q_proj.weight"]).view(-1, HEADS, DIM)
        k = F.linear(x, w[layer + "self_attn.k_proj.weight"]).view(-1, KV, DIM)
        v = F.linear(x, w[layer + "self_attn.v_proj.weight"]).view(-1, KV, DIM)
        cache.append((self.rotate(k, position), v))
        keys = torch.cat([c[0] for c in cache]).repeat_interleave(HEADS // KV, 1)
        values = torch.cat([c[1] for c in cache]).repeat_interleave(HEADS // KV, 1)
        score = torch.einsum("ihd,jhd->hij", self.rotate(q, position), keys) / math.sqrt(DIM)
        score = score.masked_fill(~mask, -math.inf).softmax(-1)
        x = x + F.linear(torch.einsum("hij,jhd->ihd", score, values).flatten(1),
                         w[layer + "self_attn.o_proj.weight"])
        n = x * (x.pow(2).mean(-1, keepdim=True) + EPS).rsqrt() * w[layer + "post_attention_layernorm.weight"]
        n = F.silu(F.linear(n, w[layer + "mlp.gate_proj.weight"])) * F.linear(n, w[layer + "mlp.up_proj.weight"])
        return x + F.linear(n, w[layer + "mlp.down_proj.weight"])


def make_rows():
    """Makes texts of 6 and 4 tokens. Every second token is the root of a tree: two children, each with one child."""
    rows, passes = [], []  # token, position, parent, first, seen, depth
    firsts = [0, 6]
    for first, length in zip(firsts, (6, 4)):
        rows += [[0, i, -1, first, i + 1, 0] for i in range(length)]
    passes.append(len(rows))
    leaf = {}
    for depth in (1, 2):
        for first, length in zip(firsts, (6, 4)):
            for root in range(0, length, 2):
                for child in range(2):
                    parent = first + root if depth == 1 else leaf[first, root, child]
                    leaf[first, root, child] = len(rows)
                    rows.append([0, root + depth, parent, first, root + 1, depth])
        passes.append(len(rows))
    rows = numpy.array(rows, dtype=numpy.int32)
    rows[:, 0] = numpy.random.default_rng(2).integers(0, V, len(rows))
    return rows, passes


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "training")
    rows, passes = make_rows()
    n = len(rows)
    embedding, target_head = exact(V, D), exact(V, D, scale=0.5)
    feature, target_feature = exact(passes[0], D), exact(n, D)
    weight = torch.rand(n).float().double() * 0.1
    weight = weight.float().double()
    head = Head()

    out, cache, begin = [], [], 0
    for end in passes:
        mask = torch.zeros(end - begin, end, dtype=torch.bool)
        for i in range(begin, end):
            token, position, parent, first, seen, depth = rows[i]
            mask[i - begin, first:first + seen] = True
            at = i
            while rows[at][5] > 0:
                mask[i - begin, at] = True
                at = rows[at][2]
        so_far = torch.cat(out) if out else None
        given = feature if begin == 0 else so_far[torch.tensor(rows[begin:end, 2], dtype=torch.long)]
        out.append(head.rows(embedding[torch.tensor(rows[begin:end, 0], dtype=torch.long)], given,
                             torch.tensor(rows[begin:end, 1], dtype=torch.float64), cache, mask))
        begin = end
    out = torch.cat(out)
    p = (target_feature @ target_head.T).softmax(-1)
    top = torch.zeros_like(p).scatter_(1, p.topk(TOP).indices, 1.0)
    log_q = (out @ target_head.T).log_softmax(-1)
    row_loss = -(p * log_q * (CLS + DISTIL * top)).sum(-1) + REG * (out - target_feature).abs().mean(-1)
    loss = (weight * row_loss).sum()
    loss.backward()

    names, values = list(head.w), list(head.w.values())
    optimizer = torch.optim.AdamW(values, lr=RATE, betas=(0.9, 0.95), eps=1e-8, weight_decay=DECAY)
    stored = {}
    for name, value in zip(names, values):
        first, second = exact(*value.shape, scale=0.01), exact(*value.shape, scale=0.01) ** 2
        second = second.float().double()
        optimizer.state[value] = {"step": torch.tensor(float(STEP)), "exp_avg": first.clone(),
                                  "exp_avg_sq": second.clone()}
        stored |= {"before." + name: value.detach().clone(), "first." + name: first, "second." + name: second}
    length = torch.nn.utils.clip_grad_norm_(values, CLIP)
    assert length > CLIP
    optimizer.step()
    for name, value in zip(names, values):
        stored["change." + name] = value.detach() - stored["before." + name]
    stored |= {"embedding": embedding, "target_head": target_head, "feature": feature,
               "target_feature": target_feature, "weight": weight, "loss": row_loss.sum()[None].detach(),
               "length": length[None]}
    arrays = {k: v.numpy().astype(numpy.float32) for k, v in stored.items()}
    arrays["rows"] = rows.astype(numpy.float32)
    folder.mkdir(exist_ok=True)
    save_file(arrays, folder / "model.safetensors")


main()
