"""Where tasks are kept: SQLite by default, PostgreSQL as an option, behind one protocol."""

from __future__ import annotations

from evalkit.worker.store.base import BUSY_TRIES, Busy
from evalkit.worker.store.database import Database
from evalkit.worker.store.desk import Desk
from evalkit.worker.store.journal import Journal
from evalkit.worker.store.protocol import LeaseLost, Store, StoreBusy, StoreError
from evalkit.worker.store.queue import Queue
from evalkit.worker.store.schema import migrate
from evalkit.worker.store.sqlite import Durability, SqliteDatabase

__all__ = [
    "Durability",
    "LeaseLost",
    "SqlStore",
    "SqliteDatabase",
    "Store",
    "StoreBusy",
    "StoreError",
    "open_store",
]


class SqlStore(Queue, Journal, Desk):
    """The store over any database; its tables are brought up to date."""

    def __init__(self, database: Database, busy: Busy = lambda times: times < BUSY_TRIES) -> None:
        super().__init__(database, busy)
        self.write_schema()

    def write_schema(self) -> None:
        """Bring the tables to this evalkit's version, waiting for whoever is at it already."""
        times = 0
        while True:
            try:
                migrate(self.database)
                return
            except StoreBusy:
                times += 1
                if not self._busy(times):
                    raise


def open_store(url: str, *, durability: Durability = "full", patience: float = 5.0) -> SqlStore:
    """The store at a ``postgresql://`` URL, or in the SQLite file of that path, which is made where needed.

    ``patience`` is how many seconds one statement waits for another process. StoreError where it cannot be
    opened.
    """
    if url.startswith(("postgresql://", "postgres://")):
        from evalkit.worker.store.postgres import PostgresDatabase

        return SqlStore(PostgresDatabase(url, patience=patience))
    return SqlStore(SqliteDatabase(url, durability=durability, patience=patience))
