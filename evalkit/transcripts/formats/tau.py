"""tau-bench and tau2-bench results: dialogues with a simulated user, rewarded by the state they leave."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from evalkit.core.turns import Call
from evalkit.transcripts.empty_sessions import empty_of
from evalkit.transcripts.formats.messages import read_message, read_messages
from evalkit.transcripts.formats.parts import arguments_of
from evalkit.transcripts.labels import label_of
from evalkit.transcripts.recording import Conversation, Ended, Recording, Step, Unreadable, hand_over
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in

#: What the simulated user says when its goal is met or the talk is over (tau-bench ``user.py``).
USER_STOP = "###STOP###"

_OF_STATE = {"DB", "ENV_ASSERTION"}
#: tau2's termination reasons (``TerminationReason`` in its simulation data model).
_TAU2_ENDS: dict[str, Ended] = {
    "user_stop": "done",
    "agent_stop": "done",
    "max_steps": "limit",
    "timeout": "limit",
    "context_window_exceeded": "limit",
    "too_many_errors": "error",
    "agent_error": "error",
    "user_error": "error",
    "infrastructure_error": "error",
    "unexpected_error": "error",
}


def is_tau_bench(record: dict[str, Any]) -> bool:
    """A result of tau-bench: a ``traj`` with its reward."""
    return isinstance(record.get("traj"), list) and "reward" in record


def tau_bench(record: dict[str, Any], source: Source) -> Recording:
    """One result. The run ended ``done`` where the user ended it, ``escalated`` after a transfer."""
    conversation = Conversation()
    read_messages(conversation, record["traj"])
    error = mapped(record.get("info")).get("error")
    ended: tuple[Ended, str] = ("error", text_in(error)[:80]) if error else _tau_bench_end(conversation.last)
    place = f"task{record.get('task_id')}.trial{record.get('trial', 0)}"
    label = label_of(record, ("reward",), _judged_by(record))
    conversation.task = str(record.get("task_id", ""))
    read = conversation.recording(source.id(place), source.file, "tau-bench", ended, label)
    return msgspec.structs.replace(read, expected=_expected(record))


def _expected(record: dict[str, Any]) -> tuple[Call, ...] | None:
    """The calls by which the task's author changes the database."""
    actions = mapped(mapped(record.get("info")).get("task")).get("actions")
    if not isinstance(actions, list):
        return None
    calls = [mapped(action) for action in actions]
    return tuple(Call("", str(call.get("name")), arguments_of(call.get("kwargs"))) for call in calls)


def _judged_by(record: dict[str, Any]) -> Literal["state", "words"]:
    """The reward is of the database, and of what was said where the task asks for outputs."""
    outputs = mapped(mapped(record.get("info")).get("task")).get("outputs")
    return "state" if outputs == [] else "words"


def _tau_bench_end(last: Step | None) -> tuple[Ended, str]:
    if last is None:
        raise Unreadable(empty_of("tau-bench", "holds no model turn"))
    if last.said is not None and USER_STOP in last.said:
        return "done", "user stop"
    if over := hand_over(last.turn.calls):
        return "escalated", over
    # The runner's loop has no other way out than its step limit.
    return "limit", "step limit (no end signal)"


def is_tau2(record: dict[str, Any]) -> bool:
    """A simulation run of tau2-bench."""
    return isinstance(record.get("messages"), list) and "termination_reason" in record


def tau2(record: dict[str, Any], source: Source) -> Recording:
    """One simulation. Both sides have tools: the user's calls are noted, the agent's are the run's."""
    conversation = Conversation()
    theirs: set[Any] = set()
    for message in _flat(record["messages"]):
        if message.get("requestor") == "user" or (
            message.get("id") in theirs and message.get("role") == "tool"
        ):
            conversation.acted()
        elif message.get("role") == "user" and message.get("tool_calls"):
            theirs.update(mapped(call).get("id") for call in listed(message["tool_calls"]))
            conversation.acted()
        else:
            read_message(conversation, message)
    reason = str(record["termination_reason"])
    ended = _TAU2_ENDS.get(reason, "unknown")
    if ended == "done" and conversation.last is not None and hand_over(conversation.last.turn.calls):
        ended = "escalated"
    place = f"task{record.get('task_id')}.trial{record.get('trial') or 0}"
    conversation.task = str(record.get("task_id", ""))
    reward = mapped(record.get("reward_info"))
    # The reward may rest on the final state alone, or on actions and words as well.
    of_state = bool(reward.get("reward_basis")) and set(listed(reward["reward_basis"])) <= _OF_STATE
    label = label_of(reward, ("reward",), "state" if of_state else "words")
    return conversation.recording(source.id(place), source.file, "tau2", (ended, reason), label)


def _flat(messages: list[Any]) -> list[dict[str, Any]]:
    """Messages, those with several tool answers taken apart."""
    flat = []
    for message in messages:
        inner = listed(mapped(message).get("tool_messages"))
        flat += [part for part in (inner or [message]) if isinstance(part, dict)]
    return flat
