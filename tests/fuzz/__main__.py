"""Lets atheris look for input that hurts: ``python -m tests.fuzz SECONDS [TARGET…]``, each target in turn.

It runs in an environment of its own that holds atheris (``make fuzz``). What was found to be new ground is
kept below ``.cache/fuzz-corpus/``, and an input that broke a target beside it, as ``crash-*``.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".cache" / "fuzz-corpus"
#: Seconds for one input, and MB for a target.
PATIENCE, MEMORY = 20, 3_000


def main() -> None:
    """Run each target in a process of its own; the exit code is 1 where one broke."""
    if sys.argv[1:2] == ["--one"]:
        _one(sys.argv[2], sys.argv[3:])
        return
    from tests.fuzz.targets import TARGETS

    seconds = sys.argv[1]
    names = sys.argv[2:] or list(TARGETS)
    broken = []
    for name in names:
        folder = KEPT / name
        folder.mkdir(parents=True, exist_ok=True)
        _lay_out(name, folder)
        options = [
            str(folder),
            f"-max_total_time={seconds}",
            f"-timeout={PATIENCE}",
            f"-rss_limit_mb={MEMORY}",
        ]
        options += [
            "-max_len=60000",
            f"-artifact_prefix={KEPT}/{name}-",
            "-verbosity=0",
            "-print_final_stats=1",
        ]
        print(f"{name}: atheris for {seconds} s", flush=True)
        done = subprocess.run([sys.executable, "-m", "tests.fuzz", "--one", name, *options], check=False)
        if done.returncode:
            broken.append(name)
    print(f"broken: {', '.join(broken)}" if broken else f"nothing broke: {', '.join(names)}")
    raise SystemExit(bool(broken))


def _lay_out(name: str, folder: Path) -> None:
    """Put the corpus where atheris reads it."""
    from tests.fuzz.corpus import seeds

    for number, data in enumerate(seeds(name)):
        (folder / f"seed-{number:03}").write_bytes(data)


def _one(name: str, options: list[str]) -> None:
    import atheris

    with atheris.instrument_imports(include=["evalkit"]):
        from tests.fuzz.targets import TARGETS
    from tests.fuzz.watch import confined

    logging.disable(logging.CRITICAL)
    target = TARGETS[name]

    def each(data: bytes) -> None:
        with confined() as folder:
            target(folder, data)

    atheris.Setup([sys.argv[0], *options], each)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
