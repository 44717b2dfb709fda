"""opencode as a whole program: opencode serve, asked over its API. The task's tools come by MCP.

It has no hook at its end; the variant asks again in the same session while listed items are open.
"""

import json
import os
import re
import subprocess
import urllib.parse
import urllib.request
from functools import cache

from evalkit_harness import Result, serve


@cache
def server():
    """The address of this process's one server, which ends with it: to start it takes seconds."""
    program = f"{os.environ['EVALKIT_NODE_MODULES']}/opencode-linux-x64/bin/opencode"
    command = [program, "serve", "--port", "0"]
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    for line in running.stdout:
        if found := re.search(r"http://\S+", line):
            return found[0]
    raise RuntimeError(f"opencode serve: exit {running.wait()}")


def asking(folder):
    """What asks the server about a folder: a path, and a body where something is told."""

    def ask(path, body=None):
        data = None if body is None else json.dumps(body).encode()
        where = urllib.parse.urlencode({"directory": folder})
        request = urllib.request.Request(
            f"{server()}{path}?{where}", data, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    return ask


def run(job):
    provider = {"options": {"baseURL": f"{job.anthropic_url}/v1"}, "models": {job.model: {}}}
    settings = {
        "provider": {"anthropic": provider},
        "mcp": {"work": {"type": "remote", "url": job.mcp_url}},
    }
    with open("opencode.json", "w") as file:
        json.dump(settings, file)
    ask, model = asking(job.folder), {"providerID": "anthropic", "modelID": job.model}
    messages = f"/session/{ask('/session', {})['id']}/message"

    def say(words):
        said = ask(messages, {"model": model, "parts": [{"type": "text", "text": words}]})["info"]
        print(json.dumps(said))
        return "error" if "error" in said else said.get("finish", "no finish")

    native = say(job.prompt)
    while job.variant == "session" and native != "error" and (items := still_open(job, ask(messages))):
        native = say(f"Still open: {', '.join(items)}")
    ask("/instance/dispose", {})
    return native


def still_open(job, messages):
    """What is open; the calls went from opencode to the tools' server, and stand in its messages."""
    job.calls = []
    for part in (part for message in messages for part in message["parts"] if part["type"] == "tool"):
        result = Result(part["state"].get("output", ""))
        result.error = part["state"]["status"] != "completed"
        job.calls.append((part["tool"].removeprefix("work_"), part["state"]["input"], result))
    return job.still_open()


serve(run)
