"""Answers of the Messages API: turns written as messages and events, and read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evalkit.core.turns import (
    Block,
    Call,
    ServerCall,
    StopReason,
    Text,
    Thinking,
    Turn,
    make_turn,
    parse_arguments,
)
from evalkit.wire.answers import (
    MARKERS,
    Answer,
    BrokenStream,
    Event,
    Outgoing,
    encode_json,
    listed,
    mapped,
    markers_said,
    number,
    pieces_of,
    text_in,
)

#: Opaque to every client; the scripted model's thinking is not signed by anybody.
SIGNATURE = "c2NyaXB0ZWQ="
_OWN_LABELS = {"context_window": "model_context_window_exceeded"}
#: The categories of a refusal that the API names.
_CATEGORIES = ("cyber", "bio", "frontier_llm", "reasoning_extraction", "general_harms")
_STOPS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "pause_turn": "pause_turn",
    "compaction": "compaction",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "context_window",
    "refusal": "refusal",
    "stop_sequence": "stop_sequence",
}


# Writing


def label_of(turn: Turn) -> str | None:
    """The ``stop_reason`` of a turn."""
    if turn.stop == "unknown":
        return None if turn.native == "null" else turn.native or "unknown"
    return _OWN_LABELS.get(turn.stop, turn.stop)


def message(out: Outgoing) -> dict[str, Any]:
    """The body of an answer that is not streamed. A call cut in its JSON has ``input: {}``, as in the API."""
    turn = out.turn
    return {
        "id": out.id,
        "type": "message",
        "role": "assistant",
        "model": out.model,
        "content": [block for part in turn.content for block in _blocks(part)],
        "stop_reason": label_of(turn),
        "stop_sequence": None,
        "stop_details": _details(turn),
        "usage": {"input_tokens": out.input_tokens, "output_tokens": turn.tokens},
    }


def events(out: Outgoing) -> list[Event]:
    """The same as a stream: one start, deltas and stop for each block, then label and usage."""
    turn = out.turn
    started: dict[str, Any] = {
        **message(out),
        "content": [],
        "stop_reason": None,
        "stop_details": None,
        "usage": {"input_tokens": out.input_tokens, "output_tokens": 1},
    }
    stream: list[Event] = [
        ("message_start", {"type": "message_start", "message": started}),
        ("ping", {"type": "ping"}),
    ]
    index = 0
    for part in turn.content:
        for block in _blocks(part):
            stream.extend(_block_events(block, part, index))
            index += 1
    delta = {"stop_reason": label_of(turn), "stop_sequence": None, "stop_details": _details(turn)}
    usage = {"output_tokens": turn.tokens}
    stream.append(("message_delta", {"type": "message_delta", "delta": delta, "usage": usage}))
    stream.append(("message_stop", {"type": "message_stop"}))
    return stream


def _details(turn: Turn) -> dict[str, Any] | None:
    if turn.stop != "refusal":
        return None
    category = turn.category if turn.category in _CATEGORIES else None
    return {"type": "refusal", "category": category, "explanation": None}


def _blocks(part: Block) -> list[dict[str, Any]]:
    if isinstance(part, Text):
        return [{"type": "text", "text": part.text}]
    if isinstance(part, Thinking):
        return [{"type": "thinking", "thinking": part.text, "signature": SIGNATURE}]
    if isinstance(part, Call):
        value = parse_arguments(part.arguments)
        return [{"type": "tool_use", "id": part.id, "name": part.tool, "input": dict(value or {})}]
    call = {"type": "server_tool_use", "id": part.id, "name": part.name, "input": {}}
    return [call] if part.result is None else [call, _result(part)]


def _result(part: ServerCall) -> dict[str, Any]:
    if part.name == "web_search":
        found = {
            "type": "web_search_result",
            "title": part.result,
            "url": "https://example.invalid/",
            "encrypted_content": SIGNATURE,
            "page_age": None,
        }
        return {"type": "web_search_tool_result", "tool_use_id": part.id, "content": [found]}
    content: dict[str, Any] = {
        "type": "code_execution_result",
        "stdout": part.result,
        "stderr": "",
        "return_code": 0,
        "content": [],
    }
    return {"type": "code_execution_tool_result", "tool_use_id": part.id, "content": content}


def _block_events(block: dict[str, Any], part: Block, index: int) -> list[Event]:
    deltas: list[dict[str, Any]] = []
    opened = block
    if block["type"] == "text":
        opened = {**block, "text": ""}
        deltas = [{"type": "text_delta", "text": text} for text in pieces_of(block["text"])]
    elif block["type"] == "thinking":
        opened = {**block, "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": text} for text in pieces_of(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif block["type"] in ("tool_use", "server_tool_use"):
        opened = {**block, "input": {}}
        written = part.arguments if isinstance(part, Call) else "{}"
        deltas = [{"type": "input_json_delta", "partial_json": text} for text in ("", *pieces_of(written))]
    stream: list[Event] = [
        (
            "content_block_start",
            {"type": "content_block_start", "index": index, "content_block": opened},
        )
    ]
    for delta in deltas:
        data = {"type": "content_block_delta", "index": index, "delta": delta}
        stream.append(("content_block_delta", data))
    stream.append(("content_block_stop", {"type": "content_block_stop", "index": index}))
    return stream


# Reading

#: Where the text of a call's input is kept while it is not valid JSON; no field of the API.
PARTIAL = "partial_json"


def accumulate(stream: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The message that a stream's events make up; BrokenStream where it has no end or holds an error.

    A stream is complete with its ``message_delta``, which says why the model stopped: all that comes after it
    is a mark, and the SDKs do without. A connection that breaks before the mark is told by whoever reads it.
    A call's input that is not valid JSON is kept as text under ``partial_json``.
    """
    body: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    written: dict[int, str] = {}
    labels: list[str] = []
    ended = False
    for data in stream:
        kind = data.get("type")
        if kind == "message_start":
            body = dict(mapped(data.get("message")))
        elif kind == "content_block_start":
            blocks[number(data.get("index"))] = dict(mapped(data.get("content_block")))
        elif kind == "content_block_delta":
            index = number(data.get("index"))
            _add(blocks.setdefault(index, {}), mapped(data.get("delta")), written, index)
        elif kind == "message_delta":
            said = mapped(data.get("delta"))
            if said.get("stop_reason") is not None:
                labels.append(str(said["stop_reason"]))
            body.update({key: value for key, value in said.items() if key != "type"})
            usage = {key: value for key, value in mapped(data.get("usage")).items() if value is not None}
            body["usage"] = {**mapped(body.get("usage")), **usage}
            ended = True
        elif kind == "error":
            raise BrokenStream("body_error_event", str(mapped(data.get("error")).get("type", "")))
    if not ended:
        raise BrokenStream("cut_no_end")
    for index, text in written.items():
        value = parse_arguments(text or "{}")
        blocks[index]["input"] = {} if value is None else dict(value)
        blocks[index][PARTIAL] = text or "{}"
    body["content"] = [blocks[index] for index in sorted(blocks)]
    return {**body, MARKERS: labels} if len(labels) > 1 else body


def _add(block: dict[str, Any], delta: dict[str, Any], written: dict[int, str], index: int) -> None:
    kind = delta.get("type")
    if kind == "text_delta":
        block["text"] = str(block.get("text") or "") + str(delta.get("text") or "")
    elif kind == "thinking_delta":
        block["thinking"] = str(block.get("thinking") or "") + str(delta.get("thinking") or "")
    elif kind == "signature_delta":
        block["signature"] = delta.get("signature")
    elif kind == "input_json_delta":
        written[index] = written.get(index, "") + str(delta.get("partial_json") or "")
    elif kind == "citations_delta":
        block["citations"] = [*listed(block.get("citations")), delta.get("citation")]
    elif kind == "compaction_delta":
        block["content"] = delta.get("content")


def decode(body: Mapping[str, Any]) -> Answer:
    """Read a message. It never raises: what it does not know is left out, an unknown label is ``unknown``."""
    if body.get("type") == "error" or "error" in body:
        return _error(body)
    raw = [block for block in listed(body.get("content")) if isinstance(block, dict)]
    label = body.get("stop_reason")
    stop: StopReason = _STOPS.get(label, "unknown") if isinstance(label, str) else "unknown"
    category = mapped(body.get("stop_details")).get("category") if stop == "refusal" else None
    turn = make_turn(
        read_blocks(raw),
        stop,
        native=markers_said(body, label),
        category=category if isinstance(category, str) else None,
    )
    usage = mapped(body.get("usage"))
    read, written = (
        number(usage.get(name)) for name in ("cache_read_input_tokens", "cache_creation_input_tokens")
    )
    return Answer(
        turn,
        str(body.get("id") or ""),
        number(usage.get("input_tokens")) + read + written,
        number(usage.get("output_tokens")),
        raw=raw,
        cache_read=read,
        cache_written=written,
        thinking=number(mapped(usage.get("output_tokens_details")).get("thinking_tokens")),
        counted=bool(number(usage.get("input_tokens")) + read + written),
    )


def _error(body: Mapping[str, Any]) -> Answer:
    name = str(mapped(body.get("error")).get("type") or "error")
    return Answer(make_turn((), "failed", native=name), error=name)


def read_blocks(raw: list[dict[str, Any]]) -> tuple[Block, ...]:
    """The blocks of a message. Text that is cited comes in pieces, which are whole sentences again here."""
    blocks: list[Block] = []
    cited = False
    for place, block in enumerate(raw):
        kind = str(block.get("type"))
        if kind == "text":
            text, before = str(block.get("text") or ""), cited
            cited = bool(block.get("citations"))
            last = blocks[-1] if place and raw[place - 1].get("type") == "text" else None
            if isinstance(last, Text) and (cited or before):
                blocks[-1] = Text(last.text + text)
            else:
                blocks.append(Text(text))
        elif kind in ("thinking", "redacted_thinking", "compaction"):
            blocks.append(Thinking(text_in(block.get("thinking") or block.get("content"))))
        elif kind == "tool_use":
            written = block.get(PARTIAL)
            arguments = written if isinstance(written, str) else encode_json(block.get("input")).decode()
            blocks.append(Call(str(block.get("id")), str(block.get("name")), arguments))
        elif kind in ("server_tool_use", "mcp_tool_use"):
            blocks.append(ServerCall(str(block.get("id")), str(block.get("name"))))
        elif kind.endswith("_tool_result"):
            _settle(blocks, str(block.get("tool_use_id")), text_in(block.get("content")))
    return tuple(blocks)


def _settle(blocks: list[Block], call: str, result: str) -> None:
    for place, block in enumerate(blocks):
        if isinstance(block, ServerCall) and block.id == call:
            blocks[place] = ServerCall(block.id, block.name, result)


def echo(raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The content that a request sends back for an answer: as it came, without what the API refuses.

    Blank text is refused; an input that was cut in its JSON cannot be sent back.
    """
    kept = []
    for block in raw:
        if block.get("type") == "text" and not str(block.get("text") or "").strip():
            continue
        kept.append({key: value for key, value in block.items() if key != PARTIAL and value is not None})
    thoughts = ("thinking", "redacted_thinking")
    return kept if any(block.get("type") not in thoughts for block in kept) else []
