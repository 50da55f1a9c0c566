# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written is what is read, by this package and by the engine's program."""

from __future__ import annotations

import signal as signals_of_processes
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ponderscope as ps
from ponderscope import columns as value_checks
from ponderscope.chunks import FULL_BYTES

from conftest import SIGNALS, TREE, WORDS, changed, made_up, write_trace


def test_what_is_written_is_read(trace_path: Path) -> None:
    trace = ps.open(trace_path)
    assert trace.run_names == ["model", "other"]
    run = trace.run("model")
    wanted, text = made_up(0), made_up(100)
    columns = run.columns(0)
    for name in ("nll", "entropy", "max_probability"):
        np.testing.assert_array_equal(columns[name], np.asarray(wanted[name], np.float32))
    for name in ("rank", "steps", "flops"):
        np.testing.assert_array_equal(columns[name], wanted[name])
    np.testing.assert_array_equal(columns["id"], text["ids"])
    assert run.text(0) == text["text"]
    assert "".join(run.token_texts(0)) == text["text"]
    assert run.vocabulary() == {i: w for i, w in enumerate(WORDS) if i in text["ids"] or i in wanted["signals"]["candidate_ids"]}


def test_steps_that_did_not_run_are_not_numbers(trace_path: Path) -> None:
    run = ps.open(trace_path).run("model")
    wanted = made_up(0)
    ran = np.arange(4)[None, :] <= wanted["steps"][:, None]
    gate = run.signal("gate")
    assert gate.shape == (300, 3)
    np.testing.assert_array_equal(np.isnan(gate), ~ran[:, :3])
    np.testing.assert_allclose(gate[ran[:, :3]], wanted["signals"]["gate"][ran[:, :3]].astype(np.float32))
    ids = run.signal("candidate_ids")
    assert (ids[~ran] < 0).all() and (ids[ran] >= 0).all()


def test_what_is_known_up_front_stays(tmp_path: Path) -> None:
    steps = np.array([0, 2, 1])
    router = np.arange(9, dtype=np.float32).reshape(3, 3)
    attention = np.full((3, 3, 1, 2), 0.5, np.float16)
    described = {"router": ps.Signal(every_step=True), "weights": ps.Signal(("token", "step", "head", "back"))}
    with ps.Writer(tmp_path / "r.ponder") as writer, writer.run("r", max_steps=2, signals=described) as run:
        run.sequence([1, 2, 3], steps=steps, signals={"router": router, "weights": attention})
    read = ps.open(tmp_path / "r.ponder").run()
    np.testing.assert_array_equal(read.signal("router"), router)
    weights = read.signal("weights")
    assert np.isnan(weights[0, 1:, :, 0]).all() and (weights[0, 1:, :, 1] == 0).all() and (weights[1] == 0.5).all()


def test_reading_leaves_the_writers_locks(tmp_path: Path) -> None:
    """A process that closes a descriptor of its own of a file would lose SQLite's locks on it."""
    with ps.Writer(tmp_path / "w.ponder") as writer, writer.run("model", max_steps=3, tokens=WORDS, signals=SIGNALS) as run:
        run.sequence(**made_up(0))
        writer._database.execute("BEGIN IMMEDIATE")
        trace = ps.open(tmp_path / "w.ponder")
        assert trace.run("model").sequences == [0]
        trace.close()
        other = subprocess.run(
            [sys.executable, "-c", "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')",
             str(tmp_path / "w.ponder")], capture_output=True, text=True,
        )  # fmt: skip
        assert "locked" in other.stderr
        writer._database.execute("ROLLBACK")


def test_long_signals_are_cut_into_chunks_and_read_in_parts(tmp_path: Path) -> None:
    count = 3 * FULL_BYTES // (4 * 40) + 17
    values = np.arange(count * 40, dtype=np.float32).reshape(count, 40)
    with ps.Writer(tmp_path / "long.ponder") as writer:
        with writer.run("long", signals={"wide": ps.Signal(("token", "column"))}) as run:
            with run.stream(title="in parts") as sequence:
                for begin in range(0, count, 1000):
                    part = values[begin : begin + 1000]
                    sequence.append(np.zeros(len(part), int), signals={"wide": part})
    read = ps.open(tmp_path / "long.ponder").run()
    np.testing.assert_array_equal(read.signal("wide"), values)
    np.testing.assert_array_equal(read.signal("wide", 0, 1500, 1703), values[1500:1703])
    database = sqlite3.connect(tmp_path / "long.ponder")
    sizes = [size for (size,) in database.execute("SELECT length(data) FROM chunk ORDER BY first_token")]
    assert len(sizes) == 4 and all(FULL_BYTES - 160 < size <= FULL_BYTES for size in sizes[:-1])


def test_attention_is_stored_without_its_zeros(tmp_path: Path) -> None:
    n = 150
    back = np.tril(np.random.default_rng(0).random((n, n)))[:, None, :].astype(np.float16)
    with ps.Writer(tmp_path / "a.ponder") as writer, writer.run("a", signals={"attention": ps.Signal(("token", "head", "back"), dtype="float16")}) as run:
        run.sequence(np.zeros(n, int), signals={"attention": back})
    np.testing.assert_array_equal(ps.open(tmp_path / "a.ponder").run().signal("attention"), back)
    database = sqlite3.connect(tmp_path / "a.ponder")
    assert [s for (s,) in database.execute("SELECT shape FROM chunk")] == ["[64,1,64]", "[64,1,128]", "[22,1,150]"]


def test_a_closed_trace_is_not_called_damaged(trace_path: Path) -> None:
    with ps.open(trace_path) as trace:
        run = next(iter(trace))
    for ask in (lambda: trace.run_names, lambda: run.columns(0)):
        with pytest.raises(ValueError, match="closed"):
            ask()


def test_groups(ponderscope, tmp_path: Path) -> None:
    with ps.Writer(tmp_path / "g.ponder") as writer, writer.run("g") as run:
        run.sequence([1, 2], title="one", group="Dickens")
        run.sequence([3, 4], title="two")
    assert [row["group"] for row in ps.open(tmp_path / "g.ponder").run().sequence_rows()] == ["Dickens", None]
    ponderscope("merge", tmp_path / "g.ponder", "-o", tmp_path / "merged.ponder")
    assert [row["group"] for row in ps.open(tmp_path / "merged.ponder").run().sequence_rows()] == ["Dickens", None]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("PRAGMA user_version=3", "version 2.*version 3"),
        ("PRAGMA user_version=1", "version 2.*version 1"),
        ("DROP TABLE training_point", " training_point"),
        ('DROP VIEW sequence_summary; ALTER TABLE sequence DROP COLUMN "group"', " sequence.group"),
    ],
)
def test_traces_of_another_schema_are_refused(trace_path: Path, change: str, sentence: str) -> None:
    changed(trace_path, change)
    before = trace_path.read_bytes()
    with pytest.raises(ValueError, match=sentence):
        ps.open(trace_path)
    with pytest.raises(ValueError, match=sentence), ps.Writer(trace_path) as writer, writer.run("new") as run:
        run.sequence([1, 2])
    assert trace_path.read_bytes() == before


def test_runs_are_added_and_names_stay_unique(trace_path: Path) -> None:
    write_trace(trace_path, ("model",))
    trace = ps.open(trace_path)
    assert trace.run_names == ["model", "other", "model (2)"]
    tokenizers = {row[0] for row in trace._query("SELECT tokenizer FROM run")}
    assert len(tokenizers) == 1  # one vocabulary for all
    write_trace_over = ps.Writer(trace_path, overwrite=True)
    write_trace_over.close()
    assert ps.open(trace_path).run_names == []


def test_one_writer_a_trace(tmp_path: Path) -> None:
    with ps.Writer(tmp_path / "one.ponder"):
        with pytest.raises(ValueError, match="one.ponder"):
            ps.Writer(tmp_path / "one.ponder")
    ps.Writer(tmp_path / "one.ponder").close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.ponder"]


@pytest.mark.parametrize("lost", ["removed", "moved", "replaced"])
def test_a_trace_that_loses_its_name_is_saved(tmp_path: Path, lost: str) -> None:
    path, saved = tmp_path / "lost.ponder", {"removed": "lost.ponder", "moved": "moved.ponder", "replaced": "lost-saved.ponder"}[lost]
    with pytest.raises(OSError, match=saved), ps.Writer(path) as writer:
        run = writer.run("model", max_steps=3, tokens=WORDS, signals=SIGNALS)
        run.sequence(**made_up(0))
        if lost == "removed":
            for suffix in ("", "-wal", "-shm", "-lock"):
                Path(f"{path}{suffix}").unlink()
        elif lost == "moved":
            path.rename(tmp_path / saved)
        else:
            (tmp_path / "other").write_bytes(b"another file")
            (tmp_path / "other").rename(path)
        run.sequence(**made_up(1))
    trace = ps.open(tmp_path / saved)
    np.testing.assert_array_equal(trace.run("model").columns(0)["id"], made_up(0)["ids"])
    assert not trace.run("model").summary()["complete"]
    trace.close()
    if lost == "replaced":
        assert path.read_bytes() == b"another file"
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith("lost.ponder-")]


def test_a_log_that_is_removed_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.ponder"
    with ps.Writer(path) as writer, writer.run("model", max_steps=3, tokens=WORDS, signals=SIGNALS) as run:
        run.sequence(**made_up(0))
        Path(f"{path}-wal").unlink()
        run.sequence(**made_up(1))
        run.sequence(**made_up(2))
        with ps.open(path) as reader:
            assert len(reader.run("model").sequence_rows()) == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.ponder"]


def test_finished_sequences_survive_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "killed.ponder"
    script = (
        "import sys, time; sys.path[:0] = sys.argv[1:3]; import ponderscope as ps; from conftest import *\n"
        "run = ps.Writer(sys.argv[3]).run('model', max_steps=3, tokens=WORDS, signals=SIGNALS)\n"
        "for i in range(3): run.sequence(**made_up(i))\n"
        "s = run.stream(); s.append([1, 2, 3], signals={})\n"
        "print('written', flush=True); time.sleep(60)"
    )
    package = Path(ps.__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(package), str(Path(__file__).parent), str(path)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"written\n"
    process.send_signal(signals_of_processes.SIGKILL)
    process.wait()
    trace = ps.open(path)
    rows = trace.run("model").sequence_rows()
    assert [row["complete"] for row in rows][:3] == [True] * 3
    np.testing.assert_array_equal(trace.run("model").columns(2)["id"], made_up(2)["ids"])
    assert not trace.run("model").summary()["complete"]
    trace.close()
    write_trace(path, ("next",))  # the lock went with the process


def test_an_error_leaves_the_run_partial(tmp_path: Path) -> None:
    with pytest.raises(KeyError), ps.Writer(tmp_path / "e.ponder") as writer:
        with writer.run("model", max_steps=3, tokens=WORDS, signals=SIGNALS) as run:
            run.sequence(**made_up(0))
            raise KeyError("mine")
    run_read = ps.open(tmp_path / "e.ponder").run()
    assert not run_read.summary()["complete"] and run_read.sequence_rows()[0]["complete"]


WRONG = [
    ({"nll": np.ones(300)}, "nll "),
    ({"nll": np.ones(299)}, r"nll .*\[299\].* 300"),
    ({"nll": np.where(np.arange(300) == 7, np.inf, np.nan)}, "token 7 .*inf"),
    ({"nll": np.where(np.arange(300) == 7, -1.0, np.nan)}, "token 7 .*-1.0"),
    ({"entropy": ["a"] * 300}, "entropy "),
    ({"max_probability": np.full(300, 1.5)}, "between 0 and 1"),
    ({"rank": np.zeros(300)}, "rank .*token 0"),
    ({"steps": np.full(300, 4)}, "steps .* 3.*token 0 .*4"),
    ({"steps": np.full(299, 1)}, "steps .* 299"),
    ({"steps": np.full(300, np.nan)}, "steps "),
    ({"flops": np.full(300, -1)}, "flops "),
    ({"ids": np.full(300, 10)}, "ids .* 9"),
    ({"ids": [[1, 2]]}, "ids "),
    ({"ids": []}, "at least one token"),
    ({"spans": None}, "spans"),
    ({"spans": np.zeros((299, 2), int)}, "spans "),
    ({"spans": np.tile([[5, 3]], (300, 1))}, "spans "),
    ({"spans": np.tile([[0, 3]], (300, 1))}, "token 1 .* 0 .* 3"),
    ({"text": "short"}, " 5 "),
    ({"text": "NUL \0 byte"}, " 4"),
    ({"text": "half \ud800"}, " 5"),
    ({"title": "half \ud800"}, "lone surrogate"),
    ({"signals": {"gates": np.zeros((300, 4))}}, "gates "),
    ({"signals": {"gate": np.zeros((300, 4, 1))}}, r"gate .*\[300, 4, 1\]"),
    ({"signals": {"gate": np.zeros((299, 4))}}, " 300"),
    ({"signals": {"gate": np.zeros((300, 5))}}, "gate .* 5 .*max_steps 3"),
    ({"signals": {"gate": np.full((300, 4), np.nan)}}, r"gate .*\[0, 0\]"),
    ({"signals": {"gate": np.full((300, 4), np.inf)}}, "infinite"),
    ({"signals": {"candidate_ids": np.full((300, 4, 2), 1 << 40)}}, "dtype"),
    ({"signals": {"candidate_ids": np.zeros((300, 4, 2))}}, "int32.*float64"),
]


@pytest.mark.parametrize(("change", "sentence"), WRONG, ids=[s for _, s in WRONG])
def test_wrong_values_are_refused_and_nothing_is_written(tmp_path: Path, change: dict, sentence: str) -> None:
    with ps.Writer(tmp_path / "w.ponder") as writer, writer.run("model", max_steps=3, tokens=WORDS, signals=SIGNALS) as run:
        run.sequence(**made_up(0))
        with pytest.raises(ValueError, match=sentence):
            run.sequence(**{**made_up(1), **change})
        run.sequence(**made_up(2))
    read = ps.open(tmp_path / "w.ponder").run()
    assert read.sequences == [0, 1] and read.info["tokens"] == 600
    np.testing.assert_array_equal(read.columns(1)["id"], made_up(2)["ids"])


def test_wrong_runs_are_refused(tmp_path: Path) -> None:
    with ps.Writer(tmp_path / "w.ponder") as writer:
        for wrong, sentence in (
            ({"signals": ["gate"]}, "not a known signal"),
            ({"signals": {"my gate": ps.Signal()}}, "my gate"),
            ({"signals": {"gate": ps.Signal(axes=("step",))}}, "gate"),
            ({"signals": {"gate": ps.Signal(dtype="complex64")}}, "cannot hold"),
            ({"max_steps": -1}, "max_steps"),
            ({"step_unit": "block"}, "step_unit"),
            ({"method": 3}, "method "),
        ):
            with pytest.raises(ValueError, match=sentence):
                writer.run("model", **wrong)
    assert ps.open(tmp_path / "w.ponder").run_names == []
    with pytest.raises(ValueError, match="closed"):
        writer.run("model")


def test_wrong_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none"):
        ps.Writer(tmp_path / "none" / "w.ponder")
    with pytest.raises(ValueError, match=str(tmp_path)):
        ps.Writer(tmp_path)
    with pytest.raises(OSError, match="/proc/w.ponder"):
        ps.Writer("/proc/w.ponder")
    (tmp_path / "text.ponder").write_text("no trace at all, but a hundred bytes of something else " * 3)
    for call in (ps.Writer, ps.open):
        with pytest.raises(ValueError, match="text.ponder"):
            call(tmp_path / "text.ponder")
    changed(tmp_path / "other.ponder", "CREATE TABLE run (id)")
    for call in (ps.Writer, ps.open):
        with pytest.raises(ValueError, match="other.ponder"):
            call(tmp_path / "other.ponder")


def test_damaged_traces_say_so(trace_path: Path, tmp_path: Path) -> None:
    database = sqlite3.connect(trace_path)
    database.execute("UPDATE chunk SET shape = '[1000000000000,4]' WHERE id = 1")
    database.commit()
    run = ps.open(trace_path).run("model")
    with pytest.raises(ValueError, match="nll"):
        run.signal("nll")
    database.execute("DELETE FROM token_row WHERE row % 7 = 3")
    database.commit()
    with pytest.raises(ValueError, match=" 300 "):
        ps.open(trace_path).run("model").tokens(0)
    database.execute("ALTER TABLE token_row RENAME TO tokens_before")
    database.execute("CREATE VIEW token_row AS SELECT * FROM tokens_before")
    database.commit()
    with pytest.raises(ValueError, match=" token_row"):
        ps.open(trace_path)
    data = bytearray(trace_path.read_bytes())
    data[60:64] = (99).to_bytes(4, "big")
    (tmp_path / "newer.ponder").write_bytes(data)
    (tmp_path / "cut.ponder").write_bytes(data[:3000])
    with pytest.raises(ValueError, match="cut.ponder"):
        ps.open(tmp_path / "cut.ponder")
    with pytest.raises(ValueError, match="version 99"):
        ps.open(tmp_path / "newer.ponder")


def test_character_offsets_become_byte_spans() -> None:
    text = "né🦉 x"
    spans = ps.byte_spans(text, [(0, 0), (0, 1), (1, 3), (2, 3), (2, 3), (3, 5)])
    assert spans.tolist() == [[0, 0], [0, 1], [1, 7], [7, 7], [7, 7], [7, 9]]
    assert text.encode()[spans[2][0] : spans[2][1]].decode() == "é🦉"
    value_checks.spans_of(spans, 6, len(text.encode()))
    with pytest.raises(ValueError, match="5 "):
        ps.byte_spans(text, [(0, 6)])


def test_a_name_comes_before_a_number(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "numbers.ponder", ("b", "1"))
    with ps.open(path) as trace:
        assert [(run.id, run.name) for run in trace] == [(1, "b"), (2, "1")]
        assert [trace.run(wanted).name for wanted in ("b", "1", "2", 1, 2)] == ["b", "1", "1", "b", "1"]
        with pytest.raises(ValueError, match=" 3"):
            trace.run(3)


def test_tables(trace_path: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    trace = ps.open(trace_path)
    assert list(trace.runs.name) == ["model", "other"]
    tokens = trace.run("model").tokens()
    assert len(tokens) == 600 and trace.runs.mean_nll[0] == pytest.approx(tokens.nll.mean())
    trace.to_parquet(tmp_path / "tables")
    read = pandas.read_parquet(tmp_path / "tables" / "tokens.parquet")
    assert len(read) == 1200
    pandas.testing.assert_series_equal(read.nll[:600], tokens.nll, check_index=False)
    gates = pandas.read_parquet(tmp_path / "tables" / "signals" / "gate.parquet")
    np.testing.assert_array_equal(np.stack(gates.value[:300]), trace.run("model").signal("gate"))
    with pytest.raises(ValueError, match="tables"):
        trace.to_parquet(tmp_path / "tables")
    assert set(trace.to_arrow()) >= {"runs", "sequences", "tokens", "signals/candidate_ids"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made.ponder", "tables"]


def test_tables_of_runs_with_other_steps(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "both.ponder"
    with ps.Writer(path) as writer:
        for name, steps in (("plain", 0), ("ponders", 3)):
            with writer.run(name, max_steps=steps, layers=1, vocab_size=10, signals=["nll"]) as run:
                run.sequence([1, 2, 3], signals={"nll": np.arange(3 * (steps + 1), dtype=np.float32).reshape(3, steps + 1)})
    ps.open(path).to_parquet(tmp_path / "tables")
    values = parquet.read_table(tmp_path / "tables" / "signals" / "nll.parquet").column("value").to_pylist()
    assert values == [[0.0], [1.0], [2.0], [0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]


# ---- against the engine's program ----


def engine_trace(ponderscope, path: Path) -> Path:
    ids = path.with_suffix(".json")
    ids.write_text("[[1, 2, 3, 4, 5, 6]]")
    ponderscope("record", TREE / "sample_models" / "vanilla-neox-1m", "--ids", ids, "-o", path)
    return path


def test_the_schema_is_the_engines(ponderscope, tmp_path: Path) -> None:
    ps.Writer(tmp_path / "mine.ponder").close()
    engine_trace(ponderscope, tmp_path / "engines.ponder")

    def schema_of(path: Path) -> tuple:
        database = sqlite3.connect(path)
        pragmas = [database.execute(f"PRAGMA {p}").fetchone()[0] for p in ("application_id", "user_version", "page_size")]
        return pragmas, dict(database.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))

    mine, engines = schema_of(tmp_path / "mine.ponder"), schema_of(tmp_path / "engines.ponder")
    assert mine == engines, "the program was built with another schema.sql"


def test_the_program_takes_it_as_its_own(ponderscope, trace_path: Path, tmp_path: Path) -> None:
    report = ponderscope("inspect", trace_path, "--json")
    assert [run["name"] for run in report["runs"]] == ["model", "other"]
    pair = ponderscope("compare", trace_path, "--json")["pairs"][0]
    a, b = (ps.open(trace_path).run(name).tokens().nll for name in ("model", "other"))
    assert pair["difference"]["value"] == pytest.approx((a - b).mean(), abs=1e-6)
    assert pair["tokens"] == 598
    points = ponderscope("policy", f"{trace_path}#model", "--policy", "fixed:n=1", "--json")["points"]
    replayed = next(point for point in points if point["policy"] == "fixed:n=1")
    run = ps.open(trace_path).run("model")
    wanted = []
    for number in run.sequences:
        steps = np.minimum(run.columns(number)["steps"], 1)
        wanted.append(run.signal("nll", number)[np.arange(len(steps)), steps][:-1])
    assert replayed["mean_nll"] == pytest.approx(np.concatenate(wanted).mean(), rel=1e-5)
    assert "steps" in str(ponderscope("stats", f"{trace_path}#model", "--json"))
    ponderscope("merge", trace_path, "-o", tmp_path / "merged.ponder")
    merged = ps.open(tmp_path / "merged.ponder")
    np.testing.assert_array_equal(merged.run("other").signal("gate", 1), ps.open(trace_path).run("other").signal("gate", 1))
    ponderscope("export", trace_path, "-o", tmp_path / "csv")


def test_the_engine_adds_to_it_and_it_to_the_engines(ponderscope, trace_path: Path) -> None:
    engine_trace(ponderscope, trace_path)
    write_trace(trace_path, ("third",))
    names = ps.open(trace_path).run_names
    assert names == ["model", "other", "vanilla-neox-1m", "third"]
    read = ps.open(trace_path).run("vanilla-neox-1m")
    assert read.columns()["id"].tolist() == [1, 2, 3, 4, 5, 6]
    assert read.signal("candidate_ids").shape == (6, 1, 10)


def test_names_that_are_no_utf8_are_no_damage(tmp_path: Path) -> None:
    path = changed(
        write_trace(tmp_path / "made.ponder", ("one",)),
        "UPDATE run SET name = CAST(x'6d6f64e9' AS TEXT), text_source = CAST(x'636166e92e747874' AS TEXT)",
        "UPDATE sequence SET title = CAST(x'636166e92e747874' AS TEXT)",
    )
    with ps.open(path) as trace:
        assert trace.run_names == ["mod\ufffd"]
        run = trace.run()
        assert run.info["text_source"] == "caf\ufffd.txt" and run.sequence_rows()[0]["title"] == "caf\ufffd.txt"
        assert len(run.columns()["nll"]) == run.sequence_rows()[0]["tokens"]
    with ps.Writer(path) as writer, writer.run("another", max_steps=0, layers=1, vocab_size=10) as run:
        run.sequence([1, 2, 3])
    assert ps.open(path).run_names[-1] == "another"
