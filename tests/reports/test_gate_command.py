"""The gate as a CI meets it: commands, exit codes, planted regressions of a strategy."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalkit.cli import main
from evalkit.scenarios.suites import load_suites

#: The gate preset, as a team would keep it: in a file of its own.
KEPT = """\
done_when: {all: [acceptance, {verifier: {sees: evidence}}, checklist]}
refusal: fallback
"""
SUITES = (
    "five-reports-in-a-row",
    "last-turn-claim-fails",
    "last-turn-claim-holds",
    "launched-and-waiting",
    "one-item-cannot-be-done",
    "paused-for-ever",
    "pauses-then-reports",
    "promises-for-ever",
    "twelve-steps-of-honest-work",
)

PLANTED = {
    "cap removed": KEPT + "nudges: null\n",
    "pause treated as done": KEPT + "pause: stop\n",
    "pause read as content": KEPT + "pause: as_content\n",
    "checks dropped": KEPT.replace("acceptance, ", ""),
    "the words alone": "done_when: {verifier: {sees: claim}}\n",
    "limit checked before done": KEPT + "limit_checked: before_done\n",
    "called done when nudges run out": KEPT + "then: done\n",
    "a small turn limit": KEPT + "max_turns: 6\n",
}


def call(*words: str) -> Result:
    return CliRunner().invoke(main, words, catch_exceptions=False)


def play(folder: Path, text: str, out: str, suite: str = "suite") -> str:
    """Run a strategy file, always of the same name, into a folder."""
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    mine = str(folder / "mine.yaml")
    words = ("run", str(folder / suite), "-s", mine, "--out", str(folder / out), "--no-charts")
    result = call(*words, "--workers", "1")
    assert result.exit_code == 0, result.output
    return str(folder / out)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a baseline in it, and the baseline's place."""
    folder = tmp_path_factory.mktemp("gate")
    library = {scenario.name: scenario.place for scenario in load_suites(())}
    for suite, names in (("suite", SUITES), ("other-suite", ("plan-announced-twice",))):
        (folder / suite).mkdir()
        for name in names:
            shutil.copy(library[name], folder / suite)
    printed = call("baseline", play(folder, KEPT, "before"))
    assert printed.exit_code == 0
    file = folder / "baseline.json"
    file.write_text(printed.output, encoding="utf-8")
    return folder, str(file)


def test_an_unchanged_rerun_is_clean(kept: tuple[Path, str]) -> None:
    folder, baseline = kept
    result = call("gate", play(folder, KEPT, "again"), "--baseline", baseline)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-2].startswith("gate: clean")


@pytest.mark.parametrize("name", PLANTED)
def test_each_planted_regression_is_caught(kept: tuple[Path, str], name: str) -> None:
    folder, baseline = kept
    result = call("gate", play(folder, PLANTED[name], name.replace(" ", "-")), "--baseline", baseline)
    assert result.exit_code == 1, result.output
    lines = result.output.splitlines()
    told = [line for line in lines if line.startswith("regression: ")]
    assert told
    assert lines[-3].startswith("gate: regression")
    # What leads on from there can be pasted, and shows one of them.
    assert lines[-1].startswith("next: evalkit show ")
    shown = call(*shlex.split(lines[-1].removeprefix("next: evalkit ")))
    assert shown.exit_code == 0
    assert lines[-1].split()[-1].split("/")[0] in told[0]


def test_what_is_said_of_many_scenarios_is_one_line(kept: tuple[Path, str]) -> None:
    folder, baseline = kept
    (folder / "part").mkdir(exist_ok=True)
    shutil.copy(next((folder / "suite").glob("pauses-*")), folder / "part")
    result = call("gate", play(folder, KEPT, "part-run", suite="part"), "--baseline", baseline)
    assert result.exit_code == 3
    (missing,) = [line for line in result.output.splitlines() if "was not run" in line]
    number = len(SUITES) - 1
    assert f"mine.yaml: {number} scenarios (five-reports-in-a-row, " in missing
    junit = folder / "part.xml"
    call("gate", str(folder / "part-run"), "--baseline", baseline, "--junit", str(junit))
    assert junit.read_text(encoding="utf-8").count("was not run") >= number


def test_files_for_ci(kept: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, baseline = kept
    run = play(folder, PLANTED["checks dropped"], "for-ci")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "step.md"))
    result = call("gate", run, "--baseline", baseline, "--junit", str(folder / "junit.xml"), "--github")
    assert result.exit_code == 1
    assert "::error title=" in result.output
    assert "<failure" in (folder / "junit.xml").read_text(encoding="utf-8")
    assert "## evalkit gate: regression" in (folder / "step.md").read_text(encoding="utf-8")


class TestExitCodes:
    """In a process of its own, as a shell sees it."""

    def code(self, *words: str, cwd: Path | None = None) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "evalkit", *words], capture_output=True, text=True, cwd=cwd, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def test_clean(self, kept: tuple[Path, str]) -> None:
        folder, baseline = kept
        assert self.code("gate", str(folder / "before"), "--baseline", baseline)[0] == 0

    def test_regression(self, kept: tuple[Path, str]) -> None:
        folder, baseline = kept
        run = play(folder, PLANTED["cap removed"], "shell")
        assert self.code("gate", run, "--baseline", baseline)[0] == 1

    @pytest.mark.parametrize(
        "words",
        [
            ("gate", "no-such-run", "--baseline", "{baseline}"),
            ("gate", "{run}"),
            ("gate", "{run}", "--baseline", "no-such-file.json"),
            ("gate", "{run}", "--baseline", "{run}/summary.json"),
            ("gate", "{run}", "--baseline", "{baseline}", "--rules", "no-such.toml"),
            ("gate", "{run}", "--baseline", "{baseline}", "--no-such-option"),
            ("baseline", "no-such-run"),
            ("baseline", "{run}", "-s", "nobody"),
        ],
    )
    def test_usage(self, kept: tuple[Path, str], words: tuple[str, ...]) -> None:
        folder, baseline = kept
        filled = [word.format(run=folder / "before", baseline=baseline) for word in words]
        code, said = self.code(*filled)
        assert code == 2, said
        assert "Traceback" not in said

    def test_not_gateable(self, kept: tuple[Path, str], tmp_path: Path) -> None:
        folder, baseline = kept
        other = play(folder, KEPT, "other", suite="other-suite")
        code, said = self.code("gate", other, "--baseline", baseline)
        assert code == 3
        assert "was not run" in said
        (tmp_path / "old.json").write_text('{"schema": "evalkit.baseline/0"}', encoding="utf-8")
        code, said = self.code("gate", other, "--baseline", str(tmp_path / "old.json"))
        assert code == 3
        assert "evalkit.baseline/0" in said

    def test_rules_of_the_folder(self, kept: tuple[Path, str], tmp_path: Path) -> None:
        folder, baseline = kept
        (tmp_path / "pyproject.toml").write_text(
            "[tool.evalkit.gate.limits]\ncorrect = {pause_turn = 1.0, all = 1.0}\n", encoding="utf-8"
        )
        code, said = self.code("gate", str(folder / "before"), "--baseline", baseline, cwd=tmp_path)
        assert code == 1
        assert "below the limit of 100 %" in said
