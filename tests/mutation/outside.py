"""Random scenarios from outside of the library, for what nobody has noticed: do they notice it?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings

from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.yaml_source import ScenarioError
from tests.mutation.trial import STRATEGIES, Reference
from tests.scenarios.generated import documents

#: So many scenarios are made at once.
BATCH = 500


def _drawn(batch: int) -> list[dict[str, Any]]:
    """The documents of a batch, the same each time; every second has what happens from outside."""
    found: list[dict[str, Any]] = []

    @seed(batch)
    @settings(
        max_examples=BATCH + BATCH // 5,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(documents(events=bool(batch % 2)))
    def draw(document: dict[str, Any]) -> None:
        found.append(document)

    draw()
    return found


def scenarios(number: int, batch: int = 0) -> Iterator[Scenario]:
    """So many random scenarios that load, ``BATCH`` at most, of a batch."""
    for document in _drawn(batch):
        if number <= 0:
            return
        try:
            (scenario,) = load_text(yaml.dump(document, Dumper=yaml.CSafeDumper), "any.yaml")
        except ScenarioError:
            continue
        number -= 1
        yield scenario


def reference(number: int, batch: int = 0) -> Reference:
    """So many random scenarios of a batch, each played by the ideal driver and by one strategy in turn."""
    return Reference(scenarios(number, batch), lambda place: (STRATEGIES[place % len(STRATEGIES)],))
