"""The flags of an episode once more, from its whole log and the definitions' words, without any counter."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from evalkit.core.decisions import Action, Ending, Reject, Send, Verdict
from evalkit.core.requests import Result
from evalkit.core.tasks import Offered, occurs_whole
from evalkit.core.turns import Turn, parse_arguments
from evalkit.drivers.in_process import LoopMind, drive
from evalkit.stage.stage import Stage
from evalkit.strategies.strategy import Strategy


@dataclass
class Entry:
    """A delivered turn, what the harness made of it, and the world when that was known."""

    turn: Turn
    action: Action
    held: bool
    progress: int
    #: Each call's action and answer, None where it got none; how often the world had changed by then.
    answers: tuple[tuple[str, str] | None, ...] = ()
    changes: int = 0

    @property
    def answered(self) -> bool:
        """Whether the harness went on with a user message or the answer to a finish call."""
        if isinstance(self.action, Send) and self.action.text is not None:
            return True
        finish = any(call.tool == "finish_task" for call in self.turn.calls)
        return isinstance(self.action, Reject) or (finish and isinstance(self.action, Send))


@dataclass
class Log:
    """All of an episode as a bystander sees it."""

    entries: list[Entry] = field(default_factory=list)
    held: bool = False
    progress: int = 0
    settled: int = 0
    faulted: bool = False
    ran: list[tuple[Turn, str]] = field(default_factory=list)

    def run(self, strategy: Strategy, stage: Stage, _: Any) -> Ending:
        """Run an episode in process and take note of it; the world is read again when it has settled."""

        def watch(turn: Turn, action: Action, verdict: Verdict | None, results: tuple[Result, ...]) -> None:
            if type(action).__name__ == "RunTools":
                self.ran.extend((turn, result.id) for result in results)
            elif turn.kind not in ("failed", "in_progress"):
                changes = stage.world.changes
                said = answers(turn, action, results)
                self.entries.append(
                    Entry(turn, action, stage.world.holds(), stage.world.progress(), said, changes)
                )

        try:
            return drive(LoopMind(strategy, stage.task, stage), stage, watch=watch)
        finally:
            copy = stage.fork()
            copy.settle()
            self.held, self.progress = copy.world.holds(), copy.world.progress()
            self.settled = copy.world.settled()
            self.faulted = stage.faulted
            copy.world.close()


def answers(turn: Turn, action: Action, results: tuple[Result, ...]) -> tuple[tuple[str, str] | None, ...]:
    """What each call of a turn was to do, and what it was answered."""
    told = {result.id: result.text for result in results}
    found: list[tuple[str, str] | None] = []
    for call in turn.calls:
        values = parse_arguments(call.arguments)
        what = (
            call.arguments if values is None else str(sorted((k, v) for k, v in values.items() if k != "key"))
        )
        not_run = "not run" if isinstance(action, Send | Reject) else None
        text = told.get(call.id, not_run)
        found.append(None if text is None else (f"{call.tool} {what}", text))
    return tuple(found)


def is_decision(turn: Turn, offered: Offered) -> bool:
    """An end of turn without client calls, a finish call, an agreed keyword; no protocol state."""
    if turn.kind in ("pause", "cut_off", "refusal"):
        return False
    finish = offered.finish and any(call.tool == "finish_task" for call in turn.calls)
    word = offered.keyword is not None and occurs_whole(offered.keyword, turn.text)
    return not turn.calls or finish or word


def flags(log: Log, offered: Offered, ending: str, truth: str) -> dict[str, Any]:
    """What :func:`evalkit.scoring.episode.score` should have found."""
    entries = list(log.entries)
    ended_here = bool(entries) and ending != "never" and not log.faulted
    if ended_here:
        # Truth is read when accepted calls have settled; so is the oracle of the last decision.
        entries[-1] = replace(entries[-1], held=log.held, progress=log.progress)
    decisions: list[tuple[int, bool, bool]] = []
    for number, entry in enumerate(entries, 1):
        last = ended_here and number == len(entries)
        protocol = entry.turn.kind in ("pause", "cut_off", "refusal")
        if is_decision(entry.turn, offered) or (last and (protocol or ending == "done")):
            decisions.append((number, entry.held, last and ending == "done"))
    if log.faulted and ending not in ("never",):
        decisions.append((len(entries), log.held, ending == "done"))
    held_at = [number for number, held, _ in decisions if held]
    ever_held = any(entry.held for entry in entries)
    nudged_out = _third_nudge(entries, offered)
    excess = 0
    if held_at:
        excess = len(entries) - held_at[0]
    elif not ever_held and nudged_out is not None:
        excess = len(entries) - nudged_out
    return {
        "turns": len(entries),
        "decisions": (
            sum(done and held for _, held, done in decisions),
            sum(done and not held for _, held, done in decisions),
            sum(not done and not held for _, held, done in decisions),
            sum(not done and held for _, held, done in decisions),
        ),
        "over_continuation": ending == "never"
        or _over(entries, offered, held_at, ever_held)
        or (truth != "reachable" and not ever_held and _only_repeats(entries)),
        "excess_turns": excess,
        "undone": bool(held_at) and not log.held,
        "ran_cut_off_call": any(turn.kind in ("cut_off", "refusal") for turn, _ in log.ran),
    }


def _third_nudge(entries: list[Entry], offered: Offered) -> int | None:
    """The turn after which the third consecutive nudge without progress was sent, if none came since."""
    best, nudges, found = 0, 0, None
    for number, entry in enumerate(entries, 1):
        if entry.progress > best:
            best, nudges, found = entry.progress, 0, None
        if is_decision(entry.turn, offered) and entry.answered:
            nudges += 1
            if nudges == 3:
                found = number
    return found


def _over(entries: list[Entry], offered: Offered, held_at: list[int], ever_held: bool) -> bool:
    if held_at and len(entries) - held_at[0] > 3:
        return True
    undecided = 0
    for before, entry in pairwise(entries):
        undecided = undecided + 1 if before.held and not is_decision(entry.turn, offered) else undecided
        if undecided > 12:
            return True
        if is_decision(entry.turn, offered) or not entry.held:
            undecided = 0
    if ever_held:
        return False
    best = 0
    stretch: list[Entry] = []
    resends = 0
    for entry in entries:
        if entry.progress > best:
            best = entry.progress
            stretch = []
        stretch.append(entry)
        if _stretch_too_long(stretch, offered):
            return True
        paused = entry.turn.kind == "pause" and type(entry.action).__name__ == "Resend"
        paused = paused or (
            entry.turn.kind == "pause" and isinstance(entry.action, Send) and entry.action.text is None
        )
        resends = resends + 1 if paused else 0
        if resends > 30:
            return True
    return False


def _only_repeats(entries: list[Entry]) -> bool:
    """More than 12 turns in a row without progress, whose calls repeat what was answered the same.

    The world must not have changed since that answer, in the turn that repeats it neither.
    """
    best = count = changes = 0
    known: dict[str, str] = {}
    for entry in entries:
        if entry.changes != changes:
            changes, known = entry.changes, {}
        repeats = bool(entry.answers)
        for said in entry.answers:
            repeats = repeats and said is not None and known.get(said[0]) == said[1]
            if said is not None:
                known[said[0]] = said[1]
        if entry.progress > best:
            best, count = entry.progress, 0
        else:
            count = count + 1 if repeats else 0
        if count > 12:
            return True
    return False


def _stretch_too_long(stretch: list[Entry], offered: Offered) -> bool:
    """More than 3 nudges, more than 12 turns since its first decision, or more than 40 without any."""
    made = [is_decision(entry.turn, offered) for entry in stretch]
    nudges = sum(decided and entry.answered for decided, entry in zip(made, stretch, strict=True))
    if nudges > 3:
        return True
    if True in made:
        return len(stretch) - 1 - made.index(True) > 12
    # The turn that made progress is where the stretch begins; the very first has none before it.
    return len(stretch) - (1 if stretch[0].progress else 0) > 40
