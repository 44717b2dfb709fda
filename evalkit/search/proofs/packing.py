"""States of an exploration as ints, and which of them stand for which."""

from __future__ import annotations

from itertools import pairwise

from evalkit.search.proofs.alphabet import is_closed
from evalkit.search.proofs.environment import Environment
from evalkit.search.proofs.monitor import Watch
from evalkit.search.proofs.symmetry import LoopStates, is_symmetric, permute, reads_artifact

#: So many answers on which state stands for another are kept; then they are worked out again.
KEPT = 1_000_000


class Packing:
    """Packs (loop state, watch, world) into an int, the world in its lowest ``shift`` bits.

    Where strategy, world and moves treat items alike (and ``merge``), states that differ by the items' names
    alone have one state that stands for them. ``places`` are the moves to try at all.
    """

    def __init__(
        self,
        environment: Environment,
        states: LoopStates,
        watch: Watch,
        places: tuple[int, ...],
        *,
        merge: bool,
    ) -> None:
        self._environment = environment
        self._states = states
        self._watch = watch
        self._places = places
        self.shift = environment.width
        self.low = (1 << self.shift) - 1
        if not reads_artifact(environment.strategy):
            self.low >>= 1
        alike = (
            merge and is_symmetric(environment.strategy) and is_closed(environment.moves, environment.items)
        )
        self.orbits = self._alike() if alike else ()
        self._canonical: dict[int, int] = {}

    def _alike(self) -> tuple[tuple[int, ...], ...]:
        """Groups of items that world and checks treat alike."""
        environment = self._environment
        weak = environment.weak if environment.setting.checks == "weak" else 0
        groups: dict[tuple[bool, bool], list[int]] = {}
        for place in range(environment.items):
            bit = 1 << place
            groups.setdefault((bool(environment.skippable & bit), bool(weak & bit)), []).append(place)
        return tuple(tuple(group) for group in groups.values() if len(group) > 1)

    def pack(self, loop: int, memory: int, world: int) -> int:
        """A state as an int."""
        return (loop * self._watch.size + memory) << self.shift | world & self.low

    def unpack(self, key: int) -> tuple[int, int, int]:
        """Loop state, watch and world of a state."""
        loop, memory = divmod(key >> self.shift, self._watch.size)
        return loop, memory, key & self.low

    def canonical(self, key: int) -> int:
        """The state that stands for all that differ from it by the names of items that are alike."""
        if not self.orbits:
            return key
        known = self._canonical.get(key)
        if known is None:
            if len(self._canonical) > KEPT:
                self._canonical.clear()
            known = self._canonical[key] = self._sorted(key)
        return known

    def _kinds(self, loop: int, memory: int, world: int) -> list[int]:
        """For each item all that a state says of it."""
        profile = self._states.profile(loop)
        items = self._environment.items
        planes = self._watch.planes
        kinds = []
        for place in range(items):
            kind = profile[place] << 2 | (world >> place & 1) << 1 | world >> (items + place) & 1
            for plane in range(2, self._environment.planes):
                kind = kind << 1 | world >> (plane * items + place) & 1
            for plane in range(planes):
                kind = kind << 1 | memory >> (plane * items + place) & 1
            kinds.append(kind)
        return kinds

    def _sorted(self, key: int) -> int:
        loop, memory, world = self.unpack(key)
        kinds = self._kinds(loop, memory, world)
        items = self._environment.items
        order = list(range(items))
        for orbit in self.orbits:
            for place, old in zip(orbit, sorted(orbit, key=kinds.__getitem__), strict=True):
                order[place] = old
        if order == list(range(items)):
            return key
        new = tuple(order)
        ones = (1 << items) - 1
        top = self._environment.planes * items
        renamed = world >> top << top
        for plane in range(self._environment.planes):
            renamed |= permute(world >> plane * items & ones, new) << plane * items
        world = renamed
        for plane in range(self._watch.planes):
            at = plane * items
            old_plane = memory >> at & ones
            memory += (permute(old_plane, new) - old_plane) << at
        return self.pack(self._states.permuted(loop, new), memory, world)

    def places(self, key: int) -> tuple[int, ...] | list[int]:
        """The moves to try in a state; of items that it does not tell apart only the first one's."""
        if not self.orbits:
            return self._places
        kinds = self._kinds(*self.unpack(key))
        twins = {
            later
            for orbit in self.orbits
            for before, later in pairwise(orbit)
            if kinds[before] == kinds[later]
        }
        if not twins:
            return self._places
        moves = self._environment.moves
        return [place for place in self._places if moves[place].item not in twins]
