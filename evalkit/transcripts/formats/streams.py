"""Recorded bodies of HTTP answers: what an API said, whole, as events or as frames."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator
from typing import Any

from evalkit.transcripts.documents import Broken, decode
from evalkit.transcripts.recording import Unreadable
from evalkit.wire.answers import BrokenStream, listed, mapped, number
from evalkit.wire.anthropic_messages import answers as anthropic
from evalkit.wire.openai_chat import answers as chat
from evalkit.wire.openai_responses import answers as responses

#: The largest body that is unpacked, in bytes.
MAX_BODY = 64_000_000


def unpacked(body: bytes) -> bytes:
    """A body out of its compression; as it is where it has none."""
    if body[:2] == b"\x1f\x8b":
        return _inflate(body, 31)
    if body[:1] == b"\x78" and len(body) > 2 and (body[0] << 8 | body[1]) % 31 == 0:
        try:
            return _inflate(body, 15)
        except Unreadable:
            return body
    return body


def _inflate(body: bytes, bits: int) -> bytes:
    machine = zlib.decompressobj(bits)
    try:
        plain = machine.decompress(body, MAX_BODY)
    except zlib.error as error:
        raise Unreadable(f"has a body that cannot be unpacked: {error}") from None
    if machine.unconsumed_tail:
        raise Unreadable(f"has a body that unpacks to more than {MAX_BODY:,} bytes")
    return plain


def answer_in(body: bytes) -> Any:
    """What a body says: one JSON value, or the answer that a stream makes up; None where it is neither.

    BrokenStream where a stream has no end.
    """
    body = unpacked(body)
    head = body[:4096].lstrip()
    if head[:1] in (b"{", b"["):
        try:
            return _whole(decode(body))
        except Broken:
            pass
    if b"data:" in body[:65536]:
        events = list(_events(body))
        if events:
            return _joined(events)
    if len(body) > 16 and int.from_bytes(body[:4], "big") <= len(body):
        frames = list(_frames(body))
        if frames:
            return _converse(frames)
    lines = [line for line in body.splitlines() if line.strip()]
    if len(lines) > 1 and all(line.lstrip()[:1] == b"{" for line in lines):
        try:
            return _joined([mapped(decode(line)) for line in lines])
        except Broken:
            return None
    return None


def _whole(value: Any) -> Any:
    """Gemini streams without SSE as a list of chunks."""
    if isinstance(value, list) and value and "candidates" in mapped(value[0]):
        return _joined([mapped(chunk) for chunk in value])
    return value


def _events(body: bytes) -> Iterator[dict[str, Any]]:
    for line in body.replace(b"\r\n", b"\n").split(b"\n"):
        if line.startswith(b"data:"):
            try:
                value = decode(line[5:].strip())
            except Broken:
                continue
            if isinstance(value, dict):
                yield value


def _joined(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer that the events of a stream make up, by the dialect that they are of."""
    kinds = {str(event.get("type")) for event in events}
    if any(kind.startswith("response.") for kind in kinds):
        return responses.accumulate(events)
    if kinds & {"message_start", "content_block_start", "message_stop"}:
        return anthropic.accumulate(events)
    if any("candidates" in event for event in events):
        return _gemini(events)
    if "error" in kinds or any(event.get("error") for event in events[:1]):
        return next(event for event in events if event.get("error") or event.get("type") == "error")
    return chat.accumulate(events)


def _gemini(events: list[dict[str, Any]]) -> dict[str, Any]:
    parts: list[Any] = []
    label = None
    usage: dict[str, Any] = {}
    for event in events:
        candidate = mapped(next(iter(listed(event.get("candidates"))), None))
        for part in listed(mapped(candidate.get("content")).get("parts")):
            given = mapped(part)
            last = mapped(parts[-1]) if parts else {}
            if (
                set(given) <= {"text", "thought"}
                and set(last) <= {"text", "thought"}
                and parts
                and given.get("thought") == last.get("thought")
            ):
                parts[-1] = {**last, "text": str(last.get("text") or "") + str(given.get("text") or "")}
            else:
                parts.append(part)
        label = candidate.get("finishReason") or label
        usage = mapped(event.get("usageMetadata")) or usage
    if label is None:
        raise BrokenStream("cut_no_end")
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": label}],
        "usageMetadata": usage,
    }


# Amazon's event streams


def _frames(body: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """The messages of an ``application/vnd.amazon.eventstream``: prelude, headers, payload, checksum."""
    at = 0
    while at + 16 <= len(body):
        size, heads = int.from_bytes(body[at : at + 4], "big"), int.from_bytes(body[at + 4 : at + 8], "big")
        checked = int.from_bytes(body[at + 8 : at + 12], "big")
        if size < 16 + heads or at + size > len(body) or binascii.crc32(body[at : at + 8]) != checked:
            return
        headers = body[at + 12 : at + 12 + heads]
        payload = body[at + 12 + heads : at + size - 4]
        try:
            yield _event_type(headers), mapped(decode(payload))
        except Broken:
            return
        at += size


def _event_type(headers: bytes) -> str:
    at = 0
    while at < len(headers):
        length = headers[at]
        name = headers[at + 1 : at + 1 + length]
        at += 1 + length
        if headers[at : at + 1] != b"\x07":
            return ""
        size = int.from_bytes(headers[at + 1 : at + 3], "big")
        if name == b":event-type":
            return headers[at + 3 : at + 3 + size].decode("utf-8", "replace")
        at += 3 + size
    return ""


def _converse(frames: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    if all(kind == "chunk" for kind, _ in frames):
        return _joined([mapped(decode(base64.b64decode(str(data.get("bytes") or "")))) for _, data in frames])
    blocks: dict[int, dict[str, Any]] = {}
    written: dict[int, str] = {}
    stop = None
    usage: dict[str, Any] = {}
    for kind, data in frames:
        place = number(data.get("contentBlockIndex"))
        if kind == "contentBlockStart":
            tool = mapped(mapped(data.get("start")).get("toolUse"))
            if tool:
                blocks[place] = {"toolUse": dict(tool)}
        elif kind == "contentBlockDelta":
            delta = mapped(data.get("delta"))
            if "text" in delta:
                block = blocks.setdefault(place, {"text": ""})
                block["text"] = str(block.get("text") or "") + str(delta["text"])
            elif "reasoningContent" in delta:
                block = blocks.setdefault(place, {"reasoningContent": {"text": ""}})
                block["reasoningContent"]["text"] += str(mapped(delta["reasoningContent"]).get("text") or "")
            elif "toolUse" in delta:
                written[place] = written.get(place, "") + str(mapped(delta["toolUse"]).get("input") or "")
        elif kind == "messageStop":
            stop = data.get("stopReason")
        elif kind == "metadata":
            usage = mapped(data.get("usage"))
        elif kind.endswith("Exception"):
            return {"error": {"type": kind, "message": data.get("message")}}
    if stop is None:
        raise BrokenStream("cut_no_end")
    for place, text in written.items():
        blocks.setdefault(place, {"toolUse": {}})["toolUse"]["input"] = text
    message = {"role": "assistant", "content": [blocks[place] for place in sorted(blocks)]}
    return {"output": {"message": message}, "stopReason": stop, "usage": usage}
