#!/usr/bin/env python3
"""Makes tests/vectors/gguf: small GGUF files.

Most files are made from folders of tests/vectors/logits, in the form that llama.cpp's converter
writes. The rows of query and key matrices are reordered in pairs, the query, key and value parts of
GPT-NeoX follow one another, and Llama 3 has a tensor rope_freqs. One model is split into two files.
The expected logits are those of the folder. The script also runs llama.cpp on the files, and prints
the distance between its logits and those of the Hugging Face library. The file `mixed` has random
weights of every quantised type:

    mixed.json       tokens: the sequence
    mixed.f32        (tokens, vocabulary) little-endian float32: llama.cpp's logits. To compute them, the
                     gguf package converts every tensor of the file to F32. So the comparison depends
                     neither on the rounding of stored numbers nor on the rounding of activations

The gguf package writes the files. Needs gguf, numpy and llama-cpp-python. The results are in the
repository.
"""
import ctypes
import json
import pathlib
import struct
import sys

import gguf
import numpy as np

HERE = pathlib.Path(__file__).parent
TOKENS = 24
FOLDERS = ["llama-gqa", "llama-rope3", "llama-bias", "llama-bf16", "neox-parallel", "qwen2",
           "qwen3"]
SPLIT = "llama-gqa"
ARCHITECTURES = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3",
                 "gpt_neox": "gptneox"}
NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
         "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
         "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "attention.dense": "attn_output",
         "attention.query_key_value": "attn_qkv", "mlp.dense_h_to_4h": "ffn_up",
         "mlp.dense_4h_to_h": "ffn_down", "embed_tokens": "token_embd", "embed_in": "token_embd",
         "lm_head": "output", "embed_out": "output", "norm": "output_norm",
         "final_layer_norm": "output_norm"}


def read_folder(folder):
    """Returns the names and float32 arrays of all tensors, and the set of types in which they are stored."""
    tensors, types = {}, set()
    for path in sorted(folder.glob("*.safetensors")):
        data = path.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        for name, entry in json.loads(data[8:8 + length]).items():
            if name == "__metadata__":
                continue
            begin, end = (8 + length + at for at in entry["data_offsets"])
            raw = data[begin:end]
            types.add(entry["dtype"])
            if entry["dtype"] == "BF16":
                bits = np.frombuffer(raw, np.uint16).astype(np.uint32) << 16
                array = bits.view(np.float32)
            else:
                array = np.frombuffer(raw, {"F32": np.float32, "F16": np.float16}[entry["dtype"]])
            tensors[name] = array.astype(np.float32).reshape(entry["shape"])
    return tensors, types


def gguf_name(name):
    parts = name.split(".")
    kind = parts[-1]
    if "layers" in parts:
        at = parts.index("layers")
        return f"blk.{parts[at + 1]}.{NAMES['.'.join(parts[at + 2:-1])]}.{kind}"
    return f"{NAMES[parts[-2]]}.{kind}"


def paired(array, heads):
    """Puts row i of the first half of each head next to row i of its second half."""
    shape = array.shape
    return array.reshape(heads, 2, shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(shape)


def parts_apart(array, heads):
    shape = array.shape
    return array.reshape(heads, 3, shape[0] // heads // 3, -1).swapaxes(0, 1).reshape(shape)


def llama3_factors(rope, head):
    frequency = 1.0 / rope["rope_theta"] ** (np.arange(0, head, 2, dtype=np.float32) / head)
    factors = []
    for wave in 2 * np.pi / frequency:
        low = rope["original_max_position_embeddings"] / rope["low_freq_factor"]
        high = rope["original_max_position_embeddings"] / rope["high_freq_factor"]
        if wave < high:
            factors.append(1.0)
        elif wave > low:
            factors.append(rope["factor"])
        else:
            smooth = ((rope["original_max_position_embeddings"] / wave - rope["low_freq_factor"]) /
                      (rope["high_freq_factor"] - rope["low_freq_factor"]))
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, np.float32)


def convert(folder):
    """Returns the architecture, keys, tensors and type of the GGUF file that is made from a folder."""
    config = json.loads((folder / "config.json").read_text())
    tensors, types = read_folder(folder)
    arch = ARCHITECTURES[config["model_type"]]
    heads = config["num_attention_heads"]
    kv = config.get("num_key_value_heads", heads)
    head = config.get("head_dim") or config["hidden_size"] // heads
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = rope.get("rope_theta") or config.get("rope_theta", 10000.0)
    rotary = int(head * rope.get("partial_rotary_factor", config.get("rotary_pct", 1.0)))
    keys = {"block_count": config["num_hidden_layers"], "context_length":
            config["max_position_embeddings"], "embedding_length": config["hidden_size"],
            "feed_forward_length": config["intermediate_size"], "attention.head_count": heads,
            "attention.head_count_kv": kv, "rope.dimension_count": rotary,
            "vocab_size": config["vocab_size"], "attention.key_length": head,
            "attention.value_length": head, "rope.freq_base": float(theta)}
    if "rms_norm_eps" in config:
        keys["attention.layer_norm_rms_epsilon"] = config["rms_norm_eps"]
    else:
        keys["attention.layer_norm_epsilon"] = config["layer_norm_eps"]
        keys["use_parallel_residual"] = config["use_parallel_residual"]
    made = {}
    for name, array in tensors.items():
        name = gguf_name(name)
        if arch == "llama" and ".attn_q." in name:
            array = paired(array, heads)
        if arch == "llama" and ".attn_k." in name:
            array = paired(array, kv)
        if ".attn_qkv." in name:
            array = parts_apart(array, heads)
        made[name] = array
    if rope.get("rope_type", rope.get("type")) == "llama3":
        made["rope_freqs.weight"] = llama3_factors({**rope, "rope_theta": theta}, head)
    return arch, keys, made, "BF16" if types == {"BF16"} else "F32"


def write(path, arch, keys, tensors, as_type, part=None):
    """Writes a GGUF file. `tensors` has float32 arrays, or pairs (type, bytes) for quantised rows.
    `part` has three members: the number of this part, the number of parts, and the number of tensors
    in all parts."""
    writer = gguf.GGUFWriter(path, arch)
    writer.add_string("tokenizer.ggml.model", "no_vocab")
    if part:
        writer.add_uint16("split.no", part[0])
        writer.add_uint16("split.count", part[1])
        writer.add_int32("split.tensors.count", part[2])
    for key, value in keys.items():
        add = (writer.add_bool if isinstance(value, bool) else
               writer.add_uint32 if isinstance(value, int) else writer.add_float32)
        add(f"{arch}.{key}", value)
    for name, array in tensors.items():
        if isinstance(array, tuple):
            writer.add_tensor(name, array[1], raw_dtype=array[0])
        elif as_type == "BF16" and array.ndim == 2:
            kind = gguf.GGMLQuantizationType.BF16
            writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---------------------------------------------------------------- every quantised type

def random_blocks(kind, rows, columns, rng):
    """Returns rows of random blocks, with scales as large as those of real weights."""
    numbers, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (rows * columns // numbers, size), dtype=np.uint8)

    def half(at, low, high):
        values = rng.uniform(low, high, len(blocks)).astype(np.float16)
        blocks[:, at:at + 2] = values.view(np.uint8).reshape(-1, 2)

    name = kind.name
    if name == "Q6_K":
        half(208, 1e-4, 3e-4)
    elif name in ("Q4_K", "Q5_K"):
        half(0, 4e-4, 8e-4)
        half(2, 2e-3, 6e-3)
    else:
        half(0, 1e-3, 3e-3 if name == "Q8_0" else 2e-2)
        if name == "IQ4_NL":
            half(0, 1e-3, 2e-3)
    return kind, blocks.reshape(rows, -1)


def mixed():
    """Makes a Llama model of two layers. All matrices that can be quantised are quantised, and every type occurs."""
    rng = np.random.default_rng(16)
    hidden, ffn, heads, kv, head, vocabulary, layers = 256, 64, 2, 1, 32, 64, 2
    kinds = {kind: getattr(gguf.GGMLQuantizationType, kind) for kind in
             ("Q8_0", "Q4_0", "Q5_0", "IQ4_NL", "Q4_K", "Q5_K", "Q6_K")}
    keys = {"block_count": layers, "context_length": 128, "embedding_length": hidden,
            "feed_forward_length": ffn, "attention.head_count": heads,
            "attention.head_count_kv": kv, "rope.dimension_count": head,
            "vocab_size": vocabulary, "attention.key_length": head,
            "attention.value_length": head, "rope.freq_base": 10000.0,
            "attention.layer_norm_rms_epsilon": 1e-5}
    tensors = {"token_embd.weight": random_blocks(kinds["Q6_K"], vocabulary, hidden, rng),
               "output.weight": random_blocks(kinds["Q8_0"], vocabulary, hidden, rng),
               "output_norm.weight": rng.uniform(0.5, 1.5, hidden).astype(np.float32)}
    layer_kinds = [("Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "Q4_0", "Q5_0", "Q8_0"),
                   ("Q5_0", "Q4_K", "Q8_0", "Q5_0", "Q6_K", "Q4_K", "IQ4_NL")]
    for layer in range(layers):
        shapes = {"attn_q": (heads * head, hidden), "attn_k": (kv * head, hidden),
                  "attn_v": (kv * head, hidden), "attn_output": (hidden, heads * head),
                  "ffn_gate": (ffn, hidden), "ffn_up": (ffn, hidden), "ffn_down": (hidden, ffn)}
        for kind, (name, shape) in zip(layer_kinds[layer], shapes.items()):
            tensors[f"blk.{layer}.{name}.weight"] = random_blocks(kinds[kind], *shape, rng)
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{layer}.{name}.weight"] = rng.uniform(0.5, 1.5, hidden).astype(
                np.float32)
    return keys, tensors


def widened(tensors):
    return {name: gguf.quants.dequantize(array[1], array[0]).astype(np.float32)
            if isinstance(array, tuple) else array for name, array in tensors.items()}


# ---------------------------------------------------------------- llama.cpp

def logits(path, tokens, vocabulary):
    import llama_cpp as ll
    ll.llama_backend_init()
    quiet = ll.llama_log_callback(lambda level, text, user: None)
    ll.llama_log_set(quiet, ctypes.c_void_p(0))
    params = ll.llama_model_default_params()
    params.use_mmap = False
    params.use_extra_bufts = False
    model = ll.llama_model_load_from_file(str(path).encode(), params)
    assert model, path
    options = ll.llama_context_default_params()
    options.n_ctx = 64
    options.n_threads = options.n_threads_batch = 1
    options.flash_attn_type = 0
    options.type_k = options.type_v = 0
    context = ll.llama_init_from_model(model, options)
    assert context, path
    rows = []
    for i, token in enumerate(tokens):
        batch = ll.llama_batch_get_one((ctypes.c_int32 * 1)(token), 1)
        assert ll.llama_decode(context, batch) == 0
        row = ll.llama_get_logits_ith(context, 0)
        rows.append(np.ctypeslib.as_array(row, (vocabulary,)).astype("<f4").copy())
    ll.llama_free(context)
    ll.llama_model_free(model)
    return np.stack(rows)


def main():
    out = HERE / "gguf"
    out.mkdir(exist_ok=True)
    scratch = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp")
    sources = {}
    for name in FOLDERS:
        folder = HERE / "logits" / name
        tokens = json.loads((folder / "reference.json").read_text())["tokens"]
        sources[name] = (*convert(folder), tokens)
    keys, tensors = mixed()
    tokens = np.random.default_rng(7).integers(0, 64, TOKENS).tolist()
    sources["mixed"] = ("llama", keys, tensors, "F32", tokens)
    for name, (arch, keys, tensors, kind, tokens) in sources.items():
        if name == SPLIT:
            items = list(tensors.items())
            halves = items[:len(items) // 2], items[len(items) // 2:]
            for i, half in enumerate(halves):
                write(out / f"{name}-{i + 1:05}-of-00002.gguf", arch, keys if i == 0 else {},
                      dict(half), kind, (i, 2, len(items)))
        else:
            write(out / f"{name}.gguf", arch, keys, tensors, kind)
        wide = scratch / f"{name}-f32.gguf"
        write(wide, arch, keys, widened(tensors), "F32")
        values = logits(wide, tokens, keys["vocab_size"])
        wide.unlink()
        known = HERE / "logits" / name / "logits.f32"
        if known.exists():
            other = np.fromfile(known, "<f4").reshape(values.shape)
            error = np.linalg.norm(values - other) / np.linalg.norm(other)
            print(f"{name}: llama.cpp's logits differ by {error:.2g} from the Hugging Face library's")
        else:
            values.tofile(out / f"{name}.f32")
            (out / f"{name}.json").write_text(json.dumps({"tokens": tokens}) + "\n")
            print(f"{name}: mean size of the logits {np.abs(values).mean():.3g}")


if __name__ == "__main__":
    main()
