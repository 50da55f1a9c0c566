#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Trains the language families of recipes/language one after the other, beside whatever else the machine does: one process of one
# thread that only runs when nobody else wants the processor or the disk.
#
#   sample_models/queue.sh run    [--texts DIR] [--out DIR] [RECIPE...]    works here until all are trained; Ctrl+C saves
#   sample_models/queue.sh start  [--texts DIR] [--out DIR] [RECIPE...]    the same in the background, after logging out too
#   sample_models/queue.sh status [--out DIR] [RECIPE...]                  what is trained, how far, how long still
#   sample_models/queue.sh stop   [--out DIR]                              saves what is being trained and ends
#
# RECIPE: other recipes instead of the list below; RECIPE@START begins with the weights of what START trained in OUT. OUT:
# build/queue. TEXTS: the folder of the English novels, where the recipes do not find it (sample_models/README.md says where they
# come from). Cut off at any moment, by a crash too, the next `start` goes on from the last saved state. A recipe that fails is said
# by `status`, does not stop the others, and is tried again by the next `start`. One queue works in an OUT at a time. Needs a built
# `ponderscope` (./run builds it; PONDERSCOPE names another) and python3.
set -euo pipefail
self=$(readlink -f "${BASH_SOURCE[0]}")
here=$(dirname "$self")
root=$(dirname "$here")
fail() { echo "queue.sh: $*" >&2; exit 2; }

verb=${1:-status}
[ $# -eq 0 ] || shift
given=("$@")
out=$root/build/queue texts='' recipes=()
while [ $# -gt 0 ]; do
    case $1 in
        --out | --texts)
            [ $# -ge 2 ] || fail "$1: expected a folder after it, found nothing."
            [ "$1" = --out ] && out=$2 || texts=$2
            shift
            ;;
        -*) fail "$1: expected --texts or --out; the first lines of $self say what there is." ;;
        *) recipes+=("$1") ;;
    esac
    shift
done
if [ ${#recipes[@]} -eq 0 ]; then
    for name in vanilla-neox ponderlm-neox adaponderlm-neox@ponderlm-neox vanilla-llama depth_attention-llama \
        adaptive_latent_cot-llama looped-neox ponderlm2-llama ponderlm3-llama; do
        recipes+=("$here/recipes/language/${name%%@*}.json${name#"${name%%@*}"}")
    done
fi
name_of() { basename "${1%@*}" .json; }
names=()
for entry in "${recipes[@]}"; do
    [ -f "${entry%@*}" ] || fail "${entry%@*}: expected a recipe, found nothing there; check the path."
    names+=("$(name_of "$entry")")
done
[ "$(printf '%s\n' "${names[@]}" | sort | uniq -d)" = '' ] || fail "two recipes have one name; a model's folder is named by its recipe."

lock=$out/.queue.lock # held by the queue and by what it trains: a trainer that outlived its queue keeps another from starting
works() { [ -e "$lock" ] && ! flock --shared -n "$lock" true; }
trains() { read -r process name 2>/dev/null <"$out/.queue.working" && kill -0 "$process" 2>/dev/null; }
is_complete() { grep -qs '"complete": true' "$out/$1/training.json"; }

# One model to its end, or to a signal: 0, 130, or what ponderscope says.
train() {
    local entry=$1 name=$2 options=(--resume)
    # What was cut off before its first state has nothing to go on with.
    [ -e "$out/$name/training_state.safetensors" ] || options=(--overwrite)
    [ -z "$texts" ] || options+=(--texts "$texts")
    [ "$entry" = "${entry%@*}" ] || options+=(--set "initialization.from=$out/${entry#*@}")
    # Linux shares processors out by session first, so the trainer has one of its own, the last in line.
    OMP_NUM_THREADS=1 setsid chrt --idle 0 ionice -c 3 nice -n 19 \
        bash -c 'ps -o ni= -p $$ >/proc/self/autogroup 2>/dev/null || true; exec "$@"' _ "$ponderscope" train "${entry%@*}" -o "$out/$name" "${options[@]}" --progress none 2>"$out/$name.log" &
    child=$!
    echo "$child $name" >"$out/.queue.working"
    local code=0
    wait "$child" || code=$?
    while kill -0 "$child" 2>/dev/null; do # a signal ends `wait` before the trainer has saved
        code=0
        wait "$child" || code=$?
    done
    rm -f "$out/.queue.working"
    return "$code"
}

run() {
    mkdir -p "$out" || fail "$out: expected a folder to write into."
    out=$(readlink -f "$out")
    exec 9>"$lock"
    # `works` holds the lock for the moment of its look; a queue keeps it.
    flock -n 9 || { ! trains && flock -w 10 9; } || fail "$out: a queue works here already; queue.sh status says on what."
    rm -f "$out/.queue.working" # of a queue that was killed
    local child='' ended='' i code
    trap 'ended=yes; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null || true' INT TERM
    for i in "${!recipes[@]}"; do
        local name=${names[i]} entry=${recipes[i]}
        is_complete "$name" && continue
        if [ "$entry" != "${entry%@*}" ] && ! is_complete "${entry#*@}"; then
            echo "$name: waits for ${entry#*@}, which is not trained."
            continue
        fi
        rm -f "$out/$name.failed"
        echo "$(date -u +%FT%TZ) training $name"
        code=0
        train "$entry" "$name" || code=$?
        # 143: asked to end before it listens, with the state that it had.
        if [ -n "$ended" ] || [ "$code" -eq 130 ] || [ "$code" -eq 143 ]; then
            echo "$(date -u +%FT%TZ) stopped; $name is saved"
            exit 130
        elif [ "$code" -ne 0 ]; then
            { tail -n 1 "$out/$name.log" | grep . || echo "ended with $code"; } >"$out/$name.failed"
            echo "$name: $(cat "$out/$name.failed")"
        fi
    done
}

status() {
    local working=''
    works && trains && working=$name
    python3 - "$out" "$working" "${names[@]}" <<'PYTHON'
import json, pathlib, sqlite3, sys

out, working, *names = sys.argv[1:]
print(f"{'model':28} {'state':9} {'tokens':>23} {'loss':>7} {'held-out':>8} {'tokens/s':>8} {'left':>8}")
for name in names:
    folder, failed = pathlib.Path(out, name), pathlib.Path(out, name + ".failed")
    tokens = total = rate = 0
    loss = held_out = left = ""
    state = "waiting"
    try:
        about = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        what = about["recipe"]["training"]
        total = what["steps"] * what["context"] * what["batch"]
        trace = sqlite3.connect((folder / "training.ponder").resolve().as_uri() + "?mode=rw", uri=True)
        for quantity, tokens, seconds, value in trace.execute(
                "SELECT quantity, tokens, seconds, value FROM training_point WHERE quantity IN ('held_out_nll', 'loss') AND value IS NOT NULL ORDER BY step"):
            rate = tokens / max(seconds, 1e-9)
            loss, held_out = (f"{value:.4f}", held_out) if quantity == "loss" else (loss, f"{value:.4f}")
        state = "trained" if about["complete"] else "cut off"
    except (OSError, KeyError, ValueError, TypeError, sqlite3.Error):
        pass  # not begun
    if name == working:
        state = "training"
    elif failed.exists() and state != "trained":
        state = "failed"
    if rate and state != "trained":
        left = f"{(total - tokens) / rate / 3600:.1f} h"
    print(f"{name:28} {state:9} {f'{tokens:,} of {total:,}' if total else '':>23} {loss:>7} {held_out:>8} {f'{rate:,.0f}' if rate else '':>8} {left:>8}")
    if state == "failed":
        print("    " + failed.read_text(encoding="utf-8", errors="replace").strip())
PYTHON
    works && echo "A queue works in $out." || echo "No queue works in $out."
}

case $verb in
    run | start)
        ponderscope=${PONDERSCOPE:-$root/build/release/bin/ponderscope}
        [ -x "$ponderscope" ] || fail "$ponderscope: expected the program, found nothing; run ./run, or name one with PONDERSCOPE=."
        [ "$verb" = run ] && { run; exit; }
        works && fail "$out: a queue works here already; queue.sh status says on what."
        mkdir -p "$out" || fail "$out: expected a folder to write into."
        setsid "$self" run "${given[@]}" >>"$out/queue.log" 2>&1 </dev/null &
        echo "Started; what it says goes to $out/queue.log, and $0 status shows how far it is."
        ;;
    status) status ;;
    stop)
        works || fail "$out: no queue works here."
        asked='' # between two models nobody can be: the next one is
        while works; do
            if trains && [ "$process" != "${asked% *}" ] && kill -TERM "$process" 2>/dev/null; then asked="$process $name"; fi
            sleep 0.2
        done
        [ -n "$asked" ] && echo "Stopped; ${asked#* } is saved." || echo "The queue had come to its end."
        ;;
    *) fail "$verb: expected run, start, status or stop." ;;
esac
