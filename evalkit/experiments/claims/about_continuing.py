"""Experiments on going on: nudges and their bound, hooks, reports at the end, repeated effects, budgets."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

from evalkit.core.decisions import Action, Ending, Verdict
from evalkit.core.events import Crashed
from evalkit.core.turns import Turn
from evalkit.drivers.in_process import LoopMind, Watcher, drive
from evalkit.experiments.claims.bench import UNLIMITED, Bench, completable, premature
from evalkit.experiments.claims.claim import Finding
from evalkit.experiments.claims.number import Number
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.scoring.worker_episode import run_worker_episode
from evalkit.stage.stage import Stage
from evalkit.strategies.folds import Ran
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy

_GATE = PRESETS["gate"].strategy


def _over(episode: Episode) -> bool:
    return episode.over_continuation


def bounded(bench: Bench) -> Finding:
    """Claim ``continue-but-bounded``."""
    numbers = []
    for cap in (1, 2, 3, None):
        strategy = PRESETS["acceptance"].strategy.but(nudges=cap, max_turns=None)
        name = "no cap" if cap is None else f"cap {cap}"
        numbers.append(bench.share(f"stuck, {name}, too long", "stuck", strategy, _over))
    early = [
        bench.share(
            f"progress_reporter, cap {cap}, too early",
            "progress_reporter",
            PRESETS["acceptance"].strategy.but(nudges=cap, max_turns=None),
            premature,
            completable,
        )
        for cap in (1, 2, 3)
    ]
    endless = numbers[-1]
    shown = all(endless.above(number) for number in numbers[:-1]) and numbers[2].count == 0
    return Finding((*numbers, *early), shown)


def three_are_enough(bench: Bench) -> Finding:
    """Claim ``three-are-enough``."""
    patient = PRESETS["acceptance"].strategy.but(nudges=8)
    finished = [s for s in bench.library if bench.episode(s, patient).truth == "complete"]
    lost = [s for s in finished if bench.episode(s, "acceptance").outcome == "escalated/reachable"]
    number = Number("finished with eight nudges and given up after three", len(lost), len(finished))
    return Finding(
        (number,), not lost, f"Given up too early: {', '.join(s.name for s in lost)}." if lost else ""
    )


def cost(bench: Bench) -> Finding:
    """Claim ``unbounded-cost``."""
    population = f"stuck{UNLIMITED}"
    endless = bench.share("stuck, infinite_nudge, never ends", population, "infinite_nudge", _never)
    held = bench.share("stuck, gate, never ends", population, "gate", _never)
    tokens = [
        bench.mean(f"stuck, {name}, tokens a run", population, name, lambda e: float(e.tokens))
        for name in ("infinite_nudge", "gate")
    ]
    shown = endless.above(held) and held.count == 0 and tokens[0].count > tokens[1].count
    note = "evalkit's own cap ends what would not end: the true cost has no bound."
    return Finding((endless, held, *tokens), shown, note)


def _never(episode: Episode) -> bool:
    return episode.ending == "never"


def naming(bench: Bench) -> Finding:
    """Claim ``name-the-open-items``."""
    named = bench.share(
        "names the open items, too early", "progress_reporter", "acceptance", premature, completable
    )
    vague = PRESETS["acceptance"].strategy.but(nudge_says="continue")
    says = bench.share("says only to continue, too early", "progress_reporter", vague, premature, completable)
    return Finding((named, says), says.above(named))


def hook_guard(bench: Bench) -> Finding:
    """Claim ``hooks-need-a-guard``."""
    guarded = PRESETS["stop_hook"].strategy.but(nudges=None, max_turns=None)
    without = guarded.but(loop_guard=False)
    numbers = (
        bench.share("stuck, with the guard, too long", "stuck", guarded, _over),
        bench.share("stuck, without it", "stuck", without, _over),
    )
    found = bench.family("stop_hook")
    let = bench.count("stop_hook family, let go on unfinished work", found, guarded, premature, completable)
    note = "The guard has a price: it lets a repeated claim through." if let.count else ""
    return Finding((*numbers, let), numbers[1].above(numbers[0]) and numbers[0].count == 0, note)


def honest_exhaustion(bench: Bench) -> Finding:
    """Claim ``exhaustion-reports``."""
    found = [s for s in bench.library if s.task.checks == "full"]
    ended = [bench.episode(s, "gate") for s in found]
    given_up = [e for e in ended if e.ending in ("escalated", "limit")]
    open_work = [e for e in given_up if e.truth != "complete"]
    honest = Number(
        "gate, gave up with work left, and its report names it all",
        sum(e.honest_report is True for e in open_work),
        len(open_work),
    )
    shaped = Number(
        "gate, ended by escalation or limit, with a report",
        sum(e.honest_report is not None for e in given_up),
        len(given_up),
    )
    return Finding((shaped, honest), bool(open_work) and honest.count == honest.base)


def _resumes(arena: Arena) -> Episode:
    return run_episode(arena, _GATE, 0, run=_from_transcript)


def _anew(arena: Arena) -> Episode:
    return run_episode(arena, _GATE, 0, run=_begins_anew)


def _worker(arena: Arena) -> Episode:
    return run_worker_episode(arena, _GATE, 0)


#: Ways to go on after a kill: by the transcript, by nothing, by a record of what was done.
_RESUMERS: dict[str, Callable[[Arena], Episode]] = {
    "resumes from its transcript": _resumes,
    "begins anew": _anew,
    "worker with its record": _worker,
}


def repeated(bench: Bench) -> Finding:
    """Claim ``keys-make-repeats-harmless``."""
    keyed = [s for s in bench.crashes if s.world.kind == "ledger"]
    numbers = []
    for scenarios, where in ((keyed, "tools that take a key"), (bench.crashes, "all tools")):
        for label, runs in _RESUMERS.items():
            harmed = sum(map(_harmed, bench.killed(label, _GATE, runs, scenarios)))
            numbers.append(Number(f"{where}, {label}, effects twice or work ruined", harmed, len(scenarios)))
    resumed, anew, worker, *_, everywhere = numbers
    note = ""
    if everywhere.count:
        note = "Without a key the worker can only look whether an effect is there, and may look too early."
    return Finding(tuple(numbers), bool(resumed.count + anew.count) and worker.count == 0, note)


def outlives(bench: Bench) -> Finding:
    """Claim ``record-outlives-the-process``."""
    numbers = []
    for label, runs in _RESUMERS.items():
        ended = bench.killed(label, _GATE, runs, bench.crashes)
        numbers.append(Number(f"{label}, correct", sum(e.correct for e in ended), len(ended)))
    resumed, anew, worker = numbers
    return Finding(tuple(numbers), worker.above(resumed) and worker.above(anew))


class _Transcript(LoopMind):
    """A loop whose transcript outlives it: each turn when it has come, its answers once all are there."""

    def __init__(self, strategy: Strategy, stage: Stage) -> None:
        super().__init__(strategy, stage.task, stage)
        self._kept, self._turn, self._answered = self.state, stage.previous.turn, True

    def turn(self, turn: Turn) -> tuple[Action, Verdict | None]:
        if turn is not self._turn:
            self._turn, self._answered = turn, False
        self._kept = self.state
        return super().turn(turn)

    def results(self, ran: tuple[Ran, ...]) -> None:
        super().results(ran)
        self._kept, self._answered = self.state, True

    def resume(self, stage: Stage) -> Turn | None:
        """The turn to go on at, as another process reads it; calls without an answer are run again."""
        self.state = self._kept
        if not self._answered or stage.previous.turn is not self._turn:
            stage.ran = {}
        return stage.previous.turn


def _from_transcript(strategy: Strategy, stage: Stage, watch: Watcher | None) -> Ending:
    """A harness that goes on from its transcript."""
    stage.crashes = True
    mind, pending = _Transcript(strategy, stage), None
    while True:
        try:
            return drive(mind, stage, pending=pending, watch=watch)
        except Crashed:
            pending = mind.resume(stage)


def _begins_anew(strategy: Strategy, stage: Stage, watch: Watcher | None) -> Ending:
    """A harness that keeps nothing and asks the model for the next turn."""
    stage.crashes = True
    while True:
        try:
            return drive(LoopMind(strategy, stage.task, stage), stage, watch=watch)
        except Crashed:
            stage.ran = {}


def nudges_repeat(bench: Bench) -> Finding:
    """Claim ``continuations-repeat-work``."""
    found = bench.family("resume_effects")
    checked = bench.count("acceptance, an effect twice or work undone", found, "acceptance", _harmed)
    listed = bench.count("checklist, an effect twice or work undone", found, "checklist", _harmed)
    read = bench.count(
        "verifier_transcript, an effect twice or work undone", found, "verifier_transcript", _harmed
    )
    shown = listed.above(checked) or read.above(checked)
    return Finding(
        (checked, listed, read), shown, "A needless nudge is not harmless: what is nudged acts again."
    )


def _harmed(episode: Episode) -> bool:
    return bool(episode.duplicate_effects or episode.spoiled or episode.undone)


def telemetry(bench: Bench) -> Finding:
    """Claim ``stop-reasons-lead``."""
    personas = [name for name in bench.populations if name != "mixed"]
    early, open_stops = [], []
    for name in personas:
        silence = bench.share(name, name, "silence", premature, completable)
        early.append(silence.rate if silence.base else 0.0)
        open_stops.append(bench.mean(name, name, "gate", lambda e: float(e.open_stops)).count)
    rank = spearman(early, open_stops)
    chance = by_chance(early, open_stops)
    return Finding(
        (
            Number("populations", float(len(personas))),
            Number(
                "rank correlation: early stops under silence, text-only stops with open work under the gate",
                rank,
            ),
            Number("in 100 orders drawn by chance, as high a correlation or a higher one", 100 * chance),
        ),
        rank > 0 and chance < 0.05,
        "Over scripted populations; the leading indicator is read from a harness that is not harmed by it.",
    )


def spearman(one: list[float], other: list[float]) -> float:
    """Spearman's rank correlation, equal values sharing their mean rank; 0 where one side is constant."""
    first, second = _ranks(one), _ranks(other)
    mean = (len(one) + 1) / 2
    covariance = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    spread = sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second)
    return covariance / spread**0.5 if spread else 0.0


def by_chance(one: list[float], other: list[float], draws: int = 20_000) -> float:
    """The share of orders of one side that correlate as highly with the other, of ``draws`` drawn ones."""
    found, shuffled, chance = spearman(one, other), list(one), random.Random(0)
    as_high = 0
    for _ in range(draws):
        chance.shuffle(shuffled)
        as_high += spearman(shuffled, other) >= found - 1e-12
    return (as_high + 1) / (draws + 1)


def _ranks(values: list[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def small_budget(bench: Bench) -> Finding:
    """Claim ``small-budgets-stop-early``."""
    numbers = []
    for limit in (150, 400, 1000, 4000):
        strategy = _GATE.but(max_tokens=limit)
        numbers.append(
            bench.share(
                f"honest_worker, {limit:,} tokens, unfinished",
                "honest_worker",
                strategy,
                lambda e: e.truth == "reachable",
            )
        )
    falls = all(a.rate >= b.rate for a, b in pairwise(numbers))
    return Finding(tuple(numbers), falls and numbers[0].above(numbers[-1]))


def budget_is_another_problem(bench: Bench) -> Finding:
    """Claim ``budgets-cure-no-reports``."""
    keyword = PRESETS["keyword"].strategy
    numbers = [
        bench.share(f"over_checker, keyword, {name}, too long", "over_checker", strategy, _over)
        for name, strategy in (("no budget", keyword), ("400 tokens", keyword.but(max_tokens=400)))
    ]
    silence = PRESETS["silence"].strategy
    for limit in (None, 4000, 400, 150):
        name = "no budget" if limit is None else f"{limit:,} tokens"
        label = f"progress_reporter, silence, {name}, work finished"
        ended = silence.but(max_tokens=limit)
        numbers.append(bench.share(label, "progress_reporter", ended, _complete, completable))
    told = bench.share("progress_reporter, acceptance, no budget, work finished", "progress_reporter",
                       "acceptance", _complete, completable)  # fmt: skip
    free, held, without, *budgets = numbers
    shown = free.above(held) and told.above(without) and not any(each.above(without) for each in budgets)
    note = "That no budget finishes work is so by construction: a limit only cuts."
    return Finding((*numbers, told), shown, note)


def _complete(episode: Episode) -> bool:
    return episode.truth == "complete"


def anomalies(bench: Bench) -> Finding:
    """Claim ``silence-is-an-error``."""
    numbers = []
    for name in bench.populations:
        for label, base in (("without an accepted finish call", _unaccepted), ("with one", _accepted)):
            label = f"{name}, ended {label}, work left"
            numbers.append(bench.share(label, name, "validated_finish", lambda e: not _complete(e), base))
    both = [
        (alarm, quiet)
        for alarm, quiet in zip(numbers[::2], numbers[1::2], strict=True)
        if alarm.base and quiet.base
    ]
    raised = [alarm for alarm, quiet in both if alarm.above(quiet)]
    note = "Where all runs of a population end one way there is nothing to compare."
    return Finding(tuple(n for pair in both for n in pair), bool(both) and len(raised) == len(both), note)


def _accepted(episode: Episode) -> bool:
    return episode.native == "done_when"


def _unaccepted(episode: Episode) -> bool:
    return not _accepted(episode)
