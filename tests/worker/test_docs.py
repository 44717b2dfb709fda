"""The page on the worker shows code that runs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit.cli.task import command as task

PAGE = Path(__file__).parents[2] / "docs" / "worker.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_kit_on_the_page_does_its_task(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("python")
    (home / "mailroom.py").write_text(code)
    monkeypatch.chdir(home)
    monkeypatch.setattr(sys, "path", [str(home), *sys.path])
    add = next(block for block in blocks("sh") if "mailroom" in block).replace("\\\n", " ")
    arguments = [part.strip('"') for part in re.findall(r'"[^"]*"|\S+', add)][2:]
    store = ["--store", str(home / "tasks.sqlite")]
    added = CliRunner().invoke(task, [*arguments, "--id", "letters", *store])
    assert added.exit_code == 0, added.output
    worked = CliRunner().invoke(task, ["work", "--drain", *store])
    assert worked.exit_code == 0, worked.output
    shown = json.loads(CliRunner().invoke(task, ["show", "letters", "--json", *store]).output)
    assert shown["status"] == "done"
    assert shown["completion"]["evidence"]["checks"]["outbox"]["passed"] is True
    assert [line.split(" ")[1] for line in (home / "letters.outbox").read_text().splitlines()] == [
        "to-ada",
        "to-bob",
    ]


def test_the_commands_on_the_page_exist() -> None:
    shown = {
        line.split()[2]
        for block in blocks("sh")
        for line in block.splitlines()
        if line.startswith("evalkit task")
    }
    assert shown <= set(task.commands)  # type: ignore[attr-defined]
    assert json.loads(blocks("json")[0])["hooks"]["Stop"]
