"""The recordings of a fit, read once: each as a life, with what judgement says of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from evalkit.core.names import counted
from evalkit.fit.grouping import Grouping, known
from evalkit.fit.lives import life_of
from evalkit.scenarios.life import Life
from evalkit.strategies.strategy import Strategy
from evalkit.transcripts.input_files import Looked
from evalkit.transcripts.judging.outcome import Outcome
from evalkit.transcripts.judging.run import rows_of
from evalkit.transcripts.labels import Labels
from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_paths
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.replay import Replay
from evalkit.transcripts.turn_claims import ClaimReader, claim_of


class Seen(msgspec.Struct, frozen=True):
    """A recording: its life, and the rows of its own harness and of each strategy."""

    life: Life
    outcomes: tuple[Outcome, ...]
    harness: str = ""


class Reading:
    """Reads recordings for a fit; ``notes`` and ``problems`` say what was passed over."""

    def __init__(
        self,
        grouping: Grouping,
        labels: Labels,
        strategies: Sequence[Strategy],
        reader: ClaimReader = claim_of,
    ) -> None:
        self.grouping, self.labels, self.strategies, self.reader = grouping, labels, strategies, reader
        self.problems: list[Problem] = []
        self.notes: list[str] = []

    def read(self, paths: Iterable[Path]) -> list[Seen]:
        """All of them. GroupingError for one whose task cannot be told."""
        looked = Looked(paths)
        seen = [self._seen(recording) for recording in self._recordings(looked)]
        self.notes += [*self.labels.notes(), *looked.notes()]
        return seen

    def _recordings(self, looked: Looked) -> Iterator[Recording]:
        children = 0
        for found in read_paths((), looked):
            if isinstance(found, Problem):
                self.problems.append(found)
            elif found.parent:
                children += 1
            elif not found.steps:
                self.notes.append(f"{found.id}: holds no model turn; not fitted")
            else:
                yield self.labels.apply(found)
        if children:
            self.notes.append(f"{counted(children, 'run')} of child agents: part of their parents'")

    def _seen(self, recording: Recording) -> Seen:
        recording = known(recording, self.grouping)
        return see(recording, self.strategies, self.reader)


def see(recording: Recording, strategies: Sequence[Strategy], reader: ClaimReader = claim_of) -> Seen:
    """A recording with its life and its rows."""
    rows = rows_of(recording, Replay(recording, reader), strategies)
    return Seen(life_of(recording, reader), tuple(rows), recording.format)
