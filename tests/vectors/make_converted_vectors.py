#!/usr/bin/env python3
"""Makes the files of tests/vectors/gguf for newer model families. llama.cpp's converter writes these
files from folders of tests/vectors/logits, without a vocabulary. The script then runs llama.cpp on
the files, and prints the distance between its logits and those of the Hugging Face library.

    make_converted_vectors.py LLAMA_CPP [NAME...]

LLAMA_CPP is the folder of llama.cpp's source that contains convert_hf_to_gguf.py. The source package
of llama-cpp-python has it in vendor/llama.cpp. Needs torch, transformers, gguf and llama-cpp-python.
The results are in the repository.
"""
import importlib
import json
import pathlib
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).parent
FOLDERS = ["gemma2", "gemma3", "phi3-short", "phi3-long", "phi3-partial", "olmo2", "smollm3", "gpt2",
           "granite", "qwen3-moe", "gpt-oss", "lfm2", "qwen3-5", "qwen3-5-tied", "qwen3-5-moe",
           "granite-hybrid", "granite-hybrid-moe", "qwen3-next", "nemotron-h", "nemotron-h-moe",
           "lfm2-moe"]
# This folder is converted twice. The second file has the form that llama.cpp's first converter for
# this family wrote. As in the folder, the mixer's matrices are in one tensor.
OLD = "qwen3-next"
# These folders of tests/vectors/heads are converted together with their MTP layer.
MTP = ["mtp-qwen3-5", "mtp-qwen3-5-moe", "mtp-qwen3-next"]
# The MTP layer of this folder is also converted to a separate file.
ALONE = "mtp-qwen3-5"


def load_converter(folder):
    sys.path.insert(0, str(folder / "gguf-py"))
    sys.path.insert(0, str(folder))
    return importlib.import_module("conversion")


def no_vocabulary(model):
    model.gguf_writer.add_tokenizer_model("no_vocab")
    if not any("vocab_size" in key for values in model.gguf_writer.kv_data for key in values):
        model.gguf_writer.add_vocab_size(model.hparams["vocab_size"])


def prepare(source, folder):
    """Copies a folder and makes the changes that the converter needs. It adds a tokenizer with vocab_size
    tokens and GPT-2's old key n_ctx, and uses the older names of Granite's layers."""
    config = json.loads((source / "config.json").read_text())
    if config["model_type"] == "granitemoehybrid":
        config["layer_types"] = ["mamba" if kind in ("mamba", "linear_attention") else "attention"
                                 for kind in config["layer_types"]]
    config = {**config, **config.pop("text_config", {})}
    for path in source.glob("*.safetensors*"):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "config.json").write_text(
        json.dumps({**config, "n_ctx": config.get("n_positions")}))
    tokens = {f"t{i}": i for i in range(config["vocab_size"])}
    (folder / "tokenizer.json").write_text(
        json.dumps({"model": {"vocab": tokens}, "added_tokens": []}))


def keep_joined(base):
    """Makes the converter leave the mixer's matrices of Qwen3-Next in one tensor."""
    gguf = importlib.import_module("gguf")

    def modify(self, tensor, name, bid):
        if "in_proj_qkvz.weight" not in name:
            yield from base.modify_tensors(self, tensor, name, bid)
        else:
            yield self.format_tensor_name(gguf.MODEL_TENSOR.SSM_IN, bid, ".weight"), tensor

    return {"modify_tensors": modify}


def convert(converter, folder, path, no_mtp=True, mtp_only=False, old=False):
    hparams = converter.ModelBase.load_hparams(folder, False)
    kind = converter.get_model_architecture(hparams, converter.ModelType.TEXT)
    base = converter.get_model_class(kind)
    own = type(base.__name__, (base,), {"set_vocab": no_vocabulary, "model_arch": base.model_arch,
                                        "no_mtp": no_mtp, "mtp_only": mtp_only,
                                        "get_vocab_base_pre": lambda self, tokenizer: "default",
                                        **(keep_joined(base) if old else {})})
    files = importlib.import_module("gguf").LlamaFileType
    types = {"bfloat16": files.MOSTLY_BF16,
            "float16": files.MOSTLY_F16}
    kind = types.get(json.loads((folder / "config.json").read_text())["dtype"],
                    files.ALL_F32)
    # If the library read a configuration of Nemotron-H without experts, it would add experts.
    config = json.loads((folder / "config.json").read_text())
    given = {"hparams": config} if config["model_type"] == "nemotron_h" else {}
    made = own(folder, kind, path, **given)
    if config["model_type"] == "lfm2_moe":  # the converter does not write this key
        made.gguf_writer.add_expert_weights_scale(config["routed_scaling_factor"])
    made.write()


def main():
    converter = load_converter(pathlib.Path(sys.argv[1]))
    import make_gguf_vectors  # must be after load_converter(), because the converter has its own gguf package
    for name in sys.argv[2:] or FOLDERS + MTP:
        path = HERE / "gguf" / f"{name}.gguf"
        folder = HERE / ("heads" if name in MTP else "logits") / name
        with tempfile.TemporaryDirectory() as scratch:
            prepare(folder, pathlib.Path(scratch))
            convert(converter, pathlib.Path(scratch), path, name not in MTP)
            if name == OLD:
                convert(converter, pathlib.Path(scratch), path.with_stem(name + "-old"), old=True)
            if name == ALONE:
                convert(converter, pathlib.Path(scratch), path.with_stem(name + "-alone"), False,
                        True)
        if name in MTP:
            continue
        tokens = json.loads((folder / "reference.json").read_text())["tokens"]
        known = np.fromfile(folder / "logits.f32", "<f4").reshape(len(tokens), -1)
        values = make_gguf_vectors.logits(path, tokens, known.shape[1])
        error = np.linalg.norm(values - known) / np.linalg.norm(known)
        print(f"{name}: {path.stat().st_size} bytes, logits differ by {error:.2g} from the Hugging "
              "Face library's", flush=True)


if __name__ == "__main__":
    main()
