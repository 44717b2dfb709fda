"""What a team would watch: how turns stopped and tasks ended, by task type, and what became more frequent."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb

import msgspec

from evalkit.core.channels import is_decision
from evalkit.core.decisions import Action, Ending, RunTools, Send, Verdict
from evalkit.core.tasks import Offered
from evalkit.core.turns import Turn
from evalkit.worker.task_records import Event

#: Stop reasons of a turn that was cut off.
TRUNCATED = ("max_tokens", "context_window")
#: A signal is a spike when so much more frequent than before, and unlikely to be so by chance.
SPIKE_RATIO = 2.0
SPIKE_CHANCE = 0.01


def stop_event(
    turn: Turn, offered: Offered, action: Action, verdict: Verdict | None, at: float
) -> Event | None:
    """The event of a turn that was dealt with; None for one that only asked for tools."""
    asks = turn.kind == "content" and not is_decision(turn, offered)
    plain = asks and isinstance(action, Send)
    if isinstance(action, RunTools) or plain or turn.kind == "in_progress":
        return None
    return Event(
        "stop",
        turn.stop,
        turn.native or "",
        text_only=not turn.calls and turn.kind in ("content", "unknown"),
        met=verdict is not None and verdict.met,
        open=verdict.gaps.bit_count() if verdict is not None and verdict.names else None,
        at=at,
    )


def end_event(ending: Ending, last_stop: str, at: float) -> Event:
    """The event of an ending; ``last_stop`` is the stop reason of the last turn."""
    outstanding = ending.report.outstanding
    return Event(
        "end",
        last_stop,
        ending.native,
        met=ending.kind == "done",
        open=None if outstanding is None else len(outstanding),
        ending=ending.kind,
        at=at,
    )


class Signal(msgspec.Struct, frozen=True):
    """How often something happened, of how many: in the window and before it. ``spike`` if it stands out."""

    count: int = 0
    base: int = 0
    count_before: int = 0
    base_before: int = 0
    spike: bool = False


class TypeStats(msgspec.Struct, frozen=True):
    """The telemetry of one task type.

    ``open_stops`` are text-only stops at which the condition did not hold, of all claims of an end.
    ``truncated_finals`` are endings whose last turn was cut off, ``limits`` those at a limit, ``escalations``
    all that a person has to look at; of all endings.
    """

    type: str
    endings: dict[str, int]
    stops: dict[str, int]
    open_stops: Signal
    truncated_finals: Signal
    limits: Signal
    escalations: Signal


SIGNALS = ("open_stops", "truncated_finals", "limits", "escalations")


def stats(events: Iterable[tuple[str, str, Event]], since: float) -> list[TypeStats]:
    """Statistics by task type; what happened from ``since`` on is held against what happened before."""
    types: dict[str, _Counts] = {}
    for type, _, event in events:
        types.setdefault(type, _Counts()).add(event, recent=event.at >= since)
    return [counts.stats(type) for type, counts in sorted(types.items())]


class _Counts:
    def __init__(self) -> None:
        self.endings: dict[str, int] = {}
        self.stops: dict[str, int] = {}
        #: By signal: count and base before, count and base in the window.
        self.signals = {name: [0, 0, 0, 0] for name in SIGNALS}

    def add(self, event: Event, *, recent: bool) -> None:
        if event.kind == "stop":
            self.stops[event.stop] = self.stops.get(event.stop, 0) + 1
            if event.text_only:
                self._note("open_stops", not event.met, recent)
        elif event.kind == "end":
            self.endings[event.ending] = self.endings.get(event.ending, 0) + 1
            self._note("truncated_finals", event.stop in TRUNCATED, recent)
            self._note("limits", event.ending == "limit", recent)
            self._note("escalations", event.ending != "done", recent)

    def _note(self, name: str, happened: bool, recent: bool) -> None:
        place = 2 if recent else 0
        self.signals[name][place] += happened
        self.signals[name][place + 1] += 1

    def stats(self, type: str) -> TypeStats:
        signals = {}
        for name, (count_before, base_before, count, base) in self.signals.items():
            spike = is_spike(count, base, count_before, base_before)
            signals[name] = Signal(count, base, count_before, base_before, spike)
        endings, stops = dict(sorted(self.endings.items())), dict(sorted(self.stops.items()))
        return TypeStats(type, endings, stops, **signals)


def is_spike(count: int, base: int, count_before: int, base_before: int) -> bool:
    """Whether a rate rose at least twofold, and by chance alone would so rarely (Fisher's exact test)."""
    if not base or not base_before or not count:
        return False
    if count_before and (count / base) / (count_before / base_before) < SPIKE_RATIO:
        return False
    return at_least(count, base, count_before, base_before) < SPIKE_CHANCE


def at_least(count: int, base: int, count_before: int, base_before: int) -> float:
    """The probability of ``count`` or more, if both rates were one (Fisher's exact test, one-sided)."""
    happened, everything = count + count_before, base + base_before
    ways = sum(comb(base, k) * comb(base_before, happened - k) for k in range(count, min(base, happened) + 1))
    return ways / comb(everything, happened)


def spikes(found: Iterable[TypeStats]) -> list[tuple[str, str]]:
    """Task type and signal of what became more frequent."""
    return [(one.type, name) for one in found for name in SIGNALS if getattr(one, name).spike]
