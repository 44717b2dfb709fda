"""Scripted workplaces: what stands in the file has happened, whoever hears of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalkit.core.requests import Request, Result
from evalkit.core.turns import Call
from evalkit.worker.scripted_workplace import FileWorkplace, StageWorkplace, scenario_kit
from evalkit.worker.task_records import Exchange, Order, TaskError
from tests.worker.places import file_order, payments, stage_of, write_scenario


@pytest.fixture
def order(home: Path) -> Order:
    return file_order(write_scenario(home, payments(3)))


@pytest.fixture
def places(order: Order, home: Path) -> Iterator[tuple[FileWorkplace, FileWorkplace]]:
    """The same workplace, opened twice."""
    opened = scenario_kit(order, home), scenario_kit(order, home)
    yield opened
    for place in opened:
        place.close()


def play(place: StageWorkplace, turns: int) -> list[Exchange]:
    """The transcript of so many turns, their calls run."""
    transcript: list[Exchange] = []
    request = Request()
    for number in range(1, turns + 1):
        answer = place.answer(transcript, request)
        transcript.append(Exchange(number, request, answer.turn))
        results = tuple(
            place.run(call, f"k{number}") if call.tool != "update_checklist" else Result(call.id, "recorded")
            for call in answer.turn.calls
        )
        request = Request(answer.turn, results)
    return transcript


def test_who_opens_it_later_finds_what_happened(places: Any, order: Order, home: Path) -> None:
    one, _ = places
    play(one, 3)
    later = scenario_kit(order, home)
    stage = later.stage()
    assert stage.turns == 3
    assert stage.world.effects == {"post_payment PAY-000": 1, "post_payment PAY-001": 1}
    assert stage.key() == one.stage().key()
    later.close()


def test_an_answer_that_nobody_kept_is_given_again(places: Any) -> None:
    one, other = places
    first = one.answer([], Request())
    again = other.answer([], Request())
    assert again == first
    assert one.stage().turns == other.stage().turns == 1
    assert one.answer([Exchange(1, Request(), first.turn)], Request(first.turn)).turn != first.turn


def test_two_who_act_in_turn_see_one_world(places: Any) -> None:
    one, other = places
    transcript = play(one, 2)
    again = Call("call_0", "post_payment", '{"payment":"PAY-000","key":"mine"}')
    other.answer(transcript, Request(transcript[-1].turn))
    other.run(again, "another key")
    assert one.stage().world.effects["post_payment PAY-000"] == 2
    assert not one.check("full").met
    assert one.replays("PAY-000")


def test_the_workers_key_takes_the_place_of_the_models(places: Any) -> None:
    one, other = places
    play(one, 1)
    call = Call("call_0", "post_payment", '{"payment":"PAY-000","key":"made up"}')
    one.run(call, "the worker's")
    other.run(call, "the worker's")
    assert one.stage().world.effects == {"post_payment PAY-000": 1}


def test_what_failed_has_not_happened(places: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = places
    transcript = play(one, 1)

    def fails(statement: str, values: Any = ()) -> list[Any]:
        if statement.startswith("insert"):
            raise OSError("no space")
        return execute(statement, values)

    execute = one._base.execute
    monkeypatch.setattr(one._base, "execute", fails)
    with pytest.raises(OSError, match="no space"):
        one.answer(transcript, Request(transcript[-1].turn))
    monkeypatch.undo()
    assert one.stage().turns == other.stage().turns == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "care"),
    [
        ("list_payments", "{}", "free"),
        ("read_payment", "{}", "free"),
        ("post_payment", "{}", "keyed"),
        ("refund_payment", '{"payment": "PAY-000"}', "looked_up"),
        ("refund_payment", '{"payment": "NONE"}', "uncertain"),
        ("refund_payment", "{}", "uncertain"),
        ("delegate", "{}", "uncertain"),
    ],
)
def test_the_care_of_a_call(tool: str, arguments: str, care: str) -> None:
    assert StageWorkplace(stage_of(payments(1))).care(Call("c", tool, arguments)) == care


def test_looking_up_says_whether_an_item_stands_as_the_call_would_have_left_it() -> None:
    place = StageWorkplace(stage_of(payments(1)))
    refund = Call("c", "refund_payment", '{"payment":"PAY-000"}')
    found = place.look_up(refund)
    assert found is not None
    assert not found.error
    place.stage().world.perform("post_payment", {"payment": "PAY-000", "key": "k"})
    assert place.look_up(refund) is None


def test_an_order_without_its_scenario_is_refused(home: Path, order: Order) -> None:
    with pytest.raises(TaskError, match="needs the setting scenario"):
        scenario_kit(Order("x", "Do it."), home)
    place = order.settings["scenario"]
    with pytest.raises(TaskError, match="holds no scenario 'other'"):
        scenario_kit(Order("x", "Do it.", settings={"scenario": place, "name": "other"}), home)
