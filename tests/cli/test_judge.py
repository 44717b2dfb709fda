"""``evalkit judge`` and ``evalkit transcripts``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalkit import api
from evalkit.cli import main
from evalkit.transcripts.labels import LabelError
from tests.transcripts import files


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return files.write(tmp_path / "results.json", [files.tau_bench(0), files.tau_bench(1, 1.0)])


def test_judge_writes_a_report_and_prints_a_table(results: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    done = run(
        "judge", results, tmp_path / "notes.txt", "-s", "silence", "-s", "gate", "--out", tmp_path / "out"
    )
    assert done.exit_code == 0
    assert "2 recordings from 2 files, 1 problem;" in done.stdout
    assert "No word of gate: the task's checks need the run's world" in done.stdout
    assert "notes.txt: is no transcript" in done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "episodes.csv",
        "index.html",
        "report.md",
        "summary.json",
    ]


def test_json_prints_the_summary_and_nothing_else(results: Path, tmp_path: Path) -> None:
    done = run("judge", results, "--json", "--out", tmp_path / "out")
    summary = json.loads(done.stdout)
    assert summary["schema"] == "evalkit.judgement/1"
    assert summary["rows"][0]["false_done"] == {"count": 1, "base": 2, "rate": 0.5}
    assert done.stdout == (tmp_path / "out" / "summary.json").read_text()


def test_a_named_strategy_that_no_recording_can_judge_is_no_success(results: Path, tmp_path: Path) -> None:
    done = run("judge", results, "-s", "gate", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "nothing was judged: no recording says what gate needs" in done.stderr
    assert (tmp_path / "out" / "report.md").exists()


def test_bad_input_is_one_line_and_exit_2(results: Path, tmp_path: Path) -> None:
    for arguments, why in (
        ((results, "-s", "nobody"), "unknown strategy 'nobody'"),
        ((results, "--labels", tmp_path / "none.csv"), "cannot be read"),
        ((results, "--reader", "json:none"), "has no 'none'"),
        ((results, "--reader", "json:dumps"), "reader 'json:dumps' failed"),
        ((tmp_path / "none.json",), "no recording could be read"),
    ):
        done = run("judge", *arguments, "--out", tmp_path / "out")
        assert done.exit_code == 2
        assert why in done.stderr
        assert done.stderr.startswith("evalkit: ")


def test_labels_and_a_reader_of_ones_own(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_reader.py").write_text("def read(turn):\n    return 'none'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    table = tmp_path / "labels.csv"
    table.write_text("recording,complete\ntask0.trial0,1\n")
    done = run(
        "judge", results, "-s", "verifier_claim", "--labels", table, "--reader", "my_reader:read", "--json"
    )
    summary = json.loads(done.stdout)
    assert summary["run"]["labels"]["complete"] == 2
    assert summary["run"]["claims"] == "own reader"
    assert summary["rows"][1]["stops"]["beyond"] == 2
    (folder,) = (tmp_path / "reports").iterdir()
    assert folder.name.endswith("judged")


def test_list_show_and_formats(results: Path, tmp_path: Path) -> None:
    listed = run("transcripts", "list", results)
    assert "#task1.trial0  tau-bench, 4 turns, done (user stop), complete (reward 1.0)" in listed.stdout
    assert "2 recordings, 0 problems" in listed.stdout
    shown = run("transcripts", "show", results, "--recording", "task1.trial0")
    assert "  4 end_turn, claims done  [end of turn]" in shown.stdout
    assert "call: update_record" in shown.stdout
    assert not shown.stderr
    first = run("transcripts", "show", results)
    assert "holds more; this is the first, " in first.stderr
    assert "openai-agents" in run("transcripts", "formats").stdout
    # An id is pasted as the list shows it.
    assert run("transcripts", "show", f"{results}#task1.trial0").output == shown.output
    missing = run("transcripts", "show", results, "--recording", "nobody")
    assert missing.exit_code == 2
    assert "no recording 'nobody' among its 2" in missing.stderr
    empty = files.write(tmp_path / "empty.json", {})
    assert run("transcripts", "list", empty).exit_code == 2
    assert "is of no known format" in run("transcripts", "show", empty).stderr


def test_to_scenario_and_then_check(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "incident.yaml"
    made = run("transcripts", "to-scenario", results, "--name", "incident", "--out", out)
    assert made.exit_code == 0
    checked = run("scenarios", "check", out)
    assert checked.exit_code == 0
    assert "1 of 1 scenarios are sound" in checked.stdout
    again = run("transcripts", "to-scenario", results, "--out", out)
    assert again.exit_code == 2
    assert "cannot be written: File exists" in again.stderr
    assert run("transcripts", "to-scenario", results).stdout.startswith("# A skeleton")


def test_claims_are_measured_on_a_sample(results: Path, tmp_path: Path) -> None:
    sample = tmp_path / "sample.csv"
    sample.write_text(
        "recording,turn,claim\nresults.json#task0.trial0,4,done\nresults.json#task1.trial0,4,other\n"
    )
    done = run("transcripts", "claims", sample, results)
    assert "sample: precision 0.500 (1 of 2" in done.stdout
    assert "misread: results.json#task1.trial0 turn 4 is no claim" in done.stdout
    assert run("transcripts", "claims", tmp_path / "none.csv", results).exit_code == 2


def test_a_suite_has_a_baseline_that_its_gate_takes(results: Path, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    made = run("transcripts", "to-suite", suite, results)
    assert made.exit_code == 0, made.output
    assert "1 scenario of 1 incident in 2 runs" in made.stdout
    assert run("scenarios", "check", suite).exit_code == 0
    names = [part for name in ("silence", "finish_tool", "keyword", "acceptance") for part in ("-s", name)]
    assert run("run", suite, *names, "--out", tmp_path / "run", "--no-charts").exit_code == 0
    gate = run("gate", tmp_path / "run", "--baseline", suite / "baseline.json")
    assert gate.exit_code == 0, gate.output
    assert "is not empty" in run("transcripts", "to-suite", suite, results).stderr


def test_labels_that_match_no_recording_are_of_no_use(results: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    table.write_text("recording,complete\nnobody,no\nnowhere,1\n", encoding="utf-8")
    why = f"evalkit: {table}: no label matches a recording (2 labels); `evalkit transcripts list` shows what"
    commands = (
        ("judge", results, "-s", "silence", "--out", tmp_path / "judged"),
        ("transcripts", "to-suite", tmp_path / "suite", results),
        ("fit", results, "--out", tmp_path / "fitted"),
    )
    for command in commands:
        made = run(*command, "--labels", table)
        assert made.exit_code == 2, made.output
        assert why in made.stderr
    with pytest.raises(LabelError, match="no label matches a recording"):
        api.judge(results, "silence", labels=table, out=tmp_path / "api")
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    made = run("judge", broken, "--labels", table, "--out", tmp_path / "none")
    assert "no recording could be read" in made.stderr


def test_a_suite_names_labels_that_match_nothing_and_takes_scores(results: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    table.write_text("recording,complete\nnobody,no\n", encoding="utf-8")
    made = run("transcripts", "to-suite", tmp_path / "a", results, "--labels", table)
    assert "label 'nobody' matches no recording" in made.stderr
    scored = [
        {
            "messages": [
                {"role": "user", "content": files.PROMPT},
                {"role": "assistant", "content": "Done."},
            ],
            "score": score,
        }
        for score in (40, 90)
    ]
    path = files.write_lines(tmp_path / "scored.jsonl", scored)
    assert "--complete-from" in run("transcripts", "to-suite", tmp_path / "b", path).stderr
    made = run("transcripts", "to-suite", tmp_path / "c", path, "--complete-from", "80")
    assert "1 scenario of 1 incident in 2 runs" in made.stdout
