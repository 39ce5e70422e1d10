#!/bin/sh
# Tests targets of the Makefile: install, uninstall, the headless program, and the demo without a
# terminal. Also tests the example with the installed library, and the man pages.
. tests/shell.sh
prefix=$work/usr

for target in demo race; do
    ESPALIER_NO_APT=1 $MAKE -n --no-print-directory $target SEED=7 2>/dev/null >"$work/dry"
    check "make $target SEED=7 passes the seed to the program" grep -q -e '/espalier .*--seed 7' "$work/dry"
    ESPALIER_NO_APT=1 $MAKE -n --no-print-directory $target 2>/dev/null >"$work/dry"
    check "make $target without SEED passes no seed to the program" sh -c "! grep -q -e '--seed' '$work/dry'"
done

$MAKE --no-print-directory install PREFIX="$prefix" >"$work/log" 2>&1
check "make install succeeds" test $? -eq 0
for file in bin/espalier include/espalier/engine/espalier.h include/espalier/engine/espalier_event.h include/espalier/engine/espalier_settings.h lib/libespalier.a \
    lib/libespalier.so lib/pkgconfig/espalier.pc share/man/man1/espalier.1 share/man/man7/espalier-drafters.7 \
    share/man/man7/espalier-interface.7 share/man/man7/espalier-ranks.7 share/man/man5/espalier-theme.5 \
    share/man/man5/espalier-session.5 \
    share/espalier/models/fairytale-target/model.safetensors \
    share/espalier/models/fairytale-draft/model.safetensors; do
    check "make install installs $file" test -e "$prefix/$file"
done
if [ -x "$BUILD/espalier-dot" ]; then
    check "make install installs espalier-dot" test -x "$prefix/bin/espalier-dot"
    check "the installed espalier finds espalier-dot beside itself" sh -c "env PATH=/nowhere $prefix/bin/espalier \
        export tests/cli/three.esp.jsonl --iteration 1 | grep -q '</svg>'"
fi
check "make install installs recordings" sh -c "ls $prefix/share/espalier/sessions/*.esp.jsonl >/dev/null"
check "make install installs lessons, and the program finds them" sh -c \
    "cd / && $prefix/bin/espalier learn 3 </dev/null | grep -q '3 of 3'"
check "make install installs themes" sh -c "ls $prefix/share/espalier/themes/*.theme >/dev/null"
cd "$work" || exit 1
check "the installed program finds the built-in models" sh -c \
    "$prefix/bin/espalier generate -p Once -n 8 | grep -q ."
cd - >/dev/null || exit 1
flags=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs espalier)
check "the example builds with pkg-config" ${CC:-cc} -std=c11 -Wall -Werror \
    -o "$work/example" engine/example.c $flags
check "the example generates text with the shared library" sh -c \
    "LD_LIBRARY_PATH=$prefix/lib $work/example 'Once upon a time' | wc -c | grep -q '[0-9][0-9]'"
nm -D --defined-only "$prefix/lib/libespalier.so" | awk '$2 == "T" { print $3 }' | sort >"$work/exported"
shared=$($MAKE -s --no-print-directory print-shared-headers)
grep -hv -e typedef -e 'static inline' -e '^    [a-z]' $(find "$prefix/include" -name '*.h') $shared | grep -o '\<esp_[a-z0-9_]*(' | tr -d '(' | sort -u >"$work/declared"
check "the shared library exports exactly the declared functions" diff "$work/declared" "$work/exported"
$MAKE --no-print-directory "$BUILD/shared/espalier" >"$work/log" 2>&1
check "the program also works when it is linked with the shared library" \
    sh -c "$BUILD/shared/espalier generate -p Once -n 8 | grep -q ."
check "the program that was linked with the shared library loads this library" sh -c "ldd $BUILD/shared/espalier | grep -q libespalier.so"
$MAKE --no-print-directory uninstall PREFIX="$prefix" >"$work/log" 2>&1
check "make uninstall removes every installed file" test -z "$(find "$prefix" -type f -o -type l)"

printf '#!/bin/sh\necho aarch64-linux-gnu\n' >"$work/cc" && chmod +x "$work/cc"
$MAKE -n CC="$work/cc" BUILD="$work/cross" "$work/cross/libespalier.a" >"$work/log" 2>&1
check "a cross build uses the instruction sets of the target processor" \
    sh -c "grep -q ESP_ISA=generic $work/log && ! grep -q ESP_ISA=avx2 $work/log"

check "make headless succeeds" sh -c "$MAKE --no-print-directory headless >$work/log 2>&1"
exec 3<"$BUILD/headless/libcjson.so.1"
$MAKE --no-print-directory headless >"$work/log" 2>&1
check "make headless replaces the library file, so a running program is not affected" \
    test "$(stat -L -c %h /proc/self/fd/3)" -eq 0
exec 3<&-
check "the headless program needs no terminal library" sh -c \
    "! ldd $BUILD/headless/espalier | grep -q 'ncurses\|readline\|cgraph\|gvc'"
check "the program does not link to Graphviz" sh -c "! ldd $BUILD/espalier | grep -q 'cgraph\|gvc'"
check "the headless program exports text without Graphviz" sh -c \
    "$BUILD/headless/espalier export tests/cli/three.esp.jsonl --iteration 1 --format txt | grep -q '✓'"
check "the headless program generates text" sh -c \
    "$BUILD/headless/espalier generate -p Once -n 8 | grep -q ."
check "the headless program replays a recording as text" sh -c "$BUILD/headless/espalier generate -p Once -n 8 \
    --record $work/once.esp.jsonl >/dev/null && $BUILD/headless/espalier replay \
    $work/once.esp.jsonl --plain | grep -q '^--- iteration 0 of'"
check "without a command, the headless program says that it has no interface" fails 1 "interface" "$BUILD/headless/espalier"

check "make demo without a terminal streams a sample" sh -c \
    "ESPALIER_NO_APT=1 $MAKE --no-print-directory demo </dev/null 2>/dev/null | grep -q 'fisherman'"
check "make help lists targets" sh -c "$MAKE help | grep -q 'make check'"
check "the man pages have no lint warnings" sh -c "! mandoc -T lint -W warning man/*.[157] | grep ."
for page in drafters interface; do
    check "the man page of $page is up to date" sh -c \
        "tests/${page}_page $ESPALIER | cmp - man/espalier-$page.7"
done
finish
