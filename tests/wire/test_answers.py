"""Turns written in each dialect are what the real SDKs parse, and read back as they were."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.beta import BetaMessage
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from evalkit.core.turns import Call, ServerCall, Text, Thinking, Turn, make_turn
from evalkit.wire.answers import Outgoing, with_ids
from evalkit.wire.codecs import CODECS, decode_stream
from evalkit.wire.dialects import DIALECTS, Dialect
from evalkit.wire.expressible import unsayable
from tests.wire.sdks import through

QUICK = settings(deadline=None, max_examples=60)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ARGUMENTS = st.sampled_from(
    ['{"item":"users"}', "{}", '{"done":["a","é"],"n":[1,2.5,null]}', '{"item":"us', '{"i']
)
BLOCKS = st.one_of(
    st.builds(Text, WORDS, st.sampled_from([None, None, "commentary", "final_answer"])),
    st.builds(Thinking, WORDS),
    st.builds(Call, st.just("c"), st.sampled_from(["do_item", "finish_task"]), ARGUMENTS),
    st.builds(ServerCall, st.just("s"), st.sampled_from(["web_search", "code_execution"]), st.none() | WORDS),
)
STOPS = st.sampled_from(
    [
        ("end_turn", None, None),
        ("tool_use", None, None),
        ("pause_turn", None, None),
        ("compaction", None, None),
        ("max_tokens", None, None),
        ("context_window", None, None),
        ("stop_sequence", None, None),
        ("refusal", None, None),
        ("refusal", None, "cyber"),
        ("refusal", None, "reasoning_extraction"),
        ("unknown", "null", None),
        ("unknown", "brand_new", None),
    ]
)


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    stop, native, category = draw(STOPS)
    made = make_turn(tuple(draw(st.lists(BLOCKS, max_size=5))), stop, native=native, category=category)
    return with_ids(made, "call", 1)[0]


@pytest.mark.long
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
@QUICK
@given(turn=turns())
def test_what_a_dialect_can_say_survives_the_real_sdk(dialect: Dialect, streamed: bool, turn: Turn) -> None:
    read = through(dialect, turn, streamed=streamed).turn
    reason = unsayable(dialect, turn, streamed=streamed)
    same = (
        read.stop == turn.stop,
        turn.stop != "unknown" or read.native == turn.native,
        turn.stop != "refusal" or read.category == turn.category,
        read.calls == turn.calls,
        read.text == turn.text,
        [b for b in read.content if isinstance(b, Thinking)]
        == [b for b in turn.content if isinstance(b, Thinking)],
        [(b.name, b.result) for b in read.content if isinstance(b, ServerCall)]
        == [(b.name, b.result) for b in turn.content if isinstance(b, ServerCall)],
        [b.phase for b in read.content if isinstance(b, Text)]
        == [b.phase for b in turn.content if isinstance(b, Text)]
        or dialect != "responses",
    )
    if reason is None:
        assert all(same), same
    if not all(same):
        assert reason is not None


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["anthropic", "responses"])
@QUICK
@given(turn=turns())
def test_where_blocks_have_an_order_it_survives(dialect: Dialect, turn: Turn) -> None:
    read = through(dialect, turn, streamed=True).turn
    if unsayable(dialect, turn, streamed=True) is None:
        assert [type(block) for block in read.content] == [type(block) for block in turn.content]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_usage_and_id_are_read(dialect: Dialect, streamed: bool) -> None:
    turn = make_turn((Text("four words of text"),), "end_turn")
    answer = through(dialect, turn, streamed=streamed)
    assert (answer.id, answer.input_tokens, answer.output_tokens) == (
        f"{CODECS[dialect].answer}_1",
        7,
        turn.tokens,
    )


# Strict types

#: Labels and names that the SDKs' own types know; the others are new to them by intent.
KNOWN: dict[Dialect, Turn] = {
    "anthropic": make_turn(
        (
            Thinking("first"),
            Text("I look it up."),
            ServerCall("srv_1", "web_search", "found"),
            ServerCall("srv_2", "code_execution", "42"),
            ServerCall("srv_3", "web_search"),
            Call("toolu_1", "do_item", '{"item":"users"}'),
        ),
        "tool_use",
    ),
    "responses": make_turn(
        (
            Thinking("first"),
            Text("Working.", "commentary"),
            ServerCall("mcp_1", "web_search", "found"),
            ServerCall("mcp_2", "web_search"),
            Call("call_1", "do_item", '{"item":"users"}'),
            Text("Done.", "final_answer"),
        ),
        "tool_use",
    ),
    "chat": make_turn((Text("Working."), Call("call_1", "do_item", '{"item":"users"}')), "tool_use"),
}
BODIES: dict[Dialect, Any] = {"anthropic": Message, "responses": Response, "chat": ChatCompletion}
EVENTS: dict[Dialect, Any] = {
    "anthropic": RawMessageStreamEvent,
    "responses": ResponseStreamEvent,
    "chat": ChatCompletionChunk,
}
ENDS: dict[Dialect, tuple[Turn, ...]] = {
    "anthropic": tuple(
        make_turn((Text("So"),), stop, category=category)
        for stop, category in (
            ("end_turn", None),
            ("max_tokens", None),
            ("context_window", None),
            ("pause_turn", None),
            ("stop_sequence", None),
            ("refusal", "bio"),
        )
    ),
    "responses": tuple(
        make_turn((Text("So"),), stop)
        for stop in ("end_turn", "max_tokens", "refusal", "failed", "cancelled")
    ),
    "chat": tuple(make_turn((Text("So"),), stop) for stop in ("end_turn", "max_tokens", "refusal")),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_bodies_and_events_are_of_the_sdks_strict_types(dialect: Dialect) -> None:
    body, event = TypeAdapter(BODIES[dialect]), TypeAdapter(EVENTS[dialect])
    for turn in (KNOWN[dialect], *ENDS[dialect], make_turn((), "end_turn")):
        out = Outgoing(turn, f"{CODECS[dialect].answer}_1", limit=20, polls=1, background=True)
        body.validate_python(CODECS[dialect].body(out))
        for name, data in CODECS[dialect].events(out):
            if data.get("type") != "ping":
                event.validate_python(data)
                assert name == data.get("type")


def test_a_compaction_is_a_label_of_the_beta_types() -> None:
    out = Outgoing(make_turn((Text("So"),), "compaction"), "msg_1")
    TypeAdapter(BetaMessage).validate_python(CODECS["anthropic"].body(out))


# Odd input: decoders never raise

FIELDS = (
    "type",
    "content",
    "output",
    "choices",
    "message",
    "tool_calls",
    "function",
    "usage",
    "status",
    "stop_reason",
    "delta",
    "index",
    "id",
    "error",
    "text",
    "input",
    "arguments",
    "item",
    "response",
    "finish_reason",
    "name",
)


@pytest.mark.parametrize("dialect", DIALECTS)
@QUICK
@given(
    body=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(FIELDS),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
def test_decoders_never_raise(dialect: Dialect, body: Any) -> None:
    if isinstance(body, dict):
        CODECS[dialect].decode(body)
        decode_stream(dialect, [body, body])


def test_a_stream_that_only_stops_is_no_answer() -> None:
    for dialect in DIALECTS:
        out = Outgoing(KNOWN[dialect], f"{CODECS[dialect].answer}_1")
        events = [data for _, data in CODECS[dialect].events(out)]
        for length in range(len(events) - 2):
            answer = decode_stream(dialect, events[:length])
            assert (answer.turn.kind, answer.turn.native) == ("failed", "cut_no_end")


class TestOddAnswers:
    """What no API should send and some do: read, and named in the label."""

    def test_two_finish_markers_in_one_stream(self) -> None:
        def chunk(**choice: Any) -> dict[str, Any]:
            return {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": None, **choice}]}

        said = chunk(delta={"content": "Sent."})
        once = [said, chunk(finish_reason="stop")]
        twice = [*once, chunk(finish_reason="tool_calls")]
        assert decode_stream("chat", once).turn.native == "stop"
        turn = decode_stream("chat", twice).turn
        assert (turn.stop, turn.native, turn.text) == ("tool_use", "stop, then tool_calls", "Sent.")
        assert decode_stream("chat", [*once, once[-1]]).turn.native == "stop"

    def test_two_of_them_in_a_stream_of_messages(self) -> None:
        events = [
            {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        ]
        turn = decode_stream("anthropic", events).turn
        assert (turn.stop, turn.native) == ("end_turn", "max_tokens, then end_turn")

    @pytest.mark.parametrize(
        ("status", "said"), [("completed", ", with a completed function_call"), ("incomplete", "")]
    )
    def test_a_completed_call_in_an_incomplete_response(self, status: str, said: str) -> None:
        call = {
            "type": "function_call",
            "call_id": "c",
            "name": "do_item",
            "arguments": "{}",
            "status": status,
        }
        body = {
            "id": "r",
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
            "output": [call],
        }
        turn = CODECS["responses"].decode(body).turn
        assert (turn.kind, turn.native) == ("cut_off", f"incomplete/max_output_tokens{said}")

    def test_cited_text_is_whole_sentences(self) -> None:
        cited = {"type": "text", "text": "the tests pass", "citations": [{"type": "char_location"}]}
        content = [
            {"type": "text", "text": "The log says that "},
            cited,
            {"type": "text", "text": ". TERMINATE"},
        ]
        body = {"type": "message", "content": content, "stop_reason": "end_turn"}
        assert CODECS["anthropic"].decode(body).turn.text == "The log says that the tests pass. TERMINATE"
        apart = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two.", "citations": None}]
        assert CODECS["anthropic"].decode({**body, "content": apart}).turn.text == "One.\nTwo."

    def test_citations_of_a_stream_are_kept_for_sending_back(self) -> None:
        events = [
            {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "It is "}},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "green."}},
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "citations_delta", "citation": {"x": 1}},
            },
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        ]
        answer = decode_stream("anthropic", events)
        assert answer.turn.text == "It is green."
        assert answer.raw[1]["citations"] == [{"x": 1}]
