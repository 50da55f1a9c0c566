# SPDX-License-Identifier: GPL-3.0-or-later
"""What the program prints with --json is named on the page about it, and is the same each time."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import ponderscope as ps

OPEN = {"runs", "trainings", "choices", "dtypes", "tensors"}
"""Below these names are those of tables and files."""


def keys_of(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(keys_of, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(keys_of(v) for k, v in value.items() if k not in OPEN))


def test_every_key_is_on_the_page(program: Path, tree: Path, tmp_path: Path) -> None:
    model, other = (tree / "sample_models" / name for name in ("vanilla-neox-1m", "adaponderlm-neox-1m"))
    (tmp_path / "text.txt").write_text("There was once a ferry on the river, and the ferry was kept by a woman. " * 3)
    (tmp_path / "labels.csv").write_text("document,begin,end,class\n0,0,20,first\n0,20,60,second\n")
    trace, labels = tmp_path / "t.ponder", tmp_path / "labels.csv"
    named = set(re.findall(r"`([a-z0-9_]+)`", (tree / "resources/docs/json.md").read_text(encoding="utf-8")))

    def say(*words: object, same: bool = True) -> None:
        said = []
        for _ in range(1 + same):
            done = subprocess.run([str(program), *map(str, words), "--json"], capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, f"{words}\n{done.stderr}"
            said.append(done.stdout)
        assert said[0] == said[-1], words
        unnamed = keys_of(json.loads(said[0], parse_constant=lambda name: 1 / 0)) - named
        assert not unnamed, f"{words[0]}: resources/docs/json.md does not name {sorted(unnamed)}"

    say("record", model, "--text", tmp_path / "text.txt", "--dtype", "bfloat16", "-o", trace, "--name", "plain", same=False)
    say("record", other, "--text", tmp_path / "text.txt", "--policy", "full", "-o", trace, "--name", "full", same=False)
    subprocess.run([str(program), "annotate", f"{trace}#full", "--csv", str(labels)], check=True, capture_output=True)
    ps.annotate(trace, "full", "place", list(range(ps.open(trace).run("full").info["tokens"])))
    rules = ("--policy", "entropy", "--policy", "learned", "--sweep", "threshold=0.3,0.6", "--rerun", other, "--replicates", 100)
    say("policy", f"{trace}#full", *rules)
    say("referee", f"{trace}#full", "--policy", "entropy", "--policy", "learned", "--rerun", other, "--replicates", 100)
    say("compare", f"{trace}#plain", f"{trace}#full", "--replicates", 100)
    say("compare", "--seeds", f"{trace}#plain,{trace}#full", f"{trace}#full,{trace}#plain", "--replicates", 100)
    say("stats", f"{trace}#full", "--by", "place", "--by", "class", "--least", 2, "--replicates", 100)
    say("annotate", f"{trace}#full")
    say("check", trace)
    say("inspect", trace)
    say("inspect", other)
    say("tokenize", model, "--prompt", "a ferry", "--spans")
    say("page", trace, "--run", "plain", "--run", "full", "-o", tmp_path / "p.html")
