"""Chunks: all cells once, and of the size that the time they took asks for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalkit.runs.chunks import MOST, Work
from evalkit.runs.plan import Span
from evalkit.runs.run import _without
from tests.runs.test_run import plan

MADE = plan(500)


def cells(spans: list[Span]) -> list[tuple[int, int]]:
    return [(span.cell + n, span.first_seed + n) for span in spans for n in range(span.seeds)]


@given(st.integers(1, 600), st.lists(st.floats(0.0, 30.0), max_size=30))
def test_every_cell_is_handed_out_once_whatever_chunks_take(size: int, times: list[float]) -> None:
    work = Work(MADE, MADE.spans(size))
    handed: list[Span] = []
    while chunk := work.take():
        assert sum(span.seeds for span in chunk) <= MOST
        handed.extend(chunk)
        if times:
            work.took(chunk, times.pop())
    assert sorted(cells(handed)) == sorted(cells(list(MADE.spans(10_000))))


def sizes(seconds: float, count: int) -> list[int]:
    """Episodes in chunks where each episode takes as long."""
    made = plan(100_000, ("silence",))
    work = Work(made, made.spans(256), target=0.25)
    found = []
    for _ in range(count):
        chunk = work.take()
        found.append(sum(span.seeds for span in chunk))
        work.took(chunk, seconds * found[-1])
    return found


def test_chunks_come_to_their_time() -> None:
    assert 200 <= sizes(0.001, 20)[-1] <= 300
    assert sizes(2.0, 20)[-1] == 1
    assert sizes(1e-9, 30)[-1] == MOST


@given(st.sets(st.integers(0, 40)), st.integers(0, 30), st.integers(1, 12))
def test_what_is_finished_is_left_out(finished: set[int], first: int, seeds: int) -> None:
    ranges: list[tuple[int, int]] = []
    for cell in sorted(finished):
        if ranges and ranges[-1][1] + 1 == cell:
            ranges[-1] = (ranges[-1][0], cell)
        else:
            ranges.append((cell, cell))
    span = Span(0, 0, 100, seeds, first)
    left = list(_without(span, ranges))
    wanted = [(cell, 100 + cell - first) for cell in range(first, first + seeds) if cell not in finished]
    assert cells(left) == wanted
