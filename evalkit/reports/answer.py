"""The answer that a report gives first: what to take, made once for terminal, ``report.md`` and page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from evalkit.fit.uncertainty import legend
from evalkit.reports.formatting import (
    LEVEL_MEANINGS,
    LEVELS,
    RATE_NAMES,
    Row,
    at_level,
    count,
    dollars,
    label,
    levels,
    number,
    p_in_words,
    rate,
)
from evalkit.reports.spending import spending_lines
from evalkit.stats.ranking import UNSURE, share_played, standing
from evalkit.stats.scenario_results import episode_name
from evalkit.strategies.presets import PRESETS

#: What a harness can do, in the words of the one sentence.
_SITUATIONS = {"full": "run full checks", "weak": "run some checks", "none": "run no checks"}
_SHORT = {"weak": "Some", "none": "None"}
_PLACES = {1: "first", 2: "second"}
#: The level at which two are said to differ.
_ALPHA = 0.05
#: What an episode shows, in words that follow the name of a strategy.
_SHOWN = {
    "false_done": "calls unfinished work done",
    "premature_stop": "stops while the work could still be finished",
    "over_continuation": "goes on for nothing",
    "unclosed": "leaves finished work unclosed",
}


class Telling(msgspec.Struct, frozen=True):
    """The episode that shows best what a choice prevents.

    ``episode`` is what ``evalkit show`` takes, ``view`` the part of the page's address after ``#``.
    """

    scenario: str
    by: str
    fault: str
    episode: str
    view: str


class Pick(msgspec.Struct, frozen=True):
    """What to take in one situation, and why. ``level`` is a level of checks, or ``unsure``.

    ``names`` has several where they tie, and none where nothing can be taken. ``share`` is the share of
    scenarios that are correct, where one number says it.
    """

    level: str
    asked: str
    names: tuple[str, ...]
    result: str
    faults: str
    cost: str
    against: str
    needs: str
    cannot: str
    share: float | None
    telling: Telling | None

    @property
    def name(self) -> str:
        """The names in words."""
        return " or ".join(self.names) if len(self.names) < 4 else f"any of {len(self.names)}"


class Answer(msgspec.Struct, frozen=True):
    """The one sentence, what it rests on, and what speaks against any answer from this run."""

    sentence: str
    picks: tuple[Pick, ...]
    warning: str

    def __str__(self) -> str:
        return f"{self.warning} {self.sentence}" if self.warning else self.sentence


def answer(summary: Row) -> Answer:
    """The answer of a run, from its own figures."""
    picks = [_pick(summary, level) for level in levels(summary)]
    unsure = next((lead for lead in summary["leads"] if lead["checks"] == UNSURE), None)
    if unsure is not None and len(_contenders(summary)) > 1:
        picks.append(_unsure(summary, unsure))
    return Answer(_sentence(summary, picks), tuple(picks), _warning(summary))


def _contenders(summary: Row) -> set[str]:
    return {label(row) for row in at_level(summary, "all")}


def _warning(summary: Row) -> str:
    run = summary["run"]
    if run["gateable"]:
        return ""
    if run["episodes"] == run["void"]:
        return "Nothing was evaluated."
    return "More than 1 % of the episodes are void: this run is no ground for a decision."


def _sentence(summary: Row, picks: list[Pick]) -> str:
    if not picks:
        return "Nothing was evaluated."
    names = _contenders(summary)
    if len(names) == 1:
        return f"Only {next(iter(names))} was run: there is nothing to choose from."
    parts = []
    for place, pick in enumerate(picks):
        taken = pick.name if pick.names else "nothing of this, none is ever correct"
        if pick.level == UNSURE:
            parts.append(f"Unsure: {taken}.")
        elif place == 0:
            parts.append(f"Your harness can {_SITUATIONS[pick.level]}: take {taken}.")
        else:
            parts.append(f"{_SHORT[pick.level]}: {taken}.")
    if len(picks) > 1 and picks[-1].level != UNSURE:
        parts.append("Unsure: none is first or second at every level.")
    return " ".join(parts)


def _pick(summary: Row, level: str) -> Pick:
    rows = at_level(summary, level)
    top = rows[0]
    tied = [row for row in rows if standing(row) == standing(top)]
    lead = next((lead for lead in summary["leads"] if lead["checks"] == level), None)
    right = (top["correct"]["scenario_rate"] or 0) > 0
    return Pick(
        level=level,
        asked=LEVELS[level],
        names=tuple(label(row) for row in tied) if right else (),
        result=f"{rate(top['correct'])} scenarios correct",
        faults=f"{_faults(top, 'false_done')}, {_faults(top, 'premature_stop')}",
        cost=_cost(tied),
        against=_against(lead, rows, tied) if lead is not None else "",
        needs=_of_preset(tied, "needs"),
        cannot=_of_preset(tied, "cannot"),
        share=top["correct"]["scenario_rate"],
        telling=_telling(lead) if lead is not None else None,
    )


def _unsure(summary: Row, lead: Row) -> Pick:
    """The choice of who does not know what checks there will be: its figures level by level, never pooled."""
    name = label(lead)
    by_level = {
        level: next(row for row in at_level(summary, level) if label(row) == name) for level in lead["places"]
    }
    rows = list(by_level.values())

    def each(rate_name: str) -> str:
        return " + ".join(count(row[rate_name]["scenario_count"]) for row in rows)

    stood = ", ".join(
        f"{_PLACES[place]} with {LEVELS[level].lower()} ({rate(by_level[level]['correct'])})"
        for level, place in lead["places"].items()
    )
    return Pick(
        level=UNSURE,
        asked="Unsure",
        names=(name,),
        result=stood,
        faults=f"{each('false_done')} false dones, {each('premature_stop')} premature stops",
        cost=_cost(rows),
        against="",
        needs=_of_preset([lead], "needs"),
        cannot=_of_preset([lead], "cannot"),
        share=None,
        telling=_telling(lead),
    )


def _faults(row: Row, name: str) -> str:
    cell, words = row[name], RATE_NAMES[name]
    if not cell["base"]:
        return f"{words}s: n/a"
    found = count(cell["scenario_count"])
    return f"{found} {words}{'' if found == '1' else 's'}"


def _cost(rows: list[Row]) -> str:
    """Turns, tokens and assumed dollars an episode; of several rows the least to the most."""
    found = []
    for name, write, unit in (
        ("turns", number, " turns"),
        ("tokens", number, " tokens"),
        ("usd", dollars, ""),
    ):
        values = sorted({row[name] for row in rows if row[name] is not None})
        texts = list(dict.fromkeys(write(value) for value in (values[0], values[-1]))) if values else ["n/a"]
        found.append(f"{' to '.join(texts)}{unit}")
    return f"{found[0]} and {found[1]} an episode ({found[2]} at the assumed price)"


def _against(lead: Row, rows: list[Row], tied: list[Row]) -> str:
    """The first against the second: how often better, and whether that is more than chance would do."""
    told = []
    if len(tied) > 1:
        told.append("a tie: as many correct, as many false dones and premature stops")
    if lead["next"] is None:
        return told[0] if told else "there is no second"
    second = next(row for row in rows if label(row) == label(lead["next"]))
    first = f"{label(lead)} " if told else ""
    told.append(
        f"{first}against {label(second)} ({rate(second['correct'])}): better in {lead['better']}, worse in "
        f"{lead['worse']}; {_tested(lead)}"
    )
    if lead["better"] == lead["worse"] and not lead["difference"]:
        fewer = _fewer(rows[0], second)
        told.append(f"as often correct, {fewer}")
    return "; ".join(told)


def _fewer(first: Row, second: Row) -> str:
    for name, words in (("false_done", "false dones"), ("premature_stop", "premature stops")):
        if share_played(first, name) != share_played(second, name):
            one, other = (count(row[name]["scenario_count"]) for row in (first, second))
            return f"with fewer {words} ({one} and {other})"
    return "a tie"


def _tested(lead: Row) -> str:
    if lead["p"] is None:
        return "no difference found" if lead["note"].startswith("no scenario differs") else str(lead["note"])
    held = lead["p_holm"] is not None
    p = lead["p_holm"] if held else lead["p"]
    said = f"{p_in_words(p)}, Holm" if held else p_in_words(p)
    return f"{'no difference found' if p > _ALPHA else 'a difference'} ({said})"


def _of_preset(rows: list[Row], what: str) -> str:
    """What is known of a preset; of one's own strategy or harness nothing is."""
    texts = {
        label(row): str(getattr(PRESETS[row["strategy"]], what)) for row in rows if row["strategy"] in PRESETS
    }
    if len({label(row) for row in rows}) == 1:
        return "".join(texts.values())
    return " ".join(f"{name}: {text}" for name, text in texts.items())


def _telling(lead: Row) -> Telling | None:
    from urllib.parse import quote

    found = lead["telling"]
    if found is None:
        return None
    by, mine = label(found), label(found["beside"])
    view = "/".join(quote(part, safe="") for part in (found["scenario"], by, str(found["seed"]), mine))
    return Telling(
        found["scenario"],
        by,
        _SHOWN[found["fault"]],
        episode_name(found["scenario"], by, found["seed"]),
        f"case={view}",
    )


def show_command(folder: str, episode: str) -> str:
    """The command that shows an episode, to paste."""
    return f"evalkit show {shlex.quote(folder)} {shlex.quote(episode)}"


def facts(pick: Pick) -> Iterator[tuple[str, str]]:
    """What stands under a pick, as (name, text), in the order of every form of the answer."""
    yield "", f"{pick.result}; {pick.faults}; {pick.cost}"
    if pick.against:
        yield "second", pick.against
    if pick.needs:
        yield "needs", pick.needs
    if pick.cannot:
        yield "cannot catch", pick.cannot


def prevents(pick: Pick) -> str:
    """What the telling episode shows, in words."""
    if pick.telling is None:
        return ""
    return f"{pick.telling.by} {pick.telling.fault} in {pick.telling.scenario}"


def meaning(pick: Pick) -> str:
    """What the pick's level of checks means."""
    return LEVEL_MEANINGS.get(pick.level, "the one that is first or second at each level")


def caveats(summary: Row) -> list[str]:
    """What the numbers may claim, said once for the whole report."""
    run = summary["run"]
    if run["sampled"] and summary.get("populations"):
        said = ["The scenarios are drawn from a fitted population: its own table has the intervals."]
    elif run["sampled"]:
        said = [
            "The scenarios are a sample; intervals are at 95 %, clustered by scenario. Seeds are averaged "
            "within a scenario."
        ]
    else:
        said = [
            "The scenarios are written, not sampled: figures are k of n scenarios and say nothing of a "
            "population. Seeds, where they matter, are averaged within a scenario."
        ]
    said.append(
        "Levels of checks are never pooled here: with full checks a strategy may run the very checks that "
        "say what is true, so that level is an upper bound."
    )
    if run["model"] == "scripted":
        said.append(
            "The model is scripted: what it says and does is fixed, so differences are the strategies'."
        )
    if run["void"]:
        said.append(
            f"{count(run['void'])} episodes are void (evalkit failed) and out of every base: "
            f"{'; '.join(run['void_reasons'])}."
        )
    said.extend(f"{line}." for line in run["raised"])
    if run["not_exercised"]:
        said.append(
            f"{count(run['not_exercised'])} episodes were not exercised (their event left no evidence that "
            "it landed, or an API would not give that answer to what was asked) and are out of every base."
        )
    for row in at_level(summary, "all"):
        if row["no_requests"]:
            above = "" if row["gateable"] else ": above 1 %, so its row is not gateable"
            said.append(
                f"{label(row)} made no request at all in {count(row['no_requests'])} of "
                f"{count(row['episodes'])} episodes{above}."
            )
    for fitted in summary.get("populations", ()):
        said.append(fitted["says"])
        said.append(f"Figures of {fitted['population']} with their widths: report.md. {legend(fitted)}")
    if "spending" in summary:
        said.extend(spending_lines(summary["spending"]))
    return said
