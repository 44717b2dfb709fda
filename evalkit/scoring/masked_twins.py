"""Masked twins: a scenario without the one call that every correct run needs, so that nobody can finish it.

After Cheng and others, "Do Agents Know What They Can't Do?" (arXiv 2605.28532), who mask the tools that the
successful runs of several systems share. Here the ideal driver is asked: the work is reachable with the call
and stuck without it, whatever channels a harness offers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from evalkit.core.tasks import Offered
from evalkit.scenarios.loader import document_of, load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.yaml_source import write_document
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import ideal_episode
from evalkit.strategies.presets import all_offered

#: The family of masked twins.
FAMILY = "masked"
#: What is about the original's own outcomes, and says nothing of a twin.
_OF_ORIGINAL = ("accept", "expect", "twin")


class Masked(msgspec.Struct, frozen=True):
    """A twin, its document, and which item was taken away."""

    scenario: Scenario
    document: dict[str, Any]
    item: str


class NotMasked(ValueError):
    """A scenario that has no masked twin; one line that says why."""


def masked_twin(scenario: Scenario, offered: Iterable[Offered] = ()) -> Masked:
    """The twin without the last item that a correct run needs. NotMasked where there is none.

    It is proved so by the ideal driver with each set of channels (those of the presets, by default): with the
    item it completes the work, without it it does not, and it is told so by a call that is refused.
    """
    sets = tuple(offered) or all_offered()
    if scenario.random:
        raise NotMasked(f"{scenario.name}: its script is left to chance")
    if scenario.world.masked:
        raise NotMasked(f"{scenario.name}: is masked already")
    if not all(Arena(scenario, channels).reachable_from_start(0) for channels in sets):
        raise NotMasked(f"{scenario.name}: the ideal driver does not complete it")
    document = document_of(scenario)
    for item in _needed(scenario):
        twin = _without(scenario, document, item)
        if all(_stuck(Arena(twin.scenario, channels)) for channels in sets):
            return twin
    raise NotMasked(f"{scenario.name}: no item of it that is called for is needed")


def masked_twins(scenarios: Iterable[Scenario]) -> Iterator[Masked | NotMasked]:
    """The twin of each scenario, or why there is none."""
    for scenario in scenarios:
        try:
            yield masked_twin(scenario)
        except NotMasked as error:
            yield error


def _needed(scenario: Scenario) -> list[str]:
    """The items that have to be done, the last first."""
    world = scenario.world
    spared = {*world.skippable, *world.forbidden, *world.later}
    return [item for item in reversed(world.items) if item not in spared]


def _without(scenario: Scenario, document: dict[str, Any], item: str) -> Masked:
    kept = {name: value for name, value in document.items() if name not in _OF_ORIGINAL}
    said = scenario.summary or scenario.name
    about = {
        "scenario": re.sub(r"[^a-z0-9_.-]+", "-", f"{scenario.name}-masked").replace("--", "-"),
        "family": FAMILY,
        "summary": f"{said} Nobody can do {item}: every call that would is refused.",
        "source": f"masked twin of {scenario.name}",
    }
    made = kept | about | {"world": {**document["world"], "masked": [item]}}
    made = {name: made[name] for name in (*about, *(name for name in made if name not in about))}
    (twin,) = load_text(write_document(made), scenario.place)
    return Masked(twin, made, item)


def _stuck(arena: Arena) -> bool:
    """Whether the ideal driver does not complete it, and the ideal harness meets the wall and gives up."""
    if arena.reachable_from_start(0):
        return False
    episode = ideal_episode(arena, 0)
    return episode.truth == "stuck" and episode.wall_at is not None and episode.ending != "done"
