"""Programs that set out to do harm: each is an episode with an ending, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalkit.containment import folders, guarded, machine
from evalkit.containment.folders import NoRoom
from evalkit.containment.guarded import Limits
from evalkit.scoring.foreign_episode import runner_of
from tests.harnesses.episodes import LOOP, played, program
from tests.harnesses.test_bad_harnesses import END
from tests.processes import gone, living
from tests.runs.test_interrupted import until


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary files have a folder of their own, which is empty afterwards."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    yield tmp_path
    assert list(temporary.iterdir()) == []
    assert living(str(temporary)) == []


@pytest.fixture(params=["namespace", "subreaper"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each way in which this machine can hold a program."""
    machine.this_machine.cache_clear()
    monkeypatch.setenv(machine.WAY, request.param)
    if machine.this_machine().way != request.param:
        # Nothing to try: the machine has no other way than the one that the other case tries.
        assert machine.this_machine().why
    yield request.param
    machine.this_machine.cache_clear()


ENDING = 'file = os.environ["EVALKIT_ENDING_FILE"]\n'


@pytest.mark.parametrize(
    ("makes", "named"),
    [
        ("os.mkdir(file)", "a folder, not a file"),
        ("os.mkfifo(file)", "a FIFO, not a file"),
        ("os.symlink('/etc/hostname', file)", "a link, not a file"),
        ("os.symlink(file, file)", "a link, not a file"),
        (
            "import socket; os.chdir(os.path.dirname(file));"
            "socket.socket(socket.AF_UNIX).bind(os.path.basename(file))",
            "a socket, not a file",
        ),
        ("open(file, 'w').write('x' * 3_000_000)", "more than 1 MB"),
        ("open(file, 'w').write('{' * 500_000)", "{{{{"),
        ("open(file, 'wb').write(bytes(range(256)))", ""),
        ("open(file, 'w').write('9' * 5_000)", "no object"),
    ],
)
def test_an_ending_that_is_no_file_is_an_error(place: Path, makes: str, named: str) -> None:
    start = time.monotonic()
    episode, _ = played(program(place, f"import os\n{ENDING}{makes}"))
    assert (episode.ending, episode.native) == ("error", "invalid ending")
    assert named in episode.note
    assert time.monotonic() - start < 15


@pytest.mark.parametrize(
    "harm",
    [
        "for n in range(1500): os.mkdir('deep'); os.chdir('deep')",
        "import shutil; shutil.rmtree(os.getcwd())",
        "import shutil; shutil.rmtree(os.path.dirname(file), ignore_errors=True)",
        "os.chmod('.', 0)",
        "import subprocess; subprocess.run(['chattr', '+i', '.'])",
        "os.rename(os.getcwd(), os.getcwd() + '-away')",
        "d = os.getcwd(); os.rmdir(d); os.symlink('/', d)",
        "import signal; os.kill(os.getppid(), signal.SIGKILL) if os.getppid() == 1 else 0",
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
        "import sys; sys.stdin.close(); sys.stdout.close(); os.close(2)",
    ],
)
def test_what_it_does_to_its_folder_is_never_void(place: Path, harm: str) -> None:
    text = (
        END + ENDING + harm + "\nos.makedirs(os.path.dirname(file), exist_ok=True)\nend({'ending': 'done'})"
    )
    episode, _ = played(program(place, text))
    assert episode.outcome == "done/reachable"


def test_a_fork_bomb_is_an_error(place: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty processes are the limit, forty tasks what a control group gives: it harms nobody."""
    monkeypatch.setattr(guarded, "DEFAULT", Limits(processes=20))
    bomb = "import os\nwhile True:\n try: os.fork()\n except OSError: pass"
    episode, _ = played(program(place, bomb))
    assert (episode.ending, episode.native) == ("error", "started more than 20 processes")


@pytest.mark.parametrize(
    ("greedy", "named"),
    [
        ("x = bytearray(300_000_000)\nimport time; time.sleep(30)", "used more than 100 MB of memory"),
        ("n = 0\nwhile True:\n n += 1; open(f'f{n}', 'wb').write(bytes(1_000_000))", "wrote more than 30 MB"),
        ("n = 0\nwhile True:\n n += 1; open(f'f{n}', 'wb').close()", "made more than 2000 files"),
    ],
)
def test_what_takes_more_than_its_share_is_an_error(
    place: Path, greedy: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "DEFAULT", Limits(memory_mb=100, written_mb=30, files=2_000))
    episode, _ = played(program(place, greedy))
    assert (episode.ending, episode.native) == ("error", named)


@pytest.mark.long
def test_it_opens_no_more_connections_than_it_may(place: Path) -> None:
    text = END + (
        "import socket, urllib.parse\n"
        "at = urllib.parse.urlsplit(os.environ['ANTHROPIC_BASE_URL'])\n"
        "held = []\n"
        "try:\n"
        "    while len(held) < 10_000: held.append(socket.create_connection((at.hostname, at.port)))\n"
        "except OSError: pass\n"
        "few = len(held) < 5_000\n"
        "held.clear()\n"
        "end({'ending': 'escalated', 'native': str(few)})\n"
    )
    episode, _ = played(program(place, text), seconds=60)
    assert (episode.ending, episode.native) == ("escalated", "True")


OUTLIVES = END + (
    "import subprocess\n"
    "sleep = ['sh', '-c', 'sleep 63; echo late', WORD]\n"
    "subprocess.Popen(['env', '-i', 'setsid', *sleep])\n"
    "subprocess.Popen(['sh', '-c', 'setsid env -i \"$@\" & exit', 'x', *sleep]).wait()\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0: os.execvpe(sleep[0], sleep, {})\n"
    "    os._exit(0)\n"
    "import time; time.sleep(0.3)\n"
)


def test_nothing_outlives_it(place: Path, way: str) -> None:
    word = f"outlives-{os.getpid()}-{way}"
    text = f"WORD = {word!r}\n{OUTLIVES}end({{'ending': 'done'}})"
    episode, kept = played(program(place, text))
    assert episode.ending == "done"
    assert kept.seen["processes left running"] >= 3
    assert living(word) == []


RUNS = """
import sys
from pathlib import Path
from tests.harnesses.episodes import played, program
played(program(Path(sys.argv[1]), Path(sys.argv[2]).read_text()))
"""


def test_nothing_outlives_an_evalkit_that_is_killed(place: Path, way: str) -> None:
    """Not the harness, not what it started: and its folder is gone with the next start."""
    word = f"orphaned-{os.getpid()}-{way}"
    (place / "text.py").write_text(f"WORD = {word!r}\n{OUTLIVES}time.sleep(63)")
    environment = {**os.environ, "TMPDIR": str(place / "temporary"), machine.WAY: way}
    command = [sys.executable, "-c", RUNS, str(place), str(place / "text.py")]
    process = subprocess.Popen(command, env=environment, cwd=Path(__file__).parents[2])
    until(lambda: len(living(word)) >= 3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert gone(word, 2.0)
    assert list((place / "temporary").iterdir())
    folders.sweep(place / "temporary")


def test_no_secret_is_to_be_read_of_whoever_started_it(place: Path, way: str) -> None:
    """Neither in the environment of what stands above it, nor in that of evalkit itself."""
    text = f"import os\n{ENDING}" + (
        "import json, glob, re\n"
        "found = []\n"
        "for name in glob.glob('/proc/[0-9]*/environ'):\n"
        "    try: text = open(name, 'rb').read()\n"
        "    except OSError: continue\n"
        "    if b'WORD=planted' in text: found.append(name)\n"
        "json.dump({'ending': 'done', 'native': str(found)}, open(file, 'w'))\n"
    )
    (place / "text.py").write_text(text)
    environment = {**os.environ, "WORD": "planted", "TMPDIR": str(place / "temporary"), machine.WAY: way}
    runs = RUNS.replace("played(program(", "print(played(program(").strip() + "[0].native)"
    done = subprocess.run(
        [sys.executable, "-c", runs, str(place), str(place / "text.py")],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_a_full_disk_is_evalkits_own_failure(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = program(place, LOOP)
    disk = os.statvfs("/")
    monkeypatch.setattr(folders, "ROOM", disk.f_bavail * disk.f_frsize * 2)
    with pytest.raises(NoRoom, match="the disk of temporary files is full"):
        played(harness)


def test_a_folder_for_an_ending_is_out_of_the_way_of_the_next_one(place: Path) -> None:
    """A harness that is started again in the same folder, after a message of the user."""
    text = (
        "import os\n"
        + ENDING
        + "if 'AGAIN' not in os.environ: os.makedirs(file + '/deep')\n"
        + "else: open(file, 'w').write('{\"ending\": \"done\"}')"
    )
    runner = runner_of(program(place, text), seconds=20)
    further = iter([SimpleNamespace(variables={"AGAIN": "1"}), None])
    finished = runner.run({}, lambda: False, lambda finished: next(further))  # type: ignore[arg-type]
    runner.close()
    assert finished.told == {"ending": "done"}
