"""``evalkit serve``: one scenario by hand."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys

import httpx2
import pytest
from click.testing import CliRunner

from evalkit.cli.serve import command

pytestmark = pytest.mark.long

START = [sys.executable, "-c", "from evalkit.cli.serve import command; command()"]
NAME = "migration-reports-at-four-of-six"


def test_it_serves_until_it_is_stopped_and_says_how_far_the_work_came() -> None:
    process = subprocess.Popen(
        [*START, NAME, "--offer", "finish"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        head = [process.stdout.readline() for _ in range(5)]
        found = dict(re.findall(r"export (\w+)=(\S+)", "".join(head)))
        assert set(found) == {"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "EVALKIT_TOOLS_URL", "EVALKIT_MCP_URL"}
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
        assert httpx2.post(f"{found['ANTHROPIC_BASE_URL']}/v1/messages", json=body).status_code == 200
        assert httpx2.post(f"{found['EVALKIT_TOOLS_URL']}/list_items", json={}).json()["error"] is False
        assert httpx2.post(f"{found['OPENAI_BASE_URL']}/chat/completions", json={}).status_code == 400
    finally:
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=20)[0].splitlines()
    assert process.returncode == 0
    token = found["ANTHROPIC_BASE_URL"].rsplit("/", 1)[1]
    assert token not in "".join(rest)
    assert rest[:3] == [
        "   1  POST /v1/messages  200  turn 1: list_items  [0]",
        "   2  POST /tools/list_items  200  tool list_items: ok",
        "   3  POST /v1/chat/completions  400  refused: messages_missing",
    ]
    assert rest[3:] == [
        "1 turns; 0 of 6 items settled; the work is not complete",
        "1 refused requests; 1 dialect faults",
    ]


def test_what_is_wrong_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, part in (
            (["no-such-scenario"], "no-such-scenario"),
            (["partial_completion"], "name one of"),
            ([NAME, "--port", port], f"port {port}"),
        ):
            result = CliRunner().invoke(command, arguments)
            assert result.exit_code == 2
            assert part in result.output
            assert result.output.startswith("evalkit: ")


def test_without_the_extra_it_says_what_to_install() -> None:
    code = f"import sys; sys.modules['h11'] = None\nfrom evalkit.cli import main\nmain(['serve', '{NAME}'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "serve needs h11, which is not installed: pip install 'evalkit-endings[harness]'" in done.stderr
