"""A population held to halves of the tasks that it was not fitted to, beside resampling."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from evalkit.fit import validate
from evalkit.fit.drawn_recordings import record_of
from evalkit.fit.estimates import population_of
from evalkit.fit.grouping import Grouping
from evalkit.fit.quantiles import middle
from evalkit.fit.recorded_runs import Reading, Seen
from evalkit.fit.validate import (
    PREDICTED,
    Held,
    UnvalidatedError,
    half_splits,
    judged,
    left_out,
    score,
    validated,
    verdict,
)
from evalkit.scenarios.population import Population
from evalkit.transcripts.labels import Labels
from tests.fit.made import lives, recordings


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[Seen]:
    file = recordings(tmp_path_factory.mktemp("validate"), 24, 2)
    return Reading(Grouping(), Labels(), PREDICTED).read([file])


def _population(seen: Sequence[Seen], name: str = "p") -> Population:
    return population_of(name, [one.life for one in seen], "", "")


def test_halves_are_of_tasks_and_share_none(seen: list[Seen]) -> None:
    for first, second in half_splits(_population(seen), seen, 5):
        one, other = ({run.life.task for run in half} for half in (first, second))
        assert len(one) == len(other) == 12
        assert not one & other
        assert len(first) + len(second) == len(seen)


def test_few_tasks_cannot_be_split(seen: list[Seen]) -> None:
    few = [one for one in seen if one.life.task in {"0", "1", "2"}]
    with pytest.raises(UnvalidatedError, match="3 tasks; 20 at least"):
        list(half_splits(_population(seen), few, 2))


def test_a_population_says_how_it_predicted(seen: list[Seen], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "DRAWS", 8)
    found = validated(_population(seen), seen, 2).calibration
    assert found.status in ("calibrated", "not calibrated")
    assert found.splits == 2
    assert found.figures > 5
    assert found.says.startswith("2 half-splits by task")
    assert found.coverage is not None
    assert found.resampling_coverage is not None
    near = found.coverage >= found.resampling_coverage - validate.COVERAGE_LESS
    low = (found.score or 0) <= validate.SCORE_TIMES * (found.resampling_score or 0)
    assert (found.status == "calibrated") == (near and low)


def test_a_population_of_another_agent_is_not_calibrated(
    seen: list[Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that never stops but by a claim, held to runs that do: its predictions miss."""
    monkeypatch.setattr(validate, "DRAWS", 10)
    fitted = validate.fitted

    def other(name: str, of: Sequence[object], **more: str) -> Population:
        found = fitted(name, of, **more)  # type: ignore[arg-type]
        wrong = {
            key: msgspec.structs.replace(value, count=0 if key.startswith("false") else value.base)
            for key, value in found.estimates.items()
            if key.startswith(("false", "hands over"))
        }
        return msgspec.structs.replace(found, estimates={**found.estimates, **wrong})

    monkeypatch.setattr(validate, "fitted", other)
    assert validated(_population(seen), seen, 2).calibration.status == "not calibrated"


def test_models_and_harnesses_are_left_out_once_each(seen: list[Seen]) -> None:
    def of(place: int, one: Seen) -> Seen:
        # Each model has run each task.
        life = msgspec.structs.replace(one.life, model="ab"[place % 2])
        return msgspec.structs.replace(one, life=life)

    assert list(left_out(seen)) == []
    found = dict(left_out([of(place, one) for place, one in enumerate(seen)]))
    assert set(found) == {"a", "b"}
    others, own = found["a"]
    assert {one.life.model for one in own} == {"a"}
    assert {one.life.model for one in others} == {"b"}
    assert len(others) + len(own) == len(seen)


def test_what_a_population_writes_is_judged_as_recordings_are() -> None:
    """The figures of a written file are those of the drawn life."""
    for life in lives(5, 2):
        row = judged(record_of(life, life.task))[0]
        ending = {"done": "done", "escalated": "escalated"}.get(life.exit, "limit")
        assert (row.ending, row.turns) == (ending, life.turns)
        assert row.label == ("complete" if life.truth == "right" else "incomplete")


# The verdict


def test_an_interval_score_is_width_and_what_was_missed() -> None:
    assert score(0.5, (0.4, 0.6)) == pytest.approx(0.2)
    assert score(0.3, (0.4, 0.6)) == pytest.approx(0.2 + 20 * 0.1)
    assert score(0.8, (0.4, 0.6)) == pytest.approx(0.2 + 20 * 0.2)


def test_coverage_and_score_decide_beside_resampling() -> None:
    def held(fitted: tuple[float, float]) -> Held:
        return Held("x", 0.5, fitted, (0.4, 0.6))

    assert verdict([held((0.39, 0.61))] * 2, 2).calibrated
    assert not verdict([held((0.2, 0.8))] * 2, 2).calibrated  # as sure to hold, and three times as wide
    assert not verdict([held((0.6, 0.8))] * 2, 2).calibrated  # it misses
    near = verdict([held((0.505, 0.515))] * 2, 2)  # it misses by little, and its score is good
    assert near.score < near.resampling_score
    assert not near.calibrated


def test_figures_that_are_always_equal_count_once() -> None:
    one = [Held("x", value, (0.0, 1.0), (0.0, 1.0)) for value in (0.2, 0.3)]
    twin = [msgspec.structs.replace(held, name="twin") for held in one]
    other = [Held("y", value, (0.0, 1.0), (0.0, 1.0)) for value in (0.2, 0.4)]
    assert verdict([*one, *twin, *other], 2).figures == 2


def test_the_middle_of_values() -> None:
    assert middle([float(number) for number in range(101)]) == (5.0, 95.0)
    assert middle([3.0]) == (3.0, 3.0)
