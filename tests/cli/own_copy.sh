#!/bin/sh
# Tests --draft self: the draft model is a quantised copy of the target. The text must be the same as with
# plain decoding. Lists, statistics and recordings must say what the draft is. By default, the copy is
# made if it is expected to make decoding faster. A copy that cannot work must be refused.
. tests/shell.sh
export XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config"
target=engine/models/fairytale-target
prompt="Once upon a time"
text() { $ESPALIER generate -p "$prompt" -n 40 "$@"; }
says() { sed -n "s/.*\"$1\":[^a-z0-9\"]*\"\{0,1\}\([^\",]*\).*/\1/p" "$work/json" | head -n 1; }

text --drafter ar >"$work/plain"
for draft in self self:q4_k self:q4_0 self:q8_0; do
    text --draft $draft >"$work/text"
    check "the text with draft $draft equals the text of plain decoding" cmp "$work/plain" "$work/text"
done
text --draft self --json >"$work/json"
check "generate --json names the draft" [ "$(says draft)" = self:q4_k ]
check "generate --json marks the draft as a copy" [ "$(says draft_is_copy)" = true ]
check "with --draft self, the default drafter is goodput" [ "$(says drafter)" = goodput ]
text --json >"$work/json"
check "generate --json does not mark the built-in draft as a copy" [ "$(says draft_is_copy)" = false ]
text --draft self --stats >"$work/text" 2>"$work/stats"
check "generate --stats names the copy" grep -q "^draft  *self:q4_k, the target's own copy: [0-9.]* MB of Q4_K" "$work/stats"
text --draft self --drafter linear --record "$work/it.esp.jsonl" >"$work/text"
$ESPALIER stats "$work/it.esp.jsonl" >"$work/stats"
check "espalier stats names the copy" grep -q "^draft  *self:q4_k, the target's own copy" "$work/stats"
$ESPALIER stats "$work/it.esp.jsonl" --json >"$work/json"
check "espalier stats --json marks the draft as a copy" [ "$(says draft_is_copy)" = true ]
text --draft none --json >"$work/json"
check "with --draft none, there is no draft" [ "$(says draft)" = null ]
text --draft self --seed 7 --temp 0.8 >"$work/one"
text --draft self --seed 7 --temp 0.8 >"$work/two"
check "with the copy, the same seed gives the same text" cmp "$work/one" "$work/two"

for drafter in "" linear dynatree; do
    text --window 24 --drafter ar >"$work/plain"
    text --window 24 --draft self ${drafter:+--drafter $drafter} >"$work/text"
    check "in a window, $drafter with the copy writes the same text" cmp "$work/plain" "$work/text"
done
text --chat chatml --drafter ar >"$work/plain"
text --chat chatml --draft self >"$work/text"
check "in a chat, the text with the copy equals the text of plain decoding" cmp "$work/plain" "$work/text"

$ESPALIER quantize $target "$work/eight.gguf" --type q8_0 >/dev/null
$ESPALIER quantize $target "$work/four.gguf" --type q4_k >/dev/null
text --target "$work/eight.gguf" --drafter ar >"$work/plain"
text --target "$work/eight.gguf" --draft self >"$work/text"
check "with a quantised target, the text with the copy equals the text of plain decoding" cmp "$work/plain" "$work/text"
check "a copy of a 4-bit target is refused" fails 1 "four.gguf is small already: a copy 'self' would take [0-9]* %" \
    text --target "$work/four.gguf" --draft self
check "a copy of an unknown type is refused" fails 1 "there is no copy 'self:q3'; a copy of the target is self, self:q4_k" \
    text --draft self:q3
check "tune --write is refused with the target's own copy" fails 1 "a preset is for a pair" \
    $ESPALIER tune --target $target --draft self --write --seconds 1
check "--draft selfish names a model, not a copy" fails 1 "there is no model 'selfish'" text --draft selfish

$ESPALIER inflate $target "$work/large" --width 2 --layers 12 >/dev/null 2>&1
large="--target $work/large --context 96 --max-nodes 24"
text $large --drafter ar >"$work/plain"
text $large --draft self --memory 1M >"$work/text" 2>"$work/err"
limit=$(($(sed -n 's/.* \([0-9]*\)M are needed.*/\1/p' "$work/err") + 2))
text $large --draft self --memory ${limit}M --json >"$work/json"
check "with a memory limit, layers are streamed but the copy is not" grep -q '"resident_layers":' "$work/json"
peak=$(says peak_bytes)
check "with a copy as draft, the peak memory ($peak bytes) is below the limit (${limit}M)" test "$peak" -le $((limit << 20))
text $large --draft self --memory ${limit}M >"$work/text"
check "with a memory limit, the text with the copy equals the text of plain decoding" cmp "$work/plain" "$work/text"

$ESPALIER list models fairytale-target >"$work/list"
check "the list of models has the copy" grep -q '^self .* MB  llama Q4_K  *its own copy' "$work/list"
check "the list of models says that the copy fits as a draft" sh -c "tail -n 1 '$work/list' | grep -q 'fits as a draft'"
$ESPALIER list models fairytale-target --json >"$work/list"
check "the list of models as JSON has the copy" grep -q '"kind":	"copy"' "$work/list"
$ESPALIER list models "$work/four.gguf" >"$work/list"
check "list models says why a copy does not fit" sh -c "tail -n 1 '$work/list' | grep -q 'does not fit as a draft: .*is small already'"
$ESPALIER list models >"$work/list"
check "without a target, list models has no copy" sh -c "! grep -q '^self ' '$work/list'"
$ESPALIER inspect fairytale-target self >"$work/list"
check "inspect says that the copy fits" grep -q "^pair fits  *yes: the target's own copy" "$work/list"
$ESPALIER complete -- generate --draft s >"$work/list"
check "completion after --draft offers the copy" grep -q '^self	a quantised copy' "$work/list"

# If no draft is named, a target of 140 MB must draft with its own copy. A small target must not.
chosen() { $ESPALIER generate --target fairytale-target -p "$prompt" -n 3 --json "$@" >"$work/json" && says draft; }
check "a small target gets no copy by default" [ "$(chosen)" = null ]
check "a large target gets a copy by default" [ "$(chosen --width 4)" = self:q4_k ]
check "no copy is made with --draft none" [ "$(chosen --width 4 --draft none)" = null ]
check "no copy is made with a seed" [ "$(chosen --width 4 --seed 1)" = null ]
check "no copy is made for a drafter that uses no model" [ "$(chosen --width 4 --drafter suffix)" = null ]
check "no copy is made with a memory limit" [ "$(chosen --width 4 --memory 2G)" = null ]
$ESPALIER tune --target $target --draft self --seconds 4 -n 8 --temp 0 -p "$prompt" >"$work/tuned" 2>"$work/err"
check "tune measures drafters with the copy" sh -c "grep -q 'quantised copy' '$work/tuned' && grep -q '^linear:K=2 ' '$work/tuned'"
finish
