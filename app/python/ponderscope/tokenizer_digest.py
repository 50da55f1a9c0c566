# SPDX-License-Identifier: GPL-3.0-or-later
"""The digest of what a tokenizer does. core/text/tokenizer_digest.cpp computes the same.

It is the SHA-256 of these parts, without separators:

1. the vocabulary without added tokens, by id: "ID LENGTH", a newline, the text (lengths in bytes of UTF-8, decimal);
2. the added tokens, by the id that the library `tokenizers` gives them, each as compact JSON:
   [id, content, normalized, lstrip, rstrip, single_word]; normalized is false without a normalizer;
3. 64 hexadecimal digits, the SHA-256 of the merges in order, each as "LENGTH LENGTH", a newline, both texts; for a
   Unigram model the SHA-256 of the scores by id (binary64, big-endian);
4. compact JSON, keys sorted, not escaped: {"model": ..., "normalizer": ..., "pre_tokenizer": ...}. "model" has the other keys of
   the model (byte_fallback, ignore_merges, unk_token, ...), except type, dropout and values that are null, false, 0 or empty.
   The components are as in tokenizer.json without values null and false, without use_regex and split if true, without trim_offsets
   of ByteLevel and str_rep of Metaspace. add_prefix_space of Metaspace becomes prepend_scheme (always or never). Nested
   Sequences become one {"sequence": [...]}. A Sequence with one part becomes this part, an empty Sequence null.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any


def tokenizer_digest(description: Mapping[str, Any]) -> str:
    """SHA-256 of the content of a tokenizer.json."""
    model = description["model"]
    ranks = hashlib.sha256()
    vocabulary = model["vocab"]
    if isinstance(vocabulary, Mapping):
        texts = {i: text for text, i in vocabulary.items()}
    else:  # Unigram: (text, score) by id
        texts = {i: text for i, (text, _) in enumerate(vocabulary)}
        ranks.update(b"".join(struct.pack(">d", score) for _, score in vocabulary))
    for merge in model.get("merges") or ():
        ranks.update(_sized(*(merge.split(" ", 1) if isinstance(merge, str) else merge)))
    parts = {name: _canonical(description.get(name)) for name in ("normalizer", "pre_tokenizer")}
    added = sorted(description.get("added_tokens") or (), key=lambda token: token["id"])
    digest = hashlib.sha256()
    for i in sorted(texts.keys() - {token["id"] for token in added}):
        digest.update(f"{i} ".encode() + _sized(texts[i]))
    for token in added:
        normalized = bool(token.get("normalized", not token.get("special", False))) and parts["normalizer"] is not None
        flags = (bool(token.get(flag, False)) for flag in ("lstrip", "rstrip", "single_word"))
        digest.update(_json([token["id"], token["content"], normalized, *flags]))
    settings = {key: value for key, value in model.items() if key not in ("vocab", "merges", "type", "dropout") and value}
    digest.update(ranks.hexdigest().encode() + _json({"model": settings, **parts}))
    return digest.hexdigest()


def _sized(*texts: str) -> bytes:
    """Lengths in bytes, a newline, and the bytes."""
    parts = [text.encode("utf-8") for text in texts]
    return " ".join(str(len(part)) for part in parts).encode() + b"\n" + b"".join(parts)


def _canonical(part: Any) -> Any:
    """One form for equivalent components: without keys that have no effect, and with Sequences flattened."""
    if isinstance(part, list):
        return [_canonical(item) for item in part]
    if not isinstance(part, Mapping):
        return part
    items = dict(part)
    kind = items.get("type")
    if kind == "Sequence":
        name = "normalizers" if "normalizers" in items else "pretokenizers"
        inner = [one for one in map(_canonical, items[name]) if one is not None]
        flat = [piece for one in inner for piece in (one["sequence"] if "sequence" in one else [one])]
        return None if not flat else flat[0] if len(flat) == 1 else {"sequence": flat}
    if kind == "ByteLevel":
        items.pop("trim_offsets", None)
    if kind == "Metaspace":
        items.pop("str_rep", None)
        prefix = items.pop("add_prefix_space", True)
        items.setdefault("prepend_scheme", "always" if prefix else "never")
    usual = {"use_regex": True, "split": True}
    return {key: _canonical(value) for key, value in items.items() if value is not None and value is not usual.get(key, False)}


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
