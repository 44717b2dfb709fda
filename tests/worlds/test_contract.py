"""What holds for every world."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.core.tasks import Task
from evalkit.scenarios.scenario import make_task
from evalkit.worlds import World, WorldError, action_of, world_class, world_kinds
from tests import helpers
from tests.worlds.declarations import KINDS, declared, do, names, undo, world

every_kind = pytest.mark.parametrize("kind", KINDS)


def task_of(kind: str) -> Task:
    spec = declared(kind)
    fields = {"kind": kind, "items": list(spec.items), **spec.options}
    loaded = helpers.scenario([{"say": "Nothing."}], world=fields)
    return make_task(loaded, world(kind))


def test_the_shipped_kinds_are_these() -> None:
    assert set(KINDS) <= set(world_kinds())


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(WorldError, match="unknown world 'garden'; known: items, ledger, inbox, repo, files"):
        world_class("garden")


@every_kind
class TestEveryWorld:
    def test_has_one_enumerating_tool_that_names_each_item_whole(self, kind: str) -> None:
        target = world(kind)
        (tool,) = [tool for tool in target.tools if tool.enumerates]
        listed = task_of(kind).items_in(target.call(tool.name, {}).text)
        assert listed == target.all

    def test_is_open_at_first(self, kind: str) -> None:
        target = world(kind)
        assert (target.settled(), target.progress(), target.holds()) == (0, 0, False)
        assert not target.artifact()

    @pytest.mark.long
    def test_is_acted_on_from_whatever_thread_a_harness_calls_it_in(self, kind: str) -> None:
        target = world(kind)
        with ThreadPoolExecutor(1) as pool:
            for item in names(kind):
                pool.submit(do, target, item).result()
        assert target.holds()

    @pytest.mark.long
    def test_is_done_when_each_item_is(self, kind: str) -> None:
        target = world(kind)
        seen = [target.progress()]
        for item in names(kind):
            do(target, item)
            seen.append(target.progress())
            assert target.reads_done(item)
        assert target.holds()
        assert target.artifact()
        assert sorted(set(seen)) == seen
        assert target.check("full").met

    @pytest.mark.long
    def test_undoing_opens_an_item_again(self, kind: str) -> None:
        target = world(kind)
        first, second, _ = names(kind)
        do(target, first)
        do(target, second)
        undo(target, first)
        assert target.settled() == target.bits((second,))
        assert not target.reads_done(first)

    def test_a_fork_goes_its_own_way(self, kind: str) -> None:
        one = world(kind)
        first, second, _ = names(kind)
        do(one, first)
        other = one.fork()
        assert other.key() == one.key()
        do(other, second, "2")
        assert one.settled() == one.bits((first,))
        assert other.settled() == one.bits((first, second))
        assert other.key() != one.key()
        assert one.effects != other.effects
        other.close()
        do(one, second, "3")
        assert one.settled() == one.bits((first, second))

    def test_equal_ways_have_equal_keys(self, kind: str) -> None:
        one, other = world(kind), world(kind)
        for target in (one, other):
            do(target, names(kind)[0])
        assert one.key() == other.key()
        one.skip(one.bits(names(kind)[1:2]))
        assert one.key() != other.key()

    def test_effects_are_journalled_by_logical_action(self, kind: str) -> None:
        target = world(kind)
        tools = {tool.name: tool for tool in target.tools}
        calls = [call for item in names(kind) for call in target.settle_calls(item, "1")]
        actions = {action_of(tools[tool], arguments) for tool, arguments in calls}
        for item in names(kind):
            do(target, item)
        assert set(target.effects) <= actions
        assert set(target.effects.values()) == {1}

    def test_reading_has_no_effect(self, kind: str) -> None:
        target = world(kind)
        do(target, names(kind)[0])
        before = target.key(), dict(target.effects)
        for tool in target.tools:
            if tool.read_only and not tool.arguments:
                target.perform(tool.name, {})
        tool_name, arguments = target.read_call(names(kind)[0])
        assert not target.perform(tool_name, arguments).error
        assert (target.key(), target.effects) == before

    def test_checks_see_what_their_level_allows(self, kind: str) -> None:
        target = world(kind)
        first, second, third = names(kind)
        assert target.check("none").met
        do(target, first)
        assert target.check("weak").gaps == target.bits((second,))
        do(target, second)
        assert target.check("weak").met
        assert target.check("full").gaps == target.bits((third,))

    def test_a_skip_settles_only_what_may_be_skipped(self, kind: str) -> None:
        first, second, _ = names(kind)
        target = world(kind, skippable=(first,))
        target.skip(target.bits((first, second)))
        assert target.settled() == target.bits((first,))

    def test_gated_items_wait_for_approval(self, kind: str) -> None:
        first = names(kind)[0]
        target = world(kind, gated=(first,))
        tool, arguments = target.settle_calls(first, "1")[0]
        refused = target.perform(tool, arguments)
        assert refused.error
        assert "approval" in refused.text
        assert not target.effects
        target.approve(target.bits((first,)))
        do(target, first)
        assert target.settled() == target.bits((first,))

    def test_a_harness_learns_items_from_what_it_observes(self, kind: str) -> None:
        """Each item's work leaves a record of success for it and for no other."""
        task, target = task_of(kind), world(kind)
        for item, bit in task.vocabulary.items():
            proven = 0
            for tool, arguments in target.settle_calls(item, "1"):
                outcome = target.perform(tool, arguments)
                about = task.items_of_call(task.tools[tool], arguments, outcome.text, outcome.error)
                assert about in (0, bit)
                if task.tools[tool].does:
                    proven |= about
            assert proven == bit

    def test_noise_surrounds_every_answer(self, kind: str) -> None:
        target = world(kind, noise="-- mail footer --")
        for tool in target.tools:
            if not tool.arguments:
                assert target.call(tool.name, {}).text.startswith("-- mail footer --\n")
        assert target.call("no_such_tool", {}).text.startswith("-- mail footer --\n")

    def test_unknown_tools_are_errors(self, kind: str) -> None:
        outcome = world(kind).perform("no_such_tool", {"item": "first"})
        assert outcome.error
        assert "no tool 'no_such_tool'" in outcome.text


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=12),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)
ODD = ["first", "second", "../x", "/x\ud800", "a/b", ".git/x", "\ud800", "a\0b", "x" * 3000, "test_first"]
WORLDS: dict[str, World] = {kind: world(kind) for kind in KINDS}


@pytest.mark.long
@given(
    kind=st.sampled_from(KINDS),
    place=st.integers(0, 9),
    values=st.lists(anything | st.sampled_from(ODD), max_size=3),
)
@settings(max_examples=300, deadline=None)
def test_no_arguments_make_a_tool_raise(kind: str, place: int, values: list[Any]) -> None:
    target = WORLDS[kind].fork()
    tool = target.tools[place % len(target.tools)]
    if tool.name == "run":
        # Any text is a command: what a shell makes of it is tested elsewhere.
        values = [value for value in values if not isinstance(value, str)]
    arguments = dict(zip(tool.arguments, values, strict=False))
    outcome = target.perform(tool.name, arguments)
    outcome.text.encode()
    assert set(target.effects) <= {action_of(tool, arguments)}
    target.close()
