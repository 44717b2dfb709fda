"""A harness under test: what it is run with, what it offers its model, what its own endings mean."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec

from evalkit.core.names import among
from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, Offered
from evalkit.core.toml import toml_of
from evalkit.core.validation import refusal
from evalkit.stage.compactor import Means, means
from evalkit.wire.dialects import Dialect
from evalkit.wire.side_requests import Side

FILE = "harness.toml"
#: What stands in a command for a program of the environment, and for the harness's folder.
PROGRAMS = ("{python}", "{node}", "{typescript}", "{folder}")
#: What stands in an argument of a harness's own tool for what the model tells.
TOLD = ("{completed}", "{skipped}", "{reason}", "{summary}")
_PLACEHOLDER = re.compile(r"\{[a-z_]+\}")

Converted = TypeVar("Converted", bound=msgspec.Struct)


class ManifestError(ValueError):
    """A harness that cannot be used; one line."""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a native ending means. ``native`` is a pattern of shell style, ``why`` the reason."""

    native: str
    ending: Literal["done", "partial", "escalated", "limit", "error"]
    why: str


class Channel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool of the harness's own. ``tool`` is its name there.

    ``arguments`` are its arguments where they are not evalkit's: each a text in which ``{completed}``,
    ``{skipped}``, ``{reason}`` and ``{summary}`` stand for what the model tells.
    """

    tool: str
    arguments: dict[str, str] = {}


class Offers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The channels for "done". ``true`` for a tool: the server offers evalkit's own beside the world's."""

    finish: bool | Channel = False
    checklist: bool | Channel = False
    keyword: str | None = None
    output: bool = False

    @property
    def offered(self) -> Offered:
        """As the player knows them."""
        return Offered(bool(self.finish), bool(self.checklist), self.keyword, self.output)

    @property
    def own_tools(self) -> tuple[str, ...]:
        """The tools that the server offers for the harness."""
        own = ((FINISH_TOOL, self.finish), (CHECKLIST_TOOL, self.checklist))
        return tuple(name for name, offer in own if offer is True)


class Shell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A harness that has only a shell: the model's calls become commands of its one tool.

    ``command`` is run for a call of the world's tools, ``finish`` for a finish call; ``{tool}`` and
    ``{arguments}`` (quoted JSON) are filled in.
    """

    tool: str
    argument: str = "command"
    command: str = "evalkit-tool {tool} {arguments}"
    finish: str = "evalkit-tool {tool} {arguments}"


class Tools(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the harness calls the world's tools: by their names, behind a prefix, or through its shell."""

    prefix: str = ""
    shell: Shell | None = None


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What its environment holds: pinned requirements for Python, or package versions for Node."""

    python: tuple[str, ...] = ()
    node: dict[str, str] = {}


Moment: TypeAlias = Literal["ended", "between_turns", "in_tool", "in_turn"]


class Events(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may happen to the program from outside, and that it knows what to do then.

    ``user``: the moments at which it takes the user's words: after an ending (``ended``), or while it works.
    ``crash``: it can be killed and started again in the same folder, and goes on. ``approve``: it lays gated
    calls before a person, by a ``callback`` or by ``returns``, with ``waiting`` where an ending would stand;
    ``decide``: it takes the decisions about a turn each by itself, or only ``all`` together; ``change``: it
    can run a call with other arguments than the model's. ``compact``: it compacts its conversation, by
    ``usage:N``, ``length:N``, ``error`` or ``endpoint``.
    """

    user: tuple[Moment, ...] = ()
    crash: bool = False
    approve: Literal["callback", "returns"] | None = None
    decide: Literal["each", "all"] = "each"
    change: bool = True
    compact: str | None = None

    @property
    def compacts_by(self) -> Means | None:
        """By what it comes to compact its conversation."""
        return None if self.compact is None else means(self.compact)


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another way to use the same environment; what is given stands in the place of the manifest's.

    ``run`` may name another program, ``events`` say what may happen to it. Its ``side`` requests and
    ``endings`` come before the manifest's.
    """

    summary: str
    run: tuple[str, ...] = ()
    offers: Offers | None = None
    dialect: Dialect | None = None
    streamed: bool | None = None
    events: Events | None = None
    side: tuple[Side, ...] = ()
    endings: tuple[Rule, ...] = ()
    caps: str = ""
    env: dict[str, str] = {}


class Promise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a framework's own documentation says of a crash or of an approval, in a line, and where."""

    about: Literal["crash", "approval"]
    says: str
    source: str


class Heard(msgspec.Struct, frozen=True):
    """What a program whose manifest does not say it was heard to speak at its first request.

    ``assumed``: it made no request, and is taken for a client of this dialect. ``resident``: it uses
    evalkit's client, and so can do one task after the other.
    """

    dialect: Dialect = "anthropic"
    streamed: bool = False
    assumed: bool = False
    resident: bool = False


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``harness.toml``: how a program is run, or where a ``service`` is that runs already.

    Without ``dialect`` the first request tells it.

    """

    #: A word, by which runs and reports call it.
    name: str
    #: What it is, in a line.
    summary: str
    #: The command: words of :data:`PROGRAMS`, files of the folder, anything else as it is.
    run: tuple[str, ...] = ()
    #: In the place of ``run``: ``http://127.0.0.1:PORT/…`` of one that runs already.
    service: str | None = None
    #: The API that it speaks to its model; None is what its first request tells.
    dialect: Dialect | None = None
    #: Whether it asks for streams.
    streamed: bool = False
    #: Whether one process does many tasks, a job a line; None: where it uses evalkit's client.
    resident: bool | None = None
    #: Whether it polls background responses.
    background: bool = False
    #: Seconds in which a task ends, or is ended.
    time_limit_s: float = 120.0
    #: The model that it is told to ask for; empty is the dialect's own.
    model: str = ""
    #: Which limits it has of its own, and who chose them: the league shows it.
    caps: str = ""
    #: Variables of its own.
    env: dict[str, str] = {}
    #: The packages of an environment of its own.
    setup: Setup = Setup()
    #: How it calls the world's tools.
    tools: Tools = Tools()
    #: What it agrees with the model for saying "done".
    offers: Offers = Offers()
    #: What may happen to it.
    events: Events = Events()
    #: Its requests that are not the task's.
    side: tuple[Side, ...] = ()
    #: What its own endings mean; the first that fits.
    endings: tuple[Rule, ...] = ()
    #: What its documentation says of a crash or an approval.
    promises: tuple[Promise, ...] = ()
    #: Other ways to use the same environment, by name.
    variants: dict[str, Variant] = {}


class Harness(msgspec.Struct, frozen=True):
    """A manifest with its folder, in one of its variants. ``heard`` stands where none is declared."""

    manifest: Manifest
    folder: Path
    variant: str = ""
    heard: Heard | None = None

    @property
    def name(self) -> str:
        """The manifest's name, and the variant's behind a colon."""
        return f"{self.manifest.name}:{self.variant}" if self.variant else self.manifest.name

    @property
    def _own(self) -> Variant:
        return self.manifest.variants[self.variant] if self.variant else Variant(self.manifest.summary)

    @property
    def summary(self) -> str:
        """What it is, in a line."""
        return self._own.summary

    @property
    def pins(self) -> list[str]:
        """The packages that its environment is pinned to, each with its version."""
        setup = self.manifest.setup
        return [*setup.python, *(f"{package}@{version}" for package, version in setup.node.items())]

    @property
    def caps(self) -> str:
        """The limits that it has of its own, and who chose them."""
        return self._own.caps or self.manifest.caps

    @property
    def offers(self) -> Offers:
        """The channels that this variant offers."""
        return self._own.offers or self.manifest.offers

    @property
    def run(self) -> tuple[str, ...]:
        """The command that runs it."""
        return self._own.run or self.manifest.run

    @property
    def events(self) -> Events:
        """What may happen to this variant from outside."""
        return self._own.events or self.manifest.events

    @property
    def side(self) -> tuple[Side, ...]:
        """The requests of its own that are not the task's; the variant's rules come first."""
        return self._own.side + self.manifest.side

    @property
    def dialect(self) -> Dialect:
        """The API that it speaks: declared, or heard."""
        return self.declared or (self.heard or Heard()).dialect

    @property
    def declared(self) -> Dialect | None:
        """The API that its manifest names."""
        return self._own.dialect or self.manifest.dialect

    @property
    def streamed(self) -> bool:
        """Whether it asks for streams: declared, or heard."""
        own = self.manifest.streamed if self._own.streamed is None else self._own.streamed
        return own or (self.heard is not None and self.heard.streamed)

    @property
    def resident(self) -> bool:
        """Whether one process does many tasks: declared, or heard of a program that uses the client."""
        declared = self.manifest.resident
        return bool(self.heard and self.heard.resident) if declared is None else declared

    @property
    def known(self) -> bool:
        """Whether nothing has to be heard: its dialect, and whether it is resident."""
        return self.heard is not None or (self.declared is not None and self.manifest.resident is not None)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What its native endings mean; the variant's rules come first."""
        return self._own.endings + self.manifest.endings

    @property
    def env(self) -> dict[str, str]:
        """Variables of its own."""
        return {**self.manifest.env, **self._own.env}

    @property
    def fingerprint(self) -> str:
        """A digest of its folder's files, so that a change is noticed."""
        seen = hashlib.blake2b(f"{self.variant}\n{self.manifest}".encode(), digest_size=8)
        names = [Path(part) for part in self.run if (self.folder / part).is_file()]
        for name in names:
            seen.update((self.folder / name).read_bytes())
        return seen.hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a harness folder. ManifestError where there is none or it is wrong."""
    file = folder / FILE
    try:
        document = toml_of(file.read_bytes())
    except OSError as error:
        raise ManifestError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ManifestError(f"{file}: is no TOML: {error}") from None
    return parse_manifest(document, str(file))


def parse_manifest(document: dict[str, Any], place: str) -> Manifest:
    """A manifest from its document. ManifestError names ``place`` and field."""
    variants = document.get("variants")
    for name, variant in variants.items() if isinstance(variants, dict) else ():
        # Each by itself first: of a mapping as a whole msgspec does not say which.
        _converted(variant, Variant, f"{place}: variants.{name}.")
    manifest = _converted(document, Manifest, f"{place}: ")
    if manifest.service is not None:
        _check_service(manifest, place)
    elif not manifest.run:
        raise ManifestError(f"{place}: run: is empty; expected a command, as ['{{python}}', 'agent.py']")
    _check_parts(manifest, f"{place}: ")
    for name, variant in manifest.variants.items():
        _check_parts(variant, f"{place}: variants.{name}.")
    if manifest.time_limit_s <= 0:
        raise ManifestError(f"{place}: time_limit_s: must be above 0, got {manifest.time_limit_s:g}")
    for name in (manifest.name, *manifest.variants):
        if not name or any(sign in name for sign in ":/ "):
            raise ManifestError(f"{place}: the name {name!r} must be a word without ':', '/' or a blank")
    for requirement in manifest.setup.python:
        if "==" not in requirement:
            raise ManifestError(f"{place}: setup.python: {requirement!r} has no version; pin it with ==")
    for package, version in manifest.setup.node.items():
        if not version[:1].isdigit():
            raise ManifestError(f"{place}: setup.node: {package} {version!r} is no exact version")
    return manifest


def _converted(value: Any, kind: type[Converted], place: str) -> Converted:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ManifestError(f"{place}{refusal(error, kind)}") from None


def _check_parts(part: Manifest | Variant, place: str) -> None:
    """What a manifest and its variants have in common."""
    for word in part.run:
        if _PLACEHOLDER.fullmatch(word) and word not in PROGRAMS:
            raise ManifestError(f"{place}run: unknown {word}{among(word, PROGRAMS, 'allowed')}")
    if part.events is not None and part.events.compact is not None:
        try:
            means(part.events.compact)
        except ValueError as error:
            raise ManifestError(f"{place}events.compact: {error}") from None
    for name in ("finish", "checklist") if part.offers is not None else ():
        channel = getattr(part.offers, name)
        for key, text in channel.arguments.items() if isinstance(channel, Channel) else ():
            for sign in _PLACEHOLDER.findall(text):
                if sign not in TOLD:
                    where = f"offers.{name}.arguments.{key}"
                    raise ManifestError(f"{place}{where}: unknown {sign}{among(sign, TOLD, 'allowed')}")


def _check_service(manifest: Manifest, place: str) -> None:
    """A service that runs already is asked on this machine alone, where the model is."""
    url = urlsplit(manifest.service or "")
    try:
        port = url.port
    except ValueError:
        port = None
    if url.scheme != "http" or url.hostname not in ("127.0.0.1", "localhost", "::1") or port is None:
        raise ManifestError(
            f"{place}: service: {manifest.service!r}; expected http://127.0.0.1:PORT/…, on this machine"
        )
    for field in ("run", "resident"):
        if getattr(manifest, field):
            raise ManifestError(f"{place}: {field}: a service runs already; leave it out")
    own = [variant.events for variant in manifest.variants.values() if variant.events is not None]
    if any(events.crash for events in (manifest.events, *own)):
        raise ManifestError(f"{place}: events.crash: a service that runs already cannot be killed")
