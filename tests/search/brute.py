"""Every script of a few moves, really played: what it breaks is read off the run, not off the exploration.

With :mod:`evalkit.search.proofs.explore` it shares only what is explored: scenarios, stage and loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from evalkit.drivers.in_process import LoopMind, drive
from evalkit.scoring.arena import Arena
from evalkit.search.proofs.alphabet import Move, item_names, scripted
from evalkit.search.proofs.environment import Setting, read_document
from evalkit.search.proofs.prove import Result, prove
from evalkit.stage.stage import NeverEnds
from evalkit.strategies import Strategy

#: Judged on an episode that is over; the shortest turn count must agree.
AT_END = ("no_false_done", "no_early_stop", "honest_report", "exact_report")
ON_THE_WAY = ("no_cut_off_call", "no_duplicate_effects", "clean_requests")
CHECKED = (*AT_END, *ON_THE_WAY)
#: So many things happen from outside in one script.
EVENTS = 2


def scripts(moves: tuple[Move, ...], turns: int) -> Iterator[tuple[Move, ...]]:
    """Every script of so many turns, with up to ``EVENTS`` events between them."""
    events = [move for move in moves if move.happens]
    of_model = [move for move in moves if not move.happens]
    for script in itertools.product(of_model, repeat=turns):
        yield script
        for count in range(1, EVENTS + 1 if events else 1):
            for places in itertools.combinations_with_replacement(range(turns + 1), count):
                for chosen in itertools.product(events, repeat=count):
                    mixed = list(script)
                    for place, event in sorted(zip(places, chosen, strict=True), key=lambda p: -p[0]):
                        mixed.insert(place, event)
                    yield tuple(mixed)


def brute_force(
    strategy: Strategy, setting: Setting, moves: tuple[Move, ...], turns: int
) -> tuple[dict[str, int], int]:
    """The fewest turns in which any script breaks each property, and how many runs it took.

    Every run has to be over after ``turns`` turns.
    """
    broken: dict[str, int] = {}
    runs = 0

    def note(name: str, turns: int) -> None:
        broken[name] = min(turns, broken.get(name, turns))

    over: set[tuple[str, ...]] = set()
    plain = not any(move.happens for move in moves)
    for script in scripts(moves, turns):
        names = tuple(move.name for move in script)
        if plain and any(names[:length] in over for length in range(1, turns)):
            continue
        runs += 1
        document = setting.document(strategy, scripted(script, item_names(setting.items), setting.gated))
        scenario = read_document(document)
        stage = Arena(scenario, strategy.offers).stage(0, cap=turns)
        try:
            ending = drive(LoopMind(strategy, stage.task, stage), stage)
        except NeverEnds:
            raise AssertionError("a run is longer than the limit") from None
        took, trace, world = stage.turns, stage.trace, stage.world
        assert trace is not None
        if plain:
            over.add(names[:took])
        stage.settle()
        made = [move for move in script if not move.happens][:took]
        said = any(move.blocks for move in made)
        unsettled = world.all & ~world.settled()
        outstanding = ending.report.outstanding
        reported = None if outstanding is None else stage.task.items_of(outstanding)
        if unsettled and ending.kind == "done":
            note("no_false_done", took)
        if unsettled and ending.kind in ("done", "partial", "error") and not said:
            note("no_early_stop", took)
        if reported is not None and unsettled & ~reported:
            note("honest_report", took)
        if reported is not None and reported != unsettled:
            note("exact_report", took)
        if trace.ran_cut_off_call:
            note("no_cut_off_call", took)
        if any(count > trace.called.get(action, 0) for action, count in world.effects.items()):
            note("no_duplicate_effects", took)
        if trace.protocol_faults:
            note("clean_requests", took)
    return broken, runs


def compare(
    strategy: Strategy, setting: Setting, moves: tuple[Move, ...], turns: int
) -> tuple[list[tuple[Result, int | None]], int]:
    """For each property what the exploration and the brute force say; and how many scripts were run."""
    really, runs = brute_force(strategy, setting, moves, turns)
    results = prove(strategy, setting, CHECKED, moves=moves).results
    return [(result, really.get(result.property)) for result in results], runs


def agrees(result: Result, really: int | None) -> bool:
    """Whether an answer is what the brute force found, the fewest turns included where the end is judged."""
    if result.answer not in ("proved", "refuted", "not_applicable"):
        return False
    if (result.answer == "refuted") != (really is not None):
        return False
    found = result.counterexample
    return found is None or result.property not in AT_END or found.turns == really
