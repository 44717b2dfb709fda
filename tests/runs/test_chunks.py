"""Chunks: all cells once, and of the size that the time they took asks for."""

from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st

from evalkit.runs.chunks import MOST, Work
from evalkit.runs.plan import Plan, Span, make_plan
from evalkit.runs.run import _without
from evalkit.scenarios.loader import load_text
from tests.helpers import document
from tests.runs.test_run import PLAIN, STRATEGIES, plan

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
    assert sizes(1e-9, 16)[-1] == MOST


def test_chunks_grow_with_what_is_worked_off() -> None:
    """To two seconds after two thousand: handing them over binds a large run, and little is lost of it."""
    found = sizes(1.0, 2_000)
    assert set(found[100:900]) == {1}
    assert set(found[-100:]) <= {2, 3}


def worlds(kind: str, **options: object) -> Plan:
    """Two scenarios in worlds of a kind by three strategies."""
    world = {"kind": kind, "items": ["a"], **options}
    text = "---\n".join(
        yaml.safe_dump(document(PLAIN[1:], scenario=name, world=world)) for name in ("first", "second")
    )
    return make_plan(load_text(text, "s.yaml"), {"s.yaml": text}, STRATEGIES, 1)


def handed(made: Plan, seconds: float) -> list[list[int]]:
    """The scenarios of each chunk's cells, where a cell takes so long."""
    work = Work(made, made.spans(256), guess=seconds)
    return [[span.scenario for span in chunk] for chunk in work]


def test_the_cells_of_a_scenario_stay_together_where_they_share_what_commands_gave() -> None:
    files = worlds("files", checks={"a": {"exists": "a"}})
    assert handed(files, 9.0) == [[0, 0, 0], [1, 1, 1]]
    assert handed(files, 0.1) == [[0, 0, 0], [1, 1, 1]]
    assert handed(worlds("items"), 9.0) == [[0], [0], [0], [1], [1], [1]]


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
