#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens a second of ponderscope.Writer and of what reads a trace as tables.

    PYTHONPATH=app/python python3 tests/bench/python/tables.py --tokens 1000000

A run of sequences of 1,000 tokens with five numbers a token (NLL, entropy, rank, steps, FLOPs) and a signal [token, 4],
written, then read as a DataFrame, as Arrow and as Parquet. Five rounds in turn, medians; the load is printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import ponderscope as ps

ROUNDS = 5
LENGTH = 1000
VOCABULARY = 50_304


def write(path: Path, sequences: list[dict[str, np.ndarray]]) -> None:
    signal = ps.Signal(axes=["token", "step"], title="Gate", description="Drawn by chance.")
    with (
        ps.Writer(path, overwrite=path.exists()) as writer,
        writer.run("run", max_steps=3, vocab_size=VOCABULARY, signals={"gate": signal}) as run,
    ):
        for one in sequences:
            gate = one["gate"]
            run.sequence(**{k: v for k, v in one.items() if k != "gate"}, signals={"gate": gate})


def made_up(tokens: int) -> list[dict[str, np.ndarray]]:
    draw = np.random.default_rng(0)
    sequences = []
    for _ in range(tokens // LENGTH):
        nll = draw.exponential(3, LENGTH).astype(np.float32)
        nll[-1] = np.nan
        sequences.append({
            "ids": draw.integers(0, VOCABULARY, LENGTH), "nll": nll, "rank": draw.integers(1, 1000, LENGTH),
            "entropy": draw.exponential(2, LENGTH).astype(np.float32), "steps": np.full(LENGTH, 3),
            "flops": draw.integers(1, 1 << 40, LENGTH), "gate": draw.random((LENGTH, 4), dtype=np.float32),
        })
    return sequences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    tokens = max(parser.parse_args().tokens // LENGTH, 1) * LENGTH
    sequences = made_up(tokens)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "t.ponder"
        tries: dict[str, Callable[[], object]] = {
            "Writer": lambda: write(trace, sequences),
            "run.tokens()": lambda: ps.open(trace).run("run").tokens(),
            "to_arrow": lambda: ps.open(trace).to_arrow(),
            "to_parquet": lambda: ps.open(trace).to_parquet(Path(tempfile.mkdtemp(dir=folder))),
        }
        seconds: dict[str, list[float]] = {name: [] for name in tries}
        for _ in range(ROUNDS):
            for name, run in tries.items():
                began = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - began)
        print(f"{tokens:,} tokens in sequences of {LENGTH:,}, {trace.stat().st_size / tokens:.0f} bytes a token, "
              f"load {os.getloadavg()[0]:.1f}")
    for name, times in seconds.items():
        print(f"{name:14} {tokens / statistics.median(times):12,.0f} tokens/s   "
              f"({tokens / max(times):,.0f} to {tokens / min(times):,.0f})")


if __name__ == "__main__":
    main()
