"""Each condition by itself, and how they compose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.core.decisions import Verdict
from evalkit.core.tasks import DEFAULT_OUTPUT, Limits, Task
from evalkit.core.turns import Text, Turn, make_turn
from evalkit.strategies import conditions as c
from evalkit.strategies.condition import Condition
from evalkit.strategies.folds import KNOWN
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.registry import StrategyError, find_strategy, read_strategy
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.view import View

BITS = {"users": 1, "orders": 2}


class Still:
    """Instruments that show a fixed world."""

    tokens, usd, last_turn = 0, 0.0, None

    def __init__(self, checks: Verdict = Verdict(True, "checks pass")) -> None:  # noqa: B008
        self._checks = checks

    def checks(self) -> Verdict:
        return self._checks

    def artifact(self) -> bool:
        return False

    def replays(self, item: str) -> bool:
        return item == "users"


def view(turn: Turn | None = None, seed: int = 0, **memory: int) -> View:
    task = Task("t", "p", "d", "full", False, BITS, 0, {}, Limits(), stream="t", seed=seed)
    turn = turn or make_turn((Text("All is done."),), "end_turn", claim="done")
    return View(task, turn, dict(memory), Still(), turns=3)


@pytest.mark.parametrize(("given", "items", "known"), [(True, -1, 3), (True, 2, 2), (False, -1, 0)])
def test_all_items_are_given_where_none_is_left_for_later(given: bool, items: int, known: int) -> None:
    task = Task("t", "p", "d", "full", given, BITS, 0, {}, Limits())
    assert KNOWN.start(msgspec.structs.replace(task, items=items)) == known


def test_reasons_and_gaps_are_united() -> None:
    both = c.checklist() & c.verifier(sees="evidence")
    verdict = both(view(known=3, ticked=1, succeeded=2))
    assert verdict == Verdict(False, "not ticked: orders; no recorded success: users", 3, True)
    assert (c.checklist() | c.silence())(view(known=3)).met
    assert not (~c.silence())(view()).met
    assert repr((c.silence() | c.acceptance()) & ~c.keyword()) == (
        "(silence() | acceptance()) & ~keyword(word='TERMINATE', scope='assistant')"
    )


@given(st.lists(st.booleans(), min_size=1, max_size=5))
def test_and_or_not_are_those_of_logic(values: list[bool]) -> None:
    parts = [c.when(lambda _, value=value: value) for value in values]  # type: ignore[misc]
    every: Condition = parts[0]
    some: Condition = parts[0]
    for part in parts[1:]:
        every, some = every & part, some | part
    assert every(view()).met == all(values)
    assert some(view()).met == any(values)
    assert (~every)(view()).met != all(values)


def claims_much(view: View) -> bool:
    """A function of one's own."""
    return len(view.text) > 5


def test_a_plain_function_is_a_condition_wherever_one_is_asked_for() -> None:
    for both in (c.silence() & claims_much, claims_much & c.silence()):
        assert both(view()).met
        assert not both(view(make_turn((Text("Yes."),), "end_turn"))).met
    for either in (~c.silence() | claims_much, claims_much | ~c.silence()):
        assert either(view()).reason == "claims_much is met"
    strategy = Strategy(done_when=claims_much, give_up_when=claims_much)  # type: ignore[arg-type]
    assert strategy.done_when == strategy.give_up_when == c.when(claims_much)
    assert strategy.done_when(view()) == Verdict(True, "claims_much is met")
    assert c.evidence_over_time(of=claims_much).of == c.when(claims_much)  # type: ignore[arg-type]


def no_view() -> bool:
    return True


def two(view: View, other: int) -> bool:
    return True


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: c.when(no_view), r"with one argument, the view; got no_view\(\) -> "),
        (lambda: c.silence() & two, r"with one argument, the view; got two\(view: 'View', other: 'int'\)"),
        (lambda: c.when(lambda: True), r"the view; got <lambda>\(\)"),
        (lambda: c.when(3), "takes a function of the view, got 3"),
        (lambda: c.silence() & c.acceptance, r"got the class acceptance: make one, acceptance\(\)"),
        (lambda: c.silence() | 3, "expected a condition or a function of the view, got 3"),
        (lambda: c.All(()), "expected one condition or more"),
        (lambda: c.silence() & Half(), r"the condition Half has no __call__\(self, view\)"),
        (lambda: Strategy(done_when=Half()), "done_when: the condition Half has no __call__"),
        (lambda: Strategy(done_when=c.silence), "done_when: expected a condition, got the class silence"),  # type: ignore[arg-type]
        (lambda: Strategy(done_when=None), "done_when: expected a condition"),  # type: ignore[arg-type]
        (lambda: Strategy(done_when=c.silence(), give_up_when=no_view), "give_up_when: when calls"),  # type: ignore[arg-type]
        (lambda: Strategy(done_when=c.silence(), name=""), "name must be a text, got ''"),
        (lambda: c.evidence_over_time(of=3), "of: expected a condition"),  # type: ignore[arg-type]
        (lambda: c.keyword(scope="all"), "scope is assistant or any, got 'all'"),  # type: ignore[arg-type]
        (lambda: c.keyword(word=3), "word is a text, got 3"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_condition_is_refused_where_it_is_written(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


class Half(Condition):
    """It does not answer."""


def test_what_knows_no_items_is_not_met_and_names_none() -> None:
    for condition in (
        c.checklist(),
        c.verifier(sees="evidence"),
        c.verifier(sees="transcript"),
        c.certificate(),
    ):
        verdict = condition(view())
        assert (verdict.met, verdict.gaps, verdict.names) == (False, 0, False)


def test_a_keyword_is_whole_and_case_sensitive() -> None:
    for text, met in (("TERMINATE", True), ("so: TERMINATE.", True), ("TERMINATED", False),
                      ("terminate", False), ("x/TERMINATE", False)):  # fmt: skip
        assert c.keyword()(view(make_turn((Text(text),), "end_turn"))).met is met, text
    assert c.keyword(scope="any")(view(**{"heard TERMINATE": 1})).met
    with pytest.raises(ValueError, match="cannot be blank"):
        c.keyword("")


def test_verifiers() -> None:
    assert c.verifier()(view()).met
    assert c.verifier(sees="evidence")(view(known=3, succeeded=1, skipped=2)).met
    assert not c.verifier(sees="transcript")(view(known=3, succeeded=3, failed=2)).met
    quiet = make_turn((Text("Nothing."),), "end_turn")
    assert not c.verifier(sees="transcript")(view(quiet, known=3, succeeded=3)).met
    with pytest.raises(ValueError, match="sees is claim"):
        c.verifier(sees="all")  # type: ignore[arg-type]


def test_verifier_errors_are_seeded_and_come_at_their_rate() -> None:
    sloppy = c.verifier(misses=0.3)
    answers = [sloppy(view(seed=seed)).met for seed in range(2000)]
    assert answers == [sloppy(view(seed=seed)).met for seed in range(2000)]
    assert 0.25 < 1 - sum(answers) / len(answers) < 0.35
    assert c.verifier(fooled=1.0)(view(make_turn((), "end_turn"))).met


def test_a_certificate_names_what_lacks_evidence_and_what_does_not_replay() -> None:
    verdict = c.certificate()(view(known=3, succeeded=2))
    assert verdict.reason == "no evidence for users; the evidence does not replay for orders"
    assert verdict.gaps == 3
    assert c.certificate()(view(known=1, succeeded=1)).met


def test_typed_output() -> None:
    for text, problem in (
        ('{"summary": "s", "completed": []}', ""),
        ('{"summary": "s"}', "'completed' is a required property"),
        ("[]", "[] is not of type 'object'"),
        ("Done.", "not JSON"),
    ):
        verdict = c.typed_output(DEFAULT_OUTPUT)(view(make_turn((Text(text),), "end_turn")))
        assert verdict.met is (not problem)
        assert problem in verdict.reason


class TestLibrary:
    def test_every_preset_says_where_it_comes_from_and_what_it_misses(self) -> None:
        for name, preset in PRESETS.items():
            assert preset.origin
            assert preset.cannot
            assert preset.strategy.name == name
            assert find_strategy(name) is preset.strategy

    def test_a_yaml_file(self, tmp_path: Path) -> None:
        file = tmp_path / "mine.yaml"
        file.write_text(
            "done_when: {all: [acceptance, {verifier: {sees: evidence}}, {not: {keyword: {word: STOP}}}]}\n"
            "nudges: 2\nthen: limit\n"
        )
        strategy = read_strategy(file)
        assert (strategy.name, strategy.nudges, strategy.then) == ("mine", 2, "limit")
        assert repr(strategy.done_when).startswith("acceptance() & verifier(sees='evidence'")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "done_when: silense",
                "unknown condition 'silense' (did you mean 'silence'?); known: silence, acceptance",
            ),
            (
                "done_when: silence\nnudge: 2",
                "nudge: unknown field (did you mean 'nudges'?); allowed: done_when, name, pause",
            ),
            (
                "done_when: silence\npause: maybe",
                "pause must be one of resend, as_content, stop; got 'maybe'",
            ),
            ("done_when: {verifier: {see: x}}", "see"),
            ("nudges: 2", "field 'done_when' is missing"),
            ("done_when: [", "not YAML"),
            ("- x", "a strategy is a mapping"),
        ],
    )
    def test_a_bad_yaml_file_is_named_in_one_line(self, tmp_path: Path, text: str, message: str) -> None:
        file = tmp_path / "bad.yaml"
        file.write_text(text)
        with pytest.raises(StrategyError) as caught:
            read_strategy(file)
        assert str(caught.value).startswith(str(file))
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("gaet", "unknown strategy 'gaet' (did you mean 'gate'?); known: silence, read_text"),
            ("no_module_here:x", "no module named 'no_module_here'"),
            ("json:nothing", "'json' has no 'nothing'"),
            ("json:dumps", "cannot be made: TypeError"),
            ("json:__name__", "is not a Strategy: found str"),
        ],
    )
    def test_an_unknown_name(self, name: str, message: str) -> None:
        with pytest.raises(StrategyError, match=r"[Ss]trategy") as caught:
            find_strategy(name)
        assert message in str(caught.value)
