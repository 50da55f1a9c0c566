#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes everything under sample_models again: tokenizer, models, reference outputs.
#
#   sample_models/make.sh [TEXTS] [OUT]
#
# TEXTS: the folder of the English novels (sample_models/README.md says where they come from); OUT: where to put the result, a
# folder of its own so that a test of this script never replaces what is shipped. Needs: a built `ponderscope` (./run builds it;
# PONDERSCOPE names another), python3 with venv, and for the reference outputs the torch wheel that ./run installed.
# Interrupted, it goes on where it was.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(dirname "$here")"
texts="${1:-$root/../shared/data/external/text/english_novels}"
out="${2:-$root/build/sample_models}"
held_out=(Burnett_Lord_1886.txt Doyle_Hound_1902.txt Ford_Girl_1907.txt)
# shellcheck source=../resources/build/versions.env
source "$root/resources/build/versions.env"
deps="${PONDERSCOPE_DEPS:-${XDG_CACHE_HOME:-$HOME/.cache}/ponderscope}"

fail() { echo "make.sh: $*" >&2; exit 2; }
[ -d "$texts" ] || fail "$texts: expected the folder of novels, found nothing; see sample_models/README.md."
ponderscope="${PONDERSCOPE:-}"
if [ -z "$ponderscope" ]; then
    for build in release dev; do
        [ -x "$root/build/$build/bin/ponderscope" ] && ponderscope="$root/build/$build/bin/ponderscope" && break
    done
fi
[ -n "$ponderscope" ] && [ -x "$ponderscope" ] || fail "no ponderscope program under build; run ./run, or name one with PONDERSCOPE=."

mkdir -p "$out"
venv="$out/venv"
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet "tokenizers==$TOKENIZERS_VERSION"
fi
cp -r "$here/recipes" "$here/texts" "$out/"
[ -f "$out/tokenizer/tokenizer.json" ] ||
    "$venv/bin/python" "$here/make_tokenizer.py" "$texts" "$out/tokenizer/tokenizer.json" --held-out "${held_out[@]}"

# The bytes of the weights depend on the number of threads; the shipped ones were made with one.
models=(vanilla-neox-1m ponderlm-neox-1m adaponderlm-neox-1m)
for recipe in "$here"/recipes/cabinet/*.json; do
    models+=("cabinet/$(basename "$recipe" .json)")
done
for model in "${models[@]}"; do
    recipe=$out/recipes/$model.json
    [ -f "$recipe" ] || recipe=$out/recipes/language/$model.json
    OMP_NUM_THREADS=1 "$ponderscope" train "$recipe" --texts "$texts" -o "$out/$model" --resume
    ln -sfr "$out/tokenizer/tokenizer.json" "$out/$model/tokenizer.json" # one file for all
done
for model in "${models[@]}"; do
    PYTHONPATH="$deps/torch-$TORCH_VERSION" "$venv/bin/python" "$here/make_reference.py" "$out/$model" "$out/texts/passage.txt"
done
echo "make.sh: done, in $out"
