#!/bin/sh
# Tests how models on the machine are found. The program must look in the folders of other programs, accept the models' names,
# and say which models fit as drafts. The test makes all home folders itself.
. tests/shell.sh
. tests/letters.sh
home="$work/home"
export HOME="$home" XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config"
unset ESPALIER_MODELS HF_HOME HF_HUB_CACHE XDG_CACHE_HOME OLLAMA_MODELS
target=$PWD/engine/models/fairytale-target
draft=$PWD/engine/models/fairytale-draft
list="timeout 60 $ESPALIER list models"

model() { # FOLDER FROM: makes the model folder FOLDER, with links to the files of the model folder FROM
    mkdir -p "$1"
    for file in config.json tokenizer.json generation_config.json model.safetensors; do
        ln -s "$2/$file" "$1/$file"
    done
}

hub="$home/.cache/huggingface/hub"
model "$hub/models--org--Some-Model/snapshots/aaaa" "$target"
model "$hub/models--org--Some-Model/snapshots/bbbb" "$draft"
mkdir -p "$hub/models--org--Some-Model/refs" "$hub/models--org--Half/snapshots/cccc" "$hub/datasets--x--y/snapshots/d"
printf bbbb >"$hub/models--org--Some-Model/refs/main"
printf '{"model_type": "llama"}' >"$hub/models--org--Half/snapshots/cccc/config.json"
model "$hub/datasets--x--y/snapshots/d" "$draft"
mkdir -p "$home/.lmstudio/models/maker/Tiny-GGUF" "$home/.cache/lm-studio/models/old/one"
printf x >"$home/.lmstudio/models/maker/Tiny-GGUF/tiny-Q8_0.gguf"
for part in 1 2 3; do printf xx >"$home/.lmstudio/models/maker/Tiny-GGUF/large-0000$part-of-00003.gguf"; done
printf x >"$home/.cache/lm-studio/models/old/one/old.GGUF"
ollama="$home/.ollama/models"
digest=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
mkdir -p "$ollama/manifests/registry.ollama.ai/library/llama3.2" "$ollama/manifests/registry.ollama.ai/me/mine" "$ollama/blobs"
printf gguf >"$ollama/blobs/sha256-$digest"
manifest() {
    printf '{"layers": [{"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:%s"},
        {"mediaType": "application/vnd.ollama.image.model", "digest": "%s"}]}' "$digest" "$1"
}
manifest "sha256:$digest" >"$ollama/manifests/registry.ollama.ai/library/llama3.2/1b"
manifest "sha256:$digest" >"$ollama/manifests/registry.ollama.ai/me/mine/latest"
manifest "sha256:../../../../etc/passwd" >"$ollama/manifests/registry.ollama.ai/me/mine/evil"
printf '{"layers": ' >"$ollama/manifests/registry.ollama.ai/me/mine/broken"

$list >"$work/list" 2>"$work/err"
check "list models succeeds" [ $? -eq 0 ]
check "list models prints no message on standard error" test ! -s "$work/err"
listed() { grep -q -e "^$1 .* $2\$" "$work/list"; }
check "built-in models are found" listed fairytale-draft built-in
check "models in the Hugging Face cache are found" listed org/Some-Model 'llama *Hugging Face'
check "the newest commit of a model is listed" grep -q "models--org--Some-Model/snapshots/bbbb$" "$work/list"
check "a model of the Hugging Face cache is listed once" [ "$(grep -c '^org/Some-Model ' "$work/list")" = 1 ]
check "incomplete models are not listed" sh -c "! grep -q 'Half\|datasets' '$work/list'"
check "LM Studio's models are found" listed maker/Tiny-GGUF/tiny-Q8_0 'GGUF *LM Studio'
check "models in LM Studio's old folder are found" listed old/one/old 'GGUF *LM Studio'
check "a model that is split into several files is listed once" [ "$(grep -c '^maker/Tiny-GGUF/large' "$work/list")" = 1 ]
check "ollama's models are found" listed llama3.2:1b 'GGUF *ollama'
check "ollama's models are listed with their namespaces" listed me/mine:latest ollama
check "a manifest of ollama cannot name files outside ollama's folder" sh -c "! grep -q 'evil\|broken\|passwd' '$work/list'"
$list --json >"$work/json"
check "list models --json has the found models" grep -q '"name":	"llama3.2:1b"' "$work/json"

# The program must also search the folders that ESPALIER_MODELS names.
model "$work/my/first" "$target"
model "$work/your/deep/er/second" "$draft"
model "$work/your/a/b/c/d/e/lost" "$draft"
ESPALIER_MODELS="$work/my:$work/nowhere::$work/your" $list >"$work/list"
check "folders in ESPALIER_MODELS are listed" listed first ESPALIER_MODELS
check "subfolders of the folders in ESPALIER_MODELS are searched" listed deep/er/second ESPALIER_MODELS
check "folders in ESPALIER_MODELS are searched only to a limited depth" sh -c "! grep -q lost '$work/list'"
ESPALIER_MODELS="$work/my/first" $list >"$work/list"
check "a folder in ESPALIER_MODELS can be a model itself" listed first ESPALIER_MODELS
HF_HOME="$work/none" $list >"$work/list"
check "HF_HOME sets the folder of the Hugging Face cache" sh -c "! grep -q Some-Model '$work/list'"
OLLAMA_MODELS="$work/none" $list >"$work/list"
check "OLLAMA_MODELS sets ollama's folder" sh -c "! grep -q 'llama3.2' '$work/list'"

# It must be possible to give a model by its name instead of its path.
gen="$ESPALIER generate -p once -n 4"
$gen --target fairytale-target --draft fairytale-draft >"$work/named"
$gen >"$work/unnamed"
check "--target and --draft accept the names of models" cmp -s "$work/named" "$work/unnamed"
$ESPALIER generate fairytale-target fairytale-draft -p once -n 4 >"$work/named"
check "generate accepts the names of models as arguments" cmp -s "$work/named" "$work/unnamed"
printf once | $ESPALIER generate fairytale-target fairytale-draft - -n 4 >"$work/named"
check "generate accepts the names of models if the prompt comes from a pipe" cmp -s "$work/named" "$work/unnamed"
$ESPALIER inspect some-model >"$work/named"
check "a model is found by a short name, in upper or lower case" grep -q snapshots/bbbb "$work/named"
check "an unknown name of a model is refused" fails 1 "no model 'nobody'" $gen --target nobody
check "a name is refused if two models have it, and the error names both" env ESPALIER_MODELS="$work/twice" sh -c \
    "mkdir -p '$work/twice/a' '$work/twice/b' && ln -s '$work/my/first' '$work/twice/a/same' && ln -s '$work/your/deep/er/second' '$work/twice/b/same' &&
    ! $gen --target same 2>'$work/err' && grep -q 'a/same (ESPALIER_MODELS) and b/same' '$work/err'"
check "a third model is refused" fails 2 "unexpected argument 'three'" $gen one two three
check "a target is refused if both --target and an argument name it" fails 2 'given already' $gen --target one two
check "a word that is neither a command nor a model is refused" fails 2 "no command 'nonsense'" $ESPALIER nonsense
check "the list of themes takes no argument" fails 2 "unexpected argument" $ESPALIER list themes x

# `list` must show which models fit together as target and draft.
ESPALIER_MODELS="$work/my:$work/pairs" && export ESPALIER_MODELS
model "$work/pairs/other" "$draft"
rm "$work/pairs/other/tokenizer.json" "$work/pairs/other/config.json"
sed 's/"model_type": "llama"/"model_type": "qwen2"/' "$draft/config.json" >"$work/pairs/other/config.json"
cp tests/vectors/tokenizers/qwen2/tokenizer.json "$work/pairs/other"
$list fairytale-target >"$work/list"
fits() { grep -A2 "^$1 " "$work/list" | grep -q "$2"; }
check "list models says that a draft model fits" fits fairytale-draft 'fits as a draft'
check "list models says that a draft has another vocabulary and another family" fits other 'another vocabulary.*qwen2 instead of llama'
check "list models says that a draft is as large as the target" fits first 'as large as the target'
$list fairytale-target --json >"$work/json"
check "list models --json says that a draft fits" grep -q '"fits":	true' "$work/json"
check "list models refuses an unknown target" fails 1 "no model 'nobody'" $list nobody

# Draft heads have no tokenizer. A head must be listed as fitting if it has the sizes of the target.
cp -r tests/vectors/heads/target "$work/goal" && tokenizer >"$work/goal/tokenizer.json"
mkdir "$work/heads" && for head in eagle3-narrow eagle3-speculators-fc-norm; do
    cp -r tests/vectors/heads/$head "$work/heads"
done
ESPALIER_MODELS="$work/heads" $list "$work/goal" >"$work/list"
check "a draft head that fits is listed with its kind" fits eagle3-narrow 'fits as a draft: a draft head (eagle3)'
check "a draft head in the format of speculators is listed with its kind if it fits" fits eagle3-speculators-fc-norm 'fits as a draft: a draft head (eagle3)'
check "inspect names the kind of a draft head in the format of speculators" sh -c \
    "$ESPALIER inspect '$work/goal' '$work/heads/eagle3-speculators-fc-norm' --backend cpu | grep -q 'eagle3 draft head, 1 layer'"
ESPALIER_MODELS="$work/heads" $list fairytale-target >"$work/list"
check "list models says why the draft head of another target does not fit" fits eagle3-speculators-fc-norm \
    'does not fit as a draft: the draft head .* is for a target with a vocabulary of 97 tokens'
check "list models refuses a target that is not a model" fails 1 'neither a model folder' $list "$work"

# `list` must show the properties of GGUF files.
mkdir -p "$work/files"
$ESPALIER quantize "$draft" "$work/files/small.gguf" --type q8_0 >"$work/out" 2>&1
cp tests/vectors/gguf/llama-gqa-0000?-of-00002.gguf tests/vectors/gguf/qwen3-moe.gguf "$work/files"
printf 'GGUF\003\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000\024\000\000\000\000\000\000\000general.architecture\010\000\000\000\005\000\000\000\000\000\000\000mamba' >"$work/files/mamba.gguf"
ESPALIER_MODELS="$work/files" $list >"$work/list"
check "list models shows the family and the type of a GGUF file" listed small 'llama GGUF Q8_0 *ESPALIER_MODELS'
check "list models shows the family and the type of a mixture of experts in a GGUF file" listed qwen3-moe 'qwen3_moe GGUF BF16 *ESPALIER_MODELS'
check "list models says that a model of an unsupported family cannot be opened" sh -c "grep -A2 '^mamba ' '$work/list' | grep -q 'cannot be opened: .* is mamba'"
ESPALIER_MODELS="$work/files" $list --json >"$work/json"
bytes=$(cat "$work/files"/llama-gqa-* | wc -c)
check "the size of a split GGUF file is the size of all its parts" sh -c "grep -A9 'llama-gqa' '$work/json' | grep -q '\"bytes\":.*$bytes\$'"
ESPALIER_MODELS="$work/files" $list fairytale-target >"$work/list"
check "list models says that a GGUF file fits as a draft" fits small 'fits as a draft'
check "list models says why a model cannot draft for the target" fits mamba 'does not fit as a draft: .* is mamba'
ESPALIER_MODELS="$work/files" $list "$work/files/small.gguf" >"$work/list"
check "a GGUF file can be the target" fits fairytale-target 'as large as the target'

# Loops of links, pipes, devices, and control characters in names must not stop the search.
bad="$work/bad"
mkdir -p "$bad/loop" "$bad/closed" "$bad/fifo" "$bad/$(printf 'x\033[31mred')"
ln -s .. "$bad/loop/up"
ln -s loop "$bad/loop/itself"
ln -s "$bad" "$bad/loop/all"
mkfifo "$bad/fifo/config.json" "$bad/fifo/model.safetensors" "$bad/pipe.gguf"
mkfifo "$ollama/manifests/registry.ollama.ai/me/mine/pipe"
ln -s /dev/zero "$bad/zero.gguf"
model "$bad/closed/in" "$draft"
chmod 000 "$bad/closed"
printf x >"$bad/$(printf 'x\033[31mred')/$(printf 'b\377ad\n').gguf"
printf 'not json' >"$bad/config.json"
model "$bad/broken" "$draft"
rm "$bad/broken/config.json"
printf '{"model_type": "\\u001b[31m"}' >"$bad/broken/config.json"
ESPALIER_MODELS="$bad:/dev/zero:$work/list" $list >"$work/list" 2>"$work/err"
check "the search succeeds despite loops, pipes and unreadable folders" [ $? -eq 0 ]
check "devices and pipes are not listed as models" sh -c "! grep -q '^zero\|^pipe' '$work/list'"
check "no control character of a name reaches the terminal" sh -c "! grep -q '$(printf '\033')' '$work/list'"
ESPALIER_MODELS="$bad" $list --json >"$work/json"
check "no control character of a name is in the JSON output" sh -c "! grep -q '$(printf '\033')' '$work/json' && grep -q broken '$work/json'"
chmod 700 "$bad/closed"
forged=$(printf 'x\nQwen2.5-7B-Instruct                       4.7 GB  qwen2                Hugging Face\n    ')
mkdir "$work/forged" && cp "$work/files/small.gguf" "$work/forged/$forged.gguf"
ESPALIER_MODELS="$work/forged" $list >"$work/list"
check "a newline in a name cannot forge an entry of the list" sh -c "! grep -q '^Qwen' '$work/list' && grep -q '^x^JQwen' '$work/list'"
check "a newline in a name cannot begin a new line of the list" test -z "$(grep -v -e '^    ' -e ' MB  ' "$work/list")"
ESPALIER_MODELS="$work/forged" $list --json >"$work/json"
check "a newline in a name is escaped in JSON" grep -q '"name":	"x\\nQwen' "$work/json"
check "a newline in a name is escaped in a message" fails 1 "no model 'x.*Qwen" $gen --target "$forged"
HOME=relative ESPALIER_MODELS= $list >"$work/list"
check "a HOME that is a relative path is ignored" listed fairytale-draft built-in
finish
