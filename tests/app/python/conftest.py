# SPDX-License-Identifier: GPL-3.0-or-later
"""Small traces, and the engine's program where it was built (PONDERSCOPE_PROGRAM)."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

import ponderscope as ps

TREE = Path(__file__).resolve().parents[3]
WORDS = [b" the", b" cat", b" sat", b" on", b" a", b" mat", b".", b"\n", "é".encode(), "🦉".encode()]


@pytest.fixture(scope="session")
def tree() -> Path:
    return TREE


@pytest.fixture(scope="session")
def program() -> Path:
    path = os.environ.get("PONDERSCOPE_PROGRAM", "")
    if not path or not Path(path).exists():
        pytest.skip("the program ponderscope was not built; PONDERSCOPE_PROGRAM names it")
    return Path(path)


@pytest.fixture(scope="session")
def ponderscope(program: Path) -> Callable[..., Any]:
    """Runs a verb; its JSON where it was asked for, else its output. Fails the test unless it ends with `code`."""

    def run(*arguments: object, code: int = 0) -> Any:
        done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=300)
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout) if "--json" in arguments else done.stdout + done.stderr

    return run


def made_up(seed: int, count: int = 300, max_steps: int = 3) -> dict[str, Any]:
    """Numbers of a sequence that no model made."""
    random = np.random.default_rng(seed)
    ids = random.integers(0, len(WORDS), count)
    lengths = np.array([len(WORDS[i]) for i in ids])
    ends = np.cumsum(lengths)
    steps = random.integers(0, max_steps + 1, count)
    by_step = random.gamma(2.0, 1.5, (count, max_steps + 1)).astype(np.float32)
    by_step[-1] = np.nan
    nll = by_step[np.arange(count), steps]
    return {
        "ids": ids,
        "text": b"".join(WORDS[i] for i in ids).decode(),
        "spans": np.stack([ends - lengths, ends], 1),
        "nll": nll,
        "entropy": random.gamma(2.0, 1.0, count),
        "max_probability": random.random(count),
        "rank": np.where(np.isnan(nll), 0, random.integers(1, 40, count)),
        "steps": steps,
        "flops": (steps + 1) * 1000,
        "signals": {
            "nll": by_step,
            "entropy": random.gamma(2.0, 1.0, (count, max_steps + 1)),
            "gate": random.random((count, max_steps)),
            "candidate_ids": random.integers(0, len(WORDS), (count, max_steps + 1, 4)),
            "candidate_probabilities": np.sort(random.random((count, max_steps + 1, 4)) / 4)[..., ::-1],
        },
    }


SIGNALS = {
    **{name: ps.KNOWN_SIGNALS[name] for name in ("nll", "entropy", "candidate_ids", "candidate_probabilities")},
    "gate": ps.Signal(("token", "step"), title="Gate", description="Share of the tokens' mass that stops."),
}


def write_trace(path: Path, names: tuple[str, ...] = ("model", "other"), sequences: int = 2, texts: int = 100) -> Path:
    """Runs of the same texts, with other numbers each."""
    with ps.Writer(path) as writer:
        for run_number, name in enumerate(names):
            with writer.run(name, method="my gate", max_steps=3, layers=12, tokens=WORDS, signals=SIGNALS) as run:
                for number in range(sequences):
                    text = made_up(texts + number)
                    values = made_up(1000 * run_number + number)
                    run.sequence(**{**values, **{key: text[key] for key in ("ids", "text", "spans")}}, title=f"text {number}")
    return path


def changed(path: Path, *statements: str | tuple[str, tuple[Any, ...]]) -> Path:
    """Runs scripts, and statements with their values, on a file of SQLite."""
    database = sqlite3.connect(path)
    for one in statements:
        database.executescript(one) if isinstance(one, str) else database.execute(*one)
    database.commit()
    database.close()
    return path


@pytest.fixture
def trace_path(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "made.ponder")
