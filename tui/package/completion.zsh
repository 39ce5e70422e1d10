#compdef espalier
# completion.zsh - completes commands, flags and their values after `espalier`. The program itself lists them.

local -a lines names
local line end=' '
lines=("${(@f)$($words[1] complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
for line in $lines; do
    # _describe ends a word at its first colon that has no backslash.
    names+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    [[ ${line%%$'\t'*} == *= ]] && end=
done
if (( $#names )); then
    _describe -V word names -S "$end"
else
    _files
fi
