"""Each fault is delivered: the real SDKs see it, streamed and not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from evalkit.core.tasks import Offered
from evalkit.models.clients import Opening, connect
from evalkit.scenarios.moves import FaultSpec
from evalkit.scoring.arena import Arena
from evalkit.wire.dialects import DIALECTS, Dialect
from evalkit.wire.episode import WireEpisode
from evalkit.wire.expressible import unsayable
from evalkit.wire.faults import fault_reply
from evalkit.wire.server import Server
from tests.helpers import scenario
from tests.wire.wire import stage

FAULTS: dict[str, dict[str, Any]] = {
    "http_429": {"status": 429},
    "http_500": {"status": 500},
    "http_529": {"status": 529},
    "cut_before_headers": {"cut": "before_headers"},
    "cut_mid_body": {"cut": "mid_body"},
    "cut_mid_stream": {"cut": "mid_stream"},
    "cut_no_end": {"cut": "no_end"},
    "body_malformed": {"body": "malformed"},
    "body_error_event": {"body": "error_event"},
    "stall": {"stall_s": 30},
}
STREAM_ONLY = ("cut_mid_stream", "cut_no_end", "body_error_event")
OPENING = Opening("Work.", "Do every item.")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def served(server: Server, fault: dict[str, Any]) -> tuple[str, WireEpisode]:
    played = WireEpisode(stage([{"fault": fault}, {"say": "Done.", "claim": "done"}]))
    return server.url(server.add(played)), played


def test_all_labels_are_here() -> None:
    assert {FaultSpec(**fields).label for fields in FAULTS.values()} == set(FAULTS)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("label", FAULTS)
def test_a_fault_reaches_the_client_and_the_retry_its_answer(
    server: Server, dialect: Dialect, label: str, streamed: bool
) -> None:
    url, played = served(server, FAULTS[label])
    model = connect(dialect, url, OPENING, streamed=streamed, timeout=0.3 if label == "stall" else 5.0)
    answer = model.ask(_request())
    assert answer.turn.kind == "failed"
    seen = answer.turn.native
    if label in STREAM_ONLY and not streamed:
        assert seen == "cut_mid_body"
        assert f"{label}: only a stream can break so" in played.seen.inexpressible
    elif label == "cut_mid_body" and streamed:
        assert seen == "cut_mid_stream"
    else:
        assert seen == label
    again = model.ask(_request(again=True))
    assert (again.turn.text, again.turn.kind) == ("Done.", "content")
    assert played.turns == 1


def _request(*, again: bool = False) -> Any:
    from evalkit.core.requests import Request

    return Request(again=again)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_rate_limit_says_when_to_come_back(server: Server, dialect: Dialect) -> None:
    url, _ = served(server, FAULTS["http_429"])
    body = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "go"}], "input": "go"}
    path = {"anthropic": "/v1/messages", "responses": "/v1/responses", "chat": "/v1/chat/completions"}[
        dialect
    ]
    response = httpx2.post(url + path, json=body)
    assert (response.status_code, response.headers["retry-after"]) == (429, "1")


def test_the_sdks_raise_their_own_errors(server: Server) -> None:
    said: Any = [{"role": "user", "content": "go"}]
    for status, error in (
        (429, anthropic.RateLimitError),
        (529, anthropic.OverloadedError),
        (500, anthropic.InternalServerError),
    ):
        url, _ = served(server, {"status": status})
        client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
        with pytest.raises(error):
            client.messages.create(model="m", max_tokens=10, messages=said)
    for status, kind in ((429, openai.RateLimitError), (500, openai.InternalServerError)):
        url, _ = served(server, {"status": status})
        with pytest.raises(kind):
            openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0).responses.create(
                model="m", input="go"
            )


def test_the_sdks_own_retries_get_through(server: Server) -> None:
    said: Any = [{"role": "user", "content": "go"}]
    url, played = served(server, {"status": 429, "times": 2})
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=2)
    assert client.messages.create(model="m", max_tokens=10, messages=said).content[0].type == "text"
    assert (played.turns, played.seen.requests, played.seen.repeated) == (1, 3, 0)


def test_a_client_that_gives_up_on_a_stall_leaves_the_server_well(server: Server) -> None:
    url, _ = served(server, FAULTS["stall"])
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(f"{url}/v1/responses", json={"model": "m", "input": "go"}, timeout=0.05)
    assert httpx2.post(f"{url}/v1/responses", json={"model": "m", "input": "go"}).status_code == 200


def test_a_stall_ends_by_itself() -> None:
    with Server(stall_scale=0.001) as quick:
        url, _ = served(quick, FAULTS["stall"])
        with pytest.raises(httpx2.RemoteProtocolError):
            httpx2.post(f"{url}/v1/responses", json={"model": "m", "input": "go"}, timeout=5)


def test_an_unknown_fault_is_an_error() -> None:
    for streamed in (False, True):
        with pytest.raises(ValueError, match="unknown fault 'cut_elsewhere'"):
            fault_reply("chat", "cut_elsewhere", streamed=streamed)


def test_what_only_a_stream_can_have_is_not_expressible_without_one() -> None:
    for label, fault in FAULTS.items():
        (sample,) = Arena(scenario([{"fault": fault}]), Offered()).player.samples()
        for dialect in DIALECTS:
            assert unsayable(dialect, sample.turn, streamed=True) is None
            assert (unsayable(dialect, sample.turn, streamed=False) is not None) == (label in STREAM_ONLY)
