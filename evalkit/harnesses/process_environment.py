"""What a harness process finds around it: a clean environment and folders of its own, then gone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from evalkit.containment.folders import MARK, Held, need_room, remove
from evalkit.harnesses.find import SHIPPED
from evalkit.harnesses.manifest import Harness, ManifestError
from evalkit.harnesses.pinned_environment import Environment

#: What programs may import instead of speaking HTTP themselves.
CLIENT = SHIPPED / "client"
#: Node's switch for TypeScript, and the question whether it has it.
_STRIP = "--experimental-strip-types"
_FLAGS = "[...process.allowedNodeEnvironmentFlags].join(' ')"
DUMMY_KEY = "evalkit-dummy-key"
#: What is taken over from the caller's environment: where programs are, and nothing that belongs to a user.
_KEPT = ("PATH", "SYSTEMROOT", "TZ", "LD_LIBRARY_PATH")


class Surroundings:
    """A temporary folder with a home and a work folder, and the environment that points there.

    NoRoom where the disk of temporary files is full.
    """

    def __init__(self, harness: Harness, environment: Environment, *, resident: bool = False) -> None:
        self.resident = resident
        self.harness = harness
        self.environment = environment
        self._held = Held("harness")
        self.folder = self._held.folder
        for name in ("home", "tmp", "bin"):
            (self.folder / name).mkdir()
        tool = self.folder / "bin" / "evalkit-tool"
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{CLIENT / "evalkit_tool.py"}" "$@"\n')
        tool.chmod(0o755)
        self._works = 0

    def env(self) -> dict[str, str]:
        """The environment of a process, without what belongs to one episode."""
        home = str(self.folder / "home")
        env = {name: os.environ[name] for name in _KEPT if name in os.environ}
        env["PATH"] = os.pathsep.join(
            (str(self.folder / "bin"), *self.environment.path, env.get("PATH", os.defpath))
        )
        env.update(
            HOME=home,
            USERPROFILE=home,
            XDG_CONFIG_HOME=f"{home}/.config",
            XDG_CACHE_HOME=f"{home}/.cache",
            XDG_DATA_HOME=f"{home}/.local/share",
            TMPDIR=str(self.folder / "tmp"),
            LANG="C.UTF-8",
            PYTHONPATH=str(CLIENT),
            PYTHONUNBUFFERED="1",
            EVALKIT_RESIDENT="1" if self.resident else "0",
            PYTHONDONTWRITEBYTECODE="1",
            NO_PROXY="*",
            no_proxy="*",
            ANTHROPIC_API_KEY=DUMMY_KEY,
            OPENAI_API_KEY=DUMMY_KEY,
            EVALKIT_CLIENT=str(CLIENT / "evalkit_harness.mjs"),
            EVALKIT_VARIANT=self.harness.variant,
        )
        env.update(self.environment.env)
        env.update(self.harness.env)
        env[MARK] = str(self.folder)
        return env

    def command(self) -> list[str]:
        """The command with its placeholders and the folder's files filled in."""
        run = self.harness.run
        if run[0] == "{typescript}":
            return [*self._typescript(), *map(self._filled, run[1:])]
        return [self._filled(part) for part in run]

    def _typescript(self) -> list[str]:
        """What runs TypeScript: the tsx of the project or the path, else a Node that strips types itself."""
        tsx = self._program("tsx")
        if tsx is not None:
            return [tsx]
        node = self._filled("{node}")
        allowed = subprocess.run([node, "-p", _FLAGS], capture_output=True, text=True, check=False).stdout
        if _STRIP not in allowed:
            name = self.harness.name
            raise ManifestError(f"harness {name!r}: TypeScript needs tsx (npm install tsx) or Node 22.6")
        return [node, _STRIP, "--no-warnings"]

    def _program(self, name: str) -> str | None:
        """A program of the harness's environment, or of the caller's."""
        return shutil.which(name, path=os.pathsep.join((*self.environment.path, os.environ.get("PATH", ""))))

    def _filled(self, part: str) -> str:
        if part == "{python}":
            return str(self.environment.python)
        if part == "{node}":
            node = self._program("node")
            if node is None:
                raise ManifestError(f"harness {self.harness.name!r}: node is not installed")
            return node
        file = self.harness.folder / part
        return str(file) if file.is_file() else part.replace("{folder}", str(self.harness.folder))

    def episode(self) -> dict[str, str]:
        """The folder and the ending file of one more episode."""
        need_room(self.folder)
        self._works += 1
        work = self.folder / f"work-{self._works}"
        work.mkdir()
        ending = self.folder / f"ending-{self._works}.json"
        return {"EVALKIT_WORKDIR": str(work), "EVALKIT_ENDING_FILE": str(ending)}

    def done(self, told: dict[str, str]) -> None:
        """Remove what one episode left. NoRoom where it may have failed for want of room."""
        try:
            need_room(self.folder)
        finally:
            for name in ("EVALKIT_WORKDIR", "EVALKIT_ENDING_FILE"):
                remove(told[name])

    def close(self) -> None:
        """Remove everything."""
        self._held.close()
