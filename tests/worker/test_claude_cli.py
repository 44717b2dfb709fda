"""The Stop hook on the real Claude Code CLI, against a scripted model on loopback."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalkit.core.tasks import Offered
from evalkit.harnesses.find import find_harness
from evalkit.harnesses.pinned_environment import set_up
from evalkit.wire.episode import WireEpisode
from evalkit.wire.server import Server
from evalkit.worker.store import open_store
from evalkit.worker.task_records import Record
from tests.worker.places import stage_of

pytestmark = pytest.mark.harness

TODO = "- [ ] alpha\n- [ ] beta\n"
REPORT = {"say": "Half is done."}


def bash(command: str) -> dict[str, Any]:
    """A turn that runs a command with the CLI's own tool."""
    return {"raw": {"content": [{"call": "Bash", "with": {"command": command, "description": "a step"}}]}}


TICK = bash("sed -i 's/\\[ \\]/[x]/' TODO.md")
LOOK = bash("ls")


@pytest.fixture(scope="module")
def cli() -> Path:
    """The CLI that the harness's pinned package brings; set up on first use."""
    library = set_up(find_harness("claude-agent-sdk"), print).python.parent.parent / "lib"
    (found,) = library.glob("python*/site-packages/claude_agent_sdk/_bundled/claude")
    return found


class Run:
    """One ``claude -p`` with the hook in its settings."""

    def __init__(self, cli: Path, folder: Path, moves: list[dict[str, Any]], *options: str) -> None:
        self.folder = folder
        (folder / "TODO.md").write_text(TODO)
        (folder / "home").mkdir()
        self.stage = stage_of(
            {
                "scenario": "hooked",
                "family": "stop_hook",
                "task": {"prompt": "Do both.", "done_when": "Both are done."},
                "world": {"kind": "items", "items": ["alpha", "beta"]},
                "model": moves,
            },
            Offered(),
        )
        hook = [sys.executable, "-m", "evalkit", "hook", "--checklist", "TODO.md"]
        command = shlex.join([*hook, "--store", str(folder / "hook.sqlite"), *options])
        settings = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}}
        with Server() as server:
            url = server.url(server.add(WireEpisode(self.stage)))
            asked = [str(cli), "-p", "Do both.", "--output-format", "json", "--allowedTools", "Bash"]
            ran = subprocess.run(
                [*asked, "--settings", json.dumps(settings)],
                cwd=folder,
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(folder / "home"),
                    "ANTHROPIC_BASE_URL": url,
                    "ANTHROPIC_API_KEY": "none",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                    "CLAUDE_CODE_MAX_RETRIES": "1",
                },
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        self.result = json.loads(ran.stdout)

    def record(self) -> Record:
        store = open_store(str(self.folder / "hook.sqlite"))
        record = store.get(self.result["session_id"])
        store.shut()
        return record


def test_a_report_is_no_end_while_items_are_open(cli: Path, tmp_path: Path) -> None:
    run = Run(cli, tmp_path, [REPORT, TICK, {"say": "All is done."}])
    assert run.stage.turns == 3
    assert run.result["result"] == "All is done."
    assert (run.record().status, run.record().continuations) == ("done", 1)


def test_an_agent_that_only_talks_is_let_go_at_the_second_stop(cli: Path, tmp_path: Path) -> None:
    """``stop_hook_active`` is set by then; the session is a person's."""
    run = Run(cli, tmp_path, [{**REPORT, "until": "never"}])
    assert run.stage.turns == 2
    record = run.record()
    assert record.status == "escalated"
    assert record.ending is not None
    assert record.ending.native == "loop guard"
    artifact = (tmp_path / "escalations" / f"{record.id}.md").read_text()
    assert "- alpha\n- beta\n" in artifact
    assert f"claude --resume {record.id}" in artifact


def test_an_agent_that_acts_in_vain_is_let_go_at_the_cap(cli: Path, tmp_path: Path) -> None:
    """Its acts are read from the CLI's own transcript."""
    run = Run(cli, tmp_path, [{"repeat": {"times": "forever", "do": [REPORT, LOOK]}}])
    record = run.record()
    assert record.ending is not None
    assert (record.status, record.continuations, record.ending.native) == ("escalated", 3, "nudges")
    assert run.stage.turns == 7


def test_a_failing_check_holds_it_too(cli: Path, tmp_path: Path) -> None:
    run = Run(cli, tmp_path, [REPORT, TICK, REPORT, bash("touch built"), REPORT], "--check", "test -e built")
    assert run.record().status == "done"
    assert run.stage.turns == 5
