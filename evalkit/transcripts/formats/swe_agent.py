"""SWE-agent ``.traj`` and mini-swe-agent ``.traj.json``: actions in a shell, ended by a submission."""

from __future__ import annotations

import re
from typing import Any

from evalkit.core.turns import Block, Call, Text, make_turn
from evalkit.transcripts.formats.messages import arguments_of, call_of, looks_failed, read_message, stop_of
from evalkit.transcripts.labels import label_of
from evalkit.transcripts.recording import SENTINELS, Conversation, Ended, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in

#: The code blocks that mini-swe-agent runs, in both major versions.
_BLOCK = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```", re.DOTALL)

#: A block in the words in which an action stands.
_FENCE = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)


def is_swe_agent(record: dict[str, Any]) -> bool:
    """A SWE-agent trajectory: steps of action and observation."""
    steps = record.get("trajectory")
    return isinstance(steps, list) and all(isinstance(step, dict) for step in steps) and "info" in record


def swe_agent(record: dict[str, Any], source: Source) -> Recording:
    """One trajectory. Each step is a turn with one action; the history has the prompts and the real calls."""
    conversation = Conversation()
    calls = _history(conversation, listed(record.get("history")))
    for number, step in enumerate(record["trajectory"]):
        if not isinstance(step.get("action"), str) and not step.get("response"):
            continue
        _step(conversation, number, step, calls)
    info = mapped(record.get("info"))
    label = label_of(record if "resolved" in record else info, ("resolved",), "state")
    return conversation.recording(
        source.id(), source.file, "swe-agent", _end(info, str(info.get("exit_status"))), label
    )


def is_history(record: dict[str, Any]) -> bool:
    """A demonstration: a history with agents or message types, and no trajectory."""
    history = record.get("history")
    if not isinstance(history, list) or "trajectory" in record:
        return False
    messages = [message for message in history if isinstance(message, dict)]
    return any("role" in message for message in messages) and any(
        "message_type" in message or "agent" in message or "is_demo" in message for message in messages
    )


def history_run(record: dict[str, Any], source: Source) -> Recording:
    """A demonstration: thoughts and actions in the model's messages, observations in the user's."""
    conversation = Conversation()
    waiting: str | None = None
    for number, raw in enumerate(record["history"]):
        message = mapped(raw)
        role, text = message.get("role"), text_in(message.get("content"))
        if role == "assistant":
            waiting = _acted(conversation, number, message, text)
        elif role in ("user", "tool") and waiting is not None and message.get("message_type") != "thought":
            conversation.result(waiting, text, looks_failed(text))
            waiting = None
        elif role == "system" or (message.get("is_demo") and conversation.last is None and role != "user"):
            conversation.system(text)
        elif role in ("user", "tool"):
            conversation.user(text, "harness" if conversation.last is not None else "user")
        else:
            conversation.skip("is no message", f"message {number + 1}")
    label = label_of(record, ("resolved",), "state")
    return conversation.recording(source.id(), source.file, "swe-agent", None, label)


def _acted(conversation: Conversation, number: int, message: dict[str, Any], text: str) -> str | None:
    calls = [call_of(raw, place) for place, raw in enumerate(listed(message.get("tool_calls")))]
    action = text_in(message.get("action")).strip()
    if not calls and not action:
        found = _FENCE.search(text)
        action = found[1].strip() if found is not None else ""
    if not calls and action:
        calls = [Call(f"step-{number}", action.split()[0], arguments_of({"command": action}))]
    words = text_in(message.get("thought")) or _FENCE.sub("", text).strip() or (text if not calls else "")
    blocks: tuple[Block, ...] = (Text(words),) if words else ()
    conversation.turn(make_turn((*blocks, *calls), "tool_use" if calls else "end_turn"))
    return calls[0].id if calls else None


def _history(conversation: Conversation, history: list[Any]) -> dict[str, list[Call]]:
    """Read the prompts, and the calls of function-calling runs by the action they became."""
    calls: dict[str, list[Call]] = {}
    begun = False
    for message in history:
        given = mapped(message)
        role = given.get("role")
        if role == "assistant" and not given.get("is_demo"):
            begun = True
            for place, raw in enumerate(listed(given.get("tool_calls"))):
                calls.setdefault(str(given.get("action")), []).append(call_of(raw, place))
        elif not begun and role == "system":
            conversation.system(text_in(given.get("content")))
        elif not begun and role == "user":
            text = text_in(given.get("content"))
            conversation.system(text) if given.get("is_demo") else conversation.user(text)
    return calls


def _step(
    conversation: Conversation, number: int, step: dict[str, Any], calls: dict[str, list[Call]]
) -> None:
    action = text_in(step.get("action"))
    known = calls.get(action)
    if known:
        call = known.pop(0)
    else:
        words = action.split()
        call = Call(
            f"step-{number}", words[0] if words else "none", arguments_of({"command": action.strip()})
        )
    text = text_in(step.get("thought")) or text_in(step.get("response"))
    blocks: tuple[Block, ...] = (Text(text),) if text.strip() else ()
    if not action.strip():
        conversation.turn(make_turn(blocks, "end_turn"))
        conversation.user(text_in(step.get("observation")), "harness")
        return
    conversation.turn(make_turn((*blocks, call), "tool_use"))
    observation = text_in(step.get("observation"))
    conversation.result(call.id, observation, looks_failed(observation))


def _end(info: dict[str, Any], status: str) -> tuple[Ended, str] | None:
    """SWE-agent's and mini-swe-agent's exit statuses; None where there is none."""
    lower = status.lower()
    if not info.get("exit_status"):
        return None
    if lower == "submitted":
        return "done", status
    if lower.startswith("submitted"):
        # Submitted by the harness on its way out: "submitted (exit_cost)".
        return "limit", status
    if "limit" in lower or "cost" in lower or "context" in lower or "early_exit" in lower:
        return "limit", status
    if "forfeit" in lower:
        return "escalated", status
    return "error", status


def is_mini(record: dict[str, Any]) -> bool:
    """A mini-swe-agent trajectory."""
    named = str(record.get("trajectory_format", "")).startswith("mini-swe-agent")
    return isinstance(record.get("messages"), list) and (named or "exit_status" in mapped(record.get("info")))


def is_mini_list(messages: list[Any]) -> bool:
    """A bare message list of mini-swe-agent: its instructions name the words that end a run."""
    head = " ".join(text_in(mapped(message).get("content")) for message in messages[:2])
    return any(word in head for word in SENTINELS)


def mini(record: dict[str, Any], source: Source) -> Recording:
    """One trajectory: chat messages, the commands in code blocks or as tool calls."""
    info = mapped(record.get("info"))
    status = str(info.get("exit_status"))
    conversation = read_mini(record["messages"])
    return conversation.recording(
        source.id(), source.file, "mini-swe-agent", _end(info, status), label_of(info, ("resolved",), "state")
    )


def read_mini(messages: list[Any]) -> Conversation:
    """Read the messages; a command in a code block is a call, the next user message its answer."""
    conversation = Conversation()
    waiting: str | None = None
    for number, raw in enumerate(messages):
        message = mapped(raw)
        role = message.get("role")
        if role == "assistant" and not message.get("tool_calls"):
            waiting = _command(conversation, number, message)
        elif role == "user" and waiting is not None:
            text = text_in(message.get("content"))
            conversation.result(waiting, text, _returned_error(text))
            waiting = None
        elif role == "user":
            conversation.user(text_in(message.get("content")), "harness" if conversation.last else "user")
        elif role != "exit":
            read_message(conversation, message, "harness")
            waiting = None
    return conversation


def _command(conversation: Conversation, number: int, message: dict[str, Any]) -> str | None:
    text = text_in(message.get("content"))
    found = _BLOCK.findall(text)
    if len(found) != 1:
        # The harness answers anything but one command with a format error.
        conversation.turn(make_turn((Text(text),), stop_of(None, False)[0]))
        return None
    call = Call(f"step-{number}", "bash", arguments_of({"command": found[0].strip()}))
    words = _BLOCK.sub("", text).strip()
    blocks: tuple[Block, ...] = (Text(words),) if words else ()
    conversation.turn(make_turn((*blocks, call), "tool_use"))
    return call.id


def _returned_error(text: str) -> bool:
    code = re.search(r"<returncode>\s*(-?\d+)", text[:200])
    return code is not None and code[1] != "0"
