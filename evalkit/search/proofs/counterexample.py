"""From an abstract way to a scenario: caps and limits played out, run for real, kept only if it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from evalkit.core.decisions import Action, End, Ending, RunTools, Verdict
from evalkit.core.events import Event
from evalkit.core.turns import Turn
from evalkit.drivers.in_process import LoopMind, StrategyFailed, Watcher, drive
from evalkit.loop.state import Loop
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.yaml_source import write_document
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.scoring.worker_episode import run_worker_episode
from evalkit.search.proofs.alphabet import Document, Move, scripted, witness
from evalkit.search.proofs.environment import Environment, read_document
from evalkit.search.proofs.monitor import NudgeWatch, StretchWatch, Watch
from evalkit.search.proofs.steps import REFERENCE, Rules
from evalkit.search.properties import NUDGES, STRETCHES, Property
from evalkit.stage.stage import Stage
from evalkit.strategies.folds import Ran
from evalkit.strategies.strategy import REFUSALS_IN_A_ROW, Strategy

#: Seeds that are tried to find one under which a seeded error does what the way needs.
SEEDS = 300
#: A token or money limit is looked for with at most so many turns of filling.
FILLING = 100


class Counterexample(msgspec.Struct, frozen=True):
    """A broken property as a scenario. ``turns`` is how many turns it takes; ``moves`` name them.

    ``strategy`` is what it was found against, ``command`` what found it.

    ``document`` is the scenario: the moves, then a witness that the work could still be done. ``outcome`` is
    what a run of it gives under ``seed``.
    """

    breaks: str
    says: str
    strategy: str
    moves: tuple[str, ...]
    document: dict[str, Any]
    turns: int
    outcome: str
    ending: str
    native: str
    seed: int = 0
    command: str = "prove"

    @property
    def scenario(self) -> Scenario:
        """The scenario, as it would be read from its file."""
        return read_document(self.document)

    @property
    def text(self) -> str:
        """The scenario file: what it shows as a comment, then the document."""
        lines = [
            f"# Found by `evalkit {self.command} {self.strategy}`: {self.breaks} does not hold.",
            f"# With seed {self.seed} {self.strategy} ends {self.outcome} here, in {self.turns} turns:",
            *(f"#   {number}. the model {move}" for number, move in enumerate(self.moves, 1)),
        ]
        return "\n".join(lines) + "\n" + write_document(self.document)


def run_with(
    arena: Arena, strategy: Strategy, seed: int, rules: Rules = REFERENCE, watch: Watch | None = None
) -> tuple[Episode, int]:
    """Run a scenario as it is always run, under these loop functions; and what a watch saw broken."""
    broken = 0

    def run(strategy: Strategy, stage: Stage, watcher: Watcher | None) -> Ending:
        nonlocal broken
        mind = RulesMind(strategy, stage, rules, watch)
        try:
            return drive(mind, stage, watch=watcher)
        finally:
            broken = mind.broken

    episode = run_episode(arena, strategy, seed, run=run)
    return episode, broken


class RulesMind(LoopMind):
    """The reference loop with its two functions exchanged."""

    def __init__(self, strategy: Strategy, stage: Stage, rules: Rules, watch: Watch | None = None) -> None:
        super().__init__(strategy, stage.task, stage)
        self._rules = rules
        self._watch = watch
        self._memory = 0
        self._ran: tuple[Ran, ...] = ()
        self.broken = 0

    def turn(self, turn: Turn) -> tuple[Action, Verdict | None]:
        try:
            self.state, action, verdict = self._rules.on_turn(self.loop, self.state, turn, self.instruments)
        except Exception as error:
            raise StrategyFailed(f"{type(error).__name__}: {error}") from error
        if self._watch is not None and not isinstance(action, RunTools | End):
            self._memory, broken = self._watch.after(self._memory, turn, False, self._ran, action)
            self.broken |= broken
            self._ran = ()
        return action, verdict

    def event(self, event: Event) -> None:
        super().event(event)
        if self._watch is not None:
            self._memory = self._watch.told(self._memory, event)

    def results(self, ran: tuple[Ran, ...]) -> None:
        self._ran = ran
        self.state = self._rules.on_results(self.loop, self.state, ran)


def watch_of(needs: str, loop: Loop) -> Watch:
    """The book-keeping that a group of properties needs."""
    if needs == "nudges":
        return NudgeWatch(loop)
    return StretchWatch(loop) if needs == "stretches" else Watch()


class Confirmer:
    """Turns ways into counterexamples of one strategy; keeps the shortest real one for each property."""

    def __init__(self, environment: Environment, rules: Rules = REFERENCE) -> None:
        self.environment = environment
        self.rules = rules
        self.found: dict[str, Counterexample] = {}
        #: Why a counterexample was dropped that did not come again when it was played twice.
        self.unsteady = ""
        self._loop = Loop(environment.strategy, environment.task)

    def __call__(self, way: tuple[int, ...], fires: str, found: Property) -> int | None:
        """The turns of the shortest real run known that breaks the property; None where this way has none.

        None is tried any more once a run did not come again: whatever is found, nothing rests on it.
        """
        if self.unsteady:
            return None
        if found.name == "always_ends":
            endless = self.lasso(way, len(way) - 1, found)
            return endless.turns if endless is not None else None
        moves = [self.environment.moves[place] for place in way]
        known = self.found.get(found.name)
        for script, turns in self._scripts(moves, fires):
            if known is not None and known.turns <= turns:
                return known.turns
            counterexample = self._tried(script, turns, found)
            if counterexample is not None:
                self.found[found.name] = counterexample
                return counterexample.turns
        return None

    def lasso(self, way: tuple[int, ...], stem: int, found: Property) -> Counterexample | None:
        """The counterexample of a run that comes back to a state and so need never end."""
        moves = [self.environment.moves[place] for place in way]
        scripts: list[list[Move]] = []
        if len(way) - stem == 1:
            # A last move that waits for an item's name leaves a way out, so that the work can still be done.
            for until in ("named", "never"):
                waits = {**moves[-1].document, "until": until}
                again = msgspec.structs.replace(moves[-1], document=waits, name=f"{moves[-1].name}, for ever")
                scripts.append([*moves[:-1], again])
        scripts.append([*moves[:stem], _repeated(moves[stem:], "forever")])
        for script in scripts:
            counterexample = self._tried(script, len(way), found)
            if counterexample is not None:
                self.found[found.name] = counterexample
                return counterexample
        return None

    # Scripts

    def _scripts(self, moves: list[Move], fires: str) -> Iterator[tuple[list[Move], int]]:
        """What the model's moves may be in full, with the turns each takes; the shortest first."""
        strategy = self.environment.strategy
        taken = sum(not move.happens for move in moves)
        if fires == "":
            yield moves, taken
        elif fires == "leaves":
            leaves = next(move for move in self.environment.moves if move.happens == fires)
            yield [*moves[:-1], leaves, moves[-1]], taken
        elif fires == "limit":
            yield from self._filled(moves)
        else:
            caps = {
                "nudges": strategy.nudges,
                "nudges_total": strategy.nudge_budget,
                "resends": strategy.resends,
                "cut_offs": strategy.cut_offs,
            }
            # Moves before the last one may have brought the cap nearer already.
            yield moves, taken
            for times in range(1, (caps.get(fires) or REFUSALS_IN_A_ROW) + 1):
                yield [*moves[:-1], _repeated(moves[-1:], times + 1)], taken + times

    def _filled(self, moves: list[Move]) -> Iterator[tuple[list[Move], int]]:
        """The moves with reading calls between, so that the limit is reached at the last one."""
        turns, length = self._loop.limits.turns, sum(not move.happens for move in moves)
        counts = list(range(FILLING)) if turns is None else [turns - length] if turns >= length else []
        item = next(iter(self.environment.task.vocabulary))
        fillers = (
            Move("lists the items", {"call": "list_items"}),
            Move(f"reads {item}", {"call": "read_item", "with": {"item": item}}),
        )
        for count in counts:
            if not count:
                yield moves, length
                continue
            for at in range(len(moves) - 1, -1, -1):
                for filler in fillers:
                    yield [*moves[:at], _repeated([filler], count), *moves[at:]], length + count

    def _tried(self, script: list[Move], turns: int, found: Property) -> Counterexample | None:
        """The counterexample that a script is, if a real run of it breaks the property."""
        environment, strategy = self.environment, self.environment.strategy
        names = tuple(environment.task.vocabulary)
        moves = [*scripted(script, names, environment.setting.gated), *witness(names)]
        document = environment.setting.document(
            strategy, moves, scenario_name(f"{strategy.name}-{found.name}")
        )
        document["summary"] = f"Against {strategy.name} it does not hold that {found.says}."
        arena = Arena(read_document(document), strategy.offers)
        blocks = any(move.blocks for move in script)
        for seed in range(SEEDS if strategy.random else 1):
            episode, broken = self._run(arena, seed, found)
            if _breaks(found, episode, broken, turns, blocks):
                again, _ = self._run(arena, seed, found)
                if (again.outcome, again.native, again.turns) != (
                    episode.outcome,
                    episode.native,
                    episode.turns,
                ):
                    self.unsteady = (
                        f"a run that ended {episode.outcome} in {episode.turns} turns ended {again.outcome}"
                        f" in {again.turns} when it was played twice"
                    )
                    continue
                return Counterexample(
                    breaks=found.name,
                    says=found.says,
                    strategy=strategy.name,
                    moves=tuple(move.name for move in script),
                    document=document,
                    turns=turns,
                    outcome=episode.outcome,
                    ending=episode.ending,
                    native=episode.native,
                    seed=seed,
                )
        return None

    def _run(self, arena: Arena, seed: int, found: Property) -> tuple[Episode, int]:
        """A real run, and what a watch saw broken; nobody watches a worker's steps."""
        strategy = self.environment.strategy
        if self.environment.setting.worker:
            return run_worker_episode(arena, strategy, seed), 0
        return run_with(arena, strategy, seed, self.rules, watch_of(found.needs, self._loop))


def _repeated(moves: list[Move], times: int | str) -> Move:
    """Moves again and again, as one move."""
    names = ", ".join(move.name for move in moves)
    often = "for ever" if times == "forever" else f"{times} times"
    inner = [document for move in moves for document in move.script]
    document: Document = {"repeat": {"times": times, "do": inner}}
    return Move(f"{names}, {often}", document, blocks=any(move.blocks for move in moves))


def scenario_name(text: str) -> str:
    """A scenario name from a text."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "counterexample"


def _breaks(found: Property, episode: Episode, broken: int, turns: int, blocks: bool) -> bool:
    """Whether a real episode breaks a property where it should; the score is the judge."""
    dishonest = episode.honest_report is False
    inexact = dishonest or episode.over_reported > 0
    if found.name == "no_early_stop":
        early = episode.ending in ("done", "partial", "error") and episode.truth != "complete"
        return early and not blocks and episode.turns == turns
    at_end = {"no_false_done": episode.false_done, "honest_report": dishonest, "exact_report": inexact}
    if found.name in at_end:
        return at_end[found.name] and episode.turns == turns
    return {
        "always_ends": episode.ending == "never",
        "no_cut_off_call": episode.ran_cut_off_call,
        "no_duplicate_effects": episode.duplicate_effects > 0,
        "clean_requests": episode.protocol_faults > 0,
        "capped_nudges": bool(broken & NUDGES),
        "capped_repeats": bool(broken & STRETCHES),
    }[found.name]
