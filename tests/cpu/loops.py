#!/usr/bin/env python3
"""loops.py - counts the instructions of each kind in the innermost loops of an object file.

    tests/cpu/loops.py build/obj/kernels/cpu/isa/blocks.amx.o '_by_16$'

For each function with a matching name, the script looks at each loop that contains no other loop, and prints a
table in Markdown. It does not run the code, so it works on any processor.
"""
import re
import subprocess
import sys

KINDS = ["tile unit", "vector arithmetic", "vector moves", "others"]


def functions(path, pattern):
    """Returns the names of the functions, and for each function its instructions by address."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True,
                          capture_output=True, text=True).stdout
    for part in text.split("\n\n"):
        head = re.match(r"\s*[0-9a-f]+ <(.+)>:", part)
        if head and re.search(pattern, head[1]):
            lines = re.findall(r"^\s*([0-9a-f]+):\s+(\S.*?)\s*$", part, re.M)
            yield head[1], [(int(address, 16), text) for address, text in lines]


def innermost_loops(lines):
    """Returns the loops of a function. A loop ends with a jump back; a jump to the function's end is not a loop."""
    loops = []
    for address, text in lines:
        jump = re.match(r"j\w+\s+([0-9a-f]+) <", text)
        if jump and int(jump[1], 16) <= address:
            loops.append((int(jump[1], 16), address))
    for first, last in loops:
        code = [text for address, text in lines if first <= address <= last]
        others = [l for l in loops if l != (first, last)]
        if "ret" not in code and not any(first <= l[0] and l[1] <= last for l in others):
            yield code


def kind(text):
    name = text.split()[0]
    if re.match("tile|tdp", name):
        return KINDS[0]
    if re.match("vmov|vbroadcast|vpbroadcast", name):
        return KINDS[2]
    return KINDS[1] if name.startswith("v") else KINDS[3]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print("| loop | " + " | ".join(KINDS) + " | all |\n|---" + "|---" * 5 + "|")
    for name, lines in functions(sys.argv[1], sys.argv[2]):
        for code in innermost_loops(lines):
            counts = [sum(kind(text) == k for text in code) for k in KINDS]
            print(f"| {name} | " + " | ".join(map(str, counts)) + f" | {len(code)} |")


if __name__ == "__main__":
    main()
