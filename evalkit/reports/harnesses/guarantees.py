"""What a harness gave when it was killed and when a person decided, beside what its documentation says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from evalkit.core.escaping import for_markdown
from evalkit.harnesses.manifest import Events, Promise
from evalkit.runs.plan import cell_name, is_worker
from evalkit.runs.store import Store

#: In the place of what a harness has no notion of, and of what left no evidence that it landed.
CANNOT, UNSEEN = "·", "not exercised"
#: What a kill led to that no promise of "exactly once" allows, and what a decision led to that it forbids.
BROKEN = ("twice", "lost", "failed")
KEPT = "kept"
_HOW = f"""
`{CANNOT}`: the harness has no notion of it. *{UNSEEN}*: the event left no evidence that it landed, so the
cell says nothing. Each program passes a person's decisions on as they come; what it keeps and how it resumes
stands in its folder under `harnesses/`, in one short file. One episode shows what can happen, not how often;
**bold** is what an exactly-once promise or the person's decision forbids.
"""
_WORDS = """
*once*, *twice*: how often the call took effect in the end. *lost*: never, and nobody was told. *closed*,
*said*: the harness answered the call itself, with a result that no tool gave, and did not run it again.
*failed*: the run did not go on. The guarantee is what the exercised moments amount to. What a
framework writes in the background races with the kill, most of all *when the call was answered* (20 ms) and
where a transcript is written late: another run may show another cell.
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
    """A class of crash or of approval: its scenario, its name, what happens in it."""

    scenario: str
    family: str
    name: str
    happens: str

    @property
    def heading(self) -> str:
        """The column's: of a crash its moment, of an approval what may go wrong."""
        if self.family == "approvals":
            return self.name
        return self.scenario.removeprefix("killed-").replace("-", " ")


class Row(msgspec.Struct, frozen=True):
    """A harness: its cells by scenario (none where it was not played), its documentation, its events.

    ``plays`` of ``events_of`` scenarios of the library in which something happens can be played with it.
    """

    name: str
    summary: str
    cells: dict[str, Cell]
    promises: tuple[Promise, ...] = ()
    events: Events = Events()
    plays: int = 0


def class_of(name: str, family: str, summary: str) -> Class:
    """The class that a scenario is of; its summary begins with the name."""
    title, _, happens = summary.partition(": ")
    return Class(name, family, title, happens)


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

    A harness may close the call itself, with a result that no tool gave, and not run it again: ``once,
    closed`` where it had taken effect, ``lost, said`` where it had not. ``failed``: the run did not go on.
    """
    if cell.why or not cell.exercised:
        return CANNOT if cell.why else UNSEEN
    if cell.duplicate_effects:
        return "twice"
    if cell.truth == "complete":
        return "once, closed" if cell.closed_calls else "once"
    if cell.closed_calls:
        return "lost, said"
    return "failed" if cell.ending in ("error", "never") else "lost"


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
    return ", ".join(broken) or KEPT


def guarantee(given: Iterable[str]) -> str:
    """The guarantee that what was given at each moment amounts to."""
    seen = [each for each in given if each not in (CANNOT, UNSEEN)]
    if not seen:
        return UNSEEN
    lost = any(each in ("lost", "failed") for each in seen)
    if "twice" in seen:
        return "none: lost and twice" if lost else "at least once"
    if lost:
        return "at most once"
    return "at most once, in doubt and said" if "lost, said" in seen else "exactly once"


def guarantees_markdown(
    rows: Sequence[Row], classes: Sequence[Class], events_of: int, command: str, date: str, version: str
) -> str:
    """The page."""
    crashes = [each for each in classes if each.family != "approvals"]
    approvals = [each for each in classes if each.family == "approvals"]
    asked = [row for row in rows if row.events.approve is not None]
    parts = [
        "# Guarantees",
        "What each harness gave when it was killed, and when a person decided, beside what its own "
        f"documentation says. Measured on {date} with evalkit {version}; scripted model, one episode a cell. "
        f"Made again with `{command}`.",
        _HOW.strip(),
        "## When it is killed",
        "\n".join(f"- **{each.heading}** ({each.name}): {for_markdown(each.happens)}" for each in crashes),
        _table(rows, crashes, "crash"),
        _WORDS.strip(),
        "## When a person decides",
        "\n".join(f"- **{each.heading}**: {for_markdown(each.happens)}" for each in approvals),
        _table(asked, approvals, "approval"),
        "## What broke, and how to see it",
        _violations(rows, classes),
        "## What each has a notion of",
        _notions(rows, events_of),
    ]
    return "\n\n".join(parts) + "\n"


def _given(cell: Cell | None, family: str) -> str:
    if cell is None:
        return CANNOT
    return of_approval(cell) if family == "approvals" else of_crash(cell)


def _is_broken(given: str, family: str) -> bool:
    if given in (CANNOT, UNSEEN):
        return False
    return given != KEPT if family == "approvals" else given in BROKEN


def _table(rows: Sequence[Row], classes: Sequence[Class], about: str) -> str:
    heads = ["harness", "its documentation", *(each.heading for each in classes)]
    if about == "crash":
        heads.insert(2, "guarantee measured")
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for row in rows:
        if not row.cells:
            continue
        given = [(_given(row.cells.get(each.scenario), each.family), each.family) for each in classes]
        shown = [f"**{text}**" if _is_broken(text, family) else text for text, family in given]
        if about == "crash":
            shown.insert(0, guarantee(text for text, _ in given))
        said = "; ".join(
            f"[{for_markdown(promise.says)}]({promise.source})"
            for promise in row.promises
            if promise.about == about
        )
        lines.append(f"| {row.name} | {said or '–'} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _violations(rows: Sequence[Row], classes: Sequence[Class]) -> str:
    lines = []
    for row in rows:
        for each in classes:
            given = _given(row.cells.get(each.scenario), each.family)
            if _is_broken(given, each.family):
                lines.append(f"- {row.name}, {each.heading}: {given}. `{_command(row.name, each.scenario)}`")
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
