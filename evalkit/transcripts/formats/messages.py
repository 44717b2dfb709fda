"""Message lists: OpenAI Chat, Anthropic Messages, Bedrock Converse, Gemini contents, and their kin.

All are read message by message by one rule, since harnesses mix the shapes: a ``tool`` role beside content
blocks, arguments as text or as an object, a call with or without its ``function`` wrapper, ``parts`` for
``content``, answers within the model's own message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evalkit.core.requests import Result
from evalkit.core.turns import Block, Call, ServerCall, StopReason, Text, Thinking, make_turn
from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.formats.parts import Odd, arguments_of, kind_of, listed_parts, part_of
from evalkit.transcripts.recording import Conversation, Speaker
from evalkit.wire.answers import listed, mapped, text_in

__all__ = ["arguments_of", "looks_failed"]

#: Native stop labels of the APIs and of Inspect, the OpenTelemetry conventions, LiteLLM, the AI SDK, pi.
STOPS: dict[str, StopReason] = {
    "stop": "end_turn",
    "end_turn": "end_turn",
    "endturn": "end_turn",
    "completed": "end_turn",
    "complete": "end_turn",
    "tool_calls": "tool_use",
    "tool-calls": "tool_use",
    "tool_call": "tool_use",
    "tool_use": "tool_use",
    "tooluse": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxtokens": "max_tokens",
    "content_filter": "refusal",
    "content-filter": "refusal",
    "content_filtered": "refusal",
    "guardrail_intervened": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
    "prohibited_content": "refusal",
    "blocklist": "refusal",
    "recitation": "refusal",
    "pause_turn": "pause_turn",
    "compaction": "compaction",
    "stop_sequence": "stop_sequence",
    "model_length": "context_window",
    "model_context_window_exceeded": "context_window",
    "malformed_function_call": "failed",
    "error": "failed",
    "aborted": "cancelled",
    "abort": "cancelled",
    "cancelled": "cancelled",
    "interrupted": "cancelled",
}
_SYSTEM = ("system", "developer")
_MODEL = frozenset(("assistant", "model", "ai", "gpt", "bot"))
_TOOL = ("tool", "function", "toolResult", "tool_result", "ipython")
_USER = ("user", "human")
ROLES = frozenset((*_SYSTEM, *_MODEL, *_TOOL, *_USER, "exit"))
#: Fields in which a message may hold what it says; one with a role and none of them is another format's.
_HOLDS = frozenset(
    (
        "content",
        "tool_calls",
        "parts",
        "function_call",
        "refusal",
        "reasoning_content",
        "toolInvocations",
    )
)
_ANTHROPIC_BLOCKS = frozenset(
    ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use")
)
_ANTHROPIC_STOPS = frozenset(("end_turn", "tool_use", "max_tokens", "stop_sequence", "pause_turn", "refusal"))
_BEDROCK = frozenset(("text", "toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent"))


def is_message(value: Any) -> bool:
    """Whether a value looks like a message: a role that there is, and a field that may hold its words."""
    if not isinstance(value, dict):
        return False
    role = value.get("role")
    if not isinstance(role, str) or role not in ROLES:
        return False
    return "content" in value or not _HOLDS.isdisjoint(value)


def dialect_of(messages: Iterable[Any]) -> str:
    """The format of a list of messages, by its blocks; OpenAI's where nothing says otherwise."""
    found = "openai-chat"
    for message in messages:
        if not isinstance(message, dict):
            continue
        content = message.get("content")
        if content is None and isinstance(message.get("parts"), list):
            parts = [part for part in message["parts"] if isinstance(part, dict)]
            if message.get("role") == "model" or any("type" not in part for part in parts):
                return "gemini-api"
            if "toolInvocations" in message or any(_is_ui(part) for part in parts):
                return "ai-sdk-ui"
            found = "ai-sdk-ui"
        elif "toolInvocations" in message:
            return "ai-sdk-ui"
        elif message.get("stop_reason") in _ANTHROPIC_STOPS:
            return "anthropic-messages"
        elif isinstance(content, list):
            for block in content:
                if not isinstance(block, dict):
                    continue
                if "type" not in block and _BEDROCK & block.keys():
                    return "bedrock-converse"
                if block.get("type") in _ANTHROPIC_BLOCKS:
                    return "anthropic-messages"
    return found


def _is_ui(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and (kind.startswith("tool-") or kind in ("step-start", "dynamic-tool"))


def stop_of(label: Any, calls: bool) -> tuple[StopReason, str | None]:
    """The stop reason of a native label; by the content where no label was kept."""
    if isinstance(label, str) and label:
        stop = STOPS.get(label.lower(), "unknown")
        # Gemini and pi say "stop" of a turn with calls too.
        return ("tool_use" if calls and stop == "end_turn" and label.lower() == "stop" else stop), label
    return ("tool_use" if calls else "end_turn"), None


def call_of(raw: Any, place: int = 0) -> Call:
    """A call as Chat Completions, Inspect, tau2, LangChain and ATIF write it."""
    given = mapped(raw)
    function = given.get("function")
    inner = mapped(function)
    name = inner.get("name") or given.get("name") or given.get("function_name")
    if isinstance(function, str):
        name = function
    arguments = given.get("arguments") if "arguments" in given else inner.get("arguments")
    if arguments is None:
        arguments = next((given[key] for key in ("args", "input", "parameters") if key in given), None)
    if name is None and isinstance(given.get("custom"), dict):
        name, arguments = given["custom"].get("name"), given["custom"].get("input")
    identity = (
        given.get("id")
        or given.get("tool_call_id")
        or given.get("call_id")
        or given.get("toolCallId")
        or f"call-{place}"
    )
    return Call(str(identity), str(name or "unknown"), arguments_of(arguments))


def read_message(
    conversation: Conversation, message: dict[str, Any], by: Speaker = "user", agent: str = ""
) -> None:
    """Add one message of a list to a conversation."""
    role = message.get("role")
    content = message.get("content")
    if content is None:
        content = message.get("parts")
    if role in _SYSTEM:
        conversation.system(text_in(content))
    elif role in _MODEL:
        _assistant(conversation, message, content, agent)
    elif role in _TOOL:
        _tool(conversation, message, content)
    elif role in _USER:
        _user(conversation, content, by)


def read_messages(conversation: Conversation, messages: Iterable[Any], by: Speaker = "user") -> int:
    """Add a list of messages; what is no message is noted with its place. How many there were."""
    count = 0
    for number, message in enumerate(messages, 1):
        if is_message(message):
            count += 1
            read_message(conversation, message, by)
        else:
            conversation.skip(what_of(message), f"message {number}")
    return count


def what_of(value: Any) -> str:
    """What a value is that is no message, in a few words."""
    if isinstance(value, dict):
        return f"is no message; its fields: {', '.join(list(map(str, value))[:6]) or 'none'}"[:120]
    return f"is no message: a {type(value).__name__}"


def _assistant(conversation: Conversation, message: dict[str, Any], content: Any, agent: str) -> None:
    blocks: list[Block] = []
    later: list[Result] = []
    thought = message.get("reasoning_content") or message.get("reasoning")
    if thought and (thought := text_in(thought)):
        blocks.append(Thinking(thought))
    invoked = listed(message.get("toolInvocations"))
    speaker = agent or str(message.get("name") or "")
    label = message.get("stop_reason") or message.get("finish_reason") or message.get("stopReason")
    usage = message.get("usage")
    if isinstance(content, list) and invoked and any(kind_of(mapped(part)) in _UI_CALLS for part in content):
        invoked = []
    for raw in listed_parts(content):
        if isinstance(raw, dict):
            kind = kind_of(raw)
            if kind == "step-start":
                if blocks:
                    _said(conversation, blocks, later, None, None, speaker)
                    blocks, later = [], []
                continue
            if kind in _UI_CALLS or (kind.startswith("tool-") and "toolCallId" in raw):
                call, result = _invoked(raw, kind, len(blocks))
                if later and not isinstance(blocks[-1], Call):
                    _said(conversation, blocks, later, None, None, speaker)
                    blocks, later = [], []
                blocks.append(call)
                later += result
                continue
        part = part_of(raw, len(blocks))
        if isinstance(part, Odd):
            conversation.skip(f"a block that nobody knows: {part.what}")
        elif isinstance(part, Result):
            later.append(part)
        elif part is not None:
            if later:
                # Words after an answer are the next response, kept in the same message.
                _said(conversation, blocks, later, None, None, speaker)
                blocks, later = [], []
            blocks.append(part)
    if isinstance(content, list):
        _answer_server_calls(blocks, content)
    refusal = message.get("refusal")
    if refusal and (refusal := text_in(refusal)):
        blocks.append(Text(refusal))
    for place, raw in enumerate(listed(message.get("tool_calls"))):
        blocks.append(call_of(raw, place))
    if isinstance(message.get("function_call"), dict):
        blocks.append(call_of(message["function_call"]))
    for place, raw in enumerate(invoked):
        call, result = _invoked(mapped(raw), "tool-invocation", place)
        blocks.append(call)
        later += result
    _said(
        conversation,
        blocks,
        later,
        label,
        usage if isinstance(usage, dict) else None,
        speaker,
        refused=bool(refusal),
    )


_UI_CALLS = ("dynamic-tool", "tool-invocation")


def _invoked(raw: dict[str, Any], kind: str, place: int) -> tuple[Call, list[Result]]:
    """A call of the AI SDK's UI messages, with its answer in the same part."""
    given = mapped(raw.get("toolInvocation")) or raw
    name = given.get("toolName") or kind.removeprefix("tool-")
    identity = str(given.get("toolCallId") or f"call-{place}")
    arguments = given.get("input") if "input" in given else given.get("args")
    call = Call(identity, str(name), arguments_of(arguments))
    state = str(given.get("state") or "")
    if state in ("output-error", "output-denied"):
        return call, [Result(identity, text_in(given.get("errorText")) or state, True)]
    if state in ("output-available", "result"):
        value = given.get("output") if "output" in given else given.get("result")
        return call, _results({"type": "tool_result", "tool_use_id": identity, "content": value})
    return call, []


def _results(raw: dict[str, Any]) -> list[Result]:
    part = part_of(raw)
    return [part] if isinstance(part, Result) else []


def _answer_server_calls(blocks: list[Block], content: list[Any]) -> None:
    """The provider's own tools are answered within the message."""
    answers = {
        str(raw.get("tool_use_id")): raw
        for raw in content
        if isinstance(raw, dict) and str(raw.get("type")).endswith("_tool_result")
    }
    for place, block in enumerate(blocks):
        if isinstance(block, ServerCall) and block.result is None and block.id in answers:
            blocks[place] = ServerCall(block.id, block.name, text_in(answers[block.id].get("content")))


def _said(
    conversation: Conversation,
    blocks: list[Block],
    later: list[Result],
    label: Any,
    usage: dict[str, Any] | None,
    agent: str,
    *,
    refused: bool = False,
) -> None:
    stop, native = stop_of(label, any(isinstance(block, Call) for block in blocks))
    if refused and stop == "end_turn":
        stop, native = "refusal", native or "refusal"
    conversation.turn(
        make_turn(tuple(blocks), stop, native=native),
        agent,
        tokens_in(usage) if usage is not None else None,
        tokens_out(usage) if usage is not None else None,
    )
    for result in later:
        answer(conversation, result)


def answer(conversation: Conversation, result: Result) -> None:
    """Add a tool's answer; one that names no call of the last turn is that of the first unanswered one.

    Where the answer carries the tool's name in place of an id (Gemini), it answers a call of that name.
    """
    last = conversation.last
    calls = last.turn.calls if last is not None else ()
    identity = result.id
    if not any(call.id == identity for call in calls):
        answered = {given.id for given in last.results} if last is not None else set()
        free = [call for call in calls if call.id not in answered]
        named = [call for call in free if call.tool == identity]
        if named:
            identity = named[0].id
        elif free and not identity:
            identity = free[0].id
    conversation.result(identity, result.text, result.error)


def tokens_in(usage: dict[str, Any]) -> int | None:
    """The input tokens of a usage record, caches included; None where it has none."""
    for name in ("prompt_tokens", "promptTokenCount", "prompt_token_count"):
        if isinstance(usage.get(name), int):
            return int(usage[name])
    for name, caches in _INPUT:
        if isinstance(usage.get(name), int):
            return sum(int(usage[key]) for key in (name, *caches) if isinstance(usage.get(key), int))
    return None


_INPUT = (
    ("input_tokens", ("cache_creation_input_tokens", "cache_read_input_tokens")),
    ("inputTokens", ("cacheReadInputTokens", "cacheWriteInputTokens")),
    ("input", ("cacheRead", "cacheWrite")),
    ("promptTokens", ()),
)


def tokens_out(usage: dict[str, Any]) -> int | None:
    """The output tokens of a usage record."""
    for name in _OUTPUT:
        given = usage.get(name)
        if isinstance(given, int):
            return given
    return None


_OUTPUT = (
    *("completion_tokens", "output_tokens", "outputTokens", "output", "candidatesTokenCount"),
    *("candidates_token_count", "completionTokens"),
)


def _tool(conversation: Conversation, message: dict[str, Any], content: Any) -> None:
    if isinstance(content, list):
        results = [part for part in map(part_of, content) if isinstance(part, Result)]
        if results:
            for result in results:
                answer(conversation, result)
            return
    text = content if isinstance(content, str) else text_in(content)
    if not text and isinstance(content, dict):
        text = arguments_of(content)
    identities = listed(message.get("tool_call_ids"))
    identity = (
        message.get("tool_call_id")
        or message.get("toolCallId")
        or (identities[0] if identities else None)
        or message.get("id")
    )
    last = conversation.last
    calls = last.turn.calls if last is not None else ()
    if not any(call.id == identity for call in calls):
        name = message.get("name") or message.get("function") or message.get("toolName")
        answered = {result.id for result in last.results} if last is not None else set()
        named = [call for call in calls if call.id not in answered and name in (None, call.tool)]
        if named:
            identity = named[0].id
    error = message.get("error")
    flag = message.get("isError", message.get("is_error"))
    if flag is None and message.get("status") in ("error", "success"):
        flag = message["status"] == "error" or None
    failed = bool(error) if error is not None else flag if isinstance(flag, bool) else looks_failed(text)
    conversation.result(str(identity), text or text_in(mapped(error).get("message")), failed)


def _user(conversation: Conversation, content: Any, by: Speaker) -> None:
    if not isinstance(content, list):
        conversation.user(text_in(content), by)
        return
    words = []
    answered = False
    for block in content:
        part = part_of(block)
        if isinstance(part, Result):
            answered = True
            answer(conversation, part)
        elif isinstance(part, Odd):
            conversation.skip(f"a block that nobody knows: {part.what}")
        else:
            words.append(text_in(block))
    said = "\n".join(word for word in words if word)
    if said or not answered:
        conversation.user(said, by)
