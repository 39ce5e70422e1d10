#!/bin/sh
# Tests tests/cuda/run, the main script of the kit that tests the CUDA backend on a machine with a GPU. It must print output
# while the parts of the kit run, and must end in time even if a part hangs. It must collect all output in one tar file. Here,
# small scripts replace the programs of a real kit.
. tests/shell.sh
kit=$work/kit
mkdir -p "$kit/tests/unit" "$kit/tests/lossless"
cp tests/cuda/run "$kit"

# Runs the real program `shapes` on the emulator. It measures each model in a separate process.
$MAKE --no-print-directory "$BUILD/tests/cuda/shapes" >"$work/log" 2>&1
shapes() {
    env ESPALIER_CUDA_PLUGIN="$BUILD/emu/libespalier-cuda.so" "$@" "$BUILD/tests/cuda/shapes" --try 0.5b 1b >"$work/out" 2>&1
}
check "the program shapes succeeds" shapes
check "in exact mode, the program shapes finds that every row is bit-identical to plain decoding" test \
    "$(grep -c 'Exact mode.*: 243 of 243 rows have the bits of plain decoding' "$work/out")" -eq 2
check "the program shapes prints the memory that each model uses" test "$(grep -c 'Memory free: [0-9.]* GB before, [0-9.]* GB with' "$work/out")" -eq 8
check "the program shapes measures each model in exact mode, too" test "$(grep -c '^Exact mode:$' "$work/out")" -eq 2
check "the tables of the program shapes have a prediction beside each measurement" test "$(grep -c '| ms | predicted | MB read |' "$work/out")" -eq 6
shapes ESPALIER_EMU_FAIL=30
check "if models fail, the exit status of the program shapes is 1" test $? -eq 1
check "the program shapes prints how many models have failed" grep -q '^shapes: 0 passed, 2 failed' "$work/out"

program() {
    cat >"$kit/$1"
    chmod +x "$kit/$1"
}

program espalier <<'END'
#!/bin/sh
case $1 in
list) printf 'cpu\n    a processor\ncuda\n    a device\n' ;;
*) echo "all agree" ;;
esac
END
program tests/unit/a_good <<'END'
#!/bin/sh
echo "good: 7 passed, 0 failed"
END
program tests/lossless/d_whole <<'END'
#!/bin/sh
echo "whole: 1 passed, 0 failed"
END
program tests/bench <<'END'
#!/bin/sh
echo "| rows | ms |"
END
program tests/shapes <<'END'
#!/bin/sh
case $1 in
--list) echo 8b 1b ;;
8b) echo "shapes: 0 passed, 1 failed" && exit 1 ;;
*) printf '| rows | ms at 256 |\nshapes: 1 passed, 0 failed\n' ;;
esac
END

# Tests the Makefile's rules for plugins and the kit. The compilers here only print their versions. The test reads the
# commands that make would run.
for version in 12.4 13.0; do
    cat >"$work/nvcc-$version" <<END
#!/bin/sh
case \$1 in
--version) echo "Cuda compilation tools, release $version, V$version.1" ;;
--list-gpu-arch) printf 'compute_80\ncompute_90\n' ;;
esac
END
    chmod +x "$work/nvcc-$version"
done
# plan GOAL...: prints the commands that make would run with both compilers.
plan() {
    env -u MAKE -u MAKEFLAGS -u MFLAGS make --no-print-directory -n BUILD="$work/build" NVCC="$work/nvcc-13.0" NVCC12="$work/nvcc-12.4" "$@" 2>&1
}
plan cuda >"$work/plan"
check "with two versions of nvcc, make builds two plugins" test \
    "$(grep -o -- "-o $work/build/libespalier-cuda[0-9]*.so" "$work/plan" | sort -u | wc -l)" -eq 2
check "only the newer nvcc uses a compression that old drivers cannot read" sh -c \
    'grep "nvcc-13.0.*--compress-mode" "$1" | grep -q matmul.cu && ! grep "nvcc-12.4.*--compress-mode" "$1" &&
     grep "nvcc-12.4.*-Xfatbin=-compress-all" "$1" | grep -q matmul.cu' sh "$work/plan"
plan cuda-kit >"$work/plan"
check "the kit contains both plugins" grep -q "cp $work/build/libespalier-cuda.so $work/build/libespalier-cuda12.so" "$work/plan"
plan NVCC12="$work/nvcc-13.0" cuda >"$work/plan"
check "make refuses a second nvcc that is not from CUDA 12" grep -q "not an nvcc of CUDA 12" "$work/plan"
plan CI=true check | grep -e "-Xptxas -O0.* -MF " >"$work/plan"
check "CI compiles CUDA without optimisation by ptxas" test "$(wc -l <"$work/plan")" -gt 20
check "CI compiles CUDA into a separate folder" test "$(grep -vc -- "-MF $work/build/checked/" "$work/plan")" -eq 0

# NVIDIA's compute-sanitizer cannot check scripts. Its folder is removed from PATH, so the kit does not find it.
PATH=$(printf '%s' "$PATH" | tr ':' '\n' | grep -v cuda | paste -s -d : -)

run() {
    (cd "$work" && exec "$kit/run" "$@") >"$work/out" 2>&1
}

run check "$work/good.tar"
check "if all parts of the kit pass, the run succeeds" test $? -eq 0
check "the summary adds up the results of all parts of the kit" grep -q '^11 passed, 0 failed$' "$work/out"
check "the command 'run check' measures no speeds" test "$(grep -c '| rows | ms |' "$work/out")" -eq 0
run bench "$work/bench.tar"
check "the command 'run bench' prints the tables of speeds" grep -q '| rows | ms |' "$work/out"
check "the command 'run bench' reports a model shape that fails" grep -q "^FAILED    shapes-8b (exit 1): 0 passed, 1 failed" "$work/out"
check "after a model shape has failed, the next shape is still measured" grep -q "^ok        shapes-1b: 1 passed" "$work/out"

program espalier <<'END'
#!/bin/sh
printf 'cpu\n    a processor\ncuda\n    not here: there is no CUDA device here\n'
END
run "$work/none.tar"
check "without a GPU, a message says that the backend can use no GPU" grep -q "^the backend can use no GPU of this machine" "$work/out"
check "without a GPU, the run fails" grep -q "^1 passed, 1 failed" "$work/out"
rm "$work/none.tar"
program espalier <<'END'
#!/bin/sh
printf 'cpu\n    a processor\ncuda\n    a device\n'
END

program tests/unit/b_bad <<'END'
#!/bin/sh
echo "bad: 2 passed, 1 failed"
exit 1
END
program tests/unit/c_hangs <<'END'
#!/bin/sh
echo "this is said before it hangs"
trap '' TERM
sleep 100 & wait
sleep 100
END
begin=$(date +%s)
ESPALIER_KIT_SECONDS=8 ESPALIER_KIT_GRACE=6 run "$work/bad.tar"
status=$?
took=$(($(date +%s) - begin))
check "if a part fails, the exit status is 1" test $status -eq 1
check "the run ends in time although a part hangs" test $took -le 20
check "the output of a part that hangs is printed" grep -q "this is said before it hangs" "$work/out"
check "a part that fails is reported with its exit status" grep -q "^FAILED    b_bad (exit 1): 2 passed, 1 failed" "$work/out"
check "a part that hangs is reported" grep -q "^FAILED    c_hangs: it did not end within" "$work/out"
check "a part for which no time is left is reported" grep -q "^LEFT OUT  d_whole: no time is left" "$work/out"
check "the tar file has the output of the parts" test \
    "$(tar xOf "$work/bad.tar" espalier-cuda/c_hangs.txt | head -n 1)" = "this is said before it hangs"
check "the tar file has the summary of all parts" test "$(tar xOf "$work/bad.tar" espalier-cuda/summary.txt | grep -c FAILED)" -ge 2
check "a run leaves no file except its tar file" test "$(ls "$work" | grep -c tar)" -eq 3

# The output of a part must be shown while the part runs, and must be kept if the run is interrupted.
program tests/unit/c_hangs <<'END'
#!/bin/sh
echo "half way"
sleep 100
END
(cd "$work" && exec "$kit/run" check "$work/broken.tar") >"$work/out" 2>&1 &
running=$!
for i in $(seq 100); do
    grep -q "half way" "$work/out" 2>/dev/null && break
    sleep 0.1
done
check "a line of output is shown before its part ends" grep -q "half way" "$work/out"
kill -TERM $running
wait $running
check "an interrupted run exits with 130" test $? -eq 130
check "the tar file of an interrupted run has the output so far" test \
    "$(tar xOf "$work/broken.tar" espalier-cuda/c_hangs.txt | head -n 1)" = "half way"

# tests/cuda/compare must show the figures of two runs side by side.
measured() { # TAR MS DEVICE: makes the tar file of a run on DEVICE that measured MS milliseconds
    mkdir -p "$work/made/espalier-cuda"
    printf '\n# %s, 80 GB, driver 580\n\nRead rate: 3000 GB/s.\n\n## A model, BF16\n\n%s\n|---|---|---|---|\n%s\n' "$3" \
        "| rows | ms at 256 | predicted | of the read rate |" "| 1 | $2 | 4.000 | 90 % |" >"$work/made/espalier-cuda/shapes-8b.txt"
    printf 'ok        shapes-8b: 1 passed, 3 s\n' >"$work/made/espalier-cuda/summary.txt"
    tar cf "$1" -C "$work/made" espalier-cuda
}
measured "$work/a.tar" 5.000 "One GPU"
measured "$work/b.tar" 4.000 "Another GPU"
compare() {
    sh tests/cuda/compare "$@" >"$work/out" 2>&1
}
check "tests/cuda/compare accepts the tar files of two runs" compare "$work/a.tar" "$work/b.tar"
check "the comparison names both devices" sh -c 'grep -q "One GPU" "$1" && grep -q "Another GPU" "$1"' sh "$work/out"
check "the comparison has a row for each figure" grep -q '^| 1 | ms at 256 | 5.000 | 4.000 | 0.80 |$' "$work/out"
check "the comparison has the predictions, too" grep -q '^| 1 | ms at 256: predicted | 4.000 | 4.000 | 1.00 |$' "$work/out"
compare "$work/a.tar" "$kit/run"
check "a file that is not the tar file of a run is refused" test $? -eq 1
check "the error message names the refused file" grep -q "^compare: $kit/run is not a tar" "$work/out"

# The prediction for a real model must say that the read rate of memory limits a pass of one row.
check "the program shapes predicts the times of a model without the model's weights" env ESPALIER_CUDA_PLUGIN="$BUILD/emu/libespalier-cuda.so" ESPALIER_EMU_SMS=132 \
    sh -c '"$1" --predict 3000 1700 8b 8b-q4_k_m >"$2"' sh "$BUILD/tests/cuda/shapes" "$work/out"
check "a predicted pass of one row reaches 50 to 100 % of the read rate" awk -F '|' '
    /of the read rate/ { on = 1 } on && $2 == " 1 " { n++; if ($4 + 0 <= 50 || $4 + 0 >= 100) bad = 1 } /^Kernels/ { on = 0 }
    END { exit !(n == 2 && !bad) }' "$work/out"
finish
