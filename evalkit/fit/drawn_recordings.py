"""Drawn lives written as recordings, in tau-bench's form: what a judge needs of them and no more.

The words are plain ones that the reader of claims reads as they are meant; tools are named so that it can be
told which may change something. A run that ended at an end of turn is one that its user ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from evalkit.scenarios.drawn_scenarios import ASKS, SAYS
from evalkit.scenarios.life import Act, Life
from evalkit.scenarios.population import Population
from evalkit.scenarios.population_draws import Draw
from evalkit.transcripts.formats.tau import USER_STOP
from evalkit.transcripts.recording import TRANSFER


def recordings_of(population: Population, draws: Iterable[int]) -> Iterator[dict[str, Any]]:
    """The records of all drawn tasks, as many runs of each as were recorded."""
    for number in draws:
        draw = Draw(population, number)
        for task in range(population.drawn):
            for trial in range(population.trials):
                yield record_of(draw.life(task, trial), f"{number}-{task}", trial)


def record_of(life: Life, task: str, trial: int = 0) -> dict[str, Any]:
    """One life as a result of tau-bench."""
    record: dict[str, Any] = {"task_id": task, "trial": trial, "traj": list(_messages(life))}
    record["info"] = {"task": _task(life)}
    record["reward"] = None if not life.truth else float(life.truth == "right")
    return record


def _task(life: Life) -> dict[str, Any]:
    """What the author of the task says: actions only where the cause of a failure is known."""
    task: dict[str, Any] = {"outputs": ["said"] if life.truth == "words" else []}
    made = [_arguments(number) for number, act in _numbered(life) if act.changes and not act.failed]
    missing = [{"record": "left-undone"}] if life.truth in ("undone", "both") else []
    wrong = life.truth in ("wrong act", "both")
    if life.truth not in ("unknown", ""):
        right = made[:-1] if wrong else made
        task["actions"] = [{"name": "update_record", "kwargs": each} for each in (*right, *missing)]
    return task


def _numbered(life: Life) -> Iterator[tuple[int, Act]]:
    """Tool turns with the number of their action: a repetition has that of the last turn of its sort."""
    last: dict[bool, int] = {}
    for place, act in enumerate((act for part in life.parts for act in part.acts), 1):
        if not (act.again and act.changes in last):
            last[act.changes] = place
        yield last[act.changes], act


def _arguments(number: int) -> dict[str, Any]:
    return {"record": f"record-{number}"}


def _messages(life: Life) -> Iterator[dict[str, Any]]:
    yield {"role": "user", "content": "Please update my booking."}
    numbered = _numbered(life)
    calls = 0
    for place, part in enumerate(life.parts):
        last = place == len(life.parts) - 1
        for turn, _ in enumerate(part.acts):
            number, act = next(numbered)
            calls += 1
            leaves = last and not part.end and life.exit == "escalated" and turn == len(part.acts) - 1
            tool = TRANSFER if leaves else "update_record" if act.changes else "get_record"
            yield from _call(calls, tool, number, act)
        if part.end:
            yield {"role": "assistant", "content": SAYS[part.end]}
            if last:
                yield {"role": "user", "content": USER_STOP}
            elif part.asked:
                yield {"role": "user", "content": ASKS}


def _call(place: int, tool: str, number: int, act: Act) -> Iterator[dict[str, Any]]:
    function = {"name": tool, "arguments": json.dumps(_arguments(number))}
    call = {"id": f"call-{place}", "type": "function", "function": function}
    yield {"role": "assistant", "content": None, "tool_calls": [call]}
    said = "Error: the service did not answer" if act.failed else "ok"
    yield {"role": "tool", "tool_call_id": call["id"], "content": said}
