"""The benchmarks themselves: each program does the whole task, and the page shows what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from evalkit.cli.progress import in_words
from tests.bench import library, peers, resident, transcripts, waits
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


def test_a_start_is_measured_and_what_fails_is_no_figure(tmp_path: Path) -> None:
    cpu, wall = waits.run(waits.STARTS["evalkit --help"], tmp_path, waits.ROOT)
    assert cpu > 0
    assert wall > 0
    with pytest.raises(RuntimeError, match="ended with 3"):
        waits.run((sys.executable, "-c", "raise SystemExit(3)"), tmp_path, waits.ROOT)


def test_starts_and_the_library_stand_beside_what_they_were() -> None:
    now = dict.fromkeys(waits.STARTS, 0.05) | {"evalkit --help": 0.06}
    figures = {"starts": {"now": now}, "worlds": dict.fromkeys(waits.WORLDS, 4.0), "scenarios": 7}
    assert "| `evalkit --help` | 60 | 1.20 |" in waits.markdown(figures)
    figures["starts"] = {"now": now, "before": dict.fromkeys(waits.STARTS, 0.1)}
    assert "| `evalkit --help` | 60 | 1.20 | 0.60 |" in waits.markdown(figures)
    runs = {"now": dict.fromkeys(library.WHEN, (30.0, 15.0))}
    assert "| the first time | 15.0 | 30.0 |" in library.markdown(runs)
    runs["before"] = dict.fromkeys(library.WHEN, (40.0, 20.0))
    assert "| the first time | 15.0 | 30.0 | 0.75 | 0.75 |" in library.markdown(runs)


def test_judging_stands_beside_json_and_what_it_was() -> None:
    runs = {"file": (1.4, 2.0), "start": (0.4, 0.5)}
    row = {"json.loads": 200.0, "read": 80.0, "read and judge": 20.0, "peak MB": 1.0}
    judge = {"MB": 20.0, "before": runs, "now": {**runs, "2 jobs": (1.6, 1.0)}}
    page = transcripts.markdown({"lines": row, "judge": judge})
    assert "| lines | 200.0 | 80.0 | 0.40 | 20.0 | 1.0 |" in page
    assert [line for line in page if line.startswith(("| before", "| now"))] == [
        "| before, file | 10.0 | 2.0 |",
        "| now, file | 10.0 | 2.0 |",
        "| now, 2 jobs | 12.0 | 1.0 |",
    ]


def test_the_page_is_what_the_figures_say() -> None:
    sections = json.loads((FOLDER / "bench.json").read_text())
    assert set(sections) <= set(SECTIONS)
    assert (FOLDER / "README.md").read_text() == "\n".join(_page(sections)) + "\n"


def test_resident_stands_beside_fresh() -> None:
    figures = {"episodes": resident.COUNT, "resident": [4.0, 6.0], "fresh": [0.5, 0.4]}
    assert "| 6.00 | 0.50 | 15.0 (8.0 to 15.0) |" in resident.markdown(figures)
