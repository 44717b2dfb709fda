"""``evalkit falsify``: exit codes, what is printed, what is saved and run again, errors in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from evalkit.cli import main

#: What makes a program of the small loop.
MAIN = """
import os
with open(os.environ["EVALKIT_ENDING_FILE"], "w") as file:
    json.dump(loop(os.environ, RULES), file)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with two programs: the small loop with different rules."""
    loops = Path(__file__).with_name("loops.py").read_text(encoding="utf-8")
    for name, rules in {"silent": "says_done=True", "patient": "nudges=3"}.items():
        program = loops + MAIN.replace("RULES", rules)
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evalkit(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


@pytest.mark.long
def test_refuted_saved_and_run_again(folder: Path) -> None:
    words = ("falsify", "silent.py", "--property", "no false done", "--max-runs", "20")
    found = evalkit(*words, "--save", "out/found.yaml")
    assert found.exit_code == 1, found.output
    assert "no false done  refuted by 1 move: found in run 2\n" in found.stdout
    assert "1. the model reports progress" in found.stdout
    assert "outcome: done/reachable" in found.stdout
    assert "run again: evalkit run out/found.yaml --harness silent.py" in found.stderr
    ran = evalkit("run", "out/found.yaml", "--harness", "silent.py", "--out", "run", "--no-charts", "--json")
    assert ran.exit_code == 0, ran.output
    (row,) = [
        row
        for row in json.loads(ran.stdout)["rows"]
        if (row["harness"], row["family"], row["checks"]) == ("silent.py", "all", "all")
    ]
    assert row["outcomes"] == {"done/reachable": 1}
    again = evalkit(*words)
    assert "refuted by 1 move: found again from the database" in again.stdout


def test_not_refuted_and_nothing_saved(folder: Path) -> None:
    found = evalkit(
        "falsify", "patient.py", "--property", "no_false_done", "--max-runs", "4", "--save", "none.yaml"
    )
    assert found.exit_code == 0, found.output
    assert "no false done  not refuted in 4 runs" in found.stdout
    assert "nothing is refuted, so none.yaml was not written" in found.stderr
    assert not Path("none.yaml").exists()


@pytest.mark.long
def test_json(folder: Path) -> None:
    found = evalkit("falsify", "silent.py", "--property", "no_false_done", "--max-runs", "4", "--json")
    assert found.exit_code == 1
    told: dict[str, Any] = json.loads(found.stdout)
    assert told["schema"] == "evalkit.falsified/1"
    assert (told["harness"], told["seed"]) == ("silent", 0)
    assert told["left_out"][0] == "is cut off in a call"
    (result,) = told["results"]
    assert (result["answer"], result["run"], result["replayed"]) == ("refuted", 2, False)
    assert result["counterexample"]["moves"] == ["reports progress"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nobody",), "harness 'nobody': no such folder, program, module:function or name"),
        (("gated-loop:strict",), "harness 'gated-loop': no variant 'strict'; variants: it has none"),
        (("silent.py", "--property", "safe"), "unknown property 'safe'; known: no_false_done"),
        (("silent.py", "--without", "dances"), "no move is named 'dances'; the model's moves: "),
        (("silent.py", "--items", "9"), "9 is not in the range"),
        (("silent.py", "--max-runs", "0"), "0 is not in the range"),
        (
            ("crash.py",),
            "harness 'crash.py': made no request of its model and ended error (exit:1);"
            " it printed: no configuration found",
        ),
        (("absent:run",), "it printed: ModuleNotFoundError: No module named 'absent'"),
    ],
)
def test_usage(folder: Path, words: tuple[str, ...], said: str) -> None:
    Path("crash.py").write_text("import sys; print('starting'); sys.exit('no configuration found')")
    result = evalkit("falsify", *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output
