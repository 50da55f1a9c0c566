# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes sequences to a trace."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import schema as layout
from .chunks import ChunkBuffer, Piece, trimmed_pieces
from .columns import INT32_MAX, TRACE_TYPES, real_numbers, signal_values, spans_of, text_of, whole_numbers

if TYPE_CHECKING:
    from .writer import RunWriter

FOLLOW_SECONDS = 0.5
"""Seconds between two commits of an unfinished sequence. Readers see tokens after a commit."""


class Totals:
    """Sums over the tokens of a sequence or a run."""

    def __init__(self) -> None:
        self.tokens = self.scored_tokens = self.scored_bytes = 0
        self.nll_sum = self.steps_sum = self.flops_sum = 0.0

    def add(self, other: Totals) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Block:
    """Checked values of consecutive tokens."""

    columns: dict[str, NDArray[Any]]
    signals: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.columns["id"])


def rows_of(columns: dict[str, NDArray[Any]]) -> NDArray[np.uint64]:
    """Rows of token_row as input of a sequence's checksum: 8 bytes a column, NULL as one fixed NaN."""
    rows = np.empty((len(columns["id"]), len(columns)), "<u8")
    for i, name in enumerate(columns):
        values = columns[name]
        if values.dtype.kind == "f":
            reals = values.astype("<f8") + 0.0  # SQLite stores no -0
            rows[:, i] = reals.view("<u8")
            rows[np.isnan(reals), i] = 0x7FF8000000000000
        else:
            rows[:, i] = values.astype("<i8").view("<u8")
    return rows


class SequenceWriter:
    """Writes a sequence in parts; see ``RunWriter.stream``. An error in a ``with`` block leaves the sequence partial."""

    def __init__(self, run: RunWriter, text: str, title: str | None, group: str | None) -> None:
        run._check_open()
        if run._open_sequence is not None:
            raise ValueError("the previous sequence is still open; end that sequence first.")
        self._run = run
        self._text = text_of(text, "a text").encode("utf-8")
        if b"\0" in self._text:
            raise ValueError(f"the text has a NUL byte at position {self._text.index(0)}; remove the byte.")
        if title is None:
            title = " ".join(text[:60].split()) or f"sequence {run.sequences}"
        self._title = text_of(title, "a title")
        self._group = None if group is None else text_of(group, "a group")
        self._began = False
        self._ended = False
        self._tokens = 0
        self._rows_crc = 0
        self._text_end = 0
        self._target_open = False
        self._totals = Totals()
        self._layout: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] | None = None
        self._buffers: dict[str, ChunkBuffer] = {}
        self._chunk_rows: dict[str, int] = {}
        self._last_commit = time.monotonic()
        self._id = 0
        self.number = run.sequences

    def append(
        self,
        ids: ArrayLike,
        *,
        spans: ArrayLike | None = None,
        nll: ArrayLike | None = None,
        entropy: ArrayLike | None = None,
        max_probability: ArrayLike | None = None,
        rank: ArrayLike | None = None,
        steps: ArrayLike | None = None,
        flops: ArrayLike | None = None,
        signals: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """Writes the next tokens, with the arguments of ``RunWriter.sequence``. Every part must have the same signals."""
        self._run._check_open()
        if self._ended:
            raise ValueError("this sequence has ended; begin another sequence.")
        if self._run._open_sequence not in (None, self):
            raise ValueError("another sequence of the run is open; end that sequence first.")
        numbers = {"nll": nll, "entropy": entropy, "max_probability": max_probability, "rank": rank, "steps": steps, "flops": flops}
        block = self._checked(ids, spans, numbers, signals or {}, last=False)
        self._run._open_sequence = self
        self._write(block, ends=False)

    def end(self) -> None:
        """Ends the sequence as complete. The sequence then survives the end of the process."""
        if self._ended:
            raise ValueError("this sequence has ended already.")
        self._finish(complete=True)

    def leave(self) -> None:
        """Ends the sequence; it stays marked partial."""
        if not self._ended:
            self._finish(complete=False)

    def __enter__(self) -> SequenceWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._ended:
            self._finish(complete=kind is None)

    def _checked(
        self,
        ids: ArrayLike,
        spans: ArrayLike | None,
        numbers: Mapping[str, ArrayLike | None],
        signals: Mapping[str, ArrayLike],
        last: bool,
    ) -> Block:
        """Checks all values: ValueError before anything is written. ``numbers``: columns by name, one number a token."""
        nll, rank = numbers["nll"], numbers["rank"]
        run = self._run
        highest = (run._vocab_size - 1) if run._vocab_size else INT32_MAX
        id_column = whole_numbers(ids, "ids", 0, highest)
        n = len(id_column)
        if self._tokens + n > layout.MAX_TOKENS:
            raise ValueError(f"a sequence has more than {layout.MAX_TOKENS} tokens; split the text.")
        if last and n == 0:
            raise ValueError("a sequence needs at least one token.")
        nll_column = real_numbers(nll, "nll", n, -1e-3, np.inf)
        if last and nll is not None and not np.isnan(nll_column[-1]):
            raise ValueError(
                "nll is given for the last token, which has no next token: nll[t] is the loss of token t + 1, "
                "predicted at t, and NaN at the end."
            )
        rank_column = np.zeros(n, np.int64)
        if rank is not None:
            ranks = np.asarray(rank)
            if ranks.dtype.kind == "f":
                ranks = np.where(np.isnan(ranks), 0, ranks)
            rank_column = whole_numbers(ranks, "rank", 0, INT32_MAX)
            if len(rank_column) != n:
                raise ValueError(f"rank has {len(rank_column)} entries for {n} tokens.")
            wrong = np.flatnonzero((rank_column == 0) & ~np.isnan(nll_column))
            if wrong.size:
                raise ValueError(f"rank is 0 at token {wrong[0]}, which has an nll: ranks count from 1.")
            rank_column = np.where(np.isnan(nll_column), 0, rank_column) if nll is not None else rank_column
        whole = {}
        for what, high, default in (("steps", run.max_steps, run.max_steps), ("flops", (1 << 63) - 1, 0)):
            values = numbers[what]
            whole[what] = np.full(n, default, np.int64) if values is None else whole_numbers(values, what, 0, high)
            if len(whole[what]) != n:
                raise ValueError(f"{what} has {len(whole[what])} entries for {n} tokens.")
        span_column = spans_of(spans, n, len(self._text))
        if n and self._text and span_column[0, 0] < self._text_end:
            raise ValueError(f"token {self._tokens} begins at byte {span_column[0, 0]}, before the end of the previous token.")
        checked = {}
        for name, values in signals.items():
            if name not in run.signals:
                raise ValueError(f"signal {name} is not among the signals of its run; name the signal in run(signals=...).")
            checked[name] = signal_values(name, run.signals[name], values, whole["steps"], run.max_steps, nll_column)
            known = run._signal_types.get(name)
            if n and known not in (None, TRACE_TYPES[checked[name].dtype]):
                raise ValueError(f"signal {name} was stored as {known} earlier in this run; set the dtype of its Signal.")
        if self._layout is not None and n and self._layout_of(checked) != self._layout:
            raise ValueError(f"the signals of a sequence changed their names, types or shapes at token {self._tokens}.")
        columns = {
            "id": id_column, "text_begin": span_column[:, 0], "text_end": span_column[:, 1], "nll": nll_column,
            "entropy": real_numbers(numbers["entropy"], "entropy", n, -1e-3, np.inf),
            "max_probability": real_numbers(numbers["max_probability"], "max_probability", n, 0, 1 + 1e-3),
            "rank": rank_column, "steps": whole["steps"], "flops": whole["flops"],
        }  # fmt: skip
        return Block(columns, checked)

    def _layout_of(self, signals: Mapping[str, NDArray[Any]]) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Types and shapes of the signals, which all parts must share."""
        return {
            name: (v.dtype, v.shape[1:-1] + (0,) if self._run.signals[name].storage == "trimmed" else v.shape[1:])
            for name, v in signals.items()
        }

    def _write(self, block: Block, ends: bool) -> None:
        run, writer = self._run, self._run._writer
        with writer._said():
            writer._begin()
        try:
            if not self._began:
                self._begin_sequence()
            if len(block):
                self._layout = self._layout_of(block.signals)
                self._insert_tokens(block)
                self._insert_signals(block)
                run._put_vocabulary(block.columns["id"])
                for name in ("candidate_ids", "argmax"):
                    if name in block.signals:
                        ids = block.signals[name].ravel().astype(np.int64)
                        run._put_vocabulary(ids[ids >= 0])
                run._largest_id = max(run._largest_id, int(block.columns["id"].max()))
            if ends:
                self._finish(complete=True)
            elif time.monotonic() - self._last_commit > FOLLOW_SECONDS:
                self._write_totals(complete=False)
                run._write_totals()
                writer._commit()
                self._last_commit = time.monotonic()
        except BaseException:
            with writer._said():
                writer._roll_back()
                self._ended = run._ended = True  # memory is ahead of the file
                raise

    def _begin_sequence(self) -> None:
        run, writer = self._run, self._run._writer
        self._id = writer._next("sequence")
        if self._id > layout.MAX_SEQUENCE_ID:
            raise ValueError(f"the trace has more than {layout.MAX_SEQUENCE_ID} sequences; begin another trace.")
        values = {
            "id": self._id, "run": run.id, "number": self.number, "title": self._title, "text_bytes": len(self._text),
            **vars(self._totals), "complete": 0, "group": self._group, "text_crc32": zlib.crc32(self._text), "tokens_crc32": 0,
        }  # fmt: skip
        writer._insert("sequence", values)
        pieces = range(0, len(self._text), layout.TEXT_PIECE)
        first = self._id << layout.POSITION_BITS
        writer._database.executemany(
            "INSERT INTO text (row, bytes) VALUES (?,?)",
            ((first + i, self._text[at : at + layout.TEXT_PIECE]) for i, at in enumerate(pieces)),
        )
        if self._text:
            run._digest.update(self._text)
        run.sequences += 1
        self._began = True

    def _insert_tokens(self, block: Block) -> None:
        c = block.columns
        first = (self._id << layout.POSITION_BITS) + self._tokens
        n = len(block)
        names = list(layout.token_columns())
        self._run._writer._database.executemany(
            f"INSERT INTO token_row (row, {', '.join(names)}) VALUES (?{',?' * len(names)})",
            zip(range(first, first + n), *(c[name].tolist() for name in names)),  # NaN becomes NULL
        )
        self._rows_crc = zlib.crc32(rows_of(c).tobytes(), self._rows_crc)
        scored = ~np.isnan(c["nll"])
        follows_scored = np.concatenate([[self._target_open], scored[:-1]])
        sums = Totals()
        sums.tokens = n
        sums.scored_tokens = int(scored.sum())
        sums.scored_bytes = int((c["text_end"] - c["text_begin"])[follows_scored].sum())
        sums.nll_sum = float(c["nll"][scored].sum(dtype=np.float64))
        sums.steps_sum = float(c["steps"][scored].sum())
        sums.flops_sum = float(c["flops"].sum(dtype=np.float64))
        self._totals.add(sums)
        self._run._totals.add(sums)
        self._target_open = bool(scored[-1])
        self._tokens += n
        self._text_end = int(c["text_end"][-1])
        self._run._longest = max(self._run._longest, self._tokens)
        if not self._text:
            self._run._digest.update(c["id"].astype("<i4").tobytes())

    def _insert_signals(self, block: Block) -> None:
        first = self._tokens - len(block)
        for name, values in block.signals.items():
            if name not in self._run._signal_types:
                self._run._signal_types[name] = TRACE_TYPES[values.dtype]
                self._run._writer._update("signal", self._run._signal_ids[name], {"dtype": TRACE_TYPES[values.dtype]})
            if self._run.signals[name].storage == "trimmed":
                for piece in trimmed_pieces(values, first):
                    self._store(name, piece)
                continue
            buffer = self._buffers.setdefault(name, ChunkBuffer())
            for piece in buffer.append(values, first):
                self._store(name, piece)

    def _store(self, name: str, piece: Piece) -> None:
        """Inserts a row, or replaces the row of the tail by a longer piece."""
        writer = self._run._writer
        row = self._chunk_rows.pop(name, None) if piece.grows else None
        shape = json.dumps(list(piece.values.shape), separators=(",", ":"))
        data = piece.values.tobytes()
        values = {"tokens": len(piece.values), "shape": shape, "data": data, "crc32": zlib.crc32(data)}
        if row is None:
            place = {"sequence": self._id, "signal": self._run._signal_ids[name], "first_token": piece.first, "dtype": piece.dtype}
            row = writer._insert("chunk", {**place, **values})
        else:
            writer._update("chunk", row, values)
        if piece.tail:
            self._chunk_rows[name] = row

    def _write_totals(self, complete: bool) -> None:
        for name, buffer in self._buffers.items():
            for piece in buffer.flush():
                self._store(name, piece)
        values = {**vars(self._totals), "complete": int(complete), "tokens_crc32": self._rows_crc}
        self._run._writer._update("sequence", self._id, values)

    def _finish(self, complete: bool) -> None:
        run, writer = self._run, self._run._writer
        self._ended = True
        if run._open_sequence is self:
            run._open_sequence = None
        if not self._began:
            return  # no token came: nothing to write
        with writer._said():
            writer._begin()
            self._write_totals(complete)
            run._write_totals()
            writer._commit()
