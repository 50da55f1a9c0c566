#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Do the tests notice? One small wrong change at a time in the arithmetic core, the tests of that folder, and a list of
# the changes that nobody noticed. Not part of ./run test: each change is a compilation and a test run.
#
#   tests/mutate.sh [--folder core/policy]... [--count 40] [--seed 1]
#
# Works on a copy of the committed tree below build/mutation; yours is not touched. Folders: core/ponder core/policy
# core/stats core/trace (all of them unless said), COUNT changes in each.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
copy=$here/build/mutation
export PONDERSCOPE_DEPS=${PONDERSCOPE_DEPS:-${XDG_CACHE_HOME:-$HOME/.cache}/ponderscope}
export CCACHE_DIR=${CCACHE_DIR:-$PONDERSCOPE_DEPS/ccache} OMP_NUM_THREADS=1
mkdir -p "$copy"
git -C "$here" archive HEAD | tar -x -C "$copy"
cmake -Wno-dev -S "$copy" -B "$copy/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPONDERSCOPE_WERROR=OFF \
    -DPONDERSCOPE_DESKTOP=OFF -DPONDERSCOPE_CUDA=OFF \
    -DPONDERSCOPE_ASSERTIONS=ON >"$copy/configure.log" 2>&1 ||
    { tail -n 20 "$copy/configure.log" >&2; exit 2; }
# Reference data lies beside the checkout, not beside the copy.
[ -n "${PONDERSCOPE_TEST_DATA:-}" ] || [ ! -d "$here/../shared/data" ] || export PONDERSCOPE_TEST_DATA=$here/../shared/data
exec python3 "$here/tests/mutate.py" "$copy" "$@"
