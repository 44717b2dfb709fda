"""The rules of the gate, from ``pyproject.toml`` or a file of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from evalkit.core.names import did_you_mean
from evalkit.core.toml import toml_of
from evalkit.core.validation import refusal
from evalkit.scoring.episode_fields import FLAGS, RATES
from evalkit.stats.scenario_results import COUNTED

LEVELS = ("full", "weak", "none")
#: What may have a limit: the rates, and the share of episodes in which a flag is set.
LIMITED = (*RATES, *FLAGS)

#: Where rules are looked for, if no file is named; the first that is there.
PLACES = ("evalkit.toml", "pyproject.toml")

Allow = Literal["allow", "refuse"]


class RulesError(ValueError):
    """Rules that cannot be used; one line that names file and field."""


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the gate lets pass.

    ``strategies``: the contenders that are held to it; empty: all of the baseline.
    ``limits``: by rate or flag a number, or numbers by ``all``, a family or a level of checks; a minimum for
    ``correct`` and ``honest_report``, a maximum for the others; of a flag, the share of episodes with it.
    ``pass_share``: a scenario passes if at least this share of its episodes is correct.
    ``allowed_flips``: how many scenarios may go from pass to fail. One that fails always is none of them.
    ``alpha``, ``allowed_drop``: a fall of ``correct`` or a rise of a fault is a regression if the exact
    sign-flip test finds it at this level (Holm over what is tested) and it is larger than allowed.
    ``new_faults``: what is a regression where it occurs in a scenario in which it did not before, also in
    one that failed before in another way.
    ``known_failures``: scenarios that may fail always.
    """

    strategies: tuple[str, ...] = ()
    limits: dict[str, float | dict[str, float]] = {}
    pass_share: float = 1.0
    allowed_flips: int = 0
    alpha: float = 0.05
    allowed_drop: float = 0.0
    new_scenarios: Allow = "allow"
    missing_scenarios: Allow = "refuse"
    changed_scenarios: Allow = "allow"
    min_scenarios: int = 1
    new_faults: tuple[str, ...] = ("false_done", "duplicate_effects")
    known_failures: tuple[str, ...] = ()

    def bounds(self) -> list[tuple[str, str, float]]:
        """(rate, scope, limit) for each limit; the scope is ``all``, a family or a level of checks."""
        found = []
        for rate, value in self.limits.items():
            scopes = value if isinstance(value, dict) else {"all": value}
            found += [(rate, scope, limit) for scope, limit in scopes.items()]
        return found


def read_rules(file: Path | None) -> Rules:
    """The rules of a file: ``[tool.evalkit.gate]``, ``[gate]``, or the fields at the top.

    Without a file those of ``evalkit.toml`` or ``pyproject.toml``; without these, the defaults. RulesError
    for what cannot be used.
    """
    place = file or next((found for found in map(Path, PLACES) if found.is_file()), None)
    if place is None:
        return Rules()
    try:
        content = toml_of(place.read_bytes())
    except OSError as error:
        raise RulesError(f"{place}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise RulesError(f"{place}: not TOML: {error}") from None
    section: Any = content
    for name in ("tool", "evalkit", "gate"):
        section = section.get(name) if isinstance(section, dict) else None
    if section is None:
        section = content.get("gate")
    if section is None:
        section = {} if place.name == "pyproject.toml" else content
    try:
        rules = msgspec.convert(section, Rules)
    except msgspec.ValidationError as error:
        raise RulesError(f"{place}: gate: {refusal(error, Rules)}") from None
    _check(rules, place)
    return rules


def _check(rules: Rules, place: Path) -> None:
    for rate, scope, limit in rules.bounds():
        if rate not in LIMITED:
            guess = did_you_mean(rate, LIMITED)
            allowed = ", ".join(LIMITED)
            raise RulesError(f"{place}: gate: limits.{rate}: unknown rate{guess}; allowed: {allowed}")
        if not 0 <= limit <= 1:
            raise RulesError(f"{place}: gate: limits.{rate}.{scope}: a rate from 0 to 1, got {limit:g}")
    for name, low in (("pass_share", 0.0), ("alpha", 0.0), ("allowed_drop", 0.0)):
        value = getattr(rules, name)
        if not low <= value <= 1:
            raise RulesError(f"{place}: gate: {name}: a number from 0 to 1, got {value:g}")
    for fault in rules.new_faults:
        if fault not in COUNTED:
            guess, allowed = did_you_mean(fault, COUNTED), ", ".join(COUNTED)
            raise RulesError(f"{place}: gate: new_faults: unknown {fault!r}{guess}; allowed: {allowed}")
    for name in ("allowed_flips", "min_scenarios"):
        if getattr(rules, name) < 0:
            raise RulesError(f"{place}: gate: {name}: 0 or more, got {getattr(rules, name)}")
