"""Two runs compared, as text; where an episode flipped, the decision at which the two parted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from evalkit.core.names import counted
from evalkit.core.tasks import CHECKLIST_TOOL
from evalkit.harnesses.episode_record import Exchange
from evalkit.media.players import replayer
from evalkit.models.cassettes import CassetteError, Missed
from evalkit.reports.formatting import p_value
from evalkit.reports.transcript import Step, observe_worker, replay
from evalkit.runs.foreign_records import read_trace
from evalkit.runs.plan import Plan, PlanError, fingerprint, plan_from
from evalkit.runs.store import Store
from evalkit.stats.run_comparison import Difference, Flip, Match, Versus
from evalkit.stats.scenario_results import contender_names

Steps: TypeAlias = Sequence[Step | Exchange]

#: Flips that are printed with their parting point; all are in the JSON.
SHOWN = 20


def versus_json(versus: Versus) -> str:
    """Everything as JSON."""
    content = {"schema": "evalkit.compare/1", **msgspec.to_builtins(versus)}
    return msgspec.json.format(msgspec.json.encode(content), indent=1).decode() + "\n"


def versus_lines(versus: Versus, partings: Partings) -> Iterator[str]:
    """The comparison for a terminal."""
    for side, about in (("A", versus.a), ("B", versus.b)):
        yield (
            f"{side}: {about['folder']} ({about['id']}, {about['created'] or 'undated'}, evalkit "
            f"{about['evalkit']}): {_size(about)}"
        )
    yield f"compared: the {versus.shared} scenarios that both have unchanged"
    for what, names in (
        ("only in A", versus.only_a),
        ("only in B", versus.only_b),
        ("changed between them", versus.changed),
        ("strategies only in A", versus.strategies_only_a),
        ("strategies only in B", versus.strategies_only_b),
    ):
        if names:
            yield f"{what}, not compared: {_first_names(names)}"
    yield from versus.notes
    for match in versus.matches:
        yield ""
        yield from _match(match, partings)
    if not versus.matches:
        yield "nothing to compare: no strategy is in both"


def several_json(found: list[Versus]) -> str:
    """Several runs against the first as JSON."""
    content = {"schema": "evalkit.compare-several/1", "against": [msgspec.to_builtins(one) for one in found]}
    return msgspec.json.format(msgspec.json.encode(content), indent=1).decode() + "\n"


def several_lines(found: list[Versus]) -> Iterator[str]:
    """Several runs, each against the first, for a terminal: what changed, and how many episodes."""
    letters = [_letter(place) for place in range(len(found) + 1)]
    for letter, about in zip(letters, (found[0].a, *(one.b for one in found)), strict=True):
        yield (
            f"{letter}: {about['folder']} ({about['created'] or 'undated'}, evalkit {about['evalkit']}): "
            f"{_size(about)}"
        )
    for letter, one in zip(letters[1:], found, strict=True):
        yield ""
        yield f"{letter} against A, on the {one.shared} scenarios that both have unchanged"
        yield from (f"  {note}" for note in one.notes)
        for match in one.matches:
            name = match.before if match.before == match.after else f"{match.before} → {match.after}"
            changed = [d for d in match.differences if d.result.difference]
            if not changed and not match.flips:
                yield f"  {name}: nothing changed in {match.scenarios} scenarios"
                continue
            worse = sum(flip.worse is True for flip in match.flips)
            better = sum(flip.worse is False for flip in match.flips)
            yield f"  {name}: {worse} episodes worse, {better} better"
            for difference in changed:
                yield f"    {_difference(difference)}"
        if not one.matches:
            yield "  nothing to compare: no strategy is in both"
    yield ""
    yield "which episodes, and where they part: evalkit compare A and one other"


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else f"#{place + 1}"


def _first_names(names: tuple[str, ...], most: int = 8) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{len(names)}: {', '.join(names[:most])}{rest}"


def _match(match: Match, partings: Partings) -> Iterator[str]:
    name = match.before if match.before == match.after else f"{match.before} → {match.after}"
    if not match.scenarios:
        yield f"{name}: nothing to compare: no scenario in common"
        return
    if not match.flips and all(not difference.result.difference for difference in match.differences):
        yield f"{name}: nothing changed in {match.scenarios} scenarios"
        return
    yield f"{name}, {match.scenarios} scenarios:"
    for difference in match.differences:
        yield f"  {_difference(difference)}"
    worse = [flip for flip in match.flips if flip.worse]
    better = [flip for flip in match.flips if flip.worse is False]
    other = len(match.flips) - len(worse) - len(better)
    yield f"  episodes: {len(worse)} worse, {len(better)} better, {other} with another outcome" + (
        f" (of the first {len(match.flips)} of {match.flips_in_all})"
        if match.flips_in_all > len(match.flips)
        else ""
    )
    for flip in match.flips[:SHOWN]:
        word = {True: "worse ", False: "better", None: "other "}[flip.worse]
        seed = f" seed {flip.seed}" if flip.seed else ""
        yield f"    {word} {flip.scenario}{seed}: {flip.before} → {flip.after}"
        for line in partings.why(match, flip):
            yield f"             {line}"
    if len(match.flips) > SHOWN:
        yield f"    … {len(match.flips) - SHOWN} more with --json"


def _difference(difference: Difference) -> str:
    result = difference.result
    shares = f"{100 * difference.before:5.1f} % → {100 * difference.after:5.1f} %"
    text = f"{difference.rate.replace('_', ' '):<18} {shares}"
    if result.difference is None:
        return f"{text}  n/a: {result.note}"
    text += f"  {100 * result.difference:+.1f} points"
    if result.low is not None and result.high is not None:
        text += f" [{100 * result.low:+.1f}, {100 * result.high:+.1f}]"
    text += f", {result.better} scenarios up, {result.worse} down"
    return (
        f"{text}; {result.note}"
        if result.p is None
        else f"{text}; p {p_value(result.p)}, Holm {p_value(difference.p_holm)}"
    )


class Partings:
    """Finds where two episodes part: both played again, where that gives what the runs have, or as kept."""

    def __init__(self, a: Store, b: Store) -> None:
        self.sides = (_Side(a), _Side(b))

    def why(self, match: Match, flip: Flip) -> Iterator[str]:
        """Where the two episodes part; from the stored causes where they cannot be shown."""
        one, other = (
            side.steps(name, flip.scenario, flip.seed, cell, outcome)
            for side, name, cell, outcome in zip(
                self.sides,
                (match.before, match.after),
                (flip.cell_before, flip.cell_after),
                (flip.before, flip.after),
                strict=True,
            )
        )
        place = first_apart(one, other) if one and other else None
        if place is not None:
            yield f"A {_step(one, place)}"
            yield f"B {_step(other, place)}"
            return
        for letter, cause in (("A", flip.why_before), ("B", flip.why_after)):
            if cause:
                yield f"{letter} fell for: {cause}"


def first_apart(one: Steps, other: Steps) -> int | None:
    """The first step at which two episodes differ in turn or action; None where they do not.

    Ticks on a checklist are left out: they come of what a harness offers.
    """
    for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if (_blocks(mine), mine.stop, mine.action, mine.says) != (
            _blocks(theirs),
            theirs.stop,
            theirs.action,
            theirs.says,
        ):
            return place
    return None if len(one) == len(other) else min(len(one), len(other))


def _blocks(step: Step | Exchange) -> list[Any]:
    return [
        block
        for block in step.blocks
        if not (block["kind"] == "call" and block["text"].startswith(f"{CHECKLIST_TOOL} "))
    ]


def _step(steps: Steps, place: int) -> str:
    if place >= len(steps):
        return "had ended"
    step = steps[place]
    verdict = ""
    # What a foreign harness thinks of its work is not told.
    if isinstance(step, Step) and step.met is not None:
        verdict = f" ({'done' if step.met else 'not done'}: {step.verdict})"
    return f"turn {step.number}: {step.stop}, {step.action}{verdict}"


class _Side:
    """One run's episodes, step by step."""

    def __init__(self, store: Store) -> None:
        self.folder = store.folder
        self.contenders = dict(zip(contender_names(store), store.recipe.contenders, strict=True))
        self.places = {name: place for place, name in enumerate(self.contenders)}
        self.prints = store.recipe.strategies
        self.plan: Plan | None = None
        medium = store.recipe.medium
        self.recorded = None
        if medium.live and not (medium.record or medium.replay):
            return
        try:
            self.plan = plan_from(store.recipe)
            self.recorded = replayer(medium)
        except (PlanError, CassetteError, ValueError):
            return

    def steps(self, name: str, scenario: str, seed: int, cell: int, outcome: str) -> Steps:
        """An episode's steps; empty where it was not kept, and cannot be played again as it was."""
        contender = self.contenders[name]
        if contender.foreign:
            kept = read_trace(self.folder, cell)
            return kept.exchanges if kept is not None else ()
        if self.plan is None:
            return ()
        played = next((one for one in self.plan.scenarios if one.name == scenario), None)
        strategy = self.plan.strategies[self.places[name]]
        if played is None or self.prints.get(contender.strategy) != fingerprint(strategy):
            return ()
        if contender.durable:
            exchanges, episode = observe_worker(played, strategy, seed)
            return exchanges if episode.outcome == outcome else ()
        try:
            found = replay(played, strategy, seed, recorded=self.recorded)
        except (CassetteError, Missed, OSError):
            if self.recorded is None:
                raise
            return ()
        return found.steps if found.episode.outcome == outcome else ()


def _size(about: Mapping[str, Any]) -> str:
    return f"{counted(about['scenarios'], 'scenario')}, {counted(about['episodes'], 'episode')}"
