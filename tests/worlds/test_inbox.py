"""The world of flagged mail."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.worlds import WorldError
from tests.worlds.declarations import do, world


def inbox(**options: Any) -> Any:
    return world("inbox", options=options)


class TestDone:
    def test_a_fresh_one_is_whole(self) -> None:
        assert inbox().intact()

    def test_a_thread_without_reply_needs_its_label_alone(self) -> None:
        target = inbox()
        target.perform("label_thread", {"thread": "first", "label": "anything"})
        assert target.settled() == target.bits(("first",))

    def test_a_thread_that_needs_a_reply_needs_both(self) -> None:
        target = inbox()
        target.perform("label_thread", {"thread": "second", "label": "triaged"})
        assert target.settled() == 0
        target.perform("send_reply", {"thread": "second", "text": "Thanks."})
        assert target.settled() == target.bits(("second",))

    def test_a_declared_label_is_the_only_one_that_will_do(self) -> None:
        target = inbox(labels={"first": "legal"})
        target.perform("label_thread", {"thread": "first", "label": "spam"})
        assert target.settled() == 0
        do(target, "first")
        assert target.settled() == target.bits(("first",))


class TestReplies:
    def test_a_second_reply_breaks_the_invariant_for_good(self) -> None:
        target = inbox()
        for item in ("first", "second", "third"):
            do(target, item)
        assert target.holds()
        target.perform("send_reply", {"thread": "second", "text": "Thanks."})
        assert target.settled() == target.all
        assert not target.holds()
        assert target.effects["send_reply second"] == 2
        target.perform("remove_label", {"thread": "second"})
        target.perform("label_thread", {"thread": "second", "label": "triaged"})
        assert not target.holds()

    def test_a_reply_that_nobody_asked_for_is_allowed_once(self) -> None:
        target = inbox()
        target.perform("send_reply", {"thread": "first", "text": "Hello."})
        assert target.intact()
        target.perform("send_reply", {"thread": "first", "text": "Hello again."})
        assert not target.intact()


class TestTools:
    def test_the_list_shows_senders_and_subjects(self) -> None:
        target = inbox(subjects={"first": "Lunch"}, senders={"first": "Ann"})
        assert target.call("list_flagged_threads", {}).text == "first | Ann | Lunch\nsecond\nthird"

    def test_reading_shows_labels_replies_and_what_is_asked(self) -> None:
        target = inbox()
        do(target, "second")
        assert target.call("read_thread", {"thread": "first"}).text == "first\nlabels: none; replies sent: 0"
        read = target.call("read_thread", {"thread": "second"}).text
        assert read == "second\nlabels: triaged; replies sent: 1; asks for a reply"

    def test_the_same_label_again_has_no_effect(self) -> None:
        target = inbox()
        do(target, "first")
        do(target, "first")
        assert target.effects == {"label_thread first": 1}

    @pytest.mark.parametrize(
        ("tool", "arguments"),
        [
            ("label_thread", {"thread": "first", "label": " "}),
            ("label_thread", {"thread": "first"}),
            ("send_reply", {"thread": "first", "text": 3}),
            ("remove_label", {"thread": "first"}),
            ("read_thread", {"thread": "nowhere"}),
        ],
    )
    def test_what_cannot_be_done_is_an_error_without_effect(
        self, tool: str, arguments: dict[str, Any]
    ) -> None:
        target = inbox()
        assert target.perform(tool, arguments).error
        assert target.effects == {}

    def test_labelling_a_forbidden_thread_breaks_the_invariant(self) -> None:
        target = world("inbox", forbidden=("private",))
        target.perform("label_thread", {"thread": "private", "label": "triaged"})
        assert not target.intact()
        assert "private" not in target.call("list_flagged_threads", {}).text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replies": ["fourth"]}, "replies: unknown thread 'fourth'; known: first, second, third"),
        ({"replies": "first"}, "replies: expected a list of threads, found 'first'"),
        ({"labels": {"first": ""}}, "labels: first: expected a text, found ''"),
        ({"labels": ["first"]}, "labels: expected a mapping of threads to texts"),
        ({"subjects": {"fourth": "x"}}, "subjects: unknown thread 'fourth'"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(WorldError, match=message.replace("[", r"\[")):
        inbox(**options)


_calls = st.sampled_from(["label_thread", "remove_label", "send_reply"])


@given(st.lists(st.tuples(_calls, st.sampled_from(["first", "second"])), max_size=12))
def test_settled_follows_labels_and_replies(calls: list[tuple[str, str]]) -> None:
    target = inbox()
    labelled: set[str] = set()
    sent = {"first": 0, "second": 0}
    for tool, thread in calls:
        target.perform(tool, {"thread": thread, "label": "x", "text": "x"})
        if tool == "label_thread":
            labelled.add(thread)
        elif tool == "remove_label":
            labelled.discard(thread)
        else:
            sent[thread] += 1
    done = {thread for thread in labelled if thread == "first" or sent[thread]}
    assert target.settled() == sum(target.vocabulary[thread] for thread in done)
    assert target.intact() == all(count <= 1 for count in sent.values())
