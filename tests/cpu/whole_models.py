#!/usr/bin/env python3
"""Measures the speeds of whole models in this program and in llama.cpp, for kernels/cpu/MEASURED.md.

    whole_models.py make FILE TYPE [SHAPE]          makes random weights; TYPE: q8_0 or q4_k (the mix
                                                    Q4_K_M); SHAPE: one of SHAPES below
    whole_models.py espalier PROGRAM FILE [DRAFT]   runs this program once
    whole_models.py llama FILE                      runs llama.cpp once
    whole_models.py states PROGRAM HYBRID FULL DRAFT [BYTES [ROUNDS]]    runs a model with recurrent
                                                    layers and a model without them, after a
                                                    prompt of BYTES bytes (see states())

A run uses two threads. It prints tokens per second for a prompt of 645 bytes and for plain decoding after it. It
also prints the times of passes of 8 and 16 rows, divided by the time of a pass of one row. In this program, these
passes verify tokens that DRAFT has drafted. Needs numpy and gguf, and llama-cpp-python for `llama`.
"""
import ctypes
import json
import resource
import subprocess
import sys
import time

import numpy as np

PROMPT, NEW, THREADS = 645, 48, 2
TEXT = ("There was once a poor woodcutter who lived with his wife and his two children on the edge of a "
        "great forest. ")


# ---------------------------------------------------------------- a model

def blocks(kind, rows, columns, rng):
    """Returns random blocks, with scales that give numbers of about 1 / sqrt(columns)."""
    import gguf
    numbers, size = gguf.GGML_QUANT_SIZES[kind]
    made = np.frombuffer(rng.bytes(rows * columns // numbers * size), np.uint8).reshape(-1, size).copy()
    spread = columns ** -0.5

    def half(at, value):
        values = np.full(len(made), value * spread, np.float16)
        made[:, at:at + 2] = values.view(np.uint8).reshape(-1, 2)

    if kind.name == "Q8_0":
        half(0, 1 / 74)
    elif kind.name == "Q6_K":
        half(208, 1 / 1400)
    else:
        half(0, 1 / 150)
        half(2, 1 / 20)
    return kind, made.reshape(rows, -1)


# For each shape: layers, hidden size, FFN size, heads, key/value heads, head dimension.
SHAPES = {"1b": (16, 2048, 8192, 32, 8, 64),     # Llama 3.2 1B
          "0.8b": (24, 1024, 3584, 8, 2, 256),   # Qwen3.5 0.8B: 18 of 24 layers are recurrent
          "full": (24, 1024, 4608, 16, 8, 128),  # about as many bytes as 0.8b, but all layers have attention
          "4b": (32, 2560, 9216, 16, 4, 256),    # Qwen3.5 4B: 24 of 32 layers are recurrent
          "4b-full": (32, 2560, 11008, 32, 8, 128),
          "tiny": (1, 256, 512, 4, 4, 64)}       # a draft
# For each shape with recurrent layers: how many key heads and value heads these layers have.
HYBRIDS = {"0.8b": (16, 16), "4b": (16, 32)}
STATE_DIM, KERNEL, EVERY = 128, 4, 4  # of Qwen3.5


def add_hybrid_keys(writer, key_heads, value_heads):
    writer.add_ssm_conv_kernel(KERNEL)
    writer.add_ssm_state_size(STATE_DIM)
    writer.add_ssm_group_count(key_heads)
    writer.add_ssm_time_step_rank(value_heads)
    writer.add_ssm_inner_size(value_heads * STATE_DIM)
    writer.add_full_attention_interval(EVERY)


def add_recurrent_layer(writer, add, i, most, important, hidden, key_heads, value_heads):
    values, width = value_heads * STATE_DIM, (2 * key_heads + value_heads) * STATE_DIM
    floats = {"ssm_conv1d.weight": (np.eye(KERNEL)[-1:].repeat(width, 0)),
              "ssm_a": np.full(value_heads, -0.05), "ssm_dt.bias": np.zeros(value_heads),
              "ssm_norm.weight": np.ones(STATE_DIM)}
    for name, data in floats.items():
        writer.add_tensor(f"blk.{i}.{name}", data.astype(np.float32))
    for name, kind, rows, columns in (
            ("attn_qkv", most, width, hidden), ("attn_gate", most, values, hidden),
            ("ssm_beta", most, value_heads, hidden), ("ssm_alpha", most, value_heads, hidden),
            ("ssm_out", important, hidden, values)):
        add(f"blk.{i}.{name}.weight", kind, rows, columns)


def make(path, kind, shape="1b"):
    import gguf
    types = gguf.GGMLQuantizationType
    most, important = {"q8_0": (types.Q8_0, types.Q8_0), "q4_k": (types.Q4_K, types.Q6_K)}[kind]
    layers, hidden, ffn, heads, kv, head = SHAPES[shape]
    vocabulary, hybrid = 128256, shape in HYBRIDS
    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(path, "qwen35" if hybrid else "llama")
    if hybrid:
        add_hybrid_keys(writer, *HYBRIDS[shape])
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_block_count(layers)
    writer.add_context_length(8192)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(ffn)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv)
    writer.add_rope_dimension_count(head // 4 if hybrid else head)
    writer.add_rope_freq_base(500000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(vocabulary)
    # The vocabulary has the 256 bytes, written as in GPT-2's tokenizer, and then tokens that occur in no text.
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [chr(b) for b in plain] + [chr(256 + i) for i in range(256 - len(plain))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(letters + ["!!"] + [f"unused{i}" for i in range(vocabulary - 257)])
    writer.add_token_types([1] * vocabulary)
    writer.add_token_merges(["! !"])
    writer.add_tensor("output_norm.weight", np.ones(hidden, np.float32))

    def add(name, kind, rows, columns):
        kind, data = blocks(kind, rows, columns, rng)
        writer.add_tensor(name, data, raw_dtype=kind)

    add("token_embd.weight", important, vocabulary, hidden)
    for i in range(layers):
        more = important if i < layers // 8 or i >= 7 * layers // 8 or (i - layers // 8) % 3 == 2 else most
        attention = (("attn_q", most, (1 + hybrid) * heads * head, hidden),
                     ("attn_k", most, kv * head, hidden), ("attn_v", more, kv * head, hidden),
                     ("attn_output", most, hidden, heads * head))
        recurs = hybrid and (i + 1) % EVERY != 0
        if recurs:
            add_recurrent_layer(writer, add, i, most, important, hidden, *HYBRIDS[shape])
        for name, kind, rows, columns in (
                *(() if recurs else attention), ("ffn_gate", most, ffn, hidden),
                ("ffn_up", most, ffn, hidden), ("ffn_down", more, hidden, ffn)):
            add(f"blk.{i}.{name}.weight", kind, rows, columns)
        for name in ("attn_norm", "post_attention_norm" if hybrid else "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{name}.weight", np.ones(hidden, np.float32))
        for name in ("attn_q_norm", "attn_k_norm") if hybrid and not recurs else ():
            writer.add_tensor(f"blk.{i}.{name}.weight", np.ones(head, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---------------------------------------------------------------- runs

def report(engine, path, prefill, plain, ratios):
    passes = ", ".join(f"{rows} rows {ratio:.2f}" for rows, ratio in ratios.items())
    print(f"{engine} {path}: prompt {prefill:.1f} tokens/s, plain {plain:.2f} tokens/s"
          + (f", times of one row: {passes}" if passes else ""), flush=True)


def generate(program, path, draft, drafter, tokens, threads=THREADS, prompt=PROMPT):
    run = subprocess.run([program, "generate", "--target", path, "--draft", draft, "--drafter", drafter,
                          "-p", (TEXT * 8)[:prompt], "-n", str(tokens), "--temp", "0", "--backend", "cpu",
                          "--threads", str(threads), "--chat", "none", "--json"],
                         capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def espalier(program, path, draft=""):
    plain = generate(program, path, "", "ar", NEW)
    one = plain["seconds"]["verify"] / plain["iterations"]
    ratios = {}
    for rows in (8, 16) if draft else ():
        run = generate(program, path, draft, f"linear:K={rows - 1}", NEW)
        ratios[rows] = run["seconds"]["verify"] / run["iterations"] / one
    report("espalier", path, plain["prompt_tokens"] / plain["seconds"]["prefill"],
           plain["tokens_per_second"], ratios)


def states(program, hybrid, full, draft, prompt=str(PROMPT), rounds="3"):
    """Measures what trees cost. In each round, every configuration of both models runs with few and with more
    tokens. Prints the processor time per target pass, as the median over the rounds. Also prints how many bytes
    of states a pass reads and writes, and how many bytes it would write with a copy of the states for each row;
    the program itself counts these bytes. Uses one thread, because the processor time of one thread hardly depends on
    the load of the machine."""
    drafters = {"ar": "plain", "linear:K=14": "chain of 14", "fixed:D=3,B=2,tau=0": "tree of 14"}
    cost, counted = {}, {}
    for _ in range(int(rounds)):
        for drafter in drafters:
            for path in (hybrid, full):
                alone = drafter == "ar"
                own, runs, times = "" if alone else draft, [], []
                for tokens in (4, 4 + NEW * (4 if alone else 1)):
                    before = resource.getrusage(resource.RUSAGE_CHILDREN)
                    runs.append(generate(program, path, own, drafter, tokens, 1, int(prompt)))
                    after = resource.getrusage(resource.RUSAGE_CHILDREN)
                    times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
                run, stages = runs[1], runs[1]["seconds"]
                passes = run["iterations"]
                part = stages["verify"] / (stages["verify"] + stages["draft"])
                cost.setdefault((drafter, path), []).append(
                    part * (times[1] - times[0]) / (passes - runs[0]["iterations"]))
                moved = [run.get("state_bytes_" + what, 0) / passes / 2 ** 20
                         for what in ("read", "written", "copies")]
                counted[drafter, path] = run["drafted_nodes"] / passes + 1, moved
    for drafter, name in drafters.items():
        for path in (hybrid, full):
            own, plain = np.median(cost[drafter, path]), np.median(cost["ar", path])
            rows, moved = counted[drafter, path]
            print(f"{name} {path}: {rows:.1f} rows, {1e3 * own:.1f} ms a pass, {own / plain:.2f} of one "
                  f"row; MiB of states: " + ", ".join(f"{size:.1f}" for size in moved), flush=True)


def llama(path):
    import llama_cpp as ll
    ll.llama_backend_init()
    quiet = ll.llama_log_callback(lambda level, text, user: None)
    ll.llama_log_set(quiet, ctypes.c_void_p(0))
    model = ll.llama_model_load_from_file(path.encode(), ll.llama_model_default_params())
    options = ll.llama_context_default_params()
    options.n_ctx = 1024
    options.n_batch = options.n_ubatch = 1024
    options.n_threads = options.n_threads_batch = THREADS
    context = ll.llama_init_from_model(model, options)
    memory = ll.llama_get_memory(context)
    vocabulary = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(model))
    batch = ll.llama_batch_init(1024, 0, 1)

    def decode(first, tokens, every):
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, first + i, 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = every or i == len(tokens) - 1
        start = time.monotonic()
        assert ll.llama_decode(context, batch) == 0
        row = np.ctypeslib.as_array(ll.llama_get_logits_ith(context, len(tokens) - 1), (vocabulary,))
        return time.monotonic() - start, int(row.argmax())

    tokens = [7 * i % 200 + 20 for i in range(PROMPT)]
    decode(0, tokens[:8], False)
    ll.llama_memory_seq_rm(memory, 0, 0, -1)
    prefill, token = decode(0, tokens, False)
    start = time.monotonic()
    for i in range(NEW):
        token = decode(PROMPT + i, [token], False)[1]
    plain = (time.monotonic() - start) / NEW
    ratios = {}
    for rows in (8, 16):
        times = []
        for _ in range(5):
            times.append(decode(PROMPT + NEW, tokens[:rows], True)[0])
            ll.llama_memory_seq_rm(memory, 0, PROMPT + NEW, -1)
        ratios[rows] = float(np.median(times)) / plain
    report("llama.cpp", path, PROMPT / prefill, 1 / plain, ratios)


if __name__ == "__main__":
    {"make": make, "espalier": espalier, "llama": llama, "states": states}[sys.argv[1]](*sys.argv[2:])
