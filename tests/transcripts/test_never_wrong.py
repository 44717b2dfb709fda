"""What is not understood is refused or named, never taken for a run that is done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.transcripts.judging.run import Judgement, judge_paths
from evalkit.transcripts.labels import Labels
from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_paths
from evalkit.transcripts.recording import Label, Recording
from tests.transcripts import files, foreign
from tests.transcripts.test_formats import one, shape


def both(path: Path) -> tuple[list[Recording], list[str]]:
    """What a path holds, and what was not read of it."""
    found = list(read_paths([path]))
    runs = [item for item in found if isinstance(item, Recording)]
    return runs, [f"{item.place}: {item.why}" for item in found if isinstance(item, Problem)]


USER = {"role": "user", "content": files.PROMPT}


def test_a_run_without_words_or_calls_is_refused_with_what_was_not_read(tmp_path: Path) -> None:
    strange = {"role": "assistant", "content": [{"type": "utterance", "words": "All done."}]}
    runs, problems = both(files.write(tmp_path / "a.json", [USER, strange, USER, strange]))
    assert not runs
    assert "2 model turns without text, thinking or a call" in problems[0]
    assert "utterance" in problems[0]


def test_a_block_that_nobody_knows_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "I look."}, {"type": "hologram", "data": 1}]
    runs, problems = both(files.write(tmp_path / "a.json", [USER, {"role": "assistant", "content": content}]))
    assert [run.steps[0].turn.text for run in runs] == ["I look."]
    assert problems == ["turn 0: a block that nobody knows: hologram"]


@pytest.mark.parametrize("place", [0, 4, 9])
@pytest.mark.parametrize("lines", [False, True])
def test_one_odd_line_refuses_nothing_and_is_named(tmp_path: Path, place: int, lines: bool) -> None:
    messages: list[Any] = files.chat()
    messages.insert(place, {"usage": {"total": 3}})
    path = (files.write_lines if lines else files.write)(tmp_path / "a.jsonl", messages)
    runs, problems = both(path)
    assert [len(run.steps) for run in runs] == [4]
    assert problems == [f"{'line' if lines else 'message'} {place + 1}: is no message; its fields: usage"]


def test_an_odd_line_of_a_session_is_named(tmp_path: Path) -> None:
    lines = [*foreign.cursor()[:3], {"kind": "heartbeat", "n": 1}, *foreign.cursor()[3:]]
    runs, problems = both(files.write_lines(tmp_path / "a.jsonl", lines))
    assert len(runs) == 1
    assert "kind, n" in problems[0]


def test_messages_of_anthropic_with_their_ids_are_no_items(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    messages = [
        USER,
        {"id": "a", "type": "message", "role": "assistant", "content": [use], "stop_reason": "tool_use"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "seen"}]},
        {
            "id": "b",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "The records a"}],
            "stop_reason": "max_tokens",
        },
    ]
    recording = one(files.write(tmp_path / "a.json", messages))
    assert (recording.format, recording.ending) == ("anthropic-messages", "unknown")
    assert shape(recording) == [(("look",), 1), ((), 0)]


def test_a_shell_call_of_the_responses_api_is_the_clients(tmp_path: Path) -> None:
    items = [
        USER,
        {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "local_shell_call_output", "call_id": "c", "output": "a.txt"},
        *files.responses()[-1:],
    ]
    recording = one(files.write(tmp_path / "a.json", items))
    assert shape(recording) == [(("local_shell",), 1), ((), 0)]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (
            {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"},
            "is one response of the Messages API without its request",
        ),
        ({"object": "chat.completion", "choices": []}, "is one response of the Chat Completions API"),
        ({"error": {"message": "no"}}, "is an error that an API answered"),
        ({"type": "response.created", "response": {}}, "is the stream of one response"),
        ({"sessionId": "s", "payload": {}, "spanId": 1}, 'one run a line as {"messages"'),
        ({"traceId": "t", "observation": 1, "startTime": 2}, "nearest is langfuse"),
    ],
)
def test_a_refusal_says_what_it_is_and_what_always_works(tmp_path: Path, value: Any, why: str) -> None:
    runs, problems = both(files.write(tmp_path / "a.json", value))
    assert not runs
    assert why in problems[0]


def test_a_file_named_twice_counts_once_and_reports_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    path = files.write(tmp_path / "runs" / "a.json", files.chat())
    judge_paths([tmp_path], Judgement(tmp_path / "reports" / "one", []))
    (tmp_path / "link.json").symlink_to(path)
    summary = judge_paths([tmp_path, path], Judgement(tmp_path / "reports" / "two", []))
    assert summary["run"]["recordings"] == 1
    assert "2 files named twice counted once" in summary["notes"]
    assert "1 folder of evalkit's own reports left out" in summary["notes"]
    assert not summary["problems"]


def test_child_agents_are_runs_below_their_parent(tmp_path: Path) -> None:
    runs, _ = both(files.write_lines(tmp_path / "s.jsonl", files.claude_code()))
    parent, child = runs
    assert child.parent == parent.id
    assert "Everything" in child.steps[-1].turn.text
    # A child's own file is a run.
    lines = [line for line in files.claude_code() if line.get("isSidechain")]
    (alone,) = both(files.write_lines(tmp_path / "agent-1.jsonl", lines))[0]
    assert (alone.parent, alone.ending) == ("", "done")
    summary = judge_paths([tmp_path], Judgement(tmp_path / "out", []))
    assert summary["run"]["recordings"] == 2


def test_a_score_above_one_is_a_label_only_where_somebody_says_from_where(tmp_path: Path) -> None:
    lines = [{"id": f"r{score}", "messages": files.chat(), "score": score} for score in (1, 0.5, 7.5, 3)]
    path = files.write_lines(tmp_path / "a.jsonl", lines)
    told = judge_paths([path], Judgement(tmp_path / "one", []))
    assert told["run"]["labels"] == {"complete": 1, "incomplete": 1, "unknown": 2}
    assert "2 runs have a score above 1, which is no label" in told["notes"][0]
    told = judge_paths([path], Judgement(tmp_path / "two", []), Labels(None, 7))
    assert told["run"]["labels"] == {"complete": 2, "incomplete": 2, "unknown": 0}
    assert not told["notes"]


def test_what_is_no_message_is_named_by_its_line(tmp_path: Path) -> None:
    first, *rest = [json.dumps(message) for message in files.chat()]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([first, '{"role": broken', "", *rest, '{"x": 1}']) + "\n", encoding="utf-8")
    runs, problems = both(path)
    assert len(runs) == 1
    assert [problem.partition(": ")[0] for problem in problems] == ["line 2", f"line {len(rest) + 4}"]
    assert runs[0].odd == (f"line {len(rest) + 4}: is no message; its fields: x",)


def test_a_chat_that_is_left_to_a_person_is_handed_over_and_no_run_that_breaks_off(tmp_path: Path) -> None:
    call = files.chat_call(1, "mcp__desk__transfer_to_human", summary="A refund.")
    answer = files.chat_answer(1, "Transfer successful")
    path = files.write(tmp_path / "a.json", {"messages": [USER, call, answer], "complete": True})
    assert (one(path).ending, one(path).native) == ("escalated", "transfer_to_human")
    (recorded,) = judge_paths([path], Judgement(tmp_path / "out", []))["rows"]
    assert recorded["unclosed"]["count"] == 0


def test_labels_of_one_run_that_contradict_each_other_are_none(tmp_path: Path) -> None:
    said: list[dict[str, Any]] = [
        {"success": True, "reward": 0.0},
        {"passed": False, "score": 1},
        {"resolved": True, "final_label": -1},
        {"complete": True, "passed": False},
        {"success": True, "reward": 0.4},
        {"success": False, "reward": 0.4},
        {"success": True, "score": 1, "final_label": 0},
    ]
    lines = [{"id": f"r{place}", "messages": files.chat(), **fields} for place, fields in enumerate(said)]
    runs, _ = both(files.write_lines(tmp_path / "a.jsonl", lines))
    assert [run.label.complete for run in runs] == [None, None, None, None, True, False, True]
    assert runs[0].label.source == "success True and reward 0.0 disagree"
    told = judge_paths([tmp_path / "a.jsonl"], Judgement(tmp_path / "out", []))
    assert told["run"]["labels"] == {"complete": 2, "incomplete": 1, "unknown": 4}
    assert "4 runs have labels that contradict each other" in told["notes"][0]
    table = Labels({"r1": Label(True, "table")})
    told = judge_paths([tmp_path / "a.jsonl"], Judgement(tmp_path / "two", []), table)
    assert told["run"]["labels"] == {"complete": 3, "incomplete": 1, "unknown": 3}
    assert "3 runs have labels that contradict each other" in told["notes"][0]


BESIDE: list[tuple[str, str, Any, bool]] = [
    (
        "trial/agent/trajectory.json",
        "trial/result.json",
        {"verifier_result": {"rewards": {"reward": 1.0}}},
        True,
    ),
    (
        "trial/agent/trajectory.json",
        "trial/result.json",
        {"verifier_result": {"rewards": {"reward": 0}}},
        False,
    ),
    ("trial/agent/log.json", "trial/results.json", {"is_resolved": False, "failure_mode": "unset"}, False),
    ("run/fix-1.traj", "run/report.json", {"fix-1": {"resolved": True}}, True),
    (
        "run/trajs/fix-2.traj",
        "run/results.json",
        {"resolved_ids": ["fix-1"], "unresolved_ids": ["fix-2"]},
        False,
    ),
]


@pytest.mark.parametrize(("run", "beside", "value", "complete"), BESIDE)
def test_labels_are_taken_from_beside_a_run(
    tmp_path: Path, run: str, beside: str, value: Any, complete: bool
) -> None:
    for name, content in ((run, files.atif()), (beside, value)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    recording = one(tmp_path / run)
    assert (recording.label.complete, recording.label.by) == (complete, "state")
    assert Path(beside).name in recording.label.source
    # The file of labels is no recording that could not be read.
    assert not both(tmp_path)[1]


@pytest.mark.parametrize("odd", ["not json", '{"a": ', '"text"', "-"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_odd_line_refuses_no_file_of_lines_wherever_it_stands(
    tmp_path: Path, odd: str, place: int
) -> None:
    good = json.dumps({"messages": [USER, {"role": "assistant", "content": "Done."}]})
    lines = [good, good]
    lines.insert(place, odd)
    for count in (2, 3):
        if place < count:
            path = tmp_path / f"{count}.jsonl"
            path.write_text("\n".join(lines[:count]), encoding="utf-8")
            runs, problems = both(path)
            assert len(runs) == count - 1
            assert [problem.partition(":")[0] for problem in problems] == [f"line {place + 1}"]


def test_a_broken_document_is_no_file_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"messages": [\n]\n', encoding="utf-8")
    runs, problems = both(path)
    assert not runs
    assert len(problems) == 1
    assert "is not JSON: " in problems[0]
    assert "jSON" not in problems[0]


def test_what_an_editor_says_of_itself_is_passed_over_and_unknown_kinds_are_named(tmp_path: Path) -> None:
    said = foreign.cline()
    last = said[-1]["ts"]
    said += [
        {"ts": last + 1, "type": "say", "say": "checkpoint_created", "text": "abc"},
        {"ts": last + 2, "type": "say", "say": "hologram", "text": "x"},
        {"ts": last + 3, "type": "ask", "ask": "oracle", "text": "x"},
    ]
    runs, problems = both(files.write(tmp_path / "ui_messages.json", said))
    assert len(runs) == 1
    assert [problem.partition(": ")[2] for problem in problems] == [
        "is said as 'hologram', which nobody knows",
        "is asked as 'oracle', which nobody knows",
    ]


def test_a_label_names_a_recording_by_the_end_of_its_path(tmp_path: Path) -> None:
    for name in ("a/log.json", "b/log.json"):
        (tmp_path / name).parent.mkdir()
        files.write(tmp_path / name, files.chat())
    found = [item for item in read_paths([tmp_path]) if isinstance(item, Recording)]
    table = tmp_path / "labels.csv"
    table.write_text("recording,complete\na/log.json,no\nog.json,no\n", encoding="utf-8")
    labels = Labels.read(table)
    assert [labels.apply(item).label.complete for item in found] == [False, found[1].label.complete]
    assert labels.notes() == ["label 'og.json' matches no recording"]
    table.write_text("recording,complete\nlog.json,no\n", encoding="utf-8")
    labels = Labels.read(table)
    assert [labels.apply(item).label.complete for item in found] == [False, False]
    assert labels.notes() == ["label 'log.json' matches more than one recording, and was taken for each"]
