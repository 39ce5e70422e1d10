#!/bin/sh
# ThreadSanitizer must find no data races in the ring, the mailbox, the thread pool and a session. `make check` builds these
# programs separately. The session has one compute thread, because more would be too slow under the sanitizer.
. tests/shell.sh
. tests/script.sh
tsan=$BUILD/tsan
export TSAN_OPTIONS="exitcode=66 halt_on_error=0 ${TSAN_OPTIONS:-}"

# Older versions of the sanitizer do not work if address space layout randomization uses many bits.
alone=
$tsan/espalier --version >/dev/null 2>&1 || alone="setarch $(uname -m) -R"

clean() { # PROGRAM...: the program must succeed, and the sanitizer must report nothing
    timeout 300 $alone "$@" >"$work/out" 2>&1 && ! grep -q ThreadSanitizer "$work/out" && return
    grep -v '^$' "$work/out" | head -n 60
    return 1
}
check "the program runs under the sanitizer" clean $tsan/espalier --version
check "the ring has no races" clean $tsan/tests/unit/ring
check "the mailbox has no races" clean $tsan/tests/unit/mailbox
check "the thread pool has no races" clean $tsan/tests/unit/pool

cat >"$work/script" <<END
size 100x30
wait
type Once upon a time
key Enter
wait
key F6
type :drafter linear 3
key Enter
type there was a king
key Enter
wait
type :compare linear 4
key Enter
type :record $work/session.esp.jsonl
key Enter
type and a queen
key Enter
wait
type :export $work/tree.svg
key Enter
type :export $work/page.html
key Enter
type :draft none
key Enter
wait
key F5
type , then
key Enter
wait
key Space Space
wait
key C-c
type :edit!
key Enter
type :clear!
key Enter
wait
$dump
END
export ESPALIER_SCRIPT="$work/script"
check "a session has no races" clean $tsan/espalier --threads 1 -n 20
check "the program ran to its end" dumped 'espalier '
finish
