#!/bin/sh
# Makes man/tree.svg, the picture of a tree in the README, from a recording that comes with the source.
#     man/tree.sh [build/espalier] >man/tree.svg
exec "${1:-build/espalier}" export sessions/samples/dynatree-adapting.esp.jsonl --iteration 5 --aspect 16:9
