# completion.bash - completes commands, flags and their values after `espalier`. The program itself lists them.

_espalier() {
    local line=${COMP_LINE:0:COMP_POINT} words word cut reply
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[${#words[@]} - 1]}
    mapfile -t reply < <("${COMP_WORDS[0]}" complete -- "${words[@]:1}" 2>/dev/null | cut -f1)
    # For bash, a new word begins after a colon or an equals sign.
    cut=${word%"${word##*[:=]}"}
    COMPREPLY=("${reply[@]#"$cut"}")
    if [ ${#reply[@]} -eq 0 ]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    elif [[ ${reply[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

complete -F _espalier espalier
