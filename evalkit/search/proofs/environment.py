"""The environment that an exploration stands on: moves played on the real stage, the world kept as an int.

Nothing of player, world, tools or request rules is written again here: a move is delivered by its own script,
its calls run by the driver's own hands, and what comes of it remembered.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from evalkit.core.channels import speaks
from evalkit.core.decisions import Action, Verdict
from evalkit.core.events import Event
from evalkit.core.keys import item_of
from evalkit.core.requests import Request, neutral_faults
from evalkit.core.tasks import Checks, Task
from evalkit.core.turns import Call, Turn, parse_arguments
from evalkit.drivers.in_process import next_request, run_call
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.player import Player
from evalkit.scenarios.scenario import Scenario, make_task
from evalkit.scenarios.yaml_source import write_document
from evalkit.search.proofs.alphabet import Document, Move, alphabet, item_names, output_schema
from evalkit.search.proofs.full_alphabet import larger_moves
from evalkit.stage.stage import Stage
from evalkit.strategies.folds import Ran
from evalkit.strategies.strategy import Strategy
from evalkit.worker.scripted_workplace import StageWorkplace
from evalkit.worlds import action_of, make_world

#: The family of saved counterexamples.
FAMILY = "worst_cases"


class Setting(msgspec.Struct, frozen=True):
    """The world of an exploration: how many items, the last ``skippable`` of them skippable, the checks.

    ``alphabet`` says which moves the model and the outside have; with ``full`` each item waits for a person's
    approval. ``worker``: the strategy is run by the durable worker, which can be killed and resumed.
    ``calls`` limits the tool calls of a harness that is run.
    """

    items: int = 3
    checks: Checks = "full"
    skippable: int = 0
    alphabet: Literal["plain", "full"] = "plain"
    worker: bool = False
    calls: int | None = None

    def __post_init__(self) -> None:
        item_names(self.items)
        if not 0 <= self.skippable <= self.items:
            raise ValueError(f"skippable must be from 0 to the number of items; got {self.skippable}")
        if self.worker and self.alphabet != "full":
            raise ValueError("a worker is killed only with the alphabet full")

    @property
    def gated(self) -> int:
        """How many items wait for an approval."""
        return self.items if self.alphabet == "full" else 0

    def moves(self, strategy: Strategy) -> tuple[Move, ...]:
        """The moves of the alphabet against a strategy; the plainest come first."""
        plain = alphabet(strategy, self.items)
        if self.alphabet == "plain":
            return plain
        return (*plain, *larger_moves(strategy.offers, self.items, worker=self.worker))

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
        if self.gated:
            world["gated"] = list(names[: self.gated])
        task: dict[str, Any] = {
            "prompt": "Do every item that list_items returns.",
            "done_when": "Every item is done.",
            "checks": self.checks,
        }
        if output is not None:
            task["output"] = dict(output)
        limited = {} if self.calls is None else {"limits": {"calls": self.calls}}
        return {
            "scenario": name,
            "family": FAMILY,
            "summary": summary,
            "source": source,
            "task": task,
            "world": world,
            **limited,
            "model": moves,
        }


def read_document(document: dict[str, Any]) -> Scenario:
    """A document as a scenario, by way of its text, as it would be read from a file."""
    (scenario,) = load_text(write_document(document))
    return scenario


class TurnResult(msgspec.Struct, frozen=True, gc=False):
    """What came of a turn: the world after it, the calls that were run, and what was wrong about that.

    ``cut_off`` says that a call of a cut-off turn reached the world, ``surplus`` that an action had more
    effects than the turn has complete calls for it.
    """

    world: int
    ran: tuple[Ran, ...]
    cut_off: bool
    surplus: bool


class Environment:
    """The moves of one strategy in one setting, and what they do. It holds no state of an exploration.

    A world is an int of item sets: the items done, the skippable ones reported skipped; where effects come
    late those that land with the next request and with the one after. Its highest bit says whether anything
    had an effect. ``planes`` is the number of these sets. Whether an item is approved is no part of it: a
    move says whether its call is made before the approval.
    """

    def __init__(self, strategy: Strategy, setting: Setting, moves: tuple[Move, ...] | None = None) -> None:
        self.strategy = strategy
        self.setting = setting
        self.moves = setting.moves(strategy) if moves is None else moves
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
        late = [_is_late(move.document) for move in self.moves]
        self._lands = 2 if any(late) else 0
        self.planes = 2 + self._lands
        #: The part of a world in which an effect is on its way; one at a time, so these moves wait then.
        self.coming = ((1 << self._lands * self.items) - 1) << 2 * self.items
        self.late = frozenset(place for place, found in enumerate(late) if found)
        #: How many bits a world has.
        self.width = self.planes * self.items + 1
        #: The place of the user's leaving, -1 without one.
        self.leaves = next((place for place, move in enumerate(self.moves) if move.happens == "leaves"), -1)
        self.events: tuple[Event | None, ...] = tuple(
            self._event(place) if move.happens else None for place, move in enumerate(self.moves)
        )
        silent = Turn((), "end_turn")
        self.turns: tuple[Turn, ...] = tuple(
            silent if move.happens else self._delivered(place, 0)[1] for place, move in enumerate(self.moves)
        )
        self._played: dict[tuple[int, int, tuple[Call, ...]], TurnResult] = {}
        self._faults: dict[tuple[int, Action, tuple[Call, ...]], bool] = {}
        #: The items settled in a world once all effects have landed, and what its checks say before that.
        self.settled: dict[int, int] = _Known(self._settled)
        self.verdicts: dict[int, Verdict] = _Known(lambda world: self._set(world).check(setting.checks))

    # Worlds

    def _set(self, world: int) -> Any:
        copy = self._world.fork()
        copy.done = world & self.all
        copy.skipped = (world >> self.items) & self.all
        copy.approved = copy.gated
        copy.effects = {"before": 1} if world >> (self.planes * self.items) & 1 else {}
        return copy

    def _coming(self, world: int) -> tuple[tuple[int, str, str], ...]:
        """The effects that have yet to land, as a stage keeps them: those of the next request come first."""
        found = []
        for lands in range(self._lands):
            items = world >> (2 + lands) * self.items & self.all
            for name in self.task.names(items):
                ((tool, arguments),) = self._world.settle_calls(name, "")
                found.append((lands + 1, tool, json.dumps(arguments)))
        return tuple(found)

    def _settled(self, world: int) -> int:
        copy = self._set(world)
        for _, tool, arguments in self._coming(world):
            copy.perform(tool, json.loads(arguments))
        settled: int = copy.settled()
        return settled

    def packed(self, world: Any, coming: tuple[tuple[int, str, str], ...] = ()) -> int:
        """A world as an int, with the effects that have yet to land."""
        packed: int = world.done | (world.skipped & world.skippable) << self.items
        for lands, _, arguments in coming:
            packed |= self._world.vocabulary[json.loads(arguments)["item"]] << (1 + lands) * self.items
        return packed | bool(world.effects) << (self.planes * self.items)

    def verdict(self, world: int) -> Verdict:
        """What the acceptance checks say of a world."""
        return self.verdicts[world]

    def replays(self, world: int, item: str) -> bool:
        """Whether an item, read again, is done."""
        return bool(self._set(world).reads_done(item))

    # Turns

    def _event(self, place: int) -> Event | None:
        """What a move from outside is to a harness; None for a crash."""
        player = self._players[place]
        step = player.upcoming(player.start, 0, 0)
        assert step is not None
        return step[1].happens

    def _delivered(self, place: int, world: int) -> tuple[Stage, Turn]:
        state = self._set(world)
        if self.moves[place].unapproved:
            state.approved = 0
        stage = Stage(self._players[place], state, self.task, None, 1 << 60, 1)
        stage.begin_with(self._coming(world))
        return stage, stage.ask(Request())

    def play(self, place: int, world: int, calls: tuple[Call, ...]) -> TurnResult:
        """Deliver a move in a world and run these of its calls."""
        key = (place, world, calls)
        known = self._played.get(key)
        if known is None:
            known = self._played[key] = self._play(place, world, calls)
        return known

    def _play(self, place: int, world: int, calls: tuple[Call, ...]) -> TurnResult:
        stage, turn = self._delivered(place, world)
        before = self._had(stage)
        if calls and self.moves[place].then is not None:
            ran = self._killed(stage, calls)
        else:
            ran = tuple(run_call(stage, self.task, call) for call in calls)
        before.subtract(self._had(stage))
        effects = {action: -count for action, count in before.items() if count}
        return TurnResult(
            world=self.packed(stage.world, stage.coming),
            ran=ran,
            cut_off=not speaks(turn) and any(record.tool is not None for record in ran),
            surplus=any(count > self._complete(turn, action) for action, count in effects.items()),
        )

    def _had(self, stage: Stage) -> Counter[str]:
        """How often each action had its effect, or was accepted and will have it."""
        tools = self.task.tools
        coming = (action_of(tools.get(tool), json.loads(arguments)) for _, tool, arguments in stage.coming)
        return Counter(stage.world.effects) + Counter(action for action in coming if action)

    def _killed(self, stage: Stage, calls: tuple[Call, ...]) -> tuple[Ran, ...]:
        """Calls by the worker that is killed before the answer; the next one looks first, then makes them."""
        workplace = StageWorkplace(stage)
        ran = []
        for call in calls:
            if call.tool in self.task.tools:
                workplace.run(call, None)
                if workplace.care(call) == "looked_up" and (known := workplace.look_up(call)) is not None:
                    ran.append(Ran(call, known, self.task.tools[call.tool], item_of(self.task, call)))
                    continue
            ran.append(run_call(stage, self.task, call))
        return tuple(ran)

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

    __slots__ = ("environment", "last_turn", "read", "tokens", "usd", "world")

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.world = 0
        self.tokens = 0
        self.usd = 0.0
        self.last_turn: Turn | None = None
        self.read = False

    def checks(self) -> Verdict:
        self.read = True
        return self.environment.verdict(self.world)

    def artifact(self) -> bool:
        self.read = True
        return bool(self.world >> (self.environment.planes * self.environment.items) & 1)

    def replays(self, item: str) -> bool:
        self.read = True
        return self.environment.replays(self.world, item)


class _Known(dict[int, Any]):
    """What is so of a world, worked out when it is asked for the first time."""

    def __init__(self, find: Callable[[int], Any]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, world: int) -> Any:
        found = self[world] = self._find(world)
        return found


def _is_late(document: Document) -> bool:
    """Whether a move accepts an effect that comes later."""
    return bool(document.get("reply", {}).get("effect") == "late")


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
