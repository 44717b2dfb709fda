"""What is asked of a strategy: properties that must hold whatever the model does."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from evalkit.core.names import among
from evalkit.loop.state import Loop
from evalkit.strategies.strategy import REFUSALS_IN_A_ROW

#: Which memory a property needs; properties that need the same are looked at in one sweep.
Needs = Literal["safety", "reports", "nudges", "stretches"]


class Property(msgspec.Struct, frozen=True):
    """One property: its name, what it says, and what has to be remembered to judge it. ``bit`` marks it."""

    name: str
    says: str
    needs: Needs
    bit: int


FALSE_DONE, EARLY, CUT_OFF, DUPLICATE, RULES, ENDLESS = 1, 2, 4, 8, 16, 32
DISHONEST, INEXACT, NUDGES, STRETCHES = 64, 128, 256, 512

PROPERTIES: dict[str, Property] = {
    found.name: found
    for found in (
        Property("no_false_done", "it never ends done while the oracle is false", "safety", FALSE_DONE),
        Property(
            "no_early_stop",
            "while the oracle is false and no blocker was stated, it ends only by a limit or an escalation",
            "safety",
            EARLY,
        ),
        Property("always_ends", "every run ends", "safety", ENDLESS),
        Property("capped_nudges", "never more fruitless nudges than its own cap", "nudges", NUDGES),
        Property(
            "capped_repeats",
            "never more resends, re-issues or retries in a row than its own caps",
            "stretches",
            STRETCHES,
        ),
        Property("no_cut_off_call", "it never runs a call that was cut off", "safety", CUT_OFF),
        Property(
            "no_duplicate_effects",
            "no action has more effects than the model made complete calls for it",
            "safety",
            DUPLICATE,
        ),
        Property("honest_report", "its ending report leaves no open item out", "reports", DISHONEST),
        Property("exact_report", "its ending report names the open items and no other", "reports", INEXACT),
        Property("clean_requests", "every request obeys the neutral request rules", "safety", RULES),
    )
}


def find_properties(
    names: tuple[str, ...], more: Mapping[str, Property] = MappingProxyType({})
) -> tuple[Property, ...]:
    """Properties by name, all without names. ValueError names an unknown one and what there is."""
    known = {**PROPERTIES, **more}
    for name in names:
        if name not in known:
            raise ValueError(f"unknown property {name!r}{among(name, known)}")
    return tuple(known[name] for name in dict.fromkeys(names or known))


def not_applicable(found: Property, loop: Loop) -> str:
    """Why a property says nothing of a strategy; empty where it does."""
    strategy = loop.strategy
    if found.name == "capped_nudges" and strategy.nudges is None and strategy.nudge_budget is None:
        return "it has no cap on nudges"
    if found.name == "capped_repeats" and not stretch_caps(loop):
        return "it repeats nothing, or has no cap on it"
    return ""


def stretch_caps(loop: Loop) -> dict[str, int]:
    """How many answers in a row a strategy allows itself, by the kind of turn that it answers."""
    strategy = loop.strategy
    caps: dict[str, int] = {}
    if strategy.pause == "resend" and strategy.resends is not None:
        caps["pause"] = strategy.resends
    if strategy.cut_off not in ("as_content", "stop") and strategy.cut_offs is not None:
        caps["cut_off"] = strategy.cut_offs
    if strategy.overflow == "compact":
        caps["overflow"] = 1
    elif strategy.overflow == "raise_limit" and strategy.cut_offs is not None:
        caps["overflow"] = strategy.cut_offs
    if strategy.refusal not in ("as_content", "stop"):
        caps["refusal"] = {"fallback": 1, "retry": REFUSALS_IN_A_ROW}.get(strategy.refusal, 0)
    return caps


def has_limit(loop: Loop) -> bool:
    """Whether a turn, token or money limit binds; each grows with every turn."""
    limits = loop.limits
    return limits.turns is not None or limits.tokens is not None or limits.usd is not None
