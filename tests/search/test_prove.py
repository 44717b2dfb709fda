"""What is proved and refuted, and that a saved counterexample does what it claims."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import random
import types
from array import array
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evalkit.core.decisions import End, Resend, RunTools, Send
from evalkit.drivers.in_process import StageInstruments
from evalkit.loop import transitions
from evalkit.loop.state import Loop, State
from evalkit.scenarios.loader import load_file, load_text
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.scoring.soundness import check_scenario
from evalkit.search.proofs.alphabet import alphabet
from evalkit.search.proofs.cycles import find_cycle
from evalkit.search.proofs.environment import Setting
from evalkit.search.proofs.prove import Proof, Result, error_seeds, prove
from evalkit.search.proofs.reachable_values import Held
from evalkit.search.proofs.shipped_proofs import table_text, write_table
from evalkit.search.proofs.steps import Rules
from evalkit.search.properties import PROPERTIES
from evalkit.strategies import Strategy
from evalkit.strategies import conditions as c
from evalkit.strategies.folds import BaseFold
from evalkit.strategies.presets import PRESETS


def answers(proof: Proof) -> dict[str, str]:
    return {result.property: result.answer for result in proof.results}


def only(name: str, strategy: str | Strategy, setting: Setting | None = None, **more: Any) -> Result:
    found = PRESETS[strategy].strategy if isinstance(strategy, str) else strategy
    (result,) = prove(found, setting or Setting(2), (name,), **more).results
    return result


def replayed(result: Result, strategy: Strategy) -> Episode:
    counterexample = result.counterexample
    assert counterexample is not None
    (scenario,) = load_text(counterexample.text)
    return run_episode(Arena(scenario, strategy.offers), strategy, counterexample.seed)


# The answers that are asked for


@pytest.mark.long
def test_gate_is_never_done_too_early() -> None:
    result = only("no_false_done", "gate", Setting(3))
    assert (result.answer, result.states) == ("proved", 1632)
    assert result.transitions > 100_000


@pytest.mark.long
@pytest.mark.parametrize("skippable", [1, 2])
def test_gate_with_items_that_may_be_skipped(skippable: int) -> None:
    names = ("no_false_done", "no_early_stop", "no_cut_off_call", "no_duplicate_effects", "clean_requests")
    proof = prove(PRESETS["gate"].strategy, Setting(2, "full", skippable), names)
    assert set(answers(proof).values()) == {"proved"}


def test_gate_without_checks_can_be_fooled() -> None:
    result = only("no_false_done", "gate", Setting(2, "none"))
    assert result.counterexample is not None
    assert result.counterexample.turns == 4
    assert "does beta wrongly, success reported" in result.counterexample.moves


def test_silence_falls_in_one_turn() -> None:
    result = only("no_false_done", "silence", Setting(3))
    assert result.counterexample is not None
    assert result.counterexample.turns == 1
    assert result.counterexample.outcome == "done/reachable"


def test_checklist_falls_for_ticks_without_work() -> None:
    result = only("no_false_done", "checklist", Setting(3))
    assert result.counterexample is not None
    assert result.counterexample.moves == ("lists the items", "ticks everything", "reports progress")


def test_infinite_nudge_is_endless() -> None:
    result = only("always_ends", "infinite_nudge", Setting(3))
    assert result.counterexample is not None
    assert result.counterexample.outcome == "never/reachable"
    assert replayed(result, PRESETS["infinite_nudge"].strategy).turns == 60


def test_a_turn_limit_ends_every_run() -> None:
    result = only("always_ends", "gate")
    assert result.answer == "proved"
    assert "40 turns" in result.how


# The larger alphabet, and what was reached

FULL = Setting(1, "full", 0, "full")


def test_gate_holds_against_the_larger_alphabet() -> None:
    proof = prove(PRESETS["gate"].strategy, FULL, ("no_false_done", "no_early_stop", "no_duplicate_effects"))
    assert set(answers(proof).values()) == {"proved"}
    assert proof.results[0].witnesses.count == "13/13"
    assert proof.results[0].witnesses.never == ()


def test_what_is_not_reached_and_never_made_is_said() -> None:
    found = only("capped_nudges", "silence").witnesses
    assert found.missing == ("cap on nudges",)
    assert found.never == ("undoes alpha", "undoes beta")


def test_a_worker_that_is_killed_repeats_what_is_still_on_its_way() -> None:
    worker = msgspec.structs.replace(FULL, worker=True)
    found = only("no_duplicate_effects", "gate", worker).counterexample
    assert found is not None
    assert found.moves == ("does alpha, its effect to come late, the worker killed",)
    assert only("no_false_done", "gate", worker).answer == "proved"
    with pytest.raises(ValueError, match="only with the alphabet full"):
        Setting(1, worker=True)


def test_a_loop_that_stays_when_the_user_has_left_is_refuted() -> None:
    def deaf(bound: Loop, state: State, turn: Any, instruments: Any) -> Any:
        """Ends done where the user has left."""
        new, action, verdict = transitions.on_turn(bound, state, turn, instruments)
        gone = isinstance(action, End) and action.ending.native == "user_gone"
        return new, End(msgspec.structs.replace(action.ending, kind="done")) if gone else action, verdict

    found = only("no_false_done", "gate", FULL, rules=Rules(on_turn=deaf)).counterexample
    assert found is not None
    assert "is written to by the user, who leaves" in found.moves


# Saved counterexamples


#: The presets that are small; unattended and its like take longer and show nothing else.
SMALL = [
    *("silence", "read_text", "keyword", "turn_cap", "infinite_nudge", "finish_tool", "validated_finish"),
    *("typed_output", "checklist", "artifact", "certificate", "verifier_claim", "verifier_evidence", "gate"),
]


@pytest.mark.long
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("checks", ["full", "none"])
def test_each_counterexample_is_what_it_says(name: str, checks: Any) -> None:
    strategy = PRESETS[name].strategy
    names = tuple(name for name in PROPERTIES if not name.startswith("capped"))
    items = 1 if name == "gate" else 2
    proof = prove(strategy, Setting(items, checks, 1 if checks == "none" else 0), names)
    for result in proof.results:
        if result.counterexample is not None:
            episode = replayed(result, strategy)
            assert episode.outcome == result.counterexample.outcome
            assert episode.native == result.counterexample.native
            if episode.ending != "never":
                assert result.counterexample.turns <= episode.turns
            broken = {
                "no_false_done": episode.false_done,
                "no_early_stop": episode.ending in ("done", "partial", "error")
                and episode.truth == "reachable",
                "always_ends": episode.ending == "never",
                "honest_report": episode.honest_report is False,
                "exact_report": episode.honest_report is False or episode.over_reported > 0,
                "no_cut_off_call": episode.ran_cut_off_call,
                "no_duplicate_effects": episode.duplicate_effects > 0,
            }
            assert broken[result.property], result
            (scenario,) = load_text(result.counterexample.text)
            assert not [found for found in check_scenario(scenario, {}) if found.fails]


@pytest.mark.parametrize("cap", [1, 3])
def test_caps_are_played_out(cap: int) -> None:
    strategy = Strategy(
        done_when=c.acceptance(), then="done", nudges=cap, resends=cap + 2, cut_offs=cap + 2, overflow="stop"
    )
    result = only("no_false_done", strategy)
    assert result.counterexample is not None
    assert result.counterexample.turns == cap + 1


def test_limits_are_played_out() -> None:
    strategy = Strategy(done_when=c.acceptance() & c.checklist(), limit_checked="before_done", max_turns=7)
    result = only("honest_report", strategy.but(done_when=strategy.done_when | c.verifier()))
    assert result.answer in ("proved", "refuted")
    late = strategy.but(done_when=~c.acceptance(), then="error", max_turns=3)
    assert only("no_early_stop", late).answer == "refuted"


def test_token_limits_bind() -> None:
    strategy = Strategy(done_when=c.acceptance(), max_turns=None, max_tokens=2000)
    assert "token" in only("always_ends", strategy).how
    assert only("no_false_done", strategy).answer == "proved"


# Loops that are wrong


def hasty(bound: Loop, state: State, turn: Any, instruments: Any) -> Any:
    """Runs calls of cut-off turns."""
    if turn.kind == "cut_off" and turn.calls and not state.ran:
        return state, RunTools(turn.calls), None
    return transitions.on_turn(bound, state, turn, instruments)


def forgetful(bound: Loop, state: State, ran: Any) -> State:
    """Resets the nudges with any call."""
    return msgspec.structs.replace(transitions.on_results(bound, state, ran), nudges=0)


def tireless(bound: Loop, state: State, turn: Any, instruments: Any) -> Any:
    """Sends a paused turn back whatever the limits say."""
    if turn.kind == "pause":
        return state, Resend(), None
    return transitions.on_turn(bound, state, turn, instruments)


def chatty(bound: Loop, state: State, turn: Any, instruments: Any) -> Any:
    """Answers a paused turn with a user message."""
    new, action, verdict = transitions.on_turn(bound, state, turn, instruments)
    return new, Send("Continue.") if isinstance(action, Resend) else action, verdict


GATE = PRESETS["gate"].strategy


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("no_cut_off_call", Rules(on_turn=hasty)),
        ("no_duplicate_effects", Rules(on_turn=hasty)),
        ("capped_nudges", Rules(on_results=forgetful)),
        ("always_ends", Rules(on_turn=tireless)),
        ("capped_repeats", Rules(on_turn=tireless)),
        ("clean_requests", Rules(on_turn=chatty)),
    ],
)
def test_a_wrong_loop_is_refuted(name: str, rules: Rules) -> None:
    # A finish call is a decision and a call in one turn, so that a loop can forget its nudges there.
    strategy = GATE.but(done_when=GATE.done_when & c.finish())
    assert only(name, strategy, Setting(1), rules=rules).answer == "refuted"
    assert only(name, strategy, Setting(1)).answer == "proved"


# What cannot be explored to the end


class Kinds(BaseFold):
    """Remembers the kind of every turn."""

    name = "kinds"

    def start(self, task: Any) -> Hashable:
        return ()

    def after_turn(self, memory: Any, turn: Any, task: Any) -> Hashable:
        return (*memory, turn.kind)


class Longer(c.Condition):
    """Met after three turns."""

    folds = (Kinds(),)
    finite = True

    def __call__(self, view: Any) -> Any:
        return c.Verdict(len(view.memory["kinds"]) >= 3, "turns")


def test_open_memory_is_bounded() -> None:
    strategy = Strategy(done_when=Longer() & c.acceptance())
    assert only("no_false_done", strategy, Setting(1), depth=3).answer == "bounded"
    refuted = only("no_false_done", Strategy(done_when=Longer()), Setting(1), depth=3)
    assert refuted.counterexample is not None
    assert refuted.counterexample.turns == 3


def test_a_plain_function_is_bounded_unless_it_says_otherwise() -> None:
    def test(view: Any) -> bool:
        return view.instruments.checks().met

    assert only("no_false_done", Strategy(done_when=c.when(test)), Setting(1), depth=2).answer == "bounded"
    finite = Strategy(done_when=c.when(test, finite=True))
    assert only("no_false_done", finite, Setting(1)).answer == "proved"


# Nothing is proved that is not


ACCEPTED = c.acceptance()
FLAG = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
SEVEN = {"type": "object", "properties": {"n": {"const": 7}}, "required": ["n"]}


@pytest.mark.parametrize(
    "condition",
    [
        (ACCEPTED & c.keyword("OVER")) | c.keyword("HALT"),
        c.keyword("HALT") | (c.keyword("OVER") & ACCEPTED),
        c.keyword("HALT") & c.keyword("OVER"),
        (ACCEPTED & c.typed_output(FLAG)) | c.typed_output(SEVEN),
        c.typed_output(SEVEN) | (c.typed_output(FLAG) & ACCEPTED),
        c.typed_output(SEVEN) & c.typed_output(FLAG),
        c.typed_output(FLAG) & c.keyword("HALT"),
    ],
    ids=str,
)
def test_each_keyword_is_said_and_each_schema_filled(condition: c.Condition) -> None:
    result = only("no_false_done", Strategy(done_when=condition))
    assert result.counterexample is not None
    assert result.counterexample.turns == 1
    assert replayed(result, Strategy(done_when=condition)).false_done


def test_a_schema_that_cannot_be_filled_is_refused() -> None:
    words = {
        "type": "object",
        "properties": {"why": {"type": "string", "minLength": 500}},
        "required": ["why"],
    }
    result = only("no_false_done", Strategy(done_when=ACCEPTED | c.typed_output(words)))
    assert result.answer == "refused"
    assert "no value was found of the schema" in result.how


class Heard(BaseFold):
    """Whether a word fell that no move says."""

    name = "word"
    holds = "finite"

    def after_turn(self, memory: Any, turn: Any, task: Any) -> Hashable:
        return 1 if memory or "sesame" in turn.text else 0

    def after_results(self, memory: Any, ran: Any, task: Any) -> Hashable:
        return 1 if memory or any("sesame" in record.result.text for record in ran) else 0


class Opened(c.Condition):
    folds = (Heard(),)
    finite = True

    def __call__(self, view: Any) -> Any:
        return c.Verdict(bool(view.memory["word"]) or view.instruments.checks().met, "opened")


@pytest.mark.parametrize(
    ("test", "reads"),
    [
        (lambda view: view.instruments.tokens > 100, "what the run has cost"),
        (lambda view: view.instruments.usd > 1, "what the run has cost"),
        (lambda view: len(view.turn.text) > 200, "a turn's text"),
        (lambda view: "all good" in view.text, "a turn's text"),
        (lambda view: len(view.turn.calls) > 2, "which calls a turn has and how many"),
        (lambda view: any(call.tool == "deploy" for call in view.turn.calls), "which calls"),
        (lambda view: view.turn.native == "safety", "a turn's native"),
        (lambda view: view.turn.tokens > 1000, "a turn's tokens"),
        (lambda view: "sesame" in repr(view.turn), "a turn as a whole"),
        (lambda view: view.turn == "sesame", "a turn as a whole"),
        (lambda view: view.text.startswith("{") and "yes" in json.loads(view.text).values(), "a turn's text"),
        (lambda view: "sesame" in view.task.prompt, "the task's prompt"),
        (lambda view: view.task.seed == 7, "the task's seed"),
        (lambda view: view.finish is not None and len(view.finish.skipped) > 1, "what a finish names"),
    ],
)
def test_what_no_move_varies_is_refused(test: Any, reads: str) -> None:
    own = c.when(lambda view: test(view) or view.instruments.checks().met, finite=True)
    result = only("no_false_done", Strategy(done_when=own, check="each_tool_turn"))
    assert result.answer == "refused"
    assert reads in result.how


def test_a_fold_that_reads_words_is_refused() -> None:
    proof = prove(Strategy(done_when=Opened()), Setting(1), ("no_false_done", "always_ends"))
    assert [result.answer for result in proof.results] == ["refused", "refused"]
    assert "a turn's text, a result's text" in proof.results[0].how
    assert not proof.holds


ASKED = 0


def counting(view: Any) -> bool:
    global ASKED
    ASKED += 1
    return ASKED > 10**6 or view.instruments.checks().met


def closure() -> Any:
    count = itertools.count()
    return lambda view: next(count) > 10**6 or view.instruments.checks().met


def by_chance(view: Any) -> bool:
    return random.random() < 1e-9 or view.instruments.checks().met


def by_clock(view: Any) -> bool:
    import time

    return time.time() > 1e12 or view.instruments.checks().met


class Counted:
    asked = 0


class Slotted:
    __slots__ = ("asked",)

    def __init__(self) -> None:
        self.asked = 0


class Holder:
    def __init__(self) -> None:
        self.inner = Slotted()


HELD, STATE = Holder(), types.ModuleType("state")
STATE.asked = 0  # type: ignore[attr-defined]


def counting_on(counter: Any) -> Any:
    def test(view: Any) -> bool:
        counter.asked += 1
        return counter.asked > 10**6 or view.instruments.checks().met

    return test


def counting_in_a_module(view: Any) -> bool:
    STATE.asked += 1
    return STATE.asked > 10**6 or view.instruments.checks().met


def counting_within(view: Any) -> bool:
    HELD.inner.asked += 1
    return HELD.inner.asked > 10**6 or view.instruments.checks().met


def yielding() -> Any:
    numbers = (number for number in range(10**9))
    return lambda view: next(numbers) > 10**6 or view.instruments.checks().met


def reading_a_file(view: Any) -> bool:
    with open(__file__) as file:
        return file.read(5) == "false" or view.instruments.checks().met


drawn, now = random.random, datetime.datetime.now


@pytest.mark.long
@pytest.mark.parametrize(
    ("test", "why"),
    [
        (counting, "changes a memory of its own"),
        (closure(), "changes a memory of its own"),
        (counting_on(Counted), "changes a memory of its own"),
        (counting_on(Slotted()), "changes a memory of its own"),
        (counting_within, "changes a memory of its own"),
        (counting_in_a_module, "changes a memory of its own"),
        (yielding(), "asks generator"),
        (by_chance, "asks random"),
        (lambda view: drawn() < 1e-9 or view.instruments.checks().met, "asks Random.random"),
        (lambda view: os.urandom(2) == b"no" or view.instruments.checks().met, "asks os"),
        (by_clock, "asks time"),
        (lambda view: now().year > 2999 or view.instruments.checks().met, "asks now"),
        (lambda view: "HALT" in os.environ or view.instruments.checks().met, "asks os"),
        (reading_a_file, "asks open"),
        (lambda view: id(view) % 1009 == 7 or view.instruments.checks().met, "asks id"),
    ],
)
def test_what_is_no_function_is_refused(test: Any, why: str) -> None:
    result = only("no_false_done", Strategy(done_when=c.when(test, finite=True)), Setting(1))
    assert result.answer == "refused"
    assert why in result.how


class Tallied(BaseFold):
    """Counts beside its memory."""

    name = "tallied"
    holds = "finite"
    asked = 0

    def after_turn(self, memory: Any, turn: Any, task: Any) -> Hashable:
        Tallied.asked += 1
        return Tallied.asked > 10**6


class Seeded(BaseFold):
    name = "seeded"
    holds = "finite"

    def after_turn(self, memory: Any, turn: Any, task: Any) -> Hashable:
        return task.seed == 7


@pytest.mark.parametrize(
    ("fold", "why"), [(Tallied(), "tallied changes a memory of its own"), (Seeded(), "the task's seed")]
)
def test_a_fold_that_is_no_function_of_what_it_is_given_is_refused(fold: Any, why: str) -> None:
    class Folded(c.Condition):
        folds = (fold,)
        finite = True

        def __call__(self, view: Any) -> Any:
            return c.Verdict(bool(view.memory[fold.name]) or view.instruments.checks().met, "folded")

    result = only("no_false_done", Strategy(done_when=Folded()), Setting(1))
    assert result.answer == "refused"
    assert why in result.how


def test_an_attribute_with_the_name_of_a_clock_is_none() -> None:
    class Calm(c.Condition):
        finite = True
        time = id = 1

        def __call__(self, view: Any) -> Any:
            return c.Verdict(self.time == self.id and view.instruments.checks().met, "calm")

    assert only("no_false_done", Strategy(done_when=Calm()), Setting(1)).answer == "proved"


class Moody(c.Condition):
    """Hangs on something that nobody can see: every third answer is another."""

    finite = True
    asked = array("i", [0])

    def __call__(self, view: Any) -> Any:
        self.asked[0] += 1
        return c.Verdict(self.asked[0] % 3 == 0 and view.instruments.checks().met, "moody")


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held is not looked through: for what is noticed all the same."""
    for name in ("_holds", "_asks"):
        monkeypatch.setattr(Held, name, lambda self, value: [])
    monkeypatch.setattr(Held, "text", lambda self: "")


@pytest.mark.usefixtures("unseen")
def test_a_state_met_again_gives_the_same_verdict() -> None:
    result = only("no_false_done", Strategy(done_when=Moody() & ACCEPTED))
    assert result.answer == "refused"
    assert "another verdict for a state that was met again" in result.how


@pytest.mark.usefixtures("unseen")
def test_a_counterexample_is_played_twice() -> None:
    class Once(c.Condition):
        finite = True
        met = array("i", [0])

        def __call__(self, view: Any) -> Any:
            # The exploration asks of its own instruments; a real run has a stage.
            if not isinstance(view.instruments, StageInstruments):
                return c.Verdict(True, "explored")
            self.met[0] += 1
            return c.Verdict(self.met[0] == 1, "once")

    result = only("no_false_done", Strategy(done_when=Once()))
    assert result.answer == "refused"
    assert "when it was played twice" in result.how


def test_every_answer_says_over_what_it_holds() -> None:
    proof = prove(Strategy(done_when=c.keyword("HALT") & ACCEPTED), Setting(2, "weak", 1), ("no_false_done",))
    assert proof.over.startswith(f"{proof.moves} moves, the words HALT, 2 items, 1 of them skippable")


def test_depth_and_states_are_bounds() -> None:
    shallow = only("no_false_done", "gate", depth=2)
    assert (shallow.answer, shallow.depth) == ("bounded", 2)
    small = only("no_false_done", "gate", max_states=50)
    assert small.answer == "bounded"
    assert "50 states" in small.how


# Seeded errors


def test_seeded_errors_are_free_choices() -> None:
    fooled = Strategy(done_when=c.verifier(sees="evidence", fooled=0.05))
    result = only("no_false_done", fooled)
    assert result.counterexample is not None
    assert result.counterexample.turns == 1
    assert replayed(result, fooled).outcome == "done/reachable"
    missing = Strategy(done_when=c.acceptance() & c.verifier(sees="evidence", misses=0.1, fooled=0.1))
    assert only("no_false_done", missing).answer == "proved"


@pytest.mark.parametrize("errors", ["independent", "persistent"])
def test_seeds_cover_what_errors_can_do(errors: Any) -> None:
    reader = c.verifier(misses=0.2, fooled=0.3, errors=errors)
    strategy = Strategy(done_when=reader)
    task = Arena(load_text(only("no_false_done", "silence").counterexample.text)[0], strategy.offers).task(0)  # type: ignore[union-attr]
    drawn = set()
    for seed in error_seeds(strategy, task, 40):
        view = c.View(msgspec.structs.replace(task, seed=seed), None, {}, None, 1)  # type: ignore[arg-type]
        drawn.add((reader.draw(view, "misses") < 0.2, reader.draw(view, "fooled") < 0.3))
    assert len(drawn) == 4


# Smaller parts


def test_cycles() -> None:
    assert find_cycle({0: [(1, 10), (2, 11)], 1: [(2, 12)], 2: []}) is None
    assert find_cycle({0: [(1, 10), (2, 11)], 1: [(2, 12)], 2: [(1, 13)]}) == ((10, 12, 13), 1)
    assert find_cycle({0: [(0, 7)]}) == ((7,), 0)


def test_no_cycle_without_a_limit() -> None:
    strategy = Strategy(done_when=c.acceptance(), max_turns=None, nudges=2)
    talk = tuple(move for move in alphabet(strategy, 1) if move.name == "says something")
    result = only("always_ends", strategy, Setting(1), moves=talk)
    assert (result.answer, result.depth) == ("proved", 3)
    assert only("always_ends", strategy, Setting(1)).answer == "refuted"


def test_errors_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="unknown property 'safe'; known: no_false_done"):
        prove(GATE, Setting(1), ("safe",))
    with pytest.raises(ValueError, match="items must be from 1 to 8"):
        Setting(9)
    with pytest.raises(ValueError, match="skippable must be from 0"):
        Setting(2, "full", 3)


def test_table(tmp_path: Path) -> None:
    names = ("no_false_done", "capped_nudges", "honest_report")
    proofs = [prove(PRESETS[name].strategy, Setting(1), names) for name in ("silence", "keyword", "gate")]
    written = write_table(proofs, tmp_path / "proofs.md")
    text = (tmp_path / "proofs.md").read_text()
    assert text == table_text(proofs, "proofs")
    assert "| `silence` | [1](proofs/silence-no-false-done.yaml) | ✓ 8/9 | – |" in text
    assert "| `keyword` | [1](proofs/keyword-no-false-done.yaml) | – | – |" in text
    for path in written[1:]:
        (scenario,) = load_file(path)
        assert scenario.family == "worst_cases"
    assert {path.name for path in (tmp_path / "proofs").iterdir()} == {path.name for path in written[1:]}


def test_every_property_says_what_it_is() -> None:
    assert len({found.bit for found in PROPERTIES.values()}) == len(PROPERTIES)
    assert not isinstance(End, str)
