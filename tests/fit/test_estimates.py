"""What a fit may say: numbers with intervals over tasks, or why there is none."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from evalkit.cli import main
from evalkit.fit.counting import Counts
from evalkit.fit.document import document
from evalkit.fit.estimates import population_of, why_no_truth
from evalkit.scenarios.life import KINDS, Act, Life, Part
from evalkit.scenarios.population import Population
from evalkit.scenarios.yaml_source import read_yaml
from evalkit.stats.intervals import intraclass_correlation
from evalkit.transcripts.read import read_paths
from evalkit.transcripts.recording import Recording
from tests.fit.made import lives, recordings


def evalkit(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def _population(of: list[Life]) -> Population:
    return population_of("p", of, "made", "by their field")


def test_a_parameter_has_its_counts_and_an_interval_over_tasks() -> None:
    found = _population(lives(40)).estimates["false.all"]
    assert found.low is not None
    assert found.high is not None
    assert found.rate == pytest.approx(found.count / found.base, abs=1e-4)
    assert found.low < found.rate < found.high
    # Runs of one task are much alike: they are worth fewer than they are.
    assert found.tasks <= 40
    assert found.effective < found.base
    assert found.correlation > 0.1


def test_runs_of_one_task_are_no_independent_runs() -> None:
    """The same counts in one run a task, and in four that agree: the second is worth a quarter."""
    apart = _population([*_dones(20, 1, "right"), *_dones(20, 1, "undone", "other")])
    alike = _population([*_dones(20, 4, "right"), *_dones(20, 4, "undone", "other")])
    one, four = apart.estimates["false.all"], alike.estimates["false.all"]
    assert (four.correlation, four.low, four.high) == (1.0, one.low, one.high)


def _dones(tasks: int, trials: int, truth: str, name: str = "task") -> list[Life]:
    life = Life("", (Part((Act(changes=True),), "done"),), "done", truth)  # type: ignore[arg-type]
    names = [f"{name}-{number}" for number in range(tasks) for _ in range(trials)]
    return [msgspec.structs.replace(life, task=task) for task in names]


@pytest.mark.parametrize(
    ("tasks", "false", "said"),
    [(19, 10, "19 tasks; 20 at least"), (30, 4, "4 of 34; 5 at least"), (30, 5, "")],
)
def test_few_tasks_or_few_events_give_no_number(tasks: int, false: int, said: str) -> None:
    right = _dones(tasks - 1 if tasks < 20 else tasks, 1, "right")
    wrong = [*_dones(1, false, "undone", "other")]
    # Both have labels of enough tasks by their hand-overs, so truth itself is not refused.
    over = [Life(f"over-{n}", (Part((Act(),)),), "escalated", "right") for n in range(20)]
    found = _population([*right, *wrong, *over]).estimates["false.all"]
    assert found.too_few == said
    assert (found.rate is None, found.low is None) == (bool(said), bool(said))


def test_what_is_counted_by_hand() -> None:
    """Two runs of one task: one asks, fails, tries again and is done; one is blocked and hands over."""
    fails, again = Act(changes=True, failed=True), Act(changes=True, again=True)
    one = Life("t", (Part((), "none", True), Part((fails, again), "done")), "done", "undone")
    two = Life("t", (Part((Act(),), "blocked"), Part((Act(changes=True),))), "escalated", "right")
    counts = Counts([one, two], spans=(1, 2))
    found = {name: tuple(counted.tasks["t"]) for name, counted in counts.rates.items()}
    assert [found[f"ends.all.{kind}"] for kind in KINDS] == [(1, 3), (0, 3), (1, 3), (1, 3)]
    assert (found["ends.changed.done"], found["ends.opening.none"]) == ((1, 1), (1, 2))
    assert (found["stops.all.done"], found["stops.all.none"], found["stops.all.all"]) == (
        (1, 1),
        (0, 1),
        (1, 3),
    )
    assert (found["hands over.all"], found["hands over.middle"]) == ((1, 4), (1, 2))
    assert (found["breaks off.all"], found["answers"]) == ((0, 4), (1, 2))
    assert (found["changes.all"], found["fails"]) == ((3, 4), (1, 4))
    assert (found["repeats"], found["repeats after a failure"]) == ((0, 3), (1, 1))
    assert found["ends the turn after a failure"] == (0, 1)
    assert (found["false.changed"], found["cause.changed.undone"]) == ((1, 1), (1, 1))
    assert found["right hand-overs"] == (1, 1)
    assert counts.lengths == {"opening": {0: 1, 1: 1}, "middle": {2: 1, 1: 1}}


def test_agent_other_side_and_tools_are_kept_apart() -> None:
    of = {name.partition(".")[0]: counted.of for name, counted in Counts(lives()).rates.items()}
    assert (of["ends"], of["stops"], of["fails"], of["false"]) == ("agent", "other side", "tools", "work")


def test_what_nobody_saw_is_assumed_and_named() -> None:
    assumed = _population(lives()).assumed
    assert set(assumed) == {"repairs", "silent", "channel"}
    assert all((range_.low, range_.high) == (0, 1) and range_.says for range_ in assumed.values())


# No truth


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (_dones(30, 1, ""), "no run has a label"),
        (_dones(30, 1, "undone"), "all 30 labels say incomplete"),
        ([*_dones(10, 1, "right"), *_dones(9, 1, "undone", "x")], "labels of 19 tasks; 20 at least"),
    ],
)
def test_labels_that_say_nothing_are_refused_for_truth(of: list[Life], said: str) -> None:
    population = _population(of)
    assert population.refused.startswith(said)
    assert not any(name.startswith(("false", "cause", "right")) for name in population.estimates)
    # What is true of a done is then one more thing that nobody saw.
    assert "false" in population.assumed


def test_mixed_agents_are_refused_for_truth() -> None:
    mixed = [
        msgspec.structs.replace(life, model=model)
        for model, truth in (("a", "right"), ("b", "undone"))
        for life in _dones(20, 1, truth, model)
    ]
    assert why_no_truth(mixed) == "runs of 2 agents are mixed (a, b); fit each by itself"


def test_intraclass_correlation_of_what_is_wholly_and_not_at_all_alike() -> None:
    assert intraclass_correlation([(4, 4), (0, 4), (4, 4), (0, 4)]) == 1.0
    assert intraclass_correlation([(2, 4)] * 10) == 0.0
    assert intraclass_correlation([(1, 1), (0, 1)]) == 0.0


# The document and the command


def test_the_document_is_read_as_it_was_written() -> None:
    population = _population(lives())
    (source,) = read_yaml(document(population), "p.yaml")
    assert msgspec.convert(source.value, Population) == population


def test_the_command_says_what_was_seen_assumed_and_bounded(tmp_path: Path) -> None:
    file = recordings(tmp_path)
    out = tmp_path / "mine.yaml"
    told = evalkit("fit", str(file), "--out", str(out), "-s", "silence", "-s", "acceptance")
    assert told.exit_code == 0
    assert "120 recordings of 30 tasks" in told.output
    assert "assumed: repairs, 0 to 1" in told.output
    assert "A check that names what is open completes" in told.output
    assert "mine: not validated" in told.output
    assert out.read_text(encoding="utf-8").startswith("# A population fitted to recordings")


def test_what_a_population_writes_can_be_read_and_judged(tmp_path: Path) -> None:
    out = tmp_path / "written"
    made = evalkit("fit", str(recordings(tmp_path, 20, 1)), "--write-recordings", str(out), "-s", "silence")
    assert made.exit_code == 0
    assert len(list(out.iterdir())) == 20
    found = list(read_paths([out / "draw-00.json", out / "draw-19.json"]))
    assert len(found) == 2 * 20
    assert all(isinstance(one, Recording) and one.label.complete is not None for one in found)


def test_as_json_it_is_all_of_it(tmp_path: Path) -> None:
    told = evalkit("fit", str(recordings(tmp_path, 20, 1)), "--json", "-s", "acceptance")
    values = json.loads(told.stdout)
    assert values["population"]["tasks"] == 20
    assert {row["strategy"] for row in values["bounds"]} == {"acceptance"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--name", "Not A Name"), "'Not A Name' is not a name; allowed: a-z"),
        (("--by", "("), "is no regular expression"),
        (("--by", "x(?P<task>y)"), "the pattern of --by finds no task"),
        (("-s", "nobody"), "nobody"),
        (("--labels", "nothing.csv"), "cannot be read"),
    ],
)
def test_bad_words_are_one_line_and_exit_2(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    found = evalkit("fit", str(recordings(tmp_path, 2, 1)), *words)
    assert found.exit_code == 2
    assert said in found.output


def test_recordings_of_one_task_cannot_be_split(tmp_path: Path) -> None:
    found = evalkit("fit", str(recordings(tmp_path, 1, 4)), "--validate")
    assert found.exit_code == 2
    assert "--validate: 1 tasks; 20 at least" in found.output
