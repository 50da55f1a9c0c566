#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ps.record costs beyond the bare forward of the model.

    PYTHONPATH=app/python:/folder/of/torch python3 tests/bench/python/recording.py

A GPT-NeoX of the shape of Pythia-70M (6 layers, d 512, vocabulary 50,304) on the CPU over windows of ids: the forward, logits of every
token with it, and ps.record, which writes the trace in the time that counts, in turn, five times each. Medians are printed.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import transformers

import ponderscope as ps

ROUNDS, WINDOWS, CONTEXT, VOCABULARY = 5, 4, 512, 50304


def main() -> None:
    torch.manual_seed(0)
    config = transformers.GPTNeoXConfig(
        vocab_size=VOCABULARY, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048,
        max_position_embeddings=2048, attn_implementation="sdpa",
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    ids = np.random.default_rng(0).integers(0, VOCABULARY, (WINDOWS, CONTEXT))
    with tempfile.TemporaryDirectory() as folder:
        number = iter(range(1000))

        @torch.inference_mode()
        def bare() -> None:
            model(input_ids=torch.from_numpy(ids), use_cache=False).logits

        def recorded() -> None:
            ps.record(model, None, ids.tolist(), Path(folder) / f"{next(number)}.ponder", context=CONTEXT, batch=WINDOWS, progress=False)

        times: dict[str, list[float]] = {"bare forward": [], "ps.record": []}
        for _ in range(1 + ROUNDS):
            for name, work in zip(times, (bare, recorded)):
                began = time.perf_counter()
                work()
                times[name].append(time.perf_counter() - began)
    tokens = WINDOWS * CONTEXT
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {tokens} tokens, load {os.getloadavg()[0]:.1f}")
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}  # the first round warms
    for name, median in medians.items():
        print(f"{name:14}{median:9.3f} s {tokens / median:10.0f} tokens/s")
    print(f"ps.record / bare forward: {medians['ps.record'] / medians['bare forward']:.3f}")


if __name__ == "__main__":
    main()
