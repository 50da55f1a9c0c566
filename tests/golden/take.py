#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes reference cases into this folder: weights and config as they are, of the reference arrays the results and
what is small. Large intermediates stay behind; they help to find a fault, not to see that there is one.

    tests/golden/take.py REFERENCES/CASE...
"""
import json
import pathlib
import shutil
import struct
import sys

RESULTS = {"logits", "logits_tail", "logits_sequential", "initial_state"}
SMALL = 5000  # bytes


def take(case: pathlib.Path, folder: pathlib.Path) -> None:
    target = folder / case.name
    for source in sorted(path for path in case.rglob("*") if path.is_file() and path.name != "golden.safetensors"):
        copy = target / source.relative_to(case)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    with open(case / "golden.safetensors", "rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(length))
        data = stream.read()
    kept, body = {}, b""
    if "__metadata__" in header:
        kept["__metadata__"] = header.pop("__metadata__")
    for name, entry in sorted(header.items()):
        begin, end = entry["data_offsets"]
        if name in RESULTS or end - begin <= SMALL:
            kept[name] = {**entry, "data_offsets": [len(body), len(body) + end - begin]}
            body += data[begin:end]
    text = json.dumps(kept, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(target / "golden.safetensors", "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text + body)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for argument in sys.argv[1:]:
        take(pathlib.Path(argument), pathlib.Path(__file__).parent)
