"""The gate: a run held against a baseline and rules. Every reason is one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from evalkit.core.names import did_you_mean
from evalkit.reports.ci.baseline import Baseline
from evalkit.reports.ci.evaluated import unevaluated
from evalkit.reports.ci.rules import LEVELS, Rules, RulesError
from evalkit.reports.formatting import percent
from evalkit.runs.plan import Recipe, cell_name
from evalkit.runs.store import Store
from evalkit.scenarios.suites import library_families
from evalkit.scoring.episode_fields import FLAGS, GOOD
from evalkit.stats.scenario_results import COMPARED, Record, contender_name, first_reasons, records, shared
from evalkit.stats.strategy_comparison import Paired, adjusted, paired
from evalkit.stats.summary import summarize

Level = Literal["regression", "not gateable", "note"]
#: Exit codes of the command, by what was found.
CLEAN, REGRESSION, USAGE, NOT_GATEABLE = 0, 1, 2, 3
#: Scenarios of which the same is said that have a line each.
_MOST_LISTED = 5


class Reason(msgspec.Struct, frozen=True):
    """One finding: what it means for the gate, whom it is about, and the line that says it."""

    level: Level
    contender: str
    scenario: str
    message: str

    @property
    def line(self) -> str:
        """The reason on one line."""
        about = ": ".join(part for part in (self.contender, self.scenario) if part)
        return f"{self.level}: {about}: {self.message}" if about else f"{self.level}: {self.message}"


class Judgement(msgspec.Struct, frozen=True):
    """All reasons, and what was compared: records by contender and scenario.

    ``unguarded`` are the families of the library that could be played and of which nothing was compared.
    """

    reasons: tuple[Reason, ...]
    compared: dict[str, dict[str, Record]]
    unguarded: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """The exit code: not gateable first where nothing can be said, then regression, then clean."""
        levels = {reason.level for reason in self.reasons}
        if "regression" in levels:
            return REGRESSION
        return NOT_GATEABLE if "not gateable" in levels else CLEAN

    @property
    def lines(self) -> Iterator[str]:
        """All reasons, a line each; what is said of many scenarios of a contender is said once."""
        same: dict[tuple[str, str, str], list[Reason]] = {}
        for reason in self.reasons:
            same.setdefault((reason.level, reason.contender, reason.message), []).append(reason)
        for found in same.values():
            if len(found) <= _MOST_LISTED:
                yield from (reason.line for reason in found)
                continue
            names = ", ".join(reason.scenario for reason in found[:_MOST_LISTED])
            yield msgspec.structs.replace(found[0], scenario=f"{len(found)} scenarios ({names}, …)").line

    @property
    def left_open(self) -> str:
        """One line on the families that the gate does not guard; empty where it guards all, or nothing."""
        if not self.unguarded or not self.compared:
            return ""
        whole = len(library_families())
        if len(self.unguarded) == whole:
            return f"not guarded: all {whole} families of the library"
        names = ", ".join(self.unguarded)
        return f"not guarded: {len(self.unguarded)} of the library's {whole} families: {names}"

    def of(self, level: Level) -> list[Reason]:
        """The reasons of one level."""
        return [reason for reason in self.reasons if reason.level == level]


def judge(store: Store, baseline: Baseline, rules: Rules) -> Judgement:
    """Hold a run against a baseline. A run that is not gateable as a whole is not compared at all."""
    summary = summarize(store)
    run = summary["run"]
    if not run["gateable"]:
        return Judgement(tuple(Reason("not gateable", "", "", why) for why in unevaluated(store)), {})
    mine, because = records(store), first_reasons(store)
    _check_names(rules, mine, baseline)
    names = rules.strategies or tuple(baseline.contenders)
    reasons: list[Reason] = []
    tested: list[tuple[str, str, Paired]] = []
    compared: dict[str, dict[str, Record]] = {}
    held: set[str] = set()
    if not names:
        reasons.append(Reason("not gateable", "", "", "the baseline has no strategy"))
    digests = {entry.name: entry.digest for entry in store.recipe.entries}
    for name in names:
        if name not in mine or name not in baseline.contenders:
            where = "run" if name not in mine else "baseline"
            there = ", ".join(mine if name not in mine else baseline.contenders)
            reasons.append(Reason("not gateable", name, "", f"is not in the {where}, which has: {there}"))
            continue
        contender = _Contender(name, mine[name], baseline, digests, rules, because.get(name, {}))
        reasons += contender.reasons()
        reasons += _limits(name, summary, rules)
        reasons += _silent(name, summary)
        tested += [(name, rate, result) for rate, result in contender.tested()]
        compared[name] = mine[name]
        held.update(contender.pairs)
    reasons += _differences(tested, rules)
    if run["void"]:
        why = "; ".join(run["void_reasons"])
        void = f"{run['void']} of {run['episodes']} episodes are void and left out: {why}"
        reasons.append(Reason("note", "", "", void))
    order: dict[str, int] = {"not gateable": 0, "regression": 1, "note": 2}
    found = tuple(sorted(reasons, key=lambda reason: order[reason.level]))
    return Judgement(found, compared, _unguarded(store.recipe, compared, held))


def _unguarded(recipe: Recipe, names: Iterable[str], held: set[str]) -> tuple[str, ...]:
    """The library's families of which no scenario is held, but for those that were tried and have no form."""
    guarded = {entry.family for entry in recipe.entries if entry.name in held}
    tried: dict[str, bool] = {}
    for entry in recipe.entries:
        plays = any(cell_name(entry.name, name) not in recipe.not_expressible for name in names)
        tried[entry.family] = tried.get(entry.family, False) or plays
    return tuple(family for family in library_families() if family not in guarded and tried.get(family, True))


def _check_names(rules: Rules, mine: Mapping[str, Mapping[str, Record]], baseline: Baseline) -> None:
    """RulesError where the rules name a scenario or a contender that neither run nor baseline has."""
    scenarios = {*baseline.scenarios, *(name for found in mine.values() for name in found)}
    for what, names, known in (
        ("known_failures", rules.known_failures, scenarios),
        ("strategies", rules.strategies, {*mine, *baseline.contenders}),
    ):
        for name in names:
            if name not in known:
                guess = did_you_mean(name, known)
                raise RulesError(f"gate: {what}: {name!r} is neither in the run nor in the baseline{guess}")


class _Contender:
    """One contender's records, in the run and in the baseline."""

    def __init__(
        self,
        name: str,
        now: Mapping[str, Record],
        baseline: Baseline,
        digests: Mapping[str, str],
        rules: Rules,
        why: Mapping[str, str],
    ) -> None:
        self.name = name
        #: What kept the first episode of a scenario from being correct that was not.
        self.why = why
        self.now = now
        self.before = baseline.contenders[name]
        self.rules = rules
        both = [scenario for scenario in self.before if scenario in now]
        self.digests = digests
        self.changed = [s for s in both if baseline.scenarios.get(s) != digests[s]]
        #: Before and now, on the seeds that both have.
        self.pairs: dict[str, tuple[Record, Record]] = {}
        self.unpaired: list[str] = []
        for scenario in both:
            if scenario in set(self.changed):
                continue
            pair = shared(self.before[scenario], now[scenario])
            if pair is None:
                self.unpaired.append(scenario)
            else:
                self.pairs[scenario] = pair

    def _reason(self, level: Level, message: str, scenario: str = "") -> Reason:
        return Reason(level, self.name, scenario, message)

    def reasons(self) -> Iterator[Reason]:
        """All findings on this contender, limits apart."""
        yield from self._scenario_sets()
        needed = max(1, self.rules.min_scenarios)
        if len(self.pairs) < needed:
            few = f"{len(self.pairs)} scenarios in common with the baseline, {needed} needed"
            yield self._reason("not gateable", few)
        always = list(self._always_failing())
        yield from always
        told = {reason.scenario for reason in always if reason.level == "regression"}
        flips = list(self._flips(told))
        yield from flips
        yield from self._new_faults(told | {flip.scenario for flip in flips if flip.level == "regression"})

    def _new_faults(self, told: set[str]) -> Iterator[Reason]:
        """Faults that a scenario did not have, whatever else was wrong with it before."""
        for scenario, (before, now) in self.pairs.items():
            for fault in self.rules.new_faults if scenario not in told else ():
                if not now.count(fault) or before.count(fault):
                    continue
                level: Level = "note" if scenario in self.rules.known_failures else "regression"
                what = fault.replace("_", " ")
                yield self._reason(
                    level,
                    f"new: {what}: {before.outcome} → {now.outcome}{self._reason_suffix(scenario)}",
                    scenario,
                )

    def _scenario_sets(self) -> Iterator[Reason]:
        rules = self.rules
        for scenario in self.before:
            if scenario not in self.now:
                level: Level = "not gateable" if rules.missing_scenarios == "refuse" else "note"
                yield self._reason(level, "is in the baseline and was not run", scenario)
        for scenario in self.changed:
            level = "not gateable" if rules.changed_scenarios == "refuse" else "note"
            yield self._reason(level, "has changed since the baseline: not compared", scenario)
        for scenario in self.unpaired:
            before, now = self.before[scenario].episodes, self.now[scenario].episodes
            seeds = (
                f"{before} seeds in the baseline and {now} now, none known to be in both: make a new baseline"
            )
            yield self._reason("not gateable", seeds, scenario)
        fewer = [
            scenario
            for scenario, (before_, now_) in self.pairs.items()
            if before_ is not self.before[scenario] or now_ is not self.now[scenario]
        ]
        if fewer:
            seeds = f"{len(fewer)} scenarios are compared on the seeds that baseline and run both have"
            yield self._reason("note", seeds)
        for scenario in self.now:
            if scenario not in self.before:
                level = "regression" if rules.new_scenarios == "refuse" else "note"
                yield self._reason(level, "is new: not in the baseline", scenario)

    def _always_failing(self) -> Iterator[Reason]:
        """A scenario that fails in every episode shows, whatever thresholds allow."""
        known = []
        for scenario, whole in self.now.items():
            before, record = self.pairs.get(scenario, (self.before.get(scenario), whole))
            if record.correct:
                continue
            what = f"always fails: {record.outcome}"
            if before is not None and not before.correct:
                known.append(scenario)
            elif scenario in self.rules.known_failures:
                yield self._reason("note", f"{what}, a known failure", scenario)
            else:
                was = (
                    f"; in the baseline {before.correct} of {before.episodes} correct"
                    if before
                    else "; it is new"
                )
                yield self._reason("regression", what + was + self._reason_suffix(scenario), scenario)
        if known:
            names = f"{len(known)} scenarios always fail, as in the baseline: {', '.join(known)}"
            yield self._reason("note", names)

    def _reason_suffix(self, scenario: str) -> str:
        why = self.why.get(scenario)
        return f"; {why}" if why else ""

    def _passes(self, record: Record) -> bool:
        return record.correct >= self.rules.pass_share * record.episodes and record.correct > 0

    def _flips(self, told: set[str]) -> Iterator[Reason]:
        worse = [
            scenario
            for scenario, (before, now) in self.pairs.items()
            if scenario not in told and self._passes(before) and not self._passes(now)
        ]
        level: Level = "note" if len(worse) <= self.rules.allowed_flips else "regression"
        for scenario in worse:
            before, now = self.pairs[scenario]
            flip = (
                f"flips from pass to fail: {before.outcome} → {now.outcome} "
                f"({now.correct} of {now.episodes} correct)"
            )
            yield self._reason(level, flip + self._reason_suffix(scenario), scenario)
        better = [s for s, (was, now) in self.pairs.items() if not self._passes(was) and self._passes(now)]
        if better:
            shown = ", ".join(better[:5]) + (" …" if len(better) > 5 else "")
            yield self._reason("note", f"{len(better)} scenarios pass now and did not: {shown}")

    def tested(self) -> list[tuple[str, Paired]]:
        """``correct`` and the faults, each compared over the scenarios and seeds that both have."""
        clusters = [self.digests[scenario] for scenario in self.pairs]
        found = []
        for rate in COMPARED:
            differences = [now.share(rate) - before.share(rate) for before, now in self.pairs.values()]
            found.append((rate, paired(differences, clusters)))
        return found


def _differences(tested: list[tuple[str, str, Paired]], rules: Rules) -> Iterator[Reason]:
    """Falls of ``correct`` and rises of faults that chance over scenarios does not explain.

    Adjusted over all contenders and rates of the gate: ten contenders that are all the same must not fail
    more often than one.
    """
    p_values = adjusted([(result.p, result.note) for _, _, result in tested])
    for (name, rate, result), p in zip(tested, p_values, strict=True):
        if p is None or result.difference is None or p > rules.alpha:
            continue
        worse = -result.difference if rate in GOOD else result.difference
        if worse > rules.allowed_drop:
            what = rate.replace("_", " ")
            yield Reason(
                "regression",
                name,
                "",
                f"{what} {'fell' if rate in GOOD else 'rose'} by {100 * worse:.1f} points over "
                f"{result.scenarios} scenarios ({result.better} up, {result.worse} down; "
                f"sign-flip p {p:.2g})",
            )


def _silent(name: str, summary: Mapping[str, Any]) -> Iterator[Reason]:
    """Whether a harness asked the model for nothing, more often than chance: then nothing is known of it."""
    for row in summary["rows"]:
        mine = contender_name(row["strategy"], row["harness"]) == name
        if mine and (row["family"], row["checks"]) == ("all", "all") and row["no_requests"]:
            level: Level = "note" if row["gateable"] else "not gateable"
            above = "" if row["gateable"] else ", above 1 %"
            yield Reason(
                level,
                name,
                "",
                f"made no request at all in {row['no_requests']} of {row['episodes']} episodes{above}",
            )


def _limited(row: Mapping[str, Any], rate: str) -> float | None:
    """A row's share of scenarios for a rate, of episodes for a flag; None where nothing is in its base."""
    if rate in FLAGS:
        return row["flagged"].get(rate, 0) / row["episodes"] if row["episodes"] else None
    share: float | None = row[rate]["scenario_rate"]
    return share


def _limits(name: str, summary: Mapping[str, Any], rules: Rules) -> Iterator[Reason]:
    """Hard limits on the rates of this run, seeds averaged within scenarios."""
    rows = {
        (row["family"], row["checks"]): row
        for row in summary["rows"]
        if contender_name(row["strategy"], row["harness"]) == name
    }
    for rate, scope, limit in rules.bounds():
        row = rows.get(("all", scope) if scope in LEVELS else (scope, "all"))
        value = _limited(row, rate) if row else None
        what = rate.replace("_", " ") + ("" if scope == "all" else f" in {scope}")
        if row is None or value is None:
            why = "no such family or level in the run" if row is None else "empty base"
            yield Reason("not gateable", name, "", f"{what}: nothing to hold the limit against ({why})")
        elif (value < limit) if rate in GOOD else (value > limit):
            cell = row[rate]
            found = (
                f"{row['flagged'].get(rate, 0)} of {row['episodes']} episodes"
                if rate in FLAGS
                else f"{cell['scenario_count']:g} of {cell['scenario_base']} scenarios"
            )
            yield Reason(
                "regression",
                name,
                "",
                f"{what} is {percent(value)} ({found}), "
                f"{'below' if rate in GOOD else 'above'} the limit of {percent(limit)}",
            )
