"""What ``evalkit harnesses league`` does: the runs, then what is made of them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from evalkit.cli.harness_setup import set_up_all
from evalkit.cli.kept_runs import kept_run
from evalkit.core.toml import toml_of
from evalkit.harnesses.find import BEHAVIOURS, SHIPPED, find_harness
from evalkit.reports.harnesses.league.figures import (
    Behaviour,
    League,
    keep_league,
    kept_league,
    merged,
    row_of,
)
from evalkit.reports.harnesses.league.files import write_league
from evalkit.scenarios.loader import load_file
from evalkit.scenarios.suites import load_suites
from evalkit.wire.dialects import TITLES

#: What the providers' documentation says of each behaviour.
DOCUMENTED = SHIPPED / "documented.toml"


def make_league(names: tuple[str, ...], library: bool, workers: int | None, out: Path) -> list[str]:
    """Run what is missing of the league and write it; notes on what was left out.

    Rows that are there and are not named stay as they are. Each row is kept when it is whole, so that an
    interrupt costs the one that is being played.
    """
    league = kept_league(out)
    set_up_all(names)
    runs, told = out / "runs", _told()
    families = {scenario.name: scenario.family for scenario in load_suites(())} if library else {}
    for name in names:
        harness = find_harness(name)
        behaviours = kept_run(load_file(BEHAVIOURS), name, workers, runs / "behaviours", "the behaviours")
        whole = kept_run(load_suites(), name, workers, runs / "library", "the library") if library else None
        heard = behaviours.recipe.heard.get(name)
        harness = msgspec.structs.replace(harness, heard=heard) if heard is not None else harness
        row = row_of(
            behaviours,
            whole,
            summary=harness.summary,
            api=TITLES[harness.dialect],
            streamed=harness.streamed,
            versions=harness.pins,
            caps=harness.caps,
            folder=f"harnesses/{harness.folder.name}" if harness.folder.parent == SHIPPED else "",
        )
        if league is not None and not library and name in league.rows:
            row = msgspec.structs.replace(row, library=league.rows[name].library)
        for store in filter(None, (behaviours, whole)):
            store.close()
        # Read anew: another row may have been played meanwhile.
        league = merged(kept_league(out), League(told, {name: row}, families))
        keep_league(league, out)
    return write_league(league, out) if league is not None else []


def _told() -> tuple[Behaviour, ...]:
    documented = toml_of(DOCUMENTED.read_bytes())
    return tuple(
        Behaviour(scenario.name, scenario.summary, **documented[scenario.name])
        for scenario in load_suites((str(BEHAVIOURS),))
    )
