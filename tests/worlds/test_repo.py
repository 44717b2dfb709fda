"""The world of a git repository: real commits, real pytest runs."""

from __future__ import annotations

import py_compile
import sys
from pathlib import Path
from typing import Any

import pytest

from evalkit.worlds import Outcome, World, WorldError, WorldSpec, make_world, pytest_runs
from evalkit.worlds import folder as folders
from evalkit.worlds.repo import RepoWorld, head
from tests.worlds.declarations import do, undo, world


def repo(items: tuple[str, ...] = ("test_first",), **options: Any) -> RepoWorld:
    """A repository; those with equal content share their runs, which take most of the time here."""
    made = make_world(WorldSpec("repo", items, options=options))
    assert isinstance(made, RepoWorld)
    return made


def run(target: World, command: str) -> Outcome:
    return target.perform("run", {"command": command})


def write(target: World, path: str, text: str) -> Outcome:
    return target.perform("write_file", {"path": path, "text": text})


class TestFirstCommit:
    def test_it_is_a_clean_repository_with_failing_tests(self) -> None:
        target = repo()
        assert run(target, "git log --format=%s && git status --porcelain").text == "Start"
        red = run(target, "python -m pytest -q")
        assert red.error
        assert "1 failed" in red.text
        assert not target.artifact()

    def test_the_list_shows_the_tests_of_each_file(self) -> None:
        lines = repo().call("list_files", {}).text.splitlines()
        assert "tests/test_first.py: test_first" in lines
        assert "app/first.py" in lines

    def test_a_deleted_test_is_no_longer_listed(self) -> None:
        target = repo()
        run(target, "rm tests/test_first.py")
        assert "test_first" not in target.call("list_files", {}).text


class TestOracle:
    @pytest.mark.long
    def test_green_tests_then_the_commit(self) -> None:
        target = repo(commits=False)
        do(target, "test_first")
        assert target.settled() == target.all
        assert target.progress() == 1
        assert not target.holds()
        verdict = target.check("full")
        assert (verdict.met, verdict.reason, verdict.gaps) == (False, "the work is not committed", 0)
        assert target.check("weak").met
        assert not run(target, "git add -A && git commit -q -m Done").error
        assert (target.holds(), target.progress()) == (True, 2)

    @pytest.mark.long
    def test_a_commit_alone_is_no_progress(self) -> None:
        target = repo()
        write(target, "notes.txt", "x")
        run(target, "git add -A && git commit -q -m Notes")
        assert target.committed()
        assert target.progress() == 0

    @pytest.mark.long
    def test_a_change_after_the_commit_breaks_it_until_it_is_committed(self) -> None:
        target = repo()
        do(target, "test_first")
        assert target.holds()
        write(target, "notes.txt", "x")
        assert not target.holds()
        run(target, "git add -A && git commit -q -m Notes")
        assert target.holds()

    @pytest.mark.long
    def test_what_git_ignores_may_lie_about(self) -> None:
        target = repo()
        do(target, "test_first")
        run(target, "mkdir -p app/__pycache__ && touch app/__pycache__/x.pyc")
        assert target.holds()

    def test_breaking_another_test_unsettles_it(self) -> None:
        target = repo()
        do(target, "test_first")
        write(target, "app/__init__.py", "raise ImportError\n")
        assert target.settled() == 0

    @pytest.mark.long
    def test_a_rewritten_test_does_not_fool_it(self) -> None:
        target = repo()
        assert not target.reads_done("test_first")
        write(target, "tests/test_first.py", "def test_first():\n    assert True\n")
        assert target.settled() == 0
        # Whoever replays the evidence sees what the folder says.
        assert target.reads_done("test_first")

    def test_code_that_ends_the_run_is_not_green(self) -> None:
        target = repo()
        write(target, "app/first.py", "import os\nos._exit(0)\n")
        assert target.settled() == 0

    @pytest.mark.long
    def test_a_parametrised_test_is_green_when_all_its_cases_are(self) -> None:
        test = (
            "import pytest\nfrom app.first import first\n\n\n@pytest.mark.parametrize('number', [0, 1])\n"
            "def test_first(number):\n    assert first(number) == 0\n"
        )
        good, bad = "def first(number):\n    return 0\n", "def first(number):\n    return number\n"
        for text, settled in ((good, 1), (bad, 0)):
            target = repo(tests={"test_first": test}, fixes={"test_first": text})
            write(target, "app/first.py", text)
            assert target.settled() == settled

    def test_skipped_tests_are_not_green(self) -> None:
        test = "import pytest\n\n\n@pytest.mark.skip\ndef test_first():\n    pass\n"
        assert repo(tests={"test_first": test}).settled() == 0


class TestMemory:
    """Each content is tested once in a process, across forks and ways to get there."""

    @pytest.mark.long
    def test_equal_content_is_run_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        target = repo()
        do(target, "test_first")
        assert target.holds()
        started: list[str] = []
        for module in (folders, pytest_runs):
            monkeypatch.setattr(module, "run_isolated", lambda command, *_: started.append(command))
        again = repo()
        for copy in (again.fork(), again):
            do(copy, "test_first")
            assert copy.holds()
        assert again.key() == target.key()
        assert again.effects == target.effects
        assert started == []

    @pytest.mark.long
    def test_undoing_and_doing_again_comes_back_to_the_same_state(self) -> None:
        target = repo()
        do(target, "test_first")
        before = target.key()
        undo(target, "test_first")
        assert target.key() != before
        for tool, arguments in target.settle_calls("test_first", ""):
            target.perform(tool, arguments)
        assert target.key() == before


class TestArtifact:
    def test_a_diff_or_a_commit(self) -> None:
        target = repo()
        write(target, "app/first.py", "x = 1\n")
        assert target.artifact()
        run(target, "git checkout -q app/first.py")
        assert not target.artifact()
        run(target, "git commit -q --allow-empty -m Nothing")
        assert target.artifact()

    def test_the_head_is_found_loose_packed_and_detached(self) -> None:
        target = repo()
        loose = head(target.tree)
        assert len(loose) == 40
        run(target, "git pack-refs --all")
        assert head(target.tree) == loose
        run(target, "git checkout -q --detach")
        assert head(target.tree) == loose
        assert target.committed()

    def test_without_a_repository_nothing_is_committed(self) -> None:
        target = repo()
        run(target, "rm -rf .git")
        assert head(target.tree) == ""
        assert not target.committed()


class TestEvidence:
    """What a harness may conclude from a command and what it printed."""

    @pytest.mark.parametrize(
        ("command", "text", "error", "items"),
        [
            ("python -m pytest -q tests/test_first.py", "1 passed in 0.00s", False, 0b001),
            ("pytest tests/test_first.py::test_first", "1 passed", False, 0b001),
            ("pytest -q", "3 passed in 0.00s", False, 0b111),
            ("pytest -k fir", "1 passed, 2 deselected", False, 0),
            ("pytest -q | tail -1", "1 failed, 2 passed in 0.00s", False, 0),
            ("pytest -q || true", "2 passed, 1 error in 0.00s", False, 0),
            ("pytest --version", "pytest 9.2.0", False, 0),
            ("git commit -m 'test_first passes'", "1 passed", False, 0),
            ("pytest -q", "exit status 1\nFAILED tests/test_second.py::test_second - x", True, 0b010),
            ("pytest", "ERROR tests/test_third.py", True, 0b100),
            ("pytest", "FAILED tests/test_first.py::test_first[1]", True, 0b001),
            ("pytest -q tests/test_first.py", "stopped: it ran for more than 30 s", True, 0b001),
        ],
    )
    def test_of_a_run(self, command: str, text: str, error: bool, items: int) -> None:
        evidence = world("repo").evidence
        assert evidence is not None
        assert evidence("run", {"command": command}, text, error) == items

    @pytest.mark.parametrize(
        ("path", "items"),
        [("app/first.py", 1), ("./tests/test_first.py", 1), ("x.py", 0), ("../app/first.py", 0), (None, 0)],
    )
    def test_of_a_file(self, path: Any, items: int) -> None:
        evidence = world("repo").evidence
        assert evidence is not None
        assert evidence("write_file", {"path": path}, "written", False) == items

    def test_real_output_is_read(self) -> None:
        target = repo()
        assert target.evidence is not None
        command = {"command": "python -m pytest -q"}
        red = target.perform("run", command)
        assert target.evidence("run", command, red.text, red.error) == 1
        assert red.error


@pytest.mark.parametrize(
    ("items", "options", "message"),
    [
        (("slug",), {}, "items: 'slug' is not the name of a test; allowed: test_NAME"),
        (("test_Slug",), {}, "items: 'test_Slug' is not the name of a test"),
        (("test_class",), {}, "items: 'test_class' is not the name of a test"),
        (("test_a",), {"tests": {"test_b": "x"}}, "tests: unknown item 'test_b'; known: test_a"),
        (("test_a",), {"tests": {"test_a": "x = 1"}}, "its text defines no function 'test_a'"),
        (("test_a",), {"files": {"/x": "y"}}, "files: /x: only paths within the folder"),
        (("test_a",), {"commits": "no"}, "commits: expected true or false, got text"),
        (("test_a",), {"seconds": -1}, "seconds: must be above 0, got -1"),
    ],
)
def test_a_wrong_option_is_named(items: tuple[str, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(WorldError) as caught:
        repo(items, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize("compiled", [True, False])
def test_where_pytest_cannot_run_the_world_says_so(monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    from evalkit.worlds import bytecode
    from evalkit.worlds.isolation import Finished

    monkeypatch.setattr(bytecode, "_installed_compiled", lambda: compiled)
    monkeypatch.setattr(bytecode, "run_isolated", lambda *_: Finished(1, "No module named pytest"))
    with pytest.raises(WorldError, match="pytest cannot run here: No module named pytest"):
        bytecode.pytest_bytecode.__wrapped__()


@pytest.mark.long
def test_pytest_is_compiled_for_runs_where_it_was_not_installed_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from evalkit.worlds import bytecode

    monkeypatch.setattr(bytecode, "_installed_compiled", lambda: False)
    folder = bytecode.pytest_bytecode.__wrapped__()
    assert folder is not None
    assert list(folder.rglob("main.*.pyc"))


def test_a_module_is_compiled_while_its_source_stays_as_it_was(tmp_path: Path) -> None:
    from evalkit.worlds.bytecode import _is_compiled

    source = tmp_path / "module.py"
    source.write_text("x = 1\n")
    assert not _is_compiled(source)
    compiled = source.parent / "__pycache__" / f"module.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(str(source), str(compiled), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    assert _is_compiled(source)
    source.write_text("x = 12\n")
    assert not _is_compiled(source)


def test_where_git_cannot_run_the_world_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = folders.After(folders.Tree({}), 127, "sh: git: not found")
    monkeypatch.setattr("evalkit.worlds.repo.run_on", lambda *_: missing)
    with pytest.raises(WorldError, match="the repository cannot be made; git says: sh: git: not found"):
        _ = repo(("test_never_made_before",)).tree
