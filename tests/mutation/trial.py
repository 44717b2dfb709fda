"""One mutant, tried in a forked child: first the library's episodes, then the tests of its place."""

from __future__ import annotations

import ast
import gc
import hashlib
import importlib
import io
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest

from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, ideal_episode, run_episode
from evalkit.strategies.presets import PRESETS
from tests.mutation.places import Place
from tests.mutation.rules import Change, changes
from tests.mutation.swap import Unchanged, put_in

ROOT = Path(__file__).resolve().parents[2]
#: Worlds whose episodes need no process.
QUICK = ("items", "ledger", "inbox")
#: Strategies that react to different things: evidence and checks, a tool, words, and whatever comes.
STRATEGIES = ("gate", "validated_finish", "keyword", "infinite_nudge")
#: Seconds of processor time for one scenario, of which the slowest takes a twentieth; and for the tests.
SCENARIO_SECONDS, TEST_SECONDS = 2.0, 40.0
#: Seconds of processor time for one scenario of unbroken code.
REFERENCE_SECONDS = 20.0
#: Seconds after which a child that only waits has hung.
HUNG_SECONDS = 120
#: Bytes that a mutant may take beyond what it began with.
MEMORY = 1 << 30

Found = Literal["scenarios", "tests", "survived", "no mutant"]


@dataclass(frozen=True)
class Mutant:
    """A module's tree and a change of it that is yet to be made; without one the tree is wrong already.

    The change is made in a child, so the tree stays for the next one.
    """

    place: Place
    module: str
    tree: ast.Module
    change: Change | None
    name: str

    @property
    def told(self) -> str:
        """The mutant in a line."""
        change = self.change
        if change is None:
            return f"{self.module}: {self.name}"
        return f"{self.module}:{change.line} {change.scope}: {change.rule}: {change.before} → {change.after}"

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is known by, wherever its line has moved: scope, what stood there, what stands there.

        What stood there is told with its line where it is a number: a function has many of them.
        """
        change = self.change
        assert change is not None
        before = change.before
        if change.rule == "constant":
            before += f" in {source_of(self.module).splitlines()[change.line - 1].strip()[:80]}"
        return f"{self.module}.{change.scope}", before, change.after


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: who noticed it, and what or how."""

    found: Found
    by: str
    seconds: float


def every_mutant(places: Iterable[Place]) -> list[Mutant]:
    """All mutants of some places, in the order of their modules."""
    made = []
    for module, where in sorted((module, place) for place in places for module in place.modules):
        tree = ast.parse(source_of(module))
        made += [Mutant(where, module, tree, change, change.rule) for change in changes(tree)]
    return made


def sample(places: Iterable[Place], size: int, seed: int) -> list[Mutant]:
    """So many mutants, drawn from all, as often from a place as it has mutants.

    Each has a number of its own, drawn from the seed and from what it is. So those of a function stay in the
    sample, or out of it, when other functions change or move to another module.
    """
    numbered = zip(names(every := every_mutant(places)), every, strict=True)
    drawn = sorted(numbered, key=lambda pair: hashlib.blake2b(f"{seed}\n{pair[0]}".encode()).digest())
    return [mutant for _, mutant in drawn[:size]]


def names(mutants: Iterable[Mutant]) -> list[str]:
    """What each is known by wherever it stands: scope, rule, what is changed, which of several such it is."""
    counts: Counter[str] = Counter()
    found = []
    for mutant in mutants:
        change = mutant.change
        said = (
            mutant.name
            if change is None
            else f"{change.scope}: {change.rule}: {change.before} → {change.after}"
        )
        counts[said] += 1
        found.append(f"{said} ({counts[said]})")
    return found


@cache
def source_of(module: str) -> str:
    """A module's text."""
    return (ROOT / module.replace(".", "/")).with_suffix(".py").read_text()


def played(scenario: Scenario, strategies: Iterable[str]) -> list[Any]:
    """The episodes of a scenario: the ideal driver's, and those of the reference loop with each strategy."""
    episodes: list[Any] = []
    arenas: dict[Any, Arena] = {}
    for name in strategies:
        strategy = PRESETS[name].strategy
        arena = arenas.get(strategy.offers)
        if arena is None:
            arena = arenas[strategy.offers] = Arena(scenario, strategy.offers)
            if len(arenas) == 1:
                episodes += [_tried(lambda arena=arena: ideal_episode(arena, 0)), arena.cap(0)]
        episodes.append(_tried(lambda arena=arena, strategy=strategy: run_episode(arena, strategy, 0)))
    return episodes


def _tried(run: Callable[[], Episode]) -> Episode | str:
    """An episode; what was raised, where a scenario from outside makes evalkit refuse it."""
    try:
        return run()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _unbroken(scenario: Scenario, strategies: Iterable[str]) -> list[Any]:
    """The episodes of a scenario. RuntimeError where unbroken code finds no end: the fault is its own."""
    before = signal.signal(signal.SIGPROF, _endless)
    signal.setitimer(signal.ITIMER_PROF, REFERENCE_SECONDS)
    try:
        return played(scenario, strategies)
    except _Endless:
        raise RuntimeError(f"no end in {REFERENCE_SECONDS:g} s: {scenario}") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Reference:
    """Scenarios with the episodes that the unchanged code makes of them."""

    def __init__(self, scenarios: Iterable[Scenario], strategies: Callable[[int], Iterable[str]]) -> None:
        self._all = [
            (scenario, tuple(strategies(number)), _unbroken(scenario, strategies(number)))
            for number, scenario in enumerate(scenarios)
        ]

    def __len__(self) -> int:
        return len(self._all)

    def difference(self) -> str:
        """The first scenario whose episodes are others now; empty where none is."""
        for scenario, strategies, before in self._all:
            signal.setitimer(signal.ITIMER_PROF, SCENARIO_SECONDS)
            try:
                if played(scenario, strategies) != before:
                    return scenario.name
            except _Endless:
                return f"{scenario.name} (endless)"
            except Exception as error:
                return f"{scenario.name} ({type(error).__name__})"
        signal.setitimer(signal.ITIMER_PROF, 0)
        return ""


def library(seed: int = 0) -> Reference:
    """The library's scenarios in quick worlds, shuffled so that unlike ones stand at the beginning."""
    scenarios = [each for each in load_suites(()) if each.world.kind in QUICK]
    random.Random(seed).shuffle(scenarios)
    return Reference(scenarios, lambda _: STRATEGIES)


class _Endless(BaseException):
    pass


def _endless(*_: object) -> None:
    raise _Endless


def warm(places: Iterable[Place]) -> None:
    """Load what the children are to have: the modules, and the tests of the places."""
    for place in places:
        for name in place.modules:
            importlib.import_module(name)
    files = sorted({test for place in places for test in place.tests})
    _pytest(["--collect-only", *files])
    # What is there before the children stays where it is: they copy none of it to count references.
    gc.freeze()


def _pytest(arguments: list[str], plugins: Iterable[object] = ()) -> int:
    options = [
        "-x",
        "-q",
        "--tb=no",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-o",
        "addopts=",
    ]
    options += ["-m", "not slow and not harness and not gateway and not soak and not dask and not browser"]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return int(pytest.main([*options, f"--rootdir={ROOT}", *arguments], plugins=list(plugins)))


class _First:
    """Notes the first test that failed."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid


def tested(tests: Iterable[str]) -> str:
    """The first test that fails; empty where none does."""
    first = _First()
    signal.setitimer(signal.ITIMER_PROF, TEST_SECONDS)
    try:
        code = _pytest(list(tests), [first])
    except _Endless:
        return "endless"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return first.name or (f"pytest ended with {code}" if code else "")


def unsound(places: Iterable[Place]) -> list[str]:
    """Tests that fail in a child in which nothing is broken: what they say of mutants is worth nothing."""
    failed: list[str] = []
    for tests in sorted({place.tests for place in places}):
        said = in_child(lambda say, tests=tests: say(tested(tests) or "fine"))
        failed += [line for line in said or [f"{tests[0]} ended its child"] if line != "fine"]
    return failed


def tried(mutant: Mutant, reference: Reference | None, tests: bool = True) -> Outcome:
    """What becomes of a mutant, in a child of its own under limits of time and memory."""
    start = time.monotonic()
    found = in_child(lambda say: _try(mutant, reference if mutant.place.plays else None, tests, say))
    seconds = time.monotonic() - start
    last = found[-1].split("\t", 1) if found else ["scenarios", ""]
    if last[0] == "at":  # it ended, or was ended, on the way
        return Outcome("tests" if last[1] == "tests" else "scenarios", "died or endless", seconds)
    return Outcome(last[0], last[1], seconds)  # type: ignore[arg-type]


def together(mutants: Iterable[Mutant], reference: Reference) -> bool:
    """Whether the scenarios see nothing of several mutants that are made at once, no two of one place."""
    every = list(mutants)

    def look(say: Callable[[str], None]) -> None:
        _make(every)
        say(reference.difference() or "the same")

    return in_child(look) == ["the same"]


def _make(mutants: Iterable[Mutant]) -> None:
    """Break the modules. Raises :class:`~tests.mutation.swap.Unchanged` where that reaches nothing."""
    trees: dict[str, ast.Module] = {}
    for mutant in mutants:
        if mutant.change is not None:
            mutant.change.make()
        trees[mutant.module] = mutant.tree
    for module, tree in trees.items():
        put_in(importlib.import_module(module), tree)


def _try(mutant: Mutant, reference: Reference | None, tests: bool, say: Callable[[str], None]) -> None:
    try:
        _make([mutant])
    except Unchanged as error:
        return say(f"no mutant\t{error}")
    if reference is not None:
        say("at\tscenarios")
        different = reference.difference()
        if different:
            return say(f"scenarios\t{different}")
    if tests:
        say("at\ttests")
        failed = tested(mutant.place.tests)
        if failed:
            return say(f"tests\t{failed}")
    return say("survived\t")


def in_child(work: Callable[[Callable[[str], None]], None]) -> list[str]:
    """The lines that a forked child says until it ends, which it does under limits of time and memory."""
    readable, writable = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            os.close(readable)
            _limited()
            work(lambda line: _write(writable, line))
        except BaseException as error:
            if not isinstance(error, SystemExit):
                _write(2, f"{type(error).__name__}: {error}")
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as said:
        lines = said.read().splitlines()
    os.waitpid(child, 0)
    return lines


def _write(descriptor: int, line: str) -> None:
    os.write(descriptor, (line.replace("\n", " ") + "\n").encode())


def _limited() -> None:
    os.setpgid(0, 0)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    seconds = int(SCENARIO_SECONDS + TEST_SECONDS) * 2
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    signal.signal(signal.SIGPROF, _endless)
    signal.alarm(HUNG_SECONDS)
