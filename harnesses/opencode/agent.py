"""opencode as a whole program: opencode run. The task's tools come by MCP.

It has no hook at its end; the variant runs it again in its session while listed items are open.
"""

import json
import os
import subprocess

from evalkit_harness import Result, serve


def run(job):
    provider = {"options": {"baseURL": f"{job.anthropic_url}/v1"}, "models": {job.model: {}}}
    settings = {
        "provider": {"anthropic": provider},
        "mcp": {"work": {"type": "remote", "url": job.mcp_url}},
    }
    program = f"{os.environ['EVALKIT_NODE_MODULES']}/opencode-linux-x64/bin/opencode"

    def ask(*words):
        done = subprocess.run(
            [program, "run", "--format", "json", "--model", f"anthropic/{job.model}", *words],
            env={**os.environ, "OPENCODE_CONFIG_CONTENT": json.dumps(settings)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        print(done.stdout)
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        for event in events:
            note(job, event)
        said = [
            event["part"]["reason"] if event["type"] == "step_finish" else event["type"] for event in events
        ]
        return said[-1] if said else f"exit {done.returncode}"

    native = ask(job.prompt)
    while job.variant == "continue" and native != "error" and (items := job.still_open()):
        native = ask("--continue", f"Still open: {', '.join(items)}")
    return native


def note(job, event):
    """Keep what was called, which went from opencode to the tools' server."""
    if event["type"] == "tool_use":
        state = event["part"]["state"]
        result = Result(state.get("output", ""))
        result.error = state["status"] != "completed"
        job.calls.append((event["part"]["tool"].removeprefix("work_"), state["input"], result))


serve(run)
