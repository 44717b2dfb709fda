"""The league: what each harness made of each behaviour, and how it did on the library."""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec

from evalkit import __version__
from evalkit.core.escaping import for_markdown
from evalkit.runs.plan import cell_name
from evalkit.runs.store import Store

#: In the place of what a harness's API cannot say.
_CANNOT = "·"


class Cell(msgspec.Struct, frozen=True):
    """What a harness made of one scenario; ``why`` where it cannot be played with it."""

    outcome: str = ""
    native: str = ""
    correct: bool = False
    turns: int = 0
    note: str = ""
    why: str = ""


class Standing(msgspec.Struct, frozen=True):
    """A harness on the library: correct of how many scenarios, by family and in all."""

    harness: str
    correct: int
    scenarios: int
    families: dict[str, tuple[int, int]]


class League(msgspec.Struct, frozen=True):
    """All that the league shows. ``behaviours`` are name and summary; ``versions`` what was installed."""

    date: str
    evalkit: str
    command: str
    versions: dict[str, list[str]]
    summaries: dict[str, str]
    behaviours: tuple[tuple[str, str], ...]
    cells: dict[str, dict[str, Cell]]
    standings: tuple[Standing, ...] = ()


def league_of(
    behaviours: Iterable[Store],
    library: Iterable[Store],
    versions: dict[str, list[str]],
    summaries: dict[str, str],
    told: tuple[tuple[str, str], ...],
    command: str,
) -> League:
    """The league from its runs on the behaviours and on the library, each of some of the harnesses."""
    cells: dict[str, dict[str, Cell]] = {}
    for store in behaviours:
        cells.update(_cells(store))
    return League(
        time.strftime("%Y-%m-%d", time.gmtime()),
        __version__,
        command,
        versions,
        summaries,
        told,
        cells,
        _standings(library),
    )


def _cells(store: Store) -> dict[str, dict[str, Cell]]:
    recipe = store.recipe
    cells: dict[str, dict[str, Cell]] = {contender.harness: {} for contender in recipe.contenders}
    query = "select scenario_name, harness, outcome, native, correct, turns, note from episodes"
    for scenario, harness, outcome, native, correct, turns, note in store.rows(query):
        cells[harness][scenario] = Cell(outcome, native, bool(correct), turns, note)
    for name in cells:
        for entry in recipe.entries:
            why = recipe.not_expressible.get(cell_name(entry.name, name))
            if why is not None:
                cells[name][entry.name] = Cell(why=why)
    return cells


def _standings(stores: Iterable[Store]) -> tuple[Standing, ...]:
    by_harness: dict[str, dict[str, tuple[int, int]]] = {}
    query = "select harness, family, sum(correct), count(*) from episodes where seed = 0 group by 1, 2"
    for store in stores:
        for harness, family, correct, scenarios in store.rows(query):
            by_harness.setdefault(harness, {})[family] = (correct, scenarios)
    found = []
    for harness, families in by_harness.items():
        correct = sum(good for good, _ in families.values())
        found.append(Standing(harness, correct, sum(n for _, n in families.values()), families))
    return tuple(sorted(found, key=lambda s: (-s.correct / s.scenarios, s.harness)))


def ranked(league: League) -> list[str]:
    """The harnesses, most correct behaviours first."""
    return sorted(league.cells, key=lambda name: (-_share(league.cells[name]), name))


def _share(cells: dict[str, Cell]) -> float:
    played = [cell for cell in cells.values() if not cell.why]
    return sum(cell.correct for cell in played) / len(played) if played else 0.0


def league_markdown(league: League) -> str:
    """The tables."""
    names = [name for name, _ in league.behaviours]
    lines = [
        "# The league: what harnesses make of what models do",
        f"Measured on {league.date} with evalkit {league.evalkit}; scripted model, one episode a cell. "
        f"Made again with `{league.command}`.",
        "![Each harness and behaviour: how the run ended, and what was true of the work](heat.svg)",
        "A cell is *ending/truth* and the harness's own signal; **bold** is correct. `·`: the harness's API, "
        "or its way of using it, cannot say this.",
        "| harness | correct | " + " | ".join(name.replace("-", " ") for name in names) + " |",
        "|" + " --- |" * (len(names) + 2),
    ]
    table = lines[4:]
    for harness in ranked(league):
        cells = league.cells[harness]
        played = [cell for cell in cells.values() if not cell.why]
        shown = [_shown(cells.get(name)) for name in names]
        good = f"{sum(cell.correct for cell in played)} of {len(played)}"
        table.append(f"| {harness} | {good} | " + " | ".join(shown) + " |")
    parts = [*lines[:4], "\n".join(table)]
    if league.standings:
        parts += ["## On the shipped library", _library(league)]
    behaviours = "\n".join(f"- **{name}**: {summary}" for name, summary in league.behaviours)
    parts += ["## The behaviours", behaviours, "## The harnesses", _harnesses(league)]
    return "\n\n".join(parts) + "\n"


def _shown(cell: Cell | None) -> str:
    if cell is None or cell.why:
        return _CANNOT
    native = cell.native.rpartition(".")[2] or cell.native
    text = f"**{cell.outcome}**" if cell.correct else cell.outcome
    return f"{text}<br>{for_markdown(native[:40])}" if native else text


def _library(league: League) -> str:
    families = sorted({family for standing in league.standings for family in standing.families})
    lines = [
        "Correct of the scenarios that the harness can play; the library is written, not sampled. Harnesses "
        "that are not in this table were not run on it.",
        "",
        "| harness | all | " + " | ".join(family.replace("_", " ") for family in families) + " |",
        "|" + " --- |" * (len(families) + 2),
    ]
    for standing in league.standings:
        cells = []
        for family in families:
            good, played = standing.families.get(family, (0, 0))
            cells.append(f"{good}/{played}" if played else _CANNOT)
        total = f"{standing.correct} of {standing.scenarios}"
        lines.append(f"| {standing.harness} | {total} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _harnesses(league: League) -> str:
    lines = []
    for name in sorted(league.cells):
        versions = ", ".join(f"`{pin}`" for pin in league.versions.get(name, ()))
        lines.append(
            f"- **{name}**: {league.summaries.get(name, '')}" + (f" ({versions})" if versions else "")
        )
    return "\n".join(lines)
