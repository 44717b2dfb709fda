"""An empty session of each format is refused in one line that names the format and says that it is empty."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from evalkit.transcripts.catalog import FORMATS
from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_paths
from tests.transcripts import files, foreign

ASKED = {"role": "user", "content": files.PROMPT}

#: Of each format a session in which no model has said anything: how it is written, and what it holds.
EMPTY: dict[str, list[tuple[str, Any]]] = {
    "openai-chat": [("doc", {"messages": []}), ("doc", [ASKED]), ("lines", [ASKED])],
    "anthropic-messages": [("doc", {"system": "You work.", "messages": [], "max_tokens": 9})],
    "openai-responses": [("doc", {"object": "response", "output": []}), ("doc", {"items": []})],
    "bedrock-converse": [("doc", {"modelId": "m", "messages": []})],
    "gemini-api": [("doc", {"contents": []}), ("lines", foreign.recorded_answers()[:1])],
    "ai-sdk-ui": [("doc", {"messages": []})],
    "tau-bench": [("doc", [{"task_id": 0, "reward": 0.0, "info": {}, "traj": []}])],
    "tau2": [("doc", {"info": {}, "tasks": [], "simulations": []})],
    "inspect": [("doc", files.inspect_document()), ("archive", {"header.json": '{"eval": {"task": "t"}}'})],
    "swe-agent": [("doc", {"trajectory": [], "history": [], "info": {}}), ("doc", {"history": []})],
    "mini-swe-agent": [("doc", {"trajectory_format": "mini-swe-agent-1", "messages": [], "info": {}})],
    "openhands": [("lines", foreign.openhands()[:1]), ("lines", [{"instance_id": "i", "history": []}])],
    "atif": [("doc", {"schema_version": "ATIF-v1.4", "session_id": "s", "steps": []})],
    "claude-code": [("doc", {"loglines": []}), ("lines", files.claude_code()[:1])],
    "codex-rollout": [("lines", foreign.codex()[:1])],
    "gemini-cli": [
        ("doc", {"sessionId": "s", "projectHash": "h", "messages": []}),
        ("lines", foreign.gemini_cli_lines()[:1]),
    ],
    "qwen-code": [("lines", foreign.qwen()[:1])],
    "cursor": [("lines", foreign.cursor()[:1])],
    "opencode": [("doc", {"info": {"id": "ses_1", "title": "t"}, "messages": []})],
    "copilot-cli": [("lines", foreign.copilot()[:1])],
    "droid": [("lines", foreign.droid()[:1])],
    "kimi-cli": [("lines", foreign.kimi()[:1])],
    "grok-cli": [("lines", foreign.grok()[:1])],
    "pi": [("lines", foreign.pi()[:1])],
    "openclaw": [("lines", foreign.openclaw()[:1])],
    "antigravity": [("lines", foreign.antigravity()[:1])],
    "cline": [("doc", [{"ts": 1, "type": "say", "say": "task", "text": files.PROMPT}])],
    "aider": [("text", "\n# aider chat started at 2026-01-01 00:00:00\n")],
    "openai-agents": [("doc", {"data": []}), ("lines", files.agents_trace()[:1])],
    "openai-agents-state": [("doc", {"$schemaVersion": "1.0", "original_input": "x", "generated_items": []})],
    "google-adk": [
        ("doc", {"id": "s", "appName": "a", "userId": "u", "state": {}, "events": [], "lastUpdateTime": 1.0}),
        ("doc", {"id": "s", "app_name": "a", "user_id": "u", "events": []}),
        ("lines", [{"author": "user", "content": {"parts": [{"text": "x"}]}, "invocation_id": "e"}]),
    ],
    "autogen": [
        ("doc", {"messages": [], "stop_reason": None}),
        ("doc", {"type": "TeamState", "agent_states": {"helper/1": {"agent_state": {}}}}),
    ],
    "pydantic-ai": [("doc", {"messages": []}), ("doc", foreign.pydantic_ai()[:1])],
    "langchain": [("doc", {"messages": []}), ("doc", [{"type": "human", "content": "x"}])],
    "browser-use": [("doc", {"history": []})],
    "smolagents": [("doc", [{"task": "x", "task_images": None}])],
    "trae-agent": [("doc", {"task": "x", "agent_steps": [], "llm_interactions": []})],
    "strands": [("lines", foreign.strands()[:1])],
    "hermes": [("doc", {"conversations": []})],
    "otel-genai": [("doc", {"resourceSpans": []}), ("lines", [{"resourceSpans": []}])],
    "openinference": [("lines", foreign.openinference()[:1])],
    "langsmith": [("lines", foreign.langsmith()[:1]), ("doc", {"post": [], "patch": []})],
    "langfuse": [("doc", {"id": "t", "name": "trace", "observations": []})],
    "weave": [("lines", foreign.weave()[:1])],
    "http-cassette": [
        ("doc", {"interactions": [], "version": 1}),
        ("doc", {"http_interactions": [], "recorded_with": "VCR 6.2.0"}),
        ("doc", {"log": {"version": "1.2", "entries": []}}),
        ("text.yaml", "interactions: []\nversion: 1\n"),
    ],
    "multi-agent": [("doc", {"question": "x", "history": []})],
}


def written(folder: Path, how: str, value: Any) -> Path:
    """An empty session as a file."""
    if how == "archive":
        with zipfile.ZipFile(folder / "log.eval", "w") as archive:
            for name, text in value.items():
                archive.writestr(name, text)
        return folder / "log.eval"
    if how.startswith("text"):
        path = folder / (f"a{how.removeprefix('text')}" if how != "text" else ".aider.chat.history.md")
        path.write_text(value, encoding="utf-8")
        return path
    return (files.write_lines if how == "lines" else files.write)(
        folder / ("a.jsonl" if how == "lines" else "a.json"), value
    )


def test_each_format_has_an_empty_session() -> None:
    assert set(EMPTY) == set(FORMATS)


@pytest.mark.parametrize(
    ("format", "how", "value"),
    [(format, how, value) for format, cases in EMPTY.items() for how, value in cases],
    ids=[f"{format}-{number}" for format, cases in EMPTY.items() for number in range(len(cases))],
)
def test_an_empty_session_is_refused_as_empty(tmp_path: Path, format: str, how: str, value: Any) -> None:
    found = list(read_paths([written(tmp_path, how, value)]))
    assert len(found) == 1
    assert isinstance(found[0], Problem)
    assert found[0].why.startswith("looks like ")
    named, _, why = found[0].why.removeprefix("looks like ").partition(", and is empty: ")
    assert format in named.replace(" or ", ", ").split(", ")
    assert why
    assert "\n" not in why


def test_a_list_with_nothing_in_it_tells_no_format(tmp_path: Path) -> None:
    found = list(read_paths([files.write(tmp_path / "a.json", [])]))
    assert [item.why for item in found if isinstance(item, Problem)] == [
        "is an empty list: holds no recording"
    ]
