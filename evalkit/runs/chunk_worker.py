"""Running one chunk of a plan, in whichever process."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

from evalkit.core.tasks import Offered
from evalkit.media.players import player_of
from evalkit.models.spending import LimitReached
from evalkit.runs.chunks import Chunk, Rows
from evalkit.runs.plan import Plan, Span
from evalkit.runs.store import row_of, void_row
from evalkit.scoring.arena import Arena
from evalkit.scoring.worker_episode import run_worker_episode


class _Prepared:
    """What this process keeps of a plan between its chunks."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.play = player_of(plan.recipe.medium)
        self.arena = lru_cache(maxsize=64)(self._arena)

    def _arena(self, scenario: int, offered: Offered) -> Arena:
        return Arena(self.plan.scenarios[scenario], offered)


_prepared: _Prepared | None = None


def prepare(plan: Plan) -> None:
    """Give this process the plan whose chunks it will run."""
    global _prepared
    _prepared = _Prepared(plan)


def measured(chunk: Chunk) -> tuple[Rows, float]:
    """The rows of a chunk and the seconds it took."""
    start = time.perf_counter()
    return run_chunk(chunk), time.perf_counter() - start


def run_chunk(chunk: Chunk) -> Rows:
    """The rows of a chunk. Where evalkit itself fails, the cell is void and the others go on."""
    assert _prepared is not None
    return [row for span in chunk for row in _run_span(_prepared, span)]


def _run_span(prepared: _Prepared, span: Span) -> list[tuple[Any, ...]]:
    plan = prepared.plan
    strategy = plan.strategies[span.contender]
    play = run_worker_episode if plan.recipe.contenders[span.contender].durable else prepared.play
    rows = []
    for offset in range(span.seeds):
        cell, seed = span.cell + offset, span.first_seed + offset
        place = (cell, span.scenario, span.contender, seed)
        try:
            episode = play(prepared.arena(span.scenario, strategy.offers), strategy, seed)
        except LimitReached:
            raise
        except Exception as error:
            rows.append(void_row(*place, f"{type(error).__name__}: {error}"))
        else:
            rows.append(row_of(*place, episode))
    return rows
