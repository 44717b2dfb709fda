"""A harness that is a service which already runs: one POST a job, its answer is the ending.

evalkit neither starts nor ends it. What it works in is its own; it cannot be killed and started again.
"""

from __future__ import annotations

import http.client
import json
import secrets
import threading
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from evalkit.harnesses.command import Deadline, Over, parse_ending
from evalkit.harnesses.endings import Finished, Then, is_over
from evalkit.harnesses.manifest import Harness
from evalkit.harnesses.pinned_environment import Environment

_TICK = 0.02
_LARGEST = 1 << 20


class ServiceRunner:
    """Posts jobs to a service, one after the other.

    A job is an object of the variables of an episode with a ``conversation`` of its own; what follows it (the
    user's next message, a person's decisions) is another POST with that conversation.
    """

    def __init__(self, harness: Harness, environment: Environment, seconds: float | None = None) -> None:
        self._seconds = seconds or harness.manifest.time_limit_s
        self._url = urlsplit(harness.manifest.service or "")
        self._stopped = Event()

    def run(self, told: dict[str, str], over: Over, then: Then = is_over) -> Finished:
        name = {"conversation": secrets.token_hex(8)}
        finished = self._post({**told, **name}, over)
        while (further := then(finished)) is not None:
            finished = self._post({**further.line, **name}, over)
        return finished

    def _post(self, job: dict[str, Any], over: Over) -> Finished:
        """One request; given up where the episode is over before it is answered."""
        deadline = Deadline(self._seconds, over, self._stopped)
        connection = http.client.HTTPConnection(
            self._url.hostname or "", self._url.port, timeout=self._seconds
        )
        answers: list[Finished] = []
        thread = threading.Thread(target=self._answer, args=(connection, job, answers), daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                passed = deadline.passed(0)
                if passed is not None:
                    return passed
                thread.join(_TICK)
        finally:
            connection.close()
        return answers[0]

    def _answer(
        self, connection: http.client.HTTPConnection, job: dict[str, Any], box: list[Finished]
    ) -> None:
        place = self._url.path or "/"
        try:
            headers = {"content-type": "application/json"}
            connection.request("POST", place, json.dumps(job).encode(), headers)
            answer = connection.getresponse()
            raw = answer.read(_LARGEST + 1)
        except (OSError, http.client.HTTPException, ValueError) as error:
            said = " ".join(str(error).split()) or type(error).__name__
            box.append(Finished(problem=f"the service does not answer: {said}"))
            return
        if answer.status != 200:
            box.append(Finished(problem=f"the service answered {answer.status}"))
            return
        box.append(Finished(parse_ending(raw)))

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        """Nothing was started."""
