"""The programs of docs/harnesses.md, as they stand there, do what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.cli.harnesses import EVENTS
from evalkit.harnesses.manifest import Harness, parse_manifest
from evalkit.scenarios.loader import load_file
from evalkit.scoring.soundness import check_scenario
from tests.harnesses.episodes import played
from tests.harnesses.test_approvals import MOORINGS, ONE_OF_EACH
from tests.harnesses.test_child_agents import TWO
from tests.harnesses.test_compaction import SEALS
from tests.harnesses.test_whole_life import CRASH, LATER, WORDS

pytestmark = pytest.mark.long

PAGE = (Path(__file__).parents[2] / "docs" / "harnesses.md").read_text(encoding="utf-8")


SIDE = [{"name": "summary", "kind": "compact", "contains": "Summarise what was done"}]
#: The Node program does all of it.
EVERYTHING = {"user": ["ended", "in_tool"], "crash": True, "approve": "callback", "compact": "usage:60000"}


def documented(folder: Path, name: str, **events: object) -> Harness:
    found = re.search(rf"```\w+\n(?:#|//) {re.escape(name)}\n(.*?)```", PAGE, re.S)
    assert found is not None
    (folder / name).write_text(found[1])
    runs = "{python}" if name.endswith(".py") else "{node}"
    document = {"name": "page", "summary": "", "run": [runs, name], "dialect": "anthropic", "side": SIDE}
    return Harness(parse_manifest({**document, "resident": True, "events": events}, "harness.toml"), folder)


@pytest.mark.parametrize(("name", "events"), [("talks.py", {"user": ["ended"]}), ("all.mjs", EVERYTHING)])
def test_it_takes_the_next_message(tmp_path: Path, name: str, events: dict[str, Any]) -> None:
    episode, _ = played(documented(tmp_path, name, **events), 30.0, LATER)
    assert (episode.outcome, episode.correct, episode.undelivered_words) == ("done/complete", True, 0)


@pytest.mark.parametrize(("name", "events"), [("keeps.py", {"crash": True}), ("all.mjs", EVERYTHING)])
@pytest.mark.parametrize("moment", ["tool, before: true", "request"])
def test_it_goes_on_after_a_kill(tmp_path: Path, moment: str, name: str, events: dict[str, Any]) -> None:
    text = CRASH.replace("MOMENT", moment)
    episode, _ = played(documented(tmp_path, name, **events), 30.0, text)
    assert (episode.outcome, episode.correct, episode.not_exercised) == ("done/complete", True, False)


@pytest.mark.parametrize(("name", "events"), [("asks.py", {"approve": "callback"}), ("all.mjs", EVERYTHING)])
def test_it_asks_a_person(tmp_path: Path, name: str, events: dict[str, Any]) -> None:
    text = MOORINGS.replace("APPROVE", ONE_OF_EACH)
    episode, _ = played(documented(tmp_path, name, **events), 30.0, text)
    assert (episode.outcome, episode.correct, episode.unapproved_calls) == ("done/complete", True, 0)


@pytest.mark.parametrize(
    ("name", "events"), [("compacts.py", {"compact": "usage:60000"}), ("all.mjs", EVERYTHING)]
)
@pytest.mark.parametrize(("what", "twice"), [("true", 0), ("{forgets: [seal-ash]}", 1)])
def test_it_compacts(tmp_path: Path, name: str, events: dict[str, Any], what: str, twice: int) -> None:
    episode, _ = played(documented(tmp_path, name, **events), 30.0, SEALS.replace("WHAT", what))
    assert (episode.outcome, episode.not_exercised) == ("done/complete", False)
    assert (episode.duplicate_effects, episode.correct) == (twice, not twice)


def test_it_has_child_agents_of_its_own(tmp_path: Path) -> None:
    child = [{"name": "helper", "kind": "child", "contains": "You are the helper"}]
    document = {"name": "page", "summary": "", "run": ["{python}", "delegates.py"], "dialect": "anthropic"}
    documented(tmp_path, "delegates.py")
    harness = Harness(parse_manifest({**document, "resident": True, "side": child}, "harness.toml"), tmp_path)
    episode, kept = played(harness, 30.0, TWO)
    assert (episode.outcome, episode.correct, episode.helper_turns) == ("done/complete", True, 4)
    assert kept.seen["child agents' requests"] == {"anna": 2, "bert": 2}


def test_it_hears_words_while_it_works(tmp_path: Path) -> None:
    text = WORDS.replace("WHEN", "in_tool")
    episode, _ = played(documented(tmp_path, "all.mjs", **EVERYTHING), 30.0, text)
    assert (episode.outcome, episode.correct, episode.undelivered_words) == ("done/complete", True, 0)


def test_each_event_that_a_manifest_claims_is_tried(tmp_path: Path) -> None:
    documented(tmp_path, "asks.py")
    manifest = 'name = "page"\nsummary = ""\nrun = ["{python}", "asks.py"]\ndialect = "anthropic"\n[events]\n'
    (tmp_path / "harness.toml").write_text(f'{manifest}approve = "callback"\nuser = ["in_tool"]\n')
    said = CliRunner().invoke(main, ["harnesses", "check", str(tmp_path)])
    lines = [line.removeprefix(f"{tmp_path}: ") for line in said.output.splitlines()]
    assert lines[:2] == [
        "done/complete (end_turn) in 6 turns",
        "words-while-a-tool-runs: done/complete; undelivered words 1; see: evalkit harnesses run "
        f"{tmp_path} words-while-a-tool-runs",
    ]
    assert lines[2:] == [
        "one-allowed-and-one-refused: done/complete; decisions of a person 2; closed calls 1",
        "each-decision-twice: done/complete; decisions of a person 2; closed calls 1",
        "another-in-its-place: done/complete; decisions of a person 2",
    ]
    # It was not heard while it worked: what the manifest claims is not so.
    assert said.exit_code == 1


def test_child_agents_that_a_manifest_claims_are_tried(tmp_path: Path) -> None:
    documented(tmp_path, "delegates.py")
    manifest = 'name = "page"\nsummary = ""\nrun = ["{python}", "delegates.py"]\ndialect = "anthropic"\n'
    for words, said, code in (
        ("You are the helper", "child agents' requests ringer 3", 0),
        ("You are somebody", "no request of a child agent", 1),
    ):
        rule = f'[[side]]\nname = "helper"\nkind = "child"\ncontains = "{words}"\n'
        (tmp_path / "harness.toml").write_text(manifest + rule)
        result = CliRunner().invoke(main, ["harnesses", "check", str(tmp_path)])
        lines = [line.removeprefix(f"{tmp_path}: ") for line in result.output.splitlines()]
        assert lines[1].startswith("a-child-agent: done/complete; ")
        assert said in lines[1]
        assert result.exit_code == code


def test_its_scenarios_are_sound() -> None:
    scenarios = load_file(EVENTS)
    assert [scenario.name for scenario in scenarios if check_scenario(scenario, {})] == []
    happens = {event.partition(" ")[0] for scenario in scenarios for event in scenario.events}
    assert happens == {"user", "crash", "approve", "compact"}
