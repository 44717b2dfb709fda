"""An attempt goes on from the record: killed at any commit it comes to the same end, and repeats nothing."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.core.events import Crashed
from evalkit.core.requests import Result
from evalkit.scenarios.moves import DelegateMove
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode
from evalkit.scoring.worker_episode import run_worker_episode
from evalkit.stage.stage import Stage
from evalkit.strategies.presets import PRESETS
from evalkit.worker.attempt import UNCERTAIN
from evalkit.worker.reopening import reopen
from evalkit.worker.store import SqlStore
from evalkit.worker.task_records import Order, Record, TaskError
from tests.worker.places import Killed, dying_store, memory_store, memory_worker, payments, stage_of


def order(**fields: Any) -> Order:
    """An order; its workplace is whatever the worker is given."""
    return Order("a-task", "Do it.", checks=("full",), **fields)


def worked(store: SqlStore, stage: Stage, home: Path, now: float = 0.0) -> Record:
    """The record when a worker has gone as far as it can."""
    worker = memory_worker(store, stage, home, clock=lambda: now, steady=lambda: 0.0)
    worker.work_one()
    return store.get("a-task")


# Killed at commits


@lru_cache(maxsize=1)
def sound() -> tuple[Scenario, ...]:
    """Scenarios of the library in which a call's answer says what became of it, and no child agent acts.

    Where it lies, a worker that was killed looks, and comes to know more than one that was not; what a child
    did can be neither looked up nor repeated.
    """
    return tuple(
        scenario
        for scenario in load_suites()
        if scenario.world.kind in ("items", "ledger")
        and not scenario.events
        and not scenario.world.options
        and scenario.limits.tokens is None
        and scenario.limits.usd is None
        and not any(
            getattr(move, "reply", None) or isinstance(move, DelegateMove) for move in walk(scenario.moves)
        )
    )


def reopened_store(dies: frozenset[int]) -> SqlStore:
    def told(commit: int, side: str) -> None:
        if commit * 2 + (side == "after") in dies:
            raise Crashed

    return dying_store(":memory:", told)


def comparable(episode: Episode) -> Episode:
    """An episode but for what looking up may change: it is told in other words, and saves a repetition."""
    told = ("reworded_results", "duplicate_effects")
    findings = tuple(found for found in episode.findings if found.flag not in told)
    return msgspec.structs.replace(
        episode,
        tokens=0,
        excess_tokens=0,
        duplicate_effects=0,
        reworded_results=0,
        correct=False,
        why="",
        findings=findings,
    )


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    st.data(),
    st.sampled_from(
        ["gate", "checklist", "validated_finish", "unattended", "silence", "keyword", "stop_hook"]
    ),
    st.frozensets(st.integers(4, 120), max_size=12),
)
def test_an_episode_with_crashes_equals_one_without(
    data: st.DataObject, name: str, dies: frozenset[int]
) -> None:
    scenario = data.draw(st.sampled_from(sound()))
    strategy = PRESETS[name].strategy
    arena = Arena(scenario, strategy.offers)
    whole = run_worker_episode(arena, strategy, 0)
    broken = run_worker_episode(arena, strategy, 0, lambda: reopened_store(dies))
    assert comparable(broken) == comparable(whole)
    assert broken.duplicate_effects <= whole.duplicate_effects
    assert broken.correct or not whole.correct


@pytest.mark.parametrize("side", ["before", "after"])
def test_no_payment_is_made_twice_wherever_the_worker_dies(tmp_path: Path, side: str) -> None:
    deaths = []
    for at in range(2, 100):
        stage = stage_of(payments(3))

        def told(commit: int, when: str, at: int = at) -> None:
            if (commit, when) == (at, side):
                raise Killed

        store = dying_store(":memory:", told)
        store.add((order(),), 0.0)
        try:
            worked(store, stage, tmp_path)
        except Killed:
            deaths.append(at)
            worked(store, stage, tmp_path, now=1000.0)
        assert (store.get("a-task").status, store.get("a-task").turns) == ("done", 5)
        assert stage.world.effects == {f"post_payment PAY-00{n}": 1 for n in range(3)}
        if at not in deaths:
            break
    # The queueing is the first commit; then the lease, the list, three payments and the claim.
    assert deaths == list(range(2, 2 + 1 + 3 + 3 * 4 + 2))


# What was begun and not confirmed


UNSURE: dict[str, Any] = {
    "scenario": "unsure",
    "family": "resume_effects",
    "task": {"prompt": "Answer.", "done_when": "Answered.", "items": "given"},
    "world": {"kind": "inbox", "items": ["T-1"], "replies": ["T-1"]},
    "model": [
        {"call": "send_reply", "with": {"thread": "T-1", "text": "Thanks."}},
        {"call": "label_thread", "with": {"thread": "T-1", "label": "done"}},
        {"say": "Answered.", "claim": "done"},
    ],
}


def killed_in_the_reply(tmp_path: Path) -> tuple[SqlStore, Stage, Record]:
    """Killed after the mail went out and before that was on record; the next worker finds it so."""
    stage = stage_of(UNSURE)
    dies = [True]

    def told(commit: int, side: str) -> None:
        if side == "before" and dies and stage.world.effects:
            dies.clear()
            raise Killed

    store = dying_store(":memory:", told)
    store.add((order(strategy="acceptance"),), 0.0)
    with pytest.raises(Killed):
        worked(store, stage, tmp_path)
    return store, stage, worked(store, stage, tmp_path, now=1000.0)


def test_what_nobody_can_say_is_escalated_and_never_repeated(tmp_path: Path) -> None:
    store, stage, record = killed_in_the_reply(tmp_path)
    assert record.status == "escalated"
    assert record.ending is not None
    assert record.ending.native == UNCERTAIN
    assert stage.world.effects == {"send_reply T-1": 1}
    assert "send_reply (step 1/0)" in record.ending.report.reason
    assert record.artifact is not None
    assert "In doubt" in Path(record.artifact).read_text()
    with pytest.raises(TaskError, match="step 1/0 is in doubt"):
        reopen(store, "a-task", None, 2000.0)


def test_a_person_says_that_it_happened(tmp_path: Path) -> None:
    store, stage, _ = killed_in_the_reply(tmp_path)
    store.settle("a-task", "1/0", Result("call_0", "sent, as a person says"), 1500.0)
    reopen(store, "a-task", None, 2000.0)
    record = worked(store, stage, tmp_path, now=3000.0)
    assert record.status == "done"
    assert stage.world.effects["send_reply T-1"] == 1
    (effect, *_) = store.effects(record.seq)
    assert effect.result is not None
    assert effect.result.text == "sent, as a person says"


def test_a_person_says_that_it_did_not(tmp_path: Path) -> None:
    """It did, but the person has the last word; and nobody else does it."""
    store, stage, _ = killed_in_the_reply(tmp_path)
    store.settle("a-task", "1/0", None, 1500.0)
    reopen(store, "a-task", None, 2000.0)
    worked(store, stage, tmp_path, now=3000.0)
    assert stage.world.effects["send_reply T-1"] == 2


def test_only_a_step_in_doubt_can_be_settled(tmp_path: Path) -> None:
    store, stage = memory_store(), stage_of(payments(1))
    store.add((order(),), 0.0)
    worked(store, stage, tmp_path)
    with pytest.raises(TaskError, match="step 2/0 is not in doubt"):
        store.settle("a-task", "2/0", None, 0.0)
    with pytest.raises(TaskError, match="'two' is no step"):
        store.settle("a-task", "two", None, 0.0)


# Endings, and going on


def stuck(*after: dict[str, Any]) -> dict[str, Any]:
    """Three items; the model does one and gives in only to a word of a person."""
    return {
        "scenario": "stuck",
        "family": "failed_step",
        "task": {"prompt": "Do every item.", "done_when": "Every item is done."},
        "world": {"kind": "items", "items": ["users", "orders", "invoices"]},
        "model": [
            {"call": "list_items"},
            {"work": 1},
            *[{"say": "I need the password.", "claim": "blocked"} for _ in range(4)],
            *after,
        ],
    }


REST = ({"work": "rest"}, {"say": "All done.", "claim": "done"})


def test_an_answer_goes_on_with_the_state_intact(tmp_path: Path) -> None:
    store, stage = memory_store(), stage_of(stuck(*REST))
    store.add((order(),), 0.0)
    record = worked(store, stage, tmp_path)
    assert (record.status, record.continuations) == ("escalated", 3)
    assert record.open_items() == ("orders", "invoices")
    reopen(store, "a-task", "The password is swordfish.", 10.0)
    assert store.get("a-task").status == "pending"
    record = worked(store, stage, tmp_path, now=20.0)
    assert record.status == "done"
    asked = [exchange.request.text for exchange in store.transcript(record.seq)]
    assert asked.count("The password is swordfish.") == 1
    # What was done before the break is known, and not done again.
    assert set(stage.world.effects.values()) == {1}
    assert record.attempts == 2


def test_a_task_that_waits_for_nobody_cannot_be_answered(tmp_path: Path) -> None:
    store, stage = memory_store(), stage_of(payments(1))
    store.add((order(),), 0.0)
    with pytest.raises(TaskError, match="is pending and waits for no person"):
        reopen(store, "a-task", "hello", 0.0)
    worked(store, stage, tmp_path)
    with pytest.raises(TaskError, match="is done and waits for no person"):
        reopen(store, "a-task", "hello", 0.0)


def test_a_limit_is_granted_anew(tmp_path: Path) -> None:
    store, stage = memory_store(), stage_of({**payments(5), "limits": {"turns": 3}})
    store.add((order(),), 0.0)
    record = worked(store, stage, tmp_path)
    assert record.ending is not None
    assert (record.ending.kind, record.ending.native, record.turns) == ("limit", "max_turns", 3)
    reopen(store, "a-task", None, 10.0)
    record = worked(store, stage, tmp_path, now=20.0)
    # At the new limit everything is posted, and the condition is asked once more.
    assert (record.status, record.turns) == ("done", 6)
    assert stage.world.holds()


def test_a_token_limit_is_granted_anew(tmp_path: Path) -> None:
    store, stage = memory_store(), stage_of({**payments(5), "limits": {"tokens": 150}})
    store.add((order(),), 0.0)
    rounds = 0
    record = worked(store, stage, tmp_path)
    while record.status != "done" and rounds < 9:
        rounds += 1
        assert record.ending is not None
        assert record.ending.native == "max_tokens"
        reopen(store, "a-task", None, rounds * 10.0)
        record = worked(store, stage, tmp_path, now=rounds * 10.0)
    assert record.status == "done"
    assert rounds > 1


def test_faults_without_end_are_a_persons_and_can_be_tried_again(tmp_path: Path) -> None:
    document = payments(2)
    document["model"] = [{"fault": {"status": 529, "times": 7}}, *document["model"]]
    store, stage = memory_store(), stage_of(document)
    store.add((order(),), 0.0)
    record = worked(store, stage, tmp_path)
    assert record.ending is not None
    assert (record.status, record.ending.kind, record.ending.native) == (
        "escalated",
        "error",
        "fault:http_529",
    )
    reopen(store, "a-task", None, 10.0)
    record = worked(store, stage, tmp_path, now=20.0)
    assert record.status == "done"


def test_a_task_that_a_person_closes_waits_when_its_condition_is_met(tmp_path: Path) -> None:
    store, stage = memory_store(), stage_of(payments(2))
    store.add((order(closure="person"),), 0.0)
    record = worked(store, stage, tmp_path)
    assert record.status == "awaiting_verification"
    assert record.completion is None
    assert not memory_worker(store, stage, tmp_path).work_one()
    assert store.complete("a-task", "k", "Ada", {"seen": True}, 5.0)
    assert store.get("a-task").status == "done"


def test_completion_carries_what_the_worker_saw(tmp_path: Path) -> None:
    store, stage = memory_store(), stage_of(payments(2))
    store.add((order(),), 0.0)
    record = worked(store, stage, tmp_path)
    assert record.completion is not None
    assert record.completion.key == "a-task:final"
    assert record.completion.evidence["checks"] == {"full": {"passed": True, "detail": "checks pass"}}
    assert record.completion.evidence["calls_confirmed"] == 2
    assert [piece.name for piece in store.evidence(record.seq)] == ["check full"]


def test_a_claim_awaits_verification_while_it_is_looked_at(tmp_path: Path) -> None:
    """Between the claim and the verdict the record says so: seen from a check that looks."""
    store, stage = memory_store(), stage_of(payments(1))
    store.add((order(),), 0.0)
    seen = []
    check = stage.world.check
    stage.world.check = lambda level: (seen.append(store.get("a-task").status), check(level))[1]  # type: ignore
    worked(store, stage, tmp_path)
    assert seen == ["awaiting_verification"]


def test_the_model_has_no_tool_that_closes_a_task(tmp_path: Path) -> None:
    document = payments(3)
    document["model"] = [
        {"call": "list_payments"},
        {"finish": {"completed": "all"}},
        {"finish": {"completed": "all"}},
        {"finish": {"completed": "all"}},
        {"finish": {"completed": "all"}},
    ]
    strategy = PRESETS["gate"].strategy
    store, stage = memory_store(), stage_of(document, strategy.offers)
    assert not any("complete" in name or "close" in name for name in stage.task.tools)
    store.add((order(),), 0.0)
    assert worked(store, stage, tmp_path).status == "escalated"


def test_the_episodes_with_crashes_are_of_most_of_the_library() -> None:
    assert len(sound()) > 40
