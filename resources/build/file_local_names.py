#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names local to a source that occur twice in one library: unity builds compile several sources as one.

    python3 resources/build/file_local_names.py [TREE]

A library is a folder with a CMakeLists.txt. A name local to a source (in a namespace without a name, or static) must not be
the name of something else in the same library at the same namespace, in another source or in a header. Functions with
different parameters are overloads and may share a name, and so may aliases of one type. Nor may headers of core, or of views
and app, define one name twice: where two classes have a name, members of one are linked for both. Prints each clash; exit code
1 where there is one.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

IGNORED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
TOKEN = re.compile(r"[A-Za-z_]\w*|::|->|[-+*/%]?=|\S")
TYPES = {"class", "struct", "enum", "union"}


def matching(tokens: list[str], at: int, close: str) -> int:
    """The place behind the bracket that closes the one at ``at``."""
    opened = tokens[at]
    depth = 0
    while at < len(tokens):
        depth += {opened: 1, close: -1}.get(tokens[at], 0)
        at += 1
        if depth == 0:
            break
    return at


def parameters(tokens: list[str]) -> str:
    """Types of parameters, without their names and defaults."""
    types, part, depth = [], [], 0
    for token in [*tokens, ","]:
        depth += (token in "(<{[") - (token in ")>}]")
        if token == "," and depth == 0:
            part = part[: part.index("=")] if "=" in part else part
            named = len(part) > 1 and re.match(r"[A-Za-z_]", part[-1]) and part[-2] not in ("::", "const")
            types.append("".join(part[:-1] if named else part))
            part = []
        else:
            part.append(token)
    return ",".join(types)


def named(declaration: list[str]) -> tuple[str, str] | None:
    """Name and signature of what a declaration declares; the signature of what is no function is empty."""
    d = [t for t in declaration if t not in ("static", "inline", "constexpr", "constinit", "extern")]
    while d and d[0] == "template":
        d = d[matching(d, 1, ">") :]
    while d and d[0] == "[":
        d = d[matching(d, 0, "]") :]
    if d[:1] in (["using"], ["namespace"]) and d[2:3] == ["="]:
        return d[1], ""
    if not d or d[0] in ("using", "friend", "typedef", "static_assert") or "operator" in d:
        return None
    if d[0] in TYPES and "(" not in d:
        d = d[2:] if d[1:2] and d[1] in TYPES else d[1:]
        name, behind = (d or [""])[0], d[1:2]
        return (name, "") if re.match(r"[A-Za-z_]", name) and behind != ["::"] else None
    depth = 0
    for at, token in enumerate(d):
        depth += (token == "<") - (token == ">")
        if depth == 0 and token in ("(", "=", "{", "[", ";"):
            if at == 0 or not re.match(r"[A-Za-z_]", d[at - 1]) or (at > 1 and d[at - 2] == "::"):
                return None
            return d[at - 1], parameters(d[at + 1 : matching(d, at, ")") - 1]) + "()" if token == "(" else ""
    return None


def declared(path: Path) -> list[tuple[str, str, str, str | bool]]:
    """(namespace, name, signature, definition of a local alias or True for another local) at the scope of namespaces."""
    tokens = TOKEN.findall(IGNORED.sub(lambda m: '""' if m[0][0] in "R\"'" else " ", path.read_text(encoding="utf-8")))
    found, scopes, at, begin = [], [], 0, 0
    while at < len(tokens):
        token = tokens[at]
        declaration = tokens[begin:at]
        if token == "(":
            at = matching(tokens, at, ")")
            continue
        if token == "{" and ("namespace" in declaration[:2] or declaration[:1] == ["extern"] and len(declaration) < 4):
            is_namespace = "namespace" in declaration[:2]
            scopes.append("".join(declaration[declaration.index("namespace") + 1 :]) if is_namespace else None)
            at += 1
            begin = at
            continue
        if token == "}":
            if scopes:
                scopes.pop()
            at += 1
            begin = at
            continue
        if token in ("{", ";"):
            is_body = False
            if token == "{":
                at = matching(tokens, at, "}")
                outside = declaration[: declaration.index("(")] if "(" in declaration else declaration
                is_value = declaration and (declaration[0] in TYPES or "=" in outside or outside is declaration)
                if at < len(tokens) and (is_value or tokens[at] in (",", "{")):
                    continue  # up to the semicolon
                is_body = True
            declaration = tokens[begin:at]
            head = declaration[: declaration.index("{")] if "{" in declaration else declaration
            entry = named([*head, ";"]) if head else None
            is_prototype = entry is not None and entry[1] and not is_body
            is_forward = declaration[:1] and declaration[0] in TYPES and "{" not in declaration
            if entry and not is_forward and not (is_prototype and path.suffix == ".cpp"):
                local = path.suffix == ".cpp" and ("" in scopes or "static" in head)
                if head[0] in ("using", "namespace"):
                    local = "".join(head[2:])
                found.append(("::".join(s for s in scopes if s), *entry, local))
            at += 0 if is_body else 1
            begin = at
            continue
        at += 1
    return found


def library(path: Path) -> Path:
    folder = path.parent
    while not (folder / "CMakeLists.txt").exists():
        folder = folder.parent
    return folder


def main() -> int:
    tree = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    places: dict[tuple, dict[Path, str | bool]] = defaultdict(dict)
    for part in ("core", "views", "app"):
        for path in sorted((tree / part).rglob("*")):
            if path.suffix in (".cpp", ".h"):
                for namespace, name, signature, local in declared(path):
                    known = places[library(path), namespace, name, signature]
                    known[path] = known.get(path, False) or local
    clashes = [
        (key, paths)
        for key, paths in places.items()
        if len(paths) > 1 and any(paths.values()) and not (isinstance(next(iter(paths.values())), str) and len(set(paths.values())) == 1)
    ]
    # Headers of one program give a name one meaning: of core, or of the window.
    defined: dict[tuple, set[Path]] = defaultdict(set)
    for (_, namespace, name, signature), paths in places.items():
        for path, local in paths.items():
            if path.suffix == ".h" and not signature and local is False:
                defined[path.relative_to(tree).parts[0] == "core", namespace, name].add(path)
    clashes += [((None, namespace, name, ""), paths) for (_, namespace, name), paths in defined.items() if len(paths) > 1]
    for (_, namespace, name, signature), paths in clashes:
        shown = f"{namespace}::{name}" + (f"({signature[:-2]})" if signature else "")
        print(f"{shown}: " + ", ".join(str(path.relative_to(tree)) for path in sorted(paths)))
    return 1 if clashes else 0


if __name__ == "__main__":
    sys.exit(main())
