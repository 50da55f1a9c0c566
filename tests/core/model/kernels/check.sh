#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The kernels' tests in other builds than that of ./run test; a compiler and GoogleTest are all they need.
#
#   tests/core/model/kernels/check.sh [plain] [address] [thread] [mutants] [long]
#
#   plain     as ./run test has them
#   address   with AddressSanitizer (shared memory included) and UndefinedBehaviorSanitizer
#   thread    with ThreadSanitizer, every 17th shape: what two threads of a block do without a barrier between them
#   mutants   one wrong change of a kernel at a time: every barrier left out and the atomic a plain addition, in the
#             plain and the thread build; the list below, in the build named there. Each must be caught. Some ten
#             minutes; MUTANTS='NaN|barrier': only those whose line fits it
#   long      with the test that counts 2^31 words (8 GB of addresses, not of memory)
#
# Without arguments: plain address thread. Builds below build/kernels.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
tree=$PWD
out=$tree/build/kernels
cxx=${CXX:-g++}
kernels=(attend_ranges depth_mix head_stats)
common="-x c++ -std=c++20 -g1 -Wall -Wextra -Wno-unknown-pragmas -fno-strict-aliasing -ffunction-sections"
declare -A flags=(
    [plain]="-O2"
    [address]="-O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -fsanitize-sections=host_cuda_shared"
    [thread]="-O1 -fsanitize=thread"
)
declare -A built=()
fail() { printf 'check.sh: %s\n' "$*" >&2; exit 2; }

# compile BUILD FOLDER SOURCE...: objects into FOLDER; sources and headers that FOLDER has of its own come first.
compile() {
    local build=$1 folder=$2 source from
    shift 2
    for source in "$@"; do
        from=$tree/$source
        [ -e "$folder/$source" ] && from=$folder/$source
        local own=${flags[$build]}
        # Switches of stacks are not for sanitizers; they are told of them.
        case $source in */host_cuda.cpp) own=-O2 ;; esac
        echo "$cxx $common $own -I$tree/tests/support/host_cuda/include -I$folder -I$tree -c $from -o $folder/$(basename "$source").o"
    done | xargs -P "$(nproc)" -I{} sh -c '{}' || fail "the $build build failed (the compiler's words above)."
}

everything() {
    local name
    for name in "${kernels[@]}"; do
        echo "core/model/cuda/$name.cu" "tests/core/model/kernels/${name}_test.cpp"
    done
    echo tests/core/model/kernels/host_cuda_test.cpp tests/support/host_cuda/host_cuda.cpp
}

link() {
    # shellcheck disable=SC2086
    "$cxx" ${flags[$1]} "$2"/*.o -o "$2/kernels_test" -lgtest -lgtest_main -lpthread || fail "the $1 build failed (the linker's words above)."
}

build() {
    mkdir -p "$out/$1"
    # shellcheck disable=SC2046
    compile "$1" "$out/$1" $(everything)
    link "$1" "$out/$1"
}

# The tests of a build, by name. The sanitizers' last word counts: no finding is a success.
run() {
    printf '%s:\n' "$1"
    build "$1"
    "$out/$1/kernels_test" --gtest_brief=1 || fail "the $1 build's tests failed (above)."
}

# Tells which of the builds catch a mutant whose file lies in a folder: mutant WHAT FOLDER FILE "BUILD..."
mutant() {
    local what=$1 folder=$2 file=$3 builds=$4 filter build caught="" rebuilt source
    [[ $what =~ ${MUTANTS:-} ]] || return 0
    case $file in
        *attend_ranges.cu) filter='Attend*' ;;
        *depth_mix.cu) filter='Depth*' ;;
        *) filter='Head*:Div*:OnlineSums*' ;;
    esac
    for build in $builds; do
        [ -n "${built[$build]:-}" ] || build "$build"
        built[$build]=1
        mkdir -p "$folder/$build"
        cp -r "$folder/core" "$folder/$build/"
        ln -sf "$out/$build"/*.o "$folder/$build/"
        case $file in
            *.cu) rebuilt=$file ;;
            *) rebuilt="core/model/cuda/head_stats.cu tests/core/model/kernels/head_stats_test.cpp" ;;
        esac
        # A link would be written through.
        for source in $rebuilt; do rm -f "$folder/$build/$(basename "$source").o"; done
        # shellcheck disable=SC2086
        compile "$build" "$folder/$build" $rebuilt 2>"$folder/$build/compiler.log"
        link "$build" "$folder/$build"
        # One that never ends is caught too.
        if ! GTEST_FAIL_FAST=1 TSAN_OPTIONS=halt_on_error=1 timeout 120 "$folder/$build/kernels_test" --gtest_filter="$filter" \
                >"$folder/$build/log" 2>&1; then
            caught+=" $build"
        fi
    done
    if [ -n "$caught" ]; then
        printf '  caught by%-13s %s\n' "$caught" "$what"
    else
        printf '  NOT CAUGHT             %s\n' "$what"
    fi
    mutants_all=$((mutants_all + 1))
    [ -n "$caught" ] || mutants_missed=$((mutants_missed + 1))
}

# change WHAT FILE FROM TO [BUILDS]: the one place of FILE that reads FROM reads TO.
change() {
    local what=$1 file=core/model/cuda/$2 folder=$out/mutant builds=${5:-plain}
    [ -e "$file" ] || file=core/model/kernels/$2
    rm -rf "$folder"
    mkdir -p "$folder/$(dirname "$file")"
    python3 - "$tree/$file" "$folder/$file" "$3" "$4" <<'PYTHON' || fail "the mutant '$what' no longer fits $file."
import sys
text = open(sys.argv[1]).read()
sys.exit(1) if text.count(sys.argv[3]) != 1 else open(sys.argv[2], "w").write(text.replace(sys.argv[3], sys.argv[4]))
PYTHON
    mutant "$2: $what" "$folder" "$file" "$builds"
}

every_barrier() {
    local name file line folder=$out/mutant
    for name in "${kernels[@]}"; do
        file=core/model/cuda/$name.cu
        while IFS=: read -r line _; do
            rm -rf "$folder"
            mkdir -p "$folder/core/model/cuda"
            sed "${line}d" "$file" >"$folder/$file"
            mutant "$name.cu: without the barrier in line $line" "$folder" "$file" "plain thread"
        done < <(grep -n '^ *__sync[a-z]*();' "$file")
    done
}

mutants() {
    mutants_all=0
    mutants_missed=0
    printf 'mutants:\n'
    every_barrier
    change "a plain addition for the atomic" head_stats.cu "atomicAdd(&collected, 1)" "collected++" "plain thread"
    change "a list that was not filled" head_stats.cu "count < length" "count < 0"
    change "a full list overflows" head_stats.cu "count > collected_most ||" "false ||"
    change "one candidate too many for shared memory" head_stats.cu "place < collected_most" "place <= collected_most" address
    change "the last word is left out" head_stats.cu "unsigned v = threadIdx.x; v < vocabulary; v += threads) {
        const float x = row[v];
        own" "unsigned v = threadIdx.x; v + 1 < vocabulary; v += threads) {
        const float x = row[v];
        own"
    change "an equal logit counts as larger" head_stats.cu "x > pivot ? 1" "x >= pivot ? 1"
    change "NaN enter the list" head_stats.cu "x == x && after" "after"
    change "an impossible word is cut at 1e30" head_stats.cu "y == -INFINITY && x != -INFINITY ? INFINITY" "false ? INFINITY"
    change "a row of -infinity is a distribution" online_sums.h "maximum == INFINITY || sum == 0" "maximum == INFINITY"
    change "a row of +infinity is a distribution" online_sums.h "maximum == INFINITY || sum == 0" "sum == 0"
    change "0 times infinity" online_sums.h "factor == 0 ? 0 : factor" "factor"
    change "+infinity less itself" online_sums.h "x == maximum ? 0 : x - maximum" "x - maximum"
    change "maxima of +infinity raised" online_sums.h "to == maximum ? 0 : to - maximum" "to - maximum"
    change "a lane's last chunk is read whole" attend_ranges.cu "aligned && begin + chunk <= size" "aligned && begin < size"
    change "any address is aligned" attend_ranges.cu "% 16 == 0 &&" "% 2 == 0 &&" address
    change "a row is read one element too far" attend_ranges.cu "begin + i < size ?" "begin + i <= size ?" address
    change "the window cuts nothing" attend_ranges.cu "RangeTrim::of(visible, a.window)" "RangeTrim::of(visible, 0)"
    change "a range's last rows are left out" attend_ranges.cu "base < end; base +=" "base + 3 < end; base +="
    change "rows are counted in int32" attend_ranges.cu "std::uint32_t base = begin; base < end;" "std::int32_t base = static_cast<std::int32_t>(begin); base < static_cast<std::int32_t>(end);"
    change "teams keep their own maxima" attend_ranges.cu "highest = fmaxf(highest, __shfl_xor_sync(all_lanes, highest, step));" "(void)step;"
    change "the neighbours' K/V head" attend_ranges.cu "head / (a.query_heads / a.kv_heads)" "head % a.kv_heads"
    change "no bias" attend_ranges.cu "a.row_bias != nullptr ? dot + a.row_bias[row] : dot" "dot"
    change "the own value first" depth_mix.cu "j < count - 1 ? a.source_keys[j] : a.k" "j > 0 ? a.source_keys[j - 1] : a.k"
    change "earlier sources keep their weight" depth_mix.cu "total *= shrink;" ""
    change "elements past the head's end" depth_mix.cu "const bool inside = e < size;" "const bool inside = e <= size;"
    change "a query's group has one head" depth_mix.cu "j < group && e < size" "j < 1 && e < size"
    change "weights of every 32nd source only" depth_mix.cu "j < count; j += 32" "j < 32 && j < count; j += 32"
    rm -rf "$out/mutant"
    printf '%d of %d mutants caught\n' "$((mutants_all - mutants_missed))" "$mutants_all"
    [ "$mutants_missed" -eq 0 ] || exit 1
}

[ $# -gt 0 ] || set -- plain address thread
for what in "$@"; do
    case $what in
        plain | address | thread) run "$what" ;;
        mutants) mutants ;;
        long) PONDERSCOPE_LONG_KERNEL_TESTS=1 run plain ;;
        *) fail "unknown build '$what'; plain, address, thread, mutants, long." ;;
    esac
done
