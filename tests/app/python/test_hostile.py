# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of strangers, full disks and wrong wishes: one sentence, and nothing is lost."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest

import ponderscope as ps

from conftest import TREE, changed, made_up


def test_a_trace_is_replaced_when_a_run_begins(trace_path: Path, tmp_path: Path) -> None:
    for path in (trace_path, tmp_path / "new.ponder"):
        for wrong in ({"max_steps": -1}, {"tokens": [3]}, {"signals": {"gate": ps.Signal(unit=3)}}, {"seed": 0.5}, {"method": "x" * 200_000}):  # type: ignore[dict-item]
            with pytest.raises(ValueError), ps.Writer(path, overwrite=True) as writer:
                writer.run("model", **wrong)
    assert ps.open(trace_path).run_names == ["model", "other"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made.ponder"]
    with ps.Writer(trace_path, overwrite=True) as writer, writer.run("fresh") as run:
        run.sequence([1, 2])
    assert ps.open(trace_path).run_names == ["fresh"]


def test_planted_triggers_never_run(trace_path: Path) -> None:
    changed(trace_path, "CREATE TRIGGER planted AFTER INSERT ON run BEGIN DELETE FROM token_row; END")
    with pytest.raises(ValueError, match=" planted"):
        ps.Writer(trace_path)
    assert len(ps.open(trace_path).run("model").columns()["id"]) == 300


def test_frames_that_claim_more_than_their_shape_are_not_expanded(trace_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor(level=1).compress(bytes(300 << 20))
    changed(trace_path, ("UPDATE chunk SET dtype = 'F32+zstd', data = ?, crc32 = ?", (packed, zlib.crc32(packed))))
    run = ps.open(trace_path).run("model")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=" gate"):
        run.signal("gate")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10, "kB"


def test_many_zeros_do_not_fill_the_memory(trace_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    most = 64 << 20
    packed = zstandard.ZstdCompressor(level=1).compress(bytes(most))
    find = "sequence = 1 AND signal = (SELECT id FROM signal WHERE run = 1 AND name = 'gate')"
    rows = [
        (
            "INSERT INTO chunk (sequence, signal, first_token, tokens, dtype, shape, data) SELECT 1, id, ?, 1, 'F32+zstd', ?, ? FROM "
            "signal WHERE run = 1 AND name = 'gate'",
            (token, f"[1,{most // 4}]", packed),
        )
        for token in range(6)
    ]
    changed(trace_path, f"DELETE FROM chunk WHERE {find}", *rows, "UPDATE sequence SET tokens = 6 WHERE id = 1")
    with pytest.raises(ValueError, match=" gate "):
        ps.open(trace_path).run("model").signal("gate")


def test_names_of_strangers_do_not_command_the_terminal(trace_path: Path) -> None:
    changed(trace_path, "UPDATE run SET name = char(27) || '[2J' || char(10) || char(8238) WHERE id = 1")
    trace = ps.open(trace_path)
    with pytest.raises(ValueError, match="nobody") as caught:
        trace.run("nobody")
    for text in (str(caught.value), repr(trace)):
        assert r"\x1b[2J\x0a\xe2\x80\xae" in text and text.isprintable()


def test_large_ids_take_no_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    with ps.Writer(tmp_path / "large.ponder") as writer, writer.run("x", tokens=lambda token: b"word") as run:
        run.sequence([1, (1 << 31) - 1])
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


def test_a_fault_that_cannot_be_leaves_no_transaction_open(tmp_path: Path) -> None:
    with ps.Writer(tmp_path / "f.ponder") as writer, writer.run("x") as run:
        run.sequence([1, 2])
        with pytest.raises(ValueError):
            run.fault(3)  # type: ignore[arg-type]
        assert not writer._database.in_transaction
        run.fault("gone")


def test_a_full_disk_is_said_in_a_sentence(tmp_path: Path) -> None:
    """A limit of the process stands for it; what was finished before is there."""
    program = f"""
import resource, signal, sys
sys.path[:0] = [{str(TREE / "app/python")!r}, {str(TREE / "tests/app/python")!r}]
from conftest import SIGNALS, WORDS, made_up
import ponderscope as ps
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
try:
    with ps.Writer("full.ponder") as writer, writer.run("x", max_steps=3, tokens=WORDS, signals=SIGNALS) as run:
        for number in range(100):
            run.sequence(**made_up(number))
except OSError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "full.ponder: cannot be written (" in done.stdout and not done.stderr, done
    run = ps.open(tmp_path / "full.ponder").run()
    assert run.sequences and not run.info["complete"]
    np.testing.assert_array_equal(run.columns(run.sequences[-1])["id"], made_up(run.sequences[-1])["ids"])


def test_a_page_is_a_plain_file(program, trace_path: Path, tmp_path: Path) -> None:
    trace = ps.open(trace_path)
    os.mkfifo(tmp_path / "pipe.html")
    for wrong in (tmp_path / "pipe.html", tmp_path, tmp_path / "none" / "x.html"):
        with pytest.raises((ValueError, OSError), match=re.escape(str(tmp_path))):
            trace.page(wrong)
    assert (tmp_path / "pipe.html").is_fifo()
    (tmp_path / "link.html").symlink_to("real.html")
    trace.page(tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink() and (tmp_path / "real.html").is_file()
    assert not [p.name for p in tmp_path.iterdir() if "partial" in p.name]
