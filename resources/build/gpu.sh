#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds what a machine with a GPU must run, called by ./run gpu.
#
#   ./run gpu                    on a machine with a GPU: build, then run first_light.sh on it
#   ./run gpu --bundle FOLDER    write FOLDER/programs.tar.xz, FOLDER/golden.tar.xz and FOLDER/first_light.sh, for a machine that has
#                                PyTorch of the pinned version, but no compiler, no Qt and no network
#
# There: bash first_light.sh A B. golden.tar.xz is not needed where a checkout lies beside the script.
# PONDERSCOPE_GPU_DEVICE=hostgpu rehearses on the tests' own device, which needs no GPU.
set -euo pipefail

tree=$(cd "$(dirname "$0")/../.." && pwd)
cd "$tree"
# shellcheck source=resources/build/versions.env
source resources/build/versions.env
build=$tree/build/release
fail() { printf 'run gpu: %s\n' "$*" >&2; exit 2; }
say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }

# collect FOLDER: programs, the libraries that they need beside PyTorch and the C++ runtime, and a manifest.
collect() {
    local folder=$1 name library
    mkdir -p "$folder"/{bin,tests,bench,lib}
    for name in ponderscope ponderscope-engine; do strip -o "$folder/bin/$name" "$build/bin/$name"; done
    for name in device attend head model_on_device ponder_golden ponder_engine ponder_recording ponder_released ponder_states ponder_rerun; do
        strip -o "$folder/tests/${name}_test" "$build/tests/${name}_test"
    done
    for name in device halting; do
        strip -o "$folder/bench/${name}_bench" "$build/bench/${name}_bench"
        strip -o "$folder/bench/${name}_bench_rehearsal" "$build/bench/rehearsal/${name}_bench_rehearsal"
    done
    strip -o "$folder/lib/libponderscope_cuda.so" "$build/lib/libponderscope_cuda.so"
    cp tests/bench/engine/{roofs,transformers_on_device,programs_on_device}.py "$folder/bench/"
    # The C and C++ runtime and PyTorch are the machine's.
    { ldd "$folder"/{bin,tests}/* "$folder"/bench/*_{bench,rehearsal} || true; } | sed -n 's/^.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
        grep -vE '/(torch|nvidia)/|/(libc|libm|libdl|librt|libutil|libpthread|libgcc_s|libstdc\+\+|libgomp)\.so' |
        while read -r library; do cp -L "$library" "$folder/lib/"; done
    {
        echo "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
        echo "torch $TORCH_VERSION"
        echo "compiler $("${CXX:-g++}" --version | head -n 1)"
        echo "glibc $(ldd --version | head -n 1)"
    } >"$folder/manifest"
}

bundle() {
    local out=$1 work
    [ -n "$out" ] || fail "--bundle needs a folder, as in: ./run gpu --bundle build/gpu"
    mkdir -p "$out"
    work=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" EXIT
    collect "$work/ponderscope-gpu"
    # The programs share most of their code: a dictionary that spans them all makes them a third of the size.
    tar -C "$work" -c ponderscope-gpu | xz -T1 -6 --lzma2=dict=128MiB >"$out/programs.tar.xz"
    tar -C tests -c golden | xz -T1 -6 >"$out/golden.tar.xz"
    cp resources/build/first_light.sh "$out/"
    say "$(du -cm "$out"/* | sed -n 's/\ttotal//p') MB in $out. There: bash first_light.sh A B"
}

case ${1:-} in
    --bundle) bundle "${2:-}" ;;
    "")
        collect "$tree/build/ponderscope-gpu"
        bash resources/build/first_light.sh A B
        ;;
    *) fail "unknown option '$1'; ./run gpu, or ./run gpu --bundle FOLDER" ;;
esac
