#!/bin/sh
# Tests the files from which packages are made. They must agree with each other and with the Makefile, and the source archive
# must be complete.
. tests/shell.sh
version=$(sed -n 's/^.define ESP_VERSION "\(.*\)"/\1/p' kernels/version.h)
check "the packages have the program's version" grep -q "^espalier ($version-" tui/package/debian/changelog
check "every package has its list of files" sh -c "for p in \$(sed -n 's/^Package: //p' tui/package/debian/control); do
    [ -s tui/package/debian/\$p.install ] || exit 1; done"
check "the packages require every library that a build requires" sh -c "for p in \$(sed -n 's/^BUILD_DEBS := \(.*\)/\1/p' Makefile | tr ' ' '\n' | grep '^lib.*-dev\$' |
    grep -v libc6); do grep -q \"^Build-Depends:.*\$p\" tui/package/debian/control || { echo \"    \$p\"; exit 1; }; done"

if git rev-parse --git-dir >/dev/null 2>&1; then
    check "a source archive is made" $MAKE -s BUILD="$work/dist" dist >/dev/null
    tar -xJf "$work/dist/espalier-$version.tar.xz" -C "$work"
    tree=$work/espalier-$version
    check "the source archive contains the models" test -s "$tree/engine/models/fairytale-target/model.safetensors"
    check "the source archive contains no files of git" test ! -e "$tree/.git" -a ! -e "$tree/.ci" -a ! -e "$tree/.gitattributes"
    check "the source archive contains its commit" grep -q '^[0-9a-f]\{7,\}$' "$tree/tui/package/commit"
    check "the hash of the source archive is correct" sh -c "cd '$work/dist' && sha256sum -c --quiet espalier-$version.tar.xz.sha256"
fi
finish
