"""Stop reasons and endings by family and contender: what a team would watch in production."""

from __future__ import annotations

from typing import Any

from evalkit.runs.store import RunError, Store

#: Stop reasons of a turn that was cut off.
TRUNCATED = ("max_tokens", "context_window")


def stops_by_family(store: Store) -> list[dict[str, Any]]:
    """For each contender and family (``all`` first) the counts of stop reasons of turns and of endings.

    ``text_only_open`` counts ends of turn without a call while the work was not complete, ``open_episodes``
    the episodes with one. ``truncated_finals`` are episodes whose last turn was cut off.
    """
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    contenders = store.recipe.contenders
    truncated = ", ".join(f"'{name}'" for name in TRUNCATED)
    query = (
        "select contender, family, ending, count(*), sum(open_stops), sum(open_stops > 0), "
        f"sum(final_stop in ({truncated})) from episode join scenario on scenario.id = scenario "
        "where counted group by contender, family, ending order by contender, family, ending"
    )
    for contender, family, ending, episodes, open_stops, with_open, cut in store.rows(query):
        for name in ("all", family):
            row = rows.setdefault((contender, name), _empty(contenders[contender], name))
            row["episodes"] += episodes
            row["endings"][ending] = row["endings"].get(ending, 0) + episodes
            row["text_only_open"] += open_stops
            row["open_episodes"] += with_open
            row["truncated_finals"] += cut
    query = (
        "select contender, family, stops, count(*) from episode join scenario on scenario.id = scenario "
        "where counted and stops <> '' group by contender, family, stops"
    )
    for contender, family, text, episodes in store.rows(query):
        for part in text.split(" "):
            reason, _, count = part.rpartition(":")
            if not count.isdecimal():
                raise RunError(f"{store.folder}: the run is damaged: {part[:40]!r} counts no stop reason")
            for name in ("all", family):
                stops = rows[contender, name]["stops"]
                stops[reason] = stops.get(reason, 0) + int(count) * episodes
    order = sorted(rows, key=lambda key: (key[0], key[1] != "all", key[1]))
    for row in rows.values():
        row["stops"] = dict(sorted(row["stops"].items()))
        row["endings"] = dict(sorted(row["endings"].items()))
    return [rows[key] for key in order]


def _empty(contender: Any, family: str) -> dict[str, Any]:
    return {
        "strategy": contender.strategy,
        "harness": contender.harness,
        "family": family,
        "episodes": 0,
        "stops": {},
        "endings": {},
        "text_only_open": 0,
        "open_episodes": 0,
        "truncated_finals": 0,
    }
