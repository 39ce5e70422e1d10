#!/bin/sh
# Tests drafting without a draft model that has the target's vocabulary: with a draft model of another
# vocabulary, with a copy of the target, and without a draft model. All of these ways must also work in a
# chat, in a window, with layers that are read from the disk, and with mixtures of experts. The text must
# be the same as with plain decoding, and some drafts must be accepted.
. tests/shell.sh
. tests/chat_pair.sh
XDG_STATE_HOME=$work/state
export XDG_STATE_HOME

field() { # NAME FILE: prints the value of a JSON member
    sed -n "s/^	*\"$1\":	\(.*[^,]\),*$/\1/p" "$2" | head -1
}

# Gives the model in FOLDER another vocabulary. Of the tokens with several characters, every fifth
# is replaced by another token. Some tokens of one character exchange their ids.
change_vocabulary() { # FOLDER
    python3 - "$1/tokenizer.json" <<'END'
import json, sys
path = sys.argv[1]
root = json.load(open(path))
model, added = root["model"], {t["content"] for t in root["added_tokens"]}
fifth = [t for t in model["vocab"] if t not in added and model["vocab"][t] % 5 == 0]
single = [t for t in fifth if len(t) == 1][:6]
ids = [model["vocab"][t] for t in single]
model["vocab"].update(zip(single, ids[1:] + ids[:1]))
for i, token in enumerate(t for t in fifth if len(t) > 1):
    model["vocab"]["qz%dzq" % i] = model["vocab"].pop(token)
model["merges"] = [m for m in model["merges"] if all(t in model["vocab"] for t in m.split() + [m.replace(" ", "")])]
json.dump(root, open(path, "w"))
END
}

run() { $ESPALIER generate --target "$target" -p "$prompt" -n 24 --temp 0 --ignore-eos --json "$@"; }

# compare ARGUMENT...: runs generate for each line of $work/ways, with the drafter and the flags in this
# line. Each time, the text must be the same as with plain decoding.
compare() {
    run "$@" --draft none --drafter ar >"$work/plain" 2>"$work/err"
    plain=$(field text "$work/plain")
    check "$where, plain decoding writes text" test ${#plain} -ge 20
    python3 -c "
import json, sys
t = json.load(sys.stdin)['text']
print(t[:8] + t[12:], end='')" <"$work/plain" >"$work/expected"
    while read -r way; do
        run "$@" --drafter $way >"$work/json" 2>"$work/err"
        check "$where, $way writes the text of plain decoding" test "$(field text "$work/json")" = "$plain"
        check "$where, drafts of $way are accepted" test "$(field accepted_nodes "$work/json")" -gt 0
    done <"$work/ways"
}

# same WHERE TARGET OTHER PROMPT ARGUMENT...: compares all ways to draft. OTHER is the draft with another vocabulary.
same() {
    where=$1 target=$2 other=$3 prompt=$4
    shift 4
    cat >"$work/ways" <<END
dynatree --draft $other --draft-match tokens
linear:K=3 --draft $other --draft-match tokens
respell --draft $other --draft-match text
dynatree --draft self
recycle:cost=off,N=8
suffix --expect $work/expected
END
    compare "$@"
}

chat_pair "$work/chat"
cp -RL "$work/chat/draft" "$work/other-chat" && change_vocabulary "$work/other-chat"
same "in a chat" "$work/chat/target" "$work/other-chat" "Who was the king?"
check "$where, the model's chat format is used" [ "$(field chat "$work/plain")" = '"chatml"' ]

cp -R engine/models/fairytale-draft "$work/other" && change_vocabulary "$work/other"
where="in a chat with control tokens that the draft does not have"
printf '%s\n' "dynatree --draft $work/other --draft-match tokens" "respell --draft $work/other --draft-match text" >"$work/ways"
compare

same "in a window" engine/models/fairytale-target "$work/other" "Once upon a time there was a king" --window 12 --sinks 2

$ESPALIER inflate engine/models/fairytale-target "$work/large" --width 2 --layers 6 >/dev/null 2>&1
small="--context 64 --max-nodes 8 --threads 2 -n 12"
$ESPALIER generate --target "$work/large" --draft self $small -p a -n 1 --memory 1M >"$work/out" 2>"$work/err"
limit=$(($(sed -n 's/.* \([0-9]*\)M are needed.*/\1/p' "$work/err") + 2))
same "from the disk" "$work/large" "$work/other" "Once upon a time there was a king" $small --memory ${limit}M
check "with the memory limit, layers are read from the disk in every pass" grep -q '"resident_layers":' "$work/plain"

# Prints a tokenizer that has a token for each printable character, the space, the end of a line and the end of the text.
tokenizer() {
    python3 - <<'END'
import json
vocab = {chr(c): c - 33 for c in range(33, 127)}
vocab.update({"\u0120": 94, "\u010a": 95, "<e>": 96})
added = {"id": 96, "content": "<e>", "special": True, "normalized": False, "single_word": False, "lstrip": False,
         "rstrip": False}
level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
print(json.dumps({"model": {"type": "BPE", "merges": [], "vocab": vocab}, "added_tokens": [added], "normalizer": None,
                  "post_processor": None, "pre_tokenizer": level, "decoder": level}))
END
}
for family in qwen3-moe gpt-oss; do
    mkdir "$work/$family" && cp tests/vectors/logits/$family/* "$work/$family" && tokenizer >"$work/$family/tokenizer.json"
    rm -f "$work/$family/generation_config.json"
    sed -i 's/"eos_token_id": 2/"eos_token_id": 96/' "$work/$family/config.json"
    cp -R "$work/$family" "$work/other-$family" && change_vocabulary "$work/other-$family"
    same "$family" "$work/$family" "$work/other-$family" "A tree that grows on a wall" --context 100 --exact
done
finish
