"""From lives to a population: estimates with their intervals, or why there are none."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from evalkit.fit.counting import WORK, Counted, Counts
from evalkit.scenarios.life import STAGES, Life
from evalkit.scenarios.population import Estimate, Population, Range
from evalkit.stats.intervals import cluster_interval, effective_size, intraclass_correlation

#: Of a parameter's interval.
CONFIDENCE = 0.90
#: Fewer tasks, or fewer events, are too few for a number.
CLUSTERS, EVENTS = 20, 5
#: What was not seen so often is assumed.
SEEN = 20

#: What recordings of a harness that never intervened cannot show.
ASSUMED = {
    "repairs": Range(0.0, 1.0, "that an agent does what is left undone once a harness names it"),
    "silent": Range(0.0, 1.0, "that left-out work had been reported done by its tool: failed silently"),
    "channel": Range(0.0, 1.0, "that an agent claims through the channel that a harness agreed with it"),
}
#: What is assumed as well where labels tell nothing.
FALSE = Range(0.0, 1.0, "that a run that was ended as done had left something undone")


def estimate(counted: Counted) -> Estimate:
    """A parameter from its counts by task."""
    clusters = counted.clusters
    count, base = sum(c for c, _ in clusters), sum(b for _, b in clusters)
    number = len(clusters)
    effective = effective_size(clusters, CONFIDENCE)[0] if number > 1 else 1.0
    facts = Estimate(
        counted.of, count, base, number, round(effective, 3), round(intraclass_correlation(clusters), 4)
    )
    why = _too_few(number, count, base)
    if why:
        return _with(facts, too_few=why)
    spread = cluster_interval(clusters, CONFIDENCE)
    return _with(facts, rate=round(count / base, 4), low=_rounded(spread.low), high=_rounded(spread.high))


def _too_few(tasks: int, count: int, base: int) -> str:
    if tasks < CLUSTERS:
        return f"{tasks} task{'s' * (tasks != 1)}; {CLUSTERS} at least"
    # What always happens has too few of what it is not.
    if count < EVENTS:
        return f"{count} of {base}; {EVENTS} at least"
    return ""


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _with(facts: Estimate, **more: object) -> Estimate:
    return msgspec.structs.replace(facts, **more)


def why_no_truth(lives: Sequence[Life]) -> str:
    """Why labels of these runs say nothing of a population; empty where they do."""
    labelled = [life for life in lives if life.truth]
    if not labelled:
        return "no run has a label"
    right = sum(life.truth == "right" for life in labelled)
    if right in (0, len(labelled)):
        word = "complete" if right else "incomplete"
        return f"all {len(labelled)} labels say {word}: what differs between right and wrong cannot be told"
    tasks = {life.task for life in labelled}
    if len(tasks) < CLUSTERS:
        return f"labels of {len(tasks)} tasks; {CLUSTERS} at least"
    agents = sorted({life.model for life in labelled})
    if len(agents) > 1:
        return f"runs of {len(agents)} agents are mixed ({', '.join(agents[:4])}); fit each by itself"
    return ""


def population_of(name: str, lives: Sequence[Life], source: str, grouped: str) -> Population:
    """The population of lives, its parameters by name; without truth where labels do not carry one."""
    return fitted(name, lives, source, grouped, why_no_truth(lives))


def fitted(
    name: str,
    lives: Sequence[Life],
    source: str = "",
    grouped: str = "",
    refused: str = "",
    spans: tuple[int, int] | None = None,
) -> Population:
    """The same; ``refused`` says why it holds no truth, empty where it does; ``spans`` bound its stages."""
    counts = Counts(lives, spans)
    found = {
        parameter: estimate(counted)
        for parameter, counted in sorted(counts.rates.items())
        if not (refused and counted.of == WORK)
    }
    tasks = {life.task for life in lives}
    return Population(
        population=name,
        source=source,
        recordings=len(lives),
        tasks=len(tasks),
        trials=max(1, round(len(lives) / max(1, len(tasks)))),
        grouped=grouped,
        estimates=found,
        lengths={stage: _histogram(counts, stage) for stage in STAGES if stage in counts.lengths},
        assumed={**ASSUMED, **({"false": FALSE} if refused else {})},
        refused=refused,
        models=sorted({life.model for life in lives if life.model}),
        longest=max((life.turns for life in lives), default=1),
        spans=counts.spans,
        drawn=len(tasks),
    )


def _histogram(counts: Counts, stage: str) -> list[int]:
    lengths = counts.lengths[stage]
    return [lengths[number] for number in range(max(lengths) + 1)]
