"""What became of each event of the library with each framework: correct, wrong by which flag, not played."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from evalkit.core.escaping import for_markdown
from evalkit.runs.plan import is_worker
from evalkit.runs.store import Store
from evalkit.scoring.episode_fields import SPOILERS

#: What is wrong where no flag that spoils an episode is set: it ended before its time, or otherwise wrongly.
EARLY, ENDING = "premature stop", "ending"
HOW = """
Each scenario of the library in which something happens, played once with the first variant of a framework
that has the notion: *correct of exercised*, then what the others did wrong (an episode may show several
things), *?* how many left no evidence that the event landed, *·* how many cannot be played. A scenario stands
in the column of each event that it holds. *premature stop* is the framework's rule of ending alone: it
returns at the first answer without a call, whether the work is done or not.
"""


class Lived(msgspec.Struct, frozen=True, omit_defaults=True):
    """A scenario in which ``events`` happen, as the ``player`` (a variant of the ``framework``) lived it.

    ``wrong`` is what kept it from being correct; ``why`` it could not be played.
    """

    framework: str
    player: str
    scenario: str
    events: tuple[str, ...]
    exercised: bool = True
    wrong: tuple[str, ...] = ()
    why: str = ""


def lived_of(store: Store, framework: str, player: str, events: dict[str, tuple[str, ...]]) -> list[Lived]:
    """What the run of one harness, the ``player``, shows; ``events`` are those of each scenario."""
    query = (
        f"select scenario_name, ending, truth, not_exercised, correct, premature_stop, {', '.join(SPOILERS)}"
        " from episodes order by scenario_name"
    )
    found = []
    for name, ending, truth, missed, correct, early, *counts in store.rows(query):
        wrong: tuple[str, ...] = ()
        if not correct:
            wrong = tuple(flag.replace("_", " ") for flag, n in zip(SPOILERS, counts, strict=True) if n)
            wrong = wrong or ((EARLY,) if early else (f"{ENDING} {ending}/{truth}",))
        found.append(Lived(framework, player, name, events[name], not missed, wrong))
    return found


def living_markdown(lived: Sequence[Lived]) -> str:
    """The table, what cannot be played and why, and what was wrong with how to see it."""
    parts = [
        "## What became of each event",
        HOW.strip(),
        _table(lived),
        "Not played, and why:",
        _unplayed(lived),
        "Wrong, and how to see it:",
        _wrong(lived),
    ]
    return "\n\n".join(parts)


def _frameworks(lived: Iterable[Lived]) -> list[str]:
    return list(dict.fromkeys(each.framework for each in lived))


def event_table(lived: Sequence[Lived]) -> tuple[list[str], dict[str, list[str]]]:
    """The events, and of each framework what became of each, in words."""
    events = sorted({event for each in lived for event in each.events}, key=_place)
    rows = {
        name: [
            _cell([each for each in lived if each.framework == name and event in each.events])
            for event in events
        ]
        for name in _frameworks(lived)
    }
    return events, rows


def _table(lived: Sequence[Lived]) -> str:
    events, rows = event_table(lived)
    lines = ["| framework | " + " | ".join(events) + " |", "|" + " --- |" * (len(events) + 1)]
    lines += [f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items()]
    return "\n".join(lines)


def _place(event: str) -> tuple[bool, str]:
    """The user's words come first."""
    return not event.startswith("user"), event


def _cell(lived: Sequence[Lived]) -> str:
    played = [each for each in lived if not each.why]
    exercised = [each for each in played if each.exercised]
    wrong = Counter(word for each in exercised for word in each.wrong)
    right = sum(not each.wrong for each in exercised)
    parts = [f"{right} of {len(exercised)}"] if exercised else []
    parts += [f"{word} {count}" for word, count in wrong.most_common()]
    parts += [f"{len(played) - len(exercised)} ?"] if len(played) > len(exercised) else []
    parts += [f"{len(lived) - len(played)} ·"] if len(lived) > len(played) else []
    return ", ".join(parts) or "–"


def _unplayed(lived: Sequence[Lived]) -> str:
    lines = []
    for name in _frameworks(lived):
        whys = Counter(each.why for each in lived if each.framework == name and each.why)
        if whys:
            said = "; ".join(f"{for_markdown(why)} ({count})" for why, count in whys.most_common())
            lines.append(f"- {name}: {said}")
    return "\n".join(lines) or "Nothing."


class Wrong(msgspec.Struct, frozen=True):
    """One thing that went wrong with a variant, and the scenarios that show it."""

    player: str
    word: str
    scenarios: tuple[str, ...]

    @property
    def command(self) -> str:
        """What shows the first of them turn by turn."""
        first = self.scenarios[0]
        if is_worker(self.player):
            return f"evalkit run {first} --harness {self.player} --out reports/{first}"
        return f"evalkit harnesses run {self.player} {first}"


def wrong_of(lived: Iterable[Lived]) -> list[Wrong]:
    """What went wrong with each framework, in the order of what it lived."""
    shown: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for each in lived:
        for word in each.wrong if each.exercised and not each.why else ():
            shown[each.framework, word, each.player].append(each.scenario)
    return [Wrong(player, word, tuple(scenarios)) for (_, word, player), scenarios in shown.items()]


def _wrong(lived: Sequence[Lived]) -> str:
    lines = []
    for wrong in wrong_of(lived):
        others = f"; also {', '.join(wrong.scenarios[1:])}" if wrong.scenarios[1:] else ""
        lines.append(f"- {wrong.player}, {wrong.word}, {len(wrong.scenarios)}: `{wrong.command}`{others}")
    return "\n".join(lines) or "Nothing."
