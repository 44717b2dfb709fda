"""What the commands on tasks share: where the tasks are, and one line for what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

from evalkit.cli.errors import UsageProblem, one_line_errors

DEFAULT_STORE = ".evalkit/tasks.sqlite"


@contextmanager
def task_errors() -> Iterator[None]:
    """One line for what is wrong with the input or the store."""
    from evalkit.worker.store import StoreError
    from evalkit.worker.task_records import TaskError

    with one_line_errors():
        try:
            yield
        except (TaskError, StoreError) as error:
            raise UsageProblem(" ".join(str(error).split())) from None


def home_of(store: str, home: Path | None) -> Path:
    """The folder for worlds and escalation artifacts: beside a SQLite file, else ``.evalkit``."""
    if home is not None:
        return home
    return Path(DEFAULT_STORE).parent if "://" in store else Path(store).resolve().parent


def store_option(command: Callable[..., None]) -> Callable[..., None]:
    """The option that says where the tasks are."""
    return click.option(
        "--store",
        "url",
        default=DEFAULT_STORE,
        envvar="EVALKIT_TASKS",
        show_default=True,
        help="A SQLite file, or postgresql://…; also EVALKIT_TASKS.",
    )(command)


def home_option(command: Callable[..., None]) -> Callable[..., None]:
    """The option for the folder of what kits keep and of escalations."""
    return click.option(
        "--home",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder for escalations and scripted worlds; without it, the store's.",
    )(command)


def with_store(command: Callable[..., None]) -> Callable[..., None]:
    """Hand a command the open store, and close it afterwards."""

    @store_option
    @wraps(command)
    def run(url: str, **options: Any) -> None:
        from evalkit.worker.store import open_store

        with task_errors():
            store = open_store(url)
            try:
                command(store, **options)
            finally:
                store.shut()

    return run
