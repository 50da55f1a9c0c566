# SPDX-License-Identifier: GPL-3.0-or-later
"""Extra columns of tokens: the same file from Python and from the program."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ponderscope as ps
from conftest import SIGNALS, WORDS, changed, made_up
from ponderscope.schema import ANNOTATIONS, schema


@pytest.fixture
def path(program: Path, tmp_path: Path) -> Path:
    """A run "one" of two sequences, and "two" of one."""
    path = tmp_path / "a.ponder"
    with ps.Writer(path) as writer:
        for name, counts in (("one", (300, 40)), ("two", (25,))):
            with writer.run(name, max_steps=3, vocab_size=50_000, tokens=WORDS, signals=SIGNALS) as run:
                for seed, count in enumerate(counts):
                    run.sequence(**made_up(seed, count))
    return path


def beside(path: Path) -> Path:
    return path.with_name(path.name + ".annotations")


def test_values_come_back_and_the_trace_stays(path: Path) -> None:
    before = path.read_bytes()
    ps.annotate(path, "one", "score", np.arange(340) / 4)
    ps.annotate(path, "one", "part_of_speech", {1: ["VERB", None, "", *["NOUN"] * 37]})
    with ps.open(path) as trace:
        run = trace.run("one")
        ps.annotate(trace, run, "code", {0: [1] * 300, 1: [2] * 39 + [None]}, category=True)
        assert path.read_bytes() == before
        assert list(run.annotations) == ["code", "part_of_speech", "score"]
        assert run.annotation("score", 1).tolist() == [(300 + t) / 4 for t in range(40)]
        assert run.annotation("score", 1, 2, 4).tolist() == [75.5, 75.75]
        assert run.annotation("part_of_speech", 1, 0, 4).tolist() == ["VERB", None, None, "NOUN"]
        assert run.annotation("part_of_speech", 0).tolist() == [None] * 300
        assert run.annotation("code", 1)[[0, 38, 39]].tolist() == ["2", "2", None]
        assert run.annotations["code"].classes == ("1", "2")
        assert not trace.run("two").annotations
        with pytest.raises(KeyError, match="code, part_of_speech, score"):
            run.annotation("other")
        ps.annotate(trace, "one", "score", [None] * 339 + [7])  # replaced
        assert np.nansum(run.annotation("score", 1)) == 7
    assert {p.name for p in path.parent.iterdir()} == {"a.ponder", "a.ponder.annotations"}


def test_tables_have_them(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    parquet = pytest.importorskip("pyarrow.parquet")
    ps.annotate(path, "one", "mixed", ["a"] * 340)
    ps.annotate(path, "two", "mixed", range(25))
    ps.annotate(path, "two", "score", range(25))
    with ps.open(path) as trace:
        tokens = trace.run("two").tokens()
        assert tokens["score"].tolist() == list(range(25))
        assert (trace.run("one").tokens()["mixed"] == "a").all()
        table = trace.to_arrow()["tokens"]
        assert table["mixed"].to_pylist() == ["a"] * 340 + [f"{float(t)}" for t in range(25)]
        assert table["score"].to_pylist() == [None] * 340 + [float(t) for t in range(25)]
        trace.to_parquet(tmp_path / "tables")
    assert parquet.read_table(tmp_path / "tables" / "tokens.parquet").column_names[-2:] == ["mixed", "score"]


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("score", [1.0] * 339, "340.* 339"),
        ("score", {0: [1.0] * 299}, "sequence 0.* 300.* 299"),
        ("score", {2: [1.0]}, "sequence 2"),
        ("score", [None] * 340, r"annotation\.table"),
        ("score", [float("inf")] * 340, "finite"),
        ("score", ["a", 1.0] * 170, "score"),
        ("score", "text", "score"),
        ("<script>alert(1)</script>", [1.0] * 340, r"annotation\.table"),
        ("a\n", [1.0] * 340, r"annotation\.table"),
        (5, [1.0] * 340, "int"),
        ("NLL", [1.0] * 340, r"annotation\.table"),
        ("tag", ["a\u202eb"] * 340, r"U\+202E"),
        ("tag", ["\ud800"] * 340, "UTF-8"),
        ("score", [10**400] * 340, "64"),
        ("score", {0: 5}, "sequence 0: .*int"),
        ("score", np.array(5), "ndarray"),
        ("score", {0: np.zeros((300, 2))}, "ndarray"),
        ("score", {0: [[1.0, 2.0]] * 300}, "list"),
        ("score", [object()] * 340, "object"),
    ],
)
def test_what_cannot_be_is_refused(path: Path, name: str, values: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as error:
        ps.annotate(path, "one", name, values)
    assert "\n" not in str(error.value).replace("\\n", "")
    assert {p.name for p in path.parent.iterdir()} == {"a.ponder"}


def test_numbers_are_classes_of_their_own(path: Path) -> None:
    ps.annotate(path, "two", "code", [1234567.0, 1234568.0, 2.0, 2, np.float32(0.1), 0.1 + 0.2, 0.3, *[None] * 18], category=True)
    with ps.open(path) as trace:
        assert trace.run("two").annotations["code"].classes == ("1234567", "1234568", "2", "0.1", "0.30000000000000004", "0.3")
    with pytest.raises(ValueError, match="object"):
        ps.annotate(path, "two", "code", [object()] * 25, category=True)


def test_what_pandas_calls_absent_is(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    values = pandas.Series([1, None, 3, *[4] * 22], dtype="Int64")
    ps.annotate(path, "two", "score", values)
    ps.annotate(path, "two", "kind", pandas.Series(["a", pandas.NA, *["b"] * 23], dtype="string"))
    with ps.open(path) as trace:
        read = trace.run("two").annotation("score", 0, 0, 3)
        assert read[0] == 1 and np.isnan(read[1]) and read[2] == 3
        assert trace.run("two").annotation("kind", 0, 0, 3).tolist() == ["a", None, "b"]


def test_a_sequence_is_named_by_its_number(path: Path) -> None:
    with ps.Writer(path) as writer, writer.run("three", max_steps=3, tokens=WORDS, signals=SIGNALS) as run:
        for seed, title in enumerate(("1", "0")):
            run.sequence(**made_up(seed, 20), title=title)
    ps.annotate(path, "three", "score", {0: range(20)})
    with ps.open(path) as trace:
        assert np.nansum(trace.run("three").annotation("score", 0)) == 190
        assert np.isnan(trace.run("three").annotation("score", 1)).all()


def test_those_of_another_text_are_left_out(path: Path) -> None:
    ps.annotate(path, "two", "score", [1.0] * 25)
    with ps.Writer(path, overwrite=True) as writer, writer.run("two", max_steps=3, tokens=WORDS, signals=SIGNALS) as run:
        run.sequence(**made_up(5, 25))
    with ps.open(path) as trace:
        with pytest.warns(UserWarning, match="score.*'two'"):
            assert not trace.run("two").annotations
        with pytest.warns(UserWarning, match="score"):
            assert "score" not in trace.run("two").tokens()
        assert "score" not in trace.run("two").columns()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("UPDATE annotation_value SET value = 9", " tag .*9"),
        ("UPDATE annotation SET name = '<b>'", "'<b>'"),
        ("UPDATE annotation SET name = 'nll'", "'nll'"),
        ("DROP TABLE annotation_value", " annotation_value"),
        ("PRAGMA application_id = 5", "annotations"),
        ("PRAGMA user_version = 2", "version 2"),
    ],
)
def test_damaged_ones_say_so(path: Path, change: str, sentence: str) -> None:
    ps.annotate(path, "two", "tag", ["a"] * 25)
    changed(beside(path), change)
    with ps.open(path) as trace, pytest.raises(ValueError, match=sentence):
        trace.run("two").annotation("tag")


def test_a_lock_of_another_program_is_said_as_one(path: Path) -> None:
    ps.annotate(path, "two", "tag", ["a"] * 25)
    other = sqlite3.connect(beside(path), isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    with ps.open(path) as trace, pytest.raises(OSError, match="annotations"):
        trace.run("two").annotation("tag")
    assert time.monotonic() - began < 3
    other.close()
    with ps.open(path) as trace:
        assert trace.run("two").annotation("tag")[0] == "a"


def test_the_program_reads_and_writes_the_same_file(ponderscope: Any, path: Path, tmp_path: Path) -> None:
    ps.annotate(path, "one", "part_of_speech", ["NOUN", "VERB"] * 170)
    ps.annotate(path, "one", "score", range(340))
    listed = ponderscope("annotate", f"{path}#one", "--json")
    assert [(one["name"], one["kind"], one["tokens_with_value"]) for one in listed] == [
        ("part_of_speech", "category", 340), ("score", "number", 340),
    ]  # fmt: skip
    stats = ponderscope("stats", f"{path}#one", "--by", "part_of_speech", "--label-of", "token", "--replicates", 100, "--json")
    assert [(c["name"], c["count"]) for c in stats["by"][0]["classes"]] == [("NOUN", 170), ("VERB", 168)]
    checked = ponderscope("check", path, "--json")
    assert checked["sound"] and checked["without_digest"] == 0  # its digests are the engine's

    table = tmp_path / "a.csv"
    table.write_text("token,depth,kind\n" + "".join(f"{t},{t / 8},{'x' if t % 2 else ''}\n" for t in range(25)))
    ponderscope("annotate", path, "--run", "two", "--csv", table)
    with ps.open(path) as trace:
        two = trace.run("two")
        assert two.annotation("depth").tolist() == [t / 8 for t in range(25)]
        assert two.annotation("kind").tolist() == [None, "x"] * 12 + [None]
        assert trace.run("one").annotation("part_of_speech", 1, 0, 2).tolist() == ["NOUN", "VERB"]  # carried over

    made = sqlite3.connect(beside(path))
    for table, columns in schema(ANNOTATIONS).tables.items():
        assert {row[1]: row[2] for row in made.execute(f"PRAGMA table_info({table})")} == columns
