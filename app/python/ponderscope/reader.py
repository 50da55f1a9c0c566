# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads traces into arrays and tables. A trace can come from a stranger: it is read-only, and sizes are checked before use."""

from __future__ import annotations

import bisect
import itertools
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import schema as layout
from .annotations import Annotation, Annotations
from .columns import NUMPY_TYPES

if TYPE_CHECKING:
    import pandas
    import pyarrow

def open(path: str | os.PathLike[str]) -> Trace:  # noqa: A001 - ponderscope.open is how users call it
    """Opens a trace for reading, even while it is being recorded. ValueError: the file is not a trace."""
    return Trace(path)


PACKED_TOKEN = np.dtype(
    [("id", "<i4"), ("text_begin", "<u4"), ("text_end", "<u4"), ("nll", "<f4"), ("entropy", "<f4"), ("rank", "<i4"),
     ("flops", "<i8"), ("steps", "<u2")]
)  # fmt: skip
"""A token of a run with the record_level scalars."""
ITEM_BYTES = {**{name: np.dtype(kind).itemsize for name, kind in NUMPY_TYPES.items()}, "BF16": 2}


def _expanded(data: bytes, tokens: int, size: int) -> bytes:
    """Decompresses a chunk: one zstd frame with byte 0 of every token's values, then byte 1, and so on."""
    if not 0 < size <= 512 << 20:
        raise ValueError(size)
    try:
        from compression import zstd  # from Python 3.14 on
    except ImportError:
        try:
            import zstandard
        except ImportError:
            raise ModuleNotFoundError(
                "the values of this run are compressed, which needs the package zstandard: pip install zstandard."
            ) from None
        try:
            if zstandard.frame_content_size(data) > size:  # the limit below applies only if the frame does not state its size
                raise ValueError(size)
            planes = zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
    else:
        try:
            planes = zstd.ZstdDecompressor().decompress(data, max_length=size + 1)
        except zstd.ZstdError as error:
            raise ValueError(str(error)) from None
    if len(planes) != size:
        raise ValueError(size)
    return np.frombuffer(planes, "u1").reshape(size // tokens, tokens).T.tobytes()


class Trace:
    """A trace, open for reading. Opening reads only the header and the schema."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        layout.check_header(self.path)
        uri = layout.uri_of(self.path)
        try:
            self._database = layout.connect_for_reading(uri, self.path)
        except sqlite3.OperationalError:
            # A trace in WAL mode needs helper files beside it. If they cannot be created, no other process writes either.
            try:
                self._database = layout.connect_for_reading(uri + "&immutable=1", self.path)
            except sqlite3.DatabaseError as error:
                raise layout.refusal(self.path, "an undamaged trace", f"a damaged file ({error})", layout.DAMAGED) from error
        except sqlite3.DatabaseError as error:
            raise layout.refusal(self.path, "an undamaged trace", f"a damaged file ({error})", layout.DAMAGED) from error

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ponderscope trace {str(self.path)!r}: runs {layout.visible(', '.join(self.run_names))}>"

    @property
    def run_names(self) -> list[str]:
        return [name for (name,) in self._query("SELECT name FROM run ORDER BY id")]

    @property
    def runs(self) -> pandas.DataFrame:
        """One row a run: the columns of the table ``run``, and mean NLL (nats), perplexity, bits per byte, mean steps and mean
        FLOPs (NaN: unknown)."""
        return _pandas().DataFrame([run.summary() for run in self])

    @property
    def sequences(self) -> pandas.DataFrame:
        """One row a sequence, for all runs."""
        return _pandas().DataFrame([row for run in self for row in run.sequence_rows()])

    def __iter__(self) -> Iterator[Run]:
        for (run_id,) in self._query("SELECT id FROM run ORDER BY id"):
            yield Run(self, run_id)

    def run(self, name: str | int | None = None) -> Run:
        """The run with this name or, if there is none, with this number. None: the only run. ValueError: no such run."""
        names = self.run_names
        rows = self._query("SELECT id, name FROM run ORDER BY id")
        found = [i for i, n in rows if n == name] or [i for i, _ in rows if str(i) == str(name)]
        if name is None and len(rows) == 1:
            found = [rows[0][0]]
        if found:
            return Run(self, found[0])
        if not names:
            raise layout.refusal(self.path, "a trace with a run", "a trace without runs", "record a run into it")
        raise layout.refusal(
            self.path, "the name of a run" if name is None else f"a run named {name}", "the runs " + ", ".join(names[:20]),
            f"name one of them, as in trace.run({names[0]!r})",
        )  # fmt: skip

    def page(
        self, path: str | os.PathLike[str] | None = None, *, a: str | None = None, b: str | None = None, **options: Any
    ) -> str:
        """One self-contained HTML file that shows one run, or two side by side; see ``ponderscope.page.write_page``."""
        from .page import write_page

        return write_page(self, path, a=a, b=b, **options)

    def to_arrow(self) -> dict[str, pyarrow.Table]:
        """Tables by name: ``runs``, ``sequences``, ``tokens``, ``labels`` (if any), ``signals/NAME`` with nested lists. All in memory."""
        from .tables import arrow_tables

        return arrow_tables(self)

    def to_parquet(self, folder: str | os.PathLike[str]) -> None:
        """Writes the tables of ``to_arrow`` as Parquet files to a new or empty folder. Memory does not grow with the trace."""
        from .tables import write_parquet

        write_parquet(self, folder)

    def _query(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._database.execute(sql, values).fetchall()
        except sqlite3.ProgrammingError as error:
            raise ValueError(f"{self.path}: the trace was closed; open it again.") from error
        except sqlite3.DatabaseError as error:
            raise layout.refusal(self.path, "an undamaged trace", f"a damaged file ({error})", layout.DAMAGED) from error


class SignalRow(NamedTuple):
    """A row of the table ``signal``."""

    id: int
    axes: tuple[str, ...]
    unit: str
    title: str
    storage: str


class Run:
    """A run of a trace. The numbers of a token describe the prediction of the next token. Losses are in nats."""

    def __init__(self, trace: Trace, run_id: int) -> None:
        self._trace = trace
        self.id = run_id
        columns = layout.schema().tables["run"]
        row = trace._query(f"SELECT {', '.join(columns)} FROM run WHERE id = ?", (run_id,))[0]
        self.info: dict[str, Any] = dict(zip(columns, row))
        self._sequences = {
            number: (sequence, tokens, text_bytes)
            for number, sequence, tokens, text_bytes in trace._query(
                "SELECT number, id, tokens, text_bytes FROM sequence WHERE run = ? ORDER BY number", (run_id,)
            )
        }
        self._signals = {
            name: SignalRow(signal, layout.axes_of(axes, trace.path, name), unit, title, storage)
            for signal, name, axes, unit, title, storage in trace._query(
                "SELECT id, name, axes, unit, title, storage FROM signal WHERE run = ? ORDER BY id", (run_id,)
            )
        }
        nothing = SignalRow(0, (), "", "", "plain")
        self._packed = self._signals.pop("token", nothing) if self.info.get("record_level") == "scalars" else nothing

    @property
    def name(self) -> str:
        return self.info["name"]

    @property
    def max_steps(self) -> int:
        return self.info["max_steps"]

    @property
    def sequences(self) -> list[int]:
        """Numbers of the sequences, from 0."""
        return list(self._sequences)

    @property
    def signals(self) -> dict[str, tuple[str, ...]]:
        """Axes by name of the signal."""
        return {name: entry.axes for name, entry in self._signals.items()}

    def __repr__(self) -> str:
        return f"<run {self.name!r} of {str(self._trace.path)!r}: {len(self._sequences)} sequences, {self.info['tokens']} tokens>"

    def _repr_html_(self) -> str:
        from .page import notebook_html

        return notebook_html(self)

    def summary(self) -> dict[str, Any]:
        info = dict(self.info)
        scored, text = info["scored_tokens"], info["scored_bytes"]
        mean = info["nll_sum"] / scored if scored else float("nan")
        info["complete"] = bool(info["complete"])
        info["mean_nll"] = mean
        info["perplexity"] = float(np.exp(mean))
        info["bits_per_byte"] = info["nll_sum"] / np.log(2) / text if text else float("nan")
        info["mean_steps"] = info["steps_sum"] / scored if scored else float("nan")
        info["mean_flops"] = info["flops_sum"] / info["tokens"] if info["flops_sum"] else float("nan")
        return info

    def sequence_rows(self) -> list[dict[str, Any]]:
        names = ("sequence", "title", "complete", "tokens", "scored_tokens", "nll_sum", "steps_sum", "text_bytes", "group")
        rows = self._trace._query(
            'SELECT number, title, complete, tokens, scored_tokens, nll_sum, steps_sum, text_bytes, "group" '
            "FROM sequence WHERE run = ? ORDER BY number", (self.id,),
        )  # fmt: skip
        return [{"run": self.name, **dict(zip(names, row)), "complete": bool(row[2])} for row in rows]

    def columns(self, sequence: int = 0, begin: int = 0, end: int | None = None) -> dict[str, NDArray[Any]]:
        """Scalars of tokens [begin, end) of a sequence, as an array for each column. Missing nll, entropy and max_probability are
        NaN. flops are NaN if the FLOPs of the run are unknown."""
        number, tokens, text_bytes = self._place(sequence)
        end = tokens if end is None else min(end, tokens)
        begin = min(max(begin, 0), end)
        if self.info.get("record_level") == "scalars":
            return self._with_known_flops(self._packed_columns(sequence, begin, end))
        first = number << layout.POSITION_BITS
        kinds = layout.token_columns()
        rows = self._trace._query(
            f"SELECT {', '.join(kinds)} FROM token_row WHERE row >= ? AND row < ? ORDER BY row",
            (first + begin, first + end),
        )
        if len(rows) != end - begin:
            raise layout.refusal(
                self._trace.path, f"{tokens} tokens in sequence {sequence}", f"rows that stop at {begin + len(rows)}", layout.DAMAGED
            )
        values = list(zip(*rows)) if rows else [()] * len(kinds)
        result: dict[str, NDArray[Any]] = {}
        for (name, kind), column in zip(kinds.items(), values):
            if kind == "REAL":
                result[name] = np.array([np.nan if v is None else v for v in column], np.float32)
            else:
                result[name] = np.array(column, np.int64)
        if len(rows) and (result["text_begin"].min() < 0 or result["text_end"].max() > text_bytes
                          or (result["text_end"] < result["text_begin"]).any()):  # fmt: skip
            raise layout.refusal(self._trace.path, "spans inside the text", "spans outside of the text", layout.DAMAGED)
        return self._with_known_flops(result)

    def _with_known_flops(self, columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Turns unknown FLOPs into NaN. The trace stores them as 0 at all tokens of the run."""
        if not self.info["flops_sum"] and not columns["flops"].any():
            columns["flops"] = np.full(len(columns["flops"]), np.nan)
        return columns

    def _packed_columns(self, sequence: int, begin: int, end: int) -> dict[str, NDArray[Any]]:
        """``columns`` for the record_level scalars, where tokens are in the signal ``token`` (trace-schema.md)."""
        packed = np.ascontiguousarray(self._values("token", self._packed, sequence, begin, end)).view(PACKED_TOKEN)[:, 0]
        result: dict[str, NDArray[Any]] = {}
        for name, kind in layout.token_columns().items():
            if name == "max_probability":
                result[name] = np.full(len(packed), np.nan, np.float32)
            else:
                result[name] = packed[name].astype(np.float32 if kind == "REAL" else np.int64)
        return result

    def tokens(self, sequence: int | None = None) -> pandas.DataFrame:
        """One row a token, for one sequence or for all: sequence, position, text, numbers, the label of the token's own text
        (if the run was recorded with labels) and annotations."""
        pandas_module = _pandas()
        frames = []
        labels = self.label_rows()
        with Annotations(self._trace.path) as beside:
            annotations = beside.of(self)
            for number in self.sequences if sequence is None else [sequence]:
                columns = self.columns(number)
                frame = pandas_module.DataFrame(columns)
                frame.insert(0, "sequence", number)
                frame.insert(1, "position", np.arange(len(frame)))
                frame.insert(2, "text", self.token_texts(number, columns))
                if labels:
                    frame["label"] = labels_of_tokens(labels.get(number, []), columns)
                for name, one in annotations.items():
                    frame[name] = beside.values(one, number, 0, len(frame))
                frames.append(frame)
        return pandas_module.concat(frames, ignore_index=True) if frames else pandas_module.DataFrame()

    def experts(self, sequence: int | None = None) -> pandas.DataFrame:
        """The routers' choices in a mixture of experts (``record --record steps,experts``), one row for each token, step and layer
        with experts. Columns: sequence, position, step (absent if the layers are the steps), layer (number in the model),
        expert_0 … by falling probability (-1: the step did not run), weight_0 …, entropy, mass and margin."""
        pandas_module = _pandas()
        axes = self.signals.get("router_experts", ())
        if not axes:
            raise KeyError(f"the run {self.name} has no experts; record it with --record steps,experts.")
        layers = self.layers_of("router_experts")
        frames = []
        for number in self.sequences if sequence is None else [sequence]:
            chosen = self.signal("router_experts", number)
            places = np.indices(chosen.shape[:-1]).reshape(chosen.ndim - 1, -1)
            columns: dict[str, Any] = {"sequence": number, "position": places[0]}
            if "step" in axes:
                columns["step"] = places[axes.index("step")]
            layer = places[axes.index("layer")]
            columns["layer"] = np.array(layers)[layer] if layers else layer
            for name in ("expert", "weight"):
                values = self.signal(f"router_{name}s", number).reshape(-1, chosen.shape[-1])
                columns |= {f"{name}_{i}": values[:, i] for i in range(values.shape[1])}
            kept = [name for name in ("entropy", "mass", "margin") if f"router_{name}" in self._signals]
            columns |= {name: self.signal(f"router_{name}", number).reshape(-1) for name in kept}
            frames.append(pandas_module.DataFrame(columns))
        return pandas_module.concat(frames, ignore_index=True) if frames else pandas_module.DataFrame()

    def layers_of(self, signal: str) -> list[int]:
        """For each entry of a signal's axis ``layer``, the layer's number in the model; empty: the trace does not say."""
        rows = self._trace._query("SELECT description FROM signal WHERE run = ? AND name = ?", (self.id, signal))
        labels = rows[0][0].rpartition(" Sources: ")[2].rstrip(".").split(", ") if rows and " Sources: " in rows[0][0] else []
        return [int(label) for label in labels if label.isdigit()]

    def labels(self) -> pandas.DataFrame:
        """The labels that were recorded with the texts (``record --label-field``), one row a labelled part of a text. Columns:
        sequence, text_begin, text_end (bytes of the text's UTF-8) and class."""
        rows = [(number, *row) for number, of in self.label_rows().items() for row in of]
        return _pandas().DataFrame(rows, columns=["sequence", "text_begin", "text_end", "class"])

    def label_rows(self) -> dict[int, list[tuple[int, int, str]]]:
        """``labels`` without pandas: for each sequence its (begin, end, class) in the order of the text."""
        rows: dict[int, list[tuple[int, int, str]]] = {}
        for number, begin, end, name in self._trace._query(
            "SELECT s.number, l.text_begin, l.text_end, l.class FROM sequence s JOIN label l ON l.sequence = s.id "
            "WHERE s.run = ? ORDER BY s.number, l.text_begin", (self.id,),
        ):  # fmt: skip
            rows.setdefault(number, []).append((begin, end, name))
        return rows

    def text_bytes(self, sequence: int = 0) -> bytes:
        """The text of a sequence as UTF-8. Spans are positions in these bytes."""
        number, _, length = self._place(sequence)
        rows = self._trace._query(
            "SELECT bytes FROM text WHERE row >= ? AND row < ? ORDER BY row",
            (number << layout.POSITION_BITS, (number + 1) << layout.POSITION_BITS),
        )
        text = b"".join(row[0] for row in rows)
        if len(text) != length:
            raise layout.refusal(
                self._trace.path, f"{length} bytes of text in sequence {sequence}", f"{len(text)} bytes", layout.DAMAGED
            )
        return text

    def text(self, sequence: int = 0) -> str:
        return self.text_bytes(sequence).decode("utf-8", errors="replace")

    def token_texts(self, sequence: int = 0, columns: dict[str, NDArray[Any]] | None = None) -> list[str]:
        """The text of each token; without a text, from the vocabulary. Parts of split characters become U+FFFD."""
        columns = self.columns(sequence) if columns is None else columns
        text = self.text_bytes(sequence)
        if text:
            return [
                text[b:e].decode("utf-8", errors="replace")
                for b, e in zip(columns["text_begin"].tolist(), columns["text_end"].tolist())
            ]
        words = self.vocabulary()
        return [words.get(i, b"").decode("utf-8", errors="replace") for i in columns["id"].tolist()]

    def vocabulary(self) -> dict[int, bytes]:
        """Bytes by token id, for the ids that the trace has of the run's tokenizer."""
        return dict(
            self._trace._query(
                "SELECT v.id, v.bytes FROM run r JOIN vocabulary v ON v.tokenizer = r.tokenizer WHERE r.id = ? ORDER BY v.id",
                (self.id,),
            )
        )

    def signal(self, name: str, sequence: int = 0, begin: int = 0, end: int | None = None) -> NDArray[Any]:
        """Values of a signal for tokens [begin, end), with the axes ``signals[name]``. Steps that did not run have NaN, or -1
        in whole numbers. KeyError: the run has no signal of this name."""
        if name not in self._signals:
            raise KeyError(f"the run {self.name} has no signal {name}; it has {', '.join(self._signals) or 'none'}.")
        return self._values(name, self._signals[name], sequence, begin, end)

    def _values(
        self, name: str, signal: SignalRow, sequence: int, begin: int, end: int | None
    ) -> NDArray[Any]:
        number, tokens, _ = self._place(sequence)
        end = tokens if end is None else min(end, tokens)
        begin = min(max(begin, 0), end)
        signal_id, axes = signal.id, signal.axes
        parts: list[NDArray[Any]] = []
        position, taken = begin, 0
        # A small compressed file can expand without bound, so memory is limited, as in core/trace/trace_file_values.cpp.
        (pages,), (page,) = self._trace._query("PRAGMA page_count")[0], self._trace._query("PRAGMA page_size")[0]
        most = 4 * max(pages * page, 64 << 20)
        for first, count, dtype, shape, data in self._trace._query(
            "SELECT first_token, tokens, dtype, shape, data FROM chunk WHERE sequence = ? AND signal = ? "
            "AND first_token < ? AND first_token + tokens > ? ORDER BY first_token",
            (number, signal_id, max(end, begin + 1), begin),
        ):
            values = self._chunk(name, axes, count, dtype, shape, data)
            taken += values.nbytes
            if first > position or first + count <= position:
                break
            if taken > most:
                raise layout.refusal(self._trace.path, f"values of signal {name} that fit into memory", "more values", layout.DAMAGED)
            values = values[position - first : max(end, position) - first]
            parts.append(values)
            position += len(values)
        if not parts or position != end:
            raise layout.refusal(
                self._trace.path, f"values of signal {name} of sequence {sequence} up to token {end}",
                f"chunks that stop at {position}", "the sequence was recorded without this signal, or the trace is damaged",
            )  # fmt: skip
        if signal.storage == "trimmed":
            longest = max(p.shape[-1] for p in parts)
            parts = [np.pad(p, [(0, 0)] * (p.ndim - 1) + [(0, longest - p.shape[-1])]) for p in parts]
        return np.concatenate(parts)

    def _chunk(self, name: str, axes: tuple[str, ...], count: int, dtype: str, shape: str, data: Any) -> NDArray[Any]:
        try:
            lengths = json.loads(shape)
            good = isinstance(lengths, list) and all(isinstance(n, int) and n > 0 for n in lengths)
            good = good and len(lengths) == len(axes) and lengths[0] == count and isinstance(data, bytes)
            if not good:
                raise ValueError(shape)
            if dtype.endswith("+zstd"):
                dtype = dtype.removesuffix("+zstd")
                data = _expanded(data, count, max(1, count) * int(np.prod(lengths[1:])) * ITEM_BYTES[dtype])
            if dtype == "BF16":
                flat = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
            else:
                flat = np.frombuffer(data, NUMPY_TYPES[dtype])
            return flat.reshape(lengths)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise layout.refusal(
                self._trace.path, f"a chunk of signal {name} whose size agrees with its shape",
                f"{str(shape)[:100]} of {dtype}", layout.DAMAGED,
            ) from None  # fmt: skip

    @property
    def annotations(self) -> dict[str, Annotation]:
        """Annotations by name, from ``ponderscope.annotate`` or the verb ``annotate``. An annotation for another text or other
        tokens than the run has now is left out, with a warning."""
        with Annotations(self._trace.path) as beside:
            return beside.of(self)

    def annotation(self, name: str, sequence: int = 0, begin: int = 0, end: int | None = None) -> NDArray[Any]:
        """Values of an annotation for tokens [begin, end): numbers, or classes as text. No value: NaN, or None. KeyError: the
        run has no annotation of this name."""
        _, tokens, _ = self._place(sequence)
        end = tokens if end is None else min(end, tokens)
        begin = min(max(begin, 0), end)
        with Annotations(self._trace.path) as beside:
            own = beside.of(self)
            if name not in own:
                raise KeyError(f"the run {self.name} has no annotation {name}; it has {', '.join(own) or 'none'}.")
            return beside.values(own[name], sequence, begin, end)

    def _place(self, sequence: int) -> tuple[int, int, int]:
        if sequence not in self._sequences:
            raise IndexError(f"the run {self.name} has {len(self._sequences)} sequences, numbered from 0; there is no {sequence!r}.")
        return self._sequences[sequence]


def labels_of_tokens(rows: list[tuple[int, int, str]], columns: dict[str, NDArray[Any]]) -> list[str | None]:
    """The class of each token's own text. If several classes overlap a token: the class with most of its bytes; if equal, the first."""
    found: list[str | None] = []
    ends = [end for _, end, _ in rows]
    for begin, end in zip(columns["text_begin"].tolist(), columns["text_end"].tolist()):
        most, name = 0, None
        for first, last, label in itertools.islice(rows, bisect.bisect_right(ends, begin), None):
            if first >= end:
                break
            covered = min(end, last) - max(begin, first)
            if covered > most:
                most, name = covered, label
        found.append(name)
    return found


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("tables need pandas: pip install pandas; arrays come without it from run.columns() and run.signal().") from None
    return pandas
