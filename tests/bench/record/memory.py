#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory of `record --jsonl`, or of `record --text` of one file, by the size of the text: it must not grow with the file.

    python3 tests/bench/record/memory.py --ponderscope build/release/bin/ponderscope --megabytes 10 100

Needs nothing but Python. The model is as small as one can be (one layer, d 16, random weights, the samples' tokenizer), so that the text is
what takes the time: lines of some kilobytes of made-up English, of several lengths. Peak memory is the system's (ru_maxrss) for a
process of its own. --unread N adds N bytes a line in a field that is not recorded, for files that are larger than a machine can score;
--word-bytes N makes the text of words of N letters that the tokenizer has as one token each, for more text in the same time. --plain: the
same documents as lines of one text file.
"""

import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
WIDTH, HEADS, INNER, CONTEXT = 16, 2, 16, 256


def long_words(word_bytes):
    draw = random.Random(1)
    return ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=word_bytes)) for _ in range(256 if word_bytes else 0)]


def write_checkpoint(folder, words):
    sample = TREE / "sample_models" / "vanilla-neox-1m"
    config = json.loads((sample / "config.json").read_text())
    config |= {
        "hidden_size": WIDTH, "intermediate_size": INNER, "num_attention_heads": HEADS, "num_hidden_layers": 1,
        "max_position_embeddings": CONTEXT, "torch_dtype": "float32",
    }  # fmt: skip
    tokenizer = json.loads((sample / "tokenizer.json").read_text())
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    tokenizer["added_tokens"] += [{"id": config["vocab_size"] + i, "content": word} | flags for i, word in enumerate(words)]
    config["vocab_size"] += len(words)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    vocab, layer = config["vocab_size"], "gpt_neox.layers.0."
    shapes = {
        "gpt_neox.embed_in.weight": [vocab, WIDTH], "embed_out.weight": [vocab, WIDTH],
        layer + "attention.query_key_value.weight": [3 * WIDTH, WIDTH], layer + "attention.query_key_value.bias": [3 * WIDTH],
        layer + "attention.dense.weight": [WIDTH, WIDTH], layer + "attention.dense.bias": [WIDTH],
        layer + "mlp.dense_h_to_4h.weight": [INNER, WIDTH], layer + "mlp.dense_h_to_4h.bias": [INNER],
        layer + "mlp.dense_4h_to_h.weight": [WIDTH, INNER], layer + "mlp.dense_4h_to_h.bias": [WIDTH],
    }  # fmt: skip
    for norm in (layer + "input_layernorm", layer + "post_attention_layernorm", "gpt_neox.final_layer_norm"):
        shapes |= {norm + ".weight": [WIDTH], norm + ".bias": [WIDTH]}
    draw = random.Random(0)
    header, data = {}, bytearray()
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        values = [draw.gauss(0, 0.3) for _ in range(count)]
        begin = len(data)
        data += struct.pack(f"<{count}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_lines(path, megabytes, unread, words, plain):
    words = words or (TREE / "sample_models" / "texts" / "passage.txt").read_text(encoding="utf-8").split()
    draw = random.Random(megabytes)
    left, noise = megabytes * 1_000_000, "x" * unread
    with open(path, "w", encoding="utf-8") as file:
        while left > 0:
            # Sentences of the passage in another order; most documents are short, some long.
            begin = draw.randrange(len(words))
            count = min(int(draw.paretovariate(1.2) * 200), 8000)
            text = " ".join(words[(begin + i) % len(words)] for i in range(count))[:left]
            file.write((text + "." if plain else json.dumps({"text": text + ".", "unread": noise})) + "\n")
            left -= len(text)
    return os.path.getsize(path)


def record(program, checkpoint, lines, trace, plain):
    began = time.monotonic()
    process = subprocess.Popen(
        [program, "record", str(checkpoint), "--text" if plain else "--jsonl", str(lines), "--record", "basic", "--batch", "32", "--context", str(CONTEXT),
         "--stride", str(CONTEXT), "-o", str(trace)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"record ended with status {status}")
    return usage.ru_maxrss / 1024, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ponderscope", default=str(TREE / "build" / "release" / "bin" / "ponderscope"))
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 100], help="of text; the first is what others stand against")
    parser.add_argument("--unread", type=int, default=0, help="bytes a line in a field that is not recorded")
    parser.add_argument("--word-bytes", type=int, default=0, help="letters a word; absent: English")
    parser.add_argument("--plain", action="store_true", help="one text file by --text")
    given = parser.parse_args()
    words = long_words(given.word_bytes)
    print(f"load {os.getloadavg()[0]:.1f}; bytes unread a line: {given.unread}")
    print(f"{'text':>8}{'file':>10}{'trace':>10}{'seconds':>9}{'peak memory':>13}{'to the first':>14}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_checkpoint(folder / "model", words)
        first = None
        for megabytes in given.megabytes:
            lines, trace = folder / "lines.jsonl", folder / "trace.ponder"
            size = write_lines(lines, megabytes, given.unread, words, given.plain)
            peak, seconds = record(given.ponderscope, folder / "model", lines, trace, given.plain)
            first = first or peak
            print(
                f"{megabytes:5} MB{size / 1e6:7.0f} MB{trace.stat().st_size / 1e6:7.0f} MB{seconds:9.1f}{peak:10.0f} MB{peak / first:14.3f}",
                flush=True,
            )
            trace.unlink()


if __name__ == "__main__":
    main()
