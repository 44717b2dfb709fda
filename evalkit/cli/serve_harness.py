"""``evalkit serve --harness``: a harness whose model is at a fixed address, one episode after the other."""

from __future__ import annotations

import socket
import time
from collections import Counter
from urllib.parse import urlsplit

import click

from evalkit.cli.errors import UsageProblem
from evalkit.cli.harness_setup import set_up_all
from evalkit.harnesses.find import find_harness
from evalkit.harnesses.manifest import Harness
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode
from evalkit.scoring.foreign_episode import (
    contract_of,
    hear,
    run_foreign,
    runner_of,
    server_for_harnesses,
    why_not_expressible,
)

#: Seconds that a service has to come up: it is started with the address that is printed first.
_ARRIVAL_S = 60.0
_TICK_S = 0.1


def play_at(port: int, name: str, scenarios: list[Scenario], seed: int) -> None:
    """Play scenarios with a harness whose base URL is ``port`` itself; a line for each, and a sum.

    UsageProblem where the port is taken or the harness's service does not come up.
    """
    set_up_all((name,))
    harness = find_harness(name)
    server = server_for_harnesses(port)
    try:
        server.__enter__()
    except OSError as error:
        raise UsageProblem(f"port {port}: {error.strerror or error}") from None
    try:
        url = server.url("")
        for variable, value in (
            ("ANTHROPIC_BASE_URL", url),
            ("OPENAI_BASE_URL", f"{url}/v1"),
            ("EVALKIT_TOOLS_URL", f"{url}/tools"),
            ("EVALKIT_MCP_URL", f"{url}/mcp"),
        ):
            click.echo(f"export {variable}={value}")
        _await_service(harness)
        harness = hear(harness, server=server)
        contract, runner = contract_of(harness), runner_of(harness)
        counts: Counter[str] = Counter()
        try:
            for scenario in scenarios:
                reason = why_not_expressible(scenario, harness)
                if reason is not None:
                    counts["not expressible"] += 1
                    click.echo(f"{scenario.name}: not expressible: {reason}")
                    continue
                arena = Arena(scenario, contract.offered)
                episode, _ = run_foreign(arena, seed, contract, runner, server)
                counts[_kind(episode)] += 1
                click.echo(f"{scenario.name}: {_episode_line(episode)}")
        finally:
            runner.close()
        click.echo(f"{len(scenarios)} scenarios: {', '.join(f'{n} {kind}' for kind, n in counts.items())}")
    finally:
        server.__exit__(None, None, None)


def _await_service(harness: Harness) -> None:
    """Wait until the service answers, where the harness is one: it may be started only now."""
    if harness.manifest.service is None:
        return
    place = urlsplit(harness.manifest.service)
    end = time.monotonic() + _ARRIVAL_S
    told = False
    while True:
        try:
            socket.create_connection((place.hostname or "", place.port or 0), timeout=1).close()
            return
        except OSError as error:
            if time.monotonic() > end:
                raise UsageProblem(
                    f"the service at {harness.manifest.service} does not answer: {error.strerror or error}"
                ) from None
        if not told:
            click.echo(f"waiting for the service at {harness.manifest.service}", err=True)
            told = True
        time.sleep(_TICK_S)


def _kind(episode: Episode) -> str:
    if episode.not_exercised:
        return "not exercised"
    return "correct" if episode.correct else "not correct"


def _episode_line(episode: Episode) -> str:
    said = f"{episode.outcome} in {episode.turns} turns"
    if episode.not_exercised:
        return f"{said}; not exercised"
    return said if episode.correct else f"{said}; not correct: {episode.why}"
