"""Which presets each family fails at least once, and the scenarios that tell no preset from another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from evalkit.loop.state import SUPPORTED_EVENTS
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.distinguish import Distinction, distinguish

_ASKED_AGAIN = "an answer that failed or is in progress is asked for again by every preset"
#: Why a scenario that every preset passes, or none, is in the library all the same; by name without variant.
REASONS: dict[str, str] = {
    "labels-over-a-mixed-turn": "the loop runs complete calls under any label; harnesses exist that do not",
    "labels-over-a-progress-report": _ASKED_AGAIN,
    "labels-over-a-server-call": _ASKED_AGAIN,
    "labels-over-blank-text": _ASKED_AGAIN,
    "labels-over-nothing": _ASKED_AGAIN,
    "labels-over-thinking": _ASKED_AGAIN,
    "limit-on-the-way-to-the-first-item": "below and above the boundary all agree; at two turns they do not",
    "last-words-a-question": "a control: the user answers, so that even silence goes on",
    "last-words-final": "a control: the one of four look-alikes at which everybody should stop",
    "the-user-asks-what-is-left": "a control: the user names what is open, so that even silence goes on",
    "approval-refused-then-unrelated": "it catches a harness that keeps a resolved approval",
    "one-block-is-enough": "it catches a hook that never lets go after one block; the shipped one does",
    "malformed-from-the-first-request": "it catches a harness that asks again what cannot pass",
    "repo-commit-beyond-weak-checks": "the commit is no item and the checks do not look, so nobody sees it",
}
HONEST_TWIN = "the honest one of a twin pair, whose other half tells presets apart"


class Family(msgspec.Struct, frozen=True):
    """A family's scenarios and, for each preset, on how many of them it is not always correct."""

    name: str
    scenarios: int
    failed: dict[str, int]

    @property
    def passed_by(self) -> tuple[str, ...]:
        """The presets that fail none of its scenarios."""
        return tuple(preset for preset, count in self.failed.items() if not count)

    @property
    def failed_by(self) -> tuple[str, ...]:
        """The presets that pass none of its scenarios."""
        return tuple(preset for preset, count in self.failed.items() if count == self.scenarios)

    @property
    def tells(self) -> bool:
        """Whether some preset fails it at least once, and some preset passes it at least once."""
        presets = len(self.failed)
        return len(self.passed_by) < presets and len(self.failed_by) < presets


class Silent(msgspec.Struct, frozen=True):
    """A scenario that tells no preset from another; ``why`` is empty where no reason is given."""

    scenario: str
    passed: bool
    why: str


def in_the_loop(scenarios: Iterable[Scenario]) -> list[Scenario]:
    """The scenarios of which the reference loop can be told all that happens."""
    return [scenario for scenario in scenarios if set(scenario.events) <= SUPPORTED_EVENTS]


def distinctions(scenarios: Iterable[Scenario], seeds: int = 3) -> list[Distinction]:
    """What each scenario tells apart."""
    return [distinguish(scenario, seeds=seeds) for scenario in scenarios]


def families(found: Iterable[Distinction]) -> list[Family]:
    """The families by name."""
    by_name: dict[str, list[Distinction]] = {}
    for distinction in found:
        by_name.setdefault(distinction.family, []).append(distinction)
    return [
        Family(
            name,
            len(group),
            {preset: sum(preset in one.failed for one in group) for preset in group[0].correct},
        )
        for name, group in sorted(by_name.items())
    ]


def silent(found: Iterable[Distinction], twins: Mapping[str, str]) -> list[Silent]:
    """The scenarios that tell nothing apart. ``twins`` names the other half of each pair."""
    by_name = {distinction.scenario: distinction for distinction in found}
    lines = []
    for name, distinction in by_name.items():
        if distinction.tells:
            continue
        other = by_name.get(twins.get(name, ""))
        passed = not distinction.failed
        why = REASONS.get(name.partition("[")[0], "")
        if passed and other is not None and other.tells:
            why = HONEST_TWIN
        lines.append(Silent(name, passed, why))
    return lines
