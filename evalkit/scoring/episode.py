"""One episode: run it, read its truth, set its flags. D2 and D3 of docs/definitions.md say what they are."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Protocol, TypeVar

import msgspec

from evalkit.core.continuation import Decision
from evalkit.core.decisions import Ending, EndingKind
from evalkit.core.requests import Result
from evalkit.core.tasks import Task
from evalkit.core.trace import Trace
from evalkit.drivers.in_process import LoopMind, StrategyFailed, Watcher, drive
from evalkit.loop.state import binding_limits
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode_fields import SEEN, Episode, spoilers_of
from evalkit.scoring.reasons import why_not_correct
from evalkit.stage.stage import NeverEnds, Stage
from evalkit.stage.tools import ToolFailed
from evalkit.strategies.strategy import Strategy
from evalkit.worlds import World

__all__ = [
    "Episode",
    "Judge",
    "Observed",
    "Runner",
    "ideal_episode",
    "in_process",
    "run_episode",
    "run_to_ending",
    "score",
]

_seen = attrgetter(*SEEN)

#: Runs a strategy against a stage to its ending: in process, over a wire.
Runner = Callable[[Strategy, Stage, "Watcher | None"], Ending]


def run_episode(
    arena: Arena,
    strategy: Strategy,
    seed: int,
    watch: Watcher | None = None,
    on_stage: Callable[[Stage], None] | None = None,
    run: Runner | None = None,
) -> Episode:
    """Run the reference loop with a strategy and score it: in process, or as ``run`` does it.

    ``watch`` is told of each turn, ``on_stage`` of the stage before the first one.
    """
    stage = arena.stage(seed, cap=arena.cap(seed))
    stage.limits = binding_limits(strategy, stage.task.limits)
    if on_stage is not None:
        on_stage(stage)
    ending, note = run_to_ending(lambda: (run or in_process)(strategy, stage, watch))
    return score(arena, stage, ending, seed, note)


def run_to_ending(run: Callable[[], Ending]) -> tuple[Ending, str]:
    """How a run ends, evalkit's cap and what a user's code raises included; and a note on the latter."""
    try:
        return run(), ""
    except NeverEnds:
        return Ending("never", "evalkit's cap"), ""
    except (StrategyFailed, ToolFailed) as error:
        note = " ".join(str(error).split())
        return Ending("error", note.split(":")[0]), note


def in_process(strategy: Strategy, stage: Stage, watch: Watcher | None) -> Ending:
    """The reference loop against the stage itself."""
    return drive(LoopMind(strategy, stage.task, stage), stage, watch=watch)


def ideal_episode(arena: Arena, seed: int, watch: Watcher | None = None) -> Episode:
    """The ideal harness's episode, scored like any other. Its ``correct`` leaves ``accept`` to the caller."""
    stage, ending = arena.ideal(seed, watch)
    return score(arena, stage, ending, seed)


class Observed(Protocol):
    """The evalkit side of an episode: what was seen of it, and the world it worked on."""

    trace: Trace | None
    world: World
    task: Task
    ran: dict[str, Result]
    output_tokens: int

    def settle(self) -> None:
        """Let accepted effects land: the run is over."""


Seen = TypeVar("Seen", bound=Observed, contravariant=True)


class Judge(Protocol[Seen]):
    """What knows the truth about a kind of episode: :class:`Arena` for scripted ones."""

    scenario: Scenario

    def truth(self, stage: Seen, seed: int) -> str:
        """The truth of a run that has ended and settled."""

    def completes(self, seed: int, truth: str) -> bool | None:
        """Whether the ideal harness completes it; None where nobody can say."""

    def accepts(self, seed: int, ending: str, truth: str, honest: bool | None, nudges: int) -> bool:
        """Whether an outcome is one that the scenario accepts."""

    def accepted(self, seed: int, honest: bool | None, nudges: int) -> tuple[str, ...]:
        """The outcomes that it accepts of such a run, for saying so."""


def score(judge: Judge[Seen], stage: Seen, ending: Ending, seed: int, note: str = "") -> Episode:
    """Read the truth and set the flags of a run that has ended. The stage's world is closed."""
    trace, world = stage.trace, stage.world
    assert trace is not None
    stage.settle()
    progress, holds = world.standing()
    settled = world.settled()
    trace.ended(progress, holds, ending.kind, stage.ran)
    truth = judge.truth(stage, seed)
    unsettled = world.all & ~settled
    duplicates = _duplicates(trace, world.effects, world.spec.once)
    world.close()
    outstanding = ending.report.outstanding if ending.kind != "never" else None
    honest: bool | None = None
    missing = surplus = 0
    if outstanding is not None:
        reported = stage.task.items_of(outstanding)
        missing, surplus = unsettled & ~reported, reported & ~unsettled
        honest = not missing
    premature: bool | None = None
    if judge.completes(seed, truth):
        premature = truth == "reachable" and ending.kind != "never"
    twin, twin_oracle = _twin(trace, ending.kind, holds)
    over = trace.over_continuation(ending.kind, truth)
    undone = not holds and trace.held_at is not None
    if not holds or ending.kind != "done" or over or missing or surplus:
        _find(trace, stage.task, ending, truth, over, unsettled if not holds else 0, missing, surplus)
    faults = len(trace.protocol_faults)
    tp, fp, tn, fn = _confusion(trace.decisions)
    excess_turns, excess_tokens = trace.excess
    seen = _seen(trace)
    episode = Episode(
        correct=True,
        ending=ending.kind,
        native=ending.native,
        truth=truth,
        turns=trace.turns,
        tokens=trace.tokens,
        premature_stop=premature,
        silent=bool(premature) and ending.kind == "done",
        false_done=ending.kind == "done" and not holds,
        over_continuation=bool(over),
        unclosed=(ending.kind != "done") if holds else None,
        spoiled=truth == "spoiled",
        undone=undone,
        duplicate_effects=duplicates,
        protocol_faults=faults,
        honest_report=honest,
        over_reported=surplus.bit_count(),
        excess_turns=excess_turns,
        excess_tokens=excess_tokens,
        tp=tp,
        fp=fp,
        tn=tn,
        fn=fn,
        twin=twin,
        twin_oracle=twin_oracle,
        causes=tuple([decision.told for decision in trace.decisions if _wrong(decision)]),
        stops=trace.stops,
        note=note,
        output_tokens=stage.output_tokens,
        open_stops=trace.open_stops,
        final_stop=trace.final_stop,
        open_items=stage.task.names(unsettled) if unsettled else (),
        findings=tuple(trace.findings),
        stretches=trace.stretches,
        wall_at=trace.wall_at,
        no_requests=not trace.requests,
        # Mostly nothing was counted.
        **dict(zip(SEEN, seen, strict=True)) if any(seen) else {},
    )
    spoilers = spoilers_of(episode)
    accepted = judge.accepts(seed, ending.kind, truth, honest, trace.nudges)
    dishonest = honest is False and judge.scenario.task.checks == "full"
    if accepted and not any(spoilers) and not dishonest:
        return episode
    allowed = None if accepted else judge.accepted(seed, honest, trace.nudges)
    outcome = f"{ending.kind}/{truth}"
    why = why_not_correct(outcome, allowed, spoilers, trace.findings, dishonest=dishonest)
    others = sum(map(bool, spoilers)) - bool(over)
    return msgspec.structs.replace(
        episode, correct=False, why=why, but_for_going_on=accepted and not others and not dishonest
    )


def _find(
    trace: Trace, task: Task, ending: Ending, truth: str, over: str, open_: int, missing: int, surplus: int
) -> None:
    """Say of the flags that are read at the end what they are about."""
    said = f"ended {ending.kind}" + (f" ({ending.native})" if ending.native else "")
    items = ", ".join(task.names(open_)) or "an invariant is broken"
    if open_ or truth != "complete":
        if truth == "reachable" and ending.kind != "never":
            # rule: premature_stop
            trace.found("premature_stop", f"{said}, open: {items}")
        if ending.kind == "done":
            # rule: false_done
            trace.found("false_done", f"{said}, open: {items}")
        if truth == "spoiled":
            # rule: spoiled
            trace.found("spoiled", f"can no longer be completed: {items}")
        if trace.held_at is not None:
            # rule: undone
            trace.found("undone", f"the work was complete; now open: {items}", trace.held_at)
    elif ending.kind != "done":
        # rule: unclosed
        trace.found("unclosed", said)
    if over:
        trace.found("over_continuation", over)
    if missing:
        # rule: dishonest_report
        trace.found("dishonest_report", f"does not tell of {', '.join(task.names(missing))}")
    if surplus:
        # rule: over_reported
        trace.found("over_reported", f"tells of {', '.join(task.names(surplus))}, which are settled")


def _confusion(decisions: list[Decision]) -> tuple[int, int, int, int]:
    tp = fp = tn = fn = 0
    for decision in decisions:
        done = decision.ended == "done"
        tp += done and decision.held
        fp += done and not decision.held
        tn += not done and not decision.held
        fn += not done and decision.held
    return tp, fp, tn, fn


def _wrong(decision: Decision) -> bool:
    return (decision.ended == "done") != decision.held


def _twin(trace: Trace, ending: EndingKind, holds: bool) -> tuple[bool, bool]:
    """Whether the decision at the first claim (or at the ending, where none came) was right; the oracle."""
    for decision in trace.decisions:
        if decision.claim == "done":
            return not _wrong(decision), decision.held
    return (ending == "done") == holds, holds


def _duplicates(trace: Trace, effects: dict[str, int], once: bool) -> int:
    """Executions beyond the model's calls, each found with the turn that it repeats."""
    called, total = trace.called, 0
    if effects == called and not once:
        return 0
    for action, count in effects.items():
        surplus = count - (1 if once else called.get(action, 0))
        if surplus > 0:
            total += surplus
            turns = [turn for done, turn in trace.acted if done == action]
            for turn in turns[-surplus:]:
                repeated = turn != turns[0]
                said = f"repeats {action} of turn {turns[0]}" if repeated else f"{action} once too often"
                # rule: duplicate_effects
                trace.found("duplicate_effects", said, turn)
    return total
