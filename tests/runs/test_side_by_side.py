"""Episodes with folders and commands, side by side: none sees another, and nothing of them is left."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from pathlib import Path

import pytest
import yaml

from evalkit.runs.plan import make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import Store
from evalkit.scenarios.loader import load_text
from evalkit.worlds.command_folders import workshop
from evalkit.worlds.isolation import Bounds, run_isolated
from tests.helpers import document
from tests.runs.test_interrupted import begin, command, finish, sleepers, until

WORLD = {"kind": "files", "items": ["a", "b"], "checks": {"a": {"exists": "a.txt"}, "b": {"exists": "b.txt"}}}
RANDOM = document(
    [
        {"call": "list_files"},
        {"either": [{"p": 0.5, "do": [{"call": "run", "with": {"command": "touch a.txt"}}]}]},
        {"call": "run", "with": {"command": "ls; test -e a.txt || touch b.txt"}},
        {"either": [{"p": 0.5, "do": [{"call": "write_file", "with": {"path": "b.txt", "text": "x"}}]}]},
        {"say": "Done.", "claim": "done"},
    ],
    world=WORLD,
)
SLOW = document(
    [{"call": "run", "with": {"command": "touch begun && sleep 60"}}, {"say": "Done."}], world=WORLD
)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, of one's own."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    return place


def rows(folder: Path, workers: int) -> list[tuple[object, ...]]:
    text = yaml.safe_dump(RANDOM)
    made = make_plan(load_text(text, "s.yaml"), {"s.yaml": text}, ("silence", "gate"), 12)
    store = Store.create(folder, made.recipe)
    run_plan(made, store, workers)
    found = list(store.rows("select * from episode order by cell"))
    store.close()
    return found


def test_three_at_once_end_as_each_alone_and_leave_nothing(tmp_path: Path, temporary: Path) -> None:
    alone = rows(tmp_path / "alone", 1)
    assert rows(tmp_path / "together", 3) == alone
    assert len({row[6] for row in alone}) > 1, "the seeds make a difference"
    assert list(temporary.iterdir()) == []


def test_a_command_sees_its_own_folder_alone(temporary: Path) -> None:
    seen: dict[int, str] = {}
    inside = threading.Barrier(4)

    def episode(number: int) -> None:
        with workshop() as (folder, scratch):
            run_isolated(f"touch only-{number} $HOME/home-{number}", folder, scratch, Bounds())
            inside.wait()
            seen[number] = run_isolated("ls; ls $HOME", folder, scratch, Bounds()).output
            inside.wait()

    threads = [threading.Thread(target=episode, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {number: f"only-{number}\nhome-{number}\n" for number in range(4)}
    assert list(temporary.iterdir()) == []


@pytest.mark.long
def test_what_a_killed_run_left_is_gone_with_the_next_start(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "slow.yaml").write_text(yaml.safe_dump(SLOW))
    (tmp_path / "quick.yaml").write_text(yaml.safe_dump(RANDOM))
    process = begin(command("slow.yaml", "-s", "silence", "-s", "gate", "--out", "killed"), tmp_path)
    until(lambda: sleepers(process.pid))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert [path for path in temporary.iterdir() if path.is_dir()]
    finish(command("quick.yaml", "-s", "silence", "--out", "next"), tmp_path)
    assert list(temporary.iterdir()) == []
