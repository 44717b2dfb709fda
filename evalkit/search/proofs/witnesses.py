"""What an exploration reached, so that a proof can be seen to be one over a model that can do something."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from evalkit.core.channels import protocol_state
from evalkit.core.decisions import Action, End, Reissue, Reject, Resend, Send
from evalkit.core.turns import Turn
from evalkit.loop.state import Loop
from evalkit.search.properties import stretch_caps

#: A run that does all of the work and ends done.
COMPLETE = "done/complete"

#: The native names with which a cap ends a run, by the kind of turn whose answers it counts.
_NATIVES = {"pause": "resends", "cut_off": "cut_offs", "overflow": "overflow", "refusal": "refusal:"}


class Witnesses(msgspec.Struct, frozen=True):
    """What was reached of what a strategy can do, and what was not.

    ``never`` are moves that were not delivered in any state.
    """

    reached: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    @property
    def count(self) -> str:
        """How many of how many."""
        return f"{len(self.reached)}/{len(self.reached) + len(self.missing)}"


def turn_and_action(turn: Turn, action: Action) -> str:
    """What a loop made of a turn, in words: the kind of turn and the answer to it."""
    kind = protocol_state(turn)
    if kind == "content":
        kind = "calls" if turn.calls else "text" if turn.text.strip() else "empty"
    match action:
        case End(ending):
            answer = f"ended {ending.kind} ({ending.native})"
        case Resend():
            answer = "sent back"
        case Reissue(why):
            answer = f"asked again ({why})"
        case Reject():
            answer = "finish rejected"
        case Send(None):
            answer = "went on"
        case _:
            answer = "nudged"
    return f"{kind}: {answer}"


def witnesses(loop: Loop, told: Iterable[str], never: tuple[str, ...]) -> Witnesses:
    """What was reached of each ending, cap and policy that a loop has, by what :func:`told` said of it."""
    seen = tuple(told)
    wanted = {COMPLETE: COMPLETE in seen}

    def ended(*natives: str) -> bool:
        return any(f"({native}" in text for text in seen for native in natives)

    strategy, limits = loop.strategy, loop.limits
    if strategy.nudges is not None or strategy.nudge_budget is not None:
        wanted["cap on nudges"] = ended("nudges)")
    for kind in stretch_caps(loop):
        wanted[f"cap on {kind}"] = ended(_NATIVES[kind])
    if limits.turns is not None or limits.tokens is not None or limits.usd is not None:
        wanted["limit"] = ended("max_")
    if strategy.loop_guard:
        wanted["loop guard"] = ended("loop guard)")
    for kind in ("pause", "cut_off", "overflow", "refusal", "unknown", "empty"):
        answers = [text for text in seen if text.startswith(f"{kind}: ") and "(max_" not in text]
        wanted[f"{kind} {getattr(strategy, kind)}"] = bool(answers)
    return Witnesses(
        tuple(name for name, found in wanted.items() if found),
        tuple(name for name, found in wanted.items() if not found),
        never,
    )
