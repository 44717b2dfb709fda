"""Evidence over the looks of a check that errs: what it bounds, what it costs, what it assumes."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from evalkit.search.proofs.prove import prove
from evalkit.strategies import conditions as c
from evalkit.strategies import folds
from evalkit.strategies.folds import MAX_STARTS, Evidence
from evalkit.strategies.registry import StrategyError, find_strategy, read_strategy
from evalkit.strategies.strategy import Strategy
from evalkit.worker.encoding import dump_state, load_state
from tests.helpers import play, scenario

NEVER = [{"say": "Done.", "claim": "done"}]
GIVEN = {"items": "given", "checks": "none"}
ERRS = c.verifier(sees="evidence", fooled=0.2)


def strategy(done_when: c.Condition, looks: int = 20) -> Strategy:
    return Strategy(name="looks", done_when=done_when, nudges=looks - 1, max_turns=None)


def test_on_unfinished_work_the_evidence_is_one_on_average() -> None:
    fold = Evidence(c.verifier(), fooled=0.3, alpha=1e-9)
    total = entered = 0.0
    for looks in product((True, False), repeat=7):
        memory = (0, 0, True)
        for passed in looks:
            memory = (*fold.weigh((memory[0], memory[1], True), passed)[:2], True)
        chance = 0.3 ** sum(looks) * 0.7 ** (7 - sum(looks))
        total += chance * fold.e_value(memory)
    entered = sum(1 / (n * (n + 1)) for n in range(1, 8))
    # What has entered by then; the rest of the stake is still outside.
    assert total == pytest.approx(entered)


def test_more_looks_before_ask_for_more_passes() -> None:
    fold = Evidence(c.verifier(), fooled=0.1, alpha=0.05)

    def needed(before: int) -> int:
        return next((n for n in range(1, 20) if fold.suffices((before, n, False))), 0)

    assert [needed(before) for before in (0, 1, 12)] == [2, 3, 4]
    assert needed(MAX_STARTS) == 0


def test_a_second_look_at_the_same_turn_is_no_evidence() -> None:
    fold = Evidence(c.verifier(), fooled=0.1, alpha=0.05)
    once = fold.weigh((0, 0, True), True)
    assert fold.weigh(once, True) == once == (0, 1, False)


def test_what_the_user_asks_for_later_is_another_question() -> None:
    fold = Evidence(c.verifier(), fooled=0.1, alpha=0.05)
    task = object()
    assert fold.after_asks((3, 2, True), 1, task) == (5, 0, True)  # type: ignore[arg-type]


def test_false_dones_stay_below_alpha_where_one_look_does_not() -> None:
    stuck = scenario(NEVER, task=GIVEN)
    once = sum(play(stuck, strategy(ERRS), seed).false_done for seed in range(300))
    weighed = c.evidence_over_time(0.05, ERRS, fooled=0.2)
    over_time = sum(play(stuck, strategy(weighed), seed).false_done for seed in range(300))
    assert once > 285
    assert 0 < over_time <= 15


def test_persistent_errors_are_the_same_at_every_look() -> None:
    stuck = scenario(NEVER, task=GIVEN)
    lasting = c.verifier(sees="evidence", fooled=0.2, errors="persistent")
    turns = [play(stuck, strategy(lasting), seed).turns for seed in range(300)]
    assert set(turns) == {1, 20}
    assert 40 <= turns.count(1) <= 80
    # It is told that it assumes otherwise: persistent errors gather evidence as finished work does.
    weighed = c.evidence_over_time(0.05, lasting, fooled=0.2)
    assert sum(play(stuck, strategy(weighed), seed).false_done for seed in range(300)) == turns.count(1)


def test_finished_work_costs_looks_and_ends_done() -> None:
    done = scenario([{"call": "list_items"}, {"work": "rest"}, *NEVER])
    alone, weighed = c.verifier(sees="evidence"), c.evidence_over_time(0.05, c.verifier(sees="evidence"))
    assert play(done, strategy(alone)).turns == 5
    episode = play(done, strategy(weighed))
    assert (episode.turns, episode.outcome) == (6, "done/complete")


def test_it_composes_and_says_why() -> None:
    done = scenario([{"call": "list_items"}, {"work": "rest"}, *NEVER])
    weighed = c.evidence_over_time(0.05, c.verifier(sees="evidence"))
    said = []
    both = weighed & c.when(lambda view: not said.append(weighed(view).reason), "heard")
    assert play(done, strategy(both)).outcome == "done/complete"
    assert said == [
        "every item has a recorded success, to be looked at again: evidence 5 of 20",
        "every item has a recorded success; evidence 51.7 of 20",
    ]


def test_in_a_file_and_by_name(tmp_path: Path) -> None:
    file = tmp_path / "weighed.yaml"
    file.write_text(
        "done_when: {evidence_over_time: {alpha: 0.01, of: {verifier: {sees: evidence}}, fooled: 0.2}}\n"
    )
    read = read_strategy(file)
    assert read.done_when == c.evidence_over_time(0.01, c.verifier(sees="evidence"), 0.2)
    # What is assumed of the verifier changes; what is stated of it does not.
    errs = find_strategy(f"{file}@fooled=0.4,errors=persistent")
    assert errs.done_when == c.evidence_over_time(
        0.01, c.verifier("evidence", fooled=0.4, errors="persistent"), 0.2
    )
    with pytest.raises(StrategyError, match="independent or persistent"):
        find_strategy("gate@fooled=0.1,errors=sometimes")


@pytest.mark.parametrize(
    ("rates", "said"), [({"alpha": 0}, "alpha"), ({"fooled": 1.0}, "fooled"), ({"of": 3}, "a condition")]
)
def test_rates_that_are_none(rates: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        c.evidence_over_time(**rates)  # type: ignore[arg-type]


def test_the_worker_keeps_what_was_weighed() -> None:
    done = scenario([{"call": "list_items"}, {"work": "rest"}, *NEVER])
    chosen = strategy(c.evidence_over_time(0.05, c.verifier(sees="evidence")))
    from evalkit.drivers.in_process import LoopMind, drive
    from evalkit.scoring.arena import Arena

    stage = Arena(done, chosen.offers).stage(0)
    mind = LoopMind(chosen, stage.task, stage)
    drive(mind, stage)
    assert mind.state.folds[-1] == (0, 2, False)
    assert load_state(dump_state(mind.state)) == mind.state


def test_prove_finds_the_run_of_luck_and_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed = strategy(c.evidence_over_time(0.05, ERRS, fooled=0.2), looks=4)
    (found,) = prove(weighed, names=("no_false_done",)).results
    assert found.answer == "refuted"
    assert found.counterexample is not None
    # A look that passes once is refuted by one turn; here it takes as many as the stated rate asks for.
    assert len(found.counterexample.moves) == 3
    # What is remembered is finite, so a check that is never fooled is proved; with fewer beginnings sooner.
    monkeypatch.setattr(folds, "MAX_STARTS", 4)
    folds._e_value.cache_clear()
    sure = strategy(c.evidence_over_time(0.05, c.acceptance(), fooled=0.2), looks=4)
    (proved,) = prove(sure, names=("no_false_done",)).results
    assert proved.answer == "proved"
    folds._e_value.cache_clear()
