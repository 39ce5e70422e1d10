#!/bin/sh
# The picture in the README must show the panes and keys of the real screen. `make pages` redraws the picture.
. tests/shell.sh

if command -v python3 >/dev/null; then
    check "man/screen.svg is up to date" man/screen.py --check man/screen.svg "$ESPALIER"
    sed 's/F7 menu/F7 all/; s/>menu</>all</' man/screen.svg >"$work/old.svg"
    check "a picture that shows other keys is reported as outdated" sh -c "! man/screen.py --check '$work/old.svg' '$ESPALIER' 2>'$work/err'"
    check "the message names the difference between the pictures" grep -q 'its keys are .*make pages' "$work/err"
fi
finish
