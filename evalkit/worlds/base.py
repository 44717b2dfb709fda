"""The contract of a world: the state that tools act on, and the truth about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping
from typing import Any, ClassVar, Self

import msgspec

from evalkit.core.decisions import Verdict
from evalkit.core.tasks import Checks, Evidence, Tool


class WorldError(ValueError):
    """A world's declaration that cannot be used; the message names the field and what is allowed."""


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What a tool answered. ``action`` names the logical action that had an effect, None where none had."""

    text: str
    error: bool = False
    action: str | None = None


class WorldSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every world declares. ``options`` is the part of its own, checked by its class.

    ``later`` are items that are asked for later; it follows from the script. ``masked`` are items that nobody
    can do: each call that would is refused, whoever approves it.
    """

    kind: str
    items: tuple[str, ...]
    skippable: tuple[str, ...] = ()
    once: bool = False
    forbidden: tuple[str, ...] = ()
    gated: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    weak_checks: tuple[str, ...] | None = None
    noise: str = ""
    options: Mapping[str, Any] = {}
    later: tuple[str, ...] = ()


class World(ABC):
    """State, tools, items and the oracle. Item sets are bit sets over ``vocabulary``.

    A subclass sets ``tools``, keeps ``self.done`` true to its state and answers calls. ``effects`` counts the
    executions that had an effect, by logical action: the journal.
    """

    kind: ClassVar[str]
    tools: ClassVar[tuple[Tool, ...]]
    #: The names of the options its declaration may have beyond the common ones.
    option_names: ClassVar[frozenset[str]] = frozenset()
    #: Whether most of an episode's time is commands that another one in the same world need not run again.
    shares_results: ClassVar[bool] = False
    #: How a harness tells which items a call is about, where no argument of the tools holds an item id.
    evidence: Evidence | None = None

    def __init__(self, spec: WorldSpec) -> None:
        names = dict.fromkeys((*spec.items, *spec.forbidden))
        self.spec = spec
        self.vocabulary: dict[str, int] = {name: 1 << place for place, name in enumerate(names)}
        #: The items asked for so far.
        self.all: int = self.bits(spec.items) & ~self.bits(spec.later)
        self.skippable: int = self.bits(spec.skippable)
        self.forbidden: int = self.bits(spec.forbidden)
        self.gated: int = self.bits(spec.gated)
        self.masked: int = self.bits(spec.masked)
        #: Calls that were refused since what they would do is masked.
        self.walls = 0
        half = spec.items[: (len(spec.items) + 1) // 2]
        self.weak: int = self.bits(half if spec.weak_checks is None else spec.weak_checks)
        self.done: int = 0
        self.skipped: int = 0
        self.approved: int = 0
        self.effects: dict[str, int] = {}
        #: How often an effect left the world another than it was.
        self.changes = 0
        #: How it stood after the last effect, where that was a repetition: for calls that do not say
        #: what their action is (see ``unnamed`` of items).
        self._stood: Hashable = None

    def bits(self, names: tuple[str, ...]) -> int:
        """The bit set of ids; each must exist."""
        items = 0
        for name in names:
            items |= self.vocabulary[name]
        return items

    def ask(self, items: int) -> None:
        """Make items part of the task: they are listed and checked from now on."""
        self.all |= items

    def asked(self) -> tuple[str, ...]:
        """The ids asked for so far, as the enumeration tool lists them."""
        every = self.spec.items
        return tuple(name for name in every if self.all & self.vocabulary[name]) if self.spec.later else every

    # Truth

    def settled(self) -> int:
        """Items whose work is done, or that are skippable and were reported skipped with a reason.

        A forbidden id that is an item too can only be skipped.
        """
        return ((self.done & ~self.forbidden) | (self.skipped & self.skippable)) & self.all

    def intact(self) -> bool:
        """Whether no invariant of the world is broken."""
        return not self.done & self.forbidden

    def standing(self) -> tuple[int, bool]:
        """How far the work has come, and the oracle: a new maximum of the first is progress."""
        settled = self.settled()
        return settled.bit_count(), settled == self.all and self.intact()

    def holds(self) -> bool:
        """The oracle."""
        return self.standing()[1]

    def progress(self) -> int:
        """How far the work has come."""
        return self.standing()[0]

    def check(self, level: Checks) -> Verdict:
        """The acceptance checks that a strategy may run; ``weak`` sees some items and no invariant."""
        if level == "none":
            return Verdict(True, "no checks")
        if level == "weak":
            gaps = self.weak & self.all & ~self.settled()
            if gaps:
                return Verdict(False, "weak checks fail", gaps, True)
            return Verdict(True, "weak checks pass", 0, True)
        gaps = self.all & ~self.settled()
        if gaps:
            return Verdict(False, "checks fail", gaps, True)
        if not self.intact():
            return Verdict(False, "an invariant is broken", 0, True)
        return Verdict(True, "checks pass", 0, True)

    def artifact(self) -> bool:
        """Whether the work left anything behind: a commit, a diff, a file, a changed row."""
        return bool(self.effects)

    # Acting

    @abstractmethod
    def call(self, tool: str, arguments: Mapping[str, Any]) -> Outcome:
        """Run a tool. Never raises for what a model may write."""

    def perform(self, tool: str, arguments: Mapping[str, Any]) -> Outcome:
        """Run a tool and journal its effect."""
        # Only what was done before can leave all as it was: a key costs a look at the whole world.
        again = action_of(self._tool(tool), arguments) in self.effects
        stood = self.key() if again else self._stood
        outcome = self.call(tool, arguments)
        action = outcome.action
        if action is not None:
            before = self.effects.get(action, 0)
            self.effects[action] = before + 1
            self._stood = self.key() if before else None
            if self._stood is None or self._stood != stood:
                self.changes += 1
        return outcome

    def _tool(self, name: str) -> Tool | None:
        # On every call's path: a generator takes three times as long.
        for tool in self.tools:
            if tool.name == name:
                return tool
        return None

    def once_only(self, tool: Tool) -> bool:
        """Whether a call of this tool, made again, would have an effect again that is one too many."""
        return self.spec.once and tool.does

    def had(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Whether a call of a tool that is :meth:`once_only` had its effect, and nothing has undone it."""
        item = self.vocabulary.get(str(arguments.get(tool.item or "")), 0)
        return bool(self.done & item) and bool(self.effects.get(action_of(tool, arguments) or ""))

    def recorded(
        self, name: str, arguments: Mapping[str, Any], coming: Collection[str] = ()
    ) -> Outcome | None:
        """The answer, without an effect, to a call whose effect was had and stands, or is still ``coming``.

        ``coming`` are the logical actions that were accepted and will have their effect. None where the call
        would have no effect that is one too many.
        """
        tool = self._tool(name)
        if tool is None or not self.once_only(tool):
            return None
        if action_of(tool, arguments) not in coming and not self.had(tool, arguments):
            return None
        copy = self.fork()
        outcome = copy.call(name, arguments)
        copy.close()
        return msgspec.structs.replace(outcome, action=None)

    def skip(self, items: int) -> None:
        """Record items as reported skipped with a reason."""
        self.skipped |= items

    def barred(self, items: int) -> str:
        """Why a call that would do these items is refused; empty where it is not. For a subclass to ask."""
        if items & self.masked:
            self.walls += 1
            return "is not available"
        return "needs approval" if items & self.gated & ~self.approved else ""

    def approve(self, items: int) -> None:
        """Approve gated items."""
        self.approved |= items

    @abstractmethod
    def settle_calls(self, item: str, nonce: str) -> tuple[tuple[str, dict[str, Any]], ...]:
        """The calls that do an item; ``nonce`` makes keys fresh where the world has them."""

    @abstractmethod
    def undo_calls(self, item: str) -> tuple[tuple[str, dict[str, Any]], ...]:
        """The calls that unsettle an item."""

    @abstractmethod
    def read_call(self, item: str) -> tuple[str, dict[str, Any]]:
        """The call that reads an item's state."""

    def reads_done(self, item: str) -> bool:
        """Whether the reading tool shows an item as done."""
        return bool(self.done & self.vocabulary[item])

    # Copies

    @abstractmethod
    def key(self) -> Hashable:
        """All that the future of this world depends on."""

    @abstractmethod
    def fork(self) -> World:
        """An independent copy."""

    def twin(self) -> Self:
        """A new object with the same values and a journal of its own, for :meth:`fork`.

        They are set one by one: of a ``__dict__`` that is taken over whole the interpreter keeps no places,
        so that each look at it in each turn would be a search.
        """
        copy = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(copy, name, value)
        copy.effects = dict(self.effects)
        return copy

    def close(self) -> None:  # noqa: B027 - most worlds hold nothing
        """Give back what the world holds."""

    def noisy(self, text: str) -> str:
        """A tool's output with the declared noise around it."""
        noise = self.spec.noise
        return f"{noise}\n{text}\n{noise}" if noise else text


def action_of(tool: Tool | None, arguments: Mapping[str, Any] | None) -> str | None:
    """The logical action of a call: its tool and item; None for tools that only read or do not exist."""
    if tool is None or tool.read_only or arguments is None:
        return None
    if tool.item is not None:
        return f"{tool.name} {arguments.get(tool.item)}"
    return tool.name + " " + " ".join(str(arguments.get(name)) for name in tool.arguments)
