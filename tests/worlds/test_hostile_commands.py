"""Commands of a world that set out to do harm: what is left is a state of the world, and nothing else."""

from __future__ import annotations

import os
import re
import socket
import tempfile
import time
from pathlib import Path

import pytest

from evalkit.containment import folders
from evalkit.containment.folders import NoRoom
from evalkit.worlds.folder import After, run_on
from evalkit.worlds.isolation import Bounds
from evalkit.worlds.tree import tree_of
from tests.processes import living

BEFORE = tree_of({"a.txt": "a", "b/c.txt": "c"})


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Temporary files have a folder of their own, which is empty afterwards."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run_on.cache_clear()
    yield tmp_path
    run_on.cache_clear()
    assert list(tmp_path.iterdir()) == []
    assert living(str(tmp_path)) == []


def ran(command: str, seconds: float = 10.0, **bounds: int) -> After:
    return run_on(BEFORE, command, Bounds(seconds=seconds, **bounds))


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ('rm -rf "$PWD"', {}),
        ('rm -rf "$PWD"; ln -s "$HOME" "$PWD"', {}),
        ('rm -rf "$PWD"; mkfifo "$PWD"', {}),
        ('rm -rf "$HOME"; echo on', BEFORE.entries),
        ('rm -rf "$(dirname "$PWD")"', {}),
        ('mv "$PWD" "$PWD.away"', {}),
        ("chattr +i . a.txt; true", BEFORE.entries),
        ("chmod 0 . b a.txt", BEFORE.entries),
        ("rm a.txt; mkfifo a.txt; mknod c b 1 1; true", {"b/c.txt"}),
        ("kill -9 $PPID; kill -9 -1; true", BEFORE.entries),
        ("mount -t tmpfs none b; umount -l /proc; true", BEFORE.entries),
    ],
)
def test_what_is_left_is_the_state(command: str, left: object) -> None:
    after = ran(command)
    assert set(after.tree.entries) == set(left)  # type: ignore[call-overload]


@pytest.mark.long
def test_folders_nested_beyond_all_paths_undo_the_command() -> None:
    # The shell's own idea of where it is would grow too long.
    nest = "python -c \"import os\nfor n in range(1500): os.mkdir('deep'); os.chdir('deep')\""
    after = ran(nest)
    assert after.tree == BEFORE
    assert after.status == 1
    assert "nested deeper than 3,000 bytes of path; what the command did is undone" in after.output


@pytest.mark.long
def test_a_fork_bomb_is_ended_and_named() -> None:
    """Twenty processes are the limit, forty tasks what the system would give: it harms nobody."""
    bomb = 'python -c "import os\nwhile True:\n try: os.fork()\n except OSError: pass"'
    start = time.monotonic()
    after = ran(bomb, processes=20)
    assert "[ended: it started more than 20 processes]" in after.output
    assert after.status == 137
    assert time.monotonic() - start < 8


def test_memory_of_all_processes_together_is_bounded() -> None:
    hungry = "python -c 'import time; x = bytearray(90_000_000); time.sleep(20)' &"
    after = ran(f"{hungry} {hungry} {hungry} {hungry} wait", memory_mb=128)
    assert "[ended: it used more than 256 MB of memory]" in after.output


def test_what_is_written_in_all_is_bounded() -> None:
    many = "for n in 1 2 3 4 5 6 7 8; do head -c 4000000 /dev/zero > $n; done; sleep 20"
    after = ran(many, file_mb=8, written_mb=16)
    assert "[ended: it wrote more than 16 MB]" in after.output
    assert after.tree == BEFORE


def test_there_is_no_network() -> None:
    """Not even to what listens on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        reach = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 3)"
        after = ran(f'python -c "{reach}"')
    assert "Connection refused" in after.output
    assert after.status == 1


def test_loopback_is_its_own() -> None:
    serve = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        "c = socket.create_connection(s.getsockname()); print('heard')"
    )
    assert ran(f'python -c "{serve}"').output == "heard\n"


def test_it_sees_no_process_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    after = ran(
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -c EVALKIT_FOLDER; ls -d /proc/[0-9]* | wc -l"
    )
    others = int(after.output.split()[-1])
    assert others < 10
    assert len([name for name in os.listdir("/proc") if name.isdigit()]) > others


def test_a_full_disk_is_evalkits_own_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = os.statvfs("/")
    monkeypatch.setattr(folders, "ROOM", disk.f_bavail * disk.f_frsize * 2)
    with pytest.raises(NoRoom, match="the disk of temporary files is full"):
        ran("true")


@pytest.mark.parametrize("where", ["temporary", "etc", "root"])
def test_it_has_the_systems_programs_and_its_own_files_and_no_others(
    place: Path, tmp_path_factory: pytest.TempPathFactory, where: str
) -> None:
    """By ways that no reading of the command's text finds out."""
    beside = tmp_path_factory.mktemp("beside")
    (beside / "secret").write_text("planted")
    paths = {
        "temporary": str(beside / "secret"),
        "etc": "/etc/shadow",
        "root": f"/proc/1/root{beside}/secret",
    }
    spelled = "".join(f"\\0{ord(sign):03o}" for sign in paths[where])
    after = ran(f"cat \"$(printf '%b' '{spelled}')\" ; ls \"$(printf '%b' '{spelled}')\"")
    assert "planted" not in after.output
    assert len(re.findall("No such file or directory|Permission denied", after.output)) == 2


def test_what_it_writes_elsewhere_is_nowhere(place: Path) -> None:
    up = "python -c \"import os; open(os.sep + 'usr' + os.sep + 'written', 'w')\""
    after = ran(up)
    assert "Read-only file system" in after.output or "Permission denied" in after.output
    assert not Path("/usr/written").exists()
    ran("python -c \"import os; open(os.sep + 'tmp' + os.sep + 'evalkit-was-here', 'w')\"")
    assert not Path("/tmp/evalkit-was-here").exists()
