"""How fast a provider is asked: one limiter for all episodes of a run.

It reads what providers say of their limits: ``retry-after`` (seconds, milliseconds, a date) and the headers
for what is left and when it is there again (``anthropic-ratelimit-…``, ``x-ratelimit-…``, ``ratelimit-…``). A
refusal for want of capacity (429, 529, and 503 that says when to come again) is waited out here, so that it
is no fault of an episode; what waiting does not mend (a quota that is used up) is handed on.
"""

from __future__ import annotations

import asyncio
import collections
import datetime
import email.utils
import json
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

#: Refusals for want of capacity.
BUSY = frozenset((429, 529))
#: Seconds that a request is kept waiting in all, at most.
PATIENCE = 900.0
#: Seconds of the first wait where a provider does not say how long, and of the longest.
FIRST, LONGEST = 1.0, 60.0
#: What names a refusal that no waiting mends.
_FINAL = re.compile(r"insufficient_quota|billing|credit balance|exceeded your current quota", re.IGNORECASE)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(text: str, now: float) -> float | None:
    """A span of time as headers write it: seconds, ``1m30s``, or a moment; None where it is neither."""
    text = text.strip()
    try:
        value = float(text)
    except ValueError:
        pass
    else:
        # Some write the moment, in seconds or milliseconds since 1970.
        return value / 1000 - now if value > 1e11 else value - now if value > 1e9 else value
    parts = _SPAN.findall(text)
    if parts and "".join(f"{amount}{unit}" for amount, unit in parts) == text:
        return sum(float(amount) * _UNITS[unit] for amount, unit in parts)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(text)
        except ValueError:
            return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.timestamp() - now


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds after which a provider wants to be asked again; None where it does not say."""
    exact = headers.get("retry-after-ms", "")
    if re.fullmatch(r"\d+(\.\d+)?", exact):
        return float(exact) / 1000
    said = seconds_of(headers.get("retry-after", ""), now)
    return max(0.0, said) if said is not None else None


def left_of(headers: Mapping[str, str], now: float) -> list[tuple[str, int, float]]:
    """What is left of each limit: its name, how much, and the seconds until it is whole again."""
    found = []
    for name, value in headers.items():
        kind = re.fullmatch(
            r"(anthropic-ratelimit-|x-ratelimit-|ratelimit-)(?:(.+)-)?remaining(?:-(.+))?", name.lower()
        )
        if kind is None or not re.fullmatch(r"\d+", value.strip()):
            continue
        family, before, after = kind.groups()
        what = before or after or ""
        reset = (f"{family}{what}-reset", f"{family}reset-{what}", f"{family}reset")
        said = next((headers[key] for key in reset if key in headers), "")
        seconds = seconds_of(said, now)
        if seconds is not None:
            found.append((what or "requests", int(value), max(0.0, seconds)))
    return found


class Pace:
    """Lets requests through as fast as a provider takes them. It lives in one event loop.

    ``most`` is how many may be under way at once. ``waited`` is told of each refusal that was waited out: the
    status and the seconds. ``clock`` never goes back; ``date``, seconds since the epoch, may jump; a moment
    in a header is held against it.
    """

    def __init__(
        self,
        most: int,
        waited: Callable[[int, float], None] = lambda status, seconds: None,
        *,
        clock: Callable[[], float] = time.monotonic,
        date: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.most = most
        self.requests = 0
        self._waited = waited
        self._clock = clock
        self._date = date
        self._sleep = sleep
        self._width = float(most)
        self._under_way = 0
        #: Those that wait for one under way to end.
        self._queue: collections.deque[asyncio.Future[None]] = collections.deque()
        #: No request goes out before this moment.
        self._closed_until = 0.0
        #: Requests that may still go out before the moment at which a limit is whole again.
        self._left: dict[str, tuple[float, float]] = {}
        self._refused_in_a_row = 0
        self._jitter = random.Random()

    async def send(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """A response, asked for when its turn has come, and again where it must be waited out."""
        began = self._clock()
        while True:
            await self._turn()
            try:
                response = await ask()
            finally:
                self._under_way -= 1
                self._call_next()
            wait = await self._heard(response)
            if wait is None or self._clock() + wait - began > PATIENCE:
                return response
            await response.aclose()
            self._waited(response.status_code, wait)

    async def _turn(self) -> None:
        while True:
            now = self._clock()
            wait = self._closed_until - now
            for name, (left, whole) in list(self._left.items()):
                if whole <= now:
                    del self._left[name]
                elif left < 1:
                    wait = max(wait, whole - now)
            if wait > 0:
                await self._sleep(min(wait, 1.0))
            elif self._under_way >= max(1, int(self._width)):
                free = asyncio.get_running_loop().create_future()
                self._queue.append(free)
                await free
            else:
                break
        self._under_way += 1
        self.requests += 1
        self._left = {
            name: (left - (name == "requests"), whole) for name, (left, whole) in self._left.items()
        }

    def _call_next(self) -> None:
        """Wake as many as there is room for; each looks for itself whether it may go."""
        for _ in range(min(len(self._queue), max(1, int(self._width)) - self._under_way)):
            free = self._queue.popleft()
            if not free.done():
                free.set_result(None)

    async def _heard(self, response: Any) -> float | None:
        """Take note of what a response says of limits; the seconds to wait where it is asked for again."""
        now, date, headers = self._clock(), self._date(), response.headers
        status = response.status_code
        for name, left, seconds in left_of(headers, date):
            # Those under way are not counted by a provider that answers before it has seen them.
            allowed = left - self._under_way if name == "requests" else left
            if name == "requests" or left == 0:
                self._left[name] = (float(allowed), now + seconds)
            else:
                self._left.pop(name, None)
        said = retry_after(headers, date)
        if status not in BUSY and not (status == 503 and said is not None):
            self._refused_in_a_row = 0
            self._width = min(float(self.most), self._width + 1 / max(1.0, self._width))
            return None
        body = await response.aread()
        if _is_final(body):
            return None
        self._refused_in_a_row += 1
        self._width = max(1.0, self._width / 2)
        wait = said if said is not None else min(LONGEST, FIRST * 2.0 ** min(self._refused_in_a_row - 1, 10))
        wait += self._jitter.uniform(0, 0.1 * wait + 0.01)
        self._closed_until = max(self._closed_until, now + wait)
        return wait


def _is_final(body: bytes) -> bool:
    text = body[:4096].decode("utf-8", "replace")
    try:
        error = json.loads(text).get("error")
        text = json.dumps(error)
    except (ValueError, AttributeError):
        pass
    return _FINAL.search(text) is not None
