#!/bin/sh
# Tests that flags, JSON, recordings, the configuration file and the manual agree with the table of settings.
. tests/shell.sh
. tests/script.sh

settings=$($ESPALIER list settings | awk '{ print $1 }')
flag_of() { echo "--$1" | tr _ -; }
other_of() { # NAME: prints a value that differs from the default of setting NAME
    case $1 in
    draft_temp) echo 0.7 ;;
    top_p) echo 0.5 ;;
    order) echo hpd ;;
    baseline | ignore_eos) echo on ;;
    chat) echo phi ;;
    recycle) echo session ;;
    expect) echo tests/prompts.txt ;;
    *) echo 7 ;;
    esac
}
has_flag() { # COMMAND NAME: succeeds if the help of COMMAND has the flag of setting NAME
    $ESPALIER $1 --help | grep -q -- "^ *$(flag_of "$2")\( \|\$\)"
}

check "list settings prints at least seven settings" test "$(echo "$settings" | wc -l)" -ge 7
$ESPALIER list settings --json >"$work/json"
arguments=
for setting in $settings; do
    flag=$(flag_of "$setting")
    check "list settings --json has setting $setting" grep -q "\"name\":	\"$setting\"" "$work/json"
    check "generate has $flag" has_flag generate "$setting"
    check "the manual describes $flag" grep -q "^[.]It Fl $(echo "$flag" | cut -c2-)\( \|\$\)" man/espalier.1
    check "the manual of the interface describes $setting" grep -q "^[.]It Cm $setting Ar" man/espalier-interface.7
    [ "$setting" = baseline ] || for command in "" bench check compare; do
        [ "$command" != "" ] && { [ "$setting" = chat ] || [ "$setting" = system ]; } && continue # bench, check and compare use raw text
        check "--help of ${command:-the interface} has $flag" has_flag "$command" "$setting"
    done
    arguments="$arguments $flag"
    [ "$(other_of "$setting")" = on ] || arguments="$arguments $(other_of "$setting")"
done
check "commands that always measure the baseline have no --baseline" \
    sh -c "for command in '' bench check compare; do $ESPALIER \$command --help | grep -e --baseline && exit 1; done; :"
for command in "" $($ESPALIER --help | awk '$1 == "espalier" && $2 ~ /^[a-z]+$/ { print $2 }'); do
    $ESPALIER $command --help | sed -n 's/^ *\(-., \)\{0,1\}--\([a-z-]*\).*/\2/p'
done | sort -u >"$work/flags"
check "the commands together have more than 60 flags" test "$(wc -l <"$work/flags")" -gt 60
undocumented=$(while read -r flag; do grep -q "Fl -$flag\( \|\$\)" man/espalier.1 || echo "$flag"; done <"$work/flags")
check "the manual describes all flags" test -z "$undocumented"; [ -z "$undocumented" ] || printf "    %s\n" $undocumented
tests/settings_page "$ESPALIER" >"$work/page"
check "the man page is up to date (make pages)" cmp man/espalier.1 "$work/page"

# This run sets every setting. The values must be in the JSON output and in the recording. The recording must be replayable.
$ESPALIER generate -p Once -n 6 $arguments --json --record "$work/all.esp.jsonl" >"$work/json"
tr -d '\t\n' <"$work/json" >"$work/line"
for setting in $settings; do
    value=$(other_of "$setting")
    [ "$value" = on ] && value=true
    check "generate --json has setting $setting" grep -q "\"settings\":{[^}]*\"$setting\":\"*$value[\",}]" "$work/line"
done
check "a recording also has the settings that have no separate field" \
    sh -c "head -n 1 '$work/all.esp.jsonl' | grep -q '\"settings\":{.*\"draft_temp\":\"0.7\"'"
check "a recording with all settings can be replayed" sh -c "$ESPALIER replay --plain '$work/all.esp.jsonl' | grep -q Once"

# The configuration file must accept every setting, and `:config save` must write the same values.
for setting in $settings; do
    echo "$setting $(other_of "$setting")"
done >"$work/config"
play "size 100x24
wait
type :config save
key Enter
wait" --config "$work/config"
check ":config save writes the configuration file" grep -q "^# Written by" "$work/config"
for setting in $settings; do
    [ "$setting" = expect ] && continue # the expected text applies to one answer only
    check ":config save keeps setting $setting" grep -qx "$setting $(other_of "$setting")" "$work/config"
done
check ":config save leaves out the expected text" sh -c "! grep -q '^expect' '$work/config'"
finish
