"""Inspect logs: ``.eval`` archives and ``.json`` documents.

Where ``inspect_ai`` is installed it reads them (it also converts what old versions wrote); else they are read
here. Archives are refused where they are larger than a log can be.
"""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from itertools import chain, islice
from typing import IO, Any

from evalkit.core.turns import make_turn
from evalkit.transcripts.documents import MAX_RECORD, Broken, decode, elements
from evalkit.transcripts.formats.messages import read_messages, stop_of
from evalkit.transcripts.labels import complete_of
from evalkit.transcripts.recording import Conversation, Ended, Label, Recording, Unreadable
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in

#: Members of an archive, and their unpacked bytes: one, all of them, and how much larger than packed.
MAX_MEMBERS = 100_000
MAX_MEMBER = 256_000_000
MAX_UNPACKED = 20_000_000_000
MAX_RATIO = 500
_ATTACHMENT = "attachment://"


def samples(file: IO[bytes], path: str, size: int) -> Iterator[tuple[str, Any]]:
    """The samples of a log by name; one that breaks is given as the :class:`Broken` it raised.

    Sizes are checked before anything is unpacked. Where ``inspect_ai`` is installed and takes the log, it
    reads.
    """
    archive = file.read(2) == b"PK"
    file.seek(0)
    if archive:
        check_archive(file)
    own = _of_archive(file) if archive else _of_document(file)
    if find_spec("inspect_ai") is None or (not archive and size > MAX_RECORD):
        yield from own
        return
    package = _by_package(path, archive=archive)
    try:
        first = list(islice(package, 1))
    except Exception:
        # What the package cannot open is read here, which says where it breaks.
        yield from own
        return
    yield from chain(first, package)


def check_archive(file: IO[bytes]) -> None:
    """Unreadable for an archive that is none, is too large unpacked, or is no log."""
    with _opened(file) as archive:
        members = archive.infolist()
        _check(members)
        if not {member.filename for member in members} & {"header.json", "_journal/start.json"}:
            raise Unreadable("is an archive, but no Inspect log (no header.json)")
    file.seek(0)


def _opened(file: IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise Broken(f"is not a whole archive: {str(error).lower()}") from None


def _of_archive(file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    with _opened(file) as archive:
        for member in archive.infolist():
            if member.filename.startswith("samples/") and member.filename.endswith(".json"):
                yield member.filename, _member(archive, member)


def _check(members: list[zipfile.ZipInfo]) -> None:
    if len(members) > MAX_MEMBERS:
        raise Unreadable(f"is an archive of {len(members):,} members; at most {MAX_MEMBERS:,}")
    total = sum(member.file_size for member in members)
    if total > MAX_UNPACKED:
        raise Unreadable(f"unpacks to {total:,} bytes; at most {MAX_UNPACKED:,}")
    for member in members:
        if member.file_size > MAX_MEMBER:
            raise Unreadable(
                f"{member.filename}: unpacks to {member.file_size:,} bytes; at most {MAX_MEMBER:,}"
            )
        if member.file_size > 1_000_000 and member.file_size > MAX_RATIO * max(1, member.compress_size):
            raise Unreadable(
                f"{member.filename}: unpacks to over {MAX_RATIO} times its size "
                f"({member.compress_size:,} to {member.file_size:,} bytes)"
            )


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    try:
        with archive.open(member) as opened:
            data = opened.read(MAX_MEMBER + 1)
        return decode(data)
    except Broken as error:
        return error
    except (
        zlib.error,
        lzma.LZMAError,
        zipfile.BadZipFile,
        OSError,
        EOFError,
        RuntimeError,
        ValueError,
    ) as error:
        return Broken(f"cannot be unpacked: {str(error).lower() or type(error).__name__}")


def _by_package(path: str, *, archive: bool) -> Iterator[tuple[str, Any]]:
    """The samples as ``inspect_ai`` reads them, as plain values; of an archive one at a time."""
    from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

    if not archive:
        for number, read in enumerate(read_eval_log(path, resolve_attachments=True).samples or (), 1):
            yield f"sample {number}", _plain(read)
        return
    for summary in read_eval_log_sample_summaries(path):
        name = f"sample {summary.id}, epoch {summary.epoch}"
        try:
            read = read_eval_log_sample(path, summary.id, summary.epoch, resolve_attachments=True)
        except Exception as error:
            # The package raises what its parsers raise; a sample that it cannot read is one problem.
            yield name, Broken(" ".join(f"{type(error).__name__}: {error}".split())[:160])
        else:
            yield name, _plain(read)


def _plain(read: Any) -> Any:
    fields = {"id", "epoch", "messages", "output", "scores", "limit", "error"}
    return read.model_dump(mode="json", include=fields)


def _of_document(file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    for number, value in enumerate(elements(file, "samples"), 1):
        yield f"sample {number}", value


def sample(record: Any, source: Source) -> Recording:
    """One sample. Its output's stop reason, limit and error say how it ended; its scores label it."""
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        raise Unreadable("is no sample: it has no messages")
    conversation = Conversation()
    attachments = mapped(record.get("attachments"))
    messages = [_attached(message, attachments) for message in record["messages"]]
    read_messages(conversation, messages, "harness")
    _stops(conversation, mapped(record.get("output")))
    conversation.model = str(mapped(record.get("output")).get("model") or "")
    name = f"sample{record.get('id')}.epoch{record.get('epoch', 1)}"
    return conversation.recording(
        source.id(name), source.file, "inspect", _end(record), _label(record.get("scores"))
    )


def _attached(value: Any, attachments: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        if value.startswith(_ATTACHMENT):
            return attachments.get(value.removeprefix(_ATTACHMENT), value)
        return value
    if isinstance(value, list):
        return [_attached(inner, attachments) for inner in value]
    if isinstance(value, dict):
        return {key: _attached(inner, attachments) for key, inner in value.items()}
    return value


def _stops(conversation: Conversation, output: dict[str, Any]) -> None:
    """The last turn's stop label stands in the output, not in the message."""
    step = conversation.last
    choice = mapped(next(iter(listed(output.get("choices"))), None))
    label = choice.get("stop_reason")
    if step is None or not label or step.turn.native is not None:
        return
    stop, native = stop_of(label, bool(step.turn.calls))
    conversation.relabel(make_turn(step.turn.content, stop, native=native))


def _end(record: dict[str, Any]) -> tuple[Ended, str] | None:
    error = mapped(record.get("error"))
    if error:
        return "error", text_in(error.get("message"))[:80] or "error"
    limit = mapped(record.get("limit"))
    if limit:
        return "limit", f"{limit.get('type')} limit"
    return None


def _label(scores: Any) -> Label:
    """Complete where every score that can be read says so."""
    found = {}
    for name, score in mapped(scores).items():
        complete = complete_of(mapped(score).get("value"))
        if complete is not None:
            found[name] = (complete, score["value"])
    if not found:
        return Label()
    said = ", ".join(f"{name} {value}" for name, (_, value) in found.items())
    return Label(all(complete for complete, _ in found.values()), said)
