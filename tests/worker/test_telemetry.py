"""Telemetry: what counts as a stop, and when something became more frequent."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from evalkit.core.decisions import End, Ending, Report, Resend, RunTools, Send, Verdict
from evalkit.core.tasks import Offered
from evalkit.core.turns import Call, Text, Turn, make_turn
from evalkit.worker.task_records import Event
from evalkit.worker.telemetry import at_least, end_event, is_spike, spikes, stats, stop_event

SAYS = make_turn((Text("Two of three."),), "end_turn")
CALLS = make_turn((Call("call_0", "do_item", "{}"),), "tool_use")
FINISHES = make_turn((Call("call_0", "finish_task", "{}"),), "tool_use")
CUT = make_turn((Text("Two of"),), "max_tokens")
OPEN = Verdict(False, "open", 0b11, True)


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_the_chance_is_that_of_fishers_exact_test(base: int, before: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, base))
    count_before = data.draw(st.integers(0, before))
    table = [[count, base - count], [count_before, before - count_before]]
    wanted = fisher_exact(table, alternative="greater").pvalue
    assert at_least(count, base, count_before, before) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("figures", "spike"),
    [
        ((8, 20, 5, 100), True),
        ((5, 20, 0, 100), True),
        ((1, 1, 0, 3), False),
        ((10, 20, 50, 100), False),
        ((0, 20, 5, 100), False),
        ((5, 5, 0, 0), False),
        ((600, 1000, 400, 1000), False),
    ],
)
def test_a_spike_is_twice_as_frequent_and_no_chance(figures: tuple[int, int, int, int], spike: bool) -> None:
    assert is_spike(*figures) is spike


def test_a_text_only_stop_counts_its_open_items() -> None:
    event = stop_event(SAYS, Offered(), Send("These items are still open: a, b."), OPEN, 5.0)
    assert event == Event("stop", "end_turn", "", text_only=True, met=False, open=2, at=5.0)


@pytest.mark.parametrize(
    ("turn", "action", "is_event"),
    [
        (CALLS, RunTools(CALLS.runnable), False),
        (CALLS, Send(), False),
        (FINISHES, End(Ending("done")), True),
        (CUT, Send("Continue."), True),
        (make_turn((), "pause_turn"), Resend(), True),
        (make_turn((), "in_progress"), Resend(), False),
        (CALLS, End(Ending("limit")), True),
    ],
)
def test_a_turn_that_only_asks_for_tools_is_no_stop(turn: Turn, action: object, is_event: bool) -> None:
    assert (stop_event(turn, Offered(finish=True), action, None, 0.0) is not None) is is_event  # type: ignore[arg-type]


def test_an_unknown_number_of_open_items_is_not_zero() -> None:
    stop = stop_event(SAYS, Offered(), Send("Continue."), Verdict(False, "no items known"), 0.0)
    assert stop is not None
    assert stop.open is None
    assert end_event(Ending("limit"), "end_turn", 0.0).open is None
    assert end_event(Ending("limit", report=Report(("a",))), "end_turn", 0.0).open == 1


def test_statistics_by_task_type_show_what_spiked() -> None:
    events = [("migration", "t", Event("stop", "end_turn", text_only=True, met=True, at=1.0))] * 50
    events += [("migration", "t", Event("stop", "end_turn", text_only=True, open=2, at=11.0))] * 8
    events += [("migration", "t", Event("end", "max_tokens", ending="limit", at=11.0))]
    events += [("mail", "u", Event("end", "end_turn", ending="done", met=True, at=2.0))]
    mail, migration = stats(events, since=10.0)
    assert mail.type == "mail"
    assert mail.endings == {"done": 1}
    assert migration.stops == {"end_turn": 58}
    assert (migration.open_stops.count, migration.open_stops.base_before) == (8, 50)
    assert (migration.truncated_finals.count, migration.limits.count, migration.escalations.count) == (
        1,
        1,
        1,
    )
    assert spikes((mail, migration)) == [("migration", "open_stops")]
