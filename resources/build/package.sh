#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
#   package.sh BUILD FOLDER [deb|wheel]
#
# Packages of what is built, for ./run package: two Debian packages, and a Python wheel that carries the command-line programs beside
# the package `ponderscope`.
set -euo pipefail

tree=$(cd "$(dirname "$0")/../.." && pwd)
build=$1 out=$2 kinds=${3:-deb wheel}
say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }
fail() { printf 'run package: %s\n' "$*" >&2; exit 2; }

mkdir -p "$out" 2>/dev/null || fail "$out cannot be made; name another folder, as in: ./run package FOLDER."
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

make_deb() {
    say "Making the Debian packages"
    local log=$work/cpack.log
    cpack --config "$build/CPackConfig.cmake" -B "$work/deb" >"$log" 2>&1 || { tail -n 5 "$log" >&2; fail "cpack failed (last lines above)."; }
    mv "$work"/deb/*.deb "$out/"
}

make_wheel() {
    local carried=$work/wheel/ponderscope/program name library platform
    say "Making the wheel"
    cp -r "$tree/app/python" "$work/wheel"
    mkdir -p "$carried"/{bin,lib}
    for name in ponderscope ponderscope-engine; do strip -o "$carried/bin/$name" "$build/bin/$name"; done
    [ ! -e "$build/lib/libponderscope_cuda.so" ] || strip -o "$carried/lib/libponderscope_cuda.so" "$build/lib/libponderscope_cuda.so"
    # The C and C++ runtime are the machine's, LibTorch is the wheel torch; all else travels, because distributions have other versions.
    { ldd "$carried"/bin/* || true; } | sed -n 's/^.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
        grep -vE '/(torch|nvidia)/|/(libc|libm|libdl|librt|libutil|libpthread|libgcc_s|libstdc\+\+|libgomp)\.so' |
        while read -r library; do cp -L "$library" "$carried/lib/"; done
    cat >>"$work/wheel/pyproject.toml" <<'END'

[project.scripts]
ponderscope = "ponderscope.program:main"
END
    sed -i 's|^ponderscope = \[|ponderscope = ["program/bin/*", "program/lib/*", |' "$work/wheel/pyproject.toml"
    # pip refuses the wheel where the C library is older than the one that the programs were linked with.
    platform=manylinux_$(getconf GNU_LIBC_VERSION | sed 's/glibc //; s/\./_/')_$(uname -m)
    python3 -m pip wheel --disable-pip-version-check --no-deps -q "--config-settings=--build-option=--plat-name=$platform" \
        -w "$out" "$work/wheel" >&2 || fail "the wheel could not be made (pip's words above)."
}

for kind in $kinds; do "make_$kind"; done
ls -sh "$out"
