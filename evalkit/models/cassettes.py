"""Recorded exchanges with a model: kept with vcrpy, found by what was asked, replayed as they came.

One cassette holds one scenario and seed. Strategies that share a prefix share its recorded turns. Within an
episode, equal requests get the recorded answers in their order. vcrpy's own patch is process-wide, so an
episode's client has a transport of its own that hands exchanges to vcrpy's stub; the names used are private
to vcrpy, a test holds them.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from evalkit import __version__
from evalkit.secrets.bodies import clean_body
from evalkit.secrets.cleaning import clean_text

INDEX = "cassettes.json"

#: Headers that say what an exchange is, and nothing of who made it. All others are left out.
REQUEST_HEADERS = frozenset(("content-type", "anthropic-version", "anthropic-beta", "openai-beta"))
RESPONSE_HEADERS = frozenset(("content-type", "retry-after"))
#: The prefix under which the scripted server keeps an episode.
_EPISODE = re.compile(r"^/e/[^/]+")


class CassetteError(ValueError):
    """A cassette, or a folder of them, that cannot be used; one line."""


class Missed(Exception):
    """What was asked is not recorded; the message has the nearest request and the first difference."""


class Origin(msgspec.Struct, frozen=True):
    """Where recordings come from. ``scripted``: evalkit's own server, never to be shown as a provider's.

    ``scenarios``, ``strategies`` and ``seeds`` are what was recorded, so that replay knows what to run;
    ``sources`` are the scenarios' files by name, from the folder of the recordings, and their digests.
    """

    model: str
    dialect: str
    streamed: bool
    scripted: bool
    recorded_from: str
    recorded_on: str
    scenarios: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    seeds: int = 1
    evalkit: str = __version__
    sources: dict[str, tuple[str, str]] = {}
    #: Turns of the probe, which asked too.
    probe: int = 0


def write_origin(folder: Path, origin: Origin) -> None:
    """Note where the recordings of a folder come from."""
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(origin), indent=1).decode() + "\n"
    _write(folder / INDEX, text)


def read_origin(folder: Path) -> Origin:
    """Where the recordings of a folder come from. CassetteError where it does not say."""
    try:
        return msgspec.json.decode((folder / INDEX).read_bytes(), type=Origin)
    except FileNotFoundError:
        raise CassetteError(f"{folder}: holds no recordings (no {INDEX})") from None
    except (OSError, msgspec.DecodeError) as error:
        raise CassetteError(f"{folder / INDEX}: cannot be read: {error}") from None


def cassette_file(folder: Path, scenario: str, seed: int) -> Path:
    """The file of a scenario and seed, whatever the scenario is called."""
    scenario = clean_text(scenario)
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", scenario).strip(".") or "scenario"
    if safe != scenario:
        safe += "-" + hashlib.blake2b(scenario.encode(), digest_size=4).hexdigest()
    return folder / (f"{safe}.json" if seed == 0 else f"{safe}@{seed}.json")


def canonical(method: str, url: str, body: bytes | str | None, known: tuple[str, ...] = ()) -> str:
    """What a request asks: its method, path and canonical body, without secrets."""
    return _asked(method, url, clean_body(body, known, canonical=True))


def _asked(method: str, url: str, clean: bytes | str | None) -> str:
    """The same of a body that is canonical already."""
    return f"{method} {_path(url)}\n{clean.decode() if isinstance(clean, bytes) else clean or ''}"


def _path(url: str) -> str:
    """The path alone: no host, no token, no query."""
    return _EPISODE.sub("", urlsplit(url).path) or "/"


def _headers(headers: Mapping[str, Any], allowed: frozenset[str]) -> dict[str, Any]:
    """The allowed headers, in order of their names."""
    kept = {name.lower(): value for name, value in headers.items() if name.lower() in allowed}
    return dict(sorted(kept.items()))


class _Asked(msgspec.Struct):
    method: str
    uri: str
    headers: dict[str, list[str]]
    body: str | None = None


class _Status(msgspec.Struct):
    code: Annotated[int, msgspec.Meta(ge=0, le=999)]
    message: str | None = None


class _Body(msgspec.Struct):
    string: str


class _Answered(msgspec.Struct):
    status: _Status
    headers: dict[str, list[str]]
    body: _Body


class _Exchange(msgspec.Struct):
    request: _Asked
    response: _Answered


class _Document(msgspec.Struct):
    """What a cassette's file holds, as far as it is used."""

    interactions: list[_Exchange]


def _check_shape(file: Path) -> None:
    """ValueError or OSError for a file that vcrpy would trip over, or take for an empty one."""
    if file.exists():
        msgspec.json.decode(file.read_bytes().decode(), type=_Document)


class Tape:
    """The cassette of one scenario and seed, shared by the episodes that play or record it.

    ``secrets`` are values that must never be written, whatever they look like.
    """

    def __init__(self, file: Path, *, record: bool, origin: Origin, secrets: tuple[str, ...] = ()) -> None:
        from vcr.cassette import Cassette
        from vcr.record_mode import RecordMode
        from vcr.serializers import jsonserializer

        self.file = file
        self.record = record
        self.secrets = secrets
        self.lock = threading.RLock()
        self._persister = _Persister
        self._cassette = Cassette(
            str(file),
            serializer=jsonserializer,
            persister=_Persister,
            record_mode=RecordMode.NEW_EPISODES if record else RecordMode.NONE,
            before_record_request=self._clean_request,
            before_record_response=self._clean_response,
        )
        try:
            _check_shape(file)
            self._cassette._load()
        except Exception as error:  # vcrpy uses what stands in a file as it is
            raise CassetteError(f"{file}: is no cassette: {' '.join(str(error).split())[:200]}") from None
        if record:
            self._cassette.get_metadata("origin", msgspec.to_builtins(origin))
        self._places: dict[str, list[int]] = {}
        for place, (request, _) in enumerate(self._cassette.data):
            self._places.setdefault(_asked(request.method, request.uri, request.body), []).append(place)

        if record:
            self._take_up()

    def __len__(self) -> int:
        return len(self._cassette.data)

    def save(self) -> None:
        """Write what was recorded; readers see the old file or the new one, never a part."""
        with self.lock:
            if self.record and self._cassette.dirty:
                self._cassette._save()
                self._journal.unlink(missing_ok=True)

    def answers_to(self, ask: str) -> list[int]:
        """The places of the recorded answers to what is asked, in recorded order."""
        return self._places.get(ask, [])

    def response(self, place: int) -> Any:
        """A recorded response in vcrpy's form."""
        return self._cassette.data[place][1]

    def exchange(self, place: int) -> tuple[Any, Any]:
        """A recorded request and response in vcrpy's form."""
        request, response = self._cassette.data[place]
        return request, response

    def append(self, ask: str, request: Any, response: Any) -> int:
        """Keep an exchange, and at once beside the cassette: what was paid for outlives a kill. Its place."""
        with self.lock:
            before = len(self._cassette.data)
            self._cassette.append(request, response)
            self._places.setdefault(ask, []).append(before)
            self._note(before)
            return before

    @property
    def _journal(self) -> Path:
        """Where exchanges stand, a line each, until the cassette is saved."""
        return self.file.with_name(f".{self.file.name}.part")

    def _note(self, place: int) -> None:
        from vcr.serializers import jsonserializer

        request, response = self._cassette.data[place]
        text = _serialized({"requests": [request], "responses": [response]}, jsonserializer)
        self._journal.parent.mkdir(parents=True, exist_ok=True)
        with self._journal.open("a", encoding="utf-8") as out:
            out.write(json.dumps(json.loads(text)) + "\n")

    def _take_up(self) -> None:
        """Go on with what a killed recording had noted; its last line may be torn."""
        from vcr.serialize import deserialize
        from vcr.serializers import jsonserializer

        try:
            lines = self._journal.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return
        for line in lines:
            try:
                requests, responses = deserialize(line, jsonserializer)[:2]
            except (ValueError, KeyError, TypeError):
                continue
            for request, response in zip(requests, responses, strict=True):
                ask = _asked(request.method, request.uri, request.body)
                self._places.setdefault(ask, []).append(len(self._cassette.data))
                self._cassette.append(request, response)
        self.save()

    def nearest(self, ask: str) -> str:
        """The nearest recorded request and the first difference, in one line."""
        best, shared = "", -1
        for known in self._places:
            length = _shared(known, ask)
            if length > shared:
                best, shared = known, length
        if not best:
            return f"{self.file.name} holds no request"
        return f"nearest in {self.file.name}: {_difference(best, ask)}"

    # What may be kept

    def _clean_request(self, request: Any) -> Any:
        from vcr.request import Request

        body = clean_body(request.body, self.secrets, canonical=True)
        headers = _headers(request.headers, REQUEST_HEADERS)
        return Request(request.method, f"http://model{_path(request.uri)}", body, headers)

    def _clean_response(self, response: Any) -> Any:
        headers = _headers(response["headers"], RESPONSE_HEADERS | _MARKS)
        body = clean_body(response["body"]["string"], self.secrets).encode()
        return {**response, "headers": headers, "body": {"string": body}}


#: Headers in which a recording keeps how a body came: the sizes of its chunks, and whether it broke off.
CHUNKS, BROKE = "x-evalkit-chunks", "x-evalkit-broke"
_MARKS = frozenset((CHUNKS, BROKE))


class _Persister:
    """vcrpy's persister, but atomic."""

    @staticmethod
    def load_cassette(path: str, serializer: Any) -> Any:
        from vcr.persisters.filesystem import FilesystemPersister

        return FilesystemPersister.load_cassette(path, serializer)

    @staticmethod
    def save_cassette(path: str, content: Any, serializer: Any) -> None:
        _write(Path(path), _serialized(content, serializer))


def _serialized(content: Any, serializer: Any) -> str:
    """A cassette's text. vcrpy turns bodies into text in place, and what is played must stay bytes."""
    from vcr.serialize import serialize

    return str(serialize({**content, "responses": copy.deepcopy(content["responses"])}, serializer))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        os.replace(temporary, file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _difference(known: str, asked: str) -> str:
    """Where two canonical requests differ first."""
    head_known, _, body_known = known.partition("\n")
    head_asked, _, body_asked = asked.partition("\n")
    if head_known != head_asked:
        return f"recorded {head_known}, asked {head_asked}"
    try:
        place, was, now = _first(json.loads(body_known), json.loads(body_asked), "")
    except (ValueError, RecursionError):
        return "the bodies differ"
    return f"at {place or 'the body'}: recorded {was}, asked {now}"


def _first(known: Any, asked: Any, place: str) -> tuple[str, str, str]:
    if isinstance(known, dict) and isinstance(asked, dict):
        for key in sorted({*known, *asked}):
            inner = f"{place}.{key}" if place else key
            if key not in known or key not in asked:
                return inner, _shown(known.get(key, "nothing")), _shown(asked.get(key, "nothing"))
            if known[key] != asked[key]:
                return _first(known[key], asked[key], inner)
    if isinstance(known, list) and isinstance(asked, list):
        for at, (one, other) in enumerate(zip(known, asked, strict=False)):
            if one != other:
                return _first(one, other, f"{place}[{at}]")
        return f"{place}[{min(len(known), len(asked))}]", f"{len(known)} elements", f"{len(asked)}"
    return place, _shown(known), _shown(asked)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:79] + "…"


class Playing:
    """One episode's way through a tape, in the form that vcrpy's stub asks of a cassette.

    ``asks_anyway``: what is on the tape is asked again and not kept twice; for a server that must follow.
    """

    def __init__(self, tape: Tape, *, asks_anyway: bool = False) -> None:
        self.tape = tape
        self.asks_anyway = asks_anyway
        self.missed: Missed | None = None
        self._played: Counter[str] = Counter()
        self._last: tuple[Any, str] = (None, "")

    def can_play_response_for(self, request: Any) -> bool:
        return not self.asks_anyway and self._on_tape(self._ask(request))

    def _on_tape(self, ask: str) -> bool:
        return self._played[ask] < len(self.tape.answers_to(ask))

    def play_response(self, request: Any) -> Any:
        ask = self._ask(request)
        place = self.tape.answers_to(ask)[self._played[ask]]
        self._played[ask] += 1
        return self.tape.response(place)

    @property
    def write_protected(self) -> bool:
        return not self.tape.record

    def filter_request(self, request: Any) -> Any:
        """Asked by the stub before it refuses a request: here is what was missed."""
        ask = self._ask(request)
        times = len(self.tape.answers_to(ask))
        if times:
            often = "once" if times == 1 else f"{times} times"
            said = f"{self.tape.file.name} has this request {often}, and the episode asks it once more"
        else:
            said = self.tape.nearest(ask)
        self.missed = Missed(f"replay miss: {said}")
        raise self.missed

    def append(self, request: Any, response: Any) -> None:
        ask = self._ask(request)
        if not self._on_tape(ask):
            self.tape.append(ask, request, response)
        self._played[ask] += 1

    def _ask(self, request: Any) -> str:
        """What a request asks; the stub shows each one several times."""
        if self._last[0] is not request:
            ask = canonical(request.method, request.uri, request.body, self.tape.secrets)
            self._last = request, ask
        return self._last[1]
