"""The league's figures, tables and page, from made-up rows and from a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.cli.harness_guarantees import with_events
from evalkit.cli.harness_league import DOCUMENTED, all_of_the_league, make_league
from evalkit.core.toml import toml_of
from evalkit.harnesses.find import SHIPPED, shipped
from evalkit.harnesses.manifest import Harness
from evalkit.reports.harnesses.event_table import Lived
from evalkit.reports.harnesses.league.document import (
    events_of,
    in_the_field,
    league_markdown,
    library_parts,
    library_rows,
    who_played,
)
from evalkit.reports.harnesses.league.faults import Mending, faults, mendings
from evalkit.reports.harnesses.league.figures import (
    REFERENCE,
    Behaviour,
    League,
    LeagueError,
    Life,
    Result,
    Row,
    common,
    keep_league,
    kept_league,
    merged,
    order,
    played_again,
    row_of,
)
from evalkit.reports.harnesses.league.files import write_league
from evalkit.reports.harnesses.league.page import league_page
from evalkit.runs.store import Store
from evalkit.scenarios.loader import load_file

RIGHT, WRONG = (
    Result("done/complete", True, "x.y.Stop", 6),
    Result("done/reachable", False, "stop", 4, "false_done"),
)


def row(library: dict[str, Result] | None = None, **behaviours: Result) -> Row:
    return Row(
        "2026-01-02",
        "0",
        "a loop",
        "Chat Completions",
        False,
        ("lib==1",),
        "none",
        "harnesses/a",
        behaviours,
        library or {},
    )


LEAGUE = League(
    (
        Behaviour("plain", "It ends.", "That is right.", "https://example.invalid/docs"),
        Behaviour("paused", "It pauses.", "Go on."),
    ),
    {
        "narrow": row(plain=RIGHT, paused=Result(why="no label")),
        "wide": row(
            {"late": WRONG, "words": RIGHT},
            plain=WRONG,
            paused=Result("never/reachable", False, "", 9, "over_continuation"),
        ),
        "wide:strict": row({"late": RIGHT, "words": Result(why="no notion")}, plain=RIGHT, paused=RIGHT),
        REFERENCE: row(plain=RIGHT, paused=RIGHT),
    },
    {"late": "partial_completion", "words": "user_turns"},
)


def test_rows_are_ordered_by_what_all_can_be_shown_and_the_reference_stands_apart() -> None:
    # By shares of what each was shown, narrow (1 of 1) would stand level with wide:strict (2 of 2).
    assert common(each.behaviours for each in LEAGUE.rows.values()) == {"plain"}
    assert order(LEAGUE) == ["narrow", "wide:strict", "wide"]
    text = league_markdown(LEAGUE)
    assert "| narrow | Chat Completions | 1 of 1 | 1 of 1 | **done/complete**<br>Stop | · |" in text
    assert "| wide | Chat Completions | 0 of 1 | 0 of 2 | done/reachable<br>stop | never/reachable |" in text
    assert text.index(f"| {REFERENCE} |") > text.index("| wide |")


def test_what_happens_in_the_field_counts_the_harnesses_without_the_reference() -> None:
    assert in_the_field(LEAGUE, "plain") == "2 of 3 are correct; 1 called done, was not."
    assert in_the_field(LEAGUE, "paused") == "1 of 2 are correct; 1 never ended."
    assert (
        in_the_field(msgspec.structs.replace(LEAGUE, rows={}), "plain")
        == "None of these harnesses can be shown it."
    )


def test_the_library_is_in_two_tables_of_which_one_is_the_whole_life() -> None:
    families = {**LEAGUE.families, "never": "approvals"}
    parts = {
        title: held for title, _, held in library_parts(msgspec.structs.replace(LEAGUE, families=families))
    }
    # Nobody was played on approvals: no column of nothing.
    assert parts == {
        "The library by family": ["partial_completion"],
        "The whole life: limits, helpers, effects": ["user_turns"],
    }
    more = msgspec.structs.replace(LEAGUE, families=families)
    assert "it takes no notion of anything. Nobody was played on approvals." in league_markdown(more)
    alone = Life("2026-01-02", "0", (lived("wide", "wide:session", "never", "approve"),))
    assert "Nobody was played" not in league_markdown(msgspec.structs.replace(more, lives={"wide": alone}))
    assert library_rows(LEAGUE, ["partial_completion"]) == [
        ("wide:strict", [(1, 1)], (1, 1)),
        ("wide", [(0, 1)], (0, 1)),
    ]
    # Nobody but wide has words: nothing is common.
    assert library_rows(LEAGUE, ["user_turns"]) == [
        ("wide:strict", [(0, 0)], (0, 0)),
        ("wide", [(1, 1)], (0, 0)),
    ]


def lived(framework: str, player: str, scenario: str, event: str, *wrong: str) -> Lived:
    return Lived(framework, player, scenario, (event,), wrong=wrong)


LIVES = msgspec.structs.replace(
    LEAGUE,
    lives={
        "worker": Life("2026-01-02", "0", (lived("worker", "worker", "power-cut", "crash"),)),
        "wide": Life(
            "2026-01-03",
            "0",
            (
                lived("wide", "wide:session", "power-cut", "crash", "spoiled"),
                lived("wide", "wide:session", "late-word", "user (ended)"),
            ),
        ),
    },
)


def test_what_happens_is_by_framework_and_the_worker_stands_apart() -> None:
    events, rows = events_of(LIVES)
    assert events == ["user (ended)", "crash"]
    assert list(rows.items()) == [("wide", ["1 of 1", "0 of 1, spoiled 1"]), ("worker", ["–", "1 of 1"])]
    text = league_markdown(LIVES)
    assert "| wide | 1 of 1 | 0 of 1, spoiled 1 |" in text
    assert "Measured on 2026-01-02 with evalkit 0, on 2026-01-03 with evalkit 0." in text
    page = league_page(LIVES)
    assert "<code>evalkit harnesses run wide:session power-cut</code>" in page
    assert page.index('<td data-family="crash">0 of 1, spoiled 1</td>') < page.index(">worker</th>")
    # Nothing of it is said where nobody was played.
    assert 'id="life"' not in league_page(LEAGUE)
    assert "what happens" not in league_markdown(LEAGUE)


def test_a_life_of_which_a_part_is_played_again_keeps_the_rest(tmp_path: Path) -> None:
    keep_league(LIVES, tmp_path)
    assert kept_league(tmp_path) == LIVES
    new = Life("2026-02-01", "1", (lived("wide", "wide:session", "power-cut", "crash"),))
    again = played_again(LIVES.lives["wide"], new)
    assert (again.date, again.evalkit) == ("2026-02-01", "1")
    assert [(each.scenario, each.wrong) for each in again.lived] == [("late-word", ()), ("power-cut", ())]
    both = merged(LIVES, League(LEAGUE.behaviours, {}, {}, {"wide": again}))
    assert both.lives == {**LIVES.lives, "wide": again}
    assert both.rows == LIVES.rows


def test_which_rows_were_not_played_on_the_library_is_said() -> None:
    assert who_played(LEAGUE) == f"2 of 4 rows were; not {REFERENCE}, narrow."
    whole = {name: row({"late": RIGHT}, plain=RIGHT) for name in LEAGUE.rows}
    assert who_played(msgspec.structs.replace(LEAGUE, rows=whole)) == "Every row was played on it."


def test_the_costliest_faults_come_with_a_command_and_what_mends_them() -> None:
    found = faults(LEAGUE, "wide")
    assert [(fault.scenario, fault.mended) for fault in found] == [
        ("late", ("wide:strict",)),
        ("plain", ("wide:strict",)),
        ("paused", ("wide:strict",)),
    ]
    assert found[0].command == "evalkit harnesses run wide late"
    assert faults(LEAGUE, "narrow") == []


def test_what_a_variant_mends_is_counted_over_all_that_both_played() -> None:
    assert mendings(LEAGUE, "wide") == [Mending("wide:strict", ("plain", "paused", "late"), 3, ())]
    assert "wide:strict gets right 3 of the 3 that are wrong: `evalkit harnesses run wide:strict plain`" in (
        league_markdown(LEAGUE)
    )
    worse = row(plain=RIGHT, paused=WRONG)
    api = msgspec.structs.replace(worse, api="OpenAI Responses")
    both = {
        "a": row(plain=WRONG, paused=RIGHT),
        "a:half": worse,
        "a:responses": api,
        "a:none": row(plain=WRONG),
    }
    league = msgspec.structs.replace(LEAGUE, rows=both)
    assert mendings(league, "a") == [Mending("a:half", ("plain",), 1, ("paused",))]
    assert "1 of the 1 that are wrong, and wrong 1 that are right without it" in league_markdown(league)
    assert "evalkit harnesses run a:half plain" in league_page(league)


def test_a_row_that_is_played_again_leaves_the_others(tmp_path: Path) -> None:
    write_league(LEAGUE, tmp_path)
    kept = kept_league(tmp_path)
    assert kept == LEAGUE
    again = League(LEAGUE.behaviours, {"narrow": row(plain=WRONG)})
    both = merged(kept, again)
    assert set(both.rows) == set(LEAGUE.rows)
    assert both.rows["narrow"].behaviours["plain"] == WRONG
    assert both.rows["wide"] == LEAGUE.rows["wide"]
    (tmp_path / "league.json").write_text('{"date": "2026-01-02"}')
    with pytest.raises(LeagueError, match="is no league of this version"):
        kept_league(tmp_path)


def test_the_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert write_league(LEAGUE, tmp_path) == []
    assert {file.name for file in tmp_path.iterdir()} == {
        "README.md",
        "league.json",
        "heat.svg",
        "index.html",
    }
    again = (tmp_path / "heat.svg").read_bytes()
    write_league(LEAGUE, tmp_path)
    assert (tmp_path / "heat.svg").read_bytes() == again
    assert b"never ended" in again
    assert "](heat.svg)" in (tmp_path / "README.md").read_text()


def test_without_charts_nothing_names_a_heat_map_and_no_old_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "heat.svg").write_text("of an earlier league")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (note,) = write_league(LEAGUE, tmp_path)
    assert "matplotlib" in note
    assert not (tmp_path / "heat.svg").exists()
    assert "heat.svg" not in (tmp_path / "README.md").read_text()


def test_a_transcript_is_kept_once_and_a_row_is_a_line(tmp_path: Path) -> None:
    told = Result("done/complete", True, "stop", 6, transcript="  1  end_turn: \u00fc\n  2  end_turn")
    rows = {name: row({"late": WRONG}, plain=told, paused=told) for name in ("a", "b")}
    league = msgspec.structs.replace(LEAGUE, rows=rows)
    keep_league(league, tmp_path)
    assert kept_league(tmp_path) == league
    lines = (tmp_path / "league.json").read_text(encoding="utf-8").splitlines()
    assert [line[:4] for line in lines[1:]] == ['"a":', '"b":']
    assert sum(line.count("end_turn: \u00fc") for line in lines) == 1
    (tmp_path / "league.json").write_text("\n".join(lines).replace('"transcript":"0"', '"transcript":"7"'))
    with pytest.raises(LeagueError, match="is no league of this version"):
        kept_league(tmp_path)


def test_the_page_has_each_cells_transcript_once_and_loads_nothing() -> None:
    shown = Result("done/complete", True, "stop", 6, transcript="  1  end_turn\n       text: <b>done</b>")
    rows = {name: row(plain=shown, paused=shown) for name in ("a", "b")}
    page = league_page(msgspec.structs.replace(LEAGUE, rows=rows))
    (transcripts,) = (part.split("</script>")[0] for part in page.split('id="transcripts">')[1:])
    assert json.loads(transcripts) == [shown.transcript]
    assert page.count('data-place="0"') == 4
    assert "<b>done</b>" not in page
    assert not [part for part in ("src=", "<link", "@import", "fetch(") if part in page]


def test_each_behaviour_says_what_is_documented_of_it() -> None:
    documented: dict[str, Any] = toml_of(DOCUMENTED.read_bytes())
    assert list(documented) == [scenario.name for scenario in load_file(SHIPPED / "behaviours.yaml")]


def test_each_shipped_harness_says_what_caps_it_has() -> None:
    assert [name for name, harness in shipped().items() if not harness.caps] == []


@pytest.fixture
def played(tmp_path: Path) -> tuple[Path, list[str]]:
    folder = tmp_path / "l"
    return folder, ["harnesses", "league", "--harness", REFERENCE, "--no-library", "--out", str(folder)]


def interrupts(at: str) -> property:
    """The versions of a harness, whose telling is interrupted at one."""

    def pins(harness: Harness) -> list[str]:
        if harness.name == at:
            raise KeyboardInterrupt
        return []

    return property(pins)


@pytest.mark.long
def test_a_league_of_one_that_needs_no_package(
    played: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, arguments = played
    runs = folder / "runs" / "behaviours" / REFERENCE
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    text = (folder / "README.md").read_text()
    assert f"| {REFERENCE} | Anthropic Messages | " in text
    assert "escalated/reachable<br>to a person: refusal" in text
    league = kept_league(folder)
    assert league is not None
    mine = league.rows[REFERENCE].behaviours
    assert mine["paused"].correct
    assert "list_items" in mine["paused"].transcript
    # It offers no server tool, so an API would not answer with one.
    assert mine["paused-in-a-server-tool"].why == "such an answer cannot come: no server tool was offered"
    store = Store.open(runs, write=False)
    as_library = row_of(
        store, store, summary="", api="", streamed=False, versions=(), caps="", folder=""
    ).library
    store.close()
    # Of what is right only that it is, of what is wrong what is told of it, of what cannot come nothing.
    assert as_library["paused"] == Result(correct=True)
    refused = mine["refusal"]
    assert as_library["refusal"] == Result(refused.outcome, False, "", refused.turns, refused.damage)
    assert refused.native != ""
    assert "paused-in-a-server-tool" not in as_library
    (folder / "league.json").unlink()
    with monkeypatch.context() as patched:
        patched.setattr(Harness, "pins", interrupts("openai-loop"))
        patched.setattr("evalkit.cli.harness_league.set_up_all", lambda names: None)
        patched.setattr("evalkit.cli.harness_league.kept_run", lambda *_: Store.open(runs, write=False))
        with pytest.raises(KeyboardInterrupt):
            make_league((REFERENCE, "openai-loop"), False, 2, folder)
    after = kept_league(folder)
    assert after is not None
    assert list(after.rows) == [REFERENCE]
    others = {**league.rows, "other": row(plain=RIGHT)}
    keep_league(msgspec.structs.replace(league, rows=others), folder)
    make_league((REFERENCE,), False, 2, folder)
    again = kept_league(folder)
    assert again is not None
    assert set(again.rows) == {REFERENCE, "other"}
    assert again.rows[REFERENCE].behaviours == mine

    def meanwhile(*_: object) -> Store:
        rows = {**again.rows, "later": row(plain=RIGHT)}
        keep_league(msgspec.structs.replace(again, rows=rows), folder)
        return Store.open(runs, write=False)

    monkeypatch.setattr("evalkit.cli.harness_league.kept_run", meanwhile)
    make_league((REFERENCE,), False, 2, folder)
    both = kept_league(folder)
    assert both is not None
    assert set(both.rows) == {REFERENCE, "other", "later"}


SOME = ("migration-reports-at-four-of-six", "child-translated")


@pytest.mark.long
def test_a_part_of_the_library_is_played_again_and_the_rest_of_the_row_stays(tmp_path: Path) -> None:
    given = ["harnesses", "league", "--harness", REFERENCE, "--out", str(tmp_path)]
    first = CliRunner().invoke(main, [*given, "--only", SOME[0]])
    assert first.exit_code == 2
    assert first.stderr.startswith(f"evalkit: --only: {REFERENCE} has no row yet; play it once without\n")
    old = row({SOME[0]: WRONG, "late": RIGHT}, plain=RIGHT)
    keep_league(msgspec.structs.replace(LEAGUE, rows={REFERENCE: old, "other": old}), tmp_path)
    result = CliRunner().invoke(main, [*given, "--only", SOME[0], "--only", SOME[1]])
    assert result.exit_code == 0, result.output
    league = kept_league(tmp_path)
    assert league is not None
    assert league.rows["other"] == old
    # Child agents are a family of the league's own.
    assert [league.families[name] for name in SOME] == ["partial_completion", "delegation"]
    mine = league.rows[REFERENCE]
    assert mine.library == {"late": RIGHT, **dict.fromkeys(SOME, Result(correct=True))}
    assert msgspec.structs.replace(mine, library=old.library) == old
    # A run of a part is not where the whole one would be gone on with.
    assert not (tmp_path / "runs" / "library").exists()
    beside = CliRunner().invoke(main, [*given, "--no-library", "--only", SOME[0]])
    assert beside.exit_code == 2
    assert "--only names scenarios of the library" in beside.stderr


def test_a_variant_for_events_makes_no_row_and_plays_its_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def life(names: list[str], eventful: list[Any], workers: int | None, runs: Path) -> list[Lived]:
        asked.append(names)
        assert runs == tmp_path / "runs" / "life"
        assert all(scenario.events for scenario in eventful)
        return [lived(names[0].partition(":")[0], names[0], eventful[0].name, "crash")]

    monkeypatch.setattr("evalkit.cli.harness_league.lived_with", life)
    monkeypatch.setattr("evalkit.cli.harness_league.set_up_all", lambda names: None)
    monkeypatch.setattr("evalkit.cli.harness_league.kept_run", None)
    keep_league(LEAGUE, tmp_path)
    make_league(("google-adk:approval", "worker"), True, 2, tmp_path)
    assert [names[0] for names in asked] == ["worker", "google-adk:session"]
    assert set(asked[1]) == {name for name in with_events() if name.startswith("google-adk:")}
    league = kept_league(tmp_path)
    assert league is not None
    assert (league.rows, set(league.lives)) == (LEAGUE.rows, {"worker", "google-adk"})
    assert set(all_of_the_league()) == {*shipped(), "worker"}
