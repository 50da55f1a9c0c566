#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Called by mutate.sh: makes the changes, builds, runs tests, says which changes survived."""
import argparse
import pathlib
import random
import re
import subprocess
import sys
import time

# The quick ones first: most changes are noticed by them, and the others are then neither linked nor run.
TESTS = {
    "core/policy": ["policy_test"],
    "core/stats": ["stats_test --gtest_filter=-Calibration.*", "stats_test --gtest_filter=Calibration.*"],
    "core/trace": ["trace_test --gtest_filter=-TraceCrash.*", "trace_test --gtest_filter=TraceCrash.*"],
    "core/ponder": ["ponder_forward_test", "ponder_rerun_test", "ponder_released_test", "ponder_states_test",
                    "ponder_recording_test", "ponder_golden_test", "ponder_engine_test"],
}
# What is found, and what it becomes. Spaces keep templates, pointers and references out.
CHANGES = [
    (r" <= ", " < "), (r" < ", " <= "), (r" >= ", " > "), (r" > ", " >= "), (r" == ", " != "), (r" != ", " == "),
    (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" / ", " * "), (r" && ", " || "), (r" \|\| ", " && "),
    (r" \+ 1\b", ""), (r" - 1\b", ""), (r"\+= ", "-= "), (r"-= ", "+= "), (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"), (r"std::min\b", "std::max"), (r"std::max\b", "std::min"), (r"\.front\(\)", ".back()"),
    (r"\.back\(\)", ".front()"), (r"\b0\b", "1"), (r"\b1\b", "2"), (r"\b2\b", "3"), (r"^(\s+)continue;", r"\1;"),
    (r"!(?=[a-z])", ""), (r"at::(le|lt)\(", "at::ge("), (r"\.gt\(", ".ge("), (r"\.ge\(", ".gt("), (r"\.lt\(", ".le("),
    (r"^(\s+)([a-z_.>()\[\]-]+) (\+=|=) [^;]+;$", r"\1;"),
]
# Lines in which a change is another sentence, another file or no program.
NO_LINE = re.compile(r"^\s*(//|/\*|#|\*)|static_assert|template <|InputError|EnvironmentError|misuse\(|damaged\(|"
                     r"TORCH_CHECK|noexcept|= default|operator|^\s*(namespace|class|struct|using|enum)\b|\"--")


def places(folder: pathlib.Path, root: pathlib.Path):
    for file in sorted(root.rglob("*.cpp")):
        for number, line in enumerate(file.read_text().split("\n")):
            if NO_LINE.search(line):
                continue
            code = re.sub(r'"(\\.|[^"\\])*"', lambda m: '"' + "\0" * (len(m.group()) - 2) + '"', line)
            code = code.split("//")[0]
            for pattern, change in CHANGES:
                for match in re.finditer(pattern, code):
                    changed = line[:match.start()] + match.expand(change) + line[match.end():]
                    if changed != line:
                        yield file, number, line, changed


def run(command, timeout):
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=timeout).returncode
    except subprocess.TimeoutExpired:
        return -1


def noticed_by(test, build, timeout):
    """Whether the test fails; None where there is no program any more."""
    name, *arguments = test.split()
    if run(["ninja", "-C", str(build), name], 3600) != 0:
        return None
    return run([str(build / "tests" / name), "--gtest_fail_fast", *arguments], timeout) != 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("copy", type=pathlib.Path)
    parser.add_argument("--folder", action="append", choices=sorted(TESTS))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    build = options.copy / "build"
    total = killed_in_all = 0
    survivors = []
    for folder in options.folder or sorted(TESTS):
        tests = TESTS[folder]
        limits = {}
        for test in tests:
            began = time.monotonic()
            if noticed_by(test, build, 1800) is not False:
                sys.exit(f"{folder}: {test} does not build, or fails, without any change; mend it first")
            limits[test] = 10 * (time.monotonic() - began) + 60
        candidates = list(places(folder, options.copy / folder))
        random.Random(options.seed).shuffle(candidates)
        tried = killed = 0
        for file, number, line, changed in candidates:
            if tried == options.count:
                break
            text = file.read_text()
            lines = text.split("\n")
            lines[number] = changed
            try:
                file.write_text("\n".join(lines))
                noticed = noticed_by(tests[0], build, limits[tests[0]])
                if noticed is None:
                    continue  # nobody could have made this mistake
                tried += 1
                noticed = noticed or any(noticed_by(test, build, limits[test]) for test in tests[1:])
            finally:
                file.write_text(text)
            where = f"{file.relative_to(options.copy)}:{number + 1}"
            killed += noticed
            print(f"{'killed  ' if noticed else 'SURVIVED'} {where}\n    {line.strip()}\n    {changed.strip()}", flush=True)
            if not noticed:
                survivors.append(where)
        print(f"{folder}: {killed} of {tried} changes were noticed", flush=True)
        total += tried
        killed_in_all += killed
    print(f"{killed_in_all} of {total} changes were noticed; survived: {' '.join(survivors) or 'none'}")


if __name__ == "__main__":
    main()
