# SPDX-License-Identifier: GPL-3.0-or-later
"""Halting rules of one's own, and labels that were recorded with the text."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import ponderscope as ps
from ponderscope.reader import labels_of_tokens

from conftest import SIGNALS, TREE, WORDS, made_up, write_trace

RULE = ps.Rule("gate", stops="above", theta=0.6)


def write_own(path: Path, rule: ps.Rule | None = RULE) -> Path:
    """A run in which every step ran, with a gate that no method here knows."""
    with ps.Writer(path) as writer, writer.run("own", method="mine", max_steps=3, layers=2, tokens=WORDS, signals=SIGNALS, policy="full", rule=rule) as run:
        for number in range(3):
            values = made_up(number)
            by_step = values["signals"]["nll"]
            run.sequence(**{**values, "steps": np.full(300, 3), "nll": by_step[:, 3], "rank": np.where(np.isnan(by_step[:, 3]), 0, 1)})
    return path


def stopped(run: ps.Run, stop) -> tuple[float, float]:
    """Mean steps and NLL of a rule over the tokens with a target, by NumPy."""
    steps, nll = [], []
    for number in run.sequences:
        stops = stop(run.signal("gate", number))
        chosen = np.where(stops.any(1), stops.argmax(1), 3)[:-1]
        steps.append(chosen)
        nll.append(run.signal("nll", number)[np.arange(len(chosen)), chosen])
    return float(np.concatenate(steps).mean()), float(np.concatenate(nll).mean())


def test_a_rule_of_ones_own_is_learned(ponderscope, tmp_path: Path) -> None:
    path = write_own(tmp_path / "own.ponder")
    run = ps.open(path).run()
    points = ponderscope(
        "policy", path, "--policy", "learned", "--policy", "signal:name=gate,stops=above,theta=0.6", "--policy", "signal:name=gate,theta=0.25", "--json"
    )["points"]
    by_policy = {point["policy"]: (point["mean_steps"], point["mean_nll"]) for point in points}
    wanted = stopped(run, lambda gate: gate >= np.float32(0.6))
    assert by_policy["learned"] == pytest.approx(wanted, rel=1e-5)
    assert by_policy["signal:name=gate,stops=above,theta=0.6"] == pytest.approx(wanted, rel=1e-5)
    assert by_policy["signal:name=gate,stops=below,theta=0.25"] == pytest.approx(stopped(run, lambda gate: gate < np.float32(0.25)), rel=1e-5)
    swept = ponderscope("policy", path, "--policy", "signal:name=gate,stops=above", "--sweep", "theta=0.2,0.6", "--json")["points"]
    assert [point["policy"] for point in swept[1:]] == [f"signal:name=gate,stops=above,theta={theta}" for theta in ("0.2", "0.6")]
    curves = ponderscope("referee", path, "--json", "--policy", "learned", "--policy", "signal:name=gate")["curves"]
    rules = {curve["rule"] for curve in curves}
    assert {"learned", "signal:name=gate,stops=below"} <= rules


def test_what_is_no_rule_of_the_run_is_refused(ponderscope, tmp_path: Path) -> None:
    for rule in (
        ps.Rule("nothing"), ps.Rule("candidate_ids"), ps.Rule("gate", stops="at"), ps.Rule("gate", theta=float("nan")), ps.Rule("gate", theta="half"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="rule"):
            write_own(tmp_path / "none.ponder", rule)
        assert not (tmp_path / "none.ponder").exists()
    path = write_own(tmp_path / "own.ponder", None)
    assert "Writer.run(rule=" in ponderscope("policy", path, "--policy", "learned", code=2)
    assert "nll, entropy, gate" in ponderscope("policy", path, "--policy", "signal:name=absent,theta=1", code=2)
    engine = TREE / "sample_models" / "adaponderlm-neox-1m"
    ids = tmp_path / "ids.json"
    ids.write_text("[[1, 2, 3, 4, 5, 6]]")
    said = ponderscope("record", engine, "--ids", ids, "--policy", "signal:name=mine,theta=1", "-o", tmp_path / "e.ponder", code=2)
    assert "[policy.unsuited]" in said and not (tmp_path / "e.ponder").exists()
    assert "[run.unsuited]" in ponderscope("policy", path, "--policy", "entropy:theta=2", "--rerun", engine, code=2)
    # What the engine computes itself it can follow.
    ponderscope("record", engine, "--ids", ids, "--policy", "signal:name=entropy,theta=4", "-o", tmp_path / "e.ponder", "--name", "signal")
    ponderscope("record", engine, "--ids", ids, "--policy", "entropy:theta=4", "-o", tmp_path / "e.ponder", "--name", "entropy")
    trace = ps.open(tmp_path / "e.ponder")
    np.testing.assert_array_equal(trace.run("signal").columns()["steps"], trace.run("entropy").columns()["steps"])


def test_labels_are_read_and_exported(ponderscope, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    corpus, path = tmp_path / "corpus.jsonl", tmp_path / "labelled.ponder"
    lines = [("The lamp was lit.", "easy"), ("The keeper knew the sea.", "hard"), ("Nobody came.", "easy")]
    corpus.write_text("".join(json.dumps({"text": text, "kind": kind}) + "\n" for text, kind in lines))
    ponderscope("record", TREE / "sample_models" / "vanilla-neox-1m", "--jsonl", corpus, "--label-field", "kind", "-o", path)
    run = ps.open(path).run()
    labels = run.labels()
    assert list(labels.columns) == ["sequence", "text_begin", "text_end", "class"]
    assert labels["class"].tolist() == [kind for _, kind in lines]
    assert labels["text_end"].tolist() == [len(text) for text, _ in lines]
    tokens = run.tokens()
    assert tokens.groupby("sequence")["label"].agg(set).tolist() == [{kind} for _, kind in lines]
    # The table of stats from the CSV alone.
    ponderscope("export", path, "-o", tmp_path / "csv")
    with (tmp_path / "csv" / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == labels["class"].tolist()
    table = pandas.read_csv(tmp_path / "csv" / "tokens.csv", keep_default_na=False, na_values={"nll": ""})
    classes = {int(row["sequence"]): row["class"] for row in rows}
    means = table.dropna(subset=["nll"]).assign(label=lambda t: t["sequence"].map(classes)).groupby("label")["nll"].mean()
    for one in ponderscope("stats", path, "--json", "--replicates", 200)["labels"]:
        assert one["mean_nll"] == pytest.approx(means[one["name"]], rel=1e-5)
    tables = ps.open(path).to_arrow()
    assert tables["labels"].to_pandas()["class"].tolist() == labels["class"].tolist()
    assert tables["tokens"].column("label").to_pylist() == tokens["label"].tolist()
    assert tables["sequences"].schema.field("group").type == pyarrow.string()


def test_runs_without_labels_have_none(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    run = ps.open(write_trace(tmp_path / "plain.ponder")).run("model")
    assert len(run.labels()) == 0 and "label" not in run.tokens().columns


def test_a_token_under_two_labels_takes_the_larger_part() -> None:
    columns = {"text_begin": np.array([0, 3, 5, 8, 9]), "text_end": np.array([3, 5, 8, 9, 9])}
    assert labels_of_tokens([(0, 4, "a"), (4, 6, "b"), (6, 8, "c")], columns) == ["a", "a", "c", None, None]
    assert labels_of_tokens([], columns) == [None] * 5
