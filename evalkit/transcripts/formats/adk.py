"""Google ADK: sessions of events, and eval sets, which are references and no runs of a model."""

from __future__ import annotations

from typing import Any

from evalkit.core.requests import Result
from evalkit.transcripts.formats.messages import answer, read_message
from evalkit.transcripts.formats.parts import part_of
from evalkit.transcripts.recording import Conversation, Ended, Recording, Unreadable
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped


def _parts(event: Any) -> list[Any]:
    parts = mapped(mapped(event).get("content")).get("parts")
    # Unused keys of a part may be there and null.
    return [
        {key: value for key, value in part.items() if value is not None}
        for part in listed(parts)
        if isinstance(part, dict)
    ]


def is_adk(record: Any) -> bool:
    """A session: events with an author and content in parts, beside the app or the user."""
    if not isinstance(record, dict):
        return False
    events = record.get("events") if isinstance(record.get("events"), list) else record.get("past_events")
    named = {"app_name", "appName", "user_id", "userId", "state", "context"} & record.keys()
    return bool(named) and any(is_event(event) for event in listed(events))


def is_event(value: Any) -> bool:
    """An event of a session."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("author"), str)
        and (isinstance(value.get("content"), dict) or "invocation_id" in value or "invocationId" in value)
    )


def adk(record: dict[str, Any], source: Source) -> Recording:
    """One session."""
    events = listed(record.get("events")) or listed(record.get("past_events"))
    return adk_events(events, source, str(record.get("id") or ""))


def adk_events(events: list[Any], source: Source, name: str = "") -> Recording:
    """The events of a session; those without parts and those of a stream under way are no turns."""
    conversation = Conversation()
    ended: tuple[Ended, str] | None = None
    for event in events:
        given = mapped(event)
        if given.get("partial") is True:
            continue
        code = given.get("error_code") or given.get("errorCode")
        if code:
            ended = "error", str(code)[:80]
        parts = _parts(given)
        if not parts:
            continue
        results = [part for part in map(part_of, parts) if isinstance(part, Result)]
        if results:
            for result in results:
                answer(conversation, result)
        elif given.get("author") == "user":
            ended = None
            read_message(conversation, {"role": "user", "content": parts})
        else:
            ended = None if not code else ended
            label = given.get("finish_reason") or given.get("finishReason")
            usage = given.get("usage_metadata") or given.get("usageMetadata")
            message = {"role": "assistant", "content": parts, "finish_reason": label, "usage": usage}
            read_message(conversation, message, agent=str(given["author"]))
    return conversation.recording(source.id(name), source.file, "google-adk", ended)


def is_evalset(record: Any) -> bool:
    """An eval set, new or old."""
    if isinstance(record, list):
        return bool(record) and all(
            "query" in mapped(case) and ("reference" in mapped(case) or "expected_tool_use" in mapped(case))
            for case in record[:20]
        )
    return isinstance(record, dict) and (
        isinstance(record.get("eval_cases"), list) or isinstance(record.get("evalCases"), list)
    )


def evalset(record: Any, source: Source) -> Recording:
    """Refused: a reference says what a model should have done, not what one did."""
    raise Unreadable(
        "is an eval set of Google ADK: references of what a model should do, not runs; give the sessions"
    )
