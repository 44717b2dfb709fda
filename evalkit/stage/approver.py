"""The person who decides about gated calls, for a harness that asks before it runs them.

The script says what the person decides about the calls of a move. Each decision is for one call: it is kept
with the arguments that were decided on, and what runs is held against it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from evalkit.core.requests import Result
from evalkit.core.tasks import Task
from evalkit.core.trace import Trace
from evalkit.core.turns import Call, Turn, parse_arguments
from evalkit.scenarios.moves import ApproveSpec
from evalkit.stage.person import Decided, Kind, asks_in_its_place, decide, gated_item
from evalkit.worlds import World


class Decision(msgspec.Struct, frozen=True):
    """What a person decided about one call; ``arguments`` are those to run it with."""

    id: str
    decision: Kind
    arguments: dict[str, Any] = {}
    reason: str = ""


class ApprovalStage(Protocol):
    """Where the person decides: a scripted stage."""

    world: World
    task: Task
    trace: Trace | None
    ran: dict[str, Result]
    turns: int

    def waits(self) -> None: ...
    @property
    def last_turn(self) -> Turn | None: ...
    @property
    def decides(self) -> ApproveSpec | None: ...


class _Held:
    """A decision, the model's call that it is about, and how often what was decided has run."""

    def __init__(self, decision: Decision, call: Call, item: str, turn: int) -> None:
        self.decision = decision
        #: The turn that it is a call of: the next one's may have its very id.
        self.turn = turn
        self.call = call
        self.item = item
        self.ran = 0


class Approver:
    """The person. ``together``: the harness takes the decisions about a turn only all at once."""

    def __init__(self, stage: ApprovalStage, *, together: bool = False) -> None:
        self._stage = stage
        self._together = together
        self._held: list[_Held] = []
        #: Whether the person was asked what the script has an answer to, or a gated call ran unasked.
        self.exercised = False

    def asked(self, calls: Sequence[Any], *, resumed: bool) -> list[Decision]:
        """The decisions about calls that are laid before the person, in the person's order.

        ``calls`` are objects with ``id``, ``tool`` and ``arguments``; what is no such object is passed over.
        One that needs no decision is allowed. Nothing comes for calls that nobody decides about, or not yet.
        Crashed where the script kills whoever waits.
        """
        found: list[tuple[str, Decision]] = []
        waits = False
        asked = [
            (told, self._call_of(told))
            for told in calls
            if isinstance(told, Mapping) and isinstance(told.get("arguments"), Mapping)
        ]
        if any(self._is_open(call) for _, call in asked):
            # Who is killed as it waits has asked, whether it asks again or not.
            self.exercised = self.exercised or self._stage.decides is not None
            self._stage.waits()
        for told, call in asked:
            decision = self._decide(call, resumed=resumed)
            waits = waits or decision is None
            if decision is not None:
                item = self._gated(call.tool, parse_arguments(call.arguments)) or ""
                found.append((item, msgspec.structs.replace(decision, id=str(told.get("id") or call.id))))
        if waits and self._together:
            return []
        spec = self._stage.decides or ApproveSpec()
        order = {name: place for place, name in enumerate(spec.order)}
        found.sort(key=lambda pair: order.get(pair[0], len(order)))
        decisions = [decision for _, decision in found]
        return [*decisions, *decisions] if spec.twice else decisions

    def runs(self, tool: str, arguments: str) -> Call | None:
        """Hold a call against its decision; the model's call in whose place it runs, where it was changed."""
        values = parse_arguments(arguments)
        item = self._gated(tool, values)
        changed = self._find("change", tool, values)
        if item is None and (changed is None or self._own(tool, values)):
            return None
        self.exercised = True
        allowed = changed or self._find("allow", tool, values)
        if allowed is None:
            kinds = [h.decision.decision for h in self._held if h.item == item]
            why = "against its decision" if kinds else "without a decision"
            self._note(f"{tool} {item} ran {why}")
            return None
        allowed.ran += 1
        if allowed.ran > 1:
            self._note(f"{tool} {allowed.item} ran again on one decision")
        if changed is None:
            return None
        if allowed.ran == 1:
            asks_in_its_place(self._stage.trace, self._stage.task.tools.get(tool), values)
        return changed.call

    def _own(self, tool: str, values: Mapping[str, Any] | None) -> bool:
        """Whether the model itself asked for a call that has not run yet."""
        turn, ran = self._stage.last_turn, self._stage.ran
        calls = turn.calls if turn is not None else ()
        return any(
            call.tool == tool and parse_arguments(call.arguments) == values and call.id not in ran
            for call in calls
        )

    @property
    def decided(self) -> int:
        """About how many calls the person has decided."""
        return len(self._held)

    def close(self) -> None:
        """The run is over: what was allowed and never ran."""
        trace = self._stage.trace
        for held in self._held:
            if trace is not None and held.decision.decision != "refuse" and not held.ran:
                trace.unasked_calls += 1
                trace.found("unasked_calls", f"{held.call.tool} {held.item}")

    def _note(self, thing: str) -> None:
        trace = self._stage.trace
        if trace is not None:
            trace.unapproved_calls += 1
            trace.found("unapproved_calls", thing)

    def _call_of(self, told: Mapping[str, Any]) -> Call:
        """The model's call that a harness asks about: by its id, else by tool and arguments in turn order."""
        turn = self._stage.last_turn
        calls = turn.calls if turn is not None else ()
        arguments = dict(told["arguments"])
        known = [c for c in calls if c.tool == told.get("tool") and parse_arguments(c.arguments) == arguments]
        open_ones = [c for c in known if self._about(c) is None]
        if known:
            return (open_ones or known)[0]
        return Call(str(told.get("id") or ""), str(told.get("tool")), json.dumps(arguments))

    def _is_open(self, call: Call) -> bool:
        """Whether a call needs a decision, and has none."""
        gated = self._gated(call.tool, parse_arguments(call.arguments))
        return gated is not None and self._about(call) is None

    def _decide(self, call: Call, *, resumed: bool) -> Decision | None:
        values = parse_arguments(call.arguments) or {}
        item = self._gated(call.tool, values)
        if item is None:
            return Decision(call.id, "allow", dict(values))
        before = self._about(call)
        if before is not None:
            return before.decision
        spec = self._stage.decides
        self.exercised = self.exercised or spec is not None
        if spec is None or spec.when == "never" or (spec.restarts and not resumed):
            return None
        decided = decide(spec, self._stage.world, self._stage.task.tools[call.tool], item, values)
        if decided is None:
            # A program that asks is answered: what nobody speaks for is refused.
            decided = Decided("refuse", dict(values))
        message = spec.message or ("refused" if decided.kind == "refuse" else "")
        decision = Decision(call.id, decided.kind, decided.arguments, message)
        self._held.append(_Held(decision, call, item, self._stage.turns))
        return decision

    def _gated(self, tool: str, values: Mapping[str, Any] | None) -> str | None:
        return gated_item(self._stage.world, self._stage.task.tools.get(tool), values)

    def _about(self, call: Call) -> _Held | None:
        """The decision about a call of the last turn."""
        turn = self._stage.turns
        return next((held for held in self._held if held.turn == turn and held.call == call), None)

    def _find(self, kind: str, tool: str, values: Mapping[str, Any] | None) -> _Held | None:
        """The decision that a run stands on: the newest that fits and has not been used, else the newest."""
        found = [
            held
            for held in reversed(self._held)
            if held.decision.decision == kind and held.call.tool == tool and held.decision.arguments == values
        ]
        return next((held for held in found if not held.ran), found[0] if found else None)
