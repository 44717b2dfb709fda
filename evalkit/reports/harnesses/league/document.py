"""The league as Markdown, for a repository: what it tells first, then its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from evalkit.core.escaping import for_markdown
from evalkit.reports.charts.groups import group_of
from evalkit.reports.harnesses.event_table import HOW, Wrong, event_table, wrong_of
from evalkit.reports.harnesses.league.faults import Fault, Mending, faults, frameworks, mendings
from evalkit.reports.harnesses.league.figures import (
    LIFE,
    REFERENCE,
    Behaviour,
    League,
    Result,
    Row,
    common,
    order,
    played,
)
from evalkit.runs.plan import WORKER

#: In the place of what cannot be played with a harness.
CANNOT = "·"
WORST = (
    "Of each framework the costliest failures, with what shows each turn by turn, and which of its variants "
    "in these tables gets it right; then what each variant that mends something makes of all of it."
)


def in_order(league: League) -> list[str]:
    """All harnesses as the tables have them: the reference comes last, apart."""
    return [*order(league), *(name for name in league.rows if name == REFERENCE)]


def base_of(league: League) -> set[str]:
    """The behaviours by which harnesses are in order."""
    return common(row.behaviours for name, row in league.rows.items() if name != REFERENCE)


def score_of(results: dict[str, Result], base: Iterable[str] | None = None) -> str:
    """Correct of how many, of a base or of all that was played."""
    wanted = played(results.values()) if base is None else [results[name] for name in base if name in results]
    return f"{sum(result.correct for result in wanted)} of {len(played(wanted))}"


def in_the_field(league: League, behaviour: str) -> str:
    """What the harnesses make of a behaviour, in a sentence; the reference is not counted."""
    rows = [row for name, row in league.rows.items() if name != REFERENCE]
    found = [row.behaviours[behaviour] for row in rows if behaviour in row.behaviours]
    found = played(found)
    if not found:
        return "None of these harnesses can be shown it."
    right = sum(result.correct for result in found)
    how = Counter(_went(result) for result in found if not result.correct)
    wrong = "; ".join(f"{count} {group}" for group, count in how.most_common())
    return f"{right} of {len(found)} are correct" + (f"; {wrong}." if wrong else ".")


def _went(result: Result) -> str:
    """How a wrong result went: what was wrong with it where the outcome alone is right."""
    return result.damage.replace("_", " ") if result.outcome == "done/complete" else group_of(result.outcome)


def league_markdown(league: League, *, heat: bool = True) -> str:
    """The league: how it is read, what the behaviours are, its tables, the faults, the harnesses.

    ``heat`` says whether its heat map was drawn.
    """
    picture = "![Each harness and behaviour: how the run ended, and what was true of the work](heat.svg)"
    told_of = [line for name in frameworks(league) for line in _faults(league, name)]
    parts = [
        "# The league: what harnesses make of what models do",
        "A scripted model, one episode a cell; what is true is read from the world. "
        f"{in_which_order(league)} "
        "The same with filters, and the transcript behind each cell: [index.html](index.html). "
        "How a harness counts, ends and gives up, for those that have one: [its card](cards/README.md).",
        *([picture] if heat else []),
        "## The behaviours",
        "\n".join(_behaviour(league, each) for each in league.behaviours),
        "## Single behaviours",
        f"A cell is *ending/truth* and the harness's own signal; **bold** is correct. `{CANNOT}`: its API "
        "cannot say this, or not to what it asks for.",
        _behaviours(league),
        *_library(league),
        *_events(league),
        "## What goes wrong worst",
        WORST,
        "\n".join(told_of),
        "## The harnesses",
        "Each row is made again by `evalkit harnesses league --harness NAME`, all by `make league`.",
        _harnesses(league),
    ]
    return "\n\n".join(parts) + "\n"


def in_which_order(league: League) -> str:
    """How the rows are in order, and what stands apart."""
    return (
        f"The rows stand in the order of the {len(base_of(league))} behaviours that all of them can be "
        "shown; beside it what each could be shown, since that differs by API. The last row, "
        f"{REFERENCE}, is the loop of this project's authors: a reference, in no order with the others."
    )


def _behaviour(league: League, behaviour: Behaviour) -> str:
    link = f" ([documentation]({behaviour.link}))" if behaviour.link else ""
    return (
        f"- **{behaviour.name}**: {behaviour.summary} {behaviour.documented}{link} "
        f"In the field: {in_the_field(league, behaviour.name)}"
    )


def _behaviours(league: League) -> str:
    names, base = [each.name for each in league.behaviours], base_of(league)
    heads = ["harness", "API", f"of the {len(base)}", "of all", *(name.replace("-", " ") for name in names)]
    lines = [_line(heads), "|" + " --- |" * len(heads)]
    for harness in in_order(league):
        row = league.rows[harness]
        shown = [_shown(row.behaviours.get(name)) for name in names]
        scores = [score_of(row.behaviours, base), score_of(row.behaviours)]
        lines.append(_line([harness, api_of(row), *scores, *shown]))
    return "\n".join(lines)


def api_of(row: Row) -> str:
    """The API of a row, and how it asks."""
    return f"{row.api}, streamed" if row.streamed else row.api


def _shown(result: Result | None) -> str:
    if result is None or result.why:
        return CANNOT
    native = result.native.rpartition(".")[2] or result.native
    text = f"**{result.outcome}**" if result.correct else result.outcome
    return f"{text}<br>{for_markdown(native[:40])}" if native else text


def library_parts(league: League) -> list[tuple[str, str, list[str]]]:
    """The tables of the library: title, what it holds, those of its families of which anything was played."""
    played_of = {league.families.get(name) for row in league.rows.values() for name in row.library}
    families = sorted(family for family in set(league.families.values()) if family in played_of)
    return [
        (
            "The library by family",
            "Correct of the scenarios that the harness can play; the library is written, not sampled. "
            f"{who_played(league)}",
            [family for family in families if family not in LIFE],
        ),
        (
            "The whole life: limits, helpers, effects",
            "The same of the families about limits, budgets, child agents (*delegation*), effects that come "
            "once, and the like, as far as nothing comes from outside: it takes no notion of anything."
            f"{_unplayed(league, played_of)} {CANNOT}: nothing of it was played with that harness.",
            [family for family in families if family in LIFE],
        ),
    ]


def _unplayed(league: League, played_of: set[str | None]) -> str:
    """The families of which nobody was played on anything."""
    lived = {each.scenario for life in league.lives.values() for each in life.lived}
    missing = {
        family for name, family in league.families.items() if family not in played_of and name not in lived
    }
    return f" Nobody was played on {', '.join(sorted(missing)).replace('_', ' ')}." if missing else ""


def who_played(league: League) -> str:
    """Which rows were played on the library."""
    missing = sorted(name for name, row in league.rows.items() if not row.library)
    if not missing:
        return "Every row was played on it."
    return f"{len(league.rows) - len(missing)} of {len(league.rows)} rows were; not {', '.join(missing)}."


#: What the table of events is of.
EVENTS = "The whole life: what happens"
#: Where the reasons of what was not played stand.
GUARANTEES = "../../docs/guarantees.md"


def events_hold(league: League) -> str:
    """How the table of events is read."""
    about = " ".join(HOW.split())
    measured = ", ".join(
        sorted({f"on {life.date} with evalkit {life.evalkit}" for life in league.lives.values()})
    )
    worker = (
        " The last row is this project's durable worker: a reference, in no order with the others."
        if WORKER in league.lives
        else ""
    )
    return (
        f"{about} The rows stand by name; a framework that is not here has no notion of it.{worker} "
        f"Measured {measured}."
    )


def events_of(league: League) -> tuple[list[str], dict[str, list[str]]]:
    """The events, and of each framework what became of each; the project's own comes last."""
    names = sorted(league.lives, key=lambda name: (name == WORKER, name))
    return event_table([each for name in names for each in league.lives[name].lived])


def wrong_with(league: League, framework: str) -> list[Wrong]:
    """What went wrong with a framework as something happened to it."""
    return wrong_of(league.lives[framework].lived)


def library_rows(
    league: League, families: list[str]
) -> list[tuple[str, list[tuple[int, int]], tuple[int, int]]]:
    """Of each harness that played the library: right and played by family, and of the common base."""
    rows = {name: row for name, row in league.rows.items() if row.library}
    inside = {name for name, family in league.families.items() if family in families}
    base = common(row.library for name, row in rows.items() if name != REFERENCE) & inside
    found = []
    for name in in_order(league):
        if name not in rows:
            continue
        library = rows[name].library
        cells = [
            _count(library, {s for s, f in league.families.items() if f == family}) for family in families
        ]
        found.append((name, cells, _count(library, base)))
    return sorted(found, key=lambda row: (row[0] == REFERENCE, -row[2][0]))


def _count(results: dict[str, Result], names: set[str]) -> tuple[int, int]:
    found = played(results[name] for name in names if name in results)
    return sum(result.correct for result in found), len(found)


def _library(league: League) -> list[str]:
    parts: list[str] = []
    for title, holds, families in library_parts(league):
        rows = library_rows(league, families)
        if not rows or not families:
            continue
        base = max(row[2][1] for row in rows)
        heads = [
            "harness",
            f"of the {base} that all can play",
            *(name.replace("_", " ") for name in families),
        ]
        lines = [_line(heads), "|" + " --- |" * len(heads)]
        for name, cells, (good, of) in rows:
            shown = [f"{right}/{number}" if number else CANNOT for right, number in cells]
            lines.append(_line([name, f"{good} of {of}", *shown]))
        parts += [f"## {title}", holds, "\n".join(lines)]
    return parts


def _events(league: League) -> list[str]:
    events, rows = events_of(league)
    if not rows:
        return []
    heads = ["framework", *events]
    lines = [
        _line(heads),
        "|" + " --- |" * len(heads),
        *(_line([name, *cells]) for name, cells in rows.items()),
    ]
    why = (
        "What each did wrong, with a command that shows it: [index.html](index.html#life). Why what was not "
        f"played was not: [guarantees]({GUARANTEES})."
    )
    return [f"## {EVENTS}", events_hold(league), "\n".join(lines), why]


def _faults(league: League, name: str) -> list[str]:
    found = faults(league, name)
    lines = [f"- **{name}**" + ("" if found else ": nothing")]
    for fault in found:
        mended = (
            f"; mended by {', '.join(f'`{variant}`' for variant in fault.mended)}" if fault.mended else ""
        )
        lines.append(f"  - {told(fault)}: `{fault.command}`{mended}")
    lines += [f"  - {told_mending(each)}: `{each.command}`" for each in mendings(league, name)]
    return lines


def told_mending(mending: Mending) -> str:
    """What a variant mends, in words."""
    broken = f", and wrong {len(mending.broken)} that are right without it" if mending.broken else ""
    return f"{mending.variant} gets right {len(mending.mended)} of the {mending.wrong} that are wrong{broken}"


def told(fault: Fault) -> str:
    """A fault in words."""
    what = fault.result.damage.replace("_", " ")
    return f"{fault.scenario}: {fault.result.outcome}" + (f", {what}" if what else "")


def _harnesses(league: League) -> str:
    lines = []
    for name in sorted(league.rows):
        row = league.rows[name]
        versions = ", ".join(f"`{pin}`" for pin in row.versions)
        facts = [f"{api_of(row)}", versions, row.caps, f"measured on {row.date} with evalkit {row.evalkit}"]
        program = f"[program and manifest](../../{row.folder})" if row.folder else ""
        lines.append(f"- **{name}**: {row.summary}. {'; '.join(fact for fact in [*facts, program] if fact)}")
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
