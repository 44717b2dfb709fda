"""pydantic-ai: message histories of requests and responses in parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evalkit.core.requests import Result
from evalkit.core.turns import Block, Call, Text, Thinking, make_turn
from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.formats.messages import (
    answer,
    stop_of,
    tokens_in,
    tokens_out,
)
from evalkit.transcripts.formats.parts import answer_text, arguments_of
from evalkit.transcripts.recording import Conversation, Ended, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in


def is_pydantic_ai(value: Any) -> bool:
    """A message: its kind, and parts that say their ``part_kind``."""
    return (
        isinstance(value, dict)
        and value.get("kind") in ("request", "response")
        and any("part_kind" in mapped(part) for part in listed(value.get("parts")))
    )


def pydantic_ai(messages: Iterable[Any], source: Source) -> Recording:
    """A message history; an output tool (``final_result``) ends the run."""
    conversation = Conversation()
    ended: tuple[Ended, str] | None = None
    for number, message in enumerate(messages, 1):
        given = mapped(message)
        if not is_pydantic_ai(given):
            conversation.skip("is no message", f"message {number}")
        elif given["kind"] == "request":
            for part in map(mapped, listed(given.get("parts"))):
                _pydantic_request(conversation, part)
        else:
            ended = _pydantic_response(conversation, given)
    return conversation.recording(source.id(), source.file, "pydantic-ai", ended)


def _pydantic_request(conversation: Conversation, part: dict[str, Any]) -> None:
    kind, content = part.get("part_kind"), part.get("content")
    if kind == "system-prompt":
        conversation.system(text_in(content))
    elif kind == "user-prompt":
        conversation.user(text_in(content))
    elif kind == "tool-return":
        text = answer_text(content)
        failed = (
            looks_failed(text)
            if part.get("outcome") not in ("success", "failed", "denied")
            else part["outcome"] != "success"
        )
        answer(
            conversation, Result(str(part.get("tool_call_id") or part.get("tool_name") or ""), text, failed)
        )
    elif kind == "retry-prompt":
        text = text_in(content) or answer_text(content)
        if part.get("tool_name"):
            answer(conversation, Result(str(part.get("tool_call_id") or part["tool_name"]), text, True))
        else:
            conversation.user(text, "harness")


def _pydantic_response(conversation: Conversation, message: dict[str, Any]) -> tuple[Ended, str] | None:
    blocks: list[Block] = []
    for place, part in enumerate(map(mapped, listed(message.get("parts")))):
        kind = part.get("part_kind")
        if kind == "text":
            blocks.append(Text(text_in(part.get("content"))))
        elif kind == "thinking":
            blocks.append(Thinking(text_in(part.get("content"))))
        elif kind == "tool-call":
            identity = str(part.get("tool_call_id") or f"call-{place}")
            blocks.append(Call(identity, str(part.get("tool_name")), arguments_of(part.get("args"))))
        elif kind not in ("builtin-tool-call", "builtin-tool-return", "file"):
            conversation.skip(f"a part that nobody knows: {kind}")
    calls = [block for block in blocks if isinstance(block, Call)]
    stop, native = stop_of(message.get("finish_reason"), bool(calls))
    usage = mapped(message.get("usage"))
    conversation.model = str(message.get("model_name") or conversation.model)
    conversation.turn(make_turn(tuple(blocks), stop, native=native), "", tokens_in(usage), tokens_out(usage))
    return ("done", "final_result") if any(call.tool.startswith("final_result") for call in calls) else None
