#!/bin/sh
# Tests the CUDA backend on the command line. If the device is missing, memory is too small or a call
# fails, the program must print a message of one line. Backend "auto" must then use the CPU. With a working device, the
# text must be the same as on the CPU. The test uses the emulator. If the real plugin was built,
# the test also uses it, without a GPU.
. tests/shell.sh
emulated=$BUILD/emu/libespalier-cuda.so
run="$ESPALIER generate -p Once -n 4 --drafter linear --max-nodes 16 --context 64"
unset ESPALIER_EMU_SMS ESPALIER_EMU_SHARED ESPALIER_EMU_DEVICES ESPALIER_EMU_DRIVER ESPALIER_EMU_LT ESPALIER_EMU_NCCL ESPALIER_EMU_MEMORY ESPALIER_EMU_NODE \
    ESPALIER_EMU_FAIL ESPALIER_EMU_LEAKS

export ESPALIER_CUDA_PLUGIN="$work/missing.so"
check "if the plugin is missing, --backend cuda fails and names the file" fails 1 "missing.so" $run --backend cuda
echo "not a library" >"$work/missing.so"
check "if the plugin is not a library, --backend cuda fails and names the file" fails 1 "missing.so" $run --backend cuda
$run >"$work/plain" 2>"$work/err"
check "without a usable plugin, generate falls back to the CPU" test $? -eq 0
check "falling back to the CPU without a usable plugin prints no message" test ! -s "$work/err"

# If nvcc has built the real plugin and the machine has no GPU, the plugin must report that there is
# no GPU. In continuous integration, the plugin is in a separate folder.
for real in "$BUILD/checked/libespalier-cuda.so" "$BUILD/libespalier-cuda.so"; do
    [ -f "$real" ] && break
done
if [ -f "$real" ] && ! ls /dev/nvidia[0-9] >/dev/null 2>&1; then
    export ESPALIER_CUDA_PLUGIN="$real"
    check "without a GPU, the real plugin says that there is no CUDA device" fails 1 "no CUDA device" $run --backend cuda
    check "the real plugin needs no library of the CUDA toolkit" sh -c \
        '! readelf -d "$1" | grep NEEDED | grep -iE "cublas|cudart|stdc"' sh "$ESPALIER_CUDA_PLUGIN"
    check "the list of backends works without the CUDA toolkit" grep -q "not here: there is no CUDA device" <<EOT
$($ESPALIER list backends)
EOT
fi

# If there are two plugins, the version of the driver decides which one is used. The plugins of this test only print their
# names. The driver of this test reports the version in $DRIVER.
mkdir "$work/plugins" "$work/driver"
cat >"$work/plugin.c" <<'END'
#include "kernels/cuda/plugin.h"
#include "kernels/status.h"
static int refuse(struct esp_backend **backend, int device, char *err, size_t errlen)
{
    return (void)backend, (void)device, esp_fail(err, errlen, ESP_E_DEVICE, "the plugin of CUDA %d", CUDA);
}
static const struct esp_backend_ops ops = {.name = "cuda", .open_device = refuse};
const struct esp_cuda_plugin esp_cuda_plugin = {ESP_VERSION, sizeof ops, &ops, CUDA};
END
cat >"$work/driver.c" <<'END'
#include <stdlib.h>
int cuDriverGetVersion(int *version)
{
    return (*version = atoi(getenv("DRIVER"))), 0;
}
END
library="${CC:-cc} -std=c11 -I. -shared -fPIC"
check "the two plugins and the driver of this test can be built" sh -ec "
    $library -DCUDA=13000 -o $work/plugins/libespalier-cuda.so $work/plugin.c kernels/status.c
    $library -DCUDA=12040 -o $work/plugins/libespalier-cuda12.so $work/plugin.c kernels/status.c
    $library -o $work/driver/libcuda.so.1 $work/driver.c"
export ESPALIER_CUDA_PLUGIN="$work/plugins"
# chosen VERSION WANT: with this version of the driver, plugin WANT must open the device.
chosen() {
    env LD_LIBRARY_PATH="$work/driver" DRIVER="$1" $run --backend cuda 2>&1 | grep -q "the plugin of CUDA $2\$"
}
for driver in 13000 13020 14000; do
    check "with a driver of CUDA 13 or newer, the newest plugin is loaded ($driver)" chosen $driver 13000
done
for driver in 12000 12040 12080; do
    check "with a driver of CUDA 12, the plugin of CUDA 12 is loaded ($driver)" chosen $driver 12040
done
check "with a driver older than CUDA 12, the plugin with the lowest requirements is loaded" chosen 11080 12040
check "without a driver, the newest plugin reports the error" chosen 0 13000
mv "$work/plugins/libespalier-cuda.so" "$work/newest.so"
check "with a driver of CUDA 13, the plugin of CUDA 12 is loaded if there is no other plugin" chosen 13000 12040
rm "$work/plugins/libespalier-cuda12.so"
check "if the folder has no plugin, --backend cuda fails and names the missing file" fails 1 "plugins/libespalier-cuda.so" $run --backend cuda
mv "$work/newest.so" "$work/plugins/libespalier-cuda.so"
check "a single plugin is loaded with any driver; the plugin itself can refuse the driver" chosen 12040 13000

export ESPALIER_CUDA_PLUGIN="$emulated"
check "list backends lists a working device" grep -q "emulated GPU" <<EOT
$($ESPALIER list backends)
EOT
$run --backend cuda --exact >"$work/out" 2>"$work/err"
check "generate works on the emulated GPU" test $? -eq 0
check "generate on the emulated GPU prints no message" test ! -s "$work/err"
check "the GPU generates the same text as the CPU" cmp -s "$work/out" "$work/plain"
$run --backend cuda --temp 0.8 --seed 7 --verifier specinfer --drafter iid:K=2,L=2 >"$work/out" 2>"$work/err"
check "generate can sample on the emulated GPU" test $? -eq 0

$ESPALIER check --backend cuda --drafter iid:K=2,L=2 --trials 1 --max-nodes 16 --context 64 >"$work/out" 2>&1
check "espalier check runs every exact verifier on the emulated GPU" test "$(grep -c '^iid.* ok$' "$work/out")" -eq 6

# If there are several devices, --device must choose one of them.
check "list backends lists each device with its number" test \
    "$(ESPALIER_EMU_DEVICES=2 $ESPALIER list backends | grep -c -- '--device [01]: emulated GPU [01], 4 GB, driver ')" -eq 2
check "list backends --json lists each device" test \
    "$(ESPALIER_EMU_DEVICES=2 $ESPALIER list backends --json | grep -o 'emulated GPU [01]' | sort -u | wc -l)" -eq 2
ESPALIER_EMU_DEVICES=2 $run --backend cuda --device 1 >"$work/out" 2>"$work/err"
check "the second device generates the same text as the CPU" cmp -s "$work/out" "$work/plain"
for backend in cuda auto; do
    check "a --device that does not exist is refused by backend $backend" env ESPALIER_EMU_DEVICES=2 sh -c \
        '. tests/shell.sh; fails 1 "no GPU 2 here; 2 can be used" "$@"' sh $run --backend $backend --device 2
done
check "--device is refused for the CPU" fails 1 "does not run on one" $run --backend cpu --device 1
check "a --device that is not a number is refused" fails 1 "device" $run --device first
ESPALIER_EMU_DEVICES=0 $run --device 1 >"$work/out" 2>"$work/err"
check "if the GPU that --device names is missing, backend auto says so and uses the CPU" grep -q "no CUDA device here.*using the cpu backend" "$work/err"

check "without a GPU, --backend cuda fails with a message" env ESPALIER_EMU_DEVICES=0 sh -c '. tests/shell.sh; fails 1 "no CUDA device" "$@"' sh $run --backend cuda
check "with an outdated driver, --backend cuda fails and names the driver that is needed" env ESPALIER_EMU_DRIVER=12040 sh -c \
    '. tests/shell.sh; fails 1 "driver is too old: it knows CUDA 12.4,.* needs CUDA 13, so driver 580 or newer" "$@"' \
    sh $run --backend cuda
ESPALIER_EMU_DRIVER=12040 $run >"$work/out" 2>"$work/err"
check "with an outdated driver, backend auto uses the CPU" cmp -s "$work/out" "$work/plain"
check "with an outdated driver, one line says why backend auto uses the CPU" test \
    "$(grep -c 'driver is too old.*using the cpu backend' "$work/err")" -eq 1
ESPALIER_EMU_LT=0 $run --backend cuda >"$work/out" 2>"$work/err"
check "the GPU works without cuBLASLt" cmp -s "$work/out" "$work/plain"
check "the message about too little GPU memory suggests a shorter --context" env ESPALIER_EMU_MEMORY=182000000 sh -c \
    '. tests/shell.sh; fails 1 "not enough GPU memory: .* Try --context [0-9]" "$@"' sh \
    $ESPALIER generate -p Once -n 4 --backend cuda --max-nodes 64 --context 768
ESPALIER_EMU_MEMORY=187000000 $ESPALIER generate -p Once -n 4 --backend cuda --max-nodes 64 --drafter linear \
    >"$work/out" 2>"$work/err"
check "without --context, the context is shortened to fit" cmp -s "$work/out" "$work/plain"
check "a message says that the context was shortened" \
    grep -q "room for texts of [1-7][0-9][0-9] tokens; the model allows 768" "$work/err"
ESPALIER_EMU_MEMORY=187000000 ESPALIER_EMU_NODE=200000 $ESPALIER generate -p Once -n 4 --backend cuda --max-nodes 64 \
    --drafter linear >"$work/out" 2>"$work/err"
check "without memory for CUDA graphs, passes run without graphs" cmp -s "$work/out" "$work/plain"
ESPALIER_EMU_MEMORY=1000000 $run >"$work/out" 2>"$work/err"
check "with too little GPU memory, backend auto uses the CPU" cmp -s "$work/out" "$work/plain"
check "one line says that the GPU has too little memory" test "$(grep -c 'free on emulated GPU.*using the cpu backend' "$work/err")" -eq 1

# Tests quantised weights, which stay quantised on the GPU. With a tree, the text must be the text of plain decoding.
$ESPALIER quantize engine/models/fairytale-target "$work/t.gguf" --type q4_k >/dev/null
$ESPALIER quantize engine/models/fairytale-draft "$work/d.gguf" --type q8_0 >/dev/null
quantised="--target $work/t.gguf --draft $work/d.gguf --backend cuda --max-nodes 16 --context 64"
$ESPALIER generate -p Once -n 4 $quantised --drafter ar >"$work/plain-q" 2>"$work/err"
check "generate works with quantised weights on the GPU" test -s "$work/plain-q"
$ESPALIER generate -p Once -n 4 $quantised --drafter dynatree >"$work/out" 2>"$work/err"
check "with quantised weights on the GPU, a tree gives the same text as plain decoding" cmp -s "$work/out" "$work/plain-q"

# If a target is larger than the memory limit, the layers that do not fit are copied to the device in every pass.
limited="--backend cuda --exact --gpu-memory 10M"
$run $limited --stats >"$work/out" 2>"$work/err"
check "--gpu-memory does not change the text" cmp -s "$work/out" "$work/plain"
check "statistics say how many layers were copied, and how fast" grep -q '^memory  *[0-9] of 6 layers; the other layers, .* a pass, were copied at' "$work/err"
small="--max-nodes 16 --context 64"
check "inspect says how many layers stay in GPU memory" grep -q '^GPU memory  *of 10.5 MB, .* are for the target: 0 of 6 layers' <<EOT
$($ESPALIER inspect $small --backend cuda --gpu-memory 10M)
EOT
check "inspect prints the highest possible speed of plain decoding" grep -q '^  every pass  *copies [0-9.]* MB in .* tokens/s of plain decoding at most' <<EOT
$($ESPALIER inspect $small --backend cuda --gpu-memory 10M)
EOT
check "all layers stay on the GPU if the limit is large enough" grep -q '^GPU memory  *all layers stay in memory' <<EOT
$($ESPALIER inspect $small --backend cuda --gpu-memory 1G)
EOT
check "without --gpu-memory, too, a small GPU keeps only the layers that fit in its memory" grep -q '[0-4] of 6 layers in its memory' <<EOT
$(ESPALIER_EMU_MEMORY=178000000 $run --backend cuda --exact --record "$work/r" >"$work/out" && head -n 1 "$work/r")
EOT
check "a small GPU that copies layers writes the same text" cmp -s "$work/out" "$work/plain"
check "a --gpu-memory that is too small is refused" fails 1 "not enough GPU memory: .* allowed by --gpu-memory" $run --backend cuda --gpu-memory 2M
check "--gpu-memory is refused for the CPU" fails 1 "use --memory instead" $run --backend cpu --gpu-memory 10M
check "--memory is refused for a GPU" fails 1 "use --gpu-memory instead" $run --backend cuda --memory 10M
check "--gpu-memory needs a size" fails 1 "gpu-memory takes a size" $run --gpu-memory much

# Any call of the CUDA runtime can fail. In each run of this loop, the emulator lets call number $call fail.
for call in 1 2 3 5 8 13 21 34 55 89 144 233 377 610 987 1597; do
    timeout 60 env ESPALIER_EMU_FAIL=$call $run --backend cuda >"$work/out" 2>"$work/err"
    status=$?
    if [ $status -eq 0 ]; then
        check "if failing call $call does not end the run, the text is unchanged" cmp -s "$work/out" "$work/plain"
    else
        check "if call $call fails, the exit status is 1" test $status -eq 1
        check "if call $call fails, the error message is one line" test "$(grep -c '^espalier: ' "$work/err")" -eq 1
    fi
done
finish
