#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line on a GPU: the same losses as on the CPU, and one sentence where it cannot go on.

    programs_on_device.py BIN SAMPLE_MODELS          records sample models on both devices, and asks for a GPU that is not there
    programs_on_device.py BIN SAMPLE_MODELS full     fills the GPU's memory until loading, a step and a generation fail
"""

from __future__ import annotations

import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

import torch

ALLOWED = 1e-4  # of an NLL, in float32
failures: list[str] = []


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=60, check=False)


def losses(trace: pathlib.Path) -> list[float]:
    with sqlite3.connect(trace) as database:
        return [row[0] for row in database.execute("SELECT nll FROM token ORDER BY sequence, position") if row[0] is not None]


def agrees(program: pathlib.Path, models: pathlib.Path, folder: pathlib.Path) -> None:
    for model in ("vanilla-neox-1m", "ponderlm-neox-1m", "adaponderlm-neox-1m", "cabinet/depth_attention-llama", "cabinet/adaptive_latent_cot-llama"):
        found = []
        for device in ("cpu", "cuda"):
            trace = folder / f"{device}-{model.replace('/', '-')}.ponder"
            ran = run(program, "record", models / model, "--text", models / "texts/passage.txt", "--device", device, "-o", trace)
            if ran.returncode != 0:
                failures.append(f"{model} on {device}: {ran.stderr.strip()[-300:]}")
                break
            found.append(losses(trace))
        else:
            apart = max(abs(a - b) for a, b in zip(*found, strict=True))
            print(f"{model}: {len(found[0])} losses, at most {apart:.1e} apart")
            if not apart <= ALLOWED:
                failures.append(f"{model}: losses of GPU and CPU are {apart:.1e} apart")


def ends_in_a_sentence(what: str, ran: subprocess.CompletedProcess[str], word: str) -> None:
    last = (ran.stderr.strip().splitlines() or [""])[-1]
    if not 0 < ran.returncode < 64 or not re.search(word, last):
        failures.append(f"{what}: exit code {ran.returncode}, last line: {last[-300:]}")


def memory_full(program: pathlib.Path, models: pathlib.Path, folder: pathlib.Path) -> None:
    """The program succeeds or ends in a sentence, however little memory it finds."""
    hog: list[torch.Tensor] = []
    text = folder / "long.txt"
    text.write_text("The keeper counted the steps of the tower and wrote them down. " * 20000, encoding="utf-8")
    seen = {"record": [], "generate": []}
    for room in (2000, 900, 600, 450, 200):
        free = torch.cuda.mem_get_info()[0]
        if free > room << 20:
            hog.append(torch.empty(free - (room << 20), dtype=torch.uint8, device="cuda"))
        for verb, ran in (
            ("record", run(program, "record", models / "ponderlm-neox-1m", "--text", text, "--device", "cuda", "-o", folder / f"full-{room}.ponder")),
            ("generate", run(program, "generate", models / "vanilla-neox-1m", "--prompt", "Once", "--device", "cuda", "--tokens", 8)),
        ):
            if ran.returncode != 0:
                ends_in_a_sentence(f"{verb} in {room} MiB", ran, "memory")
            said = (ran.stderr.strip().splitlines() or [""])[-1]
            seen[verb].append(f"{room}: {'ran' if ran.returncode == 0 else said[:110]}")
    for verb, lines in seen.items():
        print(f"{verb}, MiB free:", *lines, sep="\n  ")
    if all(": ran" in line for line in seen["record"]):
        failures.append("memory was never full")


def main() -> int:
    program, models = pathlib.Path(sys.argv[1]) / "ponderscope-engine", pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if "full" in sys.argv[3:]:
            memory_full(program, models, folder)
        else:
            agrees(program, models, folder)
            record = (program, "record", models / "vanilla-neox-1m", "--prompt", "Once upon", "-o", folder / "devices.ponder", "--device")
            absent = run(*record, "cuda:7")
            ends_in_a_sentence("cuda:7", absent, "cuda:7")
            print("cuda:7:", absent.stderr.strip())
            print("auto:", run(*record, "auto").stderr.strip())
    for failure in failures:
        print("Error:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
