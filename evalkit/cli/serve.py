"""``evalkit serve``."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, KEYWORD, Offered
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import load_suites

if TYPE_CHECKING:
    from evalkit.stage.stage import Stage
    from evalkit.wire.episode import WireEpisode
    from evalkit.wire.server import Server

_CHANNELS = ("finish", "checklist", "keyword", "output")


@click.command()
@click.argument("scenario")
@click.option("--port", default=0, show_default="a free one", help="The port to listen on, at 127.0.0.1.")
@click.option("--seed", default=0, show_default=True, help="The seed of the script's choices.")
@click.option(
    "--offer",
    "offers",
    multiple=True,
    type=click.Choice(_CHANNELS),
    help="A channel that your harness agrees with the model for saying that it is done. Repeat for more.",
)
@click.option(
    "--harness",
    "harness",
    help="Play SCENARIO, or a suite, with this harness at the fixed port, one episode at a time.",
)
def command(scenario: str, port: int, seed: int, offers: tuple[str, ...], harness: str | None) -> None:
    """Serve the scripted model of SCENARIO to a harness of your own, with a line per request.

    Ctrl-C ends it and says how far the work came.
    """
    if harness is not None:
        if offers:
            raise UsageProblem("--offer: what a harness offers stands in its manifest")
        from evalkit.cli.serve_harness import play_at

        with one_line_errors():
            play_at(port, harness, load_suites((scenario,)), seed)
        return
    with one_line_errors():
        found = _single(load_suites((scenario,)), scenario)
    from evalkit.scoring.arena import Arena
    from evalkit.wire.episode import WireEpisode
    from evalkit.wire.server import Server

    offered = Offered(
        finish="finish" in offers,
        checklist="checklist" in offers,
        keyword=KEYWORD if "keyword" in offers else None,
        output="output" in offers,
    )
    arena = Arena(found, offered)
    stage = arena.stage(seed, cap=arena.cap(seed))
    own = [name for name, has in ((FINISH_TOOL, offered.finish), (CHECKLIST_TOOL, offered.checklist)) if has]
    episode = WireEpisode(stage, own_tools=tuple(own), blocking=True)
    requests = iter(range(1, 1 << 60))
    server = Server(
        port=port,
        log=lambda _, method, path, reply: click.echo(
            f"{next(requests):4}  {method:4} {path}  {reply.status}  {reply.said}"
            + (f"  [{stage.path}]" if reply.turn else "")
        ),
    )
    token = server.add(episode)
    try:
        asyncio.run(_serve(server, token, found))
    except OSError as error:
        raise UsageProblem(f"port {port}: {error.strerror or error}") from None
    _show_result(stage, episode)


def _single(scenarios: list[Scenario], name: str) -> Scenario:
    """The one scenario that is meant."""
    if len(scenarios) != 1:
        names = [scenario.name for scenario in scenarios]
        if name in names:
            return scenarios[names.index(name)]
        shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        raise UsageProblem(f"scenario {name!r} stands for {len(names)}: name one of {shown}")
    return scenarios[0]


async def _serve(server: Server, token: str, scenario: Scenario) -> None:
    await server.start()
    url = server.url(token)
    click.echo(f"{scenario.name}: {scenario.task.prompt}")
    for name, value in (
        ("ANTHROPIC_BASE_URL", url),
        ("OPENAI_BASE_URL", f"{url}/v1"),
        ("EVALKIT_TOOLS_URL", f"{url}/tools"),
        ("EVALKIT_MCP_URL", f"{url}/mcp"),
    ):
        click.echo(f"export {name}={value}")
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, ended.set)
    await ended.wait()
    await server.stop()


def _show_result(stage: Stage, episode: WireEpisode) -> None:
    """How far the work came, and what the harness did on the way."""
    stage.settle()
    world = stage.world
    done = world.settled().bit_count()
    holds = "the work is complete" if world.holds() else "the work is not complete"
    click.echo(f"{stage.turns} turns; {done} of {world.all.bit_count()} items settled; {holds}")
    seen = episode.seen
    trace = stage.trace
    told = {
        "side requests": sum(seen.side.values()),
        "new conversations": seen.amnesia,
        "refused requests": seen.refused,
        "protocol faults": len(trace.protocol_faults) if trace is not None else 0,
        "dialect faults": len(seen.dialect_faults),
        "orphan calls": trace.orphan_calls if trace is not None else 0,
    }
    odd = [f"{count} {name}" for name, count in told.items() if count]
    if odd:
        click.echo("; ".join(odd))
    for reason, count in (seen.inexpressible + seen.warnings).items():
        click.echo(f"note: {reason} ({count})")
    if episode.failure is not None:
        click.echo(f"ended by evalkit: {type(episode.failure).__name__} {episode.failure}")
    world.close()
