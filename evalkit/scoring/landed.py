"""What of a script's events has landed in a program: the evidence for it, and why an episode has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from evalkit.harnesses.episode_record import COMPACTIONS, DECISIONS, KILLS, WORDS, Observed
from evalkit.scenarios.moves import ApproveMove, CompactMove, CrashMove, UserMove
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.wire.episode import WireEpisode


class Kills(msgspec.Struct):
    """The kills of an episode: those that landed, those that found nobody, how many resume at once."""

    landed: int = 0
    missed: int = 0
    resumers: int = 1


def kills_of(scenario: Scenario) -> Kills:
    """Before the first."""
    crashes = [move.spec for move in walk(scenario.moves) if isinstance(move, CrashMove)]
    return Kills(resumers=max((spec.resumers for spec in crashes), default=1))


def evidence(stage: Observed, wire: WireEpisode, kills: Kills) -> dict[str, Any]:
    """What was seen of events, by what it is of; what was not is left out."""
    approver, compactor = stage.approver, stage.compactor
    found: dict[str, Any] = {
        KILLS: kills.landed,
        WORDS: list(wire.words.places),
        DECISIONS: approver.decided if approver is not None else 0,
        COMPACTIONS: compactor.landed if compactor is not None else 0,
    }
    return {name: value for name, value in found.items() if value}


def why_not_exercised(scenario: Scenario, stage: Observed, wire: WireEpisode, kills: Kills) -> Iterator[str]:
    """Why an episode says nothing: what left no evidence that it landed; nothing where all has."""
    happens = {type(move) for move in walk(scenario.moves)}
    approver, compactor = stage.approver, stage.compactor
    if kills.missed:
        yield "the process that was to be killed was gone, or was not"
    if kills.resumers > 1 and not wire.lives.gathered:
        yield "those that were to resume it at once did not all come"
    for why in wire.seen.unreachable:
        yield f"an answer that cannot come: {why}"
    if CrashMove in happens and not kills.landed:
        yield "the moment of the kill never came"
    if UserMove in happens and not wire.words.any and not stage.unsaid:
        yield "the moment of the user's words never came"
    if ApproveMove in happens and approver is not None and not approver.exercised:
        yield "no call was laid before the person"
    if CompactMove in happens and compactor is not None and not compactor.exercised:
        yield "no shorter request followed where it was to compact"
