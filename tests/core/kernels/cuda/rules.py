#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the compiler made of the CUDA kernels, held against rules; needs no GPU.

    rules.py LIBPONDERSCOPE_CUDA TOOLS

TOOLS is a folder with cuobjdump and nvdisasm (the wheel triton has them). Prints a line a kernel: registers, bytes of stack that
spilled registers need, and how many loads of 16 bytes are issued before the first loaded value is used. Rows that lie in chunks of 16
bytes are not read by elements. A load takes hundreds of
cycles, so that a kernel whose loads wait for each other runs at a fraction of the memory's speed.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile

# kernel and template arguments: most registers, least loads of 16 bytes in flight, matrix products. A number of registers may fall.
HALF = "(?:__half|__nv_bfloat16)"
RULES = [
    (rf"attend_kernel<{HALF}, 1>", 98, 4, False),
    (rf"attend_kernel<{HALF}, 2>", 128, 8, False),
    (rf"attend_kernel<{HALF}, 3>", 163, 6, False),
    (rf"attend_kernel<{HALF}, 4>", 220, 16, False),
    (r"attend_kernel<float, \d>", 246, 8, False),
    (rf"attend_tiles_kernel<{HALF}, 2>", 161, 2, True),
    (rf"attend_tiles_kernel<{HALF}, 4>", 168, 4, True),
    (rf"attend_tiles_kernel<{HALF}, 6>", 238, 6, True),
    (rf"attend_tiles_kernel<{HALF}, 8>", 245, 8, True),
    (rf"rotate_kernel<{HALF}, 8>", 40, 4, False),
    (r"rotate_kernel<float, 8>", 40, 4, False),
    (r"rotate_kernel<.*, 1>", 32, 0, False),
    (r"head_rows_kernel", 32, 0, False),
    (r"head_exponentials_kernel<.*>", 32, 0, False),
    (r"head_divergences_kernel", 40, 0, False),
    (r"merge_kernel<.*>", 32, 0, False),
]


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def loads_in_flight(lines: list[str]) -> int:
    most = now = 0
    waiting: set[str] = set()
    for line in lines:
        match = re.search(r"\*/\s+(?:@!?U?P\d+\s+)?(\S+)\s*(.*?);", line)
        if not match:
            continue
        name, operands = match.groups()
        target, _, sources = operands.partition(",")
        if name.startswith("LDGSTS") and ".128" in name:  # to shared memory, waited for by no register
            now += 1
            most = max(most, now)
        elif name.startswith("LDG") and ".128" in name:
            first = int(re.findall(r"R(\d+)", target)[0])
            waiting |= {f"R{first + i}" for i in range(4)}
            now += 1
            most = max(most, now)
        elif waiting & set(re.findall(r"\bR\d+\b", sources)):
            now, waiting = 0, set()
    return most


def main() -> int:
    library, tools = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    usage: dict[str, tuple[int, int]] = {}
    for name, registers, stack in re.findall(
        r"Function (\S+):\s+REG:(\d+) STACK:(\d+)", run(str(tools / "cuobjdump"), "-arch", "sm_90", "-res-usage", str(library))
    ):
        usage[name] = (int(registers), int(stack))
    if not usage:
        print(f"{library}: no kernels for sm_90")
        return 1
    code: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(tools / "cuobjdump"), "-arch", "sm_90", "-xelf", "all", str(library)], check=True, cwd=folder, capture_output=True)
        for cubin in sorted(pathlib.Path(folder).glob("*.cubin")):
            current: list[str] = []
            for line in run(str(tools / "nvdisasm"), "-c", str(cubin)).splitlines():
                if line.startswith(".text."):
                    current = code.setdefault(line[6:].rstrip(":"), [])
                current.append(line)
    broken = 0
    unused = {pattern for pattern, *_ in RULES}
    for mangled, (registers, stack) in sorted(usage.items()):
        name = re.sub(r"ponderscope::kernels::|\(anonymous namespace\)::|^void ", "", run("c++filt", mangled).strip())
        short = name.split("(")[0]
        lines = code.get(mangled, [])
        flight = loads_in_flight(lines)
        matrix = any("HMMA" in line for line in lines)
        narrow = sum(bool(re.search(r"LDG\S*\.[US](8|16)\b", line)) for line in lines)
        for pattern, most_registers, least_loads, wants_matrix in RULES:
            if not re.fullmatch(pattern, short):
                continue
            unused.discard(pattern)
            faults = [
                text
                for wrong, text in (
                    (registers > most_registers, f"more than {most_registers} registers"),
                    (stack > 0, "spilled registers"),
                    (flight < least_loads, f"fewer than {least_loads} loads in flight"),
                    (least_loads > 0 and narrow, f"{narrow} loads of less than 4 bytes"),
                    (wants_matrix and not matrix, "no matrix products"),
                )
                if wrong
            ]
            broken += len(faults)
            print(f"{short:50} {registers:3} registers {stack:4} B stack {flight:2} loads in flight  {'; '.join(faults) or 'ok'}")
            break
    for pattern in sorted(unused):
        print(f"no kernel is called {pattern}")
    return 1 if broken or unused else 0


if __name__ == "__main__":
    sys.exit(main())
