# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples run as they are told to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ponderscope as ps

from conftest import TREE

pytest.importorskip("torch", reason="torch is not here: PONDERSCOPE_TORCH names a folder that holds it")
EXAMPLES = TREE / "app" / "python" / "examples"


def run_example(name: str, *arguments: object) -> str:
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_early_exit(ponderscope, tmp_path: Path) -> None:
    said = run_example("early_exit.py", TREE / "sample_models" / "texts" / "passage.txt", "-o", tmp_path, "--steps", 150)
    losses = [float(x) for x in re.findall(r"loss (\d+\.\d+)", said)]
    assert losses[-1] < losses[0] - 1  # it learns
    gate, everything = ps.open(tmp_path / "early_exit.ponder")
    assert 0 < gate.summary()["mean_steps"] < everything.summary()["mean_steps"] == 3
    assert (tmp_path / "early_exit.html").stat().st_size > 50_000
    trace = f"{tmp_path / 'early_exit.ponder'}#all layers"
    points = ponderscope("policy", trace, "--policy", "entropy:theta=2.5", "--policy", "fixed:n=3", "--json")["points"]
    by_policy = {p["policy"]: p for p in points}
    assert by_policy["fixed:n=3"]["mean_nll"] == pytest.approx(everything.summary()["mean_nll"], abs=1e-5)
    # The gate is a rule like others: replayed on all layers it exits where the model's own run did.
    learned = next(p for p in ponderscope("policy", trace, "--policy", "learned", "--json")["points"] if p["policy"] == "learned")
    assert learned["mean_steps"] == pytest.approx(gate.summary()["mean_steps"], abs=1e-6)
    assert learned["mean_nll"] == pytest.approx(gate.summary()["mean_nll"], abs=1e-5)
    assert {r["rule"] for r in ponderscope("referee", trace, "--json", "--policy", "learned", "--policy", "entropy")["curves"]} >= {"learned"}
    pair = ponderscope("compare", trace, f"{tmp_path / 'early_exit.ponder'}#gate", "--json")["pairs"][0]
    assert pair["tokens"] == everything.info["scored_tokens"]
