"""Logged requests of one run put together: the run is the longest of them, with its answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from evalkit.transcripts.problems import Found, Problem
from evalkit.transcripts.recording import Recording

#: Runs that are waited for at a time; the one that was quiet for longest is given out first.
OPEN = 256


def joined(found: Iterable[Found]) -> Iterator[Found]:
    """What was found, request logs as runs; everything else is passed on as it comes.

    A request whose messages begin with those of another is a later one of the same run. Which is read first
    makes no difference.
    """
    held: list[Recording] = []
    for item in found:
        if isinstance(item, Problem) or not item.request:
            yield item
            continue
        taken = False
        for place, other in enumerate(held):
            if other.format == item.format or other.request[:1] == item.request[:1]:
                longer = _longer(other, item)
                if longer is not None:
                    del held[place]
                    held.append(longer)
                    taken = True
                    break
        if not taken:
            held.append(item)
            if len(held) > OPEN:
                yield held.pop(0)
    yield from held


def _goes_on(first: Recording, last: Recording) -> bool:
    """Whether the later request holds the answer that the earlier one got."""
    if not first.steps or first.ending == "error" or len(first.steps) > len(last.steps):
        return True
    told, kept = first.steps[-1].turn, last.steps[len(first.steps) - 1].turn
    if [call.tool for call in told.calls] != [call.tool for call in kept.calls]:
        return False
    return bool(told.calls) or told.text.strip()[:200] == kept.text.strip()[:200]


def _longer(one: Recording, other: Recording) -> Recording | None:
    """The later of two requests of a run, None where they are of two."""
    first, last = (one, other) if len(one.request) <= len(other.request) else (other, one)
    if len(first.request) == len(last.request):
        # Asked again: a retry is no turn. The one that got an answer is the run.
        if first.request != last.request or (
            first.steps and last.steps and first.steps[-1] != last.steps[-1]
        ):
            return None
        keep = one if len(one.steps) >= len(other.steps) else other
        return keep
    if last.request[: len(first.request)] != first.request or not _goes_on(first, last):
        return None
    label = last.label if last.label.complete is not None else first.label
    return msgspec.structs.replace(last, label=label)
