"""Background responses: queued, polled, streamed, cancelled."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from evalkit.wire.episode import WireEpisode
from evalkit.wire.server import Server
from tests.wire.wire import episode

MODEL = [{"background": {"polls": 3}}, {"say": "Done.", "claim": "done"}]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def client(server: Server, played: WireEpisode) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url(server.add(played))}/v1", api_key="none", max_retries=0)


def test_it_is_queued_then_in_progress_then_there(server: Server) -> None:
    played = episode(MODEL)
    sdk = client(server, played)
    response = sdk.responses.create(model="m", input="go", background=True)
    states = [response.status]
    while response.status in ("queued", "in_progress"):
        response = sdk.responses.retrieve(response.id)
        states.append(response.status)
    assert states == ["queued", "in_progress", "in_progress", "completed"]
    assert (response.output_text, played.turns) == ("Done.", 1)
    assert sdk.responses.retrieve(response.id).output_text == "Done."
    assert (
        sdk.responses.create(model="m", input="more", previous_response_id=response.id).status == "completed"
    )


def test_a_stream_stays_open_and_can_be_taken_up_again(server: Server) -> None:
    played = episode(MODEL)
    sdk = client(server, played)
    events = list(sdk.responses.create(model="m", input="go", background=True, stream=True))
    kinds = [event.type for event in events]
    assert kinds[:3] == ["response.created", "response.queued", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert events[0].type == "response.created"
    rest = list(sdk.responses.retrieve(events[0].response.id, stream=True, starting_after=3))
    assert [event.sequence_number for event in rest] == [event.sequence_number for event in events[4:]]


def test_a_queued_response_can_be_streamed_later(server: Server) -> None:
    sdk = client(server, episode(MODEL))
    response = sdk.responses.create(model="m", input="go", background=True)
    kinds = [[event.type for event in sdk.responses.retrieve(response.id, stream=True)] for _ in range(3)]
    assert kinds[0] == ["response.created", "response.queued"]
    assert kinds[2][-1] == "response.completed"


def test_a_cancelled_response_stays_so_and_the_script_goes_on(server: Server) -> None:
    played = episode(MODEL)
    sdk = client(server, played)
    response = sdk.responses.create(model="m", input="go", background=True)
    assert sdk.responses.cancel(response.id).status == "cancelled"
    assert sdk.responses.retrieve(response.id).status == "cancelled"
    assert sdk.responses.cancel(response.id).status == "cancelled"
    assert played.turns == 0
    assert sdk.responses.create(model="m", input="go").output_text == "Done."


def test_what_is_complete_cannot_be_cancelled(server: Server) -> None:
    sdk = client(server, episode([{"say": "Done."}]))
    response = sdk.responses.create(model="m", input="go", background=True)
    assert response.status == "completed"
    with pytest.raises(openai.BadRequestError):
        sdk.responses.cancel(response.id)


def test_an_unknown_response_is_not_found(server: Server) -> None:
    sdk = client(server, episode(MODEL))
    for ask in (sdk.responses.retrieve, sdk.responses.cancel):
        with pytest.raises(openai.NotFoundError):
            ask("resp_000009")


def test_who_does_not_ask_for_the_background_waits(server: Server) -> None:
    played = episode(MODEL)
    assert client(server, played).responses.create(model="m", input="go").output_text == "Done."
    assert played.seen.inexpressible == {"an answer in the background, not asked for": 1}


def test_a_fault_while_polling_is_delivered_and_the_poll_repeated(server: Server) -> None:
    model = [{"background": {"polls": 1}}, {"fault": {"status": 500}}, {"say": "Done."}]
    sdk = client(server, episode(model))
    response = sdk.responses.create(model="m", input="go", background=True)
    with pytest.raises(openai.InternalServerError):
        sdk.responses.retrieve(response.id)
    assert sdk.responses.retrieve(response.id).output_text == "Done."


@pytest.mark.parametrize("label", ["failed", "cancelled"])
def test_a_response_that_failed_is_no_turn(server: Server, label: str) -> None:
    played = episode([{"say": "So far", "stop": label}, {"say": "Done."}])
    sdk = client(server, played)
    assert sdk.responses.create(model="m", input="go").status == label
    assert played.turns == 0
    assert sdk.responses.create(model="m", input="go").output_text == "Done."
