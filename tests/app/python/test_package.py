# SPDX-License-Identifier: GPL-3.0-or-later
"""`pip install ./app/python` gives a package that is whole, and needs NumPy alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import TREE, write_trace


@pytest.mark.parametrize("what", ["copy", "sdist"])
def test_it_installs(what: str, tmp_path: Path) -> None:
    """The folder alone, and an sdist of it."""
    source = tmp_path / "copy"
    shutil.copytree(TREE / "app" / "python", source, symlinks=True)
    if what == "sdist":
        build = "from setuptools import build_meta; print(build_meta.build_sdist('..'))"
        done = subprocess.run([sys.executable, "-c", build], cwd=source, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        shutil.rmtree(source)
        source = tmp_path / done.stdout.splitlines()[-1]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
         "--target", str(tmp_path / "site"), str(source)], capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    trace = write_trace(tmp_path / "made.ponder")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.modules.update(dict.fromkeys(('pandas', 'pyarrow', 'torch', 'transformers')))\n"
        "import ponderscope as ps; assert ps.__file__.startswith(sys.argv[1])\n"
        "run = ps.open(sys.argv[2]).run('model'); assert run.signal('gate').shape == (300, 3) and len(run.columns()['nll']) == 300\n"
        "import os\nif 'PONDERSCOPE_PROGRAM' in os.environ: assert '</html>' in run._trace.page()\n"
        "with ps.Writer(sys.argv[2]) as w, w.run('third') as r: r.sequence([1, 2, 3])\n"
        "try: run.tokens()\nexcept ImportError as e: print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, str(tmp_path / "site"), str(trace)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "pip install pandas" in done.stdout


@pytest.mark.parametrize("other", [False, True])
def test_without_the_harness_or_with_another_one(other: bool, tmp_path: Path) -> None:
    """`ponderscope.harness` says in one sentence what it needs."""
    if other:
        (tmp_path / "lm_eval" / "api").mkdir(parents=True)
        for file in ("__init__.py", "api/__init__.py", "api/instance.py"):
            (tmp_path / "lm_eval" / file).write_text("")
    absent = "" if other else "sys.modules['lm_eval'] = None; "
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {[str(tmp_path), str(TREE / 'app/python')]}; {absent}import ponderscope.harness"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ponderscope.harness needs lm-evaluation-harness 0.4.2 or newer"), done.stderr
