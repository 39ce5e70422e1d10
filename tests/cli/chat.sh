#!/bin/sh
# Conversations on the command line: in the model's own format, in a format given by name, and as raw text.
. tests/shell.sh
. tests/chat_pair.sh
chat_pair "$work/chat"
chat_pair "$work/other" "{{ messages }}"
pair="--target $work/chat/target --draft $work/chat/draft"
gen="$ESPALIER generate -n 24 --drafter dynatree"
said="Who was the king?"

field() { # NAME FILE: the value of a member
    sed -n "s/^	\"$1\":	\(.*[^,]\),*$/\1/p" "$2" | head -1
}

$gen $pair -p "$said" --json >"$work/auto" 2>"$work/err"
check "a model's own format is taken" [ "$(field chat "$work/auto")" = '"chatml"' ]
check "which is worth no word" test ! -s "$work/err"
$gen $pair -p "$said" --json --chat none >"$work/none"
check "none is raw" [ "$(field chat "$work/none")" = null ]
check "and has fewer tokens" [ "$(field prompt_tokens "$work/none")" -lt "$(field prompt_tokens "$work/auto")" ]
$gen --target engine/models/fairytale-target -p "$said" --drafter ar --json >"$work/base"
check "a base model stays raw" [ "$(field chat "$work/base")" = null ]
$gen --drafter ar -p "$said" --json --chat chatml >"$work/named"
check "a format can be named for any model" [ "$(field chat "$work/named")" = '"chatml"' ]

$gen $pair -p "$said" >"$work/text"
for way in "--drafter ar" "--drafter fixed:D=4,B=2" "--drafter suffix" "--threads 1"; do
    $gen $pair -p "$said" $way >"$work/way"
    check "the answer does not depend on $way" cmp -s "$work/text" "$work/way"
done
printf %s "$said" >"$work/prompt"
$gen $pair -f "$work/prompt" >"$work/way"
check "nor on where the prompt comes from" cmp -s "$work/text" "$work/way"
$gen $pair -p "$said" --system "Be a fox." --json >"$work/system"
check "a system text is part of the prompt" \
    [ "$(field prompt_tokens "$work/system")" -gt "$(field prompt_tokens "$work/auto")" ]
$gen $pair -p "$said" --system auto --json >"$work/way"
check "auto is the template's own" [ "$(field prompt_tokens "$work/way")" = "$(field prompt_tokens "$work/auto")" ]
$ESPALIER quantize "$work/chat/target" "$work/chat.gguf" --type bf16 >/dev/null
$gen --target "$work/chat.gguf" --draft "" --drafter ar -p "$said" >"$work/way"
check "a GGUF file holds its format and says the same" cmp -s "$work/text" "$work/way"
check "no mark of the format is printed" sh -c "! grep -q 'im_end\|im_start' '$work/text'"

$gen $pair -p "a<|im_end|>b" --json >"$work/marks"
$gen $pair -p "a<|ix_end|>b" --json >"$work/plain"
check "marks in a prompt are text" \
    [ "$(field prompt_tokens "$work/marks")" -ge "$(field prompt_tokens "$work/plain")" ]

$gen --target "$work/other/target" --drafter ar -p "$said" --json >"$work/unknown" 2>"$work/err"
check "a template that is not known leaves text raw" [ "$(field chat "$work/unknown")" = null ]
check "and that is told, with what to do" grep -q -- '--chat NAME' "$work/err"
$gen --target "$work/other/target" --drafter ar -p "$said" --json --chat none >"$work/unknown" 2>"$work/err"
check "but not to who says that it is meant" test ! -s "$work/err"

check "a format that there is not is refused" fails 1 'gemma' $gen -p a --chat jinja
check "--system needs a text" fails 2 'value is missing' $gen -p a --system
printf '{"chat_template": "' >"$work/other/target/tokenizer_config.json"
check "a file that is no JSON is refused by name" fails 1 'tokenizer_config.json' \
    $gen --target "$work/other/target" --drafter ar -p a
rm "$work/other/target/tokenizer_config.json"
head -c 2000000 /dev/zero | tr '\0' x >"$work/other/target/chat_template.jinja"
check "and so is a template that is far too long" fails 1 'chat_template.jinja' \
    $gen --target "$work/other/target" --drafter ar -p a

$gen $pair -p "$said" --record "$work/chat.esp.jsonl" >"$work/way"
check "a recording knows the marks" grep -q '"type":"prompt".*"marks":[0-9]*,"marks_after":[0-9]' "$work/chat.esp.jsonl"
$ESPALIER replay "$work/chat.esp.jsonl" --plain >"$work/plain" 2>"$work/err"
check "and its replay shows what was said" grep -q "> $said" "$work/plain"
check "and not them" sh -c "! grep -q 'im_start' '$work/plain'"
finish
