"""Where a request stands: behind the last turn, at an earlier one, at the beginning, or nowhere."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from evalkit.core.trace import Trace
from evalkit.wire.dialects import DIALECTS, Dialect
from tests.wire.wire import WORK, Talk, episode, post, read

BOTH = pytest.mark.parametrize("dialect", DIALECTS)
LEDGER = {"kind": "ledger", "items": ["users", "orders", "invoices"]}
POSTS = [{"call": "list_payments"}, {"work": "rest"}, {"say": "All is posted.", "claim": "done"}]


def trace(talk: Talk) -> Trace:
    observed = talk.played.script.trace
    assert observed is not None
    return observed


def said(talk: Talk) -> list[str]:
    """What the last turn asks for, keys aside."""
    calls = talk.answer.turn.calls
    return [call.arguments.partition(',"key"')[0] for call in calls] or [talk.answer.turn.text]


@BOTH
def test_an_earlier_turn_is_gone_back_to(dialect: Dialect) -> None:
    talk = Talk(episode(), dialect)
    talk.ask()
    talk.on()
    early, first = copy.deepcopy(talk.said), said(talk)
    talk.on()
    talk.on()
    assert trace(talk).rolled_back == 0
    # The harness knows nothing of what came after the first listing.
    talk.said = early
    talk.ask()
    assert said(talk) == first
    assert (trace(talk).rolled_back, trace(talk).amnesia) == (3, 0)
    assert talk.on().turn.text == "One of three is done."


@BOTH
def test_the_last_request_again_is_decided_anew_where_its_turn_arrived(dialect: Dialect) -> None:
    talk = Talk(episode(), dialect)
    talk.ask()
    talk.on()
    first = said(talk)
    talk.ask()
    assert said(talk) == first
    assert trace(talk).rolled_back == 1
    assert trace(talk).turns == 3


@BOTH
def test_results_that_differ_extend_the_same_point(dialect: Dialect) -> None:
    talk = Talk(episode(), dialect)
    talk.ask()
    talk.back()
    known = copy.deepcopy(talk.said)
    answer = talk.answer
    talk.results("ok")
    talk.ask()
    first = said(talk)
    # The same turn answered otherwise: a checkpoint before the tool ran.
    talk.said, talk.answer = known, answer
    talk.results("failed")
    talk.ask()
    assert said(talk) == first
    assert trace(talk).rolled_back == 1


@BOTH
@pytest.mark.parametrize("turn", [{"truncate": "text"}, {"refuse": {}}, {"empty": True}])
def test_asking_again_after_what_is_no_answer_is_a_step(dialect: Dialect, turn: dict[str, Any]) -> None:
    talk = Talk(episode([{"call": "list_items"}, turn, {"say": "Here.", "claim": "none"}]), dialect)
    talk.ask()
    talk.on()
    assert talk.ask().turn.text == "Here."
    assert trace(talk).rolled_back == 0


def anew(talk: Talk) -> None:
    """A harness that has forgotten all and starts the whole conversation again."""
    talk.said = talk.said[:1]
    talk.ask()


@BOTH
def test_a_ledger_meets_the_beginning_again_without_the_fault(dialect: Dialect) -> None:
    model = [*POSTS[:2], {"fault": {"status": 500}}, POSTS[2]]
    talk = Talk(episode(model, world=LEDGER), dialect)
    talk.ask()
    listed = said(talk)
    for _ in range(3):
        talk.on()
    assert talk.on().turn.kind == "failed"
    anew(talk)
    assert said(talk) == listed
    assert (trace(talk).amnesia, trace(talk).rolled_back) == (1, 4)
    keys = {call.arguments for call in talk.on().turn.calls}
    for _ in range(2):
        keys |= {call.arguments for call in talk.on().turn.calls}
    assert len(keys) == 3
    # The fault was met once and does not come again.
    assert talk.on().turn.text == "All is posted."


@BOTH
def test_calls_made_again_after_a_rollback_are_no_more_calls(dialect: Dialect) -> None:
    talk = Talk(episode(POSTS, world=LEDGER), dialect)
    talk.ask()
    talk.on()
    before = dict(trace(talk).called)
    anew(talk)
    talk.on()
    assert trace(talk).called == before


def test_a_prompt_of_other_words_is_amnesia_and_keeps_the_place_where_nothing_restarts() -> None:
    talk = Talk(episode())
    talk.ask()
    talk.on()
    talk.said = [{"role": "user", "content": "You were interrupted. Do every item."}]
    assert talk.ask().turn.text == "One of three is done."
    assert (trace(talk).amnesia, trace(talk).rolled_back) == (1, 0)


def test_the_same_restarts_where_the_scenario_says_so() -> None:
    talk = Talk(episode(WORK, restarts=True))
    talk.ask()
    listed = said(talk)
    talk.on()
    talk.said = [{"role": "user", "content": "You were interrupted. Do every item."}]
    talk.ask()
    assert said(talk) == listed
    assert trace(talk).amnesia == 1


def test_a_helper_s_own_conversation_restarts_nothing() -> None:
    talk = Talk(episode(WORK, restarts=True))
    talk.ask()
    main = copy.deepcopy(talk.said), talk.answer
    talk.said = [{"role": "user", "content": "You read logs. Which day is it?"}]
    talk.ask()
    assert (trace(talk).amnesia, trace(talk).rolled_back) == (0, 0)
    talk.said, talk.answer = main
    assert talk.on().turn.kind == "content"


def test_two_branches_at_once_are_two_conversations() -> None:
    played = episode()
    talk = Talk(played)
    talk.ask()
    talk.back()
    talk.results()
    one = read("anthropic", post(played, "anthropic", talk.body())).turn
    reply = played.post("anthropic", json.dumps(talk.body()).encode(), beside=True)
    played.delivered(reply.turn)
    two = read("anthropic", reply).turn
    assert one.calls[0].arguments == two.calls[0].arguments
    assert (trace(talk).concurrent_runs, trace(talk).rolled_back) == (1, 0)


def test_each_branch_goes_on_for_itself() -> None:
    talk = Talk(episode())
    talk.ask()
    talk.back()
    talk.results()
    fork = copy.deepcopy(talk.said)
    talk.ask()
    branch, answer = talk.said, talk.answer
    talk.said = fork
    talk.ask()
    talk.back()
    talk.results("done there")
    assert talk.ask().turn.text == "One of three is done."
    talk.said, talk.answer = branch, answer
    assert talk.on().turn.text == "One of three is done."
    # Nothing was forgotten after all: each is a conversation of its own.
    assert (trace(talk).rolled_back, trace(talk).concurrent_runs) == (0, 1)


@BOTH
def test_a_trimmed_history_that_ends_in_the_last_turn_keeps_the_place(dialect: Dialect) -> None:
    talk = Talk(episode(), dialect)
    talk.ask()
    talk.on()
    prompt = talk.said[:1]
    talk.said = list(prompt)
    talk.back()
    talk.results()
    assert talk.ask().turn.text == "One of three is done."
    assert (trace(talk).amnesia, trace(talk).rolled_back) == (0, 0)


def test_a_shorter_request_gets_past_a_full_window_and_no_other_does() -> None:
    full = {"fault": {"status": 400, "window": "full"}}
    talk = Talk(episode([{"call": "list_items"}, {"work": 1}, full, {"say": "Through."}]))
    talk.ask()
    talk.on()
    assert talk.on().turn.kind == "failed"
    assert "too long" in talk.reply.body.decode()
    talk.user("Please go on.")
    assert talk.ask().turn.kind == "failed"
    talk.said = talk.said[:1]
    talk.back()
    talk.results()
    assert talk.ask().turn.text == "Through."


@BOTH
def test_turns_of_the_same_words_in_a_row_are_told_apart(dialect: Dialect) -> None:
    again = {"repeat": {"times": 3, "do": [{"say": "Wait.", "claim": "none"}]}}
    talk = Talk(episode([again, {"say": "Here.", "claim": "none"}]), dialect)
    talk.ask()
    for _ in range(2):
        talk.back()
        assert talk.ask().turn.text == "Wait."
    talk.back()
    assert talk.ask().turn.text == "Here."
    assert (trace(talk).rolled_back, trace(talk).amnesia) == (0, 0)
