"""What each dialect is made of: a turn as a body or as events, an answer and a request read, its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from evalkit.wire.answers import Answer, BrokenStream, Event, Outgoing, failed
from evalkit.wire.anthropic_messages import answers as messages
from evalkit.wire.anthropic_messages import requests as messages_requests
from evalkit.wire.anthropic_messages import rules as messages_rules
from evalkit.wire.dialects import Dialect
from evalkit.wire.incoming import Incoming
from evalkit.wire.openai_chat import answers as chat
from evalkit.wire.openai_chat import requests as chat_requests
from evalkit.wire.openai_chat import rules as chat_rules
from evalkit.wire.openai_responses import answers as responses
from evalkit.wire.openai_responses import events as responses_events
from evalkit.wire.openai_responses import requests as responses_requests
from evalkit.wire.openai_responses import rules as responses_rules
from evalkit.wire.rules import Rule


class Codec(msgspec.Struct, frozen=True):
    """What a dialect is made of: ``path`` is where it is asked, ``answer`` and ``call`` begin its ids."""

    path: str
    answer: str
    call: str
    body: Callable[[Outgoing], dict[str, Any]]
    events: Callable[[Outgoing], list[Event]]
    accumulate: Callable[[Iterable[Mapping[str, Any]]], dict[str, Any]]
    decode: Callable[[Mapping[str, Any]], Answer]
    read: Callable[[Mapping[str, Any]], Incoming]
    rules: tuple[Rule, ...]


CODECS: dict[Dialect, Codec] = {
    "anthropic": Codec(
        "/v1/messages",
        "msg",
        "toolu",
        messages.message,
        messages.events,
        messages.accumulate,
        messages.decode,
        messages_requests.read,
        messages_rules.RULES,
    ),
    "responses": Codec(
        "/v1/responses",
        "resp",
        "call",
        responses.response,
        responses_events.events,
        responses.accumulate,
        responses.decode,
        responses_requests.read,
        responses_rules.RULES,
    ),
    "chat": Codec(
        "/v1/chat/completions",
        "chatcmpl",
        "call",
        chat.completion,
        chat.chunks,
        chat.accumulate,
        chat.decode,
        chat_requests.read,
        chat_rules.RULES,
    ),
}


def decode_stream(dialect: Dialect, events: Iterable[Mapping[str, Any]]) -> Answer:
    """Read a stream's events. One that breaks, or holds an error, is an answer of kind ``failed``."""
    spoken = CODECS[dialect]
    try:
        return spoken.decode(spoken.accumulate(events))
    except BrokenStream as broken:
        return failed(broken.label, broken.error)
