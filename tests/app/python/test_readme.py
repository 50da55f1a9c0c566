# SPDX-License-Identifier: GPL-3.0-or-later
"""The README's three routes, run as they stand there, and the links of all documents."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[3]
README = (TREE / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted({*TREE.glob("*.md"), *(TREE / "resources").rglob("*.md"), *(TREE / "app").rglob("*.md"), *(TREE / "core").rglob("*.md")})


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def route(words: str, language: str) -> str:
    (found,) = [block for block in blocks(language) if words in block]
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder in which the README's relative names mean what they mean in a clone."""
    for name in ("sample_models", "app"):
        (tmp_path / name).symlink_to(TREE / name)
    return tmp_path


def environment(program: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return {**kept, "PATH": f"{program.parent}:{kept['PATH']}", "QT_QPA_PLATFORM": "offscreen"}


def test_the_first_route_records_the_samples(program: Path) -> None:
    assert route("./run", "sh") == "./run\n"
    if program.resolve().parent != TREE / "build" / "release" / "bin" or not (program.parent / "ponderscope-desktop").exists():
        pytest.skip("./run would build the programs: this build is not in build/release")
    subprocess.run(["./run"], cwd=TREE, env=environment(program), check=True, timeout=900)
    samples = TREE / "build" / "samples"
    runs = subprocess.run([program, "inspect", samples / "samples.ponder"], capture_output=True, text=True, check=True).stdout
    assert all(name in runs for name in ("chains-adaponderlm", "vanilla-neox-1m", "ponderlm-neox-1m"))
    assert len(list((samples / "figures").glob("*.pdf"))) == len(list((TREE / "resources" / "figures").glob("*.json")))


def test_the_second_route_records_compares_and_opens(program: Path, place: Path) -> None:
    for line in route("ponderscope record", "sh").splitlines():
        if line.startswith("ponderscope open"):
            if not (program.parent / "ponderscope-desktop").exists():
                continue
            # The window stays open until somebody closes it.
            opened = subprocess.Popen(["/bin/sh", "-c", f"exec {line}"], cwd=place, env=environment(program), stderr=subprocess.PIPE, text=True)
            with pytest.raises(subprocess.TimeoutExpired):
                opened.communicate(timeout=6)
            opened.terminate()
            opened.communicate(timeout=30)
            continue
        done = subprocess.run(["/bin/sh", "-ec", line], cwd=place, env=environment(program), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        if line.startswith("ponderscope compare"):
            assert "vanilla-neox-1m" in done.stdout and "ponderlm-neox-1m" in done.stdout


def test_the_third_route_prints_numbers_of_tokens(place: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("pandas")
    done = subprocess.run([sys.executable, "-c", route("ps.record", "python")], cwd=place, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "nll" in done.stdout and "The" in done.stdout
    assert (place / "mine.ponder").exists()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(TREE)))
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        assert file.exists(), f"{document.name}: {target}"
        if anchor:
            headings = re.findall(r"^#+ +(.*)$", file.read_text(encoding="utf-8"), re.M)
            anchors = [re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings]
            assert anchor in anchors, f"{document.name}: {target}"
