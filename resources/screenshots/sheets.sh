#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
#   resources/screenshots/sheets.sh FOLDER [TRACE]
#
# Writes FOLDER/WxH@SCALE/PANEL-THEME.png for every panel and theme, at three sizes of the window and two scale factors.
# Needs no display. TRACE: the recorded samples unless another one is named.
set -euo pipefail

cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
folder=${1:?"say where the pictures go: resources/screenshots/sheets.sh FOLDER [TRACE]"}
trace=${2:-build/samples/samples.ponder}
program=build/release/bin/ponderscope-desktop
[ -x "$program" ] || { echo "sheets.sh: $program is not there; run ./run build first." >&2; exit 2; }
[ -e "$trace" ] || { echo "sheets.sh: $trace is not there; run ./run first, or name a trace." >&2; exit 2; }

panels=$("$program" --tab '?' 2>&1 | sed -n 's/.*expected one of \(.*\), found.*/\1/p' | tr -d ,)
for size in 1024x700 1440x900 2560x1440; do
    for scale in 1 2; do
        into=$folder/$size@$scale
        mkdir -p "$into"
        for theme in light dark contrast; do
            for panel in $panels; do
                "$program" --screenshot "$into/$panel-$theme.png" --size "$size" --scale "$scale" --theme "$theme" \
                    --tab "$panel" --select-token 31 "$trace"
            done
        done
    done
done
