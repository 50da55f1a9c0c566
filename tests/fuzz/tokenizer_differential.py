#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares our tokenizer with the Hugging Face `tokenizers` wheel on random strings.

  tokenizer_differential.py TOKENIZE_LINES TOKENIZER... [--count N] [--seed S] [--texts FOLDER]

TOKENIZE_LINES is the program of that name in the build folder's tests/. Ends with 0 when nothing differs, 1 otherwise, and with
77 (skipped, for ctest) when the wheel or a tokenizer file is absent. Each string is checked for: equal ids, equal decoding,
spans in order and without overlap, and, for byte-level tokenizers, spans that cover the text.
"""
import argparse
import glob
import json
import os
import random
import subprocess
import sys
import unicodedata

EMOJI = ["👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "1️⃣", "🧑🏿‍🚀", "☝️", "🦙", "🤷‍♂️"]
PIECES = ["'s", "'S", "'ſ", "'LL", "'ve", "'RE", "\r\n", "\n\n\n", "\t \t", "   ", " \u00a0 ", "\u3000", "\u2028", "\u180e",
          "e\u0301", "A\u030a\u0323", "ﬁ", "Å", "한", "\u1112\u1161\u11ab", "가\u11a8", "\u0958", "\u212b", "½", "²", "Ⅷ",
          "٣", "１２", "1234567", "3.14e-10", "<s>", "</s>", "<unk>", "<0x0A>", "<|endoftext|>", "<|im_start|>",
          "<|begin_of_text|>", "<|eot_id|>", "<think>", "</think>", "▁", "▁▁", "Ġ", "Ċ", "_", "…", "—", "\u200b", "\u200d",
          "\ufeff", "\ufffd", "\x00", "\x1c", "\x7f", "\x85", "\u0e33", "क्ष", "\u0f71\u0f72", "𝒳", "𠀀"]


def scripts(folder):
    """Texts to cut words from, of as many scripts as there are."""
    texts = []
    for name in sorted(glob.glob(os.path.join(folder, "*.txt"))) if folder else []:
        with open(name, encoding="utf-8", newline="") as file:
            texts.append(file.read())
    return texts or ["The quick brown fox jumps over the lazy dog. Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich."]


def random_character(rng):
    kind = rng.randrange(6)
    while True:
        if kind == 0:
            c = chr(rng.randrange(0x20, 0x7F))
        elif kind == 1:
            c = chr(rng.randrange(0x00, 0x20))
        elif kind == 2:
            c = chr(rng.randrange(0x80, 0x800))
        elif kind == 3:
            c = chr(rng.randrange(0x800, 0x10000))
        elif kind == 4:
            c = chr(rng.randrange(0x10000, 0x20000))
        else:
            c = rng.choice(" \n\t'.,-!0123456789")
        # Unassigned code points differ between versions of Unicode.
        if unicodedata.category(c) not in ("Cs", "Cn"):
            return c


def random_string(rng, texts):
    parts = []
    for _ in range(rng.randrange(1, 12)):
        kind = rng.randrange(8)
        if kind < 3:
            text = rng.choice(texts)
            begin = rng.randrange(len(text))
            parts.append(text[begin:begin + rng.randrange(1, 40)])
        elif kind == 3:
            parts.append(rng.choice(EMOJI))
        elif kind == 4:
            parts.append(rng.choice(PIECES))
        elif kind == 5:
            parts.append("".join(random_character(rng) for _ in range(rng.randrange(1, 12))))
        elif kind == 6:
            parts.append(random_character(rng) * rng.randrange(1, 60))
        else:
            parts.append(unicodedata.normalize(rng.choice(["NFC", "NFD", "NFKD"]), rng.choice(PIECES + EMOJI)))
        if rng.random() < 0.4:
            parts.append(" ")
    return "".join(parts)


def ours(program, tokenizer, texts, special):
    arguments = [program, tokenizer] + (["--special"] if special else [])
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run(arguments, input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.decode().split("\n")[:-1]]


def check(text, mine, theirs, decoded, covers):
    if "error" in mine:
        return mine["error"]
    if mine["ids"] != theirs:
        return f"ids {mine['ids']} but {theirs}"
    if mine["decoded"].encode("latin-1").decode("utf-8", "replace") != decoded and "\ufffd" not in decoded:
        return f"decoded {mine['decoded'].encode('latin-1')} but {decoded!r}"
    size = len(text.encode())
    last = 0
    for begin, end in zip(mine["begin"], mine["end"]):
        if begin < last or end < begin or end > size or (covers and begin != last):
            return f"spans {list(zip(mine['begin'], mine['end']))} of {size} bytes"
        last = end
    if covers and last != size:
        return f"spans end at {last} of {size} bytes"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("tokenizers", nargs="+")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", default="")
    options = parser.parse_args()
    try:
        import tokenizers
    except ImportError:
        print("skipped: the Python package `tokenizers` is not installed")
        return 77
    if not all(os.path.isfile(name) for name in options.tokenizers):
        print("skipped: reference tokenizers are absent")
        return 77
    texts = scripts(options.texts)
    different = 0
    for name in options.tokenizers:
        theirs = tokenizers.Tokenizer.from_file(name)
        theirs.no_padding()
        theirs.no_truncation()
        with open(name, encoding="utf-8") as file:
            content = json.load(file)
        # Where bytes have no token, the original leaves them out.
        covers = ('"ByteLevel"' in json.dumps(content.get("pre_tokenizer"))
                  and all(letter in content["model"]["vocab"]
                          for letter in tokenizers.pre_tokenizers.ByteLevel.alphabet()))
        rng = random.Random(options.seed)
        cases = [random_string(rng, texts) for _ in range(options.count)]
        wrong = 0
        older = 0
        form = (content.get("normalizer") or {}).get("type")
        for special in (False, True):
            for text, mine, reference in zip(cases, ours(options.program, name, cases, special),
                                             theirs.encode_batch(cases, add_special_tokens=special)):
                problem = check(text, mine, reference.ids, theirs.decode(reference.ids, skip_special_tokens=False), covers)
                # The wheel (0.23) normalises by tables from before Unicode 11: newer combining marks keep their order. Given
                # the text as Python normalises it, it must agree.
                if problem and form in ("NFC", "NFD", "NFKC", "NFKD"):
                    normal = unicodedata.normalize(form, text)
                    if mine.get("ids") == theirs.encode(normal, add_special_tokens=special).ids:
                        older += 1
                        continue
                if problem:
                    wrong += 1
                    if wrong <= 5:
                        print(f"{name}: {text!r}: {problem}")
        print(f"{name}: {2 * len(cases) - wrong} of {2 * len(cases)} equal (seed {options.seed})"
              + (f", {older} of them only after Python's {form}" if older else ""))
        different += wrong
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
