"""``evalkit claims``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.core.names import among
from evalkit.scenarios.suites import load_suites


@click.command()
@click.argument("names", nargs=-1, metavar="[CLAIM]...")
@click.option(
    "--seeds", type=click.IntRange(2), default=400, show_default=True, help="Seeds of each population."
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the page to a file.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON and nothing else.")
def command(names: tuple[str, ...], seeds: int, out: Path | None, as_json: bool) -> None:
    """Run the experiment of each CLAIM (without one, of all) and print what it found.

    Claims that do not hold are printed as such, and so is what scripted models cannot say.
    """
    from evalkit.experiments.claims.catalogue import CLAIMS
    from evalkit.experiments.claims.document import claims_text, run_claims

    known = [claim.id for claim in CLAIMS]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageProblem(f"unknown claim {unknown[0]!r}{among(unknown[0], known)}")
    with one_line_errors():
        results = run_claims(load_suites(), load_suites(("populations",)), seeds, names)
    text = claims_text(results, seeds)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    if as_json:
        found = [
            {
                "claim": result.claim.id,
                "source": result.claim.source,
                "verdict": result.verdict,
                "numbers": [
                    {"label": n.label, "count": n.count, "base": n.base, "sampled": n.sampled}
                    for n in (result.finding.numbers if result.finding else ())
                ],
            }
            for result in results
        ]
        click.echo(
            json.dumps({"schema": "evalkit.experiments.claims/1", "seeds": seeds, "claims": found}, indent=1)
        )
    elif out is None:
        click.echo(text, nl=False)
    else:
        for result in results:
            click.echo(f"{result.verdict:<10} {result.claim.id}")
        click.echo(f"wrote {out}")
