#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests a second of `--model ponderscope` over those of `--model hf` of lm-evaluation-harness, in turns: medians and ratios.

    PYTHONPATH=app/python PONDERSCOPE_PROGRAM=build/release/bin/ponderscope python3 tests/bench/scoring/harness_speed.py sample_models/vanilla-neox-1m

Needs lm_eval, torch and transformers in the Python that runs it. Two mixtures: four options a context, and a context for each request.
"""

import argparse
import os
import random
import statistics
import time

from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

from ponderscope.harness import PonderscopeLM

WORDS = "the ferry was late and a keeper counted three gulls before his lamp was lit again over cold dark water".split()


def requests(documents, options, length):
    drawn = random.Random(7)
    pairs = []
    for _ in range(documents):
        context = " ".join(drawn.choices(WORDS, k=length))
        pairs += [(context, " " + " ".join(drawn.choices(WORDS, k=4))) for _ in range(options)]
    return [Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=i) for i, pair in enumerate(pairs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--words", type=int, default=100, help="of a context")
    parser.add_argument("--batch", type=int, default=8, help="of hf; ponderscope takes 64 windows by itself")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    models = {
        "hf": HFLM(pretrained=options.checkpoint, device="cpu", dtype="float32", batch_size=options.batch),
        "ponderscope": PonderscopeLM(options.checkpoint, program=os.environ["PONDERSCOPE_PROGRAM"]),
    }
    for title, asked in (("four options a context", requests(options.documents, 4, options.words)), ("one", requests(4 * options.documents, 1, options.words))):
        seconds = {name: [] for name in models}
        for name, model in models.items():
            model.loglikelihood(asked[:8], disable_tqdm=True)
        for _ in range(options.repeats):
            for name, model in models.items():
                started = time.perf_counter()
                model.loglikelihood(asked, disable_tqdm=True)
                seconds[name].append(time.perf_counter() - started)
        speed = {name: len(asked) / statistics.median(all_of_it) for name, all_of_it in seconds.items()}
        print(f"{title}: hf {speed['hf']:.0f}, ponderscope {speed['ponderscope']:.0f} requests/s, {speed['ponderscope'] / speed['hf']:.2f}x", flush=True)


if __name__ == "__main__":
    main()
