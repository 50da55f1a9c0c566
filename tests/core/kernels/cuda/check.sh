#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The kernels' tests in other builds than that of ./run test; a compiler and GoogleTest are all they need.
#
#   tests/core/kernels/cuda/check.sh [plain] [address] [thread] [mutants]
#
#   plain     as ./run test has them
#   address   with AddressSanitizer (shared memory included) and UndefinedBehaviorSanitizer
#   thread    with ThreadSanitizer, every 17th shape: what two threads of a block do without a barrier between them
#   mutants   one wrong change of a kernel at a time: every barrier left out and the atomic a plain addition, in the
#             plain and the thread build; the list below, in the build named there. Each must be caught. Some ten
#             minutes; MUTANTS='NaN|barrier': only those whose line fits it
#
# Without arguments: plain address thread. Builds below build/kernels.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
tree=$PWD
out=$tree/build/kernels
cxx=${CXX:-g++}
kernels=(attend_ranges attend_tiles head_rows rotate_heads)
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
        echo "core/kernels/cuda/$name.cu"
    done
    echo tests/core/kernels/cuda/*_test.cpp tests/support/host_cuda/host_cuda.cpp
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
        *attend_ranges.cu) filter='*/ranges:AttendRanges*' ;;
        *attend_tiles.cu | *matrix_unit.cuh) filter='*/tiles:AttendTiles*' ;;
        *head_rows.cu) filter='HeadRows*' ;;
        *rotate_heads.cu) filter='Rotate*' ;;
        *) filter='*Attend*' ;;
    esac
    for build in $builds; do
        [ -n "${built[$build]:-}" ] || build "$build"
        built[$build]=1
        mkdir -p "$folder/$build"
        cp -r "$folder/core" "$folder/$build/"
        ln -sf "$out/$build"/*.o "$folder/$build/"
        case $file in
            *.cu) rebuilt=$file ;;
            *matrix_unit.cuh) rebuilt=core/kernels/cuda/attend_tiles.cu ;;
            *) rebuilt=core/kernels/cuda/attend_ranges.cu ;;
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
    local what=$1 file=core/kernels/cuda/$2 folder=$out/mutant builds=${5:-plain}
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
        file=core/kernels/cuda/$name.cu
        while IFS=: read -r line _; do
            rm -rf "$folder"
            mkdir -p "$folder/core/kernels/cuda"
            sed "${line}d" "$file" >"$folder/$file"
            mutant "$name.cu: without the barrier in line $line" "$folder" "$file" "plain thread"
        done < <(grep -nE '^ *(__sync[a-z]*|wait_for_copies)\(\);' "$file")
    done
}

mutants() {
    mutants_all=0
    mutants_missed=0
    printf 'mutants:\n'
    every_barrier
    change "chunks past a row's end are read" device_elements.cuh "const bool inside = wanted && begin < size;" "const bool inside = wanted;" address
    change "chunks past a row's end are written" device_elements.cuh "
    if (begin < size)" "
    if (true)" address
    change "the window cuts nothing" device_elements.cuh "RangeTrim::of(visible, a.window)" "RangeTrim::of(visible, 0)"
    change "a range's last rows are left out" attend_ranges.cu "end > begin ? (std::int64_t{end} - begin + round_rows - 1)" "end > begin ? (std::int64_t{end} - begin + round_rows - 4)"
    change "rows are compared in int32" attend_ranges.cu "element(c), size, row < end, to[r][c]" "element(c), size, static_cast<std::int32_t>(row) < static_cast<std::int32_t>(end), to[r][c]"
    change "teams keep their own maxima" attend_ranges.cu "highest = fmaxf(highest, __shfl_xor_sync(all_lanes, highest, step));" "(void)step;"
    change "the neighbours' K/V head" attend_ranges.cu "static_cast<const T*>(of.k) + of_head / (of.query_heads / of.kv_heads)" "static_cast<const T*>(of.k) + of_head % of.kv_heads"
    change "a segment is summed up by the wrong warp" attend_ranges.cu "belongs % a.splits != turn" "belongs % a.splits != 0"
    change "one round of another warp's is computed" attend_ranges.cu "round += segment_rounds - 1 - (rounds" "round += segment_rounds - 2 - (rounds"
    change "segments are forgotten" attend_ranges.cu "if (belongs != segment && segment >= 0)" "if (false)"
    change "segments keep their own maxima" attend_ranges.cu "next = __expf(maximum_next - maximum);" "next = 1;"
    change "the last part is left out" attend_ranges.cu "segment * segment_rounds < rounds" "(segment + 1) * segment_rounds < rounds"
    change "parts know of no window" attend_ranges.cu "trim.first(ranges[2 * m], ranges[2 * m + 1]);
        rounds" "ranges[2 * m];
        rounds"
    change "no bias" attend_ranges.cu "dot += a.row_bias[row];" ""
    change "a block's queries begin where they like" attend_tiles.cu "first = tile.firsts[w] < first ? tile.firsts[w] : first;" "first = tile.firsts[0];"
    change "everybody sees a tile" attend_tiles.cu "(bits[i / 2] >> (j * 8 + i % 2) & 1) != 0 ? score" "true ? score"
    change "a plain tile's maximum has no scale" attend_tiles.cu "highest[half] * scale" "highest[half]"
    change "a bias in a plain tile" attend_tiles.cu "} else if (a.row_bias != nullptr) {" "} else if (false) {"
    change "rows that nobody sees are read" attend_tiles.cu "(any >> row & 1) != 0 && element < size" "element < size"
    change "a bias that nobody sees" attend_tiles.cu "(any >> thread & 1) != 0 ? a.row_bias" "true ? a.row_bias" address
    change "a strange value is multiplied" attend_tiles.cu "if (strange != 0) {" "if (false) {"
    change "a warp keeps what it found strange" attend_tiles.cu "OneTile::joined(tile.strange)" "of_warp" "plain thread"
    change "a strange value stays in the product" attend_tiles.cu "tile.clear_values(strange, thread);" ""
    change "tiles forget the sums before" attend_tiles.cu "sum[half] *= factor;" ""
    change "tiles forget the mixtures before" attend_tiles.cu "numbers[2 * half + 1] *= factor;" ""
    change "lanes keep their own maxima" attend_tiles.cu "highest[half] = fmaxf(highest[half], __shfl_xor_sync(all_lanes, highest[half], step));" "(void)step;"
    change "a tile's end is one row early" attend_tiles.cu "write_first(begin + rows)" "write_first(begin + rows - 1)"
    change "a tile's end is one row late" attend_tiles.cu "write_first(begin + rows)" "write_first(begin + rows + 1)"
    change "all lines are of the first head" attend_tiles.cu "(kv_head * group + line_of(half) % group)" "kv_head * group"
    change "a query's element too many" attend_tiles.cu "is_present(half) && element < size" "is_present(half)" address
    change "no room between a tile's rows and its banks" attend_tiles.cu "(j * 16 + matrix % 2 * 8 + lane % 8) * width" "(j * 16 + matrix % 2 * 8 + lane % 8) * (width - chunk)"
    change "halves of a slice change places" attend_tiles.cu "s * slice + matrix % 2 * 8, b);" "s * slice + (matrix + 1) % 2 * 8, b);"
    change "values are not turned" attend_tiles.cu "load_matrices<true>" "load_matrices<false>"
    change "equal logits count as larger" head_rows.cu "x[i] > pivot ? 1 : 0" "x[i] >= pivot ? 1 : 0"
    change "sums keep their own maxima" head_rows.cu "        sum *= factor;" ""
    change "of equal logits the higher id comes first" head_rows.cu "a.id < b.id" "a.id > b.id"
    change "a list that is too short is taken for whole" head_rows.cu "count > collected_most || count < length" "count > collected_most"
    change "an impossible word is no infinity" head_rows.cu "y[i] == -INFINITY && x[i] != -INFINITY ? INFINITY : " ""
    change "all words impossible are a distribution" head_rows.cu "total.sum > 0 || total.sum != total.sum" "true"
    change "exponentials have no factor" head_rows.cu " * a.factor" ""
    change "angles turn the other way" rotate_heads.cu "first[i] * cosine[i] - second[i] * sine[i]" "first[i] * cosine[i] + second[i] * sine[i]"
    change "everybody's angles are the first row's" rotate_heads.cu "a.rows[row] * a.half + pair" "pair"
    change "pairs are halves apart" rotate_heads.cu "a.neighbours ? one + 1 : one + half" "one + half"
    change "what does not turn is left out" rotate_heads.cu "store<Width>(first, to + half + pair);" ""
    rm -rf "$out/mutant"
    printf '%d of %d mutants caught\n' "$((mutants_all - mutants_missed))" "$mutants_all"
    [ "$mutants_missed" -eq 0 ] || exit 1
}

[ $# -gt 0 ] || set -- plain address thread
for what in "$@"; do
    case $what in
        plain | address | thread) run "$what" ;;
        mutants) mutants ;;
        *) fail "unknown build '$what'; plain, address, thread, mutants." ;;
    esac
done
