"""How errors of a user's input end a command: one line, exit code 2."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import click

from evalkit.containment.workers import WorkerDied
from evalkit.core.names import did_you_mean
from evalkit.harnesses.manifest import ManifestError
from evalkit.media.medium import MediumError
from evalkit.models.cassettes import CassetteError, Missed
from evalkit.models.ledger import LedgerError
from evalkit.runs.engine import EngineError
from evalkit.runs.plan import PlanError
from evalkit.runs.store import RunError
from evalkit.scenarios.yaml_source import ScenarioError
from evalkit.secrets.cleaning import clean_text
from evalkit.strategies.registry import StrategyError

#: Errors whose message is meant for whoever gave the input.
_INPUT_ERRORS = (
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


#: By kind of error, the command that leads on; a class may have subclasses of its own.
_HINTS: dict[type[Exception], str] = {
    CassetteError: "evalkit cassettes --help",
    EngineError: "evalkit run --help",
    ManifestError: "evalkit harnesses list",
    MediumError: "evalkit run --help",
    PlanError: "evalkit run --help",
    RunError: "evalkit run --help",
    ScenarioError: "evalkit scenarios list",
    StrategyError: "evalkit strategies list",
    WorkerDied: "evalkit doctor",
}


class UsageProblem(click.ClickException):
    """Bad input, named in one line; under it a command to paste that leads on.

    ``hint`` is that command. Without one it is the help of the command that is running.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint or f"{command_of(click.get_current_context(silent=True))} --help"

    def show(self, file: object = None) -> None:
        click.echo(f"evalkit: {clean_text(self.message)}", err=True)
        click.echo(f"hint: {clean_text(self.hint)}", err=True)


def command_of(context: click.Context | None) -> str:
    """The command of a context as it is typed, however evalkit was started."""
    _, _, path = context.command_path.partition(" ") if context is not None else ("", "", "")
    return f"evalkit {path}".strip()


def usage_line(error: click.UsageError) -> str:
    """What click says of a usage, in one line, with what was meant."""
    said = " ".join(error.format_message().split()).rstrip(".")
    if isinstance(error, click.exceptions.NoSuchOption) and error.ctx is not None and not error.possibilities:
        known = [option for found in error.ctx.command.params for option in found.opts]
        said += did_you_mean(error.option_name, known)
    elif said.startswith("No such command"):
        context = error.ctx
        group = context.command if context is not None else None
        wrong = said.split("'")[1] if "'" in said else ""
        if isinstance(group, click.Group) and context is not None and "Did you mean" not in said:
            known = group.list_commands(context)
            said += did_you_mean(wrong, known) + f"; allowed: {', '.join(known)}"
    return said[:1].lower() + said[1:]


def hint_of(error: BaseException) -> str:
    """The command that leads on from an error: its own, or that of its kind."""
    # A plan that cannot be made because a name is unknown: the name's kind knows more.
    cause = error.__cause__ or error.__context__
    if cause is not None and isinstance(cause, tuple(_HINTS)):
        return hint_of(cause)
    return next((hint for kind, hint in _HINTS.items() if isinstance(error, kind)), "evalkit --help")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what is wrong with a user's input into one line on standard error."""
    try:
        yield
    except _INPUT_ERRORS as error:
        raise UsageProblem(" ".join(str(error).split()), hint=hint_of(error)) from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise UsageProblem(f"the run cannot be read: {error}") from None
