"""What goes wrong is told in one line with what is allowed, and a hint that works when it is pasted."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit.cli import main

GOOD = """\
scenario: good
family: made
task: {prompt: Do it., done_when: It is done.}
world: {kind: items, items: [a1, b1]}
model: [{call: list_items}, {work: rest}, {say: Done., claim: done}]
"""
STRATEGY = "done_when: acceptance\n"
FILES = {
    "good.yaml": GOOD,
    "twice.yaml": GOOD + "---\n" + GOOD,
    "empty.yaml": "",
    "list.yaml": "- 1\n",
    "tab.yaml": "scenario:\tx\n\t- y\n",
    "field.yaml": GOOD + "famly: x\n",
    "move.yaml": GOOD.replace("{work: rest}", "{wrok: rest}"),
    "kind.yaml": GOOD.replace("kind: items", "kind: itmes"),
    "missing.yaml": GOOD.replace("family: made\n", ""),
    "number.yaml": GOOD.replace("{work: rest}", "{work: -3}"),
    "claim.yaml": GOOD.replace("claim: done", "claim: finished"),
    "checks.yaml": GOOD.replace("task: {", "task: {checks: all, "),
    "limits.yaml": GOOD + "limits: {turns: none}\n",
    "accept.yaml": GOOD + "accept: [finished/complete]\n",
    "s-field.yaml": STRATEGY + "nugdes: 2\n",
    "s-value.yaml": STRATEGY + "pause: resnd\n",
    "s-number.yaml": STRATEGY + "nudges: 0\n",
    "s-type.yaml": STRATEGY + "nudges: many\n",
    "s-condition.yaml": "done_when: acceptence\n",
    "s-argument.yaml": "done_when: {verifier: {sees: evidnce}}\n",
    "s-none.yaml": "nudges: 2\n",
    "s-list.yaml": "- acceptance\n",
    "s-all.yaml": "done_when: {all: acceptance}\n",
    "s-two.yaml": "done_when: {acceptance: {}, silence: {}}\n",
    "broken.py": "raise RuntimeError('no')\n",
    "nothing.py": "other = 1\n",
    "not-json.json": "{",
    "no-baseline.json": "{}",
    "other-baseline.json": json.dumps({"schema": "other/1"}),
    "rules.toml": "[gate]\nallowed_flip = 1\n",
    "rules-rate.toml": "[gate.limits]\nfalse_done_rate = 0.1\n",
    "rules-number.toml": "[gate.limits]\nfalse_done = 2\n",
    "rules-broken.toml": "[gate\n",
    "rules-fault.toml": "[gate]\nnew_faults = ['false_down']\n",
    "rules-scenario.toml": "[gate]\nknown_failures = ['godo']\n",
    "rules-strategy.toml": "[gate]\nstrategies = ['gaet']\n",
    "rules-negative.toml": "[gate]\nallowed_flips = -1\n",
    "noexec.py": "print(1)\n",
    "table.csv": "a,b\n1,2\n",
    "broken-harness/harness.toml": "command = 3\n",
    "empty-folder/read.me": "",
}
WRONG = """
rum
run --strategi silence
run -s
run -s gaet
run good.yaml -s gaet
run good.yaml -s nowhere:thing
run good.yaml -s broken:thing
run good.yaml -s nothing:thing
run good.yaml -s nothing:other
run good.yaml -s nothing.py
run good.yaml -s missing-strategy.yaml
run good.yaml -s s-field.yaml
run good.yaml -s s-value.yaml
run good.yaml -s s-number.yaml
run good.yaml -s s-type.yaml
run good.yaml -s s-condition.yaml
run good.yaml -s s-argument.yaml
run good.yaml -s s-none.yaml
run good.yaml -s s-list.yaml
run good.yaml -s s-all.yaml
run good.yaml -s s-two.yaml
run good.yaml -s gate@misses=2
run good.yaml -s gate@mises=0.1
run good.yaml -s silence@misses=0.1
run good.yaml -s gate --baseline gaet
run good.yaml -s gate --seeds none
run good.yaml -s gate --seeds 0
run good.yaml -s gate --workers 0
run good.yaml -s gate --engine cloud
run good.yaml -s gate --engine dask://nowhere
run good.yaml -s gate --dialect telnet
run good.yaml -s gate --out run
run good.yaml -s gate --model gpt
run good.yaml -s gate --model nobody:model
run good.yaml -s gate --probe 0
run good.yaml -s gate --max-usd many
run good.yaml -s gate --replay nowhere
scenarios list nowhere
run good.yaml --harness nowhere.py
run good.yaml --harness claude_skd
run good.yaml --harness empty-folder
run good.yaml --harness broken-harness
prove gate --all
run good.yaml --harness worker:gaet
run nowhere.yaml
run empty.yaml
run list.yaml
run tab.yaml
run field.yaml
run move.yaml
run kind.yaml
run missing.yaml
run number.yaml
run claim.yaml
run checks.yaml
run limits.yaml
run accept.yaml
run twice.yaml
run empty-folder
run partial_completoin
run --resume nowhere
run --resume run -s gate
run --again failing nowhere
run --again some run
run --again void run
run --again failing failing -s gate
report
report nowhere
report run --transcripts -1
report run --pgn
compare run
compare run nowhere
baseline nowhere
baseline run -s gaet
gate run
gate nowhere --baseline baseline.json
gate run --baseline nowhere.json
gate run --baseline not-json.json
gate run --baseline no-baseline.json
gate run --baseline other-baseline.json
gate run --baseline baseline.json --rules nowhere.toml
gate run --baseline baseline.json --rules rules.toml
gate run --baseline baseline.json --rules rules-rate.toml
gate run --baseline baseline.json --rules rules-number.toml
gate run --baseline baseline.json --rules rules-broken.toml
gate run --baseline baseline.json --rules rules-fault.toml
gate run --baseline baseline.json --rules rules-scenario.toml
gate run --baseline baseline.json --rules rules-strategy.toml
gate run --baseline baseline.json --rules rules-negative.toml
show run 99
show run good/gaet
show run goood/gate
show run goodd
show run xyz
show nowhere 1
plan
plan --detect 2
plan --detect 0.1 --pilot nowhere
plan --detect 0.1 -s gate
play
play gaet
play gate --items 9
play gate --checks some
init
init nowhere.py --no-run
init -s gaet --no-run
strategies
strategies show gaet
strategies lst
scenarios show gooood
scenarios check nowhere.yaml
scenarios check good.yaml --seeds 0
scenarios new good
scenarios shw
harnesses show claude_skd
harnesses check nowhere.py
prove
prove gaet
prove gate --property no_false_don
prove gate --items 0
prove gate --skippable 9
falsify nowhere.py
mutants --nosuch
judge
judge nowhere.json -s gaet
transcripts show
cassettes check nowhere
task
serve nowhere.yaml
"""
COMMANDS = [line for line in WRONG.splitlines() if line]
#: What a group without a command prints is its help: nothing was wrong, nothing is to be hinted at.
GROUPS = {"strategies", "task"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("words")
    for name, text in FILES.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        run = ["run", "good.yaml", "-s", "gate", "-s", "silence", "--out", "run", "--no-charts"]
        assert CliRunner().invoke(main, run).exit_code == 0
        run = ["run", "partial_completion", "-s", "silence", "--out", "failing", "--no-charts"]
        assert CliRunner().invoke(main, run).exit_code == 0
        (place / "baseline.json").write_text(CliRunner().invoke(main, ["baseline", "run"]).stdout)
    return place


def call(line: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, shlex.split(line))
    assert result.exception is None or isinstance(result.exception, SystemExit), (line, result.exception)
    return result.exit_code, result.stdout, result.stderr


def test_a_hundred_are_provoked() -> None:
    assert len(COMMANDS) >= 100


@pytest.mark.long
@pytest.mark.parametrize("line", COMMANDS)
def test_an_error_is_a_line_and_its_hint_works(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(folder)
    code, _, said = call(line)
    assert code == 2, said
    if line in GROUPS:
        assert "Usage:" in said
        return
    *_, told, hint = said.splitlines()
    assert told.startswith("evalkit: "), said
    assert "Traceback" not in said
    assert hint.startswith("hint: evalkit "), said
    followed, _, wrong = call(hint.removeprefix("hint: evalkit "))
    assert followed == 0, f"{hint}: {wrong}"


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("run good.yaml -s gaet", "gate"),
        ("run partial_completoin", "partial_completion"),
        ("run field.yaml", "family"),
        ("run kind.yaml", "items"),
        ("run move.yaml", "work"),
        ("run good.yaml -s s-field.yaml", "nudges"),
        ("run good.yaml -s s-value.yaml", "resend"),
        ("run good.yaml -s s-condition.yaml", "acceptance"),
        ("gate run --baseline baseline.json --rules rules.toml", "allowed_flips"),
        ("gate run --baseline baseline.json --rules rules-scenario.toml", "good"),
        ("gate run --baseline baseline.json --rules rules-strategy.toml", "gate"),
        ("rum", "run"),
        ("show run good/gaet", "gate"),
        ("show run goood/gate", "good/gate"),
        ("show run goodd", "good"),
        ("prove gate --property no_false_don", "no_false_done"),
        ("baseline run -s gaet", "gate"),
        ("scenarios show migration-reports-at-four-of-sx", "migration-reports-at-four-of-six"),
        ("run good.yaml --harness claude_skd", "claude"),
    ],
)
def test_what_was_meant_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str, meant: str
) -> None:
    monkeypatch.chdir(folder)
    said = call(line)[2]
    guess = said.partition("(did you mean '")[2].partition("'")[0]
    assert meant in guess or f"one of {meant}" in said or "allowed" in said, said


def test_a_wrong_line_of_a_strategy_file_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert "s-field.yaml:2: nugdes" in call("run good.yaml -s s-field.yaml")[2]
    assert "s-condition.yaml:1: done_when" in call("run good.yaml -s s-condition.yaml")[2]


def test_what_lies_there_is_what_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shipit.py").write_text("raise RuntimeError('not to be run for a hint')\n")
    Path("mine.py").write_text("from evalkit import Strategy\nboth = 1\n")
    Path("termination-baseline.json").write_text("{}")
    assert "(did you mean 'shipit.py'?)" in call("run refusal --harness shippit.py")[2]
    assert "(did you mean 'mine:both'?)" in call("run refusal -s both")[2]
    code, _, said = call("gate 'my run'")
    assert (code, "hint: evalkit gate 'my run' --baseline termination-baseline.json" in said) == (2, True)
