"""How the server reads full requests: each way in which clients retry, resend, compact and start anew."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from evalkit.core.requests import Request
from evalkit.core.turns import Turn
from evalkit.stage.stage import Stage
from evalkit.wire.dialects import DIALECTS, Dialect
from evalkit.wire.episode import WireEpisode
from tests.wire.wire import WORK, Talk, stage

BOTH = pytest.mark.parametrize("dialect", DIALECTS)
PAUSE = [{"pause": {"text": "Searching."}, "until": "resent"}, {"say": "Found.", "claim": "done"}]


class Watched:
    """A stage that keeps the requests it was asked."""

    def __init__(self, model: Any = WORK, **fields: Any) -> None:
        self.stage: Stage = stage(model, **fields)
        self.asked: list[Request] = []
        ask = self.stage.ask

        def kept(request: Request) -> Turn:
            self.asked.append(request)
            return ask(request)

        self.stage.ask = kept  # type: ignore[method-assign]

    def talk(self, dialect: Dialect = "anthropic", **fields: Any) -> Talk:
        return Talk(WireEpisode(self.stage), dialect, **fields)


@BOTH
def test_appended_history_is_the_turn_and_its_results(dialect: Dialect) -> None:
    watched = Watched()
    talk = watched.talk(dialect)
    first = talk.ask().turn
    talk.on()
    request = watched.asked[1]
    assert watched.asked[0] == Request(limit=watched.asked[0].limit, model="m")
    assert request.echo == watched.stage.player.samples()[0].turn
    assert [result.text for result in request.results] == ["ok"]
    assert request.results[0].id == request.echo.calls[0].id != first.calls[0].id
    assert request.text is None
    assert talk.played.seen.amnesia == 0


@BOTH
def test_ids_differ_from_turn_to_turn(dialect: Dialect) -> None:
    talk = Watched([{"repeat": {"times": "forever", "do": [{"call": "list_items"}]}}]).talk(dialect)
    talk.ask()
    ids = [talk.answer.turn.calls[0].id, *(talk.on().turn.calls[0].id for _ in range(4))]
    assert len(set(ids)) == 5


@BOTH
def test_a_nudge_is_the_text_after_the_turn(dialect: Dialect) -> None:
    watched = Watched([{"say": "Half done.", "claim": "partial"}, {"say": "Done.", "claim": "done"}])
    talk = watched.talk(dialect)
    talk.ask()
    talk.back()
    talk.user("Continue.")
    assert talk.ask().turn.text == "Done."
    assert (watched.asked[1].text, watched.asked[1].echo) == (
        "Continue.",
        watched.stage.player.samples()[0].turn,
    )


@BOTH
@pytest.mark.parametrize("blank", [{"empty": True}, {"say": "  "}])
def test_a_turn_that_cannot_be_sent_back_is_taken_as_sent(dialect: Dialect, blank: dict[str, Any]) -> None:
    watched = Watched([blank, {"say": "Done.", "claim": "done"}])
    talk = watched.talk(dialect)
    talk.ask()
    talk.user("Continue.")
    talk.ask()
    assert watched.asked[1].echo == watched.stage.player.samples()[0].turn


@BOTH
def test_a_larger_limit_asks_again_without_the_turn(dialect: Dialect) -> None:
    name = {"anthropic": "max_tokens", "responses": "max_output_tokens", "chat": "max_completion_tokens"}[
        dialect
    ]
    watched = Watched([{"truncate": "text", "until": "higher_limit"}, {"say": "Done.", "claim": "done"}])
    talk = watched.talk(dialect)
    assert talk.ask(**{name: 100}).turn.kind == "cut_off"
    assert talk.ask(**{name: 200}).turn.text == "Done."
    assert watched.asked[1] == Request(limit=200, model="m")


def test_another_model_asks_again_without_the_turn() -> None:
    watched = Watched([{"refuse": {}, "until": "other_model"}, {"say": "Done.", "claim": "done"}])
    talk = watched.talk()
    assert talk.ask().turn.kind == "refusal"
    assert talk.ask(model="other").turn.text == "Done."


def test_a_paused_turn_sent_back_unchanged_goes_on() -> None:
    watched = Watched(PAUSE)
    talk = watched.talk()
    talk.ask()
    assert talk.on().turn.text == "Found."
    assert watched.stage.trace is not None
    assert watched.stage.trace.protocol_faults == []


def test_cache_marks_and_text_shorthand_change_nothing() -> None:
    watched = Watched()
    talk = watched.talk()
    talk.ask()
    talk.said[0] = {
        "role": "user",
        "content": [{"type": "text", "text": "Do every item.", "cache_control": {"type": "ephemeral"}}],
    }
    talk.on()
    assert watched.asked[1].echo is not None
    assert talk.played.seen.amnesia == talk.played.seen.compactions == 0


@pytest.mark.parametrize("dialect", ["anthropic", "responses"])
def test_thinking_that_is_left_out_changes_nothing(dialect: Dialect) -> None:
    think = {"turn": [{"think": "first this"}, {"call": "list_items"}]}
    watched = Watched([think, think, {"say": "Done.", "claim": "done"}])
    talk = watched.talk(dialect)
    talk.ask()
    talk.on()
    kept = [item for item in copy.deepcopy(talk.said) if item.get("type") != "reasoning"]
    for message in kept:
        if isinstance(message.get("content"), list):
            message["content"] = [block for block in message["content"] if block.get("type") != "thinking"]
    talk.said = kept
    talk.on()
    assert watched.asked[2].echo is not None
    assert talk.played.seen.amnesia == 0


# Retries


@BOTH
@pytest.mark.parametrize("mark", ["retried", "lost"])
def test_a_retry_of_an_answer_that_was_lost_gets_the_same_answer(dialect: Dialect, mark: str) -> None:
    watched = Watched()
    talk = watched.talk(dialect)
    talk.ask()
    talk.back()
    talk.results()
    first = talk.ask()
    if mark == "lost":
        talk.played.lost(talk.reply.turn)
    again = talk.ask(retried=mark == "retried")
    assert again == first
    assert len(watched.asked) == 2
    assert talk.played.seen.repeated == 1
    assert talk.on().turn != first.turn


def test_a_lost_answer_may_be_asked_for_in_the_other_mode() -> None:
    talk = Watched().talk()
    whole = talk.ask()
    streamed = talk.ask(stream=True, retried=True)
    assert streamed.turn == whole.turn


def test_an_identical_request_after_a_delivered_turn_is_asked_again() -> None:
    watched = Watched([{"refuse": {}}, {"say": "Done.", "claim": "done"}])
    talk = watched.talk()
    talk.ask()
    assert talk.ask().turn.text == "Done."
    assert watched.asked[1].again


def test_a_retry_after_a_fault_is_asked_again_with_all_that_it_adds() -> None:
    watched = Watched(
        [{"call": "list_items"}, {"fault": {"status": 529, "times": 2}}, {"say": "Done.", "claim": "done"}]
    )
    talk = watched.talk()
    talk.ask()
    talk.back()
    talk.results()
    assert talk.ask().turn.kind == "failed"
    assert talk.ask(retried=True).turn.kind == "failed"
    assert talk.ask(retried=True).turn.text == "Done."
    assert [request.again for request in watched.asked] == [False, False, True, True]
    assert watched.asked[3].results == watched.asked[1].results != ()


def test_what_is_added_after_a_fault_joins_what_the_fault_left_open() -> None:
    watched = Watched([{"call": "list_items"}, {"fault": {"status": 500}}, {"say": "Done.", "claim": "done"}])
    talk = watched.talk()
    talk.ask()
    talk.back()
    talk.results()
    talk.ask()
    talk.user("Are you there?")
    talk.ask()
    request = watched.asked[2]
    assert (request.echo is not None, len(request.results), request.text) == (True, 1, "Are you there?")


# Other histories


@BOTH
def test_a_compacted_history_that_ends_in_the_last_turn_goes_on(dialect: Dialect) -> None:
    watched = Watched()
    talk = watched.talk(dialect)
    talk.ask()
    talk.on()
    talk.said = [{"role": "user", "content": "Summary: the items are listed."}]
    talk.on()
    assert watched.asked[2].echo is not None
    assert (talk.played.seen.compactions, talk.played.seen.amnesia) == (1, 0)
    talk.on()
    assert talk.played.seen.compactions == 1


@BOTH
def test_a_new_conversation_keeps_the_place_and_is_flagged(dialect: Dialect) -> None:
    watched = Watched()
    talk = watched.talk(dialect)
    talk.ask()
    before = talk.on().turn
    talk.said = [{"role": "user", "content": "Do every item."}, {"role": "user", "content": "orders is open"}]
    talk.ask()
    assert talk.answer.turn != before
    assert talk.played.seen.amnesia == 1
    assert watched.asked[2] == Request(
        text="orders is open", model="m", limit=watched.asked[2].limit, lost=True, shortened=True
    )
    talk.on()
    assert talk.played.seen.amnesia == 1


def test_a_conversation_of_one_s_own_making_is_judged_whole() -> None:
    talk = Watched().talk()
    talk.ask()
    talk.said = [
        {"role": "user", "content": "Anew."},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "mine", "name": "list_items", "input": {}}],
        },
        {"role": "user", "content": "And?"},
    ]
    talk.ask()
    assert talk.reply.status == 400
    assert "messages.1" in talk.reply.body.decode()


# Conversations that the server holds


def test_a_thread_carries_only_what_is_new() -> None:
    watched = Watched()
    talk = watched.talk()
    first = talk.ask(thread={"type": "create"})
    talk.said = []
    talk.results()
    second = talk.ask(thread={"type": "continue", "previous_message_id": first.id})
    assert second.turn.calls[0].tool == "do_item"
    assert watched.asked[1].echo is not None
    assert len(watched.asked[1].results) == 1


def test_a_paused_thread_is_resumed_by_nothing() -> None:
    talk = Watched(PAUSE).talk()
    first = talk.ask(thread={"type": "create"})
    talk.said = []
    assert talk.ask(thread={"type": "continue", "previous_message_id": first.id}).turn.text == "Found."


def test_a_thread_may_be_replayed_whole() -> None:
    watched = Watched()
    talk = watched.talk()
    first = talk.ask(thread={"type": "create"})
    whole = talk.said
    talk.said = []
    talk.results()
    results = talk.said
    talk.said = [*whole, {"role": "assistant", "content": first.raw}, *results]
    talk.ask(thread={"type": "create"})
    assert watched.asked[1].echo is not None
    assert talk.played.seen.amnesia == 0


def test_a_response_goes_on_from_the_one_before() -> None:
    watched = Watched()
    talk = watched.talk("responses")
    first = talk.ask()
    talk.said = []
    talk.results()
    second = talk.ask(previous_response_id=first.id)
    assert second.turn.calls[0].tool == "do_item"
    assert len(watched.asked[1].results) == 1


def test_a_response_asked_again_from_the_same_one_leaves_the_turn_out() -> None:
    watched = Watched(
        [{"call": "list_items"}, {"truncate": "text", "until": "higher_limit"}, {"say": "Done."}]
    )
    talk = watched.talk("responses")
    first = talk.ask()
    talk.said = []
    talk.results()
    assert talk.ask(previous_response_id=first.id, max_output_tokens=100).turn.kind == "cut_off"
    assert talk.ask(previous_response_id=first.id, max_output_tokens=200).turn.text == "Done."
    assert watched.asked[2] == Request(limit=200, model="m")
