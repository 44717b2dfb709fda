"""``evalkit task`` and ``evalkit hook`` as a person uses them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalkit.cli.hook import command as hook
from evalkit.cli.task import command as task
from tests.worker.places import file_store, payments, write_scenario
from tests.worker.test_attempt import REST, stuck


class Shell:
    """Commands on a store of the test's own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.url = str(home / "tasks.sqlite")

    def run(self, *arguments: str, code: int = 0) -> str:
        ran = CliRunner().invoke(task, [*arguments, "--store", self.url])
        assert ran.exit_code == code, ran.output
        return ran.output

    def work(self) -> None:
        # In this process: signal handlers and all.
        self.run("work", "--drain", "--durability", "normal")


@pytest.fixture
def shell(home: Path) -> Shell:
    return Shell(home)


def test_a_task_from_queue_to_evidence(shell: Shell) -> None:
    file = write_scenario(shell.home, payments(2))
    assert shell.run("add", "--id", "pay", "--scenario", str(file)) == "pay\n"
    assert "queued already" in shell.run("add", "--id", "pay", "--scenario", str(file))
    assert "1 pending" in shell.run("list")
    shell.work()
    assert "0 pending, 0 in_progress, 0 awaiting_verification, 1 done" in shell.run("list")
    shown = shell.run("show", "pay")
    assert "status      done" in shown
    assert "[x] PAY-001" in shown
    assert json.loads(shell.run("show", "pay", "--json"))["completion"]["key"] == "pay:final"
    assert "post_payment" in shell.run("show", "pay", "--transcript")
    assert len(json.loads(shell.run("show", "pay", "--transcript", "--json"))) == 4
    assert "[keyed] key pay:post_payment:" in shell.run("evidence", "pay")
    assert "endings  done 1" in shell.run("stats")


def test_an_escalation_is_read_answered_and_resumed(shell: Shell) -> None:
    file = write_scenario(shell.home, stuck(*REST))
    shell.run("add", "--id", "stuck", "--scenario", str(file))
    shell.work()
    assert "# stuck: escalated" in (shell.home / "escalations" / "stuck.md").read_text()
    assert "## Left open" in shell.run("show", "stuck", "--escalation")
    assert json.loads(shell.run("show", "stuck", "--escalation", "--json"))["open_items"] == [
        "orders",
        "invoices",
    ]
    assert shell.run("retry", "stuck", "--answer", "swordfish") == "stuck: pending\n"
    shell.work()
    assert "status      done" in shell.run("show", "stuck")
    assert "user: swordfish" in shell.run("show", "stuck", "--transcript")


def test_completing_twice_is_completing_once(shell: Shell) -> None:
    file = write_scenario(shell.home, payments(1))
    shell.run("add", "--id", "pay", "--scenario", str(file))
    proof = shell.home / "proof.json"
    proof.write_text('{"checked": "by hand"}')
    close = ("complete", "pay", "--idempotency-key", "k", "--evidence-file", str(proof))
    assert shell.run(*close) == "pay: done\n"
    assert shell.run(*close) == "pay: was done already under this key\n"
    assert "by hand" in shell.run("show", "pay")
    other = shell.run("complete", "pay", "--idempotency-key", "l", "--evidence", "x", code=2)
    assert "completed under the key 'k'" in other
    assert "needs evidence" in shell.run(
        "complete", "pay", "--idempotency-key", "k", "--evidence", "", code=2
    )


def test_a_person_escalates_and_adds_evidence(shell: Shell) -> None:
    file = write_scenario(shell.home, payments(1))
    shell.run("add", "--id", "pay", "--scenario", str(file))
    path = shell.run("escalate", "pay", "--reason", "the bank called").strip()
    assert "the bank called" in Path(path).read_text()
    assert 'note (a person): "seen"' in shell.run("evidence", "pay", "--add", "note", "--evidence", "seen")


def test_a_task_of_a_kit_of_ones_own(shell: Shell) -> None:
    """Without a check a person closes it, and the record says that there is none."""
    shell.run(
        "add", "--id", "own", "--prompt", "Say it.", "--kit", "tests.worker.test_worker:kit",
        "--strategy", "verifier_claim", "--item", "a", "--set", "x=1", "--turns", "3", "--type", "talk",
    )  # fmt: skip
    shown = shell.run("show", "own")
    assert "checks      none: closing rests on what the model and its tools say" in shown
    assert "closed by   person" in shown
    shell.work()
    assert "status      awaiting_verification" in shell.run("show", "own")
    assert "own" in shell.run("list", "--status", "awaiting_verification", "--type", "talk")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("add", "--prompt", "x"), "a task needs --prompt and --kit, or --scenario"),
        (("add", "--id", "../x", "--prompt", "x", "--kit", "scenario"), "task id '../x'"),
        (("add", "--prompt", "x", "--kit", "nonsense"), "unknown kit 'nonsense'"),
        (("add", "--prompt", "x", "--kit", "scenario", "--strategy", "odd"), "unknown strategy 'odd'"),
        (("add", "--prompt", "x", "--kit", "scenario", "--item", "a", "--item", "a"), "'a' is named twice"),
        (("add", "--prompt", "x", "--kit", "scenario", "--turns", "0"), "limit turns must be above 0"),
        (("add", "--prompt", "x", "--kit", "scenario", "--set", "a"), "expected NAME=VALUE"),
        (("show", "none"), "no task 'none'"),
        (("list", "--status", "odd"), "unknown status 'odd'"),
        (("complete", "x", "--idempotency-key", "k"), "--evidence or as --evidence-file"),
        (("retry", "none"), "no task 'none'"),
        (("escalate", "none", "--reason", "x"), "no task 'none'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(shell: Shell, arguments: tuple[str, ...], why: str) -> None:
    output = shell.run(*arguments, code=2)
    assert output.startswith("evalkit: ")
    told, hint = output.splitlines()
    assert hint.startswith("hint: evalkit ")
    assert why in told


def test_what_a_scenario_says_cannot_be_said_again(shell: Shell) -> None:
    file = write_scenario(shell.home, payments(1))
    assert "--prompt comes from the scenario" in shell.run(
        "add", "--scenario", str(file), "--prompt", "x", code=2
    )


def test_statistics_alert(shell: Shell) -> None:
    assert shell.run("stats") == "no events yet\n"
    assert shell.run("stats", "--alert", "--json") == "[]\n"


# Several processes


def start_work(home: Path, *options: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "evalkit",
        "task",
        "work",
        "--store",
        str(home / "tasks.sqlite"),
        *options,
    ]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


@pytest.mark.long
def test_two_worker_processes_share_the_queue(shell: Shell) -> None:
    file = write_scenario(shell.home, payments(2))
    for number in range(6):
        shell.run("add", "--id", f"pay-{number}", "--scenario", str(file))
    crew = start_work(shell.home, "--workers", "2", "--drain", "--durability", "normal")
    assert crew.wait(60) == 0
    assert "6 done" in shell.run("list")


@pytest.mark.long
def test_sigterm_ends_idle_workers_cleanly(shell: Shell) -> None:
    file = write_scenario(shell.home, payments(1))
    shell.run("add", "--id", "pay", "--scenario", str(file))
    crew = start_work(shell.home, "--workers", "2", "--poll", "0.05")
    store = file_store(shell.home)
    while store.count().get("done", 0) < 1:
        assert crew.poll() is None
    store.shut()
    crew.send_signal(signal.SIGTERM)
    assert crew.wait(60) == 0
    assert crew.stderr is not None
    assert crew.stderr.read() == ""


# The hook


def stop(home: Path, *options: str, raw: str | None = None, **fields: object) -> Result:
    told = {"session_id": "s1", "cwd": str(home), "hook_event_name": "Stop", **fields}
    store = ["--store", str(home / "tasks.sqlite")]
    return CliRunner().invoke(hook, [*options, *store], input=raw or json.dumps(told))


def test_the_hook_blocks_hands_over_and_lets_through(home: Path) -> None:
    (home / "TODO.md").write_text("- [ ] tests\n- [x] code\n")
    blocked = stop(home, "--checklist", "TODO.md")
    assert blocked.exit_code == 0
    assert json.loads(blocked.output)["decision"] == "block"
    given_up = stop(home, "--checklist", "TODO.md", stop_hook_active=True)
    assert "handed over" in json.loads(given_up.output)["systemMessage"]
    assert (home / "escalations" / "s1.md").exists()
    (home / "TODO.md").write_text("- [x] tests\n")
    assert stop(home, "--checklist", "TODO.md", "--check", "true").output == ""


def test_a_checklist_that_is_not_there_holds_nothing_up(home: Path) -> None:
    assert stop(home, "--checklist", "none.md").output == ""


def test_a_cap_of_ones_own(home: Path) -> None:
    (home / "TODO.md").write_text("- [ ] a\n")
    assert "decision" in stop(home, "--checklist", "TODO.md", "--cap", "1").output
    (home / "TODO.md").write_text("- [ ] a\n- [ ] b\n")
    again = stop(home, "--checklist", "TODO.md", "--cap", "1", stop_hook_active=True)
    assert "handed over with 2 items open" in again.output


@pytest.mark.parametrize(
    ("options", "raw"),
    [
        (("--check", "true"), "no json"),
        (("--check", "true", "--nonsense"), None),
        ((), None),
        (("--checklist", "bad.json"), None),
    ],
)
def test_whatever_goes_wrong_never_blocks(home: Path, options: tuple[str, ...], raw: str | None) -> None:
    """Exit code 2 would: it is how a hook blocks."""
    (home / "bad.json").write_text("{")
    ran = stop(home, *options, raw=raw)
    assert ran.exit_code == 1
    assert ran.output.startswith("evalkit: ")


def test_a_store_that_cannot_be_used_never_blocks(home: Path) -> None:
    ran = CliRunner().invoke(hook, ["--check", "false", "--store", str(home)], input='{"session_id": "s"}')
    assert ran.exit_code == 1
