#!/usr/bin/env python3
"""loops.py - instructions and predicted cycles of the innermost loops of an object file.

    tests/cpu/loops.py build/obj/kernels/cpu/isa/blocks.amx.o '_by_16$' [LLVM-MCA]

For each function whose name matches, each loop that has no other inside: its instructions, by
kind, and what llvm-mca says for Sapphire Rapids: cycles of one iteration where the loop runs on
and on with all data in the first cache. llvm-mca knows the tile unit's times since version 17;
one before that answers with nonsense, and is not asked.
"""
import re
import subprocess
import sys


def functions(path, pattern):
    """Names and lines (address, text of the instruction) of the functions."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True,
                          capture_output=True, text=True).stdout
    for part in text.split("\n\n"):
        head = re.match(r"\s*[0-9a-f]+ <(.+)>:", part)
        if not head or not re.search(pattern, head[1]):
            continue
        lines = re.findall(r"^\s*([0-9a-f]+):\s+(\S.*?)\s*$", part, re.M)
        yield head[1], [(int(address, 16), text) for address, text in lines]


def innermost_loops(lines):
    """Each backward jump ends a loop; one that contains another's is not innermost."""
    loops = []
    for address, text in lines:
        jump = re.match(r"j\w+\s+([0-9a-f]+) <", text)
        if jump and int(jump[1], 16) <= address:
            loops.append((int(jump[1], 16), address))
    for first, last in loops:
        inside = [l for l in loops if l != (first, last) and first <= l[0] and l[1] <= last]
        code = [text for address, text in lines if first <= address <= last]
        if not inside and "ret" not in code: # a jump back to the function's end is no loop
            yield code


def kind(text):
    name = text.split()[0]
    if re.match("tile|tdp", name):
        return "tile unit"
    if re.match("vmov|vbroadcast|vpbroadcast", name):
        return "vector moves"
    return "vector arithmetic" if name.startswith("v") else "others"


def predicted(loop, mca):
    """Cycles of an iteration, or a dash."""
    code = [re.sub(r"\s+#.*|<.*>", "", text) for text in loop if not text.startswith("j")]
    run = subprocess.run([mca, "-mcpu=sapphirerapids", "-iterations=200"], text=True,
                         input="\n".join(code) + "\n", capture_output=True)
    cycles = re.search(r"Total Cycles:\s+(\d+)", run.stdout)
    return f"{int(cycles[1]) / 200:.0f}" if cycles else "-"


def knows_tiles(mca):
    try:
        text = subprocess.run([mca, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return False
    version = re.search(r"LLVM version (\d+)", text)
    return bool(version) and int(version[1]) >= 17


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    mca = sys.argv[3] if len(sys.argv) > 3 else "llvm-mca"
    kinds = ["tile unit", "vector arithmetic", "vector moves", "others"]
    known = knows_tiles(mca)
    print("| loop | " + " | ".join(kinds) + " | all | cycles |\n|---" + "|---" * 6 + "|")
    for name, lines in functions(sys.argv[1], sys.argv[2]):
        for loop in innermost_loops(lines):
            counts = [sum(kind(text) == k for text in loop) for k in kinds]
            print(f"| {name} | " + " | ".join(map(str, counts)) +
                  f" | {len(loop)} | {predicted(loop, mca) if known else '-'} |")


if __name__ == "__main__":
    main()
