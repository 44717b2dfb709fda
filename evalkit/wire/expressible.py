"""What a dialect cannot say, and why. Nothing is changed silently: such a scenario is not run there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from evalkit.core.tasks import Offered
from evalkit.core.turns import ServerCall, Text, Thinking, Turn, parse_arguments
from evalkit.scenarios.moves import BackgroundMove
from evalkit.scenarios.player import Player
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.wire.answers import Outgoing
from evalkit.wire.codecs import CODECS, decode_stream
from evalkit.wire.conversation import speaks
from evalkit.wire.dialects import DIALECTS, TITLES, Dialect
from evalkit.wire.faults import STREAM_ONLY
from evalkit.wire.incoming import Incoming
from evalkit.worlds import World, make_world

_FAULTS = ("http_", "cut_", "body_", "stall")


def is_fault(turn: Turn) -> bool:
    """Whether an answer that is no turn is a fault, and not a label that says that the model failed."""
    return turn.kind == "failed" and not turn.content and (turn.native or "").startswith(_FAULTS)


def unsayable(dialect: Dialect, turn: Turn, *, streamed: bool, cut_is_empty: bool = False) -> str | None:
    """Why a turn cannot be said in a dialect; None where it can.

    ``cut_is_empty``: a call cut in its JSON may arrive with an empty input, as the API itself sends it. A
    program meets that in the field and may run it; the reference loop would be told another turn.

    It is written and read back: label, category, calls, text, thinking, server tools and phases must survive.
    Where a message holds one text, several become one; their order among the calls is not compared.
    """
    name = TITLES[dialect]
    if is_fault(turn):
        if turn.native in STREAM_ONLY and not streamed:
            return f"{turn.native}: only a stream can break so"
        return None
    if turn.kind == "in_progress" and dialect != "responses":
        return f"{name} has no background responses"
    if turn.kind == "pause" and not speaks(turn):
        return "a paused turn without content cannot be sent back"
    spoken = CODECS[dialect]
    out = Outgoing(turn, f"{spoken.answer}_0")
    if streamed:
        read = decode_stream(dialect, [data for _, data in spoken.events(out)]).turn
    else:
        read = spoken.decode(spoken.body(out)).turn
    if turn.kind == "in_progress":
        return None
    said, heard = _essence(turn, cut_is_empty), _essence(read, cut_is_empty)
    for part, value in said.items():
        if heard[part] != value:
            return _reason(part, turn, name, streamed=streamed)
    return None


def _essence(turn: Turn, cut_is_empty: bool) -> dict[str, object]:
    def written(arguments: str) -> str:
        return "{}" if cut_is_empty and parse_arguments(arguments) is None else arguments

    return {
        "label": (turn.stop, turn.native if turn.stop == "unknown" else None),
        "category": turn.category if turn.stop == "refusal" else None,
        "server tools": [(b.name, b.result) for b in turn.content if isinstance(b, ServerCall)],
        "thinking": [b.text for b in turn.content if isinstance(b, Thinking)],
        "phase": [b.phase for b in turn.content if isinstance(b, Text) if b.phase],
        "calls": [(call.tool, written(call.arguments)) for call in turn.calls],
        "text": turn.text,
    }


def _reason(part: str, turn: Turn, name: str, *, streamed: bool) -> str:
    label = (turn.native or turn.stop) if turn.stop == "unknown" else turn.stop
    if part == "label":
        has = "calls" if turn.calls else "no calls"
        if name == TITLES["responses"] and turn.stop in ("end_turn", "tool_use"):
            return f"{name} has no label beside the output, so none that contradicts it ({label}, {has})"
        return f"{name} has no label {label!r}"
    if part == "category":
        return f"{name} has no refusal category {turn.category!r}"
    if part == "calls":
        return f"{name}, not streamed: a call cut in its JSON arrives with an empty input"
    if part == "text":
        return f"{name} cannot say this text"
    return f"{name} has no {'message phase' if part == 'phase' else part}"


def unreachable(turn: Turn, incoming: Incoming) -> Iterator[str]:
    """Why an API would not give this answer to this request."""
    if any(isinstance(block, ServerCall) for block in turn.content) and not incoming.server_tools:
        yield "no server tool was offered"
    if incoming.choice == "none" and turn.calls:
        yield "tool calls were switched off"
    if incoming.choice in ("auto", "none") or turn.calls:
        return
    # A refusal may come all the same, and so may thinking that is cut off before the call.
    if turn.kind in ("content", "pause", "unknown") or (turn.kind == "cut_off" and turn.text):
        yield "a tool call was forced"


def not_expressible(
    scenario: Scenario,
    dialect: Dialect,
    *,
    streamed: bool,
    offered: Iterable[Offered],
    world: World | None = None,
    cut_is_empty: bool = False,
) -> str | None:
    """Why a scenario cannot be played in a dialect; None where it can.

    ``offered`` are the channels that strategies may agree: what a claim becomes depends on them.
    """
    own = world or make_world(scenario.world)
    try:
        for channels in offered:
            player = Player(scenario, own, channels, scenario.task.output)
            for sample in player.samples():
                reason = unsayable(dialect, sample.turn, streamed=streamed, cut_is_empty=cut_is_empty)
                if reason is not None:
                    return f"{sample.label} at {sample.path}: {reason}"
    finally:
        if world is None:
            own.close()
    return None


def has_background(scenario: Scenario) -> bool:
    """Whether a scenario answers in the background."""
    return any(isinstance(move, BackgroundMove) for move in walk(scenario.moves))


class Row(msgspec.Struct, frozen=True):
    """One line of the table: a scenario, a dialect and why it is not expressible there.

    ``modes`` are ``streamed``, ``whole`` or both.
    """

    scenario: str
    dialect: Dialect
    modes: tuple[str, ...]
    reason: str


def table(scenarios: Iterable[Scenario], offered: Iterable[Offered]) -> list[Row]:
    """All that is not expressible anywhere, by scenario and dialect."""
    channels = tuple(offered)
    rows = []
    for scenario in scenarios:
        world = make_world(scenario.world)
        for dialect in DIALECTS:
            found = {
                mode: not_expressible(
                    scenario, dialect, streamed=mode == "streamed", offered=channels, world=world
                )
                for mode in ("streamed", "whole")
            }
            modes = tuple(mode for mode, reason in found.items() if reason)
            if modes:
                rows.append(Row(scenario.name, dialect, modes, found[modes[0]] or ""))
        world.close()
    return rows
