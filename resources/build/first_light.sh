#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The first quarter of an hour on a GPU. Needs PyTorch of the version in the bundle's manifest, and nothing else.
#
#   bash first_light.sh [A] [B] [C]    A: is it right (about 4 minutes); B: is it fast, as ratios (about 5 minutes);
#                                      C: what it says where memory is full (a minute). Default: A B
#
# Each step has a limit of its own and prints its verdict at once. A step that fails does not stop the others; only a bundle that
# does not load does. At the end, and when the script is killed, all logs are packed into one file, in $OUT or the current folder,
# and the table of verdicts is printed.
#
# PONDERSCOPE_GPU_DEVICE=hostgpu    rehearse on the tests' own device: the first shard of each suite
# FIRST_LIGHT_SCALE=N               multiply all limits, for slow machines (rehearsals: 20)
# FIRST_LIGHT_STEPS=REGEX           run only the steps whose name matches
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$PWD}
device=${PONDERSCOPE_GPU_DEVICE:-cuda}
scale=${FIRST_LIGHT_SCALE:-1}
report=$(mktemp -d)
bundle=
for folder in "$here/ponderscope-gpu" "$here/../../build/ponderscope-gpu"; do [ -d "$folder" ] && bundle=$folder; done
if [ -z "$bundle" ]; then
    mkdir -p "$report/unpacked"
    tar -C "$report/unpacked" -xf "$here/programs.tar.xz" || { echo "first_light: cannot unpack $here/programs.tar.xz" >&2; exit 2; }
    bundle=$report/unpacked/ponderscope-gpu
fi
cp "$bundle/manifest" "$report/"
# Reference cases: beside the script, or of a checkout around it or in the current folder.
cases=
for folder in "$PWD/tests" "$here/../../tests" "$here/../../../tests"; do [ -z "$cases" ] && [ -d "$folder/golden" ] && cases=$(cd "$folder" && pwd); done
if [ -z "$cases" ] && [ -e "$here/golden.tar.xz" ]; then
    tar -C "$report" -xf "$here/golden.tar.xz" && cases=$report
fi
export PONDERSCOPE_TEST_DATA=$cases
models=
[ "$device" = cuda ] && [ -d "$cases/../sample_models" ] && models=$(cd "$cases/../sample_models" && pwd)

# After each stage, too: who is killed at a limit of the machine packs nothing.
pack() {
    cat "$report"/*.row 2>/dev/null | sort -ns | cut -d' ' -f2- >"$report/table"
    tar -C "$report" --exclude ./unpacked --exclude ./golden -czf "$out/report.tar.gz" .
}
finish() {
    trap - EXIT TERM INT
    pack && echo "logs: $out/report.tar.gz"
    rm -rf "$report/unpacked" "$report/golden"
    echo "--- verdicts, $(sed -n 's/^commit //p' "$report/manifest"), on $(head -n 1 "$report/gpu" 2>/dev/null || echo "$device")"
    tail -n 55 "$report/table"
    [ -e "$report/failed" ] && exit 1
    exit 0
}
trap finish EXIT TERM INT

# step NAME SECONDS COMMAND...: one verdict. What a step prints in lines that begin with "figure " is shown in the table.
count=0
step() {
    local name=$1 limit=$(($2 * scale)) code=0 begin=$SECONDS row verdict
    shift 2
    [[ $name =~ ${FIRST_LIGHT_STEPS:-} ]] || return 0
    row=$(printf '%s/%03d.row' "$report" "$count")
    timeout --kill-after 5 "$limit" "$@" >"$report/$name.log" 2>&1 || code=$?
    verdict=passed
    [ "$code" -eq 0 ] || verdict="FAILED ($code)"
    [ "$code" -ne 124 ] || verdict="FAILED (over $limit s)"
    [ "$code" -eq 0 ] || touch "$report/failed"
    {
        printf '%03d %-28s %-16s %4d s\n' "$count" "$name" "$verdict" $((SECONDS - begin))
        case $name in bench_*) grep -v '^$' "$report/$name.log" | cut -c1-140 | sed "s/^/$(printf %03d "$count")     /" ;; esac
        sed -n 's/^figure /'"$(printf %03d "$count")"'     /p' "$report/$name.log"
        [ "$code" -eq 0 ] || grep -aE '^\[  FAILED  \]|[Ee]rror|FAILED' "$report/$name.log" | head -n 3 | cut -c1-150 | sed "s/^/$(printf %03d "$count")     /"
    } >"$row"
    cut -d' ' -f2- "$row"
    return "$code"
}
next() { count=$((count + 1)); }

# suite NAME SECONDS DTYPE PROGRAM SHARDS [FILTER]: shards of a test program side by side.
suite() {
    local shard last=$5
    [ "$device" = cuda ] || last=1
    for ((shard = 0; shard < last; ++shard)); do
        next
        PONDERSCOPE_TEST_DTYPE=$3 GTEST_TOTAL_SHARDS=$5 GTEST_SHARD_INDEX=$shard step "$1_$3_$((shard + 1))of$5" "$2" \
            "$bundle/tests/$4" --gtest_brief=1 --gtest_filter="${6:-*}" &
    done
}

loads() {
    local missing
    missing=$(ldd "$bundle"/{bin,tests,bench}/* 2>/dev/null | grep 'not found' | sort -u)
    [ -z "$missing" ] || { echo "Error: libraries are missing: $missing"; return 1; }
    "$bundle/bin/ponderscope" --version || return 1
    [ "$(python3 -c 'import torch; print(torch.__version__.split("+")[0])')" = "$(sed -n 's/^torch //p' "$bundle/manifest")" ] ||
        { echo "Error: this bundle was built for PyTorch $(sed -n 's/^torch //p' "$bundle/manifest"), and this machine has $(python3 -c 'import torch; print(torch.__version__)')"; return 1; }
    if [ "$device" = cuda ]; then
        nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$report/gpu" || return 1
        "$bundle/tests/device_test" --gtest_brief=1
    fi
}

stage_a() {
    export PONDERSCOPE_TEST_DEVICE=$device OMP_NUM_THREADS=1
    if [ "$device" = cuda ]; then
        next; step roofs 40 env OMP_NUM_THREADS=8 python3 "$bundle/bench/roofs.py"
    fi
    # Kernels first: what is built on a wrong one fails, too.
    local dtype
    for name in attend head; do next; step "kernels_$name" 60 "$bundle/tests/${name}_test" --gtest_brief=1 --gtest_filter='*OnTheGpu*' & done
    next; PONDERSCOPE_TEST_KERNELS=1 step kernels_paths 60 "$bundle/tests/model_on_device_test" --gtest_brief=1 &
    [ -z "$models" ] || { next; step programs 90 python3 "$bundle/bench/programs_on_device.py" "$bundle/bin" "$models" & }
    wait
    # Contexts of several processes take turns on a GPU: many side by side would be slower. One model of each kind.
    local some='*Errors*' model
    for model in gpt2 llama gpt_neox qwen3_moe ponderlm_gpt_neox ponderlm_top_k_on_llama ponderlm2_on_llama ponderlm3_on_gpt2 \
        adaponderlm_on_llama adaptive_latent_cot_on_gpt_neox pause_on_llama looped_on_gpt2 mhc_ponderlm2 depth_attention attnres; do
        some+=":*/$model"
    done
    for dtype in float32 bfloat16 float16; do
        suite golden 90 "$dtype" ponder_golden_test 2 "$([ "$dtype" = float32 ] && echo '*Agrees*/vanilla_g*:*Agrees*/vanilla_l*:*Agrees*/ponderlm*:*Agrees*/pause_*:*Agrees*/adap*' || echo '*HalfPrecision*')"
        suite released 90 "$dtype" ponder_released_test 2
        suite recording 90 "$dtype" ponder_recording_test 1 "$some"
        suite rerun 90 "$dtype" ponder_rerun_test 1 "$some"
        suite states 90 "$dtype" ponder_states_test 1 "$some"
        suite engine 90 "$dtype" ponder_engine_test 4 "$some"
        wait
    done
}

# Ratios only, nothing else on the card.
stage_b() {
    export PONDERSCOPE_TEST_DEVICE=$device
    local shape
    if [ "$device" != cuda ]; then
        next; step bench_tiny 60 "$bundle/bench/device_bench_rehearsal" --device "$device" --shape tiny --rounds 2
        next; step transformers_tiny 60 python3 "$bundle/bench/transformers_on_device.py" --ours "$report/bench_tiny.log" --device cpu --dtype float32 --shape tiny --rounds 2
        next; step bench_halting 60 "$bundle/bench/halting_bench_rehearsal" --device "$device" --tokens 16 --hidden 32 --layers 2 --repeats 1 --batches 2
        return
    fi
    export OMP_NUM_THREADS=16
    for shape in 410m 1.4b; do
        next; step "bench_$shape" 110 "$bundle/bench/device_bench" --device cuda --shape "$shape" --dtype bfloat16
        next; step "transformers_$shape" 60 python3 "$bundle/bench/transformers_on_device.py" --ours "$report/bench_$shape.log" --shape "$shape"
    done
    next; step bench_halting 60 "$bundle/bench/halting_bench" --device cuda --dtype bfloat16 --hidden 2048 --layers 24 --tokens 512
}

torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))' 2>/dev/null)
[ -n "$torch" ] || { echo "first_light: python3 has no torch" >&2; exit 2; }
export LD_LIBRARY_PATH=$bundle/lib:$torch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
next
export -f loads
export bundle report device
step loads 60 bash -c loads || { echo "The bundle does not load here:"; cat "$report/loads.log"; exit 1; }
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(A B)
for stage in "${stages[@]}"; do
    case $stage in
        A) stage_a ;;
        B) stage_b ;;
        C) [ -z "$models" ] || { next; step memory_full 120 python3 "$bundle/bench/programs_on_device.py" "$bundle/bin" "$models" full; } ;;
        *) echo "first_light: unknown stage '$stage'; A, B or C" >&2 ;;
    esac
    pack
done
