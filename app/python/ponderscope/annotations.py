# SPDX-License-Identifier: GPL-3.0-or-later
"""Extra columns of tokens, in a file beside the trace, which stays as it was. core/trace/tools/annotations.h has the rules."""

from __future__ import annotations

import numbers
import os
import re
import secrets
import sqlite3
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from numpy.typing import NDArray

from . import schema as layout
from .lock import TraceLock

if TYPE_CHECKING:
    from .reader import Run, Trace

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
TAKEN_NAMES = {
    "and", "begin", "document", "end", "entropy", "flops", "id", "nll", "or", "position", "rank", "run", "probability",
    "max_probability", "steps", "text", "sequence", "token", "text_begin", "text_end", "token_index",
}  # fmt: skip
"""Conditions, tables and headers have these for something else."""
MOST_CLASSES = 256
MOST_CLASS_BYTES = 200
REMEDY = "take the file from its source again, or remove it and annotate again"

Values = Union[Mapping[int, Sequence[Any]], Sequence[Any], NDArray[Any]]


@dataclass(frozen=True)
class Annotation:
    """What somebody says of the tokens of a run: numbers, or classes of a category."""

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
        """Why it cannot be of the run (its row) as it is now, as misfit_of says it in C++; empty: it can."""
        if all(getattr(self, what) == run[what] for what in ("text_digest", "tokenizer_digest", "sequences", "tokens")):
            return ""
        what = "other tokens" if self.text_digest == run["text_digest"] else "another text"
        return f"the annotation {self.name} was made for {what} than the run {self.run!r:.80} has now; annotate it again"


def path_of(trace: Path) -> Path:
    return trace.with_name(trace.name + ".annotations")


def annotate(
    trace: Trace | str | os.PathLike[str], run: Run | str | int | None, name: str, values: Values, *, category: bool | None = None
) -> None:
    """Gives the tokens of a run a column of your own: colour, ``find`` and figures of the window, ``stats --by`` and tables
    know it by ``name``. The trace stays as it is; the column lies beside it, in TRACE.annotations, and replaces one of that
    name.

    ``values``: one a token, of the only sequence, of all one after the other, a list of them for each sequence, or a
    dictionary by a sequence's number. Numbers, or texts for categories; None, NaN or "" where there is none.
    ``category=True`` takes numbers as classes. ValueError, one sentence, where they do not fit, and nothing is written.
    """
    from .reader import Trace
    from .reader import open as open_trace

    opened = trace if isinstance(trace, Trace) else open_trace(trace)
    try:
        chosen = opened.run(getattr(run, "name", run))
        check_name(name)
        rows = chosen.sequence_rows()
        by_sequence = _by_sequence(values, {row["sequence"]: row["tokens"] for row in rows}, name)
        classes, by_token = _numbers(by_sequence, name, category)
        info = chosen.info
        fresh = Annotation(
            0, chosen.name, name, classes is not None, tuple(classes or ()), info["text_digest"], info["tokenizer_digest"],
            info["sequences"], info["tokens"], layout.utc_now(),
        )  # fmt: skip
        _put(opened.path.resolve(), fresh, by_token)
    finally:
        if opened is not trace:
            opened.close()


def check_name(name: str) -> None:
    if not isinstance(name, str) or not PLAIN_NAME.match(name):
        raise ValueError(f"expected a name of letters, digits and underscores that begins with no digit, found {name!r:.80}.")
    if name.lower() in TAKEN_NAMES:
        raise ValueError(f"expected a name that nothing else of a token has, found {name!r}.")


def check_class(name: str) -> None:
    if not isinstance(name, str):
        raise ValueError(f"expected a class that is a text, found {name!r:.80}.")
    try:
        size = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        raise ValueError(f"expected a class in UTF-8, found {name!r:.80}.") from None
    if not 0 < size <= MOST_CLASS_BYTES:
        raise ValueError(f"expected a class of 1 to {MOST_CLASS_BYTES} bytes, found {size}.")
    if unseen := layout.UNSEEN.search(name):
        raise ValueError(f"expected a class without invisible characters, found U+{ord(unseen[0]):04X}.")


class Annotations:
    """The annotations beside a trace, read; a file from a stranger is data."""

    def __init__(self, trace: Path) -> None:
        self.path = path_of(trace.resolve())
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
        """By name; those that were made for another text or other tokens are left out, with a warning."""
        own = {}
        for one in self.all:
            if one.run == run.name:
                if misfit := one.misfit(run.info):
                    warnings.warn(f"{self.path}: {misfit}.", stacklevel=3)
                else:
                    own[one.name] = one
        return own

    def values(self, one: Annotation, sequence: int, begin: int, end: int) -> NDArray[Any]:
        """float64 with NaN, or objects: the class or None."""
        values: NDArray[Any] = np.full(end - begin, np.nan)
        for position, value in self._query(
            "SELECT position, value FROM annotation_value WHERE annotation = ? AND sequence = ? AND position >= ? AND position < ?",
            (one.id, sequence, begin, end),
        ):
            values[self._place(position) - begin] = self._checked(one, value)
        if not one.category:
            return values
        names = np.array([None, *one.classes], object)
        return names[np.where(np.isnan(values), 0, np.nan_to_num(values) + 1).astype(np.int64)]

    def rows(self, one: Annotation) -> list[tuple[int, int, float]]:
        """sequence, position and value of each."""
        rows = self._query("SELECT sequence, position, value FROM annotation_value WHERE annotation = ?", (one.id,))
        return [(self._place(sequence), self._place(position), self._checked(one, value)) for sequence, position, value in rows]

    def _read_list(self) -> None:
        for row in self._query(
            "SELECT id, run, name, kind, text_digest, tokenizer_digest, sequences, tokens, created FROM annotation ORDER BY run, name"
        ):
            kinds = (int, str, str, str, str, str, int, int, str)
            if any(type(value) is not kind for value, kind in zip(row, kinds)):
                raise layout.refusal(self.path, "annotations of texts and whole numbers", repr(row)[:200], REMEDY)
            classes = self._query("SELECT number, name FROM annotation_class WHERE annotation = ? ORDER BY number", (row[0],))
            try:
                check_name(row[2])
                if row[3] not in ("number", "category"):
                    raise ValueError(f"expected an annotation of the kind number or category, found {row[3]!r:.80}.")
                if [number for number, _ in classes] != list(range(len(classes))) or len(classes) > MOST_CLASSES:
                    raise ValueError(f"expected classes numbered from 0, at most {MOST_CLASSES}, found others.")
                for _, name in classes:
                    check_class(name)
            except ValueError as error:
                raise ValueError(f"{self.path}: {str(error)[:-1]}; {REMEDY}.") from None
            self.all.append(Annotation(*row[:3], row[3] == "category", tuple(n for _, n in classes), *row[4:]))

    def _place(self, value: Any) -> int:
        if type(value) is not int:
            raise layout.refusal(self.path, "whole numbers of sequences and tokens", repr(value)[:80], REMEDY)
        return value

    def _checked(self, one: Annotation, value: Any) -> float:
        good = isinstance(value, float) and np.isfinite(value)
        if not good or (one.category and not (value.is_integer() and 0 <= value < len(one.classes))):
            raise layout.refusal(self.path, f"values of {one.name} that are numbers or classes of it", repr(value)[:80], REMEDY)
        return value

    def _query(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        assert self._database is not None
        try:
            return self._database.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._trouble(error) from error

    def _trouble(self, error: sqlite3.DatabaseError) -> Exception:
        if "locked" in str(error):  # no writer of ours does that: they put another file in its place
            return OSError(f"{self.path}: another program holds a lock on it; close that program and try again.")
        return layout.refusal(self.path, "sound annotations", f"a damaged file ({error})", REMEDY)


def _by_sequence(values: Values, lengths: dict[int, int], name: str) -> dict[int, list[Any]]:
    """Values by the number of their sequence, each of its length; None where there is none."""
    if isinstance(values, Mapping):
        given = dict(values)
    else:
        items = _items(values, name)
        nested = [_is_list(v) for v in items]
        if items and all(nested):
            if len(items) != len(lengths):
                raise ValueError(f"{name}: expected values for {len(lengths)} sequences, found some for {len(items)}.")
            given = dict(zip(lengths, items))
        elif any(nested):
            raise ValueError(f"{name}: expected a value for each token, found lists among them.")
        else:
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
            raise ValueError(f"{name}: there is no sequence {sequence!r:.80}; the run has {len(lengths)}, numbered from 0.")
        items = _items(part, f"{name}: sequence {sequence}")
        if len(items) != lengths[sequence]:
            raise ValueError(f"{name}: sequence {sequence} has {lengths[sequence]} tokens, found {len(items)} values.")
        if any(_is_list(v) for v in items):
            raise ValueError(f"{name}: sequence {sequence}: expected a value for each token, found lists among them.")
        by_sequence[sequence] = [None if _is_absent(v) else v for v in items]
    return by_sequence


def _items(values: Any, where: str) -> list[Any]:
    if isinstance(values, (str, bytes)):
        raise ValueError(f"{where}: expected a value for each token, found one text.")
    try:
        return list(values)
    except TypeError:
        raise ValueError(f"{where}: expected a value for each token, found one {type(values).__name__}.") from None


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes)) or bool(getattr(value, "ndim", 0))


def _is_absent(value: Any) -> bool:
    if value is None or (isinstance(value, str) and not value):
        return True
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    pandas = sys.modules.get("pandas")  # whoever has its NA has imported it
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def _class_of(value: Any, name: str) -> str:
    """What a value is called as a class: 2 and 2.0 are one."""
    if isinstance(value, str):
        return value
    if not isinstance(value, (numbers.Number, np.bool_)):
        raise ValueError(f"{name}: expected numbers or texts, found {type(value).__name__}.")
    if isinstance(value, (float, np.floating)) and float(value).is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value) if isinstance(value, float) and not isinstance(value, np.floating) else str(value)


def _numbers(
    by_sequence: dict[int, list[Any]], name: str, category: bool | None
) -> tuple[list[str] | None, dict[int, list[float]]]:
    """Classes, or None for numbers, and values with NaN where there is none."""
    kinds = {isinstance(v, str) for part in by_sequence.values() for v in part if v is not None}
    if not kinds:
        raise ValueError(f"{name}: expected a value for one token at least, found none.")
    if len(kinds) == 2 and not category:
        raise ValueError(f"{name}: expected numbers or texts, found both; category=True takes numbers as classes.")
    if category is False and True in kinds:
        raise ValueError(f"{name}: expected numbers, found texts.")
    values: dict[int, list[float]] = {}
    if not category and True not in kinds:
        for sequence, part in by_sequence.items():
            try:
                values[sequence] = [float("nan") if v is None else float(v) for v in part]
            except (TypeError, ValueError):
                raise ValueError(f"{name}: expected numbers or texts, found something else in sequence {sequence}.") from None
            except OverflowError:
                raise ValueError(f"{name}: expected numbers of 64 bits, found a larger one in sequence {sequence}.") from None
            if np.isinf(values[sequence]).any():
                raise ValueError(f"{name}: expected finite numbers, found an infinite one in sequence {sequence}.")
        return None, values
    classes: dict[str, int] = {}
    for sequence, part in by_sequence.items():
        texts = [None if v is None else _class_of(v, name) for v in part]
        for text in texts:
            if text is not None and text not in classes:
                check_class(text)
                classes[text] = len(classes)
        values[sequence] = [float("nan") if t is None else float(classes[t]) for t in texts]
    if len(classes) > MOST_CLASSES:
        raise ValueError(f"{name}: expected at most {MOST_CLASSES} classes, found {len(classes)}; is it the right column?")
    return list(classes), values


def _put(trace: Path, fresh: Annotation, values: dict[int, list[float]]) -> None:
    """Another file in the place of the one that is there: old or new, whatever happens."""
    path = path_of(trace)
    lock = TraceLock(path, "annotations that nobody writes to", "some that another process is writing")
    try:
        with Annotations(trace) as old:
            for one in old.all:
                if one.run == fresh.run and one.name != fresh.name and one.name.lower() == fresh.name.lower():
                    raise ValueError(f"{trace}#{fresh.run}: there is an annotation named {one.name}; call it so, or rename {fresh.name}.")
            # open() applies the umask, which another thread must never see changed.
            passing = str(path.parent / f".ponderscope-{secrets.token_hex(8)}")
            os.close(os.open(passing, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            try:
                if path.exists():
                    os.chmod(passing, path.stat().st_mode & 0o7777)
                _write(passing, fresh, values, old)
                with open(passing, "rb") as file:
                    os.fsync(file.fileno())
                os.replace(passing, path)
            except BaseException:
                Path(passing).unlink(missing_ok=True)
                raise
    finally:
        lock.release()


def _write(path: str, fresh: Annotation, values: dict[int, list[float]], old: Annotations) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    try:
        database.executescript(layout.schema(layout.ANNOTATIONS).script)
        for pragma in ("journal_mode=MEMORY", "synchronous=OFF"):
            database.execute(f"PRAGMA {pragma}")
        database.execute("BEGIN")
        kept = [one for one in old.all if (one.run, one.name) != (fresh.run, fresh.name)]
        for number, one in enumerate([*kept, fresh], 1):
            database.execute(
                "INSERT INTO annotation VALUES (?,?,?,?,?,?,?,?,?)",
                (number, one.run, one.name, "category" if one.category else "number", one.text_digest, one.tokenizer_digest,
                 one.sequences, one.tokens, one.created),
            )  # fmt: skip
            database.executemany("INSERT INTO annotation_class VALUES (?,?,?)", ((number, i, c) for i, c in enumerate(one.classes)))
            rows = old.rows(one) if one is not fresh else (
                (sequence, t, v) for sequence, part in values.items() for t, v in enumerate(part) if v == v
            )  # fmt: skip
            database.executemany("INSERT INTO annotation_value VALUES (?,?,?,?)", ((number, *row) for row in rows))
        database.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        raise OSError(f"{path}: cannot be written ({error}); check the disk and the permissions of the folder.") from error
    finally:
        database.close()
