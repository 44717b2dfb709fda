"""The key that goes out with a call: one for each thing that is to happen, and no other."""

from __future__ import annotations

from typing import Any

import msgspec

from evalkit.core.requests import Result
from evalkit.core.turns import Call
from evalkit.worker.idempotency import key_of
from evalkit.worker.task_records import Effect
from tests.worker.places import payments, stage_of

TASK = stage_of(payments(2)).task


def call(tool: str, **arguments: Any) -> Call:
    return Call("call_0", tool, msgspec.json.encode(arguments).decode())


def post(payment: str = "PAY-000", **arguments: Any) -> Call:
    return call("post_payment", payment=payment, **arguments)


def done(tool: str, item: int, *, error: bool = False, status: Any = "confirmed") -> Effect:
    result = Result("call_0", "said", error)
    return Effect(2, 0, tool, "{}", "looked_up", "", item, status, result)


def key(what: Call, *, id: str = "task", turn: int = 3, before: tuple[Effect, ...] = ()) -> str:
    return key_of(id, TASK, what, turn, 0, before)


def test_the_same_action_in_a_later_turn_has_the_same_key_whatever_key_the_model_made_up() -> None:
    assert key(post(key="a"), turn=3) == key(post(key="b"), turn=9)


def test_another_task_item_or_amount_has_another_key() -> None:
    keys = [
        key(post()),
        key(post(), id="other"),
        key(post("PAY-001")),
        key(post(amount=3)),
        key(call("refund_payment", payment="PAY-000")),
    ]
    assert len(set(keys)) == len(keys)


def test_a_failed_attempt_does_not_change_the_key() -> None:
    """It may have had its effect: that is what the key is for."""
    assert key(post()) == key(post(), before=(done("post_payment", 1, error=True),))


def test_what_was_undone_may_be_done_again() -> None:
    assert key(post()) != key(post(), before=(done("refund_payment", 1),))


def test_only_what_changed_the_item_begins_anew() -> None:
    before = (
        done("read_payment", 1),
        done("refund_payment", 2),
        done("refund_payment", 1, error=True),
        done("refund_payment", 1, status="reserved"),
    )
    assert key(post()) == key(post(), before=before)


def test_a_call_about_no_item_has_its_place_as_its_step() -> None:
    assert key(call("list_payments"), turn=3) == "task:3/0"
    assert key(post("NONE"), turn=4) == "task:4/0"
