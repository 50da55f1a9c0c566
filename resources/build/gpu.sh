#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What a machine with a GPU must show, called by ./run gpu; no network and no Qt are needed there, nvcc, CMake, Ninja and a
# Python with torch are found, not installed.
#
#   ./run gpu --pack FILE.tar.zst    sources, reference cases and the packages of headers, for a machine without a network
#   ./run gpu [FOLDER]               build, check and measure; FOLDER (default build/gpu/report) gets report.md, report.json
#                                    after every step, so that what was measured stays when time is up
#
# PONDERSCOPE_GPU_STEPS            a regular expression: only the steps whose names it fits, in a report that keeps the others
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
packages=(nlohmann-json3-dev libcli11-dev libsqlite3-dev libpcre2-dev libpcre2-8-0 libutf8proc-dev libsqlite3-0 libzstd-dev libzstd1 zlib1g-dev zlib1g
    libssl-dev libgtest-dev)

depends() { apt-cache depends --important "$@" | sed -n 's/^ *Depends: //p'; }

pack() {
    local file=$1 folder size
    [ -n "$file" ] || fail "--pack needs a file, as in ./run gpu --pack ponderscope-gpu.tar.zst."
    folder=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$folder'" EXIT
    mkdir -p "$folder/ponderscope/build/gpu/packages"
    # The trained samples are the bulk of the sources, and no test of the engine needs more than two of them.
    git ls-files -z | grep -zvE '^(sample_models/(adaponderlm-neox-1m|cabinet|known_difficulty)|resources/screenshots|views|app/desktop|tests/(views|app/desktop))/' |
        tar --null --files-from - -c | tar -x -C "$folder/ponderscope"
    # Their names have versions in them, which each release has its own of.
    mapfile -t -O "${#packages[@]}" packages < <(depends libboost-dev libutf8proc-dev libssl-dev)
    (cd "$folder/ponderscope/build/gpu/packages" && apt-get download -qq "${packages[@]}") ||
        fail "the packages of headers could not be downloaded: ${packages[*]}."
    only_needed_boost "$folder/ponderscope/build/gpu"
    git rev-parse --short HEAD >"$folder/ponderscope/build/gpu/commit"
    tar -C "$folder" -c ponderscope | zstd -q -19 -T0 -o "$folder/packed"
    mv "$folder/packed" "$file"
    size=$(du -m "$file" | cut -f1)
    say "$file: $size MB. There: tar -xf $(basename "$file") && ponderscope/run gpu"
}

# Of Boost, unpacked, the libraries that ours include and what those include: whole ones, as another compiler may take other
# headers of them. All of it would be a quarter of the archive.
only_needed_boost() {
    local all=$1/root/usr/include/boost part keep=" "
    mkdir -p "$1/root"
    for part in "$1"/packages/libboost*.deb; do dpkg-deb -x "$part" "$1/root" && rm "$part"; done
    for part in $(grep -rhE '^#include <boost/' core app | sort -u |
        "${CXX:-g++}" -std=c++20 -M -x c++ -isystem "$1/root/usr/include" - | grep -oE 'include/boost/[a-z_0-9]+' | sort -u); do
        keep+="${part##*/} "
    done
    for part in "$all"/*; do
        part=${part##*/}
        [[ $keep == *" ${part%.hpp} "* ]] || rm -r "${all:?}/$part"
    done
    rm -rf "$1/root/usr/share/doc"
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
    # These alone: a package of the machine's own would be looked for below the same root.
    export CMAKE_PREFIX_PATH=$root/usr PKG_CONFIG_LIBDIR=$root/usr/lib/x86_64-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
    export CPATH=$root/usr/include LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# step NAME COMMAND...: its words to a log, its verdict and time into the report. None takes the others' time.
step() {
    local name=$1 begin=$SECONDS code=0 log
    shift
    [[ $name =~ ${PONDERSCOPE_GPU_STEPS:-} ]] || return 0
    log=$report/$name.log
    say "$name"
    timeout --kill-after 10 "${limit:-300}" "$@" >"$log" 2>&1 || code=$?
    printf '{"step": "%s", "code": %s, "seconds": %s}\n' "$name" "$code" $((SECONDS - begin)) >"$report/$name.step"
    [ "$code" -eq 0 ] || { failed=1; tail -n 20 "$log" >&2; }
    write_report
}

tests=(ponder_golden ponder_engine ponder_recording ponder_released ponder_states ponder_rerun)
kernels=(attend head depth_mix)

check_and_measure() {
    report=${1:-$build/report}
    failed=0
    [ "$device" = cuda ] || limit=3600 # what rehearses has fewer cores, and nobody's half an hour
    mkdir -p "$report"
    [ -n "${PONDERSCOPE_GPU_STEPS:-}" ] || rm -f "$report"/*.log "$report"/*.step
    find_torch
    unpack_packages
    export Torch_DIR=$torch OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
    local programs=(device_bench halting_bench) name dtype tool part=0
    for name in "${tests[@]}" "${kernels[@]}" device; do programs+=("${name}_test"); done
    [ "$device" = cuda ] || programs+=(device_bench_rehearsal halting_bench_rehearsal)
    step configure cmake -Wno-dev -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DPONDERSCOPE_DESKTOP=OFF -DPONDERSCOPE_BENCHMARKS=ON -DPONDERSCOPE_WERROR=OFF
    limit=7200 step build ninja -C "$build" -j "${PONDERSCOPE_JOBS:-$(nproc)}" ponderscope "${programs[@]}"
    [ "$failed" -eq 0 ] || fail "it does not build ($report/build.log)."
    # Which kernel is wrong is known before anything that is built on them runs.
    for name in "${kernels[@]}" device; do step "kernel_$name" "$build/tests/${name}_test"; done
    export PONDERSCOPE_TEST_DEVICE=$device
    for dtype in float32 bfloat16 float16; do
        for name in "${tests[@]}"; do
            # What is compared with a reference is compared in fp32; the properties hold in every dtype, and every fourth of
            # the longest program's, others in each dtype, shows it.
            [ "$dtype" = float32 ] || [ "$name" != ponder_golden ] || continue
            if [ "$name" = ponder_engine ]; then
                PONDERSCOPE_TEST_DTYPE=$dtype GTEST_TOTAL_SHARDS=4 GTEST_SHARD_INDEX=$part step "${name}_$dtype" "$build/tests/${name}_test"
            else
                PONDERSCOPE_TEST_DTYPE=$dtype step "${name}_$dtype" "$build/tests/${name}_test"
            fi
        done
        part=$((part + 1))
    done
    if [ "$device" = cuda ]; then
        measure
    else
        step bench_tiny "$build/bench/rehearsal/device_bench_rehearsal" --device "$device" --shape tiny --rounds 2
        step bench_halting "$build/bench/rehearsal/halting_bench_rehearsal" --device "$device" --tokens 16 --hidden 32 --layers 2 --repeats 1 --batches 2
        compare_with_transformers --device cpu --dtype float32 --attention sdpa eager \
            --shapes pythia-tiny --repeats 1 --sequences 2 --context 32 --batch 2 --more 4 --device-bench "$build/bench/device_bench"
    fi
    [ "$device" != cuda ] || sanitize
    [ "$failed" -eq 0 ] || { say "Some of it failed: $report/report.md"; exit 1; }
    say "All passed: $report/report.md"
}

# Last, as it is the slowest. Of our kernels alone: what the library does is not ours to mend, and most of what runs. Each tensor
# gets memory of its own from the device, as the tool knows no bounds within what the library's allocator has taken from it.
sanitize() {
    local sanitizer name tool
    sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) ||
        { say "memcheck, racecheck, synccheck: left out, there is no compute-sanitizer"; return 0; }
    for name in "${kernels[@]}"; do
        for tool in memcheck racecheck synccheck; do
            PYTORCH_NO_CUDA_MEMORY_CACHING=1 step "${tool}_$name" "$sanitizer" --tool "$tool" --kernel-name kns=ponderscope --report-api-errors no \
                --error-exitcode 9 "$build/tests/${name}_test" --gtest_filter='*OnTheGpu*:DepthMix.E*'
        done
    done
}

compare_with_transformers() {
    if python3 -c 'import torch, transformers' 2>/dev/null; then
        step bench_transformers python3 tests/bench/scoring/compare_with_transformers.py --ponderscope "$build/bin/ponderscope" "$@"
    else
        say "bench_transformers: left out, this Python has no torch and transformers"
    fi
}

measure() {
    local shape dtype
    for shape in 160m 410m 1.4b; do
        for dtype in bfloat16 float32; do
            # fp32 of the largest says nothing that the others do not.
            [ "$shape $dtype" != "1.4b float32" ] || continue
            step "bench_${shape}_$dtype" "$build/bench/device_bench" --device cuda --shape "$shape" --dtype "$dtype"
        done
    done
    for shape in "768 12" "1024 24" "2048 24"; do
        step "bench_halting_${shape% *}" "$build/bench/halting_bench" --device cuda --dtype bfloat16 --hidden "${shape% *}" --layers "${shape#* }" --tokens 512
    done
    compare_with_transformers --device cuda --dtype bfloat16 --shapes pythia-160m pythia-410m pythia-1.4b --attention sdpa eager --repeats 2 \
        --sequences 32 --device-bench "$build/bench/device_bench"
}

steps_in_order() { find "$report" -name '*.step' -printf '%T@ %p\n' | sort -n | cut -d' ' -f2- | xargs -d '\n' cat; }

write_report() {
    local log
    {
        printf '# Ponderscope on %s\n\n' "$( { [ "$device" = cuda ] && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null; } || echo "$device")"
        printf 'Commit %s, LibTorch %s.\n\n| step | verdict | time |\n| --- | --- | --- |\n' \
            "$(git rev-parse --short HEAD 2>/dev/null || cat "$build/commit" 2>/dev/null || echo unknown)" "$torch"
        steps_in_order | sed -E 's/^\{"step": "(.*)", "code": (.*), "seconds": (.*)\}$/| \1 | FAILED (\2) | \3 s |/; s/FAILED \(0\)/passed/'
        for log in "$report"/bench_*.log; do
            [ ! -e "$log" ] || printf '\n## %s\n\n```\n%s\n```\n' "$(basename "$log" .log)" "$(cat "$log")"
        done
        [ ! -e "$report/ponder_golden_float32.log" ] || printf '\n## Largest differences from the references\n\n```\n%s\n```\n' \
            "$(grep -h 'max |difference|' "$report/ponder_golden_float32.log" | sort -grk4 | head -n 20)"
    } >"$report/.report.md"
    mv "$report/.report.md" "$report/report.md"
    { printf '['; steps_in_order | paste -sd,; printf ']\n'; } >"$report/report.json"
}

case ${1:-} in
    --pack) pack "${2:-}" ;;
    -*) fail "unknown option '$1'; ./run gpu [FOLDER], ./run gpu --pack FILE.tar.zst." ;;
    *) check_and_measure "$@" ;;
esac
