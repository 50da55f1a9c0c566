#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the stories of chains.py as multiple-choice tasks for lm-evaluation-harness.

    chains_tasks.py OUT [--seed 12] [--documents 50]

OUT gets chains_1 to chains_4, each a .jsonl with its .yaml (`lm_eval --include_path OUT --tasks chains_1,...`). A document is a story up to
an answer. The options are the four people who know. The task's number is the number of look-ups that its answers need. Needs only
Python. The same seed gives the same bytes everywhere.
"""
import argparse
import json
import pathlib

from chains import story
from generate import Chance

DEPTHS = "1234"


def documents(chance, count):
    """`count` documents for each depth. Two documents of one depth are never from the same story."""
    made = {depth: [] for depth in DEPTHS}
    while any(len(of_depth) < count for of_depth in made.values()):
        parts = story(chance)
        texts = [text for text, _ in parts]
        people = [text.split()[0] for text in texts if text.endswith(" knows.")]
        for depth in DEPTHS:
            places = [place for place, (_, needs) in enumerate(parts) if needs == depth]
            if not places or len(made[depth]) == count:
                continue
            place = chance.one_of(places)
            choices = [f" {person}." for person in people]
            made[depth].append({"context": "".join(texts[:place]), "choices": choices, "answer": choices.index(texts[place])})
    return made


def write_task(out, name, made, **more):
    """NAME.jsonl and NAME.yaml in the folder OUT; `more` is added to the task."""
    (out / f"{name}.jsonl").write_text("".join(json.dumps(document) + "\n" for document in made))
    task = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(out / f"{name}.jsonl")}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "context",
        "doc_to_choice": "choices",
        "doc_to_target": "answer",
        "target_delimiter": "",
        "metric_list": [{"metric": "acc"}],
        **more,
    }
    (out / f"{name}.yaml").write_text(json.dumps(task, indent=1) + "\n")  # JSON is YAML


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--seed", type=int, default=12)
    arguments.add_argument("--documents", type=int, default=50)
    given = arguments.parse_args()
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for depth, made in documents(Chance(given.seed), given.documents).items():
        write_task(out, f"chains_{depth}", made)


if __name__ == "__main__":
    main()
