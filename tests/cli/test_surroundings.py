"""Surroundings that are not what they should be: a line, exit 2, and nothing lost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from evalkit.runs.store import FILE, Store, address_of
from tests.helpers import document

LONG = "x" * 300


@pytest.fixture
def place(tmp_path: Path) -> Path:
    text = yaml.safe_dump(document([{"work": "rest"}, {"say": "Done.", "claim": "done"}]))
    (tmp_path / "s.yaml").write_text(text)
    return tmp_path


def evalkit(
    place: Path, *arguments: str, file_size: int | None = None, **environment: str | None
) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **environment}

    def limit() -> None:
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))

    return subprocess.run(
        [sys.executable, "-m", "evalkit", *arguments],
        cwd=place,
        env={name: value for name, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
        timeout=120,
    )


RUN = ("run", "s.yaml", "-s", "silence", "-s", "gate", "--no-charts", "--workers", "1", "--out", "r")


def test_a_run_that_cannot_be_written_to_is_read(
    place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert evalkit(place, *RUN).returncode == 0
    assert not (place / "r" / f"{FILE}-wal").exists(), "a finished run is one file"
    monkeypatch.setattr("evalkit.runs.store.os.access", lambda folder, mode: False)
    assert address_of(place / "r").endswith("?immutable=1")
    before = sorted(path.name for path in (place / "r").iterdir())
    store = Store.open(place / "r", write=False)
    assert store.count() == 2
    assert sorted(path.name for path in (place / "r").iterdir()) == before
    store.close()


@pytest.mark.long
def test_a_report_that_cannot_be_written_goes_elsewhere(place: Path) -> None:
    assert evalkit(place, *RUN).returncode == 0
    (place / "r" / "summary.json").unlink()
    (place / "r" / "summary.json").mkdir()
    refused = evalkit(place, "report", "r", "--no-charts")
    assert refused.returncode == 2
    assert "r: the report cannot be written" in refused.stderr
    assert "elsewhere: evalkit report r --out DIR" in refused.stderr
    assert "index.html" not in refused.stdout
    written = evalkit(place, "report", "r", "--no-charts", "--out", "other")
    assert written.returncode == 0, written.stderr
    assert "open other/index.html" in written.stdout
    assert "evalkit show r " in written.stdout
    assert (place / "other" / "index.html").exists()


@pytest.mark.long
@pytest.mark.parametrize("size", [0, 1_000, 5_000, 30_000, 60_000, 100_000, 200_000, 400_000])
def test_a_disk_that_is_full_at_whatever_stage_is_a_line(place: Path, size: int) -> None:
    """No file can grow beyond a size: the store, the table, the page or a chart is the first."""
    arguments = ["--charts" if argument == "--no-charts" else argument for argument in RUN]
    done = evalkit(place, *arguments, file_size=size)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2), done.stderr
    if done.returncode:
        assert len([line for line in done.stderr.splitlines() if line and not line.startswith("hint:")]) == 1
    again = evalkit(place, *(("run", "--resume", "r", "--no-charts") if _begun(place) else RUN))
    assert again.returncode == 0, again.stderr


def _begun(place: Path) -> bool:
    return evalkit(place, "show", "r", "0").returncode == 0 or b"meta" in (
        (place / "r" / FILE).read_bytes() if (place / "r" / FILE).exists() else b""
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [
        ["run", LONG],
        ["run", "s.yaml", "-s", LONG],
        ["run", "s.yaml", "--harness", LONG],
        ["run", "s.yaml", "--out", LONG],
        ["show", LONG, "0"],
        ["show", "r", LONG],
        ["report", LONG],
        ["compare", LONG, LONG],
        ["gate", "r", "--baseline", LONG],
        ["judge", LONG],
        ["transcripts", "list", LONG],
        ["scenarios", "show", LONG],
        ["scenarios", "new", LONG],
        ["strategies", "show", LONG],
        ["harnesses", "check", LONG],
        ["serve", LONG],
        ["prove", LONG],
        ["falsify", LONG],
        ["run", "--resume", LONG],
    ],
)
def test_a_name_of_three_hundred_characters_is_a_line(place: Path, arguments: list[str]) -> None:
    done = evalkit(place, *arguments)
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


def test_without_a_home_a_run_needs_none(place: Path) -> None:
    assert evalkit(place, *RUN, HOME=None).returncode == 0


def test_where_no_temporary_file_can_be_made_a_line_says_so(place: Path) -> None:
    files = document(
        [{"call": "run", "with": {"command": "touch a.txt"}}, {"say": "Done."}],
        world={"kind": "files", "items": ["a"], "checks": {"a": {"exists": "a.txt"}}},
    )
    (place / "s.yaml").write_text(yaml.safe_dump(files))
    done = evalkit(place, *RUN, TMPDIR="/nowhere")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


#: What is done in a mount namespace of its own that has no /proc.
HIDDEN = 'mount -t tmpfs none /proc && exec "$@"'


@pytest.mark.slow
@pytest.mark.parametrize("way", ["namespace", "subreaper"])
def test_without_proc_all_goes_on_or_is_a_line(
    place: Path, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Commands of a world, a foreign harness, two workers, a report; Dask cannot be loaded."""
    monkeypatch.setenv("EVALKIT_CONTAINMENT", way)
    unshare = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", HIDDEN, "sh"]
    if sys.platform != "linux" or subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("no mount namespace is to be had")
    files = document(
        scenario="files",
        model=[
            {"call": "run", "with": {"command": "ls /proc | grep -c self; touch a.txt"}},
            {"say": "Done."},
        ],
        world={"kind": "files", "items": ["a"], "checks": {"a": {"exists": "a.txt"}}},
    )
    (place / "f.yaml").write_text(yaml.safe_dump(files))
    run = [argument if argument != "1" else "2" for argument in RUN]
    for arguments in (
        (*run, "--out", "files", "f.yaml"),
        ("run", "s.yaml", "--harness", "anthropic-loop", "--no-charts", "--out", "foreign"),
        ("run", "--resume", "files"),
        ("report", "files"),
        ("show", "files", "0"),
    ):
        command = [*unshare, sys.executable, "-m", "evalkit", *arguments]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    command = [*unshare, sys.executable, "-m", "evalkit", *run, "--engine", "dask", "--out", "d"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0].startswith("evalkit: --engine dask cannot be loaded here: ")


def test_two_processes_on_one_folder_lose_nothing(place: Path) -> None:
    command = [sys.executable, "-m", "evalkit", *RUN]
    both = [
        subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [process.communicate(timeout=120)[1] for process in both]
    codes = sorted(process.returncode for process in both)
    assert codes in ([0, 0], [0, 2]), told
    assert "Traceback" not in "".join(told)
    store = Store.open(place / "r", write=False)
    assert store.count() == 2
    store.close()
