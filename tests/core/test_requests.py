"""The request rules that all dialects share, and what a request is to the model."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.core.requests import Delivered, Request, Result, neutral_faults, stimulus
from evalkit.core.tasks import FINISH_TOOL, Limits, Task, occurs_whole
from evalkit.core.turns import Call, ServerCall, Text, Turn, count_tokens, make_turn, parse_arguments

TWO = make_turn((Call("a", "do", "{}"), Call("b", "do", "{}")), "tool_use")
PAUSED = make_turn((ServerCall("s", "search"),), "pause_turn")
SAID = make_turn((Text("x"),), "end_turn")
A, B = Result("a", "ok"), Result("b", "ok")


@pytest.mark.parametrize(
    ("turn", "request_", "faults"),
    [
        (TWO, Request(TWO, (A, B)), ()),
        (TWO, Request(TWO, (B, A)), ()),
        (TWO, Request(TWO, (A,)), ("call_without_result",)),
        (TWO, Request(TWO, (A, B, Result("z", ""))), ("result_without_call",)),
        (TWO, Request(TWO, (A, B, B)), ("result_twice",)),
        (TWO, Request(TWO, (A, B), "and go on"), ()),
        (SAID, Request(SAID, (), "go on"), ()),
        (SAID, Request(SAID, (A,)), ("result_without_call",)),
        (PAUSED, Request(PAUSED), ()),
        (PAUSED, Request(PAUSED, (), "go on"), ("pause_followed",)),
        (PAUSED, Request(make_turn((), "pause_turn")), ("pause_changed",)),
        (None, Request(), ()),
        (None, Request(None, (A,)), ("result_without_call",)),
    ],
)
def test_neutral_rules(turn: Turn | None, request_: Request, faults: tuple[str, ...]) -> None:
    assert neutral_faults(turn, request_) == faults


class TestStimulus:
    def test_appended_history_is_no_change(self) -> None:
        moved = stimulus(Delivered(TWO), Request(TWO, (A, B)), FINISH_TOOL)
        assert moved.place == "on"
        assert not moved.changed
        assert not moved.resent

    def test_text_limit_and_model_are(self) -> None:
        assert stimulus(Delivered(SAID), Request(SAID, (), "x"), FINISH_TOOL).changed
        higher = stimulus(Delivered(SAID), Request(limit=9999), FINISH_TOOL)
        assert (higher.changed, higher.higher_limit, higher.place) == (True, True, "on")
        assert stimulus(Delivered(SAID), Request(model="other"), FINISH_TOOL).other_model

    def test_a_paused_turn_is_resent_only_unchanged(self) -> None:
        assert stimulus(Delivered(PAUSED), Request(PAUSED), FINISH_TOOL).resent
        assert not stimulus(Delivered(PAUSED), Request(PAUSED, (), "x"), FINISH_TOOL).resent
        assert not stimulus(Delivered(PAUSED), Request(SAID), FINISH_TOOL).resent

    def test_the_answer_to_a_finish_is_user_text(self) -> None:
        turn = make_turn((Call("f", FINISH_TOOL, "{}"),), "tool_use")
        moved = stimulus(Delivered(turn), Request(turn, (Result("f", "orders missing", True),)), FINISH_TOOL)
        assert moved.rejected
        assert moved.text == "orders missing"


@pytest.mark.parametrize(
    ("word", "text", "whole"),
    [
        ("users", "users", True),
        ("users", "(users), 'orders'.", True),
        ("users", "users.", True),
        ("users", "all-users", False),
        ("users", "users-2", False),
        ("users", "users.py", False),
        ("users", "api/users", False),
        ("users", "superusers", False),
        ("a.b", "see a.b: ok", True),
        ("a.b", "see axb", False),
        ("größe", "die größe!", True),
    ],
)
def test_ids_are_matched_whole(word: str, text: str, whole: bool) -> None:
    assert occurs_whole(word, text) is whole


@given(st.text("ab.-", min_size=1, max_size=3), st.text("ab.-/_ é٣²\n", max_size=8))
def test_whole_is_what_the_pattern_says(word: str, text: str) -> None:
    pattern = rf"(?<![\w./-]){re.escape(word)}(?![\w/-]|\.\w)"
    assert occurs_whole(word, text) == bool(re.search(pattern, text))


def test_bit_sets() -> None:
    task = Task("t", "p", "d", "full", False, {"b": 1, "a": 2}, 0, {}, Limits())
    assert task.names(3) == ("b", "a")
    assert task.items_of(("a", "nobody")) == 2
    assert task.items_in("only a here") == 2


def test_arguments() -> None:
    assert parse_arguments('{"a": 1}') == {"a": 1}
    for broken in ('{"a": ', "[]", "null", "", "{" * 100_000):
        assert parse_arguments(broken) is None


def test_the_token_counter() -> None:
    assert [count_tokens(text) for text in ("", "abc", "abcd", "abcde", "ö" * 4)] == [0, 1, 1, 2, 2]
