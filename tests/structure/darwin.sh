#!/bin/sh
# Compiles the sources as on macOS, with headers that imitate the headers of macOS (tests/darwin). This finds functions
# that only Linux has. Only kernels/system_linux.c may use them.
. tests/shell.sh

cc=${CC:-cc}
flags="-std=c11 -fsyntax-only -w -I. -isystem tests/darwin -include tests/darwin/darwin.h -U_GNU_SOURCE -D_DEFAULT_SOURCE
    -D_XOPEN_SOURCE=700 -D__APPLE__ -U__linux__ -DESP_HAVE_generic -DESP_ISA=generic -DESP_DATA_DIR=\"/\" -DESP_COMMIT=\"\" -DESP_BUILD=\"\"
    -Werror=implicit-function-declaration -Werror=int-conversion -Werror=incompatible-pointer-types"
libraries=$(pkg-config --cflags libcjson libpcre2-8 libutf8proc ncursesw readline sqlite3)

sources=$(find kernels engine sessions viz tui -name '*.c' ! -path 'viz/dot/*' ! -path 'kernels/ranks/mpi/*' ! -name system_linux.c ! -name amx.c ! -name example.c)
check "the test finds the sources" test "$(echo "$sources" | wc -l)" -gt 200
echo "$sources" | xargs -P "$(nproc)" -n 16 $cc $flags $libraries >"$work/said" 2>&1
check "macOS has all functions that the sources use" test ! -s "$work/said"; head -20 "$work/said"

# The headers must hide functions and constants that macOS does not have.
printf '%s\n' '#include <sys/eventfd.h>' >"$work/a.c"
printf '%s\n' '#include <unistd.h>' 'int f(int *p) { return pipe2(p, 0); }' >"$work/b.c"
printf '%s\n' '#include <fcntl.h>' 'int f(void) { return open("/", O_DIRECT); }' >"$work/c.c"
printf '%s\n' '#include <sys/mman.h>' 'int f(void) { return MADV_HUGEPAGE; }' >"$work/d.c"
for file in a b c d; do
    $cc $flags "$work/$file.c" 2>/dev/null
    check "a function that only Linux has is refused ($file)" test $? != 0
done

# Prints the commands that make would run on macOS.
printf '#!/bin/sh\necho arm64-apple-darwin23.1.0\n' >"$work/cc" && chmod +x "$work/cc"
$MAKE -n V=1 CC="$work/cc" NVCC= NVCC12= BUILD="$work/b" all >"$work/log" 2>&1
check "make links a macOS library on macOS" sh -c "grep -q -e '-dynamiclib -install_name .*/libespalier.0.dylib' $work/log &&
    grep -q system_darwin.c $work/log && ! grep -q -e system_linux.c -e '-soname' -e version-script $work/log"
$MAKE -n CC="$work/cc" PKG_CONFIG=false BUILD="$work/b" all >"$work/log" 2>&1
check "make says how to get the libraries on macOS" grep -q 'run `brew install .*cjson' "$work/log"
finish
