"""Judging many recordings: a few at a time from the files to the rows, so that size does not matter.

One process reads, names and writes, in the order of the files; any number of others judge what it hands out.
So the bytes that are written do not depend on how many there are.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec

from evalkit.containment.workers import in_order
from evalkit.core.escaping import for_csv
from evalkit.core.names import counted
from evalkit.strategies.strategy import Strategy
from evalkit.transcripts.input_files import Looked
from evalkit.transcripts.judging.answer import sentences
from evalkit.transcripts.judging.judge import judge
from evalkit.transcripts.judging.outcome import COLUMNS, RECORDED, Outcome, Truth, outcome_of, recorded_stop
from evalkit.transcripts.judging.page import Page, told_run
from evalkit.transcripts.judging.report import report_markdown
from evalkit.transcripts.judging.totals import Figures, cells
from evalkit.transcripts.labels import Labels
from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_paths
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.replay import Replay
from evalkit.transcripts.turn_claims import ClaimReader, claim_of, words_of

#: Problems that the summary keeps; all are told while reading.
PROBLEMS = 1_000
#: Files whose names of runs are remembered at a time; a file is read once.
_FILES = 64
#: Recordings that are handed to a process at a time.
_HANDED = 16


def judge_recording(
    recording: Recording, strategies: Iterable[Strategy], reader: ClaimReader = claim_of
) -> list[Outcome]:
    """The rows of one recording: its own harness, then each strategy."""
    return rows_of(recording, Replay(recording, reader), strategies)


def rows_of(recording: Recording, replay: Replay, strategies: Iterable[Strategy]) -> list[Outcome]:
    """The rows of a recording that was made ready."""
    truth = Truth(recording, replay)
    rows = [outcome_of(recording, replay, RECORDED, recorded_stop(recording), truth)]
    rows += [
        outcome_of(recording, replay, strategy.name, judge(replay, strategy), truth)
        for strategy in strategies
    ]
    return rows


class Judged(msgspec.Struct, frozen=True):
    """What comes of a recording: its rows, as text too, the words that claim done, its place in the page."""

    rows: list[Outcome]
    table: str
    claimed: str | None
    shown: str | None


class Judgement:
    """A judgement being written: rows as they come, report and summary when it is closed."""

    def __init__(
        self,
        folder: Path,
        strategies: Iterable[Strategy],
        reader: ClaimReader = claim_of,
        *,
        page: bool = False,
    ) -> None:
        self.folder = folder
        self.strategies = tuple(strategies)
        self.reader = reader
        self.figures = Figures()
        self.problems: list[Problem] = []
        self.problem_count = 0
        self.children = 0
        self.claimed: Counter[str] = Counter()
        self._ids: OrderedDict[str, Counter[str]] = OrderedDict()
        folder.mkdir(parents=True, exist_ok=True)
        self.page = Page(folder) if page else None
        self._file: IO[str] = (folder / "episodes.csv").open("w", encoding="utf-8", newline="")
        self._file.write(_as_csv([COLUMNS]))

    def add(self, recordings: Iterable[Recording], jobs: int = 1) -> None:
        """Judge recordings in up to ``jobs`` processes beside this one, and write their rows in their order.

        A child agent's run is part of its parent's. WorkerDied where a process was killed twice over the same
        recordings.
        """
        named = self._numbered(recordings)
        handed = iter(lambda: tuple(islice(named, _HANDED)), ())
        for some in in_order(self._judge, handed, jobs):
            for judged in some:
                self._keep(judged)

    def _numbered(self, recordings: Iterable[Recording]) -> Iterator[tuple[Recording, bool]]:
        """Each run with a name of its own, and whether the page shows it."""
        for recording in recordings:
            if recording.parent:
                self.children += 1
                continue
            yield self._named(recording), self.page is not None and self.page.takes()

    def _judge(self, some: tuple[tuple[Recording, bool], ...]) -> list[Judged]:
        """In whichever process."""
        found = []
        for recording, shown in some:
            replay = Replay(recording, self.reader)
            rows = rows_of(recording, replay, self.strategies)
            claims = rows[0].claim == "done" and recording.steps
            found.append(
                Judged(
                    rows,
                    _as_csv(map(for_csv, cells(row)) for row in rows),
                    words_of(recording.steps[-1].turn) if claims else None,
                    told_run(recording, replay, rows) if shown else None,
                )
            )
        return found

    def _keep(self, judged: Judged) -> None:
        if judged.claimed is not None:
            self.claimed[judged.claimed] += 1
        if self.page is not None and judged.shown is not None:
            self.page.add(judged.shown)
        self.figures.add(judged.rows)
        self._file.write(judged.table)

    def _named(self, recording: Recording) -> Recording:
        """The recording; where its file had a run of the same name before, with a name of its own."""
        names = self._ids.setdefault(recording.file, Counter())
        while len(self._ids) > _FILES:
            self._ids.popitem(last=False)
        names[recording.id] += 1
        if names[recording.id] == 1:
            return recording
        return msgspec.structs.replace(recording, id=f"{recording.id}~{names[recording.id]}")

    def problem(self, problem: Problem) -> None:
        """Note what could not be read."""
        self.problem_count += 1
        if len(self.problems) < PROBLEMS:
            self.problems.append(problem)

    def close(self, files: int, notes: Iterable[str] = ()) -> dict[str, Any]:
        """Write ``summary.json`` and ``report.md``; gives the summary."""
        self._file.close()
        summary = self.figures.summary()
        summary["run"].update(
            files=files,
            problems=self.problem_count,
            strategies={strategy.name: repr(strategy.done_when) for strategy in self.strategies},
            claims="rules" if self.reader is claim_of else "own reader",
        )
        summary["claimed"] = {
            "words": sorted(self.claimed.items(), key=lambda item: (-item[1], item[0]))[:20]
        }
        summary["problems"] = [str(problem) for problem in self.problems]
        summary["notes"] = list(notes)
        text = msgspec.json.format(msgspec.json.encode(summary), indent=1).decode() + "\n"
        (self.folder / "summary.json").write_text(text, encoding="utf-8")
        (self.folder / "report.md").write_text(report_markdown(summary), encoding="utf-8")
        if self.page is not None:
            why = {row["strategy"]: "; ".join(row["why_unknown"]) for row in summary["rows"]}
            self.page.close(sentences(summary["answer"], why, summary["claimed"]))
        return summary


def judge_paths(
    paths: Iterable[Path], judgement: Judgement, labels: Labels | None = None, jobs: int = 1
) -> dict[str, Any]:
    """Judge all recordings of files and folders in up to ``jobs`` processes, and close the judgement."""
    labels = labels or Labels()
    looked = Looked(paths)

    def recordings() -> Iterator[Recording]:
        for found in read_paths((), looked):
            if isinstance(found, Problem):
                judgement.problem(found)
            else:
                yield labels.apply(found)

    judgement.add(recordings(), jobs)
    notes = [*labels.notes(), *looked.notes()]
    if judgement.children:
        notes.append(f"{counted(judgement.children, 'run')} of child agents: part of their parents', no rows")
    return judgement.close(looked.files, notes)


def _as_csv(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
