"""Cards: what is read off the scenes, from made-up sights and from programs whose rules are known."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.cli.harness_card import card_of
from evalkit.core.tasks import Limits
from evalkit.harnesses.find import BEHAVIOURS, SCENES, find_harness
from evalkit.reports.harnesses.card import card_text, cards_markdown, write_cards
from evalkit.reports.harnesses.contract import contract_text, runner_for
from evalkit.scenarios.loader import load_file
from evalkit.scoring.harness_card import AT_OWN_CAP, Card, Line, Sight, lines_of

LIMITS = {scene.name: scene.limits for scene in load_file(SCENES)}
NAMES = [scene.name for file in (BEHAVIOURS, SCENES) for scene in load_file(file)]

#: A loop whose rules are known: eight turns of its own, a told limit of turns, no other; no retries.
PROGRAM = """
import json, urllib.request
from evalkit_harness import serve

CAP = 8

def post(url, body):
    headers = {"content-type": "application/json", "x-api-key": "none", "anthropic-version": "2023-06-01"}
    return json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))

def run(job):
    messages = [{"role": "user", "content": job.prompt}]
    for turn in range(job.max_turns or CAP):
        body = {"model": job.model, "max_tokens": 4096, "tools": job.tools, "messages": messages}
        answer = post(f"{job.anthropic_url}/v1/messages", body)
        messages.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if answer["stop_reason"] == "refusal":
            return {"ending": "escalated", "native": "refused"}
        if not calls:
            return {"ending": "done", "native": answer["stop_reason"]}
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": c["id"], "content": job.call(c["name"], c["input"])}
            for c in calls
        ]})
    return {"ending": "limit", "native": "cap"}

serve(run)
"""
#: The same, and in the last turn nothing is looked at.
OTHER = PROGRAM.replace(
    "        if answer",
    "        if turn + 1 == (job.max_turns or CAP):\n            break\n        if answer",
    1,
)
#: The same, and a turn is a call.
BY_CALLS = (
    PROGRAM.replace("for turn in range(job.max_turns or CAP):", "while job.made < (job.max_turns or CAP):")
    .replace("    messages = [", "    job.made = 0\n    messages = [", 1)
    .replace("        if not calls:", "        job.made += len(calls) or 1\n        if not calls:")
)
#: The same, and it holds to a budget: of tokens, of dollars at the prices that evalkit assumes, of calls.
FRUGAL = PROGRAM.replace("    messages = [", "    spent = [0, 0]\n    messages = [", 1).replace(
    "        messages.append(",
    """        spent[0] += answer["usage"]["input_tokens"]
        spent[1] += answer["usage"]["output_tokens"]
        if job.max_tokens and sum(spent) >= job.max_tokens:
            return {"ending": "limit", "native": "tokens"}
        if job.max_usd and (3 * spent[0] + 15 * spent[1]) / 1e6 >= job.max_usd:
            return {"ending": "limit", "native": "dollars"}
        if job.max_calls and len(job.calls) >= job.max_calls:
            return {"ending": "limit", "native": "calls"}
        messages.append(""",
    1,
)


def card(folder: Path, text: str = PROGRAM) -> Card:
    (folder / "agent.py").write_text(text)
    return card_of(str(folder / "agent.py"))


def said(card: Card, section: str, about: str) -> str:
    line = card.line(section, about)
    return line.says if line.seen else f"not seen: {line.says}"


@pytest.mark.long
def test_the_rules_of_a_program_stand_on_its_card(tmp_path: Path) -> None:
    seen = card(tmp_path)
    assert said(seen, "a turn", "calls").startswith("do not count: ended after 6 turns")
    assert said(seen, "a turn", "a failed request").startswith("not seen: ended error")
    assert said(seen, "a turn", "a paused turn").startswith("not seen: ended done (pause_turn)")
    assert said(seen, "the last turn", "its calls at a cap").startswith("are run")
    assert said(seen, "done and a limit in one turn", "which wins").startswith("done: ended done (end_turn)")
    assert said(seen, "caps", "turns, by default") == "8: ended limit (cap)"
    assert said(seen, "caps", "turns, told").startswith("held: ended limit (cap) after 6 turns")
    assert said(seen, "caps", "tokens, told").startswith("not held: ended limit (cap) after 8 turns")
    assert said(seen, "caps", "requests answered 529").startswith("1: ended error")
    assert said(seen, "caps", "refusals") == "1: ended escalated (refused)"
    assert said(seen, "caps", "reports") == "1: ended done (end_turn)"
    assert said(card_of("gated-loop"), "caps", "reports") == "4: ended escalated (to a person: 3 nudges)"
    after = said(seen, "ends as done, the work open", "after")
    assert "a progress report; done is claimed too early" in after
    assert "refusal" not in after
    assert said(seen, "each stop", "a refusal (refusal)") == "ended escalated (refused), reachable"
    # The call under the label of an end stands in another place of its script than the other stops.
    assert said(seen, "each stop", "a call under the label of an end (end_turn)").startswith("went on")
    assert seen.sights[AT_OWN_CAP].turns == 8
    assert set(seen.sights) == {*NAMES, AT_OWN_CAP}


@pytest.mark.long
def test_another_rule_is_another_line(tmp_path: Path) -> None:
    seen = card(tmp_path, OTHER)
    assert said(seen, "the last turn", "its calls at a cap").startswith("are not run")
    assert said(seen, "done and a limit in one turn", "which wins").startswith("the limit: ended limit (cap)")
    counted = card(tmp_path, BY_CALLS)
    assert said(counted, "a turn", "calls").startswith("count: ended after 6 turns with a call each, 3 turns")


@pytest.mark.long
def test_a_budget_that_is_held_is_seen(tmp_path: Path) -> None:
    seen = card(tmp_path, FRUGAL.replace("CAP = 8", "CAP = 30"))
    assert said(seen, "caps", "tokens, told").startswith("held: ended limit (tokens) after ")
    assert said(seen, "caps", "usd, told").startswith("held: ended limit (dollars) after ")
    assert said(seen, "caps", "calls, told") == "held: ended limit (calls) after 7 turns, told 6 calls"
    late = card(
        tmp_path, FRUGAL.replace("CAP = 8", "CAP = 30").replace(">= job.max_tokens", "> 2 * job.max_tokens")
    )
    assert said(late, "caps", "tokens, told").startswith("held late: ended limit (tokens), ")


# From made-up sights


def lines(**sights: Sight) -> dict[tuple[str, str], Line]:
    every = {name: Sight("no such thing") for name in NAMES}
    every |= {name.replace("_", "-"): sight for name, sight in sights.items()}
    return {(line.section, line.about): line for line in lines_of(every, LIMITS)}


def ended(ending: str = "limit", turns: int = 6, native: str = "cap", **more: object) -> Sight:
    return Sight("", ending, native, "reachable", turns, turns, **more)  # type: ignore[arg-type]


NEVER = ended("never", 60, "evalkit's cap")


@pytest.mark.parametrize(
    ("turns", "words"),
    [(6, "does not count"), (4, "counts"), (5, "ended after 5 turns, without one after 6")],
)
def test_whether_failed_requests_count(turns: int, words: str) -> None:
    found = lines(limit_of_turns=ended(), limit_of_turns_after_faults=ended(turns=turns))
    assert found["a turn", "a failed request"].says.startswith(words)


@pytest.mark.parametrize(("turns", "words"), [(6, "counts"), (7, "does not count")])
def test_whether_a_pause_counts(turns: int, words: str) -> None:
    found = lines(limit_of_turns=ended(), limit_of_turns_after_a_pause=ended(turns=turns))
    assert found["a turn", "a paused turn"].says.startswith(words)


def test_what_has_no_cap_shows_nothing_of_it() -> None:
    found = lines(limit_of_turns=NEVER, hundred_readings=ended("never", 212, "evalkit's cap"))
    unseen = [
        ("a turn", "calls"),
        ("the last turn", "its calls at a cap"),
        ("done and a limit in one turn", "which wins"),
        ("caps", "turns, by default"),
    ]
    assert not any(found[name].seen for name in unseen)
    assert found["caps", "turns, by default"].says == "none within 212 turns: never ended (evalkit's cap)"
    assert found["caps", "turns, told"].says.startswith("not held: never ended")


def test_a_limit_that_is_told_is_told_from_the_harness_own() -> None:
    """Ending after ten turns whatever it is told, it does not hold to six calls by it."""
    own = {
        "hundred_readings": ended(turns=10),
        "limit_of_turns": ended(turns=10),
        "done_at_its_own_cap": ended("done"),
    }
    found = lines(**own, limit_of_calls=ended(turns=10), limit_of_tokens=ended(turns=8, over_limit=1))
    assert found["caps", "turns, told"].says.startswith("not held")
    assert found["caps", "calls, told"].says.startswith("not held")
    assert found["caps", "tokens, told"].says == "held late: ended limit (cap), 1 beyond 600 tokens"
    assert LIMITS["limit-of-tokens"] == Limits(tokens=600)


def test_an_own_cap_as_large_as_the_limit_tells_nothing_of_the_limit() -> None:
    at_limit, at_own = ended("limit"), ended("done", native="at its own")
    found = lines(
        hundred_readings=ended(),
        limit_of_turns=ended(),
        done_in_the_last_turn=at_limit,
        done_at_its_own_cap=at_own,
    )
    assert found["caps", "turns, told"].says.startswith("not held")
    assert found["done and a limit in one turn", "which wins"].scenes == (AT_OWN_CAP,)


def test_a_cut_off_call_and_a_silent_end() -> None:
    found = lines(cut_in_call=ended("done"), cut_call_that_parses=ended("done", ran_cut_off=True))
    ran = found["the last turn", "a call of a cut-off turn"]
    assert (ran.says, ran.scenes) == ("is run", ("cut-call-that-parses",))
    silent = found["ends as done, the work open", "after"]
    assert silent.scenes == ("cut-in-call", "cut-call-that-parses")


# Text and files


def made_up(harness: str = "mine", **sights: Sight) -> Card:
    every = {name: Sight("say at 2: the API has no label 'x'") for name in NAMES} | sights
    found = tuple(lines_of(every, LIMITS))
    return Card(harness, "a loop", ("lib==1",), "Anthropic Messages", False, "0", found, every)


def test_text_and_table(tmp_path: Path) -> None:
    first, second = (
        made_up(),
        made_up("mine:other", **{"hundred-readings": ended(turns=9), AT_OWN_CAP: ended()}),
    )
    text = card_text(first)
    assert "mine: a loop\nAnthropic Messages, whole answers · lib==1" in text
    assert "not seen: the API has no label 'x'" in text
    wordy = msgspec.structs.replace(
        first,
        summary="a loop of many words " * 6,
        lines=(*first.lines, msgspec.structs.replace(first.lines[-1], says="word " * 30)),
    )
    narrow = card_text(wordy, 80)
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, card_text(wordy).splitlines()))
    assert narrow.split() == card_text(wordy).split()
    table = cards_markdown([first, second])
    assert "| [mine](mine.txt) | · |" in table
    assert "| [mine:other](mine-other.txt) | 9 |" in table
    write_cards([first], tmp_path)
    write_cards([second], tmp_path)
    assert (tmp_path / "README.md").read_text() == table
    assert sorted(file.name for file in tmp_path.iterdir()) == ["README.md", "mine-other.txt", "mine.txt"]


def test_all_of_the_league_have_one() -> None:
    league = Path(__file__).parents[2] / "reports" / "league"
    rows = json.loads((league / "league.json").read_text(encoding="utf-8"))["rows"]
    cards = (league / "cards" / "README.md").read_text(encoding="utf-8")
    assert [name for name in rows if f"| [{name}]({name.replace(':', '-')}.txt) |" not in cards] == []


def test_an_interrupt_costs_the_card_that_is_being_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def card_of(name: str) -> Card:
        if name == "second":
            raise KeyboardInterrupt
        return made_up(name)

    monkeypatch.setattr("evalkit.cli.harness_card.card_of", card_of)
    CliRunner().invoke(main, ["harnesses", "card", "first", "second", "--out", str(tmp_path)])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["README.md", "first.txt"]


def test_the_commands_words() -> None:
    both = CliRunner().invoke(main, ["harnesses", "card", "gated-loop", "--json", "--out", "x"])
    assert (both.exit_code, both.stderr.splitlines()[0]) == (
        2,
        "evalkit: --json prints, --out writes: take one of them",
    )
    nobody = CliRunner().invoke(main, ["harnesses", "card", "nobody"])
    assert nobody.exit_code == 2
    assert "harness 'nobody'" in nobody.stderr


# The contract


def test_what_two_plays_do_not_show_alike_is_not_held_to() -> None:
    slow = ended("never", 7, "time limit of 60 s")
    sights = {"refusal": ended(), "empty-turn": ended(), "overloaded-for-ever": slow, "never-done": NEVER}
    again = sights | {"empty-turn": ended(turns=5)}
    text = contract_text("mine", made_up(**sights), again, "pytest", "..")
    assert '"refusal": {"ending": "limit"' in text
    assert '"empty-turn": {' not in text
    assert "time ended them: empty-turn, overloaded-for-ever" in text
    assert "the harness does not: never-done" in text
    assert '"progress-report"' not in text
    compile(text, "contract", "exec")


def test_the_language_of_the_harness_chooses_the_runner(tmp_path: Path) -> None:
    for name, runner in {"a.mjs": "node", "a.ts": "node", "a.py": "pytest", "a.sh": "pytest"}.items():
        (tmp_path / name).write_text("")
        assert runner_for(find_harness(str(tmp_path / name))) == runner


def evalkit(here: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evalkit", *words], cwd=here, capture_output=True, text=True, check=False
    )


def pytest_of(project: Path, elsewhere: Path) -> tuple[int, str]:
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(project / "tests/test_ends.py"),
    ]
    done = subprocess.run(words, cwd=elsewhere, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.long
def test_a_contract_passes_and_fails_where_the_harness_is_changed(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / "tests").mkdir(parents=True)
    elsewhere.mkdir()
    agent = project / "agent.py"
    agent.write_text(PROGRAM)
    wrote = evalkit(project, "scenarios", "contract", "agent.py", "--out", "tests/test_ends.py")
    assert wrote.stdout == "wrote tests/test_ends.py; run it with: pytest tests/test_ends.py\n", wrote.stderr
    code, shown = pytest_of(project, elsewhere)
    assert code == 0, shown
    # Another cap and a swallowed stop reason: each is seen, and what they do not touch still passes.
    agent.write_text(PROGRAM.replace("CAP = 8", "CAP = 9").replace('== "refusal"', '== "nothing"'))
    code, shown = pytest_of(project, elsewhere)
    assert code == 1
    failed = {line.rpartition("::")[2].split(" - ")[0] for line in shown.splitlines() if "FAILED" in line}
    assert "test_takes_no_more_steps[hundred-readings]" in failed
    assert "test_spends_no_more[hundred-readings]" in failed
    assert "test_ends_for_the_same_reason[refusal]" in failed
    assert not [name for name in failed if "progress-report" in name or "again" in name]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_a_contract_for_node(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(PROGRAM)
    done = evalkit(
        tmp_path, "scenarios", "contract", "agent.py", "--runner", "node", "--out", "ends.test.mjs"
    )
    assert done.stdout.endswith("run it with: node --test ends.test.mjs\n"), done.stderr
    command = Path(sys.executable).with_name("evalkit")

    def node() -> tuple[int, str]:
        words = ["node", "--test", "--test-reporter=tap", str(tmp_path / "ends.test.mjs")]
        env = {**os.environ, "EVALKIT": str(command)}
        run = subprocess.run(words, cwd="/", capture_output=True, text=True, check=False, env=env)
        return run.returncode, run.stdout

    code, shown = node()
    assert code == 0, shown
    agent.write_text(PROGRAM.replace("CAP = 8", "CAP = 9"))
    code, shown = node()
    assert code == 1
    assert "not ok" in shown
    assert [
        line for line in shown.splitlines() if "not ok" in line and "hundred-readings: takes no more" in line
    ]


def test_a_contract_is_json_where_node_reads_it() -> None:
    text = contract_text("mine", made_up(refusal=ended()), {"refusal": ended()}, "node", ".")
    line = next(line for line in text.splitlines() if '"refusal": {' in line)
    assert json.loads("{" + line.strip().rstrip(",") + "}")["refusal"]["native"] == "cap"
    assert 'new URL("./", import.meta.url)' in text


@pytest.mark.long
def test_the_card_of_the_page_is_that_of_the_program(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "harnesses.md").read_text(encoding="utf-8")
    shown = re.search(r"```text\n(a turn\n.*?)```", page, re.DOTALL)
    assert shown is not None
    assert shown[1] in card_text(card(tmp_path))
