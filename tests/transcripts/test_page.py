"""The page of a judgement: one file that holds all runs, what it may not hold, and what its script reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.judging.page import MOST
from evalkit.transcripts.judging.run import Judgement, judge_paths
from tests.transcripts import files


def page(tmp_path: Path, *values: Any) -> tuple[str, list[dict[str, Any]]]:
    """The text of a page over values, and the runs in it."""
    path = files.write_lines(tmp_path / "runs.jsonl", list(values))
    strategies = [PRESETS[name].strategy for name in ("silence", "verifier_claim", "gate")]
    judge_paths([path], Judgement(tmp_path / "out", strategies, page=True))
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return text, json.loads(found[1])


def test_a_run_opens_at_its_decision_with_what_strategies_decided_there(tmp_path: Path) -> None:
    text, runs = page(tmp_path, {"messages": files.chat(), "complete": False})
    (run,) = runs
    assert (run["ending"], run["label"], run["claim"], run["at"]) == ("done", "incomplete", "done", 4)
    assert [turn["n"] for turn in run["scene"]] == [1, 2, 3, 4]
    assert run["scene"][-1]["text"] == files.CLAIM
    assert run["scene"][2]["calls"][0][0] == "update_record"
    assert run["stops"] == {
        "silence": ["done", 4, 0, "+", "the turn has no calls"],
        "verifier_claim": ["done", 4, 0, "+", "claims done"],
    }
    assert '"1 of 1 labelled runs were called done and were not' in text
    assert "https://" not in text
    assert "http://" not in text


def test_words_cannot_leave_their_place_and_secrets_are_not_there(tmp_path: Path) -> None:
    key = "ghp_abcdefghij0123456789abcdefghij012345"
    evil = f"</script><script>alert(1)</script><!-- \u2028 {key} bob@mail.example"
    text, runs = page(tmp_path, {"id": "</script>", "messages": files.chat(evil)})
    assert text.count("</script>") == 2
    assert "ghp_abcdefghij" not in text
    assert "bob@mail" not in text
    assert runs[0]["scene"][-1]["text"].startswith("</script><script>alert(1)")


def test_the_page_holds_what_it_can_show(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("evalkit.transcripts.judging.page.MOST", 2)
    text, runs = page(tmp_path, *[{"id": str(n), "messages": files.chat()} for n in range(5)])
    assert len(runs) == 2
    assert "3 more runs are in episodes.csv alone." in text
    assert MOST >= 10_000
