"""Side requests: what a harness asks of a model beside the task. Recognised by rule, counted apart.

They get a fixed reply and never move a script on.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from evalkit.core.turns import Finish, Text, Turn, count_tokens, make_turn
from evalkit.scenarios.output_schema import typed_output
from evalkit.wire.answers import encode_json
from evalkit.wire.incoming import Incoming, last_words, user_text, user_texts

#: The fixed words of a reply.
REPLY = "Noted."
#: What a side request's structured output holds at least and at most, and what the request then is.
SCHEMAS: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = (
    ("title", frozenset({"title"}), frozenset({"title", "isNewTopic", "branch"})),
    ("hook", frozenset({"ok"}), frozenset({"ok", "reason", "impossible"})),
)


class Side(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of a harness's own: a request without tools whose instructions or words hold ``contains``.

    ``kind``: what it is for. A ``compact`` request asks for a summary of the conversation. It may go on from
    the conversation and offer tools: its last message, or its instructions, hold ``contains``. A ``child``
    request is of a child agent's conversation: its first message, or its instructions, hold ``contains``.
    """

    name: str
    contains: str
    kind: Literal["plain", "compact", "child"] = "plain"


def asks_for_summary(incoming: Incoming, rules: tuple[Side, ...]) -> bool:
    """Whether a request is one for a summary of the conversation."""
    compact = [rule.contains for rule in rules if rule.kind == "compact"]
    if not compact:
        return False
    said = incoming.system + "\n" + last_words(incoming)
    return any(words in said for words in compact)


def begins_child(incoming: Incoming, rules: tuple[Side, ...]) -> str | None:
    """The words in which a request says that it is a child agent's; None where it does not."""
    said = incoming.system + "\n" + next(iter(user_texts(incoming)), "")
    return said if any(rule.kind == "child" and rule.contains in said for rule in rules) else None


def side_request(incoming: Incoming, rules: tuple[Side, ...], *, has_tools: bool) -> str | None:
    """What kind of side request this is; None where it belongs to the task.

    ``has_tools`` says that the task's conversation offered tools: a request without any that asks for a
    structured output, or has another history, is then beside it.
    """
    if incoming.limit == 0:
        return "warm-up"
    if incoming.tools:
        return None
    for rule in rules:
        if rule.kind != "plain":
            continue
        if rule.contains in incoming.system or rule.contains in user_text(incoming):
            return rule.name
    if incoming.schema is not None:
        names = frozenset(incoming.schema.get("properties", ()))
        for name, least, most in SCHEMAS:
            if least <= names <= most:
                return name
        if has_tools:
            return "structured"
    return None


def reply(incoming: Incoming) -> Turn:
    """The fixed answer: text, or the least instance of the schema that was asked for."""
    if incoming.limit == 0:
        return make_turn((), "max_tokens")
    if incoming.schema is None:
        return make_turn((Text(REPLY),), "end_turn")
    value: Any = typed_output(incoming.schema, REPLY, Finish())
    return make_turn((Text(encode_json(value).decode()),), "end_turn")


def count(incoming: Incoming) -> int:
    """The tokens of a request, for a request that asks only for them."""
    return count_tokens(incoming.system) + count_tokens(user_text(incoming))
