"""Gateways on loopback, each in an environment of its own (``make gateways``), before the scripted server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

FOLDER = Path(__file__).parents[2] / ".cache" / "gateways"
MODEL = "gpt-scripted"
#: Seconds that a gateway gets to begin.
PATIENCE = 180.0

LITELLM, LM_PROXY, PORTKEY = "litellm", "lm-proxy", "portkey"
PROGRAMS = {
    LITELLM: FOLDER / "litellm" / "bin" / "litellm",
    LM_PROXY: FOLDER / "lmproxy" / "bin" / "lm-proxy",
    PORTKEY: FOLDER / "portkey" / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def gateway(name: str, upstream: str, folder: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """A gateway before ``upstream``: its URL for ``--base-url``, and the headers that it wants."""
    port, program = free_port(), PROGRAMS[name]
    assert program.exists(), f"{program} is not there: make gateways"
    headers: tuple[str, ...] = ()
    if name == LITELLM:
        parameters = {"model": f"openai/{MODEL}", "api_base": f"{upstream}/v1", "api_key": "none"}
        claude = {"model": "anthropic/claude-scripted", "api_base": upstream, "api_key": "none"}
        config = {
            "model_list": [
                {"model_name": MODEL, "litellm_params": parameters},
                {"model_name": "claude-scripted", "litellm_params": claude},
            ],
            "litellm_settings": {"num_retries": 0, "telemetry": False},
        }
        (folder / "litellm.yaml").write_text(yaml.safe_dump(config))
        words = [str(program), "--config", str(folder / "litellm.yaml"), "--host", "127.0.0.1"]
        words += ["--port", str(port)]
    elif name == LM_PROXY:
        (folder / "lm-proxy.toml").write_text(
            f'host = "127.0.0.1"\nport = {port}\n[connections.scripted]\napi_type = "open_ai"\n'
            f'api_base = "{upstream}/v1/"\napi_key = "none"\n[routing]\n"*" = "scripted.*"\n'
            '[groups.default]\napi_keys = ["none"]\n'
        )
        words = [str(program), "--config", str(folder / "lm-proxy.toml")]
    else:
        words = ["node", str(program), f"--port={port}", "--headless"]
        headers = ("x-portkey-provider: openai", f"x-portkey-custom-host: {upstream}/v1")
    environment = {
        **{key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ},
        "HOME": str(folder),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
        "TRUSTED_CUSTOM_HOSTS": "127.0.0.1",
        "NO_PROXY": "*",
        "DO_NOT_TRACK": "1",
    }
    with (folder / "gateway.log").open("wb") as log:
        process = subprocess.Popen(
            words, stdout=log, stderr=log, cwd=folder, env=environment, start_new_session=True
        )
    try:
        _until_it_answers(port, process, folder / "gateway.log")
        yield f"http://127.0.0.1:{port}", headers
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _until_it_answers(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"ended with {process.returncode}: {log.read_text()[-2000:]}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"did not begin within {PATIENCE:.0f} s: {log.read_text()[-2000:]}")
