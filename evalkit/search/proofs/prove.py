"""Proof or shortest counterexample: what no behaviour of a model can make of a strategy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from evalkit.core.tasks import Task
from evalkit.loop.state import Loop
from evalkit.search.proofs.alphabet import Move, not_covered, words_and_schemas
from evalkit.search.proofs.counterexample import Confirmer, Counterexample, watch_of
from evalkit.search.proofs.environment import Environment, Setting
from evalkit.search.proofs.explore import Sweep, Swept
from evalkit.search.proofs.purity import Noticed
from evalkit.search.proofs.steps import EVERYTHING, KEEPS, REFERENCE, Rules, Stepper
from evalkit.search.proofs.symmetry import is_finite
from evalkit.search.proofs.witnesses import COMPLETE, Witnesses, witnesses
from evalkit.search.properties import PROPERTIES, Property, find_properties, has_limit, not_applicable
from evalkit.strategies.condition import parts_of
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.verifiers import verifier
from evalkit.strategies.view import View

Answer = Literal["proved", "refuted", "bounded", "refused", "not_applicable"]
#: Told of the group that is explored, of states, transitions and depth.
Progress = Callable[[str, int, int, int], None]

#: States kept at most; some 500 bytes each, caches apart.
MAX_STATES = 1_000_000
#: How deep a strategy is explored whose memory may grow.
DEPTH = 6
#: Seeds among which those are looked for that make every seeded error happen and not happen.
_SEEDS = 20_000


class Result(msgspec.Struct, frozen=True):
    """The answer on one property. ``how`` says why, in words, where the numbers do not.

    ``states``, ``transitions``, ``depth`` and ``seconds`` are those of the exploration that answered,
    ``witnesses`` what one that proved something reached.
    """

    property: str
    says: str
    answer: Answer
    how: str = ""
    states: int = 0
    transitions: int = 0
    depth: int = 0
    seconds: float = 0.0
    counterexample: Counterexample | None = None
    witnesses: Witnesses = Witnesses()


class Proof(msgspec.Struct, frozen=True):
    """The answers on one strategy in one setting; ``moves`` is the size of the model's alphabet.

    ``over`` says over what the answers hold: the moves, the words, the items.
    """

    strategy: str
    setting: Setting
    moves: int
    results: tuple[Result, ...]
    over: str = ""

    @property
    def holds(self) -> bool:
        """Whether nothing is refuted, and nothing refused."""
        return all(result.answer not in ("refuted", "refused") for result in self.results)


def prove(
    strategy: Strategy,
    setting: Setting | None = None,
    names: tuple[str, ...] = (),
    *,
    depth: int | None = None,
    max_states: int = MAX_STATES,
    progress: Progress | None = None,
    rules: Rules = REFERENCE,
    moves: tuple[Move, ...] | None = None,
) -> Proof:
    """Explore all that a model can do against a strategy and answer on properties (all without ``names``).

    ``depth`` bounds the turns, ``max_states`` the memory. ``moves`` replaces the model's alphabet, ``rules``
    the loop's functions. ValueError for an unknown property or an impossible setting, StrategyFailed where a
    condition or fold raises.
    """
    wanted = find_properties(names)
    environment = Environment(strategy, setting or Setting(), moves)
    run = _Run(environment, rules, depth, max_states, progress)
    answers: dict[str, Result] = {}
    applicable = []
    for found in wanted:
        why_not = not_applicable(found, run.loop)
        if why_not:
            answers[found.name] = Result(found.name, found.says, "not_applicable", why_not)
        else:
            applicable.append(found)
    for needs in KEEPS:
        group = tuple(found for found in applicable if found.needs == needs)
        if group:
            answers.update(run.answer(group))
    return Proof(
        strategy.name,
        environment.setting,
        len(environment.moves),
        tuple(answers[found.name] for found in wanted),
        _over(environment),
    )


def _over(environment: Environment) -> str:
    """Over what an answer holds, in words."""
    words, schemas = words_and_schemas(environment.strategy)
    setting = environment.setting
    said = f", the words {', '.join(words)}" if words else ""
    filled = f", {len(schemas)} schema{'s' if len(schemas) > 1 else ''} filled" if schemas else ""
    gated = ", each to be approved" if setting.gated else ""
    by = ", run by the durable worker" if setting.worker else ""
    return (
        f"{len(environment.moves)} moves{said}{filled}, {setting.items} items, {setting.skippable} of them"
        f" skippable{gated}, checks {setting.checks}{by}; what no move does is listed in docs/worst-cases.md"
    )


class _Run:
    """One strategy in one setting, group of properties after group."""

    def __init__(
        self,
        environment: Environment,
        rules: Rules,
        depth: int | None,
        max_states: int,
        progress: Progress | None,
    ) -> None:
        self.environment = environment
        self.rules = rules
        self.loop = Loop(environment.strategy, environment.task)
        self.finite = is_finite(environment.strategy)
        self.depth = depth if depth is not None or self.finite else DEPTH
        self.max_states = max_states
        self.progress = progress
        self.confirm = Confirmer(environment, rules)
        self.noticed = Noticed()

    def answer(self, group: tuple[Property, ...]) -> dict[str, Result]:
        """The answers on properties that need the same memory; nothing is proved that is not covered."""
        answers = self._answers(group)
        self.noticed.ask_again()
        why = self.confirm.unsteady or self.noticed.why_not() or not_covered(self.environment.strategy)
        if not why:
            return answers
        return {
            name: result
            if result.answer == "refuted"
            else Result(name, result.says, "refused", why, result.states, result.transitions, result.depth)
            for name, result in answers.items()
        }

    def _answers(self, group: tuple[Property, ...]) -> dict[str, Result]:
        ends = PROPERTIES["always_ends"]
        answers: dict[str, Result] = {}
        if ends in group and not has_limit(self.loop):
            answers[ends.name] = self._endless()
            group = tuple(found for found in group if found is not ends)
        if not group:
            return answers
        swept = self._sweep(group, exact=not self.finite)
        for found in group:
            decided = found.name in swept.doubted and found.name not in swept.found
            answers[found.name] = self._decided(found, swept) if decided else self._result(found, swept)
        return answers

    def _decided(self, found: Property, swept: Swept) -> Result:
        """The answer where only ways break a property that no real run takes: explored without shortcuts.

        Not where a run ended otherwise when it was played twice: that is refused, whatever else is found.
        """
        if self.confirm.unsteady:
            return _numbers(found, "bounded", self.confirm.unsteady, swept)
        if found.name == "always_ends":
            how = "at its limit some moves do not end the run, but no run without an end was found"
            return _numbers(found, "bounded", how, swept)
        if self.environment.strategy.random or not self.finite:
            return _numbers(found, "bounded", "broken only in ways that no run was found for", swept)
        return self._result(found, self._sweep((found,), exact=True))

    def _sweep(self, group: tuple[Property, ...], *, exact: bool, lasso: bool = False) -> Swept:
        needs = group[0].needs
        keep = KEEPS[needs]
        if exact:
            limited = self.loop.limits.turns is not None or not self.finite
            keep = EVERYTHING if limited and not lasso else EVERYTHING - {"turns"}
        strategy = self.environment.strategy
        seeds = (
            error_seeds(strategy, self.environment.task, self.loop.limits.turns) if strategy.random else (0,)
        )
        stepper = Stepper(self.environment, self.rules, keep, seeds, self.noticed)
        progress = self.progress
        label = " ".join((*(("exact",) if exact else ()), needs))
        swept = Sweep(
            self.environment,
            stepper,
            watch_of(needs, self.loop),
            group,
            undo=needs != "nudges",
            merge_items=not lasso,
            lasso=lasso,
            confirm=self.confirm,
            max_depth=self.depth,
            max_states=self.max_states,
            progress=None if progress is None else lambda *numbers: progress(label, *numbers),
        ).run()
        made = swept.delivered
        names = tuple(move.name for place, move in enumerate(self.environment.moves) if place not in made)
        told = (*stepper.told, *((COMPLETE,) if swept.completes else ()))
        swept.witnesses = witnesses(self.loop, told, names)
        return swept

    def _endless(self) -> Result:
        """Whether a run can come back to a state that it has been in, and so need never end."""
        found = PROPERTIES["always_ends"]
        swept = self._sweep((found,), exact=True, lasso=True)
        if swept.lasso is not None:
            counterexample = self.confirm.lasso(*swept.lasso, found)
            if counterexample is not None:
                return _numbers(found, "refuted", "it comes back to a state it was in", swept, counterexample)
        if swept.complete and swept.lasso is None:
            return _numbers(found, "proved", "no state comes back", swept)
        return _numbers(found, "bounded", self._bound(swept), swept)

    def _result(self, found: Property, swept: Swept) -> Result:
        if found.name in swept.found:
            return _numbers(found, "refuted", "", swept, self.confirm.found[found.name])
        if not swept.complete:
            return _numbers(found, "bounded", self._bound(swept), swept)
        if found.name in swept.doubted:
            return _numbers(found, "bounded", "broken only in ways that no run was found for", swept)
        how = ""
        if found.needs == "reports" and not swept.reports:
            return _numbers(found, "not_applicable", "no run of it ends with a report", swept)
        if found.name == "always_ends":
            limits = self.loop.limits
            which = f"limit of {limits.turns} turns" if limits.turns is not None else "token or money limit"
            how = f"every turn brings the {which} nearer, and at it every move ends the run, in every state"
        return _numbers(found, "proved", how, swept)

    def _bound(self, swept: Swept) -> str:
        if swept.full:
            return f"more than {self.max_states:,} states; all runs up to {swept.depth} turns explored"
        why = "" if self.finite else "a condition or fold does not declare that it is finite; "
        return f"{why}all runs up to {swept.depth} turns explored"


def _numbers(
    found: Property, answer: Answer, how: str, swept: Swept, counterexample: Counterexample | None = None
) -> Result:
    return Result(
        property=found.name,
        says=found.says,
        answer=answer,
        how=how,
        states=swept.states,
        transitions=swept.transitions,
        depth=swept.depth,
        seconds=swept.seconds,
        counterexample=counterexample,
        witnesses=swept.witnesses if answer == "proved" else Witnesses(),
    )


def error_seeds(strategy: Strategy, task: Task, limit: int | None) -> tuple[int, ...]:
    """Seeds under which the seeded errors of a strategy do, between them, everything that they can do.

    An error is drawn from seed and turn; an exploration drops the turn count, so the seed alone decides.
    """
    parts = [part for condition in strategy.conditions for part in parts_of(condition)]
    readers = [part for part in parts if isinstance(part, verifier)]
    splits = (
        {getattr(reader, kind) for reader in readers if reader.errors == errors}
        for kind in ("misses", "fooled")
        for errors in ("independent", "persistent")
    )
    cases = math.prod(1 + len(rates - {0.0, 1.0}) for rates in splits)
    turns = {1, limit or 1}
    nothing: Any = None
    seen: dict[tuple[int, tuple[bool, ...]], int] = {}
    for seed in range(_SEEDS):
        seeded = msgspec.structs.replace(task, seed=seed)
        for turn in turns:
            view = View(seeded, nothing, {}, nothing, turn)
            errors = (
                (reader.draw(view, "misses") < reader.misses, reader.draw(view, "fooled") < reader.fooled)
                for reader in readers
            )
            seen.setdefault((turn, tuple(itertools.chain.from_iterable(errors))), seed)
        if len(seen) == cases * len(turns):
            break
    return tuple(sorted(set(seen.values())))


__all__ = ["DEPTH", "MAX_STATES", "Proof", "Result", "error_seeds", "prove"]
