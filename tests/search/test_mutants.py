"""Each mutant breaks what it says it breaks, and the score counts what the scenarios see."""

from __future__ import annotations

import msgspec
import pytest

from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.yaml_source import write_document
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.search.mutation_testing.mutants import MUTANTS
from evalkit.search.mutation_testing.score import mutation_score
from evalkit.search.proofs.counterexample import run_with
from evalkit.search.proofs.environment import Setting
from evalkit.search.proofs.prove import prove
from evalkit.search.proofs.steps import REFERENCE
from evalkit.search.proofs.symmetry import is_finite
from evalkit.strategies.presets import PRESETS

DONE = {"say": "All is done.", "claim": "done", "channel": "text"}
KEYWORD = {**DONE, "channel": "keyword"}
FINISH = {"finish": {"completed": "all"}}
REST = {"work": "rest"}
BLOCKED = {"say": "Access denied.", "claim": "blocked", "until": "never"}
LIST = {"call": "list_items"}


def scenario(*moves: dict[str, object], name: str = "made", checks: str = "full", **more: object) -> Scenario:
    setting = Setting(3, checks)  # type: ignore[arg-type]
    document = setting.document(PRESETS["gate"].strategy, list(moves), name)
    document.update(more)
    (made,) = load_text(write_document(document))
    return made


#: For each mutant a script on which it goes wrong and the original does not.
CATCHES: dict[str, Scenario] = {
    "cap_removed": scenario(LIST, BLOCKED),
    "cap_one_more": scenario(LIST, BLOCKED),
    "gaps_not_named": scenario(LIST, {"work": 2}, {"say": "Two done.", "until": "named"}, REST, DONE),
    "limit_before_done": scenario(LIST, REST, DONE, limits={"turns": 5}),
    "pause_as_done": scenario(LIST, {"pause": {}}, REST, DONE),
    "pause_answered": scenario(LIST, {"pause": {}}, REST, DONE),
    "cut_off_call_run": scenario(LIST, {"truncate": {"work": "alpha"}, "parses": True}, REST, DONE),
    "limit_not_raised": scenario(LIST, {"truncate": "text", "until": "higher_limit"}, REST, DONE),
    "refusal_for_ever": scenario(LIST, {"refuse": {}, "until": "never"}),
    "category_ignored": scenario(
        LIST,
        {"refuse": {"category": "reasoning_extraction"}, "until": "other_model"},
        {"work": "rest"},
        DONE,
        accept=["escalated/stuck"],
    ),
    "empty_as_done": scenario(LIST, {"work": 1}, {"empty": True}, REST, DONE),
    "thinking_as_done": scenario(LIST, {"work": 1}, {"think": "Next."}, REST, DONE),
    "unknown_as_done": scenario(LIST, {"work": 1, "stop": "mystery"}, REST, DONE),
    "label_trusted": scenario(LIST, {"work": 3, "parallel": True, "stop": "end_turn", "ticks": False}, DONE),
    "evidence_ignored": scenario(
        LIST, {"work": 1}, {"tick": "all"}, {"work": 1}, DONE, REST, DONE, checks="none"
    ),
    "checklist_trusted": scenario(LIST, {"tick": "all"}, DONE, REST, DONE),
    "claim_trusted": scenario(LIST, DONE, REST, DONE),
    "keyword_substring": scenario(LIST, {"say": "I will TERMINATEd soon."}, REST, KEYWORD),
    "keyword_any_case": scenario(LIST, {"say": "I terminate soon."}, REST, KEYWORD),
    "keyword_anywhere": scenario(LIST, {"say": "One moment."}, REST, KEYWORD),
    "finish_unvalidated": scenario(LIST, {"finish": {"completed": []}}, REST, FINISH),
    "skip_without_reason": scenario(
        LIST,
        {"work": 2},
        {"finish": {"completed": 2, "skipped": ["gamma"]}},
        {"work": "rest"},
        FINISH,
    ),
    "reset_by_any_call": scenario({"repeat": {"times": "forever", "do": [LIST, {"say": "Still on it."}]}}),
    "reset_by_repeats": scenario(
        LIST, {"repeat": {"times": "forever", "do": [{"work": ["alpha"]}, {"say": "Still on it."}]}}
    ),
    "never_reset": scenario(
        LIST, {"work": 1}, *([{"say": "A."}, {"say": "B."}, {"work": 1}] * 2), DONE
    ),
    "first_call_only": scenario(LIST, {"work": "rest", "parallel": True}, DONE),
    "retry_for_ever": scenario(LIST, {"fault": {"status": 529, "times": 900}}, REST, DONE),
    "limit_one_more": scenario(LIST, {"say": "Still on it.", "until": "never"}, limits={"turns": 2}),
    "nothing_outstanding": scenario(LIST, BLOCKED),
}  # fmt: skip


def test_there_are_many() -> None:
    assert len(MUTANTS) >= 30
    assert len({mutant.breaks for mutant in MUTANTS.values()}) > 50


@pytest.mark.parametrize("name", CATCHES)
def test_a_mutant_is_caught(name: str) -> None:
    mutant = MUTANTS[name]
    score = mutation_score([CATCHES[name]], [name])
    (caught,) = score.mutants
    assert caught.by or caught.differs, mutant.breaks
    assert not score.survivors


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_differs_from_its_original_in_one_thing(name: str) -> None:
    mutant = MUTANTS[name]
    original = PRESETS[mutant.original].strategy
    assert mutant.strategy.offers.keyword == original.offers.keyword
    assert mutant.strategy != original.but(name=name) or mutant.rules is not REFERENCE
    assert is_finite(mutant.strategy)


def test_the_reference_survives_itself() -> None:
    made = scenario(LIST, REST, DONE)
    strategy = PRESETS["gate"].strategy
    arena = Arena(made, strategy.offers)
    assert run_with(arena, strategy, 0)[0] == run_episode(arena, strategy, 0)


def test_what_nobody_notices_survives() -> None:
    made = scenario(LIST, REST, DONE)
    names = ("refusal_for_ever", "words_as_done")
    score = mutation_score([made], names)
    assert score.survivors == ("refusal_for_ever",)
    assert (score.caught, score.scenarios) == (1, 1)


def test_workers_change_nothing() -> None:
    made = list(CATCHES.values())[:6]
    made = [msgspec.structs.replace(scenario, name=f"made-{n}") for n, scenario in enumerate(made)]
    names = ("pause_as_done", "cap_removed")
    assert mutation_score(made, names, workers=2) == mutation_score(made, names)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("pause_as_done", "no_false_done"),
        ("cut_off_call_run", "no_cut_off_call"),
        ("pause_answered", "clean_requests"),
        ("pause_for_ever", "always_ends"),
        ("refusal_for_ever", "capped_repeats"),
        ("nothing_outstanding", "honest_report"),
        ("empty_stops", "no_early_stop"),
    ],
)
def test_the_search_finds_what_a_mutant_breaks(name: str, broken: str) -> None:
    mutant = MUTANTS[name]
    (result,) = prove(mutant.strategy, Setting(1), (broken,), rules=mutant.rules).results
    assert result.answer == "refuted"
    (reference,) = prove(PRESETS[mutant.original].strategy, Setting(1), (broken,)).results
    assert reference.answer == "proved"
