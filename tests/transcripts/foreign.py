"""Small recordings in the formats of other tools, written for these tests: the run of ``files.py`` again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.transcripts.files import CLAIM, PROMPT

#: The calls of the run: tool, record, answer.
STORY = (
    ("get_record", "alpha", "alpha: old"),
    ("update_record", "alpha", "alpha: new"),
    ("update_record", "beta", "beta: new"),
)


def story() -> Iterator[tuple[str, str, dict[str, str], str]]:
    """Id, tool, arguments and answer of each call."""
    for number, (tool, record, text) in enumerate(STORY, 1):
        yield f"c{number}", tool, {"record": record}, text


def bedrock() -> dict[str, Any]:
    """Bedrock Converse: the history, and the last response beside it."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"text": PROMPT}]}]
    for name, tool, given, text in story():
        use = {"toolUseId": name, "name": tool, "input": given}
        messages.append({"role": "assistant", "content": [{"text": "Working."}, {"toolUse": use}]})
        result = {"toolUseId": name, "content": [{"text": text}], "status": "success"}
        messages.append({"role": "user", "content": [{"toolResult": result}]})
    answer = {
        "role": "assistant",
        "content": [{"reasoningContent": {"reasoningText": {"text": "So."}}}, {"text": CLAIM}],
    }
    return {
        "modelId": "m",
        "messages": messages,
        "output": {"message": answer},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 9, "outputTokens": 4},
    }


def gemini() -> dict[str, Any]:
    """Contents of the Gemini API with the last answer beside them; calls without ids."""
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": PROMPT}]}]
    for _, tool, given, text in story():
        contents.append(
            {
                "role": "model",
                "parts": [{"text": "Hm.", "thought": True}, {"functionCall": {"name": tool, "args": given}}],
            }
        )
        contents.append(
            {"role": "user", "parts": [{"functionResponse": {"name": tool, "response": {"result": text}}}]}
        )
    candidate = {"content": {"role": "model", "parts": [{"text": CLAIM}]}, "finishReason": "STOP"}
    return {
        "contents": contents,
        "response": {
            "candidates": [candidate],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
        },
    }


def ui_messages() -> list[dict[str, Any]]:
    """AI SDK UI messages: one assistant message holds all turns."""
    parts: list[dict[str, Any]] = []
    for name, tool, given, text in story():
        parts.append({"type": "step-start"})
        parts.append(
            {
                "type": f"tool-{tool}",
                "toolCallId": name,
                "state": "output-available",
                "input": given,
                "output": text,
            }
        )
    parts += [
        {"type": "step-start"},
        {"type": "reasoning", "text": "So."},
        {"type": "text", "text": CLAIM, "state": "done"},
    ]
    return [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": PROMPT}]},
        {"id": "2", "role": "assistant", "parts": parts},
    ]


def ui_messages_4() -> list[dict[str, Any]]:
    """The same as version 4 wrote it, one call a message."""
    messages: list[dict[str, Any]] = [{"id": "0", "role": "user", "content": PROMPT}]
    for name, tool, given, text in story():
        invoked = {"state": "result", "toolCallId": name, "toolName": tool, "args": given, "result": text}
        messages.append({"id": name, "role": "assistant", "content": "", "toolInvocations": [invoked]})
    return [*messages, {"id": "9", "role": "assistant", "content": CLAIM}]


def codex(*, complete: bool = True) -> list[dict[str, Any]]:
    """A Codex rollout: items, and events that repeat them for the screen."""

    def line(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}

    def said(role: str, text: str, kind: str) -> dict[str, Any]:
        return line(
            "response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        )

    lines = [
        line("session_meta", {"id": "s", "cwd": "/srv/x", "cli_version": "1.0.0"}),
        said("user", "<environment_context>\n<cwd>/x</cwd>\n</environment_context>", "input_text"),
        line("turn_context", {"model": "m", "approval_policy": "never"}),
        said("user", PROMPT, "input_text"),
        line("event_msg", {"type": "user_message", "message": PROMPT}),
    ]
    for name, tool, given, text in story():
        lines.append(line("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "x"}))
        call = {"type": "function_call", "name": tool, "arguments": json.dumps(given), "call_id": name}
        lines.append(line("response_item", call))
        lines.append(
            line(
                "event_msg",
                {
                    "type": "token_count",
                    "info": {"last_token_usage": {"input_tokens": 50, "output_tokens": 5}},
                },
            )
        )
        output = f"Process exited with code 0\nWall time: 0.1 seconds\nOutput:\n{text}"
        lines.append(
            line("response_item", {"type": "function_call_output", "call_id": name, "output": output})
        )
    lines += [
        line("event_msg", {"type": "agent_message", "message": CLAIM}),
        said("assistant", CLAIM, "output_text"),
    ]
    if complete:
        lines.append(line("event_msg", {"type": "task_complete", "last_agent_message": CLAIM}))
    return lines


def gemini_cli() -> dict[str, Any]:
    """A Gemini CLI session: call and answer in the model's message."""
    messages: list[dict[str, Any]] = [{"id": "0", "type": "user", "content": [{"text": PROMPT}]}]
    for name, tool, given, text in story():
        response = [{"functionResponse": {"id": name, "name": tool, "response": {"output": text}}}]
        call = {"id": name, "name": tool, "args": given, "status": "success", "result": response}
        messages.append(
            {
                "id": name,
                "type": "gemini",
                "content": "",
                "toolCalls": [call],
                "thoughts": [],
                "model": "m",
                "tokens": {"input": 5, "output": 2},
            }
        )
    messages.append({"id": "9", "type": "gemini", "content": CLAIM})
    return {"sessionId": "s", "projectHash": "h", "startTime": "t", "messages": messages}


def gemini_cli_lines() -> list[dict[str, Any]]:
    """The same as lines, one message written again under its id."""
    session = gemini_cli()
    head = {key: value for key, value in session.items() if key != "messages"}
    early = {**session["messages"][-1], "content": "Both rec"}
    return [head, *session["messages"][:-1], early, session["messages"][-1], {"$set": {"lastUpdated": "u"}}]


def recorded_answers() -> list[dict[str, Any]]:
    """Recorded answers of Gemini's API: streams as lists of chunks."""
    lines: list[dict[str, Any]] = [{"method": "countTokens", "response": {"totalTokens": 4}}]
    for _, tool, given, _ in story():
        chunk = {
            "candidates": [
                {
                    "content": {"parts": [{"functionCall": {"name": tool, "args": given}}]},
                    "finishReason": "STOP",
                }
            ]
        }
        lines.append({"method": "generateContentStream", "response": [chunk]})
    halves: list[dict[str, Any]] = [
        {"candidates": [{"content": {"parts": [{"text": text}]}}]} for text in (CLAIM[:9], CLAIM[9:])
    ]
    halves[-1]["candidates"][0]["finishReason"] = "STOP"
    return [*lines, {"method": "generateContentStream", "response": halves}]


def qwen() -> list[dict[str, Any]]:
    """A Qwen Code session with a branch that was left."""
    lines: list[dict[str, Any]] = []

    def line(kind: str, role: str, parts: list[dict[str, Any]], parent: str | None = "", **more: Any) -> None:
        before = lines[-1]["uuid"] if lines and parent == "" else parent
        lines.append(
            {
                "uuid": f"u{len(lines)}",
                "parentUuid": before,
                "sessionId": "s",
                "type": kind,
                "message": {"role": role, "parts": parts},
                **more,
            }
        )

    line("user", "user", [{"text": PROMPT}], None)
    line("assistant", "model", [{"text": "This branch was left."}])
    for place, (name, tool, given, text) in enumerate(story()):
        call = {"functionCall": {"id": name, "name": tool, "args": given}}
        line("assistant", "model", [{"text": "Hm.", "thought": True}, call], *(["u0"] if not place else []))
        response = {"functionResponse": {"id": name, "name": tool, "response": {"output": text}}}
        line("tool_result", "user", [response], toolCallResult={"callId": name, "status": "success"})
    line("assistant", "model", [{"text": CLAIM}])
    return lines


def cursor() -> list[dict[str, Any]]:
    """A Cursor transcript: calls without ids and answers."""
    lines: list[dict[str, Any]] = [
        {
            "role": "user",
            "message": {"content": [{"type": "text", "text": f"<user_query>\n{PROMPT}\n</user_query>"}]},
        }
    ]
    for _, tool, given, _ in story():
        content = [{"type": "text", "text": "[REDACTED]"}, {"type": "tool_use", "name": tool, "input": given}]
        lines.append({"role": "assistant", "message": {"content": content}})
    lines.append({"role": "assistant", "message": {"content": [{"type": "text", "text": CLAIM}]}})
    return [*lines, {"type": "turn_ended", "status": "success"}]


def opencode(error: dict[str, Any] | None = None) -> dict[str, Any]:
    """An opencode export."""
    messages: list[dict[str, Any]] = [
        {"info": {"id": "m0", "role": "user"}, "parts": [{"type": "text", "text": PROMPT}]}
    ]
    for name, tool, given, text in story():
        state = {"status": "completed", "input": given, "output": text, "metadata": {"exit": 0}}
        parts = [
            {"type": "step-start"},
            {"type": "tool", "tool": tool, "callID": name, "state": state},
            {"type": "step-finish", "reason": "tool-calls"},
        ]
        messages.append(
            {
                "info": {
                    "id": name,
                    "role": "assistant",
                    "finish": "tool-calls",
                    "tokens": {"input": 5, "output": 2, "cache": {"read": 1}},
                },
                "parts": parts,
            }
        )
    last: dict[str, Any] = {"id": "m9", "role": "assistant", "finish": "stop"}
    messages.append(
        {"info": {**last, **({"error": error} if error else {})}, "parts": [{"type": "text", "text": CLAIM}]}
    )
    return {"info": {"id": "ses_1", "title": "t", "directory": "/x", "version": "1"}, "messages": messages}


def openhands(state: str = "finished") -> list[dict[str, Any]]:
    """OpenHands events of version 1; two actions of one response are one turn."""
    events: list[dict[str, Any]] = [
        {
            "kind": "SystemPromptEvent",
            "id": "e0",
            "source": "agent",
            "system_prompt": {"type": "text", "text": "You work."},
        },
        {
            "kind": "MessageEvent",
            "id": "e1",
            "source": "user",
            "llm_message": {"role": "user", "content": [{"type": "text", "text": PROMPT}]},
        },
    ]
    for name, tool, given, text in story():
        same = {"tool_name": tool, "tool_call_id": name}
        events.append(
            {
                "kind": "ActionEvent",
                "id": f"a{name}",
                "source": "agent",
                **same,
                "llm_response_id": f"r{name}",
                "thought": [],
                "tool_call": {"id": name, "name": tool, "arguments": json.dumps(given)},
            }
        )
        events.append(
            {
                "kind": "ObservationEvent",
                "id": f"o{name}",
                "source": "environment",
                **same,
                "observation": {"content": [{"type": "text", "text": text}], "is_error": False},
            }
        )
    events.append(
        {
            "kind": "MessageEvent",
            "id": "e8",
            "source": "agent",
            "llm_message": {"role": "assistant", "content": [{"type": "text", "text": CLAIM}]},
        }
    )
    return [
        *events,
        {
            "kind": "ConversationStateUpdateEvent",
            "id": "e9",
            "source": "environment",
            "key": "execution_status",
            "value": state,
        },
    ]


def openhands_0(*, finish: bool = True) -> list[dict[str, Any]]:
    """An OpenHands trajectory of version 0."""
    events: list[dict[str, Any]] = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": PROMPT}}
    ]
    for number, (name, tool, given, text) in enumerate(story()):
        metadata = {
            "tool_call_id": name,
            "function_name": tool,
            "total_calls_in_response": 1,
            "model_response": {"id": f"r{name}"},
        }
        events.append(
            {
                "id": 2 * number + 1,
                "source": "agent",
                "action": "run",
                "args": {**given, "thought": "Hm."},
                "tool_call_metadata": metadata,
            }
        )
        events.append(
            {
                "id": 2 * number + 2,
                "source": "agent",
                "observation": "run",
                "cause": 2 * number + 1,
                "content": text,
                "extras": {"metadata": {"exit_code": 0}},
                "tool_call_metadata": metadata,
            }
        )
    if finish:
        events.append(
            {"id": 20, "source": "agent", "action": "finish", "args": {"final_thought": CLAIM, "outputs": {}}}
        )
        return events
    return [
        *events,
        {
            "id": 20,
            "source": "agent",
            "action": "message",
            "args": {"content": CLAIM, "wait_for_response": True},
        },
    ]


def copilot(*, abort: bool = False) -> list[dict[str, Any]]:
    """Copilot CLI's events."""
    lines: list[dict[str, Any]] = []

    def event(kind: str, **data: Any) -> None:
        lines.append({"type": kind, "data": data, "id": f"e{len(lines)}", "timestamp": "t", "parentId": None})

    event("session.start", sessionId="s")
    event("user.message", content=PROMPT, transformedContent=f"<now>{PROMPT}")
    for name, tool, given, text in story():
        event("assistant.turn_start")
        event(
            "assistant.message",
            content="",
            toolRequests=[{"toolCallId": name, "name": tool, "arguments": given}],
            outputTokens=3,
        )
        event("tool.execution_start", toolCallId=name, toolName=tool)
        event("tool.execution_complete", toolCallId=name, success=True, result={"content": text})
        event("assistant.turn_end")
    event("assistant.message", content=CLAIM, toolRequests=[])
    event("assistant.turn_end")
    if abort:
        event("abort", reason="user initiated")
    return lines


def kimi() -> list[dict[str, Any]]:
    """A Kimi wire file; one step was begun and never ended."""
    lines: list[dict[str, Any]] = [
        {"type": "metadata", "protocol_version": "1"},
        {"type": "turn.prompt", "input": [{"type": "text", "text": PROMPT}]},
    ]

    def event(kind: str, **more: Any) -> None:
        lines.append({"type": "context.append_loop_event", "event": {"type": kind, **more}})

    event("step.begin")
    event("content.part", part={"type": "text", "text": "It broke off."})
    for name, tool, given, text in story():
        event("step.begin")
        event("content.part", part={"type": "think", "think": "Hm."})
        event("tool.call", toolCallId=name, name=tool, args=given)
        event("step.end", finishReason="tool_use", usage={"inputTokens": 5, "outputTokens": 2})
        event("tool.result", toolCallId=name, result={"output": text})
    event("step.begin")
    event("content.part", part={"type": "text", "text": CLAIM})
    event("step.end", finishReason="end_turn")
    return lines


def droid() -> list[dict[str, Any]]:
    """A Droid session store."""
    lines: list[dict[str, Any]] = [{"type": "session_start", "id": "s", "title": "t"}]

    def message(role: str, content: list[dict[str, Any]]) -> None:
        parent = lines[-1]["id"] if len(lines) > 1 else None
        lines.append(
            {
                "type": "message",
                "id": f"m{len(lines)}",
                "parentId": parent,
                "message": {"role": role, "content": content},
            }
        )

    message("user", [{"type": "text", "text": PROMPT}])
    for name, tool, given, text in story():
        message("assistant", [{"type": "tool_use", "id": name, "name": tool, "input": given}])
        message("user", [{"type": "tool_result", "tool_use_id": name, "content": text}])
    message("assistant", [{"type": "text", "text": CLAIM}])
    return lines


def droid_stream() -> list[dict[str, Any]]:
    """Droid's streamed output."""
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "session_id": "s"},
        {"type": "message", "role": "user", "text": PROMPT},
    ]
    for name, tool, given, text in story():
        lines.append({"type": "tool_call", "toolCallId": name, "toolName": tool, "parameters": given})
        lines.append({"type": "tool_result", "toolCallId": name, "value": text})
    return [
        *lines,
        {"type": "message", "role": "assistant", "text": CLAIM},
        {"type": "completion", "finalText": CLAIM},
    ]


def grok() -> list[dict[str, Any]]:
    """A Grok CLI chat history."""
    lines: list[dict[str, Any]] = [
        {"type": "system", "content": "You work."},
        {"type": "user", "content": PROMPT},
    ]
    for name, tool, given, text in story():
        lines.append({"type": "reasoning", "encrypted_content": "x"})
        lines.append(
            {
                "type": "assistant",
                "content": "",
                "tool_calls": [{"id": name, "name": tool, "arguments": json.dumps(given)}],
            }
        )
        lines.append({"type": "tool_result", "tool_call_id": name, "content": text})
    return [*lines, {"type": "assistant", "content": CLAIM}]


def pi(stop: str = "stop") -> list[dict[str, Any]]:
    """A pi session with a branch that was left."""
    lines: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/x"}
    ]

    def message(body: dict[str, Any], parent: str | None = "") -> None:
        before = lines[-1].get("id") if parent == "" and len(lines) > 1 else parent or None
        lines.append(
            {"type": "message", "id": f"m{len(lines)}", "parentId": before, "timestamp": "t", "message": body}
        )

    message({"role": "user", "content": [{"type": "text", "text": PROMPT}]})
    message(
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "This branch was left."}],
            "stopReason": "stop",
        }
    )
    for place, (name, tool, given, text) in enumerate(story()):
        block = {"type": "toolCall", "id": name, "name": tool, "arguments": given}
        message(
            {
                "role": "assistant",
                "content": [block],
                "stopReason": "toolUse",
                "usage": {"input": 5, "output": 2, "cacheRead": 1},
            },
            *(["m1"] if not place else []),
        )
        message(
            {
                "role": "toolResult",
                "toolCallId": name,
                "toolName": tool,
                "content": [{"type": "text", "text": text}],
                "isError": False,
            }
        )
    message({"role": "assistant", "content": [{"type": "text", "text": CLAIM}], "stopReason": stop})
    return lines


def openclaw() -> list[dict[str, Any]]:
    """OpenClaw's telemetry; the last event has the conversation."""
    messages = [
        line["message"] for line in pi() if line["type"] == "message" and "left" not in json.dumps(line)
    ]
    return [
        {"type": "message.in", "ts": 1, "sessionKey": "k"},
        {"type": "agent.start", "ts": 2, "sessionKey": "k"},
        {"type": "agent.end", "ts": 3, "sessionKey": "k", "success": True, "messages": messages},
    ]


def antigravity() -> list[dict[str, Any]]:
    """Antigravity's steps; arguments are JSON strings in strings."""
    steps: list[dict[str, Any]] = [
        {
            "step_index": 0,
            "source": "USER_EXPLICIT",
            "type": "USER_INPUT",
            "status": "DONE",
            "content": PROMPT,
        }
    ]
    for _, tool, given, text in story():
        call = {
            "name": tool,
            "arguments": json.dumps({key: json.dumps(value) for key, value in given.items()}),
        }
        steps.append(
            {
                "step_index": len(steps),
                "source": "MODEL",
                "type": "PLANNER_RESPONSE",
                "status": "DONE",
                "thinking": "Hm.",
                "content": "",
                "tool_calls": [call],
            }
        )
        steps.append(
            {
                "step_index": len(steps),
                "source": "SYSTEM",
                "type": "RUN_COMMAND",
                "status": "DONE",
                "content": text,
            }
        )
    return [
        *steps,
        {
            "step_index": len(steps),
            "source": "MODEL",
            "type": "PLANNER_RESPONSE",
            "status": "DONE",
            "content": CLAIM,
        },
    ]


def cline() -> list[dict[str, Any]]:
    """Cline's messages of the editor; it ends with its finish call."""
    lines: list[dict[str, Any]] = [{"ts": 1, "type": "say", "say": "text", "text": PROMPT}]
    for _, tool, given, text in story():
        lines.append(
            {
                "ts": 2,
                "type": "say",
                "say": "api_req_started",
                "text": json.dumps({"tokensIn": 5, "tokensOut": 2}),
            }
        )
        lines.append({"ts": 3, "type": "say", "say": "tool", "text": json.dumps({"tool": tool, **given})})
        lines.append({"ts": 4, "type": "say", "say": "command_output", "text": text})
    lines.append({"ts": 5, "type": "say", "say": "api_req_started", "text": "{}"})
    lines.append({"ts": 6, "type": "say", "say": "completion_result", "text": CLAIM})
    return [*lines, {"ts": 7, "type": "ask", "ask": "completion_result", "text": ""}]


AIDER = f"""
# aider chat started at 2026-01-01 10:00:00

> Aider v1
#### {PROMPT}

Here is the change to alpha.

> Tokens: 2.1k sent, 100 received.
> Applied edit to alpha.txt
#### go on

{CLAIM}

> Tokens: 2.2k sent, 90 received.
"""


def run_state() -> dict[str, Any]:
    """An Agents SDK run's state."""
    items: list[dict[str, Any]] = []
    for name, tool, given, text in story():
        items.append(
            {
                "type": "tool_call_item",
                "raw_item": {
                    "type": "function_call",
                    "call_id": name,
                    "name": tool,
                    "arguments": json.dumps(given),
                },
            }
        )
        items.append(
            {
                "type": "tool_call_output_item",
                "raw_item": {"type": "function_call_output", "call_id": name, "output": text},
            }
        )
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": CLAIM}]}
    items.append({"type": "message_output_item", "raw_item": message})
    return {
        "$schemaVersion": "1.0",
        "original_input": PROMPT,
        "generated_items": items,
        "current_turn": 4,
        "max_turns": 10,
        "model_responses": [],
    }


def adk() -> dict[str, Any]:
    """A Google ADK session, unused keys null, one event of a stream under way."""
    events: list[dict[str, Any]] = [
        {"author": "user", "content": {"role": "user", "parts": [{"text": PROMPT, "function_call": None}]}}
    ]
    for name, tool, given, text in story():
        call = {"text": None, "function_call": {"id": name, "name": tool, "args": given}}
        events.append(
            {"author": "helper", "invocation_id": "i", "content": {"role": "model", "parts": [call]}}
        )
        response = {"function_response": {"id": name, "name": tool, "response": {"result": text}}}
        events.append(
            {"author": "helper", "invocation_id": "i", "content": {"role": "user", "parts": [response]}}
        )
    events.append(
        {"author": "helper", "partial": True, "content": {"role": "model", "parts": [{"text": CLAIM[:5]}]}}
    )
    events.append(
        {"author": "helper", "invocation_id": "i", "content": {"role": "model", "parts": [{"text": CLAIM}]}}
    )
    return {"id": "s", "app_name": "a", "user_id": "u", "state": {}, "events": events}


def autogen(stop: str | None = "Text 'TERMINATE' mentioned") -> dict[str, Any]:
    """An AutoGen task's result."""
    messages: list[dict[str, Any]] = [{"source": "user", "type": "TextMessage", "content": PROMPT}]
    for name, tool, given, text in story():
        messages.append({"source": "helper", "type": "ThoughtEvent", "content": "Hm."})
        messages.append(
            {
                "source": "helper",
                "type": "ToolCallRequestEvent",
                "content": [{"id": name, "name": tool, "arguments": json.dumps(given)}],
                "models_usage": {"prompt_tokens": 5, "completion_tokens": 2},
            }
        )
        messages.append(
            {
                "source": "helper",
                "type": "ToolCallExecutionEvent",
                "content": [{"call_id": name, "content": text, "is_error": False}],
            }
        )
    messages.append({"source": "helper", "type": "TextMessage", "content": CLAIM})
    return {"messages": messages, "stop_reason": stop}


def autogen_state() -> dict[str, Any]:
    """A team's saved state: the manager's thread, and an agent's own side of it."""
    thread = autogen()["messages"]
    agent = {
        "type": "ChatAgentContainerState",
        "agent_state": {"llm_context": {"messages": [{"type": "UserMessage", "content": PROMPT}]}},
    }
    return {
        "type": "TeamState",
        "agent_states": {
            "helper/1": agent,
            "RoundRobinGroupChatManager/1": {"type": "RoundRobinManagerState", "message_thread": thread},
        },
    }


def pydantic_ai() -> list[dict[str, Any]]:
    """A pydantic-ai message history."""
    messages: list[dict[str, Any]] = [
        {
            "kind": "request",
            "parts": [
                {"part_kind": "system-prompt", "content": "You work."},
                {"part_kind": "user-prompt", "content": PROMPT},
            ],
        }
    ]
    for name, tool, given, text in story():
        messages.append(
            {
                "kind": "response",
                "model_name": "m",
                "usage": {"input_tokens": 5, "output_tokens": 2},
                "parts": [{"part_kind": "tool-call", "tool_name": tool, "args": given, "tool_call_id": name}],
            }
        )
        messages.append(
            {
                "kind": "request",
                "parts": [
                    {"part_kind": "tool-return", "tool_name": tool, "content": text, "tool_call_id": name}
                ],
            }
        )
    return [
        *messages,
        {
            "kind": "response",
            "parts": [{"part_kind": "thinking", "content": "So."}, {"part_kind": "text", "content": CLAIM}],
            "finish_reason": "stop",
        },
    ]


def langchain(*, constructors: bool = False) -> list[dict[str, Any]]:
    """LangChain messages, plain or as constructors."""

    def message(kind: str, name: str, **fields: Any) -> dict[str, Any]:
        if constructors:
            return {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", name],
                "kwargs": fields,
            }
        return {"type": kind, **fields}

    messages = [
        message("system", "SystemMessage", content="You work."),
        message("human", "HumanMessage", content=PROMPT),
    ]
    for name, tool, given, text in story():
        call = {"name": tool, "args": given, "id": name, "type": "tool_call"}
        messages.append(
            message(
                "ai",
                "AIMessage",
                content="",
                tool_calls=[call],
                usage_metadata={"input_tokens": 5, "output_tokens": 2},
            )
        )
        messages.append(message("tool", "ToolMessage", content=text, tool_call_id=name, status="success"))
    return [*messages, message("ai", "AIMessage", content=CLAIM, response_metadata={"finish_reason": "stop"})]


def browser_use(success: bool = True) -> dict[str, Any]:
    """A browser-use history; the action ``done`` ends it."""
    steps: list[dict[str, Any]] = []
    for _, tool, given, text in story():
        output = {"thinking": "Hm.", "memory": "", "next_goal": "on", "action": [{tool: given}]}
        steps.append(
            {
                "model_output": output,
                "result": [{"extracted_content": text, "error": None}],
                "state": {"url": "x"},
            }
        )
    done = {"thinking": "So.", "action": [{"done": {"text": CLAIM, "success": success}}]}
    steps.append(
        {
            "model_output": done,
            "result": [{"is_done": True, "success": success, "extracted_content": CLAIM}],
            "state": {"url": "x"},
        }
    )
    return {"history": steps}


def smolagents() -> list[dict[str, Any]]:
    """smolagents steps."""
    steps: list[dict[str, Any]] = [{"task": PROMPT}]
    for number, (name, tool, given, text) in enumerate(story(), 1):
        steps.append(
            {
                "step_number": number,
                "model_output": "Hm.",
                "tool_calls": [
                    {"id": name, "type": "function", "function": {"name": tool, "arguments": given}}
                ],
                "observations": text,
                "error": None,
                "is_final_answer": False,
            }
        )
    call = {
        "id": "c9",
        "type": "function",
        "function": {"name": "final_answer", "arguments": {"answer": CLAIM}},
    }
    return [
        *steps,
        {
            "step_number": 4,
            "model_output": CLAIM,
            "tool_calls": [call],
            "observations": "",
            "error": None,
            "is_final_answer": True,
        },
    ]


def trae() -> dict[str, Any]:
    """A trae-agent trajectory."""
    steps: list[dict[str, Any]] = []
    for number, (name, tool, given, text) in enumerate(story(), 1):
        response = {
            "content": "Hm.",
            "finish_reason": "tool_calls",
            "tool_calls": [{"call_id": name, "name": tool, "arguments": given}],
            "usage": {"input_tokens": 5, "output_tokens": 2},
        }
        steps.append(
            {
                "step_number": number,
                "llm_response": response,
                "tool_results": [{"call_id": name, "success": True, "result": text, "error": None}],
            }
        )
    steps.append({"step_number": 4, "llm_response": {"content": CLAIM, "finish_reason": "stop"}})
    return {
        "task": PROMPT,
        "llm_interactions": [],
        "agent_steps": steps,
        "success": True,
        "final_result": CLAIM,
    }


def strands() -> list[dict[str, Any]]:
    """A Strands session, its messages a line each."""
    messages = bedrock()["messages"] + [bedrock()["output"]["message"]]
    return [
        {"message": message, "message_id": number, "created_at": "t"}
        for number, message in enumerate(messages)
    ]


def hermes() -> dict[str, Any]:
    """A Hermes trajectory: calls and answers as tags."""
    turns: list[dict[str, Any]] = [
        {"from": "system", "value": "You work."},
        {"from": "human", "value": PROMPT},
    ]
    for name, tool, given, text in story():
        call = json.dumps({"name": tool, "arguments": given})
        answer = json.dumps({"tool_call_id": name, "name": tool, "content": text})
        turns.append(
            {
                "from": "gpt",
                "value": f"<think>\nHm.\n</think>\n<tool_call>\n{call}\n</tool_call>",
            }
        )
        turns.append(
            {
                "from": "tool",
                "value": f"<tool_response>\n{answer}\n</tool_response>",
            }
        )
    return {"conversations": [*turns, {"from": "gpt", "value": CLAIM}], "model": "m", "completed": True}


def swe_history() -> dict[str, Any]:
    """A SWE-agent demonstration: a history alone."""
    history: list[dict[str, Any]] = [
        {"role": "system", "content": "You work.", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": PROMPT, "agent": "main", "message_type": "observation"},
    ]
    for _, tool, given, text in story():
        history.append(
            {
                "role": "assistant",
                "content": "Hm.",
                "thought": "Hm.",
                "action": f"{tool} {given['record']}",
                "agent": "main",
                "message_type": "action",
            }
        )
        history.append({"role": "user", "content": text, "agent": "main", "message_type": "observation"})
    history.append(
        {
            "role": "assistant",
            "content": CLAIM,
            "thought": CLAIM,
            "action": "submit",
            "agent": "main",
            "message_type": "action",
        }
    )
    return {"history": history}


def terminus() -> dict[str, Any]:
    """Terminus 2 in ATIF without parsed calls: its message is JSON, the end is asked back."""
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": PROMPT}]
    for number, (_, tool, given, text) in enumerate(story(), 2):
        told = {
            "analysis": "Hm.",
            "plan": "On.",
            "commands": [{"keystrokes": f"{tool} {given['record']}\n"}],
            "task_complete": False,
        }
        steps.append(
            {
                "step_id": number,
                "source": "agent",
                "message": json.dumps(told),
                "observation": {"results": [{"content": text}]},
            }
        )
    for number in (5, 6):
        told = {"analysis": CLAIM, "plan": "", "commands": [], "task_complete": True}
        steps.append(
            {
                "step_id": number,
                "source": "agent",
                "message": json.dumps(told),
                "observation": {"results": [{"content": "Are you sure?"}]},
            }
        )
    return {
        "schema_version": "ATIF-v1.4",
        "session_id": "s",
        "agent": {"name": "terminus-2", "version": "2"},
        "steps": steps,
    }


# Requests and spans


def requests() -> list[dict[str, Any]]:
    """Chat requests and their answers, one a call: each repeats the conversation."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
    logs: list[dict[str, Any]] = []

    def log(answer: dict[str, Any], label: str) -> None:
        response = {
            "id": f"chatcmpl-{len(logs)}",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": answer, "finish_reason": label}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 3},
        }
        logs.append({"model": "m", "messages": list(messages), "response": response})

    for name, tool, given, text in story():
        call = {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
        answer = {"role": "assistant", "content": None, "tool_calls": [call]}
        log(answer, "tool_calls")
        messages += [answer, {"role": "tool", "tool_call_id": name, "content": text}]
    log({"role": "assistant", "content": CLAIM}, "stop")
    return logs


def cassette(*, ruby: bool = False) -> dict[str, Any]:
    """A cassette of vcrpy's or ruby-vcr's, with a request for a list of models between."""
    found: list[dict[str, Any]] = []
    for log in requests():
        asked = json.dumps({"model": log["model"], "messages": log["messages"]})
        answered = json.dumps(log["response"])
        url = "https://api.openai.com/v1/chat/completions"
        if ruby:
            found.append(
                {
                    "request": {"method": "post", "uri": url, "body": {"encoding": "UTF-8", "string": asked}},
                    "response": {
                        "status": {"code": 200, "message": "OK"},
                        "body": {"encoding": "UTF-8", "string": answered},
                    },
                }
            )
        else:
            found.append(
                {
                    "request": {"method": "POST", "uri": url, "body": asked, "headers": {}},
                    "response": {
                        "status": {"code": 200, "message": "OK"},
                        "body": {"string": answered},
                        "headers": {},
                    },
                }
            )
    models = {
        "request": {"method": "GET", "uri": "https://api.openai.com/v1/models", "body": None},
        "response": {"status": {"code": 200}, "body": {"string": "{}"}},
    }
    found.insert(1, models)
    return (
        {"http_interactions": found, "recorded_with": "VCR 6.2.0"}
        if ruby
        else {"interactions": found, "version": 1}
    )


def openinference() -> list[dict[str, Any]]:
    """OpenInference spans as Phoenix exports them: each model call repeats the history, under flat keys."""
    spans: list[dict[str, Any]] = [_phoenix("root", "", "AGENT", 0, {})]
    for number, log in enumerate(requests(), 1):
        attributes: dict[str, Any] = {"llm.token_count.prompt": 9, "llm.token_count.completion": 3}
        for place, message in enumerate(log["messages"]):
            attributes |= _flat(f"llm.input_messages.{place}.message", message)
        attributes |= _flat("llm.output_messages.0.message", log["response"]["choices"][0]["message"])
        spans.append(_phoenix(f"m{number}", "root", "LLM", 2 * number, attributes))
        if number <= len(STORY):
            tool, _, text = STORY[number - 1]
            spans.append(
                _phoenix(
                    f"t{number}", "root", "TOOL", 2 * number + 1, {"tool.name": tool, "output.value": text}
                )
            )
    return spans


def _flat(prefix: str, message: dict[str, Any]) -> dict[str, Any]:
    flat = {f"{prefix}.role": message["role"], f"{prefix}.content": message.get("content") or ""}
    if message.get("tool_call_id"):
        flat[f"{prefix}.tool_call_id"] = message["tool_call_id"]
    for place, call in enumerate(message.get("tool_calls") or []):
        inner = f"{prefix}.tool_calls.{place}.tool_call"
        flat |= {
            f"{inner}.id": call["id"],
            f"{inner}.function.name": call["function"]["name"],
            f"{inner}.function.arguments": call["function"]["arguments"],
        }
    return flat


def _phoenix(name: str, parent: str, kind: str, time: int, attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "span_kind": kind,
        "context": {"trace_id": "t", "span_id": name},
        "parent_id": parent or None,
        "start_time": f"2026-01-01T00:00:{time:02d}Z",
        "status_code": "OK",
        "attributes": attributes,
    }


def langsmith(*, batches: bool = False) -> list[dict[str, Any]]:
    """LangSmith runs; in batches inputs are posted and outputs patched."""
    runs: list[dict[str, Any]] = [
        {
            "id": "root",
            "run_type": "chain",
            "trace_id": "root",
            "dotted_order": "0",
            "inputs": {},
            "outputs": {"x": 1},
            "name": "agent",
        }
    ]
    for number, log in enumerate(requests(), 1):
        runs.append(
            {
                "id": f"m{number}",
                "run_type": "llm",
                "trace_id": "root",
                "parent_run_id": "root",
                "dotted_order": f"0.{2 * number}",
                "inputs": {"messages": log["messages"]},
                "outputs": log["response"],
                "name": "ChatOpenAI",
            }
        )
        if number <= len(STORY):
            tool, _, text = STORY[number - 1]
            runs.append(
                {
                    "id": f"t{number}",
                    "run_type": "tool",
                    "trace_id": "root",
                    "parent_run_id": "root",
                    "dotted_order": f"0.{2 * number + 1}",
                    "inputs": {"input": "x"},
                    "outputs": {"output": text},
                    "name": tool,
                }
            )
    if not batches:
        return runs
    posts = [{key: value for key, value in run.items() if key != "outputs"} for run in runs]
    patches = [
        {"id": run["id"], "trace_id": "root", "dotted_order": run["dotted_order"], "outputs": run["outputs"]}
        for run in runs
    ]
    return [{"post": posts, "patch": []}, {"post": [], "patch": patches}]


def langfuse() -> dict[str, Any]:
    """A Langfuse trace; inputs and outputs are JSON in strings; a generation wraps another."""
    observations: list[dict[str, Any]] = [
        {"id": "root", "traceId": "t", "type": "AGENT", "startTime": "2026-01-01T00:00:00Z", "name": "agent"}
    ]
    for number, log in enumerate(requests(), 1):
        at = f"2026-01-01T00:01:{2 * number:02d}Z"
        answer = log["response"]["choices"][0]["message"]
        common = {
            "traceId": "t",
            "type": "GENERATION",
            "startTime": at,
            "input": json.dumps(log["messages"]),
            "output": json.dumps(answer),
        }
        observations.append({"id": f"w{number}", "parentObservationId": "root", **common})
        observations.append(
            {
                "id": f"g{number}",
                "parentObservationId": f"w{number}",
                **common,
                "usage": {"input": 9, "output": 3},
            }
        )
        if number <= len(STORY):
            tool, _, text = STORY[number - 1]
            observations.append(
                {
                    "id": f"t{number}",
                    "traceId": "t",
                    "parentObservationId": "root",
                    "type": "TOOL",
                    "name": tool,
                    "startTime": f"2026-01-01T00:01:{2 * number + 1:02d}Z",
                    "input": "{}",
                    "output": text,
                }
            )
    return {
        "id": "t",
        "name": "trace",
        "scores": [{"name": "helpful", "value": 1}],
        "observations": observations,
    }


def weave() -> list[dict[str, Any]]:
    """Weave calls."""
    calls: list[dict[str, Any]] = [
        {
            "id": "root",
            "op_name": "weave:///x/op/agent:v1",
            "trace_id": "t",
            "parent_id": None,
            "inputs": {},
            "output": None,
            "started_at": "0",
        }
    ]
    for number, log in enumerate(requests(), 1):
        calls.append(
            {
                "id": f"m{number}",
                "op_name": "weave:///x/op/openai.chat.completions.create:v1",
                "trace_id": "t",
                "parent_id": "root",
                "started_at": str(2 * number),
                "inputs": {"messages": log["messages"]},
                "output": log["response"],
            }
        )
        if number <= len(STORY):
            tool, _, text = STORY[number - 1]
            calls.append(
                {
                    "id": f"t{number}",
                    "op_name": f"weave:///x/op/{tool}:v1",
                    "trace_id": "t",
                    "parent_id": "root",
                    "started_at": str(2 * number + 1),
                    "inputs": {},
                    "output": text,
                    "exception": None,
                }
            )
    return calls


def sdk_spans() -> list[dict[str, Any]]:
    """AI SDK spans as the JavaScript SDK prints them: the outer one wraps the inner one."""
    spans: list[dict[str, Any]] = []
    for number, log in enumerate(requests(), 1):
        answer = log["response"]["choices"][0]["message"]
        calls = [
            {
                "toolCallId": call["id"],
                "toolName": call["function"]["name"],
                "input": call["function"]["arguments"],
            }
            for call in answer.get("tool_calls") or []
        ]
        attributes = {
            "ai.prompt.messages": json.dumps(log["messages"]),
            "ai.response.text": answer.get("content") or "",
            "ai.response.toolCalls": json.dumps(calls),
            "ai.response.finishReason": "tool-calls" if calls else "stop",
        }
        spans.append(
            _js(f"i{number}", f"o{number}", "ai.generateText.doGenerate", 10 * number + 1, attributes)
        )
        spans.append(_js(f"o{number}", "", "ai.generateText", 10 * number, {}))
        if number <= len(STORY):
            tool, _, text = STORY[number - 1]
            spans.append(
                _js(
                    f"t{number}",
                    "",
                    "ai.toolCall",
                    10 * number + 2,
                    {
                        "ai.toolCall.name": tool,
                        "ai.toolCall.id": f"c{number}",
                        "ai.toolCall.result": json.dumps(text),
                    },
                )
            )
    return spans


def _js(name: str, parent: str, operation: str, time: int, attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": operation,
        "spanContext": {"traceId": "t", "spanId": name},
        "parentSpanId": parent,
        "startTime": [1767225600, time],
        "attributes": {"ai.operationId": operation, **attributes},
    }


def web_export() -> dict[str, Any]:
    """A Claude Code session of the web."""
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": "u0", "sessionId": "s", "message": {"role": "user", "content": PROMPT}}
    ]
    for name, tool, given, text in story():
        lines.append(
            {
                "type": "assistant",
                "uuid": f"a{name}",
                "sessionId": "s",
                "message": {
                    "id": f"m{name}",
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": name, "name": tool, "input": given}],
                },
            }
        )
        lines.append(
            {
                "type": "user",
                "uuid": f"r{name}",
                "sessionId": "s",
                "message": {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": name, "content": text}],
                },
            }
        )
    lines.append(
        {
            "type": "assistant",
            "uuid": "u9",
            "sessionId": "s",
            "message": {"id": "m9", "role": "assistant", "content": [{"type": "text", "text": CLAIM}]},
        }
    )
    return {"loglines": lines}
