"""``evalkit choose``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.run_folders import open_run

if TYPE_CHECKING:
    from evalkit.fit.choose import Choice, Group

_COST = click.FloatRange(min=0)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--false-done", type=_COST, help="What a run costs that was called done and was not.")
@click.option("--premature-stop", type=_COST, help="What a run costs that gave up early otherwise.")
@click.option("--look", type=_COST, help="What a person's look costs: each escalation is one.")
@click.option("--token-cost", "token", type=_COST, help="What a token costs.")
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON and nothing else.")
def command(
    runs: tuple[str, ...],
    false_done: float | None,
    premature_stop: float | None,
    look: float | None,
    token: float | None,
    as_json: bool,
) -> None:
    """Say which strategy of RUNs costs least, for what its mistakes cost you; or what you have to decide.

    Costs are in one unit of yours; what is not given costs nothing. An episode costs one of a false done, a
    look (an escalation), a premature stop that was neither; and its tokens. Without costs the strategies are
    told that none is better than in everything.
    """
    from evalkit.fit import choose
    from evalkit.reports.layout import console_of, print_prose

    given = {"false_done": false_done, "premature_stop": premature_stop, "look": look, "token": token}
    prices = {name: cost for name, cost in given.items() if cost is not None}
    with one_line_errors():
        stores = [open_run(run) for run in runs]
    try:
        groups = choose.groups_of(stores)
    except ValueError as error:
        raise UsageProblem(str(error)) from None
    finally:
        for store in stores:
            store.close()
    if not groups:
        raise UsageProblem("nothing was evaluated: there is nothing to choose from")
    if as_json:
        click.echo(_json(groups, prices))
        return
    console = console_of()
    for place, group in enumerate(groups):
        print_prose(console, ([""] if place else []) + _lines(group, prices))


def _json(groups: list[Group], prices: dict[str, float]) -> str:
    import msgspec

    from evalkit.fit import choose

    told = {
        group.name: {"choice": choose.choice(group, prices), "map": choose.ratio_map(group, prices)}
        if prices
        else {"frontier": choose.frontier(group)}
        for group in groups
    }
    return msgspec.json.format(msgspec.json.encode(told), indent=1).decode()


def _lines(group: Group, prices: dict[str, float]) -> list[str]:
    from evalkit.fit import choose

    head = [f"{group.name}: {group.says}" if group.says else group.name]
    if not prices:
        return head + _frontier_lines(group)
    made = choose.choice(group, prices)
    lines = head + _choice_lines(made)
    if made.winner is None and group.sampled:
        lines += _map_lines(group, prices)
    return lines


def _choice_lines(made: Choice) -> list[str]:
    first = next(iter(made.by_level.values()))
    if made.winner is not None:
        where = ", over all that is assumed" if len(made.by_level) > 1 else ""
        lines = [f"take {made.winner}: the least expected cost{where}"]
        if made.apart is not None:
            lines.append(f"  {_apart(made)}")
    elif len(first) > 1 and all(names == first for names in made.by_level.values()):
        lines = [f"a tie: {' and '.join(first)} cost the same"]
    else:
        lines = ["no winner: what is assumed decides who costs least"]
    return lines + [f"  {name}: {_cost(*cost)}" for name, cost in made.costs.items()]


def _apart(made: Choice) -> str:
    assert made.apart is not None
    name, by, low, high = made.apart
    told = f"{_cost(by, low, high)} an episode less than {name}"
    return f"{told}; which of the two is cheaper is not sure" if low is not None and low <= 0 else told


def _cost(value: float, low: float | None, high: float | None) -> str:
    return f"{value:.4g}" if low is None else f"{value:.4g} (90 %: {low:.4g} to {high:.4g})"


def _map_lines(group: Group, prices: dict[str, float]) -> list[str]:
    from evalkit.fit import choose

    lines = ["who costs least, by what a false done costs in looks, and by what is assumed:"]
    for ratio, levels in choose.ratio_map(group, prices).items():
        by_names: dict[tuple[str, ...], list[str]] = {}
        for level, names in levels.items():
            by_names.setdefault(names, []).append(level)
        told = "; ".join(f"{' = '.join(names)} at {', '.join(of)}" for names, of in by_names.items())
        everywhere = " = ".join(next(iter(by_names)))
        lines.append(f"  {ratio:g}: {everywhere if len(by_names) == 1 else told}")
    return [*lines, f"  (levels are of {', '.join(group.assumed)}, in this order)"]


def _frontier_lines(group: Group) -> list[str]:
    from evalkit.fit import choose

    found = choose.frontier(group)
    lines = ["without costs: none is better in everything than"]
    for name, own in found.items():
        lines.append(
            f"  {name}: of 1,000 tasks {1000 * own['false_done']:.0f} false dones, "
            f"{1000 * own['premature_stop']:.0f} premature stops, {1000 * own['look']:.0f} looks; "
            f"{own['token']:,.0f} tokens each"
        )
    decide = choose.to_decide(found)
    return lines + (["you have to decide:", *(f"  {line}" for line in decide)] if decide else [])
