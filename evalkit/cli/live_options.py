"""How a live run begins from the command line: its ledger, its limits, where its model is."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from evalkit.cli.errors import UsageProblem
from evalkit.media.medium import check_medium
from evalkit.runs.plan import Plan
from evalkit.runs.store import Store
from evalkit.secrets.urls import clean_url

if TYPE_CHECKING:
    from evalkit.runs.live import LiveRun

#: Options that a run which is gone on with takes; all others are as it was planned.
_WITH_RESUME = frozenset(
    (
        *("resume", "workers", "engine_name", "as_json", "charts", "single_file"),
        *("max_usd", "max_tokens", "concurrency", "base_url", "headers", "prices"),
    )
)


def check_resumed(context: click.Context) -> None:
    """UsageProblem for an option that a run which is gone on with cannot take."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name not in _WITH_RESUME and context.params.get(name):
            said = parameter.opts[0] if parameter.param_type_name == "option" else name
            raise UsageProblem(
                f"--resume takes a run as it was planned: no {said}",
                hint=f"evalkit run --resume {shlex.quote(context.params['resume'])}",
            )


@contextmanager
def live_run(
    plan: Plan, store: Store, over: dict[str, Any], concurrency: int, headers: tuple[str, ...]
) -> Iterator[LiveRun | None]:
    """What works off the live episodes of a plan; None where none asks a provider.

    ``over`` are the options given: new limits for all of the run, another file of prices, and the URL whole.
    ``headers`` are kept nowhere.
    LedgerError where another process spends from the run.
    """
    medium = plan.recipe.medium
    if not medium.live or medium.replay is not None:
        yield None
        return
    from evalkit.runs.live import LiveRun, ledger_of

    url = over.get("base_url")
    if url is not None and clean_url(url) != (medium.base_url or clean_url(url)):
        raise UsageProblem(f"--base-url {clean_url(url)}: the run was made with {medium.base_url}")
    limits = {name: over.get(name) for name in ("max_usd", "max_tokens")}
    given = {name: value for name, value in limits.items() if value is not None}
    if over.get("prices"):
        given["prices"] = over["prices"]
    medium = msgspec.structs.replace(medium, **given)
    check_medium(medium)
    finished = {cell for first, last in store.finished() for cell in range(first, last + 1)}
    ledger = ledger_of(store.folder, medium, finished)
    try:
        yield LiveRun(plan, ledger, concurrency=concurrency, url=url, headers=_headers(headers))
    finally:
        ledger.close()


def _headers(given: tuple[str, ...]) -> dict[str, str]:
    """Headers as they were given, ``NAME: VALUE``. UsageProblem for what is none."""
    headers = {}
    for text in given:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or not value.strip():
            raise UsageProblem(f"--header {name.strip()!r}: expected 'NAME: VALUE'")
        headers[name.strip()] = value.strip()
    return headers
