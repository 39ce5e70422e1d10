#!/bin/sh
# --ranks with the CUDA backend divides the target among GPUs, which are emulated here. In exact mode, the text must be the
# same as on one GPU, for every kind of draft.
. tests/shell.sh
export ESPALIER_CUDA_PLUGIN="$BUILD/emu/libespalier-cuda.so"
unset ESPALIER_EMU_SMS ESPALIER_EMU_SHARED ESPALIER_EMU_DEVICES ESPALIER_EMU_DRIVER ESPALIER_EMU_LT ESPALIER_EMU_NCCL ESPALIER_EMU_MEMORY \
    ESPALIER_EMU_NODE ESPALIER_EMU_FAIL ESPALIER_EMU_LEAKS
run="$ESPALIER generate -p Once -n 4 --drafter linear --max-nodes 16 --context 64"

several="$ESPALIER generate -p Once -n 10 --backend cuda --exact --max-nodes 16 --context 64"
$several --drafter ar >"$work/one"
for drafter in linear dynatree hybrid; do
    ESPALIER_EMU_DEVICES=2 ESPALIER_EMU_LEAKS=1 $several --ranks 2 --drafter $drafter >"$work/out" 2>"$work/err"
    check "with drafter $drafter, two GPUs write the same text as one GPU" cmp "$work/out" "$work/one"
    check "with drafter $drafter, two GPUs print no message" test ! -s "$work/err"
done
ESPALIER_EMU_DEVICES=3 $several --ranks 3 --ranks-parts 1:3:2 --ranks-whole down --drafter dynatree >"$work/out"
check "three GPUs with unequal parts write the same text as one GPU" cmp "$work/out" "$work/one"
ESPALIER_EMU_DEVICES=2 $several --ranks 2 --draft self:q4_0 --drafter linear >"$work/out"
check "two GPUs with the target's own copy as draft write the same text as one GPU" cmp "$work/out" "$work/one"
ESPALIER_EMU_DEVICES=2 ESPALIER_EMU_LT=0 $several --ranks 2 --gpu-memory 12M --drafter dynatree --json >"$work/json"
check "two GPUs with too little memory write the same text as one GPU" grep -qF "$(head -n 1 "$work/one")" "$work/json"
check "two GPUs with too little memory stream layers" grep -q '"resident_layers":' "$work/json"
ESPALIER_EMU_DEVICES=2 $ESPALIER inspect --backend cuda --ranks 2 --ranks-whole none >"$work/out"
check "inspect prints how the matrices are divided among GPUs" grep -q "gate, up .* 320 + 320 outputs; a row gathers" "$work/out"
gpus() { # DEVICES MESSAGE [VARIABLE=VALUE] COMMAND...: with this many GPUs, COMMAND must fail with MESSAGE
    devices=$1 message=$2
    shift 2
    fails 1 "$message" env ESPALIER_EMU_DEVICES=$devices "$@"
}
check "--ranks is refused if there are too few GPUs" gpus 1 "needs 2 GPUs, but only 1 is available" $run --backend cuda --ranks 2
check "--ranks is refused if there are too few GPUs from the one that --device names" gpus 3 "needs 3 GPUs, but only 2 are available, counted from the one that --device names" \
    $run --backend cuda --device 1 --ranks 3
check "if NCCL is missing, the message says which package to install" gpus 2 "libnccl.so.2 was not found; install libnccl2" \
    ESPALIER_EMU_NCCL=0 $run --backend cuda --ranks 2
check "--ranks-split layers is refused for GPUs" gpus 2 "ranks-split layers is for --backend cpu" \
    $run --backend cuda --ranks 2 --ranks-split layers
finish
