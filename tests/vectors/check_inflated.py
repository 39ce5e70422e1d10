#!/usr/bin/env python3
"""Compares models that `espalier inflate` has enlarged with the original models, in the transformers library.

    check_inflated.py ESPALIER FOLDER...

Makes each model twice as wide and three layers deeper, and prints the largest difference of the logits. If the layers of a
model differ from each other, it becomes wider, but not deeper. The exit code is 1 if a difference is above 1e-3, or if the
tensors of the new folder are not those that transformers expects. Needs torch and transformers 5. No test runs this script.
"""
import pathlib
import subprocess
import sys
import tempfile

import torch
from transformers import AutoModelForCausalLM


def logits(folder, tokens):
    """Returns the logits of a model, its configuration, and the names of tensors that are missing or unknown."""
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    with torch.no_grad():
        return model(tokens).logits, model.config, info["missing_keys"] or info["unexpected_keys"]


def main(espalier, folders):
    good = True
    for folder in folders:
        with tempfile.TemporaryDirectory() as parent:
            wide = pathlib.Path(parent) / "wide"
            config = AutoModelForCausalLM.from_pretrained(folder).config
            deeper = ["--layers", str(config.num_hidden_layers + 3)]
            command = [espalier, "inflate", folder, wide, "--width", "2"]
            if subprocess.run(command + deeper, capture_output=True).returncode != 0:
                subprocess.run(command, check=True)
            tokens = torch.tensor([[(7 * i + 3) % config.vocab_size for i in range(20)]])
            before, _, _ = logits(folder, tokens)
            after, made, names = logits(wide, tokens)
            difference = float((before - after).abs().max())
            good = good and difference < 1e-3 and not names
            print(f"{folder}: {made.num_hidden_layers} layers, largest difference {difference:.1e}", *names)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
