"""evalkit from Python: run, load and judge, with what a run says as values. The package re-exports these."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.core.names import counted
from evalkit.extras import missing
from evalkit.media.medium import Medium
from evalkit.reports.answer import Answer, answer
from evalkit.runs.engine import default_workers
from evalkit.runs.plan import PlanError, make_plan, sources_of
from evalkit.runs.run import new_folder, run_plan
from evalkit.runs.store import Store
from evalkit.scenarios.suites import load_suites
from evalkit.stats.run_comparison import Versus, versus
from evalkit.stats.summary import summarize
from evalkit.strategies.presets import DEFAULT
from evalkit.strategies.registry import StrategyError, find_strategy, registered
from evalkit.strategies.strategy import Strategy

if TYPE_CHECKING:
    import pandas

__all__ = ["Run", "judge", "load", "run"]


class Run:
    """A run, read from its folder. Made by :func:`run` and :func:`load`; it shows itself in a notebook."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._summary: dict[str, Any] | None = None

    @property
    def summary(self) -> dict[str, Any]:
        """The content of ``summary.json``, from the episodes."""
        if self._summary is None:
            store = Store.open(self.folder, write=False)
            self._summary = summarize(store)
            store.close()
        return self._summary

    @property
    def answer(self) -> Answer:
        """What to take with full, some and no checks, and unsure; ``str`` of it is the one sentence."""
        return answer(self.summary)

    def episodes(self) -> pandas.DataFrame:
        """A row for each episode, columns as in ``episodes.csv``. ImportError without pandas."""
        try:
            import pandas
        except ImportError as error:
            raise missing("episodes()", "pandas") from error
        from evalkit.reports.episodes_csv import COLUMNS, episode_rows

        store = Store.open(self.folder, write=False)
        frame = pandas.DataFrame(episode_rows(store), columns=list(COLUMNS))
        store.close()
        return frame

    def compare(self, other: Run) -> Versus:
        """This run (before) against another (after), on the scenarios that both have unchanged."""
        before, after = Store.open(self.folder, write=False), Store.open(other.folder, write=False)
        try:
            return versus(before, after)
        finally:
            before.close()
            after.close()

    def report(self, *, charts: bool | None = None, single_file: bool = False) -> Path:
        """Write the report into the folder; the page to open, or with ``single_file`` the one to send.

        ``charts`` are drawn or not; None draws them from twenty scenarios on, as the command does.
        """
        from evalkit.reports.page.html import SINGLE_FILE
        from evalkit.reports.write import write_report

        store = Store.open(self.folder, write=False)
        write_report(store, charts=charts, single=single_file)
        store.close()
        return self.folder / (SINGLE_FILE if single_file else "index.html")

    def __repr__(self) -> str:
        counts = self.summary["run"]
        return (
            f"<evalkit.Run {self.folder}: {counted(counts['scenarios'], 'scenario')}, "
            f"{counted(counts['episodes'], 'episode')}. "
            f"{self.answer}>"
        )

    def _repr_html_(self) -> str:
        from evalkit.reports.tables import HEADS, level_tables

        parts = [f"<p><b>{escape(str(self.answer))}</b></p>"]
        for table in level_tables(self.summary):
            heads = "".join(f"<th>{escape(head.text)}</th>" for head in HEADS)
            lines = ("".join(f"<td>{escape(cell.text)}</td>" for cell in cells) for cells in table["rows"])
            body = "".join(f"<tr>{line}</tr>" for line in lines)
            title = f"{table['title']}, {table['scenarios']} scenarios"
            parts.append(f"<table><caption>{escape(title)}</caption><tr>{heads}</tr>{body}</table>")
        return "".join(parts)


def run(
    suites: str | Path | Iterable[str | Path] = (),
    strategies: str | Strategy | Iterable[str | Strategy] = DEFAULT,
    *,
    harnesses: str | Iterable[str] = (),
    seeds: int = 1,
    baseline: str | None = None,
    workers: int | None = None,
    out: str | Path | None = None,
) -> Run:
    """Run scenarios against strategies or harnesses, as ``evalkit run`` does, and keep them in a folder.

    ``suites`` are files, folders, families and scenarios; without one, the shipped library. ``strategies``
    are names or :class:`Strategy` values with a ``name``; with ``harnesses`` and none named, none.
    ``workers`` are processes; None is one for each core. ``out`` is the folder; without it one below
    ``reports/``. Raises what the command tells in a line: ScenarioError,
    StrategyError, PlanError, RunError, all of them ValueErrors.
    """
    if workers is not None and workers < 1:
        raise PlanError(f"workers must be at least 1, or None for one on each core; got {workers}")
    asked = _several(harnesses)
    chosen = _strategies(strategies)
    if asked and strategies is DEFAULT:
        chosen = []
    with registered({one.name: one for one in chosen if isinstance(one, Strategy)}):
        names = [one.name if isinstance(one, Strategy) else one for one in chosen]
        scenarios = load_suites(_several(suites))
        plan = make_plan(scenarios, sources_of(scenarios), tuple(names), seeds, baseline, Medium(), asked)
        folder = (
            Path(out)
            if out is not None
            else new_folder(Path("reports"), time.strftime("%Y%m%d-%H%M%S"), plan.recipe.id)
        )
        store = Store.create(folder, plan.recipe)
        run_plan(plan, store, workers or default_workers())
        store.close()
    return Run(folder)


def load(folder: str | Path) -> Run:
    """A run that was made before. RunError where the folder holds none."""
    place = Path(folder)
    Store.open(place, write=False).close()
    return Run(place)


def judge(
    transcripts: str | Path | Iterable[str | Path],
    strategies: str | Strategy | Iterable[str | Strategy] = DEFAULT,
    *,
    labels: str | Path | None = None,
    out: str | Path | None = None,
) -> Mapping[str, Any]:
    """Judge recorded runs as ``evalkit judge`` does; the content of its ``summary.json``.

    ``labels`` is a CSV file that says which recordings were complete. ``out`` is the folder of the report;
    without it one below ``reports/``. LabelError, StrategyError: what cannot be used.
    """
    from evalkit.transcripts.judging.run import Judgement, judge_paths
    from evalkit.transcripts.labels import Labels
    from evalkit.transcripts.turn_claims import claim_of

    chosen = [one if isinstance(one, Strategy) else find_strategy(one) for one in _strategies(strategies)]
    folder = (
        Path(out)
        if out is not None
        else new_folder(Path("reports"), time.strftime("%Y%m%d-%H%M%S"), "judged")
    )
    read = Labels.read(Path(labels)) if labels is not None else None
    places = [Path(place) for place in _several(transcripts)]
    summary = judge_paths(places, Judgement(folder, chosen, claim_of), read)
    if read is not None:
        read.check()
    return summary


def _strategies(values: str | Strategy | Iterable[str | Strategy]) -> list[str | Strategy]:
    """The strategies of a call; StrategyError for what is neither a name nor a value."""
    chosen = [values] if not isinstance(values, Iterable) or isinstance(values, str) else [*values]
    for one in chosen:
        if not isinstance(one, str | Strategy):
            raise StrategyError(f"a strategy is a name or Strategy(name=..., done_when=...), got {one!r}")
    return chosen


def _several(values: str | Path | Iterable[str | Path]) -> tuple[str, ...]:
    if isinstance(values, str | Path):
        values = (values,)
    return tuple(str(value) for value in values)
