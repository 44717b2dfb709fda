"""What is odd about the harnesses of a run as a whole, in a line each: for whoever looks at the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from evalkit.core.names import counted
from evalkit.harnesses.endings import telling_line
from evalkit.harnesses.episode_record import CARRIED, NOT_EXERCISED, UNOFFERED
from evalkit.runs.foreign_records import output_file, read_trace
from evalkit.runs.store import Store

#: How much of what a harness printed stands in its line: the end, where an error says what it is.
_TAIL = 160
#: Records that are looked through for what only they say.
_LOOKED_THROUGH = 200


def oddities(store: Store) -> Iterator[str]:
    """Harnesses that asked for nothing, called what was never offered, or mixed up their tasks."""
    for number, contender in enumerate(store.recipe.contenders):
        if contender.foreign:
            yield from _silent(store, number, contender.name)
            yield from _seen(store, number, contender.name)


def _silent(store: Store, number: int, name: str) -> Iterator[str]:
    cells = list(
        store.rows(
            "select cell, no_requests from episode where contender = ? and ending <> 'void' order by cell",
            (number,),
        )
    )
    silent = [cell for cell, no_requests in cells if no_requests]
    if not silent:
        return
    said = f"{name}: {len(silent)} of {len(cells)} episodes made no request"
    for cell in silent:
        kept = read_trace(store.folder, cell)
        if kept is None:
            continue
        how = f" ({kept.exit})" if kept.exit and kept.exit != "exit:0" else ""
        words = " ".join(kept.output.split())
        if not words:
            yield f"{said}{how}; it printed nothing"
            return
        tail = ("… " if len(words) > _TAIL else "") + words[-_TAIL:]
        why = telling_line(kept.output)
        if not words.endswith(why):
            tail = f"{why[:_TAIL]} …"
        yield f"{said}{how}; it printed: {tail}; all of it: {output_file(store.folder, cell)}"
        return
    yield said


def _seen(store: Store, number: int, name: str) -> Iterator[str]:
    unoffered: dict[str, int] = {}
    missed: dict[str, int] = {}
    carried = 0
    cells = list(
        store.rows("select cell from episode where contender = ? order by orphan_calls desc", (number,))
    )
    for (cell,) in cells[:_LOOKED_THROUGH]:
        kept = read_trace(store.folder, cell)
        if kept is not None:
            carried += CARRIED in kept.seen
            for why in kept.seen.get(NOT_EXERCISED, ()):
                missed[why] = missed.get(why, 0) + 1
            for tool, count in kept.seen.get(UNOFFERED, {}).items():
                unoffered[tool] = unoffered.get(tool, 0) + count
    if unoffered:
        tools = ", ".join(list(unoffered)[:5]) + (", …" if len(unoffered) > 5 else "")
        yield f"{name} called tools that were never offered: {tools}"
    for why, count in missed.items():
        yield f"{name}: {counted(count, 'episode')} not exercised: {why}"
    if carried:
        yield f"{name} carried something from one task to the next; each then had a process of its own"
