"""What a strategy that nobody ran on these recordings could have done at least and at most.

Recordings of another harness do not say what follows an intervention; they bound it. *Whatever comes*: where
a strategy parts from a recording, or cannot be judged on it, anything may have come. *By assumption*: the run
comes to its recorded end, since its user answered before (a message of the user is one rule); a strategy's
checks say what the label says; what was right stays right; a wrong act cannot be repaired by going on, and
what is left undone may be, or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from evalkit.fit.estimates import CLUSTERS, CONFIDENCE
from evalkit.fit.recorded_runs import Seen
from evalkit.fit.verdicts import met_when_right, never_false
from evalkit.scenarios.life import Life
from evalkit.stats.intervals import cluster_interval
from evalkit.strategies.strategy import Strategy
from evalkit.transcripts.judging.judge import BEYOND, UNKNOWN
from evalkit.transcripts.judging.outcome import Outcome

#: Turns of a run whose strategy has no limit of its own: evalkit's own cap.
CAP = 60
#: What is bounded, of each recorded done.
MEASURES = ("completed", "handed_over", "false_done", "turns")
Regime: TypeAlias = Literal["assumed", "whatever comes"]

_Span: TypeAlias = tuple[float, float]
_ANY: _Span = (0.0, 1.0)
_NO: _Span = (0.0, 0.0)
_YES: _Span = (1.0, 1.0)


class Bound(msgspec.Struct, frozen=True):
    """The least and the most of a measure, added up over ``base`` runs; ``low`` and ``high`` are 90 %.

    They hold the least's lower and the most's upper end as shares of the base; None where tasks are too few.
    """

    least: float
    most: float
    base: int
    low: float | None = None
    high: float | None = None


class Row(msgspec.Struct, frozen=True):
    """The bounds of a strategy, by measure; ``constructed``: it has no false done, whatever was recorded."""

    strategy: str
    regime: Regime
    bounds: dict[str, Bound]
    constructed: bool = False


class _Reach(msgspec.Struct, frozen=True):
    """What one run's end could be."""

    completed: _Span
    handed_over: _Span
    false_done: _Span
    turns: _Span


# One run


def _most_turns(strategy: Strategy, life: Life) -> float:
    return float(max(strategy.max_turns or CAP, life.turns))


def _verdicts(strategy: Strategy, life: Life, row: Outcome) -> tuple[bool, ...]:
    """What the strategy may say at the recorded end: met, not met, or either."""
    last = row.decided.rpartition(" ")[2]
    if last == f"{life.turns}+":
        return (True,)
    if last == f"{life.turns}-":
        return (False,)
    condition = strategy.done_when
    if life.truth == "right" and met_when_right(condition):
        return (True,)
    if life.truth not in ("right", "") and never_false(condition):
        return (False,)
    return (True, False)


def _ended(life: Life, turns: float) -> _Reach:
    """Ended as done at the recorded end."""
    right = _ANY if not life.truth else _YES if life.truth == "right" else _NO
    return _Reach(right, _NO, (1 - right[1], 1 - right[0]), (turns, turns))


def _went_on(strategy: Strategy, life: Life) -> _Reach:
    """Went on past the recorded end."""
    sound = never_false(strategy.done_when)
    turns = (life.turns + 1.0, max(life.turns + 1.0, _most_turns(strategy, life)))
    wrongly = _NO if sound else _ANY
    if life.truth == "right":
        return _Reach(_ANY, _ANY, _NO, turns)
    if life.truth in ("wrong act", "both"):
        gives_up = sound and strategy.then == "escalate" and strategy.nudges is not None
        return _Reach(_NO, _YES if gives_up else _ANY, wrongly, turns)
    return _Reach(_ANY, _ANY, wrongly, turns)


def _assumed(strategy: Strategy, life: Life, row: Outcome) -> _Reach:
    judged = row.ending not in (UNKNOWN, BEYOND)
    if judged and row.turn < life.turns:
        return _known(row)
    found = [
        _ended(life, life.turns) if met else _went_on(strategy, life)
        for met in _verdicts(strategy, life, row)
    ]
    return _hull(found)


def _whatever(strategy: Strategy, life: Life, row: Outcome) -> _Reach:
    if row.ending not in (UNKNOWN, BEYOND) and not row.parted:
        return _known(row)
    at_least = float(row.parted or (row.turns if row.ending == BEYOND else 1))
    wrongly = _NO if never_false(strategy.done_when) else _ANY
    return _Reach(_ANY, _ANY, wrongly, (at_least, max(at_least, _most_turns(strategy, life))))


def _known(row: Outcome) -> _Reach:
    """A row that is exact, as far as its label says what was true there."""
    done = row.ending == "done"
    held = {"complete": _YES, "incomplete": _NO}.get(row.truth, _ANY)
    false = (1 - held[1], 1 - held[0]) if done else _NO
    handed = _YES if row.ending == "escalated" else _NO
    return _Reach(held if done else _NO, handed, false, (row.turn, row.turn))


def _hull(found: Sequence[_Reach]) -> _Reach:
    spans = [
        (min(getattr(one, name)[0] for one in found), max(getattr(one, name)[1] for one in found))
        for name in MEASURES
    ]
    return _Reach(*spans)


# All of them


def bounds(seen: Iterable[Seen], strategies: Sequence[Strategy]) -> list[Row]:
    """A row for each strategy and regime, over the labelled runs that their harness ended as done."""
    dones = [one for one in seen if one.life.exit == "done" and one.life.truth]
    rows = []
    for place, strategy in enumerate(strategies, 1):
        for regime, reach in (("assumed", _assumed), ("whatever comes", _whatever)):
            reached = [(one.life, reach(strategy, one.life, one.outcomes[place])) for one in dones]
            found = {name: _bound(name, reached) for name in MEASURES}
            sound = never_false(strategy.done_when)
            rows.append(Row(strategy.name, regime, found, sound))  # type: ignore[arg-type]
    return rows


def _bound(name: str, reached: list[tuple[Life, _Reach]]) -> Bound:
    spans = [(life.task, getattr(reach, name)) for life, reach in reached]
    least, most = sum(span[0] for _, span in spans), sum(span[1] for _, span in spans)
    if name == "turns":
        return Bound(least, most, len(spans))
    low, _ = _interval([(task, span[0]) for task, span in spans])
    _, high = _interval([(task, span[1]) for task, span in spans])
    return Bound(least, most, len(spans), low, high)


def _interval(values: list[tuple[str, float]]) -> tuple[float | None, float | None]:
    cells: dict[str, tuple[int, int]] = {}
    for task, value in values:
        count, base = cells.get(task, (0, 0))
        cells[task] = (count + int(value), base + 1)
    if len(cells) < CLUSTERS:
        return None, None
    spread = cluster_interval(list(cells.values()), CONFIDENCE)
    return spread.low, spread.high


def sentence(seen: Iterable[Seen]) -> str:
    """What a check that names what is open could do at most, and what it cannot."""
    dones = [one.life for one in seen if one.life.exit == "done" and one.life.truth]
    if not dones:
        return "No run was ended as done and has a label: nothing bounds an intervention."
    base = len(dones)
    right = sum(life.truth == "right" for life in dones)
    beyond = sum(life.truth in ("wrong act", "both") for life in dones)
    most = base - beyond
    return (
        f"A check that names what is open completes {_percent(right, base)} to {_percent(most, base)} % of "
        f"the {base} recorded dones ({right} to {most}), and cannot repair {_percent(beyond, base)} % "
        f"({beyond} had done something wrong)."
    )


def _percent(count: float, base: int) -> str:
    return f"{100 * count / base:.0f}"
