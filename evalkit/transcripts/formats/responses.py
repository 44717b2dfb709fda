"""OpenAI Responses: item lists, and response objects that continue one another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evalkit.core.turns import Call, make_turn, parse_arguments
from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.formats.parts import answer_text, failed_fields
from evalkit.transcripts.recording import Conversation
from evalkit.wire.answers import listed, mapped, text_in
from evalkit.wire.openai_responses.answers import decode, read_items

OUTPUTS = frozenset(
    (
        *(
            "function_call_output",
            "custom_tool_call_output",
            "computer_call_output",
            "local_shell_call_output",
        ),
        *("shell_call_output", "apply_patch_call_output"),
    )
)
_TYPES = frozenset(("reasoning", "function_call", "custom_tool_call", *OUTPUTS))
_PARTS = frozenset(("input_text", "output_text", "refusal", "input_image", "input_file", "summary_text"))


def is_item(value: Any) -> bool:
    """Whether a value is an input or output item of the API; a message of Anthropic's has a type too."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if kind == "message":
        content = value.get("content")
        if "stop_reason" in value or "role" not in value:
            return False
        if isinstance(content, list):
            return all(mapped(part).get("type") in _PARTS for part in content)
        return isinstance(content, str)
    if not isinstance(kind, str):
        return False
    if kind in _TYPES:
        return kind == "reasoning" or "call_id" in value or "id" in value
    return kind.endswith("_call") and ("id" in value or "call_id" in value)


def input_text(raw: Any) -> tuple[str, bool | None]:
    """An output's words, and whether its own fields say that the call failed; None where they do not."""
    value = raw
    if isinstance(raw, str) and raw.startswith("{"):
        value = parse_arguments(raw)
        if value is None:
            return raw, None
    if isinstance(value, dict):
        flag = failed_fields(mapped(value.get("metadata")))
        flag = failed_fields(value) if flag is None else flag
        text = value.get("output", value.get("content"))
        if isinstance(text, str):
            return text, flag
        return (raw if isinstance(raw, str) else answer_text(text if text is not None else value)), flag
    return answer_text(value), None


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
    for number, item in enumerate(items, 1):
        given = mapped(item)
        kind, role = given.get("type", "message"), given.get("role")
        if isinstance(kind, str) and kind.endswith("_output") and kind not in OUTPUTS:
            # The answers of the provider's own tools.
            continue
        if not is_item(given) and (role is None or "content" not in given):
            conversation.skip(
                f"an item that nobody knows: {given.get('type') or ', '.join(list(map(str, given))[:6])}",
                f"item {number}",
            )
            continue
        count += 1
        if kind in OUTPUTS:
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
            spoken.append({**given, "type": kind})
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
    text, flag = input_text(item.get("output"))
    failed = looks_failed(text) if flag is None else flag
    conversation.result(
        str(item.get("call_id") or item.get("id")), text, failed or item.get("status") == "incomplete"
    )


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
