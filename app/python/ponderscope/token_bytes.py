# SPDX-License-Identifier: GPL-3.0-or-later
"""The bytes of the tokens of a Hugging Face tokenizer."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checkpoint import file_of
from .columns import byte_spans
from .tokenizer_digest import tokenizer_digest

PROBE = "he w123 it's 3.14159  two\n\n\tfour    \u4f60\u597d na\u00efve e\u0301 \ufb01 HTTPServer_v2 x*y // 7\r\n"
"""A text that tokenizers cut differently: digits, contractions, blanks, scripts, forms of letters, code."""


class TokenBytes:
    """Bytes by id. Byte-level (GPT-2's alphabet) and SentencePiece-style vocabularies: exact, even for parts of characters. Other
    vocabularies: the tokenizer's decoding of the token alone."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._added = {i: str(t).encode("utf-8") for i, t in getattr(tokenizer, "added_tokens_decoder", {}).items()}
        backend = getattr(tokenizer, "backend_tokenizer", None)
        description = json.loads(backend.to_str()) if backend is not None else {}
        decoder = json.dumps(description.get("decoder"), ensure_ascii=False)
        self._alphabet = _byte_alphabet() if '"ByteLevel"' in decoder else None
        self._metaspace = "\u2581" in decoder
        self.digest = tokenizer_digest(description) if description else ""

    def doubt(self, text: str, add_special: bool) -> str:
        """A notice if this tokenizer cuts a text differently from its tokenizer.json, which the engine reads; empty: it does not.
        Some classes of transformers rebuild a tokenizer without parts of the file."""
        file = file_of(str(getattr(self._tokenizer, "name_or_path", "") or ""), "tokenizer.json")
        if file is None:
            return ""
        from tokenizers import Tokenizer

        plain, name = Tokenizer.from_file(str(file)), type(self._tokenizer).__name__
        special = add_special and not name.startswith("GPTNeoXTokenizer")  # as the engine does for GPT-NeoX
        for part in (PROBE, text[:10_000]):
            mine = self._tokenizer(part, add_special_tokens=add_special, verbose=False)["input_ids"]
            theirs = plain.encode(part, add_special_tokens=special).ids
            if mine != theirs:
                at = next((i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b), min(len(mine), len(theirs)))
                return (
                    f"{name} cuts {part[:40]!r} otherwise than the tokenizer.json beside it, which the engine reads: from token {at} on "
                    f"into {mine[at : at + 8]}, not {theirs[at : at + 8]}."
                )
        return ""

    def __call__(self, token: int) -> bytes:
        if token in self._added:
            return self._added[token]
        text = self._tokenizer.convert_ids_to_tokens(token)
        if text is None:
            return b""
        if self._alphabet is not None and all(c in self._alphabet for c in text):
            return bytes(self._alphabet[c] for c in text)
        if self._metaspace:
            byte = re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", text)
            return bytes([int(byte[1], 16)]) if byte else text.replace("\u2581", " ").encode("utf-8")
        return self._tokenizer.decode([token]).encode("utf-8")

    def encode(self, text: str, add_special: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ids of a text, and the byte span [begin, end) of each id."""
        wanted: dict[str, Any] = {"add_special_tokens": add_special, "return_attention_mask": False, "return_special_tokens_mask": True}
        fast = getattr(self._tokenizer, "is_fast", False)
        encoding = self._tokenizer(text, return_offsets_mapping=fast, verbose=False, **wanted)
        ids = np.asarray(encoding["input_ids"], np.int64)
        data = text.encode("utf-8")
        offsets = encoding["offset_mapping"] if fast else None
        special = encoding["special_tokens_mask"]
        # If the tokens' bytes together are the text, they give the spans, even of split characters. (Offsets have whole
        # characters only, and some tokenizers leave out blanks.)
        pieces = [b"" if s else self(i) for i, s in zip(ids.tolist(), special)]
        joined = b"".join(pieces)
        first = next((i for i, piece in enumerate(pieces) if piece), None)
        if self._metaspace and joined[:1] == b" " and joined[1:] == data and first is not None:
            pieces[first], joined = pieces[first][1:], joined[1:]  # the blank that SentencePiece puts in front
        if joined == data:
            ends = np.cumsum([len(piece) for piece in pieces])
            return ids, np.stack([ends - [len(piece) for piece in pieces], ends], 1).astype(np.int64)
        if offsets is None:
            raise ValueError(
                "this tokenizer does not say which part of the text a token stands for; load its fast version "
                "(AutoTokenizer.from_pretrained(..., use_fast=True)) or record ids."
            )
        return ids, byte_spans(text, offsets)


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's printable character for each byte."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("\u00a1"), ord("\u00ac") + 1), *range(ord("\u00ae"), ord("\u00ff") + 1)]
    others = [b for b in range(256) if b not in printable]
    return {**{chr(b): b for b in printable}, **{chr(256 + i): b for i, b in enumerate(others)}}
