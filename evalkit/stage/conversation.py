"""The conversation as requests show it: where one stands, what it carries, what it shows as done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from evalkit.core.events import shown_done, summary_text
from evalkit.core.requests import Delivered, Request, Result, stimulus
from evalkit.core.tasks import FINISH_TOOL, Task, occurs_whole
from evalkit.core.trace import Trace
from evalkit.core.turns import Call, Turn, count_tokens, parse_arguments
from evalkit.scenarios.moves import CompactSpec
from evalkit.scenarios.player import Player
from evalkit.scenarios.program import PlayerState
from evalkit.stage.child_agents import ChildAgents
from evalkit.stage.compactor import Compactor
from evalkit.stage.tools import NO_ENTRIES
from evalkit.worlds import World


class Answered(msgspec.Struct, frozen=True, gc=False):
    """A request that a turn answered: the script after it, the turn, and what it carried.

    ``parent`` is the number of the turn that it went on from, ``met`` the faults and events met by then,
    ``actions`` the logical actions that the turn asked for.
    """

    state: PlayerState
    delivered: Delivered
    parent: int
    met: Mapping[int, int]
    actions: tuple[str, ...]


class Conversation(ChildAgents):
    """Where the harness stands in the conversation, as its requests show."""

    __slots__ = (
        "_answered",
        "_compacted",
        "_crashed",
        "_finish_tool",
        "_first",
        "_given_up",
        "_history",
        "_idle",
        "_looked",
        "_met",
        "_prompt_tokens",
        "_told",
        "compactor",
        "faulted",
        "previous",
        "remembers",
        "summaries",
    )

    def __init__(
        self, player: Player, world: World, task: Task, trace: Trace | None, prompt_tokens: int
    ) -> None:
        super().__init__(player, world, task, trace)
        self.previous = Delivered()
        #: What makes a program compact its conversation; None where the driver is told of a compaction.
        self.compactor: Compactor | None = None
        #: Whether a request may stand at an earlier turn than the last, so that all have to be remembered.
        self.remembers = False
        #: What the model has said when it was asked to sum the conversation up.
        self.summaries: tuple[str, ...] = ()
        self.faulted = False
        self._prompt_tokens = prompt_tokens
        #: Tokens of the conversation that the next request goes on from, its last turn aside.
        self._history = prompt_tokens
        self._first = True
        #: Requests in a row that no turn has answered.
        self._idle = 0
        self._answered: list[Answered] = []
        #: The last turns of conversations that were left behind, and how many turns were counted for it.
        self._given_up: Mapping[int, int] = NO_ENTRIES
        #: How often each fault and event came, by its place in the script.
        self._met: Mapping[int, int] = NO_ENTRIES
        self._crashed = False
        self._compacted = False
        #: The items that the next request as a whole shows as done, where somebody has looked.
        self._looked: int | None = None
        #: What tools answered when an item was done.
        self._told: Mapping[str, int] = NO_ENTRIES
        #: A call of one that is not offered is answered like that of any unknown tool.
        self._finish_tool = FINISH_TOOL if player.script.offered.finish else ""

    @property
    def last_turn(self) -> Turn | None:
        """The last turn that was delivered."""
        return self.previous.turn

    def _carried(self, request: Request) -> int:
        """Tokens that a request carries: history, the turn it sends back, and what it adds."""
        if request.shortened:
            self._history = self._prompt_tokens + request.history
        carried, turn = self._history, self.previous.turn
        if request.echo is not None and turn is not None:
            carried += turn.tokens
        for result in request.results:
            carried += count_tokens(result.text)
        return carried + count_tokens(request.text) if request.text else carried

    def _stand(self, request: Request) -> None:
        """Put the script where the harness stands, if that is not behind the last turn."""
        place = stimulus(self.previous, request, self._finish_tool).place
        trace = self.trace
        if place == "on" or self._compacted:
            return
        if place == "lost":
            # A helper's own conversation is none of the task's.
            if not request.beside:
                if trace is not None:
                    trace.began_anew()
                if self._restarts:
                    self._go_back(0)
            return
        assert request.after is not None
        forgotten = self._descendants(request.after)
        if trace is not None:
            if request.after in self._given_up:
                # What seemed to be forgotten goes on: two conversations beside each other.
                given_up = dict(self._given_up)
                trace.rolled_back -= given_up.pop(request.after)
                self._given_up = given_up
                trace.branched(request.after)
            elif request.beside:
                trace.branched(request.after)
            else:
                trace.went_back(request.after, len(forgotten))
                if not request.after:
                    trace.began_anew()
                if forgotten:
                    self._given_up = {**self._given_up, forgotten[0]: len(forgotten)}
        self._go_back(request.after, forgotten)

    @property
    def _restarts(self) -> bool:
        """Whether the script begins again for a harness that has forgotten the conversation."""
        return self.player.starts_over or (self._crashed and self.player.may_start_over)

    def _descendants(self, number: int) -> tuple[int, ...]:
        """The turns of the newest conversation that went on from an answered turn."""
        for last in range(len(self._answered), number, -1):
            path, at = [], last
            while at > number:
                path.append(at)
                at = self._answered[at - 1].parent
            if at == number:
                return tuple(path)
        return ()

    def _go_back(self, number: int, forgotten: tuple[int, ...] | None = None) -> None:
        """The script as it was after an answered turn, but for what was met and told since."""
        met: Mapping[int, int] = {}
        state, self.previous, self._history = self.player.start, Delivered(), self._prompt_tokens
        if number:
            at = self._answered[number - 1]
            state, self.previous, self._history = at.state, at.delivered, at.delivered.carried
            met = at.met
        since = {pc: count - met.get(pc, 0) for pc, count in self._met.items() if count > met.get(pc, 0)}
        spared = dict(state.spared)
        for pc, count in since.items():
            spared[pc] = spared.get(pc, 0) + count
        self.state = msgspec.structs.replace(
            state, asked=self.world.all, spared=tuple(sorted(spared.items()))
        )
        self.ran = {}
        self._shown = 0
        if self.compactor is not None:
            self.compactor.look_away()
        self._first = number == 0
        for turn in forgotten if forgotten is not None else range(1, len(self._answered) + 1):
            self._forget(self._answered[turn - 1].actions)

    def _meet(self) -> None:
        """Remember a fault or event that came: whoever begins again does not meet it again."""
        if self.remembers:
            pc = self.state.pc
            self._met = {**self._met, pc: self._met.get(pc, 0) + 1}

    def _shows(self, request: Request) -> int:
        """The items that what a request adds shows as done: by a result, or in a user's words."""
        turn, items = self.previous.turn, 0
        calls = {call.id: call for call in turn.calls} if turn is not None else {}
        for result in request.results:
            call = calls.get(result.id)
            tool = self.task.tools.get(call.tool) if call is not None else None
            if call is None or tool is None or not tool.does or result.error:
                continue
            arguments = parse_arguments(call.arguments) or {}
            items |= self.task.items_of_call(tool, arguments, result.text, result.error)
        if request.text:
            items |= self.task.items_of(shown_done(request.text, tuple(self.task.vocabulary)))
        return items

    def look(self, calls: Iterable[tuple[Call, Result]], text: str, *, held: bool) -> None:
        """Look through the next request as a whole for the items that it shows as done.

        ``calls`` are those that it holds with their results, ``text`` are its words. ``held``: it goes on
        from an answer, and holds only what it adds.
        """
        self._looked = self._showing(calls, text) | (self._shown if held else 0)

    def sum_up(self, calls: Iterable[tuple[Call, Result]], text: str, words: tuple[str, ...]) -> str:
        """What the model says when a program asks it to sum its conversation up: made from that request."""
        spec = self.compactor.spec if self.compactor is not None else CompactSpec()
        summary = self._summary(spec, self._showing(calls, text), words)
        if summary:
            self.summaries = (*self.summaries, summary)
        return summary

    def _showing(self, calls: Iterable[tuple[Call, Result]], text: str) -> int:
        """The items that calls with their results, and words, show as done."""
        items = self.task.items_of(shown_done(text, tuple(self.task.vocabulary)))
        for call, result in calls:
            tool = self.task.tools.get(call.tool)
            if tool is not None and tool.does and not result.error:
                arguments = parse_arguments(call.arguments) or {}
                items |= self.task.items_of_call(tool, arguments, result.text, result.error)
        if self._told:
            # A history that was put into words still holds what the tools answered.
            flat = " ".join(text.split())
            for told, bits in self._told.items():
                items |= bits if told in flat else 0
        return items

    def _tell(self, call: Call, arguments: str, text: str) -> None:
        """Keep what a tool answered when it did an item that the answer names."""
        tool = self.task.tools.get(call.tool)
        if tool is None or not tool.does:
            return
        items = self.task.items_of_call(tool, parse_arguments(arguments) or {}, text, False)
        bits = self.task.vocabulary
        if any(bits[name] & items and occurs_whole(name, text) for name in bits):
            self._told = {**self._told, " ".join(text.split()): items}

    def _summary(self, spec: CompactSpec, done: int, words: tuple[str, ...]) -> str:
        """What the model says when it is asked to sum the conversation up, ``done`` being what it sees."""
        if spec.summary == "empty":
            return ""
        if spec.summary != "faithful":
            return spec.summary
        names = self.world.asked()
        kept = [name for name in names if name not in spec.forgets]
        bits = self.world.vocabulary
        return summary_text(
            tuple(name for name in kept if done & bits[name]),
            tuple(name for name in kept if not done & bits[name]),
            words,
        )
