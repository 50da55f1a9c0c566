#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
#   run_tests.sh FOLDER [pytest's arguments]   tests app/python in a virtual environment that is made in FOLDER once
#
# Ends with 77 (skipped) where the environment cannot be made, for want of a network, say.
# PONDERSCOPE_PYTHON    the interpreter (default: python3)
# PONDERSCOPE_TORCH     a folder that holds torch, used rather than a second download; without it tests of record skip
# PONDERSCOPE_PROGRAM   the program ponderscope, which traces are checked with
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
tree=$(readlink -f "$here/../../..")
folder=$1
shift
python=${PONDERSCOPE_PYTHON:-python3}

skip() { printf 'skipped: %s\n' "$*"; exit 77; }

# Whole or not at all, and made again when what it shall hold changes.
wanted=$(cat "$here/requirements.txt" && "$python" -V && echo "${PONDERSCOPE_TORCH:-}")
if [ "$(cat "$folder/venv/.made-of" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$folder/venv"
    mkdir -p "$folder"
    "$python" -m venv "$folder/venv" >"$folder/venv.log" 2>&1 ||
        skip "no virtual environment can be made with $python (python3-venv is missing?); see $folder/venv.log"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" >>"$folder/venv.log" 2>&1 ||
        skip "the Python packages of the tests could not be installed (no network?); see $folder/venv.log"
    if [ -n "${PONDERSCOPE_TORCH:-}" ] && [ -d "$PONDERSCOPE_TORCH/torch" ]; then
        # After the environment's own packages on the path.
        echo "$PONDERSCOPE_TORCH" >"$(echo "$folder"/venv/lib/python3*/site-packages)/ponderscope_torch.pth"
    fi
    printf '%s' "$wanted" >"$folder/venv/.made-of"
fi
export PYTHONPATH="$tree/app/python" PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1
cd "$here"
exec "$folder/venv/bin/python" -m pytest -q -rs -p no:cacheprovider --rootdir "$here" "$@" .
