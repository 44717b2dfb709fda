"""A person's decision is one, whether it just comes or a program asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.core.turns import Call
from evalkit.harnesses.episode_record import Observed
from evalkit.stage.approver import Approver
from tests.stage.test_stage import DONE, LIST, on, staged

GATED = {"gated": ["users", "orders"]}


@pytest.mark.parametrize(
    ("spec", "settled"),
    [
        ({"allow": "all"}, ("users", "orders")),
        ({"allow": ["users"]}, ("users",)),
        ({"allow": ["users"], "refuse": ["orders"]}, ("users",)),
        ({"refuse": ["users"], "change": {"orders": "invoices"}}, ("invoices",)),
        ({"change": {"users": "orders"}}, ("orders",)),
        ({}, ()),
    ],
)
def test_what_comes_and_what_is_asked_for_does_the_same_work(spec: Any, settled: tuple[str, ...]) -> None:
    moves = [LIST, {"work": ["users", "orders"], "parallel": True}, {"approve": spec}, DONE]
    told, asked = staged(moves, world=GATED), Observed.of(staged(moves, world=GATED))
    for call in on(told, 2).runnable:
        told.run(call)
    asked.asks_person = True
    asked.approver = Approver(asked)
    turn = on(asked, 2)
    tools = {call.id: call.tool for call in turn.runnable}
    laid = [
        {"id": call.id, "tool": call.tool, "arguments": {"item": item}}
        for call, item in zip(turn.runnable, ("users", "orders"), strict=True)
    ]
    for decision in asked.approver.asked(laid, resumed=False):
        if decision.decision != "refuse":
            asked.run(Call("", tools[decision.id], f'{{"item": "{decision.arguments["item"]}"}}'))
    for stage in (told, asked):
        assert stage.world.settled() == stage.world.bits(settled)
    assert told.trace is not None
    assert asked.trace is not None
    assert told.trace.called == asked.trace.called


def test_a_tool_that_only_reads_needs_no_leave() -> None:
    """Nothing is refused that has no effect, though it names what is gated."""
    stage = staged([LIST, {"work": ["users"]}, {"approve": {"refuse": ["users"]}}, DONE], world=GATED)
    on(stage, 2)
    reads = next(tool for tool in stage.task.tools.values() if tool.read_only and tool.item)
    assert not stage.run(Call("", reads.name, f'{{"{reads.item}": "users"}}')).error
