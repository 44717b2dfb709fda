"""The server: its paths, its guard, many episodes at once, clients that vanish."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import resource
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from evalkit.stage.stage import NeverEnds, Stage
from evalkit.wire.episode import WireEpisode
from evalkit.wire.replies import Reply
from evalkit.wire.server import Server
from tests.wire.wire import WORK, episode, stage

BODY: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "go"}]}
KEY = "sk-ant-a-key-that-is-nobody-s"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(max_body=200_000) as running:
        yield running


def served(server: Server, model: Any = WORK) -> tuple[str, WireEpisode]:
    played = episode(model)
    return server.url(server.add(played)), played


# Paths


def test_it_listens_on_loopback_only(server: Server) -> None:
    assert server._server is not None
    assert {listening.getsockname()[0] for listening in server._server.sockets} == {"127.0.0.1"}


@pytest.mark.parametrize("path", ["/", "/e/", "/e/nobody/v1/messages", "/v1/messages", "/e/nobody/tools"])
def test_without_an_episode_s_token_there_is_nothing(server: Server, path: str) -> None:
    assert httpx2.post(f"http://127.0.0.1:{server.port}{path}", json=BODY).status_code == 404


def test_a_removed_episode_is_gone(server: Server) -> None:
    token = server.add(episode())
    server.remove(token)
    assert httpx2.post(f"{server.url(token)}/v1/messages", json=BODY).status_code == 404


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/messages"), ("POST", "/v1/embeddings"), ("PUT", "/x")]
)
def test_unknown_requests_are_answered_in_the_api_s_shape(server: Server, method: str, path: str) -> None:
    url, played = served(server)
    response = httpx2.request(method, url + path, json=BODY)
    assert response.status_code == 404
    assert response.json()["error"]["message"].startswith("Unknown request")
    assert played.turns == 0


def test_head_and_models_are_answered(server: Server) -> None:
    url, _ = served(server)
    assert httpx2.head(url).status_code == 200
    assert httpx2.get(f"{url}/v1/models").json()["data"] == []


def test_an_oversized_body_is_refused(server: Server) -> None:
    url, played = served(server)
    big = {**BODY, "system": "x" * 300_000}
    assert httpx2.post(f"{url}/v1/messages", json=big).status_code == 413
    whole = json.dumps(big).encode()
    chunks = (whole[place : place + 10_000] for place in range(0, len(whole), 10_000))
    try:
        status = httpx2.post(f"{url}/v1/messages", content=chunks).status_code
    except httpx2.TransportError:
        # The server may have hung up before the client had said it all.
        status = 413
    assert status == 413
    assert played.turns == 0, "it would have been a request as any other"


def resident() -> int:
    """MB of memory that are in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_it_was_sent_is_not_kept() -> None:
    """A hundred and fifty MB in new conversations, too large or not: its memory stays where it was."""
    with Server(max_body=3_000_000) as server:
        url, _ = served(server)
        before = 0
        for number in range(60):
            text = f"{number} " + "x" * (2_000_000 if number % 2 else 3_500_000)
            body = {**BODY, "messages": [{"role": "user", "content": text}]}
            with contextlib.suppress(httpx2.TransportError):
                httpx2.post(f"{url}/v1/messages", json=body)
            if number == 10:
                before = resident()
        assert resident() - before < 35


def test_a_taken_port_is_an_error(server: Server) -> None:
    with pytest.raises(OSError, match=r"."), Server(port=server.port):
        pass


@pytest.mark.parametrize(
    "junk", [b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nhost: a\r\n\r\n", b"A" * 80_000]
)
def test_junk_is_survived(server: Server, junk: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(junk)
        raw.shutdown(socket.SHUT_WR)
        raw.settimeout(5)
        while True:
            try:
                if not raw.recv(65536):
                    break
            except ConnectionError:
                break
    url, _ = served(server)
    assert httpx2.post(f"{url}/v1/messages", json=BODY).status_code == 200


def test_a_received_key_is_kept_nowhere() -> None:
    lines: list[str] = []

    def log(token: str, method: str, path: str, reply: Reply) -> None:
        lines.append(f"{method} {path} {reply.status} {reply.said}")

    with Server(log=log) as running:
        url, played = served(running)
        client = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0)
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "go"}])
        httpx2.post(f"{url}/v1/messages", json={}, headers={"x-api-key": KEY})
        kept = repr((vars(running), vars(played), vars(played.seen), played.memory, lines))
    assert KEY not in kept
    assert len(lines) == 2


# The end of an episode


def test_evalkit_s_cap_ends_the_episode_for_good(server: Server) -> None:
    played = episode([{"repeat": {"times": "forever", "do": [{"call": "list_items"}]}}])
    played.script.cap = 1  # type: ignore[attr-defined]
    url = server.url(server.add(played))
    assert httpx2.post(f"{url}/v1/chat/completions", json=BODY).status_code == 200
    for _ in range(2):
        response = httpx2.post(
            f"{url}/v1/chat/completions", json={**BODY, "messages": [BODY["messages"][0]] * 2}
        )
        assert (response.status_code, response.json()["error"]["message"]) == (400, "The episode is over.")
    assert isinstance(played.failure, NeverEnds)


# Many at once


@pytest.mark.long
def test_episodes_side_by_side_do_not_mix(server: Server) -> None:
    async def one(number: int) -> list[str]:
        items = [f"item-{number}-{place}" for place in range(3)]
        played = WireEpisode(stage(WORK, world={"items": items}))
        url = server.url(server.add(played))
        client = anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0)
        said: list[Any] = [{"role": "user", "content": "go"}]
        done = []
        async with client:
            while True:
                message = await client.messages.create(model="m", max_tokens=50, messages=said)
                calls = [block for block in message.content if block.type == "tool_use"]
                done.extend(str(call.input["item"]) for call in calls if call.name == "do_item")
                said.append({"role": "assistant", "content": message.content})
                if calls:
                    results = [
                        {"type": "tool_result", "tool_use_id": call.id, "content": "ok"} for call in calls
                    ]
                    said.append({"role": "user", "content": results})
                elif "All" in message.content[0].text:  # type: ignore[union-attr]
                    return done
                else:
                    said.append({"role": "user", "content": "Continue."})

    async def all_of_them() -> list[list[str]]:
        return await asyncio.gather(*(one(number) for number in range(12)))

    for number, done in enumerate(asyncio.run(all_of_them())):
        assert done == [f"item-{number}-{place}" for place in range(3)]


def test_a_move_advances_once_under_many_equal_requests(server: Server) -> None:
    url, played = served(server)

    async def burst() -> list[str]:
        async with httpx2.AsyncClient() as client:
            headers = {"x-stainless-retry-count": "1"}
            jobs = [client.post(f"{url}/v1/messages", json=BODY, headers=headers) for _ in range(20)]
            return [response.json()["id"] for response in await asyncio.gather(*jobs)]

    assert set(asyncio.run(burst())) == {"msg_000001"}
    assert played.turns == 1


def test_a_slow_world_does_not_hold_up_the_others(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = episode(), episode()
    slow.blocking = True
    going, go = threading.Event(), threading.Event()
    ask = Stage.ask

    def waits(stage: Stage, request: Any) -> Any:
        if stage is slow.script:
            going.set()
            assert go.wait(10)
        return ask(stage, request)

    monkeypatch.setattr(Stage, "ask", waits)
    urls = [server.url(server.add(played)) for played in (slow, quick)]
    answers: list[int] = []
    thread = threading.Thread(
        target=lambda: answers.append(
            httpx2.post(f"{urls[0]}/v1/messages", json=BODY, timeout=20).status_code
        )
    )
    thread.start()
    assert going.wait(10)
    assert httpx2.post(f"{urls[1]}/v1/messages", json=BODY).status_code == 200
    go.set()
    thread.join()
    assert answers == [200]


# Clients that vanish


def request_bytes(url: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    path = url.split("/", 3)[3]
    head = f"POST /{path}/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content


def abandon(server: Server, url: str, times: int) -> None:
    """Ask for a stream and go away without reading it, at once or when it has begun."""
    asked = request_bytes(url, {**BODY, "stream": True})
    for number in range(times):
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(asked)
            if number % 2:
                raw.recv(1)


def settled(server: Server, played: WireEpisode, requests: int) -> bool:
    """Whether all requests came and no client is left; gives the loop the turns it needs."""
    assert server._loop is not None
    for _ in range(2000):
        if played.seen.requests >= requests and not server.connections:
            return True
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.002), server._loop).result()
    return False


@pytest.mark.long
def test_a_thousand_abandoned_streams_leave_nothing_behind() -> None:
    with Server() as running:
        url, played = served(running)
        abandon(running, url, 50)
        assert settled(running, played, 50)
        assert running._loop is not None
        tasks = len(asyncio.all_tasks(running._loop))
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        gc.collect()
        objects = len(gc.get_objects())
        abandon(running, url, 1000)
        assert settled(running, played, 1050)
        gc.collect()
        assert len(asyncio.all_tasks(running._loop)) <= tasks
        assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
        assert len(gc.get_objects()) - objects < 500
        assert httpx2.post(f"{url}/v1/messages", json=BODY).status_code == 200
        assert played.turns < 10
        assert played.seen.repeated > 1000


def test_an_answer_nobody_read_is_given_again(server: Server) -> None:
    url, played = served(server)
    abandon(server, url, 1)
    assert settled(server, played, 1)
    message = httpx2.post(f"{url}/v1/messages", json=BODY).json()
    assert (message["id"], played.turns) == ("msg_000001", 1)


def test_a_client_that_leaves_before_its_body_is_whole_is_no_request(server: Server) -> None:
    url, played = served(server)
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(request_bytes(url, BODY)[:-5])
    assert settled(server, played, 0)
    assert played.seen.requests == 0


def test_stopping_ends_what_is_under_way() -> None:
    with Server() as running:
        url, _ = served(running, [{"fault": {"stall_s": 60}}])
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        errors: list[Exception] = []

        def ask() -> None:
            try:
                client.responses.create(model="m", input="go")
            except openai.APIConnectionError as error:
                errors.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        while not running.connections:
            pass
    thread.join(10)
    assert len(errors) == 1
