"""Which shapes of turn the library holds: stop labels over contents, claims through channels."""

from __future__ import annotations

from collections.abc import Iterable

from evalkit.core.tasks import Offered
from evalkit.core.turns import STOP_REASONS, Call, ServerCall, Text, Thinking, Turn
from evalkit.scenarios.moves import FinishMove, OutputMove, RawMove, SayMove
from evalkit.scenarios.player import Player
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.worlds import make_world

NEW = "one nobody knows"
NULL = "null"
LABELS: tuple[str, ...] = (*sorted(STOP_REASONS - {"unknown"}), NEW, NULL)
CONTENTS = ("nothing", "text", "blank text", "thinking only", "client call", "server call", "mixed")

CLAIMS = ("none", "partial", "blocked", "done")
CHANNELS = ("offered", "text", "finish", "keyword", "output")

#: Deliveries that are no turns and carry no label.
_NO_TURNS = ("fault", "background")

Names = dict[tuple[str, str], set[str]]


def label_of(turn: Turn) -> str:
    """The row of a turn: its stop reason, or what is no stop reason."""
    if turn.stop != "unknown":
        return turn.stop
    return NULL if turn.native in (None, "null") else NEW


def content_of(turn: Turn) -> str:
    """The column of a turn. ``mixed`` holds two or more of text, client calls and server calls."""
    blocks = turn.content
    kinds = {
        kind
        for kind, found in (
            ("text", any(isinstance(block, Text) and block.text.strip() for block in blocks)),
            ("client call", any(isinstance(block, Call) for block in blocks)),
            ("server call", any(isinstance(block, ServerCall) for block in blocks)),
        )
        if found
    }
    if len(kinds) > 1:
        return "mixed"
    if kinds:
        return kinds.pop()
    if any(isinstance(block, Text) for block in blocks):
        return "blank text"
    return "thinking only" if any(isinstance(block, Thinking) for block in blocks) else "nothing"


def label_cells(scenarios: Iterable[Scenario]) -> Names:
    """The scenarios that deliver each label over each content, where no channel is offered."""
    found: Names = {(label, content): set() for label in LABELS for content in CONTENTS}
    for scenario in scenarios:
        world = make_world(scenario.world)
        for sample in Player(scenario, world, Offered(), scenario.task.output).samples():
            if sample.label not in _NO_TURNS:
                found[label_of(sample.turn), content_of(sample.turn)].add(scenario.name)
        world.close()
    return found


def claim_cells(scenarios: Iterable[Scenario]) -> Names:
    """The scenarios that make each claim through each channel; ``offered`` is the one that was agreed."""
    found: Names = {(claim, channel): set() for claim in CLAIMS for channel in CHANNELS}
    for scenario in scenarios:
        items = set(scenario.world.items)
        for move in walk(scenario.moves):
            if isinstance(move, SayMove):
                found[move.claim, move.channel].add(scenario.name)
            elif isinstance(move, OutputMove):
                channel = "output" if move.channel == "offered" else move.channel
                found[move.claim, channel].add(scenario.name)
            elif isinstance(move, RawMove):
                found[move.raw.claim, "text"].add(scenario.name)
            elif isinstance(move, FinishMove):
                completed = move.finish.completed
                named = {*(completed if isinstance(completed, tuple) else ()), *move.finish.skipped}
                whole = completed == "all" or named >= items
                found["done" if whole else "partial", "finish"].add(scenario.name)
    return found
