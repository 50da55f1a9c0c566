# SPDX-License-Identifier: GPL-3.0-or-later
"""`ponderscope score` beside a program that keeps its end of the pipe open."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path


def test_it_ends_after_an_error_though_nobody_closes_its_input(program: Path, tree: Path, tmp_path: Path) -> None:
    trace = tmp_path / "requests.ponder"
    line = json.dumps({"type": "loglikelihood", "context": "The ferry was", "continuation": " late"}) + "\n"
    command = [program, "score", tree / "sample_models/vanilla-neox-1m", "-o", trace, "--progress", "none"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as score:
        assert score.stdin and score.stdout and score.stderr
        score.stdin.write(line)
        score.stdin.flush()
        assert "loglikelihood" in json.loads(score.stdout.readline())
        for file in tmp_path.glob("requests.ponder*"):
            file.unlink()
        for _ in range(2):  # the first one meets the loss when it is committed, the second is told of it at the latest
            if score.poll() is None:
                score.stdin.write(line)
                score.stdin.flush()
                time.sleep(2)
        try:
            assert score.wait(60) == 2
        finally:
            score.kill()
        assert "removed while it was written" in score.stderr.read()
