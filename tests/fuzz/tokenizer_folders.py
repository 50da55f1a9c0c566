#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares our tokenizer with transformers' on made-up checkpoint folders: what tokenizer_config.json, special_tokens_map.json and
added_tokens.json say beside a tokenizer.json, or beside vocab.json and merges.txt.

  tokenizer_folders.py TOKENIZE_LINES

TOKENIZE_LINES is the program of that name in the build folder's tests/. Ends with 0 when all ids are equal, 1 otherwise, and with
77 (skipped, for ctest) without transformers.
"""
import copy
import itertools
import json
import os
import sys
import tempfile

from tokenizer_differential import ours

TEXTS = ["ab <new>  <s>ab<|end|> [p] c", "a<s><x> [p]b ew new", "<new><new> <s> < s>", "ab c<|endoftext|>"]
VOCABULARY = ["<|end|>", "a", "b", "c", "\u0120", "<", ">", "s", "/", "ab", "[", "]", "p", "n", "e", "w", "x", "|", "d", "<s>"]


def token(content, **flags):
    return {"content": content, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": False, **flags}


def tokenizers():
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    plain = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
             "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
             "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                       "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                       "vocab": {text: number for number, text in enumerate(VOCABULARY)}, "merges": ["a b"]}}
    template = copy.deepcopy(plain)
    template["added_tokens"] = [{"id": 0, **token("<|end|>", special=True)},
                                {"id": 20, **token("<new>", lstrip=True, normalized=True)}]
    sequence = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    template["post_processor"] = {
        "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|end|>", "type_id": 0}}, sequence[0]], "pair": sequence,
        "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [0], "tokens": ["<|end|>"]}}}
    return plain, template, {**template, "normalizer": {"type": "NFC"}}


def configs(free):
    """Added tokens from the first free id on: of ids that leave a gap transformers makes others, and we do not."""
    return [
        {}, {"bos_token": "<s>"}, {"bos_token": "<s>", "add_bos_token": True}, {"bos_token": "<s>", "add_bos_token": False},
        {"bos_token": "<s>", "eos_token": "<|end|>", "add_bos_token": True, "add_eos_token": True},
        {"eos_token": "<|end|>", "add_eos_token": True},
        {"added_tokens_decoder": {str(free): token("<x>", special=True),
                                  str(free + 1): token("[p]", lstrip=True, normalized=True)}},
        {"added_tokens_decoder": {"20": token("<new>", rstrip=True)}},
        {"added_tokens_decoder": {"0": token("<|end|>", special=True), "20": token("<new>", special=True),
                                  "21": token("ew", single_word=True)}},
        {"added_tokens_decoder": {"19": token("<s>", special=True)}, "bos_token": "<s>", "add_bos_token": True},
        {"bos_token": "<zz>"}, {"extra_special_tokens": ["ab"]},
        {"bos_token": {"__type": "AddedToken", **token("<s>", lstrip=True)}},
        {"eos_token": "<|end|>", "pad_token": "<pad>", "unk_token": "c"},
        {"added_tokens_decoder": {}, "bos_token": "<s>"}]


def added_tokens(free):
    return None, {"<new>": 20, "[p]": 21}, {"[p]": free}, {"<|end|>": 0, "<s>": 19}


MAPS = [None, {"bos_token": "<s>"}, {"eos_token": token("<s>", lstrip=True), "additional_special_tokens": ["c"]}]


def write(folder, name, content):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))


def folders():
    """What each is, and its files."""
    everything = ((base, *rest) for base in tokenizers() for free in [20 + bool(base["added_tokens"])]
                  for rest in itertools.product(configs(free), MAPS, added_tokens(free)))
    for base, config, special, added in everything:
        files = {"tokenizer.json": base, "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", **config},
                 "special_tokens_map.json": special, "added_tokens.json": added}
        yield {name: content for name, content in files.items() if content is not None}
    vocabulary = {text: number for number, text in enumerate([*VOCABULARY, "<|endoftext|>"])}
    for config in configs(21):
        if "20" not in config.get("added_tokens_decoder", {}):  # which is <|endoftext|> here
            yield {"vocab.json": vocabulary, "merges.txt": "#version: 0.2\na b\n",
                   "tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", **config}}


def main():
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    try:
        from transformers import AutoTokenizer, PreTrainedTokenizerFast
    except ImportError:
        print("skipped: the Python package `transformers` is not installed")
        return 77
    count = differ = 0
    for files in folders():
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                write(folder, name, content)
            kind = PreTrainedTokenizerFast if "tokenizer.json" in files else AutoTokenizer
            theirs = [kind.from_pretrained(folder)(text)["input_ids"] for text in TEXTS]
            try:
                mine = [line.get("ids", line.get("error")) for line in ours(sys.argv[1], folder, TEXTS, True)]
            except Exception as error:  # the program ended
                mine = [str(error)]
        count += 1
        if mine != theirs:
            differ += 1
            print({name: content for name, content in files.items() if "config" in name or "map" in name or "added" in name})
            print("  ours", mine, "\n  theirs", theirs)
    print(f"{count} folders, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
