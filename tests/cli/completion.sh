#!/bin/sh
# Tests completion: `espalier complete` must offer the right words, and bash, zsh and fish must show them.
. tests/shell.sh

completes() { # completes WANT WORD...: succeeds if completing the last word gives exactly the words WANT
    want=$1
    shift
    got=$("$ESPALIER" complete -- "$@" | cut -f1 | tr '\n' ' ' | sed 's/ *$//')
    [ "$got" = "$want" ] || {
        echo "    $*: '$got', want '$want'"
        return 1
    }
}

check "commands are completed" completes "generate" g
check "two letters are completed to a command" completes "tune" tu
check "if several commands begin with the typed letters, all are offered" completes "inspect inflate" in
check "model names are completed where a command is expected" completes "fairytale-draft fairytale-target" fairy
check "the flags of a command are completed" completes "--draft --drafter --draft-temp --draft-match" generate --draft
check "options are completed without a command, too" completes "--no-config" --no-
check "names of models are completed after --target" completes "fairytale-draft fairytale-target" generate --target fairy
check "names of models are completed as arguments" completes "fairytale-draft" generate fairytale-target fairytale-d
check "drafters are completed" completes "dynatree dyspec dyspec-layer" generate -p x --drafter dy
check "parameters of a drafter are completed" completes "fixed:D=4,prune=" generate --drafter fixed:D=4,p
check "values of a parameter are completed" completes "fixed:prune=cut fixed:prune=stop" generate --drafter fixed:prune=
check "verifiers are completed" completes "spectr specinfer" compare --with-verifier spec
check "themes are completed" completes "dark" replay x --theme da
check "suites are completed" completes "dyspec-main" bench --suite dyspec-m
check "backends are completed" completes "auto cpu cuda" check --backend ""
check "list completes the names of lists" completes "verifiers" list v
check "words that are values of a setting are completed" completes "bfs dfs hpd" generate -p x --order ""
check "words are completed after a flag that also takes a number" completes "auto off" generate -p x --draft-temp ""
check "the words that a flag accepts are completed" completes "thresholds acceptance stages" export x --chart ""
check "--aspect completes shapes of a picture" completes "16:9 1:1" export x --aspect 1
check "the words that an engine option accepts are completed" completes "auto" generate --context ""
check "after a flag that takes no value, more flags are completed" completes "--baseline" generate -p x --baseline --base
check "bench completes the names of drafters" completes "eagle2" bench linear ea
check "train completes what can be trained" completes "selector" train s
check "lessons are completed" completes "3-a-tree" learn 3
check "where a file is expected, espalier complete prints nothing, so the shell completes the word" completes "" generate -f tests/she
check "nonsense gives no completion" completes "" generate --nonsense=x:y,z "$(printf '\033[31m')"
check "each completion has a description" sh -c "'$ESPALIER' complete -- generate --drafter salf | grep -q '^salf	the likeliest'"

# These functions print how each of the three shells completes the end of a line.
in_bash() {
    bash -c '. tui/package/completion.bash
        COMP_LINE="${0##*/} $*" COMP_POINT=1000 COMP_WORDS=("$0" "$@") COMP_CWORD=$#
        _espalier
        echo "${COMPREPLY[@]}"' "$ESPALIER" "$@"
}
in_zsh() {
    zsh -fc '_files() { echo FILES }
        _describe() { for name in $names; do echo -n "${${name%%[^\\]:*}}${${name#${name%%[^\\]:*}}[1]} "; done }
        words=("$0" "$@") CURRENT=$#words
        . tui/package/completion.zsh' "$ESPALIER" "$@"
}
in_fish() {
    PATH=${ESPALIER%/*}:$PATH fish --no-config -c 'source tui/package/completion.fish
        complete --do-complete "espalier '"$*"'"' | cut -f1 | tr '\n' ' '
}
for shell in bash zsh fish; do
    if ! command -v $shell >/dev/null; then
        echo "    skipped, because $shell is not installed"
        continue
    fi
    check "$shell completes a command" test "$(in_$shell g | tr -d ' ')" = generate
    check "$shell completes a drafter" sh -c "echo '$(in_$shell generate --drafter sal)' | grep -qw salf"
    check "$shell completes files" sh -c "echo '$(in_$shell generate -f tests/she)' | grep -q 'tests/shell.sh\|FILES'"
done
check "bash completes only the part of a word after a colon" test "$(in_bash generate --drafter fixed:pru)" = "prune="
finish
