"""`run` and `baseline` are never green over nothing: exit 1, with the first reasons, in the report too."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from evalkit.cli import main
from tests.helpers import document

PLAIN = [{"work": "rest"}, {"say": "All items have been done.", "claim": "done"}]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    documents = [document(PLAIN, scenario=name) for name in ("one", "two")]
    (tmp_path / "s.yaml").write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def void(number: int, note: str) -> None:
    """Make so many episodes of the run void, as a full disk leaves them."""
    with sqlite3.connect("r/episodes.sqlite") as base:
        base.execute("update episode set ending = 'void', note = ? where cell < ?", (note, number))


@pytest.mark.long
@pytest.mark.parametrize(("number", "exit_code"), [(0, 0), (1, 0), (2, 1)])
def test_a_baseline_of_more_than_one_percent_void_is_none(number: int, exit_code: int) -> None:
    suite = [document(PLAIN, scenario=f"s{place}") for place in range(100)]
    Path("s.yaml").write_text(yaml.safe_dump_all(suite, sort_keys=False))
    assert call("run", "s.yaml", "-s", "gate", "--out", "r", "--no-charts").exit_code == 0
    void(number, "OSError: [Errno 28] No space left on device")
    result = call("baseline", "r")
    assert result.exit_code == exit_code
    said = "no evaluation: 2 of 100 episodes are void, above 1 %: OSError: [Errno 28] No space left"
    assert (said in result.output) == bool(exit_code)
    assert call("report", "r", "--no-charts").exit_code == 0
    assert ("No space left on device (" in Path("r/report.md").read_text()) == bool(number)


def failing(*contender: str) -> Result:
    return call("run", "s.yaml", *contender, "--out", "r", "--no-charts")


#: How each contender breaks: what is written for it, how it is named, its name and the reason.
BROKEN = {
    "a strategy": (
        "from evalkit import Strategy, conditions as c\n"
        "def boom(view): raise KeyError('gone')\n"
        "broken = Strategy(done_when=c.when(boom))\n",
        ("-s", "broken:broken"),
        "broken:broken failed by itself in all of its 2 episodes: KeyError: 'gone'",
    ),
    "a program": (
        "raise KeyError('gone')\n",
        ("--harness", "broken.py"),
        "broken.py failed by itself in all of its 2 episodes: exit:1: KeyError: 'gone'",
    ),
    "a silent program": (
        "raise SystemExit(3)\n",
        ("--harness", "broken.py"),
        "broken.py failed by itself in all of its 2 episodes: exit:3: it wrote nothing",
    ),
    "a function": (
        "def solve(episode): raise KeyError('gone')\n",
        ("--harness", "broken:solve"),
        "broken:solve failed by itself in all of its 2 episodes: ",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_contender_that_broke_in_every_episode_evaluated_nothing(kind: str) -> None:
    source, contender, reason = BROKEN[kind]
    Path("broken.py").write_text(source)
    result = failing("-s", "gate", *contender)
    assert (result.exit_code, f"no evaluation: {reason}" in result.output) == (1, True), result.output
    assert (
        f"{reason.partition(' failed')[0]} failed by itself in 2 episodes, first in one: "
        in Path("r/report.md").read_text()
    )
    baseline = call("baseline", "r")
    assert (baseline.exit_code, f"no evaluation: {reason}" in baseline.output) == (1, True)


def test_one_that_broke_once_is_told_and_judged() -> None:
    Path("half_broken.py").write_text(
        "from evalkit import Strategy, conditions as c\n"
        "def boom(view):\n"
        "    if 'two' in view.task.prompt: raise KeyError('gone')\n"
        "    return c.acceptance()(view)\n"
        "broken = Strategy(done_when=c.when(boom))\n"
    )
    two = document(PLAIN, scenario="two", task={"prompt": "Do two.", "done_when": "Done."})
    Path("s.yaml").write_text(yaml.safe_dump_all([document(PLAIN, scenario="one"), two], sort_keys=False))
    result = failing("-s", "half_broken:broken")
    assert (result.exit_code, "no evaluation" in result.output) == (0, False), result.output
    said = "half_broken:broken failed by itself in an episode, first in two: KeyError: 'gone'"
    assert said in " ".join(result.output.split())
