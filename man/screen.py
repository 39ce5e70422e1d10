#!/usr/bin/env python3
"""Makes man/screen.svg, the README's picture of the interface, from a real run.

    man/screen.py [build/espalier] >man/screen.svg       (`make pages` does this)
    man/screen.py --check man/screen.svg [build/espalier]

Runs the demo's drafter with a fixed seed until an iteration has a large enough tree, and draws the screen in the
colours of themes/dark.theme. The speeds in the picture are measured during this run. If trees are not faster than plain
decoding, the script makes no picture. With --check it draws nothing. Instead it compares the names of the panes and the
line of keys in the picture with the real screen, and reports differences. These texts are the same on every machine.
"""
import html
import io
import os
import re
import subprocess
import sys
import tempfile

WIDTH, HEIGHT = 120, 27
CELL, LINE, LEFT, TOP = 8.43, 18, 12, 25.5
PAPER, INK = "#14161a", "#d6dbe3"
PROMPT = ("There was once upon a time a fisherman who lived with his wife in a little hut "
          "close by the sea.")
LEAST_ROWS = 6  # the picture shows a tree with at least this many rows


def drafter():
    with open("Makefile") as makefile:
        return re.search(r"^DEMO_DRAFTER := (\S+)", makefile.read(), re.M).group(1)


def screen(program, tokens):
    """Returns the screen after `tokens` tokens: its rows as text, and the same rows with a letter for the style of each cell."""
    with tempfile.TemporaryDirectory() as work:
        files = [os.path.join(work, name) for name in ("script", "text", "styles")]
        with open(files[0], "w") as script:
            script.write(f"size {WIDTH}x{HEIGHT}\nwait\ntype :n {tokens}\nkey Enter\n"
                         f"type {PROMPT}\nkey Enter\nwait\ndump {files[1]}\nstyles {files[2]}\n")
        subprocess.run([program, "--no-config", "--width", "4", "--temp", "0.6", "--seed", "3",
                        "--drafter", drafter()], check=True,
                       env={**os.environ, "ESPALIER_SCRIPT": files[0], "LC_ALL": "C.UTF-8"})
        return [open(name, encoding="utf-8").read().splitlines() for name in files[1:]]


def styles():
    """Returns the colour, weight and decoration for each style letter. Letters are in the order of viz/style.h."""
    with open("viz/style.h") as header:
        keys = re.findall(r'^ +X\([A-Z_]+, "([a-z-]+)"', header.read(), re.M)
    theme = {}
    with open("themes/dark.theme") as lines:
        for line in lines:
            if "=" in line and not line.startswith("#"):
                key, value = (part.strip() for part in line.split("=", 1))
                theme[key] = value
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return {letters[i]: theme.get(key, "") for i, key in enumerate(keys)}


def draw(text, letters, out):
    look = styles()
    out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="1036" height="{HEIGHT * LINE + 24}" '
              f'viewBox="0 0 1036 {HEIGHT * LINE + 24}" font-size="14" '
              'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace">\n'
              f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>\n')
    for y, row in enumerate(text):
        marks = letters[y].ljust(len(row))
        for run in re.finditer(r"(\S)\1*", marks):
            shown = row[run.start():run.end()]
            stripped = shown.strip()
            if not stripped:
                continue
            at = run.start() + len(shown) - len(shown.lstrip())
            style = look.get(run.group(1), "")
            colour = re.search(r"#[0-9a-f]{6}", style)
            extra = ' font-weight="bold"' if "bold" in style else ""
            extra += ' text-decoration="underline"' if "underline" in style else ""
            out.write(f'<text xml:space="preserve" x="{LEFT + at * CELL:.2f}" y="{TOP + y * LINE}" '
                      f'fill="{colour.group(0) if colour else INK}" '
                      f'textLength="{len(stripped) * CELL:.2f}" lengthAdjust="spacingAndGlyphs"'
                      f'{extra}>{html.escape(stripped)}</text>\n')
    out.write("</svg>\n")


def parts(picture):
    """Returns the parts of a picture that are the same on every machine: the names of panes, and the line of keys."""
    rows = {}
    for x, y, text in re.findall(r'<text [^>]*x="([0-9.]+)" y="([0-9.]+)"[^>]*>([^<]*)</text>', picture):
        rows.setdefault(float(y), []).append((float(x), html.unescape(text)))
    lines = [" ".join(text for _, text in sorted(rows[y])) for y in sorted(rows)]
    panes = re.findall(r"(?:^|[┌├┬┼┴] )(text|tree|controller|node|stats|timeline|compare)\b", "\n".join(lines), re.M)
    return sorted(panes), " ".join(lines[-1].split())


def check(path, program):
    with open(path, encoding="utf-8") as file:
        kept = parts(file.read())
    drawn = io.StringIO()
    draw(*screen(program, 60), drawn)
    now = parts(drawn.getvalue())
    for what, before, after in zip(("panes", "keys"), kept, now):
        if before != after or not after:
            print(f"{path}: its {what} are {before}, but the screen has {after}; make pages redraws it",
                  file=sys.stderr)
    return kept != now or not all(now)


def main():
    arguments = sys.argv[1:]
    kept = arguments[1] if arguments[:1] == ["--check"] else None
    program = (arguments[2 if kept else 0:] or ["build/espalier"])[0]
    if kept:
        return check(kept, program)
    for tokens in range(60, 160, 4):
        text, letters = screen(program, tokens)
        rows = sum("─ " in row[60:] for row in text[2:13])
        if rows >= LEAST_ROWS and re.search(r"[0-9.]+x plain", text[0]):
            draw(text, letters, sys.stdout)
            return 0
    print("man/screen.py: no picture, because no screen of this run shows both a speedup and a large enough tree",
          file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
