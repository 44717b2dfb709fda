"""A response as a stream of events, in the order in which the API sends them."""

from __future__ import annotations

from typing import Any

from evalkit.wire.answers import Event, Outgoing, pieces_of
from evalkit.wire.openai_responses.answers import response

_TERMINAL = {
    "incomplete": "response.incomplete",
    "failed": "response.failed",
    "cancelled": "response.failed",
}


class _Numbered:
    """Collects events and numbers them."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, kind: str, **data: Any) -> None:
        self.events.append((kind, {"type": kind, "sequence_number": len(self.events), **data}))


def events(out: Outgoing) -> list[Event]:
    """All events of a response; one that was in the background begins as queued."""
    stream = _Numbered()
    first = "queued" if out.polls else "in_progress"
    stream.add("response.created", response=response(out, first))
    if out.polls:
        stream.add("response.queued", response=response(out, "queued"))
    stream.add("response.in_progress", response=response(out, "in_progress"))
    finished = response(out)
    for index, item in enumerate(finished["output"]):
        _item_events(stream, index, item)
    # A status that the API lacks comes in the event that ends any response.
    kind = _TERMINAL.get(finished["status"] or "", "response.completed")
    stream.add(kind, response=finished)
    return stream.events


def pending_events(out: Outgoing) -> list[Event]:
    """The events of a background response that is only queued."""
    stream = _Numbered()
    stream.add("response.created", response=response(out, "queued"))
    stream.add("response.queued", response=response(out, "queued"))
    return stream.events


def _item_events(stream: _Numbered, index: int, item: dict[str, Any]) -> None:
    kind = item["type"]
    place = {"output_index": index, "item_id": item["id"]}
    if kind == "message":
        stream.add("response.output_item.added", output_index=index, item=_opened(item, content=[]))
        for number, part in enumerate(item["content"]):
            _part_events(stream, {**place, "content_index": number}, part)
    elif kind == "reasoning":
        stream.add("response.output_item.added", output_index=index, item={**item, "summary": []})
        for number, part in enumerate(item["summary"]):
            _summary_events(stream, {**place, "summary_index": number}, part)
    elif kind == "function_call":
        stream.add("response.output_item.added", output_index=index, item=_opened(item, arguments=""))
        for text in pieces_of(item["arguments"]):
            stream.add("response.function_call_arguments.delta", **place, delta=text)
        stream.add("response.function_call_arguments.done", **place, arguments=item["arguments"])
    else:
        stream.add("response.output_item.added", output_index=index, item=_opened(item, output=None))
        stream.add("response.mcp_call.in_progress", **place)
        if item["output"] is not None:
            stream.add("response.mcp_call.completed", **place)
    stream.add("response.output_item.done", output_index=index, item=item)


def _opened(item: dict[str, Any], **empty: Any) -> dict[str, Any]:
    return {**item, **empty, "status": "in_progress"}


def _part_events(stream: _Numbered, place: dict[str, Any], part: dict[str, Any]) -> None:
    if part["type"] == "refusal":
        stream.add("response.content_part.added", **place, part={**part, "refusal": ""})
        for text in pieces_of(part["refusal"]):
            stream.add("response.refusal.delta", **place, delta=text)
        stream.add("response.refusal.done", **place, refusal=part["refusal"])
    else:
        stream.add("response.content_part.added", **place, part={**part, "text": ""})
        for text in pieces_of(part["text"]):
            stream.add("response.output_text.delta", **place, delta=text, logprobs=[])
        stream.add("response.output_text.done", **place, text=part["text"], logprobs=[])
    stream.add("response.content_part.done", **place, part=part)


def _summary_events(stream: _Numbered, place: dict[str, Any], part: dict[str, Any]) -> None:
    stream.add("response.reasoning_summary_part.added", **place, part={**part, "text": ""})
    for text in pieces_of(part["text"]):
        stream.add("response.reasoning_summary_text.delta", **place, delta=text)
    stream.add("response.reasoning_summary_text.done", **place, text=part["text"])
    stream.add("response.reasoning_summary_part.done", **place, part=part)
