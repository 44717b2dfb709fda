"""OpenAI's Codex CLI as a whole program: codex exec. The task's tools are commands of its shell.

The variant has a Stop hook, which is this file again: it blocks the end while listed items are open.
"""

import json
import os
import shlex
import subprocess
import sys

from evalkit_harness import Job, Result, serve

OPEN = "Still open: "


def run(job):
    told = "\n".join(f"{tool['name']} {tool['input_schema']}: {tool['description']}" for tool in job.tools)
    provider = {"name": "evalkit", "base_url": job.openai_url, "env_key": "OPENAI_API_KEY"}
    settings = {"model_provider": "evalkit", "allow_login_shell": False}
    settings |= {f"model_providers.evalkit.{key}": value for key, value in provider.items()}
    command = ["codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access"]
    for key, value in settings.items():
        command += ["--config", f"{key}={json.dumps(value)}"]
    if job.variant == "stop_hook":
        hook = json.dumps(shlex.join([sys.executable, __file__, "stop"]))
        command += ["--config", f'hooks.Stop=[{{hooks=[{{type="command",command={hook}}}]}}]']
        # Without it a hook waits for somebody who trusts it.
        command += ["--dangerously-bypass-hook-trust"]
    prompt = f"The task's tools are commands: evalkit-tool NAME JSON.\n\n{job.prompt}\n\n{told}"
    command += ["--model", job.model, prompt]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return events[-1]["type"] if events else f"exit {done.returncode}"


def stop(job):
    """What the hook answers: of what was called and where it blocked before, the transcript tells."""
    commands = {}
    with open(json.load(sys.stdin)["transcript_path"]) as transcript:
        for line in transcript:
            said = json.loads(line)["payload"]
            if said.get("type") == "function_call":
                commands[said["call_id"]] = said["arguments"]
            elif said.get("type") == "function_call_output" and "Process exited" in said["output"]:
                _, name, arguments = shlex.split(json.loads(commands[said["call_id"]])["cmd"])
                result = Result(said["output"].partition("Output:\n")[2])
                result.error = "exited with code 0" not in said["output"]
                job.calls.append((name, json.loads(arguments), result))
            elif said.get("type") == "message" and OPEN in str(said["content"]):
                job.still_open()
    items = job.still_open()
    return {"decision": "block", "reason": OPEN + ", ".join(items)} if items else {}


if sys.argv[1:] == ["stop"]:
    print(json.dumps(stop(Job(dict(os.environ)))))
else:
    serve(run)
