#!/usr/bin/env python3
"""Makes the folders tests/vectors/heads/mtp-*: tiny random models with an MTP layer in the same
file, and the drafts of this layer (hidden states and logits).

The transformers library ignores the tensors of the MTP layer when it loads a model. So this script
computes the layer from its description ("DeepSeek-V3", arXiv 2412.19437, section 2.2; equations 21 to
23). It uses the library's decoder layer, norm and rotation. The library also computes the target's
hidden states, after the final norm. make_head_vectors.py describes reference.json and drafts.f32.
Needs torch, transformers and safetensors. The results are in the repository.
"""
import json
import pathlib
import shutil
import sys

import safetensors.torch
import torch
from transformers import AutoModelForCausalLM
from transformers import Qwen2Config, Qwen3_5MoeTextConfig, Qwen3NextConfig
from transformers.models.qwen2 import modeling_qwen2 as qwen2
from transformers.models.qwen3_5 import modeling_qwen3_5 as dense
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as mixture
from transformers.models.qwen3_next import modeling_qwen3_next as qwen3_next

from make_logits_vectors import llama, qwen3_5

TEXT = 20
TREE = [[-1, 5], [-1, 40], [0, 8], [0, 91], [2, 3], [1, 17], [4, 66]]


class Head(torch.nn.Module):
    """Computes an MTP layer. Its tensors have Qwen3.5's names without the prefix "mtp."."""
    unnormed = False  # True: the layer reads the target's states before the final norm
    key = "mtp_num_hidden_layers"  # the key in config.json that has the number of MTP layers

    def __init__(self, config, decoder_layer, norm):
        super().__init__()
        width, full = config.hidden_size, config.layer_types.index("full_attention")
        make_norm = lambda: norm(width, eps=config.rms_norm_eps)
        self.fc = torch.nn.Linear(2 * width, width, bias=False)
        self.pre_fc_norm_embedding, self.pre_fc_norm_hidden = make_norm(), make_norm()
        self.layers = torch.nn.ModuleList([decoder_layer(config, full)])
        self.norm = make_norm()

    def join(self, embeddings, states):
        return torch.cat([embeddings, states], dim=-1)

    def positions(self, count):
        return torch.arange(count).expand(3, 1, -1)

    def forward(self, embeddings, states, rotary):
        """Returns states (rows, width). A row is computed from the embedding of its token and the previous state."""
        x = self.fc(self.join(self.pre_fc_norm_embedding(embeddings),
                              self.pre_fc_norm_hidden(states)))[None]
        count = x.shape[1]
        unseen = torch.full((1, 1, count, count), float("-inf")).triu(1)
        return self.norm(self.layers[0](
            x, position_embeddings=rotary(x, self.positions(count)), attention_mask=unseen))[0]

    def stored(self):
        """Returns the tensors with their names in the model folder."""
        return {"mtp." + name: value for name, value in self.state_dict().items()}


class NextHead(Head):
    """Qwen3-Next's MTP layer. Each matrix of an expert is a separate tensor, and config.json does not mention the layer."""
    key = None

    def positions(self, count):
        return torch.arange(count)[None]

    def stored(self):
        tensors = super().stored()
        experts = "mtp.layers.0.mlp.experts."
        both, down = tensors.pop(experts + "gate_up_proj"), tensors.pop(experts + "down_proj")
        for i, (gate, up) in enumerate(each.chunk(2) for each in both):
            for name, value in ("gate", gate), ("up", up), ("down", down[i]):
                tensors[f"{experts}{i}.{name}_proj.weight"] = value.contiguous()
        return tensors


class MimoHead(Head):
    """MiMo's MTP layer. Its tensors have other names, and the input of fc has the state first, then the embedding."""
    unnormed = True
    key = "num_nextn_predict_layers"
    names = {"fc": "input_proj", "pre_fc_norm_embedding": "token_layernorm",
             "pre_fc_norm_hidden": "hidden_layernorm", "norm": "final_layernorm"}

    def join(self, embeddings, states):
        return torch.cat([states, embeddings], dim=-1)

    def positions(self, count):
        return torch.arange(count)[None]

    def stored(self):
        def name_of(name):
            first, rest = name.split(".", 1)
            return f"0.{self.names[first]}.{rest}" if first in self.names else rest
        return {"model.mtp_layers." + name_of(name): value
                for name, value in self.state_dict().items()}


def randomise(module):
    with torch.no_grad():
        for name, value in module.named_parameters():
            center = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            center, spread = (-3.0, 1.0) if name.endswith("A_log") else (center, 0.3)
            value.copy_(center + spread * torch.randn_like(value))


def draft(head, target, tokens):
    """Returns the rows of drafts.f32: the hidden state and the logits after each token except the first, then after
    each node."""
    embedding, rotary = target.get_input_embeddings(), target.model.rotary_emb
    unnormed = []
    target.model.norm.register_forward_pre_hook(lambda _, inputs: unnormed.append(inputs[0]))
    states = target.model(torch.tensor([tokens])).last_hidden_state
    before = (unnormed[0] if head.unnormed else states)[0, :-1]
    text = head(embedding(torch.tensor(tokens[1:])), before, rotary)
    nodes = []
    for parent, token in TREE:
        path, at = [token], parent
        states = []
        while at >= 0:
            states.insert(0, nodes[at])
            path.insert(0, TREE[at][1])
            at = TREE[at][0]
        nodes.append(head(embedding(torch.tensor(tokens[1:] + path)),
                          torch.cat([before, torch.stack([text[-1]] + states)]), rotary)[-1])
    rows = torch.cat([text, torch.stack(nodes)])
    return torch.cat([rows, target.lm_head(rows)], dim=1)


def make(folder, seed, config, kind, decoder_layer, norm):
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    config._attn_implementation = "eager"
    head = kind(config, decoder_layer, norm)
    randomise(model)
    randomise(head)
    shutil.rmtree(folder, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    path = folder / "model.safetensors"
    head.to(torch.bfloat16)
    own = head.stored()
    safetensors.torch.save_file({**safetensors.torch.load_file(path), **own}, path, {"format": "pt"})
    values = json.loads((folder / "config.json").read_text())
    values.update({kind.key: 1} if kind.key else {})
    (folder / "config.json").write_text(json.dumps(values, indent=2) + "\n")
    (folder / "generation_config.json").unlink(missing_ok=True)

    target = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                  attn_implementation="eager").eval()
    head.float()
    tokens = torch.randint(0, config.vocab_size, (TEXT,)).tolist()
    with torch.no_grad():
        rows = draft(head, target, tokens)
    (folder / "drafts.f32").write_bytes(rows.numpy().astype("<f4").tobytes())
    (folder / "reference.json").write_text(json.dumps(dict(tokens=tokens, tree=TREE)) + "\n")
    if folder.name in WITH_PICTURES:
        add_pictures(folder)
    if kind is MimoHead:
        values["model_type"] = "mimo"
        (folder / "config.json").write_text(json.dumps(values, indent=2) + "\n")
    for each in folder.iterdir():
        each.chmod(0o644)
    size = sum(each.stat().st_size for each in folder.iterdir())
    print(f"{folder.name:16} {size} bytes, {rows.mean():.2f} +- {rows.std():.2f}")


def add_pictures(folder):
    """Rewrites a folder in the form of the published Qwen3.5 models: the language model is a part of a model that also
    reads pictures."""
    path = folder / "model.safetensors"
    inside = lambda name: name.replace("model.", "model.language_model.", 1) \
        if name.startswith("model.") else name
    tensors = {inside(name): value for name, value in safetensors.torch.load_file(path).items()}
    tensors["model.visual.merger.norm.weight"] = torch.ones(4)
    safetensors.torch.save_file(tensors, path, {"format": "pt"})
    text = json.loads((folder / "config.json").read_text())
    values = {"model_type": text["model_type"].removesuffix("_text"), "text_config": text}
    (folder / "config.json").write_text(json.dumps(values, indent=2) + "\n")


WITH_PICTURES = ["mtp-qwen3-5-moe"]
FOLDERS = {
    "mtp-qwen3-5": (qwen3_5(), Head, dense.Qwen3_5DecoderLayer, dense.Qwen3_5RMSNorm),
    "mtp-qwen3-5-moe": (qwen3_5(Qwen3_5MoeTextConfig, num_hidden_layers=2, num_experts=4,
                                num_experts_per_tok=2, moe_intermediate_size=12,
                                shared_expert_intermediate_size=20,
                                layer_types=["linear_attention", "full_attention"]),
                        Head, mixture.Qwen3_5MoeDecoderLayer, mixture.Qwen3_5MoeRMSNorm),
    "mtp-mimo": (llama(Qwen2Config, num_key_value_heads=2), MimoHead, qwen2.Qwen2DecoderLayer,
                 qwen2.Qwen2RMSNorm),
    "mtp-qwen3-next": (qwen3_5(Qwen3NextConfig, num_hidden_layers=2, num_experts=5,
                               num_experts_per_tok=2, moe_intermediate_size=12,
                               shared_expert_intermediate_size=20, linear_key_head_dim=12,
                               layer_types=["linear_attention", "full_attention"]),
                       NextHead, qwen3_next.Qwen3NextDecoderLayer, qwen3_next.Qwen3NextRMSNorm),
}


def main():
    root = pathlib.Path(__file__).parent / "heads"
    for seed, (name, settings) in enumerate(FOLDERS.items()):
        if not sys.argv[1:] or name in sys.argv[1:]:
            make(root / name, 70 + seed, *settings)


main()
