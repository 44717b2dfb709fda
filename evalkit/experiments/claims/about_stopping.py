"""Experiments on stopping: what ends a turn, what ends a run, and who takes one for the other."""

from __future__ import annotations

from typing import Any

from evalkit.experiments.claims.bench import Bench, completable, premature
from evalkit.experiments.claims.claim import Finding
from evalkit.experiments.claims.number import Number
from evalkit.scenarios.moves import DelegateMove, RefuseMove, ThinkMove
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.scoring.episode import Episode
from evalkit.strategies.presets import PRESETS

#: The same strategy under every policy: it ends a run by the checks, so that only the policy can differ.
_JUDGE = PRESETS["acceptance"].strategy


def _correct(episode: Episode) -> bool:
    return episode.correct


def has(*kinds: type) -> Any:
    """A test for scenarios that hold a move of one of these kinds."""
    return lambda scenario: any(isinstance(move, kinds) for move in walk(scenario.moves))


def reports_end_the_run(bench: Bench) -> Finding:
    """Claim ``reports-end-runs``."""
    numbers = []
    shown = True
    for persona in ("progress_reporter", "honest_worker"):
        silent = bench.share(f"{persona}, silence", persona, "silence", premature, completable)
        checked = bench.share(f"{persona}, acceptance", persona, "acceptance", premature, completable)
        shown = shown and silent.above(checked)
        numbers += [silent, checked]
    return Finding(tuple(numbers), shown)


def absence(bench: Bench) -> Finding:
    """Claim ``silence-is-no-decision``."""
    found = bench.family("partial_completion")
    silence = bench.count("silence, too early and silent", found, "silence", lambda e: e.silent, completable)
    gate = bench.count("gate, too early and silent", found, "gate", lambda e: e.silent, completable)
    return Finding((silence, gate), silence.above(gate))


def thinking_only(bench: Bench) -> Finding:
    """Claim ``thinking-goes-quiet``."""
    found = bench.where(has(ThinkMove))
    reads = [
        scenario
        for scenario in found
        if bench.episode(scenario, "silence").correct and not bench.episode(scenario, "read_text").correct
    ]
    stops = [scenario for scenario in found if not bench.episode(scenario, "silence").correct]
    numbers = (
        Number("silence right and read_text wrong", len(reads), len(found)),
        Number("silence wrong", len(stops), len(found)),
    )
    return Finding(numbers, bool(reads and stops))


def _policies(bench: Bench, scenarios: list[Scenario], policy: str, values: tuple[str, ...]) -> list[Number]:
    return [
        bench.count(f"{policy}={value}", scenarios, _JUDGE.but(**{policy: value}), _correct)
        for value in values
    ]


def pauses(bench: Bench) -> Finding:
    """Claim ``pause-is-no-end``."""
    found = bench.family("pause_turn")
    numbers = _policies(bench, found, "pause", ("resend", "as_content", "stop"))
    silence = bench.count("silence, reads it as the end", found, "silence", _correct)
    best = all(numbers[0].above(other) for other in (*numbers[1:], silence))
    return Finding((*numbers, silence), best)


def cut_offs(bench: Bench) -> Finding:
    """Claim ``cut-off-is-no-answer``."""
    found = bench.family("truncation")
    numbers = _policies(
        bench, found, "cut_off", ("raise_limit", "continue", "fail_calls", "as_content", "stop")
    )
    larger, onward, _, content, stop = numbers
    shown = larger.above(content) and larger.above(stop) and onward.above(stop)
    return Finding(tuple(numbers), shown)


def refusals(bench: Bench) -> Finding:
    """Claim ``refusal-to-another-model``."""
    found = bench.where(has(RefuseMove))
    numbers = _policies(bench, found, "refusal", ("fallback", "retry", "escalate", "as_content", "stop"))
    extraction = [
        scenario
        for scenario in found
        if any(
            isinstance(move, RefuseMove) and move.refuse.category == "reasoning_extraction"
            for move in walk(scenario.moves)
        )
    ]
    asked = bench.count(
        "reasoning_extraction, handed over at once",
        extraction,
        _JUDGE.but(refusal="fallback"),
        lambda e: e.ending == "escalated" and e.stops.get("refusal") == 1,
    )
    shown = all(numbers[0].above(other) for other in numbers[1:]) and asked.count == asked.base
    return Finding((*numbers, asked), shown)


def structural(bench: Bench) -> Finding:
    """Claim ``structure-beats-inference``."""
    numbers = [bench.count("silence", bench.library, "silence", _correct)]
    for name in ("finish_tool", "validated_finish", "typed_output", "artifact", "acceptance"):
        numbers.append(bench.count(name, bench.library, name, _correct))
    reader = bench.count("verifier_claim, which reads the words", bench.library, "verifier_claim", _correct)
    shown = all(number.above(numbers[0]) for number in numbers[1:])
    beaten = [number.label for number in numbers[1:] if reader.above(number)]
    note = "All of them beat inference from silence."
    if beaten:
        note += f" But an ideal reader of the words alone does better here than {', '.join(beaten)}."
    return Finding((*numbers, reader), shown, note)


def means_it(bench: Bench) -> Finding:
    """Claim ``a-call-means-it-only``."""
    found = bench.where(lambda scenario: scenario.task.checks == "full")
    numbers = [
        bench.count(f"{name}, done on unfinished work", found, name, lambda e: e.false_done)
        for name in ("finish_tool", "typed_output", "artifact", "acceptance")
    ]
    finish, output, artifact, checks = numbers
    shown = finish.count > 0 and output.count > 0 and checks.count == 0
    note = "The checks settle it: full checks ask the world itself, so by construction."
    if artifact.count:
        note += " That some artifact exists does not: it is one only if it is the whole of the work."
    return Finding(tuple(numbers), shown, note)


def keyword(bench: Bench) -> Finding:
    """Claim ``keywords-are-brittle``."""
    found = bench.family("keyword_misfire", "channel_misuse")
    early = bench.count("false stops", found, "keyword", lambda e: e.false_done)
    missed = bench.count(
        "missed ends", found, "keyword", lambda e: e.unclosed, lambda e: e.unclosed is not None
    )
    return Finding((early, missed), early.count > 0 and missed.count > 0)


def ceiling(bench: Bench) -> Finding:
    """Claim ``ceilings-do-not-judge``."""
    limited = PRESETS["acceptance"].strategy.but(max_turns=10)
    long = [
        scenario
        for scenario in bench.library
        if bench.episode(scenario, "acceptance").outcome == "done/complete"
        and bench.episode(scenario, "acceptance").turns > 10
    ]
    cut = bench.count(
        "ended by the ceiling with work left to do", long, limited, lambda e: e.truth == "reachable"
    )
    stuck = bench.family("infinite_nudging")
    free = bench.count(
        "stuck runs that end without a ceiling", stuck, "infinite_nudge", lambda e: e.ending != "never"
    )
    held = bench.count(
        "stuck runs that end with one",
        stuck,
        PRESETS["infinite_nudge"].strategy.but(max_turns=10),
        lambda e: e.ending != "never",
    )
    shown = cut.count > 0 and held.above(free)
    return Finding(
        (cut, free, held), shown, "A ceiling ends stuck runs; it says nothing of whether work is done."
    )


def no_stopping(bench: Bench) -> Finding:
    """Claim ``one-cause-two-failures``."""
    keyword = bench.share("over_checker, keyword", "over_checker", "keyword", lambda e: e.over_continuation)
    early = bench.share("progress_reporter, silence", "progress_reporter", "silence", premature, completable)
    defined = PRESETS["acceptance"].strategy
    over = bench.share("over_checker, acceptance", "over_checker", defined, lambda e: e.over_continuation)
    soon = bench.share("progress_reporter, acceptance", "progress_reporter", defined, premature, completable)
    asked = defined.but(check="each_tool_turn")
    each = bench.share(
        "over_checker, acceptance asked after each tool turn",
        "over_checker",
        asked,
        lambda e: e.over_continuation,
    )
    shown = early.above(soon) and keyword.above(over)
    note = ""
    if not keyword.above(over):
        note = (
            "A definition of done cures the early stop. It cures the late one only where it is asked before "
            "the model ends its turn: a reader that never stops calling tools is never asked."
        )
    return Finding((early, soon, keyword, over, each), shown, note)


def delegated(bench: Bench) -> Finding:
    """Claim ``children-report-for-parents``."""
    found = bench.where(has(DelegateMove))
    words = bench.count(
        "verifier_claim, done on unfinished work", found, "verifier_claim", lambda e: e.false_done
    )
    checks = bench.count("acceptance, done on unfinished work", found, "acceptance", lambda e: e.false_done)
    blind = bench.count(
        "gate, finished work not closed",
        found,
        "gate",
        lambda e: e.unclosed,
        lambda e: e.unclosed is not None,
    )
    note = "A gate on the parent's own record does not see what a child did."
    return Finding((words, checks, blind), words.above(checks), note)


def _self_stop(bench: Bench) -> Finding:
    failed = [episode for episode in bench.sample("mixed", "silence") if episode.truth != "complete"]
    own = sum(episode.ending in ("done", "partial") for episode in failed)
    return Finding(
        (Number("failed runs of a mixed population that silence ended itself", own, len(failed), True),),
        own > 0,
    )
