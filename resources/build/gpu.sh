#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What a machine with a GPU must show, called by ./run gpu; no network and no Qt are needed there, nvcc, CMake, Ninja and a
# Python with torch are found, not installed.
#
#   ./run gpu --pack FILE.tar.zst    sources, reference cases and the packages of headers, for a machine without a network
#   ./run gpu [FOLDER]               build, check and measure; FOLDER (default build/gpu/report) gets report.md, report.json
#
# PONDERSCOPE_GPU_DEVICE           cuda; hostgpu runs the same on the tests' own device, which needs no GPU: the script's rehearsal
# PONDERSCOPE_JOBS                 parallel compilations (default: all cores)
set -euo pipefail

tree=$(cd "$(dirname "$0")/../.." && pwd)
cd "$tree"
# shellcheck source=resources/build/versions.env
source resources/build/versions.env
device=${PONDERSCOPE_GPU_DEVICE:-cuda}
build=$tree/build/gpu
root=$build/root # unpacked packages of headers
fail() { printf 'run gpu: %s\n' "$*" >&2; exit 2; }
say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }

# What the engine and its tests include beside LibTorch. Libraries that come with it: their packages bring both.
packages=(nlohmann-json3-dev libcli11-dev libboost1.74-dev libsqlite3-dev libpcre2-dev libpcre2-8-0 libutf8proc-dev libutf8proc2 libsqlite3-0
    libzstd-dev libzstd1 zlib1g-dev zlib1g libgtest-dev)

pack() {
    local file=$1 folder size
    [ -n "$file" ] || fail "--pack needs a file, as in ./run gpu --pack ponderscope-gpu.tar.zst."
    folder=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$folder'" EXIT
    mkdir -p "$folder/ponderscope/build/gpu/packages"
    # The trained samples are the bulk of the sources, and no test of the engine needs more than two of them.
    git ls-files -z | grep -zvE '^(sample_models/(cabinet|known_difficulty)|resources/screenshots|views|app/desktop|tests/(views|app/desktop))/' |
        tar --null --files-from - -c | tar -x -C "$folder/ponderscope"
    (cd "$folder/ponderscope/build/gpu/packages" && apt-get download -qq "${packages[@]}") ||
        fail "the packages of headers could not be downloaded: ${packages[*]}."
    tar -C "$folder" -c ponderscope | zstd -q -19 -T0 -o "$folder/packed"
    mv "$folder/packed" "$file"
    size=$(du -m "$file" | cut -f1)
    say "$file: $size MB. There: tar -xf $(basename "$file") && ponderscope/run gpu"
}

find_torch() {
    torch=${Torch_DIR:-$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))' 2>/dev/null || true)}
    [ -n "$torch" ] || torch=${PONDERSCOPE_DEPS:-$HOME/.cache/ponderscope}/torch-$TORCH_VERSION/torch
    [ -e "$torch/lib/libtorch_cpu.so" ] || fail "no LibTorch: neither Torch_DIR, nor a Python with torch, nor ./run's own."
}

unpack_packages() {
    local package
    [ -d "$build/packages" ] || return 0
    mkdir -p "$root"
    for package in "$build"/packages/*.deb; do dpkg-deb -x "$package" "$root"; done
    export CMAKE_PREFIX_PATH=$root/usr PKG_CONFIG_PATH=$root/usr/lib/x86_64-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
    export CPATH=$root/usr/include LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# step NAME COMMAND...: its words to a log, its verdict and time into the report.
step() {
    local name=$1 begin=$SECONDS code=0 log
    shift
    log=$report/$name.log
    say "$name"
    "$@" >"$log" 2>&1 || code=$?
    local seconds=$((SECONDS - begin)) verdict=passed
    [ "$code" -eq 0 ] || verdict="FAILED ($code)"
    printf '| %s | %s | %s s |\n' "$name" "$verdict" "$seconds" >>"$report/steps"
    printf '{"step": "%s", "code": %s, "seconds": %s}\n' "$name" "$code" "$seconds" >>"$report/steps.json"
    [ "$code" -eq 0 ] || { failed=1; tail -n 20 "$log" >&2; }
    return 0
}

tests=(ponder_golden ponder_engine ponder_recording ponder_released ponder_states ponder_rerun)
kernels=(attend head depth_mix)

check_and_measure() {
    report=${1:-$build/report}
    failed=0
    mkdir -p "$report"
    rm -f "$report"/*.log "$report"/steps "$report"/steps.json
    find_torch
    unpack_packages
    export Torch_DIR=$torch OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
    local names=() name dtype shape
    for name in "${tests[@]}" "${kernels[@]}" device ponder_waits; do names+=("${name}_test"); done
    step configure cmake -Wno-dev -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPONDERSCOPE_DESKTOP=OFF -DPONDERSCOPE_WERROR=OFF
    step build ninja -C "$build" -j "${PONDERSCOPE_JOBS:-$(nproc)}" ponderscope "${names[@]}" device_bench halting_bench
    [ "$failed" -eq 0 ] || fail "it does not build ($report/build.log)."
    # Which kernel is wrong is known before anything that is built on them runs.
    for name in "${kernels[@]}" device; do step "kernel_$name" "$build/tests/${name}_test"; done
    export PONDERSCOPE_TEST_DEVICE=$device
    for dtype in float32 bfloat16 float16; do
        for name in "${tests[@]}"; do
            # What is compared with a reference is compared in fp32; the properties hold in every dtype.
            [ "$dtype" = float32 ] || [ "$name" != ponder_golden ] || continue
            PONDERSCOPE_TEST_DTYPE=$dtype step "${name}_$dtype" "$build/tests/${name}_test"
        done
    done
    if [ "$device" = cuda ] && command -v compute-sanitizer >/dev/null; then
        for name in "${kernels[@]}"; do
            step "memcheck_$name" compute-sanitizer --tool memcheck --error-exitcode 9 "$build/tests/${name}_test" --gtest_filter='*OnTheGpu*:DepthMix*'
            step "racecheck_$name" compute-sanitizer --tool racecheck --error-exitcode 9 "$build/tests/${name}_test" --gtest_filter='*OnTheGpu*:DepthMix*'
        done
    fi
    if [ "$device" = cuda ]; then
        for shape in 160m 410m 1.4b; do
            for dtype in float32 bfloat16; do
                step "bench_${shape}_$dtype" "$build/bench/device_bench" --device cuda --shape "$shape" --dtype "$dtype"
            done
        done
        step bench_halting "$build/bench/halting_bench" --device cuda --hidden 1024 --layers 12
        if python3 -c 'import transformers' 2>/dev/null; then
            step bench_transformers python3 tests/bench/scoring/compare_with_transformers.py --ponderscope "$build/bin/ponderscope" \
                --device cuda --dtype bfloat16 --shapes pythia-70m
        fi
    else
        step bench_tiny "$build/bench/device_bench" --device cpu --shape tiny --rounds 2
    fi
    write_report
    [ "$failed" -eq 0 ] || { say "Some of it failed: $report/report.md"; exit 1; }
    say "All passed: $report/report.md"
}

write_report() {
    local log
    {
        printf '# Ponderscope on %s\n\n' "$( [ "$device" = cuda ] && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || echo "$device")"
        printf 'Commit %s, LibTorch %s.\n\n| step | verdict | time |\n| --- | --- | --- |\n' \
            "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" "$torch"
        cat "$report/steps"
        for log in "$report"/bench_*.log; do
            printf '\n## %s\n\n```\n%s\n```\n' "$(basename "$log" .log)" "$(cat "$log")"
        done
        printf '\n## Largest differences from the references\n\n```\n%s\n```\n' "$(grep -h 'largest\|max abs' "$report"/ponder_golden_float32.log | head -n 60)"
    } >"$report/report.md"
    { printf '['; paste -sd, "$report/steps.json"; printf ']\n'; } >"$report/report.json"
}

case ${1:-} in
    --pack) pack "${2:-}" ;;
    -*) fail "unknown option '$1'; ./run gpu [FOLDER], ./run gpu --pack FILE.tar.zst." ;;
    *) check_and_measure "$@" ;;
esac
