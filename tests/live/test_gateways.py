"""What a live run sees through gateways is what it sees of the scripted server, or it says what not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.core.tasks import Offered
from evalkit.scenarios.loader import load_text
from evalkit.scoring.arena import Arena
from evalkit.wire.episode import WireEpisode
from evalkit.wire.server import Server
from tests.helpers import document
from tests.live.gateways import LITELLM, LM_PROXY, MODEL, PORTKEY, gateway

SCRIPT: list[Any] = [
    {"call": "list_items"},
    {"work": 1},
    {"say": "1 of 3 is done; two remain.", "claim": "partial"},
    {"work": "rest"},
    {"say": "All items have been done.", "claim": "done"},
]


def played(
    folder: Path, url: str, headers: tuple[str, ...], model: str, *, streamed: bool
) -> tuple[dict[str, Any], str]:
    """The summary of one live episode of ``acceptance``, and what the terminal said."""
    (folder / "s.yaml").write_text(yaml.safe_dump(document(SCRIPT), sort_keys=False))
    words = ["run", str(folder / "s.yaml"), "-s", "acceptance", "--no-charts", "--out", str(folder / "out")]
    words += ["--model", model, "--base-url", url, "--max-tokens", "1000000"]
    words += [word for header in headers for word in ("--header", header)] + ["--stream"] * streamed
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads((folder / "out" / "summary.json").read_text())
    return found, result.output


def outcome(summary: dict[str, Any]) -> tuple[dict[str, int], float]:
    row = summary["rows"][0]
    return row["outcomes"], row["turns"]


@pytest.fixture
def server() -> Any:
    with Server() as running:
        yield running


def upstream(server: Server) -> str:
    """Where the scripted server plays one episode of the script."""
    (loaded,) = load_text(yaml.safe_dump(document(SCRIPT), sort_keys=False), "s.yaml")
    return server.url(server.add(WireEpisode(Arena(loaded, Offered()).stage(0, trace=False))))


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


WANTED = ({"done/complete": 1}, 6.0)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("model", ["openai-chat:any", "openai:any", "anthropic:any"])
def test_the_scripted_server_itself_without_a_key(
    tmp_path: Path, server: Server, model: str, streamed: bool
) -> None:
    summary, _ = played(tmp_path, upstream(server), (), model, streamed=streamed)
    assert outcome(summary) == WANTED
    assert summary["spending"]["counted_by"] == {"provider": 6}


#: What each gateway lets through, in the versions that ``make gateways`` sets up. Portkey's cannot stream
#: under Node 20 (it changes headers that are immutable there). lm-proxy takes no assistant turn that has
#: calls and no text, and its streams leave calls out.
SEEN = {
    (LITELLM, False): WANTED,
    (LITELLM, True): WANTED,
    (PORTKEY, False): WANTED,
    (PORTKEY, True): ({"error/incomplete": 1}, 0.0),
    (LM_PROXY, False): ({"error/incomplete": 1}, 1.0),
    (LM_PROXY, True): ({"escalated/incomplete": 1}, 4.0),
}


@pytest.mark.gateway
@pytest.mark.parametrize(("name", "streamed"), SEEN)
def test_chat_through_a_gateway(tmp_path: Path, server: Server, name: str, streamed: bool) -> None:
    with gateway(name, upstream(server), tmp_path) as (url, headers):
        summary, said = played(tmp_path, url, headers, f"openai-chat:{MODEL}", streamed=streamed)
    assert outcome(summary) == SEEN[name, streamed]
    counted = summary["spending"]["counted_by"]
    if name == LM_PROXY:
        # It hands on no usage.
        assert counted["counter"] == outcome(summary)[1]
        assert "came without their usage" in said
    elif SEEN[name, streamed] == WANTED:
        assert counted == {"provider": 6}


@pytest.mark.gateway
@pytest.mark.parametrize("streamed", [False, True])
def test_messages_through_litellm(tmp_path: Path, server: Server, streamed: bool) -> None:
    with gateway(LITELLM, upstream(server), tmp_path) as (url, _):
        summary, _ = played(tmp_path, url, (), "anthropic:claude-scripted", streamed=streamed)
    assert outcome(summary) == WANTED
    assert summary["spending"]["counted_by"] == {"provider": 6}
