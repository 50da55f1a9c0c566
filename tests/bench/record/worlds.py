#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two processes of one thread against one process of two threads, in pairs that take turns.

    worlds.py PONDERSCOPE CHECKPOINT CORPUS.jsonl [PAIRS]

Prints the rate of the two as a share of that of the one, of each pair and the median: tokens of the whole corpus by the
seconds in which the trace says that they were computed (of the slower shard), so that loading counts for neither.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def record(program: str, checkpoint: str, corpus: str, folder: Path, threads: int, ranks: int) -> float:
    running = []
    for rank in range(ranks):
        world = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)} if ranks > 1 else {}
        running.append(
            subprocess.Popen(
                [program, "record", checkpoint, "--jsonl", corpus, "--record", "scalars", "-o", str(folder / "t.ponder"), "--json"],
                env={**os.environ, "OMP_NUM_THREADS": str(threads), **world}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )
        )  # fmt: skip
    results = [json.loads(process.communicate()[0]) for process in running]
    assert all(process.returncode == 0 for process in running)
    return sum(r["tokens"] for r in results) / max(r["seconds"] for r in results)


def main() -> None:
    program, checkpoint, corpus = sys.argv[1:4]
    pairs = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    shares = []
    for pair in range(pairs):
        rates = {}
        for ranks in (1, 2) if pair % 2 == 0 else (2, 1):
            with tempfile.TemporaryDirectory() as folder:
                rates[ranks] = record(program, checkpoint, corpus, Path(folder), 3 - ranks, ranks)
        shares.append(rates[2] / rates[1])
        print(f"one process {rates[1]:8.0f} tokens/s   two {rates[2]:8.0f}   share {shares[-1]:.3f}   load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"median share {statistics.median(shares):.3f}")


if __name__ == "__main__":
    main()
