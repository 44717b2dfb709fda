"""The figures of a judgement, added up recording by recording; the same from memory or from the file."""

from __future__ import annotations

import csv
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from evalkit.core.escaping import from_csv
from evalkit.transcripts.judging.answer import Answer
from evalkit.transcripts.judging.judge import BEYOND, UNKNOWN
from evalkit.transcripts.judging.outcome import COLUMNS, RECORDED, Outcome

#: Flags that are rates: their base are the rows on which the labels say something.
RATES = ("false_done", "premature_stop", "over_continuation", "unclosed")
#: Recordings on which strategies part, kept for the report; all of them are in the file of rows.
PARTED = 200
_WHOLE = frozenset(
    (
        *("turn", "turns", "tokens", "tokens_after", "work_after", "excess_turns", "saved_turns"),
        *("saved_tokens", "decisions", "tp", "fp", "tn", "fn", "differs", "parted"),
    )
)


class Row:
    """The figures of one strategy."""

    def __init__(self) -> None:
        self.recordings = 0
        self.endings: Counter[str] = Counter()
        self.why_unknown: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.stops: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.bases: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()

    def add(self, outcome: Outcome) -> None:
        """Count one recording."""
        self.recordings += 1
        self.endings[outcome.ending] += 1
        if outcome.ending == UNKNOWN:
            self.why_unknown[outcome.native] += 1
            return
        for name in ("tp", "fp", "tn", "fn"):
            self.sums[name] += getattr(outcome, name)
        if outcome.ending == BEYOND:
            self.stops["beyond"] += 1
            return
        self.stops["at_end" if outcome.turn == outcome.turns else "before"] += 1
        self.outcomes[f"{outcome.ending}/{outcome.truth}"] += 1
        self.counts["cut_short"] += outcome.work_after > 0
        self.sums["differs"] += outcome.differs > 0
        for name in RATES:
            value = getattr(outcome, name)
            if value is not None:
                self.bases[name] += 1
                self.counts[name] += value
        for name in ("excess_turns", "saved_turns", "saved_tokens"):
            value = getattr(outcome, name)
            if value is not None:
                self.bases[name] += 1
                self.sums[name] += value

    def summary(self, strategy: str) -> dict[str, Any]:
        """The row of ``summary.json``."""
        ended = self.stops["at_end"] + self.stops["before"]
        rates = {name: _rate(self.counts[name], self.bases[name]) for name in RATES}
        return {
            "strategy": strategy,
            "recordings": self.recordings,
            "judged": ended + self.stops["beyond"],
            "unknown": self.endings[UNKNOWN],
            "why_unknown": dict(sorted(self.why_unknown.items())),
            "endings": dict(sorted(self.endings.items())),
            "stops": {name: self.stops[name] for name in ("before", "at_end", "beyond")},
            "outcomes": dict(sorted(self.outcomes.items())),
            **rates,
            "cut_short": _rate(self.counts["cut_short"], ended),
            "decisions": {name: self.sums[name] for name in ("tp", "fp", "tn", "fn")},
            "excess_turns": {"sum": self.sums["excess_turns"], "base": self.bases["excess_turns"]},
            "saved_turns": {"sum": self.sums["saved_turns"], "base": self.bases["saved_turns"]},
            "saved_tokens": {"sum": self.sums["saved_tokens"], "base": self.bases["saved_tokens"]},
            "differs": self.sums["differs"],
        }


def _rate(count: int, base: int) -> dict[str, Any]:
    return {"count": count, "base": base, "rate": count / base if base else None}


class Figures:
    """All figures; :meth:`add` takes the rows of one recording."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.recordings = 0
        self.formats: Counter[str] = Counter()
        self.labels: Counter[str] = Counter()
        self.both: Counter[tuple[str, str]] = Counter()
        self.same: Counter[tuple[str, str]] = Counter()
        self.answer = Answer()
        self.parted: list[dict[str, Any]] = []
        self.parted_count = 0

    def add(self, outcomes: list[Outcome]) -> None:
        """Count one recording: its rows, the recorded end among them."""
        self.recordings += 1
        self.answer.add(outcomes)
        self.formats[outcomes[0].format] += 1
        self.labels[outcomes[0].label] += 1
        judged = []
        for outcome in outcomes:
            self.rows.setdefault(outcome.strategy, Row()).add(outcome)
            if outcome.ending != UNKNOWN:
                judged.append((outcome.strategy, f"{outcome.ending} at {outcome.turn}"))
        for place, (one, stop) in enumerate(judged):
            for other, its in judged[place + 1 :]:
                self.both[one, other] += 1
                self.same[one, other] += stop == its
        strategies = {strategy: stop for strategy, stop in judged if strategy != RECORDED}
        if len(set(strategies.values())) > 1:
            self.parted_count += 1
            self._keep_parted(outcomes[0], dict(judged))

    def _keep_parted(self, recorded: Outcome, stops: dict[str, str]) -> None:
        """Keep the first by name, so that the order of files makes no difference."""
        name = recorded.recording
        if len(self.parted) >= PARTED and name > self.parted[-1]["recording"]:
            return
        row = {"recording": name, "label": recorded.label, "turns": recorded.turns, "stops": stops}
        insort(self.parted, row, key=lambda kept: str(kept["recording"]))
        del self.parted[PARTED:]

    def summary(self) -> dict[str, Any]:
        """The content of ``summary.json``, but for what was not read."""
        return {
            "schema": "evalkit.judgement/1",
            "run": {
                "recordings": self.recordings,
                "formats": dict(sorted(self.formats.items())),
                "labels": {name: self.labels[name] for name in ("complete", "incomplete", "unknown")},
            },
            "answer": self.answer.summary(),
            "rows": [row.summary(strategy) for strategy, row in self.rows.items()],
            "agreement": [
                {"one": one, "other": other, "both": count, "same": self.same[one, other]}
                for (one, other), count in sorted(self.both.items())
            ],
            "parted": {"count": self.parted_count, "recordings": self.parted},
        }


def read_outcomes(file: Path) -> Iterator[list[Outcome]]:
    """The rows of an ``episodes.csv``, those of a recording together."""
    with file.open(encoding="utf-8", newline="") as opened:
        for _, rows in groupby(csv.DictReader(opened), key=lambda row: row["recording"]):
            yield [_outcome(row) for row in rows]


def _outcome(row: dict[str, str]) -> Outcome:
    values: dict[str, Any] = {}
    for name in COLUMNS:
        text: Any = from_csv(row[name])
        if name in RATES:
            text = None if text == "" else text == "1"
        elif name in _WHOLE:
            text = None if text == "" else int(text)
        values[name] = text
    return Outcome(**values)


def cells(outcome: Outcome) -> list[Any]:
    """A row of ``episodes.csv``: flags are 1 and 0, and empty where nothing is known."""
    return [
        "" if value is None else int(value) if isinstance(value, bool) else value
        for value in msgspec.structs.astuple(outcome)
    ]


def figures_of(recordings: Iterable[list[Outcome]]) -> Figures:
    """The figures of rows."""
    figures = Figures()
    for outcomes in recordings:
        figures.add(outcomes)
    return figures
