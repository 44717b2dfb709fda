"""Experiments on going on: nudges and their bound, hooks, reports at the end, repeated effects, budgets."""

from __future__ import annotations

from evalkit.claims.bench import Bench, completable, premature
from evalkit.claims.claim import Claim, Finding, Number
from evalkit.claims.stopping import FIRST, SECOND
from evalkit.core.decisions import Ending
from evalkit.harnesses.driver import LoopMind, Watcher, drive
from evalkit.models.scripted import Crashed, Stage
from evalkit.scoring.episode import Episode, run_episode
from evalkit.scoring.worker_episode import run_worker_episode
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy

_GATE = PRESETS["gate"].strategy


def _over(episode: Episode) -> bool:
    return episode.over_continuation


def _bounded(bench: Bench) -> Finding:
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


def _three_are_enough(bench: Bench) -> Finding:
    lost = []
    for scenario in bench.library:
        capped = bench.episode(scenario, "acceptance")
        free = bench.episode(scenario, PRESETS["acceptance"].strategy.but(nudges=8))
        if capped.premature_stop and not capped.silent and free.truth == "complete":
            lost.append(scenario)
    base = [s for s in bench.library if completable(bench.episode(s, "acceptance"))]
    number = Number("finished with eight nudges and given up after three", len(lost), len(base))
    note = f"For instance {lost[0].name}." if lost else ""
    return Finding((number,), not lost, note)


def _cost(bench: Bench) -> Finding:
    endless = bench.share("stuck, infinite_nudge, never ends", "stuck", "infinite_nudge", lambda e: e.ending == "never")
    held = bench.share("stuck, gate, never ends", "stuck", "gate", lambda e: e.ending == "never")
    tokens = [
        bench.mean(f"stuck, {name}, tokens a run", "stuck", name, lambda e: float(e.tokens))
        for name in ("infinite_nudge", "gate")
    ]
    shown = endless.above(held) and held.count == 0 and tokens[0].count > tokens[1].count
    return Finding((endless, held, *tokens), shown, "evalkit's own cap ends what would not end: the true cost has no bound.")


def _naming(bench: Bench) -> Finding:
    named = bench.share("names the open items, too early", "progress_reporter", "acceptance", premature, completable)
    vague = PRESETS["acceptance"].strategy.but(nudge_says="continue")
    says = bench.share("says only to continue, too early", "progress_reporter", vague, premature, completable)
    note = "The population waits for a name by assumption, after half of its reports; that it helps live models is untested."
    return Finding((named, says), says.above(named), note)


def _hook_guard(bench: Bench) -> Finding:
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


def _honest_exhaustion(bench: Bench) -> Finding:
    found = [s for s in bench.library if s.task.checks == "full"]
    ended = [bench.episode(s, "gate") for s in found]
    given_up = [e for e in ended if e.ending in ("escalated", "limit")]
    open_work = [e for e in given_up if e.truth != "complete"]
    honest = Number("gate, gave up with work left, and its report names it all", sum(e.honest_report is True for e in open_work), len(open_work))
    shaped = Number("gate, ended by escalation or limit, with a report", sum(e.honest_report is not None for e in given_up), len(given_up))
    return Finding((shaped, honest), bool(open_work) and honest.count == honest.base)


def _repeated(bench: Bench) -> Finding:
    found = [s for s in bench.crashes if s.world.kind == "ledger"]
    strategy = PRESETS["acceptance"].strategy
    naive = worker = 0
    for scenario in found:
        arena = bench.arena(scenario, strategy)
        naive += bool(run_episode(arena, strategy, 0, run=_replays_the_turn).duplicate_effects)
        worker += bool(run_worker_episode(arena, strategy, 0).duplicate_effects)
    numbers = (
        Number("killed, the turn executed again without keys, effects twice", naive, len(found)),
        Number("killed, the durable worker with its keys, effects twice", worker, len(found)),
    )
    return Finding(numbers, bool(found) and naive > 0 and worker == 0)


def _replays_the_turn(strategy: Strategy, stage: Stage, watch: Watcher | None) -> Ending:
    """A harness that keeps each turn and not what became of its calls: resumed, it executes the turn again."""
    stage.crashes = True
    pending = None
    while True:
        try:
            return drive(LoopMind(strategy, stage.task, stage), stage, pending=pending, watch=watch)
        except Crashed:
            pending = stage.previous.turn
            stage.ran = {}


def _nudges_repeat(bench: Bench) -> Finding:
    found = bench.family("resume_effects")
    checked = bench.count("acceptance, an effect twice or work undone", found, "acceptance", _harmed)
    listed = bench.count("checklist, an effect twice or work undone", found, "checklist", _harmed)
    read = bench.count("verifier_transcript, an effect twice or work undone", found, "verifier_transcript", _harmed)
    shown = listed.above(checked) or read.above(checked)
    return Finding((checked, listed, read), shown, "A needless nudge is not harmless: what is nudged acts again.")


def _harmed(episode: Episode) -> bool:
    return bool(episode.duplicate_effects or episode.spoiled or episode.undone)


def _telemetry(bench: Bench) -> Finding:
    personas = [name for name in bench.populations if name != "mixed"]
    early, open_stops = [], []
    for name in personas:
        silence = bench.share(name, name, "silence", premature, completable)
        early.append(silence.rate if silence.base else 0.0)
        open_stops.append(bench.mean(name, name, "gate", lambda e: float(e.open_stops)).count)
    rank = spearman(early, open_stops)
    return Finding(
        (
            Number("populations", float(len(personas))),
            Number("rank correlation of premature stops under silence and text-only stops with open work under the gate", rank),
        ),
        rank > 0.5,
        "Over scripted populations; the leading indicator is read from a harness that is not harmed by it.",
    )


def spearman(one: list[float], other: list[float]) -> float:
    """Spearman's rank correlation, equal values sharing their mean rank; 0 where one of the two is constant."""
    first, second = _ranks(one), _ranks(other)
    mean = (len(one) + 1) / 2
    covariance = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    spread = sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second)
    return covariance / spread**0.5 if spread else 0.0


def _ranks(values: list[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def _small_budget(bench: Bench) -> Finding:
    numbers = []
    for limit in (150, 400, 1000, 4000):
        strategy = _GATE.but(max_tokens=limit)
        numbers.append(
            bench.share(f"honest_worker, {limit:,} tokens, unfinished", "honest_worker", strategy, lambda e: e.truth == "reachable")
        )
    falls = all(a.rate >= b.rate for a, b in zip(numbers, numbers[1:], strict=False))
    return Finding(tuple(numbers), falls and numbers[0].above(numbers[-1]))


def _budget_is_another_problem(bench: Bench) -> Finding:
    limited = PRESETS["silence"].strategy.but(max_tokens=4000)
    plain = bench.share("silence, too early", "progress_reporter", "silence", premature, completable)
    budget = bench.share("silence with a budget, too early", "progress_reporter", limited, premature, completable)
    return Finding((plain, budget), not plain.above(budget))


def _anomalies(bench: Bench) -> Finding:
    ended = [bench.episode(scenario, "validated_finish") for scenario in bench.library]
    without = [e for e in ended if e.native != "done_when"]
    told = Number("ended without an accepted finish call, and not as done", sum(e.ending != "done" for e in without), len(without))
    unclosed = Number("of these, the work was complete all the same", sum(e.truth == "complete" for e in without), len(without))
    note = "Detectable is not the same as right: finished work is among the anomalies." if unclosed.count else ""
    return Finding((told, unclosed), bool(without) and told.count == told.base, note)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "continue-but-bounded",
        FIRST,
        "Automatic continuation is to be capped at two or three; without a cap a stuck run goes on for ever.",
        "A population that gets stuck, under caps of one, two, three and none; beside it what the caps cost a reporting population.",
        "Without a cap runs go on too long more often than under each cap, and under a cap of three never.",
        _bounded,
    ),
    Claim(
        "three-are-enough",
        FIRST,
        "Two or three continuations are enough before a person is asked.",
        "The whole library under the checks with three nudges and with eight.",
        "No run that eight nudges finish is given up after three.",
        _three_are_enough,
    ),
    Claim(
        "unbounded-cost",
        FIRST,
        "Without a ceiling a loop that nudges spends without end.",
        "The stuck population without any cap and under the gate.",
        "Some runs never end without a cap, none under the gate, and they cost more tokens.",
        _cost,
    ),
    Claim(
        "name-the-open-items",
        FIRST,
        "A continuation message should name what is open.",
        "A population of which some reports wait for an item's name; nudges with names and without.",
        "Without names it stops too early more often, by intervals that do not overlap.",
        _naming,
    ),
    Claim(
        "hooks-need-a-guard",
        FIRST,
        "A Stop hook that would block again for the same reason has to let the stop through, or it loops.",
        "The stuck population under a checklist hook without other caps, with the guard and without it.",
        "Without the guard runs go on too long, with it none does.",
        _hook_guard,
    ),
    Claim(
        "exhaustion-reports",
        "both seeds",
        "When the budget is spent the run ends with the same report as ever: what is outstanding, and why.",
        "Scenarios with full checks that the gate gives up on, or that a limit ends.",
        "Each that leaves work open names all of it.",
        _honest_exhaustion,
    ),
    Claim(
        "keys-make-repeats-harmless",
        FIRST,
        "Effects that a resumed run may repeat need an idempotency key, so that a repetition does nothing.",
        "Payments with a harness that is killed: one that executes the kept turn again, and the durable worker.",
        "The first repeats effects in some scenario, the second in none.",
        _repeated,
    ),
    Claim(
        "continuations-repeat-work",
        FIRST,
        "A continuation without a memory of what was done repeats work, with real effects.",
        "The family resume_effects under conditions that know the work and under ones that can lose sight of it.",
        "A condition that loses sight of finished work causes more harm than the checks.",
        _nudges_repeat,
    ),
    Claim(
        "stop-reasons-lead",
        FIRST,
        "Text-only stops with open items are a leading indicator of runs that end too early.",
        "Over the populations: premature stops under silence against such stops as counted under the gate.",
        "The rank correlation is above 0.5.",
        _telemetry,
    ),
    Claim(
        "small-budgets-stop-early",
        FIRST,
        "A budget that is too small is itself a cause of partial stops.",
        "An honest population under the gate with four token limits.",
        "The larger the limit the fewer unfinished runs, the smallest and the largest apart by intervals that do not overlap.",
        _small_budget,
    ),
    Claim(
        "budgets-cure-no-reports",
        FIRST,
        "A budget answers another problem than reports that end the run.",
        "The reporting population under silence, with an ample token budget and without.",
        "The budget lowers the rate of premature stops by no measurable amount.",
        _budget_is_another_problem,
    ),
    Claim(
        "budgets-make-models-finish-gracefully",
        FIRST,
        "An announced task budget helps a model to finish gracefully.",
        "A scripted model does not read its budget.",
        "None: this is about models.",
    ),
    Claim(
        "vendor-reports",
        FIRST,
        "A model release ends more turns with reports, moves its narration into thinking blocks, and two accounts of it agree.",
        "evalkit can play such turns; that a release makes them is not its to show.",
        "None: `evalkit run --model` and `evalkit judge` measure it on live and recorded runs.",
    ),
    Claim(
        "framework-defaults",
        FIRST,
        "Framework limits changed between versions, so that a default is no safe ceiling.",
        "A fact about published versions.",
        "None here: the harness folders pin versions, and their runs show what those do.",
    ),
    Claim(
        "silence-is-an-error",
        SECOND,
        "Silence should be an error and no completion: a run that ends without its finish call is an anomaly one can detect.",
        "The whole library with a validated finish: runs that ended without an accepted finish call.",
        "Each of them ended as something other than done.",
        _anomalies,
    ),
)
