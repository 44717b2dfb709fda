"""What a harness is told: the task, its tools, its limits, and the channels it offers the model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

Checks: TypeAlias = Literal["full", "weak", "none"]

FINISH_TOOL = "finish_task"
CHECKLIST_TOOL = "update_checklist"
KEYWORD = "TERMINATE"

#: Typed output where a task declares none.
DEFAULT_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string"},
        "completed": {"type": "array", "items": {"type": "string"}},
        "skipped": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["summary", "completed"],
}


class Tool(msgspec.Struct, frozen=True):
    """A tool of the world.

    ``item`` names the argument that holds an item id. ``does`` marks the tools whose success is a record of
    work on that item. ``enumerates`` marks the tool whose answer lists the items.
    """

    name: str
    description: str
    arguments: tuple[str, ...] = ()
    read_only: bool = False
    item: str | None = None
    does: bool = False
    enumerates: bool = False

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {name: {"type": "string"} for name in self.arguments},
            "required": list(self.arguments),
            "additionalProperties": False,
        }


class Evidence(Protocol):
    """Which items a call is about, where no argument holds an item id.

    A pure function of what a harness sees of a call: the tool, its arguments, the answer. It knows which
    paths and commands belong to which items, and nothing of the world's state.
    """

    def __call__(self, tool: str, arguments: Mapping[str, Any], text: str, error: bool) -> int:
        """The bit set of the items."""


class Limits(msgspec.Struct, frozen=True):
    """Limits of a run; None is none. ``usd`` by the prices of :mod:`evalkit.core.prices`.

    ``calls`` are tool calls, looked at before a batch is run. ``per`` says whether a later message of the
    user starts them anew.
    """

    turns: int | None = None
    tokens: int | None = None
    usd: float | None = None
    calls: int | None = None
    per: Literal["episode", "query"] = "episode"

    def reached(self, turns: int, tokens: int, usd: float) -> str:
        """The native name of the limit that turns, tokens and dollars have reached; empty for none."""
        if self.turns is not None and turns >= self.turns:
            return "max_turns"
        if self.tokens is not None and tokens >= self.tokens:
            return "max_tokens"
        if self.usd is not None and usd >= self.usd:
            return "max_usd"
        return ""

    def forbids(self, calls: int, batch: int) -> str:
        """The same for a batch that is about to be run after so many calls."""
        return "max_calls" if self.calls is not None and calls + batch > self.calls else ""


class Offered(msgspec.Struct, frozen=True):
    """The channels that a harness agrees with the model for saying "done"."""

    finish: bool = False
    checklist: bool = False
    keyword: str | None = None
    output: bool = False

    @property
    def beside_calls(self) -> bool:
        """Whether a turn with calls can claim to be the last all the same."""
        return self.finish or self.keyword is not None

    def __or__(self, other: Offered) -> Offered:
        return Offered(
            finish=self.finish or other.finish,
            checklist=self.checklist or other.checklist,
            keyword=self.keyword or other.keyword,
            output=self.output or other.output,
        )


NO_CHANNELS = Offered()


class Task(msgspec.Struct, frozen=True):
    """What the harness knows from the start.

    ``vocabulary`` gives every item a bit, an encoding only: which items a harness *knows* is a fold over what
    the enumeration tool answered, unless they were ``given``. An id that is only forbidden is no item.
    """

    name: str
    prompt: str
    done_when: str
    checks: Checks
    given: bool
    vocabulary: Mapping[str, int]
    skippable: int
    tools: Mapping[str, Tool]
    limits: Limits
    output: Mapping[str, Any] | None = None
    #: Names the stream of seeded choices; twins share it, so that strategies stay paired.
    stream: str = ""
    seed: int = 0
    evidence: Evidence | None = None
    #: The items of the task from the start (a bit set, by default of all); more may be asked for later.
    items: int = -1
    #: The channels that the harness offers its model.
    offered: Offered = NO_CHANNELS

    def names(self, items: int) -> tuple[str, ...]:
        """The ids of a bit set, in the world's order."""
        return tuple(name for name, bit in self.vocabulary.items() if items & bit)

    def items_of(self, names: tuple[str, ...]) -> int:
        """The bit set of ids; ids that the world does not have are left out."""
        items = 0
        for name in names:
            items |= self.vocabulary.get(name, 0)
        return items

    def items_in(self, text: str) -> int:
        """The bit set of the items whose ids occur in a text, matched whole."""
        return _items_in(text, tuple(self.vocabulary.items()))

    def items_of_call(self, tool: Tool, arguments: Mapping[str, Any], text: str, error: bool) -> int:
        """The bit set of the items that a call, answered with ``text``, is about."""
        if self.evidence is not None:
            return self.evidence(tool.name, arguments, text, error)
        name = arguments.get(tool.item or "")
        return self.vocabulary.get(name, 0) if isinstance(name, str) else 0


def occurs_whole(word: str, text: str) -> bool:
    """Whether a word occurs in a text and is not a part of a longer word, path or id.

    It stands whole where no letter, digit, ``_``, ``.``, ``/`` or ``-`` comes before it, and none after it; a
    full stop may follow that no letter or digit follows.
    """
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if _can_begin(text[at - 1 : at]) and _can_end(text[end : end + 2]):
            return True
        at = text.find(word, at + 1)
    return False


def _can_begin(before: str) -> bool:
    return not (before.isalnum() or before in ("_", ".", "/", "-"))


def _can_end(after: str) -> bool:
    first, second = after[:1], after[1:]
    if first == ".":
        return not (second.isalnum() or second == "_")
    return not (first.isalnum() or first in ("_", "/", "-"))


@lru_cache(maxsize=4096)
def _items_in(text: str, vocabulary: tuple[tuple[str, int], ...]) -> int:
    items = 0
    for name, bit in vocabulary:
        if occurs_whole(name, text):
            items |= bit
    return items
