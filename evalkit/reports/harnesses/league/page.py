"""``index.html`` of the league: one file with filters, and the transcript behind each cell."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import msgspec

from evalkit.reports.charts.groups import GROUPS, group_of
from evalkit.reports.harnesses.league.document import (
    EVENTS,
    GUARANTEES,
    WORST,
    api_of,
    base_of,
    events_hold,
    events_of,
    in_order,
    in_the_field,
    in_which_order,
    library_parts,
    library_rows,
    score_of,
    told,
    told_mending,
    wrong_with,
)
from evalkit.reports.harnesses.league.faults import faults, frameworks, mendings
from evalkit.reports.harnesses.league.figures import REFERENCE, League, Result
from evalkit.runs.plan import WORKER


def league_page(league: League) -> str:
    """The page; it opens from disk and loads nothing."""
    from jinja2 import Environment, PackageLoader

    folder = files("evalkit.reports") / "page"
    environment = Environment(
        loader=PackageLoader("evalkit.reports", "page"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    transcripts: dict[str, int] = {}
    rows = [_row(league, name, transcripts) for name in in_order(league)]
    return environment.get_template("league.html.j2").render(
        css="".join((folder / name).read_text(encoding="utf-8") for name in ("report.css", "league.css")),
        js=(folder / "league.js").read_text(encoding="utf-8"),
        behaviours=[(each, in_the_field(league, each.name)) for each in league.behaviours],
        base=len(base_of(league)),
        in_which_order=in_which_order(league),
        worst=WORST,
        rows=rows,
        apis=sorted({row["api"] for row in rows}),
        groups=list(GROUPS),
        library=[
            (title, holds.replace("*", ""), families, library_rows(league, families))
            for title, holds, families in library_parts(league)
            if families
        ],
        events_title=EVENTS,
        events_hold=events_hold(league).replace("*", ""),
        events=events_of(league),
        wrong=[(name, wrong_with(league, name)) for name in events_of(league)[1]],
        guarantees=GUARANTEES,
        faults=[
            (
                name,
                [(told(fault), fault) for fault in faults(league, name)],
                [(told_mending(each), each) for each in mendings(league, name)],
            )
            for name in frameworks(league)
        ],
        transcripts=msgspec.json.encode(list(transcripts)).decode().replace("<", "\\u003c"),
        dates=sorted({row.date for row in league.rows.values()}),
        reference=REFERENCE,
        worker=WORKER,
    )


def _row(league: League, name: str, transcripts: dict[str, int]) -> dict[str, Any]:
    row = league.rows[name]
    cells = []
    for behaviour in league.behaviours:
        result = row.behaviours.get(behaviour.name, Result(why="it was not played"))
        place = transcripts.setdefault(result.transcript, len(transcripts)) if result.transcript else None
        group = "" if result.why else group_of(result.outcome)
        cells.append(
            {
                "name": behaviour.name,
                "result": result,
                "group": group,
                "place": place,
                "kind": "none" if result.why else f"g{list(GROUPS).index(group)}",
            }
        )
    return {
        "name": name,
        "row": row,
        "api": row.api,
        "asks": api_of(row),
        "common": score_of(row.behaviours, base_of(league)),
        "all": score_of(row.behaviours),
        "cells": cells,
        "reference": name == REFERENCE,
    }
