"""Message lists: OpenAI Chat and Anthropic Messages, and what other formats made of them.

Both shapes are read message by message, since harnesses mix them: a ``tool`` role beside content blocks,
arguments as text or as an object, a call with or without its ``function`` wrapper.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evalkit.core.turns import Block, Call, StopReason, Text, Thinking, make_turn
from evalkit.transcripts.recording import Conversation, Speaker
from evalkit.wire.answers import encode_json, listed, mapped, text_in
from evalkit.wire.anthropic_messages.answers import read_blocks

#: Native stop labels of both APIs and of Inspect, the OpenTelemetry conventions and LiteLLM.
STOPS: dict[str, StopReason] = {
    "stop": "end_turn",
    "end_turn": "end_turn",
    "tool_calls": "tool_use",
    "tool_call": "tool_use",
    "tool_use": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
    "pause_turn": "pause_turn",
    "compaction": "compaction",
    "stop_sequence": "stop_sequence",
    "model_length": "context_window",
    "model_context_window_exceeded": "context_window",
    "error": "failed",
}
_ANTHROPIC_BLOCKS = frozenset(
    ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use")
)
ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function", "model", "human", "exit"))


def is_message(value: Any) -> bool:
    """Whether a value looks like a message of a list of messages."""
    return isinstance(value, dict) and isinstance(value.get("role"), str) and value["role"] in ROLES


def is_anthropic(message: dict[str, Any]) -> bool:
    """Whether a message can only be one of Anthropic Messages."""
    content = message.get("content")
    return "stop_reason" in message or (
        isinstance(content, list) and any(mapped(block).get("type") in _ANTHROPIC_BLOCKS for block in content)
    )


def stop_of(label: Any, calls: bool) -> tuple[StopReason, str | None]:
    """The stop reason of a native label; by the content where no label was kept."""
    if isinstance(label, str) and label:
        return STOPS.get(label.lower(), "unknown"), label
    return ("tool_use" if calls else "end_turn"), None


def arguments_of(value: Any) -> str:
    """A call's arguments as JSON text."""
    if isinstance(value, str):
        return value or "{}"
    return encode_json({} if value is None else value).decode()


def call_of(raw: Any, place: int = 0) -> Call:
    """A call as Chat Completions, Inspect, tau2 and ATIF write it."""
    given = mapped(raw)
    function = given.get("function")
    inner = mapped(function)
    name = inner.get("name") or given.get("name") or given.get("function_name")
    if isinstance(function, str):
        name = function
    arguments = given.get("arguments") if "arguments" in given else inner.get("arguments")
    identity = given.get("id") or given.get("tool_call_id") or given.get("call_id") or f"call-{place}"
    return Call(str(identity), str(name or "unknown"), arguments_of(arguments))


def looks_failed(text: str) -> bool:
    """Whether a tool's answer without an error flag is an error: its first word says so."""
    head = text.lstrip()[:20].lower()
    return head.startswith(("error", "traceback", "exception"))


def read_message(
    conversation: Conversation, message: dict[str, Any], by: Speaker = "user", agent: str = ""
) -> None:
    """Add one message of a list to a conversation."""
    role, content = message.get("role"), message.get("content")
    if role in ("system", "developer"):
        conversation.system(text_in(content))
    elif role in ("assistant", "model"):
        _assistant(conversation, message, agent)
    elif role in ("tool", "function"):
        _tool(conversation, message)
    elif role in ("user", "human"):
        _user(conversation, content, by)


def read_messages(
    conversation: Conversation, messages: Iterable[Any], by: Speaker = "user"
) -> tuple[int, bool]:
    """Add a list of messages, what is no message left out. How many there were; whether Anthropic's."""
    count, anthropic = 0, False
    for message in messages:
        if is_message(message):
            count += 1
            anthropic = anthropic or is_anthropic(message)
            read_message(conversation, message, by)
    return count, anthropic


def _assistant(conversation: Conversation, message: dict[str, Any], agent: str) -> None:
    content = message.get("content")
    blocks: list[Block] = []
    thought = text_in(message.get("reasoning_content")) or text_in(message.get("reasoning"))
    if thought:
        blocks.append(Thinking(thought))
    if isinstance(content, list):
        for block in content:
            kind = mapped(block).get("type")
            if kind == "reasoning":
                blocks.append(Thinking(text_in(block.get("reasoning") or block.get("summary"))))
            elif kind in ("text", "output_text") or not isinstance(block, dict):
                blocks.append(Text(text_in(block)))
            elif kind == "tool_use":
                blocks.append(
                    Call(str(block.get("id")), str(block.get("name")), arguments_of(block.get("input")))
                )
        if any(mapped(block).get("type") in _ANTHROPIC_BLOCKS - {"tool_use"} for block in content):
            blocks = list(read_blocks([block for block in content if isinstance(block, dict)]))
    elif content:
        blocks.append(Text(text_in(content)))
    refusal = text_in(message.get("refusal"))
    if refusal:
        blocks.append(Text(refusal))
    for place, raw in enumerate(listed(message.get("tool_calls"))):
        blocks.append(call_of(raw, place))
    if isinstance(message.get("function_call"), dict):
        blocks.append(call_of(message["function_call"]))
    label = message.get("stop_reason") or message.get("finish_reason")
    stop, native = stop_of(label, any(isinstance(block, Call) for block in blocks))
    if refusal and stop == "end_turn":
        stop, native = "refusal", native or "refusal"
    usage = message.get("usage")
    conversation.turn(
        make_turn(tuple(blocks), stop, native=native),
        agent or str(message.get("name") or ""),
        tokens_in(usage) if isinstance(usage, dict) else None,
        tokens_out(usage) if isinstance(usage, dict) else None,
    )


def tokens_in(usage: dict[str, Any]) -> int | None:
    """The input tokens of a usage record, caches included; None where it has none."""
    given = usage.get("prompt_tokens", usage.get("input_tokens"))
    if not isinstance(given, int):
        return None
    cached = 0
    if "prompt_tokens" not in usage:
        for name in ("cache_creation_input_tokens", "cache_read_input_tokens"):
            cached += usage[name] if isinstance(usage.get(name), int) else 0
    return given + cached


def tokens_out(usage: dict[str, Any]) -> int | None:
    """The output tokens of a usage record."""
    given = usage.get("completion_tokens", usage.get("output_tokens"))
    return given if isinstance(given, int) else None


def _tool(conversation: Conversation, message: dict[str, Any]) -> None:
    text = text_in(message.get("content"))
    identities = listed(message.get("tool_call_ids"))
    identity = message.get("tool_call_id") or (identities[0] if identities else None) or message.get("id")
    last = conversation.last
    calls = last.turn.calls if last is not None else ()
    if not any(call.id == identity for call in calls):
        name = message.get("name") or message.get("function")
        answered = {result.id for result in last.results} if last is not None else set()
        named = [call for call in calls if call.id not in answered and name in (None, call.tool)]
        if named:
            identity = named[0].id
    error = message.get("error")
    failed = bool(error) if error is not None else looks_failed(text)
    conversation.result(str(identity), text or text_in(mapped(error).get("message")), failed)


def _user(conversation: Conversation, content: Any, by: Speaker) -> None:
    if not isinstance(content, list):
        conversation.user(text_in(content), by)
        return
    words = []
    for block in content:
        given = mapped(block)
        if given.get("type") == "tool_result":
            text = text_in(given.get("content"))
            error = given.get("is_error")
            failed = error if isinstance(error, bool) else looks_failed(text)
            conversation.result(str(given.get("tool_use_id")), text, failed)
        else:
            words.append(text_in(block))
    said = "\n".join(word for word in words if word)
    if said or not any(mapped(block).get("type") == "tool_result" for block in content):
        conversation.user(said, by)
