#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ps.record costs beyond the bare forward of the model, and beyond the head's products that it asks for.

    PYTHONPATH=app/python:/folder/of/torch python3 tests/bench/python/recording.py

A GPT-NeoX of the shape of Pythia-70M (6 layers, d 512, vocabulary 50,304) on the CPU over windows of ids. Three things are timed in
turn, five times each, and medians are printed: the bare forward of the model, logits of every token with it; the forward and what the
recording is about, computed from these logits in plain torch (log-softmax, entropy, rank, top 10); ps.record, which writes the trace in the
time that counts. The first pair says what a recording costs, the second what is lost in this package.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np
import torch
import transformers

import ponderscope as ps

ROUNDS = 5


def model_of(layers: int, width: int, vocab: int) -> Any:
    torch.manual_seed(0)
    config = transformers.GPTNeoXConfig(
        vocab_size=vocab, hidden_size=width, num_hidden_layers=layers, num_attention_heads=8, intermediate_size=4 * width,
        max_position_embeddings=2048, attn_implementation="sdpa",
    )  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def quantities(logits: torch.Tensor, target: torch.Tensor) -> list[torch.Tensor]:
    """What a recording keeps of logits [B, T, V]; some rows at a time, as anybody has to."""
    parts = []
    for rows, wanted in zip(logits.flatten(0, 1).split(256), target.flatten().split(256)):
        log_p = torch.log_softmax(rows, -1)
        at = rows.gather(1, wanted[:, None])
        top = log_p.topk(10, -1)
        parts.append((-log_p.gather(1, wanted[:, None]), -(log_p.exp() * log_p).sum(-1), (rows > at).sum(-1), top.values.exp(), top.indices))
    return [torch.cat(column) for column in zip(*parts)]


def seconds(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--vocab", type=int, default=50304)
    given = parser.parse_args()
    model = model_of(given.layers, given.width, given.vocab)
    ids = np.random.default_rng(0).integers(0, given.vocab, (given.windows, given.context))
    batches = torch.from_numpy(ids).split(given.batch)

    @torch.inference_mode()
    def bare() -> None:
        for batch in batches:
            model(input_ids=batch, use_cache=False).logits

    @torch.inference_mode()
    def plain() -> None:
        for batch in batches:
            logits = model(input_ids=batch, use_cache=False).logits
            quantities(logits[:, :-1], batch[:, 1:])

    with tempfile.TemporaryDirectory() as folder:
        number = iter(range(1000))

        def recorded() -> None:
            path = Path(folder) / f"{next(number)}.ponder"
            ps.record(model, None, ids.tolist(), path, context=given.context, batch=given.batch, progress=False)

        things = {"bare forward": bare, "forward and plain torch": plain, "ps.record": recorded}
        for thing in things.values():
            thing()  # warm
        times: dict[str, list[float]] = {name: [] for name in things}
        for _ in range(ROUNDS):
            for name, thing in things.items():
                times[name].append(seconds(thing))
    tokens = given.windows * given.context
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {tokens} tokens, load {os.getloadavg()[0]:.1f}")
    print(f"{'':26}{'seconds':>9}{'least':>9}{'tokens/s':>10}")
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:26}{median:9.3f}{min(values):9.3f}{tokens / median:10.0f}")
    for name, reference in (("bare forward", "bare forward"), ("forward and plain torch", "forward and plain torch")):
        ratios = [a / b for a, b in zip(times["ps.record"], times[reference])]
        print(f"ps.record / {name}: {statistics.median(ratios):.3f} (pairs {', '.join(f'{r:.2f}' for r in ratios)})")


if __name__ == "__main__":
    main()
