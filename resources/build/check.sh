#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# ./run check [PART...]: what a compiler does not say. Each part in turn, with its time; ends with 1 where one complains.
#   format      clang-format changes nothing
#   scripts     shellcheck, from warnings on
#   names       no name local to a source stands twice in a library (unity builds)
#   clang       all of it by another compiler, with -Wconversion beside its own warnings (slow; clang 16 or later and its libomp-dev)
#   tidy        clang-tidy by .clang-tidy, over what has no torch (slow)
#   address     all programs and tests with address and undefined-behaviour sanitizers, and the suite run (slow: some 700
#               sources at 6 s of a processor each, and the suite several times as long)
#   thread      trace, record and window with the thread sanitizer (slow)
#   fuzz        each harness of libFuzzer for a minute
#   debian, ubuntu   ./run and ./run test in a Debian 12 or Ubuntu 24.04 where nothing is installed: what a machine has hides
#               what ./run forgets (as root, with debootstrap; 11 GB below build/fresh, which is left there)
# The parts above the last two without a name. They want clang, clang-tidy, clang-format and shellcheck beside what ./run installs.
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." || exit 2
jobs=${PONDERSCOPE_JOBS:-$(nproc)}
export OMP_NUM_THREADS=1 QT_QPA_PLATFORM=offscreen

format() { git ls-files '*.cpp' '*.h' | xargs clang-format --dry-run --Werror; }

scripts() {
    local file found=()
    while IFS= read -r file; do
        # Those without an ending have a first line.
        case $file in *.sh) found+=("$file") ;; *.*) ;; *) head -c 30 "$file" | grep -q '^#!.*sh' && found+=("$file") ;; esac
    done < <(git ls-files)
    shellcheck -x -S warning "${found[@]}"
}

names() { python3 resources/build/file_local_names.py; }

configured() { [ -e "build/$1/build.ninja" ] || cmake -Wno-dev --preset "$@" >"build/$1.configure.log" 2>&1 || { tail -n 20 "build/$1.configure.log"; return 1; }; }

clang() {
    # The newest there is: Debian's own is older than the library it compiles with.
    local newest
    newest=$(compgen -c clang++- | sort -V | tail -n 1)
    mkdir -p build
    configured clang -DCMAKE_CXX_COMPILER="${newest:-clang++}" && ninja -C build/clang -k 0 -j "$jobs" all
}

tidy() {
    mkdir -p build
    configured fuzz || return 1
    # What is made while building (moc) is no source of ours, but is included.
    ninja -C build/fuzz -t targets all | sed -n 's/^\([^:]*autogen\): .*/\1/p' | xargs ninja -C build/fuzz >/dev/null || return 1
    git ls-files 'core/*.cpp' 'views/*.cpp' 'app/desktop/*.cpp' | while IFS= read -r file; do
        grep -q "\"file\": \"$PWD/$file\"" build/fuzz/compile_commands.json && echo "$file"
    done | xargs -P "$jobs" -n 4 clang-tidy -p build/fuzz --quiet --warnings-as-errors='*'
}

address() {
    export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
    mkdir -p build
    # The sanitizer opens libraries in the program's place, and looks for those opened by name where it was linked itself.
    configured dev-asan && ninja -C build/dev-asan -j "$jobs" all &&
        (cd build/dev-asan && LD_LIBRARY_PATH=$PWD/lib ctest -j 2 --output-on-failure --no-tests=error --timeout 7200)
}

thread() {
    # OpenMP's runtime is not built to be watched: its loops would all be reported, so they run with one thread (above).
    # Programs that the window starts begin by a fork.
    export TSAN_OPTIONS="second_deadlock_stack=1 die_after_fork=0 suppressions=$PWD/resources/build/thread.supp"
    mkdir -p build
    configured dev-tsan || return 1
    local tests=(trace_test trace_faults_test record_test trace_data_test desktop_window_test desktop_live_test desktop_faults_test
        desktop_monkey_test remote_test desktop_remote_test)
    ninja -C build/dev-tsan -j "$jobs" "${tests[@]}" &&
        (cd build/dev-tsan && ctest -R "^($(IFS='|'; echo "${tests[*]}"))$" --output-on-failure --no-tests=error --timeout 7200)
}

fuzz() {
    mkdir -p build
    configured fuzz && ninja -C build/fuzz -j "$jobs" fuzzers && tests/fuzz/run.sh build/fuzz "${PONDERSCOPE_FUZZ_SECONDS:-60}" "$@"
}

# fresh SUITE SCRIPT COMPONENTS [OPTION]: a system of its own, by debootstrap. The mounts end with the process that made them.
fresh() {
    local place=$PWD/build/fresh/$1
    [ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null || { echo "run check: a fresh $1 wants root and debootstrap." >&2; return 1; }
    rm -rf --one-file-system "$place" && mkdir -p "$place" &&
        debootstrap --variant=minbase --components="$3" ${4:+"$4"} "$1" "$place" "" "/usr/share/debootstrap/scripts/$2" >"$place.log" 2>&1 ||
        { tail -n 5 "$place.log"; return 1; }
    git clone -q . "$place/root/ponderscope" && cp /etc/resolv.conf "$place/etc/" || return 1
    [ -z "${PIP_CERT:-}" ] || cp -L "$PIP_CERT" "$place/etc/pip.crt"
    # shellcheck disable=SC2016
    unshare --mount --propagation private bash -ec '
        for part in proc sys dev; do mount --rbind "/$part" "$0/$part"; done
        [ ! -e "$0/etc/pip.crt" ] || set -- "$@" PIP_CERT=/etc/pip.crt
        exec env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" chroot "$0" \
            bash -ec "cd /root/ponderscope; ./run; ./run test"' "$place"
}
debian() { fresh bookworm sid main; }
ubuntu() { fresh noble gutsy main,universe --no-check-gpg; } # no Debian has its keys

[ $# -gt 0 ] || set -- format scripts names clang tidy fuzz thread address
for part; do
    case $part in
        debian | ubuntu) continue ;;
        format | scripts | names | clang | tidy | address | thread | fuzz) ;;
        *) sed -n '3,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    for tool in clang++ clang-tidy clang-format shellcheck; do
        command -v "$tool" >/dev/null || { echo "run check: $tool is missing; install clang, clang-tidy, clang-format and shellcheck." >&2; exit 2; }
    done
done
failed=0
for part; do
    begin=$SECONDS
    if "$part"; then verdict=clean; else verdict=FAILED failed=1; fi
    printf '%-8s %s in %d s\n' "$part" "$verdict" $((SECONDS - begin))
done
exit "$failed"
