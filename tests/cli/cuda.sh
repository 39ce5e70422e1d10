#!/bin/sh
# The CUDA backend from the command line: what is not there, what is too small and what fails is told
# in one line and, with "auto", got over; a device that works writes what the processor writes.
# It runs on the emulator, and where the real plugin was built also on that, without a GPU.
. tests/shell.sh
emulated=$BUILD/emu/libespalier-cuda.so
run="$ESPALIER generate -p Once -n 4 --drafter linear --max-nodes 16 --context 64"
unset ESPALIER_EMU_DEVICES ESPALIER_EMU_MEMORY ESPALIER_EMU_FAIL ESPALIER_EMU_LEAKS

export ESPALIER_CUDA_PLUGIN="$work/missing.so"
check "a plugin that is not there is told" fails 1 "missing.so" $run --backend cuda
echo "not a library" >"$work/missing.so"
check "a file that is no library is told" fails 1 "missing.so" $run --backend cuda
$run >"$work/plain" 2>"$work/err"
check "the processor does without" test $? -eq 0
check "and says nothing of it" test ! -s "$work/err"

# No GPU here: the real plugin, if nvcc has built one, says so.
if [ -f "$BUILD/libespalier-cuda.so" ] && ! ls /dev/nvidia[0-9] >/dev/null 2>&1; then
    export ESPALIER_CUDA_PLUGIN="$BUILD/libespalier-cuda.so"
    check "without a GPU the plugin says so" fails 1 "no CUDA device" $run --backend cuda
    check "and the list does" grep -q "not here: there is no CUDA device" <<EOT
$($ESPALIER list backends)
EOT
fi

export ESPALIER_CUDA_PLUGIN="$emulated"
check "a device that works is listed" grep -q "emulated GPU" <<EOT
$($ESPALIER list backends)
EOT
$run --backend cuda --exact >"$work/out" 2>"$work/err"
check "it generates" test $? -eq 0
check "quietly" test ! -s "$work/err"
check "what the processor generates" cmp -s "$work/out" "$work/plain"
$run --backend cuda --temp 0.8 --seed 7 --verifier specinfer --drafter iid:K=2,L=2 >"$work/out" 2>"$work/err"
check "it samples" test $? -eq 0

$ESPALIER check --backend cuda --drafter iid:K=2,L=2 --trials 1 --max-nodes 16 --context 64 >"$work/out" 2>&1
check "every rule that fits runs on it" test "$(grep -c '^iid.* ok$' "$work/out")" -eq 6

check "no device is told" env ESPALIER_EMU_DEVICES=0 sh -c '. tests/shell.sh; fails 1 "no CUDA device" "$@"' sh $run --backend cuda
check "too little memory is told, with what would fit" env ESPALIER_EMU_MEMORY=188000000 sh -c \
    '. tests/shell.sh; fails 1 "a context of .* tokens (--context) would fit" "$@"' sh \
    $ESPALIER generate -p Once -n 4 --backend cuda --max-nodes 64
ESPALIER_EMU_MEMORY=1000000 $run >"$work/out" 2>"$work/err"
check "then the processor is used" cmp -s "$work/out" "$work/plain"
check "and it is said why, in one line" test "$(grep -c 'free on emulated GPU.*using the cpu backend' "$work/err")" -eq 1

# Every call of the runtime may fail; here some of all sorts of them.
for call in 1 2 3 5 8 13 21 34 55 89 144 233 377 610 987 1597; do
    timeout 60 env ESPALIER_EMU_FAIL=$call $run --backend cuda >"$work/out" 2>"$work/err"
    status=$?
    if [ $status -eq 0 ]; then
        check "a run without failure is whole ($call)" cmp -s "$work/out" "$work/plain"
    else
        check "failure of call $call: exit 1" test $status -eq 1
        check "failure of call $call: one line" test "$(grep -c '^espalier: ' "$work/err")" -eq 1
    fi
done
finish
