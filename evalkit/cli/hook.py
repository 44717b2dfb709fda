"""``evalkit hook``: a Stop hook for coding agents."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from evalkit.cli.errors import UsageProblem
from evalkit.cli.task_store import home_of, home_option, store_option, task_errors


class HookProblem(UsageProblem):
    """Whatever went wrong. Exit code 2 would block the stop, with what was printed as the reason."""

    exit_code = 1


class _Hook(click.Command):
    """A command whose wrong options are a :class:`HookProblem` too."""

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **more)
        except click.UsageError as error:
            raise HookProblem(error.format_message()) from None


@contextmanager
def _harmless_errors() -> Iterator[None]:
    try:
        with task_errors():
            yield
    except click.ClickException as error:
        raise HookProblem(error.format_message()) from None


@click.command(cls=_Hook)
@click.option(
    "--checklist",
    "checklists",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A checklist: Markdown with '- [ ]' boxes, or JSON. Repeatable; one that is not there is empty.",
)
@click.option("--check", "checks", multiple=True, help="A command that must exit 0. Repeatable.")
@click.option(
    "--cap",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Blocks in a row without progress; then the session is handed over.",
)
@click.option("--timeout", default=300.0, show_default=True, help="Seconds for each check.")
@home_option
@store_option
def command(
    url: str,
    home: Path | None,
    checklists: tuple[Path, ...],
    checks: tuple[str, ...],
    cap: int,
    timeout: float,
) -> None:
    """Read a Stop hook's JSON on stdin; block the stop while items are open, and hand over at the cap.

    Whatever goes wrong lets the agent stop, with exit code 1: a hook that cannot remember must not block.
    """
    from evalkit.worker.open_items import read_checklist, run_checks
    from evalkit.worker.stop_hook import judge_stop, read_stop
    from evalkit.worker.store import open_store

    with _harmless_errors():
        if not checklists and not checks:
            raise click.UsageError("give at least one --checklist or --check")
        stop = read_stop(sys.stdin.buffer.read())
        folder = Path(stop.cwd) if stop.cwd else Path.cwd()
        found = [folder / path for path in checklists]
        items = [item for path in found if path.exists() for item in read_checklist(path)]
        checked = run_checks(checks, folder, timeout)
        store = open_store(url)
        try:
            answer = judge_stop(store, home_of(url, home), stop, items, checked, time.time(), cap)
        finally:
            store.shut()
    output = answer.output()
    if output:
        click.echo(json.dumps(output))
