"""Temporary folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evalkit.containment import folders
from evalkit.containment.folders import NoRoom, need_room, remove, sweep, temporary_folder

_HELD = """
import sys
from evalkit.containment.folders import temporary_folder
with temporary_folder("test") as own:
    (own.folder / "left").write_text("1")
    print(own.folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of temporary files of one's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def holder() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _HELD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_it_is_gone_afterwards(place: Path) -> None:
    with temporary_folder("test") as own:
        (own.folder / "a").write_text("1")
        assert list(place.iterdir())
    assert list(place.iterdir()) == []


def test_it_is_gone_after_an_error(place: Path) -> None:
    with pytest.raises(RuntimeError), temporary_folder("test"):
        raise RuntimeError
    assert list(place.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_its_lock_may_be_gone_already(place: Path) -> None:
    handles = len(os.listdir("/proc/self/fd"))
    with temporary_folder("test") as own:
        Path(f"{own.folder}.lock").unlink()
    assert list(place.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == handles


def test_what_a_killed_process_left_is_swept_and_nothing_else(place: Path) -> None:
    killed, living = holder(), holder()
    assert killed.stdout is not None
    assert living.stdout is not None
    left, lived = Path(killed.stdout.readline().strip()), Path(living.stdout.readline().strip())
    (place / "somebody-elses").mkdir()
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert (left / "left").exists()
    with temporary_folder("test"):
        # The first use in a place sweeps it.
        assert not left.exists()
        assert lived.exists()
    assert sweep(place) == 0
    living.communicate("")
    assert [path.name for path in place.iterdir()] == ["somebody-elses"]


def test_a_folder_without_rights_is_removed(tmp_path: Path) -> None:
    closed = tmp_path / "folder" / "closed"
    closed.mkdir(parents=True)
    (closed / "file").write_text("1")
    closed.chmod(0)
    remove(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(kept)
    remove(tmp_path / "folder")
    assert (kept / "file").exists()


def test_a_folder_nested_beyond_all_paths_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "folder"
    top.mkdir()
    here = os.getcwd()
    os.chdir(top)
    try:
        for _ in range(1_500):
            os.mkdir("deep")
            os.chdir("deep")
        Path("file").write_text("1")
    finally:
        os.chdir(here)
    remove(top)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "fifo", "link", "gone"])
def test_what_is_no_folder_any_more_is_removed(tmp_path: Path, kind: str) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    place = tmp_path / "folder"
    if kind == "file":
        place.write_text("1")
    elif kind == "fifo":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to(kept)
    remove(place)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_what_may_not_be_changed_is_removed_where_the_system_lets_us(tmp_path: Path) -> None:
    top = tmp_path / "folder"
    (top / "inner").mkdir(parents=True)
    (top / "inner" / "file").write_text("1")
    for place in (top / "inner" / "file", top / "inner", top):
        subprocess.run(["chattr", "+i", place], check=False, stderr=subprocess.DEVNULL)
    remove(top)
    assert not top.exists()


def test_without_room_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "ROOM", 1 << 60)
    with pytest.raises(NoRoom, match=r"is full: .* KB left in .*, at least .* KB are needed"):
        need_room(tmp_path / "not" / "there")
    with pytest.raises(NoRoom), temporary_folder("test"):
        pass


def test_a_copy_of_the_process_leaves_it_alone(place: Path) -> None:
    with temporary_folder("test") as own:
        child = os.fork()
        if child == 0:
            own.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert own.folder.is_dir()
