"""Models behind the real SDKs: core requests in, answers out, the conversation kept in the API's shape.

The SDKs are loaded when the first client is made. They never retry by themselves: whoever drives a run
decides. What is already in the API's shape goes round their key transformation (``extra_body``), which walks
every item of a conversation through every type that an item can have: 25 ms a request at nine turns.
"""

from __future__ import annotations

import copy
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from evalkit.core.requests import FULL_WINDOW, Request, Result
from evalkit.core.turns import Turn
from evalkit.models.portal import Portal
from evalkit.wire.answers import Answer, failed
from evalkit.wire.anthropic_messages import answers as messages
from evalkit.wire.anthropic_messages import requests as messages_requests
from evalkit.wire.codecs import CODECS, decode_stream
from evalkit.wire.dialects import Dialect
from evalkit.wire.openai_chat import answers as chat
from evalkit.wire.openai_chat import requests as chat_requests
from evalkit.wire.openai_responses import answers as responses
from evalkit.wire.openai_responses import requests as responses_requests

#: Sent where a key is wanted and none is needed.
NO_KEY = "none"


class Opening(msgspec.Struct, frozen=True):
    """What a conversation begins with: instructions, the user's words, the tools (name, words, schema)."""

    system: str
    prompt: str
    tools: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()


class SdkModel(ABC):
    """One conversation with a model. ``held``: the server holds it, and requests carry only what is new."""

    dialect: Dialect

    def __init__(
        self, opening: Opening, *, streamed: bool, held: bool = False, background: bool = False
    ) -> None:
        self.opening = opening
        self.streamed = streamed
        self.held = held
        self.background = background
        self.history: list[dict[str, Any]] = self._user((), opening.prompt)
        self._new: list[dict[str, Any]] = list(self.history)
        self._answer: Answer | None = None
        #: The answer that the next request goes on from, where the server holds the conversation.
        self._continues: str | None = None
        self._waiting = ""
        #: The last request that added to the conversation and has no answer yet.
        self._open: Request | None = None
        #: The provider's names of the models that requests ask for.
        self.names: Mapping[str, str] = {}
        #: Where an async client is waited for.
        self.portal: Portal | None = None

    def ask(self, request: Request) -> Answer:
        """The model's answer to what a request adds. It never raises for what a network or an API may do."""
        if request.shortened:
            self._open = None
            self.compact()
        if not (request.again or request.poll):
            self._add(request)
        try:
            if request.poll and self._waiting:
                answer = self._poll(self._waiting)
            else:
                answer = self._stream(request) if self.streamed else self._whole(request)
        except Exception as error:
            answer = _failure(error, streamed=self.streamed)
        if answer.turn.kind == "in_progress":
            self._waiting = answer.id
        elif answer.turn.kind != "failed":
            self._waiting = ""
            self._answer = answer
            self._open = None
        return answer

    def compact(self, summary: str = "") -> None:
        """Forget all but the opening; the last turn stands again with the request that sends it back.

        A request that has no answer yet stands again with it.
        """
        self.history = self._user((), self.opening.prompt)
        if summary:
            self.history += self._user((), summary)
        if self._open is not None:
            self.history += self._echo(self._open.echo)
            self.history += self._user(self._open.results, self._open.text)
        # What the server holds is not compacted, so it is left behind.
        self.held = False
        self._continues = None

    def copied(self) -> SdkModel:
        """A copy of the conversation so far, over the same client."""
        twin = copy.copy(self)
        twin.history = list(self.history)
        twin._new = list(self._new)
        return twin

    def _add(self, request: Request) -> None:
        """Add what a request adds to the conversation."""
        if request.echo is None and request.text is None and not request.results:
            return
        said = self._user(request.results, request.text)
        before, self._open = self._open, request
        if before is not None and (before.echo, before.results) == (request.echo, request.results):
            # All but the newest words stands in the conversation already.
            words = (request.text or "").removeprefix(before.text or "").removeprefix("\n")
            said = self._user((), words or None)
            self._new = [*self._new, *said]
            self.history += said
            return
        self.history += self._echo(request.echo)
        self.history += said
        if self._answer is None:
            self._new = list(self.history)
        elif self.held and request.echo is not None:
            self._continues = self._answer.id
            self._new = said

    def _echo(self, turn: Turn | None) -> list[dict[str, Any]]:
        """The last answer as it is sent back: as it came, whatever it holds beside what was read."""
        if turn is None or self._answer is None:
            return []
        return self._sent_back(self._answer.raw)

    # Each dialect

    @abstractmethod
    def _user(self, results: Sequence[Result], text: str | None) -> list[dict[str, Any]]:
        """What answers a turn."""

    @abstractmethod
    def _sent_back(self, raw: Any) -> list[dict[str, Any]]:
        """What sends an answer back."""

    @abstractmethod
    def _create(self, request: Request, *, stream: bool) -> Any:
        """Call the SDK."""

    def _whole(self, request: Request) -> Answer:
        answer = self._create(request, stream=False)
        if self.portal is not None:
            answer = self.portal.wait(answer)
        return CODECS[self.dialect].decode(_plain(answer))

    def _stream(self, request: Request) -> Answer:
        made = self._create(request, stream=True)
        if self.portal is not None:
            events, error = self.portal.wait(_gathered(made))
        else:
            events, error = _read(made)
        if error is not None and not any(event.get("type") in _LAST for event in events):
            raise error
        return decode_stream(self.dialect, events)

    def _poll(self, name: str) -> Answer:
        raise NotImplementedError(f"{self.dialect} has no background answers")


class MessagesModel(SdkModel):
    """The Anthropic SDK. ``held`` uses server-held message threads."""

    dialect: Dialect = "anthropic"

    def __init__(self, client: Any, opening: Opening, *, streamed: bool, held: bool = False) -> None:
        super().__init__(opening, streamed=streamed, held=held)
        self._client = client
        self._tools = [messages_requests.tool(*tool) for tool in opening.tools]
        self._asked: str | None = None

    def _user(self, results: Sequence[Result], text: str | None) -> list[dict[str, Any]]:
        return messages_requests.user(results, text)

    def _sent_back(self, raw: Any) -> list[dict[str, Any]]:
        return messages_requests.assistant(messages.echo(raw))

    def _create(self, request: Request, *, stream: bool) -> Any:
        fixed = {"messages": self.history, "system": self.opening.system, "tools": self._tools}
        asked = {
            "model": self.names.get(request.model, request.model),
            "max_tokens": request.limit,
            "stream": stream,
            "messages": [],
        }
        if not self.held:
            return self._client.messages.create(extra_body=fixed, **asked)
        betas = [messages_requests.THREADS_BETA]
        create = self._client.beta.messages.create
        # An answer can be continued once: what asks again after an answer starts a new thread.
        answered = self._answer.id if self._answer is not None else None
        if self._continues is not None and self._continues == answered:
            thread = {"type": "continue", "previous_message_id": self._continues}
            return create(thread=thread, betas=betas, extra_body={"messages": self._new}, **asked)
        return create(thread={"type": "create"}, betas=betas, extra_body=fixed, **asked)


class ResponsesModel(SdkModel):
    """The OpenAI SDK's Responses. ``held`` uses ``previous_response_id``."""

    dialect: Dialect = "responses"

    def __init__(
        self, client: Any, opening: Opening, *, streamed: bool, held: bool = False, background: bool = False
    ) -> None:
        super().__init__(opening, streamed=streamed, held=held, background=background)
        self._client = client
        self._tools = [responses_requests.tool(*tool) for tool in opening.tools]

    def _user(self, results: Sequence[Result], text: str | None) -> list[dict[str, Any]]:
        return responses_requests.user(results, text)

    def _sent_back(self, raw: Any) -> list[dict[str, Any]]:
        return responses.echo(raw)

    def _create(self, request: Request, *, stream: bool) -> Any:
        more: dict[str, Any] = {"background": True} if self.background else {}
        if self._continues is not None:
            more["previous_response_id"] = self._continues
        return self._client.responses.create(
            model=self.names.get(request.model, request.model),
            instructions=self.opening.system,
            max_output_tokens=request.limit,
            stream=stream,
            extra_body={"input": self._new if self.held else self.history, "tools": self._tools},
            **more,
        )

    def _poll(self, name: str) -> Answer:
        return responses.decode(_plain(self._client.responses.retrieve(name)))


class ChatModel(SdkModel):
    """The OpenAI SDK's Chat Completions."""

    dialect: Dialect = "chat"

    def __init__(self, client: Any, opening: Opening, *, streamed: bool) -> None:
        super().__init__(opening, streamed=streamed)
        self._client = client
        self._tools = [chat_requests.tool(*tool) for tool in opening.tools]

    def _user(self, results: Sequence[Result], text: str | None) -> list[dict[str, Any]]:
        return chat_requests.user(results, text)

    def _sent_back(self, raw: Any) -> list[dict[str, Any]]:
        message = chat.echo(raw)
        return [message] if message is not None else []

    def _create(self, request: Request, *, stream: bool) -> Any:
        more = {"stream_options": {"include_usage": True}} if stream else {}
        system = {"role": "system", "content": self.opening.system}
        return self._client.chat.completions.create(
            model=self.names.get(request.model, request.model),
            messages=[],
            max_completion_tokens=request.limit,
            stream=stream,
            extra_body={"messages": [system, *self.history], "tools": self._tools},
            **more,
        )


# SDK clients


@lru_cache(maxsize=8)
def _anthropic(timeout: float) -> Any:
    import anthropic

    return anthropic.Anthropic(base_url="http://127.0.0.1", api_key=NO_KEY, max_retries=0, timeout=timeout)


@lru_cache(maxsize=8)
def _openai(timeout: float) -> Any:
    import openai

    return openai.OpenAI(base_url="http://127.0.0.1", api_key=NO_KEY, max_retries=0, timeout=timeout)


@lru_cache(maxsize=8)
def _async_anthropic(timeout: float) -> Any:
    import anthropic

    return anthropic.AsyncAnthropic(
        base_url="http://127.0.0.1", api_key=NO_KEY, max_retries=0, timeout=timeout
    )


@lru_cache(maxsize=8)
def _async_openai(timeout: float) -> Any:
    import openai

    return openai.AsyncOpenAI(base_url="http://127.0.0.1", api_key=NO_KEY, max_retries=0, timeout=timeout)


def connect(
    dialect: Dialect,
    url: str,
    opening: Opening,
    *,
    streamed: bool,
    held: bool = False,
    background: bool = False,
    timeout: float = 60.0,
    api_key: str = NO_KEY,
    http: Any = None,
    names: Mapping[str, str] | None = None,
    portal: Portal | None = None,
    headers: Mapping[str, str] | None = None,
) -> SdkModel:
    """A conversation over an SDK with the server at ``url``; ``timeout`` in seconds.

    ``background`` asks for background responses, which only the Responses API has. ``http`` is an HTTP client
    of one's own, such as one that records. ``names`` are the provider's names of the models asked for. With a
    ``portal`` the SDK's async client is used, and ``http`` is an async one. ``headers`` go with each request.
    """
    own: dict[str, Any] = {"api_key": api_key} if http is None else {"api_key": api_key, "http_client": http}
    if headers:
        own["default_headers"] = dict(headers)
    model: SdkModel
    if dialect == "anthropic":
        made = _anthropic if portal is None else _async_anthropic
        client = made(timeout).with_options(base_url=_root(url), **own)
        model = MessagesModel(client, opening, streamed=streamed, held=held)
    else:
        made = _openai if portal is None else _async_openai
        client = made(timeout).with_options(base_url=_versioned(url), **own)
        if dialect == "responses":
            model = ResponsesModel(client, opening, streamed=streamed, held=held, background=background)
        else:
            model = ChatModel(client, opening, streamed=streamed)
    model.names = names or {}
    model.portal = portal
    return model


def _versioned(url: str) -> str:
    """Where the OpenAI SDK asks: below ``/v1``, unless a path with a version, or of another API, is given."""
    url = url.rstrip("/")
    # No more than a version: an episode's random token may begin like one.
    known = re.search(r"/(v\d+((alpha|beta)\d*)?|openai)(/|$)", urlsplit(url).path)
    return url if known else f"{url}/v1"


def _root(url: str) -> str:
    """Where the Anthropic SDK asks, which adds ``/v1`` itself."""
    return url.rstrip("/").removesuffix("/v1")


def _plain(answer: Any) -> dict[str, Any]:
    """An SDK's object as JSON values, whatever it holds beside its types."""
    found: dict[str, Any] = answer.to_dict(mode="json", warnings=False)
    return found


#: Events after which nothing is missing, however the connection ends.
_LAST = frozenset(("message_stop", "response.completed", "response.incomplete", "response.failed"))


def _read(made: Any) -> tuple[list[dict[str, Any]], Exception | None]:
    """The events of a stream, and what it broke with."""
    events: list[dict[str, Any]] = []
    try:
        with made as stream:
            events.extend(map(_plain, stream))
    except Exception as error:
        return events, error
    return events, None


async def _gathered(made: Any) -> tuple[list[dict[str, Any]], Exception | None]:
    """The same of an async client's."""
    events: list[dict[str, Any]] = []
    try:
        async with await made as stream:
            async for event in stream:
                events.append(_plain(event))
    except Exception as error:
        return events, error
    return events, None


def _failure(error: Exception, *, streamed: bool) -> Answer:
    """What an exception of an SDK says of the answer that did not come."""
    name = type(error).__name__
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 400:
        full = FULL_WINDOW if status in (400, 413) and _says_full(error) else ""
        return failed(f"http_{status}{full}", _error_name(error))
    if isinstance(error, json.JSONDecodeError) or name == "APIResponseValidationError":
        return failed("body_malformed", name)
    if _timed_out(error):
        return failed("stall", name)
    if getattr(error, "body", None) is not None:
        return failed("body_error_event", _error_name(error))
    said = f"{error} {error.__cause__}"
    if "without sending a response" in said or "onnect" not in said:
        return failed("cut_before_headers" if "without sending a response" in said else "lost", name)
    return failed("cut_mid_stream" if streamed else "cut_mid_body", name)


def _says_full(error: Exception) -> bool:
    """Whether a refusal says that the request does not fit into the window, in either provider's words."""
    said = str(getattr(error, "body", None) or error)
    return "context_length_exceeded" in said or "prompt is too long" in said


def _timed_out(error: BaseException) -> bool:
    chain: BaseException | None = error
    while chain is not None:
        if "Timeout" in type(chain).__name__:
            return True
        chain = chain.__cause__
    return False


def _error_name(error: Exception) -> str:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else {}
    return (
        str(inner.get("code") or inner.get("type") or type(error).__name__) if isinstance(inner, dict) else ""
    )
