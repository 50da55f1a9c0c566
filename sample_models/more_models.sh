#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Trains what reproduce.py asks besides the cabinet: the plain models at four times the tokens, which is what three further steps a
# token cost; the same models from four other seeds; adaptive latent CoT under penalties of several weights; and the models of chains
# from four other seeds.
#
#   sample_models/more_models.sh [TEXTS] [OUT]
#
# TEXTS: the folder of the English novels (sample_models/README.md says where they come from); OUT: build/more_models. Three or four hours
# of one core. Interrupted, it goes on where it was. Needs a built `ponderscope` (./run builds it; PONDERSCOPE names another).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(dirname "$here")"
texts="${1:-$root/../shared/data/external/text/english_novels}"
out="${2:-$root/build/more_models}"
ponderscope="${PONDERSCOPE:-$root/build/release/bin/ponderscope}"
fail() { echo "more_models.sh: $*" >&2; exit 2; }
[ -d "$texts" ] || fail "$texts: expected the folder of novels, found nothing; see sample_models/README.md."
[ -x "$ponderscope" ] || fail "$ponderscope: expected the program, found nothing; run ./run, or name one with PONDERSCOPE=."
mkdir -p "$out"
out=$(readlink -f "$out") # recipes look for what they begin with from where they lie

# NAME SHELF/RECIPE KEY=VALUE...
train() {
    local name=$1 recipe=$2 changes=()
    shift 2
    for change in "$@"; do changes+=(--set "$change"); done
    OMP_NUM_THREADS=1 "$ponderscope" train "$here/recipes/$recipe.json" --texts "$texts" -o "$out/$name" --resume \
        --set "name=$name" "${changes[@]}"
}

for model in vanilla-neox vanilla-llama; do
    train "$model-flops4" "cabinet/$model" training.tokens=2097152
done
# A quarter of the cabinet's tokens: curves, not models to keep.
for weight in 0 0.01 0.1 0.3; do
    train "adaptive_latent_cot-llama-lambda$weight" cabinet/adaptive_latent_cot-llama training.tokens=131072 evaluation.final_windows=128 "penalty.lambda=$weight"
done
for power in 0 0.5 1; do
    train "adaptive_latent_cot-llama-beta$power" cabinet/adaptive_latent_cot-llama training.tokens=131072 evaluation.final_windows=128 \
        penalty.lambda=0.1 "penalty.beta=$power"
done
for seed in 2 3 4 5; do
    for model in vanilla-llama depth_attention-llama denseformer-llama attnres-llama mhc-llama \
        vanilla-neox adaponderlm-neox ponderlm-neox looped-neox; do
        train "$model-seed$seed" "cabinet/$model" "training.seed=2026112$seed"
    done
done
python3 "$here/known_difficulty/chains.py" "$out/chains"
texts=$out/chains
for seed in 2 3 4 5; do
    chain() { train "chains-$1-seed$seed" "chains/$1" "training.seed=$seed" "${@:2}"; }
    chain said
    chain vanilla "initialization.from=$out/chains-said-seed$seed"
    chain ponderlm_reset "initialization.from=$out/chains-said-seed$seed"
    chain adaponderlm "initialization.from=$out/chains-ponderlm_reset-seed$seed"
done
echo "more_models.sh: done, in $out"
