#!/bin/sh
# Tests conversations on the command line: in the model's own chat format, in a format given by name, and as raw text.
. tests/shell.sh
. tests/chat_pair.sh
chat_pair "$work/chat"
chat_pair "$work/other" "{{ messages }}"
pair="--target $work/chat/target --draft $work/chat/draft"
gen="$ESPALIER generate -n 24 --drafter dynatree"
said="Who was the king?"

field() { # NAME FILE: prints the value of a JSON member
    sed -n "s/^	\"$1\":	\(.*[^,]\),*$/\1/p" "$2" | head -1
}

$gen $pair -p "$said" --json >"$work/auto" 2>"$work/err"
check "by default, the model's own chat format is used" [ "$(field chat "$work/auto")" = '"chatml"' ]
check "generate with a chat format prints no message" test ! -s "$work/err"
$gen $pair -p "$said" --json --chat none >"$work/none"
check "--chat none writes raw text" [ "$(field chat "$work/none")" = null ]
check "a prompt as raw text has fewer tokens than the same prompt as a turn" [ "$(field prompt_tokens "$work/none")" -lt "$(field prompt_tokens "$work/auto")" ]
$gen --target engine/models/fairytale-target -p "$said" --drafter ar --json >"$work/base"
check "a base model uses raw text" [ "$(field chat "$work/base")" = null ]
$gen --drafter ar -p "$said" --json --chat chatml >"$work/named"
check "--chat NAME chooses a chat format for any model" [ "$(field chat "$work/named")" = '"chatml"' ]

$gen $pair -p "$said" >"$work/text"
for way in "--drafter ar" "--drafter fixed:D=4,B=2" "--drafter suffix" "--threads 1"; do
    $gen $pair -p "$said" $way >"$work/way"
    check "the answer does not depend on $way" cmp -s "$work/text" "$work/way"
done
printf %s "$said" >"$work/prompt"
$gen $pair -f "$work/prompt" >"$work/way"
check "a prompt from a file gives the same answer" cmp -s "$work/text" "$work/way"
$gen $pair -p "$said" --system "Be a fox." --json >"$work/system"
check "the number of prompt tokens includes the tokens of --system" \
    [ "$(field prompt_tokens "$work/system")" -gt "$(field prompt_tokens "$work/auto")" ]
$gen $pair -p "$said" --system auto --json >"$work/way"
check "--system auto uses the template's own system prompt" [ "$(field prompt_tokens "$work/way")" = "$(field prompt_tokens "$work/auto")" ]
$ESPALIER quantize "$work/chat/target" "$work/chat.gguf" --type bf16 >/dev/null
$gen --target "$work/chat.gguf" --draft "" --drafter ar -p "$said" >"$work/way"
check "a model converted to GGUF keeps its chat format and gives the same text" cmp -s "$work/text" "$work/way"
check "no control token of the format is printed" sh -c "! grep -q 'im_end\|im_start' '$work/text'"

$gen $pair -p "a<|im_end|>b" --json >"$work/marks"
$gen $pair -p "a<|ix_end|>b" --json >"$work/plain"
check "control tokens that a user types in a prompt are read as plain text" \
    [ "$(field prompt_tokens "$work/marks")" -ge "$(field prompt_tokens "$work/plain")" ]

$gen --target "$work/other/target" --drafter ar -p "$said" --json >"$work/unknown" 2>"$work/err"
check "a model with an unknown chat template uses raw text" [ "$(field chat "$work/unknown")" = null ]
check "a message says that raw text is used, and how to choose a format" grep -q -- '--chat NAME' "$work/err"
$gen --target "$work/other/target" --drafter ar -p "$said" --json --chat none >"$work/unknown" 2>"$work/err"
check "with --chat none, there is no message about raw text" test ! -s "$work/err"

check "an unknown chat format is refused" fails 1 'gemma' $gen -p a --chat jinja
check "--system needs a text" fails 2 'value is missing' $gen -p a --system
printf '{"chat_template": "' >"$work/other/target/tokenizer_config.json"
check "a configuration that is not JSON is refused, and the error names the file" fails 1 'tokenizer_config.json' \
    $gen --target "$work/other/target" --drafter ar -p a
rm "$work/other/target/tokenizer_config.json"
head -c 2000000 /dev/zero | tr '\0' x >"$work/other/target/chat_template.jinja"
check "a template that is far too long is refused, and the error names the file" fails 1 'chat_template.jinja' \
    $gen --target "$work/other/target" --drafter ar -p a

$gen $pair -p "$said" --record "$work/chat.esp.jsonl" >"$work/way"
check "a recording says how many control tokens are before and after the message" grep -q '"type":"prompt".*"marks":[0-9]*,"marks_after":[0-9]' "$work/chat.esp.jsonl"
$ESPALIER replay "$work/chat.esp.jsonl" --plain >"$work/plain" 2>"$work/err"
check "the replay of a conversation shows the user's message" grep -q "> $said" "$work/plain"
check "the replay of a conversation shows no control tokens" sh -c "! grep -q 'im_start' '$work/plain'"
finish
