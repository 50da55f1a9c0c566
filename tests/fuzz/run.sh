#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh BUILD SECONDS [HARNESS...]: each harness of BUILD/fuzz for so long, one after the other. An input that it fails at
# stays in BUILD/fuzz/found, the inputs that reached something new in BUILD/fuzz/corpus, from where the next run goes on.
# FUZZ_RUNS: so many inputs and no more; FUZZ_TIMEOUT: seconds that one may take (1).
set -euo pipefail
build=$(readlink -f "$1") seconds=$2
shift 2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
[ $# -gt 0 ] || set -- safetensors index config companions tokenizer jsonl policy find figure trace
# What the harnesses read and write passes through memory.
[ ! -d /dev/shm ] || export TMPDIR=/dev/shm
# SQLite allocates a great deal: short memories of who did keep that affordable.
export ASAN_OPTIONS=detect_leaks=1:malloc_context_size=4:quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$build/fuzz/found"
failed=0
for name; do
    corpora=("$build/fuzz/corpus/$name")
    mkdir -p "${corpora[0]}"
    [ ! -d "$here/corpus/$name" ] || corpora+=("$here/corpus/$name")
    options=(-max_len=8192)
    [ ! -s "$build/fuzz/$name.inputs" ] || options+=("-seed_inputs=@$build/fuzz/$name.inputs")
    case $name in
        trace) options=(-max_len=131072 -len_control=0) ;; # it makes its own
        policy | find) ;;
        *) options+=("-dict=$here/json.dict") ;;
    esac
    log=$build/fuzz/$name.log
    if QT_QPA_PLATFORM=offscreen "$build/fuzz/fuzz_$name" "${options[@]}" -rss_limit_mb=1024 -malloc_limit_mb=1024 -timeout="${FUZZ_TIMEOUT:-1}" \
            -max_total_time="$seconds" -runs="${FUZZ_RUNS:--1}" -artifact_prefix="$build/fuzz/found/$name-" -print_final_stats=1 \
            "${corpora[@]}" >"$log" 2>&1; then
        verdict=sound
    else
        verdict="FAILED: $(grep -m1 -E '^(broken promise|SUMMARY|==[0-9]+== ERROR)' "$log" || tail -n 1 "$log")"
        failed=1
    fi
    printf '%-12s %10s inputs  peak %4s MB  %s\n' "$name" "$(awk '/number_of_executed_units/ { print $2 }' "$log")" \
        "$(awk '/peak_rss_mb/ { print $2 }' "$log")" "$verdict"
done
exit "$failed"
