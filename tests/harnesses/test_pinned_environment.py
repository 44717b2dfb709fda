"""Environments: made from pins, kept, made again when a pin changes, a clear error where that fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.extras import MissingExtra
from evalkit.harnesses import pinned_environment
from evalkit.harnesses.find import find_harness, shipped
from evalkit.harnesses.manifest import Harness, ManifestError, parse_manifest
from evalkit.harnesses.pinned_environment import SetupError, environment_of, folder_of, is_ready, set_up


def pinned(folder: Path, *python: str) -> Harness:
    document = {"name": "made-up", "summary": "", "run": ["x"], "setup": {"python": list(python)}}
    return Harness(parse_manifest(document, "harness.toml"), folder)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(pinned_environment.CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "harnesses"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    ran: list[list[str]] = []
    monkeypatch.setattr(pinned_environment, "_call", lambda name, command, folder: ran.append(command))
    return ran


def test_it_is_made_once_and_again_when_the_pin_changes(
    tmp_path: Path, commands: list[list[str]], cache: Path
) -> None:
    said: list[str] = []
    harness = pinned(tmp_path, "thing==1.0")
    assert not is_ready(harness)
    with pytest.raises(ManifestError, match="is not set up: evalkit harnesses setup made-up"):
        environment_of(harness)
    set_up(harness, said.append)
    assert said[0] == "made-up: installing thing==1.0"
    assert [command[1:3] for command in commands] == [["venv", "--quiet"], ["pip", "install"]]
    assert commands[1][-1] == "thing==1.0"
    set_up(harness, said.append)
    assert len(commands) == 2
    newer = pinned(tmp_path, "thing==1.1")
    assert not is_ready(newer)
    set_up(newer, said.append)
    assert len(commands) == 4
    assert [place.name for place in cache.iterdir() if place.is_dir()] == [folder_of(newer).name]


def test_a_lock_file_decides_too(tmp_path: Path, commands: list[list[str]]) -> None:
    harness = pinned(tmp_path, "thing==1.0")
    before = folder_of(harness)
    (tmp_path / "requirements.lock").write_text("thing==1.0\nother==2.0\n")
    assert folder_of(harness) != before
    set_up(harness, lambda said: None)
    assert commands[1][-2:] == ["-r", str(tmp_path / "requirements.lock")]


def test_a_failed_set_up_says_what_failed_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    offline = tmp_path / "uv"
    offline.write_text("#!/bin/sh\necho 'error: dns error: failed to lookup address' >&2\nexit 2\n")
    offline.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name, path=None: str(offline))
    with pytest.raises(SetupError) as caught:
        set_up(pinned(tmp_path, "thing==1.0"), lambda said: None)
    assert str(caught.value) == (
        "made-up: uv failed (is the package registry reachable?): error: dns error: failed to lookup address"
    )
    assert not [place for place in cache.iterdir() if place.is_dir()]


def test_without_uv_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    with pytest.raises(
        MissingExtra, match=r"needs uv, which is not installed: pip install 'evalkit-endings\[harness\]'"
    ):
        set_up(pinned(tmp_path, "thing==1.0"), lambda said: None)


def test_what_needs_no_packages_needs_no_set_up(tmp_path: Path) -> None:
    harness = pinned(tmp_path)
    assert is_ready(harness)
    assert environment_of(harness).path == ()


@pytest.mark.parametrize("name", sorted({each.manifest.name for each in shipped().values()}))
def test_every_shipped_harness_is_pinned_with_hashes(name: str) -> None:
    """Every package that set-up installs is named with what it must hash to."""
    harness = find_harness(name)
    setup = harness.manifest.setup
    if setup.python:
        text = (harness.folder / "requirements.lock").read_text()
        packages = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
        assert packages
        assert [line for line in packages if not line.endswith("\\")] == []
        assert text.count("--hash=sha256:") >= len(packages)
        for pin in setup.python:
            name_of = pin.partition("==")[0].partition("[")[0]
            assert any(line.startswith(f"{name_of}==") for line in packages), pin
    if setup.node:
        lock = json.loads((harness.folder / "package-lock.json").read_text())
        installed = {place: each for place, each in lock["packages"].items() if place}
        assert installed
        assert [place for place, each in installed.items() if not each.get("integrity")] == []


def test_set_up_runs_no_script_and_builds_nothing(
    tmp_path: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: name)
    (tmp_path / "requirements.lock").write_text("thing==1.0 --hash=sha256:" + "0" * 64 + "\n")
    (tmp_path / "package-lock.json").write_text("{}")
    setup = {"python": ["thing==1.0"], "node": {"other": "2.0"}}
    document = {"name": "made-up", "summary": "", "run": ["x"], "setup": setup}
    set_up(Harness(parse_manifest(document, "harness.toml"), tmp_path), lambda said: None)
    _, install, node = commands
    assert {"--require-hashes", "--no-build"} <= set(install)
    assert node[:3] == ["npm", "ci", "--ignore-scripts"]


def test_set_up_sees_nothing_of_the_users_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "NPM_TOKEN", "UV_CONFIG_FILE"):
        monkeypatch.setenv(name, "planted")
    seen = tmp_path / "seen"
    tool = tmp_path / "uv"
    tool.write_text(f"#!/bin/sh\nenv > {seen}\nls -a $HOME >> {seen}\n")
    tool.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name, path=None: str(tool))
    set_up(pinned(tmp_path, "thing==1.0"), lambda said: None)
    text = seen.read_text()
    assert "planted" not in text
    names = {line.split("=")[0] for line in text.splitlines() if "=" in line}
    allowed = {
        *pinned_environment._REACH,
        "HOME",
        "LANG",
        "UV_NO_CONFIG",
        "npm_config_cache",
        "PWD",
        "_",
        "OLDPWD",
    }
    assert names - allowed - {"SHLVL"} == set()
