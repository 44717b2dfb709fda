"""The answer first: what was called done and was not, what would have caught it, at what cost, how surely."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.judging.answer import sentences, table
from evalkit.transcripts.judging.run import Judgement, judge_paths
from evalkit.transcripts.judging.totals import figures_of, read_outcomes
from tests.transcripts import files

NOT_A_CLAIM = "The records alpha and beta were looked at."


def runs(tmp_path: Path, **counts: int) -> Path:
    """Runs by claim and label: ``claims_wrong=2`` are two false dones whose last turn claims done."""
    lines: list[dict[str, Any]] = []
    for name, count in counts.items():
        said, label = name.split("_")
        claim = files.CLAIM if said == "claims" else NOT_A_CLAIM
        for number in range(count):
            complete = {} if label == "unlabelled" else {"complete": label == "right"}
            lines.append({"id": f"{name}{number}", "messages": files.chat(claim), **complete})
    return files.write_lines(tmp_path / "runs.jsonl", lines)


def judged(tmp_path: Path, path: Path, *names: str) -> dict[str, Any]:
    strategies = [PRESETS[name].strategy for name in names or ("silence", "verifier_claim", "gate")]
    return judge_paths([path], Judgement(tmp_path / "out", strategies))


def test_every_row_stands_on_the_same_two_bases(tmp_path: Path) -> None:
    path = runs(tmp_path, claims_wrong=3, silent_wrong=2, claims_right=4, silent_right=1)
    answer = judged(tmp_path, path)["answer"]
    assert answer["false_done"] == {"count": 5, "of_all": 10, "of_dones": 10, "of_failures": 5}
    assert answer["false_claim"] == {"count": 3, "of_all": 10, "of_claims": 7, "of_failures": 5}
    rows = {row[0]: row[1:] for row in table(answer)}
    #               caught, same turn, earlier, cannot say, cost, exact
    assert rows == {
        "verifier_claim": ["2", "3", "0", "0", "1", "all"],
        "silence": ["0", "5", "0", "0", "0", "all"],
    }
    assert answer["silent"] == ["gate"]


def test_the_answer_is_said_in_sentences(tmp_path: Path) -> None:
    path = runs(tmp_path, claims_wrong=3, silent_wrong=2, claims_right=4, silent_right=1, claims_unlabelled=1)
    summary = judged(tmp_path, path)
    why = {"gate": "acceptance: the task's checks need the run's world"}
    said = sentences(summary["answer"], why, summary["claimed"])
    assert said[0].startswith("5 of 10 labelled runs were called done and were not (5 of the 10 called done")
    assert said[1] == (
        "By their last words, 3 of 10 claimed to be done and were not (3 of the 7 that claim it; "
        "3 of the 5 that failed)."
    )
    assert said[2] == (
        "Of these, verifier_claim would have gone on in 2, stopped at the same turn in 3, earlier in 0; "
        "of the 5 that were done and right it would have gone on in 1."
    )
    assert (
        "1 run has no label. 8 of all 11 last turns claim done (“both records have been updated” 8)"
        in said[3]
    )
    assert said[4] == "No word of gate: the task's checks need the run's world."


def test_what_parts_from_its_recording_has_bounds(tmp_path: Path) -> None:
    question = {"role": "assistant", "content": "Which records?"}
    messages = [*files.chat()[:2], question, {"role": "user", "content": "Both."}, *files.chat()[2:]]
    lines = [{"messages": messages, "complete": complete} for complete in (False, False, True)]
    answer = judged(tmp_path, files.write_lines(tmp_path / "a.jsonl", lines))["answer"]
    rows = {row[0]: row[1:] for row in table(answer)}
    # A nudge in place of the question's answer: from there on anything may have come.
    assert rows["verifier_claim"] == ["0 (0–2)", "2", "0", "0", "0 (0–1)", "0 of 3"]
    assert rows["silence"] == ["0", "2", "0", "0", "0", "all"]


def test_conditions_are_added_greedily_by_what_they_add(tmp_path: Path) -> None:
    path = runs(tmp_path, claims_wrong=1, silent_wrong=2, silent_right=1)
    greedy = judged(tmp_path, path)["answer"]["greedy"]
    assert greedy == [{"strategy": "verifier_claim", "adds": 2, "left": 1, "cost": 1}]


def test_unlabelled_runs_on_which_strategies_disagree_come_first(tmp_path: Path) -> None:
    path = runs(tmp_path, claims_unlabelled=2, silent_unlabelled=1)
    answer = judged(tmp_path, path, "silence", "verifier_claim")["answer"]
    assert answer["label_first"][0].endswith("#silent_unlabelled0")
    assert answer["claims"]["done"] == 2


def test_a_run_without_a_turn_has_no_last_turn_and_nothing_to_label(tmp_path: Path) -> None:
    event = {"author": "user", "invocation_id": "e", "content": {"parts": [{"text": "Go."}]}}
    error = {"author": "agent", "invocation_id": "e", "error_code": "RESOURCE_EXHAUSTED"}
    session = {"id": "s", "app_name": "a", "user_id": "u", "events": [event, error]}
    files.write(tmp_path / "adk.json", session)
    said = judged(tmp_path, tmp_path / "adk.json", "silence", "verifier_claim")
    text = " ".join(sentences(said["answer"], {}, said["claimed"]))
    assert "1 run has no label. No run has a model turn." in text
    assert said["answer"]["label_first"] == []


def test_what_to_label_first_can_be_told_apart(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "I look."}]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files.write(tmp_path / name / "log.json", messages)
    said = judged(tmp_path, tmp_path, "silence", "verifier_claim")
    text = " ".join(sentences(said["answer"], {}, said["claimed"]))
    assert "one/log.json, two/log.json" in text


@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[1:])
def test_the_order_of_files_makes_no_difference(tmp_path: Path, order: tuple[int, ...]) -> None:
    for number, counts in enumerate(({"claims_wrong": 2}, {"silent_wrong": 1}, {"claims_right": 2})):
        (tmp_path / f"{number}").mkdir()
        runs(tmp_path / f"{number}", **counts)
    folders = [tmp_path / f"{number}" for number in range(3)]
    strategies = [PRESETS[name].strategy for name in ("silence", "verifier_claim")]
    one = judge_paths(folders, Judgement(tmp_path / "one", strategies))
    other = judge_paths([folders[place] for place in order], Judgement(tmp_path / "other", strategies))
    for part in ("answer", "agreement", "parted", "rows", "claimed"):
        assert one[part] == other[part]
    again = figures_of(read_outcomes(tmp_path / "one" / "episodes.csv")).summary()
    assert again["answer"] == one["answer"]
