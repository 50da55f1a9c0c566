# SPDX-License-Identifier: GPL-3.0-or-later
"""A run, or two side by side, as one HTML file that needs nothing else: `ponderscope page`, from Python.

The program ponderscope makes the page where it is found. Without it the page is packed here, and has no intervals.
resources/docs/page.md says what is packed into it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import os
import struct
import subprocess
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import schema as layout
from .program import find as find_program
from .reader import Run, Trace

MAX_TOKENS = 100_000
BUDGET = 8 << 20
"""Bytes of what is kept for each step, before compression."""
CANDIDATE_BYTES = 6
FIRST_MAPS = ("nll", "entropy", "gate", "halting_mass", "kl_previous_current", "max_probability", "margin", "cosine", "latent_difference")


def write_page(
    trace: Trace,
    path: str | os.PathLike[str] | None = None,
    *,
    a: str | int | None = None,
    b: str | int | None = None,
    title: str | None = None,
    sequences: list[int] | None = None,
    max_tokens: int = MAX_TOKENS,
) -> str:
    """The page as text, and as a file where ``path`` says so.

    ``a`` and ``b``: names of runs of one text and tokenizer. Without ``a`` the first run is shown, and beside it the next
    one that it can be compared with. ``sequences``: numbers of those to show; None: all, up to ``max_tokens`` tokens.
    Intervals need the program ponderscope: on the PATH, or named by the environment variable PONDERSCOPE_PROGRAM.
    """
    page = _make_page(trace, _choose(trace, a, b), title, sequences, max_tokens)
    if path is not None:
        target = Path(os.path.realpath(path))  # a link is written through, as the verbs do
        if target.exists() and not target.is_file():
            found = "a folder" if target.is_dir() else "something that is no plain file"
            raise layout.refusal(path, "a file to write", found, "choose another name")
        if target.is_file() and target.open("rb").read(15) == b"SQLite format 3":
            raise layout.refusal(path, "a new file or one to replace", "a trace", "choose another name")
        passing = target.with_name(f"{target.name}.{os.getpid()}.partial")
        try:
            passing.write_text(page, encoding="utf-8")
            passing.replace(target)
        except OSError as error:
            raise OSError(f"{path}: cannot be written ({error.strerror}); check its folder and the disk.") from error
        finally:
            passing.unlink(missing_ok=True)
    return page


def notebook_html(run: Run) -> str:
    """The same page in a frame, of the first tokens."""
    if not run.info["scored_tokens"]:
        return html.escape(repr(run))
    page = _make_page(run._trace, [run], None, None, 2000)
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" style="width:100%;height:640px;border:1px solid #8884;'
        'border-radius:8px" title="Ponderscope"></iframe>'
    )


def _make_page(trace: Trace, runs: list[Run], title: str | None, sequences: list[int] | None, max_tokens: int) -> str:
    if max_tokens < 1:
        raise ValueError("max_tokens must be at least 1.")
    for number in sequences or ():
        runs[0]._place(number)  # IndexError
    program = find_program()
    if program is None:
        return fill(Packed(trace, runs, title, sequences, max_tokens).bytes())
    options = [f"--run={run.name}" for run in runs] + [f"--sequence={number}" for number in sequences or ()]
    options += [f"--title={title}"] if title else []
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "page.html")
        command = [program, "page", str(trace.path.absolute()), *options, f"--max-tokens={max_tokens}", "-o", str(target)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        except OSError as error:
            raise OSError(f"{program}: cannot be started ({error.strerror}); PONDERSCOPE_PROGRAM names the program ponderscope.") from None
        if done.returncode:
            raise ValueError(done.stderr.strip().removeprefix("ponderscope: ") or f"{program} page ended with {done.returncode}.")
        return target.read_text(encoding="utf-8")


def fill(packed: bytes) -> str:
    """The template with the script, its hash (nothing else may run in the page) and the data."""
    folder = resources.files(__package__)
    template, *scripts = (folder.joinpath(n).read_text(encoding="utf-8") for n in ("page.html", "data_and_text.js", "view.js"))
    script = "\n" + "\n".join(scripts)
    digest = "sha256-" + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    page = template.replace("@SCRIPT_HASH@", digest).replace("@SCRIPT@", script)
    return page.replace("@PAYLOAD@", base64.b64encode(packed).decode("ascii"))


def _choose(trace: Trace, a: str | int | None, b: str | int | None) -> list[Run]:
    everything = list(trace)
    if a is None and b is not None:
        raise ValueError("b needs a beside it: name both runs.")
    first = trace.run(a) if a is not None or not everything else everything[0]
    if b is not None:
        second = trace.run(b)
        for what, sentence in (("text_digest", "text"), ("tokenizer_digest", "tokenizer")):
            if first.info[what] != second.info[what]:
                raise layout.refusal(
                    trace.path, f"two runs of one {sentence}",
                    f"{first.name} and {second.name}, whose are different, so that their tokens have no partners",
                    "make a page of each",
                )  # fmt: skip
        return [first, second]
    if a is None:
        for other in everything[1:]:
            if all(first.info[d] == other.info[d] for d in ("text_digest", "tokenizer_digest")) and other.info["scored_tokens"]:
                return [first, other]
    return [first]


class Packed:
    """Head and arrays of a page."""

    def __init__(self, trace: Trace, runs: list[Run], title: str | None, sequences: list[int] | None, max_tokens: int) -> None:
        self.runs = runs
        self.arrays: dict[str, dict[str, Any]] = {}
        self.data: list[bytes] = []
        self.size = 0
        self.notices: list[str] = []
        self.shown = self._plan(sequences, max_tokens)
        self.head: dict[str, Any] = {
            "program": _version(),
            "trace": trace.path.name,
            "title": title or trace.path.stem,
            "interval": None,
            "comparison": None,
        }
        self._sequences()
        self._tokens()
        self._steps()
        self.notices += [f"Run {run.name} is partial." for run in runs if not run.info["complete"]]
        self.notices.append("The program ponderscope was not found, so that the numbers have no intervals.")
        self.head["notices"] = list(dict.fromkeys(self.notices))
        self.head["arrays"] = self.arrays

    def bytes(self) -> bytes:
        head = json.dumps(self.head, ensure_ascii=False, allow_nan=False).encode("utf-8")
        return gzip.compress(struct.pack("<I", len(head)) + head + b"".join(self.data), compresslevel=9, mtime=0)

    def _plan(self, wanted: list[int] | None, max_tokens: int) -> list[tuple[int, int]]:
        """Number and shown tokens of each sequence."""
        a = self.runs[0]
        numbers = a.sequences if wanted is None else wanted
        shown, left = [], max_tokens
        total = sum(a._place(n)[1] for n in numbers)
        for number in numbers:
            count = min(a._place(number)[1], left)
            if count:
                shown.append((number, count))
                left -= count
        if not shown:
            raise layout.refusal(a._trace.path, f"tokens in the run {a.name}", "none", "let the recording get further")
        if total > max_tokens:
            self.notices.append(f"The page shows the first {max_tokens} of {total} tokens; the numbers above are of all.")
        return shown

    def _add(self, name: str, kind: str, values: NDArray[Any], **more: float) -> None:
        types = {"u8": "u1", "u16": "<u2", "u32": "<u4", "q16": "<u2"}
        data = values.astype(types[kind]).tobytes()
        self.arrays[name] = {"type": kind, "offset": self.size, "count": int(values.size), **more}
        self.data.append(data)
        self.size += len(data)

    def _add_real(self, name: str, values: NDArray[Any]) -> None:
        """65535 levels from the least value to the largest; 65535 itself is NaN."""
        numbers = values.astype(np.float64).reshape(-1)
        known = np.isfinite(numbers)
        low = float(numbers[known].min()) if known.any() else 0.0
        high = float(numbers[known].max()) if known.any() else 0.0
        step = (high - low) / 65534
        levels = np.full(numbers.shape, 65535, np.int64)
        levels[known] = np.floor((numbers[known] - low) / step + 0.5) if step > 0 else 0
        self._add(name, "q16", levels, low=low, step=step)

    def _sequences(self) -> None:
        a = self.runs[0]
        titles = {row["sequence"]: row["title"] for row in a.sequence_rows()}
        texts, gaps, lengths, ids = [], [], [], []
        entries = []
        for number, count in self.shown:
            columns = a.columns(number, 0, count)
            text = a.text_bytes(number)[: int(columns["text_end"].max(initial=0))]
            before = np.concatenate([[0], columns["text_end"][:-1]])
            gaps.append(np.maximum(columns["text_begin"] - before, 0))
            lengths.append(columns["text_end"] - columns["text_begin"])
            ids.append(columns["id"])
            texts.append(text)
            entries.append({"title": titles[number], "tokens": count, "bytes": len(text)})
        self.head["sequences"] = entries
        self.ids = np.concatenate(ids)
        self._add("text", "u8", np.frombuffer(b"".join(texts), np.uint8))
        self._add("gap", "u32", np.concatenate(gaps))
        self._add("length", "u32", np.concatenate(lengths))
        self._add("id", "u32", self.ids)

    def _tokens(self) -> None:
        self.head["runs"] = []
        for r, run in enumerate(self.runs):
            parts, reached = [], []
            for (number, count), begin in zip(self.shown, np.cumsum([0, *[c for _, c in self.shown]])):
                there = min(count, run._place(number)[1]) if number in run.sequences else 0
                columns = run.columns(number, 0, there) if there else {}
                if there and (columns["id"] != self.ids[begin : begin + there]).any():
                    found = f"others in sequence {number} of {run.name}"
                    raise layout.refusal(run._trace.path, "the same tokens in both runs", found, "make a page of each")
                reached.append(there)
                parts.append({n: _padded(columns.get(n), count - there, n) for n in ("nll", "entropy", "max_probability", "rank", "steps", "flops")})
            joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            for name in ("nll", "entropy", "max_probability"):
                self._add_real(f"{r}.{name}", joined[name])
            self._add(f"{r}.rank", "u32", joined["rank"])
            self._add(f"{r}.steps", "u16", np.minimum(joined["steps"], 65535))
            if np.nan_to_num(joined["flops"]).any():
                self._add_real(f"{r}.flops", joined["flops"])
            info = run.summary()
            means = {"nll": "mean_nll", "perplexity": "perplexity", "bits_per_byte": "bits_per_byte", "mean_steps": "mean_steps"}
            words = ("name", "method", "policy", "scoring", "architecture", "depth_mixing", "dtype", "step_unit")
            self.head["runs"].append({
                **{w: info[w] for w in words}, **{c: info[c] for c in ("max_steps", "layers", "tokens", "scored_tokens")},
                "complete": info["complete"], "reached": reached, "maps": [], "scalars": [], "candidates": None,
                "flops_per_token": info["flops_sum"] / info["tokens"] if info["tokens"] else 0.0,
                **{name: [info[mean] if np.isfinite(info[mean]) else None, None, None] for name, mean in means.items()},
            })  # fmt: skip

    def _steps(self) -> None:
        """What is kept for each step, the most telling first, as far as it fits."""
        count = len(self.ids)
        widths = [run.max_steps + 1 for run in self.runs]
        left = BUDGET
        names: dict[str, None] = dict.fromkeys(FIRST_MAPS)
        for run in self.runs:
            names.update(dict.fromkeys(n for n, axes in run.signals.items() if axes == ("token", "step")))
        left_out = []
        used = np.zeros(0, np.int64)
        for place, name in enumerate(names):
            having = [r for r, run in enumerate(self.runs) if run.signals.get(name) == ("token", "step") and run.max_steps > 0 and self._is_real(run, name)]
            cost = sum(2 * count * widths[r] for r in having)
            if having and cost > left:
                left_out.append(name)
                continue
            left -= cost
            for r in having:
                values = self._signal(self.runs[r], name)
                if values is not None:
                    _, _, unit, title, _ = self.runs[r]._signals[name][0:5]
                    self.head["runs"][r]["maps"].append({"name": name, "title": title or name, "unit": unit, "width": int(values.shape[1])})
                    self._add_real(f"{r}.map.{name}", values)
            if place == 0:
                left, used = self._candidates(count, widths, left, left_out)
        for r, run in enumerate(self.runs):
            for name, axes in run.signals.items():
                values = self._signal(run, name) if axes == ("token",) else None
                if values is not None:
                    _, _, unit, title, _ = run._signals[name]
                    self.head["runs"][r]["scalars"].append({"name": name, "title": title or name, "unit": unit})
                    self._add_real(f"{r}.scalar.{name}", values)
        if left_out:
            self.notices.append(f"To stay small the page leaves out {', '.join(left_out)} by step; the trace has them.")
        words = self.runs[0].vocabulary()
        for run in self.runs[1:]:
            words = {**run.vocabulary(), **words}
        without_text = not all(s["bytes"] for s in self.head["sequences"])
        known = np.unique(np.concatenate([used, self.ids if without_text else used[:0]]))
        stand_for = [words.get(i) or f"[{i}]".encode() for i in known.tolist()]  # some ids have no token
        self._add("word_bytes", "u8", np.frombuffer(b"".join(stand_for), np.uint8))
        self._add("word_length", "u32", np.array([len(w) for w in stand_for], np.int64))
        if without_text:
            self._add("word", "u32", np.searchsorted(known, self.ids))
        for r, ids in self.candidate_ids.items():
            self._add(f"{r}.candidate", "u32" if len(known) > 65535 else "u16", np.searchsorted(known, ids))

    def _candidates(self, count: int, widths: list[int], left: int, left_out: list[str]) -> tuple[int, NDArray[np.int64]]:
        self.candidate_ids: dict[int, NDArray[np.int64]] = {}
        both = ("candidate_ids", "candidate_probabilities")
        having = [r for r, run in enumerate(self.runs) if all(run.signals.get(n) == ("token", "step", "candidate") for n in both)]
        having = [r for r in having if all(self._has(self.runs[r], n) for n in both)]
        recorded = {r: self.runs[r].signal("candidate_ids", self.shown[0][0], 0, 1).shape[2] for r in having}
        used = [np.zeros(0, np.int64)]
        for most in (10, 5, 3, 1):
            cost = sum(CANDIDATE_BYTES * count * widths[r] * min(most, recorded[r]) for r in having)
            if cost <= left:
                if having and most < min(10, max(recorded.values())):
                    left_out.append(f"candidates beyond {most}")
                for r in having:
                    kept = min(most, recorded[r])
                    ids, p = (self._signal(self.runs[r], n) for n in both)
                    if ids is None or p is None:
                        continue
                    self.candidate_ids[r] = np.maximum(ids[:, :, :kept].astype(np.int64), 0).reshape(-1)
                    self._add_real(f"{r}.candidate_p", p[:, :, :kept])
                    self.head["runs"][r]["candidates"] = {"count": kept, "steps": int(ids.shape[1])}
                    used.append(np.unique(self.candidate_ids[r]))
                return left - cost, np.unique(np.concatenate(used))
        left_out.append("candidates")
        return left, used[0]

    def _has(self, run: Run, name: str) -> bool:
        """Whether every shown sequence has all of its values; a partial run may not."""
        for number, count in self.shown:
            if number not in run.sequences or run._place(number)[1] < count:
                return False
            row = run._trace._query(
                "SELECT coalesce(sum(tokens), 0) FROM chunk WHERE sequence = ? AND signal = ?",
                (run._place(number)[0], run._signals[name][0]),
            )
            if row[0][0] < count:
                return False
        return True

    def _is_real(self, run: Run, name: str) -> bool:
        return self._has(run, name) and run.signal(name, self.shown[0][0], 0, 1).dtype.kind == "f"

    def _signal(self, run: Run, name: str) -> NDArray[Any] | None:
        if not self._has(run, name):
            return None
        parts = [run.signal(name, number, 0, count) for number, count in self.shown]
        if len({p.shape[1:] for p in parts}) > 1:
            return None
        return np.concatenate(parts)


def _padded(values: NDArray[Any] | None, missing: int, name: str) -> NDArray[Any]:
    real = name in ("nll", "entropy", "max_probability")
    rest = np.full(missing, np.nan if real else 0, np.float32 if real else np.int64)
    return rest if values is None else np.concatenate([values, rest])


def _version() -> str:
    from . import __version__

    return __version__
