#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory of a training step with and without training.activation_checkpointing, and what it costs in time.

    python3 tests/bench/train/activation_checkpointing.py --ponderscope build/release/bin/ponderscope

Needs nothing but Python. A measurement is a process of its own; its memory is the system's ru_maxrss. What a step takes is that less
the peak of the same training with one short sequence a step, which has the program, the weights and the optimiser in it too. Times are
medians of the steps after the first three; with and without take turns, and the ratio is within a pair.
"""

import argparse
import os
import pathlib
import statistics
import tempfile

from compare_with_pytorch import SHAPES, TOKENIZER, ours, write_text

WORK = {
    # name: shape, context
    "sample": (SHAPES["sample"], 256),
    "sample, longer": (SHAPES["sample"], 1024),
    "deeper": (dict(SHAPES["sample"], num_hidden_layers=12), 512),
}
MIB = 1 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ponderscope", default="build/release/bin/ponderscope")
    parser.add_argument("--shape", choices=WORK, action="append", help="default: all")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--count", type=int, default=8, help="steps of a measurement; the first three do not count")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    options.context = max(context for _, context in WORK.values())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_text(folder, options)
        print(f"{options.threads} threads, batch {options.batch}; MiB a step without and with, their ratio, time with over without")
        for shape in options.shape or WORK:
            model, context = WORK[shape]
            for method in ("vanilla", "ponderlm"):
                job = dict(model=model, method=method, precision="float32", context=context, batch=options.batch,
                           count=options.count, threads=options.threads, tokenizer=str(TOKENIZER))
                floor = ours(dict(job, context=16, batch=1), options.ponderscope, folder)["memory"]
                pairs = [
                    tuple(ours(dict(job, checkpointing=on), options.ponderscope, folder) for on in (False, True))
                    for _ in range(options.repeats)
                ]
                without = statistics.median(off["memory"] for off, _ in pairs) - floor
                with_it = statistics.median(on["memory"] for _, on in pairs) - floor
                time = statistics.median(on["seconds"] / off["seconds"] for off, on in pairs)
                print(
                    f"{shape:15} context {context:4}  {method:8} {without / MIB:7.0f} {with_it / MIB:7.0f}"
                    f"  {with_it / without:5.2f}  {time:5.2f}   (the rest of the process: {floor / MIB:.0f} MiB)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
