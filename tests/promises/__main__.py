"""``make promises``: breaks each promise, one after the other. One that its test does not notice is told.

``python -m tests.promises [WORD…]`` tries the breaks whose name has one of the words.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from evalkit.containment.strays import end_strays
from tests.promises.breaks import BREAKS

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(__file__).with_name("site")
#: Seconds for a test; one that hangs has noticed.
LONGEST = 180
_FAILED = 1


def noticed(broken: str, test: str) -> tuple[str, str]:
    """What became of a test: ``noticed``, ``hung``, ``green`` or ``no test``; and what was said."""
    environment = {
        **os.environ,
        "EVALKIT_BROKEN": broken,
        "HYPOTHESIS_PROFILE": "unshrunk",
        "PYTHONPATH": os.pathsep.join((str(SITE), os.environ.get("PYTHONPATH", ""))),
    }
    options = ("-n", "0", "-x", "--tb=line", "-p", "no:cacheprovider", "-m", "")
    command = [sys.executable, "-m", "pytest", *options, test]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return "hung", ""
    finally:
        # What a broken promise leaves behind.
        end_strays(f"EVALKIT_BROKEN={broken}")
    if done.returncode == _FAILED and ("FAILED " in done.stdout or "ERROR " in done.stdout):
        return "noticed", done.stdout
    return "green" if done.returncode == 0 else "no test", done.stdout + done.stderr


def main(words: list[str]) -> int:
    """The number of promises whose breaking nobody noticed."""
    chosen = [each for each in BREAKS if not words or any(word in each.name for word in words)]
    unnoticed = 0
    for each in chosen:
        start = time.monotonic()
        found, said = noticed(f"{each.target} = {each.broken}", each.test)
        fine = found in ("noticed", "hung")
        unnoticed += not fine
        print(f"{found:8} {time.monotonic() - start:5.1f} s  {each.name}", flush=True)
        if not fine:
            print(f"         {each.target}\n         {each.test}\n{said[-1500:]}", flush=True)
    print(f"{len(chosen)} promises broken, {len(chosen) - unnoticed} noticed by their tests")
    return unnoticed


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
