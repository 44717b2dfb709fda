"""Two runs compared, as text; where an episode flipped, the decision at which the two parted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from evalkit.core.tasks import CHECKLIST_TOOL
from evalkit.reports.figures import p_value
from evalkit.reports.transcript import Step, Transcript, replay
from evalkit.runs.plan import Plan, PlanError, changes_since, plan_from
from evalkit.runs.store import Store
from evalkit.stats.versus import Difference, Flip, Match, Versus

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
            f"{about['evalkit']}): {about['scenarios']} scenarios, {about['episodes']} episodes"
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
            yield f"{what}, not compared: {_some(names)}"
    yield from versus.notes
    for match in versus.matches:
        yield ""
        yield from _match(match, partings)
    if not versus.matches:
        yield "nothing to compare: no strategy is in both"


def _some(names: tuple[str, ...], most: int = 8) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{len(names)}: {', '.join(names[:most])}{rest}"


def _match(match: Match, partings: Partings) -> Iterator[str]:
    name = match.before if match.before == match.after else f"{match.before} → {match.after}"
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
    """Finds where two episodes part by playing both again, where that gives what the runs have."""

    def __init__(self, a: Store, b: Store) -> None:
        self.sides = (_Side(a), _Side(b))

    def why(self, match: Match, flip: Flip) -> Iterator[str]:
        """Where the two episodes part; from the stored causes where they cannot be replayed."""
        played = [
            side.play(name, flip.scenario, flip.seed, outcome)
            for side, name, outcome in zip(
                self.sides, (match.before, match.after), (flip.before, flip.after), strict=True
            )
        ]
        if played[0] is not None and played[1] is not None:
            place = first_apart(played[0], played[1])
            if place is not None:
                for letter, transcript in zip("AB", played, strict=True):
                    yield f"{letter} {_step(transcript, place)}"
                return
        for letter, cause in (("A", flip.why_before), ("B", flip.why_after)):
            if cause:
                yield f"{letter} fell for: {cause}"


def first_apart(one: Transcript, other: Transcript) -> int | None:
    """The first step at which two transcripts differ in turn or action; None where they do not.

    Ticks on a checklist are left out: they come of what a harness offers.
    """
    for place, (mine, theirs) in enumerate(zip(one.steps, other.steps, strict=False)):
        if (_blocks(mine), mine.stop, mine.action, mine.says) != (
            _blocks(theirs),
            theirs.stop,
            theirs.action,
            theirs.says,
        ):
            return place
    return None if len(one.steps) == len(other.steps) else min(len(one.steps), len(other.steps))


def _blocks(step: Step) -> list[Any]:
    return [
        block
        for block in step.blocks
        if not (block["kind"] == "call" and block["text"].startswith(f"{CHECKLIST_TOOL} "))
    ]


def _step(transcript: Transcript | None, place: int) -> str:
    assert transcript is not None
    if place >= len(transcript.steps):
        return "had ended"
    step: Step = transcript.steps[place]
    verdict = "" if step.met is None else f" ({'done' if step.met else 'not done'}: {step.verdict})"
    return f"turn {step.number}: {step.stop}, {step.action}{verdict}"


class _Side:
    def __init__(self, store: Store) -> None:
        self.names: dict[str, int] = {}
        self.plan: Plan | None = None
        try:
            plan = plan_from(store.recipe)
        except (PlanError, ValueError):
            return
        changed = {change.split("'")[1] for change in changes_since(store.recipe) if "'" in change}
        self.plan = plan
        self.contenders: dict[str, int] = {
            contender.strategy: place
            for place, contender in enumerate(store.recipe.contenders)
            if contender.harness == "loop" and contender.strategy not in changed
        }
        self.scenarios: dict[str, int] = {s.name: place for place, s in enumerate(plan.scenarios)}

    def play(self, contender: str, scenario: str, seed: int, outcome: str) -> Transcript | None:
        plan: Any = self.plan
        if plan is None or contender not in self.contenders or scenario not in self.scenarios:
            return None
        strategy = plan.strategies[self.contenders[contender]]
        found = replay(plan.scenarios[self.scenarios[scenario]], strategy, seed)
        return found if found.episode.outcome == outcome else None
