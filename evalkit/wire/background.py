"""Responses that are not there yet: polled, streamed again, cancelled."""

from __future__ import annotations

import msgspec

from evalkit.core.turns import Turn
from evalkit.wire.answers import Outgoing
from evalkit.wire.codecs import CODECS
from evalkit.wire.conversation import Joined
from evalkit.wire.openai_responses.answers import response
from evalkit.wire.openai_responses.events import pending_events
from evalkit.wire.replies import Reply, error_body, json_reply, stream_reply

_NOTHING = Turn((), "end_turn")


class Pending(msgspec.Struct, frozen=True):
    """A background response that is not there yet, and the request it will answer."""

    joined: Joined
    out: Outgoing


def under_way(out: Outgoing, status: str, *, stream: bool) -> Reply:
    """The answer while there is none."""
    if stream:
        return stream_reply("responses", pending_events(out), said=status)
    return json_reply(response(out, status), said=status)


def retrieved(out: Outgoing, turn: int, *, stream: bool, after: int) -> Reply:
    """A response that was delivered before, whole or from an event on."""
    if not stream:
        return json_reply(response(out), said="retrieved", turn=turn)
    events = CODECS["responses"].events(out)[after + 1 :]
    return stream_reply("responses", events, said=f"streamed again from event {after + 1}", turn=turn)


def cancelled(name: str) -> Reply:
    """A response that was cancelled."""
    return json_reply(response(Outgoing(_NOTHING, name, background=True), "cancelled"), said="cancelled")


def too_late() -> Reply:
    """The answer to a cancellation of what is complete."""
    return json_reply(
        error_body("responses", 400, "Cannot cancel a completed response."), status=400, said="not cancelled"
    )


def missing(name: str) -> Reply:
    """The answer for an id that is none."""
    words = f"Response with id '{name}' not found."
    return json_reply(error_body("responses", 404, words), status=404, said="unknown response")
