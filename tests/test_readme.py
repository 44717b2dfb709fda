"""Every command in the README runs, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_readmes_commands(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = []
    for block in BLOCK.finditer((ROOT / "README.md").read_text()):
        language, text = block["language"], block["text"]
        if language in ("yaml", "python", "js"):
            name = text.splitlines()[0].lstrip("#/ ")
            (tmp_path / name).write_text(text)
            continue
        for line in text.splitlines():
            command, _, told = line.partition("#")
            command = command.strip()
            if command.startswith("make "):
                # Running make from within the tests would run the tests; that the target exists is enough.
                dry = subprocess.run(
                    [*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, check=False
                )
                assert dry.returncode == 0, command
                continue
            done = subprocess.run(
                command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == ("exit 1" in told), f"{command}\n{done.stdout}\n{done.stderr}"
            ran.append(command)
    assert len(ran) >= 6


def test_links_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
