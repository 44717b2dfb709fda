"""The answer to the one question: which runs were called done and were not, and what would have caught them.

Every row stands on the same two bases: the runs that their harness ended ``done`` and whose label says that
they were not complete (false dones), and those that were. A strategy *caught* a false done where it came to
the recorded end and would have gone on or handed over; it *costs* where the same happens to a right one.
Figures are conditional on the recorded conversations: a row that parted from its recording before is known up
to there only, so beside each figure stand the bounds that hold whatever would have come instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from evalkit.core.names import counted
from evalkit.transcripts.judging.corrected_rates import corrected
from evalkit.transcripts.judging.judge import BEYOND, UNKNOWN
from evalkit.transcripts.judging.outcome import Outcome

#: Runs to label first that are named.
FIRST = 10
#: Runs from which on a share has an interval.
ENOUGH = 20
#: Conditions that the greedy choice names at most.
CHOSEN = 4

#: What a strategy would have done on a run: ended it done, or not; the same, but parted before; no saying.
_NO, _YES, _NO_PARTED, _YES_PARTED, _CANNOT = range(5)


class _Base:
    """One base of runs: for each strategy what it would have done on each of them, in their order."""

    def __init__(self) -> None:
        self.runs = 0
        self.marks: dict[str, bytearray] = {}
        self.ends: dict[str, Counter[str]] = {}

    def add(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            marks = self.marks.get(outcome.strategy)
            if marks is None:
                # Strategies come with every run; one that comes late said nothing of those before.
                marks = self.marks[outcome.strategy] = bytearray([_CANNOT]) * self.runs
                self.ends[outcome.strategy] = Counter()
            marks.append(_mark(outcome))
            self.ends[outcome.strategy][_end(outcome)] += 1
        self.runs += 1

    def row(self, strategy: str) -> dict[str, Any]:
        """How many runs a strategy would not have ended ``done``, and the bounds of that."""
        marks = self.marks.get(strategy, bytearray())
        sure, parted = marks.count(_YES), marks.count(_YES_PARTED) + marks.count(_NO_PARTED)
        return {
            "base": self.runs,
            "not_done": sure + marks.count(_YES_PARTED),
            "at_least": sure,
            "at_most": sure + parted,
            "exact": marks.count(_YES) + marks.count(_NO),
            "parted": parted,
            "cannot_say": marks.count(_CANNOT) + self.runs - len(marks),
            "ends": dict(sorted(self.ends.get(strategy, Counter()).items())),
        }


def _mark(outcome: Outcome) -> int:
    end = _end(outcome)
    if end == "cannot say":
        return _CANNOT
    if end == "gone on":
        return _YES_PARTED if outcome.parted else _YES
    return _NO_PARTED if outcome.parted else _NO


def _end(outcome: Outcome) -> str:
    if outcome.ending == UNKNOWN:
        return "cannot say"
    if outcome.ending != BEYOND and outcome.turn < outcome.turns:
        return "earlier"
    if outcome.ending in ("limit", "error"):
        # It stopped there all the same, for another reason.
        return "limit or error"
    return "same turn" if outcome.ending == "done" else "gone on"


class Answer:
    """Collects the answer, recording by recording."""

    def __init__(self) -> None:
        self.wrong = _Base()
        self.right = _Base()
        self.recordings = self.dones = self.failures = self.labelled = 0
        self.last_turns = self.claims = self.labelled_claims = self.false_claims = 0
        self.ended_claims: Counter[str] = Counter()
        self._first: list[tuple[int, str]] = []

    def add(self, outcomes: list[Outcome]) -> None:
        """Take the rows of one recording, the recorded end first."""
        recorded, *others = outcomes
        self.recordings += 1
        done = recorded.ending == "done"
        self.dones += done
        self.failures += recorded.label == "incomplete"
        self.labelled += recorded.label != "unknown"
        self.last_turns += recorded.turns > 0
        if recorded.claim == "done":
            self.claims += 1
            self.labelled_claims += recorded.label != "unknown"
            self.false_claims += recorded.label == "incomplete"
        self.ended_claims[f"{recorded.ending}, claims {recorded.claim}"] += 1
        if done and recorded.label == "incomplete":
            self.wrong.add(others)
        elif done and recorded.label == "complete":
            self.right.add(others)
        elif recorded.label == "unknown":
            self._to_label(recorded, others)

    def _to_label(self, recorded: Outcome, others: list[Outcome]) -> None:
        """A run tells most where strategies disagree about its end, and where it was called done.

        One that nobody called done, and about which none disagree, tells nothing.
        """
        judged = [outcome for outcome in others if outcome.ending != UNKNOWN]
        ended = sum(outcome.ending == "done" for outcome in judged)
        split = min(ended, len(judged) - ended)
        weight = 2 * split + (recorded.ending == "done") + (recorded.claim == "done")
        if not weight:
            return
        self._first.append((-weight, recorded.recording))
        if len(self._first) > 50 * FIRST:
            self._first = sorted(self._first)[:FIRST]

    def summary(self) -> dict[str, Any]:
        """The content of ``summary.json`` under ``answer``."""
        names = list(dict.fromkeys((*self.wrong.marks, *self.right.marks)))
        rows: list[dict[str, Any]] = []
        silent: list[str] = []
        for name in names:
            caught, cost = self.wrong.row(name), self.right.row(name)
            if caught["cannot_say"] == caught["base"] and cost["cannot_say"] == cost["base"]:
                silent.append(name)
            else:
                rows.append({"strategy": name, "caught": caught, "cost": cost})
        wrong = self.wrong.runs
        return {
            "recordings": self.recordings,
            "labelled": self.labelled,
            "false_done": {
                "count": wrong,
                "of_all": self.labelled,
                "of_dones": wrong + self.right.runs,
                "of_failures": self.failures,
            },
            # What others count: the last words claim it, whatever the harness made of them.
            "false_claim": {
                "count": self.false_claims,
                "of_all": self.labelled,
                "of_claims": self.labelled_claims,
                "of_failures": self.failures,
            },
            "right": self.right.runs,
            "rows": rows,
            "silent": silent,
            "best": _best(rows),
            "greedy": self._greedy([row["strategy"] for row in rows]),
            "claims": {
                "done": self.claims,
                "of": self.last_turns,
                "ends": dict(sorted(self.ended_claims.items())),
            },
            "label_first": [name for _, name in sorted(self._first)[:FIRST]],
        }

    def _greedy(self, names: list[str]) -> list[dict[str, Any]]:
        """The conditions that together catch most, chosen one after the other by what each adds."""
        chosen: list[dict[str, Any]] = []
        left = set(range(self.wrong.runs))
        paid: set[int] = set()
        rest = list(names)
        while left and rest and len(chosen) < CHOSEN:
            gains = {name: left & _places(self.wrong.marks.get(name)) for name in rest}
            costs = {name: _places(self.right.marks.get(name)) for name in rest}
            best = min(rest, key=lambda name: (-len(gains[name]), len(costs[name])))
            if not gains[best]:
                break
            left -= gains[best]
            paid |= costs[best]
            chosen.append({"strategy": best, "adds": len(gains[best]), "left": len(left), "cost": len(paid)})
            rest.remove(best)
        return chosen


def _places(marks: bytearray | None) -> set[int]:
    return {place for place, mark in enumerate(marks or ()) if mark in (_YES, _YES_PARTED)}


def _best(rows: list[dict[str, Any]]) -> str | None:
    """Of the strategies that catch any, the one with the largest share caught less share paid."""

    def worth(row: dict[str, Any]) -> tuple[float, str]:
        caught, cost = row["caught"], row["cost"]
        paid = cost["not_done"] / cost["base"] if cost["base"] else 0.0
        return (caught["not_done"] / caught["base"] - paid, row["strategy"])

    catching = [row for row in rows if row["caught"]["not_done"]]
    return str(max(catching, key=worth)["strategy"]) if catching else None


def table(answer: dict[str, Any]) -> list[list[str]]:
    """A row for each strategy that says something, best first; the columns are :data:`HEADS`."""
    rows = []
    for row in sorted(answer["rows"], key=lambda row: (-row["caught"]["not_done"], row["cost"]["not_done"])):
        caught, cost = row["caught"], row["cost"]
        ends = caught["ends"]
        rows.append(
            [
                row["strategy"],
                _figure(caught),
                str(ends.get("same turn", 0)),
                str(ends.get("earlier", 0) + ends.get("limit or error", 0)),
                str(caught["cannot_say"]),
                _figure(cost),
                _exact(caught["exact"] + cost["exact"], caught["parted"] + cost["parted"]),
            ]
        )
    return rows


HEADS = ("strategy", "caught", "same turn", "earlier", "cannot say", "cost", "exact")


def caption(answer: dict[str, Any]) -> str:
    """On which bases the table stands."""
    return (
        f"caught, same turn, earlier, cannot say: of the {answer['false_done']['count']} false dones; cost: "
        f"of the {answer['right']} done and right. “11 (3–40)”: 11 on the recorded conversations; where a "
        "strategy parts from one before its end only the bounds are certain."
    )


def _figure(cell: dict[str, Any]) -> str:
    if not cell["base"]:
        return "n/a"
    low, high = cell["at_least"], cell["at_most"]
    return str(cell["not_done"]) if low == high else f"{cell['not_done']} ({low}–{high})"


def _exact(exact: int, parted: int) -> str:
    return "all" if not parted else f"{exact} of {exact + parted}"


# In words


def sentences(answer: dict[str, Any], why: dict[str, str], claims: dict[str, Any] | None = None) -> list[str]:
    """The answer in sentences, each figure on the base that it names."""
    said = []
    told = answer["false_done"]
    if answer["labelled"]:
        said.append(
            f"{told['count']} of {told['of_all']} labelled runs were called done and were not "
            f"({told['count']} of the {told['of_dones']} called done; "
            f"{told['count']} of the {told['of_failures']} that failed)."
        )
        said += _by_words(answer["false_claim"])
        row = next((row for row in answer["rows"] if row["strategy"] == answer["best"]), None)
        if row is not None:
            said.append(_sentence(row))
        elif told["count"] and answer["rows"]:
            said.append("None of the strategies that can be judged would have gone on in any of them.")
        if len(answer["greedy"]) > 1:
            said.append(_greedy_sentence(answer))
    if answer["labelled"] < answer["recordings"]:
        said.append(_unlabelled(answer, claims))
    return [*said, *_silent(answer["silent"], why)]


def _by_words(told: dict[str, Any]) -> list[str]:
    """The false claims, where any last words claim it at all."""
    if not told["of_claims"]:
        return []
    return [
        f"By their last words, {told['count']} of {told['of_all']} claimed to be done and were not "
        f"({told['count']} of the {told['of_claims']} that claim it; "
        f"{told['count']} of the {told['of_failures']} that failed)."
    ]


def _silent(names: list[str], why: dict[str, str]) -> list[str]:
    """One line for each reason why strategies say nothing of these runs."""
    reasons: dict[str, list[str]] = {}
    for name in names:
        reason = why.get(name, "not judged")
        reasons.setdefault(reason.partition(": ")[2] or reason, []).append(name)
    return [f"No word of {', '.join(those)}: {reason}." for reason, those in reasons.items()]


def _sentence(row: dict[str, Any]) -> str:
    caught, cost = row["caught"], row["cost"]
    ends = caught["ends"]
    parts = [f"gone on in {ends.get('gone on', 0)}"]
    parts.append(f"stopped at the same turn in {ends.get('same turn', 0)}")
    parts.append(f"earlier in {ends.get('earlier', 0)}")
    if ends.get("limit or error"):
        parts.append(f"at a limit or an error in {ends['limit or error']}")
    text = f"Of these, {row['strategy']} would have {', '.join(parts)}"
    if not cost["base"]:
        return f"{text}; no run was done and right, so its cost is not known."
    text += f"; of the {cost['base']} that were done and right it would have gone on in {cost['not_done']}"
    parted = caught["parted"] + cost["parted"]
    if parted:
        text += f" ({_exact(caught['exact'] + cost['exact'], parted)} of these runs exactly, see the bounds)"
    return f"{text}."


def _greedy_sentence(answer: dict[str, Any]) -> str:
    steps = [f"{step['strategy']} (+{step['adds']}, {step['left']} left)" for step in answer["greedy"]]
    return (
        f"Together, each next to what is left: {'; '.join(steps)}; they would have gone on in "
        f"{answer['greedy'][-1]['cost']} of the {answer['right']} right ones too. Chosen on these very runs: "
        "expect less on others."
    )


def _unlabelled(answer: dict[str, Any], claims: dict[str, Any] | None) -> str:
    rest = answer["recordings"] - answer["labelled"]
    done, turns = answer["claims"]["done"], answer["claims"]["of"]
    text = f"{counted(rest, 'run')} {'has' if rest == 1 else 'have'} no label. "
    if not turns:
        return text + "No run has a model turn."
    text += f"{done} of all {turns} last turns claim done"
    share = corrected(done, turns)
    if share is not None and turns >= ENOUGH:
        text += f" ({100 * share.low:.0f} to {100 * share.high:.0f} % with the reader's measured errors)"
    words = ", ".join(f"“{word}” {count}" for word, count in (claims or {}).get("words", [])[:5])
    text += f" ({words})" if words else ""
    first = ", ".join(_told_apart(answer["label_first"][:3]))
    return (
        f"{text}. Label first, where strategies disagree or done was said: {first}." if first else f"{text}."
    )


def _told_apart(names: list[str]) -> list[str]:
    """The ends of paths, as long as they have to be to differ."""
    split = [name.split("/") for name in names]
    for kept in range(1, max(map(len, split), default=0) + 1):
        short = ["/".join(parts[-kept:]) for parts in split]
        if len(set(short)) == len(short):
            return short
    return names
