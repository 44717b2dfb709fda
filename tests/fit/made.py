"""A persona whose habits are known, and recordings that it writes: what a fit is held to."""

from __future__ import annotations

import json
import random
from pathlib import Path

from evalkit.fit.drawn_recordings import record_of
from evalkit.scenarios.life import Life
from evalkit.scenarios.population import Estimate, Population
from evalkit.scenarios.population_draws import Draw

#: What is true of it. A base so large that a draw of its parameters is the parameter.
_LARGE = 10_000_000


def _rate(value: float, correlation: float = 0.0, of: str = "agent") -> Estimate:
    return Estimate(of, round(value * _LARGE), _LARGE, _LARGE, float(_LARGE), correlation)


#: The truth, by parameter: (rate, how much alike runs of one task are).
TRUE: dict[str, tuple[float, float]] = {
    "ends.all.none": (0.5, 0.0),
    "ends.all.partial": (0.1, 0.0),
    "ends.all.blocked": (0.1, 0.0),
    "ends.all.done": (0.3, 0.0),
    "stops.all.none": (0.2, 0.1),
    "stops.all.partial": (0.1, 0.0),
    "stops.all.blocked": (0.3, 0.1),
    "stops.all.done": (0.6, 0.2),
    "hands over.all": (0.05, 0.1),
    "breaks off.all": (0.01, 0.0),
    "answers": (0.9, 0.0),
    "changes.all": (0.4, 0.1),
    "fails": (0.1, 0.1),
    "repeats": (0.0, 0.0),
    "false.all": (0.4, 0.4),
    "cause.all.undone": (0.5, 0.0),
    "cause.all.wrong act": (0.3, 0.0),
    "cause.all.both": (0.2, 0.0),
    "cause.all.words": (0.0, 0.0),
    "right hand-overs": (0.7, 0.3),
}


def persona(tasks: int = 30, trials: int = 4, name: str = "persona") -> Population:
    """The known persona."""
    return Population(
        population=name,
        source="written for tests",
        recordings=tasks * trials,
        tasks=tasks,
        trials=trials,
        grouped="",
        estimates={name: _rate(*value) for name, value in TRUE.items()},
        lengths={"opening": [4, 3, 2, 1]},
        assumed={},
        drawn=tasks,
    )


def lives(tasks: int = 30, trials: int = 4, seed: int = 0) -> list[Life]:
    """Runs of it, with repeated trials."""
    draw = Draw(persona(tasks, trials), seed)
    return [draw.life(task, trial) for task in range(tasks) for trial in range(trials)]


def recordings(folder: Path, tasks: int = 30, trials: int = 4, seed: int = 0) -> Path:
    """The same as a file of recordings."""
    draw = Draw(persona(tasks, trials), seed)
    records = [
        record_of(draw.life(task, trial), str(task), trial)
        for task in range(tasks)
        for trial in range(trials)
    ]
    random.Random(0).shuffle(records)
    file = folder / "recorded.json"
    file.write_text(json.dumps(records), encoding="utf-8")
    return file
