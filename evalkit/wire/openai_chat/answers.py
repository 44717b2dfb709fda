"""Answers of the Chat Completions API: turns written as completions and chunks, and read back.

One message holds one text and then its calls: several texts become one, joined by line ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evalkit.core.turns import CONTENT_FILTER, Block, Call, StopReason, Text, Thinking, Turn, make_turn
from evalkit.wire.answers import (
    CREATED,
    MARKERS,
    Answer,
    BrokenStream,
    Event,
    Outgoing,
    listed,
    mapped,
    markers_said,
    number,
    pieces_of,
    text_in,
)

#: What the refusal field says; the scenario's own words, where it has any, are the content.
REFUSAL = "I can't help with that."
_LABELS = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "stop",
}
_STOPS: dict[str, StopReason] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    CONTENT_FILTER: "refusal",
}


# Writing


def label_of(turn: Turn) -> str | None:
    """The ``finish_reason`` of a turn. A label that the API lacks is written as it is."""
    if turn.stop == "unknown":
        return None if turn.native == "null" else turn.native or "unknown"
    return CONTENT_FILTER if _filtered(turn) else _LABELS.get(turn.stop, turn.stop)


def _filtered(turn: Turn) -> bool:
    return turn.stop == "refusal" and turn.category == CONTENT_FILTER


def completion(out: Outgoing) -> dict[str, Any]:
    """The body of an answer that is not streamed."""
    turn = out.turn
    message: dict[str, Any] = {
        "role": "assistant",
        "content": _content(turn),
        "refusal": REFUSAL if turn.stop == "refusal" and not _filtered(turn) else None,
    }
    if turn.calls:
        message["tool_calls"] = [_call(call) for call in turn.calls]
    choice = {"index": 0, "message": message, "finish_reason": label_of(turn), "logprobs": None}
    return {**_frame(out, "chat.completion"), "choices": [choice], "usage": _usage(out)}


def chunks(out: Outgoing, *, usage: bool = True) -> list[Event]:
    """The same as a stream; ``usage`` as the request's ``include_usage`` asked. ``[DONE]`` is not in it."""
    turn = out.turn
    frame = _frame(out, "chat.completion.chunk")
    if usage:
        frame = {**frame, "usage": None}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None if _content(turn) is None else ""}]
    deltas.extend({"content": text} for text in pieces_of(_content(turn) or ""))
    if turn.stop == "refusal" and not _filtered(turn):
        deltas.append({"refusal": REFUSAL})
    for index, call in enumerate(turn.calls):
        opened = {"index": index, **_call(call)}
        opened["function"] = {"name": call.tool, "arguments": ""}
        deltas.append({"tool_calls": [opened]})
        for text in pieces_of(call.arguments):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
    stream: list[Event] = []
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}
        stream.append((None, {**frame, "choices": [choice]}))
    last = {"index": 0, "delta": {}, "finish_reason": label_of(turn), "logprobs": None}
    stream.append((None, {**frame, "choices": [last]}))
    if usage:
        stream.append((None, {**frame, "choices": [], "usage": _usage(out)}))
    return stream


def _frame(out: Outgoing, kind: str) -> dict[str, Any]:
    return {"id": out.id, "object": kind, "created": CREATED, "model": out.model}


def _content(turn: Turn) -> str | None:
    texts = [block.text for block in turn.content if isinstance(block, Text)]
    return "\n".join(texts) if texts else None


def _call(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}


def _usage(out: Outgoing) -> dict[str, int]:
    return {
        "prompt_tokens": out.input_tokens,
        "completion_tokens": out.turn.tokens,
        "total_tokens": out.input_tokens + out.turn.tokens,
    }


# Reading


def accumulate(stream: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The completion that a stream's chunks make up; BrokenStream where it has no end or holds an error.

    A stream is complete with a finish reason, or with the usage that comes after all else.
    """
    body: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    label: Any = None
    labels: list[str] = []
    ended = False
    for data in stream:
        if data.get("error"):
            error = mapped(data["error"])
            raise BrokenStream("body_error_event", str(error.get("code") or error.get("type") or "error"))
        body["id"] = data.get("id") or body.get("id")
        if data.get("usage"):
            body["usage"] = data["usage"]
            ended = True
        for choice in listed(data.get("choices"))[:1]:
            _add(message, calls, mapped(mapped(choice).get("delta")))
            if mapped(choice).get("finish_reason") is not None:
                label = choice["finish_reason"]
                labels.append(str(label))
                ended = True
    if not ended:
        raise BrokenStream("cut_no_end")
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    whole = {"index": 0, "message": message, "finish_reason": label}
    told = {MARKERS: labels} if len(labels) > 1 else {}
    return {**body, "choices": [whole], **told}


def _add(message: dict[str, Any], calls: dict[int, dict[str, Any]], delta: dict[str, Any]) -> None:
    for key in ("content", "refusal", "reasoning_content", "reasoning"):
        said = text_in(delta.get(key))
        if said or (key == "content" and delta.get(key) == ""):
            message[key] = str(message.get(key) or "") + said
    for place, part in enumerate(listed(delta.get("tool_calls"))):
        index = part.get("index")
        call = calls.setdefault(
            index if isinstance(index, int) else place,
            {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
        )
        call["id"] = part.get("id") or call["id"]
        function = mapped(part.get("function"))
        call["function"]["name"] = function.get("name") or call["function"]["name"]
        call["function"]["arguments"] += str(function.get("arguments") or "")


def decode(body: Mapping[str, Any]) -> Answer:
    """Read a completion. It never raises: an unknown label is ``unknown``.

    Reasoning, which some providers add to the message, is read where it is.
    """
    if body.get("error"):
        return _error(body["error"])
    choice = mapped(next(iter(listed(body.get("choices"))), None))
    message = mapped(choice.get("message"))
    label = choice.get("finish_reason")
    stop: StopReason = _STOPS.get(label, "unknown") if isinstance(label, str) else "unknown"
    if message.get("refusal") and stop == "end_turn":
        stop = "refusal"
    native = markers_said(body, label)
    category = CONTENT_FILTER if label == CONTENT_FILTER else None
    turn = make_turn(_blocks(message), stop, native=native, category=category)
    usage = mapped(body.get("usage"))
    spent, said = number(usage.get("prompt_tokens")), number(usage.get("completion_tokens"))
    return Answer(
        turn,
        str(body.get("id") or ""),
        spent,
        # Some providers leave the thinking out of the completion, but not out of the total.
        max(said, number(usage.get("total_tokens")) - spent),
        raw=message,
        cache_read=number(mapped(usage.get("prompt_tokens_details")).get("cached_tokens")),
        thinking=number(mapped(usage.get("completion_tokens_details")).get("reasoning_tokens")),
        counted=bool(spent),
    )


def _error(error: Any) -> Answer:
    given = mapped(error)
    name = str(given.get("code") or given.get("type") or error)
    return Answer(make_turn((), "failed", native=name), error=name)


def _blocks(message: dict[str, Any]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    thought = text_in(message.get("reasoning_content")) or text_in(message.get("reasoning"))
    if thought:
        blocks.append(Thinking(thought))
    content = message.get("content")
    if isinstance(content, str) and (content or not message.get("tool_calls")):
        blocks.append(Text(content))
    for part in listed(content):
        kind = mapped(part).get("type")
        said = text_in(part)
        blocks.append(Thinking(said) if kind in ("thinking", "reasoning") else Text(said))
    for call in listed(message.get("tool_calls")):
        function = mapped(mapped(call).get("function"))
        name, arguments = str(function.get("name")), str(function.get("arguments") or "{}")
        blocks.append(Call(str(call.get("id")), name, arguments))
    old = mapped(message.get("function_call"))
    if old:
        blocks.append(Call("", str(old.get("name")), str(old.get("arguments") or "{}")))
    return tuple(blocks)


def echo(raw: dict[str, Any]) -> dict[str, Any] | None:
    """The message that sends an answer back; None where the API would refuse it for want of content."""
    kept = {key: raw[key] for key in ("content", "refusal", "tool_calls") if raw.get(key)}
    if isinstance(kept.get("content"), str) and not kept["content"].strip():
        del kept["content"]
    return {"role": "assistant", **kept} if "content" in kept or "tool_calls" in kept else None
