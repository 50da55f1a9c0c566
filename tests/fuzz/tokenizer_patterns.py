#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what a regular expression of a tokenizer.json matches, character by character, with the Hugging Face `tokenizers` wheel.

  tokenizer_patterns.py TOKENIZE_LINES [PATTERN...]

TOKENIZE_LINES is the program of that name in the build folder's tests/. Each pattern takes away what it matches of the characters
below U+20000 that both versions of Unicode know alike. Ends with 0 when nothing differs, 1 otherwise, and with 77 (skipped, for
ctest) without the wheel.
"""
import json
import os
import sys
import tempfile

from tokenizer_differential import ours

POSIX = ["alpha", "digit", "alnum", "upper", "lower", "punct", "space", "blank", "cntrl", "graph", "print", "xdigit", "word", "ascii"]
CATEGORIES = ["Letter", "Uppercase_Letter", "Lowercase Letter", "titlecase-letter", "ModifierLetter", "Other_Letter", "Mark",
              "Nonspacing_Mark", "Spacing_Mark", "Enclosing_Mark", "Number", "Decimal_Number", "Letter_Number", "Other_Number",
              "Punctuation", "Connector_Punctuation", "Dash_Punctuation", "Open_Punctuation", "Close_Punctuation",
              "Initial_Punctuation", "Final_Punctuation", "Other_Punctuation", "Symbol", "Math_Symbol", "Currency_Symbol",
              "Modifier_Symbol", "Other_Symbol", "Separator", "Space_Separator", "Line_Separator", "Paragraph_Separator",
              "Control", "Format", "Private_Use"]
SHORT = ["L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "N", "Nd", "Nl", "No", "P", "Pd", "S", "Sc", "Z", "Cc", "Han", "Latin", "Thai"]
PATTERNS = ([f"[[:{name}:]]" for name in POSIX] + [f"[[:^{name}:]]" for name in ("alpha", "digit", "upper", "lower", "cntrl", "space")] +
            [f"\\p{{{name}}}" for name in [*POSIX, *CATEGORIES, *SHORT, "Alphabetic", "Uppercase", "Lowercase", "White_Space"]
             if name != "ascii"] +
            [f"[\\p{{{name}}}]" for name in ("Word", "Alnum", "Punct", "Letter")] +
            ["\\P{Letter}", "[^\\P{Letter}]", "\\p{^Punct}", "\\P{Word}", "[\\P{Alpha}]", "[^[:punct:]]", "[[:alpha:]_]",
             "[^\\p{L}[:punct:]]", "\\P{Han}", "[\\p{^Han}]"] +
            ["\\w", "\\W", "\\s", "\\S", "\\d", "\\D", "\\h", "\\H", "[\\w]", "[^\\w]", "[\\s]", "[\\S]", "[\\d]", "[\\D]", "."] +
            # What Oniguruma's Ruby means by quantifiers, options, escapes and sets within sets.
            ["\\p{N}{1,3}+", "\\p{N}{2}+", "(?:1|3){1,2}+", "1\\p{N}{2}?", "a{3,1}", "a{3,1}+", "a{2}{3}", "a{,2}", "a{,}", "a{x}", "a**",
             "a+?+", "a??+", "a(?i)b|C", "(a(?i)b|C)D", "a(?#x)+", "(?x)a b # c\n+", "(?x: a [b c] )D", "\\Ga", "a\\Gb", "(?>a+)b", "\\v",
             "[\\v]", "\\Q", "\\O", "\\N", "[\\Q]", "[a-c[x-z]]", "[a[^b]]", "[^a[^b]]", "[[a]-z]", "[a-z&&[^aeiou]]", "[^a-c&&b-d]",
             "[a&&]", "[^&&a]", "[a&&^b]", "[^[a-z]&&[^aeiou]]", "[a-z&&[^b-d]&&[^x]]", "[\\W]", "[^\\W_]", "[[:^punct:]]", "[^[:^punct:]a]",
             "(?i:[^a[B]])", "[\\s&&[^\\n]]", "[\\p{L}&&\\p{Lu}]"] +
            ["\\b.", ".\\b", "\\B.", ".\\B", "\\b", "\\bA\\b", "(?i)\\p{Lu}", "(?i)[a-z]", "(?i:k)", "\\R"])

# Marks and small letters that became alphabetic, lower case or of another kind of mark between Unicode 14 and 16.
CHANGED = {*range(0x363, 0x370), 0xC04, 0xF82, 0xF83, 0x10FC, *range(0x1DD3, 0x1DE7), *range(0xA7F2, 0xA7F5), 0xAB69, 0x11080, 0x11081,
           0x1171E}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def left(program, folder, pattern, texts):
    """The ids of what a pattern leaves of each text: ours, or the error, and theirs."""
    from tokenizers import Tokenizer, pre_tokenizers
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    content = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
               "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                   {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Removed", "invert": False}, BYTE_LEVEL]},
               "post_processor": None, "decoder": BYTE_LEVEL,
               "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                         "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                         "vocab": {letter: i for i, letter in enumerate(letters)}, "merges": []}}
    name = os.path.join(folder, "tokenizer.json")
    with open(name, "w", encoding="utf-8") as file:
        json.dump(content, file)
    theirs = [encoding.ids for encoding in Tokenizer.from_file(name).encode_batch(texts)]
    try:
        mine = [line.get("ids", line.get("error")) for line in ours(program, name, texts, False)]
    except Exception as error:  # the program ended
        mine = [str(error)] * len(texts)
    return mine, theirs


def main():
    try:
        import tokenizers  # noqa: F401
    except ImportError:
        print("skipped: the Python package `tokenizers` is not installed")
        return 77
    program, patterns = sys.argv[1], sys.argv[2:] or PATTERNS
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        alike = [chr(c) for c in range(1, 0x20000) if not 0xD800 <= c < 0xE000 and c not in CHANGED]
        assigned = left(program, folder, "\\p{Cn}", alike)
        alike = [c for c, mine, theirs in zip(alike, *assigned) if mine and theirs]
        if len(alike) < 80000:
            print(f"\\p{{Cn}} leaves {len(alike)} characters")
            return 1
        plain = ["".join(alike[begin:begin + 0x400]) for begin in range(0, len(alike), 0x400)]
        beside = ["A".join(text) for text in plain] + ["-".join(text) for text in plain]  # a letter, and none
        for pattern in patterns:
            texts = plain + beside if "\\b" in pattern.lower() else plain
            unequal = [(text, mine) for text, mine, theirs in zip(texts, *left(program, folder, pattern, texts)) if mine != theirs]
            if unequal:
                differ += 1
                text, mine = unequal[0]
                print(f"{pattern}:", mine if isinstance(mine, str) else f"{len(unequal)} of {len(texts)} texts, first {text[:20]!r}")
    print(f"{len(patterns)} patterns over {len(alike)} characters, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
