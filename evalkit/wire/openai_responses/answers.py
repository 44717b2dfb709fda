"""Answers of the Responses API: turns written as responses, and responses read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evalkit.core.turns import (
    CONTENT_FILTER,
    Block,
    Call,
    ServerCall,
    StopReason,
    Text,
    Thinking,
    Turn,
    make_turn,
)
from evalkit.wire.answers import (
    CREATED,
    Answer,
    BrokenStream,
    Outgoing,
    encode_json,
    listed,
    mapped,
    number,
    text_in,
)

#: What the refusal part says; the scenario's own words, where it has any, are text before it.
REFUSAL = "I can't help with that."
#: The label under which a server tool of any name is written.
SERVER = "scripted"
#: Items that the client runs, and what of them tells what to do; their tool is the name without ``_call``.
CLIENT_ITEMS = {
    "local_shell_call": ("action",),
    "shell_call": ("action",),
    "apply_patch_call": ("operation",),
    "computer_call": ("action", "actions"),
}
_FINAL = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


# Writing


def status_of(turn: Turn) -> str | None:
    """The ``status`` of a turn. A label that the API lacks is written as it is."""
    if turn.stop == "max_tokens" or _filtered(turn):
        return "incomplete"
    if turn.stop in ("end_turn", "tool_use", "refusal"):
        return "completed"
    if turn.stop == "unknown":
        return None if turn.native == "null" else turn.native or "unknown"
    return turn.stop


def _filtered(turn: Turn) -> bool:
    return turn.stop == "refusal" and turn.category == CONTENT_FILTER


def response(out: Outgoing, status: str | None = "") -> dict[str, Any]:
    """The body of an answer. ``status`` given: one that is not there yet, without output."""
    turn = out.turn
    pending = status != ""
    label = status if pending else status_of(turn)
    spent = None if pending else _usage(out)
    return {
        "id": out.id,
        "object": "response",
        "created_at": CREATED,
        "status": label,
        "background": out.background,
        "error": {"code": "server_error", "message": "The model failed to generate a response."}
        if label == "failed"
        else None,
        "incomplete_details": {"reason": CONTENT_FILTER if _filtered(turn) else "max_output_tokens"}
        if label == "incomplete"
        else None,
        "instructions": None,
        "max_output_tokens": out.limit,
        "metadata": {},
        "model": out.model,
        "output": [] if pending else items(out),
        "parallel_tool_calls": True,
        "previous_response_id": out.previous,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": spent,
    }


def items(out: Outgoing) -> list[dict[str, Any]]:
    """The output items of a turn: a message for each text, so that each has its own phase."""
    turn = out.turn
    state = "incomplete" if status_of(turn) == "incomplete" else "completed"
    found = [_item(block, f"{out.id[5:]}_{place}", state) for place, block in enumerate(turn.content)]
    if turn.stop == "refusal" and not _filtered(turn):
        part = {"type": "refusal", "refusal": REFUSAL}
        found.append(_message(f"msg_{out.id[5:]}_refusal", [part], state, None))
    return found


def _item(block: Block, name: str, state: str) -> dict[str, Any]:
    if isinstance(block, Text):
        part = {"type": "output_text", "text": block.text, "annotations": [], "logprobs": []}
        return _message(f"msg_{name}", [part], state, block.phase)
    if isinstance(block, Thinking):
        summary = [{"type": "summary_text", "text": block.text}]
        return {"id": f"rs_{name}", "type": "reasoning", "summary": summary}
    if isinstance(block, Call):
        return {
            "id": f"fc_{name}",
            "type": "function_call",
            "call_id": block.id,
            "name": block.tool,
            "arguments": block.arguments,
            "status": state,
        }
    return {
        "id": block.id,
        "type": "mcp_call",
        "server_label": SERVER,
        "name": block.name,
        "arguments": "{}",
        "output": block.result,
        "error": None,
        "status": "in_progress" if block.result is None else "completed",
    }


def _message(name: str, content: list[dict[str, Any]], state: str, phase: str | None) -> dict[str, Any]:
    return {
        "id": name,
        "type": "message",
        "role": "assistant",
        "status": state,
        "content": content,
        "phase": phase,
    }


def _usage(out: Outgoing) -> dict[str, Any]:
    return {
        "input_tokens": out.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": out.turn.tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": out.input_tokens + out.turn.tokens,
    }


# Reading


def accumulate(stream: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The response that a stream ends with; BrokenStream where it has no end or holds an error.

    A background response that is still under way when its stream closes is the answer as it then stood.
    Items that the last event leaves out are taken from their own events.
    """
    body: dict[str, Any] = {}
    done: dict[int, dict[str, Any]] = {}
    for data in stream:
        kind = data.get("type")
        if kind == "response.output_item.done":
            done[number(data.get("output_index"))] = mapped(data.get("item"))
        elif kind in _FINAL:
            body = mapped(data.get("response"))
            if not body.get("output") and done:
                body = {**body, "output": [done[index] for index in sorted(done)]}
            return body
        elif kind == "error" or data.get("error"):
            error = mapped(data.get("error")) or data
            raise BrokenStream("body_error_event", str(error.get("code") or error.get("type")))
        elif kind in ("response.created", "response.queued", "response.in_progress"):
            body = mapped(data.get("response"))
    if body.get("background") and body.get("status") in ("queued", "in_progress"):
        return body
    raise BrokenStream("cut_no_end")


def decode(body: Mapping[str, Any]) -> Answer:
    """Read a response. It never raises: an unknown status is ``unknown``."""
    if body.get("error") and "status" not in body:
        return _error(body["error"])
    raw = [item for item in listed(body.get("output")) if isinstance(item, dict)]
    blocks, refused = read_items(raw)
    called = any(isinstance(block, Call) for block in blocks)
    stop, native = _stop(body, called=called, refused=refused)
    usage = mapped(body.get("usage"))
    error = mapped(body.get("error"))
    return Answer(
        make_turn(blocks, stop, native=native + _whole(body, raw), category=_category(native)),
        str(body.get("id") or ""),
        number(usage.get("input_tokens")),
        number(usage.get("output_tokens")),
        str(error.get("code") or error.get("message") or "") if stop == "failed" else "",
        raw,
        cache_read=number(mapped(usage.get("input_tokens_details")).get("cached_tokens")),
        thinking=number(mapped(usage.get("output_tokens_details")).get("reasoning_tokens")),
        counted=bool(number(usage.get("input_tokens"))),
    )


def _error(error: Any) -> Answer:
    given = mapped(error)
    name = str(given.get("code") or given.get("type") or error)
    return Answer(make_turn((), "failed", native=name), error=name)


def _whole(body: Mapping[str, Any], raw: list[dict[str, Any]]) -> str:
    """The calls of a response that was cut off which it says are complete all the same, for its label."""
    if body.get("status") != "incomplete":
        return ""
    kinds = [
        str(item.get("type"))
        for item in raw
        if str(item.get("type")).endswith("_call") and item.get("status") == "completed"
    ]
    return f", with a completed {kinds[0]}" if kinds else ""


def _category(native: str) -> str | None:
    return CONTENT_FILTER if native == f"incomplete/{CONTENT_FILTER}" else None


def _stop(body: Mapping[str, Any], *, called: bool, refused: bool) -> tuple[StopReason, str]:
    status = body.get("status")
    if status == "completed":
        if refused:
            return "refusal", "refusal"
        return ("tool_use" if called else "end_turn"), "completed"
    if status == "incomplete":
        reason = mapped(body.get("incomplete_details")).get("reason")
        native = f"incomplete/{reason}"
        if reason == CONTENT_FILTER:
            return "refusal", native
        return ("max_tokens" if reason == "max_output_tokens" else "unknown"), native
    if status in ("queued", "in_progress"):
        return "in_progress", str(status)
    if status in ("failed", "cancelled"):
        return ("failed" if status == "failed" else "cancelled"), str(status)
    return "unknown", "null" if status is None else str(status)


def read_items(raw: list[dict[str, Any]]) -> tuple[tuple[Block, ...], bool]:
    blocks: list[Block] = []
    refused = False
    # A shell in the provider's container answers within the same output.
    answered = {str(item.get("call_id")) for item in raw if str(item.get("type")).endswith("_call_output")}
    for item in raw:
        kind = str(item.get("type"))
        if kind == "message":
            phase = item.get("phase")
            for part in listed(item.get("content")):
                if mapped(part).get("type") == "refusal":
                    refused = True
                else:
                    blocks.append(Text(text_in(part), phase if isinstance(phase, str) else None))
        elif kind == "reasoning":
            blocks.append(Thinking(text_in(item.get("summary")) or text_in(item.get("content"))))
        elif kind in ("function_call", "custom_tool_call"):
            written = (
                item.get("arguments")
                if kind == "function_call"
                else encode_json({"input": item.get("input")}).decode()
            )
            blocks.append(Call(str(item.get("call_id")), str(item.get("name")), str(written or "{}")))
        elif kind in CLIENT_ITEMS and str(item.get("call_id")) not in answered:
            told = encode_json({name: item[name] for name in CLIENT_ITEMS[kind] if name in item}).decode()
            blocks.append(Call(str(item.get("call_id")), kind.removesuffix("_call"), told))
        elif kind.endswith("_call"):
            blocks.append(_server_call(item, kind))
    return tuple(blocks), refused


def _server_call(item: dict[str, Any], kind: str) -> ServerCall:
    name = str(item.get("name") or kind.removesuffix("_call"))
    running = item.get("status") in ("in_progress", "searching", "interpreting", "calling", "generating")
    found = text_in(item.get("output") or item.get("outputs") or item.get("results"))
    return ServerCall(str(item.get("id")), name, None if running else found)


def echo(raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The input items that send an answer back.

    Reasoning goes back only before the item that it led to; blank messages are left out.
    """
    kept: list[dict[str, Any]] = []
    for item in raw:
        if item.get("type") == "message" and not text_in(item.get("content")).strip():
            continue
        kept.append({key: value for key, value in item.items() if value is not None})
    while kept and kept[-1].get("type") == "reasoning":
        kept.pop()
    return kept
