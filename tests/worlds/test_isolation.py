"""Commands in a folder of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalkit.worlds.isolation import Bounds, Finished, leaves_folder, run_isolated
from tests.processes import living


@pytest.fixture
def run(tmp_path: Path):  # type: ignore[no-untyped-def]
    folder, scratch = tmp_path / "folder", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()

    def run_it(command: str, **bounds: float) -> Finished:
        return run_isolated(command, folder, scratch, Bounds(**bounds))  # type: ignore[arg-type]

    return run_it


#: All that a command finds in its environment; what is added here is added on purpose.
ALLOWED = {
    *("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"),
    *("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTEST_ADDOPTS", "EVALKIT_FOLDER"),
    *("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_TERMINAL_PROMPT", "GIT_EDITOR", "GIT_PAGER"),
    *(f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE")),
}


class TestRun:
    def test_status_and_output_of_both_streams(self, run) -> None:  # type: ignore[no-untyped-def]
        assert run("echo out; echo err >&2; exit 3") == Finished(3, "out\nerr\n")
        assert run("true") == Finished(0, "")
        assert run("kill -9 $$").status == 137

    def test_it_runs_in_its_folder_and_says_nothing_of_where_that_is(self, run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        finished = run("pwd; echo $HOME; touch made")
        assert finished.output == "/folder\n/home\n"
        assert (tmp_path / "folder" / "made").exists()

    def test_nothing_of_the_users_environment_reaches_it(self, run, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
        monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-real-one")
        monkeypatch.setenv("GIT_DIR", "elsewhere")
        names = {line.split("=")[0] for line in run("env").output.splitlines()}
        assert not {"ANTHROPIC_API_KEY", "GIT_DIR", "USER", "SSH_AUTH_SOCK"} & names
        assert run("echo $HOME").output != os.environ.get("HOME")
        assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == ALLOWED

    def test_there_is_no_input(self, run) -> None:  # type: ignore[no-untyped-def]
        assert run("cat") == Finished(0, "")

    def test_commits_have_no_date_of_their_own(self, run) -> None:  # type: ignore[no-untyped-def]
        finished = run(
            "git init -q --template= && git commit -q --allow-empty -m x && git log --format=%an,%at"
        )
        assert finished.output == "agent,1767225600\n"


class TestLimits:
    def test_time(self, run) -> None:  # type: ignore[no-untyped-def]
        start = time.monotonic()
        finished = run("echo started; sleep 30", seconds=0.3)
        assert finished == Finished(None, "started\n")
        assert time.monotonic() - start < 4

    def test_time_where_the_system_has_no_process_handles(  # type: ignore[no-untyped-def]
        self, run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
        assert run("sleep 30", seconds=0.2).status is None
        assert run("exit 4").status == 4

    def test_memory(self, run) -> None:  # type: ignore[no-untyped-def]
        hungry = "python -c 'bytearray(200_000_000); print(1)'"
        assert run(hungry, memory_mb=150).status != 0
        assert run(hungry, memory_mb=2000) == Finished(0, "1\n")

    def test_size_of_files_and_output(self, run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        assert run("yes", file_mb=1).status == 128 + 25
        run("head -c 5000000 /dev/zero > big", file_mb=1)
        assert (tmp_path / "folder" / "big").stat().st_size == 1024 * 1024

    def test_long_output_is_cut_and_says_so(self, run) -> None:  # type: ignore[no-untyped-def]
        finished = run("python -c \"print('x' * 5000)\"", output=100)
        assert finished.output == "x" * 100 + "\n[the output is 5,001 bytes long; the rest is left out]"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
class TestNothingIsLeft:
    @pytest.mark.parametrize(
        "command",
        [
            "sleep 60 & echo on",
            "setsid sleep 60 & echo on",
            "nohup sh -c 'sleep 60; echo late' & echo on",
            "env -i setsid sh -c 'sleep 60; echo late' $PWD & echo on",
            "env -i setsid setsid sh -c 'sleep 60; echo late' $PWD & kill -9 $PPID; echo on",
        ],
    )
    def test_processes_in_the_background_end_with_the_command(  # type: ignore[no-untyped-def]
        self, run, tmp_path: Path, command: str
    ) -> None:
        assert run(command, seconds=5).status == 0
        assert living(str(tmp_path)) == []

    def test_also_when_time_is_up(self, run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        run("setsid sleep 60 & sleep 60", seconds=0.3)
        assert living(str(tmp_path)) == []


class TestLeavesFolder:
    @pytest.mark.parametrize(
        ("command", "path"),
        [
            ("cat /etc/passwd", "/etc/passwd"),
            ("cat ../x", "../x"),
            ("cat a/../../x", "a/../../x"),
            ("ls ~", "~"),
            ("ls ~/.ssh", "~/.ssh"),
            ("ls ..", ".."),
            ("cd / && ls", "/"),
            ("x --file=/tmp/x", "/tmp/x"),
            ("echo 1 >/var/x", "/var/x"),
            ('cat "/home/a b"', "/home/a"),
            ("cat <(ls /var/log)", "/var/log"),
            ("PATH=/opt:$PATH x", "/opt"),
        ],
    )
    def test_the_path_is_found(self, command: str, path: str) -> None:
        assert leaves_folder(command) == path

    @pytest.mark.parametrize(
        "command",
        [
            "python a.py > /dev/null 2>&1",
            "git reset --soft HEAD~1",
            "git log a..b",
            "git diff HEAD..",
            "sed 's/a/b/' x",
            "awk '/x/ {print}' x",
            "python -c 'print(1/2)'",
            "cat a..b ./c/d",
            "/usr/bin/env python",
        ],
    )
    def test_others_pass(self, command: str) -> None:
        assert leaves_folder(command) is None


def test_a_command_finds_this_python_however_it_was_called(tmp_path: Path) -> None:
    """Also by a way through folders that a command does not see, as ``../.venv/bin/python``."""
    unseen = tmp_path / "unseen"
    unseen.mkdir()
    python = os.path.relpath(sys.executable, unseen)
    text = (
        "from evalkit.worlds.folder import run_on; from evalkit.worlds.isolation import Bounds;"
        "from evalkit.worlds.tree import Tree;"
        "print(run_on(Tree({}), 'python -c \"import msgspec\"', Bounds()).status)"
    )
    ran = subprocess.run([python, "-c", text], cwd=unseen, capture_output=True, text=True)
    assert ran.stdout == "0\n", ran.stderr
