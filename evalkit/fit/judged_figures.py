"""The figures of a judgement by which a population is held to recordings: shares, and means of turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalkit.transcripts.judging.outcome import RECORDED, Outcome
from evalkit.transcripts.judging.totals import RATES, Row

#: Endings and stops whose shares are figures.
_ENDINGS = ("done", "escalated", "limit", "beyond")
_STOPS = ("before", "at_end")

#: Figures that are means and no shares.
MEANS = ("turns", "ends of turn")
#: A figure and its value; None where its base is empty.
Figures = dict[str, float | None]


def figures(runs: Iterable[Sequence[Outcome]]) -> Figures:
    """The figures of recordings, each given by its rows."""
    rows: dict[str, Row] = {}
    turns = ends = count = 0
    for outcomes in runs:
        count += 1
        turns += outcomes[0].turns
        ends += outcomes[0].decisions
        for outcome in outcomes:
            rows.setdefault(outcome.strategy, Row()).add(outcome)
    found: Figures = dict(zip(MEANS, (turns / count, ends / count), strict=True)) if count else {}
    for strategy, row in rows.items():
        found |= _row(strategy, row)
    return found


def _row(strategy: str, row: Row) -> Figures:
    found: Figures = {}
    for ending in _ENDINGS:
        found[f"{strategy}: {ending}"] = row.endings[ending] / row.recordings
    # The recorded harness stops at the recorded end, whatever that was.
    for stop in _STOPS if strategy != RECORDED else ():
        found[f"{strategy}: stops {stop}"] = row.stops[stop] / row.recordings
    for rate in (*RATES, "cut_short"):
        base = row.stops["at_end"] + row.stops["before"] if rate == "cut_short" else row.bases[rate]
        found[f"{strategy}: {rate}"] = row.counts[rate] / base if base else None
    decided = sum(row.sums[name] for name in ("tp", "fp", "tn", "fn"))
    for name in ("tp", "fp", "tn", "fn"):
        found[f"{strategy}: {name}"] = row.sums[name] / decided if decided else None
    return found
