"""The exploration agrees with every script really played, and merging states changes no answer."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit.search.proofs.alphabet import Move, alphabet
from evalkit.search.proofs.counterexample import Confirmer
from evalkit.search.proofs.environment import Environment, Setting
from evalkit.search.proofs.explore import Sweep
from evalkit.search.proofs.monitor import Watch
from evalkit.search.proofs.prove import prove
from evalkit.search.proofs.steps import EVERYTHING, Stepper
from evalkit.search.properties import PROPERTIES
from evalkit.strategies import Strategy
from evalkit.strategies import conditions as c
from tests.search.brute import AT_END, agrees, compare

ITEMS = 2
DEPTH = 4


def chosen(strategy: Strategy, names: list[str], setting: Setting) -> tuple[Move, ...]:
    by_name = {move.name: move for move in setting.moves(strategy)}
    return tuple(by_name[name] for name in names if name in by_name)


def agree(strategy: Strategy, setting: Setting, moves: tuple[Move, ...], turns: int = DEPTH) -> None:
    compared, _ = compare(strategy, setting, moves, turns)
    for result, really in compared:
        assert agrees(result, really), (result, really)


SMALL = {"max_turns": DEPTH, "resends": 2, "cut_offs": 1, "nudges": 2}

CASES: dict[str, tuple[Strategy, Setting, list[str]]] = {
    "checklist": (
        Strategy(done_when=c.checklist(), **SMALL),
        Setting(ITEMS),
        ["lists the items", "ticks everything", "reports progress", "does alpha", "skips beta in words"],
    ),
    "gate": (
        Strategy(done_when=c.acceptance() & c.verifier(sees="evidence") & c.checklist(), **SMALL),
        Setting(ITEMS, "none"),
        [
            "lists the items",
            "ticks everything",
            "says something",
            "does alpha",
            "does beta wrongly, success reported",
        ],
    ),
    "silence": (
        Strategy(done_when=c.silence(), pause="as_content", cut_off="as_content", **SMALL),
        Setting(ITEMS),
        ["does alpha", "undoes alpha", "is cut off in a call for alpha that parses", "is paused"],
    ),
    "validated_finish": (
        Strategy(done_when=c.finish(validate=True), **SMALL),
        Setting(ITEMS, "full", 1),
        [
            "lists the items",
            "finishes with everything",
            "finishes, beta skipped with a reason",
            "does alpha",
            "finishes without alpha",
        ],
    ),
    "stop_hook": (
        Strategy(done_when=c.checklist(), loop_guard=True, **SMALL),
        Setting(ITEMS),
        ["lists the items", "does alpha", "claims done in words", "says nothing", "undoes alpha"],
    ),
    "then_done": (
        Strategy(done_when=c.acceptance(), then="done", max_turns=DEPTH, resends=2, cut_offs=1, nudges=1),
        Setting(ITEMS),
        ["is paused", "is cut off in its words", "says something", "does alpha", "refuses"],
    ),
    "limit_first": (
        Strategy(
            done_when=c.verifier(sees="transcript"), limit_checked="before_done", cut_off="stop", **SMALL
        ),
        Setting(ITEMS),
        ["lists the items", "fails to do alpha", "does alpha", "does beta", "claims done in words"],
    ),
    "keyword": (
        Strategy(done_when=c.keyword(), unknown="stop", empty="stop", **SMALL),
        Setting(ITEMS),
        ["claims done with the keyword", "reports with the keyword in it", "says nothing", "does alpha"],
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_every_script(name: str) -> None:
    strategy, setting, names = CASES[name]
    moves = chosen(strategy, names, setting)
    assert len(moves) == len(names)
    agree(strategy, setting, moves)


TINY = {"max_turns": 3, "resends": 1, "cut_offs": 1, "nudges": 1}
FULL = Setting(ITEMS, "full", 0, "full")
BLIND = Setting(ITEMS, "none", 0, "full")

#: With the larger alphabet: at most 3 turns, and up to two events between them.
LARGER: dict[str, tuple[Strategy, Setting, list[str]]] = {
    "late_effects": (
        Strategy(done_when=c.acceptance() & c.verifier(sees="evidence"), **TINY),
        FULL,
        [
            "lists the items",
            "does alpha, its effect comes late",
            "does everything in one turn",
            "says something",
        ],
    ),
    "late_and_reports": (
        Strategy(done_when=c.checklist(), **TINY),
        BLIND,
        [
            *("lists the items", "does alpha, its effect comes late", "ticks everything", "says something"),
            "is written to by the user after the end",
        ],
    ),
    "messages": (
        Strategy(done_when=c.acceptance(), then="done", **TINY),
        FULL,
        [
            *("says something", "does alpha", "is cut off in its words"),
            *("is written to by the user", "is written to by the user, who leaves"),
        ],
    ),
    "after_the_end": (
        Strategy(done_when=c.silence(), loop_guard=True, **TINY),
        FULL,
        [
            *("says something", "does everything in one turn", "undoes alpha"),
            "is written to by the user after the end",
        ],
    ),
    "compaction": (
        Strategy(done_when=c.keyword(scope="any") | c.checklist(), **TINY),
        BLIND,
        [
            *("lists the items", "claims done with the keyword", "ticks everything"),
            "has its conversation compacted",
        ],
    ),
    "approvals": (
        Strategy(done_when=c.verifier(sees="evidence"), **TINY),
        BLIND,
        [
            *(
                "lists the items",
                "does alpha, which nobody has approved",
                "does alpha and fails at beta in one turn",
            ),
            *("does everything in one turn", "says something"),
        ],
    ),
    "cut_off_batches": (
        Strategy(done_when=c.silence(), cut_off="as_content", refusal="as_content", **TINY),
        FULL,
        [
            "is cut off in a batch after a call for alpha",
            "reads alpha and is cut off in a call for it that parses",
            "refuses in a turn with a call for alpha",
            "says something",
        ],
    ),
    "two_finishes": (
        Strategy(done_when=c.finish(), **TINY),
        FULL,
        [
            "lists the items",
            "finishes with nothing and with everything in one turn",
            "finishes with everything and with nothing in one turn",
            "does alpha",
        ],
    ),
}


#: Of the others a run takes too long for every change.
QUICK = ("approvals", "late_effects", "cut_off_batches", "two_finishes")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in LARGER]
)
def test_agrees_with_every_script_of_the_larger_alphabet(name: str) -> None:
    strategy, setting, names = LARGER[name]
    moves = chosen(strategy, names, setting)
    assert len(moves) == len(names)
    agree(strategy, setting, moves, 3)


def exact(strategy: Strategy, setting: Setting, moves: tuple[Move, ...]) -> tuple[dict[str, int], bool]:
    """The same exploration with nothing left out of the state and no two items taken for one."""
    environment = Environment(strategy, setting, moves)
    wanted = tuple(PROPERTIES[name] for name in AT_END)
    swept = Sweep(
        environment,
        Stepper(environment, keep=EVERYTHING),
        Watch(),
        wanted,
        merge_items=False,
        confirm=Confirmer(environment),
    ).run()
    return swept.found, swept.complete


@st.composite
def conditions(draw: st.DrawFn) -> c.Condition:
    leaf = st.sampled_from(
        [
            c.acceptance(),
            c.checklist(),
            c.finish(),
            c.finish(validate=True),
            c.keyword(),
            c.verifier(),
            c.verifier(sees="evidence"),
            c.verifier(sees="transcript"),
            c.silence(),
            c.artifact(),
            c.certificate(),
            ~c.silence(),
        ]
    )
    found: c.Condition = draw(leaf)
    for _ in range(draw(st.integers(0, 2))):
        other: c.Condition = draw(leaf)
        found = found & other if draw(st.booleans()) else found | other
    return found


@st.composite
def strategies(draw: st.DrawFn) -> Strategy:
    return Strategy(
        done_when=draw(conditions()),
        pause=draw(st.sampled_from(["resend", "as_content", "stop"])),
        cut_off=draw(st.sampled_from(["raise_limit", "continue", "fail_calls", "as_content", "stop"])),
        refusal=draw(st.sampled_from(["escalate", "fallback", "retry", "as_content", "stop"])),
        empty=draw(st.sampled_from(["nudge", "stop"])),
        unknown=draw(st.sampled_from(["as_content", "nudge", "stop"])),
        check=draw(st.sampled_from(["end_of_turn", "each_tool_turn"])),
        limit_checked=draw(st.sampled_from(["after_done", "before_done"])),
        nudges=draw(st.sampled_from([1, 2, None])),
        nudge_budget=draw(st.sampled_from([2, None])),
        resends=draw(st.sampled_from([1, 2, None])),
        cut_offs=draw(st.sampled_from([1, 2, None])),
        then=draw(st.sampled_from(["escalate", "done", "limit", "error"])),
        loop_guard=draw(st.booleans()),
        max_turns=draw(st.integers(1, DEPTH)),
    )


SLOW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.long
@SLOW
@given(st.data())
def test_merging_changes_no_answer(data: st.DataObject) -> None:
    strategy = data.draw(strategies())
    setting = Setting(
        ITEMS, data.draw(st.sampled_from(["full", "weak", "none"])), data.draw(st.integers(0, 2))
    )
    every = alphabet(strategy, ITEMS)
    kinds = sorted({move.kind or move.name for move in every})
    picked = data.draw(st.lists(st.sampled_from(kinds), min_size=3, max_size=9, unique=True))
    # An alphabet that treats items alike holds every move of a kind.
    moves = tuple(move for move in every if (move.kind or move.name) in picked)
    found, complete = exact(strategy, setting, moves)
    proof = prove(strategy, setting, AT_END, moves=moves)
    for result in proof.results:
        if result.counterexample is not None:
            assert found.get(result.property) == result.counterexample.turns, (result, found)
        else:
            assert complete or len(found) == len(AT_END)
            assert result.property not in found, (result, found)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_agrees_with_every_script_of_any_strategy(data: st.DataObject) -> None:
    strategy = data.draw(strategies())
    setting = Setting(
        ITEMS, data.draw(st.sampled_from(["full", "weak", "none"])), data.draw(st.integers(0, 1))
    )
    every = alphabet(strategy, ITEMS)
    picked = data.draw(st.lists(st.sampled_from(every), min_size=2, max_size=4, unique_by=lambda m: m.name))
    agree(strategy, setting, tuple(picked))
