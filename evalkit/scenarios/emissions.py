"""What a move makes the model deliver: blocks, and what goes with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from evalkit.core.channels import skip_told, speaks
from evalkit.core.events import Event
from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, Offered, Tool
from evalkit.core.turns import (
    STOP_REASONS,
    Block,
    Call,
    Claim,
    Finish,
    ServerCall,
    StopReason,
    Text,
    Thinking,
    Turn,
    make_turn,
    parse_arguments,
    read_finish,
)
from evalkit.scenarios.moves import (
    CallMove,
    Channel,
    DelegateMove,
    EmptyMove,
    FinishMove,
    FinishSpec,
    Move,
    OutputMove,
    PauseMove,
    RawMove,
    RefuseMove,
    Reply,
    SayMove,
    ThinkMove,
    TickMove,
    TruncateMove,
    UndoMove,
    WorkMove,
    verb_of,
)
from evalkit.scenarios.output_schema import _union, json_text, typed_output
from evalkit.worlds import World, action_of

#: Stands in a template for what makes a key fresh; replaced on delivery.
NONCE = "\x00nonce\x00"
DELEGATE_TOOL = "delegate"

#: Provider spellings that a scenario may use for a stop reason.
_SPELLINGS = {"model_context_window_exceeded": "context_window"}


class Arm(msgspec.Struct, frozen=True):
    """While the turn stands, calls of this tool with these arguments get this reply.

    ``settles`` is an item that is done before the call is answered.
    """

    tool: str
    arguments: str
    reply: Reply | None = None
    settles: str | None = None


class Scope(NamedTuple):
    """The items that the script has attempted, and those asked for so far (bit sets)."""

    attempted: int
    asked: int


class Child(msgspec.Struct, frozen=True):
    """A child agent within the delegate call with these arguments: its moves, and where it begins."""

    arguments: str
    program: Any
    scope: Scope


class Part(msgspec.Struct, frozen=True):
    """What one move contributes to a turn."""

    blocks: tuple[Block, ...] = ()
    stop: StopReason = "end_turn"
    native: str | None = None
    claim: Claim = "none"
    told: Finish | None = None
    category: str | None = None
    arms: tuple[Arm, ...] = ()
    attempts: int = 0
    children: tuple[Child, ...] = ()


class Emission(msgspec.Struct, frozen=True):
    """One delivery: a turn or, where ``turn.kind`` is failed or in_progress, what came instead.

    ``label`` and ``path`` name the move; ``fresh`` says that the calls hold keys to be made fresh.
    ``event`` is an event for the harness and no delivery at all.
    """

    turn: Turn
    label: str
    path: str
    arms: tuple[Arm, ...] = ()
    attempts: int = 0
    fresh: bool = False
    children: tuple[Child, ...] = ()
    stall_s: float = 0.0
    #: The logical actions that the turn's complete calls ask for.
    actions: tuple[str, ...] = ()
    #: The ids that the turn reports as skipped with a reason.
    skips: tuple[str, ...] = ()
    #: The event that it is, by the move's name.
    event: str = ""
    #: What the event is to a harness; None for a crash.
    happens: Event | None = None
    #: What the event's move says of it.
    about: Any = None
    #: What a fault breaks off, which no harness gets to read whole.
    begun: Turn | None = None
    #: The harness is killed when so many calls of the turn have run; None: it is not.
    crash_after: int | None = None


class Script:
    """What the compiled moves of one scenario share: its world, its channels, its words."""

    def __init__(self, world: World, offered: Offered, output: Mapping[str, Any] | None) -> None:
        self.world = world
        self.offered = offered
        self.output = output
        self.tools = {tool.name: tool for tool in world.tools}
        self._every = world.spec.items
        self._later = bool(world.spec.later)

    # Items

    def items(self, asked: int) -> tuple[str, ...]:
        """The items asked for so far, in the world's order."""
        if not self._later:
            return self._every
        bits = self.world.vocabulary
        return tuple(item for item in self._every if asked & bits[item])

    def chosen(self, value: Any, scope: Scope, *, of_attempted: bool) -> tuple[str, ...]:
        """Items that ``N``, ``all``, ``rest`` or a list of ids stands for."""
        if isinstance(value, tuple):
            return value
        bits = self.world.vocabulary
        items = [item for item in self.items(scope.asked) if not of_attempted or scope.attempted & bits[item]]
        return tuple(items if value in ("all", "rest") else items[:value])

    # Parts

    def part(self, move: Move, scope: Scope) -> Part:
        """The contribution of a move that is one turn by itself."""
        match move:
            case CallMove():
                return self._calls(((move.call, move.with_),), move.reply)
            case UndoMove():
                items = self.chosen(move.undo, scope, of_attempted=True)
                calls = [call for item in items for call in self.world.undo_calls(item)]
                return self._calls(tuple(calls), None)
            case TickMove():
                return self.ticks(self.chosen(move.tick, scope, of_attempted=False))
            case SayMove():
                return self._say(move, scope)
            case ThinkMove():
                return Part((Thinking(move.think),), claim=move.claim)
            case EmptyMove():
                return Part(claim=move.claim)
            case FinishMove():
                return self._finish(move, scope)
            case OutputMove():
                return self._output(move, scope)
            case PauseMove():
                text = (Text(move.pause.text),) if move.pause.text else ()
                call = ServerCall("server_0", move.pause.name)
                return Part((*text, call), stop="pause_turn")
            case TruncateMove():
                return self._truncate(move, scope)
            case RefuseMove():
                text = (Text(move.refuse.text),) if move.refuse.text else ()
                return Part(text, stop="refusal", category=move.refuse.category)
            case RawMove():
                return self._raw(move)
        raise TypeError(f"{verb_of(move)} is not one turn")

    def work(self, items: tuple[str, ...], *, ticks: bool, reply: Reply | None) -> Part:
        """The calls that do items, in one turn."""
        calls = [call for item in items for call in self.world.settle_calls(item, NONCE)]
        part = self._calls(tuple(calls), reply)
        if ticks:
            part = merge((part, self.ticks(items)))
        return msgspec.structs.replace(part, attempts=self.world.bits(items))

    def read(self, item: str, *, settles: bool) -> Part:
        """A poll of an item's state."""
        tool, arguments = self.world.read_call(item)
        part = self._calls(((tool, arguments),), None)
        if not settles:
            return part
        arm = Arm(tool, json_text(arguments), settles=item)
        return msgspec.structs.replace(part, arms=(arm,), attempts=self.world.bits((item,)))

    def ticks(self, items: tuple[str, ...]) -> Part:
        """Items ticked off the checklist; nothing where none is offered."""
        if not self.offered.checklist or not items:
            return Part()
        return self._calls(((CHECKLIST_TOOL, {"done": list(items)}),), None)

    def nothing_further(self) -> Part:
        """What the model says when its script is over."""
        return Part((Text("Nothing further."),))

    def _calls(self, calls: tuple[tuple[str, Mapping[str, Any]], ...], reply: Reply | None) -> Part:
        if not calls:
            return Part()
        told = None
        blocks = []
        for tool, arguments in calls:
            blocks.append(Call("", tool, json_text(arguments)))
            if tool == FINISH_TOOL and self.offered.finish:
                told = read_finish(json_text(arguments))
        arms = tuple(Arm(block.tool, block.arguments, reply) for block in blocks) if reply else ()
        return Part(tuple(blocks), stop="tool_use", told=told, arms=arms)

    # Claims

    def _channel(self, channel: Channel, claim: Claim) -> Channel:
        """The channel a claim takes: what is not offered becomes text."""
        offered = self.offered
        if channel == "offered":
            if claim != "done":
                return "text"
            if offered.finish:
                return "finish"
            return "keyword" if offered.keyword else "output" if offered.output else "text"
        has = {"finish": offered.finish, "keyword": bool(offered.keyword), "output": offered.output}
        return channel if has.get(channel) else "text"

    def _told(self, spec: FinishSpec | None, claim: Claim, scope: Scope) -> Finish:
        """The finish that a claim stands for: for ``done`` all items unless it says otherwise."""
        if spec is None:
            done = claim == "done"
            return Finish(self.items(scope.asked) if done else self.chosen("all", scope, of_attempted=True))
        completed = spec.completed
        if completed is None:
            rest = [item for item in self.items(scope.asked) if item not in spec.skipped]
            completed = tuple(rest) if claim == "done" else ()
        names = self.chosen(completed, scope, of_attempted=False)
        return Finish(names, spec.skipped, spec.reason)

    def _say(self, move: SayMove, scope: Scope) -> Part:
        words = self._words(move.say)
        told = self._told(move.finish, move.claim, scope)
        return self._claim(words, move.claim, self._channel(move.channel, move.claim), told, move)

    def _finish(self, move: FinishMove, scope: Scope) -> Part:
        told = self._told(move.finish, "none", scope)
        covers = set(self.items(scope.asked)) <= {*told.completed, *told.skipped}
        claim: Claim = "done" if covers else "partial"
        channel = move.channel
        if channel == "offered" and self.offered.finish:
            channel = "finish"
        channel = self._channel(channel, claim)
        if channel == "finish":
            return self._claim("", claim, channel, told, None)
        said = "Completed: " + (", ".join(told.completed) or "none") + "."
        return self._claim(said, claim, channel, told, move)

    def _output(self, move: OutputMove, scope: Scope) -> Part:
        """Typed output as it is written; by another channel it is the claim that counts."""
        if move.channel in ("offered", "output", "text"):
            return Part((Text(json_text(move.output)),), claim=move.claim)
        told = self._told(None, move.claim, scope)
        return self._claim(
            json_text(move.output), move.claim, self._channel(move.channel, move.claim), told, None
        )

    def _claim(self, words: str, claim: Claim, channel: Channel, told: Finish, move: Move | None) -> Part:
        phase = move.phase if isinstance(move, SayMove) else None
        explicit = getattr(move, "finish", None) is not None
        if channel == "finish":
            arguments = {
                "items_completed": list(told.completed),
                "items_skipped": list(told.skipped),
                "reason_skipped": told.reason,
            }
            blocks: tuple[Block, ...] = (Text(words, phase),) if words else ()
            call = Call("", FINISH_TOOL, json_text(arguments))
            return Part((*blocks, call), stop="tool_use", claim=claim, told=told)
        if channel == "output":
            value = typed_output(self.output, words, told)
            return Part((Text(json_text(value), phase),), claim=claim, told=told)
        if explicit and told.skipped:
            reason = f" ({told.reason})" if told.reason else ""
            words = f"{words} Skipped: {', '.join(told.skipped)}{reason}."
        if channel == "keyword" and self.offered.keyword:
            words = f"{words}\n{self.offered.keyword}"
        return Part((Text(words, phase),), claim=claim, told=told if explicit else None)

    def _words(self, text: str) -> str:
        return text.replace("{keyword}", self.offered.keyword or "TERMINATE")

    # Cut off, foreign, delegated

    def _truncate(self, move: TruncateMove, scope: Scope) -> Part:
        stop: StopReason = move.limit
        if move.truncate == "text":
            text = Text("The next step is to go through the remaining")
            return Part((text,), stop=stop, claim=move.claim)
        if isinstance(move.truncate, str):
            bits = self.world.vocabulary
            items = self.items(scope.asked)
            open_items = [item for item in items if not scope.attempted & bits[item]]
            item = (open_items or list(items))[0]
        else:
            item = move.truncate.work
        tool, arguments = self.world.settle_calls(item, NONCE)[0]
        written = json_text(arguments)
        if not move.parses:
            written = written[: max(1, len(written) * 2 // 3)]
        return Part((Call("", tool, written),), stop=stop, claim=move.claim)

    def _raw(self, move: RawMove) -> Part:
        blocks: list[Block] = []
        attempts = 0
        for block in move.raw.content:
            if "text" in block:
                blocks.append(Text(self._words(block["text"]), block.get("phase")))
            elif "thinking" in block:
                blocks.append(Thinking(block["thinking"]))
            elif "server_call" in block:
                blocks.append(ServerCall(f"server_{len(blocks)}", block["server_call"], block.get("result")))
            elif "work" in block:
                attempts |= self.world.bits((block["work"],))
                for tool, arguments in self.world.settle_calls(block["work"], NONCE):
                    blocks.append(Call("", tool, json_text(arguments)))
            else:
                blocks.append(Call("", block["call"], json_text(block.get("with", {}))))
        calls = [block for block in blocks if isinstance(block, Call)]
        finishes = [call.arguments for call in calls if call.tool == FINISH_TOOL and self.offered.finish]
        told = read_finish(finishes[-1]) if finishes else None
        part = Part(tuple(blocks), "tool_use" if calls else "end_turn", None, move.raw.claim, told)
        part = msgspec.structs.replace(part, attempts=attempts, category=move.raw.extra.get("category"))
        return part if move.raw.stop is msgspec.UNSET else labelled(part, move.raw.stop)

    def delegate(self, move: DelegateMove, scope: Scope, program: Any) -> Part:
        """The call within which a child agent plays its moves."""
        call = Call("", DELEGATE_TOOL, json_text({"name": move.delegate.name}))
        return Part((call,), "tool_use", children=(Child(call.arguments, program, scope),))

    def begun(self, cut: str, scope: Scope) -> Turn:
        """What a stream that breaks ``in_call`` or ``after_call`` had begun: a call that does an item."""
        items = self.items(scope.asked)
        bits = self.world.vocabulary
        item = next((item for item in items if not scope.attempted & bits[item]), items[0])
        tool, arguments = self.world.settle_calls(item, "broken")[0]
        written = json_text(arguments)
        if cut == "in_call":
            written = written[: max(1, len(written) * 2 // 3)]
        return make_turn((Text("Next:"), Call("call_broken", tool, written)), "tool_use")

    def work_items(self, move: WorkMove, scope: Scope, shown: int = 0) -> tuple[str, ...]:
        """The items that a ``work`` move does, fixed when it starts; ``shown`` are seen to be done."""
        if isinstance(move.work, tuple):
            return move.work
        bits = self.world.vocabulary
        attempted = shown if move.work == "unseen" else scope.attempted
        items = [item for item in self.items(scope.asked) if bool(attempted & bits[item]) == move.again]
        return tuple(items[: move.work] if isinstance(move.work, int) else items)


def merge(parts: tuple[Part, ...]) -> Part:
    """Several parts as one: a cut-off part makes the whole cut off, then a refusal, a pause, a call decide.

    The strongest claim stands (done, partial, blocked, none), and of several finishes the last.
    """
    stops = [part.stop for part in parts]
    order: tuple[StopReason, ...] = (
        "max_tokens",
        "context_window",
        "refusal",
        "pause_turn",
        "unknown",
        "tool_use",
        "end_turn",
    )
    stop = next((stop for stop in order if stop in stops), stops[0])
    claims = [part.claim for part in parts]
    claim: Claim = next((claim for claim in ("done", "partial", "blocked") if claim in claims), "none")
    told = next((part.told for part in reversed(parts) if part.told is not None), None)
    return Part(
        blocks=tuple(block for part in parts for block in part.blocks),
        stop=stop,
        native=next((part.native for part in parts if part.native is not None), None),
        claim=claim,
        told=told,
        category=next((part.category for part in parts if part.category is not None), None),
        arms=tuple(arm for part in parts for arm in part.arms),
        attempts=_union(part.attempts for part in parts),
        children=tuple(child for part in parts for child in part.children),
    )


def labelled(part: Part, label: str | None) -> Part:
    """A part under another stop label; what is no stop reason is ``unknown``, its own label kept."""
    reason = _SPELLINGS.get(label or "", label)
    stop: StopReason = reason if reason in STOP_REASONS else "unknown"  # type: ignore[assignment]
    return msgspec.structs.replace(part, stop=stop, native="null" if label is None else label)


def emission(part: Part, label: str, path: str, tools: Mapping[str, Tool], offered: Offered) -> Emission:
    """The delivery of a part, its calls numbered. A call that no harness should run is no attempt."""
    blocks: list[Block] = []
    fresh = False
    for place, block in enumerate(part.blocks):
        if isinstance(block, Call):
            fresh = fresh or _ESCAPED_NONCE in block.arguments
            blocks.append(Call(f"call_{place}", block.tool, block.arguments))
        else:
            blocks.append(block)
    turn = make_turn(
        tuple(blocks),
        part.stop,
        native=part.native,
        category=part.category,
        claim=part.claim,
        told=part.told,
    )
    if turn.kind not in ("content", "unknown"):
        part = msgspec.structs.replace(part, attempts=0)
    calls = turn.calls if speaks(turn) else ()
    actions = (action_of(tools.get(call.tool), parse_arguments(call.arguments)) for call in calls)
    return Emission(
        turn,
        label,
        path,
        part.arms,
        part.attempts,
        fresh,
        part.children,
        actions=tuple(action for action in actions if action is not None),
        skips=skip_told(turn, offered),
    )


_ESCAPED_NONCE = msgspec.json.encode(NONCE).decode()[1:-1]


def freshen(emitted: Emission, nonce: str) -> Emission:
    """An emission with its keys made fresh: each posting has one of its own, in a batch too."""
    made: dict[tuple[str, str], list[str]] = {}
    blocks: list[Block] = []
    for block in emitted.turn.content:
        if isinstance(block, Call):
            same = made.setdefault((block.tool, block.arguments), [])
            own = f"{nonce}.{len(same) + 1}" if same else nonce
            same.append(block.arguments.replace(_ESCAPED_NONCE, own))
            block = Call(block.id, block.tool, same[-1])
        blocks.append(block)
    old = emitted.turn
    turn = make_turn(
        tuple(blocks), old.stop, native=old.native, category=old.category, claim=old.claim, told=old.told
    )
    arms = tuple(
        msgspec.structs.replace(arm, arguments=arguments)
        for arm in emitted.arms
        for arguments in dict.fromkeys(made.get((arm.tool, arm.arguments), (arm.arguments,)))
    )
    return msgspec.structs.replace(emitted, turn=turn, arms=arms)
