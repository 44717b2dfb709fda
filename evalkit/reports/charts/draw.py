"""Drawing all charts of a run once, and writing each in every form."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from evalkit.containment.folders import temporary_folder
from evalkit.containment.workers import in_order
from evalkit.extras import install
from evalkit.reports.charts.cost import cost_chart
from evalkit.reports.charts.forest import forest_chart
from evalkit.reports.charts.heat import heat_chart
from evalkit.reports.charts.outcomes import outcomes_chart
from evalkit.reports.charts.style import INK, NARROW, PAGE, RC, TITLE
from evalkit.reports.charts.sweep import sweep_chart
from evalkit.reports.charts.turns import turns_chart
from evalkit.reports.formatting import LEVELS, RATE_NAMES, Row, at_level, label, levels, overall
from evalkit.reports.verifier_sweep import sweeps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The family that matplotlib writes, and what a page puts in its place: of like widths.
_WRITTEN, _FAMILY = "'DejaVu Sans', sans-serif", "'DejaVu Sans', Verdana, sans-serif"
#: The first is always written: the page is made of it.
KINDS = ("svg", "png", "pdf")
#: Points for an inch of the pictures.
DPI = 150
#: Points that a title takes at the top of a chart.
_TITLE_LINE = 22


class Chart(msgspec.Struct, frozen=True):
    """A chart as it stands in a page; ``name`` is also its files', which are of these ``kinds``.

    ``narrow`` is the same drawn for a phone, empty where the one is narrow enough for both.
    """

    name: str
    title: str
    svg: str
    kinds: tuple[str, ...] = KINDS[:1]
    narrow: str = ""


#: A title, what draws a chart, and what draws it for a phone.
_Drawn: TypeAlias = "tuple[str, Callable[[], Figure], Callable[[], Figure] | None]"


class ChartsMissing(RuntimeError):
    """matplotlib is not installed; the message says what to do."""


def need_matplotlib() -> None:
    """ChartsMissing where charts cannot be drawn."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ChartsMissing(f"charts need matplotlib: {install('matplotlib')}") from None


def draw_charts(
    summary: Row, folder: Path, workers: int = 1, kinds: tuple[str, ...] = KINDS[:1]
) -> list[Chart]:
    """Draw all charts of a run into a folder, as SVG and what else is asked for of ``KINDS``.

    Forms that are not asked for are removed: they would show an earlier run. ChartsMissing without
    matplotlib.
    """
    need_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    names = list(_wanted(summary))
    for kind in KINDS:
        for name in names if kind not in kinds else ():
            (folder / f"{name}.{kind}").unlink(missing_ok=True)
    # Drawing takes longer than everything else in a report, and each chart stands alone.
    return list(in_order(partial(_draw, summary, folder=folder, kinds=kinds), names, workers))


def _draw(summary: Row, name: str, folder: Path, kinds: tuple[str, ...] = KINDS[:1]) -> Chart:
    title, draw, slim = _wanted(summary)[name]
    return draw_one(name, title, draw, slim, folder, kinds)


def draw_one(
    name: str,
    title: str,
    draw: Callable[[], Figure],
    slim: Callable[[], Figure] | None,
    folder: Path,
    kinds: tuple[str, ...] = KINDS[:1],
) -> Chart:
    """Draw one chart into a folder that is there; ``slim`` draws it for a phone. ChartsMissing as above."""
    need_matplotlib()
    import matplotlib

    with matplotlib.rc_context(RC), _no_collections():
        _write(_laid_out(draw()), folder / name, kinds)
        svg = (folder / f"{name}.svg").read_text(encoding="utf-8")
        if slim is None:
            return Chart(name, title, _for_page(svg, name, title), kinds)
        with temporary_folder("chart") as scratch:
            _write(_laid_out(slim()), scratch.folder / name, KINDS[:1])
            narrow = (scratch.folder / f"{name}.svg").read_text(encoding="utf-8")
    page = _for_page(svg, name, title, " wide")
    return Chart(name, title, page, kinds, _for_page(narrow, f"{name}-narrow", title, " narrow"))


@contextmanager
def _no_collections() -> Iterator[None]:
    """While a chart is drawn, which makes a hundred thousand objects and drops few, none are looked for."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _laid_out(figure: Figure) -> Figure:
    """The figure with its layout found, once: it is most of the work."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")
    figure.set_facecolor("white")
    return figure


def _write(figure: Figure, place: Path, kinds: tuple[str, ...]) -> None:
    """Write the forms. By the canvases themselves: ``savefig`` would lay everything out once more."""
    for kind in kinds:
        canvas = _canvas(kind)
        file = place.with_name(f"{place.name}.{kind}")
        figure.set_dpi(DPI)
        getattr(canvas(figure), f"print_{kind}")(file, metadata=_metadata(kind))
        if kind == "png":
            _shrink(file)


def _canvas(kind: str) -> Any:
    """What writes a form: each is loaded when it is asked for, that of PDF with a library of fonts."""
    name = {"svg": "SVG", "png": "Agg", "pdf": "Pdf"}[kind]
    return getattr(import_module(f"matplotlib.backends.backend_{name.lower()}"), f"FigureCanvas{name}")


def _shrink(file: Path) -> None:
    """Keep a picture with a palette: a third of the size, and no difference to see."""
    from PIL import Image

    with Image.open(file) as picture:
        palette = picture.convert("RGB").quantize(
            128, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
    palette.save(file)


def _metadata(kind: str) -> dict[str, str | None]:
    """No date and no version, so that the same figures give the same file."""
    dates: dict[str, dict[str, str | None]] = {
        "svg": {"Date": None, "Creator": None},
        "png": {"Software": None},
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    }
    return dates[kind]


def _wanted(summary: Row) -> dict[str, _Drawn]:
    """By name: its title, what draws it, and what draws it for a phone."""
    rows = overall(summary)
    wanted: dict[str, _Drawn] = {}
    if not rows:
        return wanted

    def add(name: str, title: str, draw: Callable[..., Figure], *, slims: bool = True) -> None:
        wanted[name] = (title, draw, partial(draw, width=NARROW) if slims else None)

    for level in levels(summary):
        mine = at_level(summary, level)
        about = LEVELS[level].lower()
        number = max(row["scenarios"] for row in mine)
        title = f"How runs ended, and what was true of the work: {about}, {number} scenarios"
        add(f"outcomes-{level}", title, partial(outcomes_chart, mine, title))
        title = f"Reliability against cost: {about}"
        add(f"cost-{level}", title, partial(cost_chart, mine, title))
        pairs = [pair for pair in summary["pairs"] if pair["checks"] == level]
        if pairs:
            title = f"Correct, paired by scenario, against {pairs[0]['baseline']}: {about}"
            add(f"forest-{level}", title, partial(forest_chart, pairs, title))
    for rate, words in RATE_NAMES.items():
        title = f"{words.capitalize()}, scenarios by family"
        add(f"heat-{rate.replace('_', '-')}", title, partial(heat_chart, summary, rows, rate), slims=False)
    order = [label(row) for row in rows]
    add("turns", "Turns to the end", partial(turns_chart, summary["turns"], order))
    swept = sweeps(summary)
    if swept:
        title = "Correct, if the verifier errs"
        add("sweep", title, partial(sweep_chart, swept, overall(summary)), slims=False)
    return wanted


def _for_page(svg: str, name: str, title: str, kind: str = "") -> str:
    """The chart without ground and title, in the reader's colour of text, with ids of its own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(rf'<g id="{TITLE}">.*?</g>', "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', _without_title, svg, count=1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="patch_1">.*?</g>', "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(xlink:href="|url\()#', rf"\1#{name}-", svg)
    svg = _solid(svg)
    svg = svg.replace(f'xlink:href="{PAGE}', 'href="#').replace(' target="_blank"', "")
    svg = svg.replace(INK, "currentColor").replace(f" font-family: {_WRITTEN};", "")
    svg = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", svg)
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"\d+\.\d{3,}", _rounded, tag[0]), svg)
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    width = re.search(r'viewBox="0 [\d.]+ ([\d.]+)', svg)
    points = float(width[1]) if width else 660.0
    # Smaller its words cannot be read; a page scrolls it then.
    least = 0 if kind else min(620, round(0.62 * points))
    style = f"font-family: {_FAMILY}; max-width: {round(1.5 * points)}px; min-width: {least}px"
    label = f'<svg role="img" aria-label="{_attribute(title)}" class="chart{kind}" style="{style}"'
    return re.sub(r"\s*\n\s*", "\n", svg.replace("<svg", label, 1))


def _solid(svg: str) -> str:
    """Hatched shapes with their plain colour beside the hatch: on paper a hatch is a picture of megabytes."""
    colours = dict(re.findall(r'<pattern id="([^"]+)".*?<rect [^>]*fill="(#\w+)"', svg, flags=re.DOTALL))
    return re.sub(
        r'style="fill: url\(#([^)]+)\)',
        lambda found: f'style="--solid: {colours.get(found[1], "#999999")}; fill: url(#{found[1]})',
        svg,
    )


def _without_title(found: re.Match[str]) -> str:
    """The same box without the line at its top that the title has left."""
    return f'viewBox="0 {_TITLE_LINE} {found[1]} {float(found[2]) - _TITLE_LINE:g}"'


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.1f}"


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
