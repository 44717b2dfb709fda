"""The embedded database: SQLite with a write-ahead log."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from evalkit.worker.store.protocol import StoreBusy, StoreError

#: ``full`` waits for the disk at every commit, so that a power cut loses nothing; ``normal`` survives the
#: death of the process but not of the machine.
Durability = Literal["full", "normal"]

#: Seconds before the switch to a write-ahead log is tried again.
_AGAIN = 0.005
_BUSY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))


class SqliteDatabase:
    """A connection to a SQLite file; ``patience`` is how many seconds a statement waits for a lock."""

    serial = "integer primary key"
    taking = ""

    def __init__(self, path: str, *, durability: Durability = "full", patience: float = 5.0) -> None:
        self.url = path if path == ":memory:" else str(Path(path).resolve())
        try:
            if path != ":memory:":
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(
                path, timeout=patience, isolation_level=None, check_same_thread=False, cached_statements=256
            )
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{path}: cannot be opened: {error}") from None
        self._keep_log(patience)
        self.execute(f"pragma synchronous = {durability}")

    def _keep_log(self, patience: float) -> None:
        """Switch to a write-ahead log. SQLite does not wait for others who do the same to a new file."""
        begun = time.monotonic()
        while True:
            try:
                self.execute("pragma journal_mode = wal")
                return
            except StoreBusy:
                if time.monotonic() - begun > patience:
                    raise
                time.sleep(_AGAIN)

    def begin(self) -> None:
        self.execute("begin immediate")

    def commit(self) -> None:
        self.execute("commit")

    def rollback(self) -> None:
        if self._base.in_transaction:
            self.execute("rollback")

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._base.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            # The low byte is the primary code; extended ones tell variants apart.
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in _BUSY:
                raise StoreBusy(f"{self.url}: locked by another process") from error
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.InterfaceError):
                raise
            raise StoreError(f"{self.url}: {error}") from error

    def lock_schema(self) -> None:
        """The transaction has the whole file already."""

    def close(self) -> None:
        self._base.close()
