"""Harnesses made ready: their environments set up, and what plays an episode of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from evalkit.cli.errors import UsageProblem
from evalkit.harnesses.find import find_harness
from evalkit.harnesses.manifest import Harness

if TYPE_CHECKING:
    from evalkit.harnesses.episode_record import Kept
    from evalkit.scenarios.scenario import Scenario
    from evalkit.scoring.episode import Episode


def set_up_all(names: tuple[str, ...]) -> None:
    """Set up each harness that is not; progress on standard error."""
    from evalkit.harnesses.pinned_environment import SetupError, is_ready, set_up

    for name in names:
        harness = find_harness(name)
        if not is_ready(harness):
            try:
                set_up(harness, lambda said: click.echo(said, err=True))
            except SetupError as error:
                raise UsageProblem(str(error)) from None


@contextmanager
def playing(name: str) -> Iterator[tuple[Harness, Callable[[Scenario, int], tuple[Episode, Kept]]]]:
    """A harness, set up and heard, and what plays an episode of it."""
    from evalkit.scoring.arena import Arena
    from evalkit.scoring.foreign_episode import (
        contract_of,
        hear,
        run_foreign,
        runner_of,
        server_for_harnesses,
    )

    set_up_all((name,))
    harness = hear(find_harness(name))
    contract, runner = contract_of(harness), runner_of(harness)
    try:
        with server_for_harnesses() as server:
            yield (
                harness,
                lambda scenario, seed: run_foreign(
                    Arena(scenario, contract.offered), seed, contract, runner, server
                ),
            )
    finally:
        runner.close()
