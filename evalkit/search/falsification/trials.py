"""Scripts run against a harness that can only be run, each at most once, within a budget."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from evalkit.core.events import UserWrites
from evalkit.core.tasks import DEFAULT_OUTPUT
from evalkit.harnesses.command import Runner
from evalkit.harnesses.episode_record import Kept
from evalkit.harnesses.resident import ResidentRunner
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode
from evalkit.scoring.foreign_episode import Contract, Trial
from evalkit.search.falsification.violations import Caps, broken_by
from evalkit.search.proofs.alphabet import Document, Move, item_names, moves_for, witness
from evalkit.search.proofs.environment import Setting, read_document
from evalkit.search.proofs.full_alphabet import decided, larger_moves
from evalkit.wire.expressible import not_expressible
from evalkit.wire.server import Server

#: So many of the first moves are tried in the place of any other: a report, and the list of the items.
_PLAINEST = 2


class Script(msgspec.Struct, frozen=True, order=True):
    """What the model does first, as places in the alphabet; then it does all of the work and says so.

    ``for_ever``: it repeats the last move instead. Scripts are ordered by length, then by plainness.
    """

    length: int
    for_ever: bool
    moves: tuple[int, ...]

    @classmethod
    def of(cls, moves: tuple[int, ...], for_ever: bool = False) -> Script:
        """A script; nothing cannot be repeated."""
        return cls(len(moves), for_ever and bool(moves), moves)


class Tried(msgspec.Struct, frozen=True):
    """A script as far as it was delivered, in the run of that number, and what came of it."""

    script: Script
    number: int
    broken: frozenset[str]
    episode: Episode
    kept: Kept

    @property
    def turns(self) -> int:
        """How many turns the harness asked for."""
        return self.episode.turns


class NoSuchMove(ValueError):
    """A pattern that names no move; one line."""


class OutOfBudget(KeyboardInterrupt):
    """No run is left. To Hypothesis it is the user's interrupt: it keeps what it has, and nothing more."""


class Alphabet:
    """What the model may do against a harness, in one setting.

    ``left_out`` are the names of moves that the harness's dialect cannot say. ``without`` are patterns of
    shell style: moves with such names are not made. NoSuchMove for one that fits none.
    """

    def __init__(
        self, contract: Contract, setting: Setting, *, streamed: bool = False, without: tuple[str, ...] = ()
    ) -> None:
        if contract.events.approve is not None:
            setting = msgspec.structs.replace(setting, alphabet="full")
        self.setting = setting
        self.names = item_names(setting.items)
        self._output = DEFAULT_OUTPUT if contract.offered.output else None
        every = (*moves_for(contract.offered, setting.items), *larger_for(contract, setting.items))
        for pattern in without:
            if not any(fnmatchcase(move.name, pattern) for move in every):
                known = "; ".join(dict.fromkeys(move.kind or move.name for move in every))
                raise NoSuchMove(f"no move is named {pattern!r}; the model's moves: {known}")
        moves = [move for move in every if not any(fnmatchcase(move.name, pattern) for pattern in without)]
        said = [move for move in moves if self._sayable(move, contract, streamed=streamed)]
        self.moves = tuple(said)
        self.left_out = tuple(move.name for move in moves if move not in said)
        kinds: dict[str, list[int]] = {}
        for place, move in enumerate(self.moves):
            kinds.setdefault(move.kind or move.name, []).append(place)
        #: The places of moves that differ in their item only.
        self.kinds = tuple(map(tuple, kinds.values()))
        #: The place of the move that lists the items, without which many harnesses know nothing.
        self.listing = next((at for at, move in enumerate(said) if move.name == "lists the items"), None)
        #: The places of the model's moves that are about no single item.
        self.of_no_item = tuple(at for at, move in enumerate(said) if move.item < 0 and not move.happens)
        self._plainer = {
            place: tuple(other for other in range(place) if self._likes(other, place))
            for place in range(len(self.moves))
        }

    def _likes(self, plainer: int, place: int) -> bool:
        """Whether a move may stand in another's place: one of the plainest, or of the same kind."""
        return plainer < _PLAINEST or self.is_alike(plainer, place)

    def is_alike(self, one: int, other: int) -> bool:
        """Whether two moves differ in their items only."""
        kind = self.moves[one].kind
        return bool(kind) and kind == self.moves[other].kind

    def plainer(self, place: int) -> tuple[int, ...]:
        """The moves that are plainer than one and like it."""
        return self._plainer[place]

    def works(self, place: int) -> bool:
        """Whether a move does or undoes an item."""
        return not self.moves[place].document.keys().isdisjoint(("work", "undo"))

    def turns(self, moves: tuple[int, ...]) -> int:
        """How many turns these moves are, each delivered once."""
        return sum(not self.moves[place].happens for place in moves)

    def _sayable(self, move: Move, contract: Contract, *, streamed: bool) -> bool:
        scenario = read_document(self.document([move.document]))
        offered = (contract.offered,)
        return not_expressible(scenario, contract.dialect, streamed=streamed, offered=offered) is None

    def document(self, moves: list[Document], name: str = "free-model", **about: str) -> dict[str, Any]:
        """A scenario in which the model makes these moves, then does all of the work."""
        told = {"source": "found by evalkit falsify", **about}
        shown = witness(self.names)
        if self.setting.gated:
            listed, _, done = shown
            each = [step for item in self.names for step in ({"work": [item]}, {"approve": [item]})]
            shown = [listed, *each, done]
        return self.setting.scenario(self._output, [*moves, *shown], name, **told)

    def scripted(self, script: Script, until: str = "") -> list[Document]:
        """The moves of a script; ``until`` is what the last one waits for where it is repeated for ever."""
        moves = [document for place in script.moves for document in self.moves[place].script]
        if script.for_ever:
            last = self.moves[script.moves[-1]]
            again: Document = {"repeat": {"times": "forever", "do": last.script}}
            if until and last.then is None:
                again = {**last.document, "until": until}
            moves = [*moves[: -len(last.script)], again]
        return moves

    def script(self, moves: tuple[int, ...], for_ever: bool = False) -> Script:
        """These moves; what happens from outside is not repeated for ever."""
        return Script.of(moves, for_ever and bool(moves) and not self.moves[moves[-1]].happens)

    def said(self, script: Script) -> tuple[str, ...]:
        """The names of a script's moves."""
        names = [self.moves[place].name for place in script.moves]
        if script.for_ever:
            names[-1] += ", for ever"
        return tuple(names)


class Trials:
    """Runs scripts against one harness. ``left`` is how many more it may run, ``runs`` how many it has run.

    A script is not run again where the harness had come to its end within the same moves.
    """

    def __init__(
        self,
        contract: Contract,
        runner: Runner,
        server: Server,
        alphabet: Alphabet,
        caps: Caps,
        deadline: float,
    ) -> None:
        self._contract = contract
        self._runner = runner
        self._server = server
        self._alphabet = alphabet
        self._caps = caps
        self._deadline = deadline
        self.left = 0
        self.runs = 0
        self.known: dict[Script, Tried] = {}
        #: The scripts in the order in which they were run.
        self.order: list[Script] = []

    def begin_anew(self) -> None:
        """Let the next run be the first of its process, where one process does many."""
        if isinstance(self._runner, ResidentRunner):
            self._runner.restart()

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self._deadline

    def result(self, script: Script) -> Tried | None:
        """What is known to come of a script; None where it has to be run."""
        moves, happens = self._alphabet.moves, [self._alphabet.moves[place].happens for place in script.moves]
        turns = 0
        for length in range(len(script.moves)):
            tried = self.known.get(Script.of(script.moves[:length]))
            # An event may let a run go on that had ended.
            if tried is not None and tried.turns <= turns and not any(happens[length:]):
                return tried
            turns += not moves[script.moves[length]].happens
        return self.known.get(script)

    def __call__(self, script: Script) -> Tried:
        """What comes of a script. OutOfBudget where it would have to be run and may not."""
        tried = self.result(script)
        if tried is not None:
            return tried
        if self.left < 1 or self.late:
            raise OutOfBudget
        self.left -= 1
        tried = self.run(script, self._alphabet.document(self._alphabet.scripted(script)))
        self.known[tried.script] = tried
        return tried

    def run(self, script: Script, document: dict[str, Any]) -> Tried:
        """Run a script as this scenario, known or not."""
        self.runs += 1
        arena = Arena(read_document(document), self._contract.offered)
        trial = Trial(arena, 0, self._contract, self._server)
        try:
            finished = self._runner.run(trial.told, trial.over, trial.then)
        except BaseException:
            trial.close()
            raise
        episode, kept = trial.finish(finished)
        stage = trial.stage
        assert stage.trace is not None
        delivered = self._delivered(script, episode.turns)
        self.order.append(delivered)
        blocked = any(self._alphabet.moves[place].blocks for place in delivered.moves)
        written = {turns for turns, event in stage.happened if isinstance(event, UserWrites)}
        tools, caps = stage.task.tools, self._caps
        broken = broken_by(episode, kept, stage.trace, tools, caps, blocked=blocked, written=written)
        return Tried(delivered, self.runs, broken, episode, kept)

    def _delivered(self, script: Script, turns: int) -> Script:
        """A script without the moves that came too late."""
        for length, place in enumerate(script.moves):
            happens = self._alphabet.moves[place].happens
            if turns <= 0 and happens != "ended":
                return Script.of(script.moves[:length])
            turns -= not happens
        return script if turns > 0 else Script.of(script.moves)


def larger_for(contract: Contract, items: int) -> tuple[Move, ...]:
    """What the larger alphabet adds against a harness: batches, and what it has a notion of."""
    events = contract.events
    approves = events.approve is not None
    notions = {when for when in events.user if when in ("between_turns", "ended")}
    found = []
    for move in larger_moves(contract.offered, items, worker=events.crash):
        if move.unapproved or move.happens in ("approve", "compact"):
            continue
        if move.happens in ("user", "leaves") and "between_turns" not in notions:
            continue
        if move.happens == "ended" and "ended" not in notions:
            continue
        found.append(move)
    return (*found, *decided(items)) if approves else tuple(found)
