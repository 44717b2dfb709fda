"""OpenAI Responses: item lists, and response objects that continue one another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evalkit.core.turns import Call, make_turn
from evalkit.transcripts.messages import looks_failed
from evalkit.transcripts.recording import Conversation
from evalkit.wire.answers import listed, mapped, text_in
from evalkit.wire.openai_responses.answers import decode, read_items

_OUTPUTS = (
    "function_call_output",
    "custom_tool_call_output",
    "computer_call_output",
    "local_shell_call_output",
)
_TYPES = frozenset(("message", "reasoning", "function_call", "custom_tool_call", *_OUTPUTS))


def is_item(value: Any) -> bool:
    """Whether a value is an input or output item of the API."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    return isinstance(kind, str) and (kind in _TYPES or (kind.endswith("_call") and "id" in value))


def is_response(record: dict[str, Any]) -> bool:
    """Whether a record is a response, alone or with the input that it answered."""
    return isinstance(record.get("output"), list) and (
        record.get("object") == "response" or "input" in record or all(map(is_item, record["output"]))
    )


def read_input(conversation: Conversation, given: Any) -> None:
    """Add what was sent: a text, or a list of items."""
    if isinstance(given, str):
        conversation.user(given)
    else:
        read_item_list(conversation, listed(given))


def read_item_list(conversation: Conversation, items: Iterable[Any]) -> int:
    """Add a list of items; the model's without anything between them are one turn. How many there were."""
    spoken: list[dict[str, Any]] = []
    count = 0
    for item in items:
        given = mapped(item)
        kind, role = given.get("type", "message"), given.get("role")
        if not is_item(given) and role is None:
            continue
        count += 1
        if kind in _OUTPUTS:
            _flush(conversation, spoken)
            _output(conversation, given)
        elif kind == "message" and role in ("system", "developer"):
            _flush(conversation, spoken)
            conversation.system(text_in(given.get("content")))
        elif kind == "message" and role != "assistant":
            _flush(conversation, spoken)
            conversation.user(text_in(given.get("content")))
        elif kind == "message" and isinstance(given.get("content"), str):
            spoken.append(
                {**given, "type": "message", "content": [{"type": "output_text", "text": given["content"]}]}
            )
        else:
            spoken.append(given)
    _flush(conversation, spoken)
    return count


def _flush(conversation: Conversation, spoken: list[dict[str, Any]]) -> None:
    if not spoken:
        return
    blocks, refused = read_items(spoken)
    called = any(isinstance(block, Call) for block in blocks)
    conversation.turn(make_turn(blocks, "refusal" if refused else "tool_use" if called else "end_turn"))
    spoken.clear()


def _output(conversation: Conversation, item: dict[str, Any]) -> None:
    text = text_in(item.get("output"))
    failed = item.get("status") == "incomplete" or looks_failed(text)
    conversation.result(str(item.get("call_id")), text, failed)


def read_response(conversation: Conversation, response: dict[str, Any]) -> None:
    """Add a response object: one turn, with the stop that its status says."""
    instructions = response.get("instructions")
    if isinstance(instructions, str) and not conversation.instructions:
        conversation.system(instructions)
    for tool in listed(response.get("tools")):
        name = mapped(tool).get("name")
        if isinstance(name, str):
            conversation.tools[name] = None
    if "status" not in response:
        _flush(conversation, [item for item in response["output"] if isinstance(item, dict)])
        return
    answer = decode(response)
    usage = isinstance(response.get("usage"), dict)
    conversation.turn(
        answer.turn,
        input_tokens=answer.input_tokens if usage else None,
        output_tokens=answer.output_tokens if usage else None,
    )
