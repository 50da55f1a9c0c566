#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes sample_models/tokenizer/tokenizer.json: byte-level BPE with the pre-tokenizer of GPT-NeoX.

    make_tokenizer.py TEXTS OUT.json [--vocab-size 2048] [--held-out NAME ...]

TEXTS is a folder of UTF-8 text files. Texts named by --held-out are left out, so that no merge is learned from the texts
on which the held-out NLL of a model is measured. Needs the `tokenizers` wheel of the version in resources/build/versions.env.
The same texts and version give the same bytes.
"""
import argparse
import os
import pathlib
import sys

# The trainer counts words in parallel. One thread gives the same order on every machine.
os.environ["TOKENIZERS_PARALLELISM"] = "false"


def pinned_version() -> str:
    versions = pathlib.Path(__file__).resolve().parent.parent / "resources" / "build" / "versions.env"
    for line in versions.read_text(encoding="utf-8").splitlines():
        if line.startswith("TOKENIZERS_VERSION="):
            return line.split("=", 1)[1].strip()
    sys.exit(f"{versions}: expected a line TOKENIZERS_VERSION=..., found none.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=pathlib.Path, help="folder of *.txt files")
    parser.add_argument("out", type=pathlib.Path, help="tokenizer.json to write")
    parser.add_argument("--vocab-size", type=int, default=2048)
    parser.add_argument("--held-out", nargs="*", default=[], metavar="NAME", help="file names that are left out")
    arguments = parser.parse_args()

    try:
        import tokenizers
    except ImportError:
        sys.exit(f"The Python package tokenizers is not installed; install tokenizers=={pinned_version()}.")
    if tokenizers.__version__ != pinned_version():
        sys.exit(f"Expected tokenizers {pinned_version()} (resources/build/versions.env), found {tokenizers.__version__}.")

    files = sorted(path for path in arguments.texts.glob("*.txt"))
    missing = sorted(set(arguments.held_out) - {path.name for path in files})
    if missing:
        sys.exit(f"{arguments.texts}: the held-out texts {', '.join(missing)} are not there.")
    files = [path for path in files if path.name not in arguments.held_out]
    if not files:
        sys.exit(f"{arguments.texts}: expected *.txt files, found none.")

    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    # As in EleutherAI's GPT-NeoX and Pythia: NFC, then the GPT-2 split into words, then bytes as printable characters.
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, use_regex=True)
    special = [AddedToken(text, normalized=False, special=True) for text in ("<|endoftext|>", "<|padding|>")]
    trainer = trainers.BpeTrainer(
        vocab_size=arguments.vocab_size,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train([str(path) for path in files], trainer)
    if tokenizer.get_vocab_size() != arguments.vocab_size:
        sys.exit(f"{arguments.texts}: too little text for a vocabulary of {arguments.vocab_size}, "
                 f"only {tokenizer.get_vocab_size()} tokens could be made.")

    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    beside = arguments.out.with_suffix(".json.part")
    tokenizer.save(str(beside), pretty=True)
    os.replace(beside, arguments.out)
    print(f"{arguments.out}: {arguments.vocab_size} tokens from {len(files)} texts, tokenizers {tokenizers.__version__}")


if __name__ == "__main__":
    main()
