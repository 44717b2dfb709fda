"""Recorded HTTP: cassettes of vcrpy (YAML, JSON), ruby-vcr and go-vcr, of nock and Polly, HAR files.

Exchanges with an API of models, in their order, are conversations; those of one run are put together
(:mod:`evalkit.transcripts.joined_requests`). Other requests stand between them and are passed over.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import IO, Any

import yaml

from evalkit.transcripts.documents import Broken, decode
from evalkit.transcripts.formats.request_logs import exchange
from evalkit.transcripts.formats.streams import answer_in, unpacked
from evalkit.transcripts.problems import ODD, Found, Problem, problem_of
from evalkit.transcripts.recording import Recording, Unreadable
from evalkit.transcripts.source import Source
from evalkit.wire.answers import BrokenStream, encode_json, listed, mapped

#: The largest YAML document that is read, in bytes.
MAX_YAML = 64_000_000

_LISTS = ("interactions", "http_interactions", "episodes")
_POLL = re.compile(r"/responses/(resp_\w+)")
_MODELS = re.compile(
    r"/(?:chat/completions|completions|messages|responses(?:/resp_\w+)?|converse(?:-stream)?|invoke(?:-with-response-stream)?|"
    r"[^/]*:(?:generateContent|streamGenerateContent)|api/chat|chat)(?:$|[?#])",
)


def is_cassette(value: Any) -> bool:
    """A cassette: a list of interactions of a request and a response, or a HAR log of entries."""
    return any(True for _ in _pairs(value))


def load_yaml(file: IO[bytes], size: int) -> Any:
    """A YAML document as plain values; whatever its tags say, nothing is made of them."""
    if size > MAX_YAML:
        raise Unreadable(f"is one YAML document of {size:,} bytes; at most {MAX_YAML:,}")
    try:
        return yaml.load(file.read(), Loader=_loader())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise Unreadable(f"is no YAML: {where}{getattr(error, 'problem', None) or error}"[:200]) from None
    except RecursionError:
        raise Unreadable("is nested too deep") from None


def _loader() -> Any:
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Plain(base):  # type: ignore[misc]
        """Safe, and blind to tags that it does not know."""

    def plain(loader: Any, suffix: str, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(node)

    Plain.add_multi_constructor("!", plain)
    Plain.add_multi_constructor("tag:yaml.org,2002:python/", plain)
    Plain.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node))
    return Plain


def recordings(value: Any, source: Source) -> Iterator[Found]:
    """The exchanges of a cassette with an API of models, each a recording; later ones of a run replace it."""
    held: dict[str, list[Any]] = {}
    pending: dict[str, tuple[dict[str, Any], str]] = {}
    found = others = 0
    for number, (asked, answered) in enumerate(_pairs(value), 1):
        place = f"exchange {number}"
        at = Source(source.file, place)
        method, url = str(asked.get("method") or "post").lower(), _url(asked)
        try:
            request = _json(_body(asked))
            poll = _POLL.search(url)
            if method == "get" and poll is not None and poll[1] in pending:
                request = pending[poll[1]][0]
            elif not _MODELS.search(url) and not (
                isinstance(request, dict) and ("messages" in request or "contents" in request)
            ):
                others += 1
                continue
            if not isinstance(request, dict):
                others += 1
                if method == "post" and _MODELS.search(url):
                    yield Problem(source.file, place, "is a request to a model without its body")
                    found += 1
                continue
            for item in _one(request, answered, at, held, pending):
                found += 1
                yield item
        except ODD as error:
            found += 1
            yield problem_of(at, error)
    for name in pending:
        found += 1
        yield Problem(source.file, name, "is a background answer whose end was not recorded")
    if not found:
        raise Unreadable(
            f"holds no request to a model ({others} other requests)" if others else "holds no exchange"
        )


def _one(
    request: dict[str, Any],
    answered: dict[str, Any],
    source: Source,
    held: dict[str, list[Any]],
    pending: dict[str, tuple[dict[str, Any], str]],
) -> Iterator[Found]:
    request = _continued(request, held)
    error: Any = None
    response: Any = None
    try:
        response = answer_in(_body(answered))
    except BrokenStream as broken:
        error = {"message": f"stream: {broken}"}
    status = _status(answered)
    told = mapped(response)
    if response is None and error is None:
        raise Unreadable(
            "has an answer that nobody can read" if _body(answered) else "has no answer recorded"
        )
    if status >= 400 or (status == 0 and told.get("error") and not told.get("status")):
        inner = mapped(told.get("error"))
        name = inner.get("type") or inner.get("code") or told.get("type") or told.get("message")
        error, response = {"message": f"{status} {name or ''}".strip()}, None
    name = str(told.get("id") or "")
    if name and told.get("object") == "response":
        if told.get("status") in ("queued", "in_progress"):
            # The answer of a background request is asked for later.
            pending[name] = request, ""
            return
        pending.pop(name, None)
        given = request.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else listed(given)
        held[name] = [*items, *listed(told.get("output"))]
    read: Recording = exchange(request, response, source, "", error, "http-cassette")
    yield read


def _continued(request: dict[str, Any], held: dict[str, list[Any]]) -> dict[str, Any]:
    """A request with the items that the server held for it."""
    before = held.get(str(request.get("previous_response_id")))
    if before is None:
        return request
    given = request.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else listed(given)
    return {**request, "input": [*before, *items]}


def _pairs(value: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Request and response of each exchange, whoever recorded it."""
    given = mapped(value)
    entries: list[Any] = []
    for name in _LISTS:
        if isinstance(given.get(name), list):
            entries = given[name]
    if not entries and isinstance(mapped(given.get("log")).get("entries"), list):
        entries = given["log"]["entries"]
    if not entries and isinstance(value, list):
        entries = value
    if not entries and "request" in given and "response" in given and _url(mapped(given["request"])):
        entries = [given]
    for entry in entries:
        inner = mapped(entry)
        asked, answered = inner.get("request"), inner.get("response")
        if isinstance(asked, dict) and isinstance(answered, dict) and (_url(asked) or "body" in asked):
            yield asked, answered
        elif "scope" in inner and "path" in inner and "response" in inner:
            # nock: the fields of request and response side by side.
            yield (
                {
                    "method": inner.get("method"),
                    "uri": f"{inner['scope']}{inner['path']}",
                    "body": inner.get("body"),
                },
                {"status": inner.get("status"), "body": inner["response"]},
            )


def _url(asked: dict[str, Any]) -> str:
    return str(asked.get("uri") or asked.get("url") or "")


def _status(answered: dict[str, Any]) -> int:
    status = answered.get("status", answered.get("status_code", answered.get("code")))
    if isinstance(status, dict):
        status = status.get("code")
    if isinstance(status, str):
        status = status.split()[0] if status.split() else ""
        return int(status) if status.isdigit() else 0
    return status if isinstance(status, int) else 0


def _body(side: dict[str, Any]) -> bytes:
    """The body of a request or a response as bytes, in whichever field it is."""
    body = side.get("body", side.get("content"))
    body = mapped(side.get("postData")) if body is None and "postData" in side else body
    body = side.get("parsed_body") if body is None else body
    if isinstance(body, dict) and body.keys() <= _WRAPPER:
        if "base64_string" in body:
            return _base64(str(body["base64_string"]))
        if body.get("encoding") == "base64" and isinstance(body.get("text"), str):
            return _base64(body["text"])
        body = body.get("string", body.get("text"))
    if (
        isinstance(body, list)
        and body
        and all(isinstance(part, str) and _HEX.fullmatch(part) for part in body)
    ):
        return b"".join(bytes.fromhex(part) for part in body)
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        if _HEX.fullmatch(body[:200]) and len(body) % 2 == 0 and body.startswith("1f8b"):
            return bytes.fromhex(body)
        return body.encode("utf-8", "surrogatepass")
    return b"" if body is None else encode_json(body)


#: Fields of an object that only wraps a body.
_WRAPPER = frozenset(
    ("string", "base64_string", "text", "encoding", "mimeType", "size", "compression", "params")
)
_HEX = re.compile(r"[0-9a-f]+")


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""


def _json(body: bytes) -> Any:
    if not body:
        return None
    try:
        return decode(unpacked(body))
    except Broken:
        return None
