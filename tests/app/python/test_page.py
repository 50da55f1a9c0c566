# SPDX-License-Identifier: GPL-3.0-or-later
"""The page to send: the same from the program and from Python, and alive in a browser."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ponderscope as ps

from conftest import SIGNALS, WORDS, made_up, write_trace

TYPES = {"u8": "u1", "u16": "<u2", "u32": "<u4", "q16": "<u2"}


def unpacked(page: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    payload = re.search(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]+)</script>', page)
    assert payload is not None
    data = zlib.decompress(base64.b64decode(payload[1]))
    length = int.from_bytes(data[:4], "little")
    head = json.loads(data[4 : 4 + length])
    arrays = {}
    for name, entry in head["arrays"].items():
        values = np.frombuffer(data, TYPES[entry["type"]], entry["count"], 4 + length + entry["offset"])
        if entry["type"] == "q16":
            values = np.where(values == 65535, np.nan, entry["low"] + values * entry["step"])
        arrays[name] = values
    return head, arrays


def write_cut_trace(path: Path) -> Path:
    """A whole run, and other numbers of its first 100 tokens as "cut"."""
    write_trace(path, ("whole",), sequences=1, texts=0)
    with ps.Writer(path) as writer:
        run = writer.run("cut", method="my gate", max_steps=3, layers=12, tokens=WORDS, signals=SIGNALS)
        text = made_up(0)
        values = {**made_up(1), **{key: text[key] for key in ("ids", "text", "spans")}}
        sequence = run.stream(text=values.pop("text"), title="text 0")
        signals = {name: signal[:100] for name, signal in values.pop("signals").items()}
        sequence.append(**{name: column[:100] for name, column in values.items()}, signals=signals)
        sequence.leave()
        run.leave()
    return path


def test_a_page_replaces_no_trace(program, trace_path: Path) -> None:
    with pytest.raises(ValueError, match="trace"):
        ps.open(trace_path).page(trace_path)
    assert ps.open(trace_path).run_names == ["model", "other"]


def test_the_program_makes_the_page(ponderscope, trace_path: Path, tmp_path: Path) -> None:
    ponderscope("page", trace_path, "--run", "other", "--title", "A title", "--sequence", 1, "-o", tmp_path / "engine.html")
    mine = ps.open(trace_path).page(tmp_path / "mine.html", a="other", title="A title", sequences=[1])
    assert mine == (tmp_path / "mine.html").read_text(encoding="utf-8") == (tmp_path / "engine.html").read_text(encoding="utf-8")
    value, low, high = unpacked(mine)[0]["runs"][0]["nll"]
    assert low < value < high


def test_without_the_program_a_page_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, trace_path: Path) -> None:
    monkeypatch.delenv("PONDERSCOPE_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError, match="PONDERSCOPE_PROGRAM"):
        ps.open(trace_path).page()
    assert "<iframe" not in (shown := ps.open(trace_path).run("model")._repr_html_()) and "model" in shown


def test_a_partial_run_says_so(program, tmp_path: Path) -> None:
    head, _ = unpacked(ps.open(write_cut_trace(tmp_path / "cut.ponder")).page(a="whole", b="cut"))
    assert [run["reached"] for run in head["runs"]] == [[300], [100]]
    assert [run["scored_tokens"] for run in head["runs"]] == [299, 100]
    assert any("cut" in notice and "partial" in notice for notice in head["notices"])


def test_choices(ponderscope, trace_path: Path, tmp_path: Path) -> None:
    trace = ps.open(trace_path)
    assert [r["name"] for r in unpacked(trace.page(a="other"))[0]["runs"]] == ["other"]
    write_trace(trace_path, ("elsewhere",), texts=500)
    with pytest.raises(ValueError, match=r"elsewhere.*compare\.text"):
        ps.open(trace_path).page(a="model", b="elsewhere")
    with pytest.raises(IndexError, match="7"):
        trace.page(sequences=[7])
    out = tmp_path / "none.html"
    for arguments in (("--run", "model", "--run", "elsewhere"), ("--sequence", "7")):
        said = ponderscope("page", trace_path, *arguments, "-o", out, code=2)
        assert said.startswith("ponderscope: ") and said.count("\n") == 1
    ponderscope("page", trace_path, "-o", tmp_path / "no folder" / "p.html", code=2)
    assert not out.exists()


def test_a_notebook_shows_a_run(program, trace_path: Path) -> None:
    shown = ps.open(trace_path).run("model")._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and 'sandbox="allow-scripts"' in shown
    head, _ = unpacked(html.unescape(shown))
    assert head["runs"][0]["name"] == "model"


# ---- in a browser ----

HOSTILE = [
    b"<script>document.title='run'</script>", b"</script><script>document.title='run'</script>", b"<img src=x onerror=document.title='run'>",
    b"\x00", b"\x1b[31m", "\u202egnp.exe".encode(), "\u2066".encode(), "\u200b".encode(), b"&lt;b&gt;", b"\xff\xfe", b"@PAYLOAD@",
    b"\r\n", "\u0634\u0643\u0631\u0627".encode(), "\U000e0041".encode(), b"javascript:alert(1)", b"`${1}`", "\ufeff".encode(),
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("there is no Chromium here (Debian's package chromium); the page was not tried in a browser")


def opened(browser: str, page: Path, folder: Path, hash_: str = "", *more: str) -> str:
    """The document after the page's script has run."""
    done = subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000", "--window-size=1400,1000",
         f"--user-data-dir={folder / 'profile'}", *more, *([] if more else ["--dump-dom"]), page.as_uri() + hash_],
        capture_output=True, timeout=180,
    )  # fmt: skip
    return done.stdout.decode("utf-8", errors="replace")


def test_it_draws_itself(program, browser: str, trace_path: Path, tmp_path: Path) -> None:
    ps.open(trace_path).page(tmp_path / "page.html", a="model", b="other")
    text = opened(browser, tmp_path / "page.html", tmp_path, "#token=20&of=d")
    assert 'data-ready="1"' in text
    tokens = re.findall(r'<span data-i="(\d+)"(?: data-brk="")? class="t ([^"]*)"', text)
    assert len(tokens) == 300 and sum("pin" in c.split() for _, c in tokens) == 1
    assert {c.split()[0][0] for _, c in tokens[1:]} == {"d"}  # a difference at every word but the first
    assert text.count('class="steps of-') == 2 and "did not run" in text
    assert re.search(r"Mean steps</td>", text) and "Pearson" in text
    plain = opened(browser, tmp_path / "page.html", tmp_path, "#quantity=rank")
    assert 'class="t v' in plain


def test_what_a_partial_run_never_reached_is_blank(program, browser: str, tmp_path: Path) -> None:
    ps.open(write_cut_trace(tmp_path / "cut.ponder")).page(tmp_path / "page.html", a="whole", b="cut")
    text = opened(browser, tmp_path / "page.html", tmp_path, "#token=101&of=b&quantity=steps")
    coloured = re.findall(r'<span data-i="(\d+)"(?: data-brk="")? class="t v', text)
    assert [int(i) for i in coloured] == list(range(1, 101))
    assert re.search(r"Steps</td><td>\d</td><td>\u2013</td><td>\u2013</td>", text)
    assert re.search(r"FLOPs</td><td>[^<]+k</td><td>\u2013</td>", text)
    rows = {name: re.findall(r"<b>([^<]*)</b>", row) for name, row in re.findall(r"<tr><td>([^<]+)</td>(<td><b>.*?)</tr>", text)}
    assert len(rows["Bits a byte"]) == 3 and rows["Bits a byte"][2] != "\u2013"
    assert [rows[name][2] for name in ("Mean steps", "FLOPs a token")] == ["\u2013"] * 2


def test_hostile_text_is_shown_and_never_runs(program, browser: str, tmp_path: Path) -> None:
    names = [b.decode("utf-8", errors="replace").replace("\0", "") for b in HOSTILE]
    text = b"".join(b for b in HOSTILE if b not in (b"\x00", b"\xff\xfe")).decode()
    lengths = [0 if b in (b"\x00", b"\xff\xfe") else len(b) for b in HOSTILE]
    ends = np.cumsum(lengths)
    n = len(HOSTILE)
    nll = np.append(np.linspace(0.1, 9, n - 1), np.nan)
    wild = ps.Signal(("token", "step"), title=names[0], unit=names[1], description=names[2])
    with ps.Writer(tmp_path / "h.ponder") as writer:
        for name in (names[0] + names[5], names[1]):
            with writer.run(
                name, method=names[2], architecture=names[0], max_steps=1, tokens=HOSTILE, notices=names[:2],
                signals={**SIGNALS, "wild": wild},
            ) as run:  # fmt: skip
                by_step = np.stack([nll, nll], 1)
                signals = {
                    "nll": by_step, "entropy": np.ones((n, 2)), "wild": np.ones((n, 2)), "gate": np.ones((n, 1)),
                    "candidate_ids": np.tile(np.arange(n)[:, None, None], (1, 2, 3)), "candidate_probabilities": np.full((n, 2, 3), 0.3),
                }  # fmt: skip
                run.sequence(np.arange(n), text=text, spans=np.stack([ends - lengths, ends], 1), title=names[1], nll=nll, signals=signals)
                run.sequence(np.arange(n), title=names[5], nll=nll, signals=signals)  # ids alone: words of the vocabulary
    page = ps.open(tmp_path / "h.ponder").page(tmp_path / "page.html", title=names[1])
    assert "document.title='run'" not in page and page.count("<script") == 2
    for number in (0, 1):
        dom = opened(browser, tmp_path / "page.html", tmp_path, f"#text={number}&token=3")
        assert 'data-ready="1"' in dom
        assert "<title>run</title>" not in dom and dom.count("<script") == 2 and "<img" not in dom
        assert "&lt;script&gt;document.title='run'&lt;/script&gt;" in dom
        shown = re.sub(r"(?s)<script.*?</script>", "", dom)
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\ufeff\x00\x1b]", shown)
        assert "\u27e8U+202E\u27e9" in shown and "\u27e8U+FEFF\u27e9" in shown and "\u241b" in shown


def test_it_prints(program, browser: str, trace_path: Path, tmp_path: Path) -> None:
    ps.open(trace_path).page(tmp_path / "page.html", a="model")
    opened(browser, tmp_path / "page.html", tmp_path, "", f"--print-to-pdf={tmp_path / 'page.pdf'}")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    if shutil.which("pdftotext"):
        words = subprocess.run(["pdftotext", str(tmp_path / "page.pdf"), "-"], capture_output=True, text=True).stdout
        assert "Perplexity" in words and "cat" in words


def test_a_hundred_thousand_tokens_are_a_few_megabytes(program, tmp_path: Path) -> None:
    count = 50_000
    with ps.Writer(tmp_path / "long.ponder") as writer:
        for seed in (0, 1):
            with writer.run(f"run {seed}", max_steps=3, tokens=WORDS, signals=SIGNALS) as run:
                for number in range(2):
                    text = made_up(number, count)
                    run.sequence(**{**made_up(10 + 2 * seed + number, count), **{k: text[k] for k in ("ids", "text", "spans")}})
    page = ps.open(tmp_path / "long.ponder").page()
    head, _ = unpacked(page)
    assert sum(s["tokens"] for s in head["sequences"]) == 100_000 and len(head["runs"]) == 2
    assert len(page) < 14e6  # of random numbers, which do not compress; texts take half
