"""Checks on a folder, as a scenario declares them."""

from __future__ import annotations

import re
import sqlite3
from functools import lru_cache

import msgspec

from evalkit.worlds.base import WorldError
from evalkit.worlds.folder import run_on
from evalkit.worlds.isolation import Bounds, leaves_folder
from evalkit.worlds.tree import PathRefused, Tree, place

#: Steps of SQLite's machine after which a query is given up.
_STEPS = 10_000_000
_READING = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)


class Contains(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that a file has somewhere."""

    path: str
    text: str


class Matches(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A regular expression found somewhere in a file; ``^`` and ``$`` are those of a line."""

    path: str
    pattern: str


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command and the exit status it must have. What it changes is not kept."""

    command: str
    status: int = 0


class SqlCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query of a SQLite file and the number it must give."""

    path: str
    query: str
    count: int


class FileCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One or several checks; all must hold."""

    exists: str | None = None
    contains: Contains | None = None
    matches: Matches | None = None
    run: str | Command | None = None
    sql: SqlCount | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The files it looks at."""
        looked = (self.contains, self.matches, self.sql)
        named = (self.exists, *(check.path for check in looked if check is not None))
        return tuple(dict.fromkeys(path for path in named if path is not None))

    @property
    def command(self) -> Command | None:
        """The command it runs."""
        return Command(self.run) if isinstance(self.run, str) else self.run


def plain_path(path: str, field: str) -> None:
    """WorldError for a path that is no plain one within the folder."""
    try:
        plain = place(path)
    except PathRefused as error:
        raise WorldError(f"{field}: {error}") from None
    if plain != path:
        raise WorldError(f"{field}: write {plain!r}, found {path!r}")


def usable(check: FileCheck, field: str) -> None:
    """WorldError where a check could never be run."""
    if check == FileCheck():
        raise WorldError(f"{field}: a check needs one of exists, contains, matches, run, sql")
    for path in check.paths:
        plain_path(path, field)
    if check.matches is not None:
        try:
            re.compile(check.matches.pattern)
        except re.error as error:
            raise WorldError(
                f"{field}: {check.matches.pattern!r} is no regular expression: {error}"
            ) from None
    if check.command is not None:
        outside = leaves_folder(check.command.command)
        if outside is not None or not check.command.command.strip():
            raise WorldError(f"{field}: run: {outside or 'a command'} is not within the folder")


def check_holds(check: FileCheck, tree: Tree, bounds: Bounds) -> bool:
    """Whether all that a check says is so in a folder."""
    if check.exists is not None and tree.read(check.exists) is None:
        return False
    if check.contains is not None:
        text = _text(tree, check.contains.path)
        if text is None or check.contains.text not in text:
            return False
    if check.matches is not None:
        text = _text(tree, check.matches.path)
        if text is None or re.search(check.matches.pattern, text, re.MULTILINE) is None:
            return False
    if check.sql is not None and not _counts(check.sql, tree.read(check.sql.path)):
        return False
    command = check.command
    return command is None or run_on(tree, command.command, bounds).status == command.status


def _text(tree: Tree, path: str) -> str | None:
    data = tree.read(path)
    return None if data is None else data.decode("utf-8", "replace")


@lru_cache(maxsize=1024)
def _counts(check: SqlCount, data: bytes | None) -> bool:
    """Whether a query gives a number. The file is read into memory: nothing on disk is opened or changed."""
    if not data or len(data) < 100:
        return False
    # Bytes 18 and 19 ask for a write-ahead log, which a copy in memory cannot have.
    if data[18:20] == b"\x02\x02":
        data = data[:18] + b"\x01\x01" + data[20:]
    base = sqlite3.connect(":memory:")
    try:
        base.deserialize(data)
        base.set_authorizer(_authorise)
        base.set_progress_handler(lambda: 1, _STEPS)
        rows = base.execute(check.query).fetchmany(2)
        return len(rows) == 1 and len(rows[0]) == 1 and rows[0][0] == check.count
    except (sqlite3.Error, sqlite3.Warning, OverflowError):
        return False
    finally:
        base.close()


def _authorise(action: int, *_: object) -> int:
    """Only reading."""
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY
