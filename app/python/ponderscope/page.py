# SPDX-License-Identifier: GPL-3.0-or-later
"""`ponderscope page` from Python: one run, or two side by side, as one self-contained HTML file."""

from __future__ import annotations

import html
import os
import tempfile
from pathlib import Path

from .program import ask
from .program import find as find_program
from .reader import Run, Trace

MAX_TOKENS = 100_000


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
    """Returns the page as text. With ``path``, also writes it to this file.

    ``a`` and ``b``: names of runs with the same text and tokenizer. Without ``a``: the first run, and beside it the next run
    that is comparable with it. ``sequences``: numbers of the sequences to show; None: all, up to ``max_tokens`` tokens.
    Needs the program ponderscope: PONDERSCOPE_PROGRAM, else the wheel's program, else the program on PATH.
    """
    if a is None and b is not None:
        raise ValueError("b is given without a; name both runs.")
    runs = [trace.run(name) for name in (a, b) if name is not None]
    for number in sequences or ():
        (runs or [next(iter(trace))])[0]._place(number)  # IndexError
    return _make_page(trace, path, runs, title, sequences, max_tokens)


def notebook_html(run: Run) -> str:
    """A page of the run's first tokens in an iframe. Without the program or scored tokens: repr(run) as HTML."""
    if not run.info["scored_tokens"] or find_program() is None:
        return html.escape(repr(run))
    page = _make_page(run._trace, None, [run], None, None, 2000)
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" style="width:100%;height:640px;border:1px solid #8884;'
        'border-radius:8px" title="Ponderscope"></iframe>'
    )


def _make_page(
    trace: Trace, path: str | os.PathLike[str] | None, runs: list[Run], title: str | None, sequences: list[int] | None, max_tokens: int
) -> str:
    options = [f"--run={run.name}" for run in runs] + [f"--sequence={number}" for number in sequences or ()]
    options += [f"--title={title}"] if title else []
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "page.html") if path is None else Path(path).absolute()
        ask("page", trace.path.absolute(), *options, f"--max-tokens={max_tokens}", "-o", target)
        return target.read_text(encoding="utf-8")
