#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our tokenizer and the Python package `tokenizers` on the same text, in turns, one thread each.

  compare_with_wheel.py TOKENIZER_BENCH [--data FOLDER] [--megabytes N] [--repeats N]

TOKENIZER_BENCH is the program of that name in the build folder's bench/. Times are processor time. The wheel keeps its cache of
words between repeats, as ours does, and the best repeat of each counts; the first, with cold caches, is shown too.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--data", default=os.environ.get("PONDERSCOPE_TEST_DATA")
                        or os.path.join(here, "..", "..", "..", "..", "shared", "data"))
    parser.add_argument("--megabytes", type=float, default=15)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tokenizers", nargs="*", default=["gpt2", "gpt_neox_pythia", "llama3", "qwen3", "llama2"])
    options = parser.parse_args()
    try:
        import tokenizers
    except ImportError:
        print("skipped: the Python package `tokenizers` is not installed")
        return 0
    novels = sorted(glob.glob(os.path.join(options.data, "external", "text", "english_novels", "*.txt")))
    if not novels:
        print("skipped: the reference novels are absent; set PONDERSCOPE_TEST_DATA")
        return 0
    texts = []
    for name in novels:
        if sum(map(len, texts)) < options.megabytes * 1e6:
            with open(name, encoding="utf-8", newline="") as file:
                texts.append(file.read())
    novels = novels[:len(texts)]
    size = sum(len(text.encode()) for text in texts)
    print(f"tokenizers {tokenizers.__version__}, {size / 1e6:.1f} MB in {len(texts)} novels, best of {options.repeats} (first)")
    print(f"{'tokenizer':16} {'ours MB/s':>16} {'wheel MB/s':>16} {'ratio':>7} {'load ms':>8} {'wheel':>6}")
    for name in options.tokenizers:
        file = os.path.join(options.data, "external", "tokenizers", name, "tokenizer.json")
        start = time.process_time()
        wheel = tokenizers.Tokenizer.from_file(file)
        wheel_load = time.process_time() - start
        seconds = []
        for _ in range(options.repeats):
            start = time.process_time()
            count = sum(len(wheel.encode(text).ids) for text in texts)
            seconds.append(time.process_time() - start)
        ours = json.loads(subprocess.run([options.program, "--json", file, str(options.repeats), *novels], check=True,
                                         stdout=subprocess.PIPE).stdout)
        if ours["tokens"] != count:
            print(f"{name}: {ours['tokens']} tokens, but {count}")
            return 1
        print(f"{name:16} {size / 1e6 / ours['seconds']:8.1f} ({size / 1e6 / ours['first_seconds']:5.1f}) "
              f"{size / 1e6 / min(seconds):8.2f} ({size / 1e6 / seconds[0]:5.2f}) {min(seconds) / ours['seconds']:6.1f}x "
              f"{ours['load_seconds'] * 1e3:8.0f} {wheel_load * 1e3:6.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
