#!/usr/bin/env python3
"""Reads a GGUF file with llama.cpp, and compares its results with espalier's: the tokens of a text, the tokens of greedy
decoding, and the perplexity.

    check_with_llama_cpp.py ESPALIER FILE.gguf TEXT_FILE

Prints one line for each comparison. llama.cpp rounds activations to 8 bits if weights are
quantised. Then its token can differ from espalier's token where two logits are nearly equal. So
llama.cpp also runs the same weights as floats (`espalier quantize FILE ... --type f32`). With these
weights, the tokens must be equal. Needs llama-cpp-python. `make check` does not run this script.
"""
import ctypes
import json
import math
import subprocess
import sys
import tempfile

import llama_cpp as ll
import numpy as np

PROMPTS = ["Once upon a time", "The king said to his three sons:", "In a dark forest"]
NEW = 60


def decode(context, tokens):
    array = (ctypes.c_int32 * len(tokens))(*tokens)
    batch = ll.llama_batch_get_one(array, len(tokens))
    assert ll.llama_decode(context, batch) == 0


def tokenize(vocab, text):
    data = text.encode()
    room = (ctypes.c_int32 * (len(data) + 16))()
    n = ll.llama_tokenize(vocab, data, len(data), room, len(room), True, True)
    assert n >= 0
    return list(room[:n])


def perplexity(model, vocab, tokens, size=512):
    """Measures the perplexity in the same way as llama.cpp: over the second half of each piece of 512 tokens."""
    options = ll.llama_context_default_params()
    options.n_ctx = options.n_batch = size
    options.n_ubatch = size
    options.n_threads = options.n_threads_batch = 2
    context = ll.llama_init_from_model(model, options)
    n_vocab = ll.llama_vocab_n_tokens(vocab)
    total, count = 0.0, 0
    for at in range(0, len(tokens) - size + 1, size):
        piece = tokens[at:at + size]
        ll.llama_memory_clear(ll.llama_get_memory(context), True)
        batch = ll.llama_batch_init(size, 0, 1)
        batch.n_tokens = size
        for i, token in enumerate(piece):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, i, 1
            batch.seq_id[i][0], batch.logits[i] = 0, True
        assert ll.llama_decode(context, batch) == 0
        for i in range(size // 2, size - 1):
            row = np.ctypeslib.as_array(ll.llama_get_logits_ith(context, i), (n_vocab,))
            row = row.astype(np.float64)
            total += np.log(np.exp(row - row.max()).sum()) + row.max() - row[piece[i + 1]]
            count += 1
        ll.llama_batch_free(batch)
    ll.llama_free(context)
    return math.exp(total / count)


def greedy(model, vocab, prompt):
    options = ll.llama_context_default_params()
    options.n_ctx = 512
    options.type_k = options.type_v = 0  # float32
    options.flash_attn_type = 0
    options.n_threads = options.n_threads_batch = 1
    context = ll.llama_init_from_model(model, options)
    decode(context, tokenize(vocab, prompt))
    tokens = []
    while len(tokens) < NEW and not (tokens and ll.llama_vocab_is_eog(vocab, tokens[-1])):
        if tokens:
            decode(context, tokens[-1:])
        row = np.ctypeslib.as_array(ll.llama_get_logits_ith(context, -1),
                                    (ll.llama_vocab_n_tokens(vocab),))
        tokens.append(int(row.argmax()))
    ll.llama_free(context)
    return tokens


def main():
    espalier, path, text_file = sys.argv[1:]
    ll.llama_backend_init()
    quiet = ll.llama_log_callback(lambda level, text, user: None)
    ll.llama_log_set(quiet, ctypes.c_void_p(0))
    params = ll.llama_model_default_params()
    params.use_extra_bufts = False
    with tempfile.TemporaryDirectory() as folder:
        wide_path = folder + "/wide.gguf"
        subprocess.run([espalier, "quantize", path, wide_path, "--type", "f32"], check=True,
                       capture_output=True)
        model, wide = (ll.llama_model_load_from_file(file.encode(), params)
                       for file in (path, wide_path))
        assert model and wide, f"llama.cpp does not read {path}"
    vocab = ll.llama_model_get_vocab(model)
    for prompt in PROMPTS:
        ours = json.loads(subprocess.run(
            [espalier, "generate", "--target", path, "--drafter", "ar", "-p", prompt, "-n",
             str(NEW), "--temp", "0", "--json"], capture_output=True, check=True).stdout)
        own = ours["tokens"][-ours["generated_tokens"]:] if ours["generated_tokens"] else []
        for name, loaded in (("the file", model), ("its weights as floats", wide)):
            theirs, same = greedy(loaded, vocab, prompt), 0
            while same < min(len(own), len(theirs)) and own[same] == theirs[same]:
                same += 1
            print(f"{prompt!r}, {name}: {same} of {len(theirs)} greedy tokens are the same")
    text = open(text_file, encoding="utf-8").read()
    print(f"perplexity of {text_file}: {perplexity(model, vocab, tokenize(vocab, text)):.4f}")


if __name__ == "__main__":
    main()
