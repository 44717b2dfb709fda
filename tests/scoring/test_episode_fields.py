"""What an episode is, is declared once: everything that shows an episode follows from it."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import pytest

from evalkit.core.tasks import Offered
from evalkit.core.trace import Trace
from evalkit.reports.ci.rules import LIMITED
from evalkit.reports.episodes_csv import write_episodes
from evalkit.runs.store import row_of, void_row
from evalkit.scoring.__main__ import page
from evalkit.scoring.episode_fields import FIGURES, FLAGS, KEPT, MARKS, RATES, SEEN, SPOILERS, Episode
from evalkit.stats.summary import summarize
from tests.helpers import play, scenario
from tests.made_runs import entry, made_run, recipe


@pytest.fixture(scope="module")
def episode() -> Episode:
    return play(
        scenario([{"call": "list_items"}, {"work": "rest"}, {"say": "Done.", "claim": "done"}]), "silence"
    )


def test_the_page_of_figures_is_what_is_declared() -> None:
    assert Path("docs/episodes.md").read_text(encoding="utf-8") == page()


def test_every_figure_has_a_definition_on_one_line() -> None:
    for figure in FIGURES:
        assert figure.says
        assert "\n" not in figure.says
        assert "|" not in figure.says


def test_what_the_trace_counts_is_there(episode: Episode) -> None:
    trace = Trace(Offered())
    for name in SEEN:
        assert getattr(trace, name) == 0
    assert all(not getattr(episode, name) for name in SEEN)


def test_each_figure_is_kept_and_written_under_its_name(episode: Episode, tmp_path: Path) -> None:
    """Every kept figure gets a value of its own and is found again in its own column."""
    values = {
        figure.name: place + 2 if figure.column == "integer" else f"said {place}"
        for place, figure in enumerate(KEPT)
        if figure.name not in ("causes", "stops", "not_exercised")
    }
    told = msgspec.structs.replace(episode, **values, causes=("one", "two"), stops={"end_turn": 3})
    store = made_run(tmp_path, recipe([entry("a")], ["s"]), [row_of(0, 0, 0, 0, told)])
    write_episodes(store, tmp_path / "episodes.csv")
    store.close()
    with (tmp_path / "episodes.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    expected = {name: str(value) for name, value in values.items()}
    expected |= {"causes": "one; two", "stops": "end_turn:3", "not_exercised": "0"}
    assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_is_added_up_and_may_be_limited(flag: str, episode: Episode, tmp_path: Path) -> None:
    assert flag in LIMITED
    assert flag in MARKS
    flagged = msgspec.structs.replace(episode, **{flag: 2})
    rows = [row_of(0, 0, 0, 0, episode), row_of(1, 0, 0, 1, flagged), row_of(2, 0, 0, 2, flagged)]
    store = made_run(tmp_path, recipe([entry("a")], ["s"], seeds=3), rows)
    (row,) = [row for row in summarize(store)["rows"] if (row["family"], row["checks"]) == ("all", "all")]
    store.close()
    if flag == "not_exercised":
        assert (row["episodes"], row[flag]) == (1, 0)
    else:
        assert (row["episodes"], row[flag], row["flagged"]) == (3, 4, {flag: 2})


def test_what_was_not_exercised_is_in_no_base_and_counted(episode: Episode, tmp_path: Path) -> None:
    unseen = msgspec.structs.replace(episode, not_exercised=True, correct=False, false_done=True)
    rows = [row_of(0, 0, 0, 0, episode), row_of(1, 0, 0, 1, unseen), void_row(2, 0, 0, 2, "no room")]
    store = made_run(tmp_path, recipe([entry("a")], ["s"], seeds=3), rows)
    found = summarize(store)
    store.close()
    assert (found["run"]["episodes"], found["run"]["void"], found["run"]["not_exercised"]) == (3, 1, 1)
    for row in found["rows"]:
        assert row["episodes"] == 1
        assert {rate: row[rate]["base"] for rate in RATES if rate != "honest_report"} == dict.fromkeys(
            (rate for rate in RATES if rate != "honest_report"), 1
        )
        assert row["false_done"]["count"] == 0


def test_all_marks_fit_the_bits_of_a_page() -> None:
    """A page reads them as one number of 32 bits; a dishonest report is the last."""
    assert len(MARKS) + 1 < 32


def test_only_what_is_declared_a_spoiler_spoils() -> None:
    assert set(SPOILERS) <= set(MARKS)
    assert "futile_retries" not in SPOILERS
