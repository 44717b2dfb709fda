"""Running one chunk of a plan, in whichever process."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

from evalkit.core.tasks import Offered
from evalkit.models.spending import LimitReached
from evalkit.runs.chunks import Chunk, Rows
from evalkit.runs.medium import Play, player_of
from evalkit.runs.plan import Plan, Span
from evalkit.runs.store import row_of, void_row
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.scoring.worker_episode import run_worker_episode

_plan: Plan | None = None
_play: Play = run_episode


def prepare(plan: Plan) -> None:
    """Give this process the plan whose chunks it will run."""
    global _plan, _play
    _plan = plan
    _play = player_of(plan.recipe.medium)
    _arena.cache_clear()


@lru_cache(maxsize=64)
def _arena(scenario: int, offered: Offered) -> Arena:
    assert _plan is not None
    return Arena(_plan.scenarios[scenario], offered)


def measured(chunk: Chunk) -> tuple[Rows, float]:
    """The rows of a chunk and the seconds it took."""
    start = time.perf_counter()
    return run_chunk(chunk), time.perf_counter() - start


def run_chunk(chunk: Chunk) -> Rows:
    """The rows of a chunk. Where evalkit itself fails, the cell is void and the others go on."""
    return [row for span in chunk for row in _run_span(span)]


def _run_span(span: Span) -> list[tuple[Any, ...]]:
    assert _plan is not None
    strategy = _plan.strategies[span.contender]
    play = run_worker_episode if _plan.recipe.contenders[span.contender].durable else _play
    rows = []
    for offset in range(span.seeds):
        cell, seed = span.cell + offset, span.first_seed + offset
        place = (cell, span.scenario, span.contender, seed)
        try:
            episode = play(_arena(span.scenario, strategy.offers), strategy, seed)
        except LimitReached:
            raise
        except Exception as error:
            rows.append(void_row(*place, f"{type(error).__name__}: {error}"))
        else:
            rows.append(row_of(*place, episode))
    return rows
