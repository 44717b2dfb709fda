"""Experiments on checking: checklists, verifiers, certificates, checks, and what each can see."""

from __future__ import annotations

import msgspec

from evalkit.experiments.claims.bench import Bench, with_checks
from evalkit.experiments.claims.claim import Finding
from evalkit.experiments.claims.number import Number
from evalkit.scenarios.moves import AnyMove, CallMove, FinishSpec, RepeatMove, Reply, TurnMove
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.scoring.episode import Episode
from evalkit.strategies import conditions as c
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy
from evalkit.worlds import world_class

#: Presets by what they look at.
WORDS, RECORD, REPLAY, CHECKS = "verifier_claim", "verifier_evidence", "certificate", "acceptance"
# Made once: what one of them played is known by the strategy that it is.
_GATE_WITHOUT_CHECKS = Strategy(done_when=c.verifier(sees="evidence") & c.checklist(), refusal="fallback")
_LIST_IN_CONVERSATION = Strategy(done_when=c.checklist(kept="conversation"))
_CHECKS_AND_RECORD = Strategy(done_when=c.acceptance() & c.verifier(sees="evidence"))
_PERSON = PRESETS["gate"].strategy.but(done_when=~(c.silence() | ~c.silence()))


def _false(episode: Episode) -> bool:
    return episode.false_done


def _told_apart(bench: Bench, name: str) -> Number:
    pairs = bench.pairs()
    right = sum(bench.episode(one, name).twin and bench.episode(other, name).twin for one, other in pairs)
    return Number(f"{name}, twin pairs told apart", right, len(pairs))


def closing_message(bench: Bench) -> Finding:
    """Claim ``closing-words-are-equal``."""
    words = _told_apart(bench, WORDS)
    numbers = [words, *(_told_apart(bench, name) for name in (RECORD, "verifier_transcript", REPLAY, CHECKS))]
    false = [
        bench.share(f"fabricator, {name}, done on unfinished work", "fabricator", name, _false)
        for name in (WORDS, CHECKS)
    ]
    shown = words.count == 0 and numbers[-1].count > 0 and false[0].above(false[1])
    return Finding((*numbers, *false), shown, "With equal words a reader of words gets 0 by construction.")


def evidence_helps(bench: Bench) -> Finding:
    """Claim ``evidence-it-did-not-write``."""
    numbers = [
        bench.share(f"charitable_reader, {name}, done on unfinished work", "charitable_reader", name, _false)
        for name in (WORDS, RECORD)
    ]
    return Finding(tuple(numbers), numbers[0].above(numbers[1]))


def record_is_not_enough(bench: Bench) -> Finding:
    """Claim ``without-checks-a-self-report``."""
    gate = PRESETS["gate"].strategy
    without = _GATE_WITHOUT_CHECKS
    found = [s for s in bench.family("fabricated_success", "failed_step", "twins") if s.task.checks == "full"]
    numbers = (
        bench.count("gate with the checks, done on unfinished work", found, gate, _false),
        bench.count("gate without them, done on unfinished work", found, without, _false),
        bench.share("fabricator, gate without checks", "fabricator", without, _false),
        bench.share("honest_worker, gate without checks", "honest_worker", without, _false),
    )
    shown = numbers[0].count == 0 and numbers[1].count > 0 and numbers[2].above(numbers[3])
    return Finding(numbers, shown)


def checklist_limits(bench: Bench) -> Finding:
    """Claim ``checklists-catch-the-honest``."""
    honest = bench.share("progress_reporter, checklist", "progress_reporter", "checklist", _false)
    silence = bench.share("progress_reporter, silence", "progress_reporter", "silence", _false)
    ticker = bench.share("box_ticker, checklist", "box_ticker", "checklist", _false)
    shown = silence.above(honest) and honest.count == 0 and ticker.above(honest)
    return Finding((silence, honest, ticker), shown)


def outside_the_context(bench: Bench) -> Finding:
    """Claim ``lists-are-summarised-away``."""
    found = bench.family("compaction")
    loop = bench.count("kept by the loop, done on unfinished work", found, "checklist", _false)
    kept = _LIST_IN_CONVERSATION
    conversation = bench.count("kept in the conversation", found, kept, _false)
    own = [
        s for s in found if bench.episode(s, kept).false_done and not bench.episode(s, "checklist").false_done
    ]
    numbers = (loop, conversation, Number("wrong only because of the place", len(own), len(found)))
    return Finding(numbers, bool(own) and conversation.above(loop))


def validated(bench: Bench) -> Finding:
    """Claim ``finish-is-validated-in-code``."""
    believed = bench.count("finish_tool, done on unfinished work", bench.library, "finish_tool", _false)
    checked = bench.count(
        "validated_finish, done on unfinished work", bench.library, "validated_finish", _false
    )
    lies = bench.share("fabricator, validated_finish", "fabricator", "validated_finish", _false)
    note = "Validation holds the list against the list: items reported as done and never done pass it."
    return Finding((believed, checked, lies), believed.above(checked), note if lies.count else "")


def enumeration(bench: Bench) -> Finding:
    """Claim ``enumeration-comes-first``."""
    finish = PRESETS["validated_finish"].strategy
    found = [
        scenario
        for scenario in bench.library
        if scenario.task.items == "listed" and bench.episode(scenario, finish).outcome == "done/complete"
    ]
    failing = [_unlisted(scenario) for scenario in found]
    numbers = [
        bench.count(f"with a listing that always fails, {label}, done and complete", played, finish, _closed)
        for label, played in (("the items given", list(map(_given, failing))), ("no list at all", failing))
    ]
    given, unlisted = numbers
    note = (
        "Without a list there is nothing to hold a claim against. That it is the list that is missing, and "
        "not the tool, is what the first arm can refute."
    )
    return Finding((given, unlisted), 2 * given.count > len(found) and given.above(unlisted), note)


def _closed(episode: Episode) -> bool:
    return episode.outcome == "done/complete"


def _given(scenario: Scenario) -> Scenario:
    """The same scenario, its items known from the beginning."""
    task = msgspec.structs.replace(scenario.task, items="given")
    return msgspec.structs.replace(scenario, name=f"{scenario.name}, given", task=task)


def _unlisted(scenario: Scenario) -> Scenario:
    """The same scenario, its enumeration tool failing."""
    tool = next(tool.name for tool in world_class(scenario.world.kind).tools if tool.enumerates)
    failing = Reply(text="listing is not available", error=True)

    def failed(move: AnyMove) -> AnyMove:
        if isinstance(move, CallMove) and move.call == tool:
            return msgspec.structs.replace(move, reply=failing)
        if isinstance(move, TurnMove):
            return msgspec.structs.replace(move, turn=tuple(map(failed, move.turn)))
        if isinstance(move, RepeatMove):
            repeat = msgspec.structs.replace(move.repeat, do=tuple(map(failed, move.repeat.do)))
            return msgspec.structs.replace(move, repeat=repeat)
        return move

    moves = tuple(map(failed, scenario.moves))
    return msgspec.structs.replace(scenario, name=f"{scenario.name}, unlisted", moves=moves, twin=None)


def skips_visible(bench: Bench) -> Finding:
    """Claim ``partial-is-told-apart``."""
    skipping = bench.where(lambda s: any(_skips(move) for move in walk(s.moves)))
    ended = [(s, bench.episode(s, "validated_finish")) for s in skipping]
    closed = [episode for _, episode in ended if episode.ending in ("done", "partial")]
    named = [e for e in closed if e.ending == "partial" or e.truth == "complete"]
    silent = bench.count("silence, closed as done with work left", skipping, "silence", _false)
    honest = Number(
        "validated_finish, closed runs that are complete or say what they left out", len(named), len(closed)
    )
    return Finding((honest, silent), bool(closed) and len(named) == len(closed))


def _skips(move: AnyMove) -> bool:
    finish = getattr(move, "finish", None)
    return isinstance(finish, FinishSpec) and bool(finish.skipped)


def certificates(bench: Bench) -> Finding:
    """Claim ``certificates-end-unsupported-stops``."""
    numbers = []
    for name in ("verifier_transcript", REPLAY):
        false = bench.share(f"mixed, {name}, done without support", "mixed", name, _false)
        complete = bench.share(
            f"mixed, {name}, finished of what can be finished",
            "mixed",
            name,
            lambda e: e.outcome == "done/complete",
            lambda e: e.premature_stop is not None,
        )
        numbers += [false, complete]
    critic, critic_done, bound, bound_done = numbers
    comparable = bound_done.above(critic_done) or bound_done.interval[1] >= critic_done.interval[0]
    library = bench.count("library, certificate, done on unfinished work", bench.library, REPLAY, _false)
    note = ""
    if library.count:
        note = "In the library it is still fooled: by broken invariants, and by items that were never listed."
    return Finding((*numbers, library), bound.count == 0 and critic.above(bound) and comparable, note)


def _level(checks: str) -> str:
    return "no checks" if checks == "none" else f"{checks} checks"


def partial_signals(bench: Bench) -> Finding:
    """Claim ``partial-signals-mislead``."""
    full = [s for s in bench.library if s.task.checks == "full" and s.world.kind not in ("repo", "files")]
    numbers = [
        bench.count(
            f"acceptance with {_level(level)}, done on unfinished work",
            [with_checks(s, level) for s in full],
            CHECKS,
            _false,
        )
        for level in ("full", "weak", "none")
    ]
    shown = numbers[2].above(numbers[1]) and numbers[1].above(numbers[0])
    note = (
        "The same scenarios, only the checks are weaker. That full checks let nothing through is so by "
        "construction."
    )
    return Finding(tuple(numbers), shown, note)


def verifier_beside_checks(bench: Bench) -> Finding:
    """Claim ``verifiers-beside-checks``."""
    numbers = []
    for level in ("full", "weak", "none"):
        found = [scenario for scenario in bench.library if scenario.task.checks == level]
        for name, strategy in (
            ("checks", PRESETS[CHECKS].strategy),
            ("checks and record", _CHECKS_AND_RECORD),
        ):
            label = f"{_level(level)}, {name}, done on unfinished work"
            numbers.append(bench.count(label, found, strategy, _false))
    alone, beside = numbers[::2], numbers[1::2]
    shown = alone[1].above(beside[1]) and alone[2].above(beside[2])
    note = "Beside full checks there is nothing left for it to catch." if alone[0].count == 0 else ""
    return Finding(tuple(numbers), shown, note)


def vendor_pattern(bench: Bench) -> Finding:
    """Claim ``guidance-for-unattended-runs``."""
    numbers = []
    shown = True
    for persona in ("progress_reporter", "honest_worker", "box_ticker", "charitable_reader"):
        silence = bench.share(f"{persona}, silence, correct", persona, "silence", _correct)
        guided = bench.share(f"{persona}, unattended, correct", persona, "unattended", _correct)
        shown = shown and guided.above(silence)
        numbers += [silence, guided]
    lies = bench.share("fabricator, unattended, done on unfinished work", "fabricator", "unattended", _false)
    note = "It does not help against tools that report what they did not do."
    return Finding((*numbers, lies), shown, note if lies.count else "")


def _correct(episode: Episode) -> bool:
    return episode.correct


def person_without_checks(bench: Bench) -> Finding:
    """Claim ``no-checks-need-a-person``."""
    found = bench.where(lambda scenario: scenario.task.checks == "none")
    closed = bench.count("without checks, gate, done on unfinished work", found, "gate", _false)
    never = bench.count("handed to a person each time, done on unfinished work", found, _PERSON, _false)
    left = bench.count(
        "handed to a person each time, finished and not closed",
        found,
        _PERSON,
        lambda e: e.truth == "complete",
    )
    note = (
        "Closing nothing oneself is safe, and leaves each finished run to somebody. That who closes nothing "
        "closes nothing wrongly is so by construction; that the gate does is not."
    )
    return Finding((closed, never, left), closed.count > 0 and never.count == 0, note)
