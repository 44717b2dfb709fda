"""The run store: one SQLite file, one writer, a row for each finished cell."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import time
import weakref
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import msgspec

from evalkit.models.ledger import FILE as SPENDING
from evalkit.runs.foreign_records import FOLDER as TRACES
from evalkit.runs.plan import Recipe
from evalkit.scoring.episode_fields import KEPT, Episode, values_of, void_values

Ranges: TypeAlias = list[tuple[int, int]]

SCHEMA = 4
FILE = "episodes.sqlite"
#: What a run keeps beside its episodes.
_BESIDE = (TRACES, *(name.format(SPENDING) for name in ("{}", "{}-wal", "{}-shm", ".{}.lock")))
#: Precision of the decision counts in which each episode weighs 1.
WEIGHT = 1_000_000

#: The columns of an episode, in the order in which they are stored.
COLUMNS: tuple[str, ...] = ("cell", "scenario", "contender", "seed", *(figure.name for figure in KEPT))
_TEXTS = tuple(figure.name for figure in KEPT if figure.column == "text")

#: ``counted`` says whether an episode is in the bases: evalkit did not fail, and its event landed.
_DDL = f"""
create table meta (name text primary key, value text not null) without rowid;
create table scenario
  (id integer primary key, name text, family text, checks text, twin text, population integer);
create table contender (id integer primary key, strategy text, harness text);
create table episode (cell integer primary key, {", ".join(COLUMNS[1:])},
  counted integer generated always as (ending <> 'void' and not not_exercised) virtual);
create view episodes as
  select episode.*, scenario.name as scenario_name, family, checks, scenario.twin as pair, population,
         strategy, harness, ending || '/' || truth as outcome
  from episode join scenario on scenario.id = episode.scenario join contender on contender.id = contender
  order by cell;
"""


class RunError(ValueError):
    """A run folder that cannot be used; one line."""


class StoreLost(RunError):
    """The run folder cannot be written any more; what was finished before is kept."""


class Store:
    """The episodes of one run folder. Open with :meth:`create`, :meth:`resume` or :meth:`read`."""

    def __init__(
        self, folder: Path, base: sqlite3.Connection, recipe: Recipe, hold: int | None = None
    ) -> None:
        self.folder = folder
        self.base = base
        self.recipe = recipe
        self._let_go = weakref.finalize(self, os.close, hold) if hold is not None else None

    @classmethod
    def create(cls, folder: Path, recipe: Recipe) -> Store:
        """A new run folder. RunError if there is a run in it already or it cannot be written."""
        file = folder / FILE
        if file.exists() and not _is_empty(file):
            free = next(name for number in count(2) if not (name := Path(f"{folder}-{number}")).exists())
            raise RunError(
                f"{folder}: holds a run already; --resume it, --replace it, or choose another: --out {free}"
            )
        hold = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            hold = _hold(folder, fcntl.LOCK_SH)
            base = _connect(file)
            with base:
                base.execute("begin immediate")
                for statement in _DDL.strip().split(";\n"):
                    base.execute(statement)
                base.executemany(
                    "insert into meta values (?, ?)",
                    [
                        ("schema", str(SCHEMA)),
                        ("recipe", msgspec.json.encode(recipe).decode()),
                        ("id", recipe.id),
                        ("created", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())),
                    ],
                )
                base.executemany(
                    "insert into scenario values (?, ?, ?, ?, ?, ?)",
                    [
                        (number, entry.name, entry.family, entry.checks, entry.twin, entry.population)
                        for number, entry in enumerate(recipe.entries)
                    ],
                )
                base.executemany(
                    "insert into contender values (?, ?, ?)",
                    [
                        (number, contender.strategy, contender.harness)
                        for number, contender in enumerate(recipe.contenders)
                    ],
                )
        except (OSError, sqlite3.Error) as error:
            if hold is not None:
                os.close(hold)
            # The system's words alone: its own line has the number of the error, and the folder once more.
            why = error.strerror if isinstance(error, OSError) else error
            raise RunError(f"{folder}: cannot be written: {why}") from None
        return cls(folder, base, recipe, hold)

    @classmethod
    def open(cls, folder: Path, *, write: bool) -> Store:
        """An existing run. RunError if there is none, another version made it, or it is damaged.

        For writing the whole file is looked through first.
        """
        file = folder / FILE
        if not file.is_file():
            raise RunError(f"{folder}: is no run folder (no {FILE})")
        base = None
        hold = _hold(folder, fcntl.LOCK_SH) if write else None
        try:
            base = _connect(file) if write else sqlite3.connect(address_of(folder), uri=True)
            recipe = _read_recipe(folder, base)
            if write:
                found = damage_in(base)
                if found:
                    raise RunError(f"{folder}: the run is damaged: {found}")
            _check_values(folder, base, recipe)
        # What SQLite says of a damaged file may quote it, and then is no text.
        except (sqlite3.Error, UnicodeDecodeError, RunError) as error:
            if base is not None:
                base.close()
            if hold is not None:
                os.close(hold)
            if isinstance(error, RunError):
                raise
            raise RunError(f"{folder}: the run cannot be read: {' '.join(str(error).split())}") from None
        return cls(folder, base, recipe, hold)

    def add(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Keep finished cells, all or none; a cell that is there already stays as it is.

        StoreLost where the disk is full or gone, or another process holds the file.
        """
        marks = ", ".join("?" * len(COLUMNS))
        try:
            with self.base:
                self.base.execute("begin immediate")
                self.base.executemany(f"insert or ignore into episode values ({marks})", rows)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise StoreLost(f"{self.folder}: cannot be written: {error}") from None

    def forget_void(self) -> int:
        """Forget the episodes in which evalkit itself failed, so that they are played again; how many."""
        try:
            with self.base:
                return self.base.execute("delete from episode where ending = 'void'").rowcount
        except sqlite3.DatabaseError as error:
            raise StoreLost(f"{self.folder}: cannot be written: {error}") from None

    def finished(self) -> Ranges:
        """The numbers of the cells that are there, as ranges (first, last) in order."""
        ranges: Ranges = []
        for (cell,) in self.base.execute("select cell from episode order by cell"):
            if ranges and cell == ranges[-1][1] + 1:
                ranges[-1] = (ranges[-1][0], cell)
            else:
                ranges.append((cell, cell))
        return ranges

    def count(self) -> int:
        """How many cells are there."""
        (count,) = self.base.execute("select count(*) from episode").fetchone()
        return int(count)

    @property
    def created(self) -> str:
        """When the run folder was made; the report's only figure that a seed does not fix."""
        (row,) = list(self.base.execute("select value from meta where name = 'created'")) or [("",)]
        return str(row[0])

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query over the view ``episodes``."""
        return self.base.execute(query, values)

    def close(self) -> None:
        """Close the file."""
        self.base.close()
        if self._let_go is not None:
            self._let_go()


def remove_run(folder: Path, more: Iterable[str] = ()) -> None:
    """Remove the run in a folder: what a run keeps there, and ``more`` files and folders of these names.

    What else lies there stays; the folder goes if nothing does. One that is not there or is empty holds
    nothing to remove. RunError where it holds no run, or one that is being played.
    """
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not _holds_run(folder / FILE):
        raise RunError(f"{folder}: holds no run of evalkit (no {FILE} of one): nothing of it is removed")
    hold = _hold(folder, fcntl.LOCK_EX)
    try:
        # The store last: what is interrupted here is still a run, and can be removed.
        for name in (*more, *_BESIDE, *(f"{FILE}{log}" for log in ("-shm", "-wal", ""))):
            place = folder / name
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
    except OSError as error:
        raise RunError(f"{folder}: cannot be removed: {error}") from None
    finally:
        if hold is not None:
            os.close(hold)


def _holds_run(file: Path) -> bool:
    """Whether a file is a store, of whichever version; also one that nothing was kept in."""
    if not file.is_file():
        return False
    if _is_empty(file):
        return True
    try:
        base = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)
        try:
            return bool(list(base.execute("select 1 from meta where name = 'schema'")))
        finally:
            base.close()
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def _hold(folder: Path, how: int) -> int | None:
    """Hold a run folder: shared by whoever plays it, alone to remove it; what is to be closed.

    The kernel lets go of it however this process ends. None where the file system has no locks. RunError
    where another holds it in the other way.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        doing = "played" if how == fcntl.LOCK_EX else "removed"
        raise RunError(f"{folder}: is being {doing} by another evalkit; wait for it or end it") from None
    except OSError:
        os.close(handle)
        return None
    return handle


def _read_recipe(folder: Path, base: sqlite3.Connection) -> Recipe:
    if not list(base.execute("select 1 from sqlite_master where name = 'meta'")):
        raise RunError(f"{folder}: holds no run; it ended before it began, run it again into the same --out")
    rows = {str(name): str(value) for name, value in base.execute("select name, value from meta")}
    version = rows.get("schema")
    if version != str(SCHEMA):
        raise RunError(f"{folder}: the run has store version {version}, this evalkit reads {SCHEMA}")
    try:
        recipe = msgspec.json.decode(rows["recipe"], type=Recipe)
    except (KeyError, msgspec.DecodeError, RecursionError) as error:
        raise RunError(f"{folder}: the run cannot be read: {error}") from None
    for table, planned in (("scenario", recipe.entries), ("contender", recipe.contenders)):
        (found,) = base.execute(f"select count(*) from {table}").fetchone()
        if found != len(planned):
            raise RunError(f"{folder}: the run is damaged: {found} rows of {table}, {len(planned)} planned")
    return recipe


def _check_values(folder: Path, base: sqlite3.Connection, recipe: Recipe) -> None:
    """SQLite itself sees no harm in a number where a text was written. RunError for such a row."""
    others = [name for name in COLUMNS if name not in _TEXTS]
    wrong = " or ".join(
        [
            f"scenario not between 0 and {len(recipe.entries) - 1}",
            f"contender not between 0 and {len(recipe.contenders) - 1}",
            *(f"typeof({name}) <> 'text'" for name in _TEXTS),
            *(f"typeof({name}) not in ('integer', 'null')" for name in others),
        ]
    )
    for (cell,) in base.execute(f"select cell from episode where {wrong} limit 1"):
        raise RunError(f"{folder}: the run is damaged: cell {cell} holds what no episode does")


def _is_empty(file: Path) -> bool:
    """Whether a store was made and nothing kept in it, as when a run is killed before it begins."""
    try:
        base = sqlite3.connect(file)
        try:
            return not list(base.execute("select 1 from sqlite_master limit 1"))
        finally:
            base.close()
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def _connect(file: Path) -> sqlite3.Connection:
    base = sqlite3.connect(f"file:{quote(str(file.resolve()))}", isolation_level=None, uri=True)
    base.execute("pragma journal_mode = wal")
    base.execute("pragma synchronous = normal")
    return base


def damage_in(base: sqlite3.Connection) -> str:
    """What SQLite finds wrong with a file when it looks through all of it; empty where it is sound."""
    (found,) = base.execute("pragma quick_check(1)").fetchone()
    return "" if found == "ok" else " ".join(str(found).split())


def address_of(folder: Path) -> str:
    """A run's file as SQLite opens it to read: as it stands, where no log can be made beside it."""
    file = folder / FILE
    address = f"file:{quote(str(file.resolve()))}"
    if os.access(folder, os.W_OK):
        return address
    log = file.with_name(f"{file.name}-wal")
    if log.exists() and log.stat().st_size:
        raise RunError(f"{folder}: the run was interrupted, and its folder cannot be written: copy it first")
    return f"{address}?immutable=1"


def row_of(cell: int, scenario: int, contender: int, seed: int, episode: Episode) -> tuple[Any, ...]:
    """An episode as the store keeps it."""
    return (cell, scenario, contender, seed, *values_of(episode))


def void_row(cell: int, scenario: int, contender: int, seed: int, note: str) -> tuple[Any, ...]:
    """A cell in which evalkit itself failed."""
    return (cell, scenario, contender, seed, *void_values(" ".join(note.split())[:500]))
