"""The programs of docs/harnesses.md, as they stand there, do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalkit.harnesses.manifest import Harness, parse_manifest
from tests.harnesses.episodes import played
from tests.harnesses.test_approvals import MOORINGS, ONE_OF_EACH
from tests.harnesses.test_whole_life import CRASH, LATER

PAGE = (Path(__file__).parents[2] / "docs" / "harnesses.md").read_text(encoding="utf-8")


def documented(folder: Path, name: str, **events: object) -> Harness:
    found = re.search(rf"```python\n# {re.escape(name)}\n(.*?)```", PAGE, re.S)
    assert found is not None
    (folder / name).write_text(found[1])
    document = {"name": name[:-3], "summary": "", "run": ["{python}", name], "dialect": "anthropic"}
    return Harness(parse_manifest({**document, "resident": True, "events": events}, "harness.toml"), folder)


def test_it_takes_the_next_message(tmp_path: Path) -> None:
    episode, _ = played(documented(tmp_path, "talks.py", user=["ended"]), 30.0, LATER)
    assert (episode.outcome, episode.correct, episode.undelivered_words) == ("done/complete", True, 0)


@pytest.mark.parametrize("moment", ["answered", "request"])
def test_it_goes_on_after_a_kill(tmp_path: Path, moment: str) -> None:
    episode, _ = played(documented(tmp_path, "keeps.py", crash=True), 30.0, CRASH.replace("MOMENT", moment))
    assert (episode.outcome, episode.correct, episode.not_exercised) == ("done/complete", True, False)


def test_it_asks_a_person(tmp_path: Path) -> None:
    text = MOORINGS.replace("APPROVE", ONE_OF_EACH)
    episode, _ = played(documented(tmp_path, "asks.py", approve="callback"), 30.0, text)
    assert (episode.outcome, episode.correct, episode.unapproved_calls) == ("done/complete", True, 0)
