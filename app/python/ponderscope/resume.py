# SPDX-License-Identifier: GPL-3.0-or-later
"""Continues an interrupted run: finished sequences stay, and the unfinished sequence is removed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import schema as layout
from .columns import Signal
from .reader import Trace
from .sequence_writer import Totals

SAME = (
    "method", "policy", "scoring", "architecture", "depth_mixing", "checkpoint_digest", "tokenizer_digest", "dtype", "step_unit",
    "max_steps", "vocab_size", "context", "stride",
)  # fmt: skip
"""Columns of the table ``run`` that must be unchanged when a run is resumed."""


@dataclass
class Progress:
    """The finished part of a run."""

    id: int
    seconds: float
    totals: Totals = field(default_factory=Totals)
    sequences: int = 0
    largest_id: int = -1
    longest: int = 0
    texts: list[bytes] = field(default_factory=list)
    """Input of the digest of the texts so far, in order."""
    ids: list[bytes] = field(default_factory=list)
    """digest_of_ids() of each sequence."""
    signal_ids: dict[str, int] = field(default_factory=dict)
    signal_types: dict[str, str] = field(default_factory=dict)
    """dtype of each signal that has values."""


def digest_of_ids(ids: NDArray[np.int64]) -> bytes:
    return hashlib.sha256(ids.astype("<i8").tobytes()).digest()


def find_progress(path: Path, name: str, values: dict[str, Any], signals: dict[str, Signal]) -> Progress | None:
    """The finished part of the run ``name``; None: no such run. ValueError: the run has other options or signals."""
    with Trace(path) as trace:
        if name not in trace.run_names:
            return None
        run = trace.run(name)
        other = next((what for what in SAME if values.get(what) is not None and run.info.get(what) != values[what]), None)
        mine = {signal: tuple(about.axes) for signal, about in signals.items()}
        if other or run.signals != mine:
            found = f"{run.info[other]!r} as its {other}" if other else "the signals " + (", ".join(run.signals) or "none")
            wanted = repr(values[other]) if other else ", ".join(mine) or "none"
            raise layout.refusal(
                path, f"the run {name} to have the options of this call ({wanted})", found, "record with the same options, or under another name"
            )
        progress = Progress(run.id, run.info["seconds"], signal_ids={signal: entry.id for signal, entry in run._signals.items()})
        progress.signal_types = dict(trace._query(
            "SELECT g.name, g.dtype FROM signal g WHERE g.run = ? AND EXISTS (SELECT 1 FROM chunk c WHERE c.signal = g.id)", (run.id,)
        ))  # fmt: skip
        for row in run.sequence_rows():
            number = row["sequence"]
            if not row["complete"] or number != progress.sequences:
                break
            columns = run.columns(number)
            sums = Totals()
            for total in ("tokens", "scored_tokens", "nll_sum", "steps_sum"):
                setattr(sums, total, row[total])
            sums.flops_sum = float(np.nansum(columns["flops"]))
            scored = ~np.isnan(columns["nll"])
            sums.scored_bytes = int((columns["text_end"] - columns["text_begin"])[1:][scored[:-1]].sum())
            progress.totals.add(sums)
            progress.sequences += 1
            progress.largest_id = max(progress.largest_id, int(columns["id"].max()))
            progress.longest = max(progress.longest, len(columns["id"]))
            progress.ids.append(digest_of_ids(columns["id"]))
            progress.texts.append(run.text_bytes(number) or columns["id"].astype("<i4").tobytes())
        return progress


def remove_unfinished(database: Any, progress: Progress) -> None:
    """Removes the sequences after the finished sequences. Call it inside a transaction."""
    rows = database.execute("SELECT id FROM sequence WHERE run = ? AND number >= ?", (progress.id, progress.sequences)).fetchall()
    for (sequence,) in rows:
        first, end = sequence << layout.POSITION_BITS, (sequence + 1) << layout.POSITION_BITS
        for table in ("token_row", "text"):
            database.execute(f"DELETE FROM {table} WHERE row >= ? AND row < ?", (first, end))
        for table, column in (("chunk", "sequence"), ("label", "sequence"), ("sequence", "id")):
            database.execute(f"DELETE FROM {table} WHERE {column} = ?", (sequence,))
    database.execute("DELETE FROM fault WHERE run = ? AND sequence >= ?", (progress.id, progress.sequences))
