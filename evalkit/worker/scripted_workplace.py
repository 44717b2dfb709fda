"""Scripted workplaces: a scenario's model and world, in memory or in a file that outlives every worker.

The file holds each request and call that arrived, in order. Whoever opens it plays them again: player and
worlds are deterministic, so the same history gives the same state. What stands in the file has happened,
whether or not the worker lived to hear of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from evalkit.core.decisions import Ending, Verdict
from evalkit.core.events import Event
from evalkit.core.keys import item_of, takes_key
from evalkit.core.requests import Request, Result
from evalkit.core.tasks import Offered
from evalkit.core.turns import Call, Turn, count_tokens
from evalkit.scenarios.loader import load_file
from evalkit.scenarios.player import Player
from evalkit.scenarios.scenario import Scenario, make_task
from evalkit.stage.stage import Stage
from evalkit.strategies.registry import find_strategy
from evalkit.worker.encoding import dump_request, echo_of, load_request
from evalkit.worker.store.sqlite import SqliteDatabase
from evalkit.worker.task_records import Care, Exchange, Order, TaskError
from evalkit.worker.workplace import Answer, Workplace
from evalkit.worlds import make_world

T = TypeVar("T")

#: What is known of the shipped worlds' tools: setting a label or writing a file again changes nothing; doing
#: and undoing an item shows in its state.
_CARE: dict[str, Care] = {
    "label_thread": "free",
    "remove_label": "free",
    "write_file": "free",
    "do_item": "looked_up",
    "undo_item": "looked_up",
    "refund_payment": "looked_up",
}
_UNCAPPED = 1 << 60


class StageModel:
    """The scripted model of a stage."""

    def __init__(self, workplace: StageWorkplace) -> None:
        self._workplace = workplace

    def ask(self, transcript: Sequence[Exchange], request: Request) -> Answer:
        return self._workplace.answer(transcript, request)


class StageWorkplace(Workplace):
    """A stage in memory. It plays the outside: it goes on living while workers come and go."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._spent = (0, 0)
        #: Tokens of the stage that were part of an answer.
        self._counted = (0, 0)
        self.task = stage.task
        self.model = StageModel(self)

    def stage(self) -> Stage:
        """The stage as it stands."""
        return self._stage

    def answer(self, transcript: Sequence[Exchange], request: Request) -> Answer:
        """The model's answer; one that was delivered and not kept is delivered again."""
        stage = self.stage()
        turn = stage.previous.turn
        if turn is not None and stage.turns > len(transcript):
            return Answer(turn, *self._spent)
        return self._asked(stage, request)

    def _asked(self, stage: Stage, request: Request) -> Answer:
        turn = stage.ask(request)
        if turn.is_no_turn:
            return Answer(turn)
        self._spent = self.spent_in_calls()
        self._counted = stage.input_tokens, stage.output_tokens
        return Answer(turn, *self._spent)

    def spent_in_calls(self) -> tuple[int, int]:
        stage = self._stage
        return stage.input_tokens - self._counted[0], stage.output_tokens - self._counted[1]

    def run(self, call: Call, key: str | None) -> Result:
        return self.stage().run(call, key)

    def care(self, call: Call) -> Care:
        tool = self.task.tools.get(call.tool)
        if tool is not None and tool.read_only:
            return "free"
        if tool is not None and takes_key(tool):
            return "keyed"
        care = _CARE.get(call.tool, "uncertain")
        # A call that names no item may do anything; there is nothing to look at.
        return "uncertain" if care == "looked_up" and not item_of(self.task, call) else care

    def look_up(self, call: Call) -> Result | None:
        tool = self.task.tools[call.tool]
        name = json.loads(call.arguments)[tool.item]
        stands = self.stage().world.reads_done(name)
        if stands != tool.does:
            return None
        return Result(call.id, f"{name}: {'done' if stands else 'open'}, looked up after a restart")

    @property
    def eventful(self) -> bool:
        return self._stage.eventful

    def happens(self, request: Request) -> tuple[Event, ...]:
        return self._stage.happens(request)

    def after(self, ending: Ending, request: Request) -> tuple[Event, ...]:
        return self._stage.after(ending, request)

    def check(self, name: str) -> Verdict:
        if name not in ("full", "weak"):
            raise TaskError(f"a scenario has the checks full and weak, not {name!r}")
        return self.stage().world.check(name)  # type: ignore[arg-type]

    def artifact(self) -> bool:
        return self.stage().world.artifact()

    def replays(self, item: str) -> bool:
        return self.stage().world.reads_done(item)


_TABLE = "create table if not exists happened (number integer primary key, what text not null)"


class FileWorkplace(StageWorkplace):
    """A stage whose history is in a SQLite file, shared by all workers that open it.

    Its user never writes and nobody compacts: events are left out of the script.
    """

    eventful = False

    def __init__(self, path: Path, make: Callable[[], Stage]) -> None:
        self._make = make
        self._base = SqliteDatabase(str(path), durability="normal", patience=30.0)
        self._base.execute(_TABLE)
        self._forget()
        super().__init__(self._stage)

    def _forget(self) -> None:
        self._stage = self._make()
        self._counted = (0, 0)
        self._seen = 0
        self._turns: list[Turn] = []
        self._echo: int | None = None

    def stage(self) -> Stage:
        """The stage, brought up to what happened by others' hands."""
        rows = self._base.execute(
            "select number, what from happened where number > ? order by number", (self._seen,)
        )
        for number, what in rows:
            self._play(json.loads(what))
            self._seen = number
        return self._stage

    def _play(self, what: dict[str, Any]) -> Answer | Result:
        stage = self._stage
        if "run" in what:
            id, tool, arguments = what["run"]
            return stage.run(Call(id, tool, arguments), what["key"])
        request, self._echo = load_request(what["ask"], self._turns)
        turns = stage.turns
        answer = self._asked(stage, request)
        if stage.turns > turns:
            self._turns.append(answer.turn)
        return answer

    def _happens(self, what: Callable[[Stage], dict[str, Any] | T]) -> Any:
        """Let something happen, alone; it has happened when the file says so. A value is only handed back."""
        base = self._base
        base.begin()
        try:
            found = what(self.stage())
            if not isinstance(found, dict):
                base.rollback()
                return found
            base.execute("insert into happened (what) values (?)", (json.dumps(found),))
            value = self._play(found)
            self._seen += 1
            base.commit()
        except BaseException:
            # What was played may not have happened: begin again from the file.
            self._forget()
            base.rollback()
            raise
        return value

    def answer(self, transcript: Sequence[Exchange], request: Request) -> Answer:
        def what(stage: Stage) -> dict[str, Any] | Answer:
            if stage.previous.turn is not None and stage.turns > len(transcript):
                return Answer(stage.previous.turn, *self._spent)
            return {"ask": dump_request(request, echo_of(request, len(transcript), self._echo))}

        return self._happens(what)  # type: ignore[no-any-return]

    def run(self, call: Call, key: str | None) -> Result:
        return self._happens(  # type: ignore[no-any-return]
            lambda stage: {"run": [call.id, call.tool, call.arguments], "key": key}
        )

    def close(self) -> None:
        self._base.close()


def order_of(scenario: Scenario, id: str, *, seed: int = 0, strategy: str = "gate", type: str = "") -> Order:
    """The order for a scenario's task; ``type`` without a value is its family."""
    checks = scenario.task.checks
    return Order(
        id=id,
        prompt=scenario.task.prompt,
        done_when=scenario.task.done_when,
        type=type or scenario.family,
        strategy=strategy,
        checks=() if checks == "none" else (checks,),
        items=scenario.world.items if scenario.task.items == "given" else (),
        limits=scenario.limits,
        settings={"scenario": str(Path(scenario.place).resolve()), "name": scenario.name, "seed": seed},
    )


def scenario_stage(scenario: Scenario, offered: Offered, seed: int) -> Stage:
    """A scenario's stage, not observed."""
    world = make_world(scenario.world)
    player = Player(scenario, world, offered, scenario.task.output)
    prompt = count_tokens(scenario.task.prompt) + count_tokens(scenario.task.done_when)
    return Stage(player, world, make_task(scenario, world, seed, offered), None, _UNCAPPED, prompt)


def scenario_kit(order: Order, home: Path) -> FileWorkplace:
    """The kit ``scenario``: model and world of the scenario that the order's settings name."""
    place = order.settings.get("scenario")
    if not isinstance(place, str):
        raise TaskError(f"task {order.id!r}: the kit scenario needs the setting scenario, a file")
    name = order.settings.get("name")
    seed = int(order.settings.get("seed", 0))
    found = [scenario for scenario in load_file(Path(place)) if name in (None, scenario.name)]
    if not found:
        raise TaskError(f"task {order.id!r}: {place} holds no scenario {name!r}")
    offered = find_strategy(order.strategy).offers
    folder = home / "worlds"
    folder.mkdir(parents=True, exist_ok=True)
    return FileWorkplace(folder / f"{order.id}.sqlite", lambda: scenario_stage(found[0], offered, seed))
