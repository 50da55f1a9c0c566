# SPDX-License-Identifier: GPL-3.0-or-later
"""Columns of your own for tokens, in a file beside the trace. The trace does not change. The program writes the file by the rules of
core/trace/tools/annotations.h."""

from __future__ import annotations

import csv
import os
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from numpy.typing import NDArray

from . import schema as layout
from .columns import text_of
from .program import ask

if TYPE_CHECKING:
    from .reader import Run, Trace

REMEDY = "copy the file from its source again, or remove it and annotate again"

Values = Union[Mapping[int, Sequence[Any]], Sequence[Any], NDArray[Any]]


@dataclass(frozen=True)
class Annotation:
    """A column that a user added to the tokens of a run: numbers, or classes (a category)."""

    id: int
    run: str
    name: str
    category: bool
    classes: tuple[str, ...]
    text_digest: str
    tokenizer_digest: str
    sequences: int
    tokens: int
    created: str

    def misfit(self, run: Mapping[str, Any]) -> str:
        """Why the annotation is invalid for the run (its row), in the words of misfit_of in C++; empty: it is valid."""
        if all(getattr(self, what) == run[what] for what in ("text_digest", "tokenizer_digest", "sequences", "tokens")):
            return ""
        what = "other tokens" if self.text_digest == run["text_digest"] else "another text"
        return f"the annotation {self.name} was made for {what} than the run {self.run!r:.80} has now; annotate it again"


def annotate(
    trace: Trace | str | os.PathLike[str], run: Run | str | int | None, name: str, values: Values, *, category: bool | None = None
) -> None:
    """Adds a column of your own to the tokens of a run. The window (colour, ``find``, figures), ``stats --by`` and tables
    know the column by ``name``. The trace does not change: the column is in TRACE.annotations beside it, where it replaces a
    column of the same name.

    ``values``: one value a token for all sequences, one after the other; or a dictionary from sequence numbers to such lists. Values
    are numbers, or texts (classes); None, NaN or "": no value.
    ``category=True`` takes numbers as classes. ValueError: the values do not fit; nothing is written.
    Needs the program ponderscope: PONDERSCOPE_PROGRAM, else the wheel's program, else the program on PATH.
    """
    from .reader import Trace
    from .reader import open as open_trace

    opened = trace if isinstance(trace, Trace) else open_trace(trace)
    try:
        chosen = opened.run(getattr(run, "name", run))
        lengths = {row["sequence"]: row["tokens"] for row in chosen.sequence_rows()}
    finally:
        if opened is not trace:
            opened.close()
    by_sequence = _by_sequence(values, lengths, text_of(name, "a name of an annotation"))
    kinds = {isinstance(value, str) for part in by_sequence.values() for value in part if value is not None}
    if len(kinds) == 2 and not category:
        raise ValueError(f"{name}: expected numbers or texts, found both; category=True treats numbers as classes.")
    if category is False and True in kinds:
        raise ValueError(f"{name}: expected numbers because of category=False, found texts.")
    field = _class_of if category or True in kinds else _number
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "values.csv")
        with table.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["sequence", "token", name])
            for sequence, part in by_sequence.items():
                rows.writerows([sequence, t, field(value, name)] for t, value in enumerate(part) if value is not None)
        categories = [f"--category={name}"] if field is _class_of else []
        ask("annotate", opened.path.resolve(), f"--run={chosen.name}", f"--csv={table}", *categories)


class Annotations:
    """Reads the annotations beside a trace. The file may come from a stranger, so its content is checked."""

    def __init__(self, trace: Path) -> None:
        real = trace.resolve()
        self.path = real.with_name(real.name + ".annotations")
        self.all: list[Annotation] = []
        self._database: sqlite3.Connection | None = None
        if not self.path.exists():
            return
        layout.check_header(self.path, layout.ANNOTATIONS)
        try:
            self._database = layout.connect_for_reading(layout.uri_of(self.path), self.path, layout.ANNOTATIONS)
            self._read_list()
        except sqlite3.DatabaseError as error:
            self.close()
            raise self._trouble(error) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def __enter__(self) -> Annotations:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def of(self, run: Run) -> dict[str, Annotation]:
        """The annotations of a run by name. An annotation for another text or other tokens is left out, with a warning."""
        own = {}
        for one in self.all:
            if one.run == run.name:
                if misfit := one.misfit(run.info):
                    warnings.warn(f"{self.path}: {misfit}.", stacklevel=3)
                else:
                    own[one.name] = one
        return own

    def values(self, one: Annotation, sequence: int, begin: int, end: int) -> NDArray[Any]:
        """Values of tokens [begin, end): float64, or the classes as objects. No value: NaN, or None."""
        values: NDArray[Any] = np.full(end - begin, np.nan)
        for position, value in self._query(
            "SELECT position, value FROM annotation_value WHERE annotation = ? AND sequence = ? AND position >= ? AND position < ?",
            (one.id, sequence, begin, end),
        ):
            good = type(position) is int and isinstance(value, float) and np.isfinite(value)
            if not good or (one.category and value not in range(len(one.classes))):
                raise layout.refusal(self.path, f"values of {one.name} that are numbers or classes", f"{value!r:.80}", REMEDY)
            values[position - begin] = value
        if not one.category:
            return values
        names = np.array([None, *one.classes], object)
        return names[np.where(np.isnan(values), 0, np.nan_to_num(values) + 1).astype(np.int64)]

    def _read_list(self) -> None:
        taken = {"run", "sequence", "position", "text", *layout.token_columns()}
        for row in self._query(
            "SELECT id, run, name, kind, text_digest, tokenizer_digest, sequences, tokens, created FROM annotation ORDER BY run, name"
        ):
            if not isinstance(row[2], str) or not row[2].isidentifier() or row[2] in taken:
                raise layout.refusal(self.path, "a name of letters, digits and underscores", f"{row[2]!r:.80}", REMEDY)
            classes = self._query("SELECT name FROM annotation_class WHERE annotation = ? ORDER BY number", (row[0],))
            self.all.append(Annotation(*row[:3], row[3] == "category", tuple(name for (name,) in classes), *row[4:]))

    def _query(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        assert self._database is not None
        try:
            return self._database.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._trouble(error) from error

    def _trouble(self, error: sqlite3.DatabaseError) -> Exception:
        if "locked" in str(error):  # our writers take no lock: they replace the file
            return OSError(f"{self.path}: another program holds a lock on it; close that program and try again.")
        return layout.refusal(self.path, "sound annotations", f"a damaged file ({error})", REMEDY)


def _by_sequence(values: Values, lengths: dict[int, int], name: str) -> dict[int, list[Any]]:
    """Values by sequence number, one for each token of the sequence. No value: None."""
    if isinstance(values, Mapping):
        given = dict(values)
    else:
        items = _items(values, name)
        total = sum(lengths.values())
        if len(items) != total:
            raise ValueError(f"{name}: expected a value for each of the {total} tokens, found {len(items)}.")
        given, begin = {}, 0
        for sequence, length in lengths.items():
            given[sequence] = items[begin : begin + length]
            begin += length
    by_sequence = {}
    for sequence, part in given.items():
        if sequence not in lengths:
            raise ValueError(f"{name}: there is no sequence {sequence!r:.80}; the run has {len(lengths)} sequences, numbered from 0.")
        items = _items(part, f"{name}: sequence {sequence}")
        if len(items) != lengths[sequence]:
            raise ValueError(f"{name}: sequence {sequence} has {lengths[sequence]} tokens, found {len(items)} values.")
        by_sequence[sequence] = [None if _is_absent(v) else v for v in items]
    return by_sequence


def _items(values: Any, where: str) -> list[Any]:
    if isinstance(values, (str, bytes)):
        raise ValueError(f"{where}: expected a value for each token, found a single text.")
    try:
        return list(values)
    except TypeError:
        raise ValueError(f"{where}: expected a value for each token, found a single {type(values).__name__}.") from None


def _is_absent(value: Any) -> bool:
    if value is None or (isinstance(value, str) and not value):
        return True
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    pandas = sys.modules.get("pandas")  # a value can be its NA only if it is imported
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def _number(value: Any, name: str) -> str:
    try:
        return repr(float(value))
    except OverflowError:
        raise ValueError(f"{name}: expected numbers of 64 bits, found a larger number.") from None
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected numbers or texts for each token, found {type(value).__name__}.") from None


def _class_of(value: Any, name: str) -> str:
    """The class name of a value. 2 and 2.0 are the same class."""
    if isinstance(value, str):
        return text_of(value, f"a class of {name}")
    _number(value, name)
    return str(value).removesuffix(".0")
