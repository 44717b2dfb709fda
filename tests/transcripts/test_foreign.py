"""The formats of other tools: each is recognised, and tells the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from evalkit.transcripts.catalog import FORMATS
from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_file, read_paths
from evalkit.transcripts.recording import Recording
from tests.transcripts import files, foreign
from tests.transcripts.test_formats import CASES as OLDER
from tests.transcripts.test_formats import one, shape

RUN = [(("get_record",), 1), (("update_record",), 1), (("update_record",), 1), ((), 0)]
NO_ANSWERS = [(tools, 0) for tools, _ in RUN]


def ended_by(tool: str, answers: int = 0) -> list[tuple[tuple[str, ...], int]]:
    """The run with a last turn that calls a finish tool."""
    return [*RUN[:3], ((tool,), answers)]


#: Name, how it is written, value, format, turns, end.
CASES: list[tuple[str, str, Any, str, list[tuple[tuple[str, ...], int]], str]] = [
    ("converse.json", "doc", foreign.bedrock(), "bedrock-converse", RUN, "end_turn"),
    ("contents.json", "doc", foreign.gemini(), "gemini-api", RUN, "STOP"),
    ("answers.responses", "lines", foreign.recorded_answers(), "gemini-api", NO_ANSWERS, "STOP"),
    ("ui.json", "doc", foreign.ui_messages(), "ai-sdk-ui", RUN, "turn without calls"),
    ("ui4.json", "doc", {"messages": foreign.ui_messages_4()}, "ai-sdk-ui", RUN, "turn without calls"),
    ("rollout.jsonl", "lines", foreign.codex(), "codex-rollout", RUN, "task_complete"),
    ("session.json", "doc", foreign.gemini_cli(), "gemini-cli", RUN, "turn without calls"),
    ("session.jsonl", "lines", foreign.gemini_cli_lines(), "gemini-cli", RUN, "turn without calls"),
    ("qwen.jsonl", "lines", foreign.qwen(), "qwen-code", RUN, "turn without calls"),
    ("cursor.jsonl", "lines", foreign.cursor(), "cursor", NO_ANSWERS, "turn without calls"),
    ("export.json", "doc", foreign.opencode(), "opencode", RUN, "stop"),
    ("events.jsonl", "lines", foreign.openhands(), "openhands", RUN, "finished"),
    ("trajectory.json", "doc", foreign.openhands_0(), "openhands", ended_by("finish"), "finish"),
    ("asks.json", "doc", foreign.openhands_0(finish=False), "openhands", RUN, "turn without calls"),
    (
        "output.jsonl",
        "lines",
        [{"instance_id": "i", "history": foreign.openhands_0(), "git_patch": ""}],
        "openhands",
        ended_by("finish"),
        "finish",
    ),
    ("copilot.jsonl", "lines", foreign.copilot(), "copilot-cli", RUN, "turn without calls"),
    ("wire.jsonl", "lines", foreign.kimi(), "kimi-cli", RUN, "end_turn"),
    ("droid.jsonl", "lines", foreign.droid(), "droid", RUN, "turn without calls"),
    ("stream.jsonl", "lines", foreign.droid_stream(), "droid", RUN, "completion"),
    ("chat_history.jsonl", "lines", foreign.grok(), "grok-cli", RUN, "turn without calls"),
    ("pi.jsonl", "lines", foreign.pi(), "pi", RUN, "stop"),
    ("telemetry.jsonl", "lines", foreign.openclaw(), "openclaw", RUN, "stop"),
    ("steps.jsonl", "lines", foreign.antigravity(), "antigravity", RUN, "turn without calls"),
    (
        "ui_messages.json",
        "doc",
        foreign.cline(),
        "cline",
        ended_by("attempt_completion"),
        "completion_result",
    ),
    ("state.json", "doc", foreign.run_state(), "openai-agents-state", RUN, "turn without calls"),
    ("adk.json", "doc", foreign.adk(), "google-adk", RUN, "turn without calls"),
    ("result.json", "doc", foreign.autogen(), "autogen", RUN, "Text 'TERMINATE' mentioned"),
    ("team.json", "doc", foreign.autogen_state(), "autogen", RUN, "turn without calls"),
    ("pydantic.json", "doc", foreign.pydantic_ai(), "pydantic-ai", RUN, "stop"),
    ("langchain.json", "doc", {"messages": foreign.langchain()}, "langchain", RUN, "stop"),
    ("lc.json", "doc", foreign.langchain(constructors=True), "langchain", RUN, "stop"),
    ("browser.json", "doc", foreign.browser_use(), "browser-use", ended_by("done", 1), "done"),
    ("smol.json", "doc", foreign.smolagents(), "smolagents", ended_by("final_answer", 1), "final answer"),
    ("trae.json", "doc", foreign.trae(), "trae-agent", RUN, "stop"),
    ("strands.jsonl", "lines", foreign.strands(), "strands", RUN, "turn without calls"),
    ("hermes.jsonl", "lines", [foreign.hermes()], "hermes", RUN, "turn without calls"),
    ("demo.json", "doc", foreign.swe_history(), "swe-agent", ended_by("submit"), "finish call"),
    (
        "terminus.json",
        "doc",
        foreign.terminus(),
        "atif",
        [*[(("bash_command",), 1)] * 3, *[(("mark_task_complete",), 1)] * 2],
        "finish call",
    ),
    ("litellm.jsonl", "lines", foreign.requests(), "openai-chat", RUN, "stop"),
    ("vcr.json", "doc", foreign.cassette(), "http-cassette", RUN, "stop"),
    ("ruby.json", "doc", foreign.cassette(ruby=True), "http-cassette", RUN, "stop"),
    ("phoenix.jsonl", "lines", foreign.openinference(), "openinference", RUN, "turn without calls"),
    ("langsmith.jsonl", "lines", foreign.langsmith(), "langsmith", RUN, "stop"),
    ("batches.jsonl", "lines", foreign.langsmith(batches=True), "langsmith", RUN, "stop"),
    ("langfuse.json", "doc", foreign.langfuse(), "langfuse", RUN, "turn without calls"),
    ("weave.jsonl", "lines", foreign.weave(), "weave", RUN, "stop"),
    ("spans.json", "doc", foreign.sdk_spans(), "otel-genai", RUN, "stop"),
    ("web.json", "doc", foreign.web_export(), "claude-code", RUN, "turn without calls"),
]


@pytest.mark.parametrize(
    ("name", "how", "value", "format", "turns", "native"), CASES, ids=[case[0] for case in CASES]
)
def test_a_file_is_recognised_and_read(
    tmp_path: Path,
    name: str,
    how: str,
    value: Any,
    format: str,
    turns: list[tuple[tuple[str, ...], int]],
    native: str,
) -> None:
    recording = one((files.write_lines if how == "lines" else files.write)(tmp_path / name, value))
    assert recording.format == format
    assert shape(recording) == turns
    assert (recording.ending, recording.native) == ("done", native)
    assert files.CLAIM in recording.steps[-1].turn.text
    assert not any(result.error for step in recording.steps for result in step.results)
    if format not in ("browser-use",) and name != "answers.responses":
        assert files.PROMPT in recording.prompt
    assert not recording.odd


@pytest.mark.parametrize("ruby", [False, True])
def test_cassettes_are_read_as_yaml_too(tmp_path: Path, ruby: bool) -> None:
    path = tmp_path / "tape.yaml"
    path.write_text(yaml.safe_dump(foreign.cassette(ruby=ruby)), encoding="utf-8")
    assert shape(one(path)) == RUN


def test_an_aider_history_is_an_end_of_turn_each_answer(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(foreign.AIDER, encoding="utf-8")
    recording = one(path)
    assert [(step.turn.text, step.acted, step.said) for step in recording.steps] == [
        ("Here is the change to alpha.", True, "go on"),
        (files.CLAIM, False, None),
    ]
    assert recording.prompt == files.PROMPT
    assert recording.steps[0].input_tokens == 2100


def test_every_format_has_a_case() -> None:
    tested = {case[3] for case in (*CASES, *OLDER)} | {"claude-code", "aider"}
    assert tested == set(FORMATS)


ABORTED = {
    "timestamp": "t",
    "type": "event_msg",
    "payload": {"type": "turn_aborted", "reason": "interrupted"},
}
ENDS: list[tuple[Any, str, str, str]] = [
    (foreign.codex(complete=False), "lines", "done", "turn without calls"),
    (foreign.codex()[:-4], "lines", "unknown", "breaks off after a tool call"),
    ([*foreign.codex(), ABORTED], "lines", "unknown", "turn aborted (interrupted)"),
    (foreign.copilot(abort=True), "lines", "unknown", "aborted (user initiated)"),
    (foreign.opencode({"name": "MessageAbortedError"}), "doc", "unknown", "aborted"),
    (foreign.opencode({"name": "ProviderAuthError"}), "doc", "error", "ProviderAuthError"),
    (foreign.openhands("stuck"), "lines", "error", "stuck"),
    (foreign.pi("aborted"), "lines", "unknown", "aborted"),
    (
        foreign.autogen("Maximum number of messages 10 reached"),
        "doc",
        "limit",
        "Maximum number of messages 10 reached",
    ),
    (foreign.browser_use(success=False), "doc", "partial", "done"),
    ({**foreign.hermes(), "completed": False}, "doc", "limit", "not completed"),
    (
        {**foreign.run_state(), "current_step": {"type": "next_step_interruption"}},
        "doc",
        "escalated",
        "waits for approval",
    ),
    (
        [*foreign.cursor()[:-1], {"type": "turn_ended", "status": "error"}],
        "lines",
        "error",
        "turn ended: error",
    ),
]


@pytest.mark.parametrize(("value", "how", "ending", "native"), ENDS)
def test_the_recorded_end(tmp_path: Path, value: Any, how: str, ending: str, native: str) -> None:
    recording = one((files.write_lines if how == "lines" else files.write)(tmp_path / "a.json", value))
    assert (recording.ending, recording.native) == (ending, native)


def test_requests_of_one_run_are_one_run_wherever_they_lie_and_in_any_order(tmp_path: Path) -> None:
    for number, log in enumerate(reversed(foreign.requests())):
        files.write(tmp_path / f"{number}.json", log)
    (found,) = read_paths([tmp_path])
    assert isinstance(found, Recording)
    assert shape(found) == RUN


def test_an_eval_set_is_no_run(tmp_path: Path) -> None:
    (found,) = read_file(files.write(tmp_path / "a.json", {"eval_cases": [{"conversation": []}]}))
    assert isinstance(found, Problem)
    assert "references of what a model should do" in found.why
