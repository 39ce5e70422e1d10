#!/bin/sh
# What bash completes: commands, options and names, as the program lists them.
. tests/shell.sh

completes() { # completes WANT WORD...: completing the last word gives the words WANT
    want=$1
    shift
    got=$(bash -c '. tui/cli/completion.bash
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _espalier
        echo "${COMPREPLY[@]}"' bash "$ESPALIER" "$@" | tr '\n' ' ' | sed 's/ *$//')
    [ "$got" = "$want" ] || {
        echo "    $*: '$got', want '$want'"
        return 1
    }
}

if ! command -v bash >/dev/null; then
    echo "    there is no bash here"
    finish
fi
check "commands" completes "generate" g
check "a command from two letters" completes "tune" tu
check "several commands" completes "inspect inflate" in
check "options of a command" completes "--draft --drafter --draft-temp" generate --draft
check "options without a command" completes "--no-config" --no-
check "models" completes "fairytale-draft fairytale-target" generate --target fairy
check "drafters" completes "dynatree dyspec dyspec-layer" generate -p x --drafter dy
check "verifiers" completes "spectr specinfer" compare --with-verifier spec
check "themes" completes "dark" replay x --theme da
check "backends" completes "auto cpu cuda" check --backend ""
check "lists" completes "verifiers" list v
check "words of a setting" completes "bfs dfs hpd" generate -p x --order ""
check "words of one that can be a number" completes "auto off" generate -p x --draft-temp ""
check "words of a flag" completes "thresholds acceptance stages" export x --chart ""
check "options of an engine" completes "auto" generate --context ""
check "after a flag that takes no value, more flags" completes "--baseline" generate -p x --baseline --base
check "drafters to measure" completes "eagle2" bench linear ea
check "lessons" completes "3-a-tree" learn 3
check "files" completes "tests/shell.sh" generate -f tests/she
finish
