#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Size of the page and time to its first paint, by tokens.

    PYTHONPATH=app/python python3 tests/bench/python/page_paint.py --tokens 10000 100000

Made-up runs of one text, two of them as the page compares them, with candidates and a signal a step. Chromium without a window opens the
file five times in turn for each size; medians. First paint is the browser's own (the paint timing API); ready is when the script has drawn
the text that is on the screen and says so (data-ready). Both count from the beginning of the navigation.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import ponderscope as ps

ROUNDS = 5
WORDS = [w.encode() for w in " the, cat, sat, on, a, mat, that, was, ferry, river, bell, morning.".split(",")]
PROBE = """(() => {
  const tell = () => {
    const paint = performance.getEntriesByType("paint").find((e) => e.name === "first-contentful-paint");
    if (!document.body?.dataset.ready || !paint) return requestAnimationFrame(tell);
    console.log("times " + paint.startTime.toFixed(1) + " " + performance.now().toFixed(1));
  };
  requestAnimationFrame(tell);
})()"""


def with_probe(page: str) -> str:
    """The page, which asks itself; its policy lets no script run that it does not name."""
    digest = base64.b64encode(hashlib.sha256(PROBE.encode()).digest()).decode()
    page = page.replace("; script-src '", f"; script-src 'sha256-{digest}' '", 1)
    return page.replace("<body", f"<script>{PROBE}</script><body", 1)


def write_trace(path: Path, tokens: int, max_steps: int = 3) -> None:
    signals = [*(n for n in ("nll", "entropy", "candidate_ids", "candidate_probabilities"))]
    draw = np.random.default_rng(0)
    ids = draw.integers(0, len(WORDS), tokens)
    text = b"".join(WORDS[i] for i in ids)
    ends = np.cumsum([len(WORDS[i]) for i in ids])
    spans = np.stack([np.concatenate([[0], ends[:-1]]), ends], 1)
    with ps.Writer(path) as writer:
        for name in ("adaptive", "full"):
            with writer.run(name, max_steps=max_steps, tokens=WORDS, signals=signals) as run:
                steps = draw.integers(0, max_steps + 1, tokens) if name == "adaptive" else np.full(tokens, max_steps)
                by_step = draw.gamma(2.0, 1.5, (tokens, max_steps + 1)).astype(np.float32)
                by_step[-1] = np.nan
                probabilities = np.sort(draw.random((tokens, max_steps + 1, 10)) / 10)[..., ::-1]
                values: dict[str, Any] = {
                    "nll": by_step, "entropy": draw.gamma(2.0, 1.0, (tokens, max_steps + 1)),
                    "candidate_ids": draw.integers(0, len(WORDS), (tokens, max_steps + 1, 10)), "candidate_probabilities": probabilities,
                }  # fmt: skip
                nll = by_step[np.arange(tokens), steps]
                run.sequence(
                    ids, text=text.decode(), spans=spans, nll=nll, entropy=values["entropy"][:, -1], max_probability=draw.random(tokens),
                    rank=np.where(np.isnan(nll), 0, 1), steps=steps, signals=values,
                )  # fmt: skip


def open_page(browser: str, page: Path, profile: Path) -> tuple[float, float]:
    """First paint and ready, in milliseconds."""
    command = [
        browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000", f"--user-data-dir={profile}",
        "--enable-logging=stderr", page.as_uri(),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if times := re.search(r"times ([\d.]+) ([\d.]+)", line):
                return float(times[1]), float(times[2])
    finally:
        process.terminate()
        process.wait(60)
    sys.exit(f"{page.name}: the browser did not say when it painted")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[10_000, 100_000], help="of the text")
    given = parser.parse_args()
    browser = next((p for name in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(name))), None)
    if browser is None:
        sys.exit("there is no Chromium here (Debian's package chromium)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = {}
        for tokens in given.tokens:
            write_trace(folder / f"{tokens}.ponder", tokens)
            pages[tokens] = folder / f"{tokens}.html"
            ps.open(folder / f"{tokens}.ponder").page(pages[tokens], a="adaptive", b="full")
        sizes = {tokens: page.stat().st_size for tokens, page in pages.items()}
        for page in pages.values():  # the question is put by the page itself; a few hundred bytes
            page.write_text(with_probe(page.read_text(encoding="utf-8")), encoding="utf-8")
        times: dict[int, list[tuple[float, float]]] = {tokens: [] for tokens in pages}
        for page in pages.values():
            open_page(browser, page, folder / "profile")  # the profile is made
        for _ in range(ROUNDS):
            for tokens, page in pages.items():
                times[tokens].append(open_page(browser, page, folder / "profile"))
        print(f"{subprocess.run([browser, '--version'], capture_output=True, text=True).stdout.strip()}, load {os.getloadavg()[0]:.1f}")
        print(f"{'tokens, twice':>14}{'page':>10}{'first paint':>14}{'ready':>10}")
        for tokens, pairs in times.items():
            paint, ready = (statistics.median(p[i] for p in pairs) for i in (0, 1))
            print(f"{tokens:14,}{sizes[tokens] / 1e6:7.1f} MB{paint:11.0f} ms{ready:7.0f} ms")


if __name__ == "__main__":
    main()
