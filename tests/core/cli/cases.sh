#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs the cases of the shared test data, or says that they are absent (77).
#   cases.sh PYTHON PROGRAM CASES SOURCE_TREE PYTHON_WITH_TORCH
set -eu
python=$1 program=$2 cases=$3 tree=$4 full=$5
if [ ! -f "$cases/run_cases.py" ]; then
  echo "skipped: no $cases"
  exit 77
fi
[ -x "$full" ] || full=$python
# Case 36 reads the last line of the standard error of the documentation's Python, also where it is empty (IndexError). Python writes one
# line about an unknown warning filter, so that the case fails only where that Python fails.
PYTHONWARNINGS=unknown exec "$python" "$cases/run_cases.py" "$program" "$cases" -v --package "$tree/app/python" --docs "$tree/resources/docs" \
  --python "$full"
