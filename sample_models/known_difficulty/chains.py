#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes short stories whose answers need a known number of steps that must follow each other.

    chains.py OUT [--seed 11] [--train 100000] [--said 60000] [--held-out 200]

OUT gets said.txt, said_held_out.txt, train.txt and held_out.txt (plain ASCII, one story a line), held_out.labels.csv (the number of
steps that every part of held_out.txt needs) and tokenizer.json. Needs only Python. The same seed gives the same bytes everywhere.

A story says for each of twelve people whom this person asks, or that this person knows the answer:

    Snow fell. Ada asks Kay. ... Kay asks Leo. Leo knows. ... At dusk Ada hears from Leo. ...

In the end each of the others hears from a person who knows. This name is n look-ups away, n from 1 to 4: Ada asks Kay, Kay asks Leo,
Leo knows, so n is 2 for Ada. Each look-up needs the result of the previous look-up. The label classes are `1` to `4` for an answer,
`frame` for parts that are known at once, `free` for parts drawn by chance. Four of the twelve people know, so a guess among these four
is right in one of four cases. In each chain, the person farthest from the answer hears first, so no answer gives away a later one.

In said.txt each look-up is spelled out, and a person who knows is repeated: Ada hears from Kay. Leo. Leo. A step is a word there, so
no pondering is needed.

A sentence is one token (" Ada asks Kay.", " Ada hears from", " Leo."), so that one layer can do a look-up. Otherwise lower
layers would first have to copy words from token to token. Every story has 31 tokens, in said.txt 39.
"""
import argparse
import csv
import json
import pathlib

from generate import Chance, tokenizer

PEOPLE = "Ada Ben Cid Dan Eva Fay Gil Ida Jon Kay Leo Mia".split()
OPENINGS = ["A letter came.", "The bells rang.", "Snow fell.", "It was market day."]
EVENING = " At dusk"
# Number of people before each of the four who know; eight in all.
CHAINS = [(4, 2, 1, 1), (3, 2, 2, 1), (4, 3, 1, 0), (4, 2, 2, 0)]
STORY_TOKENS = 1 + 12 + 1 + 2 * 8 + 1
SAID = (6, 3)  # people who hear, and steps spelled out for each


def shuffled(chance, items):
    items = list(items)
    for last in range(len(items) - 1, 0, -1):
        other = chance.below(last + 1)
        items[last], items[other] = items[other], items[last]
    return items


def beginning(chance):
    """The parts before dusk as (text, class), one token each, and the four chains of people, each with the person who knows at its end."""
    people = shuffled(chance, PEOPLE)
    chains = [[people.pop() for _ in range(length + 1)] for length in chance.one_of(CHAINS)]
    morning = [f" {one} asks {other}." for chain in chains for one, other in zip(chain, chain[1:])]
    morning += [f" {chain[-1]} knows." for chain in chains]
    parts = [chance.one_of(OPENINGS), *sorted(morning)]
    return [(part, "free") for part in parts] + [(EVENING, "frame")], chains


def story(chance):
    parts, chains = beginning(chance)
    asked = [0 for _ in chains]
    for number in shuffled(chance, [number for number, chain in enumerate(chains) for _ in chain[1:]]):
        chain, place = chains[number], asked[number]
        parts += [(f" {chain[place]} hears from", "free"), (f" {chain[-1]}.", str(len(chain) - 1 - place))]
        asked[number] += 1
    return parts + [("\n", "frame")]


def said(chance):
    parts, chains = beginning(chance)
    after = {one: chain[min(place + 1, len(chain) - 1)] for chain in chains for place, one in enumerate(chain)}
    asked, steps = SAID
    for one in shuffled(chance, PEOPLE)[:asked]:
        parts.append((f" {one} hears from", "free"))
        for _ in range(steps):
            one = after[one]
            parts.append((f" {one}.", "1"))
    return parts + [("\n", "frame")]


def sentences():
    """Every token that is a sentence or half a sentence."""
    for one in PEOPLE:
        yield from (f" {one} hears from", f" {one}.", f" {one} knows.")
        yield from (f" {one} asks {other}." for other in PEOPLE if other != one)
    yield from (*OPENINGS, EVENING)


def main():
    parser = argparse.ArgumentParser(description="Stories whose answers need a known number of steps.")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--train", type=int, default=100_000, help="stories to train on")
    parser.add_argument("--said", type=int, default=60_000, help="stories of which each step is said")
    parser.add_argument("--held-out", type=int, default=200, help="stories to measure on")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    train, other, spoken = Chance(options.seed), Chance(options.seed + 1), Chance(options.seed + 66)
    held_out = [story(other) for _ in range(options.held_out)]
    texts = {
        "said.txt": [said(spoken) for _ in range(options.said)],
        "said_held_out.txt": [said(spoken) for _ in range(options.held_out)],
        "train.txt": [story(train) for _ in range(options.train)],
        "held_out.txt": held_out,
    }
    for name, stories in texts.items():
        (options.out / name).write_text("".join(text for one in stories for text, _ in one), encoding="ascii")
    words = tokenizer(sentences())
    (options.out / "tokenizer.json").write_text(json.dumps(words, indent=1) + "\n", encoding="utf-8")
    with open(options.out / "held_out.labels.csv", "w", encoding="ascii", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["document", "begin", "end", "class"])
        place = 0
        for text, kind in (part for one in held_out for part in one):
            rows.writerow(["held_out.txt", place, place + len(text), kind])
            place += len(text)


if __name__ == "__main__":
    main()
