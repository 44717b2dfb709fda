"""Judging many recordings: one at a time from the files to the rows, so that size does not matter."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import msgspec

from evalkit.strategies.strategy import Strategy
from evalkit.transcripts.claims import ClaimReader, claim_of
from evalkit.transcripts.figures import Figures, cells
from evalkit.transcripts.folders import Looked, counted
from evalkit.transcripts.judge import judge
from evalkit.transcripts.labels import Labels
from evalkit.transcripts.outcome import COLUMNS, RECORDED, Outcome, outcome_of, recorded_stop
from evalkit.transcripts.problem import Problem
from evalkit.transcripts.read import read_paths
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.replay import Replay
from evalkit.transcripts.report import report_markdown

#: Problems that the summary keeps; all are told while reading.
PROBLEMS = 1_000


def judge_recording(
    recording: Recording, strategies: Iterable[Strategy], reader: ClaimReader = claim_of
) -> list[Outcome]:
    """The rows of one recording: its own harness, then each strategy."""
    replay = Replay(recording, reader)
    rows = [outcome_of(recording, replay, RECORDED, recorded_stop(recording))]
    rows += [outcome_of(recording, replay, strategy.name, judge(replay, strategy)) for strategy in strategies]
    return rows


class Judgement:
    """A judgement being written: rows as they come, report and summary when it is closed."""

    def __init__(self, folder: Path, strategies: Iterable[Strategy], reader: ClaimReader = claim_of) -> None:
        self.folder = folder
        self.strategies = tuple(strategies)
        self.reader = reader
        self.figures = Figures()
        self.problems: list[Problem] = []
        self.problem_count = 0
        self.children = 0
        self._ids: Counter[str] = Counter()
        folder.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = (folder / "episodes.csv").open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def add(self, recording: Recording) -> list[Outcome]:
        """Judge a recording and write its rows; a child agent's run is part of its parent's."""
        if recording.parent:
            self.children += 1
            return []
        self._ids[recording.id] += 1
        if self._ids[recording.id] > 1:
            # Two runs of one name: each keeps its own rows.
            name = f"{recording.id}~{self._ids[recording.id]}"
            recording = msgspec.structs.replace(recording, id=name)
        rows = judge_recording(recording, self.strategies, self.reader)
        self.figures.add(rows)
        self._writer.writerows(map(cells, rows))
        return rows

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
        summary["problems"] = [str(problem) for problem in self.problems]
        summary["notes"] = list(notes)
        text = msgspec.json.format(msgspec.json.encode(summary), indent=1).decode() + "\n"
        (self.folder / "summary.json").write_text(text, encoding="utf-8")
        (self.folder / "report.md").write_text(report_markdown(summary), encoding="utf-8")
        return summary


def judge_paths(paths: Iterable[Path], judgement: Judgement, labels: Labels | None = None) -> dict[str, Any]:
    """Judge all recordings of files and folders, and close the judgement."""
    labels = labels or Labels()
    files: set[str] = set()
    looked = Looked(paths)
    for found in read_paths((), looked):
        files.add(found.file)
        if isinstance(found, Problem):
            judgement.problem(found)
        else:
            judgement.add(labels.apply(found))
    notes = [*labels.notes(), *looked.notes()]
    if judgement.children:
        notes.append(f"{counted(judgement.children, 'run')} of child agents: part of their parents', no rows")
    return judgement.close(len(files), notes)
