# SPDX-License-Identifier: GPL-3.0-or-later
"""The command-line program: where it is, and the command `ponderscope` of a wheel that carries it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

_CARRIED = Path(__file__).parent / "program" / "bin" / "ponderscope"


def find() -> str | None:
    """PONDERSCOPE_PROGRAM, the program of this wheel, or `ponderscope` on PATH; None if there is none."""
    named = os.environ.get("PONDERSCOPE_PROGRAM")
    if named:
        return named
    return str(_CARRIED) if _CARRIED.is_file() else shutil.which("ponderscope")


def main() -> None:
    """Replaces this process by the program of the wheel. The engine loads LibTorch from the installed torch."""
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        os.environ.setdefault("Torch_DIR", str(Path(torch.origin).parent))
    os.execv(_CARRIED, ["ponderscope", *sys.argv[1:]])
