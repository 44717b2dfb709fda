"""Requests that name an answer whose conversation the server holds, and what the APIs refuse of them."""

from __future__ import annotations

from evalkit.wire.conversation import Joined, Memory
from evalkit.wire.dialects import Dialect
from evalkit.wire.incoming import BadRequest


def not_held(dialect: Dialect, name: str) -> BadRequest:
    """The refusal of a request that goes on from an answer that the server does not hold."""
    if dialect == "anthropic":
        return BadRequest(
            "thread_not_found",
            f"thread.previous_message_id: no usable state was found for {name}",
            param="thread",
            status=404,
            code="thread_not_found",
        )
    return BadRequest(
        "previous_response_not_found",
        f"Previous response with id '{name}' not found.",
        param="previous_response_id",
        code="previous_response_not_found",
    )


def check_continued_once(dialect: Dialect, name: str | None, joined: Joined, memory: Memory) -> None:
    """The Messages API continues an answer once; a request without an answer may be repeated.

    Raises BadRequest where it is continued a second time.
    """
    sent = memory.sent
    if dialect != "anthropic" or name is None or sent is None:
        return
    if name == sent.id or joined.kind == "same_answer" or memory.fault:
        return
    raise BadRequest(
        "thread_already_continued",
        f"thread.previous_message_id: {name} has already been continued",
        param="thread",
        code="thread_already_continued",
    )
