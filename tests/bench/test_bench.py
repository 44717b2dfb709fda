"""The benchmarks themselves: each program does the whole task, and the page shows what was measured."""

from __future__ import annotations

import json

import pytest

from evalkit.cli.progress import in_words
from tests.bench import peers
from tests.bench.__main__ import FOLDER, SECTIONS, _page
from tests.bench.long_run import seconds_of


@pytest.mark.parametrize("name", ["bare", "evalkit silence", "evalkit gate"])
def test_a_program_does_the_whole_task(name: str) -> None:
    figures = peers.run(name, 8, 3)
    assert (figures.turns, figures.episodes) == (8, 3)
    assert figures.turns_per_cpu_second > 0
    assert figures.peak_mb > 5


def test_a_program_that_fails_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="unknown strategy"):
        peers.run("evalkit nobody", 8, 1)


@pytest.mark.parametrize(("seconds", "read"), [(7, 7), (125, 125), (7_325, 7_320)])
def test_the_remaining_time_is_read_as_it_is_told(seconds: int, read: int) -> None:
    assert seconds_of(in_words(seconds)) == read


def test_the_page_is_what_the_figures_say() -> None:
    sections = json.loads((FOLDER / "bench.json").read_text())
    assert set(sections) <= set(SECTIONS)
    assert (FOLDER / "README.md").read_text() == "\n".join(_page(sections)) + "\n"
