"""AutoGen: runs of a team as saved state, message lists, agents' contexts."""

from __future__ import annotations

import re
from typing import Any

from evalkit.core.turns import Block, Text, Thinking, make_turn
from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.formats.messages import (
    call_of,
    tokens_in,
    tokens_out,
)
from evalkit.transcripts.formats.parts import answer_text, arguments_of
from evalkit.transcripts.recording import Conversation, Ended, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in

_AUTOGEN = frozenset(
    (
        *(
            "TextMessage",
            "MultiModalMessage",
            "ToolCallRequestEvent",
            "ToolCallExecutionEvent",
            "ThoughtEvent",
        ),
        *("ToolCallSummaryMessage", "StopMessage", "HandoffMessage", "StructuredMessage", "MemoryQueryEvent"),
        *(
            "UserInputRequestedEvent",
            "ModelClientStreamingChunkEvent",
            "SelectSpeakerEvent",
            "CodeGenerationEvent",
            "CodeExecutionEvent",
        ),
    )
)


def is_autogen_message(value: Any) -> bool:
    """A message of an AgentChat team: its source and its type."""
    return isinstance(value, dict) and "source" in value and value.get("type") in _AUTOGEN


def is_autogen(record: Any) -> bool:
    """A task's result, or a team's saved state."""
    if not isinstance(record, dict):
        return False
    if isinstance(record.get("agent_states"), dict):
        return True
    messages = record.get("messages")
    return isinstance(messages, list) and any(map(is_autogen_message, messages))


def autogen(record: dict[str, Any], source: Source) -> Recording:
    """One team's run: the messages of its result, or the manager's thread in its state."""
    messages = listed(record.get("messages")) or _thread(record)
    if messages and not any(map(is_autogen_message, messages)):
        return _agent_context(messages, source)
    return autogen_messages(messages, source, record.get("stop_reason"))


def _thread(record: dict[str, Any]) -> list[Any]:
    states = [mapped(state) for state in mapped(record.get("agent_states")).values()]
    states = [mapped(state.get("agent_state")) or state for state in states]
    for state in states:
        if listed(state.get("message_thread")):
            return listed(state["message_thread"])
    for state in states:
        inner = mapped(state.get("inner_team_state")) or mapped(state.get("team_state"))
        found = _thread(inner) if inner else []
        if found:
            return found
    for state in (record, *states):
        context = listed(mapped(state.get("llm_context")).get("messages"))
        if context:
            return context
    return []


def autogen_messages(messages: list[Any], source: Source, stop: Any = None) -> Recording:
    """The messages of a run."""
    conversation = Conversation()
    thoughts: list[Block] = []
    ended: tuple[Ended, str] | None = None
    for number, message in enumerate(messages, 1):
        given = mapped(message)
        kind, speaker, content = given.get("type"), str(given.get("source")), given.get("content")
        usage = mapped(given.get("models_usage"))
        tokens = (tokens_in(usage), tokens_out(usage)) if usage else (None, None)
        if kind not in _AUTOGEN:
            conversation.skip(f"is no message of a team: {kind}", f"message {number}")
        elif speaker in ("user", "user_proxy"):
            conversation.user(text_in(content))
        elif kind in ("ThoughtEvent",):
            thoughts.append(Thinking(text_in(content)))
        elif kind == "ToolCallRequestEvent":
            calls = [call_of(raw, place) for place, raw in enumerate(listed(content))]
            conversation.turn(make_turn((*thoughts, *calls), "tool_use"), speaker, *tokens)
            thoughts = []
        elif kind == "ToolCallExecutionEvent":
            _executed(conversation, content)
        elif kind == "StopMessage":
            ended = "done", text_in(content)[:80]
        elif kind in ("TextMessage", "MultiModalMessage", "HandoffMessage", "StructuredMessage"):
            said = content if isinstance(content, str | list) else arguments_of(content)
            conversation.turn(make_turn((*thoughts, Text(text_in(said))), "end_turn"), speaker, *tokens)
            thoughts = []
    if isinstance(stop, str) and stop:
        limit = re.search(r"max(?:imum)?\b.*(?:messages?|turns?|tokens?)|timeout", stop, re.IGNORECASE)
        ended = ("limit" if limit else "done"), stop[:80]
    return conversation.recording(source.id(), source.file, "autogen", ended)


def _executed(conversation: Conversation, results: Any) -> None:
    """The results of calls, with the flag that the format keeps or by what they say."""
    for raw in listed(results):
        given = mapped(raw)
        text = answer_text(given.get("content"))
        flag = given.get("is_error")
        failed = flag if isinstance(flag, bool) else looks_failed(text)
        conversation.result(str(given.get("call_id")), text, failed)


def _agent_context(messages: list[Any], source: Source) -> Recording:
    """One agent's own side of it."""
    conversation = Conversation()
    for number, message in enumerate(messages, 1):
        given = mapped(message)
        kind, content = given.get("type"), given.get("content")
        if kind == "SystemMessage":
            conversation.system(text_in(content))
        elif kind == "UserMessage":
            conversation.user(text_in(content))
        elif kind == "AssistantMessage":
            calls = [
                call_of(raw, place) for place, raw in enumerate(listed(content)) if isinstance(raw, dict)
            ]
            thought = text_in(given.get("thought"))
            blocks = (
                *((Thinking(thought),) if thought else ()),
                *((Text(content),) if isinstance(content, str) else ()),
                *calls,
            )
            conversation.turn(
                make_turn(blocks, "tool_use" if calls else "end_turn"), str(given.get("source") or "")
            )
        elif kind == "FunctionExecutionResultMessage":
            _executed(conversation, content)
        else:
            conversation.skip(f"is no message of an agent: {kind}", f"message {number}")
    return conversation.recording(source.id(), source.file, "autogen")
