# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes traces from any model."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import schema as layout
from .columns import INT32_MAX, KNOWN_SIGNALS, TRACE_TYPES, Rule, Signal, TokenTable, line_of, text_of
from .lock import TraceLock
from .resume import Progress, digest_of_ids, find_progress, remove_unfinished
from .sequence_writer import SequenceWriter, Totals


class Writer:
    """Appends runs to a trace, the file that the window and every verb of ponderscope read.

    ``path``: a new file, or an existing trace (``overwrite=True`` replaces the trace when the first run begins).
    A trace has at most one writer at a time.
    Finished sequences survive the end of the process. Wrong arguments raise ValueError and leave the trace unchanged.
    Use the writer as a context manager, or call ``close``.
    """

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        self.path = Path(path)
        target = self.path.absolute()
        if target.is_dir():
            raise layout.refusal(path, "a file name for a trace", "a folder", "name a file in it")
        if not target.parent.is_dir():
            raise layout.refusal(path, f"a folder {target.parent}", "no such folder", "create the folder or choose another folder")
        target = target.resolve()
        exists = target.exists() and not (target.is_file() and target.stat().st_size == 0)
        if exists:
            layout.check_header(self.path)
        self._lock = TraceLock(target)
        self._target = target
        self._database: sqlite3.Connection
        self._begun = False
        self._run: RunWriter | None = None
        self._closed = False
        self._lost = False
        self._log: os.stat_result | None = None
        if exists and not overwrite:
            try:
                self._begin_file(fresh=False)
            except BaseException:
                self._lock.release()
                raise

    def _begin_file(self, fresh: bool = True) -> None:
        """Opens the file. A new or replaced trace begins with its first run, so a run that cannot begin changes no file."""
        if self._begun:
            return
        if fresh:
            for suffix in ("", "-wal", "-shm", "-journal"):
                self._target.with_name(self._target.name + suffix).unlink(missing_ok=True)
        database = sqlite3.connect(self._target, isolation_level=None, timeout=5)
        database.text_factory = layout.readable
        try:
            with self._said():
                if fresh:
                    database.executescript(layout.schema().script)
                else:
                    layout.check_tables(database, self.path)
                    if planted := database.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchone():
                        raise layout.refusal(
                            self.path, "a trace to add to", f"the trigger {planted[0]}, which would run on added rows", layout.DAMAGED
                        )
                database.execute("PRAGMA journal_mode=WAL")
                for pragma in ("synchronous=NORMAL", "cache_size=-32768", "foreign_keys=OFF", "trusted_schema=OFF"):
                    database.execute(f"PRAGMA {pragma}")
        except BaseException:
            database.close()
            if fresh:
                self._target.unlink(missing_ok=True)
            raise
        self._database, self._begun = database, True
        self._file = os.stat(self._target)

    @contextlib.contextmanager
    def _said(self) -> Iterator[None]:
        """Turns errors of SQLite into OSError with a remedy."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise OSError(f"{self.path}: cannot be written ({error}); check the file, its folder and the disk.") from error

    def run(
        self,
        name: str,
        *,
        method: str = "custom",
        max_steps: int = 0,
        layers: int = 0,
        vocab_size: int | None = None,
        tokens: TokenTable | None = None,
        signals: Mapping[str, Signal] | Iterable[str] = (),
        step_unit: str = "step",
        policy: str = "learned",
        rule: Rule | None = None,
        scoring: str = "exact",
        architecture: str = "",
        depth_mixing: str = "none",
        checkpoint: str = "",
        checkpoint_digest: str = "",
        device: str = "cpu",
        dtype: str = "float32",
        text_source: str = "",
        tokenizer_digest: str | None = None,
        config: Mapping[str, Any] | str | None = None,
        notices: Iterable[str] = (),
        versions: Mapping[str, str] | None = None,
        flops_model: str = "",
        seed: int = 0,
        context: int | None = None,
        stride: int | None = None,
        resume: bool = False,
    ) -> RunWriter:
        """Starts a run: a model and a method over a set of sequences. If the previous run is open, it ends as partial.

        ``name``: an existing name gets " (2)". ``resume=True`` instead continues the run of this name after its finished
        sequences; the options must be the same. ``max_steps``: the last step that a token can reach, counted from 0.
        ``tokens``: bytes or text of the ids, so the trace can be read without the tokenizer. Runs with the same
        ``tokenizer_digest`` (None: computed from ``tokens``) share these bytes. ``signals``: ``Signal`` by name, or names of known
        signals (``ponderscope.KNOWN_SIGNALS``). ``vocab_size``: rows of the output head; None: the size of ``tokens``, or one more
        than the largest id. ``rule``: the halting rule of your model. The policy ``learned`` replays it, so it can be compared with
        other rules. Give the rule to a run in which every step ran, too (``policy="full"``). ``step_unit``: "step", or "layer" if
        steps are blocks of the stack. ``context``, ``stride``: of the windows; None: each sequence is one window.
        """
        if self._closed:
            raise ValueError(f"{self.path}: the trace was closed, so nothing can be added; begin another Writer.")
        if not isinstance(signals, Mapping):
            unknown = [s for s in signals if s not in KNOWN_SIGNALS]
            if unknown:
                raise ValueError(f'signal "{unknown[0]}" is not a known signal; describe it with a Signal: signals={{...}}.')
            signals = {s: KNOWN_SIGNALS[s] for s in signals}
        for signal_name, signal in signals.items():
            signal.check(signal_name)
        signals = {s: signal.completed(s) for s, signal in signals.items()}
        if rule is not None:
            rule.check(signals)
        if not 0 < len(name.encode()) <= 1000 or any(ord(c) < 0x20 or ord(c) == 0x7F for c in name):
            raise ValueError(f"name must be 1 to 1000 bytes in one line, not {name!r:.60}.")
        if step_unit not in ("step", "layer"):
            raise ValueError(f'step_unit must be "step" or "layer", not {step_unit!r}.')
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise ValueError(f"seed must be a whole number, not {seed!r}.")
        counts = {"max_steps": max_steps, "layers": layers, "vocab_size": vocab_size, "context": context, "stride": stride}
        for what, value in counts.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value <= INT32_MAX):
                raise ValueError(f"{what} must be a whole number from 0 on, not {value!r}.")
        values: dict[str, Any] = {
            "name": name, "method": method, "policy": policy, "scoring": scoring, "architecture": architecture,
            "depth_mixing": depth_mixing, "checkpoint": checkpoint, "checkpoint_digest": checkpoint_digest,
            "device": device, "dtype": dtype, "text_source": text_source, "flops_model": flops_model, "step_unit": step_unit,
            "choices": rule.choices() if rule is not None else "",
            "notices": json.dumps([text_of(n, "a notice") for n in notices], ensure_ascii=False),
            "config": config if isinstance(config, str) else json.dumps(dict(config or {}), ensure_ascii=False, default=str),
            "versions": json.dumps({**_versions(), **(versions or {})}, ensure_ascii=False),
            "record_level": "steps" if any("step" in s.axes for s in signals.values()) else "basic",
        }  # fmt: skip
        for what, value in values.items():
            (text_of if what in ("policy", "text_source", "flops_model", "notices", "config", "versions") else line_of)(value, what)
        values |= {"max_steps": int(max_steps), "layers": int(layers), "seed": _signed(int(seed))}
        if self._run is not None:
            self._run.leave()
        self._run = RunWriter(self, values, dict(signals), tokens, tokenizer_digest, vocab_size, context, stride, resume)
        return self._run

    def close(self) -> None:
        """Writes everything to one file. A run that has not ended stays marked partial. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._lost:
                return
            self._begin_file()
            if self._run is not None:
                self._run.leave()
            self._check_file()
            # SQLite refuses both while another process reads. The trace is complete even then, with its -wal file.
            self._database.execute("PRAGMA busy_timeout=250")
            for pragma in ("wal_checkpoint(TRUNCATE)", "journal_mode=DELETE"):
                try:
                    self._database.execute(f"PRAGMA {pragma}").fetchall()
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error) and "busy" not in str(error):
                        with self._said():
                            raise
        finally:
            if self._begun:
                self._database.close()
            self._lock.release()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None and not self._begun and not self._closed:
            self._closed = True
            self._lock.release()
        else:
            self.close()

    # For RunWriter and SequenceWriter: every change is between _begin() and _commit(), or is rolled back.

    def _begin(self) -> None:
        if not self._database.in_transaction:
            self._database.execute("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        if self._database.in_transaction:
            self._database.execute("COMMIT")
            self._check_file()

    def _keep_log(self) -> None:
        """Creates a removed -wal file anew, unless a reader is busy. Readers would not see writes to a removed file."""
        log = self._target.with_name(self._target.name + "-wal")
        if log.exists():
            self._log = self._log or os.stat(log)
            return
        if self._database.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            return
        self._database.execute("PRAGMA busy_timeout=0")
        with contextlib.suppress(sqlite3.OperationalError):
            self._database.execute("PRAGMA journal_mode=DELETE").fetchall()
            self._database.execute("PRAGMA journal_mode=WAL").fetchall()
        self._database.execute("PRAGMA busy_timeout=5000")

    def _check_file(self) -> None:
        """If the trace was moved, removed or replaced: saves its content and raises OSError, as core/trace/writing/store_file.cpp."""
        try:
            replaced = not os.path.samestat(os.stat(self._target), self._file)
        except FileNotFoundError:
            replaced = False
        else:
            if not replaced:
                self._keep_log()
                return
        self._lost = True
        if self._run is not None:
            self._run._ended = True
        now = _name_of_open_file(self._file)
        if now:
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        # SQLite leaves the -wal file of a removed trace. A later trace of the same name would use this file as its own.
        log = Path(f"{self._target}-wal")
        if log.exists() and (not replaced or (self._log is not None and os.path.samestat(os.stat(log), self._log))):
            log.unlink()
            Path(f"{self._target}-shm").unlink(missing_ok=True)
        if now:
            raise OSError(f"{self.path}: the trace was moved to {now} while it was written. The moved file has the finished sequences.")
        saved, i = self._target, 1
        while os.path.lexists(saved):
            saved = self._target.with_name(f"{self._target.stem}-saved{f'-{i}' if i > 1 else ''}{self._target.suffix}")
            i += 1
        self._database.execute("VACUUM INTO ?", (str(saved),))
        raise OSError(
            f"{self.path}: the trace was {'replaced by another file' if replaced else 'removed'} while it was written. "
            f"The finished sequences were saved as {saved}."
        )

    def _roll_back(self) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

    def _insert(self, table: str, values: Mapping[str, Any]) -> int:
        """Returns the number of the new row."""
        places = ",".join(f":{name}" for name in values)
        columns = ",".join(f'"{name}"' for name in values)
        return self._database.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", values).lastrowid or 0

    def _update(self, table: str, row: int, values: Mapping[str, Any]) -> None:
        columns = ",".join(f"{name}=:{name}" for name in values)
        self._database.execute(f"UPDATE {table} SET {columns} WHERE id=:id", {**values, "id": row})

    def _next(self, table: str) -> int:
        return (self._database.execute(f"SELECT max(id) FROM {table}").fetchone()[0] or 0) + 1


class RunWriter:
    """Writes a run; see ``Writer.run``. As a context manager it ends the run as complete, or as partial after an error."""

    def __init__(
        self,
        writer: Writer,
        values: dict[str, Any],
        signals: dict[str, Signal],
        tokens: TokenTable | None,
        tokenizer_digest: str | None,
        vocab_size: int | None,
        context: int | None,
        stride: int | None,
        resume: bool,
    ) -> None:
        self._writer = writer
        self.signals = signals
        self._signal_types: dict[str, str] = {}
        """dtype of each signal that has values, as in the table ``signal``."""
        self.max_steps: int = values["max_steps"]
        self._tokens = tokens
        self._vocab_size = vocab_size
        self._windows = context is not None
        self._largest_id = -1
        self._longest = 0
        self._began = time.monotonic()
        self._digest = hashlib.sha256()
        self._totals = Totals()
        self.sequences = 0
        """Number of sequences begun so far."""
        self._known_ids: set[int] = set()
        self._open_sequence: SequenceWriter | None = None
        self._ended = False
        if tokens is not None and vocab_size is None and not callable(tokens):
            self._vocab_size = (max(tokens) + 1 if tokens else 0) if isinstance(tokens, Mapping) else len(tokens)
        digest = tokenizer_digest if tokenizer_digest is not None else _digest_of(tokens)
        text_of(digest, "tokenizer_digest")
        writer._begin_file()
        database = writer._database
        self._resumed: Progress | None = None
        if resume:
            wanted = {**values, "tokenizer_digest": digest, "vocab_size": self._vocab_size, "context": context, "stride": stride or context}
            self._resumed = find_progress(writer._target, values["name"], wanted, signals)
        with writer._said():
            writer._begin()
        try:
            if self._resumed is not None:
                self._go_on(self._resumed, values["name"])
                writer._commit()
                return
            self.id = writer._next("run")
            self.name = _unique_name(values["name"], {n for (n,) in database.execute("SELECT name FROM run")})
            shared = database.execute(
                "SELECT tokenizer FROM run WHERE tokenizer_digest = ? AND tokenizer_digest <> '' LIMIT 1", (digest,)
            ).fetchone()
            self._tokenizer = (
                shared[0] if shared else (database.execute("SELECT max(tokenizer) FROM run").fetchone()[0] or 0) + 1
            )
            writer._insert("run", {
                **values, "id": self.id, "name": self.name, "tokenizer_digest": digest, "tokenizer": self._tokenizer,
                "text_digest": self._digest.hexdigest(), "vocab_size": self._vocab_size or 0, "context": context or 0,
                "stride": stride or context or 0, "started": layout.utc_now(), "seconds": 0.0, "complete": 0, "sequences": 0,
                **vars(self._totals),
            })  # fmt: skip
            self._signal_ids = {}
            for name, signal in signals.items():
                self._signal_ids[name] = writer._next("signal")
                writer._insert("signal", {
                    "id": self._signal_ids[name], "run": self.id, "name": name, "unit": signal.unit,
                    "axes": json.dumps(list(signal.axes), separators=(",", ":")),
                    "title": signal.title or name.replace("_", " ").capitalize(), "description": signal.description,
                    "dtype": TRACE_TYPES[np.dtype(signal.dtype or "float32").newbyteorder("<")], "storage": signal.storage,
                    "every_step": int(signal.every_step), "of_target": int(signal.of_target),
                })  # fmt: skip
            writer._commit()
        except BaseException:
            with writer._said():
                writer._roll_back()
                raise

    def _go_on(self, progress: Progress, name: str) -> None:
        """Continues an existing run. Call it inside a transaction."""
        remove_unfinished(self._writer._database, progress)
        self.id, self.name, self.sequences, self._signal_ids = progress.id, name, progress.sequences, progress.signal_ids
        self._signal_types = progress.signal_types
        self._totals, self._largest_id, self._longest = progress.totals, progress.largest_id, progress.longest
        self._began -= progress.seconds
        for text in progress.texts:
            self._digest.update(text)
        (self._tokenizer,) = self._writer._database.execute("SELECT tokenizer FROM run WHERE id = ?", (self.id,)).fetchone()
        self._write_totals()

    def check_same(self, number: int, ids: NDArray[np.int64], title: str) -> None:
        """ValueError unless the finished sequence with this number has these tokens."""
        if self._resumed is None or self._resumed.ids[number] != digest_of_ids(ids):
            raise layout.refusal(
                self._writer.path, f"the texts that the run {self.name} was begun with, in their order", f"another text as {title!r:.60}",
                "give the same texts, or record under another name",
            )  # fmt: skip

    def sequence(
        self,
        ids: ArrayLike,
        *,
        text: str = "",
        spans: ArrayLike | None = None,
        title: str | None = None,
        group: str | None = None,
        nll: ArrayLike | None = None,
        entropy: ArrayLike | None = None,
        max_probability: ArrayLike | None = None,
        rank: ArrayLike | None = None,
        steps: ArrayLike | None = None,
        flops: ArrayLike | None = None,
        signals: Mapping[str, ArrayLike] | None = None,
    ) -> int:
        """Writes a whole sequence and returns its number in the run. The sequence then survives the end of the process.

        A token's numbers describe the prediction of the next token: ``nll`` (nats) and ``rank`` belong to the next token. Without
        a next token, as at the last token, they are NaN and 0. ``steps``: the last step that ran at each token; None: ``max_steps``.
        For steps that did not run, signals over steps store NaN, whatever was given. ``spans``: [tokens, 2], bytes in the UTF-8 of
        ``text``. ``group``: a name that related sequences share, as an author or a source. ``flops``: of matrix products, 2 a multiply-add.
        """
        writer = SequenceWriter(self, text, title, group)
        numbers = {"nll": nll, "entropy": entropy, "max_probability": max_probability, "rank": rank, "steps": steps, "flops": flops}
        block = writer._checked(ids, spans, numbers, signals or {}, last=True)
        writer._write(block, ends=True)
        return writer.number

    def stream(self, *, text: str = "", title: str | None = None, group: str | None = None) -> SequenceWriter:
        """Begins a sequence that comes in parts. ``append`` the parts, then call ``end``, or use it as a context manager."""
        return SequenceWriter(self, text, title, group)

    def fault(self, message: str) -> None:
        """Stores a message about a problem of the run."""
        self._check_open()
        values = {"run": self.id, "time": layout.utc_now(), "message": text_of(message, "a fault")}
        with self._writer._said():
            self._writer._begin()
            self._writer._insert("fault", values)
            self._writer._commit()

    def end(self) -> None:
        """Ends the run as complete."""
        self._finish(complete=True)

    def leave(self) -> None:
        """Ends the run, which stays marked partial (cancelled, or stopped by a fault). A second call does nothing."""
        self._finish(complete=False)

    def _finish(self, complete: bool) -> None:
        if self._ended:
            return
        if self._open_sequence is not None:
            self._open_sequence.leave()
        self._ended = True
        with self._writer._said():
            self._writer._begin()
            self._write_totals(complete)
            self._writer._commit()
        if self._writer._run is self:
            self._writer._run = None

    def _check_open(self) -> None:
        if self._writer._lost:
            raise OSError(f"{self._writer.path}: the file was moved or removed while the trace was written; begin another trace.")
        if self._ended or self._writer._closed:
            raise ValueError(f"{self._writer.path}: the run {self.name} has ended; begin another run.")

    def _write_totals(self, complete: bool = False) -> None:
        values = {
            **vars(self._totals), "seconds": time.monotonic() - self._began, "complete": int(complete), "sequences": self.sequences,
            "text_digest": self._digest.hexdigest(), "vocab_size": self._largest_id + 1 if self._vocab_size is None else self._vocab_size,
        }  # fmt: skip
        if not self._windows:
            values |= {"context": self._longest, "stride": self._longest}
        self._writer._update("run", self.id, values)

    def _put_vocabulary(self, ids: NDArray[np.int64]) -> None:
        """Writes the bytes of ids that were not written before."""
        if self._tokens is None:
            return
        fresh = [token for token in np.unique(ids).tolist() if token not in self._known_ids]
        rows = []
        for token in fresh:
            stands_for = _token_bytes(self._tokens, token)
            if stands_for is not None:
                rows.append((self._tokenizer, token, stands_for, zlib.crc32(stands_for)))
        self._writer._database.executemany("INSERT OR IGNORE INTO vocabulary (tokenizer, id, bytes, crc32) VALUES (?,?,?,?)", rows)
        self._known_ids.update(fresh)

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._finish(complete=kind is None)


def _name_of_open_file(file: os.stat_result) -> str:
    """The current path of a file that this process has open; empty: removed, or the system does not say."""
    with contextlib.suppress(OSError):
        for descriptor in os.listdir("/proc/self/fd"):
            link = f"/proc/self/fd/{descriptor}"
            with contextlib.suppress(OSError):
                if os.path.samestat(os.stat(link), file) and os.path.samestat(os.stat(os.readlink(link)), file):
                    return os.readlink(link)
    return ""


def _unique_name(wanted: str, taken: set[str]) -> str:
    base = wanted or "run"
    name, i = base, 2
    while name in taken:
        name, i = f"{base} ({i})", i + 1
    return name


def _signed(seed: int) -> int:
    """The seed as a signed 64-bit number, as SQLite stores it."""
    seed &= (1 << 64) - 1
    return seed - (1 << 64) if seed >> 63 else seed


def _versions() -> dict[str, str]:
    from . import __version__

    return {
        "ponderscope": f"{__version__} (Python)", "python": platform.python_version(), "numpy": np.__version__,
        "sqlite": sqlite3.sqlite_version,
    }  # fmt: skip


def _token_bytes(tokens: TokenTable, token: int) -> bytes | None:
    try:
        value = tokens(token) if callable(tokens) else tokens[token]
    except LookupError:
        return None
    if isinstance(value, str):
        return text_of(value, f"token {token}").encode("utf-8")
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise ValueError(f"tokens must map ids to bytes or text; id {token} maps to {type(value).__name__}.")
    return bytes(value)


def _digest_of(tokens: TokenTable | None) -> str:
    """SHA-256 of a vocabulary; empty for a function, whose vocabulary is unknown, so each run stores its own."""
    if tokens is None or callable(tokens):
        return ""
    items = sorted(tokens.items()) if isinstance(tokens, Mapping) else enumerate(tokens)
    digest = hashlib.sha256()
    for token, _ in items:
        stands_for = _token_bytes(tokens, token) or b""
        digest.update(f"{token} {len(stands_for)} ".encode() + stands_for)
    return digest.hexdigest()
