"""What a loop remembers of its run: folds with finite memory.

A condition names the folds it reads; only those are kept. Memory is hashable: bit sets of items, flags.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec

from evalkit.core.channels import skip_told, speaks
from evalkit.core.requests import Result
from evalkit.core.tasks import CHECKLIST_TOOL, Task, Tool, occurs_whole
from evalkit.core.turns import Call, Turn, parse_arguments

if TYPE_CHECKING:
    from evalkit.core.decisions import Verdict
    from evalkit.strategies.view import View


class Ran(msgspec.Struct, frozen=True, gc=False):
    """A call that was run, as the harness recorded it. ``tool`` is None for the harness's own tools."""

    call: Call
    result: Result
    tool: Tool | None = None
    item: int = 0


class Fold(Protocol):
    """A memory over the run. All methods are pure."""

    name: str

    def start(self, task: Task) -> Hashable:
        """The memory before the first turn."""

    def after_turn(self, memory: Any, turn: Turn, task: Task) -> Hashable:
        """The memory when a turn was delivered."""

    def after_results(self, memory: Any, ran: tuple[Ran, ...], task: Task) -> Hashable:
        """The memory when calls of the turn were run."""


def reads_turns(fold: Fold) -> bool:
    """Whether a fold's memory can change with a turn alone."""
    return getattr(type(fold), "after_turn", None) is not BaseFold.after_turn


def counts_looks(fold: Fold) -> bool:
    """Whether a fold remembers that ``done_when`` was asked."""
    return hasattr(fold, "after_look")


class BaseFold:
    """A fold that keeps its memory; subclasses change what they need."""

    name = ""
    #: What the memory is: a bit set of items, one of finitely many values, or something that may grow. Only
    #: what cannot grow lets all behaviours be explored to the end.
    holds: Literal["items", "finite", "open"] = "open"

    def start(self, task: Task) -> Hashable:
        return 0

    def after_turn(self, memory: Any, turn: Turn, task: Task) -> Hashable:
        return memory  # type: ignore[no-any-return]

    def after_results(self, memory: Any, ran: tuple[Ran, ...], task: Task) -> Hashable:
        return memory  # type: ignore[no-any-return]

    def after_compaction(self, memory: Any, task: Task) -> Hashable:
        """The memory when the conversation was compacted: as it was, for what the loop keeps itself."""
        return memory  # type: ignore[no-any-return]

    def after_asks(self, memory: Any, items: int, task: Task) -> Hashable:
        """The memory when the user asked for more items (a bit set)."""
        return memory  # type: ignore[no-any-return]


class Known(BaseFold):
    """The items of the last successful answer of the enumeration tool, or all that were given.

    What the user asks for later is known from then on.
    """

    name = "known"
    holds = "items"

    def start(self, task: Task) -> Hashable:
        return task.items & task.items_of(tuple(task.vocabulary)) if task.given else 0

    def after_results(self, memory: Any, ran: tuple[Ran, ...], task: Task) -> Hashable:
        if task.given:
            return memory  # type: ignore[no-any-return]
        for record in ran:
            if record.tool is not None and record.tool.enumerates and not record.result.error:
                memory = task.items_in(record.result.text)
        return memory  # type: ignore[no-any-return]

    def after_asks(self, memory: Any, items: int, task: Task) -> Hashable:
        return memory | items  # type: ignore[no-any-return]


class Ticked(BaseFold):
    """The items ticked off the checklist."""

    name = "ticked"
    holds = "items"

    def after_results(self, memory: Any, ran: tuple[Ran, ...], task: Task) -> Hashable:
        for record in ran:
            if record.call.tool == CHECKLIST_TOOL and not record.result.error:
                done = (parse_arguments(record.call.arguments) or {}).get("done", ())
                if isinstance(done, list):
                    memory |= task.items_of(tuple(name for name in done if isinstance(name, str)))
        return memory  # type: ignore[no-any-return]


class Succeeded(BaseFold):
    """The items with a recorded success of a tool that does them."""

    name = "succeeded"
    holds = "items"

    def after_results(self, memory: Any, ran: tuple[Ran, ...], task: Task) -> Hashable:
        for record in ran:
            if record.item and record.tool is not None and record.tool.does and not record.result.error:
                memory |= record.item
        return memory  # type: ignore[no-any-return]


class Shown(Succeeded):
    """The items whose success the conversation shows; a compaction takes it away."""

    name = "shown"

    def after_compaction(self, memory: Any, task: Task) -> Hashable:
        return 0


class Failed(BaseFold):
    """The items whose last result in the conversation is an error; a compaction takes it away."""

    name = "failed"
    holds = "items"

    def after_results(self, memory: Any, ran: tuple[Ran, ...], task: Task) -> Hashable:
        for record in ran:
            if record.item:
                memory = memory | record.item if record.result.error else memory & ~record.item
        return memory  # type: ignore[no-any-return]

    def after_compaction(self, memory: Any, task: Task) -> Hashable:
        return 0


class Skipped(BaseFold):
    """The items reported skipped with a reason, in whatever channel, and not done since."""

    name = "skipped"
    holds = "items"

    def after_turn(self, memory: Any, turn: Turn, task: Task) -> Hashable:
        skipped = skip_told(turn, task.offered)
        return memory | task.items_of(skipped) if skipped else memory  # type: ignore[no-any-return]

    def after_results(self, memory: Any, ran: tuple[Ran, ...], task: Task) -> Hashable:
        for record in ran:
            if record.item and record.tool is not None and record.tool.does and not record.result.error:
                memory &= ~record.item
        return memory  # type: ignore[no-any-return]


class KeywordSeen(BaseFold):
    """Whether a word occurred anywhere in the conversation, the user's and the tools' words included."""

    holds = "finite"

    def __init__(self, word: str) -> None:
        self.word = word
        self.name = f"heard {word}"

    def start(self, task: Task) -> Hashable:
        # Whoever agrees a keyword names it in the instructions.
        return 1

    def after_turn(self, memory: Any, turn: Turn, task: Task) -> Hashable:
        return 1 if memory or (speaks(turn) and occurs_whole(self.word, turn.text)) else 0


class ConversationChecklist(BaseFold):
    """The checklist as it stands in the conversation: the items it lists, or those it has ticked.

    A compaction takes it away, and what stands in it then is what the model writes anew.
    """

    holds = "items"

    def __init__(self, *, ticks: bool) -> None:
        self.ticks = ticks
        self.name = "ticked in the conversation" if ticks else "listed in the conversation"

    def start(self, task: Task) -> Hashable:
        return 0 if self.ticks else KNOWN.start(task)

    def after_results(self, memory: Any, ran: tuple[Ran, ...], task: Task) -> Hashable:
        if not self.ticks:
            memory = KNOWN.after_results(memory, ran, task)
        return TICKED.after_results(memory, ran, task)

    def after_asks(self, memory: Any, items: int, task: Task) -> Hashable:
        return memory if self.ticks else KNOWN.after_asks(memory, items, task)

    def after_compaction(self, memory: Any, task: Task) -> Hashable:
        return 0


class IdleTurns(BaseFold):
    """The turns since a call of a tool that is not read-only last succeeded, up to ``most``."""

    holds = "finite"

    def __init__(self, most: int) -> None:
        self.most = most
        self.name = f"idle turns up to {most}"

    def after_turn(self, memory: int, turn: Turn, task: Task) -> Hashable:
        return min(memory + 1, self.most)

    def after_results(self, memory: int, ran: tuple[Ran, ...], task: Task) -> Hashable:
        acted = any(r.tool is not None and not r.tool.read_only and not r.result.error for r in ran)
        return 0 if acted else memory

    def after_asks(self, memory: int, items: int, task: Task) -> Hashable:
        return 0


class RepeatedFailure(BaseFold):
    """The last call that failed, and how often in a row it failed so; an effect in between ends the row."""

    name = "the same failure"

    def start(self, task: Task) -> Hashable:
        return ("", 0)

    def after_results(self, memory: tuple[str, int], ran: tuple[Ran, ...], task: Task) -> Hashable:
        for record in ran:
            if record.tool is None:
                continue
            if record.result.error:
                failure = f"{record.call.tool} {record.call.arguments} {record.result.text}"
                memory = (failure, memory[1] + 1 if failure == memory[0] else 1)
            elif not record.tool.read_only:
                memory = ("", 0)
        return memory


FAILURES = RepeatedFailure()


#: Looks before the passes in a row, these passes, and whether a turn came since the last look.
EvidenceMemory: TypeAlias = tuple[int, int, bool]
#: Passes in a row may begin at one of so many looks; what begins later is no evidence any more.
MAX_STARTS = 64


class Evidence(BaseFold):
    """An e-process over the looks of a check that errs, against "what is asked for is not done".

    All that is staked is bet on the next look: a pass pays ``1 / fooled``, a fail takes it. While unfinished
    work passes with probability ``fooled`` or less, whatever came before, that is at most 1 on average. As
    nobody knows since when the work is done, ``1 / (n (n + 1))`` of the stake enters at the n-th look; these
    shares add up to 1, so the sum is an e-process too. Only a look after a new turn counts, and what the user
    asks for later is another question.
    """

    holds = "finite"

    def __init__(self, part: Callable[[View], Verdict], fooled: float, alpha: float) -> None:
        self.part, self.fooled, self.alpha = part, fooled, alpha
        self.name = f"evidence of {part!r} fooled {fooled:g} for {alpha:g}"

    def start(self, task: Task) -> Hashable:
        return (0, 0, False)

    def after_turn(self, memory: EvidenceMemory, turn: Turn, task: Task) -> Hashable:
        return memory if memory[2] else (memory[0], memory[1], True)

    def after_asks(self, memory: EvidenceMemory, items: int, task: Task) -> Hashable:
        before, passes, fresh = memory
        return (min(before + passes, MAX_STARTS), 0, fresh)

    def after_look(self, memory: EvidenceMemory, view: View) -> Hashable:
        """The memory when ``done_when`` was asked."""
        return self.weigh(memory, self.part(view).met)

    def weigh(self, memory: EvidenceMemory, passed: bool) -> EvidenceMemory:
        """The memory after a look."""
        before, passes, fresh = memory
        if not fresh:
            return memory
        if not passed:
            return (min(before + passes + 1, MAX_STARTS), 0, False)
        # More than enough is not counted, nor what adds nothing: what is remembered stays finite.
        counts = before < MAX_STARTS and not self.suffices(memory)
        return (before, passes + counts, False)

    def e_value(self, memory: EvidenceMemory) -> float:
        """The evidence that a memory stands for."""
        before, passes, _ = memory
        return _e_value(before, passes, self.fooled)

    def suffices(self, memory: EvidenceMemory) -> bool:
        """Whether it stands ``1 / alpha`` to 1 against "not done"."""
        return self.e_value(memory) >= 1 / self.alpha


@lru_cache(maxsize=4096)
def _e_value(before: int, passes: int, fooled: float) -> float:
    entered = range(before + 1, min(before + passes, MAX_STARTS) + 1)
    return sum(fooled ** (look - before - 1 - passes) / (look * (look + 1)) for look in entered)


KNOWN, TICKED, SUCCEEDED, SHOWN, FAILED, SKIPPED = (
    Known(),
    Ticked(),
    Succeeded(),
    Shown(),
    Failed(),
    Skipped(),
)
LISTED_IN_CONVERSATION, TICKED_IN_CONVERSATION = (
    ConversationChecklist(ticks=False),
    ConversationChecklist(ticks=True),
)
