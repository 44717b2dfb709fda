"""The ledger of a live run: each request is written before it is made, and what it used when it is answered.

It stands in the run folder, so that a limit is the same one over any number of resumes and kills. A request
without an answer counts with its worst case: all of its output limit, and an input token for each byte. One
that a kill left open stays counted so. Only one process spends from a run at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from evalkit.core.turns import count_tokens
from evalkit.models.spending import LimitReached, Price, Usage, usage_of
from evalkit.wire.answers import Answer

FILE = "spending.sqlite"
#: What a server adds to a request of its own: the form of the conversation, and how tools are called.
OVERHEAD = 1_000

Row: TypeAlias = dict[str, Any]

_DDL = """
create table if not exists allowance (id integer primary key, max_usd real, max_tokens integer, prices text);
create table if not exists attempt (id integer primary key, cell integer not null, outcome text not null);
create table if not exists request (
  id integer primary key, attempt integer not null, purpose text not null, model text not null,
  state text not null,
  input integer not null, cache_read integer not null, cache_written integer not null,
  output integer not null, thinking integer not null, usd real not null, source text not null);
create table if not exists waited (status integer primary key, times integer not null, seconds real not null);
"""

#: Outcomes of an attempt at an episode. Another one says why the episode is void.
UNDER_WAY, KEPT, LIMITED, KILLED = "under way", "kept", "limit reached", "killed"


class LedgerError(ValueError):
    """A ledger that cannot be used; one line."""


class Ledger:
    """What a run may spend and has spent, shared by its episodes. Without a folder it is kept nowhere.

    ``max_usd`` and ``max_tokens``: None is what the run had, or no limit. ``prices`` are those of the
    models that may be asked; a model without one costs nothing.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        max_usd: float | None = None,
        max_tokens: int | None = None,
        prices: Mapping[str, Price] | None = None,
    ) -> None:
        self._lock = threading.RLock()
        self._only = self._alone(folder) if folder is not None else None
        try:
            file = ":memory:" if folder is None else str(folder / FILE)
            self._base = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            self._base.execute("pragma journal_mode = wal")
            self._base.execute("pragma synchronous = normal")
            self._base.executescript(_DDL)
            self._allow(max_usd, max_tokens, prices)
            self._base.execute("update request set state = 'lost' where state = 'open'")
            ((self.usd, self.tokens, self.requests),) = self._base.execute(
                "select ifnull(sum(usd), 0), ifnull(sum(input + cache_read + cache_written + output), 0), "
                "count(*) from request"
            )
        except sqlite3.Error as error:
            raise LedgerError(f"{folder}: its spending cannot be read: {error}") from None

    @staticmethod
    def _alone(folder: Path) -> int:
        """Hold the run folder's spending; the kernel lets go of it however this process ends."""
        handle = os.open(folder / f".{FILE}.lock", os.O_CREAT | os.O_RDWR, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise LedgerError(
                f"{folder}: another evalkit spends from this run; wait for it or end it"
            ) from None
        return handle

    def _allow(
        self, max_usd: float | None, max_tokens: int | None, prices: Mapping[str, Price] | None
    ) -> None:
        rows = list(
            self._base.execute("select max_usd, max_tokens, prices from allowance order by id desc limit 1")
        )
        was = rows[0] if rows else (None, None, "{}")
        self.max_usd = was[0] if max_usd is None else max_usd
        self.max_tokens = was[1] if max_tokens is None else max_tokens
        known = msgspec.json.decode(was[2], type=dict[str, Price])
        self.prices = {**known, **(prices or {})}
        if self.max_usd is not None and not self.prices:
            raise ValueError("a limit in dollars needs the model's price")
        now = self.max_usd, self.max_tokens, msgspec.json.encode(self.prices, order="sorted").decode()
        if now != was:
            self._base.execute("insert into allowance (max_usd, max_tokens, prices) values (?, ?, ?)", now)

    # Episodes

    def begin(self, cell: int) -> Purse:
        """An attempt at an episode: what it spends from."""
        with self._lock:
            made = self._base.execute("insert into attempt (cell, outcome) values (?, ?)", (cell, UNDER_WAY))
            return Purse(self, int(made.lastrowid or 0))

    def end(self, attempt: int, outcome: str) -> None:
        """What became of an attempt."""
        with self._lock:
            self._base.execute("update attempt set outcome = ? where id = ?", (outcome, attempt))

    def reconcile(self, finished: set[int]) -> None:
        """Settle what a kill left open: the attempts whose episodes are in the store were kept."""
        with self._lock:
            query = "select id, cell from attempt where outcome = ? order by id desc"
            for attempt, cell in self._base.execute(query, (UNDER_WAY,)).fetchall():
                kept = cell in finished
                finished.discard(cell)
                self.end(attempt, KEPT if kept else KILLED)

    # Requests

    def reserve(self, attempt: int, purpose: str, model: str, worst: Usage) -> int:
        """Set a request's worst case aside; its number. LimitReached where the rest is not enough."""
        price = self.prices.get(model)
        usd = price.at_worst(worst.input, worst.output) if price is not None else 0.0
        with self._lock:
            tokens = worst.tokens
            if self.max_tokens is not None and self.tokens + tokens > self.max_tokens:
                raise LimitReached(
                    f"--max-tokens {self.max_tokens:,}: {self.tokens:,} spent or set aside, "
                    f"the next request may take {tokens:,}"
                )
            if self.max_usd is not None and self.usd + usd > self.max_usd:
                raise LimitReached(
                    f"--max-usd {self.max_usd:g}: {self.usd:.4f} spent or set aside, "
                    f"the next request may cost {usd:.4f}"
                )
            made = self._base.execute(
                "insert into request (attempt, purpose, model, state, input, cache_read, cache_written, "
                "output, thinking, usd, source) values (?, ?, ?, 'open', ?, 0, 0, ?, 0, ?, ?)",
                (attempt, purpose, model, worst.input, worst.output, usd, worst.source),
            )
            self.usd += usd
            self.tokens += tokens
            self.requests += 1
            return int(made.lastrowid or 0)

    def settle(self, request: int, usage: Usage, state: str = "answered") -> None:
        """Note what a request really used, instead of its worst case."""
        with self._lock:
            ((model, tokens, was),) = self._base.execute(
                "select model, input + cache_read + cache_written + output, usd from request where id = ?",
                (request,),
            )
            price = self.prices.get(model)
            usd = price.of(usage) if price is not None else 0.0
            self._base.execute(
                "update request set state = ?, input = ?, cache_read = ?, cache_written = ?, output = ?, "
                "thinking = ?, usd = ?, source = ? where id = ?",
                (
                    state,
                    *(usage.input, usage.cache_read, usage.cache_written, usage.output, usage.thinking),
                    *(usd, usage.source, request),
                ),
            )
            self.usd += usd - was
            self.tokens += usage.tokens - tokens

    def unsent(self, request: int) -> None:
        """Forget a request that never left this machine."""
        with self._lock:
            self.settle(request, Usage())
            self._base.execute("delete from request where id = ?", (request,))
            self.requests -= 1

    def waited(self, status: int, seconds: float) -> None:
        """Note that a refusal for want of capacity was waited out."""
        with self._lock:
            self._base.execute(
                "insert into waited values (?, 1, ?) on conflict (status) do update set "
                "times = times + 1, seconds = seconds + excluded.seconds",
                (status, seconds),
            )

    def close(self) -> None:
        """What is still open stays counted with its worst case."""
        with self._lock:
            self._base.execute("update request set state = 'lost' where state = 'open'")
            self._base.close()
        if self._only is not None:
            os.close(self._only)


class Purse:
    """What one attempt at an episode spends from. A request is open from :meth:`reserve` to :meth:`settle`.

    ``refused`` is the limit that forbade a request: the SDKs wrap what is raised below them.
    """

    def __init__(self, ledger: Ledger, attempt: int, purpose: str = "episode") -> None:
        self.ledger = ledger
        self.attempt = attempt
        self.purpose = purpose
        self.refused: LimitReached | None = None
        self._open: tuple[int, int, Usage] | None = None

    def reserve(self, body: bytes) -> None:
        """Set aside the worst case of a request with this body. LimitReached where it is not allowed."""
        asked = json.loads(body or b"{}")
        limits = ("max_tokens", "max_output_tokens", "max_completion_tokens")
        limit = max((int(asked[name]) for name in limits if asked.get(name)), default=0)
        worst = Usage(len(body) + OVERHEAD, output=limit, source="worst case")
        try:
            number = self.ledger.reserve(self.attempt, self.purpose, str(asked.get("model")), worst)
        except LimitReached as reached:
            self.refused = reached
            raise
        self._open = number, count_tokens(body.decode("utf-8", "replace")), worst

    def unsent(self) -> None:
        """The open request never left this machine."""
        if self._open is not None:
            self.ledger.unsent(self._open[0])
            self._open = None

    def settle(self, answer: Answer) -> None:
        """Note what the open request used; nothing where the answer came from a recording."""
        if self._open is None:
            return
        number, asked, worst = self._open
        self._open = None
        if answer.turn.kind == "failed" and (answer.turn.native or "").startswith("http_"):
            self.ledger.settle(number, Usage(), "refused")
        else:
            self.ledger.settle(number, usage_of(answer, asked, worst))


# What was spent, for whoever reports a run


def read_spending(folder: Path) -> Row | None:
    """What a run has spent, from its folder; None where nothing was asked live.

    ``on`` says what became of the attempts that spent it, ``nothing`` is the sum of what came to nothing.
    """
    file = folder / FILE
    if not file.is_file():
        return None
    base = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        allowance = base.execute("select max_usd, max_tokens, prices from allowance order by id desc limit 1")
        max_usd, max_tokens, prices = next(allowance, (None, None, "{}"))
        kept = [
            {"on": outcome, "purpose": purpose, "attempts": attempts, **_sums(values)}
            for outcome, purpose, attempts, *values in base.execute(
                f"select outcome, purpose, count(distinct attempt.id), {_SUMS} from request "
                "join attempt on attempt.id = request.attempt group by outcome, purpose "
                "order by outcome <> ?, outcome, purpose",
                (KEPT,),
            )
        ]
        total = _sums(next(base.execute(f"select {_SUMS} from request")))
        nothing = _sums(
            next(
                base.execute(
                    f"select {_SUMS} from request join attempt on attempt.id = request.attempt "
                    "where outcome <> ?",
                    (KEPT,),
                )
            )
        )
        counted = dict(base.execute("select source, count(*) from request group by source order by source"))
        waited = {
            str(status): {"times": times, "seconds": round(seconds, 3)}
            for status, times, seconds in base.execute("select * from waited order by status")
        }
    except sqlite3.Error as error:
        raise LedgerError(f"{folder}: its spending cannot be read: {error}") from None
    finally:
        base.close()
    priced = prices != "{}"
    return {
        "priced": priced,
        "max_usd": max_usd,
        "max_tokens": max_tokens,
        **total,
        "on": kept,
        "nothing": nothing,
        "counted_by": counted,
        "waited": waited,
    }


_KINDS = ("input", "cache_read", "cache_written", "output", "thinking")
_SUMS = ", ".join(
    (
        "count(*)",
        "ifnull(sum(state = 'answered'), 0)",
        *(f"ifnull(sum({kind}), 0)" for kind in _KINDS),
        "ifnull(sum(usd), 0.0)",
    )
)


def _sums(values: Any) -> Row:
    requests, answered, *kinds, usd = values
    return {
        "requests": requests,
        "answered": answered,
        "tokens": dict(zip(_KINDS, kinds, strict=True)),
        "usd": round(usd, 9),
    }
