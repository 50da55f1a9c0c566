#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
#   queue_test.sh PONDERSCOPE SOURCE_TREE
#
# sample_models/queue.sh on recipes of seconds: killed with its trainer it goes on where it was, a second one is refused, a recipe
# that fails stops no other and is tried again, one that starts from another waits for it, and a stop saves.
set -euo pipefail
export PONDERSCOPE=$1
tree=$2
queue=$tree/sample_models/queue.sh
work=$(mktemp -d)
out=$work/out
fail() { printf 'queue_test: %s\n' "$*" >&2; "$queue" status --out "$out" "${recipes[@]}" >&2; exit 1; }
finish() {
    "$queue" stop --out "$out" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT

# Beside busy neighbours the lowest priority would take minutes: here it is asked for only, and given away.
mkdir "$work/bin"
for program in chrt ionice nice; do
    printf '#!/bin/sh\necho "%s $1 $2" >>"%s"\nshift 2\nexec "$@"\n' "$program" "$work/priority" >"$work/bin/$program"
    chmod +x "$work/bin/$program"
done
export PATH=$work/bin:$PATH

for _ in $(seq 200); do echo "Ring once, and she came for one; ring twice, and she came for two."; done >"$work/a.txt"
# NAME STEPS MORE
recipe() {
    cat >"$work/$1.json" <<JSON
{"name": "$1", "tokenizer": "$tree/sample_models/tokenizer/tokenizer.json", $3
 "texts": {"train": ["*.txt"]}, "optimizer": {"warmup_steps": 2}, "log": {"every": 1}, "checkpoint": {"every": 5},
 "training": {"steps": $2, "context": 16, "batch": 2}}
JSON
}
model='"model": {"model_type": "gpt_neox", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},'
recipe long 2000 "$model"
recipe short 3 "$model"
recipe after 3 '"initialization": {"from": "nowhere"}, "model": {},'
recipe wrong 3 '"model": {"model_type": "gpt_neox"},'
recipes=("$work/wrong.json" "$work/after.json@long" "$work/long.json" "$work/short.json" "$work/after.json@long")
says() { grep -q "$1" <<<"$("$queue" status --out "$out" "${recipes[@]}")"; }

code=0
said=$("$queue" status --out "$out" "${recipes[@]}" 2>&1) || code=$?
[[ "$code $said" == "2 "*"one name"* ]] || fail "a name twice: $code, $said"
recipes=("$work/wrong.json" "$work/long.json" "$work/after.json@long" "$work/short.json")
says '^long *waiting' || fail "an untouched list is not waiting."

"$queue" start --out "$out" "${recipes[@]}" >/dev/null
steps() { python3 -c 'import sqlite3, sys; print(*(step for step, in sqlite3.connect("file:" + sys.argv[1] + "?mode=rw", uri=True).execute("SELECT step FROM training_point WHERE quantity = \x27loss\x27 ORDER BY step")), sep="\n")' "$out/long/training.ponder" 2>/dev/null; }
step() { steps | tail -n 1; }
for _ in $(seq 600); do
    [ -e "$out/long/training_state.safetensors" ] && [[ $(step) =~ ^[0-9]+$ ]] && [ "$(step)" -ge 20 ] && break
    sleep 0.1
done
says '^long *training ' || fail "what is being trained is not said."
says '^wrong *failed' || fail "what failed is not said."
said=$("$queue" run --out "$out" "${recipes[@]}" 2>&1) && fail "two queues work in one folder."
[[ $said == *"works here already"* ]] || fail "a second queue says: $said"

# At once, without a word: the queue first, so that it cannot see its trainer die.
read -r trainer _ <"$out/.queue.working"
[ "$(sort -u "$work/priority")" = $'chrt --idle 0\nionice -c 3\nnice -n 19' ] || fail "not the lowest priority: $(cat "$work/priority")"
kill -KILL "$(ps -o ppid= -p "$trainer" | tr -d ' ')"
said=$("$queue" run --out "$out" "${recipes[@]}" 2>&1) && fail "a queue begins beside an orphaned trainer."
kill -KILL "$trainer"
while [ -d "/proc/$trainer" ]; do sleep 0.1; done
says '^long *cut off' || fail "what was cut off is not said."

"$queue" start --out "$out" "${recipes[@]}" >/dev/null
# Looked at all the time, it begins all the same.
for _ in $(seq 600); do says '^long *training ' && break; done
"$queue" stop --out "$out" >/dev/null || fail "it could not be stopped."
says '^long *cut off' || fail "a stopped training is not cut off."
reached=$(step)

# Between two models, too: the first fails as it begins.
for pause in 0 0.1 0.2 0.3; do
    "$queue" start --out "$out" "${recipes[@]}" >/dev/null
    until says '^A queue works'; do sleep 0.05; done
    sleep "$pause"
    "$queue" stop --out "$out" >/dev/null || fail "it could not be stopped $pause s after its begin."
    says '^No queue works' || fail "it works on after its stop."
done

sed -i "s/\"intermediate_size\": 64/\"intermediate_size\": 64/; s/\"model\": {\"model_type\": \"gpt_neox\"},/$model/" "$work/wrong.json"
"$queue" run --out "$out" "${recipes[@]}" >"$work/said" 2>&1 || fail "the last run ended with $?: $(cat "$work/said")"
for name in wrong long after short; do
    says "^$name *trained" || fail "$name is not trained."
done
# Every step once, in order: nothing was begun anew.
[ "$(steps)" = "$(seq 2000)" ] || fail "the log of the training that was killed has gaps."
[ "$reached" -ge 20 ] || fail "the training went back to step $reached."
OMP_NUM_THREADS=1 "$PONDERSCOPE" train "$work/long.json" -o "$work/whole" --progress none 2>/dev/null >/dev/null
cmp "$work/whole/model.safetensors" "$out/long/model.safetensors" || fail "an uninterrupted training gives other weights."
