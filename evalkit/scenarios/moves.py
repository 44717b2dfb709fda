"""The moves of the scenario language, as types. Each move is named by the field that makes it that move."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from evalkit.core.requests import FULL_WINDOW, cannot_pass
from evalkit.core.turns import Claim

Until: TypeAlias = Literal[
    "any", "changed", "shortened", "named", "higher_limit", "other_model", "resent", "rejected", "never"
]
Channel: TypeAlias = Literal["offered", "text", "finish", "keyword", "output"]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Times: TypeAlias = Annotated[int, Meta(ge=1)] | Literal["forever"]


class Reply(Struct, frozen=True, forbid_unknown_fields=True):
    """What the tool answers and does instead of the world's own answer and effect.

    ``lands`` is the request after the call with which a late effect lands, ``never`` loses it.
    """

    text: str | None = None
    error: bool = False
    effect: Literal["none", "applied", "late"] | None = None
    lands: Annotated[int, Meta(ge=1)] | Literal["never"] = 2

    @property
    def effective(self) -> Literal["none", "applied", "late"]:
        """The effect, with its default: none for an error, applied otherwise."""
        return self.effect or ("none" if self.error else "applied")


class FinishSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """What a finish says: all items, the first N, or ids; skips with their reason."""

    completed: Literal["all"] | Count | tuple[str, ...] | None = None
    skipped: tuple[str, ...] = ()
    reason: str = ""


class Move(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields that any move may have. ``stop`` contradicts the turn's natural stop label."""

    until: Until | UnsetType = UNSET
    stop: str | UnsetType | None = UNSET

    @property
    def passes(self) -> Until:
        """What it takes to get past the move, its default included."""
        return "any" if self.until is UNSET else self.until


class CallMove(Move, frozen=True):
    """Calls a tool."""

    call: str
    with_: dict[str, Any] = msgspec.field(name="with", default_factory=dict)
    reply: Reply | None = None


class WorkMove(Move, frozen=True):
    """Does the next items that the script has not attempted, one turn each.

    ``unseen``: those that the request does not show as done.
    """

    work: Count | Literal["rest", "unseen"] | tuple[str, ...]
    parallel: bool = False
    again: bool = False
    ticks: bool = True
    reply: Reply | None = None


class UndoMove(Move, frozen=True):
    """Unsettles items, in one turn."""

    undo: Count | Literal["all"] | tuple[str, ...]


class TickMove(Move, frozen=True):
    """Ticks items off the checklist without doing them; no turn if no checklist is offered."""

    tick: Count | Literal["all"] | tuple[str, ...]


class WaitSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """An item and how often its state is read before it is done."""

    item: str
    polls: Times


class WaitMove(Move, frozen=True):
    """Reads an item's state again and again; then it is done."""

    wait: WaitSpec


class SayMove(Move, frozen=True):
    """Says something and ends the turn."""

    say: str
    claim: Claim = "none"
    channel: Channel = "offered"
    phase: Literal["commentary", "final_answer"] | None = None
    finish: FinishSpec | None = None


class ThinkMove(Move, frozen=True):
    """Only a thinking block."""

    think: str
    claim: Claim = "none"


class EmptyMove(Move, frozen=True):
    """Nothing at all."""

    empty: Literal[True]
    claim: Claim = "none"


class FinishMove(Move, frozen=True):
    """Calls the harness's finish tool, or says the same in words where none is offered."""

    finish: FinishSpec
    channel: Channel = "offered"


class OutputMove(Move, frozen=True):
    """Typed output, valid or not."""

    output: dict[str, Any]
    claim: Claim = "done"
    channel: Channel = "offered"


class PauseSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """The server tool that is in flight, and text before it."""

    name: str = "web_search"
    text: str = ""


class PauseMove(Move, frozen=True):
    """A server tool in flight; the turn is paused."""

    pause: PauseSpec


class CutWork(Struct, frozen=True, forbid_unknown_fields=True):
    """The item whose call is cut off."""

    work: str


class TruncateMove(Move, frozen=True):
    """A turn that is cut off, in text or within a call."""

    truncate: Literal["text", "call"] | CutWork
    limit: Literal["max_tokens", "context_window"] = "max_tokens"
    parses: bool = False
    claim: Claim = "none"


class RefuseSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """The category of a refusal, and text that came before it. ``content_filter`` is OpenAI's own."""

    category: (
        Literal["cyber", "bio", "frontier_llm", "reasoning_extraction", "general_harms", "content_filter"]
        | None
    ) = None
    text: str = ""


class RefuseMove(Move, frozen=True):
    """The model, or a classifier, declines."""

    refuse: RefuseSpec


class BackgroundSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """How often the answer is still in progress."""

    polls: Annotated[int, Meta(ge=1)]


class BackgroundMove(Move, frozen=True):
    """A background response that is not there yet; then the next move."""

    background: BackgroundSpec


class TurnMove(Move, frozen=True):
    """Several moves as one turn."""

    turn: tuple[Any, ...]


class RawSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A foreign turn, block by block."""

    content: tuple[dict[str, Any], ...] = ()
    stop: str | UnsetType | None = UNSET
    extra: dict[str, Any] = {}
    claim: Claim = "none"


class RawMove(Move, frozen=True):
    """A turn written out."""

    raw: RawSpec


class DelegateSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A child agent and what it does."""

    name: str
    do: tuple[Any, ...]


class DelegateMove(Move, frozen=True):
    """A child agent's turns within one call; its claims end only the child."""

    delegate: DelegateSpec


class FaultSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """What the network or the API does instead of answering; exactly one of the four kinds.

    ``window: full`` makes a 400 or 413 one that says that the window is full.
    """

    status: Annotated[int, Meta(ge=400, le=599)] | None = None
    cut: Literal["before_headers", "mid_body", "mid_stream", "no_end", "in_call", "after_call"] | None = None
    body: Literal["malformed", "error_event"] | None = None
    stall_s: Annotated[float, Meta(gt=0, le=3600)] | None = None
    times: Annotated[int, Meta(ge=1)] = 1
    window: Literal["full"] | None = None

    @property
    def label(self) -> str:
        """A short name, the native label of the failed answer."""
        if self.status is not None:
            return f"http_{self.status}{FULL_WINDOW if self.window else ''}"
        return f"cut_{self.cut}" if self.cut else f"body_{self.body}" if self.body else "stall"


class FaultMove(Move, frozen=True):
    """A fault instead of an answer. One that cannot pass comes until its ``until`` is met."""

    fault: FaultSpec

    @property
    def passes(self) -> Until:
        """What it takes to get past the fault: one that cannot pass stays, a full window asks for less."""
        if self.until is not UNSET:
            return self.until
        if self.fault.window is not None:
            return "shortened"
        return "never" if cannot_pass(self.fault.label) else "any"


class UserSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A later user message.

    ``asks`` are items that are part of the task only from then on. ``closes``: what was asked last may still
    be answered, then the user is gone.
    """

    text: str
    when: Literal["ended", "between_turns", "in_tool", "in_turn"] = "ended"
    asks: tuple[str, ...] = ()
    closes: bool = False


class UserMove(Move, frozen=True):
    """Event: the user writes."""

    user: UserSpec


class CompactSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A compaction, and what the model answers when it is asked for a summary.

    ``summary`` is ``faithful`` (made from the request alone), ``empty``, or a text. ``forgets`` are ids that
    it leaves out, ``times`` how many compactions come in a row.
    """

    summary: str = "faithful"
    forgets: tuple[str, ...] = ()
    times: Annotated[int, Meta(ge=1, le=100)] = 1


class CompactMove(Move, frozen=True):
    """Event: the conversation is compacted."""

    compact: Literal[True] | CompactSpec

    @property
    def spec(self) -> CompactSpec:
        """What it says, its defaults included."""
        return self.compact if isinstance(self.compact, CompactSpec) else CompactSpec()


class CrashSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """The moment at which the harness is killed.

    ``before``: of a call neither the effect nor the answer. ``wait_ms`` lies between the moment and the kill.
    ``resumers`` processes go on at once from what it kept; the most in a scenario hold for all its kills.
    """

    at: Literal["tool", "answered", "request", "reply", "waiting", "ended"] = "tool"
    before: bool = False
    wait_ms: Annotated[int, Meta(ge=0, le=60_000)] | None = None
    resumers: Annotated[int, Meta(ge=1, le=8)] = 1

    @property
    def wait(self) -> int:
        """Milliseconds between the moment and the kill, by default long enough to be no race."""
        if self.wait_ms is not None:
            return self.wait_ms
        return 1000 if self.at in ("request", "reply") else 0

    @property
    def race(self) -> bool:
        """Whether what the harness has done by then is left to chance."""
        return self.at in ("request", "reply") and self.wait < 500


class CrashMove(Move, frozen=True):
    """Event: the harness is killed and resumed."""

    crash: Literal[True] | CrashSpec

    @property
    def spec(self) -> CrashSpec:
        """What it says, its defaults included."""
        return self.crash if isinstance(self.crash, CrashSpec) else CrashSpec()


class ApproveSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """What a person decides about the gated calls of the move before.

    ``change`` puts another id into a call's arguments, ``order`` is that of the decisions, ``twice`` sends
    each twice. ``late``: nobody decides while it waits; it has ended for that and is started again.
    """

    allow: tuple[str, ...] | Literal["all"] = ()
    refuse: tuple[str, ...] = ()
    change: dict[str, str] = {}
    order: tuple[str, ...] = ()
    when: Literal["now", "after_restart", "late", "never"] = "now"
    twice: bool = False
    message: str = ""

    @property
    def restarts(self) -> bool:
        """Whether the decision comes only to a program that was started again."""
        return self.when in ("after_restart", "late")


class ApproveMove(Move, frozen=True):
    """Event: gated items are approved, or none."""

    approve: tuple[str, ...] | Literal["none"] | ApproveSpec

    @property
    def spec(self) -> ApproveSpec:
        """What it says, written out."""
        if isinstance(self.approve, ApproveSpec):
            return self.approve
        return ApproveSpec() if self.approve == "none" else ApproveSpec(allow=self.approve)


class RepeatSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """How often, and what."""

    times: Times
    do: tuple[Any, ...]


class RepeatMove(Move, frozen=True):
    """A loop."""

    repeat: RepeatSpec


class Option(Struct, frozen=True, forbid_unknown_fields=True):
    """One option of a choice, with its probability."""

    p: Annotated[float, Meta(ge=0, le=1)]
    do: tuple[Any, ...]


class EitherMove(Move, frozen=True):
    """A seeded choice."""

    either: tuple[Option, ...]


AnyMove: TypeAlias = (
    CallMove
    | WorkMove
    | UndoMove
    | TickMove
    | WaitMove
    | SayMove
    | ThinkMove
    | EmptyMove
    | FinishMove
    | OutputMove
    | PauseMove
    | TruncateMove
    | RefuseMove
    | BackgroundMove
    | TurnMove
    | RawMove
    | DelegateMove
    | FaultMove
    | UserMove
    | CompactMove
    | CrashMove
    | ApproveMove
    | RepeatMove
    | EitherMove
)

#: The field that names each move. ``say`` comes before ``finish``: a ``say`` may carry one.
VERBS: dict[str, type[Move]] = {
    "say": SayMove,
    "call": CallMove,
    "work": WorkMove,
    "undo": UndoMove,
    "tick": TickMove,
    "wait": WaitMove,
    "think": ThinkMove,
    "empty": EmptyMove,
    "finish": FinishMove,
    "output": OutputMove,
    "pause": PauseMove,
    "truncate": TruncateMove,
    "refuse": RefuseMove,
    "background": BackgroundMove,
    "turn": TurnMove,
    "raw": RawMove,
    "delegate": DelegateMove,
    "fault": FaultMove,
    "user": UserMove,
    "compact": CompactMove,
    "crash": CrashMove,
    "approve": ApproveMove,
    "repeat": RepeatMove,
    "either": EitherMove,
}

#: Moves that are events, for harnesses that have the notion.
EVENTS: dict[str, type[Move]] = {verb: VERBS[verb] for verb in ("user", "compact", "crash", "approve")}


def verb_of(move: Move) -> str:
    """The name of a move."""
    for verb, kind in VERBS.items():
        if type(move) is kind:
            return verb
    raise TypeError(f"not a move: {move!r}")
