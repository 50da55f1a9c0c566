#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws text for a reader who has not seen it, and measures the length of sentences.

    draw.py [--seed N]     five pages, thirty strings of the window and five headers, chosen by the seed
    draw.py --lengths      mean words a sentence of the documents, the comments in headers and the strings of the window
    draw.py --errors       every error and notice in the sources, as a list to read from top to bottom

The reader marks each sentence that had to be read twice. The aim is fewer than one in fifty.
"""
import argparse
import pathlib
import random
import re
import subprocess

TREE = pathlib.Path(__file__).resolve().parents[2]
LITERAL = r'"(?:[^"\\]|\\.)*"'
LITERALS = rf"(?:{LITERAL}\s*)+"


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=TREE, capture_output=True, text=True, check=True).stdout
    return sorted(TREE / name for name in listed.split())


def joined(literals):
    return re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)))


def strings(pattern, *files):
    found = {}
    for path in tracked(*files):
        for match in re.finditer(pattern, path.read_text(encoding="utf-8")):
            found.setdefault(joined(match[1]), path.relative_to(TREE))
    return found


def of_the_window():
    call = rf"\b(?:u(?={LITERALS}_s)|(?:HELP|part)\(\s*)({LITERALS})"
    return {text: place for text, place in strings(call, "views/*.cpp", "app/desktop/*.cpp").items() if len(text.split()) > 3}


def refusals():
    """Every error and notice with what stands between its literals as an ellipsis."""
    argument = rf"(?:{LITERAL}|'\\?.'|[^\";{{}}])"
    call = r"InputError\(|EnvironmentError\(|CheckFailed\(|refuse\w*\(|fail\(|return {ErrorId::|notice\(NoticeId::|push_back\({NoticeId::"
    cpp = rf"\b(?:{call})({argument}{{0,700}}?)(?:[)}}]|}}\));"
    python = r"\braise \w*Error\(([^\n]{0,300})"
    found = {}
    for pattern, files in ((cpp, ("core/*.cpp", "app/*.cpp", "views/*.cpp")), (python, ("app/python/*.py",))):
        for path in tracked(*files):
            for match in re.finditer(pattern, path.read_text(encoding="utf-8")):
                parts = [joined(literals) for literals in re.findall(LITERALS, match[1])]
                if len(" ".join(parts).split()) > 2:
                    found.setdefault(" … ".join(part.strip() for part in parts), path.relative_to(TREE))
    return found


def comments(path):
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return " ".join(re.sub(r"^///?<?", "", line).strip() for line in lines if re.match(r"^//", line) and "SPDX" not in line)


def prose(page):
    text = re.sub(r"```.*?```", "", page, flags=re.S)
    return "\n".join(line for line in text.splitlines() if not re.match(r"^(\||#|    )", line))


def sentences(text):
    return [s for s in re.split(r"(?<=[.!?:;])\s+|\n\n", text) if len(s.split()) > 2]


def mean_words(texts):
    lengths = [len(sentence.split()) for text in texts for sentence in sentences(text)]
    return sum(lengths) / len(lengths), len(lengths)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lengths", action="store_true")
    parser.add_argument("--errors", action="store_true")
    options = parser.parse_args()
    pages = tracked("*.md")
    headers = tracked("core/*.h", "views/*.h", "app/*.h")
    if options.lengths:
        for what, texts in (("documents", [prose(p.read_text(encoding="utf-8")) for p in pages]),
                            ("comments in headers", [comments(p) for p in headers]), ("strings of the window", list(of_the_window()))):  # fmt: skip
            print("%-22s %5.1f words a sentence, %d sentences" % (what, *mean_words(texts)))
        return
    if options.errors:
        for text, place in sorted(refusals().items(), key=lambda entry: str(entry[1])):
            print(f"{place}: {text}")
        return
    chosen = random.Random(options.seed)
    for path in chosen.sample(pages, 5):
        print(f"\n=== {path.relative_to(TREE)}\n{path.read_text(encoding='utf-8')}")
    window = of_the_window()
    print("\n=== strings of the window")
    for text in chosen.sample(sorted(window), 30):
        print(f"- {window[text]}: {text}")
    for path in chosen.sample(headers, 5):
        print(f"\n=== {path.relative_to(TREE)}\n{path.read_text(encoding='utf-8')}")


if __name__ == "__main__":
    main()
