"""The smallest script that breaks a property of a harness: looked for, made small, run once more."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from evalkit.harnesses.endings import telling_line
from evalkit.harnesses.episode_record import Kept
from evalkit.scoring.episode import Episode
from evalkit.search.falsification.guidance import Guide
from evalkit.search.falsification.proposals import Memory, make_small
from evalkit.search.falsification.trials import Alphabet, OutOfBudget, Script, Trials, Tried
from evalkit.search.proofs.counterexample import Counterexample, scenario_name
from evalkit.search.properties import Property

#: Told of the property that is looked at, of the runs so far and of the properties refuted so far.
Progress = Callable[[str, int, int], None]

#: Scripts that may be proposed in a row without a run: where all are known there is nothing left to try.
_IDLE = 200
#: So many tasks that came before a finding are tried as what it needs.
_BEFORE = 8
#: How often a finding is run again until it shows once more.
_AGAIN = 3


class HarnessFailed(Exception):
    """A harness that nothing can be said of; one line."""


class Looked(msgspec.Struct, frozen=True):
    """The answer on one property.

    ``run`` is the number of the run that first broke it, ``shrinking`` how many more it took to make the
    script small; ``replayed`` says that it was in the database. ``how`` says what the numbers do not.
    """

    property: str
    says: str
    answer: Literal["refuted", "not_refuted", "not_applicable"]
    how: str = ""
    run: int = 0
    shrinking: int = 0
    replayed: bool = False
    counterexample: Counterexample | None = None


class Search:
    """One search: what was found before, each kind of move by itself, once and for ever, then guided scripts.

    The guide is told of each run, and every run is held against all properties.
    """

    def __init__(
        self,
        called: str,
        alphabet: Alphabet,
        trials: Trials,
        seed: int,
        max_runs: int,
        max_moves: int,
        memory: Memory,
        progress: Progress | None,
    ) -> None:
        self._called = called
        self._alphabet = alphabet
        self._trials = trials
        self._guide = Guide(alphabet, max_moves, seed)
        self._max_runs = max_runs
        self._memory = memory
        self._progress = progress
        self._left = max_runs
        self._refuted: set[str] = set()
        self.transcripts: dict[str, tuple[Kept, Episode]] = {}

    @property
    def searched(self) -> int:
        """How many runs looked for a first failure."""
        return self._max_runs - self._left

    def answers(self, wanted: tuple[Property, ...]) -> tuple[Looked, ...]:
        """The answers on these properties. HarnessFailed where the harness asks nothing of its model."""
        trials = self._trials
        trials.left = self._left
        replayed: set[str] = set()
        with contextlib.suppress(OutOfBudget):
            first = trials(Script.of(()))
            if not first.episode.turns:
                raise HarnessFailed(_nothing(self._called, first))
            self._replay(wanted, replayed)
            self._single_moves(tuple(one for one in wanted if one.name not in replayed))
            self._guided(tuple(one for one in wanted if one.name not in replayed))
        self._left = trials.left
        return tuple(self._look(one, replayed=one.name in replayed) for one in wanted)

    def _smallest(self, one: Property) -> Tried | None:
        """The smallest script that is known to break a property."""
        broken = [tried for tried in self._trials.known.values() if one.name in tried.broken]
        return min(broken, key=lambda tried: tried.script) if broken else None

    def _tell(self, doing: str) -> None:
        if self._progress is not None:
            self._progress(doing, self._trials.runs, len(self._refuted))

    # Looking

    def _replay(self, wanted: tuple[Property, ...], broken: set[str]) -> None:
        """Run what was found before; add the properties that it still breaks."""
        for one in wanted:
            for script in self._memory.known(one.name):
                self._tell("known scripts")
                if one.name in self._trials(script).broken:
                    broken.add(one.name)
                else:
                    self._memory.keep(one.name, None)

    def _single_moves(self, wanted: tuple[Property, ...]) -> None:
        """Each kind of move by itself, then each for ever, until every property is broken by so little."""
        for for_ever in (False, True):
            for places in self._alphabet.kinds:
                found = [self._smallest(one) for one in wanted]
                if all(tried is not None and tried.script.length <= 1 for tried in found):
                    return
                self._tell("single moves")
                self._trials(self._alphabet.script(places[:1], for_ever))

    def _guided(self, wanted: tuple[Property, ...]) -> None:
        """Scripts that the guide proposes, until each property is broken or nothing new comes."""
        trials, idle = self._trials, 0
        for tried in tuple(trials.known.values()):
            self._guide.learn(tried)
        while idle < _IDLE and any(self._smallest(one) is None for one in wanted):
            script = self._guide.propose()
            if trials.result(script) is not None:
                idle += 1
                continue
            idle = 0
            self._tell("guided scripts")
            self._guide.learn(trials(script))

    def _look(self, one: Property, *, replayed: bool) -> Looked:
        """The answer on a property; what breaks it is made small, where it is not small already."""
        trials = self._trials
        smallest = self._smallest(one)
        if smallest is None:
            return self._unbroken(one)
        self._refuted.add(one.name)
        run = min(tried.number for tried in trials.known.values() if one.name in tried.broken)
        ended, began = True, trials.runs
        if not replayed and smallest.script.length > 1:
            trials.left = self._max_runs

            def breaks(script: Script) -> bool:
                self._tell(one.name)
                return one.name in trials(script).broken

            _, ended = make_small(smallest.script, self._alphabet, breaks)
            smallest = self._smallest(one) or smallest
        shrinking = trials.runs - began
        counterexample, held = self._counterexample(one, smallest)
        how = "" if ended else "perhaps not as small as can be: the budget had ended"
        if held:
            how = f"it did not show again in {_AGAIN} more runs of the same script"
            before = self._carried(one, smallest)
            if before is not None:
                moves = "; ".join(self._alphabet.said(before)) or "all of the work"
                how = f"only after another task in the same process: {moves}"
        elif ended:
            self._memory.keep(one.name, smallest.script)
        return Looked(one.name, one.says, "refuted", how, run, shrinking, replayed, counterexample)

    def _carried(self, one: Property, tried: Tried) -> Script | None:
        """A task before, without which a script does not break a property; None where none was found."""
        trials = self._trials
        at = trials.order.index(tried.script) if tried.script in trials.order else len(trials.order)
        for before in dict.fromkeys((*reversed(trials.order[max(0, at - _BEFORE) : at]), Script.of(()))):
            if trials.late:
                return None
            trials.begin_anew()
            trials.run(before, self._alphabet.document(self._alphabet.scripted(before)))
            again = trials.run(tried.script, self._alphabet.document(self._alphabet.scripted(tried.script)))
            if one.name in again.broken:
                return before
        return None

    def _unbroken(self, one: Property) -> Looked:
        """The answer where no script is known to break a property."""
        ends = [tried.episode for tried in self._trials.known.values()]
        if one.needs == "reports" and all(episode.honest_report is None for episode in ends):
            return Looked(one.name, one.says, "not_applicable", "no run of it ended with a report")
        return Looked(one.name, one.says, "not_refuted")

    def _counterexample(self, one: Property, tried: Tried) -> tuple[Counterexample, bool]:
        """A finding run once more as the scenario that is saved; and whether the property held this time."""
        script, alphabet = tried.script, self._alphabet
        name = scenario_name(f"{Path(self._called).name}-{one.name}")
        summary = f"Against {self._called} it does not hold that {one.says}."
        # A last move that waits for an item's name leaves a way out, so that the work can still be done.
        ways = ("named", "") if script.for_ever else ("",)
        for until in (*ways, *("",) * (_AGAIN - 1)):
            document = alphabet.document(alphabet.scripted(script, until), name, summary=summary)
            # Where one process does many tasks, nothing that an earlier one left may be what is found.
            self._trials.begin_anew()
            again = self._trials.run(script, document)
            held = one.name not in again.broken
            if not held:
                break
        episode = again.episode
        self.transcripts[one.name] = again.kept, episode
        return (
            Counterexample(
                breaks=one.name,
                says=one.says,
                strategy=self._called,
                moves=alphabet.said(script),
                document=document,
                turns=episode.turns,
                outcome=episode.outcome,
                ending=episode.ending,
                native=episode.native,
                command="falsify",
            ),
            held,
        )


def _nothing(called: str, tried: Tried) -> str:
    """Why nothing can be said of a harness, in one line."""
    episode, printed = tried.episode, telling_line(tried.kept.output)
    why = f" ({episode.native})" if episode.native else ""
    last = f"; it printed: {printed[:200]}" if printed else ""
    return f"harness {called!r}: made no request of its model and ended {episode.ending}{why}{last}"
