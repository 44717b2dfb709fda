"""A harness's card: how it counts, ends and gives up, read off a series of small scenes played with it.

Nothing of it is declared. Each line names the scenes that it was seen in; what no scene showed is not said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from evalkit import __version__
from evalkit.core.tasks import Limits
from evalkit.harnesses.episode_record import Exchange, Kept
from evalkit.harnesses.find import BEHAVIOURS, SCENES
from evalkit.harnesses.manifest import Harness
from evalkit.scenarios.loader import load_file
from evalkit.scenarios.moves import CallMove, RepeatMove, RepeatSpec
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.episode import Episode
from evalkit.scoring.foreign_episode import ruled_out, why_not_expressible
from evalkit.wire.dialects import TITLES

#: The scene in which the model is done in the last turn that the harness's own cap allows.
AT_OWN_CAP = "done-at-its-own-cap"
#: The model's fourth answer is what most scenes are about.
_FOURTH = 3
_ABOUT = {"call-under-end-label": 1}
_STOPS: dict[str, str] = {
    "progress-report": "a progress report",
    "progress-as-commentary": "a progress report, tagged as commentary",
    "claims-done-too-early": "done is claimed too early",
    "finish-too-early": "the finish call comes too early",
    "thinking-only": "only thinking",
    "empty-turn": "an empty turn",
    "paused": "a pause in words",
    "paused-in-a-server-tool": "a pause in a server tool",
    "cut-in-text": "cut off in its text",
    "cut-in-call": "cut off in a call",
    "cut-call-that-parses": "cut off behind a call that parses",
    "window-full": "the window is full",
    "refusal": "a refusal",
    "stop-sequence": "a stop sequence",
    "tool-label-without-call": "words under the label of a call",
    "call-under-end-label": "a call under the label of an end",
    "unknown-label": "a label that nobody knows",
    "label-failed": "words under the label of a failure",
    "label-cancelled": "words under the label of a cancellation",
    "label-compaction": "words under the label of a compaction",
    "answer-in-progress": "an answer in progress",
    "overloaded-twice": "529, twice",
    "bad-request": "400",
    "stream-cut": "the stream breaks off",
}
#: What comes again and again, and the cap that it shows.
_AGAIN: dict[str, str] = {
    "reports-for-ever": "reports",
    "empty-for-ever": "empty turns",
    "paused-for-ever": "resends of a pause",
    "cut-for-ever": "turns that are cut off",
    "refuses-for-ever": "refusals",
    "overloaded-for-ever": "requests answered 529",
    "bad-request": "requests answered 400",
}
#: The line of a card that holds its silent ends.
SILENT = ("ends as done, the work open", "after")
_TIMED_OUT = "time limit"
_NUDGES = ("nudged", "rejected the finish")


class Sight(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one scene showed. ``why`` stands alone, where the scene cannot be played with the harness.

    ``answers`` count the turns and the faults, ``turns`` the turns. ``calls`` are those of the last turn,
    ``ran`` those of them that a tool was asked for. ``label`` is that of the answer that the scene is about,
    ``then`` what was made of it.
    """

    why: str = ""
    ending: str = ""
    native: str = ""
    truth: str = ""
    turns: int = 0
    answers: int = 0
    tokens: int = 0
    nudges: int = 0
    calls: int = 0
    ran: int = 0
    over_limit: int = 0
    ran_cut_off: bool = False
    label: str = ""
    then: str = ""

    @property
    def ended(self) -> bool:
        """Whether the harness came to an end by itself."""
        return not self.why and self.ending != "never"

    @property
    def timed_out(self) -> bool:
        """Whether the time limit ended it, so that its counts are of this machine."""
        return self.ending == "never" and self.native.startswith(_TIMED_OUT)

    @property
    def silent(self) -> bool:
        """Whether it ended as done and the work could have been gone on with."""
        return self.ending == "done" and self.truth == "reachable"

    @property
    def cannot(self) -> str:
        """Why it cannot be played, without the place in the script; empty where it can."""
        return self.why.split(": ", 1)[-1]

    @property
    def told(self) -> str:
        """The ending, in words."""
        if self.ending == "never":
            return f"never ended ({self.native})"
        return f"ended {self.ending}" + (f" ({self.native})" if self.native else "")


class Line(msgspec.Struct, frozen=True):
    """One line of a card; ``scenes`` are those it was read off. Not ``seen``: ``says`` has why not."""

    section: str
    about: str
    says: str
    scenes: tuple[str, ...]
    seen: bool = True


class Card(msgspec.Struct, frozen=True):
    """A harness's card. ``pins`` are the versions of its environment, ``sights`` what each scene showed."""

    harness: str
    summary: str
    pins: tuple[str, ...]
    dialect: str
    streamed: bool
    evalkit: str
    lines: tuple[Line, ...]
    sights: dict[str, Sight]

    def line(self, section: str, about: str) -> Line:
        """One of its lines. KeyError where there is none."""
        for line in self.lines:
            if (line.section, line.about) == (section, about):
                return line
        raise KeyError(f"{section}: {about}")


Play = Callable[[Scenario], tuple[Episode, Kept]]


def measure(harness: Harness, play: Play) -> Card:
    """Play the series with a harness that was heard, and read its card off what was seen.

    ``play`` plays one scenario with it. What evalkit itself fails at is raised.
    """
    scenes = {scene.name: scene for file in (BEHAVIOURS, SCENES) for scene in load_file(file)}
    sights = {name: look(scene, harness, play) for name, scene in scenes.items()}
    own = own_cap(sights)
    if own is not None:
        last = _at(scenes["done-in-the-last-turn"], own)
        sights[AT_OWN_CAP] = (
            Sight(why=f"its cap of {own} turns is too small for the work") if last is None
            else look(last, harness, play)
        )  # fmt: skip
    return Card(
        harness.name,
        harness.summary,
        tuple(harness.pins),
        TITLES[harness.dialect],
        harness.streamed,
        __version__,
        tuple(lines_of(sights, _limits(scenes))),
        sights,
    )


def look(scene: Scenario, harness: Harness, play: Play) -> Sight:
    """What one scene shows of a harness."""
    why = why_not_expressible(scene, harness)
    if why is not None:
        return Sight(why=why)
    episode, kept = play(scene)
    why = ruled_out(kept.seen)
    if why:
        return Sight(why=why)
    return sight_of(episode, kept.exchanges, _ABOUT.get(scene.name, _FOURTH))


def sight_of(episode: Episode, exchanges: list[Exchange], at: int = _FOURTH) -> Sight:
    """What an episode showed; ``at`` is the place of the answer that it is about, from 0."""
    last = exchanges[-1] if exchanges else Exchange(0, "", None, "", [])
    about = exchanges[at] if len(exchanges) > at else None
    return Sight(
        "",
        episode.ending,
        episode.native,
        episode.truth,
        episode.turns,
        len(exchanges),
        episode.tokens,
        sum(step.action in _NUDGES for step in exchanges),
        sum(block["kind"] == "call" for block in last.blocks),
        sum(not result.get("orphan") for result in last.results),
        episode.over_limit,
        episode.ran_cut_off_call,
        "" if about is None else about.native or about.stop,
        "" if about is None else about.action,
    )


def own_cap(sights: Mapping[str, Sight]) -> int | None:
    """The turns after which a harness that was told no limit ends while the model goes on; None without."""
    reads = sights["hundred-readings"]
    return reads.turns if reads.ended and reads.truth == "reachable" else None


def _at(scene: Scenario, turns: int) -> Scenario | None:
    """The scene without its limit, with so many readings that the model is done in that turn."""
    assert scene.limits.turns is not None
    more = turns - scene.limits.turns
    if more < 0:
        return None
    reading = CallMove(call="read_item", with_={"item": "harbour"})
    readings = (RepeatMove(repeat=RepeatSpec(more, (reading,))),) if more else ()
    moves = (scene.moves[0], *readings, *scene.moves[1:])
    return msgspec.structs.replace(scene, name=AT_OWN_CAP, limits=Limits(), moves=moves)


def _limits(scenes: Mapping[str, Scenario]) -> dict[str, Limits]:
    return {name: scene.limits for name, scene in scenes.items()}


# What the sights say


def lines_of(sights: Mapping[str, Sight], limits: Mapping[str, Limits]) -> list[Line]:
    """The lines of a card; ``limits`` are those that each scene told the harness."""
    return [
        *_counting(sights),
        _last_turn(sights),
        _beside_finish(sights),
        _cut_off_call(sights),
        _done_or_limit(sights, limits),
        *_caps(sights, limits),
        *_giving_up(sights),
        _silent(sights),
        *_stops(sights),
    ]


def _counting(sights: Mapping[str, Sight]) -> list[Line]:
    """What is one turn to a harness, by where a cap of turns falls."""
    single, section = sights["limit-of-turns"], "a turn"
    names = {
        "calls": "limit-of-turns-in-batches",
        "a failed request": "limit-of-turns-after-faults",
        "a paused turn": "limit-of-turns-after-a-pause",
    }
    return [
        _counted(section, about, name, single, sights[name]) for about, name in names.items()
    ]  # fmt: skip


def _counted(section: str, about: str, name: str, single: Sight, other: Sight) -> Line:
    scenes = ("limit-of-turns", name)
    if not single.ended:
        return Line(section, about, f"no cap of turns: {single.told}", scenes, False)
    if other.why:
        return Line(section, about, other.cannot, scenes, False)
    fell = f"{_many(single.turns, 'turn')} with a call each"
    if about == "calls":
        with_three = f"{_many(other.turns, 'turn')} with three"
        if other.turns == single.turns:
            return Line(section, about, f"do not count: ended after {fell}, {with_three}", scenes)
        return Line(section, about, f"count: ended after {fell}, {with_three}", scenes)
    if (other.ending, other.native) != (single.ending, single.native):
        return Line(section, about, f"{other.told} and not at its cap", scenes, False)
    more = 2 if about == "a failed request" else 1
    counts = {single.turns: about == "a paused turn", single.turns - more: True, single.turns + more: False}
    if other.turns not in counts:
        says = f"ended after {_many(other.turns, 'turn')}, without one after {single.turns}"
        return Line(section, about, says, scenes)
    word = "counts" if counts[other.turns] else "does not count"
    return Line(section, about, f"{word}: ended after {fell}, and after {other.turns} with it", scenes)


def _last_turn(sights: Mapping[str, Sight]) -> Line:
    section, about, scenes = "the last turn", "its calls at a cap", ("limit-of-turns",)
    sight = sights["limit-of-turns"]
    if not sight.ended or not sight.calls:
        return Line(section, about, f"no cap of turns: {sight.told}", scenes, False)
    says = "are run, and what they answer is not sent" if sight.ran >= sight.calls else "are not run"
    return Line(section, about, f"{says}; {sight.told}", scenes)


def _beside_finish(sights: Mapping[str, Sight]) -> Line:
    section, about, name = "the last turn", "calls beside a finish", "finish-in-a-batch"
    sight = sights[name]
    if sight.why or sight.calls < 2:
        return Line(section, about, sight.cannot or "it offers no finish tool", (name,), False)
    says = "are run" if sight.truth == "complete" else "are not run"
    return Line(section, about, f"{says}; {sight.told}", (name,))


def _cut_off_call(sights: Mapping[str, Sight]) -> Line:
    section, about = "the last turn", "a call of a cut-off turn"
    names = ("cut-in-call", "cut-call-that-parses")
    seen = [name for name in names if not sights[name].why]
    if not seen:
        return Line(section, about, sights[names[1]].cannot, names, False)
    ran = [name for name in seen if sights[name].ran_cut_off]
    return Line(section, about, "is run" if ran else "is not run", tuple(ran or seen))


def _done_or_limit(sights: Mapping[str, Sight], limits: Mapping[str, Limits]) -> Line:
    section, about = "done and a limit in one turn", "which wins"
    own = own_cap(sights)
    told = _holds(sights, limits, "limit-of-turns")
    name = "done-in-the-last-turn" if told else AT_OWN_CAP
    if not told and own is None:
        said = sights["limit-of-turns"].told
        return Line(section, about, f"no cap of turns: {said}", ("limit-of-turns", "hundred-readings"), False)
    sight = sights[name]
    if sight.why:
        return Line(section, about, sight.cannot, (name,), False)
    turns = limits["limit-of-turns"].turns if told else own
    wins = "done" if sight.ending == "done" else "the limit" if sight.ending == "limit" else "neither"
    return Line(section, about, f"{wins}: {sight.told}, the work complete in turn {turns}", (name,))


# Caps


def _holds(sights: Mapping[str, Sight], limits: Mapping[str, Limits], name: str) -> bool:
    """Whether a limit of turns that was told, and no other, ended a scene."""
    sight = sights[name]
    return sight.ended and sight.turns == limits[name].turns and sight.turns != own_cap(sights)


def _caps(sights: Mapping[str, Sight], limits: Mapping[str, Limits]) -> list[Line]:
    section = "caps"
    reads, own = sights["hundred-readings"], own_cap(sights)
    if own is not None:
        default = Line(section, "turns, by default", f"{own}: {reads.told}", ("hundred-readings",))
    else:
        says = f"none within {_many(reads.turns, 'turn')}: {reads.told}"
        default = Line(section, "turns, by default", reads.cannot or says, ("hundred-readings",), False)
    told = [
        _told_cap(sights, limits, name, unit)
        for name, unit in (
            ("limit-of-turns", "turns"),
            ("limit-of-calls", "calls"),
            ("limit-of-tokens", "tokens"),
            ("limit-of-dollars", "usd"),
        )
    ]
    return [default, *told]


def _told_cap(sights: Mapping[str, Sight], limits: Mapping[str, Limits], name: str, unit: str) -> Line:
    """Whether a limit that the harness is told ends it: where it ended, beside where it ends without one."""
    sight, own = sights[name], own_cap(sights)
    limit = f"{getattr(limits[name], unit):g} {unit}"
    about = f"{unit}, told"
    ends_anyway = own is not None and sight.turns == own
    if not sight.ended or ends_anyway:
        says = f"not held: {sight.told} after {_many(sight.turns, 'turn')}, told {limit}"
    elif sight.over_limit:
        says = f"held late: {sight.told}, {sight.over_limit} beyond {limit}"
    else:
        says = f"held: {sight.told} after {_many(sight.turns, 'turn')}, told {limit}"
    return Line("caps", about, says, (name,))


def _giving_up(sights: Mapping[str, Sight]) -> list[Line]:
    """After how many of the same a harness ends, and how."""
    lines = []
    for name, about in _AGAIN.items():
        sight = sights[name]
        if sight.why:
            lines.append(Line("caps", about, sight.cannot, (name,), False))
            continue
        times = sight.answers - _FOURTH
        says = f"{times}: {sight.told}" if sight.ended else f"none within {times}: {sight.told}"
        lines.append(Line("caps", about, says, (name,), sight.ended))
    return lines


# Ends


def _silent(sights: Mapping[str, Sight]) -> Line:
    names = [name for name in _STOPS if sights[name].silent]
    says = "; ".join(_STOPS[name] for name in names) or "nothing of what was played"
    return Line(*SILENT, says, tuple(names))


def _stops(sights: Mapping[str, Sight]) -> list[Line]:
    section = "each stop"
    lines = []
    for name, about in _STOPS.items():
        sight = sights[name]
        if sight.why:
            lines.append(Line(section, about, sight.cannot, (name,), False))
            continue
        at = sight.then == "ended"
        says = sight.told if at else f"{sight.then or 'no further request'}; {sight.told}"
        lines.append(Line(section, f"{about} ({sight.label})", f"{says}, {sight.truth}", (name,)))
    return lines


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")
