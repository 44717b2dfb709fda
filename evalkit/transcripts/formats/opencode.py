"""opencode: an exported session, each assistant message one response, call and answer in one part."""

from __future__ import annotations

from typing import Any

from evalkit.core.requests import Result
from evalkit.core.turns import Block, Call, Text, Thinking, make_turn
from evalkit.transcripts.formats.failures import exit_code, looks_failed
from evalkit.transcripts.formats.messages import stop_of
from evalkit.transcripts.formats.parts import arguments_of
from evalkit.transcripts.recording import Conversation, Ended, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import mapped, text_in


def is_opencode(record: Any) -> bool:
    """An export: ``info`` of the session, and messages of ``info`` with a role and ``parts``."""
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list) or "info" not in record:
        return False
    return any(_is_message(message) for message in record["messages"])


def _is_message(message: Any) -> bool:
    given = mapped(message)
    return isinstance(given.get("parts"), list) and mapped(given.get("info")).get("role") in (
        "user",
        "assistant",
    )


def opencode(record: dict[str, Any], source: Source) -> Recording:
    """One session."""
    conversation = Conversation()
    ended: tuple[Ended, str] | None = None
    for number, message in enumerate(record["messages"], 1):
        if not _is_message(message):
            conversation.skip("is no message", f"message {number}")
            continue
        info = message["info"]
        if info["role"] == "user":
            ended = None
            _user(conversation, message["parts"])
        elif not info.get("summary"):
            ended = _assistant(conversation, info, message["parts"])
    session = mapped(record.get("info"))
    return conversation.recording(source.id(str(session.get("id") or "")), source.file, "opencode", ended)


def _user(conversation: Conversation, parts: list[Any]) -> None:
    for part in parts:
        given = mapped(part)
        if given.get("type") == "text" and given.get("text"):
            own = given.get("synthetic") is True or given.get("ignored") is True
            conversation.user(text_in(given), "harness" if own and conversation.last is not None else "user")


def _assistant(
    conversation: Conversation, info: dict[str, Any], parts: list[Any]
) -> tuple[Ended, str] | None:
    blocks: list[Block] = []
    results: list[Result] = []
    for place, part in enumerate(parts):
        given = mapped(part)
        kind = given.get("type")
        if kind == "text":
            blocks.append(Text(text_in(given)))
        elif kind == "reasoning":
            blocks.append(Thinking(text_in(given)))
        elif kind == "tool":
            _tool(blocks, results, given, place)
        elif kind not in (
            "step-start",
            "step-finish",
            "patch",
            "file",
            "compaction",
            "subtask",
            "snapshot",
            "agent",
            "retry",
        ):
            conversation.skip(f"a part that nobody knows: {kind}")
    error = mapped(info.get("error"))
    name = str(error.get("name") or "")
    if blocks or not error:
        called = any(isinstance(block, Call) for block in blocks)
        stop, native = stop_of("aborted" if name == "MessageAbortedError" else info.get("finish"), called)
        tokens = mapped(info.get("tokens"))
        cache = mapped(tokens.get("cache"))
        given_in = tokens.get("input")
        conversation.model = str(info.get("modelID") or conversation.model)
        conversation.turn(
            make_turn(tuple(blocks), stop, native=native),
            input_tokens=given_in + sum(v for v in cache.values() if isinstance(v, int))
            if isinstance(given_in, int)
            else None,
            output_tokens=tokens.get("output") if isinstance(tokens.get("output"), int) else None,
        )
        for result in results:
            conversation.result(result.id, result.text, result.error)
    if name == "MessageAbortedError":
        return "unknown", "aborted"
    return ("error", name) if name else None


def _tool(blocks: list[Block], results: list[Result], part: dict[str, Any], place: int) -> None:
    state = mapped(part.get("state"))
    identity = str(part.get("callID") or f"call-{place}")
    blocks.append(Call(identity, str(part.get("tool")), arguments_of(state.get("input"))))
    status = state.get("status")
    if status == "error":
        results.append(Result(identity, text_in(state.get("error")), True))
    elif status == "completed":
        text = text_in(state.get("output"))
        code = exit_code(mapped(state.get("metadata")).get("exit"))
        results.append(Result(identity, text, looks_failed(text) if code is None else code != 0))
