"""The Stop hook: blocks with the open items, keeps no agent for ever, hands over with a record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.worker.open_items import Checked
from evalkit.worker.reopening import reopen
from evalkit.worker.stop_hook import CAP, Answer, Stop, judge_stop, read_stop
from evalkit.worker.store import SqlStore
from evalkit.worker.task_records import Item, TaskError
from tests.worker.places import memory_store


def items(*open_ones: str, done: tuple[str, ...] = ()) -> list[Item]:
    return [*(Item(name, True) for name in done), *(Item(name, False) for name in open_ones)]


class Session:
    """One agent session: each stop goes to the hook in a call of its own."""

    def __init__(self, home: Path, store: SqlStore | None = None) -> None:
        self.home = home
        self.store = store or memory_store()
        self.now = 0.0
        self.transcript = home / "session.jsonl"
        self.transcript.write_text("")

    def stop(
        self, found: list[Item], *, active: bool, checks: tuple[Checked, ...] = (), cap: int = CAP
    ) -> Answer:
        self.now += 1.0
        stop = Stop("s1", "Stop", active, str(self.transcript), "/repo", "All good, I think.")
        answer = judge_stop(self.store, self.home, stop, found, checks, self.now, cap)
        if answer.block is not None:
            self.write({"type": "user", "message": {"content": f"Stop hook feedback:\n{answer.block}"}})
        return answer

    def write(self, line: object) -> None:
        with self.transcript.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def works(self) -> None:
        self.write({"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Edit"}]}})


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def test_open_items_block_and_are_named(session: Session) -> None:
    answer = session.stop(items("tests", "docs", done=("code",)), active=False)
    assert answer.output() == {
        "decision": "block",
        "reason": "These items are still open: tests, docs. Continue with them, or say what blocks you.",
    }
    record = session.store.get("s1")
    assert (record.status, record.continuations) == ("awaiting_verification", 1)
    assert record.open_items() == ("tests", "docs")


def test_nothing_open_lets_it_through_in_silence(session: Session) -> None:
    assert session.stop(items(done=("code",)), active=False).output() == {}
    record = session.store.get("s1")
    assert record.status == "done"
    assert record.completion is not None


def test_a_failed_check_blocks_with_what_it_printed(session: Session) -> None:
    checks = (Checked("make test", False, "2 failed"), Checked("make lint", True, ""))
    answer = session.stop([], active=False, checks=checks)
    assert answer.block is not None
    assert "check: make test" in answer.block
    assert answer.block.endswith("make test: 2 failed")
    assert "make lint" not in answer.block


def test_the_same_stop_again_without_any_act_is_let_through_and_handed_over(session: Session) -> None:
    assert session.stop(items("a"), active=False).block
    answer = session.stop(items("a"), active=True)
    assert answer.block is None
    assert answer.note is not None
    assert "handed over with 1 item open" in answer.note
    record = session.store.get("s1")
    assert record.status == "escalated"
    assert record.artifact is not None
    text = Path(record.artifact).read_text()
    assert "- a\n" in text
    assert "claude --resume s1" in text
    assert str(session.transcript) in text


def test_an_agent_that_acts_is_blocked_up_to_the_cap(session: Session) -> None:
    for number in range(CAP):
        assert session.stop(items("a"), active=number > 0).block, number
        session.works()
    assert session.stop(items("a"), active=True).block is None
    assert session.store.get("s1").continuations == CAP


def test_an_item_done_begins_the_count_anew(session: Session) -> None:
    open_ones = [f"item {number}" for number in range(2 * CAP)]
    for number in range(len(open_ones)):
        assert session.stop(items(*open_ones[number:]), active=number > 0).block, number
    assert session.stop(items(done=tuple(open_ones)), active=True).output() == {}


def test_items_that_only_come_do_not_begin_it_anew(session: Session) -> None:
    answers = [
        session.stop(items(*[f"item {k}" for k in range(number + 1)]), active=number > 0)
        for number in range(CAP + 1)
    ]
    assert [answer.block is not None for answer in answers] == [True] * CAP + [False]


def test_a_stop_of_the_users_own_begins_anew(session: Session) -> None:
    session.stop(items("a"), active=False)
    assert session.stop(items("a"), active=True).block is None
    # The user writes again; what the agent then leaves open is blocked as at first.
    assert session.stop(items("a"), active=False).block


def test_a_session_that_was_done_and_goes_on_has_a_new_record(session: Session) -> None:
    session.stop([], active=False)
    assert session.stop(items("later"), active=False).block
    assert session.store.get("s1").status == "done"
    assert session.store.get("s1.2").open_items() == ("later",)


def test_the_worker_leaves_sessions_alone(session: Session) -> None:
    session.stop(items("a"), active=False)
    assert session.store.claim("w", 1e9, 60.0) is None


def test_a_session_is_resumed_where_it_lives(session: Session) -> None:
    session.stop(items("a"), active=False)
    session.stop(items("a"), active=True)
    with pytest.raises(TaskError, match="go on with: claude --resume s1"):
        reopen(session.store, "s1", "go on", 9.0)


def test_other_events_are_let_through(session: Session) -> None:
    stop = Stop("s1", "SubagentStop")
    assert judge_stop(session.store, session.home, stop, items("a"), (), 0.0) == Answer()


def test_what_was_said_and_decided_is_on_record(session: Session) -> None:
    session.stop(items("a"), active=False)
    session.stop(items("a"), active=True)
    record = session.store.get("s1")
    assert [exchange.turn.text for exchange in session.store.transcript(record.seq)] == [
        "All good, I think."
    ] * 2
    kinds = [(event.kind, event.open) for _, _, event in session.store.events("stop_hook")]
    assert kinds == [("stop", 1), ("stop", 1), ("end", 1)]


def test_the_input_may_hold_more_than_is_read() -> None:
    raw = (
        b'{"session_id": "x", "stop_hook_active": true, "permission_mode": "default", "background_tasks": []}'
    )
    assert read_stop(raw) == Stop("x", stop_hook_active=True)
    with pytest.raises(TaskError, match="not that of a Stop hook"):
        read_stop(b'{"session": "x"}')
