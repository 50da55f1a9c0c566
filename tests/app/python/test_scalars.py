# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of scalars and compressed values, which the engine writes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import ponderscope as ps
from ponderscope.reader import _expanded

pytest.importorskip("zstandard")


@pytest.fixture(scope="module")
def traces(program, ponderscope, tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scalars")
    model = tree / "sample_models/ponderlm-neox-1m"
    corpus = folder / "corpus.jsonl"
    passage = (tree / "sample_models/texts/passage.txt").read_text(encoding="utf-8")
    corpus.write_text("".join(json.dumps({"text": passage[i * 300 : i * 300 + 280]}) + "\n" for i in range(6)), encoding="utf-8")
    for name, options in (("basic", []), ("scalars", []), ("compressed", ["--compress"])):
        level = "scalars" if name == "scalars" else "basic"
        ponderscope("record", model, "--jsonl", corpus, "--record", level, "-o", folder / f"{name}.ponder", *options)
    return folder


def test_tokens_of_scalars_are_those_of_basic(traces: Path) -> None:
    with ps.open(traces / "basic.ponder") as basic, ps.open(traces / "scalars.ponder") as scalars:
        one, other = basic.run(), scalars.run()
        assert "token" not in other.signals
        for sequence in one.sequences:
            a, b = one.columns(sequence), other.columns(sequence)
            for name in a:
                if name == "max_probability":
                    assert np.isnan(b[name]).all()
                else:
                    np.testing.assert_array_equal(a[name], b[name], err_msg=name)
            np.testing.assert_array_equal(a["nll"][3:9], other.columns(sequence, 3, 9)["nll"])
        assert other.token_texts(2) == one.token_texts(2)


def test_compressed_signals_are_those_that_were_recorded(traces: Path) -> None:
    with ps.open(traces / "basic.ponder") as basic, ps.open(traces / "compressed.ponder") as compressed:
        one, other = basic.run(), compressed.run()
        assert one.signals == other.signals
        for name in one.signals:
            np.testing.assert_array_equal(one.signal(name, 1), other.signal(name, 1), err_msg=name)
    with sqlite3.connect(traces / "compressed.ponder") as database:
        assert database.execute("SELECT count(*) FROM chunk WHERE dtype LIKE '%+zstd'").fetchone()[0] > 0


def test_damaged_frames_are_refused(traces: Path) -> None:
    with pytest.raises(ValueError):
        _expanded(b"no frame at all", 4, 64)
    with pytest.raises(ValueError):
        _expanded(b"", 4, 1 << 40)
    with sqlite3.connect(traces / "compressed.ponder") as database:
        database.execute("UPDATE chunk SET data = substr(data, 1, length(data) - 3) WHERE dtype LIKE '%+zstd'")
    with ps.open(traces / "compressed.ponder") as damaged, pytest.raises(ValueError):
        for name in damaged.run().signals:
            damaged.run().signal(name)
