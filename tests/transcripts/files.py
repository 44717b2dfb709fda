"""Small recordings in every format, written for these tests. Each tells the same run where its format can.

The run: the user asks for two records to be updated; the model reads, updates both, and says that it is done.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

PROMPT = "Update the records alpha and beta."
CLAIM = "Both records have been updated."


def write(path: Path, value: Any) -> Path:
    """One JSON document."""
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


def write_lines(path: Path, values: list[Any]) -> Path:
    """One JSON value a line."""
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def chat_call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    """An assistant message with one call, and its answer's id."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def chat_answer(number: int, text: str) -> dict[str, Any]:
    """A tool's answer."""
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text}


def chat(claim: str = CLAIM) -> list[dict[str, Any]]:
    """OpenAI Chat messages."""
    return [
        {"role": "system", "content": "You keep records."},
        {"role": "user", "content": PROMPT},
        chat_call(1, "get_record", record="alpha"),
        chat_answer(1, "alpha: old"),
        chat_call(2, "update_record", record="alpha"),
        chat_answer(2, "alpha: new"),
        chat_call(3, "update_record", record="beta"),
        chat_answer(3, "beta: new"),
        {"role": "assistant", "content": claim},
    ]


def anthropic() -> list[dict[str, Any]]:
    """Anthropic messages with blocks."""

    def use(number: int, tool: str, record: str) -> dict[str, Any]:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {"record": record}}
        return {"role": "assistant", "content": [{"type": "text", "text": "Working."}, block]}

    def result(number: int, text: str) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}
        return {"role": "user", "content": [block]}

    return [
        {"role": "user", "content": PROMPT},
        use(1, "get_record", "alpha"),
        result(1, "alpha: old"),
        use(2, "update_record", "alpha"),
        result(2, "alpha: new"),
        use(3, "update_record", "beta"),
        result(3, "beta: new"),
        {"role": "assistant", "content": [{"type": "text", "text": CLAIM}], "stop_reason": "end_turn"},
    ]


def responses() -> list[dict[str, Any]]:
    """OpenAI Responses items."""
    items: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
    calls = (("get_record", "alpha"), ("update_record", "alpha"), ("update_record", "beta"))
    for number, (tool, record) in enumerate(calls, 1):
        arguments = json.dumps({"record": record})
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"c{number}",
                "name": tool,
                "arguments": arguments,
            }
        )
        items.append({"type": "function_call_output", "call_id": f"c{number}", "output": f"{record}: ok"})
    content = [{"type": "output_text", "text": CLAIM, "annotations": []}]
    items.append({"type": "message", "role": "assistant", "status": "completed", "content": content})
    return items


def response_objects() -> list[dict[str, Any]]:
    """Two responses of which the second continues the first."""
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": CLAIM}]}
    call = {"type": "function_call", "call_id": "c1", "name": "update_record", "arguments": "{}"}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return [
        {"object": "response", "id": "resp_1", "status": "completed", "output": [call], "usage": usage},
        {
            "object": "response",
            "id": "resp_2",
            "status": "completed",
            "previous_response_id": "resp_1",
            "output": [message],
            "usage": usage,
        },
    ]


def tau_bench(
    task: int = 0, reward: float = 0.0, last: str = "Thanks! ###STOP###", outputs: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A tau-bench result; ``last`` is what the user said at the end, empty for an end after a tool."""
    traj = [*chat(), {"role": "user", "content": last}]
    if not last:
        traj = [*chat()[:-1], chat_call(4, "transfer_to_human_agents"), chat_answer(4, "Transfer successful")]
    info = {"task": {"user_id": "ada_lovelace_1815", "outputs": list(outputs)}}
    return {"task_id": task, "reward": reward, "info": info, "traj": traj, "trial": 0}


def tau2(reason: str = "user_stop", reward: float = 1.0) -> dict[str, Any]:
    """A tau2 results document with one simulation, in which the user uses a tool too."""
    call = {"id": "a1", "name": "update_record", "arguments": {"record": "alpha"}, "requestor": "assistant"}
    theirs = {"id": "u1", "name": "restart_phone", "arguments": {}, "requestor": "user"}
    messages = [
        {"role": "assistant", "content": "Hi! How can I help?"},
        {"role": "user", "content": PROMPT},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call],
            "usage": {"prompt_tokens": 50, "completion_tokens": 7},
        },
        {"role": "tool", "id": "a1", "content": "alpha: new", "requestor": "assistant", "error": False},
        {"role": "assistant", "content": "Please restart your phone."},
        {"role": "user", "content": None, "tool_calls": [theirs]},
        {"role": "tool", "id": "u1", "content": "restarted", "requestor": "user", "error": False},
        {"role": "user", "content": "It works."},
        {"role": "assistant", "content": CLAIM},
        {"role": "user", "content": "###STOP###"},
    ]
    simulation = {
        "id": "sim-1",
        "task_id": "7",
        "trial": 1,
        "termination_reason": reason,
        "reward_info": {"reward": reward, "reward_basis": ["DB", "ENV_ASSERTION"]},
        "messages": messages,
    }
    return {
        "timestamp": "2026-01-01",
        "info": {"num_trials": 1},
        "tasks": [{"id": "7"}],
        "simulations": [simulation],
    }


def inspect_sample(number: int = 1, value: Any = "C", **more: Any) -> dict[str, Any]:
    """A sample of an Inspect log; the prompt is an attachment."""
    call = {"id": "k1", "function": "update_record", "arguments": {"record": "alpha"}, "type": "function"}
    messages = [
        {"role": "user", "content": "attachment://p1", "source": "input"},
        {"role": "assistant", "content": "Updating.", "tool_calls": [call]},
        {"role": "tool", "content": "alpha: new", "tool_call_id": "k1", "function": "update_record"},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "All done?"}, {"type": "text", "text": CLAIM}],
        },
    ]
    return {
        "id": number,
        "epoch": 1,
        "input": PROMPT,
        "target": "x",
        "messages": messages,
        "output": {"model": "m", "choices": [{"message": messages[-1], "stop_reason": "stop"}]},
        "scores": {"match": {"value": value}},
        "attachments": {"p1": PROMPT},
        **more,
    }


def inspect_document(*samples: dict[str, Any]) -> dict[str, Any]:
    """An Inspect log as one document."""
    task = {
        "created": "2026-01-01T00:00:00+00:00",
        "task": "records",
        "dataset": {},
        "model": "m",
        "config": {},
    }
    return {"version": 2, "status": "success", "eval": task, "samples": list(samples)}


def write_eval(path: Path, *samples: dict[str, Any]) -> Path:
    """An Inspect log as an archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        document = inspect_document()
        del document["samples"]
        archive.writestr("header.json", json.dumps(document))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    return path


def swe_agent(status: str = "submitted", calls: bool = False) -> dict[str, Any]:
    """A SWE-agent trajectory, with or without function calling."""
    steps = [
        ("Look at it.", "open fix.py", "[File: fix.py]"),
        ("Fix it.", "edit 1:1\nnew\nend_of_edit", "File updated."),
        ("The bug is fixed.", "submit", "diff --git a b"),
    ]
    trajectory = [
        {
            "action": action,
            "observation": observation,
            "response": f"{thought}\n```\n{action}\n```",
            "thought": thought,
            "state": "{}",
        }
        for thought, action, observation in steps
    ]
    history: list[dict[str, Any]] = [
        {"role": "system", "content": "You work in a shell."},
        {"role": "user", "content": "A demonstration.", "is_demo": True},
        {"role": "user", "content": PROMPT},
    ]
    for number, (thought, action, observation) in enumerate(steps):
        message: dict[str, Any] = {
            "role": "assistant",
            "content": thought,
            "thought": thought,
            "action": action,
        }
        if calls:
            function = {"name": action.split()[0], "arguments": "{}"}
            message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
        history += [message, {"role": "user", "content": observation}]
    return {
        "environment": "main",
        "trajectory": trajectory,
        "history": history,
        "info": {"exit_status": status, "submission": "x"},
    }


def mini_swe_agent(status: str | None = "Submitted") -> dict[str, Any]:
    """A mini-swe-agent trajectory with commands in code blocks, one of them missing."""
    messages = [
        {"role": "system", "content": "To finish: echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"},
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": "THOUGHT: look\n\n```mswea_bash_command\nls\n```"},
        {"role": "user", "content": "<returncode>1</returncode>\n<output>\nno\n</output>"},
        {"role": "assistant", "content": "Which file do you mean?"},
        {"role": "user", "content": "Please always provide EXACTLY ONE action."},
        {
            "role": "assistant",
            "content": "Done.\n\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff\n```",
        },
        {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted"}},
    ]
    return {
        "info": {"exit_status": status, "submission": "diff"},
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1.1",
    }


def atif() -> dict[str, Any]:
    """A Harbor trajectory."""

    def call(number: int, record: str) -> dict[str, Any]:
        asked = {
            "tool_call_id": f"t{number}",
            "function_name": "update_record",
            "arguments": {"record": record},
        }
        return {
            "step_id": number,
            "source": "agent",
            "message": "Working.",
            "reasoning_content": "One after the other.",
            "tool_calls": [asked],
            "observation": {"results": [{"source_call_id": f"t{number}", "content": f"{record}: new"}]},
            "metrics": {"prompt_tokens": 100 * number, "completion_tokens": 10},
        }

    steps = [
        {"step_id": 1, "source": "system", "message": "You keep records."},
        {"step_id": 2, "source": "user", "message": PROMPT},
        call(3, "alpha"),
        call(4, "beta"),
        {"step_id": 5, "source": "agent", "message": CLAIM},
    ]
    agent = {"name": "harness", "version": "1", "model_name": "m"}
    return {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": agent, "steps": steps}


def claude_code(*, stream: bool = False, todos: bool = True) -> list[dict[str, Any]]:
    """A Claude Code session with a to-do list, a child agent, a hook's feedback and split messages."""
    lines: list[dict[str, Any]] = [{"type": "summary", "summary": "Records", "leafUuid": "u9"}]
    serial = 0

    def line(kind: str, message: dict[str, Any], **more: Any) -> None:
        nonlocal serial
        serial += 1
        lines.append(
            {
                "type": kind,
                "uuid": f"u{serial}",
                "sessionId": "s1",
                "isSidechain": False,
                "message": message,
                **more,
            }
        )

    def said(name: str, block: dict[str, Any], stop: str | None = None, **more: Any) -> None:
        usage = {"input_tokens": 5, "cache_read_input_tokens": 95, "output_tokens": 10}
        message = {
            "id": name,
            "role": "assistant",
            "model": "m",
            "content": [block],
            "stop_reason": stop,
            "usage": usage,
        }
        line("assistant", message, **more)

    def use(name: str, tool: str, given: dict[str, Any]) -> None:
        said(name, {"type": "tool_use", "id": f"t-{name}", "name": tool, "input": given}, "tool_use")
        result = {"type": "tool_result", "tool_use_id": f"t-{name}", "content": "ok"}
        line("user", {"role": "user", "content": [result]})

    def plan(name: str, alpha: str, beta: str) -> None:
        if todos:
            entries = [
                {"content": "Update alpha", "status": alpha, "activeForm": "Updating"},
                {"content": "Update beta", "status": beta, "activeForm": "Updating"},
            ]
            use(name, "TodoWrite", {"todos": entries})

    line("user", {"role": "user", "content": "Caveat: generated by the tool."}, isMeta=True)
    line("user", {"role": "user", "content": PROMPT})
    plan("m1", "in_progress", "pending")
    use("m2", "Edit", {"file": "alpha"})
    said("side", {"type": "text", "text": "Everything is done."}, "end_turn", isSidechain=True)
    plan("m3", "completed", "in_progress")
    said("m4", {"type": "text", "text": "The records are done."}, "end_turn")
    line("user", {"role": "user", "content": "Stop hook feedback:\nbeta is open"}, isMeta=True)
    said("m5", {"type": "thinking", "thinking": "beta is left"})
    use("m5", "Edit", {"file": "beta"})
    plan("m6", "completed", "completed")
    said("m7", {"type": "text", "text": CLAIM}, "end_turn")
    if stream:
        lines.append(
            {
                "type": "result",
                "subtype": "success",
                "is_error": False,
                "terminal_reason": "completed",
                "session_id": "s1",
            }
        )
    return lines


def agents_trace(*, content: bool = True, error: str = "") -> list[dict[str, Any]]:
    """OpenAI Agents SDK objects of one trace, exported out of order, with a nested agent."""

    def span(name: str, parent: str, at: int, data: dict[str, Any], **more: Any) -> dict[str, Any]:
        start = f"2026-01-01T00:00:{at:02d}"
        return {
            "object": "trace.span",
            "id": name,
            "trace_id": "trace_1",
            "parent_id": parent,
            "started_at": start,
            "span_data": data,
            "error": None,
            **more,
        }

    first = chat()[:2]
    second = [*first, chat_call(1, "update_record", record="alpha"), chat_answer(1, "alpha: new")]
    outputs = ([chat_call(1, "update_record", record="alpha")], [{"role": "assistant", "content": CLAIM}])
    if not content:
        outputs = ([], [])
    failed = {"message": error, "data": {}} if error else None
    return [
        {"object": "trace", "id": "trace_1", "workflow_name": "records"},
        span(
            "g1",
            "agent",
            1,
            {
                "type": "generation",
                "input": first,
                "output": outputs[0],
                "usage": {"input_tokens": 9, "output_tokens": 3},
            },
        ),
        span(
            "nested",
            "f1",
            3,
            {"type": "generation", "input": [], "output": [{"role": "assistant", "content": "Done."}]},
        ),
        span(
            "f1",
            "agent",
            2,
            {"type": "function", "name": "update_record", "input": "{}", "output": "alpha: new"},
        ),
        span("g2", "agent", 4, {"type": "generation", "input": second, "output": outputs[1]}),
        span("agent", "", 0, {"type": "agent", "name": "keeper"}, error=failed),
    ]


def _attribute(key: str, value: Any) -> dict[str, Any]:
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": key, "value": {kind: str(value)}}


def otel(shape: str = "messages") -> dict[str, Any]:
    """One OTLP export request: two model calls and a tool call, in one of the three shapes of content."""
    arguments = {"record": "alpha"}
    called = {"type": "tool_call", "id": "c1", "name": "update_record", "arguments": arguments}
    turns = (
        (
            [{"role": "user", "parts": [{"type": "text", "content": PROMPT}]}],
            {"role": "assistant", "parts": [called], "finish_reason": "tool_call"},
        ),
        (
            [
                {"role": "user", "parts": [{"type": "text", "content": PROMPT}]},
                {"role": "assistant", "parts": [called]},
                {
                    "role": "tool",
                    "parts": [{"type": "tool_call_response", "id": "c1", "response": "alpha: new"}],
                },
            ],
            {"role": "assistant", "parts": [{"type": "text", "content": CLAIM}], "finish_reason": "stop"},
        ),
    )
    spans = []
    for number, (before, answer) in enumerate(turns):
        attributes = [
            _attribute("gen_ai.operation.name", "chat"),
            _attribute("gen_ai.usage.input_tokens", 40),
            _attribute("gen_ai.usage.output_tokens", 4),
        ]
        events: list[dict[str, Any]] = []
        if shape == "messages":
            attributes.append(_attribute("gen_ai.input.messages", json.dumps(before)))
            attributes.append(_attribute("gen_ai.output.messages", json.dumps([answer])))
        elif shape == "events":
            events.append({"name": "gen_ai.user.message", "attributes": [_attribute("content", PROMPT)]})
            call = {"id": "c1", "function": {"name": "update_record", "arguments": json.dumps(arguments)}}
            if number:
                events.append(
                    {
                        "name": "gen_ai.assistant.message",
                        "attributes": [_attribute("tool_calls", json.dumps([call]))],
                    }
                )
                events.append(
                    {
                        "name": "gen_ai.tool.message",
                        "attributes": [_attribute("id", "c1"), _attribute("content", "alpha: new")],
                    }
                )
            message = {"content": CLAIM} if number else {"tool_calls": [call]}
            events.append(
                {
                    "name": "gen_ai.choice",
                    "attributes": [
                        _attribute("finish_reason", "stop" if number else "tool_calls"),
                        _attribute("message", json.dumps(message)),
                    ],
                }
            )
        else:
            attributes += [
                _attribute("gen_ai.prompt.0.role", "user"),
                _attribute("gen_ai.prompt.0.content", PROMPT),
            ]
            base = "gen_ai.prompt.1." if number else "gen_ai.completion.0."
            attributes += [_attribute(f"{base}role", "assistant"), _attribute(f"{base}tool_calls.0.id", "c1")]
            attributes += [
                _attribute(f"{base}tool_calls.0.name", "update_record"),
                _attribute(f"{base}tool_calls.0.arguments", json.dumps(arguments)),
            ]
            if number:
                attributes += [
                    _attribute("gen_ai.prompt.2.role", "tool"),
                    _attribute("gen_ai.prompt.2.content", "alpha: new"),
                    _attribute("gen_ai.prompt.2.tool_call_id", "c1"),
                ]
                attributes += [
                    _attribute("gen_ai.completion.0.content", CLAIM),
                    _attribute("gen_ai.completion.0.finish_reason", "stop"),
                ]
        spans.append(
            {
                "traceId": "abc",
                "spanId": f"s{number}",
                "parentSpanId": "root",
                "startTimeUnixNano": str(1_000 + 10 * number),
                "attributes": attributes,
                "events": events,
            }
        )
    tool = [
        _attribute("gen_ai.operation.name", "execute_tool"),
        _attribute("gen_ai.tool.name", "update_record"),
        _attribute("gen_ai.tool.call.id", "c1"),
        _attribute("gen_ai.tool.call.result", "alpha: new"),
    ]
    spans.insert(
        1,
        {
            "traceId": "abc",
            "spanId": "t0",
            "parentSpanId": "root",
            "startTimeUnixNano": "1005",
            "attributes": tool,
        },
    )
    spans.append(
        {
            "traceId": "abc",
            "spanId": "root",
            "startTimeUnixNano": "900",
            "attributes": [_attribute("gen_ai.operation.name", "invoke_agent")],
        }
    )
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}


def group_chat(last: str = "TERMINATE") -> dict[str, Any]:
    """A chat of experts with a terminal that runs their code."""
    history = [
        {"role": "user", "name": "Manager", "content": PROMPT},
        {
            "role": "assistant",
            "name": "Records_Expert",
            "content": "Run this:\n```python\nupdate('alpha')\n```",
        },
        {
            "role": "user",
            "name": "Computer_terminal",
            "content": "exitcode: 1 (execution failed)\nCode output: no\n",
        },
        {"role": "assistant", "name": "Records_Expert", "content": "I think that both are new."},
        {"role": "user", "name": "Computer_terminal", "content": "There is no code to execute."},
        {"role": "assistant", "name": "Checking_Expert", "content": last},
    ]
    return {
        "question": PROMPT,
        "is_correct": False,
        "history": history,
        "system_prompt": {"Records_Expert": "Say TERMINATE when done."},
    }


def team(
    thought: str = "Request satisfied.", end: str = "No agent selected.\nFINAL ANSWER: both"
) -> dict[str, Any]:
    """An orchestrated team."""
    history = [
        {"role": "human", "content": PROMPT},
        {"role": "Orchestrator (thought)", "content": "The plan."},
        {"role": "Orchestrator (-> Surfer)", "content": "Update alpha and beta."},
        {"role": "Orchestrator (thought)", "content": "Next speaker Surfer"},
        {"role": "Surfer", "content": "I updated them."},
        {"role": "Orchestrator (thought)", "content": thought},
        {"role": "Orchestrator (termination condition)", "content": end},
    ]
    return {"question": PROMPT, "is_corrected": True, "history": history}
