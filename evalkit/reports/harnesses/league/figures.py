"""The league's figures: a row for each harness, from its runs or from the league as it was kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from evalkit import __version__
from evalkit.harnesses.episode_record import Kept
from evalkit.reports.foreign_transcript import kept_text
from evalkit.reports.harnesses.event_table import Lived
from evalkit.runs.foreign_records import read_trace
from evalkit.runs.plan import cell_name
from evalkit.runs.store import RunError, Store
from evalkit.scoring.foreign_episode import ruled_out
from evalkit.stats.severity import DAMAGE, DAMAGE_PLACE

FILE = "league.json"
#: The row of the authors' own loop: a reference, in no order with the others.
REFERENCE = "gated-loop"
#: What the league calls the family of all scenarios in which the model hands work to a child agent.
DELEGATION = "delegation"
#: The families in which something happens to a run from outside, or in which it has to stay within a limit.
LIFE = ("approvals", "budgets", "compaction", DELEGATION, "limits_boundary", "resume_effects", "user_turns")


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a harness made of one scenario.

    ``why`` says why it is no result: it cannot be played with it, or what was played cannot come to pass.
    ``damage`` is what went wrong worst, by its name in :data:`~evalkit.stats.severity.DAMAGE`.
    """

    outcome: str = ""
    correct: bool = False
    native: str = ""
    turns: int = 0
    damage: str = ""
    why: str = ""
    transcript: str = ""


class Behaviour(msgspec.Struct, frozen=True):
    """A behaviour of a model; ``documented`` is what its API's documentation says of it, at ``link``."""

    name: str
    summary: str
    documented: str
    link: str = ""


class Row(msgspec.Struct, frozen=True):
    """A harness as it was measured on ``date``. ``library`` is empty where it was not played.

    Of the library's scenarios those that it can play are there; of one that it gets right, only that it does.
    """

    date: str
    evalkit: str
    summary: str
    api: str
    streamed: bool
    versions: tuple[str, ...]
    caps: str
    folder: str
    behaviours: dict[str, Result]
    library: dict[str, Result] = {}


class Life(msgspec.Struct, frozen=True):
    """What became of the library's events with a framework, as it was measured on ``date``."""

    date: str
    evalkit: str
    lived: tuple[Lived, ...]


class League(msgspec.Struct, frozen=True):
    """All that the league shows. ``families`` are those of the library's scenarios by name.

    ``lives`` are by framework, over all its variants that have a notion of what happens.
    """

    behaviours: tuple[Behaviour, ...]
    rows: dict[str, Row]
    families: dict[str, str] = {}
    lives: dict[str, Life] = {}


class _File(msgspec.Struct, frozen=True):
    """``league.json``: in the results, transcripts stand by their place in one list, for many are alike."""

    behaviours: tuple[Behaviour, ...]
    families: dict[str, str]
    transcripts: tuple[str, ...]
    lives: dict[str, Life] = {}
    rows: dict[str, Row] = {}


class LeagueError(RunError):
    """A league that cannot be gone on with; one line."""


def kept_league(folder: Path) -> League | None:
    """The league of a folder; None without one. LeagueError where it cannot be read."""
    file = folder / FILE
    if not file.is_file():
        return None
    try:
        kept = msgspec.json.decode(file.read_bytes(), type=_File)
        rows = _with_transcripts(kept.rows, lambda place: kept.transcripts[int(place)])
    except (OSError, msgspec.DecodeError, ValueError, IndexError) as error:
        raise LeagueError(f"{file}: is no league of this version ({error}); choose another --out") from None
    return League(kept.behaviours, rows, kept.families, kept.lives)


def keep_league(league: League, folder: Path) -> None:
    """Write the figures of a league into its folder, which is made where it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    places: dict[str, int] = {}
    rows = _with_transcripts(league.rows, lambda text: str(places.setdefault(text, len(places))))
    head = msgspec.json.encode(_File(league.behaviours, league.families, tuple(places), league.lives, {}))
    encode = msgspec.json.encode
    # A row a line: one that is played again is one line of a change.
    lines = b",\n".join(encode(name) + b":" + encode(row) for name, row in rows.items())
    (folder / FILE).write_bytes(head.removesuffix(b"}}") + b"\n" + lines + b"}}\n")


def _with_transcripts(rows: dict[str, Row], change: Callable[[str], str]) -> dict[str, Row]:
    """Rows in which each transcript is what ``change`` makes of it."""

    def changed(result: Result) -> Result:
        if not result.transcript:
            return result
        return msgspec.structs.replace(result, transcript=change(result.transcript))

    return {
        name: msgspec.structs.replace(
            row, behaviours={scenario: changed(result) for scenario, result in row.behaviours.items()}
        )
        for name, row in rows.items()
    }


def merged(kept: League | None, new: League) -> League:
    """The new rows beside those that were there and are not played again."""
    if kept is None:
        return new
    return League(
        new.behaviours,
        {**kept.rows, **new.rows},
        {**kept.families, **new.families},
        {**kept.lives, **new.lives},
    )


def life_of(lived: Iterable[Lived]) -> Life:
    """What became of the library's events with a framework, as it is measured now."""
    return Life(_today(), __version__, tuple(lived))


def played_again(old: Life, new: Life) -> Life:
    """A framework's life of which some scenarios were played again."""
    again = {each.scenario for each in new.lived}
    others = [each for each in old.lived if each.scenario not in again]
    return msgspec.structs.replace(new, lived=(*others, *new.lived))


def _today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def row_of(
    behaviours: Store,
    library: Store | None,
    *,
    summary: str,
    api: str,
    streamed: bool,
    versions: Iterable[str],
    caps: str,
    folder: str,
) -> Row:
    """A harness's row, from its run on the behaviours and on the library."""
    return Row(
        _today(),
        __version__,
        summary,
        api,
        streamed,
        tuple(versions),
        caps,
        folder,
        _results(behaviours, _transcript),
        {} if library is None else library_of(library),
    )


def library_of(store: Store) -> dict[str, Result]:
    """What a row keeps of a run on the library, so that it stays small."""
    results = _results(store, lambda *_: "")
    return {
        name: Result(correct=True) if result.correct else msgspec.structs.replace(result, native="")
        for name, result in results.items()
        if not result.why
    }


def _results(store: Store, told: Callable[[Kept, str], str]) -> dict[str, Result]:
    """Of each scenario of a run of one harness what came of it; ``told`` makes its transcript."""
    (contender,) = store.recipe.contenders
    played = dict(_played(store, told))
    for entry in store.recipe.entries:
        why = store.recipe.not_expressible.get(cell_name(entry.name, contender.harness))
        if why is not None:
            played[entry.name] = Result(why=why)
    return {entry.name: played[entry.name] for entry in store.recipe.entries if entry.name in played}


def _played(store: Store, told: Callable[[Kept, str], str]) -> Iterator[tuple[str, Result]]:
    query = (
        "select episode.cell, scenario_name, outcome, native, correct, turns, ending, not_exercised, note, "
        f"{DAMAGE_PLACE} from episodes as episode where seed = 0"
    )
    for cell, scenario, outcome, native, correct, turns, ending, missed, note, place in store.rows(query):
        kept = read_trace(store.folder, cell)
        why = _no_result(ending, missed, note, kept.seen if kept is not None else {})
        if why:
            yield scenario, Result(why=why)
            continue
        damage = DAMAGE[place] if not correct and place < len(DAMAGE) else ""
        transcript = told(kept, scenario) if kept is not None else ""
        yield scenario, Result(outcome, bool(correct), native, turns, damage, "", transcript)


def _no_result(ending: str, missed: object, note: str, seen: dict[str, Any]) -> str:
    """Why an episode is no result; empty where it is one."""
    if ending == "void":
        return f"evalkit failed: {note}"
    if why := ruled_out(seen):
        return why
    if missed:
        return "what was to happen to it did not come to pass"
    if not seen.get("model requests"):
        return "it made no request"
    return ""


def _transcript(kept: Kept, scenario: str) -> str:
    """The exchanges alone: what a machine's clock or its folders said differs from run to run."""
    quiet = msgspec.structs.replace(kept, output="", seconds=0.0)
    lines = kept_text(quiet, scenario, 4, "").split("\n")[1:]
    return "\n".join(line for line in lines if line.strip())


def played(results: Iterable[Result]) -> list[Result]:
    """Those that are results."""
    return [result for result in results if not result.why]


def common(rows: Iterable[dict[str, Result]]) -> set[str]:
    """The scenarios that every one of these rows has a result of."""
    bases = [{name for name, result in row.items() if not result.why} for row in rows]
    return set.intersection(*bases) if bases else set()


def order(league: League) -> list[str]:
    """The harnesses but the reference: most correct behaviours of the common base first, then of all."""
    rows = {name: row for name, row in league.rows.items() if name != REFERENCE}
    base = common(row.behaviours for row in rows.values())

    def place(name: str) -> tuple[float, float, str]:
        results = rows[name].behaviours
        all_played = played(results.values())
        good = sum(results[scenario].correct for scenario in base)
        share = sum(result.correct for result in all_played) / len(all_played) if all_played else 0.0
        return -good, -share, name

    return sorted(rows, key=place)
