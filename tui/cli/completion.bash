# completion.bash - what bash completes after `espalier`: commands, options, and the names of drafters,
# verifiers, backends and themes. Everything is asked of the program itself, so that nothing is listed twice.

_espalier_names() { "$1" list "$2" 2>/dev/null | awk '/^[a-z]/ { print $1 }'; }

# The words that a flag can take: what --help shows behind it in small letters.
_espalier_values() {
    "$1" $2 --help 2>/dev/null | sed -n "s/^ *\(-., \)\{0,1\}$3 \([^ ]*\) .*/\2/p" | tr '|' '\n' | grep -v '[A-Z]'
}

# Names of models, and paths: a model may be named by either.
_espalier_models() {
    local IFS=$'\n'
    COMPREPLY=($(compgen -W "$("$1" list models 2>/dev/null | awk '/^[^ ]/ { print $1 }')" -- "$2") $(compgen -f -- "$2"))
}

_espalier() {
    local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} words command=
    if [ "$COMP_CWORD" -gt 1 ] && [[ ${COMP_WORDS[1]} != -* ]]; then
        command=${COMP_WORDS[1]}
    fi
    case ${COMP_WORDS[COMP_CWORD - 1]} in
    --target | --draft | models) _espalier_models "$program" "$current"; return ;;
    --drafter | --with) words=$(_espalier_names "$program" drafters) ;;
    --verifier | --with-verifier) words=$(_espalier_names "$program" verifiers) ;;
    --suite) words="list $("$program" bench --suite list 2>/dev/null | awk '{ print $1 }') $(compgen -f -- "$current")" ;;
    --backend) words="auto $(_espalier_names "$program" backends)" ;;
    --theme) words=$(_espalier_names "$program" themes) ;;
    --aspect) words='16:9 4:3 1:1' ;;
    list) words='drafters verifiers backends losses themes models settings' ;;
    *)
        if [[ $current == -* ]]; then
            words=$("$program" $command --help 2>/dev/null | grep -o -- '^ *\(-., \)\?--[a-z-]*' | grep -o -- '--.*')
        elif [ "$COMP_CWORD" -eq 1 ]; then
            words=$("$program" --help 2>/dev/null | awk '$1 == "espalier" && $2 ~ /^[a-z]+$/ { print $2 }')
        elif [ "$command" = bench ]; then
            words=$(_espalier_names "$program" drafters)
        elif [ "$command" = learn ]; then
            words="$("$program" learn --plain 2>/dev/null | awk '{ print $1 }') $(compgen -f -- "$current")"
        fi
        ;;
    esac
    if [ -z "$words" ] && [[ ${COMP_WORDS[COMP_CWORD - 1]} == --* ]]; then
        words=$(_espalier_values "$program" "$command" "${COMP_WORDS[COMP_CWORD - 1]}")
    fi
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    else
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}

complete -o filenames -F _espalier espalier
