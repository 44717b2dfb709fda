"""Recordings: nothing secret in them, the same answers from them, no network behind them."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

from evalkit.models.cassettes import (
    CassetteError,
    Missed,
    Origin,
    Playing,
    Tape,
    canonical,
    cassette_file,
    read_origin,
    write_origin,
)
from evalkit.models.transport import transport_class
from evalkit.secrets.bodies import clean_body

ORIGIN = Origin("scripted", "anthropic", False, True, "a test", "2026-11-30")
KEY = "sk-ant-api03-abcdefghijklmnop"


class Server(httpx2.BaseTransport):
    """Answers each request with its number; ``bodies`` are given in turn."""

    def __init__(self, *bodies: Any, headers: dict[str, str] | None = None) -> None:
        self.bodies = list(bodies)
        self.headers = headers or {}
        self.asked = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        body = self.bodies.pop(0) if self.bodies else {"n": self.asked}
        if isinstance(body, Exception):
            raise body
        if isinstance(body, list):
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Pieces(body))
        return httpx2.Response(200, headers=self.headers, json=body)


class Pieces(httpx2.SyncByteStream):
    def __init__(self, pieces: list[Any]) -> None:
        self.pieces = pieces

    def __iter__(self) -> Any:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece


def tape(folder: Path, *, record: bool, **fields: Any) -> Tape:
    return Tape(folder / "t.json", record=record, origin=ORIGIN, **fields)


def client(played: Tape, server: Server | None = None) -> httpx2.Client:
    return httpx2.Client(transport=transport_class()(Playing(played), server))


def ask(through: httpx2.Client, body: Any, **fields: Any) -> httpx2.Response:
    return through.post("http://127.0.0.1:9/e/some-token/v1/messages", json=body, **fields)


def test_what_was_recorded_is_replayed_and_shared(tmp_path: Path) -> None:
    recorded, server = tape(tmp_path, record=True), Server()
    assert ask(client(recorded, server), {"a": 1}).json() == {"n": 1}
    # Another strategy begins alike: the shared turn is not asked again.
    second = client(recorded, server)
    assert ask(second, {"a": 1}).json() == {"n": 1}
    assert ask(second, {"a": 2}).json() == {"n": 2}
    assert server.asked == 2
    recorded.save()
    replayed = client(tape(tmp_path, record=False))
    assert ask(replayed, {"a": 2}).json() == {"n": 2}
    assert ask(replayed, {"a": 1}).json() == {"n": 1}


def test_equal_requests_of_an_episode_come_in_recorded_order(tmp_path: Path) -> None:
    recorded = tape(tmp_path, record=True)
    through = client(recorded, Server())
    assert [ask(through, {"a": 1}).json()["n"] for _ in range(3)] == [1, 2, 3]
    recorded.save()
    for _ in range(2):
        through = client(tape(tmp_path, record=False))
        assert [ask(through, {"a": 1}).json()["n"] for _ in range(3)] == [1, 2, 3]


def test_equal_requests_that_are_used_up_say_so(tmp_path: Path) -> None:
    recorded = tape(tmp_path, record=True)
    ask(client(recorded, Server()), {"a": 1})
    recorded.save()
    playing = Playing(tape(tmp_path, record=False))
    through = httpx2.Client(transport=transport_class()(playing, None))
    ask(through, {"a": 1})
    with pytest.raises(Missed, match=r"t\.json has this request once, and the episode asks it once more"):
        ask(through, {"a": 1})


def test_the_order_of_keys_and_the_episodes_token_do_not_matter(tmp_path: Path) -> None:
    recorded = tape(tmp_path, record=True)
    ask(client(recorded, Server()), {"a": 1, "b": 2})
    recorded.save()
    through = client(tape(tmp_path, record=False))
    response = through.post("https://elsewhere.example/v1/messages?beta=true", content=b'{"b": 2, "a": 1}')
    assert response.json() == {"n": 1}


def test_a_miss_names_the_nearest_request_and_the_first_difference(tmp_path: Path) -> None:
    recorded = tape(tmp_path, record=True)
    through = client(recorded, Server())
    ask(through, {"messages": [{"role": "user", "content": "Do every item."}]})
    recorded.save()
    playing = Playing(tape(tmp_path, record=False))
    missing = httpx2.Client(transport=transport_class()(playing, None))
    with pytest.raises(Missed):
        ask(missing, {"messages": [{"role": "user", "content": "Do no item."}]})
    assert isinstance(playing.missed, Missed)
    said = str(playing.missed)
    assert 'at messages[0].content: recorded "Do every item.", asked "Do no item."' in said
    assert "nearest in t.json" in said


def test_replay_opens_no_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = tape(tmp_path, record=True)
    ask(client(recorded, Server()), {"a": 1})
    recorded.save()

    def refuse(*args: Any, **fields: Any) -> Any:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    assert ask(client(tape(tmp_path, record=False)), {"a": 1}).json() == {"n": 1}


def test_a_stream_replays_in_its_chunks_and_breaks_where_it_broke(tmp_path: Path) -> None:
    pieces = [b"event: a\ndata: {}\n", b"\nevent: b\nda", b"ta: {}\n\n"]
    broken = [*pieces, httpx2.ReadError("connection reset")]
    recorded = tape(tmp_path, record=True)
    through = client(recorded, Server(pieces, broken))

    def chunks(through: httpx2.Client, number: int) -> list[bytes]:
        with through.stream("POST", "http://m/v1/messages", json={"n": number}) as response:
            return list(response.iter_raw())

    assert chunks(through, 1) == pieces
    with pytest.raises(httpx2.RemoteProtocolError, match="connection reset"):
        chunks(through, 2)
    recorded.save()
    replayed = client(tape(tmp_path, record=False))
    assert chunks(replayed, 1) == pieces
    with pytest.raises(httpx2.RemoteProtocolError, match="connection reset"):
        chunks(replayed, 2)


def test_an_answer_that_never_came_is_recorded_too(tmp_path: Path) -> None:
    recorded = tape(tmp_path, record=True)
    through = client(recorded, Server(httpx2.ConnectError("refused"), {"ok": True}))
    with pytest.raises(httpx2.RemoteProtocolError, match="refused"):
        ask(through, {"a": 1})
    assert ask(through, {"a": 1}).json() == {"ok": True}
    recorded.save()
    replayed = client(tape(tmp_path, record=False))
    with pytest.raises(httpx2.RemoteProtocolError, match="refused"):
        ask(replayed, {"a": 1})
    assert ask(replayed, {"a": 1}).json() == {"ok": True}


def test_no_secret_reaches_the_disk(tmp_path: Path) -> None:
    secrets = {
        "header": "sk-ant-api03-HEADERHEADERHEADER",
        "bearer": "tok3nABCDEFGHIJKLMN",
        "body": "sk-proj-BODYBODYBODYBODY",
        "url": "URLTOKENURLTOKEN",
        "cookie": "COOKIECOOKIECOOKIE",
        "org": "org-ORGORGORGORGORG",
        "request": "req_REQREQREQREQREQ",
        "answer": "sk-ant-api03-ANSWERANSWERANSWER",
        "user": "device-1234567890",
        "known": "hunter2hunter2",
        "stream": "sk-ant-api03-STREAMSTREAMSTREAM",
    }
    answer = {"id": "msg_1", "request_id": secrets["request"], "text": f"your key is {secrets['answer']}"}
    events = [f'data: {{"text": "{secrets["stream"]} {secrets["known"]}"}}\n\n'.encode()]
    headers = {
        "set-cookie": secrets["cookie"],
        "openai-organization": secrets["org"],
        "request-id": secrets["request"],
        "anthropic-organization-id": secrets["org"],
    }
    recorded = tape(tmp_path, record=True, secrets=(secrets["known"],))
    through = client(recorded, Server(answer, events, headers=headers))
    for number in range(2):
        through.post(
            f"http://127.0.0.1:9/e/{secrets['url']}/v1/messages?key={secrets['url']}",
            headers={
                "x-api-key": secrets["header"],
                "authorization": f"Bearer {secrets['bearer']}",
                "cookie": secrets["cookie"],
            },
            json={
                "n": number,
                "metadata": {"user_id": secrets["user"]},
                "messages": [{"content": f"{secrets['body']} {secrets['known']} {secrets['org']}"}],
            },
        )
    recorded.save()
    written = (tmp_path / "t.json").read_text()
    assert [name for name, secret in secrets.items() if secret in written] == []
    assert '"msg_1' in written.replace('\\"', '"')


def test_ordinary_words_are_left_alone() -> None:
    body = {"text": "Ask Bearer of news; the user wrote sk-8.", "usage": {"input_tokens": 3}, "model": "m"}
    assert json.loads(clean_body(json.dumps(body))) == body


def test_many_threads_share_a_tape(tmp_path: Path) -> None:
    recorded = tape(tmp_path, record=True)
    server = Server()

    def work(number: int) -> None:
        through = client(recorded, server)
        for step in range(20):
            ask(through, {"thread": number, "step": step})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorded.save()
    assert len(tape(tmp_path, record=False)) == 160


def test_a_torn_cassette_is_named_and_saving_is_atomic(tmp_path: Path) -> None:
    recorded = tape(tmp_path, record=True)
    ask(client(recorded, Server()), {"a": 1})
    recorded.save()
    assert [file.name for file in tmp_path.iterdir()] == ["t.json"]
    whole = (tmp_path / "t.json").read_text()
    (tmp_path / "t.json").write_text(whole[: len(whole) // 2])
    with pytest.raises(CassetteError, match=r"t\.json: is no cassette"):
        tape(tmp_path, record=False)


@pytest.mark.parametrize(
    "content",
    [
        b'{"version": 1, "interactions": [{}]}',
        b'{"version": 1, "interactions": [{"request": {"method": 1, "uri": 2}, "response": {}}]}',
        b'{"version": 1, "interactions": 7}',
        b"[" * 20_000,
        b'{"version": 1, "interactions": [], "x": "\xa4"}',
        b"",
    ],
)
def test_what_is_no_cassette_is_neither_replayed_nor_recorded_over(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "t.json").write_bytes(content)
    for record in (False, True):
        with pytest.raises(CassetteError, match=r"t\.json: is no cassette") as caught:
            tape(tmp_path, record=record)
        assert len(str(caught.value).splitlines()) == 1
    assert (tmp_path / "t.json").read_bytes() == content
    assert caplog.text == ""


def test_a_cassette_says_where_it_comes_from(tmp_path: Path) -> None:
    write_origin(tmp_path, ORIGIN)
    assert read_origin(tmp_path) == ORIGIN
    recorded = tape(tmp_path, record=True)
    ask(client(recorded, Server()), {"a": 1})
    recorded.save()
    assert json.loads((tmp_path / "t.json").read_text())["metadata"]["origin"]["scripted"] is True
    with pytest.raises(CassetteError, match=r"holds no recordings"):
        read_origin(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["../../etc/passwd", "a[stop=null]", "..", "ü", "a/b"])
def test_a_file_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    file = cassette_file(tmp_path, name, 0)
    assert file.parent == tmp_path
    assert cassette_file(tmp_path, name, 3) != file


def test_what_is_asked_is_method_path_and_body() -> None:
    one = canonical("POST", "http://127.0.0.1:1/e/abc/v1/messages", b'{"b":1,"a":2}')
    assert one == 'POST /v1/messages\n{"a":2,"b":1}'
    assert one != canonical("POST", "http://h/v1/messages", b'{"b":1,"a":3}')
