"""Temporary folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evalkit.worlds.workshop import remove, sweep, workshop

_HELD = """
import sys
from evalkit.worlds.isolation import run_isolated, Bounds
from evalkit.worlds.workshop import workshop
with workshop() as (folder, scratch):
    (folder / "left").write_text("1")
    print(folder, flush=True)
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
    with workshop() as (folder, scratch):
        (folder / "a").write_text("1")
        assert scratch.is_dir()
        assert list(place.iterdir())
    assert list(place.iterdir()) == []


def test_it_is_gone_after_an_error(place: Path) -> None:
    with pytest.raises(RuntimeError), workshop():
        raise RuntimeError
    assert list(place.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_its_lock_may_be_gone_already(place: Path) -> None:
    handles = len(os.listdir("/proc/self/fd"))
    with workshop() as (folder, _):
        Path(f"{folder.parent}.lock").unlink()
    assert list(place.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == handles


def test_what_a_killed_process_left_is_swept_and_nothing_else(place: Path) -> None:
    killed, living = holder(), holder()
    assert killed.stdout is not None
    assert living.stdout is not None
    left, held = Path(killed.stdout.readline().strip()), Path(living.stdout.readline().strip())
    (place / "somebody-elses").mkdir()
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert (left / "left").exists()
    with workshop():
        # The first use in a place sweeps it.
        assert not left.exists()
        assert held.exists()
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
