"""The pytest plugin: a test for each scenario and seed of a suite, of a harness that the user names.

    @pytest.fixture(scope="session")
    def harness():
        return "my_agent.py"          # or a folder with harness.toml, module:function, a callable

    @pytest.mark.termination("partial_completion", seeds=3)
    def test_knows_when_it_is_over():
        ...

A test that takes the fixture ``termination`` may run its agent itself: ``termination.env`` has the base URLs
and tools, and ``termination.ended("done")`` says how it ended.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from evalkit.extras import MissingExtra, need

if TYPE_CHECKING:
    from evalkit.harnesses.episode_record import Kept
    from evalkit.scenarios.scenario import Scenario
    from evalkit.scoring.episode import Episode
    from evalkit.scoring.foreign_episode import Contract, Trial
    from evalkit.wire.server import Server

MARK = "termination"
_CASE = "evalkit_case"
_PROPERTY = "evalkit"
_CASES = pytest.StashKey[dict[tuple[str, ...], "list[Scenario]"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's options."""
    group = parser.getgroup("evalkit", "does the harness know when its task is over?")
    group.addoption(
        "--evalkit-suite",
        action="append",
        default=[],
        metavar="SUITE",
        help="Play this file, folder or family instead of what the marks name. Repeatable.",
    )
    group.addoption(
        "--evalkit-report", metavar="FOLDER", help="Write the episodes and their report into this folder."
    )
    group.addoption("--evalkit-harness", metavar="NAME", help="The harness, where no fixture names one.")


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known, and collect episodes where a report is wanted."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(*suites, seeds=1, dialect=None, time_limit_s=None, property=None, verdict=True): "
        "one test a scenario and seed",
    )
    if config.getoption("--evalkit-report") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Reporter(config), "evalkit-reporter")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each scenario and seed."""
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None:
        return
    try:
        need(f"@pytest.mark.{MARK}", "h11")
    except MissingExtra as error:
        raise pytest.Collector.CollectError(str(error)) from None
    seeds = mark.kwargs.get("seeds", 1)
    if not isinstance(seeds, int) or seeds < 1:
        raise _wrong(f"seeds must be at least 1, got {seeds!r}")
    suites = tuple(metafunc.config.getoption("--evalkit-suite")) or mark.args
    cases = [
        pytest.param((scenario, seed), id=scenario.name if not scenario.random else f"{scenario.name}-{seed}")
        for scenario in _scenarios(metafunc.config, suites)
        for seed in range(seeds if scenario.random else 1)
    ]
    wanted = mark.kwargs.get("property")
    if wanted is not None:
        try:
            _flag_of(wanted)
        except ValueError as error:
            raise _wrong(str(error)) from None
    metafunc.parametrize(_CASE, cases, indirect=True)


def _wrong(said: str) -> pytest.Collector.CollectError:
    """What is wrong with a mark, which pytest shows as the line that it is."""
    return pytest.Collector.CollectError(f"@pytest.mark.{MARK}: {said}")


def _flag_of(wanted: object) -> str:
    """The flag that a property forbids: "no false done" is about ``false_done``. ValueError for another."""
    from evalkit.scoring.episode_fields import MARKS

    flag = str(wanted).removeprefix("no ").replace(" ", "_")
    if not str(wanted).startswith("no ") or flag not in MARKS:
        allowed = ", ".join(f"no {name.replace('_', ' ')}" for name in MARKS)
        raise ValueError(f"property {wanted!r}; allowed: {allowed}")
    return flag


def _scenarios(config: pytest.Config, suites: tuple[str, ...]) -> list[Scenario]:
    from evalkit.scenarios.suites import load_suites
    from evalkit.scenarios.yaml_source import ScenarioError

    known = config.stash.setdefault(_CASES, {})
    if suites not in known:
        try:
            known[suites] = load_suites(suites)
        except ScenarioError as error:
            raise _wrong(str(error)) from None
    return known[suites]


@pytest.fixture(scope="session")
def harness(request: pytest.FixtureRequest) -> Any:
    """The harness under test. Override it: a name, folder, program, ``module:function`` or a callable."""
    name = request.config.getoption("--evalkit-harness")
    if name is None:
        pytest.fail("name the harness with a fixture 'harness' or --evalkit-harness", pytrace=False)
    return name


@pytest.fixture(scope="session")
def evalkit_server() -> Iterator[Server]:
    """The scripted model server of this process."""
    from evalkit.scoring.foreign_episode import server_for_harnesses

    with server_for_harnesses() as server:
        yield server


@pytest.fixture(scope="session")
def evalkit_runners() -> Iterator[dict[Any, Any]]:
    """The runners of this process: a resident harness serves many tests."""
    runners: dict[Any, Any] = {}
    yield runners
    for _, runner, *_ in runners.values():
        runner.close()


@pytest.fixture(autouse=True)
def evalkit_case(request: pytest.FixtureRequest) -> Any:
    """The scenario and seed of a test that is marked; None for others."""
    return getattr(request, "param", None)


@pytest.fixture
def termination(request: pytest.FixtureRequest, evalkit_case: Any) -> Iterator[Termination]:
    """The case of a marked test."""
    if evalkit_case is None:
        pytest.fail(f"the fixture 'termination' needs @pytest.mark.{MARK}", pytrace=False)
    case = Termination(request, *evalkit_case)
    yield case
    case.close()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """After a marked test's own body: run the harness where the body ran none, and hold the episode up."""
    result = yield
    if pyfuncitem.get_closest_marker(MARK) is not None:
        request = pyfuncitem._request
        case: Termination = request.getfixturevalue("termination")
        if case.episode is None:
            case.run(request.getfixturevalue("harness"))
        case.verify()
    return result


class Termination:
    """One scenario with one seed, and what came of it. ``episode`` is None until it has ended."""

    def __init__(self, request: pytest.FixtureRequest, scenario: Scenario, seed: int) -> None:
        self.scenario = scenario
        self.seed = seed
        self.episode: Episode | None = None
        self.kept: Kept | None = None
        self._request = request
        self._mark = request.node.get_closest_marker(MARK)
        self._name: str | None = None
        self._trial: Trial | None = None

    @property
    def env(self) -> dict[str, str]:
        """What a harness is told: base URLs, tools, prompt, limits, as environment variables."""
        if self._trial is None:
            self._trial = self._begin(self._contract("test"))
        return self._trial.told

    def ended(
        self, ending: str | None = None, native: str = "", report: dict[str, Any] | None = None
    ) -> Episode:
        """Say how the agent ended that the test ran itself; the scored episode."""
        from evalkit.harnesses.endings import Finished

        assert self.env
        assert self._trial is not None
        told = {"ending": ending, "native": native, "report": report}
        self.episode, self.kept = self._trial.finish(Finished(told))
        return self.episode

    def run(self, harness: Any) -> Episode:
        """Run a harness on the scenario; the scored episode."""
        from evalkit.harnesses.manifest import ManifestError

        try:
            contract, runner = self._runner(harness)
        except ManifestError as error:
            pytest.fail(str(error), pytrace=False)
        trial = self._trial = self._begin(contract)
        self.episode, self.kept = trial.finish(runner.run(trial.told, trial.over, trial.then))
        return self.episode

    def verify(self) -> None:
        """Fail the test where the episode is not correct."""
        assert self.episode is not None
        assert self.kept is not None
        if self._request.config.getoption("--evalkit-report"):
            self._request.node.user_properties.append((_PROPERTY, self._record()))
        if self._fails():
            pytest.fail(self._message(), pytrace=False)

    def _fails(self) -> bool:
        """Whether the episode breaks what the test asserts: being correct, one property, or nothing."""
        assert self.episode is not None
        wanted = self._mark.kwargs.get("property")
        if not self._mark.kwargs.get("verdict", True):
            return False
        if wanted is None:
            return not self.episode.correct
        return bool(getattr(self.episode, _flag_of(wanted)))

    def close(self) -> None:
        """Let nothing more in."""
        if self._trial is not None and self.episode is None:
            self._trial.close()

    def _begin(self, contract: Contract) -> Trial:
        from evalkit.scoring.arena import Arena
        from evalkit.scoring.foreign_episode import Trial

        server = self._request.getfixturevalue("evalkit_server")
        return Trial(Arena(self.scenario, contract.offered), self.seed, contract, server)

    def _contract(self, name: str) -> Contract:
        from evalkit.scoring.foreign_episode import Contract

        return Contract(name, dialect=self._mark.kwargs.get("dialect") or "anthropic")

    def _runner(self, harness: Any) -> tuple[Contract, Any]:
        from evalkit.harnesses.callables import CallableRunner
        from evalkit.harnesses.find import find_harness
        from evalkit.scoring.foreign_episode import contract_of, hear, runner_of, why_not_expressible

        runners = self._request.getfixturevalue("evalkit_runners")
        seconds = self._mark.kwargs.get("time_limit_s")
        key = (harness, seconds)
        if key not in runners:
            if callable(harness):
                name = getattr(harness, "__name__", type(harness).__name__)
                runners[key] = self._contract(name), CallableRunner(harness, seconds or 60.0)
            else:
                found = hear(find_harness(str(harness)))
                runners[key] = contract_of(found), runner_of(found, seconds=seconds), found
        if not callable(harness):
            self._name = str(harness)
            reason = why_not_expressible(self.scenario, runners[key][2])
            if reason is not None:
                pytest.skip(f"not expressible: {reason}")
        found_runner: tuple[Contract, Any] = runners[key][:2]
        return found_runner

    def _message(self) -> str:
        from evalkit.scoring.episode_fields import MARKS
        from evalkit.stats.causes import told_once

        assert self.episode is not None
        assert self.kept is not None
        episode, kept = self.episode, self.kept
        native = f" ({episode.native})" if episode.native else ""
        lines = [
            f"{self.scenario.name}, seed {self.seed}: {episode.outcome}{native} in {episode.turns} turns"
        ]
        if self.scenario.summary:
            lines.append(f"  {self.scenario.summary}")
        flags = [flag.replace("_", " ") for flag in MARKS if getattr(episode, flag)]
        lines.append(f"  flags: {', '.join(flags) or 'none'}")
        lines.append(f"  not correct: {episode.why}")
        if episode.causes:
            lines.append(f"  fell for: {'; '.join(told_once(episode.causes))}")
        if kept.wrong is not None:
            lines.append(f"  {kept.wrong.said}")
            said = next((s for s in kept.exchanges if s.number == kept.wrong.turn and not s.by), None)
            for block in said.blocks if said is not None else ():
                lines.append(f"    {block['kind']}: {block['text'][:200]}")
        if episode.note:
            lines.append(f"  note: {episode.note}")
        if kept.output.strip() and episode.ending == "error":
            lines += [f"    | {line[:200]}" for line in kept.output.strip().splitlines()[-8:]]
        lines.append(f"  replay: {self._replay()}")
        return "\n".join(lines)

    def _replay(self) -> str:
        if self._name is None:
            return f"pytest '{self._request.node.nodeid}'"
        seed = f" --seed {self.seed}" if self.scenario.random else ""
        place = f"{self.scenario.place}::{self.scenario.name}"
        if "_scenarios" in self.scenario.place:
            place = self.scenario.name
        return f"evalkit harnesses run {self._name} {place}{seed}"

    def _record(self) -> str:
        """The episode as text, for whoever writes the report: perhaps another process."""
        import msgspec

        assert self.kept is not None
        told = {
            "place": self.scenario.place,
            "scenario": self.scenario.name,
            "harness": self._name or self.kept.harness,
            "seed": self.seed,
            "episode": self.episode,
            "kept": self.kept,
        }
        return msgspec.json.encode(told).decode()


class _Reporter:
    """Collects the episodes of all processes and writes their report."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._records: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._records += [json.loads(str(v)) for name, v in report.user_properties if name == _PROPERTY]

    def pytest_sessionfinish(self) -> None:
        if not self._records:
            return
        from evalkit.reports.ci.test_session import write_tests

        self._written = write_tests(self._records, self._config.getoption("--evalkit-report"))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._records:
            terminalreporter.write_line(f"evalkit: {len(self._records)} episodes, report in {self._written}")
