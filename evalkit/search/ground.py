"""The ground that an exploration stands on: moves played on the real stage, the world kept as an int.

Nothing of player, world, tools or request rules is written again here: a move is delivered by its own script,
its calls run by the driver's own hands, and what comes of it remembered.
"""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from evalkit.core.channels import speaks
from evalkit.core.decisions import Action, Verdict
from evalkit.core.requests import Request, neutral_faults
from evalkit.core.tasks import Checks, Task
from evalkit.core.turns import Call, Turn, parse_arguments
from evalkit.harnesses.driver import next_request, run_call
from evalkit.models.scripted import Stage
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.player import Player
from evalkit.scenarios.scenario import Scenario, make_task
from evalkit.search.alphabet import Document, Move, alphabet, item_names, output_schema
from evalkit.strategies.folds import Ran
from evalkit.strategies.strategy import Strategy
from evalkit.worlds import action_of, make_world

#: The family of saved counterexamples.
FAMILY = "worst_cases"


class Setting(msgspec.Struct, frozen=True):
    """The world of an exploration: how many items, the last ``skippable`` of them skippable, the checks."""

    items: int = 3
    checks: Checks = "full"
    skippable: int = 0

    def __post_init__(self) -> None:
        item_names(self.items)
        if not 0 <= self.skippable <= self.items:
            raise ValueError(f"skippable must be from 0 to the number of items; got {self.skippable}")

    def document(self, strategy: Strategy, moves: list[Document], name: str = "free-model") -> dict[str, Any]:
        """A scenario of this world in which the model makes ``moves``."""
        return self.scenario(output_schema(strategy.done_when), moves, name, "found by evalkit prove")

    def scenario(
        self, output: Any, moves: list[Document], name: str, source: str, summary: str = ""
    ) -> dict[str, Any]:
        """The same for anything that is run: ``output`` is the schema of a typed output, or None."""
        names = item_names(self.items)
        world: dict[str, Any] = {"kind": "items", "items": list(names)}
        if self.skippable:
            world["skippable"] = list(names[-self.skippable :])
        task: dict[str, Any] = {
            "prompt": "Do every item that list_items returns.",
            "done_when": "Every item is done.",
            "checks": self.checks,
        }
        if output is not None:
            task["output"] = dict(output)
        return {
            "scenario": name,
            "family": FAMILY,
            "summary": summary,
            "source": source,
            "task": task,
            "world": world,
            "model": moves,
        }


def read_document(document: dict[str, Any]) -> Scenario:
    """A document as a scenario, by way of its text, as it would be read from a file."""
    (scenario,) = load_text(write_document(document))
    return scenario


def write_document(document: dict[str, Any]) -> str:
    """A document as YAML."""
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100))


class Played(msgspec.Struct, frozen=True, gc=False):
    """What came of a turn: the world after it, the calls that were run, and what was wrong about that.

    ``cut_off`` says that a call of a cut-off turn reached the world, ``surplus`` that an action had more
    effects than the turn has complete calls for it.
    """

    world: int
    ran: tuple[Ran, ...]
    cut_off: bool
    surplus: bool


class Ground:
    """The moves of one strategy in one setting, and what they do. It holds no state of an exploration.

    A world is an int: the items done, then the skippable items reported skipped, then one bit that says
    whether anything had an effect.
    """

    def __init__(self, strategy: Strategy, setting: Setting, moves: tuple[Move, ...] | None = None) -> None:
        self.strategy = strategy
        self.setting = setting
        self.moves = alphabet(strategy, setting.items) if moves is None else moves
        scenario = read_document(setting.document(strategy, [move.document for move in self.moves]))
        self._world = make_world(scenario.world)
        self.items = setting.items
        self.all: int = self._world.all
        self.skippable: int = self._world.skippable
        self.weak: int = self._world.weak
        self.task: Task = _remembering(make_task(scenario, self._world, offered=strategy.offers))
        self._players = [
            Player(
                msgspec.structs.replace(scenario, moves=(move,)),
                self._world,
                strategy.offers,
                scenario.task.output,
            )
            for move in scenario.moves
        ]
        self.turns: tuple[Turn, ...] = tuple(self._delivered(place, 0)[1] for place in range(len(self.moves)))
        self._played: dict[tuple[int, int, tuple[Call, ...]], Played] = {}
        self._faults: dict[tuple[int, Action, tuple[Call, ...]], bool] = {}
        size = 1 << (2 * self.items + 1)
        self.settled = [self._settled(world) for world in range(size)]
        self.verdicts: list[Verdict | None] = [None] * size

    # Worlds

    def _set(self, world: int) -> Any:
        copy = self._world.fork()
        copy.done = world & self.all
        copy.skipped = (world >> self.items) & self.all
        copy.effects = {"before": 1} if world >> (2 * self.items) & 1 else {}
        return copy

    def _settled(self, world: int) -> int:
        settled: int = self._set(world).settled()
        return settled

    def packed(self, world: Any) -> int:
        """A world as an int."""
        skipped = world.skipped & world.skippable
        touched = bool(world.effects)
        packed: int = world.done | skipped << self.items | touched << (2 * self.items)
        return packed

    def verdict(self, world: int) -> Verdict:
        """What the acceptance checks say of a world."""
        known = self.verdicts[world]
        if known is None:
            known = self.verdicts[world] = self._set(world).check(self.setting.checks)
        return known

    def replays(self, world: int, item: str) -> bool:
        """Whether an item, read again, is done."""
        return bool(self._set(world).reads_done(item))

    # Turns

    def _delivered(self, place: int, world: int) -> tuple[Stage, Turn]:
        stage = Stage(self._players[place], self._set(world), self.task, None, 1 << 60, 1)
        return stage, stage.ask(Request())

    def play(self, place: int, world: int, calls: tuple[Call, ...]) -> Played:
        """Deliver a move in a world and run these of its calls."""
        key = (place, world, calls)
        known = self._played.get(key)
        if known is None:
            known = self._played[key] = self._play(place, world, calls)
        return known

    def _play(self, place: int, world: int, calls: tuple[Call, ...]) -> Played:
        stage, turn = self._delivered(place, world)
        before = dict(stage.world.effects)
        ran = tuple(run_call(stage, self.task, call) for call in calls)
        effects = {
            action: count - before.get(action, 0)
            for action, count in stage.world.effects.items()
            if count != before.get(action, 0)
        }
        return Played(
            world=self.packed(stage.world),
            ran=ran,
            cut_off=not speaks(turn) and any(record.tool is not None for record in ran),
            surplus=any(count > self._complete(turn, action) for action, count in effects.items()),
        )

    def _complete(self, turn: Turn, action: str) -> int:
        """How many complete calls for a logical action a turn has."""
        if not speaks(turn):
            return 0
        tools = self.task.tools
        return sum(
            action_of(tools.get(call.tool), parse_arguments(call.arguments)) == action for call in turn.calls
        )

    def breaks_rules(self, place: int, action: Action, calls: tuple[Call, ...]) -> bool:
        """Whether the request that carries out an action, once calls were run, breaks a neutral rule."""
        key = (place, action, calls)
        known = self._faults.get(key)
        if known is None:
            stage, turn = self._delivered(place, 0)
            for call in calls:
                run_call(stage, self.task, call)
            request = next_request(action, stage, Request())
            known = self._faults[key] = bool(neutral_faults(turn, request))
        return known


class Reading:
    """The instruments of the explored loop: what it can measure of a world, and whether it did."""

    __slots__ = ("ground", "last_turn", "read", "tokens", "usd", "world")

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.world = 0
        self.tokens = 0
        self.usd = 0.0
        self.last_turn: Turn | None = None
        self.read = False

    def checks(self) -> Verdict:
        self.read = True
        return self.ground.verdict(self.world)

    def artifact(self) -> bool:
        self.read = True
        return bool(self.world >> (2 * self.ground.items) & 1)

    def replays(self, item: str) -> bool:
        self.read = True
        return self.ground.replays(self.world, item)


def _remembering(task: Task) -> Task:
    """The same task; the ids of an item set, asked for at every verdict, are put together once."""
    named: dict[int, tuple[str, ...]] = {}
    sets: dict[tuple[str, ...], int] = {}

    class Remembering(Task, frozen=True):
        def names(self, items: int) -> tuple[str, ...]:
            names = named.get(items)
            if names is None:
                names = named[items] = Task.names(self, items)
            return names

        def items_of(self, names: tuple[str, ...]) -> int:
            items = sets.get(names)
            if items is None:
                items = sets[names] = Task.items_of(self, names)
            return items

    return Remembering(**{field: getattr(task, field) for field in task.__struct_fields__})
