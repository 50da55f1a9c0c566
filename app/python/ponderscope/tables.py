# SPDX-License-Identifier: GPL-3.0-or-later
"""A trace as Arrow tables and Parquet files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import schema as layout
from .annotations import Annotation, Annotations
from .reader import Run, Trace, labels_of_tokens

if TYPE_CHECKING:
    import pyarrow

PAGE_TOKENS = 1 << 16
"""Tokens of one part, which is a row group of the Parquet files. Bounds the memory."""


def arrow_tables(trace: Trace) -> dict[str, pyarrow.Table]:
    pa = _pyarrow()
    parts: dict[str, list[Any]] = {}
    for name, table in _tables(trace):
        parts.setdefault(name, []).append(table)
    return {name: pa.concat_tables(tables, promote_options="permissive") for name, tables in parts.items()}


def write_parquet(trace: Trace, folder: str | os.PathLike[str]) -> None:
    pa = _pyarrow()
    import pyarrow.parquet as parquet

    target = Path(folder).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(
            f"{folder}: expected a new or empty folder, found a folder with files in it, or a file; choose another name."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=target.name + ".exporting-", dir=target.parent))
    writers: dict[str, parquet.ParquetWriter] = {}
    try:
        temporary.chmod(0o755)
        (temporary / "signals").mkdir()
        for name, table in _tables(trace):
            if name not in writers:
                writers[name] = parquet.ParquetWriter(temporary / f"{name}.parquet", table.schema, compression="zstd")
            elif table.schema != writers[name].schema:
                table = table.cast(writers[name].schema)
            writers[name].write_table(table)
        for writer in writers.values():
            writer.close()
        writers.clear()
        if target.exists():
            target.rmdir()
        temporary.rename(target)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(f"{trace.path}: the runs hold signals of different types ({error}); export the runs one by one.") from None
    finally:
        for writer in writers.values():
            writer.close()
        shutil.rmtree(temporary, ignore_errors=True)


def _tables(trace: Trace) -> Iterator[tuple[str, Any]]:
    """Tables by name; long tables come in parts."""
    pa = _pyarrow()
    runs = list(trace)
    summaries = [run.summary() for run in runs]
    names = [*layout.schema().tables["run"], "mean_nll", "perplexity", "bits_per_byte", "mean_steps", "mean_flops"]
    yield "runs", pa.table({name: [s[name] for s in summaries] for name in names if all(name in s for s in summaries)})
    rows = [row for run in runs for row in run.sequence_rows()]
    if rows:
        # A type is given where every value may be missing: a column of nulls alone would not fit the text of another part.
        typed = {"group": pa.string()}
        yield "sequences", pa.table({name: pa.array([row[name] for row in rows], typed.get(name)) for name in rows[0]})
    labels = [run.label_rows() for run in runs]
    if any(labels):
        parts = [(run.name, number, *row) for run, of in zip(runs, labels) for number, list_ in of.items() for row in list_]
        label_types = {"run": pa.string(), "sequence": pa.int32(), "text_begin": pa.int64(), "text_end": pa.int64(), "class": pa.string()}
        yield "labels", pa.table({name: pa.array(column, kind) for (name, kind), column in zip(label_types.items(), zip(*parts))})
    files: dict[tuple[str, tuple[str, ...]], str] = {}
    # All runs get all columns. True: the column is text, because it has classes in at least one run.
    annotations: dict[str, bool] = {}
    with Annotations(trace.path) as beside:
        own = [beside.of(run) for run in runs]
        for one in (one for of_run in own for one in of_run.values()):
            annotations[one.name] = annotations.get(one.name, False) or one.category
        for run, of_run, labelled in zip(runs, own, labels):
            for sequence in run.sequences:
                _, count, _ = run._place(sequence)
                for begin in range(0, count, PAGE_TOKENS):
                    end = min(begin + PAGE_TOKENS, count)
                    columns = run.columns(sequence, begin, end)
                    place = {
                        "run": pa.array([run.name] * (end - begin)),
                        "sequence": np.full(end - begin, sequence, np.int32),
                        "position": np.arange(begin, end, dtype=np.int64),
                    }
                    tokens = {**place, "text": pa.array(run.token_texts(sequence, columns), pa.string()), **columns}
                    tokens["flops"] = pa.array(columns["flops"], pa.int64(), from_pandas=True)  # null: unknown
                    if any(labels):
                        tokens["label"] = pa.array(labels_of_tokens(labelled.get(sequence, []), columns), pa.string())
                    for name, text in annotations.items():
                        tokens[name] = _annotation_column(beside, of_run.get(name), text, sequence, begin, end)
                    yield "tokens", pa.table(tokens)
                    for name, axes in run.signals.items():
                        try:
                            values = run.signal(name, sequence, begin, end)
                        except ValueError:
                            if begin == 0 and not _has_chunks(run, sequence, name):
                                continue  # declared, but not recorded for this sequence
                            raise
                        file = files.setdefault((name, axes), _file_name(name, files))
                        yield file, pa.table({**place, "value": _lists(values)})


def _annotation_column(beside: Annotations, one: Annotation | None, text: bool, sequence: int, begin: int, end: int) -> Any:
    pa = _pyarrow()
    if one is None:
        return pa.nulls(end - begin, pa.string() if text else pa.float64())
    values = beside.values(one, sequence, begin, end)
    if text:
        return pa.array([None if v is None or v != v else str(v) for v in values], pa.string())
    return pa.array(values, pa.float64(), from_pandas=True)


def _has_chunks(run: Run, sequence: int, name: str) -> bool:
    number = run._place(sequence)[0]
    return bool(
        run._trace._query("SELECT 1 FROM chunk WHERE sequence = ? AND signal = ? LIMIT 1", (number, run._signals[name].id))
    )


def _lists(values: np.ndarray[Any, Any]) -> Any:
    """[tokens, ...] as nested lists for the axes after the first, so runs may have different numbers of steps and layers."""
    pa = _pyarrow()
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    for axis in range(values.ndim - 1, 0, -1):
        lists = int(np.prod(values.shape[:axis]))
        flat = pa.ListArray.from_arrays(pa.array(np.arange(lists + 1, dtype=np.int32) * values.shape[axis]), flat)
    return flat


def _file_name(name: str, files: dict[tuple[str, tuple[str, ...]], str]) -> str:
    """The table of a signal. Signals with one name but different axes get different tables."""
    result, i = f"signals/{name}", 2
    while result in files.values():
        result, i = f"signals/{name}.{i}", i + 1
    return result


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ImportError("Arrow tables and Parquet files need pyarrow: pip install pyarrow.") from None
    return pyarrow
