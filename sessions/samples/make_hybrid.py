#!/usr/bin/env python3
"""Trains the small model with recurrent layers that wrote the recording `hybrid`.

    python3 make_hybrid.py CORPUS.txt MODEL OUT [MINUTES]

MODEL is a folder with the tokenizer of the built-in models, and OUT is the new folder. The
model has the architecture of Qwen3.5: three layers with a gated DeltaNet, and one with
attention. In the corpus, documents are separated by <|endoftext|>. The script needs torch and
transformers 5, and takes a few minutes on two processors.
"""
import math
import pathlib
import shutil
import sys
import time

import torch
from tokenizers import Tokenizer
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

LENGTH, BATCH, RATE, WARM = 128, 16, 3e-3, 50


def read_corpus(path, tokenizer, most):
    ids = []
    for document in pathlib.Path(path).read_text()[:most].split("<|endoftext|>"):
        ids += tokenizer.encode(document, add_special_tokens=False).ids + [0]
    return torch.tensor(ids)


def main():
    corpus, model_folder, out = sys.argv[1:4]
    seconds = 60 * float(sys.argv[4] if len(sys.argv) > 4 else 10)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    tokenizer = Tokenizer.from_file(str(pathlib.Path(model_folder) / "tokenizer.json"))
    text = read_corpus(corpus, tokenizer, 8_000_000)
    config = Qwen3_5TextConfig(
        vocab_size=4096, hidden_size=160, intermediate_size=416, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, linear_num_key_heads=2,
        linear_num_value_heads=4, linear_key_head_dim=32, linear_value_head_dim=32,
        max_position_embeddings=768, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0)
    model = Qwen3_5ForCausalLM(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.05)
    begun, step = time.process_time(), 0
    while (done := (time.process_time() - begun) / seconds) < 1:
        at = torch.randint(len(text) - LENGTH - 1, (BATCH,))
        rows = torch.stack([text[i:i + LENGTH + 1] for i in at])
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / WARM) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))
        logits = model(rows[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        step += 1
        if step % 20 == 0:
            print(f"step {step}, {100 * done:.0f} %, loss {loss.item():.3f}", flush=True)
    model.to(torch.bfloat16).save_pretrained(out)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(pathlib.Path(model_folder) / name, out)


main()
