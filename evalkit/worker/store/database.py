"""What the store needs of a database: rows for a statement, and transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Database(Protocol):
    """A connection. Statements write ``?`` for values, whatever the driver's own mark is.

    Its errors are :class:`~evalkit.worker.store.protocol.StoreBusy` and
    :class:`~evalkit.worker.store.protocol.StoreError`.
    """

    url: str
    #: The type of a growing key.
    serial: str
    #: What a select adds to take its rows, leaving out those that others have taken.
    taking: str

    def begin(self) -> None:
        """Begin a transaction that will write."""

    def commit(self) -> None:
        """Make it last."""

    def rollback(self) -> None:
        """Undo it; nothing where there is none."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement; its rows."""

    def lock_schema(self) -> None:
        """Keep other processes from changing the tables until the transaction ends."""

    def close(self) -> None:
        """Close the connection."""
