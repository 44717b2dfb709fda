"""``index.html``: one page that opens from disk; of large runs the transcripts lie in files beside it."""

from __future__ import annotations

import gzip
import shutil
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from evalkit.core.prices import INPUT_USD_PER_MILLION, OUTPUT_USD_PER_MILLION
from evalkit.core.tasks import CHECKLIST_TOOL
from evalkit.drivers.in_process import RECORDED
from evalkit.reports.answer import answer, caveats, facts, meaning, prevents
from evalkit.reports.charts import Chart
from evalkit.reports.charts.tables import chart_table
from evalkit.reports.formatting import RATE_MEANINGS, RATE_NAMES, Row, percent
from evalkit.reports.page.cases import Case, cases, headline_contenders, telling_first, voids
from evalkit.reports.page.scenes import Scene, scenes, wanted_scenes
from evalkit.reports.spending import HEADS as SPENT_HEADS
from evalkit.reports.spending import spending_rows
from evalkit.reports.tables import (
    HEADS,
    causes_table,
    level_tables,
    stops_table,
    sweep_table,
    twins_table,
)
from evalkit.runs.plan import LOOP, Contender
from evalkit.runs.store import Store
from evalkit.scoring.episode_fields import MARKS
from evalkit.secrets.bodies import clean_json
from evalkit.stats.scenario_results import contender_names
from evalkit.strategies.noisy_verifiers import AssumedErrors
from evalkit.strategies.presets import PRESETS, Preset

#: Transcripts stay in the page up to so many bytes; beyond, all of them lie in files beside it.
EMBEDDED = 2_500_000
#: The list of cases stays in the page up to so many.
CASES = 20_000
#: Episodes whose transcripts are written, unless told otherwise.
TRANSCRIPTS = 6_000
FOLDER = "transcripts"
#: The one file to send, and the most bytes that it may have.
SINGLE_FILE, SINGLE = "report.html", 4_900_000


def write_page(
    store: Store,
    summary: Row,
    charts: Sequence[Chart],
    *,
    workers: int = 1,
    transcripts: int = TRANSCRIPTS,
    single: bool = False,
    into: Path | None = None,
) -> Path:
    """Write ``index.html`` of a run, and ``transcripts/`` where it is large; the page's place.

    ``into`` is a folder that is there; without it the run's own.
    ``transcripts`` is the number of episodes whose transcripts may be written; of what is beyond, the page
    names the command that shows it. ``single``: also ``report.html``, the whole page in one file.
    """
    headline = headline_contenders(store)
    found = telling_first(list(cases(store, headline)), len(headline))
    wanted = wanted_scenes(found, len(headline), transcripts)
    folder = into or store.folder
    beside = folder / FOLDER
    shutil.rmtree(beside, ignore_errors=True)
    places = {scenario: place for place, scenario in enumerate(dict.fromkeys(c.scenario for c in found))}
    shown = _Scenes(beside, places, keep=single)
    for scene in scenes(store, wanted, headline, workers):
        shown.add(scene)
    listed = [*_packed(found, places, data := _data(store, found, places))]
    if single:
        text = _single(store, summary, charts, data, listed, shown.kept)
        (folder / SINGLE_FILE).write_text(text, encoding="utf-8")
    data["files"] = sorted(shown.files)
    data["cases"] = listed
    if len(found) > CASES:
        beside.mkdir(exist_ok=True)
        _write_js(beside / "cases.js", f"evalkitCases({_json(listed)})")
        data["cases"] = None
    place = folder / "index.html"
    place.write_text(_render(store, summary, charts, _json(data), shown.embedded), encoding="utf-8")
    return place


def _single(
    store: Store,
    summary: Row,
    charts: Sequence[Chart],
    data: Row,
    listed: list[Any],
    kept: list[tuple[int, str]],
) -> str:
    """``report.html``: all of it in one file to send, transcripts compressed; what is too much is left out.

    The first transcripts are those that tell strategies apart, so the last ones go.
    """
    data = {**data, "files": [], "cases": None}
    room = SINGLE - len(_render(store, summary, charts, _json(data), "{}", packed="-").encode())
    while True:
        held = ",".join(f'"{place}":{text}' for place, text in kept)
        content = f'{{"cases":{_json(listed)},"scenes":{{{held}}}}}'
        packed = b64encode(gzip.compress(content.encode(), mtime=0)).decode()
        if len(packed) <= room or not kept:
            break
        kept = kept[: min(len(kept) - 1, int(len(kept) * room / len(packed)))]
    return _render(store, summary, charts, _json(data), "{}", packed=packed)


class _Scenes:
    """Collects scenes for the page; moves all to files once they are too much for it."""

    def __init__(self, folder: Path, places: dict[int, int], *, keep: bool = False) -> None:
        self.folder = folder
        self.places = places
        self.files: list[int] = []
        #: All of them in order, where one file is to hold them.
        self.kept: list[tuple[int, str]] = []
        self._keep = keep
        self._held: dict[int, str] = {}
        self._size = 0

    def add(self, scene: Scene) -> None:
        """Take one scene."""
        place = self.places[scene.scenario]
        text = _json(scene)
        if self._keep:
            self.kept.append((place, text))
        if self.files:
            self._to_file(place, text)
            return
        self._held[place] = text
        self._size += len(text)
        if self._size > EMBEDDED:
            self.folder.mkdir(exist_ok=True)
            for earlier, held in self._held.items():
                self._to_file(earlier, held)
            self._held = {}

    def _to_file(self, place: int, text: str) -> None:
        _write_js(self.folder / f"{place}.js", f"evalkitScene({place}, {text})")
        self.files.append(place)

    @property
    def embedded(self) -> str:
        """The scenes that stand in the page, as JSON by place."""
        return "{" + ",".join(f'"{place}":{text}' for place, text in self._held.items()) + "}"


def _write_js(file: Path, text: str) -> None:
    file.write_text(text + ";\n", encoding="utf-8")


def _json(value: Any) -> str:
    """JSON that may stand in a script element or file: no end tag, no line separators, no secrets."""
    text = clean_json(msgspec.json.encode(value).decode())
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _data(store: Store, found: list[Case], places: dict[int, int]) -> dict[str, Any]:
    entries = store.recipe.entries
    families = sorted({entries[scenario].family for scenario in places})
    return {
        "folder": str(store.folder),
        "contenders": contender_names(store),
        "unkept": [_why_not_shown(store, contender) for contender in store.recipe.contenders],
        "ticks": CHECKLIST_TOOL,
        "recorded": RECORDED,
        "families": families,
        "flags": [*(flag.replace("_", " ") for flag in MARKS), "dishonest report"],
        "scenarios": [
            [entries[s].name, families.index(entries[s].family), entries[s].checks] for s in places
        ],
        "outcomes": sorted({case.outcome for case in found}),
        "causes": sorted({case.cause for case in found}),
    }


def _why_not_shown(store: Store, contender: Contender) -> str:
    """Why a contender's episodes cannot be shown turn by turn by any command; empty where they can."""
    medium = store.recipe.medium
    if medium.live and contender.harness == LOOP and not (medium.record or medium.replay):
        return "The run was live and not recorded (--record), so its turns were not kept."
    return ""


def _packed(found: Iterable[Case], places: dict[int, int], data: dict[str, Any]) -> Iterator[list[Any]]:
    outcomes = {name: place for place, name in enumerate(data["outcomes"])}
    causes = {name: place for place, name in enumerate(data["causes"])}
    for case in found:
        yield [
            places[case.scenario],
            case.contender,
            case.cell,
            case.seeds[0],
            case.episodes,
            outcomes[case.outcome],
            case.flags,
            case.turns,
            causes[case.cause],
        ]


def _render(
    store: Store, summary: Row, charts: Sequence[Chart], data: str, page: str, packed: str = ""
) -> str:
    from jinja2 import Environment, PackageLoader

    by_name = {chart.name: chart for chart in charts}
    levels = level_tables(summary)
    for level in levels:
        names = [f"{kind}-{level['level']}" for kind in ("outcomes", "forest", "cost")]
        level["charts"] = [by_name[name] for name in names if name in by_name]
    folder = files("evalkit.reports") / "page"
    environment = Environment(
        loader=PackageLoader("evalkit.reports", "page"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("report.html.j2").render(
        css=(folder / "report.css").read_text(encoding="utf-8"),
        js=(folder / "report.js").read_text(encoding="utf-8"),
        run=summary["run"],
        created=store.created,
        answer=answer(summary),
        facts=facts,
        pick_meaning=meaning,
        prevents=prevents,
        caveats=caveats(summary),
        levels=levels,
        table_heads=HEADS,
        heats=[by_name[name] for name in _heats() if name in by_name],
        turns=by_name.get("turns"),
        sweep_chart=by_name.get("sweep"),
        chart_tables={name: chart_table(summary, name) for name in by_name},
        causes=causes_table(summary),
        twins=twins_table(summary),
        sweeps=sweep_table(summary),
        stops=stops_table(summary),
        voids=voids(store),
        spent=spending_rows(summary["spending"]) if "spending" in summary else [],
        spent_heads=SPENT_HEADS,
        meanings={RATE_NAMES[name]: RATE_MEANINGS[name] for name in RATE_NAMES},
        prices=(INPUT_USD_PER_MILLION, OUTPUT_USD_PER_MILLION),
        verifiers=list(_verifiers(store.recipe.verifiers)),
        strategies=list(_strategies(store)),
        data=data,
        scenes=page,
        packed=packed,
    )


def _strategies(store: Store) -> Iterator[tuple[str, Preset | None]]:
    """The contenders of the main tables, with what is known of those that are presets."""
    headline = headline_contenders(store)
    for place, name in enumerate(contender_names(store)):
        if place in headline:
            yield name, PRESETS.get(store.recipe.contenders[place].strategy)


def _heats() -> list[str]:
    order = ["correct", *(name for name in RATE_NAMES if name != "correct")]
    return [f"heat-{name.replace('_', '-')}" for name in order]


def _verifiers(verifiers: dict[str, tuple[AssumedErrors, ...]]) -> Iterator[str]:
    """The assumed error rates of each strategy that asks a verifier."""
    for name, found in verifiers.items():
        for each in found:
            rates = f"misses {percent(each.misses)}, fooled {percent(each.fooled)}"
            yield f"{name} (sees {each.sees}) {rates}, errors {each.errors}"
