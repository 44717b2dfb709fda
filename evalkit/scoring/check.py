"""Whether a scenario is sound: the ideal harness passes it, its words are free of ids, its twin is a twin."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evalkit.core.decisions import Action, Verdict
from evalkit.core.requests import Result
from evalkit.core.tasks import Offered, occurs_whole
from evalkit.core.turns import Turn
from evalkit.scenarios.moves import CallMove
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, ideal_episode, run_episode
from evalkit.strategies.presets import OWN_WORDS, PRESETS, all_offered
from evalkit.worlds import world_class

_WORDS_ALONE = PRESETS["verifier_claim"].strategy


class Finding(msgspec.Struct, frozen=True):
    """Something about a scenario; ``fails`` or only a warning."""

    scenario: str
    message: str
    fails: bool = True


def check_scenario(scenario: Scenario, known: Mapping[str, Scenario], seeds: int = 3) -> list[Finding]:
    """All findings on one scenario; ``known`` are the scenarios it may name as its twin.

    The ideal harness plays it with each set of channels that a preset offers, and with ``seeds`` seeds where
    the script has choices.
    """
    findings: list[Finding] = []

    def fail(message: str) -> None:
        findings.append(Finding(scenario.name, message))

    for item in scenario.world.items:
        if any(occurs_whole(item, words) for words in OWN_WORDS):
            fail(f"world.items: {item!r} occurs in the words of a preset; nudges would name it by chance")
    if scenario.task.items == "listed" and not _lists(scenario):
        findings.append(
            Finding(
                scenario.name,
                "the model never lists the items, so a harness knows none; list them or use items: given",
                fails=False,
            )
        )
    # A crash is left out of the script of a harness that cannot be killed, as the ideal one.
    for offered in all_offered():
        arena = Arena(scenario, offered)
        for seed in range(seeds if scenario.random else 1):
            problem = _ideal_problem(arena, seed)
            if problem:
                fail(f"the ideal harness is not correct on it{_said(offered, seed)}: {problem}")
                return findings
    if scenario.twin is not None:
        findings.extend(_check_twin(scenario, known))
    return findings


def _said(offered: Offered, seed: int) -> str:
    channels = [name for name in ("finish", "checklist", "keyword", "output") if getattr(offered, name)]
    return f" (channels: {', '.join(channels) or 'text only'}; seed {seed})"


def _lists(scenario: Scenario) -> bool:
    tool = next(tool.name for tool in world_class(scenario.world.kind).tools if tool.enumerates)
    for move in walk(scenario.moves):
        if isinstance(move, CallMove) and move.call == tool:
            return True
        raw = getattr(move, "raw", None)
        if raw is not None and any(block.get("call") == tool for block in raw.content):
            return True
    return False


def _ideal_problem(arena: Arena, seed: int) -> str:
    episode = ideal_episode(arena, seed)
    return "" if episode.correct else why_not_correct(episode, arena.scenario)


def why_not_correct(episode: Episode, scenario: Scenario) -> str:
    """What keeps an episode from being correct, in one line."""
    flags = [
        name
        for name in (
            "over_continuation",
            "spoiled",
            "undone",
            "duplicate_effects",
            "ran_cut_off_call",
            "protocol_faults",
        )
        if getattr(episode, name)
    ]
    if scenario.task.checks == "full" and episode.honest_report is False:
        flags.append("a report that leaves open items out")
    accepted = f"; accepted: {', '.join(scenario.accept)}" if scenario.accept else ""
    return f"{episode.outcome} after {episode.turns} turns" + (f", {', '.join(flags)}" if flags else accepted)


# Twins


def _check_twin(scenario: Scenario, known: Mapping[str, Scenario]) -> list[Finding]:
    twin = known.get(scenario.twin or "")
    if twin is None:
        return [Finding(scenario.name, f"twin: no scenario {scenario.twin!r}")]
    if twin.twin != scenario.name:
        return [Finding(scenario.name, f"twin: {twin.name!r} does not name this scenario as its twin")]
    for offered in all_offered():
        problem = _twin_problem(Arena(scenario, offered), Arena(twin, offered))
        if problem:
            return [Finding(scenario.name, f"twin {twin.name!r}: {problem}{_said(offered, 0)}")]
    if all(run_episode(Arena(half, _WORDS_ALONE.offers), _WORDS_ALONE, 0).twin for half in (scenario, twin)):
        return [Finding(scenario.name, f"twin {twin.name!r}: a reader of words alone tells the two apart")]
    return []


def _twin_problem(one: Arena, other: Arena) -> str:
    heard_one, heard_other = _Heard(), _Heard()
    first, second = ideal_episode(one, 0, heard_one), ideal_episode(other, 0, heard_other)
    for number, (mine, theirs) in enumerate(zip(heard_one.turns, heard_other.turns, strict=False), 1):
        if mine != theirs:
            return f"the model's output differs in turn {number} after equal requests"
        if heard_one.requests[number - 1] != heard_other.requests[number - 1]:
            break
    if first.twin_oracle == second.twin_oracle:
        return "the oracles agree at the first claim, so there is nothing to tell apart"
    return ""


class _Heard:
    """Keeps each turn and what the harness made of it."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.requests: list[tuple[Action, tuple[Result, ...]]] = []

    def __call__(
        self, turn: Turn, action: Action, verdict: Verdict | None, results: tuple[Result, ...]
    ) -> None:
        if type(action).__name__ != "RunTools" and turn.kind not in ("failed", "in_progress"):
            self.turns.append(turn)
            self.requests.append((action, results))
