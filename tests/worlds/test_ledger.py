"""The world of payments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.worlds import Outcome, World
from tests.worlds.declarations import do, undo, world


def post(target: World, payment: str, key: object) -> Outcome:
    return target.perform("post_payment", {"payment": payment, "key": key})


def test_the_same_key_posts_once() -> None:
    target = world("ledger")
    assert post(target, "first", "k").action == "post_payment first"
    assert post(target, "first", "k") == Outcome("first: posted")
    assert target.effects == {"post_payment first": 1}


def test_a_fresh_key_posts_twice_and_breaks_the_invariant_until_refunded() -> None:
    target = world("ledger")
    for place, item in enumerate(("first", "second", "third", "first")):
        do(target, item, f"{place}")
    assert target.settled() == target.all
    assert not target.holds()
    assert "posted 2 times" in target.call("read_payment", {"payment": "first"}).text
    undo(target, "first")
    assert not target.holds()
    do(target, "first", "again")
    assert target.holds()


def test_what_a_payment_says_of_itself() -> None:
    target = world("ledger")
    read = [target.call("read_payment", {"payment": "first"}).text]
    for key in ("k", "l"):
        post(target, "first", key)
        read.append(target.call("read_payment", {"payment": "first"}).text)
    assert read == ["first: open", "first: posted", "first: posted 2 times"]


@pytest.mark.parametrize("payment", ["nobody's", 7, None])
@pytest.mark.parametrize("tool", ["read_payment", "post_payment", "refund_payment"])
def test_a_payment_that_is_none_is_an_error(tool: str, payment: object) -> None:
    target = world("ledger")
    outcome = target.perform(tool, {"payment": payment, "key": "k"})
    assert outcome == Outcome(f"no payment {payment!r}", error=True)
    assert target.effects == {}


def test_a_key_belongs_to_its_payment() -> None:
    target = world("ledger")
    post(target, "first", "k")
    refused = post(target, "second", "k")
    assert refused.error
    assert "belongs to first" in refused.text


def test_a_key_is_needed() -> None:
    for key in (None, "", 7):
        assert post(world("ledger"), "first", key).error


def test_a_key_may_be_any_text() -> None:
    target = world("ledger")
    assert not post(target, "first", "\ud800").error
    assert post(target, "first", "\ud800").action is None


def test_refunding_what_was_not_posted_is_an_error() -> None:
    assert world("ledger").perform("refund_payment", {"payment": "first"}).error


@given(st.lists(st.tuples(st.sampled_from(["first", "second"]), st.integers(0, 3)), max_size=12))
def test_settled_and_broken_follow_the_postings(postings: list[tuple[str, int]]) -> None:
    target = world("ledger")
    keys: dict[str, set[str]] = {"first": set(), "second": set()}
    for payment, number in postings:
        post(target, payment, f"{payment}{number}")
        keys[payment].add(f"{payment}{number}")
    settled = sum(target.vocabulary[payment] for payment, posted in keys.items() if posted)
    assert target.settled() == settled
    assert target.intact() == all(len(posted) <= 1 for posted in keys.values())
