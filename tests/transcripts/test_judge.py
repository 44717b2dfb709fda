"""Counterfactual judgement: each strategy's decision at each end of turn, by the reference loop itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from evalkit.core.decisions import Verdict
from evalkit.strategies import Strategy
from evalkit.strategies import conditions as c
from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.judging.judge import Stop, judge
from evalkit.transcripts.judging.outcome import Outcome, outcome_of, recorded_stop
from evalkit.transcripts.judging.run import judge_recording
from evalkit.transcripts.labels import Labels
from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_file
from evalkit.transcripts.recording import Label, Recording
from evalkit.transcripts.replay import Replay
from tests.transcripts import files


def read(tmp_path: Path, value: Any, *, lines: bool = False) -> Recording:
    path = (files.write_lines if lines else files.write)(tmp_path / "r.json", value)
    (found,) = (found for found in read_file(path) if isinstance(found, Problem) or not found.parent)
    assert isinstance(found, Recording), found
    return found


def stop(recording: Recording, strategy: str | Strategy) -> Stop:
    chosen = PRESETS[strategy].strategy if isinstance(strategy, str) else strategy
    return judge(Replay(recording), chosen)


def said(stop: Stop) -> str:
    return f"{stop.ending} at {stop.turn}"


TODO_SESSION = {
    "silence": "done at 4",
    "verifier_claim": "done at 4",
    "checklist": "done at 7",
    "verifier_evidence": "done at 7",
    "verifier_transcript": "done at 7",
    "unattended": "done at 7",
    "stop_hook": "done at 7",
    "turn_cap": "done at 4",
}


@pytest.mark.parametrize(("strategy", "expected"), TODO_SESSION.items())
def test_a_session_with_a_to_do_list(tmp_path: Path, strategy: str, expected: str) -> None:
    recording = read(tmp_path, files.claude_code(), lines=True)
    assert said(stop(recording, strategy)) == expected


def test_the_verdict_at_every_end_of_turn_is_kept_after_the_stop(tmp_path: Path) -> None:
    recording = read(tmp_path, files.claude_code(), lines=True)
    assert stop(recording, "silence").decided == ((4, True), (7, True))
    assert stop(recording, "checklist").decided == ((4, False), (7, True))
    # Its nudge at turn 4 names the open item; the hook's words in the recording are others.
    assert stop(recording, "checklist").differs == 1
    assert stop(recording, "silence").differs == 0


LACKING = {
    "checklist": "checklist: the recording has no to-do tool, so it names no items",
    "verifier_evidence": "verifier(evidence): the recording has no to-do tool, so it names no items",
    "finish_tool": "finish: the recording's model had no finish tool",
    "keyword": "keyword: the recording's model was not told of TERMINATE",
    "typed_output": "typed_output: the recording agrees no schema",
    "acceptance": "acceptance: the task's checks need the run's world",
    "artifact": "artifact: what the work left behind needs the run's world",
    "certificate": "certificate: reading items again needs the run's world",
    "gate": "acceptance: the task's checks need the run's world",
    "checks_first": "acceptance: the task's checks need the run's world",
}


@pytest.mark.parametrize(("strategy", "why"), LACKING.items())
def test_what_needs_something_that_is_not_recorded_is_unknown(
    tmp_path: Path, strategy: str, why: str
) -> None:
    found = stop(read(tmp_path, files.chat()), strategy)
    assert (found.ending, found.native, found.turn) == ("unknown", why, 0)


def test_every_preset_is_judged_or_says_why_not(tmp_path: Path) -> None:
    recording = read(tmp_path, files.claude_code(), lines=True)
    for name in PRESETS:
        found = stop(recording, name)
        assert found.native or found.ending != "unknown"


def test_a_finish_tool_and_a_keyword_are_judged_where_the_model_had_them(tmp_path: Path) -> None:
    trajectory = read(tmp_path, files.swe_agent())
    assert said(stop(trajectory, "finish_tool")) == "done at 3"
    assert (
        stop(trajectory, "validated_finish").native
        == "finish(validate): the recording's finish tool names no items"
    )
    chat = read(tmp_path, files.group_chat())
    assert said(stop(chat, "keyword")) == "done at 3"
    assert said(stop(chat, "silence")) == "done at 2"


def test_a_validated_finish_is_held_against_the_to_do_list(tmp_path: Path) -> None:
    def session(completed: list[str]) -> Recording:
        messages = files.chat()[:2]
        todos = [
            {"id": "a", "content": "alpha", "status": "in_progress"},
            {"id": "b", "content": "beta", "status": "pending"},
        ]
        messages += [files.chat_call(1, "todo_write", todos=todos), files.chat_answer(1, "ok")]
        messages.append(files.chat_call(2, "finish_task", items_completed=completed, items_skipped=[]))
        return read(tmp_path, messages)

    assert said(stop(session(["todo-1", "todo-2"]), "validated_finish")) == "done at 2"
    rejected = stop(session(["todo-1"]), "validated_finish")
    assert said(rejected) == "beyond at 2"
    assert rejected.decided == ((2, False),)


def test_a_users_message_is_no_nudge_and_a_harness_message_is_one(tmp_path: Path) -> None:
    asking = [{"role": "assistant", "content": "Which one?"}, {"role": "user", "content": "Any."}]
    dialogue = read(tmp_path, [*files.chat()[:2], *(asking * 6)])
    assert said(stop(dialogue, "verifier_claim")) == "beyond at 6"
    sample = files.inspect_sample()
    sample["messages"] = [*files.chat()[1:2], *(asking * 6)]
    nagged = read(tmp_path, files.inspect_document(sample))
    found = stop(nagged, "verifier_claim")
    # Three nudges, and at the fourth end of turn it escalates.
    assert (said(found), found.native) == ("escalated at 4", "nudges")


def test_limits_hold_with_the_recordings_own_tokens(tmp_path: Path) -> None:
    recording = read(tmp_path, files.atif())
    assert not recording.counted
    limited = Strategy(done_when=c.silence(), max_tokens=500)
    assert said(stop(recording, limited)) == "limit at 2"
    assert said(stop(recording, Strategy(done_when=c.silence(), max_turns=1))) == "limit at 1"


def test_policies_come_before_the_condition(tmp_path: Path) -> None:
    cut = [
        *files.chat()[:2],
        {"role": "assistant", "content": "Everything is done", "finish_reason": "length"},
    ]
    recording = read(tmp_path, [*cut, {"role": "assistant", "content": "Done.", "finish_reason": "stop"}])
    careful = stop(recording, Strategy(done_when=c.silence()))
    assert (said(careful), careful.differs) == ("done at 2", 1)
    assert said(stop(recording, "silence")) == "done at 1"


def test_custom_conditions_are_judged_until_they_ask_the_world(tmp_path: Path) -> None:
    recording = read(tmp_path, files.chat())
    short = c.when(lambda view: len(view.turn.text) < 100 and not view.turn.calls, "short")
    assert said(stop(recording, Strategy(done_when=short))) == "done at 4"
    asking = c.when(lambda view: view.instruments.checks(), "asking")
    assert stop(recording, Strategy(done_when=asking)).native == "the task's checks need the run's world"

    def fail(view: Any) -> Verdict:
        raise KeyError("oops")

    assert stop(recording, Strategy(done_when=c.when(fail))).native == "the strategy failed: KeyError: 'oops'"


def test_a_verifiers_error_rates_are_seeded(tmp_path: Path) -> None:
    recording = read(tmp_path, files.chat())
    blind = Strategy(done_when=c.verifier(sees="claim", misses=1.0))
    assert said(stop(recording, blind)) == "beyond at 4"
    assert stop(recording, blind) == stop(recording, blind)


def test_the_looks_of_a_check_are_weighed_over_a_recording(tmp_path: Path) -> None:
    claim = {"role": "assistant", "content": "All is done, every item is finished."}
    # In such a sample what follows is the harness's: nudges, and no words of a user's.
    sample = files.inspect_sample()
    sample["messages"] = [files.chat()[1], *([claim, {"role": "user", "content": "Sure?"}] * 3)]
    recording = read(tmp_path, files.inspect_document(sample))
    weighed = Strategy(done_when=c.evidence_over_time(0.05, c.verifier(sees="claim")))
    assert said(stop(recording, "verifier_claim")) == "done at 1"
    assert said(stop(recording, weighed)) == "done at 2"
    # What the check within needs, it needs.
    lacking = stop(recording, Strategy(done_when=c.evidence_over_time(0.05, c.acceptance())))
    assert lacking.native == "acceptance: the task's checks need the run's world"


def test_a_run_is_given_up_over_a_recording(tmp_path: Path) -> None:
    asking = [{"role": "assistant", "content": "Which one?"}, {"role": "user", "content": "Any."}]
    sample = files.inspect_sample()
    sample["messages"] = [*files.chat()[1:2], *(asking * 6)]
    recording = read(tmp_path, files.inspect_document(sample))
    idle = PRESETS["verifier_claim"].strategy.but(give_up_when=c.no_progress(2))
    found = stop(recording, idle)
    assert (said(found), found.native) == ("escalated at 2", "give_up_when")


def test_an_item_that_is_opened_again_is_not_ticked(tmp_path: Path) -> None:
    def plan(number: int, status: str) -> list[dict[str, Any]]:
        entries = [{"step": "Update alpha", "status": status}]
        return [files.chat_call(number, "update_plan", plan=entries), files.chat_answer(number, "ok")]

    end = {"role": "assistant", "content": "The plan stands."}
    closed = read(tmp_path, [*files.chat()[:2], *plan(1, "completed"), end])
    assert said(stop(closed, "checklist")) == "done at 2"
    opened = read(tmp_path, [*files.chat()[:2], *plan(1, "completed"), *plan(2, "in_progress"), end])
    assert said(stop(opened, "checklist")) == "beyond at 3"
    dropped = read(tmp_path, [*files.chat()[:2], *plan(1, "completed"), *plan(2, "cancelled"), end])
    # Nothing is on the list any more, so nothing is known.
    assert said(stop(dropped, "checklist")) == "beyond at 3"


def test_task_tools_that_write_one_item_a_call(tmp_path: Path) -> None:
    def call(number: int, tool: str, **given: Any) -> list[dict[str, Any]]:
        return [files.chat_call(number, tool, **given), files.chat_answer(number, "ok")]

    messages = [
        *files.chat()[:2],
        *call(1, "TaskCreate", subject="alpha"),
        *call(2, "TaskCreate", subject="beta"),
        *call(3, "TaskUpdate", taskId="1", status="in_progress"),
        *call(4, "Edit", file="alpha"),
        *call(5, "TaskUpdate", taskId="1", status="completed"),
        {"role": "assistant", "content": "alpha is done."},
        {"role": "user", "content": "And beta?"},
        *call(6, "TaskUpdate", taskId="2", status="deleted"),
        {"role": "assistant", "content": "beta is not needed."},
    ]
    recording = read(tmp_path, messages)
    assert said(stop(recording, "checklist")) == "done at 8"
    assert stop(recording, "checklist").decided == ((6, False), (8, True))
    # The edit succeeded while alpha was the item in progress.
    assert said(stop(recording, "verifier_evidence")) == "done at 8"


# Outcomes


def labelled(recording: Recording, label: Label) -> Recording:
    import msgspec

    return msgspec.structs.replace(recording, label=label)


def rows(recording: Recording, *strategies: str) -> dict[str, Outcome]:
    chosen = [PRESETS[name].strategy for name in strategies]
    return {row.strategy: row for row in judge_recording(recording, chosen)}


def by_harness(recording: Recording) -> Recording:
    """The recording with its harness saying what its user said."""
    steps = tuple(msgspec.structs.replace(step, by="harness") for step in recording.steps)
    return msgspec.structs.replace(recording, steps=steps)


def test_turns_that_the_user_asked_for_are_no_over_continuation(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": "And gamma?"}, {"role": "assistant", "content": "Gamma stands."}]
    recording = labelled(read(tmp_path, [*files.chat(), *asked * 6]), Label(True, "x", by="state"))
    found = rows(recording, "silence")
    for name in ("recorded", "silence"):
        assert (found[name].over_continuation, found[name].excess_turns) == (False, 0)
    # The same turns, each asked for by the harness, are too many.
    nudged = rows(by_harness(recording), "silence")["recorded"]
    assert (nudged.over_continuation, nudged.excess_turns) == (True, 6)


def test_a_users_message_goes_on_with_the_conversation_after_an_ending(tmp_path: Path) -> None:
    question = {"role": "assistant", "content": "Which records?"}
    messages = [*files.chat()[:2], question, {"role": "user", "content": "Both."}, *files.chat()[2:]]
    recording = read(tmp_path, messages)
    silent = stop(recording, "silence")
    assert (said(silent), silent.ended, silent.decided) == ("done at 5", (1, 5), ((1, True), (5, True)))
    assert (silent.differs, silent.parted) == (0, 0)
    # A nudge in place of the user's answer is another conversation: exact up to there.
    asking = stop(recording, "verifier_claim")
    assert (said(asking), asking.differs, asking.parted) == ("done at 5", 1, 1)
    # The count of nudges starts anew, the limit of an episode does not.
    assert said(stop(recording, Strategy(done_when=c.silence(), max_turns=1))) == "done at 1"
    nudged = by_harness(recording)
    assert said(stop(nudged, "silence")) == "done at 1"


def test_an_ending_at_which_the_recording_went_on_parts_from_it(tmp_path: Path) -> None:
    words = ({"role": "assistant", "content": f"Note {number}."} for number in range(3))
    first, second, third = words
    messages = [*files.chat()[:2], first, {"role": "user", "content": "Continue."}, second]
    recording = read(tmp_path, [*messages, {"role": "user", "content": "And gamma?"}, third])
    steps = list(recording.steps)
    steps[0] = msgspec.structs.replace(steps[0], by="harness")
    silent = stop(msgspec.structs.replace(recording, steps=tuple(steps)), "silence")
    # It ended at the first turn, where the recorded harness went on; the user wrote again all the same.
    assert (said(silent), silent.ended, silent.differs, silent.parted) == ("done at 3", (1, 3), 1, 1)


def test_a_hand_over_that_the_label_calls_right_is_not_unclosed(tmp_path: Path) -> None:
    path = files.write(tmp_path / "r.json", [files.tau_bench(reward=1.0, last="")])
    (recording,) = (found for found in read_file(path) if isinstance(found, Recording))
    assert rows(recording, "silence")["recorded"].unclosed is False


def test_a_label_of_the_state_holds_from_the_last_effect_on(tmp_path: Path) -> None:
    thanks = {"role": "user", "content": "Thanks!"}
    bye = {"role": "assistant", "content": "You're welcome!"}
    messages = [*files.chat(), thanks, *([bye, thanks] * 5)]
    state = by_harness(labelled(read(tmp_path, messages), Label(True, "x", by="state")))
    found = rows(state, "verifier_claim")["verifier_claim"]
    assert (found.ending, found.turn, found.truth, found.false_done) == ("done", 4, "complete", False)
    assert (found.saved_turns, found.excess_turns) == (5, 0)
    assert found.saved_tokens == found.tokens_after > 0
    recorded = outcome_of(state, Replay(state), "x", Stop("done", "", "", 9))
    assert (recorded.excess_turns, recorded.over_continuation) == (5, True)
    words = labelled(state, Label(True, "x", by="words"))
    found = rows(words, "verifier_claim")["verifier_claim"]
    assert (found.truth, found.false_done, found.saved_turns) == ("unknown", None, None)


def test_a_false_done_and_what_an_early_stop_leaves_unknown(tmp_path: Path) -> None:
    incomplete = labelled(read(tmp_path, files.chat()), Label(False, "x", by="state"))
    found = rows(incomplete, "verifier_claim")
    assert found["recorded"].false_done is True
    assert found["verifier_claim"].false_done is True
    assert (found["verifier_claim"].tp, found["verifier_claim"].fp) == (0, 1)
    early = outcome_of(incomplete, Replay(incomplete), "early", Stop("done", "", "", 2))
    assert (early.truth, early.false_done, early.premature_stop, early.work_after) == (
        "unknown",
        None,
        None,
        1,
    )
    later = outcome_of(incomplete, Replay(incomplete), "later", Stop("escalated", "", "", 4))
    assert (later.truth, later.false_done, later.unclosed) == ("incomplete", False, None)


def test_complete_at_says_everything(tmp_path: Path) -> None:
    recording = read(tmp_path, files.claude_code(), lines=True)
    known = labelled(recording, Label(True, "table", complete_at=5))
    found = rows(known, "silence", "checklist")
    assert (found["silence"].ending, found["silence"].turn) == ("done", 4)
    assert found["silence"].truth == "incomplete"
    assert found["silence"].premature_stop is True
    assert found["silence"].false_done is True
    assert found["checklist"].premature_stop is False
    assert found["checklist"].over_continuation is False
    assert (found["checklist"].tn, found["checklist"].tp) == (1, 1)
    start = labelled(recording, Label(True, "table", complete_at=0))
    assert rows(start)["recorded"].excess_turns == 3
    assert rows(start, "silence")["silence"].unclosed is False
    escalated = outcome_of(start, Replay(start), "x", Stop("escalated", "", "", 7))
    assert escalated.unclosed is True


def test_a_run_that_changed_nothing_was_about_its_words(tmp_path: Path) -> None:
    talk = [
        *files.chat()[:4],
        {"role": "assistant", "content": "It is old."},
        {"role": "user", "content": "Sure?"},
    ]
    talk.append({"role": "assistant", "content": "It is done."})
    state = by_harness(labelled(read(tmp_path, talk), Label(True, "x", by="state")))
    assert rows(state, "silence")["silence"].truth == "unknown"


def test_without_a_label_and_without_an_end_nothing_is_claimed(tmp_path: Path) -> None:
    recording = read(tmp_path, files.chat()[:-1])
    found = rows(recording, "silence")
    assert (found["recorded"].ending, found["recorded"].truth) == ("unknown", "unknown")
    for row in found.values():
        for name in ("false_done", "premature_stop", "over_continuation", "unclosed", "saved_turns"):
            assert getattr(row, name) is None
    assert recorded_stop(recording).ending == "unknown"


def test_a_table_of_labels_is_applied_and_held_against_the_files(tmp_path: Path) -> None:
    recording = read(tmp_path, [files.tau_bench(3)])
    table = tmp_path / "labels.csv"
    table.write_text("recording,complete,complete_at,by\ntask3.trial0,yes,3,state\nother,0,,\n")
    labels = Labels.read(table)
    label = labels.apply(recording).label
    assert label == Label(True, "table", 3, "state")
    assert labels.notes() == ["label 'other' matches no recording"]
