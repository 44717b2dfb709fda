"""Random scenarios from outside of the library, for what nobody has noticed: do they notice it?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count
from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings

from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.yaml_source import ScenarioError
from tests.mutation.trial import STRATEGIES, Reference
from tests.scenarios.generated import documents

#: So many scenarios are made at once, from so many documents at a time until there are enough.
BATCH = 500
DRAWN = 200


def _drawn(batch: int, part: int) -> list[dict[str, Any]]:
    """Some documents of a batch, the same each time; every second batch has what happens from outside."""
    found: list[dict[str, Any]] = []

    @seed(f"{batch} {part}")
    @settings(
        max_examples=DRAWN,
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
    """So many random scenarios of a batch, no two alike. Of what is drawn some are, and some do not load."""
    seen: set[str] = set()
    drawn = chain.from_iterable(_drawn(batch, part) for part in count())
    while len(seen) < number:
        text = yaml.dump(next(drawn), Dumper=yaml.CSafeDumper)
        if text in seen:
            continue
        try:
            (scenario,) = load_text(text, "any.yaml")
        except ScenarioError:
            continue
        seen.add(text)
        yield scenario


def reference(number: int, batch: int = 0) -> Reference:
    """So many random scenarios of a batch, each played by the ideal driver and by one strategy in turn."""
    return Reference(scenarios(number, batch), lambda place: (STRATEGIES[place % len(STRATEGIES)],))
