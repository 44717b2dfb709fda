"""The pytest plugin, in sessions of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.runs.store import Store
from tests.harnesses.episodes import LOOP, PLAIN

pytestmark = pytest.mark.long

pytest_plugins = ["pytester"]

CHANCE = """
scenario: chance-of-a-report
family: partial_completion
summary: Sometimes the model reports after one.
task: {prompt: Send every parcel., done_when: Every parcel is sent.}
world: {kind: items, items: [parcel-a, parcel-b]}
model:
  - call: list_items
  - either: [{p: 0.5, do: [{say: One moment., claim: none}]}]
  - work: rest
  - {say: Both are sent., claim: done}
"""

MARKED = """
import pytest

@pytest.fixture(scope="session")
def harness():
    return "agent.py"

@pytest.mark.termination("parcels.yaml", seeds=4)
def test_knows_when_it_is_over():
    pass

def test_of_another_kind():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(".yaml", parcels=PLAIN + "---" + CHANCE)
    pytester.path.joinpath("agent.py").write_text(LOOP)
    pytester.makepyfile(test_mine=MARKED)
    return pytester


def test_one_test_for_each_scenario_and_seed_with_all_that_explains_a_failure(
    project: pytest.Pytester,
) -> None:
    result = project.runpytest_inprocess("-v", "-p", "no:cacheprovider", "--evalkit-report", "out")
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] + outcomes["failed"] == 6
    assert outcomes["failed"] >= 2
    result.stdout.fnmatch_lines(
        [
            "*test_knows_when_it_is_over?two-parcels? FAILED*",
            "*two-parcels, seed 0: done/reachable (exit:0) in 3 turns",
            "*flags: premature stop, false done",
            "*not correct: done/reachable is not accepted (accepted: done/complete)",
            "*fell for: say (claim partial), turn 3",
            "*first wrong decision: turn 3: the harness ended as done and the work was not complete",
            "*text: One of two is sent.",
            "*replay: evalkit harnesses run agent.py parcels.yaml::two-parcels",
        ]
    )
    result.stdout.fnmatch_lines(
        ["*chance-of-a-report, seed *", "*--seed *", "evalkit: 5 episodes, report in out"]
    )
    store = Store.open(Path("out"), write=False)
    assert store.count() == 5
    store.close()
    assert "agent.py" in Path("out", "report.md").read_text()


def test_under_xdist(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess("-n", "2", "-p", "no:cacheprovider", "--evalkit-report", "out")
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] + outcomes["failed"] == 6
    store = Store.open(project.path / "out", write=False)
    assert store.count() == 5
    store.close()


def test_a_test_may_run_its_agent_itself(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_mine="""
        import json, urllib.request, pytest

        @pytest.mark.termination("parcels.yaml")
        def test_it(termination):
            tools = json.load(urllib.request.urlopen(termination.env["EVALKIT_TOOLS_URL"]))["tools"]
            assert [tool["name"] for tool in tools][0] == "list_items"
            episode = termination.ended("escalated", report={"outstanding": ["parcel-a", "parcel-b"]})
            assert (episode.outcome, episode.honest_report) == ("escalated/reachable", True)
        """
    )
    result = project.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*two-parcels, seed 0: escalated/reachable in 0 turns"])


def test_a_callable_and_another_suite(project: pytest.Pytester) -> None:
    project.makefile(
        ".yaml",
        finished="""
scenario: nothing-to-do
family: partial_completion
summary: The model says done at once, and it is.
task: {prompt: Do nothing., done_when: Nothing is left.}
world: {kind: items, items: [parcel-a], skippable: [parcel-a]}
model:
  - {say: Nothing to do., claim: done, finish: {completed: [], skipped: [parcel-a], reason: not ours}}
""",
    )
    project.makepyfile(
        test_mine="""
        import json, urllib.request, pytest

        def ask(told):
            body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Go."}]}
            url = told["ANTHROPIC_BASE_URL"] + "/v1/messages"
            json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode())))

        @pytest.fixture
        def harness():
            return ask

        @pytest.mark.termination("parcels.yaml")
        def test_it():
            pass
        """
    )
    result = project.runpytest_inprocess("-p", "no:cacheprovider", "--evalkit-suite", "finished.yaml")
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ('"parcels.yaml", seeds=0', "*seeds must be at least 1, got 0*"),
        ('"no-such-suite"', "*no such file, folder or family*"),
    ],
)
def test_a_wrong_mark_is_said_in_a_line(project: pytest.Pytester, mark: str, message: str) -> None:
    project.makepyfile(f"import pytest\n@pytest.mark.termination({mark})\ndef test_it(): pass\n")
    result = project.runpytest_inprocess("-p", "no:cacheprovider")
    result.stdout.fnmatch_lines([message])


def test_an_unknown_harness_fails_with_its_name(project: pytest.Pytester) -> None:
    project.makepyfile("import pytest\n@pytest.mark.termination('parcels.yaml')\ndef test_it(): pass\n")
    result = project.runpytest_inprocess("-p", "no:cacheprovider", "--evalkit-harness", "no-such-harness")
    result.stdout.fnmatch_lines(["*harness 'no-such-harness': no such folder, program*"])


def test_a_property_or_the_bodys_own_verdict(project: pytest.Pytester) -> None:
    """The agent stops at a progress report: a premature stop and a false done, and no duplicate effect."""
    project.makefile(".yaml", one=PLAIN)
    project.makepyfile(
        test_asked="""
        import pytest

        @pytest.fixture(scope="session")
        def harness():
            return "agent.py"

        @pytest.mark.termination("one.yaml", property="no duplicate effects")
        def test_one(): pass

        @pytest.mark.termination("one.yaml", property="no false done")
        def test_other(): pass

        @pytest.mark.termination("one.yaml", verdict=False)
        def test_own(termination): assert termination.episode is None
        """
    )
    done = project.runpytest_subprocess("-q", "-p", "no:cacheprovider", "test_asked.py")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["FAILED test_asked.py::test_other*"])


def test_a_property_that_is_none_is_said(project: pytest.Pytester) -> None:
    marked = (
        "import pytest\n@pytest.mark.termination('parcels.yaml', property='no fun')\ndef test_it(): pass\n"
    )
    project.makepyfile(test_asked=marked)
    done = project.runpytest_subprocess("-q", "test_asked.py")
    said = done.stdout.str() + done.stderr.str()
    assert "property 'no fun'; allowed: no premature stop, no false done" in said
