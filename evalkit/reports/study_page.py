"""A study's files: its page, its text, its figures, its chart."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evalkit.experiments.studies.study import Study
from evalkit.reports.charts import KINDS, ChartsMissing
from evalkit.reports.charts.draw import draw_one
from evalkit.reports.charts.giving_up import giving_up_chart
from evalkit.reports.charts.looks import looks_chart
from evalkit.reports.charts.style import NARROW

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What draws the chart of a study from its figures, by the study's name.
_CHARTS: dict[str, Callable[..., Figure]] = {
    "giving-up": giving_up_chart,
    "looks": lambda figures, title, **size: looks_chart(figures["curves"], title, **size),
}


def write_study(study: Study, folder: Path, kinds: tuple[str, ...] = KINDS[:1]) -> list[str]:
    """Write ``NAME.md``, ``NAME.json``, ``NAME.svg`` and ``NAME.html``; notes on what was left out."""
    folder.mkdir(parents=True, exist_ok=True)
    notes: list[str] = []
    chart = None
    draw = _CHARTS.get(study.name)
    if draw is not None:
        wide = partial(draw, study.figures, study.chart)
        try:
            chart = draw_one(study.name, study.chart, wide, partial(wide, width=NARROW), folder, kinds)
        except ChartsMissing as error:
            notes.append(str(error))
    (folder / f"{study.name}.md").write_text(study.markdown, encoding="utf-8")
    kept = {"schema": "evalkit.study/1", "study": study.name, "command": study.command, **study.figures}
    encoded = msgspec.json.format(msgspec.json.encode(kept), indent=1)
    (folder / f"{study.name}.json").write_bytes(encoded + b"\n")
    try:
        (folder / f"{study.name}.html").write_text(_page(study, chart), encoding="utf-8")
    except ImportError:
        notes.append("the page needs the extra report")
    return notes


def _page(study: Study, chart: Any) -> str:
    from jinja2 import Environment
    from markupsafe import Markup

    folder = files("evalkit.reports") / "page"
    text, css = ((folder / name).read_text(encoding="utf-8") for name in ("study.html.j2", "report.css"))
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["wordy"] = environment.tests["wordy"] = _is_wordy
    template = environment.from_string(text)
    said = [Markup(_in_html(words)) for words in study.words]
    return template.render(study=study, chart=chart, words=said, css=css)


def _is_wordy(cell: str) -> bool:
    """Whether a cell is read and not compared: words stand to the left, figures to the right."""
    return cell[:1].isalpha() and cell != "n/a"


def _in_html(words: str) -> str:
    """A paragraph with its code and emphasis."""
    from markupsafe import escape

    safe = str(escape(words))
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", safe)
