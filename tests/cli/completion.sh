#!/bin/sh
# Completion: `espalier complete` offers the right words, and bash, zsh and fish show them.
. tests/shell.sh

completes() { # completes WANT WORD...: completing the last word gives the words WANT
    want=$1
    shift
    got=$("$ESPALIER" complete -- "$@" | cut -f1 | tr '\n' ' ' | sed 's/ *$//')
    [ "$got" = "$want" ] || {
        echo "    $*: '$got', want '$want'"
        return 1
    }
}

check "commands" completes "generate" g
check "a command from two letters" completes "tune" tu
check "several commands" completes "inspect inflate" in
check "model names are completed where a command is expected" completes "fairytale-draft fairytale-target" fairy
check "flags of a command" completes "--draft --drafter --draft-temp --draft-match" generate --draft
check "options without a command" completes "--no-config" --no-
check "models" completes "fairytale-draft fairytale-target" generate --target fairy
check "models as arguments" completes "fairytale-draft" generate fairytale-target fairytale-d
check "drafters" completes "dynatree dyspec dyspec-layer" generate -p x --drafter dy
check "parameters of a drafter" completes "fixed:D=4,prune=" generate --drafter fixed:D=4,p
check "values of a parameter" completes "fixed:prune=cut fixed:prune=stop" generate --drafter fixed:prune=
check "verifiers" completes "spectr specinfer" compare --with-verifier spec
check "themes" completes "dark" replay x --theme da
check "suites" completes "dyspec-main" bench --suite dyspec-m
check "backends" completes "auto cpu cuda" check --backend ""
check "lists" completes "verifiers" list v
check "words of a setting" completes "bfs dfs hpd" generate -p x --order ""
check "words of a flag that also takes a number" completes "auto off" generate -p x --draft-temp ""
check "words of a flag" completes "thresholds acceptance stages" export x --chart ""
check "shapes of a picture" completes "16:9 1:1" export x --aspect 1
check "words of an engine option" completes "auto" generate --context ""
check "after a flag that takes no value, more flags" completes "--baseline" generate -p x --baseline --base
check "drafters to measure" completes "eagle2" bench linear ea
check "what is trained" completes "selector" train s
check "lessons" completes "3-a-tree" learn 3
check "nothing where a file is expected" completes "" generate -f tests/she
check "nonsense is harmless" completes "" generate --nonsense=x:y,z "$(printf '\033[31m')"
check "each completion has a description" sh -c "'$ESPALIER' complete -- generate --drafter salf | grep -q '^salf	the likeliest'"

# The three shells: each completes the end of a line.
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
        echo "    there is no $shell here"
        continue
    fi
    check "$shell: a command" test "$(in_$shell g | tr -d ' ')" = generate
    check "$shell completes a drafter" sh -c "echo '$(in_$shell generate --drafter sal)' | grep -qw salf"
    check "$shell completes files" sh -c "echo '$(in_$shell generate -f tests/she)' | grep -q 'tests/shell.sh\|FILES'"
done
check "bash: a word begins after a colon" test "$(in_bash generate --drafter fixed:pru)" = "prune="
finish
