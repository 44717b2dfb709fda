"""The limiter: what headers say, and how long a request waits. No test sleeps: time is the test's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from evalkit.models.pacing import PATIENCE, Pace, left_of, retry_after, seconds_of

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("6m0s", 360.0),
        ("1h2m3.5s", 3723.5),
        ("250ms", 0.25),
        ("2027-01-15T08:00:10Z", 10.0),
        ("Fri, 15 Jan 2027 08:00:30 GMT", 30.0),
        ("1800000005", 5.0),
        ("1800000005000", 5.0),
        ("soon", None),
        ("", None),
    ],
)
def test_a_span_of_time_as_headers_write_it(text: str, seconds: float | None) -> None:
    found = seconds_of(text, NOW)
    assert found == (None if seconds is None else pytest.approx(seconds))


def test_milliseconds_come_before_seconds() -> None:
    assert retry_after({"retry-after": "5", "retry-after-ms": "1200"}, NOW) == 1.2
    assert retry_after({"retry-after": "5"}, NOW) == 5.0
    assert retry_after({}, NOW) is None


@pytest.mark.parametrize(
    "headers",
    [
        {
            "anthropic-ratelimit-requests-remaining": "3",
            "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:10Z",
        },
        {"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "10s"},
        {"ratelimit-remaining": "3", "ratelimit-reset": "10"},
    ],
)
def test_what_is_left_in_each_providers_words(headers: dict[str, str]) -> None:
    assert left_of(headers, NOW) == [("requests", 3, pytest.approx(10.0))]


class Response:
    def __init__(self, status: int, headers: dict[str, str] | None = None, body: Any = None) -> None:
        self.status_code = status
        self.headers = headers or {}
        self.body = json.dumps(body or {}).encode()
        self.closed = False

    async def aread(self) -> bytes:
        return self.body

    async def aclose(self) -> None:
        self.closed = True


class Clock:
    """Time that goes on only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = NOW
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def sent(
    answers: list[Response], most: int = 4, requests: int = 1
) -> tuple[list[Response], Clock, Pace, list[int]]:
    """What so many requests in a row get, with answers in turn."""
    clock, waited = Clock(), list[int]()
    pace = Pace(most, lambda status, seconds: waited.append(status), clock=clock, sleep=clock.sleep)

    def asking() -> Callable[[], Awaitable[Response]]:
        async def ask() -> Response:
            return answers.pop(0)

        return ask

    async def run() -> list[Response]:
        return [await pace.send(asking()) for _ in range(requests)]

    return asyncio.run(run()), clock, pace, waited


def test_a_refusal_is_waited_out_for_as_long_as_it_says() -> None:
    (got,), clock, _, waited = sent([Response(429, {"retry-after": "3"}), Response(529), Response(200)])
    assert got.status_code == 200
    assert waited == [429, 529]
    # Three seconds as it said, then two of its own, and a tenth more at most so that not all come at once.
    assert 5.0 <= clock.now - NOW <= 5.6


def test_waiting_ends_where_it_would_take_too_long() -> None:
    (got,), clock, _, waited = sent([Response(429, {"retry-after": str(PATIENCE + 1)})])
    assert (got.status_code, waited, clock.slept) == (429, [], [])


def test_what_no_waiting_mends_is_handed_on() -> None:
    body = {"error": {"type": "insufficient_quota", "message": "see your plan and billing details"}}
    (got,), clock, _, waited = sent([Response(429, {"retry-after": "1"}, body)])
    assert (got.status_code, waited, clock.slept) == (429, [], [])


def test_503_is_waited_out_only_where_it_says_when_to_come_again() -> None:
    assert sent([Response(503), Response(200)])[0][0].status_code == 503
    assert sent([Response(503, {"retry-after": "1"}), Response(200)])[0][0].status_code == 200


def test_where_nothing_is_left_the_next_request_waits_until_there_is() -> None:
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s"}
    got, clock, _, waited = sent([Response(200, headers), Response(200)], requests=2)
    assert [response.status_code for response in got] == [200, 200]
    assert clock.now - NOW == pytest.approx(20.0)
    assert waited == []


def test_a_date_that_jumps_holds_nothing_up_and_lets_nothing_through() -> None:
    """A day back, a day on: what was said in seconds is waited out by the clock that does not jump."""
    for jump in (-86_400.0, 86_400.0):
        clock, dates = Clock(), iter([NOW, NOW + jump, NOW + jump])
        pace = Pace(4, clock=clock, date=lambda dates=dates: next(dates), sleep=clock.sleep)  # type: ignore[misc]
        answers = [Response(429, {"retry-after": "3"}), Response(200), Response(200)]

        async def ask(answers: list[Response] = answers) -> Response:
            return answers.pop(0)

        async def run(pace: Pace = pace, ask: Callable[[], Awaitable[Response]] = ask) -> list[Response]:
            return [await pace.send(ask) for _ in range(2)]

        assert [response.status_code for response in asyncio.run(run())] == [200, 200]
        assert 3.0 <= clock.now - NOW <= 3.5


def test_no_more_are_under_way_than_allowed() -> None:
    under_way, most = 0, 0

    async def ask() -> Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(5):
            await asyncio.sleep(0)
        under_way -= 1
        return Response(200)

    async def run() -> None:
        clock = Clock()
        pace = Pace(3, clock=clock, sleep=clock.sleep)
        await asyncio.gather(*(pace.send(ask) for _ in range(20)))

    asyncio.run(run())
    assert most == 3


def test_who_waits_for_another_to_end_does_not_look_again_and_again() -> None:
    clock = Clock()

    async def ask() -> Response:
        for _ in range(5):
            await asyncio.sleep(0)
        return Response(200)

    async def run() -> list[Response]:
        pace = Pace(1, clock=clock, sleep=clock.sleep)
        return await asyncio.gather(*(pace.send(ask) for _ in range(20)))

    assert len(asyncio.run(run())) == 20
    assert clock.slept == []


def test_all_who_wait_are_let_through_after_a_refusal() -> None:
    answers = [Response(429, {"retry-after": "1"}), Response(429), *(Response(200) for _ in range(20))]
    clock = Clock()

    async def ask() -> Response:
        await asyncio.sleep(0)
        return answers.pop(0)

    async def run() -> list[Response]:
        pace = Pace(4, clock=clock, sleep=clock.sleep)
        return await asyncio.gather(*(pace.send(ask) for _ in range(20)))

    assert {response.status_code for response in asyncio.run(asyncio.wait_for(run(), 10))} == {200}
