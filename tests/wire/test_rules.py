"""Each rule of requests: a request that breaks it, and one that does not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import evalkit.wire
from evalkit.wire.codecs import CODECS
from evalkit.wire.dialects import DIALECTS, Dialect
from evalkit.wire.episode import WireEpisode
from evalkit.wire.rules import NEUTRAL_SOURCES, OTHER_RULES
from tests.wire.wire import WORK, Talk, episode, post, stage

USER = {"role": "user", "content": "go"}
TOOL = {"name": "t", "input_schema": {"type": "object"}}
FUNCTION = {"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}
FLAT = {"type": "function", "name": "t", "parameters": {"type": "object"}}
THINKS = {"type": "enabled", "budget_tokens": 2048}


def say(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


USE = {"type": "tool_use", "id": "a", "name": "t", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "ok"}
FUNCTION_CALL = {"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}
CALLED = {"role": "assistant", "tool_calls": [FUNCTION_CALL]}
TOLD = {"role": "tool", "tool_call_id": "a", "content": "ok"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
SPOKEN_ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]}

#: (dialect, rule): the fields of a request that breaks it, and of one that does not.
CASES: dict[tuple[Dialect, str], tuple[dict[str, Any], dict[str, Any]]] = {
    ("anthropic", "messages_empty"): ({"messages": []}, {"messages": [USER]}),
    ("anthropic", "max_tokens_negative"): ({"max_tokens": -1}, {"max_tokens": 1}),
    ("anthropic", "text_empty"): ({"messages": [say(text(""))]}, {"messages": [say(text("a"))]}),
    ("anthropic", "text_blank"): (
        {"messages": [say(text(" "), text("\n"))]},
        {"messages": [say(text(" "), text("a "))]},
    ),
    ("anthropic", "message_empty"): (
        {"messages": [USER, {"role": "assistant", "content": []}, USER]},
        {"messages": [USER, {"role": "assistant", "content": []}]},
    ),
    ("anthropic", "results_not_first"): (
        {"messages": [USER, {"role": "assistant", "content": [USE]}, say(text("so"), RESULT)]},
        {"messages": [USER, {"role": "assistant", "content": [USE]}, say(RESULT, text("so"))]},
    ),
    ("anthropic", "block_of_other_role"): (
        {"messages": [say(USE)]},
        {"messages": [USER, {"role": "assistant", "content": [USE]}, say(RESULT)]},
    ),
    ("anthropic", "first_not_user"): (
        {"messages": [{"role": "assistant", "content": "so"}, USER]},
        {"messages": [USER, {"role": "assistant", "content": "so"}, USER]},
    ),
    ("anthropic", "thinking_budget"): (
        {"thinking": {"type": "enabled", "budget_tokens": 100}},
        {"thinking": THINKS, "max_tokens": 4096},
    ),
    ("anthropic", "forced_while_thinking"): (
        {"thinking": THINKS, "max_tokens": 4096, "tools": [TOOL], "tool_choice": {"type": "any"}},
        {"thinking": THINKS, "max_tokens": 4096, "tools": [TOOL], "tool_choice": {"type": "auto"}},
    ),
    ("anthropic", "choice_without_tools"): (
        {"tool_choice": {"type": "tool", "name": "u"}, "tools": [TOOL]},
        {"tool_choice": {"type": "tool", "name": "t"}, "tools": [TOOL]},
    ),
    ("responses", "input_missing"): ({"input": []}, {"input": "go"}),
    ("responses", "max_output_tokens_small"): ({"max_output_tokens": 15}, {"max_output_tokens": 16}),
    ("responses", "background_unstored"): (
        {"background": True, "store": False},
        {"background": True, "store": True},
    ),
    ("responses", "choice_without_tools"): (
        {"tool_choice": "required"},
        {"tool_choice": "required", "tools": [FLAT]},
    ),
    ("responses", "reasoning_alone"): (
        {"input": [USER, REASONING, USER]},
        {"input": [USER, REASONING, SPOKEN_ITEM, USER]},
    ),
    ("chat", "messages_empty"): ({"messages": []}, {"messages": [USER]}),
    ("chat", "assistant_empty"): (
        {"messages": [USER, {"role": "assistant", "content": None}, USER]},
        {"messages": [USER, {"role": "assistant", "content": "so"}, USER]},
    ),
    ("chat", "results_not_first"): (
        {"messages": [USER, CALLED, USER, TOLD]},
        {"messages": [USER, CALLED, TOLD, USER]},
    ),
    ("chat", "max_tokens_small"): ({"max_tokens": -1}, {"max_tokens": 1}),
    ("chat", "two_limits"): ({"max_tokens": 9, "max_completion_tokens": 9}, {"max_completion_tokens": 9}),
    ("chat", "stream_options_unstreamed"): (
        {"stream_options": {"include_usage": True}},
        {"stream_options": {"include_usage": True}, "stream": True},
    ),
    ("chat", "choice_without_tools"): (
        {"tool_choice": "required"},
        {"tool_choice": "required", "tools": [FUNCTION]},
    ),
}
#: Rules that need a conversation; each has a test of its own below.
LATER = {
    ("anthropic", "thinking_dropped"),
    ("anthropic", "thread_fields"),
    ("responses", "two_histories"),
}


def base(dialect: Dialect) -> dict[str, Any]:
    return {
        "anthropic": {"model": "m", "max_tokens": 100, "messages": [USER]},
        "responses": {"model": "m", "input": [USER]},
        "chat": {"model": "m", "messages": [USER]},
    }[dialect]


def test_every_rule_is_tested_and_states_its_evidence() -> None:
    rules = {(dialect, rule.name): rule for dialect in DIALECTS for rule in CODECS[dialect].rules}
    assert set(rules) == set(CASES) | LATER
    for rule in rules.values():
        assert rule.evidence in ("documented", "recorded", "assumed")
        assert rule.source


@pytest.mark.parametrize(("dialect", "name"), CASES)
def test_a_rule_refuses_or_warns(dialect: Dialect, name: str) -> None:
    rule = next(rule for rule in CODECS[dialect].rules if rule.name == name)
    broken, kept = CASES[dialect, name]
    played = episode([{"say": "Hello."}])
    reply = post(played, dialect, {**base(dialect), **broken})
    if rule.evidence == "assumed":
        assert reply.status == 200
        assert played.seen.warnings[name] == 1
        assert played.seen.dialect_faults == []
    else:
        error = json.loads(reply.body)["error"]
        assert (reply.status, error["type"]) == (400, "invalid_request_error")
        assert played.seen.dialect_faults == [name]
        assert played.turns == 0
    played = episode([{"say": "Hello."}])
    assert post(played, dialect, {**base(dialect), **kept}).status == 200
    assert not played.seen.warnings[name]
    assert played.seen.dialect_faults == []


def test_a_refusal_names_the_message() -> None:
    played = episode()
    body = {**base("anthropic"), "messages": [USER, say(text("a")), say(text("b"), text(""))]}
    error = json.loads(post(played, "anthropic", body).body)["error"]
    assert error["message"].startswith("messages.2.content.1")
    chat = {**base("chat"), "messages": [USER, {"role": "assistant", "content": None}, USER]}
    assert json.loads(post(played, "chat", chat).body)["error"]["param"] == "messages[1].content"


def test_a_refused_request_moves_nothing_and_counts_once() -> None:
    played = episode()
    broken = {**base("anthropic"), "messages": []}
    for _ in range(3):
        assert post(played, "anthropic", broken).status == 400
    assert played.seen.dialect_faults == ["messages_empty"]
    assert played.script.trace is not None
    assert (played.script.trace.dialect_faults, played.script.trace.protocol_faults) == (1, [])
    assert post(played, "anthropic", base("anthropic")).said == "turn 1: list_items"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", None),
        ("messages", None),
        ("messages", [3]),
        ("messages", [{"role": "tool"}]),
        ("input", 3),
        ("input", [3]),
    ],
)
def test_a_body_of_another_shape_is_refused_in_the_api_s_shape(
    dialect: Dialect, field: str, value: Any
) -> None:
    if field not in base(dialect):
        return
    reply = post(episode(), dialect, {**base(dialect), field: value})
    assert reply.status == 400
    assert json.loads(reply.body)["error"]["message"]


def test_rules_held_elsewhere_state_their_evidence_too() -> None:
    found: set[str] = set()
    for path in Path(evalkit.wire.__file__).parent.rglob("*.py"):
        words = r'(?:BadRequest|shape)\(\s*"(\w+)"'
        found |= set(re.findall(words, path.read_text(encoding="utf-8")))
    stated = {name for _, name in OTHER_RULES}
    assert found - {"over", "no_such_path"} == stated


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(raw: bytes) -> None:
    assert episode().post("anthropic", raw).status == 400


# The neutral rules


def broken_join(dialect: Dialect, rule: str) -> Talk:
    """A conversation whose next request breaks a neutral rule at its join."""
    talk = Talk(episode(WORK), dialect)
    talk.ask()
    talk.back()
    if rule == "call_without_result":
        talk.user("And?")
    elif rule == "result_twice":
        talk.results()
        talk.results()
    else:
        talk.results()
        called = talk.said[-1]
        if dialect == "anthropic":
            talk.said[-1] = {**called, "content": [*called["content"], {**RESULT, "tool_use_id": "stray"}]}
        else:
            key = "call_id" if dialect == "responses" else "tool_call_id"
            talk.said.append({**called, key: "stray"})
    return talk


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("rule", ["call_without_result", "result_without_call", "result_twice"])
def test_neutral_rules_are_refused_and_counted(dialect: Dialect, rule: str) -> None:
    talk = broken_join(dialect, rule)
    talk.ask()
    assert talk.reply.status == 400
    assert talk.reply.said == f"refused: {rule}"
    trace = talk.played.script.trace
    assert trace is not None
    assert rule in trace.protocol_faults
    before = len(trace.protocol_faults)
    talk.ask()
    assert len(trace.protocol_faults) == before
    assert talk.played.seen.dialect_faults == []
    assert rule in NEUTRAL_SOURCES


def test_a_missing_result_names_message_and_call() -> None:
    talk = broken_join("anthropic", "call_without_result")
    talk.ask()
    message = json.loads(talk.reply.body)["error"]["message"]
    assert message.startswith("messages.1: ")
    assert talk.answer.turn.calls[0].id in message


@pytest.mark.parametrize("rule", ["pause_changed", "pause_followed"])
def test_a_paused_turn_must_come_back_alone_and_unchanged(rule: str) -> None:
    talk = Talk(episode([{"pause": {"text": "Searching."}}, {"say": "Found."}]))
    talk.ask()
    talk.back()
    if rule == "pause_changed":
        talk.said[-1] = {"role": "assistant", "content": [{**block} for block in talk.answer.raw[:1]]}
    else:
        talk.user("Go on.")
    talk.ask()
    assert talk.reply.said == f"refused: {rule}"


# Rules of a conversation


def test_thinking_must_come_back_during_tool_use() -> None:
    model = [{"turn": [{"think": "first"}, {"call": "list_items"}]}, {"say": "Done."}]
    talk = Talk(episode(model), thinking=THINKS, max_tokens=4096)
    talk.ask()
    talk.back()
    talk.results()
    whole = talk.said
    talk.said = [whole[0], {"role": "assistant", "content": talk.answer.raw[1:]}, *whole[2:]]
    talk.ask()
    assert talk.reply.said == "refused: thinking_dropped"
    talk.said = whole
    assert talk.ask().turn.text == "Done."


def test_a_thread_keeps_its_tools() -> None:
    talk = Talk(episode())
    thread = {"type": "continue", "previous_message_id": talk.ask(thread={"type": "create"}).id}
    talk.said = []
    talk.results()
    talk.ask(thread=thread, tools=[TOOL])
    details = json.loads(talk.reply.body)["error"]["details"]
    assert details == {"error_code": "thread_fingerprint_mismatch"}
    assert talk.ask(thread=thread).turn.kind == "content"


@pytest.mark.parametrize(("name", "status"), [("msg_000009", 404), ("nonsense", 404)])
def test_an_unknown_thread_is_not_found(name: str, status: int) -> None:
    talk = Talk(episode())
    talk.ask(thread={"type": "continue", "previous_message_id": name})
    assert talk.reply.status == status
    assert json.loads(talk.reply.body)["error"]["details"]["error_code"] == "thread_not_found"


def test_a_thread_is_continued_once() -> None:
    talk = Talk(episode())
    thread = {"type": "continue", "previous_message_id": talk.ask(thread={"type": "create"}).id}
    talk.said = []
    talk.results()
    talk.ask(thread=thread)
    assert talk.ask(thread=thread, retried=True).turn.calls[0].tool == "do_item"
    talk.ask(thread=thread)
    assert json.loads(talk.reply.body)["error"]["details"]["error_code"] == "thread_already_continued"


def test_an_unknown_response_is_not_found() -> None:
    talk = Talk(episode(), "responses")
    talk.ask(previous_response_id="resp_000001")
    assert json.loads(talk.reply.body)["error"]["code"] == "previous_response_not_found"
    first = talk.ask(store=False)
    talk.ask(previous_response_id=first.id)
    assert json.loads(talk.reply.body)["error"]["code"] == "previous_response_not_found"


def test_a_response_has_one_history() -> None:
    talk = Talk(episode(), "responses")
    first = talk.ask()
    talk.said = []
    talk.results()
    talk.ask(previous_response_id=first.id, conversation="conv_1")
    assert talk.reply.said == "refused: two_histories"
    assert talk.ask(previous_response_id=first.id).turn.kind == "content"


def test_words_under_a_forced_tool_choice_are_counted_as_unreachable() -> None:
    played = WireEpisode(stage([{"say": "Done."}]))
    post(played, "chat", {**base("chat"), "tools": [FUNCTION], "tool_choice": "required"})
    assert played.seen.unreachable == {"a tool call was forced": 1}


def test_a_call_where_calls_are_switched_off_is_counted_as_unreachable() -> None:
    played = WireEpisode(stage([{"call": "list_items"}]))
    post(played, "chat", {**base("chat"), "tools": [FUNCTION], "tool_choice": "none"})
    assert played.seen.unreachable == {"tool calls were switched off": 1}


@pytest.mark.parametrize(
    ("tools", "unreachable"),
    [
        ([], {"no server tool was offered": 1}),
        ([{"type": "bash_20250124", "name": "bash"}], {"no server tool was offered": 1}),
        ([{"type": "web_search_20250305", "name": "web_search"}], {}),
    ],
)
def test_a_server_tool_that_was_not_offered_is_counted_as_unreachable(
    tools: list[dict[str, str]], unreachable: dict[str, int]
) -> None:
    played = WireEpisode(stage([{"pause": {}}, {"say": "Done."}]))
    post(played, "anthropic", {**base("anthropic"), "tools": tools})
    assert played.seen.unreachable == unreachable
