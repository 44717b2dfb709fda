"""Folders and servers for stores."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evalkit.worker.store import SqlStore, open_store
from tests.worker.servers import postgres_server, server_programs

_NUMBERS = itertools.count()


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder in memory where the machine has one: the death of a process leaves it as it was."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of an empty PostgreSQL server."""
    programs = server_programs()
    if programs is None:
        pytest.fail("PostgreSQL's server programs are not installed (Debian: apt-get install postgresql)")
    with postgres_server(programs) as url:
        yield url


Opener = Callable[[], SqlStore]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, home: Path) -> str:
    """Where a new store is to be."""
    if request.param == "sqlite":
        return str(home / "tasks.sqlite")
    return f"{request.getfixturevalue('postgres')}&options=-csearch_path%3D{fresh_schema(request)}"


@pytest.fixture
def open_one(url: str) -> Iterator[Opener]:
    """Opens the same store as often as asked, each with a connection of its own."""
    opened: list[SqlStore] = []

    def open_again() -> SqlStore:
        opened.append(open_store(url, durability="normal", patience=0.05))
        return opened[-1]

    yield open_again
    for store in opened:
        store.shut()


def fresh_schema(request: pytest.FixtureRequest) -> str:
    """A schema of the test's own, so that tests share a server and no table."""
    import psycopg

    name = f"test_{next(_NUMBERS)}"
    with psycopg.connect(request.getfixturevalue("postgres"), autocommit=True) as base:
        base.execute(f"create schema {name}".encode())
    return name
