"""Looking for what breaks a harness: planted bugs are found and made small, right harnesses left alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalkit.core.requests import Request
from evalkit.core.tasks import Offered, Tool
from evalkit.harnesses.episode_record import Exchange
from evalkit.harnesses.find import find_harness
from evalkit.scenarios.loader import load_text
from evalkit.scoring.arena import Arena
from evalkit.scoring.foreign_episode import (
    Contract,
    contract_of,
    run_foreign,
    runner_of,
    server_for_harnesses,
)
from evalkit.search.falsification.counterexample_search import HarnessFailed, Looked
from evalkit.search.falsification.falsify import Falsified, falsify
from evalkit.search.falsification.guidance import Guide
from evalkit.search.falsification.proposals import Memory, make_small
from evalkit.search.falsification.trials import Alphabet, NoSuchMove, Script
from evalkit.search.falsification.violations import most_nudges
from evalkit.search.proofs.environment import Setting, read_document
from evalkit.search.properties import PROPERTIES
from tests.search.loops import loop

PROGRAMS = Path(__file__).parent / "programs"
ALPHABET = Alphabet(Contract("any"), Setting(2, "none"))


def named(function: Any, name: str) -> Any:
    function.__name__ = name
    return function


def harness(name: str, **rules: Any) -> Any:
    """The small loop with these rules, under a name."""
    return named(lambda told: loop(told, **rules), name)


def answer(found: Falsified, name: str) -> Looked:
    return next(result for result in found.results if result.property == name)


def moves(found: Falsified, name: str) -> tuple[str, ...]:
    counterexample = answer(found, name).counterexample
    assert counterexample is not None, found
    return counterexample.moves


# Planted bugs in programs

PLANTED = [
    ("runs_cut_off_calls.py", "no_cut_off_call", ("is cut off in a call for alpha that parses",)),
    ("trusting", "no_false_done", ("lists the items", "ticks everything", "reports progress")),
    ("endless", "always_ends", ("says nothing, for ever",)),
]


@pytest.mark.long
@pytest.mark.parametrize(("program", "name", "script"), PLANTED, ids=[row[0] for row in PLANTED])
def test_a_planted_bug_is_found_made_small_and_found_again(
    tmp_path: Path, program: str, name: str, script: tuple[str, ...]
) -> None:
    if program == "endless" and shutil.which("node") is None:
        if os.environ.get("CI"):
            pytest.fail("Node is not installed; on Debian: apt-get install nodejs")
        pytest.skip("Node is not installed")
    foreign = find_harness(str(PROGRAMS / program))
    first = falsify(foreign, names=(name,), database=tmp_path)
    found = answer(first, name)
    assert found.answer == "refuted"
    assert found.run <= 200
    assert moves(first, name) == script
    assert not found.replayed
    again = falsify(foreign, names=(name,), database=tmp_path, seed=1)
    assert answer(again, name).replayed
    assert moves(again, name) == script
    # The plain task, what was found before, and the run that is shown (one more where it may be named).
    assert again.runs <= 4

    counterexample = found.counterexample
    assert counterexample is not None
    (scenario,) = load_text(counterexample.text)
    contract, runner = contract_of(foreign), runner_of(foreign)
    try:
        with server_for_harnesses() as server:
            episode, _ = run_foreign(Arena(scenario, contract.offered), 0, contract, runner, server)
    finally:
        runner.close()
    assert episode.outcome == counterexample.outcome
    assert episode.turns == counterexample.turns


#: What the gated loop promises whatever the model does; the tools' lies and undone work it cannot see.
HELD = (
    "always_ends",
    "capped_nudges",
    "capped_repeats",
    "no_cut_off_call",
    "no_duplicate_effects",
    "clean_requests",
)
UNSEEN = ("*wrongly*", "*, an error reported", "undoes *")


@pytest.mark.long
@pytest.mark.parametrize("budget", [60, pytest.param(600, marks=pytest.mark.slow)], ids=["quick", "thorough"])
def test_the_gated_loop_is_not_refuted(budget: int) -> None:
    gated = find_harness("gated-loop")
    found = falsify(gated, names=HELD, max_runs=budget, max_moves=6)
    assert found.holds, found.results
    assert found.searched == budget
    told = falsify(gated, names=("no_false_done", "no_early_stop"), max_runs=budget // 2, without=UNSEEN)
    assert told.holds, told.results


# Properties, by loops in this process


@pytest.mark.long
def test_every_property_of_a_silent_loop(tmp_path: Path) -> None:
    found = falsify(harness("silent", says_done=True, runs_cut_off=True), max_runs=45)
    assert {result.property: result.answer for result in found.results} == {
        **dict.fromkeys(PROPERTIES, "not_refuted"),
        "no_false_done": "refuted",
        "no_early_stop": "refuted",
        "no_cut_off_call": "refuted",
        "no_duplicate_effects": "refuted",
        "honest_report": "not_applicable",
        "exact_report": "not_applicable",
    }
    assert moves(found, "no_false_done") == ("reports progress",)
    assert moves(found, "no_cut_off_call") == ("is cut off in a call for alpha that parses",)


@pytest.mark.long
def test_one_nudge_too_many() -> None:
    # It never closes, so the plain task is enough.
    found = falsify(harness("four", nudges=4), names=("capped_nudges", "no_false_done"), max_runs=5)
    assert moves(found, "capped_nudges") == ()
    assert answer(found, "no_false_done").answer == "not_refuted"
    assert falsify(harness("three", nudges=3), names=("capped_nudges",), max_runs=45).holds


def test_reports_that_leave_out_and_reports_that_add() -> None:
    names = ("honest_report", "exact_report")
    found = falsify(harness("nothing", reports="[]"), names=names, max_runs=20)
    assert moves(found, "honest_report") == moves(found, "exact_report") == ("reports progress",)
    found = falsify(harness("all", reports='["alpha", "beta"]'), names=names, max_runs=20)
    assert answer(found, "honest_report").answer == "not_refuted"
    assert moves(found, "exact_report") == ()


def test_a_stated_blocker_excuses_an_early_stop_and_nothing_else() -> None:
    blocks = {move.name for move in ALPHABET.moves if move.blocks}
    others = tuple(move.name for move in ALPHABET.moves if move.name not in blocks)
    silent = harness("silent", says_done=True)
    found = falsify(silent, names=("no_early_stop", "no_false_done"), max_runs=15, without=others)
    assert answer(found, "no_early_stop").answer == "not_refuted"
    assert moves(found, "no_false_done") == ("states a blocker",)


def crashes(told: Mapping[str, str]) -> Any:
    ending = loop(told, nudges=3)
    if ending["native"] == "refusal":
        raise KeyError("refusal")
    return ending


@pytest.mark.long
def test_a_crash_on_the_way_is_an_early_stop() -> None:
    found = falsify(crashes, names=("no_early_stop",), max_runs=60)
    assert moves(found, "no_early_stop") == ("refuses",)
    counterexample = answer(found, "no_early_stop").counterexample
    assert counterexample is not None
    assert counterexample.outcome == "error/reachable"


DO = Tool("do_item", "Does it.", ("item",), item="item", does=True)


TOLD = {"text": "alpha: done", "error": False}


@pytest.mark.parametrize(
    ("results", "acted", "most"),
    [
        ([TOLD], [("do_item alpha", 3)], 2),
        ([TOLD], [], 2),
        ([{**TOLD, "error": True}], [("do_item alpha", 3)], 4),
        ([{**TOLD, "orphan": True}], [("do_item alpha", 3)], 2),
        ([{**TOLD, "orphan": True}], [("do_item alpha", 1), ("do_item alpha", 4)], 2),
        ([{**TOLD, "orphan": True}], [("do_item alpha", 1)], 4),
        ([{**TOLD, "orphan": True}], [("do_item alpha", 9)], 4),
        ([{**TOLD, "orphan": True}], [("do_item beta", 3)], 4),
    ],
    ids=["done", "told", "refused", "killed", "killed, and late", "killed before", "much later", "another"],
)
def test_who_was_killed_while_a_call_ran_has_had_its_effect(
    results: list[dict[str, Any]], acted: list[tuple[str, int]], most: int
) -> None:
    def said(number: int) -> Exchange:
        return Exchange(
            number, "end_turn", None, "none", [{"kind": "text", "text": "On it."}], action="nudged"
        )

    call = {"kind": "call", "text": 'do_item {"item": "alpha"}'}
    acts = Exchange(3, "tool_use", None, "none", [call], results, "went on")
    exchanges = [said(1), said(2), acts, said(4), said(5)]
    assert most_nudges(exchanges, (1, 2, 4, 5), {"do_item": DO}, acted=acted) == most


@pytest.mark.parametrize(("stop", "action"), [("max_tokens", "asked anew"), ("tool_use", "went on")])
def test_what_nobody_answered_at_first_is_new_when_it_is_made(stop: str, action: str) -> None:
    """It was cut off, or waited for a person."""
    words, call = {"kind": "text", "text": "On it."}, {"kind": "call", "text": 'do_item {"item": "alpha"}'}
    first = Exchange(1, stop, None, "none", [call], action=action)
    nudged = [Exchange(n, "end_turn", None, "none", [words], action="nudged") for n in (2, 4, 5)]
    done = Exchange(3, "tool_use", None, "none", [call], [TOLD], "went on")
    exchanges = [first, nudged[0], done, *nudged[1:]]
    assert most_nudges(exchanges, (2, 4, 5), {"do_item": DO}, acted=[("do_item alpha", 3)]) == 2


# Budgets, memory, honesty


@pytest.mark.long
def test_what_was_mended_is_forgotten(tmp_path: Path) -> None:
    name = ("no_false_done",)
    broken, mended = harness("one", says_done=True), harness("one", nudges=3)
    assert not falsify(broken, names=name, database=tmp_path, max_runs=20).holds
    assert falsify(mended, names=name, database=tmp_path, max_runs=20).holds
    again = falsify(broken, names=name, database=tmp_path, max_runs=20)
    assert not answer(again, "no_false_done").replayed
    kept = falsify(broken, names=name, database=tmp_path, max_runs=20)
    assert answer(kept, "no_false_done").replayed


def test_another_harness_has_its_own_memory(tmp_path: Path) -> None:
    falsify(harness("one", says_done=True), names=("no_false_done",), database=tmp_path, max_runs=20)
    other = falsify(harness("two", says_done=True), names=("no_false_done",), database=tmp_path, max_runs=20)
    assert not answer(other, "no_false_done").replayed


@pytest.mark.long
def test_the_same_seed_gives_the_same_answer() -> None:
    def counted() -> list[tuple[str, int, int]]:
        found = falsify(harness("nudger", nudges=2, reports="[]"), max_runs=45, seed=7)
        return [(result.answer, result.run, result.shrinking) for result in found.results]

    assert counted() == counted()


def test_no_more_runs_than_allowed() -> None:
    found = falsify(harness("right", nudges=1), names=("no_false_done",), max_runs=5)
    assert (found.runs, found.searched) == (5, 5)
    assert found.holds


def test_the_time_ends_a_search() -> None:
    found = falsify(harness("right", nudges=1), max_runs=100_000, max_seconds=0.5)
    assert found.holds
    assert 1 <= found.runs < 1_000


@pytest.mark.long
def test_a_script_is_not_run_again_where_its_end_is_known() -> None:
    seen: list[int] = []

    def silent(told: Mapping[str, str]) -> Any:
        seen.append(1)
        return loop(told)

    found = falsify(silent, names=("no_false_done",), max_runs=50)
    # It stops at its first end of turn: what the model would have done after that makes no new run.
    assert len(seen) == found.runs
    assert found.holds


def test_what_does_not_show_again_is_said() -> None:
    runs: list[int] = []

    def once(told: Mapping[str, str]) -> Any:
        runs.append(1)
        return loop(told, says_done=len(runs) == 2)

    found = answer(falsify(once, names=("no_false_done",), max_runs=10), "no_false_done")
    assert found.answer == "refuted"
    assert "did not show again" in found.how


def test_a_harness_that_asks_nothing_cannot_be_judged() -> None:
    with pytest.raises(HarnessFailed, match="made no request of its model and ended error"):
        falsify(named(lambda told: 1 / 0, "broken"))
    with pytest.raises(HarnessFailed, match="ended done"):
        falsify(named(lambda told: None, "lazy"))


def test_moves_that_are_left_out() -> None:
    left = Alphabet(Contract("any"), Setting(2, "none"), without=("undoes *", "is paused"))
    assert {move.name for move in ALPHABET.moves} - {move.name for move in left.moves} == {
        "undoes alpha",
        "undoes beta",
        "is paused",
    }
    with pytest.raises(NoSuchMove, match="no move is named 'dances'; the model's moves: reports progress;"):
        Alphabet(Contract("any"), Setting(2, "none"), without=("dances",))
    assert Alphabet(Contract("any"), Setting(2, "none"), streamed=True).left_out == ()
    assert ALPHABET.left_out == (
        "is cut off in a call",
        "is cut off in a batch after a call for alpha",
        "is cut off in a batch after a call for beta",
    )


# Scripts


def proposed(seed: int, longest: int, count: int) -> list[Script]:
    guide = Guide(ALPHABET, longest, seed)
    return [guide.propose() for _ in range(count)]


def test_scripts_are_scenarios_of_one_turn_a_move() -> None:
    scripts = [script for longest in range(1, 9) for script in proposed(longest, longest, 6)]
    assert len(set(scripts)) > 30
    for script in scripts:
        longest = script.length
        assert len(script.moves) == script.length <= longest
        scenario = read_document(ALPHABET.document(ALPHABET.scripted(script)))
        stage = Arena(scenario, Contract("any").offered).stage(0)
        for number, place in enumerate(script.moves, 1):
            stage.ask(Request())
            assert stage.turns == number
            assert ALPHABET.moves[place].name in ALPHABET.said(script)[number - 1]


def test_a_seed_gives_the_same_scripts_and_another_gives_others() -> None:
    assert proposed(3, 8, 20) == proposed(3, 8, 20) != proposed(4, 8, 20)


def test_memory_gives_back_what_was_kept(tmp_path: Path) -> None:
    memory = Memory(tmp_path, ALPHABET, "one")
    memory.keep("always_ends", Script.of((0,)))
    script = Script.of((3, 5, 1), for_ever=True)
    memory.keep("always_ends", script)
    assert Memory(tmp_path, ALPHABET, "one").known("always_ends") == [script]
    assert Memory(tmp_path, ALPHABET, "two").known("always_ends") == []
    fewer = Alphabet(Contract("any"), Setting(2, "none"), without=("*",))
    assert Memory(tmp_path, fewer, "one").known("always_ends") == []
    memory.keep("always_ends", None)
    assert memory.known("always_ends") == []


def test_what_breaks_is_made_small() -> None:
    needed = [ALPHABET.listing, 7]
    asked: list[Script] = []

    def breaks(script: Script) -> bool:
        asked.append(script)
        kept = iter(script.moves)
        return all(place in kept for place in needed)

    small, ended = make_small(Script.of((2, 1, 9, 4, 7, 12, 7, 3), for_ever=True), ALPHABET, breaks)
    assert (small, ended) == (Script.of((1, 7)), True)
    assert len(asked) < 60


@pytest.mark.parametrize(
    ("found", "small"),
    [
        (("ticks beta", "ticks alpha", "lists the items"), ("lists the items", "ticks everything")),
        (("ticks everything", "lists the items"), ("lists the items", "ticks everything")),
    ],
    ids=["two of a kind become one", "the plainer one comes first"],
)
def test_what_is_as_small_is_made_the_plainest(found: tuple[str, ...], small: tuple[str, ...]) -> None:
    ticking = Alphabet(Contract("any", offered=Offered(checklist=True)), Setting(2, "none"))
    places = {move.name: place for place, move in enumerate(ticking.moves)}

    def breaks(script: Script) -> bool:
        """Whether all is ticked and the items are listed, in any order."""
        said = set(ticking.said(script))
        ticks = {"ticks everything"} <= said or {"ticks alpha", "ticks beta"} <= said
        return ticks and "lists the items" in said

    made, ended = make_small(Script.of(tuple(places[name] for name in found)), ticking, breaks)
    assert (ticking.said(made), ended) == (small, True)


@pytest.mark.long
def test_few_runs_hold_many_orders_of_three_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    guides: list[Guide] = []

    def guide(*given: Any) -> Guide:
        guides.append(Guide(*given))
        return guides[-1]

    monkeypatch.setattr("evalkit.search.falsification.counterexample_search.Guide", guide)
    assert falsify(harness("right", nudges=3), names=("no_false_done",), max_runs=120).holds
    # 68 of these runs make a single move each.
    assert guides[0].orders > 0.2


# Bugs that need several moves


#: The planted bugs: program and variant, the property that they break, the task's limit of calls.
SEVERAL = [
    ("planted:failed_step", "no_false_done", None),
    ("planted:evidence_stays", "no_false_done", None),
    ("planted:pause_blocker_claim", "no_false_done", None),
    ("planted:leak", "no_false_done", None),
    ("planted:skip_is_done", "no_false_done", None),
    ("planted:cut_off_run", "no_cut_off_call", None),
    ("planted:budget_before_batch", "within_limits", 6),
    ("planted:message_resets", "no_false_done", None),
    ("planted_approvals:approval_reused", "approved_calls", None),
    ("planted_crash:double_payment", "no_duplicate_effects", None),
]
#: Programs that keep what they promise, whatever a model does.
CAREFUL = [
    ("planted", None),
    ("planted", 6),
    ("planted_approvals", None),
    ("planted_crash", None),
    ("careful_node", None),
    ("careful.sh", None),
]


def looked_at(
    program: str, calls: int | None, seed: int, runs: int, names: tuple[str, ...] = ()
) -> Falsified:
    foreign = find_harness(str(PROGRAMS / program))
    return falsify(foreign, Setting(2, "none", calls=calls), names, seed=seed, max_runs=runs, max_seconds=900)


@pytest.mark.slow
@pytest.mark.parametrize(("program", "name", "calls"), SEVERAL, ids=[row[0] for row in SEVERAL])
def test_a_bug_that_needs_several_moves_is_found(program: str, name: str, calls: int | None) -> None:
    found = answer(looked_at(program, calls, 0, 400, (name,)), name)
    assert found.answer == "refuted"
    assert found.run <= 400


@pytest.mark.slow
@pytest.mark.parametrize(("program", "calls"), CAREFUL)
def test_a_careful_program_is_not_refuted(program: str, calls: int | None) -> None:
    found = looked_at(program, calls, 0, 150)
    assert found.holds, found.results


@pytest.mark.long
def test_what_one_task_leaves_to_the_next_is_told() -> None:
    left: list[bool] = []

    def leaky(told: Mapping[str, str]) -> Any:
        ending = loop(told, nudges=3)
        done = bool(left)
        left[:] = [True] if ending["native"] == "refusal" else []
        return {**ending, "ending": "done"} if done and ending["native"] == "silence" else ending

    named(leaky, "leaky")
    found = answer(falsify(leaky, names=("no_early_stop",), max_runs=60), "no_early_stop")
    assert found.answer == "refuted"
    assert found.how.startswith("only after another task in the same process: refuses")
