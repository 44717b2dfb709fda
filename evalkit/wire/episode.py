"""One episode on the wire: a script behind requests of any dialect, and what was seen of its harness."""

from __future__ import annotations

import hashlib
import threading
from functools import lru_cache
from typing import Any, cast

import msgspec

from evalkit.core.channels import is_own
from evalkit.core.events import Crashed
from evalkit.core.requests import Request, Result
from evalkit.core.turns import Claim, Finish, Text, Turn, make_turn
from evalkit.scenarios.emissions import DELEGATE_TOOL
from evalkit.wire.answers import Outgoing, with_ids
from evalkit.wire.background import Pending, cancelled, missing, retrieved, too_late, under_way
from evalkit.wire.child_conversations import ChildConversations
from evalkit.wire.codecs import CODECS
from evalkit.wire.continued_answers import check_continued_once, not_held
from evalkit.wire.conversation import (
    Held,
    Joined,
    Memory,
    Sent,
    beginning,
    join,
    prompt_of,
    settings_of,
)
from evalkit.wire.dialects import Dialect
from evalkit.wire.expressible import is_fault, unreachable, unsayable
from evalkit.wire.faults import fault_reply
from evalkit.wire.incoming import BadRequest, Incoming, parse_body, user_texts
from evalkit.wire.invented_turns import Spoken
from evalkit.wire.lives import Lives
from evalkit.wire.observations import Seen
from evalkit.wire.openai_chat.answers import chunks
from evalkit.wire.openai_responses.compaction import compacted
from evalkit.wire.replies import Reply, json_reply, refusal, stream_reply
from evalkit.wire.rules import judge, neutral, place_of, say_neutral
from evalkit.wire.side_requests import Side, asks_for_summary, begins_child, count, reply, side_request
from evalkit.wire.stage_protocol import Child, Script, call_for
from evalkit.wire.summaries import answered_calls, told_words
from evalkit.wire.tool_names import ToolNames
from evalkit.wire.user_words import Words

RECORDED = "recorded"
OVER = "The episode is over."
#: What a request of a child agent that the model has not called is: beside the task.
NOBODYS_CHILD = "child agent without a call"
#: Signs of a tool's name that a harness made up.
_SHOWN = 80
#: How long an answer is held for the user's words to be fetched.
_FETCHED_S = 2.0
#: Milliseconds for a tool's answer to be written before a kill that is to come behind it.
_ON_ITS_WAY_MS = 20

_unsayable = lru_cache(maxsize=4096)(unsayable)


class WireEpisode:
    """What the server keeps of one episode. ``failure`` is what ended it on this side.

    ``sides`` are a harness's own side requests, ``names`` its names of the tools, ``own_tools`` the tools of
    its own that the server offers beside the world's. ``blocking`` says that the world takes its time.
    ``mark`` tells the answers of a child agent's conversation, which is an episode within the episode.
    """

    def __init__(
        self,
        script: Script,
        *,
        sides: tuple[Side, ...] = (),
        names: ToolNames | None = None,
        own_tools: tuple[str, ...] = (),
        blocking: bool = False,
        mark: str = "",
    ) -> None:
        self.script = script
        self.mark = mark
        self.children = ChildConversations(script, self._begin_child)
        script.remembers = True
        self.sides = sides
        self.names = names or ToolNames()
        self.own_tools = own_tools
        self.blocking = blocking
        self.memory = Memory()
        self.seen = Seen()
        self.turns = 0
        self.failure: Exception | None = None
        #: Whether the reference loop says that the history of its next request is shortened.
        self.shortened = False
        #: What the user wrote, held against each request.
        self.words = Words()
        self.lives = Lives()
        self._fetched = threading.Event()
        self._pending: Pending | None = None
        self._cancelled: set[str] = set()
        self._last: Outgoing | None = None
        self._unstored: set[str] = set()
        self._has_tools = False
        self._spoken = Spoken()
        self._body = b""

    # Requests for turns

    def repeats(self, raw: bytes) -> bool:
        """Whether a body is that of the last request, byte for byte."""
        return _digest(raw) == self._body

    def post(self, dialect: Dialect, raw: bytes, *, retried: bool = False, beside: bool = False) -> Reply:
        """Answer a request for a turn.

        ``retried``: the client says that it repeats one without an answer; ``beside``: another request was
        open when it came.
        """
        self.seen.requests += 1
        self._body = _digest(raw)
        if self.failure is not None:
            return refusal(dialect, BadRequest("over", OVER))
        if self.lives.kill_at is not None:
            return self.lives.await_death()
        try:
            reply = self._answer(dialect, raw, retried=retried, beside=beside)
            self.seen.turned_away = False
            if self.script.owes_words:
                self._fetched.clear()
                self._fetched.wait(_FETCHED_S)
            return reply
        except Crashed:
            self.lives.end_in(self.script.crash_wait)
            return self.lives.await_death()
        except BadRequest as bad:
            self.seen.turned_away = True
            if self.seen.note_refusal(bad, raw) and self.script.trace is not None:
                self.script.trace.broke_dialect(bad.rule)
            return refusal(dialect, bad)
        except Exception as error:
            self.failure = error
            return refusal(dialect, BadRequest("over", OVER))

    def _answer(self, dialect: Dialect, raw: bytes, *, retried: bool, beside: bool) -> Reply:
        body = parse_body(raw)
        incoming = CODECS[dialect].read(body)
        if asks_for_summary(incoming, self.sides):
            return self._sum_up(dialect, body, incoming)
        words = begins_child(incoming, self.sides)
        child = self.children.find(incoming, words)
        if child is not None:
            return self._answer_child(child, dialect, raw, retried=retried)
        if words is not None:
            self.seen.side[NOBODYS_CHILD] += 1
            return self._aside(dialect, body, incoming, NOBODYS_CHILD)
        kind = side_request(incoming, self.sides, has_tools=self._has_tools)
        if kind is not None and incoming.continues is None:
            self.seen.side[kind] += 1
            return self._aside(dialect, body, incoming, kind)
        self.seen.first = self.seen.first or (dialect, incoming.stream)
        name = incoming.continues
        if name is not None and (not self._known(dialect, name) or name in self._unstored):
            raise not_held(dialect, name)
        memory = self.memory
        memory.summaries = self.script.summaries
        joined = join(memory, incoming, retried=retried)
        if beside and joined.kind == "back":
            joined = msgspec.structs.replace(
                joined, request=msgspec.structs.replace(joined.request, beside=True)
            )
        self.words.look(incoming.pieces, held=incoming.continues is not None)
        if joined.kind == "compacted" and self.script.trace is not None:
            for words in self.words.lost():
                self.script.trace.lost_words += 1
                self.script.trace.found("lost_words", words)
        last = joined.last.wire if joined.last is not None else None
        check_continued_once(dialect, name, joined, memory)
        if self.script.trace is not None:
            for words in self._spoken.invented(incoming.pieces):
                self.script.trace.invented(words)
        faults = neutral(joined.last.turn if joined.last is not None else None, joined)
        if faults:
            if self.script.trace is not None and not self.seen.refused_before(raw):
                self.script.trace.requests += 1
                for rule in faults:
                    self.script.trace.broke(rule, place_of(rule, joined, last)[1])
            raise say_neutral(dialect, faults[0], joined, last)
        ruling = judge(CODECS[dialect].rules, body, incoming, last)
        self.seen.warnings.update(ruling.warnings)
        if ruling.refused is not None:
            raise ruling.refused
        self._has_tools = self._has_tools or bool(incoming.tools)
        if joined.kind == "first":
            memory.prompt = prompt_of(incoming.pieces)
            self.seen.begins_within = any(piece.role == "assistant" for piece in joined.pieces)
        if joined.kind == "same_answer" and self._last is not None:
            self.seen.repeated += 1
            return self._say(dialect, body, incoming, self._last, "the same answer again")
        self.seen.amnesia += joined.kind == "new" or joined.request.after == 0
        self.seen.compactions += joined.kind == "compacted"
        if body.get("store") is False:
            self._unstored.add(self._next_id(dialect))
        return self._ask(dialect, body, incoming, joined)

    def _ask(self, dialect: Dialect, body: dict[str, Any], incoming: Incoming, joined: Joined) -> Reply:
        memory = self.memory
        base = beginning(memory, incoming.continues)
        if self.shortened:
            self.shortened = False
            joined = msgspec.structs.replace(
                joined,
                request=msgspec.structs.replace(
                    joined.request, shortened=True, again=False, lost=False, after=None
                ),
            )
        if self.script.looks:
            words = told_words(incoming, self.script.summaries)
            calls = answered_calls(incoming, self.memory)
            self.script.look(calls, words, held=incoming.continues is not None)
        turn, spent = self._turn(joined.request)
        polls = 0
        held = dialect == "responses" and incoming.background
        if turn.kind == "in_progress" and not (held and not incoming.stream):
            # A request that is not in the background, or streams, waits; so does the API.
            if not held:
                self.seen.inexpressible["an answer in the background, not asked for"] += 1
            while turn.kind == "in_progress":
                polls += 1
                turn, spent = self._turn(msgspec.structs.replace(joined.request, again=True, poll=True))
        memory.asked, memory.base, memory.base_id = joined.point, base, incoming.continues
        memory.settings = settings_of(incoming)
        memory.request = msgspec.structs.replace(joined.request, again=False)
        out = Outgoing(
            turn,
            self._next_id(dialect),
            incoming.model,
            max(spent, self.script.reports),
            incoming.background,
            incoming.continues,
            incoming.limit,
            polls if held else 0,
        )
        if turn.kind == "in_progress":
            memory.fault = True
            self._pending = Pending(joined, out)
            return under_way(out, "queued", stream=False)
        self._pending = None
        return self._deliver(dialect, body, incoming, joined, out)

    def _turn(self, request: Request) -> tuple[Turn, int]:
        """A turn and the input tokens it cost."""
        before = self.script.input_tokens
        turn = self.script.ask(request)
        return turn, self.script.input_tokens - before

    def _deliver(
        self, dialect: Dialect, body: dict[str, Any], incoming: Incoming, joined: Joined, out: Outgoing
    ) -> Reply:
        memory, turn = self.memory, out.turn
        if turn.kind == "failed":
            memory.fault = True
        problem = _unsayable(dialect, turn, streamed=incoming.stream)
        if problem is not None:
            self.seen.inexpressible[problem] += 1
        if is_fault(turn):
            stall = self.script.stall_s
            return fault_reply(
                dialect,
                turn.native or "",
                streamed=incoming.stream,
                stall_s=stall,
                begun=self._begun(dialect),
            )
        if turn.kind == "failed":
            if dialect == "responses":
                return self._say(dialect, body, incoming, out, turn.native or turn.stop)
            return fault_reply(dialect, "http_500", streamed=incoming.stream)
        if not self.script.played_out:
            self.seen.unreachable.update(unreachable(turn, incoming))
        self.turns += 1
        wire, ids = with_ids(self.names.renamed(turn), CODECS[dialect].call + self.mark, self.turns)
        self._spoken.delivered(wire)
        memory.turns.append(Held(joined.point, Sent(turn, wire, out.id, ids), joined.parent))
        memory.fault, memory.delivered, memory.summed, memory.died = False, False, False, False
        self._last = msgspec.structs.replace(out, turn=wire)
        said = f"turn {self.turns}: {', '.join(call.tool for call in turn.calls) or turn.stop}"
        how = {"new": "a new", "compacted": "a compacted", "back": "an earlier point of the"}.get(joined.kind)
        if how is not None:
            said += f" ({how} conversation)"
        return self._say(dialect, body, incoming, self._last, said)

    def _begun(self, dialect: Dialect) -> Turn | None:
        """What a fault breaks off, with ids of its own: no turn has been delivered with them."""
        begun = self.script.begun
        if begun is None:
            return None
        broken = with_ids(
            self.names.renamed(begun), f"{CODECS[dialect].call}{self.mark}broken_", self.turns + 1
        )[0]
        self._spoken.delivered(broken)
        return broken

    def _say(
        self, dialect: Dialect, body: dict[str, Any], incoming: Incoming, out: Outgoing, said: str
    ) -> Reply:
        if not incoming.stream:
            return json_reply(CODECS[dialect].body(out), said=said, turn=self.turns)
        if dialect == "chat":
            options = body.get("stream_options")
            usage = isinstance(options, dict) and options.get("include_usage") is True
            events = chunks(out, usage=usage)
        else:
            events = CODECS[dialect].events(out)
        return stream_reply(dialect, events, said=said, turn=self.turns)

    # Child agents

    def _begin_child(self, script: Child, mark: str) -> WireEpisode:
        """A further conversation of this episode, with a script of its own."""
        sides = tuple(side for side in self.sides if side.kind != "child")
        child = WireEpisode(script, sides=sides, names=self.names, own_tools=self.own_tools, mark=mark)
        child.seen = self.seen
        return child

    def _answer_child(self, child: WireEpisode, dialect: Dialect, raw: bytes, *, retried: bool) -> Reply:
        """Answer a request of a child agent's conversation; the parent's stands where it stood."""
        name = cast(Child, child.script).name
        self.seen.children[name] += 1
        answer = child._answer(dialect, raw, retried=retried, beside=False)
        child.memory.delivered = True
        if self.script.crash_answered:
            self.lives.end_in(self.script.crash_wait + _ON_ITS_WAY_MS)
        return msgspec.structs.replace(answer, turn=0, said=f"child {name}, {answer.said}")

    # Compactions

    def _summary(self, incoming: Incoming) -> str:
        """What the model says when it is asked for a summary with this request."""
        texts = [p.block.text for p in incoming.pieces if isinstance(p.block, Text | Result)]
        words = self.words.sum_up("\n".join(texts))
        said = [piece.block.text for piece in incoming.pieces if isinstance(piece.block, Text)]
        summary = self.script.sum_up(answered_calls(incoming, self.memory), "\n".join(said), words)
        self.memory.summed = True
        return summary

    def _sum_up(self, dialect: Dialect, body: dict[str, Any], incoming: Incoming) -> Reply:
        """Answer a request for a summary: it never moves the script on."""
        self.seen.side["compaction"] += 1
        summary = self._summary(incoming)
        return self._beside(dialect, body, incoming, make_turn((Text(summary),), "end_turn"), "compaction")

    def compact(self, raw: bytes) -> Reply:
        """Answer ``POST /v1/responses/compact``: a conversation as one item that stands for it."""
        self.seen.requests += 1
        if self.failure is not None:
            return refusal("responses", BadRequest("over", OVER))
        if self.lives.kill_at is not None:
            return self.lives.await_death()
        try:
            incoming = CODECS["responses"].read(parse_body(raw))
        except BadRequest as bad:
            return refusal("responses", bad)
        self.seen.side["compaction"] += 1
        number = sum(self.seen.side.values())
        name = f"resp_side_{number:06d}"
        answer = compacted(self._summary(incoming), user_texts(incoming), name, count(incoming))
        return json_reply(answer, said="side request: compaction")

    def _aside(self, dialect: Dialect, body: dict[str, Any], incoming: Incoming, kind: str) -> Reply:
        return self._beside(dialect, body, incoming, reply(incoming), kind)

    def _beside(
        self, dialect: Dialect, body: dict[str, Any], incoming: Incoming, turn: Turn, kind: str
    ) -> Reply:
        self._spoken.delivered(turn)
        number = sum(self.seen.side.values())
        out = Outgoing(turn, f"{CODECS[dialect].answer}_side_{number:06d}", incoming.model, count(incoming))
        answer = self._say(dialect, body, incoming, out, f"side request: {kind}")
        return msgspec.structs.replace(answer, turn=0)

    def _next_id(self, dialect: Dialect) -> str:
        return f"{CODECS[dialect].answer}{self.mark}_{self.turns + 1:06d}"

    def _known(self, dialect: Dialect, name: str) -> bool:
        """Whether an id is that of an answer of this episode."""
        serial = name.removeprefix(f"{CODECS[dialect].answer}{self.mark}_")
        return serial.isascii() and serial.isdigit() and 1 <= int(serial) <= self.turns

    # Background responses

    def retrieve(self, name: str, *, stream: bool = False, after: int = -1) -> Reply:
        """Answer ``GET /v1/responses/ID``: a poll, where the response is not there yet."""
        self.seen.requests += 1
        pending = self._pending
        if self.failure is None and pending is not None and pending.out.id == name:
            try:
                return self._poll(pending, stream=stream)
            except Exception as error:
                self.failure = error
                return refusal("responses", BadRequest("over", OVER))
        if name in self._cancelled:
            return cancelled(name)
        if self._last is not None and self._last.id == name:
            return retrieved(self._last, self.turns, stream=stream, after=after)
        return missing(name)

    def _poll(self, pending: Pending, *, stream: bool) -> Reply:
        assert self.memory.request is not None
        turn, spent = self._turn(msgspec.structs.replace(self.memory.request, again=True, poll=True))
        out = msgspec.structs.replace(pending.out, turn=turn, input_tokens=spent, polls=pending.out.polls + 1)
        if turn.kind == "in_progress":
            self._pending = Pending(pending.joined, out)
            return under_way(out, "in_progress", stream=stream)
        if not is_fault(turn):
            self._pending = None
        asked = Incoming((), out.model, stream=stream, background=True)
        return self._deliver("responses", {}, asked, pending.joined, out)

    def cancel(self, name: str) -> Reply:
        """Answer ``POST /v1/responses/ID/cancel``."""
        self.seen.requests += 1
        pending = self._pending
        if pending is not None and pending.out.id == name:
            self._pending = None
            self._cancelled.add(name)
        if name in self._cancelled:
            return cancelled(name)
        return too_late() if self._last is not None and self._last.id == name else missing(name)

    # Counting tokens

    def count_tokens(self, dialect: Dialect, raw: bytes) -> Reply:
        """Answer a request that only asks for a count."""
        self.seen.requests += 1
        self.seen.side["token count"] += 1
        try:
            body = {"max_tokens": 1, **parse_body(raw)}
            tokens = count(CODECS[dialect].read(body))
        except BadRequest as bad:
            return refusal(dialect, bad)
        answer: dict[str, Any] = {"input_tokens": tokens}
        if dialect != "anthropic":
            answer["object"] = "response.input_tokens"
        return json_reply(answer, said="side request: token count")

    # Tools

    def run_tool(self, name: str, arguments: dict[str, Any]) -> Result:
        """Run a tool as the harness asks for it: it stands for a call of the last turn, if one fits."""
        self.seen.requests += 1
        self.seen.tool_requests += 1
        tool = self.names.inward(name)
        if tool in self.own_tools or is_own(tool, self.script.task.offered):
            return Result("", RECORDED)
        if self.failure is not None:
            return Result("", OVER, True)
        if self.lives.kill_at is not None:
            self.lives.await_death()
            return Result("", OVER, True)
        try:
            if tool not in self.script.task.tools and not self._delegated(tool):
                self.seen.unoffered[name[:_SHOWN]] += 1
            script = self.children.script_of(tool, arguments)
            result = script.run(*call_for(script, tool, arguments))
            if self.script.crash_answered:
                self.lives.end_in(self.script.crash_wait + _ON_ITS_WAY_MS)
            return result
        except Crashed:
            self.lives.end_in(self.script.crash_wait)
            self.lives.await_death()
            return Result("", OVER, True)
        except Exception as error:
            self.failure = error
            return Result("", OVER, True)

    def _delegated(self, tool: str) -> bool:
        return tool == DELEGATE_TOOL and self.delegates

    @property
    def delegates(self) -> bool:
        """Whether the model hands shares of the work to child agents, and so is offered the tool."""
        return getattr(self.script, "delegates", False)

    # The user's words, and the script's kills

    def fetch(self) -> list[str]:
        """The words that the user says now to a harness at work."""
        said = self.script.fetch()
        if said is None:
            return []
        self.words.say(said)
        self._fetched.set()
        return [said]

    def asked(self, calls: list[Any]) -> list[Any]:
        """What the person decides about calls that the harness lays before it. Crashed: it dies waiting."""
        asked = getattr(self.script, "asked", None)
        if asked is None:
            return []
        known = [
            {**call, "tool": self.names.inward(str(call.get("tool")))} if isinstance(call, dict) else call
            for call in calls
        ]
        return list(asked(known, resumed=self.lives.resumed))

    def lay(self, calls: list[Any]) -> list[Any] | None:
        """The same for a harness that waits for the answer; None: it is killed as it waits."""
        if self.lives.kill_at is None:
            try:
                return self.asked(calls)
            except Crashed:
                self.lives.end_in(self.script.crash_wait)
        self.lives.await_death()
        return None

    def died(self, resumers: int = 1) -> None:
        """The harness is dead; what follows is another process, or several."""
        self.memory.summed, self.memory.died = False, True
        self.script.killed()
        self.lives.begin(resumers)

    # Delivery

    def delivered(self, turn: int) -> None:
        """The answer that holds this turn was written whole."""
        if turn and turn == self.turns:
            self.memory.delivered = True
            if self.script.crash_delivered:
                self.lives.end_in(self.script.crash_wait)

    def lost(self, turn: int) -> None:
        """The client went away without having read the answer that holds this turn."""
        if turn and turn == self.turns:
            self.memory.delivered = False

    def claimed(self, name: str) -> tuple[Claim, Finish | None]:
        """What the last turn claims and tells: the script's truth, for the scripted verifier alone."""
        sent = self.memory.sent
        if sent is None or sent.id != name:
            return "none", None
        return sent.turn.claim, sent.turn.told


def _digest(raw: bytes) -> bytes:
    return hashlib.blake2b(raw, digest_size=16).digest()
