#!/bin/sh
# For bad input, the program must print an error message of one line, exit with the right code, and write no file.
. tests/shell.sh
target=engine/models/fairytale-target
draft=engine/models/fairytale-draft
gen="$ESPALIER generate -p hello -n 4"

copy() { # NAME: copies the draft model to the folder NAME; the test then damages the copy
    mkdir "$work/$1" && cp "$draft"/* "$work/$1"
}

check "the error message names a missing folder" fails 1 "$work/none" $gen --target "$work/none"
mkdir "$work/empty"
check "a folder without a model is refused" fails 1 "config.json" $gen --target "$work/empty"
copy cut && head -c 100000 "$draft/model.safetensors" >"$work/cut/model.safetensors"
check "a truncated safetensors file is refused" fails 1 "model.safetensors" $gen --target "$work/cut"
copy shape && sed -i 's/"hidden_size": 96/"hidden_size": 64/' "$work/shape/config.json"
check "a model with tensors of wrong shapes is refused" fails 1 "shape\|expected\|hidden" $gen --target "$work/shape"
copy arch && sed -i 's/"llama"/"mamba"/; s/LlamaForCausalLM/MambaForCausalLM/' "$work/arch/config.json"
check "an unknown architecture is refused" fails 1 "mamba" $gen --target "$work/arch"
copy vocab && sed -i 's/"Ġthe":/"Ġthx":/' "$work/vocab/tokenizer.json"
check "an inconsistent tokenizer is refused" fails 1 "tokenizer.json" $gen --target "$work/vocab"
copy json && printf '{"model_type": ' >"$work/json/config.json"
check "a config that is not JSON is refused" fails 1 "config.json" $gen --target "$work/json"
copy gguf && printf 'GGUF\003\000\000\000\377\377\377\377\377\377\377\377AAAAAAAA' >"$work/gguf/a.gguf"
check "a GGUF file that claims impossible numbers of tensors is refused" fails 1 "more tensors" $gen --target "$work/gguf/a.gguf"
printf 'GGUF\003\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000' >"$work/b.gguf"
printf '\024\000\000\000\000\000\000\000general.architecture\010\000\000\000' >>"$work/b.gguf"
printf '\006\000\000\000\000\000\000\000a\033[31m' >>"$work/b.gguf"
check "a GGUF file with escape codes in a string is refused" fails 1 'is a?\[31m' $gen --target "$work/b.gguf"
check "a file that is not a model is refused" fails 1 "neither a folder nor a GGUF" $gen --target "$target/config.json"

yes 'There was a king, who had 3 sons.' | head -c 10000000 >"$work/long"
check "a prompt of 10 MB is refused" fails 1 "more than 4 times as long as the context of 768 tokens" $ESPALIER generate -f "$work/long" -n 4
from_pipe() {
    cat "$work/long" | (ulimit -t 3; exec $ESPALIER generate - -n 4) 2>"$work/err"
    [ $? -eq 1 ] && grep -q "more than 4 times" "$work/err"
}
check "a prompt of 10 MB from a pipe is refused before all of it is read" from_pipe

check "a negative number of tokens is refused" fails 1 "tokens" $ESPALIER generate -p hello -n -5
check "-n with a value that is not a number is refused" fails 1 "tokens" $ESPALIER generate -p hello -n x
check "an unknown drafter is refused" fails 1 "nothing" $gen --drafter nothing
check "an unknown parameter is refused" fails 1 "tauq" $gen --drafter dynatree:tauq=1
check "a parameter out of range is refused" fails 1 "tau" $gen --drafter dynatree:tau=7
check "a parameter without a value is refused" fails 1 "name=value" $gen --drafter dynatree:tau
check "an unknown verifier is refused" fails 1 "nothing" $gen --verifier nothing
check "an unknown backend is refused" fails 1 "abacus" $gen --backend abacus
check "an unknown --order is refused" fails 1 "order" $gen --order up
check "a temperature below 0 is refused" fails 1 "temp" $gen --temp -1
check "a top-p above 1 is refused" fails 1 "top-p" $gen --top-p 1.5
check "a top-p of 0 is refused" fails 1 "top-p takes a number above 0" $gen --top-p 0
check "espalier warns if a drafter has more nodes than --max-nodes allows" sh -c "$gen -n 2 --drafter dyspec:N=300 2>&1 |
    grep -q 'they have at most 256 nodes; start with --max-nodes 300'"
check "espalier does not warn if --max-nodes is below the default number of nodes" sh -c "! $gen -n 2 --max-nodes 20 --drafter dyspec 2>&1 | grep -q nodes"
check "drafter optimal can draft fewer nodes than it expands in one pass" sh -c "$gen -n 2 --drafter optimal:N=7 >/dev/null"
check "a seed that is not a number is refused" fails 1 "seed" $gen --seed x
check "--threads 0 is refused" fails 1 "threads" $gen --threads 0
check "verifier greedy is refused above temperature 0" fails 1 "greedy" $gen --verifier greedy --temp 1
check "a --context larger than the context of the model is refused" fails 1 "context" $gen --context 100000

check "an unknown command is refused" fails 2 "dance" $ESPALIER dance
check "an unknown option is refused" fails 2 "--dance" $ESPALIER generate --dance
check "an option without its value is refused" fails 2 "-p" $ESPALIER generate -p
check "-p and -f together are refused" fails 2 "one prompt" $ESPALIER generate -p a -f b
check "an argument that is not a model is refused" fails 1 "no model 'stray'" $ESPALIER generate -p a stray
check "espalier list refuses a list that does not exist" fails 2 "trees" $ESPALIER list trees
check "a prompt file that does not exist is refused" fails 1 "$work/none" $ESPALIER generate -f "$work/none"
check "an empty prompt is refused" fails 1 "prompt" $ESPALIER generate -p ""
check "a prompt longer than the context is refused" fails 1 "tokens" $ESPALIER generate -f "$draft/tokenizer.json"

printf '\033[31mred\007' >"$work/name"
check "control characters in the name of a model do not reach the terminal" fails 1 "?\[31m" $ESPALIER generate -p a \
    --target "$(cat "$work/name")"
check "control characters in the name of a command do not reach the terminal" fails 2 "command '^\[\[31mred^G'" $ESPALIER "$(cat "$work/name")"
check "control characters in a number do not reach the terminal" fails 1 "not '?\[31mred?'" $ESPALIER generate -n "$(cat "$work/name")"

for words in --help "list drafters" inspect "inspect --json" "check --drafter ar --trials 1" \
    "generate -p a -n 2"; do
    check "espalier $words reports an error if the disk of standard output is full" \
        fails 1 "standard output" sh -c "$ESPALIER $words >/dev/full"
done
sh -c "$ESPALIER generate -p Once -n 4 --record '$work/held' >&-" 2>/dev/null
check "if standard output is closed, the text is not written into the recording" \
    [ "$(grep -vc '^{' "$work/held")" = 0 ]
finish
