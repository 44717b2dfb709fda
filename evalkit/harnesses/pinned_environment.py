"""Isolated environments for harnesses: made on demand from their pins, made again when a pin changes."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from evalkit.containment.cache import CACHE, cache_base
from evalkit.containment.folders import temporary_folder
from evalkit.extras import missing
from evalkit.harnesses.manifest import Harness, ManifestError

_READY = "evalkit-ready.json"
#: What set-up takes over of the user's environment: the way to programs, registries and their certificates.
_REACH = (
    *("PATH", "TMPDIR", "TZ", "LD_LIBRARY_PATH"),
    *(name for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY") for name in (proxy, proxy.lower())),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_CACHE_DIR"),
    *("NPM_CONFIG_REGISTRY", "npm_config_registry"),
)
_LOCK_FILES = ("requirements.lock", "package-lock.json")

Say = Callable[[str], None]


class SetupError(RuntimeError):
    """An environment that could not be made; one line."""


class Environment(msgspec.Struct, frozen=True):
    """What a harness runs in. ``path`` stands before the rest of PATH, ``env`` are variables it needs."""

    python: Path
    path: tuple[str, ...] = ()
    env: dict[str, str] = {}
    seconds: float = 0.0


def cache_folder() -> Path:
    """Where environments are kept."""
    base = cache_base()
    if base is None:
        raise ManifestError(f"no home folder is known: name a folder for environments in {CACHE}")
    return base / "harnesses"


def find_program(name: str) -> str | None:
    """A program on the path or beside this Python, where a virtual environment has its own."""
    return shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))


def needs_setup(harness: Harness) -> bool:
    """Whether the harness has an environment of its own."""
    setup = harness.manifest.setup
    return bool(setup.python or setup.node)


def folder_of(harness: Harness) -> Path:
    """The folder of its environment: its name, and a digest of all that decides what is in it."""
    setup = harness.manifest.setup
    seen = hashlib.blake2b(msgspec.json.encode(setup, order="sorted"), digest_size=6)
    seen.update(f"{sys.version_info[:2]}".encode())
    for name in _LOCK_FILES:
        file = harness.folder / name
        if file.is_file():
            seen.update(file.read_bytes())
    return cache_folder() / f"{harness.manifest.name}-{seen.hexdigest()}"


def is_ready(harness: Harness) -> bool:
    """Whether its environment is there, as it is pinned now."""
    return not needs_setup(harness) or (folder_of(harness) / _READY).is_file()


def environment_of(harness: Harness) -> Environment:
    """The environment, which must be there. ManifestError says how to make it."""
    if not needs_setup(harness):
        return _own_environment(harness)
    folder = folder_of(harness)
    if not is_ready(harness):
        name = harness.manifest.name
        raise ManifestError(f"harness {name!r} is not set up: evalkit harnesses setup {name}")
    seconds = json.loads((folder / _READY).read_text()).get("seconds", 0.0)
    python = folder / "python" / "bin" / "python"
    own = python if python.exists() else Path(sys.executable)
    path = tuple(str(place) for place in (folder / "python" / "bin", folder / "node_modules" / ".bin"))
    return Environment(own, path, {"EVALKIT_NODE_MODULES": str(folder / "node_modules")}, seconds)


def _own_environment(harness: Harness) -> Environment:
    """Without set-up: this Python, and the packages that a Node project has of its own."""
    for folder in (harness.folder, *harness.folder.parents):
        modules = folder / "node_modules"
        if modules.is_dir():
            return Environment(
                Path(sys.executable), (str(modules / ".bin"),), {"EVALKIT_NODE_MODULES": str(modules)}
            )
    return Environment(Path(sys.executable))


def set_up(harness: Harness, say: Say) -> Environment:
    """Make the environment if it is not there; ``say`` is told of progress.

    SetupError where that fails, MissingExtra where what makes it is not installed.
    """
    if not needs_setup(harness):
        return environment_of(harness)
    folder = folder_of(harness)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone(folder.with_suffix(".lock")):
        if not is_ready(harness):
            began = time.monotonic()
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                _make(harness, folder, say)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            seconds = round(time.monotonic() - began, 1)
            (folder / _READY).write_text(json.dumps({"seconds": seconds}))
            _remove_older(harness, folder)
            say(f"{harness.manifest.name}: set up in {seconds:g} s")
    return environment_of(harness)


def _make(harness: Harness, folder: Path, say: Say) -> None:
    setup, name = harness.manifest.setup, harness.manifest.name
    if setup.python:
        uv = find_program("uv")
        if uv is None:
            raise missing(f"{name}: the environment", "uv")
        python = str(folder / "python")
        say(f"{name}: installing {', '.join(setup.python)}")
        lock = harness.folder / "requirements.lock"
        wanted = list(setup.python)
        if lock.is_file():
            wanted = ["-r", str(lock)]
            if "--hash=" in lock.read_text(encoding="utf-8"):
                wanted.insert(0, "--require-hashes")
        _call(name, [uv, "venv", "--quiet", "--python", sys.executable, python], folder)
        _call(
            name,
            [
                uv,
                "pip",
                "install",
                "--quiet",
                "--compile-bytecode",
                # Building a package runs what its author wrote.
                "--no-build",
                "--python",
                f"{python}/bin/python",
                *wanted,
            ],
            folder,
        )
    if setup.node:
        npm = shutil.which("npm")
        if npm is None:
            raise SetupError(f"{name}: npm is not installed: install Node.js 20 or newer")
        say(f"{name}: installing {', '.join(f'{p}@{v}' for p, v in setup.node.items())}")
        package = {"name": f"evalkit-{name}", "private": True, "type": "module", "dependencies": setup.node}
        (folder / "package.json").write_text(json.dumps(package))
        lock = harness.folder / "package-lock.json"
        how = "install"
        if lock.is_file():
            shutil.copy(lock, folder / "package-lock.json")
            how = "ci"
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        _call(name, [npm, how, *options], folder)


def set_up_variables(home: str) -> dict[str, str]:
    """The environment of a step: where programs and registries are, and nothing else of the user's."""
    kept = {name: os.environ[name] for name in _REACH if name in os.environ}
    return {**kept, "HOME": home, "LANG": "C.UTF-8", "UV_NO_CONFIG": "1", "npm_config_cache": f"{home}/npm"}


def _call(name: str, command: list[str], folder: Path) -> None:
    """Run one step; its last words stand in the error."""
    with temporary_folder("setup") as home:
        done = subprocess.run(
            command,
            cwd=folder,
            env=set_up_variables(str(home.folder)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        said = " ".join(lines)[-400:] or f"exit {done.returncode}"
        tool = Path(command[0]).name
        raise SetupError(f"{name}: {tool} failed (is the package registry reachable?): {said}")


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Be the only one who holds a lock file, here and in other processes."""
    with file.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _remove_older(harness: Harness, folder: Path) -> None:
    """Environments of earlier pins of the same harness."""
    for other in folder.parent.glob(f"{harness.manifest.name}-*"):
        digest = other.name.removeprefix(f"{harness.manifest.name}-")
        if other != folder and other.is_dir() and len(digest) == 12 and "-" not in digest:
            shutil.rmtree(other, ignore_errors=True)
