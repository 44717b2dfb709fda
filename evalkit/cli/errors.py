"""How errors of a user's input end a command: one line, exit code 2."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import click

from evalkit.containment.workers import WorkerDied
from evalkit.harnesses.manifest import ManifestError
from evalkit.models.cassettes import CassetteError, Missed
from evalkit.models.ledger import LedgerError
from evalkit.runs.engine import EngineError
from evalkit.runs.medium import MediumError
from evalkit.runs.plan import PlanError
from evalkit.runs.store import RunError
from evalkit.scenarios.yaml_source import ScenarioError
from evalkit.secrets.cleaning import clean_text
from evalkit.strategies.library import StrategyError

#: Errors whose message is meant for whoever gave the input.
_TOLD = (
    CassetteError,
    EngineError,
    LedgerError,
    ManifestError,
    Missed,
    MediumError,
    PlanError,
    RunError,
    ScenarioError,
    StrategyError,
    WorkerDied,
)


class UsageProblem(click.ClickException):
    """Bad input, named in one line."""

    exit_code = 2

    def show(self, file: object = None) -> None:
        click.echo(f"evalkit: {clean_text(self.message)}", err=True)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what is wrong with a user's input into one line on standard error."""
    try:
        yield
    except _TOLD as error:
        raise UsageProblem(" ".join(str(error).split())) from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise UsageProblem(f"the run cannot be read: {error}") from None
