# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds and runs the command-line program; main() is the command `ponderscope` of a wheel that includes the program."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

_CARRIED = Path(__file__).parent / "program" / "bin" / "ponderscope"


def find() -> str | None:
    """PONDERSCOPE_PROGRAM, the program of this wheel, or `ponderscope` on PATH; None if there is none."""
    named = os.environ.get("PONDERSCOPE_PROGRAM")
    if named:
        return named
    return str(_CARRIED) if _CARRIED.is_file() else shutil.which("ponderscope")


def ask(verb: str, *arguments: str | os.PathLike[str]) -> None:
    """Runs a verb of the program. ValueError: the program failed, with its message. FileNotFoundError: there is no program."""
    program = find()
    if program is None:
        raise FileNotFoundError(
            f"the program ponderscope, which has the verb {verb}, was not found; add its folder to PATH, or set the "
            "environment variable PONDERSCOPE_PROGRAM to its path."
        )
    try:
        done = subprocess.run([program, verb, *arguments], capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise OSError(f"{program}: cannot be started ({error.strerror}); set PONDERSCOPE_PROGRAM to the program ponderscope.") from None
    if done.returncode:
        raise ValueError(done.stderr.strip().removeprefix("ponderscope: ") or f"{program} {verb} ended with exit code {done.returncode}.")


def main() -> None:
    """Replaces this process by the program of the wheel. The engine loads LibTorch from the installed torch."""
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        os.environ.setdefault("Torch_DIR", str(Path(torch.origin).parent))
    os.execv(_CARRIED, ["ponderscope", *sys.argv[1:]])
