# SPDX-License-Identifier: GPL-3.0-or-later
"""The schema of a trace. This package and the program create and check traces by the same file, `schema.sql`."""

from __future__ import annotations

import functools
import json
import os
import re
import sqlite3
import time
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from .columns import PLAIN_NAME

POSITION_BITS = 32
"""Rows of tokens and of text have the number sequence * 2^32 + position."""
MAX_TOKENS = (1 << POSITION_BITS) - 1
MAX_SEQUENCE_ID = (1 << 31) - 1
TEXT_PIECE = 4000
"""Bytes of a row of the table `text`."""


@dataclass(frozen=True)
class Schema:
    script: str
    application_id: int
    version: int
    tables: dict[str, dict[str, str]]
    """SQL types by table name and column name, in the order of the schema."""


@dataclass(frozen=True)
class Kind:
    """A kind of SQLite file that Ponderscope writes."""

    what: str
    script: str
    """File that creates the tables."""
    otherwise: str
    """Remedy if the file is of another kind."""


TRACE = Kind("a trace", "schema.sql", "choose a .ponder file that ponderscope made")
ANNOTATIONS = Kind("annotations of a trace", "annotations.sql", "remove it or give it another name")


@functools.cache
def schema(kind: Kind = TRACE) -> Schema:
    """The schema that this package writes."""
    if sqlite3.sqlite_version_info < (3, 37):
        raise RuntimeError(f"SQLite {sqlite3.sqlite_version} is too old for traces; use a Python with SQLite 3.37 or newer.")
    script = resources.files(__package__).joinpath(kind.script).read_text(encoding="utf-8")
    memory = sqlite3.connect(":memory:")
    memory.executescript(script)
    names = [name for (name,) in memory.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid")]
    tables = {name: {row[1]: row[2] for row in memory.execute(f"PRAGMA table_info({name})")} for name in names}
    return Schema(
        script,
        memory.execute("PRAGMA application_id").fetchone()[0],
        memory.execute("PRAGMA user_version").fetchone()[0],
        tables,
    )


def token_columns() -> dict[str, str]:
    """SQL types of the columns of a token."""
    return {name: kind for name, kind in schema().tables["token_row"].items() if name != "row"}


def utc_now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


UNSEEN = re.compile(
    "[\\0-\\x1f\\x7f-\\x9f\\xad\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\U000e0000-\\U000e0fff]"
)
"""Characters that are invisible or move other characters. Joiners are not among them: some scripts need them as letters."""


def visible(text: str) -> str:
    """Text from a stranger's file, made safe for a terminal: UNSEEN characters become the escaped bytes of their UTF-8."""
    return UNSEEN.sub(lambda m: "".join(f"\\x{byte:02x}" for byte in m[0].encode("utf-8")), text)


class NoSuchFile(FileNotFoundError, ValueError):
    """A missing file: a ValueError, as all refusals of this package are, and a FileNotFoundError."""


def refusal(path: str | os.PathLike[str], expected: str, found: str, remedy: str) -> ValueError:
    """A ValueError about a file, in one sentence: what was expected, what was found, what to do."""
    return ValueError(visible(f"{os.fspath(path)}: expected {expected}, found {found}; {remedy}."))


DAMAGED = "the file was changed or damaged; copy it from its source again"


def check_header(path: Path, kind: Kind = TRACE) -> None:
    """ValueError unless the file is of this kind and has the version that this package writes.

    Reads the file only through SQLite: when a process closes any descriptor of a file, POSIX releases all locks of the
    process on this file, even those of a Writer in the same process.
    """
    if not path.exists():
        file, _, run = str(path).rpartition("#")
        remedy = f"open {file} and take its run({run!r})" if file and Path(file).is_file() else "check the name"
        raise NoSuchFile(str(refusal(path, kind.what, "no such file", remedy)))
    if path.is_dir():
        raise refusal(path, kind.what, "a folder", kind.otherwise)
    if not path.is_file():
        raise refusal(path, kind.what, "something other than a plain file", kind.otherwise)
    if path.stat().st_size == 0:
        raise refusal(path, kind.what, "an empty file", kind.otherwise)
    for more in ("", "&immutable=1"):  # in a read-only folder a trace in WAL mode opens only as immutable
        try:
            database = sqlite3.connect(uri_of(path) + more, timeout=_patience(kind), uri=True)
            try:
                application, version = (database.execute(f"PRAGMA {p}").fetchone()[0] for p in ("application_id", "user_version"))
                break
            finally:
                database.close()
        except sqlite3.OperationalError as error:
            if more:
                raise OSError(f"{path}: cannot be opened ({error}); check the permissions of the file and of its folder.") from None
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise refusal(path, kind.what, "a file of another kind", kind.otherwise) from None
            raise refusal(path, kind.what, f"a damaged file ({error})", DAMAGED) from None
    if application != schema(kind).application_id:
        raise refusal(path, kind.what, "an SQLite database of another program", kind.otherwise)
    if version != schema(kind).version:
        raise refusal(
            path, f"{kind.what} of version {schema(kind).version}", f"version {version}",
            "read it with the ponderscope that wrote it, or make it again",
        )  # fmt: skip


def uri_of(path: Path) -> str:
    """URI of a read-only connection."""
    return "file:" + quote(str(path.absolute())) + "?mode=ro"


def check_tables(database: sqlite3.Connection, path: Path, kind: Kind = TRACE) -> None:
    """ValueError unless every table of the schema is a plain table with plain columns: a file can come from a stranger."""
    for table, columns in schema(kind).tables.items():
        found = database.execute(
            "SELECT type, coalesce(sql, '') FROM sqlite_schema WHERE lower(name) = ?", (table,)
        ).fetchall()
        if len(found) != 1 or found[0][0] != "table" or not found[0][1].startswith("CREATE TABLE "):
            what = "no such table" if not found else "several" if len(found) > 1 else "something else of that name"
            raise refusal(path, f"a table named {table}", what, DAMAGED)
        hidden = {name: kind for _, name, _, _, _, _, kind in database.execute(f"PRAGMA table_xinfo({table})")}
        for column in columns:
            if hidden.get(column) != 0:
                raise refusal(path, f"a plain column {table}.{column}", "no such column", DAMAGED)


def readable(text: bytes) -> str:
    """Decodes text from SQLite. File names may be any bytes (Latin-1, for example), so invalid UTF-8 is no damage."""
    return text.decode("utf-8", errors="replace")


def connect_for_reading(uri: str, path: Path, kind: Kind = TRACE) -> sqlite3.Connection:
    """A read-only connection to a file that may come from a stranger. Checks its tables."""
    database = sqlite3.connect(uri, timeout=_patience(kind), uri=True, isolation_level=None, check_same_thread=False)
    database.text_factory = readable
    try:
        for pragma in ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
            database.execute(f"PRAGMA {pragma}")
        check_tables(database, path, kind)
    except BaseException:
        database.close()
        raise
    return database


def _patience(kind: Kind) -> float:
    """Seconds to wait for a lock. Our own writers never lock annotations."""
    return 0.3 if kind is ANNOTATIONS else 5


def axes_of(text: str, path: Path, signal: str) -> tuple[str, ...]:
    """The axes of a signal, from its row."""
    try:
        axes = json.loads(text) if len(text) < 10_000 else None
    except (ValueError, RecursionError):
        axes = None
    names = [signal, *axes] if isinstance(axes, list) else []
    if len(names) < 2 or names[1] != "token" or not all(isinstance(name, str) and PLAIN_NAME.match(name) for name in names):
        raise refusal(path, f"a name and axes of signal {signal:.100} that begin with token", text[:100], DAMAGED)
    return tuple(axes)
