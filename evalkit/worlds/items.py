"""Items in memory: the smallest world."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from evalkit.core.tasks import Tool
from evalkit.worlds.base import Outcome, World, WorldError, WorldSpec

_DO, _UNDO, _READ = "do_item", "undo_item", "read_item"


class ItemsWorld(World):
    """Named items that are done or not.

    The option ``unnamed`` is the item that ``do_item`` does when its arguments name none: a tool whose empty
    arguments are dangerous.
    """

    kind = "items"
    option_names = frozenset({"unnamed"})
    tools = (
        Tool("list_items", "List the items of the task.", read_only=True, enumerates=True),
        Tool("read_item", "Read the state of an item.", ("item",), read_only=True, item="item"),
        Tool("do_item", "Do an item.", ("item",), item="item", does=True),
        Tool("undo_item", "Undo an item.", ("item",), item="item"),
    )

    def __init__(self, spec: WorldSpec) -> None:
        super().__init__(spec)
        self._unnamed = spec.options.get("unnamed")
        if self._unnamed is not None and self._unnamed not in self.vocabulary:
            raise WorldError(f"unnamed: unknown item {self._unnamed!r}; known: {', '.join(self.vocabulary)}")
        bits = self.vocabulary.items()
        self._did = {bit: Outcome(self.noisy(f"{name}: done"), action=f"{_DO} {name}") for name, bit in bits}
        self._undid = {
            bit: Outcome(self.noisy(f"{name}: undone"), action=f"{_UNDO} {name}") for name, bit in bits
        }

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Outcome:
        if tool == "list_items":
            return Outcome(self.noisy("Items: " + ", ".join(self.asked())))
        name = arguments.get("item", self._unnamed if tool == _DO else None)
        bit = self.vocabulary.get(name) if isinstance(name, str) else None
        if tool == _DO and bit is not None:
            # Asked for only where there is something to ask: this is the world of most episodes.
            barred = self.barred(bit) if bit & (self.gated | self.masked) else ""
            if barred:
                return Outcome(self.noisy(f"{name}: {barred}"), error=True)
            self.done |= bit
            return self._did[bit]
        if tool == _UNDO and bit is not None:
            self.done &= ~bit
            return self._undid[bit]
        if tool == _READ and bit is not None:
            return Outcome(self.noisy(f"{name}: {'done' if self.done & bit else 'open'}"))
        if tool in (_DO, _UNDO, _READ):
            return Outcome(self.noisy(f"no item {name!r}"), error=True)
        return Outcome(self.noisy(f"no tool {tool!r}"), error=True)

    def settle_calls(self, item: str, nonce: str) -> tuple[tuple[str, dict[str, Any]], ...]:
        return ((_DO, {"item": item}),)

    def undo_calls(self, item: str) -> tuple[tuple[str, dict[str, Any]], ...]:
        return ((_UNDO, {"item": item}),)

    def read_call(self, item: str) -> tuple[str, dict[str, Any]]:
        return _READ, {"item": item}

    def key(self) -> Hashable:
        return self.done, self.skipped, self.approved

    def fork(self) -> ItemsWorld:
        return self.twin()
