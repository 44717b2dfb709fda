"""Which answers of tools are failures: by exit codes and fields, else by what tools print."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import pytest

from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_paths
from tests.transcripts.shared import trajectories

FAILED = (
    "Error: no such record",
    "Process exited with code 2\nWall time: 0.3 seconds\nOutput:\nusage: tool [-h]",
    "exitcode: 1 (execution failed)\nCode output: oops",
    '{"output":"1 failed","metadata":{"exit_code":1,"duration_seconds":0.2}}',
    '{"success": false, "message": "seat taken"}',
    '{"error": "rate limited"}',
    '{"status": "error", "detail": "x"}',
    '{"status": 503, "body": ""}',
    "<returncode>1</returncode>\n<output>\nno\n</output>",
    "bash: pyhton: command not found",
    "ls: cannot access 'out': No such file or directory",
    "cat: notes.md: No such file or directory",
    "fatal: not a git repository (or any of the parent directories): .git",
    "error: pathspec 'fix' did not match any file(s) known to git",
    "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyError: 'x'",
    "collected 3 items\n\ntest_a.py .F.\n\n=== 1 failed, 2 passed in 0.10s ===",
    "running 4 tests\ntest result: FAILED. 3 passed; 1 failed\nerror: test failed, to rerun pass `--lib`",
    "src/main.rs:3:5\nerror: could not compile `tool` (bin) due to 1 previous error",
    "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1",
    "make: *** [Makefile:7: all] Error 2",
    "psql: error: connection to server failed: Connection refused",
    "curl: (6) Could not resolve host: api.example",
    "Permission denied (publickey).",
    "HTTP 404: page not found",
    "403 Client Error: Forbidden for url",
    "ModuleNotFoundError: No module named 'yaml'",
    "The string to replace was not found in the file.",
    "Command timed out after 120 seconds",
    "Tool call rejected by the user",
    "panic: runtime error: index out of range [3] with length 3",
    "unzip:  cannot find or open out.zip, out.zip.zip or out.zip.ZIP.",
    "FAIL src/app.test.ts\n  ● renders\n\nTests:       1 failed, 4 passed, 5 total",
    "Your proposed edit has introduced new syntax error(s). Please read this error message",
    "strings: 'a.img': No such file",
    "Wrong password!",
)
FINE = (
    "",
    "ok",
    "alpha: new",
    "Process exited with code 0\nWall time: 0.1 seconds\nOutput:\nError handling is in errors.py",
    "exitcode: 0 (execution succeeded)\nCode output: WARNING: ffmpeg not found",
    '{"success": true, "errors": []}',
    '{"error": null, "items": [1]}',
    '{"id": 1, "name": "Error log", "status": "cancelled"}',
    '{"status": "confirmed", "total": 3}',
    '{"status": 200, "body": "x"}',
    "[File: errors.py (10 lines total)]\n1:class NotFoundError(Exception):\n2:    pass",
    "def fail(message):\n    raise ValueError(message)",
    "=== 214 passed in 3.2s ===",
    "Tests:       5 passed, 5 total",
    "No errors found.",
    "0 errors, 2 warnings",
    "src/errors.ts:12: export function failed(reason: string) {",
    "README.md\nsetup.py\ntests/",
    "On branch main\nnothing to commit, working tree clean",
    'Found 3 matches for "Error" in /repo',
    "Script completed successfully, no errors. Result: True",
    "diff --git a/x.py b/x.py\n+    raise KeyError(name)",
    "2026-01-01 12:00 INFO started\n2026-01-01 12:01 INFO error rate 0.0",
    "The order was placed. It cannot be changed after noon.",
    "42",
    "{}",
    "[]",
    "total 8\n-rw-r--r-- 1 a a 12 failed_jobs.csv",
    "<returncode>0</returncode>\n<output>\n</output>",
    'Title: How to fix "command not found" in bash',
    "user 12 failed over to node b; traffic is normal\nlast check: ok",
    "Successfully installed yaml-1.0",
    "Compiling tool v0.1.0\nFinished dev profile in 2.1s",
    "HTTP/1.1 200 OK",
    "None",
)


@pytest.mark.parametrize("text", FAILED)
def test_a_failure_is_known(text: str) -> None:
    assert looks_failed(text)


@pytest.mark.parametrize("text", FINE)
def test_a_success_is_no_failure(text: str) -> None:
    assert not looks_failed(text)


SAMPLE = Path(__file__).parent / "failure_sample.csv"


def test_the_answers_of_real_tools(capsys: pytest.CaptureFixture[str]) -> None:
    """All answers of the shared recordings, labelled by hand; the rules were fitted to them."""
    folder = trajectories()
    with SAMPLE.open(newline="") as file:
        labels = {row["digest"]: row["failed"] == "1" for row in csv.DictReader(file)}
    counts = {(failed, read): 0 for failed in (True, False) for read in (True, False)}
    for found in read_paths([folder]):
        for step in () if isinstance(found, Problem) else found.steps:
            for result in step.results:
                text = result.text.encode("utf-8", "surrogatepass")
                failed = labels.pop(hashlib.blake2b(text, digest_size=8).hexdigest(), None)
                if failed is not None:
                    counts[failed, looks_failed(result.text)] += 1
    assert not labels
    failures, successes = (counts[kind, True] + counts[kind, False] for kind in (True, False))
    with capsys.disabled():
        print(f"\nfailed answers: {counts[True, True]} of {failures} known", end="")
        print(f", {counts[False, True]} of {successes} successes taken for one", end="")
    assert counts[True, True] >= 0.9 * failures
    assert counts[False, True] <= 0.02 * successes
