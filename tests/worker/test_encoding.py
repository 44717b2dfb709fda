"""What is kept comes back as it was, whatever a model or a user's fold put into it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.core.requests import Request, Result
from evalkit.core.turns import Call, Finish, ServerCall, Text, Thinking, make_turn
from evalkit.loop.state import State
from evalkit.worker.encoding import (
    dump_request,
    dump_state,
    dump_turn,
    echo_of,
    load_request,
    load_state,
    load_turn,
)

#: All that JSON may hold: lone surrogates and null characters too.
words = st.text(st.characters(), max_size=12) | st.just("\ud800 \x00 \U0001f600")
results = st.builds(Result, words, words, st.booleans())
blocks = st.one_of(
    st.builds(Text, words, st.none() | words),
    st.builds(Thinking, words),
    st.builds(Call, words, words, words),
    st.builds(ServerCall, words, words, st.none() | words),
)
stops = st.sampled_from(["end_turn", "tool_use", "pause_turn", "max_tokens", "refusal", "unknown"])
finishes = st.none() | st.builds(Finish, st.tuples(words), st.tuples(words), words)
turns = st.builds(
    lambda content, stop, native, claim, told: make_turn(
        tuple(content), stop, native=native, claim=claim, told=told
    ),
    st.lists(blocks, max_size=3),
    stops,
    st.none() | words,
    st.sampled_from(["none", "partial", "blocked", "done"]),
    finishes,
)
memories = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)
counts = st.integers(0, 1_000_000)
states = st.builds(
    State,
    turns=counts,
    nudges=counts,
    ran=st.booleans(),
    succeeded_actions=st.frozensets(words, max_size=3),
    guard=st.none() | st.tuples(st.integers(0, 1 << 200), words),
    skips=st.tuples(words),
    folds=st.tuples(memories, memories),
)


@pytest.mark.long
@settings(deadline=None)
@given(turns)
def test_a_turn_comes_back(turn: object) -> None:
    text = dump_turn(turn)  # type: ignore[arg-type]
    assert text.isascii()
    assert "\x00" not in text
    assert load_turn(text) == turn


@pytest.mark.long
@settings(deadline=None)
@given(states)
def test_a_state_comes_back(state: State) -> None:
    text = dump_state(state)
    assert text.isascii()
    assert load_state(text) == state


def test_a_state_holds_more_items_than_a_machine_word() -> None:
    state = State(folds=((1 << 300) - 1,))
    assert load_state(dump_state(state)) == state


def test_a_memory_that_cannot_be_kept_is_named() -> None:
    with pytest.raises(TypeError, match="memory of type list cannot be kept; allowed: None, bool, int"):
        dump_state(State(folds=([1],)))  # type: ignore[arg-type]


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(turns, min_size=1, max_size=3), st.lists(results, max_size=2), st.none() | words, counts)
def test_a_request_comes_back_with_the_turn_that_it_sends_back(
    delivered: list[object], answered: list[Result], text: str | None, limit: int
) -> None:
    for echo in (None, *range(1, len(delivered) + 1)):
        sent_back = None if echo is None else delivered[echo - 1]
        request = Request(sent_back, tuple(answered), text, limit, "fallback", echo == 1)  # type: ignore[arg-type]
        assert load_request(dump_request(request, echo), delivered) == (request, echo)  # type: ignore[arg-type]


def test_what_asks_again_sends_back_what_the_request_before_did() -> None:
    turn = make_turn((Text("a"),), "end_turn")
    assert echo_of(Request(), 3, 2) is None
    assert echo_of(Request(turn), 3, 2) == 3
    assert echo_of(Request(turn, again=True), 3, 2) == 2


def test_a_state_that_was_kept_before_there_was_more_to_keep_is_read() -> None:
    kept = dump_state(State(turns=3, succeeded_items=(1, 2)))
    values = json.loads(kept)
    older = json.dumps(values[: State.__struct_fields__.index("overflows")])
    assert load_state(older) == State(turns=3, succeeded_items=(1, 2))
    new = State(overflows=1, calls=4, spent=(100, 0.5), undone=(("refund_payment", 1, 2),))
    assert load_state(dump_state(new)) == new


def test_a_request_that_was_shortened_comes_back() -> None:
    request = Request(shortened=True, limit=10)
    assert load_request(dump_request(request, None), []) == (request, None)
