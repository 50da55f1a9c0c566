#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every benchmark, one after the other, as tables on stdout: tests/bench/run_all.sh [BUILD_FOLDER]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build/release}
nproc_line=$(nproc)
echo "# $(uname -m), $nproc_line cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | sed 's/^ *//')"
for program in "$build"/bench/*; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    echo "## $(basename "$program")"
    QT_QPA_PLATFORM=offscreen "$program"
done
if PYTHONPATH="$here/../../app/python${PYTHONPATH:+:$PYTHONPATH}" python3 -c 'import torch, transformers, ponderscope' 2>/dev/null; then
    echo "## ps.record, against the bare forward"
    PYTHONPATH="$here/../../app/python${PYTHONPATH:+:$PYTHONPATH}" python3 "$here/python/recording.py"
else
    echo "## ps.record: skipped, this Python has no torch, transformers and NumPy"
fi
