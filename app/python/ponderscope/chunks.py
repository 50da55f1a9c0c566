# SPDX-License-Identifier: GPL-3.0-or-later
"""Packed arrays: consecutive tokens of a signal in pieces that are worth a BLOB, as core/trace/writing/chunk_buffer.h cuts them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import TRACE_TYPES

FULL_BYTES = 256 << 10
"""Of a full chunk: at pages of 16 KiB less than 64 KiB wastes space, and reading one token reads a chunk at worst."""
MAX_TOKEN_BYTES = 256 << 20
TRIMMED_TOKENS = 64
"""Of a piece that is stored without the zeros it ends in."""


@dataclass(frozen=True)
class Piece:
    first: int
    values: NDArray[Any]
    grows: bool
    """Replaces the tail that was written before, if there was one."""
    tail: bool
    """Not full: will be written again when more has come."""

    @property
    def dtype(self) -> str:
        return TRACE_TYPES[self.values.dtype.newbyteorder("<")]


class ChunkBuffer:
    """One signal of one sequence. What is not yet a full chunk is written as the tail, and again, longer, the next time."""

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
            raise ValueError("a token's values of one signal must be at most 256 MB.")
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
            # Not a view of the caller's memory: that may change before it is written.
            self._parts = [np.concatenate(self._parts)]

    def flush(self) -> Iterator[Piece]:
        if self._changed:
            self._changed = False
            yield Piece(self._first, self._parts[0], grows=True, tail=True)


def trimmed_pieces(values: NDArray[Any], first: int) -> Iterator[Piece]:
    """Tokens of a signal whose last axis is `back`: few at a time, each piece as short in it as its values allow."""
    for at in range(0, len(values), TRIMMED_TOKENS):
        piece = values[at : at + TRIMMED_TOKENS]
        used = np.flatnonzero((piece != 0).reshape(-1, piece.shape[-1]).any(axis=0))
        kept = int(used[-1]) + 1 if used.size else 1
        yield Piece(first + at, np.ascontiguousarray(piece[..., :kept]), grows=False, tail=False)
