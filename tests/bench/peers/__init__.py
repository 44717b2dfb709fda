"""The same task in other frameworks, each in an environment of its own below ``.cache/peers``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from tests.bench.task import scenario_text

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[2] / ".cache" / "peers"
#: name: what is installed, pinned by its main packages.
PINS: dict[str, tuple[str, ...]] = {
    "autogen": ("autogen-agentchat==0.7.5", "autogen-ext==0.7.5"),
    "pydantic_ai": ("pydantic-ai-slim==2.68.0",),
    "inspect": ("inspect-ai==0.3.285",),
}


class Figures(msgspec.Struct, frozen=True):
    """What a program measured of itself; ``start_cpu_s`` is until its first episode was done."""

    turns: int
    episodes: int
    turns_per_cpu_second: float
    wall_s: float
    cpu_s: float
    peak_mb: float
    start_cpu_s: float

    @property
    def cpu_us_a_turn(self) -> float:
        """CPU microseconds for a model turn."""
        return 1e6 / self.turns_per_cpu_second


def ready(name: str) -> Path:
    """The Python of a peer's environment; it is made on first use and again when its pins change."""
    folder = CACHE / name
    python = folder / "bin" / "python"
    stamp = folder / "pins.txt"
    pins = "\n".join(PINS[name])
    if not stamp.exists() or stamp.read_text() != pins:
        uv = [str(Path(sys.executable).with_name("uv"))]
        print(f"setting up {name}: {' '.join(PINS[name])}", file=sys.stderr, flush=True)
        made = [*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)]
        subprocess.run(made, check=True)
        installs = [*uv, "pip", "install", "--quiet", "--python", str(python), *PINS[name]]
        subprocess.run(installs, check=True)
        stamp.write_text(pins)
    return python


def run(name: str, turns: int, episodes: int) -> Figures:
    """Run a program: ``bare``, ``evalkit STRATEGY``, or one of :data:`PINS`.

    RuntimeError says how it failed.
    """
    program, *strategy = name.split()
    python = ready(program) if program in PINS else Path(sys.executable)
    command = [str(python), str(HERE / f"{program}_peer.py"), str(turns), str(episodes), *strategy]
    done = subprocess.run(
        command, input=scenario_text(turns), env=_clean(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()[-2000:]}")
    return msgspec.convert(json.loads(done.stdout.splitlines()[-1]), Figures)


def _clean() -> dict[str, str]:
    """No key and no setting of the user's reaches a peer."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}
    return {**kept, "DO_NOT_TRACK": "1"}
