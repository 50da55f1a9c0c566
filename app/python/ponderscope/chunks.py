# SPDX-License-Identifier: GPL-3.0-or-later
"""Cuts the values of a signal into chunks of consecutive tokens, as core/trace/writing/chunk_buffer.h does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import TRACE_TYPES

FULL_BYTES = 256 << 10
"""Size of a full chunk. With pages of 16 KiB, less than 64 KiB wastes space. Reading one token may read a whole chunk."""
MAX_TOKEN_BYTES = 256 << 20
TRIMMED_TOKENS = 64
"""Tokens of a piece of a trimmed signal, which is stored without the zeros at its end."""


@dataclass(frozen=True)
class Piece:
    first: int
    values: NDArray[Any]
    grows: bool
    """This piece replaces the tail that was written before, if any."""
    tail: bool
    """This piece is not full: it is written again, longer, when more tokens have come."""

    @property
    def dtype(self) -> str:
        return TRACE_TYPES[self.values.dtype.newbyteorder("<")]


class ChunkBuffer:
    """Collects one signal of one sequence. flush() gives the tokens after the last full chunk as the tail."""

    def __init__(self) -> None:
        self._parts: list[NDArray[Any]] = []
        self._tokens = 0
        self._first = 0
        self._changed = False

    def append(self, values: NDArray[Any], first: int) -> Iterator[Piece]:
        if not len(values):
            return
        token_bytes = values.nbytes // len(values)
        if token_bytes > MAX_TOKEN_BYTES:
            raise ValueError("the values of a signal at one token must have at most 256 MB.")
        full = max(1, FULL_BYTES // max(1, token_bytes))
        if not self._tokens:
            self._first = first
        at = 0
        while at < len(values):
            now = min(len(values) - at, full - self._tokens)
            self._parts.append(values[at : at + now])
            self._tokens += now
            self._changed = True
            at += now
            if self._tokens == full:
                yield Piece(self._first, np.concatenate(self._parts), grows=True, tail=False)
                self._parts, self._tokens, self._changed = [], 0, False
                self._first = first + at
        if self._parts and self._changed:
            # A copy, because the caller's memory may change before the tail is written.
            self._parts = [np.concatenate(self._parts)]

    def flush(self) -> Iterator[Piece]:
        if self._changed:
            self._changed = False
            yield Piece(self._first, self._parts[0], grows=True, tail=True)


def trimmed_pieces(values: NDArray[Any], first: int) -> Iterator[Piece]:
    """Pieces of a signal whose last axis is `back`, TRIMMED_TOKENS tokens each. Zeros at the end of `back` are cut off."""
    for at in range(0, len(values), TRIMMED_TOKENS):
        piece = values[at : at + TRIMMED_TOKENS]
        used = np.flatnonzero((piece != 0).reshape(-1, piece.shape[-1]).any(axis=0))
        kept = int(used[-1]) + 1 if used.size else 1
        yield Piece(first + at, np.ascontiguousarray(piece[..., :kept]), grows=False, tail=False)
