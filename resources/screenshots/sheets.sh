#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
#   resources/screenshots/sheets.sh FOLDER [TRACE]
#
# Pictures of every panel, menu and dialog in every appearance, at three sizes of the window and two scale factors, into
# FOLDER/WxH@SCALE/, with a sheet of each appearance (sheet-light.png) to be looked at first. Needs no display.
# TRACE: the recorded samples unless another one is named.
set -euo pipefail

cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
folder=${1:?"say where the pictures go: resources/screenshots/sheets.sh FOLDER [TRACE]"}
trace=${2:-build/samples/samples.ponder}
program=build/release/bin/ponderscope-desktop
[ -x "$program" ] || { echo "sheets.sh: $program is not there; run ./run build first." >&2; exit 2; }
[ -e "$trace" ] || { echo "sheets.sh: $trace is not there; run ./run first, or name a trace." >&2; exit 2; }

for size in 1024x700 1440x900 2560x1440; do
    for scale in 1 2; do
        into=$folder/$size@$scale
        mkdir -p "$into"
        "$program" --screenshots "$into" --size "$size" --scale "$scale" "$trace"
        echo "$into: $(find "$into" -name '*.png' | wc -l) pictures"
    done
done
