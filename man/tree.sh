#!/bin/sh
# Makes man/tree.svg, the README's picture of a tree, from a sample recording.
#     man/tree.sh [build/espalier] >man/tree.svg
exec "${1:-build/espalier}" export sessions/samples/dynatree-adapting.esp.jsonl --iteration 5 --aspect 16:9
