"""OpenHands: events of version 1, trajectories of version 0, and the output of its evaluations."""

from __future__ import annotations

from typing import Any

from evalkit.core.turns import Call, Text, Thinking
from evalkit.transcripts.formats.failures import exit_code, looks_failed
from evalkit.transcripts.formats.lines import Gathering, Lines
from evalkit.transcripts.formats.parts import arguments_of
from evalkit.transcripts.labels import label_of
from evalkit.transcripts.recording import NO_LABEL, Ended, Label, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in

_EVENTS = frozenset(
    (
        *("MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent", "UserRejectObservation"),
        *("SystemPromptEvent", "Condensation", "CondensationSummaryEvent", "CondensationRequest"),
        *(
            "ConversationErrorEvent",
            "ConversationStateUpdateEvent",
            "PauseEvent",
            "TokenEvent",
            "LLMCompletionLogEvent",
        ),
    )
)
_STATES: dict[str, Ended] = {"finished": "done", "error": "error", "stuck": "error", "paused": "unknown"}


def is_event(value: Any) -> bool:
    """An event of version 1: its ``kind``, with an id or a source."""
    return isinstance(value, dict) and value.get("kind") in _EVENTS and ("source" in value or "id" in value)


class _Events(Lines):
    """What both versions have: actions gathered to turns, their answers after them."""

    format = "openhands"

    def __init__(self) -> None:
        super().__init__()
        self._gathered = Gathering(self.conversation)
        self._answers: list[tuple[str, str, bool]] = []

    def _close(self) -> None:
        self._gathered.close()
        for identity, text, failed in self._answers:
            self.conversation.result(identity, text, failed)
        self._answers = []

    def finish(self) -> None:
        self._close()


class OpenHands(_Events):
    """Takes events; actions with one ``llm_response_id`` are one turn."""

    def add(self, line: Any) -> None:
        given = mapped(line)
        kind = given.get("kind")
        if kind == "ActionEvent":
            self._action(given)
        elif kind == "MessageEvent":
            self._message(given)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            self._observation(given, str(kind))
        elif kind == "SystemPromptEvent":
            self.conversation.system(text_in(given.get("system_prompt")))
        elif kind == "ConversationErrorEvent":
            self.ended = "error", str(given.get("code") or given.get("detail") or "error")[:80]
        elif kind == "ConversationStateUpdateEvent" and given.get("key") == "execution_status":
            state = str(given.get("value"))
            self.ended = (_STATES[state], state) if state in _STATES else None
        elif kind not in _EVENTS:
            self.conversation.skip(
                f"an event that nobody knows: {kind or ', '.join(list(map(str, given))[:6])}"
            )

    def _action(self, event: dict[str, Any]) -> None:
        name = str(event.get("llm_response_id") or event.get("id"))
        if name != self._gathered.name:
            self._close()
        self._gathered.open(name)
        blocks = self._gathered.blocks
        for raw in listed(event.get("thought")):
            if text_in(raw):
                blocks.append(Text(text_in(raw)))
        if text_in(event.get("reasoning_content")):
            blocks.insert(0, Thinking(text_in(event["reasoning_content"])))
        call = mapped(event.get("tool_call"))
        given = call.get("arguments") or mapped(call.get("function")).get("arguments")
        arguments = arguments_of(
            given if given else {k: v for k, v in mapped(event.get("action")).items() if k != "kind"}
        )
        blocks.append(
            Call(str(event.get("tool_call_id") or event.get("id")), str(event.get("tool_name")), arguments)
        )

    def _message(self, event: dict[str, Any]) -> None:
        message = mapped(event.get("llm_message"))
        text = text_in(message.get("content"))
        self._close()
        if event.get("source") == "agent":
            self._gathered.open(str(event.get("llm_response_id") or event.get("id")))
            self._gathered.blocks.append(Text(text))
            self._close()
        else:
            self.ended = None
            self.conversation.user(text, "user" if event.get("source") == "user" else "harness")

    def _observation(self, event: dict[str, Any], kind: str) -> None:
        seen = mapped(event.get("observation"))
        text = text_in(
            seen.get("content") or seen.get("output") or event.get("error") or event.get("rejection_reason")
        )
        code = exit_code(mapped(seen.get("metadata")).get("exit_code", seen.get("exit_code")))
        flag = seen.get("is_error")
        failed = kind != "ObservationEvent" or (
            code != 0 if code is not None else flag if isinstance(flag, bool) else looks_failed(text)
        )
        self._answers.append((str(event.get("tool_call_id") or event.get("action_id")), text, failed))


# Version 0


def is_trajectory_event(value: Any) -> bool:
    """An event of version 0: an action or an observation with its source."""
    return (
        isinstance(value, dict)
        and ("action" in value or "observation" in value)
        and "source" in value
        and ("args" in value or "cause" in value or "extras" in value)
    )


_AGENT_STATES: dict[str, Ended] = {
    "finished": "done",
    "rejected": "escalated",
    "error": "error",
    "stopped": "unknown",
}


class Trajectory(_Events):
    """Takes the events of version 0: the actions of one model response are one turn."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[Any, str] = {}

    def add(self, line: Any) -> None:
        if isinstance(line, list):
            # Older evaluations kept pairs of action and observation.
            for event in line:
                self.add(event)
            return
        given = mapped(line)
        if "action" in given:
            self._action(given, str(given["action"]), mapped(given.get("args")))
        elif "observation" in given:
            self._observation(given, str(given["observation"]))
        else:
            self.conversation.skip(f"is no event; its fields: {', '.join(list(map(str, given))[:6])}")

    def _action(self, event: dict[str, Any], action: str, args: dict[str, Any]) -> None:
        source = event.get("source")
        text = text_in(args.get("content")) or text_in(args.get("thought")) or text_in(event.get("message"))
        if action in (
            "system",
            "recall",
            "change_agent_state",
            "null",
            "condensation",
            "condensation_request",
        ):
            if action == "system":
                self.conversation.system(text)
            return
        if source in ("user", "environment"):
            if action == "message":
                self._close()
                self.ended = None
                self.conversation.user(text, "user" if source == "user" else "harness")
            return
        metadata = mapped(event.get("tool_call_metadata"))
        response = mapped(metadata.get("model_response")).get("id")
        name = str(response or event.get("id"))
        if name != self._gathered.name:
            self._close()
        self._gathered.open(name)
        blocks = self._gathered.blocks
        thought = text_in(args.get("thought")) if action != "message" else text
        if thought and action not in ("finish", "reject"):
            blocks.append(Text(thought))
        if action == "message":
            return
        identity = str(metadata.get("tool_call_id") or f"event-{event.get('id')}")
        self._calls[event.get("id")] = identity
        if action in ("finish", "reject"):
            words = text_in(args.get("final_thought")) or text_in(args.get("thought"))
            if words:
                blocks.append(Text(words))
            self.ended = ("done", "finish") if action == "finish" else ("escalated", "reject")
        given = {
            key: value
            for key, value in args.items()
            if key not in ("thought", "final_thought") and value is not None
        }
        blocks.append(Call(identity, str(metadata.get("function_name") or action), arguments_of(given)))

    def _observation(self, event: dict[str, Any], kind: str) -> None:
        extras = mapped(event.get("extras"))
        if kind == "agent_state_changed":
            state = str(extras.get("agent_state") or "")
            self.ended = (_AGENT_STATES[state], state) if state in _AGENT_STATES else self.ended
            return
        identity = self._calls.get(event.get("cause"))
        if identity is None:
            return
        text = text_in(event.get("content"))
        code = exit_code(mapped(extras.get("metadata")).get("exit_code", extras.get("exit_code")))
        failed = kind == "error" or (code not in (0, -1) if code is not None else looks_failed(text))
        self._answers.append((identity, text, failed))


def is_evaluation(record: Any) -> bool:
    """A line of an evaluation's output: the history of events beside what came of it."""
    if not isinstance(record, dict) or not isinstance(record.get("history"), list):
        return False
    events = [
        inner for event in record["history"][:20] for inner in (event if isinstance(event, list) else [event])
    ]
    return any(map(is_trajectory_event, events)) or any(map(is_event, events))


def evaluation(record: dict[str, Any], source: Source) -> Recording:
    """One run of an evaluation. ``success`` is another model's opinion and no label; ``resolved`` is one."""
    history = record["history"]
    flat = [inner for event in history for inner in (event if isinstance(event, list) else [event])]
    taken: Lines = OpenHands() if any(map(is_event, flat[:20])) else Trajectory()
    for event in flat:
        taken.add(event)
    if record.get("error"):
        taken.ended = "error", text_in(record["error"])[:80]
    report = mapped(mapped(record.get("test_result")).get("report"))
    label: Label = label_of(report, ("resolved",), "state") if report else NO_LABEL
    taken.conversation.task = str(record.get("instance_id") or "")
    taken.finish()
    return taken.conversation.recording(
        source.id(str(record.get("instance_id") or "")), source.file, "openhands", taken.ended, label
    )
