"""The artifact that a person is given."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from evalkit.worker.escalation import SCHEMA, Escalation, escalation_of, hand_over, markdown_of
from evalkit.worker.store import SqlStore
from evalkit.worker.task_records import Order
from tests.worker.places import memory_store, memory_worker, stage_of
from tests.worker.test_attempt import stuck


def escalated(home: Path) -> SqlStore:
    store = memory_store()
    store.add((Order("a-task", "Do\nevery item.", "Every item is done.", checks=("full",)),), 0.0)
    memory_worker(store, stage_of(stuck()), home, clock=lambda: 0.0).work_one()
    return store


def test_it_says_what_was_tried_what_is_left_why_and_how_to_go_on(tmp_path: Path) -> None:
    store = escalated(tmp_path)
    found = escalation_of(store, store.get("a-task"))
    assert found.schema == SCHEMA
    assert (found.ending, found.native, found.last_stop) == ("escalated", "nudges", "end_turn")
    assert found.open_items == ["orders", "invoices"]
    assert found.done_items == ["users"]
    assert found.why.startswith("checks fail; no recorded success: orders, invoices")
    assert [call["tool"] for call in found.attempted] == ["list_items", "do_item"]
    assert found.evidence[0]["content"] == {"passed": False, "detail": "checks fail"}
    assert (found.turns, found.continuations, found.attempts) == (6, 3, 1)
    assert found.last_words == "I need the password."
    assert found.transcript.startswith("evalkit task show a-task --transcript")
    assert any("evalkit task retry a-task --answer" in step for step in found.resume)
    assert found.at == "1970-01-01T00:00:00Z"


def test_it_is_written_as_json_and_markdown_and_on_record(tmp_path: Path) -> None:
    store = escalated(tmp_path)
    folder = tmp_path / "escalations"
    assert sorted(path.name for path in folder.iterdir()) == ["a-task.json", "a-task.md"]
    kept = json.loads((folder / "a-task.json").read_text())
    assert msgspec.convert(kept, Escalation) == escalation_of(store, store.get("a-task"))
    assert store.get("a-task").artifact == str(folder / "a-task.md")


def test_the_markdown_reads_well(tmp_path: Path) -> None:
    store = escalated(tmp_path)
    text = markdown_of(escalation_of(store, store.get("a-task")))
    assert text.startswith("# a-task: escalated\n")
    assert "**Task** (task). Do every item." in text
    assert "## Left open\n\n- orders\n- invoices\n" in text
    assert 'step 2/0: `do_item {"item": "users"}`: users: done' in text
    assert "> I need the password." in text


def test_a_task_without_checks_says_so(tmp_path: Path) -> None:
    store = memory_store()
    store.add((Order("a-task", "Do it."),), 0.0)
    store.escalate("a-task", "nobody knows", "Ada", 1.0)
    path = hand_over(store, "a-task", tmp_path)
    assert "it has no acceptance check: only a reader can judge it" in path.read_text()
    assert "**Why it stopped.** nobody knows (`escalated by Ada`)" in path.read_text()


def test_a_second_hand_over_replaces_the_first_whole(tmp_path: Path) -> None:
    store = escalated(tmp_path)
    before = (tmp_path / "escalations" / "a-task.md").read_text()
    hand_over(store, "a-task", tmp_path)
    assert (tmp_path / "escalations" / "a-task.md").read_text() == before
    assert not list((tmp_path / "escalations").glob(".*"))
