"""Taking items that are alike for one another loses no state and no answer."""

from __future__ import annotations

import pytest

from evalkit.core.turns import Turn
from evalkit.search.proofs.alphabet import alphabet, is_closed
from evalkit.search.proofs.counterexample import Confirmer, watch_of
from evalkit.search.proofs.environment import Environment, Setting
from evalkit.search.proofs.explore import Sweep
from evalkit.search.proofs.monitor import StretchWatch
from evalkit.search.proofs.steps import KEEPS, Stepper
from evalkit.search.proofs.symmetry import is_symmetric, permute
from evalkit.search.properties import PROPERTIES
from evalkit.strategies import Strategy
from evalkit.strategies import conditions as c
from evalkit.strategies.presets import PRESETS

#: Enough of the alphabet to change every part of a state.
KINDS = {
    "lists the items",
    "says something",
    "claims done in words",
    "does ITEM",
    "does ITEM wrongly, success reported",
    "fails to do ITEM",
    "undoes ITEM",
    "ticks ITEM",
    "skips ITEM in words",
    "finishes with everything",
    "finish, excuse",
}


#: Enough of it to tell items apart, in a world of three.
FEW = {"lists the items", "claims done in words", "does ITEM", "ticks ITEM", "finish without"}


def swept(strategy: Strategy, setting: Setting, needs: str, kinds: set[str], *, merge: bool) -> Sweep:
    moves = tuple(move for move in alphabet(strategy, setting.items) if {move.kind, move.name} & kinds)
    environment = Environment(strategy, setting, moves)
    stepper = Stepper(environment, keep=KEEPS[needs])  # type: ignore[index]
    wanted = tuple(found for found in PROPERTIES.values() if found.needs == needs)
    sweep = Sweep(
        environment,
        stepper,
        watch_of(needs, stepper.loop),
        wanted,
        undo=needs != "nudges",
        merge_items=merge,
        confirm=Confirmer(environment),
    )
    sweep.run()
    return sweep


@pytest.mark.long
@pytest.mark.parametrize("name", ["checklist", "validated_finish", "acceptance", "stop_hook", "unattended"])
@pytest.mark.parametrize(
    "setting", [Setting(3, "full"), Setting(3, "weak"), Setting(3, "none", 1)], ids=lambda s: s.checks
)
def test_answers_are_the_same(name: str, setting: Setting) -> None:
    strategy = PRESETS[name].strategy
    merged = swept(strategy, setting, "safety", FEW, merge=True)
    single = swept(strategy, setting, "safety", FEW, merge=False)
    assert merged.swept.found == single.swept.found
    assert merged.swept.doubted == single.swept.doubted


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "needs"), [("gate", "safety"), ("gate", "reports"), ("gate", "nudges"), ("stop_hook", "safety")]
)
def test_states_are_the_same(name: str, needs: str) -> None:
    # Nothing is refuted on the way to the last state, so that both go there.
    strategy = PRESETS[name].strategy.but(done_when=PRESETS[name].strategy.done_when & c.acceptance())
    kinds = KINDS if needs != "safety" or name == "gate" else KINDS - {"undoes ITEM", "skips ITEM in words"}
    merged = swept(strategy, Setting(2, "full"), needs, kinds, merge=True)
    single = swept(strategy, Setting(2, "full"), needs, kinds, merge=False)
    assert merged.swept.complete
    assert single.swept.complete
    single.packing.orbits = merged.packing.orbits

    def readable(sweep: Sweep) -> set[object]:
        found = set()
        for key in sweep.keys:
            loop, memory, world = sweep.packing.unpack(sweep.packing.canonical(key))
            found.add((sweep.stepper.states.states[loop], memory, world))
        return found

    assert len(merged.keys) == len(readable(merged)) == len(readable(single)) < len(single.keys)
    assert readable(merged) == readable(single)


class _Everywhere(StretchWatch):
    """Tries every turn at every place of a stretch."""

    def expands(self, memory: int, turn: Turn) -> bool:
        return True


@pytest.mark.long
@pytest.mark.parametrize("name", ["gate", "stop_hook", "verifier_transcript"])
def test_a_stretch_is_left_from_where_it_began(name: str) -> None:
    strategy = PRESETS[name].strategy.but(resends=3, cut_offs=2, refusal="retry")
    reached = []
    for kind in (StretchWatch, _Everywhere):
        environment = Environment(strategy, Setting(1))
        stepper = Stepper(environment, keep=KEEPS["stretches"])
        wanted = (PROPERTIES["capped_repeats"],)
        sweep = Sweep(environment, stepper, kind(stepper.loop), wanted)
        assert sweep.run().complete
        assert not sweep.swept.found
        unpacked = map(sweep.packing.unpack, sweep.keys)
        reached.append({(stepper.states.states[loop], memory, world) for loop, memory, world in unpacked})
    assert reached[0] == reached[1]


def test_what_may_not_be_merged() -> None:
    gate = PRESETS["gate"].strategy
    assert is_symmetric(gate)
    assert not is_symmetric(gate.but(done_when=c.when(lambda view: view.items("known") == 1, finite=True)))
    assert not is_symmetric(Strategy(done_when=~c.checklist(), loop_guard=True))
    every = alphabet(gate, 2)
    assert is_closed(every, 2)
    assert not is_closed(tuple(move for move in every if move.name != "does beta"), 2)


def test_items_that_the_world_tells_apart() -> None:
    def orbits(setting: Setting) -> tuple[tuple[int, ...], ...]:
        strategy = PRESETS["gate"].strategy
        environment = Environment(strategy, setting)
        return Sweep(
            environment, Stepper(environment), watch_of("safety", Stepper(environment).loop), ()
        ).packing.orbits

    assert orbits(Setting(4, "full")) == ((0, 1, 2, 3),)
    assert orbits(Setting(4, "weak")) == ((0, 1), (2, 3))
    assert orbits(Setting(4, "full", 1)) == ((0, 1, 2),)
    assert orbits(Setting(4, "weak", 1)) == ((0, 1),)


def test_permute() -> None:
    assert permute(0b001, (2, 0, 1)) == 0b010
    assert permute(0b110, (0, 1, 2)) == 0b110
