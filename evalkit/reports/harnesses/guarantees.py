"""What a harness gave when it was killed and when a person decided, beside what its documentation says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from evalkit.core.escaping import for_markdown
from evalkit.harnesses.manifest import Events, Promise
from evalkit.reports.harnesses.event_table import Lived, living_markdown
from evalkit.runs.plan import cell_name, is_worker
from evalkit.runs.store import Store
from evalkit.scenarios.scenario import SEVERAL, Scenario

#: In the place of what a harness has no notion of, and of what left no evidence that it landed.
CANNOT, UNSEEN = "·", "not exercised"
#: What a kill led to that no promise of "exactly once" allows, and what a decision led to that it forbids.
BROKEN = ("twice", "lost", "failed")
KEPT = "kept"
_HOW = f"""
`{CANNOT}`: the harness has no notion of it. *{UNSEEN}*: the event left no evidence that it landed, so the
cell says nothing. Each program passes a person's decisions on as they come; what it keeps and how it resumes
stands in its folder under `harnesses/`, in one short file. *once 5/5*: in each of five plays; *once 3,
lost 2*: the plays differ. A few plays show what can happen, not how often; **bold** is what an exactly-once
promise or the person's decision forbids.
"""
_WORDS = """
*once*, *twice*: how often the call took effect in the end. *lost*: never, and nobody was told. *closed*,
*said*: the harness answered the call itself, with a result that no tool gave, and did not run it again.
*failed*: the run did not go on. The guarantee is what the exercised moments amount to. What a
framework writes in the background races with the kill, most of all *when the call was answered* (20 ms) and
where a transcript is written late: another play may show something else.
"""


_SEVERAL = """
Their first requests are held until all have come. Counted is how often the one call took effect: *once*, or
as often as there are processes. The durable worker takes what it resumes by a lease, in processes that this
cannot start: once in 1,000 of 1,000 (`tests/worker/test_resumed_at_once.py`, in `make soak`).
"""


class Cell(msgspec.Struct, frozen=True):
    """What one episode showed of one class; ``why`` where it cannot be played with the harness."""

    ending: str = ""
    truth: str = ""
    exercised: bool = True
    duplicate_effects: int = 0
    closed_calls: int = 0
    unapproved_calls: int = 0
    unasked_calls: int = 0
    why: str = ""


class Class(msgspec.Struct, frozen=True):
    """A class of crash or of approval: its scenario, its name, what happens in it.

    ``several``: more than one process resumes it at once.
    """

    scenario: str
    family: str
    name: str
    happens: str
    several: bool = False

    @property
    def heading(self) -> str:
        """The column's: of a crash its moment, of an approval what may go wrong."""
        if self.family == "approvals" or self.several:
            return self.name
        return self.scenario.removeprefix("killed-").replace("-", " ")


class Row(msgspec.Struct, frozen=True):
    """A harness: the plays of each scenario (none where it was not played), its documentation, its events.

    ``plays`` of ``events_of`` scenarios of the library in which something happens can be played with it.
    """

    name: str
    summary: str
    cells: dict[str, tuple[Cell, ...]]
    promises: tuple[Promise, ...] = ()
    events: Events = Events()
    plays: int = 0


def class_of(scenario: Scenario) -> Class:
    """The class that a scenario is of; its summary begins with the name."""
    title, _, happens = scenario.summary.partition(": ")
    several = SEVERAL in scenario.events
    return Class(scenario.name, scenario.family, title, happens, several)


def cells_of(store: Store) -> dict[str, Cell]:
    """The cells of a run of one harness."""
    recipe = store.recipe
    query = (
        "select scenario_name, ending, truth, not_exercised, duplicate_effects, closed_calls,"
        " unapproved_calls, unasked_calls from episodes"
    )
    cells = {
        name: Cell(ending, truth, not missed, *counts)
        for name, ending, truth, missed, *counts in store.rows(query)
    }
    (contender,) = recipe.contenders
    for entry in recipe.entries:
        why = recipe.not_expressible.get(cell_name(entry.name, contender.harness))
        if why is not None:
            cells[entry.name] = Cell(why=why)
    return cells


def of_crash(cell: Cell) -> str:
    """What a kill led to: the call took effect ``once``, ``twice``, or was ``lost``.

    A harness may close the call itself, with a result that no tool gave, and not run it again: ``once and
    closed`` where it had taken effect, ``lost and said`` where it had not. ``failed``: it did not go on.
    """
    if cell.why or not cell.exercised:
        return CANNOT if cell.why else UNSEEN
    if cell.duplicate_effects:
        return "twice"
    if cell.truth == "complete":
        return "once and closed" if cell.closed_calls else "once"
    if cell.closed_calls:
        return "lost and said"
    return "failed" if cell.ending in ("error", "never") else "lost"


def of_several(cell: Cell) -> str:
    """How often a call took effect that several processes resumed at once."""
    if cell.why or not cell.exercised or not cell.duplicate_effects:
        return of_crash(cell)
    return f"{1 + cell.duplicate_effects} times"


def of_approval(cell: Cell) -> str:
    """Whether a person's decisions held, and what broke them."""
    if cell.why or not cell.exercised:
        return CANNOT if cell.why else UNSEEN
    broken = [
        words
        for words, count in (
            ("ran again or against it", cell.unapproved_calls),
            ("effect twice", cell.duplicate_effects),
            ("allowed and never ran", cell.unasked_calls),
        )
        if count
    ]
    if not broken and cell.truth != "complete":
        broken = ["failed" if cell.ending in ("error", "never") else "never asked again"]
    return " and ".join(broken) or KEPT


def guarantee(given: Iterable[str]) -> str:
    """The guarantee that what was given at each moment amounts to."""
    seen = [each for each in given if each not in (CANNOT, UNSEEN)]
    if not seen:
        return UNSEEN
    lost = any(each in ("lost", "failed") for each in seen)
    if "twice" in seen:
        said = "none: lost, though said, and twice" if "lost and said" in seen else "at least once"
        return "none: lost and twice" if lost else said
    if lost:
        return "at most once"
    return "at most once, in doubt and said" if "lost and said" in seen else "exactly once"


def of_plays(given: Sequence[str]) -> str:
    """What the plays of a cell gave: each word with how often, the most frequent first."""
    counts = Counter(given)
    if len(counts) > 1:
        return ", ".join(f"{word} {count}" for word, count in counts.most_common())
    (word,) = counts
    return word if len(given) == 1 or word == CANNOT else f"{word} {len(given)}/{len(given)}"


def guarantees_markdown(
    rows: Sequence[Row],
    classes: Sequence[Class],
    lived: Sequence[Lived],
    events_of: int,
    command: str,
    date: str,
    version: str,
) -> str:
    """The page."""
    several = [each for each in classes if each.several]
    crashes = [each for each in classes if each.family != "approvals" and not each.several]
    approvals = [each for each in classes if each.family == "approvals" and not each.several]
    asked = [row for row in rows if row.events.approve is not None]
    parts = [
        "# Guarantees",
        "What each harness gave when it was killed, and when a person decided, beside what its own "
        f"documentation says. Measured on {date} with evalkit {version}; scripted model. "
        f"Made again with `{command}`.",
        _HOW.strip(),
        "## When it is killed",
        "\n".join(f"- **{each.heading}** ({each.name}): {for_markdown(each.happens)}" for each in crashes),
        _table(rows, crashes, "crash"),
        _WORDS.strip(),
        "## When a person decides",
        "\n".join(f"- **{each.heading}**: {for_markdown(each.happens)}" for each in approvals),
        _table(asked, approvals, "approval"),
        "## When several resume it at once",
        _SEVERAL.strip(),
        "\n".join(f"- **{each.heading}**: {for_markdown(each.happens)}" for each in several),
        _table(rows, several, ""),
        "## What broke, and how to see it",
        _violations(rows, classes),
        *([living_markdown(lived)] if lived else []),
        "## What each has a notion of",
        _notions(rows, events_of),
    ]
    return "\n\n".join(parts) + "\n"


def _given(row: Row, of: Class) -> tuple[str, ...]:
    """What each play of a class gave."""
    plays = row.cells.get(of.scenario)
    if not plays:
        return (CANNOT,)
    if of.several:
        return tuple(of_several(cell) for cell in plays)
    return tuple(of_approval(cell) if of.family == "approvals" else of_crash(cell) for cell in plays)


def _broken(given: Iterable[str], of: Class) -> bool:
    seen = [each for each in given if each not in (CANNOT, UNSEEN)]
    if of.several:
        return any(each.endswith("times") or each in BROKEN for each in seen)
    return any(each != KEPT if of.family == "approvals" else each in BROKEN for each in seen)


def _table(rows: Sequence[Row], classes: Sequence[Class], about: str) -> str:
    heads = ["harness", *(["its documentation"] if about else []), *(each.heading for each in classes)]
    if about == "crash":
        heads.insert(2, "guarantee measured")
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for row in rows:
        if not row.cells:
            continue
        given = [(_given(row, each), each) for each in classes]
        shown = [f"**{of_plays(plays)}**" if _broken(plays, of) else of_plays(plays) for plays, of in given]
        if about == "crash":
            shown.insert(0, guarantee(word for plays, _ in given for word in plays))
        said = "; ".join(
            f"[{for_markdown(promise.says)}]({promise.source})"
            for promise in row.promises
            if promise.about == about
        )
        lines.append(" | ".join([f"| {row.name}", *([said or "–"] if about else []), *shown]) + " |")
    return "\n".join(lines)


def _violations(rows: Sequence[Row], classes: Sequence[Class]) -> str:
    lines = []
    for row in rows:
        for each in classes:
            given = _given(row, each)
            if _broken(given, each):
                command = _command(row.name, each.scenario)
                lines.append(f"- {row.name}, {each.heading}: {of_plays(given)}. `{command}`")
    return "\n".join(lines) or "Nothing."


def _command(name: str, scenario: str) -> str:
    if is_worker(name):
        return f"evalkit run harnesses/guarantees.yaml::{scenario} --harness {name} --out reports/{scenario}"
    return f"evalkit harnesses run {name} {scenario}"


def _notions(rows: Sequence[Row], events_of: int) -> str:
    lines = [
        f"Of the {events_of} scenarios of the library in which something happens to a harness, so many can "
        "be played with it; without its events it is none.",
        "",
        "| harness | the user's words | killed and resumed | approval | compaction | scenarios |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        events = row.events
        approve: str = events.approve or "–"
        if events.approve is not None:
            approve += ", a turn's together" if events.decide == "all" else ""
            approve += "" if events.change else ", no other arguments"
        words = ", ".join(moment.replace("_", " ") for moment in events.user) or "–"
        killed = "yes" if events.crash else "–"
        lines.append(
            f"| {row.name} | {words} | {killed} | {approve} | {events.compact or '–'} | {row.plays} |"
        )
    return "\n".join(lines)
