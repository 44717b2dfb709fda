"""A process's own environment is in nobody's reach."""

from __future__ import annotations

import os
import subprocess
import sys

HIDES = """
import os, subprocess
from pathlib import Path
from evalkit.containment.environment import hide_environment
before = Path("/proc/self/environ").read_bytes()
hide_environment()
after = Path("/proc/self/environ").read_bytes()
print(b"PLANTED" in before, b"PLANTED" in after, set(after))
print(os.environ["KEY"], subprocess.getoutput("echo $KEY"))
"""


def test_it_is_not_to_be_read_and_still_there() -> None:
    environment = {**os.environ, "KEY": "PLANTED"}
    done = subprocess.run(
        [sys.executable, "-c", HIDES], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True False {0}\nPLANTED PLANTED\n"
