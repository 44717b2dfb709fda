"""The runner of mutants itself: what it breaks, in what it notices that, and that nothing of it stays."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from evalkit.core import trace
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring import arena
from tests.helpers import scenario
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.log import Log
from tests.mutation.outside import scenarios
from tests.mutation.places import PLACES
from tests.mutation.planted import planted
from tests.mutation.rules import changes
from tests.mutation.run import companies, place_of, run
from tests.mutation.swap import Unchanged, put_in
from tests.mutation.trial import (
    ROOT,
    Mutant,
    Outcome,
    Reference,
    every_mutant,
    in_child,
    names,
    sample,
    together,
    tried,
)

SOURCE = '''
"""Words."""
MOST = 3


def first(numbers: list[int] = []) -> int:
    """Words."""
    for number in numbers:
        if number < 2 and not number == 1:
            continue
        return max(number, 7)
    raise ValueError("none" if not numbers else "small")
'''


def rules(source: str) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for change in changes(ast.parse(source)):
        found.setdefault(change.rule, []).append((change.before, change.after))
    return found


def test_each_rule_breaks_what_it_names_and_nothing_in_words() -> None:
    found = rules(SOURCE)
    assert ("number < 2", "number <= 2") in found["comparison"]
    assert ("number < 2", "number >= 2") in found["comparison"]
    assert found["and/or"] == [("number < 2 and (not number == 1)", "number < 2 or not number == 1")]
    assert ("number < 2 and (not number == 1)", "not number == 1") in found["operand dropped"]
    assert found["not dropped"] == [("not number == 1", "number == 1")]
    assert ("2", "3") in found["constant"]
    assert ("7", "6") in found["constant"]
    assert found["statement dropped"] == [("continue", "pass")]
    assert found["return of nothing"] == [("return max(number, 7)", "return None")]
    assert found["max for min"] == [("max(number, 7)", "min(number, 7)")]
    assert found["an argument of max alone"] == [("max(number, 7)", "number"), ("max(number, 7)", "7")]
    assert found["branch dropped"][0][1] == "pass"
    assert found["branch always"][0][1] == "continue"
    assert found["named number"] == [("MOST = 3", "MOST = 4"), ("MOST = 3", "MOST = 2")]
    assert not any("none" in before for each in found.values() for before, _ in each if "if" not in before)


def made(source: str) -> ModuleType:
    module = ModuleType("evalkit.made_for_a_test")
    exec(compile(source, "made", "exec"), module.__dict__)
    module.__file__ = "made"
    return module


def test_who_has_imported_a_function_calls_the_changed_one() -> None:
    module = made(SOURCE)
    imported = module.first
    assert imported([1]) == 7
    put_in(module, ast.parse(SOURCE.replace("return max(number, 7)", "return max(number, 8)")))
    assert imported([1]) == 8


def test_what_reaches_nothing_is_no_mutant() -> None:
    with pytest.raises(Unchanged):
        put_in(made(SOURCE), ast.parse(SOURCE))


@pytest.fixture(scope="module")
def every() -> list[Mutant]:
    return every_mutant(PLACES)


@pytest.mark.long
def test_there_are_mutants_of_every_place(every: list[Mutant]) -> None:
    assert len(every) > 5_000
    assert {each.place.name for each in every} == {place.name for place in PLACES}


def test_a_sample_is_the_same_each_time() -> None:
    gate = [place for place in PLACES if place.name == "gate"]
    drawn = [each.told for each in sample(gate, 50, 22)]
    assert drawn == [each.told for each in sample(gate, 50, 22)]
    assert drawn != [each.told for each in sample(gate, 50, 23)]


def test_the_tests_of_each_place_are_there() -> None:
    assert [test for place in PLACES for test in place.tests if not (ROOT / test).is_file()] == []


def test_what_is_argued_stands_in_the_code_still(every: list[Mutant]) -> None:
    known = {each.key for each in every}
    assert [key for key in EQUIVALENT if key not in known] == []
    assert all(len(reason) > 20 for reason in EQUIVALENT.values())


PAUSES = [{"call": "list_items"}, {"pause": {}}, {"work": "rest"}, {"say": "Done.", "claim": "done"}]


@pytest.fixture(scope="module")
def reference() -> Reference:
    """One short scenario, played as it is."""
    short: Scenario = scenario(PAUSES)
    return Reference([short], lambda _: ("gate",))


def mutant(module: str, before: str, after: str) -> Mutant:
    (place,) = (place for place in PLACES if module in place.modules)
    source = (ROOT / module.replace(".", "/")).with_suffix(".py").read_text()
    assert source.count(before) == 1
    return Mutant(place, module, ast.parse(source.replace(before, after)), None, "made for a test")


def test_a_scenario_notices_and_the_parent_stays_as_it_is(reference: Reference) -> None:
    broken = mutant("evalkit.core.trace", "self.turns += 1", "self.turns += 2")
    before = trace.Trace.delivered.__code__
    outcome = tried(broken, reference, tests=False)
    assert (outcome.found, outcome.by) == ("scenarios", "a-scenario")
    assert trace.Trace.delivered.__code__ is before
    assert reference.difference() == ""


def test_what_changes_nothing_survives(reference: Reference) -> None:
    same = mutant("evalkit.core.trace", "self.turns += 1", "self.turns += 2 - 1")
    assert tried(same, reference, tests=False).found in ("survived", "no mutant")
    unseen = mutant(
        "evalkit.scoring.arena", "max(thresholds.TURN_CAP, 2", "max(thresholds.TURN_CAP + 1 - 1, 2"
    )
    assert tried(unseen, reference, tests=False).found == "survived"


def test_an_endless_loop_is_noticed(reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutation.trial.SCENARIO_SECONDS", 0.2)
    endless = mutant("evalkit.scoring.arena", "return self._world.fork()", "exec('while True: pass')")
    outcome = tried(endless, reference, tests=False)
    assert outcome.found == "scenarios"
    assert "endless" in outcome.by


def test_a_scenario_to_which_unbroken_code_finds_no_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object) -> list[object]:
        while True:
            pass

    monkeypatch.setattr("tests.mutation.trial.REFERENCE_SECONDS", 0.1)
    monkeypatch.setattr("tests.mutation.trial.played", endless)
    with pytest.raises(RuntimeError, match=r"no end in .*a-scenario"):
        Reference([scenario(PAUSES)], lambda _: ("gate",))


def test_what_kills_its_process_is_noticed(reference: Reference) -> None:
    deadly = mutant("evalkit.scoring.arena", "return self._world.fork()", "__import__('os')._exit(3)")
    assert tried(deadly, reference, tests=False).found == "scenarios"
    assert arena.Arena.world.__code__.co_names


def test_what_a_child_says_is_heard() -> None:
    assert in_child(lambda say: (say("one"), say("two\nlines"))[0]) == ["one", "two lines"]


def test_the_five_that_once_passed_are_still_to_be_made() -> None:
    assert len(planted()) == 5


@pytest.mark.long
def test_scenarios_from_outside_are_random_and_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutation.outside.DRAWN", 6)
    drawn = [each.moves for each in scenarios(9)]
    assert len(drawn) == 9
    drawn = drawn[:5]
    assert len(drawn) == 5
    assert drawn == [each.moves for each in scenarios(5)]
    assert drawn != [each.moves for each in scenarios(5, batch=2)]


@pytest.mark.long
def test_those_from_outside_differ_and_all_of_them_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutation.outside.DRAWN", 40)
    drawn = [repr(each) for each in scenarios(60, batch=1)]
    assert len(drawn) == len(set(drawn)) == 60


@pytest.mark.long
def test_several_at_once_are_noticed_as_one_is(reference: Reference, every: list[Mutant]) -> None:
    broken = next(each for each in every if each.key[1:] == ("self.turns += 1", "pass"))
    argued = [each for each in every if each.key in EQUIVALENT and each.place.plays]
    for company in companies(argued, 0):
        assert together(company, reference)
        assert not together([*company, broken], reference)


def test_mutants_in_company_are_all_there_and_no_two_of_one_place(every: list[Mutant]) -> None:
    some = every[:40]
    made = [companies(some, batch) for batch in (0, 1)]
    for found in made:
        assert sorted(each.told for company in found for each in company) == sorted(
            each.told for each in some
        )
        for company in found:
            scopes = [place_of(each) for each in company]
            assert len(set(scopes)) == len(scopes)
    assert made[0] != made[1]


FUNCTION = """
def first(number: int) -> bool:
    return number < 2


def second(number: int) -> bool:
    return number < 2
"""


def of_source(source: str) -> list[Mutant]:
    tree = ast.parse(source)
    return [Mutant(PLACES[0], "any", tree, change, change.rule) for change in changes(tree)]


def test_what_a_mutant_is_known_by_stays_when_something_else_changes() -> None:
    before = set(names(of_source(FUNCTION)))
    after = set(names(of_source("def another(number: int) -> int:\n    return number + 1\n" + FUNCTION)))
    assert len(before) == len(of_source(FUNCTION))
    assert before < after


@pytest.mark.long
def test_what_was_tried_is_not_tried_again(
    tmp_path: Path, reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.mutation.run.library", lambda: reference)
    monkeypatch.setattr("tests.mutation.run.unsound", lambda places: [])
    places = [each for each in PLACES if each.name == "gate"]
    told: list[str] = []
    run(places, 2, 22, 0, told.append, tmp_path / "log")
    assert sum(" s  " in line for line in told) >= 2
    table = told[-3:]
    with (tmp_path / "log").open("a") as file:
        file.write('{"mutant": "half a li')
    told.clear()
    run(places, 2, 22, 0, told.append, tmp_path / "log")
    assert not any(" s  " in line for line in told)
    assert told[-3:] == table


def test_a_survivor_is_tried_again_when_its_tests_are_others(tmp_path: Path, every: list[Mutant]) -> None:
    one = next(each for each in every if each.place.name == "gate")
    log = Log(tmp_path / "log")
    log.keep(one, Outcome("survived", "", 1.0))
    log.keep_played(one, 500)
    known = Log(tmp_path / "log")
    assert known.outcome(one) == Outcome("survived", "", 1.0)
    assert known.played(one) == 500
    other = replace(one, place=replace(one.place, tests=("tests/stats/test_power.py",)))
    assert known.outcome(other) is None
    log.keep(one, Outcome("tests", "a test", 1.0))
    assert Log(tmp_path / "log").outcome(other) == Outcome("tests", "a test", 1.0)
