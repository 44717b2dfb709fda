"""Results of commands that are kept across runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from evalkit.containment.machine import this_machine
from evalkit.containment.ways import Machine
from evalkit.worlds import command_cache, isolation
from evalkit.worlds.folder import After, _Kept, run_on
from evalkit.worlds.isolation import Bounds
from evalkit.worlds.pytest_runs import green_tests
from evalkit.worlds.tree import Tree, make_entry, tree_of

pytestmark = pytest.mark.skipif(not this_machine().files, reason="commands can read the user's files here")

BOUNDS = Bounds(seconds=60)
TREE = tree_of({"a.txt": "one\n"})
WRONG = _Kept({"a.txt": ("file", b"wrong\n")}, 0, "wrong")


def _forget() -> None:
    base = command_cache._base(os.getpid())
    if base is not None:
        base.close()
    for remembered in (
        command_cache._base,
        command_cache._locks,
        command_cache.tools,
        isolation._search_path,
        isolation.readable,
        run_on,
        green_tests,
    ):
        remembered.cache_clear()


@pytest.fixture
def next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Makes this process like a new one, whose cache is in a folder of its own."""
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(command_cache.SWITCH, "on")
    _forget()
    yield _forget
    _forget()


def _poison(command: str) -> None:
    """Put a wrong entry in the place of a command's result."""
    run_on(TREE, command, BOUNDS)
    command_cache.put(("run", TREE.digest, command, BOUNDS), WRONG)


def _said(command: str) -> str:
    return run_on(TREE, command, BOUNDS).output


def test_a_result_is_read_and_not_made_again(next_run: Callable[[], None]) -> None:
    _poison("cat a.txt")
    next_run()
    assert _said("cat a.txt") == "wrong"
    # Another content, another command and other bounds are other questions.
    assert run_on(tree_of({"a.txt": "two\n"}), "cat a.txt", BOUNDS).output == "two\n"
    assert _said("cat ./a.txt") == "one\n"
    assert run_on(TREE, "cat a.txt", Bounds(seconds=19)).output == "one\n"


def test_no_wrong_entry_survives_a_changed_tool(
    next_run: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text("#!/bin/sh\necho first\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
    next_run()
    _poison("git")
    next_run()
    assert _said("git") == "wrong"
    git.write_text("#!/bin/sh\necho later\n")
    next_run()
    assert _said("git") == "later\n"


def test_what_a_command_leaves_is_the_same_tree(next_run: Callable[[], None]) -> None:
    entries = {"p": make_entry("p", b"#!/bin/sh\n\xff", "program"), "l": make_entry("l", b"p", "link")}
    tree = Tree({**TREE.entries, **entries, "empty": make_entry("empty", b"", "folder")})
    before = run_on(tree, "echo two > b.txt; exit 3", BOUNDS)
    next_run()
    after = run_on(tree, "echo two > b.txt; exit 3", BOUNDS)
    assert after is not before
    assert after == before
    assert {path: entry.kind for path, entry in after.tree.entries.items()} == {
        **{path: entry.kind for path, entry in tree.entries.items()},
        "b.txt": "file",
    }


def test_green_tests_are_kept(next_run: Callable[[], None]) -> None:
    tests = (("test_a.py", "def test_a():\n    assert True\n"),)
    assert green_tests(TREE, tests, BOUNDS) == {"test_a"}
    about = ("green", TREE.with_texts(tests).digest, ("test_a.py",), BOUNDS)
    command_cache.put(about, frozenset({"test_wrong"}))
    next_run()
    assert green_tests(TREE, tests, BOUNDS) == {"test_wrong"}


def _at_once(command: str, folder: Path) -> list[str]:
    """What three processes that run a command at the same time are told of it."""
    started = []
    for number in range(3):
        process = os.fork()
        if process == 0:
            try:
                (folder / str(number)).write_text(_said(command))
            finally:
                os._exit(0)
        started.append(process)
    for process in started:
        os.waitpid(process, 0)
    return [(folder / str(number)).read_text() for number in range(3)]


@pytest.mark.long
def test_processes_that_ask_at_once_run_a_command_once(next_run: Callable[[], None], tmp_path: Path) -> None:
    assert len(set(_at_once("sleep 0.5; date +%N", tmp_path))) == 1
    # What is not kept each of them runs.
    assert len(set(_at_once("sleep 0.5; date +%N; kill -9 $$", tmp_path))) == 3


def test_a_killed_process_holds_nobody_up(next_run: Callable[[], None]) -> None:
    about = ("run", TREE.digest, "cat a.txt", BOUNDS)
    heard, told = os.pipe()
    process = os.fork()
    if process == 0:
        with command_cache.in_turn(about):
            os.write(told, b"!")
            signal.pause()
    os.read(heard, 1)
    threading.Timer(0.3, os.kill, (process, signal.SIGKILL)).start()
    assert _said("cat a.txt") == "one\n"
    assert os.waitpid(process, 0)[1] == signal.SIGKILL


def test_what_ran_out_of_time_or_was_killed_is_not_kept(next_run: Callable[[], None]) -> None:
    short = Bounds(seconds=0.3)
    assert run_on(TREE, "sleep 5", short).status is None
    assert run_on(TREE, "kill -9 $$", BOUNDS).status == 137
    assert command_cache.get(("run", TREE.digest, "sleep 5", short), _Kept) is None
    assert command_cache.get(("run", TREE.digest, "kill -9 $$", BOUNDS), _Kept) is None


@pytest.mark.parametrize("why", ["switch", "machine"])
def test_nothing_is_kept_where_it_is_off_or_a_command_could_write_it(
    next_run: Callable[[], None], monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    _poison("cat a.txt")
    next_run()
    if why == "switch":
        monkeypatch.setenv(command_cache.SWITCH, "off")
    else:
        monkeypatch.setattr(command_cache, "this_machine", lambda: Machine("subreaper"))
    assert command_cache._base(os.getpid()) is None
    assert _said("cat a.txt") == "one\n"


def test_the_least_lately_used_entries_go(
    next_run: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_cache, "MOST", 10_000)
    for number in range(100):
        command_cache.put(("n", number), b"x" * 500)
    there = [number for number in range(100) if command_cache.get(("n", number), bytes)]
    assert there == list(range(100 - len(there), 100))
    assert 10 <= len(there) <= 20


def test_a_damaged_cache_is_none(next_run: Callable[[], None], tmp_path: Path) -> None:
    _poison("cat a.txt")
    next_run()
    for file in (tmp_path / "cache").iterdir():
        file.write_bytes(b"no database at all" * 1_000)
    assert _said("cat a.txt") == "one\n"


def test_a_command_cannot_reach_the_cache(next_run: Callable[[], None], tmp_path: Path) -> None:
    assert run_on(TREE, "true", BOUNDS).status == 0
    assert (tmp_path / "cache" / "commands.sqlite").exists()
    path = str(tmp_path / "cache" / "commands.sqlite")
    assert run_on(TREE, f"test -e {path}", BOUNDS).status == 1


def test_an_entry_is_plain_data() -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(WRONG), type=_Kept) == WRONG
    assert After(WRONG.tree(), 0, "wrong").tree.read("a.txt") == b"wrong\n"


def test_what_python_compiles_by_itself_makes_no_other_tool(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("")
    before = command_cache._entries(str(tmp_path))
    (tmp_path / "__pycache__").mkdir()
    assert command_cache._entries(str(tmp_path)) == before
    (tmp_path / "another.py").write_text("")
    assert command_cache._entries(str(tmp_path)) != before
