"""Experiments on stopping: what ends a turn, what ends a run, and who takes one for the other."""

from __future__ import annotations

from typing import Any

from evalkit.claims.bench import Bench, completable, premature
from evalkit.claims.claim import Claim, Finding, Number
from evalkit.scenarios.moves import DelegateMove, RefuseMove, ThinkMove, TruncateMove
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.scoring.episode import Episode
from evalkit.strategies.presets import PRESETS

FIRST = "first seed"
SECOND = "second seed"
#: The same strategy under every policy: it ends a run by the checks, so that only the policy can differ.
_JUDGE = PRESETS["acceptance"].strategy


def _correct(episode: Episode) -> bool:
    return episode.correct


def has(*kinds: type) -> Any:
    """A test for scenarios that hold a move of one of these kinds."""
    return lambda scenario: any(isinstance(move, kinds) for move in walk(scenario.moves))


def _reports_end_the_run(bench: Bench) -> Finding:
    numbers = []
    shown = True
    for persona in ("progress_reporter", "honest_worker"):
        silent = bench.share(f"{persona}, silence", persona, "silence", premature, completable)
        checked = bench.share(f"{persona}, acceptance", persona, "acceptance", premature, completable)
        shown = shown and silent.above(checked)
        numbers += [silent, checked]
    return Finding(tuple(numbers), shown)


def _absence(bench: Bench) -> Finding:
    found = bench.family("partial_completion")
    silence = bench.count("silence, too early and silent", found, "silence", lambda e: e.silent, completable)
    gate = bench.count("gate, too early and silent", found, "gate", lambda e: e.silent, completable)
    return Finding((silence, gate), silence.above(gate))


def _thinking_only(bench: Bench) -> Finding:
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
        bench.count(f"{policy}={value}", scenarios, _JUDGE.but(**{policy: value}), _correct) for value in values
    ]


def _pauses(bench: Bench) -> Finding:
    found = bench.family("pause_turn")
    numbers = _policies(bench, found, "pause", ("resend", "as_content", "stop"))
    silence = bench.count("silence, reads it as the end", found, "silence", _correct)
    best = all(numbers[0].above(other) for other in (*numbers[1:], silence))
    return Finding((*numbers, silence), best)


def _cut_offs(bench: Bench) -> Finding:
    found = bench.family("truncation")
    numbers = _policies(bench, found, "cut_off", ("raise_limit", "continue", "fail_calls", "as_content", "stop"))
    larger, onward, _, content, stop = numbers
    shown = larger.above(content) and larger.above(stop) and onward.above(stop)
    return Finding(tuple(numbers), shown)


def _refusals(bench: Bench) -> Finding:
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


def _structural(bench: Bench) -> Finding:
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


def _means_it(bench: Bench) -> Finding:
    found = bench.where(lambda scenario: scenario.task.checks == "full")
    numbers = [
        bench.count(f"{name}, done on unfinished work", found, name, lambda e: e.false_done)
        for name in ("finish_tool", "typed_output", "artifact", "acceptance")
    ]
    finish, output, artifact, checks = numbers
    shown = finish.count > 0 and output.count > 0 and checks.count == 0
    note = "The checks settle it."
    if artifact.count:
        note += " That some artifact exists does not: it is one only if it is the whole of the work."
    return Finding(tuple(numbers), shown, note)


def _keyword(bench: Bench) -> Finding:
    found = bench.family("keyword_misfire", "channel_misuse")
    early = bench.count("false stops", found, "keyword", lambda e: e.false_done)
    missed = bench.count("missed ends", found, "keyword", lambda e: e.unclosed, lambda e: e.unclosed is not None)
    return Finding((early, missed), early.count > 0 and missed.count > 0)


def _ceiling(bench: Bench) -> Finding:
    limited = PRESETS["acceptance"].strategy.but(max_turns=10)
    long = [
        scenario
        for scenario in bench.library
        if bench.episode(scenario, "acceptance").outcome == "done/complete"
        and bench.episode(scenario, "acceptance").turns > 10
    ]
    cut = bench.count("ended by the ceiling with work left to do", long, limited, lambda e: e.truth == "reachable")
    stuck = bench.family("infinite_nudging")
    free = bench.count("stuck runs that end without a ceiling", stuck, "infinite_nudge", lambda e: e.ending != "never")
    held = bench.count(
        "stuck runs that end with one",
        stuck,
        PRESETS["infinite_nudge"].strategy.but(max_turns=10),
        lambda e: e.ending != "never",
    )
    shown = cut.count > 0 and held.above(free)
    return Finding((cut, free, held), shown, "A ceiling ends stuck runs; it says nothing of whether work is done.")


def _no_stopping(bench: Bench) -> Finding:
    keyword = bench.share("over_checker, keyword", "over_checker", "keyword", lambda e: e.over_continuation)
    early = bench.share("progress_reporter, silence", "progress_reporter", "silence", premature, completable)
    defined = PRESETS["acceptance"].strategy
    over = bench.share("over_checker, acceptance", "over_checker", defined, lambda e: e.over_continuation)
    soon = bench.share("progress_reporter, acceptance", "progress_reporter", defined, premature, completable)
    asked = defined.but(check="each_tool_turn")
    each = bench.share(
        "over_checker, acceptance asked after each tool turn", "over_checker", asked, lambda e: e.over_continuation
    )
    shown = early.above(soon) and keyword.above(over)
    note = ""
    if not keyword.above(over):
        note = (
            "A definition of done cures the early stop. It cures the late one only where it is asked before the "
            "model ends its turn: a reader that never stops calling tools is never asked."
        )
    return Finding((early, soon, keyword, over, each), shown, note)


def _delegated(bench: Bench) -> Finding:
    found = bench.where(has(DelegateMove))
    words = bench.count("verifier_claim, done on unfinished work", found, "verifier_claim", lambda e: e.false_done)
    checks = bench.count("acceptance, done on unfinished work", found, "acceptance", lambda e: e.false_done)
    blind = bench.count("gate, finished work not closed", found, "gate", lambda e: e.unclosed, lambda e: e.unclosed is not None)
    note = "A gate on the parent's own record does not see what a child did."
    return Finding((words, checks, blind), words.above(checks), note)


def _self_stop(bench: Bench) -> Finding:
    failed = [episode for episode in bench.sample("mixed", "silence") if episode.truth != "complete"]
    own = sum(episode.ending in ("done", "partial") for episode in failed)
    return Finding((Number("failed runs of a mixed population that silence ended itself", own, len(failed), True),), own > 0)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "reports-end-runs",
        FIRST,
        "A progress report may end the turn, and a loop that takes each end of turn for the end of the task stops there.",
        "Populations of honest models that report; premature stops of a loop that ends at silence, and of one that ends by the checks.",
        "The first rate is above the second, by intervals that do not overlap, in both populations.",
        _reports_end_the_run,
    ),
    Claim(
        "silence-is-no-decision",
        SECOND,
        "Ending because no tool was asked for is the absence of a decision, and nobody notices what is missing.",
        "The family partial_completion; runs that ended as done with work left, without a word about it.",
        "Silence has more of them than the full gate.",
        _absence,
    ),
    Claim(
        "thinking-goes-quiet",
        FIRST,
        "Narration in thinking blocks is a second way for a harness to go quiet, apart from the end of turn read as the end.",
        "Scenarios with turns of thinking alone; a client that reads the first block as text against a plain loop.",
        "Some scenario is wrong only for the client that reads the first block, and some for the loop too.",
        _thinking_only,
    ),
    Claim(
        "pause-is-no-end",
        FIRST,
        "A paused turn is to be sent back as it is; read as an answer, or ignored, it ends work silently.",
        "The family pause_turn under each policy for pauses, everything else equal.",
        "Sending back is correct more often than every other treatment.",
        _pauses,
    ),
    Claim(
        "cut-off-is-no-answer",
        FIRST,
        "A turn cut off by a limit is no conclusion; ask again with a higher limit, or have it continued.",
        "The family truncation under each policy for cut-off turns, everything else equal.",
        "A higher limit beats reading the turn as content and stopping; continuing beats stopping.",
        _cut_offs,
    ),
    Claim(
        "refusal-to-another-model",
        FIRST,
        "A refusal is to be asked of a fallback model, but for reasoning_extraction.",
        "Scenarios with a refusal under each policy for refusals, everything else equal.",
        "The fallback is correct more often than each other policy, and reasoning_extraction is handed over at the first refusal.",
        _refusals,
    ),
    Claim(
        "structure-beats-inference",
        "both seeds",
        "Harnesses that define the end by a structural fact hold up better than those that infer it from a turn without calls.",
        "The whole library: correct runs of structural presets and of silence; an ideal reader of words beside them.",
        "Each structural preset is correct on more scenarios than silence.",
        _structural,
    ),
    Claim(
        "a-call-means-it-only",
        FIRST,
        "A submit call or valid output says that the model means to be done; only a check of the work says that it is.",
        "Scenarios with full checks: runs that ended as done on unfinished work.",
        "Finish tool and typed output have some, the acceptance checks none.",
        _means_it,
    ),
    Claim(
        "keywords-are-brittle",
        FIRST,
        "A keyword is explicit but brittle: to case, to phrasing, to being mentioned.",
        "The families keyword_misfire and channel_misuse with the preset keyword.",
        "There are false stops as well as finished runs that were not closed.",
        _keyword,
    ),
    Claim(
        "ceilings-do-not-judge",
        FIRST,
        "A step ceiling is no judgement of completion; without one a stuck run never ends.",
        "Runs that need more than ten turns under a ceiling of ten; stuck runs with and without a ceiling.",
        "Some honest run is cut off by the ceiling, and more stuck runs end with one than without.",
        _ceiling,
    ),
    Claim(
        "one-cause-two-failures",
        SECOND,
        "Stopping too early and not stopping at all have one cause: nothing defines done. A definition cures both.",
        "A population that reports and one that checks again and again; loops without a definition of done and with the checks as one.",
        "The checks lower both rates, by intervals that do not overlap.",
        _no_stopping,
    ),
    Claim(
        "children-report-for-parents",
        "arXiv 2503.13657, cited by the first seed",
        "In systems of several agents a run ends too early because one agent's word is taken for the whole.",
        "Scenarios in which a child agent reports to its parent; done on unfinished work by a reader of words and by the checks.",
        "The reader of words has more of them than the checks.",
        _delegated,
    ),
    Claim(
        "self-stop-dominates",
        "arXiv 2606.05238 (DeployBench), cited by the first seed",
        "Among failed runs the agent's own stop, and no limit, is the dominant ending.",
        "A scripted population stops because its script says so, with probabilities that are assumptions.",
        "None: how often models do it is a fact about models. evalkit counts it on recorded and live runs.",
    ),
)
