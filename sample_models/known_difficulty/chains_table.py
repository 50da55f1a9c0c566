#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints accuracy and steps for the answers in the stories of chains.py, by the number of steps that the answers need.

    chains_table.py HELD_OUT.txt MODEL[:POLICY]... [--ponderscope PROGRAM]

HELD_OUT.txt, and HELD_OUT.labels.csv beside it, come from chains.py. `ponderscope record` records each model, one story a window, under
the model's own rule or the named policy (`chains/ponderlm_reset:argmax_stable:n=1`). An answer is right if the story's word has the
largest logit. Intervals are 95 %: for steps percentiles over 1000 draws of whole stories; for shares Wilson's interval, which has a
width even if all answers are right. Needs only Python and a built ponderscope.
"""
import argparse
import csv
import os
import pathlib
import sqlite3
import subprocess
import tempfile

from chains import STORY_TOKENS
from generate import Chance

DRAWINGS = 1000
QUANTILE = 1.959964  # of the normal distribution, for 95 %


def recorded(program, model, policy, text, folder):
    """(first byte of the next token, rank of the next token, steps) for every token that has a next token."""
    trace = folder / "trace.ponder"
    trace.unlink(missing_ok=True)
    window = [f"--context={STORY_TOKENS}", f"--stride={STORY_TOKENS}"]
    rule = [f"--policy={policy}"] if policy else []
    command = [program, "record", model, "--text", text, *window, *rule, "--record=basic", "--progress=none", "-o", trace]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with sqlite3.connect(trace) as store:
        return store.execute("SELECT text_end, rank, steps FROM token_row WHERE rank > 0").fetchall()


def interval(stories, chance):
    """Mean over all values of the stories, and its interval over draws of whole stories."""
    sums = [(sum(values), len(values)) for values in stories]
    means = []
    for _ in range(DRAWINGS):
        drawn = [chance.one_of(sums) for _ in sums]
        count = sum(number for _, number in drawn)
        means.append(sum(total for total, _ in drawn) / count if count else 0)
    means.sort()
    mean = sum(total for total, _ in sums) / sum(number for _, number in sums)
    return mean, means[DRAWINGS // 40], means[DRAWINGS - 1 - DRAWINGS // 40]


def share(stories):
    """The share of right answers, with the interval of Wilson (1927)."""
    number = sum(len(values) for values in stories)
    mean, z = sum(map(sum, stories)) / number, QUANTILE**2 / number
    middle = mean + z / 2
    half = (z * mean * (1 - mean) + z**2 / 4) ** 0.5
    return mean, (middle - half) / (1 + z), (middle + half) / (1 + z)


def main():
    parser = argparse.ArgumentParser(description="Accuracy and steps by the number of steps that an answer needs.")
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("models", nargs="+", metavar="MODEL[:POLICY]")
    parser.add_argument("--ponderscope", default=os.environ.get("PONDERSCOPE", "ponderscope"))
    options = parser.parse_args()
    text = options.text.read_bytes()
    classes, story_of, story = {}, {}, 0
    with open(options.text.with_suffix(".labels.csv"), encoding="ascii", newline="") as file:
        for row in csv.DictReader(file):
            begin, end = int(row["begin"]), int(row["end"])
            classes[begin], story_of[begin] = row["class"], story
            story += text[begin:end].count(b"\n")
    kinds = [kind for kind in ("1", "2", "3", "4", "frame", "free") if kind in classes.values()]
    print("| model | | " + " | ".join(kinds) + " |\n| --- | --- |" + " --- |" * len(kinds))
    with tempfile.TemporaryDirectory() as folder:
        for chosen in options.models:
            model, _, policy = chosen.partition(":")
            rows = recorded(options.ponderscope, model, policy, options.text, pathlib.Path(folder))
            name = f"`{pathlib.Path(model).name}`" + (f", {policy}" if policy else "")
            cells = {"right": [], "steps": []}
            for kind in kinds:
                right, spent = [[] for _ in range(story)], [[] for _ in range(story)]
                for end, rank, steps in rows:
                    if classes.get(end) == kind:
                        right[story_of[end]].append(rank == 1)
                        spent[story_of[end]].append(steps)
                known = kind not in ("frame", "free")
                cells["right"].append("{:.1%} ({:.1%} to {:.1%})".format(*share(right)) if known else "")
                mean, low, high = interval(spent, Chance(1))
                cells["steps"].append(f"{mean:.2f} ({low:.2f} to {high:.2f})")
            for what, row in cells.items():
                print(f"| {name} | {what} | " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
