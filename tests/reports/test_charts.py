"""The charts: what is drawn, in which forms, and how it stands in a page."""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from evalkit.reports.charts import KINDS, draw_charts
from evalkit.reports.charts.cost import _overlap, pareto, place_label
from evalkit.reports.charts.draw import _draw
from evalkit.reports.charts.groups import GROUPS, group_of
from evalkit.reports.charts.style import GREEN, RED, readable_on, spread
from evalkit.stats.summary import summarize
from tests.made_runs import FALSE_DONE, entry, grid, made_run, recipe, row


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("charts")
    entries = [entry(f"s{n}", "a <family> & $x_1$", "full" if n < 22 else "none") for n in range(24)]
    right = [[n < 4, n < 20] for n in range(24)]
    summary = summarize(
        grid(folder / "run", right, strategies=["base", "<script>alert(1)</script>"], entries=entries)
    )
    return folder, {chart.name: chart.svg for chart in draw_charts(summary, folder / "charts", kinds=KINDS)}


@pytest.mark.long
def test_each_chart_in_each_form(drawn: tuple[Path, dict[str, str]]) -> None:
    folder, charts = drawn
    names = {f"{kind}-{level}" for kind in ("outcomes", "cost", "forest") for level in ("full", "none")}
    names |= {
        f"heat-{rate}"
        for rate in ("correct", "premature-stop", "false-done", "over-continuation", "unclosed")
    }
    assert set(charts) == names | {"turns"}
    for name in charts:
        starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
        for kind, start in starts.items():
            assert (folder / "charts" / f"{name}.{kind}").read_bytes().startswith(start)


@pytest.mark.long
def test_in_a_page_names_are_text_and_ids_are_of_one_chart(drawn: tuple[Path, dict[str, str]]) -> None:
    _, charts = drawn
    ids: set[str] = set()
    for name, svg in charts.items():
        root = ElementTree.fromstring(
            svg.replace("<svg", '<svg xmlns:xlink="http://www.w3.org/1999/xlink"', 1)
            if "xmlns:xlink" not in svg
            else svg
        )
        assert root.get("role") == "img"
        # The page says the title; the file has it in the picture.
        assert "Correct, " not in "".join(root.itertext())
        assert root.get("aria-label")
        assert "<script>alert" not in svg
        mine = re.findall(r'\bid="([^"]*)"', svg)
        assert all(id_.startswith(f"{name}-") for id_ in mine)
        assert not ids & set(mine)
        ids |= set(mine)
        used = re.findall(r'(?:url\(|xlink:href=")#([^")]*)', svg)
        assert set(used) <= set(mine)
        assert "#1f2328" not in svg
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in charts["outcomes-full"]
    # A dollar sign is no formula.
    assert "$x 1$" in charts["heat-correct"]


def test_figures_in_words_are_not_rounded_with_the_coordinates(drawn: tuple[Path, dict[str, str]]) -> None:
    assert "p &lt; 0.001" in drawn[1]["forest-full"]


def test_the_title_is_in_the_files_and_not_in_the_page(drawn: tuple[Path, dict[str, str]]) -> None:
    folder, charts = drawn
    title = "Correct, paired by scenario, against base: full checks"
    assert title in (folder / "charts" / "forest-full.svg").read_text(encoding="utf-8")
    assert f">{title}<" not in charts["forest-full"]
    assert f'aria-label="{title}"' in charts["forest-full"]


def test_pictures_are_large_enough_for_a_slide(drawn: tuple[Path, dict[str, str]]) -> None:
    folder, charts = drawn
    for name in charts:
        with Image.open(folder / "charts" / f"{name}.png") as picture:
            # 150 points for an inch; the smallest chart is a heat map of two strategies.
            assert picture.width >= 600, name


def test_a_sweep_is_drawn(tmp_path: Path) -> None:
    names = ["plain", "reader", "reader@misses=0.1", "reader@misses=0.4", "reader@fooled=0.1"]
    right = [[n < 5, n < 9, n < 7, n < 5, n < 9] for n in range(10)]
    found = summarize(grid(tmp_path / "run", right, strategies=names))
    svg = _draw(found, "sweep", tmp_path).svg
    words = "".join(ElementTree.fromstring(svg).itertext())
    assert "calls finished work unfinished" in words
    assert "calls unfinished work finished" in words
    assert words.count("reader") == words.count("plain") == 2


@pytest.mark.long
def test_the_same_figures_give_the_same_files(tmp_path: Path) -> None:
    summary = summarize(grid(tmp_path / "run", [[1, 0], [1, 1]], strategies=["a", "b"]))
    digests = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in ("outcomes-full", "cost-full"):
            _draw(summary, name, tmp_path / folder, KINDS)
        files = sorted((tmp_path / folder).iterdir())
        digests.append([(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files])
    assert digests[0] == digests[1]
    assert len(digests[0]) == 6


def test_every_outcome_has_a_group() -> None:
    endings = ("done", "partial", "escalated", "limit", "error", "never")
    truths = ("complete", "reachable", "spoiled", "stuck", "incomplete")
    assert {group_of(f"{ending}/{truth}") for ending in endings for truth in truths} == set(GROUPS)


points = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12)


@given(points)
def test_pareto(found: list[tuple[int, int]]) -> None:
    line = pareto([(float(x), float(y)) for x, y in found])
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(line))
    for cost, value in found:
        assert any(x <= cost and y >= value for x, y in line)


@pytest.mark.long
def test_pictures_that_are_not_asked_for_are_no_leftovers(tmp_path: Path) -> None:
    summary = summarize(grid(tmp_path / "run", [[1, 0], [1, 1]], strategies=["a", "b"]))
    draw_charts(summary, tmp_path, kinds=("svg", "png"))
    assert list(tmp_path.glob("*.png"))
    draw_charts(summary, tmp_path)
    assert {file.suffix for file in tmp_path.iterdir() if file.is_file()} == {".svg"}


@given(st.lists(st.tuples(st.floats(20, 480), st.floats(20, 280)), min_size=1, max_size=12, unique=True))
def test_names_stand_free_beside_their_points(points: list[tuple[float, float]]) -> None:
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    marks = list(taken)
    for point in points:
        box = place_label(point, 70, 12, taken, (500, 300))
        assert not any(_overlap(box, other) for other in taken[len(marks) :])
        assert box[0] >= 0
        assert box[3] <= 300
        taken.append(box)


def test_what_counted_as_correct_adds_up_with_the_table(tmp_path: Path) -> None:
    rows = [row(0, 0, 0), row(1, 1, 0, ending="escalated", truth="stuck", tp=0), row(2, 2, 0, **FALSE_DONE)]
    found = summarize(made_run(tmp_path, recipe([entry(f"s{n}") for n in range(3)], ["a"]), rows))
    whole = next(line for line in found["rows"] if line["checks"] == "full")
    assert whole["correct_outcomes"] == {"done/complete": 1.0, "escalated/stuck": 1.0}
    (tmp_path / "charts").mkdir()
    words = "".join(ElementTree.fromstring(_draw(found, "outcomes-full", tmp_path / "charts").svg).itertext())
    assert "2 of 3" in words
    assert "counted as correct" in words


@given(st.lists(st.floats(0, 100), min_size=1, max_size=19))
def test_labels_are_pushed_apart(values: list[float]) -> None:
    ordered = sorted(values, reverse=True)
    found = spread(ordered, 4.4, 0.0, 100.0)
    assert len(found) == len(ordered)
    assert all(a - b >= 4.4 - 1e-9 for a, b in pairwise(found))


def test_readable() -> None:
    assert readable_on("#000000") == "#ffffff"
    assert readable_on("#ffffff") == readable_on(GREEN) == readable_on(RED) == "#000000"
