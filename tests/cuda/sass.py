#!/usr/bin/env python3
"""Counts the instructions of kernels that read weights, and prints the second table of kernels/cuda/RESOURCES.md.

    tests/cuda/sass.py [ARCH...]        (80 90 100 unless given)

Needs nvcc and cuobjdump (in the PATH, or named by NVCC and CUOBJDUMP), but no GPU. CUBINS can name a folder into which
tests/cuda/resources.sh has written machine code; then this script compiles nothing. For each variant of a kernel, the
script looks at the loop that has both asynchronous copies (cp.async, which loads weights, keys and values) and products
(tensor core instructions or, in one_row.cu, dot products of four bytes). The columns of the table are:

    instructions number of instructions in the loop. For attention: in an iteration without masks and without keys of
                 the pass's own rows
    per KB       instructions of a warp for each KB of weights that it multiplies: the instructions of the loop, counting
                 inner loops (over blocks of 32 columns) as often as they run
    copied       bytes that a warp copies in one iteration of the loop
    waits        points at which the loop waits for copies (DEPBAR), for each 4 KB of copies
    in flight    bytes of unfinished copies during a wait: the group that DEPBAR waits for, and the later groups
    loaded       bytes of other loads, mostly from the first-level cache: activations, scales, masks. A byte that
                 several lanes read is counted once for each lane
    stalls       points in an iteration at which the loop waits for a load that `loaded` includes

From compute capability 7.0 on, an instruction has 128 bits, and the highest bits are a control word. Bits 110 to 112
give the barrier that the instruction sets (7: none). Bits 116 to 121 are the set of barriers for which the instruction
waits.
"""
import os
import re
import subprocess
import sys
import tempfile

SOURCES = {"matmul": "matmul_kernel", "blocks": "blocks_kernel", "one_row": "one_row_kernel",
           "attention_mma": "attend_mma_kernel"}
LANES = 32
# For each type: the bytes of a block, how many groups of 32 columns a block has, and how many
# blocks a warp processes in an iteration.
TYPES = {"Q8_0": (34, 1, 4), "Q4_0": (18, 1, 4), "Q5_0": (22, 1, 4), "IQ4_NL": (18, 1, 4), "MXFP4": (17, 1, 4),
         "Q4_K": (144, 8, 1), "Q5_K": (176, 8, 1), "Q6_K": (210, 8, 1)}
OUTPUTS = 16
LESS = ", one tile fewer>"
HALVES = 2  # the middle loop runs twice, and each iteration computes the scales of 128 of 256 columns
# The types in the order of enum esp_dtype (kernels/dtype.h). The compiler writes their numbers in the names of variants.
DTYPES = ["F32", "F16", "BF16", *TYPES]


def short_name(plain):
    """Returns a kernel's name and template arguments in the form in which the table shows them."""
    plain = re.sub(r"\(anonymous namespace\)::|^void ", "", plain)
    plain = re.sub(r"\(esp_dtype\)(\d+)", lambda m: DTYPES[int(m[1])], plain)
    plain = re.sub(r"\((?:int|bool)\)", "", plain).replace("__nv_bfloat16", "bf16").replace("__half", "f16")
    return re.sub(r">\(.*", ">", plain)


class Instruction:
    def __init__(self, address, text, low):
        self.text = re.sub(r"^@!?U?P\w+ +", "", text)
        self.address, self.predicated, self.low, self.high = address, self.text != text, low, 0

    def sets(self):
        return self.high >> (110 - 64) & 7

    def waits_for(self):
        return self.high >> (116 - 64) & 63

    def bytes(self):
        """Returns how many bytes a warp copies or loads with this instruction."""
        name = self.text.split()[0]
        width = re.search(r"\.(64|128)\b", name)
        return LANES * (int(width[1]) // 8 if width else 4)


def functions(text):
    """Yields the name and the instructions of each function in the output of cuobjdump."""
    for part in re.split(r"\n\s+Function : ", text)[1:]:
        name, body = part.split("\n", 1)
        instructions = []
        for line in body.split("\n"):
            full = re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?);\s*/\* (0x[0-9a-f]{16}) \*/", line)
            rest = re.match(r"\s+/\* (0x[0-9a-f]{16}) \*/", line)
            if full:
                instructions.append(Instruction(int(full[1], 16), full[2].strip(), int(full[3], 16)))
            elif rest and instructions:
                instructions[-1].high = int(rest[1], 16)
        yield name, instructions


def multiplies(instruction):
    return "MMA" in instruction.text or instruction.text.startswith("IDP")


def loops(instructions):
    """Returns all loops that contain products, the shortest first."""
    found = []
    for end in instructions:
        back = re.match(r"BRA\b.*?(0x[0-9a-f]+)$", end.text)
        if not back or int(back[1], 16) >= end.address:
            continue
        loop = [i for i in instructions if int(back[1], 16) <= i.address <= end.address]
        if any(map(multiplies, loop)):
            found.append(loop)
    return sorted(found, key=len)


def copies_in(loop):
    return sum(i.text.startswith("LDGSTS") for i in loop)


def main_loops(instructions):
    """Returns the loops that contain products and copies, the shortest first. If loops overlap, only the shortest is
    returned."""
    found = []
    for loop in filter(copies_in, loops(instructions)):
        if all(loop[-1].address < other[0].address or loop[0].address > other[-1].address for other in found):
            found.append(loop)
    return found


def named_loops(name, instructions):
    """Returns the names and the instructions of a kernel's main loops. A kernel of blocks.cu has a second main loop,
    which processes one tile fewer per iteration."""
    found = main_loops(instructions)
    if not name.startswith("blocks"):
        return [(name, loop) for loop in found[:1]]
    found.sort(key=copies_in, reverse=True)
    return list(zip([name, name.replace(">", LESS)], found))


def stalls(loop):
    """Returns how many instructions of an iteration wait for a barrier that a load in this or the previous iteration
    has set."""
    count, pending = 0, set()
    for number, i in enumerate(loop + loop):
        hit = {b for b in pending if i.waits_for() >> b & 1}
        count += bool(hit) and number >= len(loop)
        pending -= hit
        if i.text.startswith("LDG."):
            pending.add(i.sets())
    return count


def copies_of(name):
    """Returns how many copies a thread makes in an iteration of an attention kernel. For other kernels, returns 0."""
    if not name.startswith("attend"):
        return 0
    width, high = map(int, re.search(r"<\w+, (\d+), (\d+)", name).groups())
    keys = 64 if width <= 128 else 32
    return 2 * keys * width * 2 // 16 // (LANES * (high if high > 1 else keys // 16))


def usual(loop, most):
    """Returns how many instructions the shortest iteration with `most` copies has. If none has that many
    copies, the iterations with the most copies are used instead."""
    place = {i.address: number for number, i in enumerate(loop)}
    least = [{} for _ in loop] + [{0: 0}]  # for each instruction and number of copies: the fewest instructions to the end
    for number in range(len(loop) - 1, -1, -1):
        i = loop[number]
        branch = re.match(r"BRA\b(?!\.DIV).*?(0x[0-9a-f]+)$", i.text)
        to = place.get(int(branch[1], 16), -1) if branch else -1
        ways = [least[to]] if to > number else []
        if not branch or i.predicated or not ways:
            ways.append(least[number + 1])
        for copies, length in [item for way in ways for item in way.items()]:
            copies += i.text.startswith("LDGSTS")
            if copies <= most:
                least[number][copies] = min(length + 1, least[number].get(copies, length + 1))
    return least[0][max(least[0])]


def work_of(name):
    """Returns how many bytes of weights and how many products one iteration of a kernel's loop processes."""
    arguments = re.search(r"<(.*)>", name)[1].split(", ")
    kind = arguments[0].replace("ESP_", "")
    if name.startswith("matmul"):
        high, groups = int(arguments[1]), int(arguments[2])
        return 2 * OUTPUTS * 32 * high, 2 * high * groups
    if kind not in TYPES:
        return 0, 0
    block, subs, units = TYPES[kind]
    high, groups = map(int, arguments[1:3]) if len(arguments) > 2 else (1, 1)
    high -= name.endswith(LESS)
    each = 8 if name.startswith("one_row") else 4 if kind == "Q6_K" else 2
    return OUTPUTS * block * high * units, subs * units * each * high * groups


def per_kilobyte(name, loop):
    """Returns how many instructions a kernel executes for each KB of weights. For attention, returns ""."""
    weights, products = work_of(name)
    found = sum(map(multiplies, loop))
    if not weights or not found:
        return ""
    nest = loops(loop)
    inside, between = nest[0], nest[1] if len(nest) > 2 else nest[0]
    inner = sum(map(multiplies, inside))
    times = (products - (found - inner)) / inner
    total = len(loop) - len(between) + HALVES * (len(between) - len(inside)) + times * len(inside)
    return f"{1024 * total / weights:.0f}"


def row_of(name, loop):
    copies = copies_of(name)
    copied = copies * LANES * 16 or sum(i.bytes() for i in loop if i.text.startswith("LDGSTS"))
    loaded = sum(i.bytes() for i in loop if i.text.startswith("LDG."))
    open_groups = [int(m[1], 16) for i in loop for m in [re.match(r"DEPBAR\.LE SB0, (0x\w+)", i.text)] if m]
    waits = max(1, len(open_groups))
    flight = copied // waits * (1 + max(open_groups, default=0))
    return (usual(loop, copies) if copies else len(loop), per_kilobyte(name, loop), sum(map(multiplies, loop)), copied,
            f"{4096 * waits / copied:.1f}", flight, loaded, stalls(loop))


def main():
    nvcc = os.environ.get("NVCC", "nvcc")
    dump = os.environ.get("CUOBJDUMP", "cuobjdump")
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    rows = {}
    archs = sys.argv[1:] or ["80", "90", "100"]
    with tempfile.TemporaryDirectory() as work:
        for arch in archs:
            for source, kernel in SOURCES.items():
                cubin = os.path.join(os.environ.get("CUBINS", work), f"{source}.{arch}")
                if not os.path.exists(cubin):
                    subprocess.run([nvcc, "-std=c++17", "-O3", "-I.", "-cubin", "-arch=sm_" + arch, "-o", cubin,
                                    f"kernels/cuda/{source}.cu"], cwd=root, check=True)
                text = subprocess.run([dump, "-sass", cubin], check=True, capture_output=True, text=True).stdout
                for name, instructions in functions(text):
                    plain = subprocess.run(["c++filt", name], capture_output=True, text=True).stdout.strip()
                    if kernel not in plain:
                        continue
                    for short, loop in named_loops(short_name(plain), instructions):
                        rows[short, arch] = row_of(short, loop)
    print("| kernel | sm_ | instructions | per KB | products | copied | waits per 4 KB | in flight | loaded | stalls |\n"
          "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for (name, arch), row in sorted(rows.items()):
        print(f"| `{name}` | {arch} |", " | ".join(map(str, row)), "|")


if __name__ == "__main__":
    main()
