"""One episode of a foreign harness: model and tools on the wire server, its ending declared, scored alike."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import msgspec

from evalkit.core.decisions import Ending
from evalkit.core.events import Compacts, Crashed, UserWrites
from evalkit.core.requests import Request
from evalkit.core.tasks import DEFAULT_OUTPUT, Offered, Task
from evalkit.drivers.in_process import resumed
from evalkit.harnesses.call_names import names_of
from evalkit.harnesses.command import CAP, CommandRunner, Runner, Why
from evalkit.harnesses.endings import Finished, Further, ending_of, telling_line
from evalkit.harnesses.episode_record import (
    CARRIED,
    CHILDREN,
    NOT_EXERCISED,
    UNOFFERED,
    UNREACHABLE,
    Kept,
    Observed,
    Wrong,
)
from evalkit.harnesses.manifest import Events, Harness, Heard, Rule
from evalkit.harnesses.pinned_environment import Environment, environment_of
from evalkit.harnesses.resident import ResidentRunner
from evalkit.harnesses.service import ServiceRunner
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.moves import ApproveMove, CompactMove, CrashMove, UserMove
from evalkit.scenarios.scenario import SEVERAL, Scenario, walk
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, score
from evalkit.scoring.landed import evidence, kills_of, why_not_exercised
from evalkit.scoring.reasons import first_harm
from evalkit.stage.approver import Approver
from evalkit.stage.compactor import Compactor, compactions
from evalkit.stage.stage import NeverEnds
from evalkit.stage.tools import ToolFailed
from evalkit.wire.dialects import Dialect
from evalkit.wire.episode import WireEpisode
from evalkit.wire.expressible import has_background, not_expressible
from evalkit.wire.observations import Seen
from evalkit.wire.server import Server
from evalkit.wire.side_requests import Side
from evalkit.wire.tool_names import ToolNames

#: Stalls of a script last so much of what they say: a client notices them all the same.
STALL_SCALE = 0.02
#: Model names that clients of the dialects know.
MODELS: dict[Dialect, str] = {"anthropic": "claude-sonnet-4-6", "responses": "gpt-5", "chat": "gpt-5"}


class Contract(msgspec.Struct, frozen=True):
    """What an episode has to know of a harness, wherever it is run."""

    name: str
    offered: Offered = Offered()
    own_tools: tuple[str, ...] = ()
    names: ToolNames = ToolNames()
    sides: tuple[Side, ...] = ()
    rules: tuple[Rule, ...] = ()
    dialect: Dialect = "anthropic"
    model: str = ""
    variant: str = ""
    events: Events = Events()


def contract_of(harness: Harness) -> Contract:
    """A harness's contract, as its manifest says."""
    return Contract(
        harness.name,
        harness.offers.offered,
        harness.offers.own_tools,
        names_of(harness),
        harness.side,
        harness.rules,
        harness.dialect,
        harness.manifest.model,
        harness.variant,
        harness.events,
    )


def runner_of(
    harness: Harness,
    environment: Environment | None = None,
    seconds: float | None = None,
    *,
    fresh: bool = False,
) -> Runner:
    """What runs a harness's episodes; ``fresh``: each in a process of its own.

    ManifestError where it is not set up.
    """
    environment = environment or environment_of(harness)
    if harness.manifest.service is not None:
        return ServiceRunner(harness, environment, seconds)
    kind = ResidentRunner if harness.resident and not fresh else CommandRunner
    return kind(harness, environment, seconds)


def why_not_expressible(scenario: Scenario, harness: Harness) -> str | None:
    """Why a scenario cannot be played with a harness; None where it can."""
    lacking = lacks(scenario, harness.events)
    if lacking:
        return f"the harness has no notion of: {', '.join(lacking)}"
    if SEVERAL in scenario.events and not harness.resident:
        return "several can resume it at once only where it is a resident process"
    if _killed_waiting(scenario) and harness.events.approve == "returns" and not harness.resident:
        return "it has ended while it waits for a person: there is nothing to kill"
    by = harness.events.compacts_by
    if by is not None and by.kind == "length":
        longest = _messages_by_then(scenario, harness)
        if longest is not None and longest < by.number:
            return f"it compacts at {by.number} messages, and the script has {longest} by then"
    if has_background(scenario) and not harness.manifest.background:
        return "the harness does not ask for background responses"
    offered = (harness.offers.offered,)
    return not_expressible(
        scenario, harness.dialect, streamed=harness.streamed, offered=offered, cut_is_empty=True
    )


def _killed_waiting(scenario: Scenario) -> bool:
    """Whether a scenario kills who waits for a person."""
    return any(isinstance(move, CrashMove) and move.spec.at == "waiting" for move in walk(scenario.moves))


def _messages_by_then(scenario: Scenario, harness: Harness) -> int | None:
    """How many messages the ideal harness's conversation has at the last compaction; None without one."""
    if not any(compactions(scenario)):
        return None
    stage, _ = Arena(scenario, harness.offers.offered).ideal(0)
    stage.world.close()
    turns = [after for after, event in stage.happened if isinstance(event, Compacts)]
    return 1 + 2 * turns[-1] if turns else None


def lacks(scenario: Scenario, notions: Events) -> list[str]:
    """What happens in a scenario that a harness has no notion of."""
    lacking: dict[str, None] = {}
    for move in walk(scenario.moves):
        if isinstance(move, UserMove) and move.user.when not in notions.user:
            lacking[f"user ({move.user.when})"] = None
        elif isinstance(move, CrashMove):
            if not notions.crash:
                lacking["crash"] = None
            elif move.spec.at == "waiting" and notions.approve is None:
                lacking["approve"] = None
        elif isinstance(move, CompactMove) and notions.compact is None:
            lacking["compact"] = None
        elif isinstance(move, ApproveMove) and notions.approve is None:
            lacking["approve"] = None
        elif isinstance(move, ApproveMove) and move.spec.change and not notions.change:
            lacking["approve (change)"] = None
        elif isinstance(move, ApproveMove) and move.spec.restarts and not notions.crash:
            lacking["approve (after a restart)"] = None
    return list(lacking)


_PLAIN = """
scenario: heard
family: partial_completion
task: {prompt: Do every item that list_items returns., done_when: Every item is done.}
world: {kind: items, items: [one]}
model: [{call: list_items}, {work: rest}, {say: All done., claim: done}]
"""
#: Seconds that a program without a declared dialect has to make its first request.
_HEARING_S = 30.0


def hear(harness: Harness, environment: Environment | None = None, server: Server | None = None) -> Harness:
    """A harness of which is known what it speaks, and whether it does one task after the other.

    What its manifest does not say shows when it does a plain task of one item, on ``server`` where its model
    is to be there. ManifestError where it is not set up.
    """
    if harness.known:
        return harness
    seconds = min(_HEARING_S, harness.manifest.time_limit_s)
    contract, runner = contract_of(harness), runner_of(harness, environment, seconds)
    (plain,) = load_text(_PLAIN)
    try:
        with nullcontext(server) if server is not None else server_for_harnesses() as here:
            trial = Trial(Arena(plain, contract.offered), 0, contract, here)
            try:
                finished = runner.run({**trial.told, "EVALKIT_HEARING": "1"}, trial.over)
            finally:
                trial.close()
    finally:
        runner.close()
    first = trial.seen.first
    client = isinstance(finished.told, dict) and finished.told.get("client") is True
    heard = Heard(assumed=True) if first is None else Heard(*first, resident=client)
    return msgspec.structs.replace(harness, heard=heard)


class Trial:
    """One episode on a server, from its start to its score. ``told`` is what the harness has to be told."""

    def __init__(self, arena: Arena, seed: int, contract: Contract, server: Server) -> None:
        self._arena = arena
        self._seed = seed
        self._contract = contract
        self._server = server
        self.stage = Observed.of(arena.stage(seed, cap=arena.cap(seed)))
        self._wire = WireEpisode(
            self.stage,
            sides=contract.sides,
            names=contract.names,
            own_tools=contract.own_tools,
            blocking=True,
        )
        self._token = server.add(self._wire)
        self._began = time.monotonic()
        self.stage.crashes = contract.events.crash
        if contract.events.approve is not None:
            self.stage.asks_person = True
            self.stage.approver = Approver(self.stage, together=contract.events.decide == "all")
        by = contract.events.compacts_by
        if by is not None:
            self.stage.compactor = Compactor(by, compactions(arena.scenario))
        self._kills = kills_of(arena.scenario)
        self._why_not: tuple[str, ...] = ()
        #: The process that was killed last: the next must be another.
        self._leg = 0
        self.told = variables(self.stage.task, contract, server.url(self._token))

    @property
    def seen(self) -> Seen:
        """What the server saw of the harness."""
        return self._wire.seen

    def over(self) -> Why:
        """Whether evalkit's side has ended it (its cap, something failed), or the script kills."""
        kill_at = self._wire.lives.kill_at
        if kill_at is not None and time.monotonic() >= kill_at:
            return "kill"
        return "over" if self._wire.failure is not None else ""

    def then(self, finished: Finished) -> Further | None:
        """How the episode goes on behind an ending: with the user's next message, or in another process."""
        wire = self._wire
        if wire.lives.gathers:
            wire.lives.ended_unheard()
        if self._leg and finished.leg == self._leg:
            # The very process that was to be dead: nothing was killed.
            self._kills.missed += 1
        self._leg = 0
        if wire.lives.kill_at is not None:
            # It is dead, by the script's hand or, a moment before, by its own; or it has said something and
            # is killed as it waits for a line.
            left = wire.lives.kill_at - time.monotonic()
            lands = finished.killed or (finished.waits and left > 0)
            self._kills.landed += lands
            self._kills.missed += not lands
            wire.died(self._kills.resumers)
            self._leg = finished.leg
            return self._again(max(left, 0.0)) if lands else None
        if wire.failure is not None or finished.never or finished.problem:
            return None
        if isinstance(finished.told, dict) and isinstance(finished.told.get("waiting"), list):
            return self._decided(finished)
        if self._is_late:
            return self._decides_late(finished)
        ending, _ = ending_of(finished, self._contract.rules)
        turn = self.stage.previous.turn
        if turn is None:
            return None
        last = Request(limit=self.stage.previous.limit)
        try:
            with self.stage.lock:
                events = self.stage.after(ending, resumed(turn, self.stage, last))
        except Crashed:
            self._kills.landed += 1
            wire.died(self._kills.resumers)
            self._leg = finished.leg
            return self._again()
        said = [event.text for event in events if isinstance(event, UserWrites)]
        if not said:
            return None
        message = "\n".join(said)
        wire.words.say(message)
        return Further(message)

    @property
    def _is_late(self) -> bool:
        """Whether a person was asked who decides when the program has ended for want of a decision."""
        stage = self.stage
        asked = stage.approver is not None and stage.approver.exercised
        late = stage.decides is not None and stage.decides.when == "late"
        return asked and late and not self._wire.lives.resumed

    def _decides_late(self, finished: Finished) -> Further:
        """It has ended as it waited, and is started again to be told."""
        self._wire.died(self._kills.resumers)
        self._leg = finished.leg
        return self._again()

    def _again(self, after_s: float = 0.0) -> Further:
        return Further(restart=True, after_s=after_s, resumers=self._kills.resumers)

    def _decided(self, finished: Finished) -> Further | None:
        """What a person decides about the calls that a program waits for; None where nobody comes."""
        try:
            decisions = self._wire.asked(finished.told["waiting"])
        except Crashed:
            self._kills.landed += 1
            self._wire.died(self._kills.resumers)
            self._leg = finished.leg
            return self._again()
        if not decisions:
            return self._decides_late(finished) if self._is_late else None
        return Further(decisions=[msgspec.to_builtins(decision) for decision in decisions])

    def carries_over(self, strays: int) -> bool:
        """Whether its process still holds an earlier task.

        Its first request holds turns of a conversation, or it asked for an episode that is over and for this
        one not at all.
        """
        return self.seen.begins_within or (strays > 0 and not self.seen.requests)

    def _life(self) -> None:
        """What became of the user's words, and whether all that the script does could come to pass."""
        trace, words, approver = self.stage.trace, self._wire.words, self.stage.approver
        assert trace is not None
        if approver is not None:
            approver.close()
        # Words behind the last turn that the limits allow can stand in no request.
        for text in () if trace.reached else (*words.undelivered, *self.stage.unsaid):
            trace.undelivered_words += 1
            trace.found("undelivered_words", text)
        for text in words.forgotten:
            trace.forgotten_words += 1
            trace.found("forgotten_words", text)
        self._why_not = tuple(why_not_exercised(self._arena.scenario, self.stage, self._wire, self._kills))
        trace.not_exercised = bool(self._why_not)

    def close(self) -> bool:
        """Let nothing more in; whether calls of the last turn were not run."""
        unanswered = self.stage.close()
        self._server.remove(self._token)
        return unanswered

    def finish(self, finished: Finished) -> tuple[Episode, Kept]:
        """Score it; its record beside it. Raises where evalkit itself failed."""
        unanswered = self.close()
        seconds = time.monotonic() - self._began
        ending, note = _ending(finished, self._contract.rules, self._wire.failure)
        if not note and ending.kind == "error" and not self.stage.faulted:
            note = _broke(finished, ending)
        if note and ending.kind == "error" and self.seen.turned_away:
            note = self._refused(note)
        self._life()
        episode = score(self._arena, self.stage, ending, self._seed, note)
        if finished.left and unanswered:
            assert self.stage.trace is not None
            self.stage.trace.found("lost_work", "calls of the last turn were under way when it was killed")
            findings = tuple(self.stage.trace.findings)
            episode = msgspec.structs.replace(episode, lost_work=True, findings=findings)
        seen = {**told_of(self._wire.seen), **evidence(self.stage, self._wire, self._kills)}
        if finished.left:
            seen["processes left running"] = finished.left
        if self._why_not:
            seen[NOT_EXERCISED] = list(self._why_not)
        kept = Kept(
            self._contract.name,
            self._seed,
            self.stage.exchanges,
            finished.output,
            finished.exit,
            round(seconds, 3),
            seen,
            self._first_wrong(episode),
            episode.findings,
            episode.open_items,
        )
        return episode, kept

    def _refused(self, note: str) -> str:
        """A note on a harness that failed at a request that was refused, with the server's reason."""
        assert self.stage.trace is not None
        flags = ("protocol_faults", "dialect_faults")
        why = [found.thing for found in self.stage.trace.findings if found.flag in flags]
        return f"{note.rstrip(' :')}; evalkit had refused its last request: {why[-1]}" if why else note

    def _first_wrong(self, episode: Episode) -> Wrong | None:
        assert self.stage.trace is not None
        if episode.correct:
            return None
        harm = first_harm(episode.correct, episode.findings)
        for decision in self.stage.trace.decisions:
            if (decision.ended == "done") != decision.held and (harm is None or decision.turn < harm.turn):
                return Wrong(decision.turn, decision.held, decision.ended, decision.cause)
        if harm is None:
            return None
        return Wrong(harm.turn, False, None, "", f"{harm.flag.replace('_', ' ')}: {harm.thing}")


def run_foreign(
    arena: Arena, seed: int, contract: Contract, runner: Runner, server: Server
) -> tuple[Episode, Kept]:
    """Run one episode and score it; its record beside it. Raises where evalkit itself failed."""
    strays = server.strays
    trial = Trial(arena, seed, contract, server)
    try:
        finished = runner.run(trial.told, trial.over, trial.then)
    except BaseException:
        trial.close()
        raise
    if isinstance(runner, ResidentRunner) and runner.trusted and trial.carries_over(server.strays - strays):
        trial.close()
        runner.distrust()
        episode, kept = run_foreign(arena, seed, contract, runner, server)
        kept.seen[CARRIED] = "what an earlier task left behind; each task now has a process of its own"
        return episode, kept
    return trial.finish(finished)


def _ending(finished: Finished, rules: tuple[Rule, ...], failure: Exception | None) -> tuple[Ending, str]:
    """What ended the episode on evalkit's side wins over what the harness made of it."""
    if isinstance(failure, NeverEnds):
        return Ending("never", CAP), ""
    if isinstance(failure, ToolFailed):
        note = " ".join(str(failure).split())
        return Ending("error", note.split(":")[0]), note
    if failure is not None:
        raise failure
    return ending_of(finished, rules)


def _broke(finished: Finished, ending: Ending) -> str:
    """Why a program failed of which only its exit tells, by what it wrote; else empty."""
    if finished.told is not None or ending.native != finished.exit:
        return ""
    return f"{finished.exit}: {telling_line(finished.output)[:200] or 'it wrote nothing'}"


def variables(task: Task, contract: Contract, url: str) -> dict[str, str]:
    """What a harness is told of an episode, as environment variables."""
    limits = task.limits
    told: dict[str, Any] = {
        "ANTHROPIC_BASE_URL": url,
        "OPENAI_BASE_URL": f"{url}/v1",
        "EVALKIT_TOOLS_URL": f"{url}/tools",
        "EVALKIT_MCP_URL": f"{url}/mcp",
        "EVALKIT_PROMPT": f"{task.prompt}\nDone when: {task.done_when}",
        "EVALKIT_DIALECT": contract.dialect,
        "EVALKIT_MODEL": contract.model or MODELS[contract.dialect],
        "EVALKIT_MAX_TURNS": limits.turns,
        "EVALKIT_MAX_TOKENS": limits.tokens,
        "EVALKIT_MAX_USD": limits.usd,
        "EVALKIT_MAX_CALLS": limits.calls,
        "EVALKIT_KEYWORD": contract.offered.keyword,
        "EVALKIT_USER_URL": f"{url}/user",
        "EVALKIT_APPROVAL_URL": f"{url}/approval" if contract.events.approve == "callback" else None,
        "EVALKIT_VARIANT": contract.variant,
    }
    if contract.offered.output:
        told["EVALKIT_OUTPUT_SCHEMA"] = json.dumps(task.output or DEFAULT_OUTPUT)
    return {name: str(value) for name, value in told.items() if value is not None}


def told_of(seen: Seen) -> dict[str, Any]:
    """What the server saw beside the trace; zeros are left out."""
    told: dict[str, Any] = {
        "model requests": seen.requests - seen.tool_requests,
        "tool requests": seen.tool_requests,
        "side requests": dict(seen.side),
        CHILDREN: dict(seen.children),
        "new conversations": seen.amnesia,
        "rewritten conversations": seen.compactions,
        "refused requests": seen.refused,
        "dialect faults": list(seen.dialect_faults),
        "warnings": dict(seen.warnings),
        "not expressible": dict(seen.inexpressible),
        UNREACHABLE: dict(seen.unreachable),
        UNOFFERED: dict(seen.unoffered),
    }
    return {name: value for name, value in told.items() if value}


def ruled_out(seen: Mapping[str, Any]) -> str:
    """Why an answer that was played could not have come to what was asked; empty where all could.

    ``seen`` is what the server saw, as a record keeps it.
    """
    return f"such an answer cannot come: {', '.join(seen[UNREACHABLE])}" if seen.get(UNREACHABLE) else ""


def server_for_harnesses(port: int | None = None) -> Server:
    """A server for many episodes, to be entered; with a ``port``, for one at a time at a fixed address."""
    return Server(port=port or 0, stall_scale=STALL_SCALE, sole=port is not None)
