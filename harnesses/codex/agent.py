"""OpenAI's Codex CLI as a whole program: codex exec. The task's tools are commands of its shell."""

import json
import subprocess

from evalkit_harness import serve


def run(job):
    told = "\n".join(f"{tool['name']} {tool['input_schema']}: {tool['description']}" for tool in job.tools)
    provider = {"name": "evalkit", "base_url": job.openai_url, "env_key": "OPENAI_API_KEY"}
    settings = {"model_provider": "evalkit", "allow_login_shell": False}
    settings |= {f"model_providers.evalkit.{key}": value for key, value in provider.items()}
    command = ["codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access"]
    for key, value in settings.items():
        command += ["--config", f"{key}={json.dumps(value)}"]
    prompt = f"The task's tools are commands: evalkit-tool NAME JSON.\n\n{job.prompt}\n\n{told}"
    command += ["--model", job.model, prompt]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return events[-1]["type"] if events else f"exit {done.returncode}"


serve(run)
