#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes texts in which the difficulty of every character is known.

    generate.py OUT [--seed 7] [--train-bytes 1100000] [--held-out-bytes 40000]

OUT gets train.txt and held_out.txt (plain ASCII, one exercise a line), held_out.labels.csv (how hard it is to predict each byte of
held_out.txt from the text before it) and tokenizer.json (every byte a token). Needs only Python. The same seed gives the same bytes
everywhere.

The exercises, with the class of the answer's characters and the difficulty: how many facts a prediction must combine.

    copy kqz mro > kqz mro .            copy       1  look up which character followed the previous character
    count 8 9 10 11 12 .                count      1  the next number; `count_carry` 2 where a digit turns from 9 to 0
    add 483+519=992 .                   add_0      2  two digits added; numbers are written units first
                                        add_c      2+c with a carry that began c digits before
    close ([{<>}]) .                    close_d    d  the bracket that closes the one opened d brackets ago
    fact Mira owns lamp .               recall     2  asked later: find the name, then the word that followed it
    ask Mira owns lamp .
    frame                               0  fixed words of the exercises, known after their first letter
    free                                -  drawn by chance: cannot be predicted, and has no difficulty

Lines of all kinds are in random order. The class of a character belongs to its prediction, which is made at the token before it.
"""
import argparse
import csv
import json
import pathlib

# No two begin with the same letter: one letter decides a word.
NAMES = "Anton Bela Celia Dario Edda Falk Greta Hanno Ines Jonas Katja Lorin Mira Nils Olga Petra".split()
THINGS = "anvil boat coin drum easel flute grate harp kite lamp mill nail oven pear rope sled".split()
OPEN, CLOSE = "([{<", ")]}>"
STEPS = {"frame": 0, "copy": 1, "count": 1, "count_carry": 2, "recall": 2, "free": -1}


class Chance:
    """SplitMix64: the same numbers in every version of every language."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return (z ^ (z >> 31)) % bound

    def one_of(self, choices):
        return choices[self.below(len(choices))]


def steps_of(kind):
    """The difficulty of a class: how many facts a prediction must combine."""
    if kind in STEPS:
        return STEPS[kind]
    name, number = kind.split("_")
    return int(number) + (2 if name == "add" else 0)


class Line:
    def __init__(self):
        self.text = ""
        self.kinds = []

    def add(self, text, kind):
        self.text += text
        self.kinds += [kind] * len(text)
        return self

    def decided(self, word, kind):
        """Adds a word whose first letter decides the rest."""
        return self.add(word[0], kind).add(word[1:], "frame")

    def end(self, kind):
        """`kind`: the class of the prediction that the answer is complete."""
        return self.add(" ", kind).add(".\n", "frame")


def copy(chance, _):
    line = Line().decided("copy", "free")
    letters = "".join(
        " " + "".join(chance.one_of("abcdefghijklmnopqrstuvwxyz") for _ in range(3)) for _ in range(2 + chance.below(3))
    )
    # Whether another group or the arrow comes is chance, too.
    for letter in letters:
        line.add(letter, "frame" if letter == " " else "free")
    line.add(" ", "frame").add(">", "free").add(" ", "frame")
    return line.add(letters[1:], "copy").end("copy")


def count(chance, _):
    first = chance.below(190)
    line = Line().decided("count", "free").add(" ", "frame").add(str(first), "free")
    separator = "free"  # after the first number: whether another digit comes is chance
    for number in range(first + 1, first + 5):
        before, now = str(number - 1), str(number)
        line.add(" ", separator)
        separator = "count"
        kept = 0 if len(now) != len(before) else sum(1 for a, b in zip(before, now) if a == b)
        carried = now.endswith("0")
        for place, digit in enumerate(now):
            line.add(digit, "count_carry" if carried and place >= kept else "count")
    return line.end("count")


def add(chance, _):
    digits = 2 + chance.below(2)
    low = 10 ** (digits - 1)
    a, b = (low + chance.below(9 * low) for _ in range(2))
    # Units first, so that the answer can be computed from left to right.
    left, right, total = (str(n)[::-1] for n in (a, b, a + b))
    line = Line().decided("add", "free").add(" ", "frame").add(left, "free")
    line.add("+", "free" if digits == 2 else "frame").add(right, "free").add("=", "frame")
    carries = 0
    for place, digit in enumerate(total):
        line.add(digit, f"add_{carries}")
        both = sum(int(n[place]) for n in (left, right) if place < len(n))
        carries = carries + 1 if both + (1 if carries else 0) > 9 else 0
    # If the last digit gives no carry, the model must see this to know that the sum ends.
    return line.end("frame" if len(total) > digits else f"add_{carries}")


def close(chance, _):
    kinds = [chance.below(4) for _ in range(1 + chance.below(6))]
    line = Line().decided("close", "free").add(" ", "frame").add("".join(OPEN[kind] for kind in kinds), "free")
    for distance, kind in enumerate(reversed(kinds), start=1):
        # Whether a bracket closes or another opens is chance up to the first closing bracket. All later brackets are determined.
        line.add(CLOSE[kind], "free" if distance == 1 else f"close_{distance}")
    return line.end("frame" if len(kinds) == 1 else f"close_{len(kinds)}")


def fact(chance, known):
    name, thing = chance.one_of(NAMES), chance.one_of(THINGS)
    known[name] = thing
    return Line().decided("fact", "free").add(" ", "frame").decided(name, "free").add(" owns ", "frame").decided(
        thing, "free"
    ).end("frame")


def ask(chance, known):
    name = chance.one_of(sorted(known))
    line = Line().decided("ask", "free").add(" ", "frame").decided(name, "free").add(" owns ", "frame")
    return line.decided(known.pop(name), "recall").end("frame")


def exercises(chance, size):
    """Lines of `size` bytes together or a little more. A fact is asked for within the next six lines or never."""
    lines, length, known, age = [], 0, {}, {}
    while length < size:
        for name in [name for name in known if len(lines) - age[name] > 6]:
            del known[name]
        kinds = [copy, count, add, close, fact] + ([ask, ask] if known else [])
        line = chance.one_of(kinds)(chance, known)
        for name in known:
            age.setdefault(name, len(lines))
        age = {name: age[name] for name in known}
        lines.append(line)
        length += len(line.text)
    return lines


def added_token(number, text):
    marks = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": number, "content": text, **marks, "special": number == 0}


def tokenizer(sentences=()):
    """Byte-level BPE without merges, with GPT-2's letters for bytes. Token 0 ends a text. Each of `sentences` is one token."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    for byte in range(256):
        letters.setdefault(byte, chr(256 + len(letters) - len(printable)))
    vocabulary = {"<|endoftext|>": 0, **{letters[byte]: byte + 1 for byte in range(256)}}
    numbered = [(0, "<|endoftext|>"), *enumerate(sentences, start=len(vocabulary))]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added_token(number, text) for number, text in numbered],
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocabulary,
            "merges": [],
        },
    }


def main():
    parser = argparse.ArgumentParser(description="Texts in which the difficulty of every character is known.")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--train-bytes", type=int, default=1_100_000)
    parser.add_argument("--held-out-bytes", type=int, default=40_000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    train = exercises(Chance(options.seed), options.train_bytes)
    held_out = exercises(Chance(options.seed + 1), options.held_out_bytes)
    (options.out / "train.txt").write_text("".join(line.text for line in train), encoding="ascii")
    (options.out / "held_out.txt").write_text("".join(line.text for line in held_out), encoding="ascii")
    (options.out / "tokenizer.json").write_text(json.dumps(tokenizer(), indent=1) + "\n", encoding="utf-8")
    with open(options.out / "held_out.labels.csv", "w", encoding="ascii", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["document", "begin", "end", "class", "difficulty"])
        place = 0
        for line in held_out:
            for kind in line.kinds:
                rows.writerow(["held_out.txt", place, place + 1, kind, "" if kind == "free" else steps_of(kind)])
                place += 1


if __name__ == "__main__":
    main()
