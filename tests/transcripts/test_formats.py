"""Every format is recognised and read: turns, answers, user messages, the end, the label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_file, read_paths
from evalkit.transcripts.recording import Recording
from tests.transcripts import files


def one(path: Path) -> Recording:
    """The only thing that a file holds, a recording."""
    (found,) = (found for found in read_file(path) if isinstance(found, Problem) or not found.parent)
    assert isinstance(found, Recording), found
    return found


def shape(recording: Recording) -> list[tuple[tuple[str, ...], int]]:
    """The tools called and the answers got, turn by turn."""
    return [(tuple(call.tool for call in step.turn.calls), len(step.results)) for step in recording.steps]


THREE_CALLS = [(("get_record",), 1), (("update_record",), 1), (("update_record",), 1), ((), 0)]
ONE_CALL = [(("update_record",), 1), ((), 0)]

CASES: list[tuple[str, str, Any, str, list[tuple[tuple[str, ...], int]]]] = [
    ("chat.json", "doc", files.chat(), "openai-chat", THREE_CALLS),
    ("chat.jsonl", "lines", files.chat(), "openai-chat", THREE_CALLS),
    ("record.json", "doc", {"messages": files.chat(), "resolved": True}, "openai-chat", THREE_CALLS),
    (
        "anthropic.json",
        "doc",
        {"system": "You keep records.", "messages": files.anthropic()},
        "anthropic-messages",
        THREE_CALLS,
    ),
    ("anthropic.jsonl", "lines", files.anthropic(), "anthropic-messages", THREE_CALLS),
    ("items.json", "doc", files.responses(), "openai-responses", THREE_CALLS),
    ("items.jsonl", "lines", files.responses(), "openai-responses", THREE_CALLS),
    (
        "input.json",
        "doc",
        {"input": files.responses()[:-1], "output": files.responses()[-1:]},
        "openai-responses",
        THREE_CALLS,
    ),
    (
        "chained.jsonl",
        "lines",
        files.response_objects(),
        "openai-responses",
        [(("update_record",), 0), ((), 0)],
    ),
    ("results.json", "doc", [files.tau_bench()], "tau-bench", THREE_CALLS),
    ("tau2.json", "doc", files.tau2(), "tau2", [((), 0), (("update_record",), 1), ((), 0), ((), 0)]),
    ("log.json", "doc", files.inspect_document(files.inspect_sample()), "inspect", ONE_CALL),
    ("a.traj", "doc", files.swe_agent(), "swe-agent", [(("open",), 1), (("edit",), 1), (("submit",), 1)]),
    (
        "b.traj",
        "doc",
        files.swe_agent(calls=True),
        "swe-agent",
        [(("open",), 1), (("edit",), 1), (("submit",), 1)],
    ),
    (
        "m.traj.json",
        "doc",
        files.mini_swe_agent(),
        "mini-swe-agent",
        [(("bash",), 1), ((), 0), (("bash",), 0)],
    ),
    (
        "list.traj.json",
        "doc",
        files.mini_swe_agent()["messages"],
        "mini-swe-agent",
        [(("bash",), 1), ((), 0), (("bash",), 0)],
    ),
    (
        "trajectory.json",
        "doc",
        files.atif(),
        "atif",
        [(("update_record",), 1), (("update_record",), 1), ((), 0)],
    ),
    ("trace.json", "doc", {"data": files.agents_trace()}, "openai-agents", ONE_CALL),
    ("trace.jsonl", "lines", files.agents_trace(), "openai-agents", ONE_CALL),
    ("otlp.json", "doc", files.otel(), "otel-genai", ONE_CALL),
    ("otlp.jsonl", "lines", [files.otel("events")], "otel-genai", ONE_CALL),
    ("numbered.json", "doc", files.otel("numbered"), "otel-genai", ONE_CALL),
    (
        "chat-of-experts.json",
        "doc",
        files.group_chat(),
        "multi-agent",
        [(("Computer_terminal",), 1), ((), 0), ((), 0)],
    ),
    ("team.json", "doc", files.team(), "multi-agent", [(("Surfer",), 1), ((), 0)]),
]


@pytest.mark.parametrize(("name", "how", "value", "format", "turns"), CASES, ids=[case[0] for case in CASES])
def test_a_file_is_recognised_and_read(
    tmp_path: Path, name: str, how: str, value: Any, format: str, turns: list[tuple[tuple[str, ...], int]]
) -> None:
    path = (files.write_lines if how == "lines" else files.write)(tmp_path / name, value)
    recording = one(path)
    assert recording.format == format
    assert shape(recording) == turns
    assert files.PROMPT in recording.prompt or recording.format in ("openai-responses", "tau2")
    assert recording.id.startswith(path.as_posix())


def test_an_inspect_archive_holds_a_recording_for_each_sample(tmp_path: Path) -> None:
    path = files.write_eval(tmp_path / "log.eval", files.inspect_sample(1, "C"), files.inspect_sample(2, "I"))
    found = list(read_file(path))
    assert [recording.label.complete for recording in found if isinstance(recording, Recording)] == [
        True,
        False,
    ]
    assert all(isinstance(recording, Recording) and shape(recording) == ONE_CALL for recording in found)


def test_a_claude_code_session_is_one_recording(tmp_path: Path) -> None:
    recording = one(files.write_lines(tmp_path / "s.jsonl", files.claude_code()))
    assert recording.format == "claude-code"
    assert shape(recording) == [
        (("TodoWrite",), 1),
        (("Edit",), 1),
        (("TodoWrite",), 1),
        ((), 0),
        (("Edit",), 1),
        (("TodoWrite",), 1),
        ((), 0),
    ]
    # The blocks of one message are one turn; the child agent's words are not there; the hook is the harness.
    assert [type(block).__name__ for block in recording.steps[4].turn.content] == ["Thinking", "Call"]
    assert not any("Everything" in step.turn.text for step in recording.steps)
    assert recording.steps[3].by == "harness"
    assert recording.steps[3].said == "Stop hook feedback:\nbeta is open"
    assert (recording.steps[0].input_tokens, recording.steps[0].output_tokens) == (100, 10)
    assert recording.prompt == files.PROMPT


ENDS: list[tuple[Any, str, str, bool | None]] = [
    (files.chat(), "done", "turn without calls", None),
    (files.chat()[:-1], "unknown", "breaks off after a tool's answer", None),
    (files.chat()[:-2], "unknown", "breaks off after a tool call", None),
    (
        [*files.chat(), {"role": "user", "content": "More."}],
        "unknown",
        "breaks off after a message to the model",
        None,
    ),
    (
        [*files.chat()[:2], {"role": "assistant", "content": "All so", "finish_reason": "length"}],
        "unknown",
        "breaks off at length",
        None,
    ),
    ([files.tau_bench(reward=0.0)], "done", "user stop", False),
    ([files.tau_bench(reward=1.0)], "done", "user stop", True),
    ([files.tau_bench(reward=0.5, last="")], "escalated", "transfer_to_human_agents", False),
    ([files.tau_bench(last="Go on.")], "limit", "step limit (no end signal)", False),
    (files.tau2(), "done", "user_stop", True),
    (files.tau2("max_steps", 0.0), "limit", "max_steps", False),
    (files.tau2("agent_error", 0.0), "error", "agent_error", False),
    (files.tau2("something new", 0.0), "unknown", "something new", False),
    (files.inspect_document(files.inspect_sample()), "done", "stop", True),
    (files.inspect_document(files.inspect_sample(value=0.5)), "done", "stop", False),
    (files.inspect_document(files.inspect_sample(value=[1])), "done", "stop", None),
    (
        files.inspect_document(files.inspect_sample(limit={"type": "message", "limit": 10})),
        "limit",
        "message limit",
        True,
    ),
    (files.inspect_document(files.inspect_sample(error={"message": "boom"})), "error", "boom", True),
    (files.swe_agent(), "done", "submitted", None),
    (files.swe_agent("submitted (exit_cost)"), "limit", "submitted (exit_cost)", None),
    (files.swe_agent("exit_forfeit"), "escalated", "exit_forfeit", None),
    (files.swe_agent("exit_error"), "error", "exit_error", None),
    (files.mini_swe_agent(), "done", "Submitted", None),
    (files.mini_swe_agent("LimitsExceeded"), "limit", "LimitsExceeded", None),
    (files.mini_swe_agent("RepeatedFormatError"), "error", "RepeatedFormatError", None),
    (files.mini_swe_agent(None), "done", "finish call", None),
    (files.atif(), "done", "turn without calls", None),
    ({"data": files.agents_trace(error="Max turns exceeded")}, "limit", "Max turns exceeded", None),
    ({"data": files.agents_trace()}, "done", "turn without calls", None),
    (files.otel(), "done", "stop", None),
    (files.group_chat(), "done", "TERMINATE", False),
    (files.group_chat("Still looking."), "unknown", "no end signal", False),
    (files.team(), "done", "request satisfied", True),
    (files.team(end="Max rounds (30) reached.\nFINAL ANSWER: alpha"), "limit", "max rounds (30)", True),
    (files.team("Replan counter exceeded... Terminating."), "limit", "replan limit", True),
]


@pytest.mark.parametrize(("value", "ending", "native", "complete"), ENDS)
def test_the_recorded_end_and_its_label(
    tmp_path: Path, value: Any, ending: str, native: str, complete: bool | None
) -> None:
    recording = one(files.write(tmp_path / "r.json", value))
    assert (recording.ending, recording.native, recording.label.complete) == (ending, native, complete)


def test_a_streamed_claude_session_has_its_own_signal(tmp_path: Path) -> None:
    lines = files.claude_code(stream=True)
    assert one(files.write_lines(tmp_path / "a.jsonl", lines)).native == "completed"
    lines[-1].update(subtype="error_max_turns", terminal_reason="max_turns")
    ended = one(files.write_lines(tmp_path / "b.jsonl", lines))
    assert (ended.ending, ended.native) == ("limit", "max_turns")
    lines[-1].update(subtype="success", is_error=True, terminal_reason="api_error")
    ended = one(files.write_lines(tmp_path / "c.jsonl", lines))
    assert (ended.ending, ended.native) == ("error", "api_error")


def test_labels_of_state_and_of_words_are_told_apart(tmp_path: Path) -> None:
    state = one(files.write(tmp_path / "a.json", [files.tau_bench()]))
    words = one(files.write(tmp_path / "b.json", [files.tau_bench(outputs=("42",))]))
    assert (state.label.by, words.label.by) == ("state", "words")
    assert one(files.write(tmp_path / "c.json", files.tau2())).label.by == "state"
    assert one(files.write(tmp_path / "d.json", {"messages": files.chat(), "reward": 1})).label.by == "words"


def test_a_tool_error_is_read_from_its_flag_or_its_first_word(tmp_path: Path) -> None:
    messages = files.chat()
    messages[3]["content"] = "Error: no such record"
    messages[5]["content"] = "alpha: the word error stands later"
    recording = one(files.write(tmp_path / "a.json", messages))
    assert [step.results[0].error for step in recording.steps[:3]] == [True, False, False]
    blocks = files.anthropic()
    blocks[2]["content"][0]["is_error"] = True
    recording = one(files.write(tmp_path / "b.json", blocks))
    assert [step.results[0].error for step in recording.steps[:3]] == [True, False, False]


def test_the_users_own_tools_are_noted_in_tau2(tmp_path: Path) -> None:
    recording = one(files.write(tmp_path / "a.json", files.tau2()))
    assert [step.acted for step in recording.steps] == [False, False, True, False]
    assert recording.steps[2].said == "It works."
    assert recording.steps[1].input_tokens == 50


def test_spans_without_content_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = files.write(tmp_path / "a.json", {"data": files.agents_trace(content=False)})
    (problem,) = read_file(path)
    assert isinstance(problem, Problem)
    assert "2 model calls hold no content; record messages with the spans" in str(problem)


def test_a_folder_is_read_in_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    files.write(tmp_path / "b.json", files.chat())
    files.write(tmp_path / "sub" / "a.json", files.atif())
    (tmp_path / "notes.txt").write_text("no transcript")
    found = list(read_paths([tmp_path]))
    assert [type(item).__name__ for item in found] == ["Recording", "Problem", "Recording"]
    assert [Path(item.file).name for item in found] == ["b.json", "notes.txt", "a.json"]
