"""opencode as a whole program: opencode run. The task's tools come by MCP."""

import json
import os
import subprocess

from evalkit_harness import serve


def run(job):
    provider = {"options": {"baseURL": f"{job.anthropic_url}/v1"}, "models": {job.model: {}}}
    settings = {
        "provider": {"anthropic": provider},
        "mcp": {"work": {"type": "remote", "url": job.mcp_url}},
    }
    program = f"{os.environ['EVALKIT_NODE_MODULES']}/opencode-linux-x64/bin/opencode"
    done = subprocess.run(
        [program, "run", "--format", "json", "--model", f"anthropic/{job.model}", job.prompt],
        env={**os.environ, "OPENCODE_CONFIG_CONTENT": json.dumps(settings)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    print(done.stdout)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    said = [event["part"]["reason"] if event["type"] == "step_finish" else event["type"] for event in events]
    return said[-1] if said else f"exit {done.returncode}"


serve(run)
