"""The world of items in memory."""

from __future__ import annotations

from itertools import pairwise

import pytest

from evalkit.core.decisions import Verdict
from evalkit.worlds import WorldError, make_world
from evalkit.worlds.base import action_of
from tests.helpers import scenario
from tests.worlds.declarations import do, world


def test_doing_a_forbidden_item_breaks_the_invariant() -> None:
    target = world("items", forbidden=("secret",))
    for item in ("first", "second", "third"):
        do(target, item)
    assert target.holds()
    do(target, "secret")
    assert not target.holds()
    verdict = target.check("full")
    assert verdict == Verdict(False, "an invariant is broken", 0, True)
    assert target.check("weak").met


def test_only_what_does_an_item_can_be_one_too_many() -> None:
    once = world("items", once=True)
    assert {tool.name for tool in once.tools if once.once_only(tool)} == {"do_item"}
    many = world("items")
    assert not any(many.once_only(tool) for tool in many.tools)


def test_weak_checks_are_the_first_half_rounded_up_or_as_declared() -> None:
    assert world("items").weak == 0b011
    assert world("items", weak_checks=("third",)).weak == 0b100
    assert world("items", weak_checks=()).check("weak").met


def test_nothing_is_done_skipped_or_approved_at_the_start() -> None:
    target = world("items", skippable=("first",), gated=("first", "second"))
    assert target.progress() == 0
    assert target.call("do_item", {"item": "first"}).error
    target.skip(1)
    assert target.progress() == 1


def test_reading_tells_open_from_done() -> None:
    target = world("items")
    assert target.call("read_item", {"item": "first"}).text == "first: open"
    do(target, "first")
    assert target.call("read_item", {"item": "first"}).text == "first: done"


def test_doing_again_is_a_second_execution() -> None:
    target = world("items")
    do(target, "first")
    do(target, "first")
    assert target.effects == {"do_item first": 2}


def test_what_leaves_all_as_it_was_is_no_change() -> None:
    target, changes = world("items"), []
    for tool in ("do_item", "do_item", "undo_item", "undo_item", "do_item"):
        target.perform(tool, {"item": "first"})
        changes.append(target.changes)
    assert changes == [1, 1, 2, 2, 3]
    # Words that a tool does not look at make no other call of it.
    target.perform("do_item", {"item": "first", "note": "again"})
    target.perform("do_item", {"item": ["first"]})
    assert target.changes == 3


def test_a_tool_may_be_dangerous_with_empty_arguments() -> None:
    target = world("items", forbidden=("everything",), options={"unnamed": "everything"})
    assert target.call("read_item", {}).error
    assert target.call("do_item", {"item": None}).error
    assert target.perform("do_item", {}).action == "do_item everything"
    assert not target.intact()
    changes = []
    for _ in range(3):
        target.perform("do_item", {})
        changes.append(target.changes)
    assert changes[0] == changes[1] == changes[2], "done again and again it is no change"
    with pytest.raises(WorldError, match="unnamed: unknown item 'all'"):
        world("items", options={"unnamed": "all"})


def test_a_call_that_only_reads_is_no_action() -> None:
    tools = {tool.name: tool for tool in make_world(scenario([{"work": "rest"}]).world).tools}
    item = {"item": "users"}
    found = {name: action_of(tool, item) for name, tool in tools.items() if tool.item is not None}
    assert found == {"do_item": "do_item users", "undo_item": "undo_item users", "read_item": None}
    assert action_of(tools["do_item"], None) is None


def test_the_world_has_changed_when_something_stands_otherwise() -> None:
    target = world("items")
    changes = [target.changes]
    for tool, item in (
        ("do_item", "first"),
        ("do_item", "second"),
        ("do_item", "second"),
        ("do_item", "second"),
        ("undo_item", "second"),
        ("do_item", "second"),
    ):
        target.perform(tool, {"item": item})
        changes.append(target.changes)
    grown = [after > before for before, after in pairwise(changes)]
    assert grown[:2] == [True, True]
    assert grown[3:] == [False, True, True]
